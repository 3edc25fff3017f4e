"""Conditions on rows of a public schema, and how they are written."""
