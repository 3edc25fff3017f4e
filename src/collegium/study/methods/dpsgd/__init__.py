"""Studies of direct training: a model learns from private records in noisy steps."""
