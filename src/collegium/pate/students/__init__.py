"""Students, the only models that leave the house."""
