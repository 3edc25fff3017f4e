"""Studies on disk: configuration, vault and release, resume."""
