#!/bin/sh
# collegium, with the password of the ledger's server from a file: LEDGER_PASSWORD_FILE names it.
# libpq wants a file of its own form that nobody else can read (PGPASSFILE); addresses hold no password.
set -eu
if [ -n "${LEDGER_PASSWORD_FILE:-}" ]; then
    umask 077
    PGPASSFILE=$(mktemp)
    export PGPASSFILE
    printf '*:*:*:*:%s\n' "$(sed 's/[\\:]/\\&/g' "$LEDGER_PASSWORD_FILE")" >"$PGPASSFILE"
fi
exec collegium "$@"
