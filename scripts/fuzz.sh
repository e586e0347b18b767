#!/usr/bin/env bash
# Fuzzes each target for a number of seconds (default 20) with libFuzzer; a finding ends it with exit code 1 and leaves the input.
# usage: scripts/fuzz.sh [SECONDS [TARGET…]]
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-20}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(log protocol sql wire)
host=$(rustc -vV | sed -n 's/^host: //p')
base=${CARGO_TARGET_DIR:-$HOME/.cache/rauk-target}
export CARGO_TARGET_DIR=$base/fuzz
# What cargo-fuzz sets, without the sanitizers that need a nightly compiler.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions --cfg fuzzing"
cargo build --quiet --release --target "$host" --bins
for target in "${targets[@]}"; do
  corpus=$CARGO_TARGET_DIR/corpus/$target
  mkdir -p "$corpus"
  echo "fuzzing $target for $seconds s"
  "$CARGO_TARGET_DIR/$host/release/$target" "$corpus" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 2>&1 | grep -E 'stat::number_of_executed_units|ERROR|panicked|Test unit' || true
  [ "${PIPESTATUS[0]}" = 0 ] || { echo "$target: a finding; the input is in $(pwd)"; exit 1; }
done
