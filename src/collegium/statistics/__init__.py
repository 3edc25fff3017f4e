"""Questions to a private table, with an individual budget for every person in it."""
