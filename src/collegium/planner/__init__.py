"""From budgets and public facts to settings and predictions; no private value is looked at."""
