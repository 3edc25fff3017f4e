"""Counts, means, quantiles and tables of them, in which everybody weighs as much as their budget allows."""
