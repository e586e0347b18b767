#!/usr/bin/env bash
# Dumps between MariaDB and Rauk: the databases of dumps/ go from a MariaDB, which this script starts, to the Rauk at RAUK_PORT and back, by
# mariadb-dump and, where it is installed, by mydumper and myloader. What comes back has the same definitions and rows.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
mariadb_pid=
trap '[ -z "$mariadb_pid" ] || { kill "$mariadb_pid" 2>/dev/null && wait "$mariadb_pid" 2>/dev/null; } || true; rm -rf "$work"' EXIT

mkdir "$work/tmp"
mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --user=root --innodb-use-native-aio=0 --tmpdir="$work/tmp" --datadir="$work/data" >"$work/install" 2>&1 || { cat "$work/install"; exit 1; }
mariadbd --no-defaults --user=root --skip-networking --skip-log-bin --innodb-use-native-aio=0 --innodb-flush-log-at-trx-commit=0 --innodb-flush-method=nosync \
  --innodb-buffer-pool-size=64M --character-set-server=utf8mb4 --collation-server=utf8mb4_unicode_ci --datadir="$work/data" --socket="$work/m.sock" --tmpdir="$work/tmp" >"$work/log" 2>&1 &
mariadb_pid=$!
theirs() { mariadb --no-defaults --default-character-set=utf8mb4 -S "$work/m.sock" -u root "$@"; }
ours() { mariadb --no-defaults --default-character-set=utf8mb4 -h 127.0.0.1 -P "$RAUK_PORT" -u root --skip-ssl "$@"; }
for _ in $(seq 1 200); do
  theirs -e 'SELECT 1' >/dev/null 2>&1 && break
  kill -0 "$mariadb_pid" 2>/dev/null || { cat "$work/log"; exit 1; }
  sleep 0.1
done

# The rows of every table and view, in the order of all columns, as text.
rows() { # client database
  local tables table columns
  tables=$("$1" -N -e "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '$2'" | LC_ALL=C sort)
  while IFS= read -r table; do
    echo "== $table"
    columns=$("$1" -N -e "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '$2' AND TABLE_NAME = '${table//\'/\'\'}'")
    "$1" -N -r "$2" -e "SET time_zone = '+00:00'; SELECT * FROM \`${table//\`/\`\`}\` ORDER BY $(seq -s, 1 "$columns")" | LC_ALL=C sort
  done <<<"$tables"
}

# Definitions as SHOW CREATE gives them, without the database's name. As in MySQL, a literal in an expression says its character set, and each CHECK has a name
# and stands behind the columns: so that of a JSON column is no part of the column any more, and is among the facts instead.
definitions() { # database
  local tables table
  tables=$(theirs -N -e "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '$1'" | LC_ALL=C sort)
  while IFS= read -r table; do
    theirs -N -r "$1" -e "SHOW CREATE TABLE \`${table//\`/\`\`}\`"
  done <<<"$tables" | sed -E "s/\`$1\`\.//g; s/_utf8mb4'/'/g; /^  CONSTRAINT \`[a-z_]+_chk_[0-9]+\` CHECK \(json_valid/d; s/ CHECK \(json_valid\(.*\)\),?\$//; s/,\$//"
}

# Keys, constraints and columns as information_schema has them.
facts() { # database
  theirs -N -e "
    SELECT TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION, REPLACE(COLUMN_DEFAULT, '_utf8mb4\'', '\''), IS_NULLABLE, COLUMN_TYPE, COLLATION_NAME, COLUMN_KEY, EXTRA, COLUMN_COMMENT, REPLACE(GENERATION_EXPRESSION, '_utf8mb4\'', '\'')
      FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '$1' ORDER BY 1, 2;
    SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, NON_UNIQUE, COLUMN_NAME, COLLATION, SUB_PART, INDEX_TYPE FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '$1' ORDER BY 1, 2, 3;
    SELECT TABLE_NAME, CONSTRAINT_NAME, CONSTRAINT_TYPE FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = '$1' AND CONSTRAINT_TYPE <> 'CHECK' ORDER BY 1, 2;
    SELECT TABLE_NAME, REPLACE(CHECK_CLAUSE, '_utf8mb4\'', '\'') FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = '$1' ORDER BY 1, 2;
    SELECT TABLE_NAME, CONSTRAINT_NAME, UPDATE_RULE, DELETE_RULE, REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = '$1' ORDER BY 1, 2;"
}

# What has come back is what went out.
same() { # way database
  definitions "$2" >"$work/definitions.1"
  definitions "back_$2" >"$work/definitions.2"
  diff "$work/definitions.1" "$work/definitions.2" || { echo "$1: definitions of $2 differ"; exit 1; }
  facts "$2" >"$work/facts.1"
  facts "back_$2" >"$work/facts.2"
  diff "$work/facts.1" "$work/facts.2" || { echo "$1: information_schema of $2 differs"; exit 1; }
  rows theirs "$2" >"$work/rows.1"
  rows theirs "back_$2" >"$work/rows.2"
  rows ours "$2" >"$work/rows.3"
  [ "$(wc -l <"$work/rows.1")" -gt 1000 ]
  for other in 2 3; do
    diff -a "$work/rows.1" "$work/rows.$other" >"$work/difference" || { head -20 "$work/difference" | cut -c1-300; echo "$1: rows of $2 differ ($other)"; exit 1; }
  done
}

for database in shop staff; do
  theirs -e "CREATE DATABASE $database CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
  theirs "$database" <"dumps/$database.sql"
done

echo "-- mariadb-dump: MariaDB to Rauk to MariaDB"
for database in shop staff; do
  create="CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
  ours -e "CREATE DATABASE $database $create"
  mariadb-dump --no-defaults -S "$work/m.sock" -u root --single-transaction --hex-blob "$database" >"$work/out.sql"
  ours "$database" <"$work/out.sql"
  theirs -e "CREATE DATABASE back_$database $create"
  mariadb-dump --no-defaults -h 127.0.0.1 -P "$RAUK_PORT" -u root --skip-ssl --single-transaction --hex-blob "$database" >"$work/back.sql"
  theirs "back_$database" <"$work/back.sql"
  same mariadb-dump "$database"
  theirs -e "DROP DATABASE back_$database"
  ours -e "DROP DATABASE $database"
done

if command -v mydumper >/dev/null; then
  echo "-- mydumper and myloader: MariaDB to Rauk to MariaDB"
  # mydumper 0.10 does not quote quotes in names, and leaves out columns whose EXTRA says DEFAULT_GENERATED, as it does with MySQL 8.
  theirs -e 'DROP TABLE shop.`odd ``names```;
    ALTER TABLE shop.addresses MODIFY changed TIMESTAMP NULL DEFAULT NULL;
    ALTER TABLE shop.customers MODIFY created DATETIME(6) NOT NULL;
    ALTER TABLE shop.payments MODIFY paid TIMESTAMP(6) NULL DEFAULT NULL, MODIFY receipt VARCHAR(36) DEFAULT NULL;
    ALTER TABLE staff.people MODIFY hired DATE NOT NULL'
  for database in shop staff; do
    mydumper --socket "$work/m.sock" --user root --database "$database" --threads 2 --outputdir "$work/files.$database" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
    myloader --host 127.0.0.1 --port "$RAUK_PORT" --user root --threads 2 --directory "$work/files.$database" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
    mydumper --host 127.0.0.1 --port "$RAUK_PORT" --user root --database "$database" --threads 2 --outputdir "$work/back.$database" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
    myloader --socket "$work/m.sock" --user root --threads 2 --directory "$work/back.$database" --source-db "$database" --database "back_$database" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
    same mydumper "$database"
    ours -e "DROP DATABASE $database"
  done
fi
echo "dumps went and came back"
