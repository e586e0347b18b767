#!/usr/bin/env bash
# The packages that scripts/package.sh makes of a binary: contents, completions, man pages, the unit; then the Debian package in a fresh minimal
# Debian: installed, served from, upgraded under a running server, removed, purged; the same again under the systemd of that Debian.
# About four minutes; the first time two more, for the Debian.
# usage: tests/packages/run.sh PATH_TO_RAUK
# Needs root and debootstrap for the second half; without them it says what it has not shown, and ends with code 1. The Debian is kept in
# ~/.cache/rauk-packages (PACKAGES_CACHE). No file of this machine changes; processes that it starts are ended by their pid.
set -euo pipefail
[ $# = 1 ] && [ -x "$1" ] || { echo "usage: tests/packages/run.sh PATH_TO_RAUK" >&2; exit 2; }
rauk=$(realpath "$1")
if [ "$(id -u)" = 0 ] && [ -z "${PACKAGES_NAMESPACE:-}" ]; then
  # Mounts of a namespace of its own: they end with it.
  PACKAGES_NAMESPACE=1 exec timeout 900 unshare --mount --propagation private "$0" "$rauk"
fi
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
root=$work/root
server=
booted=
cgroup=
finish() {
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
  if [ -n "$booted" ]; then
    kill -9 "$booted" 2>/dev/null || true
    wait "$booted" 2>/dev/null || true
  fi
  # Processes of a killed namespace leave their cgroups a moment later.
  for _ in $(seq 1 50); do
    [ -n "$cgroup" ] && [ -d "$cgroup" ] || break
    find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
  done
  ! mountpoint -q "$root/proc" || umount "$root/proc"
  rm -rf --one-file-system "$work"
}
trap finish EXIT
# One time for all packages, whatever is committed meanwhile.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
# The environment may configure no server of this test.
for name in $(compgen -e RAUK_ || true); do unset "$name"; done
fail() { echo "FAILED: $*" >&2; exit 1; }
same() { [ "$1" = "$2" ] || fail "$3: expected '$2', got '$1'"; }

echo "-- two packages of one binary are the same; the sums agree"
scripts/package.sh --binary "$rauk" --out "$work/one" --version 1.0+one >"$work/said"
cat "$work/said"
scripts/package.sh --binary "$rauk" --out "$work/again" --version 1.0+one >/dev/null
(cd "$work/one" && sha256sum --quiet -c SHA256SUMS)
cmp "$work/one/SHA256SUMS" "$work/again/SHA256SUMS"
rm -rf "$work/again"
deb=$(echo "$work"/one/*.deb)
# A newer version of the same files, without compressing them a third time.
newer=$work/newer.deb
dpkg-deb --raw-extract "$deb" "$work/newer"
sed -i 's/^Version: .*/Version: 1.0+two/' "$work/newer/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/newer" "$newer" >/dev/null
rm -rf "$work/newer"

echo "-- bad input is one line"
refused() {
  local wanted=$1 lines
  shift
  if lines=$("$@" 2>&1); then fail "$* was taken"; fi
  same "$(wc -l <<<"$lines")" 1 "lines of: $lines"
  [[ $lines == *"$wanted"* ]] || fail "'$lines' does not contain '$wanted'"
}
refused "is not rauk" scripts/package.sh --binary /bin/true --out "$work/none"
refused "is not a program" scripts/package.sh --binary "$work/absent" --out "$work/none"
refused "is no version" scripts/package.sh --binary "$rauk" --out "$work/none" --version "no version"
refused "choose a directory" "$rauk" man /proc/none
[ ! -e "$work/none" ] || fail "a refused call left $work/none"

echo "-- the tarball: files, owners, a stripped program that runs"
tar -C "$work" -xzf "$work"/one/*.tar.gz
unpacked=$(echo "$work"/rauk-1.0+one-*)
for file in bin/rauk share/man/man1/rauk.1.gz share/man/man1/rauk-start.1.gz share/man/man1/rauk-bench-flex.1.gz LICENSE INSTALL.md \
  share/bash-completion/completions/rauk share/zsh/site-functions/_rauk share/fish/vendor_completions.d/rauk.fish etc/rauk.toml etc/rauk.service; do
  [ -s "$unpacked/$file" ] || fail "the tarball has no $file"
done
same "$(tar --numeric-owner -tvzf "$work"/one/*.tar.gz | awk '{ print $2 }' | sort -u)" 0/0 "owners in the tarball"
same "$("$unpacked/bin/rauk" --version)" "$("$rauk" --version)" "version of the packed program"
! readelf -SW "$unpacked/bin/rauk" | grep -q ' \.symtab' || fail "the program is not stripped"

echo "-- completions: syntax, and what bash completes"
bash -n "$unpacked/share/bash-completion/completions/rauk"
for shell in zsh fish; do
  file=$(echo "$unpacked"/share/"$shell"/*/*rauk*)
  if command -v $shell >/dev/null; then $shell -n "$file"; else echo "   $shell is not installed: its syntax is not shown"; fi
done
completed() {
  bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rauk rauk "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; echo "${COMPREPLY[@]}"' \
    _ "$unpacked/share/bash-completion/completions/rauk" "$@"
}
same "$(completed rauk comp)" completions "bash's completion of 'rauk comp'"
same "$(completed rauk start --memory)" --memory-limit "bash's completion of 'rauk start --memory'"
same "$(completed rauk completions fi)" fish "bash's completion of 'rauk completions fi'"

echo "-- man pages are shown without a warning"
pages=0
for page in "$unpacked"/share/man/man1/*.gz; do
  if command -v man >/dev/null; then
    shown=$(MANWIDTH=100 LC_ALL=C.UTF-8 man --warnings -l "$page" 2>"$work/warnings")
    [ ! -s "$work/warnings" ] || fail "$page: $(head -1 "$work/warnings")"
    [[ $shown == *SYNOPSIS* ]] || fail "$page has no synopsis"
  fi
  pages=$((pages + 1))
done
[ $pages -gt 10 ] || fail "only $pages man pages"
command -v man >/dev/null || echo "   man is not installed: pages are not shown"

echo "-- the Debian package: fields, scripts, the unit"
field() { dpkg-deb --field "$deb" "$1"; }
same "$(field Package) $(field Version)" "rauk 1.0+one" "name and version"
[[ $(field Depends) == *libc6* ]] || fail "the package does not depend on libc6"
dpkg-deb --control "$deb" "$work/control"
same "$(cat "$work/control/conffiles")" /etc/rauk/rauk.toml conffiles
for script in postinst prerm postrm; do sh -n "$work/control/$script"; done
dpkg-deb --extract "$deb" "$work/files"
(cd "$work/files" && md5sum --quiet -c "$work/control/md5sums")
if command -v systemd-analyze >/dev/null; then
  # The unit as it is, but for the place of the program and the manual, which are not of this machine.
  sed -e "s|/usr/bin/rauk|$unpacked/bin/rauk|" -e /^Documentation/d "$work/files/lib/systemd/system/rauk.service" >"$work/rauk.service"
  systemd-analyze verify "$work/rauk.service" 2>"$work/warnings" || fail "systemd-analyze verify: $(cat "$work/warnings")"
  [ ! -s "$work/warnings" ] || fail "systemd-analyze verify: $(cat "$work/warnings")"
  # Exposure of at most 2.0 on systemd's scale of 10.
  systemd-analyze security --offline=true --threshold=20 "$work/rauk.service" >"$work/security" || fail "$(tail -1 "$work/security")"
  tail -1 "$work/security"
else
  echo "   systemd-analyze is not installed: the unit is not checked"
fi

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
  fail "not shown: the package in a fresh Debian; that needs root and debootstrap (apt-get install debootstrap)"
fi
. /etc/os-release
case $ID in
  debian) mirror=http://deb.debian.org/debian ;;
  ubuntu) mirror=http://archive.ubuntu.com/ubuntu ;;
  *) fail "not shown: the package in a fresh Debian; this machine is $ID" ;;
esac
cache=${PACKAGES_CACHE:-$HOME/.cache/rauk-packages}/$VERSION_CODENAME-systemd.tar
if [ ! -e "$cache" ]; then
  echo "-- making a minimal $VERSION_CODENAME (about two minutes)"
  debootstrap --variant=minbase --include=adduser,systemd,systemd-sysv,dbus "$VERSION_CODENAME" "$root" "$mirror" >"$work/debootstrap" 2>&1 || fail "debootstrap: $(tail -1 "$work/debootstrap")"
  mkdir -p "$(dirname "$cache")"
  tar --numeric-owner --one-file-system -C "$root" -cf "$cache.$$" .
  mv "$cache.$$" "$cache"
  rm -rf --one-file-system "$root"
fi
mkdir "$root"
tar --numeric-owner -C "$root" -xf "$cache"
mount -t proc proc "$root/proc"
cp "$deb" "$newer" "$root/root/"
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

# Starts the server of the root as the unit does it, but for ports, which are free ones. Sets server and port.
serve() {
  install -d -o "$(inside id -u rauk)" -g "$(inside id -g rauk)" "$root/run/rauk"
  env -i PATH=/usr/sbin:/usr/bin:/bin chroot "$root" setpriv --reuid rauk --regid rauk --init-groups --no-new-privs --bounding-set=-all \
    rauk start --config /etc/rauk/rauk.toml --mysql-port 0 --http-port 0 --native-port 0 --memory-limit 256MiB >"$work/out" 2>"$work/err" </dev/null &
  server=$!
  for _ in $(seq 1 300); do
    ! grep -q '^rauk is ready' "$work/out" || break
    kill -0 "$server" 2>/dev/null || fail "the server ended: $(tail -1 "$work/err")"
    sleep 0.1
  done
  port=$(sed -n 's/^rauk is ready: mysql on [^,]*:\([0-9]*\),.*/\1/p' "$work/out")
  [ -n "$port" ] || fail "the server is not ready after 30 s"
}
stop() {
  kill -TERM "$server"
  wait "$server" || fail "the server ended with $?: $(tail -1 "$work/err")"
  server=
}
ask() { inside rauk sql --port "$port" --format tsv --no-header -e "$1"; }

echo "-- installed in a minimal $VERSION_CODENAME: user, directory, configuration, enabled unit"
inside dpkg -i /root/"$(basename "$deb")" >"$work/dpkg" 2>&1 || fail "dpkg: $(cat "$work/dpkg")"
same "$(inside stat -c '%U:%G %a' /var/lib/rauk)" "rauk:rauk 700" "the data directory"
same "$(inside stat -c '%U:%G %a' /etc/rauk/rauk.toml)" "root:root 644" "the configuration"
[ -L "$root/etc/systemd/system/multi-user.target.wants/rauk.service" ] || fail "the unit is not enabled"
same "$(inside dpkg --verify rauk)" "" "dpkg --verify"

echo "-- serves from there as the user rauk: SELECT 1"
serve
same "$(ask 'SELECT 1')" 1 "SELECT 1"
same "$(inside rauk sql --socket /run/rauk/rauk.sock --format tsv --no-header -e 'SELECT 2')" 2 "SELECT 2 on the socket"
same "$(stat -c %u "/proc/$server")" "$(inside id -u rauk)" "the server's user"
ask 'CREATE DATABASE kept; CREATE TABLE kept.rows_ (id INT PRIMARY KEY, text VARCHAR(20)); INSERT INTO kept.rows_ VALUES (1, "one"), (2, "two")' >/dev/null
echo '#log-level = "debug"' >>"$root/etc/rauk/rauk.toml"

echo "-- upgraded under the running server: it goes on, no second one starts, data and configuration stay"
inside dpkg -i /root/"$(basename "$newer")" >"$work/dpkg" 2>&1 || fail "dpkg: $(cat "$work/dpkg")"
same "$(inside dpkg-query -W -f '${Version}' rauk)" 1.0+two "the version after the upgrade"
grep -q "process $server still runs the version before" "$work/dpkg" || fail "the upgrade does not name the running server: $(cat "$work/dpkg")"
same "$(grep -c '^#log-level = "debug"$' "$root/etc/rauk/rauk.toml")" 1 "the administrator's line of the configuration"
same "$(ask 'SELECT COUNT(*) FROM kept.rows_')" 2 "rows of the running server"
ask 'INSERT INTO kept.rows_ VALUES (3, "three")' >/dev/null
stop
serve
same "$(ask 'SELECT GROUP_CONCAT(text ORDER BY id) FROM kept.rows_')" one,two,three "rows after the restart"

echo "-- a second server on the directory, and a wrong unit in the configuration, are refused with one line"
as_rauk() { inside setpriv --reuid rauk --regid rauk --init-groups rauk start --config /etc/rauk/rauk.toml --mysql-port 0 --http-port 0 --native-port 0 "$@"; }
refused /var/lib/rauk as_rauk --socket /tmp/second.sock --log-level error
stop
cp "$root/etc/rauk/rauk.toml" "$work/rauk.toml"
echo 'memory-limit = "4 gibibytes"' >>"$root/etc/rauk/rauk.toml"
refused "wanted: a size such as 512MiB or 4GiB" as_rauk
cp "$work/rauk.toml" "$root/etc/rauk/rauk.toml"
echo 'memory-limit = 4GiB' >>"$root/etc/rauk/rauk.toml"
refused "write key = \"text\"" as_rauk
cp "$work/rauk.toml" "$root/etc/rauk/rauk.toml"

echo "-- removed: configuration and data stay; installed again: the rows are there; purged: both are gone"
inside dpkg --remove rauk >"$work/dpkg" 2>&1 || fail "dpkg: $(cat "$work/dpkg")"
[ ! -e "$root/usr/bin/rauk" ] && [ -e "$root/etc/rauk/rauk.toml" ] && [ -e "$root/var/lib/rauk/superblock.1" ] || fail "removing left or took the wrong files"
inside dpkg -i /root/"$(basename "$newer")" >"$work/dpkg" 2>&1 || fail "dpkg: $(cat "$work/dpkg")"
serve
same "$(ask 'SELECT COUNT(*) FROM kept.rows_')" 3 "rows after removing and installing"
stop
inside dpkg --purge rauk </dev/null >"$work/dpkg" 2>&1 || fail "dpkg: $(cat "$work/dpkg")"
for left in /etc/rauk /var/lib/rauk /usr/bin/rauk /lib/systemd/system/rauk.service /etc/systemd/system/multi-user.target.wants/rauk.service; do
  [ ! -e "$root$left" ] && [ ! -L "$root$left" ] || fail "purging left $left"
done

# The same under systemd. Its processes have namespaces of their own, so the ports are those of the configuration.
umount "$root/proc"
unified=$(findmnt --noheadings --types cgroup2 --output TARGET | head -1)
cgroup=$unified/rauk-packages-$$
if [ -z "$unified" ] || ! mkdir "$cgroup" 2>/dev/null; then
  cgroup=
  echo "-- not shown: the unit under systemd; that needs a cgroup2 file system that can be written to"
  echo "-- packages: all else shown in $SECONDS s"
  exit
fi
tests/packages/boot.sh "$root" "$cgroup" >"$work/boot" 2>&1 </dev/null &
booted=$!
init=
within() { timeout 60 nsenter --target "$init" --all --root --wd env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
state=
for _ in $(seq 1 150); do
  init=$(pgrep --parent "$booted" | head -1 || true)
  [ -z "$init" ] || state=$(within systemctl is-system-running 2>/dev/null || true)
  case $state in running | degraded) break ;; esac
  kill -0 "$booted" 2>/dev/null || break
  sleep 0.2
done
case $state in
  running | degraded) ;;
  *)
    echo "-- not shown: the unit under systemd, which does not start here: $(tail -1 "$work/boot")"
    echo "-- packages: all else shown in $SECONDS s"
    exit
    ;;
esac
installs() { within dpkg --force-confold -i "/root/$1" >"$work/dpkg" 2>&1 || fail "dpkg: $(cat "$work/dpkg")"; }
main_pid() { within systemctl show --property MainPID --value rauk; }
asked() { within rauk sql --format tsv --no-header -e "$1"; }
one=$(basename "$deb") two=$(basename "$newer")

echo "-- systemd: installed, it serves at once, without capabilities and under a filter of system calls"
installs "$one"
same "$(within systemctl is-active rauk)" active "the unit: $(cat "$work/dpkg")"
same "$(asked 'SELECT 1')" 1 "SELECT 1"
first=$(main_pid)
same "$(within sed -n 's/^\(NoNewPrivs\|Seccomp\|CapBnd\):\t/\1=/p' "/proc/$first/status" | sort | xargs)" \
  "CapBnd=0000000000000000 NoNewPrivs=1 Seccomp=2" "restrictions of the server"
asked 'CREATE DATABASE kept; CREATE TABLE kept.rows_ (id INT PRIMARY KEY); INSERT INTO kept.rows_ VALUES (1), (2)' >/dev/null

echo "-- systemd: an upgrade restarts the server; there is one, with its rows"
installs "$two"
[ "$(main_pid)" != "$first" ] || fail "the upgrade has not restarted the server"
same "$(asked 'SELECT COUNT(*) FROM kept.rows_')" 2 "rows after the upgrade"
same "$(within cat "/proc/$(main_pid)/cgroup" | grep -c rauk.service)" 1 "the server's cgroup"
same "$(wc -l <"$cgroup/system.slice/rauk.service/cgroup.procs")" 1 "servers of the unit"

echo "-- systemd: a wrong unit in the configuration fails the start with one line in the journal; an upgrade says so"
cp "$root/etc/rauk/rauk.toml" "$work/rauk.toml"
echo 'memory-limit = "4 gibibytes"' >>"$root/etc/rauk/rauk.toml"
if within systemctl restart rauk 2>"$work/said"; then fail "a wrong configuration is a start that succeeds"; fi
within journalctl --unit rauk --output cat --no-pager >"$work/journal"
grep -q "^rauk: /etc/rauk/rauk.toml: 'memory-limit': .*wanted: a size" "$work/journal" || fail "the journal does not name the setting: $(tail -3 "$work/journal")"
installs "$one"
grep -q 'rauk: the server does not start; the cause: journalctl' "$work/dpkg" || fail "the upgrade hides that the server does not start: $(cat "$work/dpkg")"
cp "$work/rauk.toml" "$root/etc/rauk/rauk.toml"

echo "-- systemd: started again, killed, back by itself; removed and purged"
within systemctl reset-failed rauk
within systemctl start rauk || fail "the unit does not start: $(within systemctl status rauk | tail -2)"
killed=$(main_pid)
within systemctl kill --signal=KILL rauk
for _ in $(seq 1 100); do
  [ "$(within systemctl is-active rauk || true)" = active ] && [ "$(main_pid)" != "$killed" ] && break
  sleep 0.1
done
same "$(asked 'SELECT COUNT(*) FROM kept.rows_')" 2 "rows after kill -9"
within dpkg --purge rauk >"$work/dpkg" 2>&1 </dev/null || fail "dpkg: $(cat "$work/dpkg")"
same "$(within systemctl is-active rauk || true)" inactive "the unit after the purge"
[ ! -e "$root/var/lib/rauk" ] && [ ! -e "$root/etc/rauk" ] || fail "purging left files"
echo "-- packages: all shown in $SECONDS s"
