"""Layers whose per-record gradients are written by hand."""
