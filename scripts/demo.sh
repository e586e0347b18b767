#!/usr/bin/env bash
# Builds Rauk, starts it, loads a small sample, shows a few statements with their answers and timings, and leaves the server running
# until Ctrl-C. Settings (RAUK_DATA_DIR, RAUK_MYSQL_PORT, …) may be given in the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh build
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/rauk-target}
cargo build --release --quiet -p rauk
exec "$CARGO_TARGET_DIR/release/rauk" demo "$@"
