#!/bin/bash
# What a MariaDB 10.11 server says of the character sets beside Unicode's and of their collations, for charset_tables.py and the tests that compare.
#
#     mariadb_charsets.sh SOCKET DIRECTORY
#
# The server's user is root without a password; the database `rauk_charsets` is made and dropped. Written are
#   dec_SET.tsv, dec2_SET.tsv, dec3_SET.tsv
#                               each code of one, two and (8F0000 on) three bytes (decimal) and its character (UTF-32, hexadecimal; 3F: none)
#   enc_SET.tsv                 each character of the basic plane that the set has (decimal) and its code
#   w_COLLATION.tsv             each code of one byte, or each character of a set with longer codes, and its weight string
set -eu
socket=$1 out=$2
run() { mariadb --no-defaults -S "$socket" -uroot --default-character-set=utf8mb4 -N -B rauk_charsets -e "$1"; }
mariadb --no-defaults -S "$socket" -uroot -e 'CREATE DATABASE rauk_charsets'
run "CREATE TABLE c (n INT PRIMARY KEY, c VARCHAR(1) CHARACTER SET utf8mb4);
     INSERT INTO c SELECT seq, CONVERT(CHAR(seq USING utf32) USING utf8mb4) FROM seq_0_to_65535 WHERE seq NOT BETWEEN 55296 AND 57343;
     CREATE TABLE one (n INT PRIMARY KEY, b VARBINARY(2)); INSERT INTO one SELECT seq, UNHEX(LPAD(HEX(seq), 2, '0')) FROM seq_0_to_255;
     CREATE TABLE two (n INT PRIMARY KEY, b VARBINARY(2)); INSERT INTO two SELECT seq, UNHEX(HEX(seq)) FROM seq_32768_to_65535;
     CREATE TABLE three (n INT PRIMARY KEY, b VARBINARY(3));
     INSERT INTO three SELECT seq + 0x8F0000, CONCAT(X'8F', UNHEX(HEX(seq))) FROM seq_32768_to_65535"
double="big5 cp932 eucjpms euckr gb2312 gbk sjis ujis"
triple="eucjpms ujis"
single="armscii8 ascii cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 dec8 geostd8 greek hebrew hp8 keybcs2 koi8r koi8u latin1 latin2 latin5
  latin7 macce macroman"
has() { echo "(n < 128 OR HEX(CONVERT(c USING $1)) <> '3F')"; }
for set in $single $double; do
  run "SELECT n, HEX(CONVERT(CONVERT(b USING $set) USING utf32)) FROM one ORDER BY n" > "$out/dec_$set.tsv"
  run "SELECT n, HEX(CONVERT(c USING $set)) FROM c WHERE $(has "$set") ORDER BY n" > "$out/enc_$set.tsv"
done
for set in $double; do
  run "SELECT n, HEX(CONVERT(CONVERT(b USING $set) USING utf32)) FROM two ORDER BY n" > "$out/dec2_$set.tsv"
done
for set in $triple; do
  run "SELECT n, HEX(CONVERT(CONVERT(b USING $set) USING utf32)) FROM three ORDER BY n" > "$out/dec3_$set.tsv"
done
collations() {
  run "SELECT collation_name FROM information_schema.collations WHERE character_set_name = '$1' AND collation_name NOT LIKE '%nopad%'"
}
for set in $single; do
  for collation in $(collations "$set"); do
    run "SELECT n, HEX(WEIGHT_STRING(CONVERT(b USING $set) COLLATE $collation)) FROM one ORDER BY n" > "$out/w_$collation.tsv"
  done
done
for set in $double; do
  for collation in $(collations "$set"); do
    run "SELECT n, HEX(WEIGHT_STRING(CONVERT(c USING $set) COLLATE $collation)) FROM c WHERE $(has "$set") ORDER BY n" > "$out/w_$collation.tsv"
  done
done
run 'DROP DATABASE rauk_charsets'
