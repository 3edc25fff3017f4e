#!/bin/sh
# The ledger's role and database, made when PostgreSQL starts for the first time: the role can do nothing else.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\set password `cat "$LEDGER_PASSWORD_FILE"`
CREATE ROLE collegium LOGIN PASSWORD :'password';
CREATE DATABASE collegium OWNER collegium;
REVOKE ALL ON DATABASE collegium FROM PUBLIC;
SQL
