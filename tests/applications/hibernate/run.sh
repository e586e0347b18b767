#!/usr/bin/env bash
# Hibernate with Connector/J.
set -euo pipefail
cd "$(dirname "$0")"
jars=$APPLICATION_CACHE/hibernate
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory="$jars"
javac -nowarn -proc:none -d "$APPLICATION_WORK/classes" -cp "$jars/*" library/*.java
java -cp "$APPLICATION_WORK/classes:$jars/*" library.Main
