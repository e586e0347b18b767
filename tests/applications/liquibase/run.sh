#!/usr/bin/env bash
# Liquibase with Connector/J.
set -euo pipefail
cd "$(dirname "$0")"
jars=$APPLICATION_CACHE/liquibase
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory="$jars"
java -cp "$jars/*" Changes.java 2>"$APPLICATION_WORK/log" || { tail -40 "$APPLICATION_WORK/log"; exit 1; }
