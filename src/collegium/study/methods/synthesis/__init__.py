"""Studies that publish a synthetic table."""
