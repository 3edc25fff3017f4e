"""Votes, aggregators, noise, prices and the labelling job."""
