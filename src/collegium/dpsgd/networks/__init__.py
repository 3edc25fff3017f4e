"""Clipped sums of networks' gradients, owner by owner (extra ``torch``)."""
