"""Smooth sensitivity: a data-dependent cost that may be published, at a cost of its own."""
