#!/usr/bin/env bash
# Installs what building and testing Rauk needs on Debian or Ubuntu and is not there yet.
# usage: scripts/setup.sh build|test|long
set -euo pipefail

packages=(build-essential pkg-config cmake ca-certificates curl)
kind=${1:-build}
if [ "$kind" != build ]; then
  packages+=(mariadb-server mariadb-client mydumper sysbench iproute2 redis-server redis-tools memcached python3 python3-venv)
  command -v java >/dev/null || packages+=(default-jdk-headless)
  command -v mvn >/dev/null || packages+=(maven)
  command -v go >/dev/null || packages+=(golang-go)
fi
if [ "$kind" = long ]; then
  # What the applications of tests/applications are built with, and WordPress itself.
  packages+=(pkg-config libmariadb-dev python3-dev wordpress wordpress-theme-twentytwentythree php-cli php-mysql php-gd php-xml)
  command -v npm >/dev/null || packages+=(nodejs npm)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  echo "installing: ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  # The packages' servers are not wanted as services of this machine, only their programs.
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

command -v cargo >/dev/null || { echo "Rust is missing: install it with rustup, then run this again" >&2; exit 1; }
if [ "$kind" != build ]; then
  rustup component list --installed 2>/dev/null | grep -q clippy || rustup component add clippy rustfmt
fi
