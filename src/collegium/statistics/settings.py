"""Settings of a session of questions: of the Python face, and of a study's file."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.parameters import Settings, setting
from collegium.statistics.weights import RULES

NOISES = ("auto", "gaussian", "laplace")
NEIGHBOURS = ("zero-out", "replace-one")


@dataclass(frozen=True)
class QuerySettings(Settings):
    """Questions about the table, answered with noise (method statistics)."""

    spend: float = setting(
        1.0,
        "Share of what people have left that all answers may use altogether: of μ² (Gaussian noise) or of ε "
        "(Laplace noise); without a ledger, of their budgets.",
        above=0,
        most=1,
    )
    noise: str = setting(
        "auto",
        "auto: Laplace noise where so few questions are asked that it is smaller, otherwise Gaussian noise.",
        choices=NOISES,
    )
    weights: str = setting(
        "saturating",
        "How budgets become weights. saturating: as the least error wants it; proportional; uniform: "
        "everybody as the strictest budget allows.",
        choices=RULES,
    )
    neighbours: str | None = setting(
        None,
        "What is hidden. zero-out: whether all rows of a person are there or blank. replace-one: also which "
        "they are of all that could be, which costs up to twice as much. Left out: what the ledger promises, "
        "else zero-out.",
        kind="text",
        choices=NEIGHBOURS,
        example='"zero-out"',
    )
    confidence: float = setting(0.95, "Of the intervals.", above=0, below=1)
    noise_seed: int | None = setting(
        None,
        "For experiments: noise from a seed. The answers are then NOT PRIVATE, and say so.",
        kind="whole number",
        least=0,
        most=2**32 - 1,
        example="0",
    )
