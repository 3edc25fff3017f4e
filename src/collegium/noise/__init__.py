"""Noise that privacy accounts can trust: exactly rounded, from the system's randomness."""
