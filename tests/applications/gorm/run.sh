#!/usr/bin/env bash
# GORM with go-sql-driver.
set -euo pipefail
cd "$(dirname "$0")"
go build -o "$APPLICATION_CACHE/gorm" .
"$APPLICATION_CACHE/gorm"
