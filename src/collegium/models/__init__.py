"""Models and features that know nothing of privacy."""
