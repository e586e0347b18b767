#!/usr/bin/env bash
# Makes a site of docs with mdBook, into target/book, and checks it: every page of docs is a page of the site.
# usage: scripts/docs.sh [--open]
# Links, commands, settings, Rust and SQL in the pages are checked by tests (crates/rauk/src/pages.rs, tests/server/docs.rs).
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v mdbook >/dev/null; then
  echo "scripts/docs.sh needs mdBook: cargo install mdbook --locked --no-default-features" >&2
  exit 1
fi
mdbook build
missing=0
for page in docs/*.md; do
  name=$(basename "${page%.md}")
  [ "$name" = SUMMARY ] && continue
  [ -s "target/book/$name.html" ] || { echo "target/book/$name.html is missing" >&2; missing=1; }
done
[ $missing = 0 ] || exit 1
echo "the site is in target/book: $(find target/book -name '*.html' | wc -l) pages"
[ "${1:-}" != --open ] || xdg-open target/book/index.html
