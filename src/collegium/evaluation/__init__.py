"""What a model is worth, and what individual budgets do to classes and groups."""
