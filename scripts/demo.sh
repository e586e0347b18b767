#!/usr/bin/env bash
# Builds Rauk, links it as ~/.local/bin/rauk, starts it, loads a small sample, shows a few statements with their answers and timings, and leaves the
# server running until Ctrl-C. Settings (RAUK_DATA_DIR, RAUK_MYSQL_PORT, …) may be given in the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh build
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/rauk-target}
program=$CARGO_TARGET_DIR/release/rauk
[ -e "$program" ] || echo "building rauk: about ten minutes on two cores the first time"
cargo build --release -p rauk

link=$HOME/.local/bin/rauk
if [ -e "$link" ] && [ ! -L "$link" ]; then
  echo "$link is a file of its own and stays as it is; this build is $program"
elif mkdir -p "$(dirname "$link")" && ln -sfn "$program" "$link"; then
  case ":$PATH:" in
    *":$(dirname "$link"):"*) echo "linked $link: 'rauk' is in your PATH" ;;
    *) echo "linked $link, which is not in your PATH; add it: export PATH=\"\$HOME/.local/bin:\$PATH\"" ;;
  esac
else
  echo "cannot link $link; this build is $program"
fi
exec "$program" demo "$@"
