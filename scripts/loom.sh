#!/bin/sh
# Model tests of the executor: loom runs every interleaving of small cases. About a minute.
set -e
cd "$(dirname "$0")/.."
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
    cargo test --release -p rauk-node --lib executor "$@"
