"""PATE: teachers vote on public records, votes are noised, a student learns what was released."""
