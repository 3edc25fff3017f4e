"""Ensembles of teachers, one per shard of private records."""
