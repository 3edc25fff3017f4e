"""In what several releases are limited together, and so in what they are added up."""

from __future__ import annotations

from enum import StrEnum


class Promise(StrEnum):
    """In what a limit over everything that is released is kept.

    A ledger promises one number for all its life: what is right at most 56 times in 100 under one of them may
    be right 74 times under another, so that no release, and nobody by what came out, may choose between them.
    """

    #: (ε, δ), kept in μ or in Σε of pure mechanisms, whichever is enough: of one release by itself.
    EITHER = "either"
    #: μ of Gaussian DP (beside a small δ₀): pure mechanisms are charged by their μ.
    GAUSSIAN = "gaussian"
    #: Σε of pure DP, without any δ: what is not pure does not fit.
    PURE = "pure"


#: Why a release is refused that has no pure ε.
ONLY_PURE = (
    "the ledger promises pure ε (`collegium ledger init --promise pure`), and Gaussian noise has none: use "
    "Laplace noise, or another ledger"
)
