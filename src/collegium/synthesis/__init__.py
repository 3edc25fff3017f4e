"""Synthetic tables from noisy marginals, with individual privacy budgets."""
