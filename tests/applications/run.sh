#!/usr/bin/env bash
# Unchanged applications and frameworks on a real server, which this script starts on free ports in a temporary directory and ends by its pid.
# Each has a folder here with a run.sh, which installs what it needs, and gets a database and a user of its own.
# usage: tests/applications/run.sh path/to/rauk [NAME…]
set -euo pipefail
rauk=$(realpath "$1")
shift
cd "$(dirname "$0")"
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(django sqlalchemy sequelize wordpress liquibase flyway hibernate gorm)
for name in "${names[@]}"; do
  [ -x "$name/run.sh" ] || { echo "no application $name" >&2; exit 2; }
done
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

export APPLICATION_CACHE=${APPLICATION_CACHE:-$HOME/.cache/rauk-applications}
mkdir -p "$APPLICATION_CACHE"

"$rauk" start --data-dir "$work/data" --mysql-port 0 --http-port 0 --native-port 0 --memory-limit 2GiB --log-level warn >"$work/out" 2>"$work/err" &
server=$!
for _ in $(seq 1 200); do
  grep -q '^rauk is ready' "$work/out" && break
  kill -0 "$server" 2>/dev/null || { cat "$work/err"; exit 1; }
  sleep 0.1
done
export RAUK_HOST=127.0.0.1
RAUK_PORT=$(sed -n 's/^rauk is ready: mysql on [^,]*:\([0-9]*\),.*/\1/p' "$work/out")
export RAUK_PORT

failed=()
for name in "${names[@]}"; do
  echo "-- $name"
  export APPLICATION_DATABASE=$name APPLICATION_USER=$name APPLICATION_PASSWORD=password-of-$name APPLICATION_WORK=$work/$name
  mkdir "$APPLICATION_WORK"
  # The database `test_NAME` is for frameworks that make one for their tests.
  mariadb -h "$RAUK_HOST" -P "$RAUK_PORT" -u root --skip-ssl <<SQL
CREATE DATABASE \`$name\` CHARACTER SET utf8mb4;
CREATE USER '$name'@'%' IDENTIFIED BY '$APPLICATION_PASSWORD';
GRANT ALL PRIVILEGES ON \`$name\`.* TO '$name'@'%';
GRANT ALL PRIVILEGES ON \`test\_$name\`.* TO '$name'@'%';
SQL
  "$name/run.sh" || failed+=("$name")
done

echo "-- the server stops cleanly"
kill -TERM "$server"
wait "$server"
server=
if grep -E 'ERROR|panicked' "$work/err"; then exit 1; fi
[ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
echo "all applications passed: ${names[*]}"
