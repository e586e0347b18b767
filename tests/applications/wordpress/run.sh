#!/usr/bin/env bash
# WordPress as Debian packages it, on PHP's own web server, used through its web pages alone.
set -euo pipefail
cd "$(dirname "$0")"
[ -d /usr/share/wordpress ] || { echo "WordPress is missing: run scripts/setup.sh long" >&2; exit 1; }

# A site of its own, with its links to shared libraries as files. Debian's configuration is left out: WordPress writes its own.
site=$APPLICATION_WORK/site
cp -rL /usr/share/wordpress "$site"
rm -f "$site/wp-config.php" "$site/.htaccess"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
PHP_CLI_SERVER_WORKERS=4 php -d upload_max_filesize=8M -S "127.0.0.1:$port" -t "$site" >"$APPLICATION_WORK/php" 2>&1 &
php=$!
trap 'kill $php 2>/dev/null || true' EXIT
for _ in $(seq 1 100); do
  grep -q 'started' "$APPLICATION_WORK/php" && break
  kill -0 $php 2>/dev/null || { cat "$APPLICATION_WORK/php"; exit 1; }
  sleep 0.1
done
if ! python3 browse.py "http://127.0.0.1:$port" "$site"; then
  grep -h 'database error' "$site/wp-content/debug.log" || true
  exit 1
fi
