#!/bin/bash
# What a MariaDB 10.11 server says of the weights of every code point, for uca_tables.py and charset_tables.py.
#
#     mariadb_weights.sh SOCKET DIRECTORY
#
# The server's user is root without a password; the database `rauk_weights` is made and dropped.
set -eu
socket=$1 out=$2
run() { mariadb --no-defaults -S "$socket" -uroot --default-character-set=utf8mb4 -N -B rauk_weights -e "$1"; }
mariadb --no-defaults -S "$socket" -uroot -e 'CREATE DATABASE rauk_weights'
run "CREATE TABLE c (n INT PRIMARY KEY, c VARCHAR(1) CHARACTER SET utf8mb4);
     INSERT INTO c SELECT seq, CONVERT(CHAR(seq USING utf32) USING utf8mb4) FROM seq_0_to_1114111 WHERE seq NOT BETWEEN 55296 AND 57343;
     CREATE TABLE s SELECT * FROM c WHERE n BETWEEN 65 AND 90 OR n BETWEEN 97 AND 122 OR n BETWEEN 0xC0 AND 0x24F OR n BETWEEN 0x300 AND 0x345
       OR n BETWEEN 0x1E00 AND 0x1EFF OR n BETWEEN 0x621 AND 0x655 OR n BETWEEN 0x6D0 AND 0x6D5 OR n BETWEEN 0xD80 AND 0xDDF
       OR n IN (0x27, 0x2019, 0x6A9, 0x6AB, 0x6AF, 0x6BE, 0x6C0, 0x6C1, 0x6C2, 0x6CC)"
weight() { echo "HEX(WEIGHT_STRING($1 COLLATE utf8mb4_$2))"; }
levels() { for level in 1 2 3; do echo -n ", HEX(WEIGHT_STRING($1 COLLATE utf8mb4_$2 LEVEL $level))"; done; }
run "SELECT n, $(weight c unicode_520_ci) FROM c ORDER BY n" > "$out/w_520.tsv"
run "SELECT n $(levels c uca1400_as_cs) FROM c ORDER BY n" > "$out/w_1400.tsv"
languages="icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish lithuanian slovak spanish2 roman persian
  esperanto hungarian sinhala german2 vietnamese"
for language in $languages croatian_mysql561; do
  name=${language}_ci
  run "SELECT n, $(weight c $name) FROM c WHERE n < 65536 AND $(weight c $name) <> $(weight c unicode_ci) ORDER BY n" > "$out/d_$language.tsv"
  run "SELECT a.n, b.n, $(weight 'CONCAT(a.c, b.c)' $name) FROM s a, s b
       WHERE $(weight 'CONCAT(a.c, b.c)' $name) <> CONCAT($(weight a.c $name), $(weight b.c $name)) ORDER BY 1, 2" > "$out/p_$language.tsv"
done
for language in $languages croatian; do
  name=uca1400_${language}_as_cs
  run "SELECT n $(levels c $name) FROM c WHERE $(weight c $name) <> $(weight c uca1400_as_cs) ORDER BY n" > "$out/e_$language.tsv"
  # Of contractions the first level always differs from that of the characters one by one, or the second.
  run "SELECT a.n, b.n $(levels 'CONCAT(a.c, b.c)' $name) FROM s a, s b
       WHERE HEX(WEIGHT_STRING(CONCAT(a.c, b.c) COLLATE utf8mb4_$name LEVEL 1)) <>
             CONCAT(HEX(WEIGHT_STRING(a.c COLLATE utf8mb4_$name LEVEL 1)), HEX(WEIGHT_STRING(b.c COLLATE utf8mb4_$name LEVEL 1)))
          OR HEX(WEIGHT_STRING(CONCAT(a.c, b.c) COLLATE utf8mb4_$name LEVEL 2)) <>
             CONCAT(HEX(WEIGHT_STRING(a.c COLLATE utf8mb4_$name LEVEL 2)), HEX(WEIGHT_STRING(b.c COLLATE utf8mb4_$name LEVEL 2)))
          OR HEX(WEIGHT_STRING(CONCAT(a.c, b.c) COLLATE utf8mb4_$name LEVEL 3)) <>
             CONCAT(HEX(WEIGHT_STRING(a.c COLLATE utf8mb4_$name LEVEL 3)), HEX(WEIGHT_STRING(b.c COLLATE utf8mb4_$name LEVEL 3)))
       ORDER BY 1, 2" > "$out/q_$language.tsv"
done
# The contractions of the DUCET (their characters, in decimal, from an allkeys file of 13.0.0 or 14.0.0) under uca1400.
if [ -f "$out/contractions.tsv" ]; then
  run "CREATE TABLE k (a INT, b INT, d INT)"
  rows=$(awk '{ print (NR > 1 ? "," : "") "(" $1 "," $2 "," (NF > 2 ? $3 : "NULL") ")" }' "$out/contractions.tsv")
  run "INSERT INTO k VALUES $rows"
  text='CONCAT(x.c, y.c, IFNULL(z.c, ""))'
  run "SELECT a, b, d $(levels "$text" uca1400_as_cs) FROM k JOIN c x ON x.n = a JOIN c y ON y.n = b LEFT JOIN c z ON z.n = d" > "$out/k_1400.tsv"
fi
run 'DROP DATABASE rauk_weights'
