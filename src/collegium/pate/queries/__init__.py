"""Which public records teachers are asked about, and in which order."""
