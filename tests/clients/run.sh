#!/usr/bin/env bash
# Real clients against a real server, which this script starts on free ports in a temporary directory and ends by its pid.
# usage: tests/clients/run.sh path/to/rauk
set -euo pipefail
rauk=$(realpath "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

mkdir "$work/files"
"$rauk" start --data-dir "$work/data" --secure-file-priv "$work/files" --mysql-port 0 --http-port 0 --native-port 0 --socket "$work/s.sock" --memory-limit 2GiB --log-level warn >"$work/out" 2>"$work/err" &
server=$!
for _ in $(seq 1 200); do
  grep -q '^rauk is ready' "$work/out" && break
  kill -0 "$server" 2>/dev/null || { cat "$work/err"; exit 1; }
  sleep 0.1
done
port=$(sed -n 's/^rauk is ready: mysql on [^,]*:\([0-9]*\),.*/\1/p' "$work/out")
client() { mariadb -h 127.0.0.1 -P "$port" -u root --skip-ssl "$@"; }

echo "-- mariadb client: text, TLS, Unix socket, compression"
[ "$(client -N -e 'SELECT 40 + 2')" = 42 ]
[ "$(mariadb -S "$work/s.sock" -u root -N -e 'SELECT 40 + 2')" = 42 ]
[ "$(mariadb -h 127.0.0.1 -P "$port" -u root --ssl -N -e "SHOW STATUS LIKE 'Ssl_cipher'" | wc -w)" = 2 ]
[ "$(client --compress -N -e "SELECT LENGTH(REPEAT('x', 1000000))")" = 1000000 ]

echo "-- mariadb-dump and its reload give the same rows"
client <<'SQL'
CREATE DATABASE d1;
CREATE DATABASE d2;
USE d1;
CREATE TABLE types (id INT AUTO_INCREMENT PRIMARY KEY, a BIGINT UNSIGNED, b DECIMAL(30,10), c DOUBLE, d VARCHAR(50), e TEXT, f BLOB, g DATETIME(6), h DATE, i TIME(3), j TIMESTAMP NULL, k JSON, l CHAR(10), KEY (a), UNIQUE KEY (d), KEY (e(10), h DESC)) COMMENT 'all types';
INSERT INTO types VALUES (NULL, 18446744073709551615, -12345678901234567890.0123456789, 1.5e-300, 'äöü \' " \\ ', 'line\nline', x'00ff27', '2024-02-29 12:34:56.789012', '2024-02-29', '-12:34:56.789', '2024-02-29 12:34:56', '{"a": [1, null]}', 'pad');
INSERT INTO types (d) VALUES (NULL), ('x');
CREATE TABLE plain (a INT, b VARCHAR(10) NOT NULL DEFAULT 'q');
INSERT INTO plain (a) VALUES (1), (1), (NULL);
CREATE TABLE pair (x INT, y INT, v INT, PRIMARY KEY (x, y)) PARTITION BY KEY (x);
INSERT INTO pair VALUES (1, 1, 1), (1, 2, 2), (2, 1, 3);
CREATE VIEW many AS SELECT x, y, v FROM pair WHERE v > 1 WITH CHECK OPTION;
CREATE VIEW a_sum (x, total) AS SELECT many.x, SUM(many.v) FROM many GROUP BY many.x;
SQL
mariadb-dump -h 127.0.0.1 -P "$port" -u root --skip-ssl --single-transaction d1 >"$work/dump.sql"
client d2 <"$work/dump.sql"
for table in types plain pair many a_sum; do
  for database in d1 d2; do
    client -N "$database" -e "SELECT * FROM $table ORDER BY 1, 2; SHOW CREATE TABLE $table" >"$work/$database.$table"
  done
  cmp "$work/d1.$table" "$work/d2.$table"
  [ -s "$work/d1.$table" ]
done

echo "-- mariadb-dump --tab writes files, mariadb-import loads them, from the server and from the client"
client -e 'SET GLOBAL local_infile = ON; CREATE DATABASE d3'
mariadb-dump -h 127.0.0.1 -P "$port" -u root --skip-ssl --tab="$work/files" d1 types plain pair
import() { mariadb-import -h 127.0.0.1 -P "$port" -u root --skip-ssl "$@"; }
for where in "" --local "--local --compress"; do
  for table in types plain pair; do
    client d3 -e "DROP TABLE IF EXISTS $table"
    client d3 <"$work/files/$table.sql"
    # shellcheck disable=SC2086
    import $where d3 "$work/files/$table.txt" >"$work/import"
    grep -q 'Skipped: 0  Warnings: 0' "$work/import"
    client -N d3 -e "SELECT * FROM $table ORDER BY 1, 2; SHOW CREATE TABLE $table" >"$work/d3.$table"
    cmp "$work/d1.$table" "$work/d3.$table"
  done
done
seq 1 200000 | awk '{ print $1 ",\"row " $1 "\"," $1 * 2 }' >"$work/many.csv"
client d3 -e 'CREATE TABLE many (id INT PRIMARY KEY, name VARCHAR(20), twice BIGINT, KEY (twice))'
import --local --fields-terminated-by=, --fields-optionally-enclosed-by='"' d3 "$work/many.csv" | grep 'Records: 200000  Deleted: 0  Skipped: 0  Warnings: 0'
[ "$(client -N d3 -e "SELECT COUNT(*), SUM(twice), SUM(name = CONCAT('row ', id)) FROM many")" = $'200000\t40000200000\t200000' ]
client -e 'DROP DATABASE d3; SET GLOBAL local_infile = OFF'

RAUK_PORT=$port ./dumps.sh

echo "-- sysbench: prepare, run, cleanup; prepared statements and text"
client -e 'CREATE DATABASE sbtest'
bench() {
  sysbench "$1" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root --mysql-db=sbtest --mysql-ssl=off \
    --tables=2 --table-size=10000 --threads=8 --time=5 --db-ps-mode="$2" "$3" >"$work/sysbench" 2>&1 || { cat "$work/sysbench"; return 1; }
}
for mode in auto disable; do
  bench oltp_read_write $mode prepare
  bench oltp_read_write $mode run
  grep -E 'transactions:|ignored errors:|95th' "$work/sysbench"
  grep -qE 'transactions: +[1-9]' "$work/sysbench"
  bench oltp_read_write $mode cleanup
done

echo "-- drivers: PyMySQL, mysql-connector-python, go-sql-driver, Connector/J"
RAUK_HOST=127.0.0.1 RAUK_PORT=$port RAUK_USER=root RAUK_PASSWORD= ./drivers.sh

echo "-- rules of accounts about TLS, on a server of their own"
./tls.sh "$rauk"

echo "-- the server stops cleanly"
kill -TERM "$server"
wait "$server"
server=
if grep -E 'ERROR|panicked' "$work/err"; then exit 1; fi
echo "all clients passed"
