"""One file for each version."""
