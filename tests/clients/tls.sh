#!/usr/bin/env bash
# REQUIRE SSL, X509, ISSUER, SUBJECT and CIPHER, and require_secure_transport: every rule against every kind of connection, by the mariadb
# client and certificates that openssl makes, on a server that this script starts on free ports and ends by its pid.
# usage: tests/clients/tls.sh path/to/rauk
set -euo pipefail
rauk=$(realpath "$1")
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

quiet() { "$@" >openssl.log 2>&1 || { cat openssl.log; return 1; }; }
authority() { # NAME SUBJECT
  quiet openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.pem" -days 2 -subj "$2"
}
certificate() { # NAME SUBJECT AUTHORITY
  quiet openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2"
  printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth,serverAuth\n' >extensions
  quiet openssl x509 -req -in "$1.csr" -CA "$3.pem" -CAkey "$3.key" -CAcreateserial -days 2 -out "$1.pem" -extfile extensions
}
authority ours '/C=SE/O=Shop/CN=Shop authority'
authority theirs '/C=SE/O=Other/CN=Other authority'
certificate ann '/C=SE/O=Shop/CN=ann' ours
certificate bob '/C=SE/O=Shop/CN=bob' ours
certificate eve '/C=SE/O=Shop/CN=ann' theirs

"$rauk" start --data-dir data --tls-ca ours.pem --mysql-port 0 --http-port 0 --native-port 0 --socket "$work/s.sock" --memory-limit 256MiB --log-level warn >out 2>err &
server=$!
for _ in $(seq 1 200); do
  grep -q '^rauk is ready' out && break
  kill -0 "$server" 2>/dev/null || { cat err; exit 1; }
  sleep 0.1
done
port=$(sed -n 's/^rauk is ready: mysql on [^,]*:\([0-9]*\),.*/\1/p' out)
root() { mariadb -S "$work/s.sock" -u root --skip-ssl -N "$@"; }

# Connections of each kind, as a user that is named behind.
tcp() { mariadb -h 127.0.0.1 -P "$port" -psecret -N -e 'SELECT CURRENT_USER()' "$@"; }
tls() { tcp --ssl --skip-ssl-verify-server-cert "$@"; }
plain() { tcp --skip-ssl "$@"; }
socket() { mariadb -S "$work/s.sock" --skip-ssl -psecret -N -e 'SELECT CURRENT_USER()' "$@"; }
with_ann() { tls --ssl-cert=ann.pem --ssl-key=ann.key "$@"; }
with_bob() { tls --ssl-cert=bob.pem --ssl-key=bob.key "$@"; }
# Signed by somebody whom the server does not trust: refused before any account is asked for.
with_eve() { tls --ssl-cert=eve.pem --ssl-key=eve.key "$@"; }
kinds=(plain socket tls with_ann with_bob)

cipher=$(mariadb -h 127.0.0.1 -P "$port" -u root --ssl --skip-ssl-verify-server-cert -N -e "SHOW STATUS LIKE 'Ssl_cipher'" | cut -f2)
[ -n "$cipher" ]
subject=/C=SE/O=Shop/CN=ann
issuer='/C=SE/O=Shop/CN=Shop authority'

# RULE ALLOWED…: who of the kinds may come in; all others are error 1045.
checks=0
expect() {
  local user=$1 rule=$2 allowed=" $3 "
  for kind in "${kinds[@]}"; do
    if $kind -u "$user" >answer 2>&1; then came=yes; else came=no; fi
    case $allowed in *" $kind "*) wanted=yes ;; *) wanted=no ;; esac
    if [ $came != $wanted ] || { [ $came = no ] && ! grep -q '^ERROR 1045 (28000)' answer; }; then
      echo "$rule: $kind is let in: $came, wanted: $wanted"
      cat answer
      exit 1
    fi
    checks=$((checks + 1))
  done
}
rule() { # NAME RULE ALLOWED
  root -e "CREATE USER '$1'@'%' IDENTIFIED BY 'secret' REQUIRE $2"
  expect "$1" "$2" "$3"
  # A second login, by what the server has kept of the first.
  expect "$1" "$2" "$3"
}
echo "-- each rule against each kind of connection"
rule none NONE 'plain socket tls with_ann with_bob'
rule ssl SSL 'tls with_ann with_bob'
rule x509 X509 'with_ann with_bob'
rule subject "SUBJECT '$subject'" with_ann
rule issuer "ISSUER '$issuer'" 'with_ann with_bob'
rule both "SUBJECT '$subject' AND ISSUER '$issuer'" with_ann
rule cipher "CIPHER '$cipher'" 'tls with_ann with_bob'
rule every "SUBJECT '$subject' AND ISSUER '$issuer' AND CIPHER '$cipher'" with_ann
rule other_issuer "ISSUER '/C=SE/O=Other/CN=Other authority'" ''
rule other_cipher "CIPHER 'NO-SUCH-CIPHER'" ''
rule other_subject "SUBJECT '/C=SE/O=Shop/CN=Ann'" ''

echo "-- a certificate that nobody trusts"
if with_eve -u none >answer 2>&1; then echo "it is let in"; exit 1; fi
grep -q '^ERROR 2026\|^ERROR 2013' answer || { cat answer; exit 1; }

echo "-- a rule that changes counts for the next login"
root -e "ALTER USER none REQUIRE X509"
expect none X509 'with_ann with_bob'
root -e "ALTER USER none REQUIRE NONE"
expect none NONE 'plain socket tls with_ann with_bob'
[ "$(root -e "SELECT ssl_type, x509_subject FROM mysql.user WHERE user = 'subject'")" = "SPECIFIED	$subject" ]
root -e 'SHOW CREATE USER every' | grep -qF "REQUIRE SUBJECT '$subject' ISSUER '$issuer' CIPHER '$cipher'"

echo "-- require_secure_transport"
root -e 'SET GLOBAL require_secure_transport = ON'
if plain -u none >answer 2>&1; then echo "plain text is let in"; exit 1; fi
grep -q '^ERROR 3159' answer || { cat answer; exit 1; }
for kind in socket tls; do $kind -u none >/dev/null; done
root -e 'SET GLOBAL require_secure_transport = OFF'
plain -u none >/dev/null

kill -TERM "$server"
wait "$server"
server=
if grep -E 'ERROR|panicked' err; then exit 1; fi
echo "TLS rules hold: $checks logins"
