"""How a ledger's tables came to be, version by version."""
