#!/usr/bin/env bash
# SQLAlchemy and Alembic: the library, with two drivers.
set -euo pipefail
cd "$(dirname "$0")"
venv=$APPLICATION_CACHE/sqlalchemy
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
export PYTHONDONTWRITEBYTECODE=1
for driver in mysql+pymysql mysql+mysqldb; do
  APPLICATION_DRIVER=$driver "$venv/bin/python" library.py
done
