#!/usr/bin/env bash
# Makes a site of docs with mdBook, into target/book, and checks it: every page of docs is a page of the site, and no link leads
# out of the site to a file that is not there. Links to other files of the repository lead to where book.toml says it is.
# usage: scripts/docs.sh [--open]
# Links between files, commands, settings, Rust and SQL in the pages are checked by tests (crates/rauk/src/pages.rs, tests/server/docs.rs).
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v mdbook >/dev/null; then
  echo "scripts/docs.sh needs mdBook: cargo install mdbook --locked --no-default-features" >&2
  exit 1
fi
repository=$(sed -n 's/^git-repository-url = "\(.*\)"$/\1/p' book.toml)
[ -n "$repository" ] || { echo "book.toml has no git-repository-url" >&2; exit 1; }
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
cp -r docs/. "$pages"
sed -i "s#](\.\./#](${repository}/blob/HEAD/#g" "$pages"/*.md
MDBOOK_BOOK__SRC=$pages mdbook build
missing=0
for page in docs/*.md; do
  name=$(basename "${page%.md}")
  [ "$name" = SUMMARY ] && continue
  [ -s "target/book/$name.html" ] || { echo "target/book/$name.html is missing" >&2; missing=1; }
done
if grep -no 'href="\.\./[^"]*"' target/book/*.html; then
  echo "these links lead out of the site" >&2
  missing=1
fi
[ $missing = 0 ] || exit 1
echo "the site is in target/book: $(find target/book -name '*.html' | wc -l) pages"
[ "${1:-}" != --open ] || xdg-open target/book/index.html
