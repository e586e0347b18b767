#!/usr/bin/env bash
# Passes all tests: formatting, lints, unit and property tests, simulation, crash tests, comparison with MariaDB, real clients.
# usage: scripts/test.sh [--quick | long]
#   --quick  formatting, unit tests, a few files of conformance with MariaDB
#   long     also installs and drives unchanged applications (Django, WordPress, Hibernate and others)
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-test}
case $kind in
  --quick) takes="at most 3 minutes on two idle cores" ;;
  test) takes="about 45 minutes on two cores" ;;
  long) takes="about an hour on two cores, and some GiB of downloads the first time" ;;
  *) echo "usage: scripts/test.sh [--quick | long]" >&2; exit 2 ;;
esac
echo "scripts/test.sh${1:+ $1}: $takes once everything is built; a first build takes more than half an hour"
scripts/setup.sh "${kind/--quick/test}"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/rauk-target}
# Property tests draw the same cases in each run of this script; `cargo test` alone draws new ones.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}
started=$SECONDS
step() { echo; echo "== $* ($(date +%H:%M:%S))"; }

step formatting
cargo fmt --all --check
if [ "$kind" = --quick ]; then
  step unit tests
  # Without those of the models and the simulator, which take minutes. They are left out when tests are run, not when they are built: another
  # selection of crates is compiled with other features, a second time.
  built=$(cargo test --workspace --lib --bins --no-run 2>&1) || { echo "$built" >&2; exit 1; }
  libraries=$(rustc --print target-libdir)
  sed -n 's/^ *Executable .*(\(.*\))$/\1/p' <<<"$built" | while read -r program; do
    name=$(basename "${program%-*}")
    case $name in rauk_models | rauk_simulation | rauk-models | rauk-simulation) continue ;; esac
    # As cargo does it: in the directory of the crate, with the compiler's libraries, which macros need.
    crate=${name#rauk?}
    [ -d "crates/$crate" ] || crate=rauk
    echo "$name"
    (cd "crates/$crate" && LD_LIBRARY_PATH=$libraries "$program" --quiet </dev/null)
  done
  step conformance, six files
  RAUK_CONFORMANCE=basics.slt,ddl.slt,aggregates.slt,checks.slt,derived.slt,transactions.slt \
    cargo test --workspace --quiet --test server conformance::
  step "quick tests passed in $((SECONDS - started)) s; before a merge: scripts/test.sh"
  exit
fi
step lints
cargo clippy --workspace --all-targets --quiet -- -D warnings
if command -v mdbook >/dev/null; then
  step the site of docs
  scripts/docs.sh
fi
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
step "all tests passed in $((SECONDS - started)) s"
