"""Data-dependent costs of noisy maxima, computed from votes: sensitive."""
