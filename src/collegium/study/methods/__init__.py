"""The ways in which a study learns from people's records."""
