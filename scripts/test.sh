#!/usr/bin/env bash
# Passes all tests: formatting, lints, unit and property tests, simulation, crash tests, comparison with MariaDB, real clients.
# usage: scripts/test.sh [long]: `long` also installs and drives unchanged applications (Django, WordPress, Hibernate and others).
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-test}
case $kind in test | long) ;; *) echo "usage: scripts/test.sh [long]" >&2; exit 2 ;; esac
scripts/setup.sh "$kind"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/rauk-target}
# Property tests draw the same cases in each run of this script; `cargo test` alone draws new ones.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}
step() { echo; echo "== $* ($(date +%H:%M:%S))"; }

step formatting
cargo fmt --all --check
step lints
cargo clippy --workspace --all-targets --quiet -- -D warnings
step unit, property, simulation, crash, conformance and isolation tests
cargo test --workspace --quiet
step six hundred seeds of whole clusters
# Built together: each by itself would build what both use with other features, a second time.
cargo build --release --quiet -p rauk -p rauk-simulation --bins
"$CARGO_TARGET_DIR/release/rauk-simulation" --only cluster --seeds 600 --minutes 25
step real clients
tests/clients/run.sh "$CARGO_TARGET_DIR/release/rauk"
if [ "$kind" = long ]; then
  step unchanged applications
  tests/applications/run.sh "$CARGO_TARGET_DIR/release/rauk"
fi
step all tests passed
