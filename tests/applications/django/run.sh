#!/usr/bin/env bash
# Django: the site's migrations, commands and tests, with its own database interface (mysqlclient).
set -euo pipefail
cd "$(dirname "$0")"
venv=$APPLICATION_CACHE/django
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
export PYTHONDONTWRITEBYTECODE=1
manage() { "$venv/bin/python" manage.py "$@"; }
manage check --database default --fail-level WARNING
manage migrate --verbosity 0
manage createcachetable
manage migrate --verbosity 0 shop 0001
manage migrate --verbosity 0
manage makemigrations --check --dry-run
manage test --noinput --verbosity 1
