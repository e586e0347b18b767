#!/usr/bin/env bash
# Passes all tests: formatting, lints, unit and property tests, simulation, crash tests, comparison with MariaDB, real clients.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh test
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/rauk-target}
step() { echo; echo "== $* ($(date +%H:%M:%S))"; }

step formatting
cargo fmt --all --check
step lints
cargo clippy --workspace --all-targets --quiet -- -D warnings
step unit, property, simulation, crash, conformance and isolation tests
cargo test --workspace --quiet
step a thousand seeds of whole clusters
cargo run --release --quiet -p rauk-simulation -- --only cluster --seeds 1000 --minutes 20
step real clients
cargo build --release --quiet -p rauk
tests/clients/run.sh "$CARGO_TARGET_DIR/release/rauk"
step all tests passed
