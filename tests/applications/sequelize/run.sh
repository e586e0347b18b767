#!/usr/bin/env bash
# Sequelize with mysql2: sync, migrations by Umzug, associations, queries, transactions.
set -euo pipefail
cd "$(dirname "$0")"
folder=$APPLICATION_CACHE/sequelize
mkdir -p "$folder"
cp -r package.json package-lock.json forum.js models.js migrations "$folder/"
cd "$folder"
npm ci --silent --no-audit --no-fund
node forum.js
