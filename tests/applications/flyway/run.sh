#!/usr/bin/env bash
# Flyway with Connector/J.
set -euo pipefail
cd "$(dirname "$0")"
jars=$APPLICATION_CACHE/flyway
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory="$jars"
java -cp "$jars/*" Migrations.java
