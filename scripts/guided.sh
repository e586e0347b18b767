#!/usr/bin/env bash
# Builds rauk guided by a profile of itself, and optimised over all crates when it is linked (profile `dist`): up to an eighth less CPU
# for an operation (docs/performance.md). It is built twice: once so that it counts what is run, by the benchmarks, and once by these counts.
# usage: scripts/guided.sh [--profile FILE] [--out FILE]
#   --profile FILE   counts of an earlier run, of the same commit or one near it; without, they are made
#   --out FILE       where the program goes; without, guided/rauk in the target directory
# It takes about an hour and a half on two idle cores, with --profile half of that, and 12 GiB of disk.
set -euo pipefail
usage() { sed -n 's/^# \(usage: .*\)/\1/p; s/^#   --/  --/p' "$0" >&2; exit 2; }
fail() { echo "scripts/guided.sh: $*" >&2; exit 1; }
step() { echo; echo "== $* ($(date +%H:%M:%S))"; }

profile= out=
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --profile) profile=$(realpath "$2") ;;
    --out) out=$2 ;;
    *) usage ;;
  esac
  shift 2
done
cd "$(dirname "$0")/.."
[ -z "$profile" ] || [ -s "$profile" ] || fail "--profile: there is no file $profile"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/rauk-target}
work=$CARGO_TARGET_DIR/guided
out=$(realpath -m "${out:-$work/rauk}")
host=$(rustc -vV | sed -n 's/^host: //p')
scripts/setup.sh build
mkdir -p "$work"
# Flags that the compiler is given by the environment would otherwise build everything again in the usual directory.
export CARGO_TARGET_DIR=$work/target

if [ -z "$profile" ]; then
  merge=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
  [ -x "$merge" ] || rustup component add llvm-tools >/dev/null || fail "llvm-profdata is missing: rustup component add llvm-tools"
  command -v sysbench >/dev/null || fail "sysbench is missing, which the benchmarks need; install it: apt-get install sysbench"
  counts=$work/counts
  rm -rf "$counts"
  mkdir -p "$counts"
  step "a program that counts"
  # A target, so that the flags are not those of build scripts and macros.
  RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-generate=$counts" cargo build --release --target "$host" --locked --quiet -p rauk
  step "the benchmarks that it counts"
  counting=$CARGO_TARGET_DIR/$host/release/rauk
  # One file a program, whatever the number of its processes.
  export LLVM_PROFILE_FILE=$counts/%m_%p.profraw
  (
    cd "$counts"
    "$counting" bench sql --seconds 4 --rounds 1 --inserts 20000
    "$counting" bench cluster --only replicas --against none --seconds 3 --rounds 1
    "$counting" bench analytics --only micro --rows 50000
  )
  profile=$work/rauk.profdata
  # What a bench that was killed has left counts nothing.
  find "$counts" -name '*.profraw' -empty -delete
  "$merge" merge -o "$profile" "$counts"/*.profraw
  rm -rf "$counts"
fi

step "the program, guided by $profile"
RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-use=$profile -Cllvm-args=-pgo-warn-missing-function=false" \
  cargo build --profile dist --target "$host" --locked --quiet -p rauk
mkdir -p "$(dirname "$out")"
cp "$CARGO_TARGET_DIR/$host/dist/rauk" "$out"
"$out" --version >/dev/null || fail "$out does not run"
echo
echo "$out: $(du -h "$out" | cut -f1); scripts/package.sh --binary $out packs it"
