#!/usr/bin/env bash
# Runs the driver programs (Python, Go, Java) against the server that RAUK_HOST, RAUK_PORT, RAUK_USER and RAUK_PASSWORD name.
# Their libraries are fetched once into ${RAUK_CLIENTS_CACHE:-~/.cache/rauk-clients}.
set -uo pipefail
cd "$(dirname "$0")"
cache=${RAUK_CLIENTS_CACHE:-$HOME/.cache/rauk-clients}
mkdir -p "$cache"
failed=0

if [ ! -x "$cache/venv/bin/python" ]; then
  python3 -m venv "$cache/venv"
fi
"$cache/venv/bin/pip" install --quiet --disable-pip-version-check -r python/requirements.txt &&
  "$cache/venv/bin/python" python/drivers.py || failed=1

(cd go && go build -o "$cache/go-drivers" .) && "$cache/go-drivers" || failed=1

(cd java && mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory="$cache/java") &&
  java -cp "$cache/java/*" java/Drivers.java || failed=1

exit $failed
