"""Private and public records: tables, data sets, shards on disk."""
