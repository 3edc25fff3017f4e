"""Models that learn from public records and from what was released about them: students."""
