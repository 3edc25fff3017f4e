"""Settings of a session of questions: of the Python face, and of a study's file."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.parameters import Settings, same_as, setting
from collegium.weighted_sums.settings import SumsSettings

NOISES = ("auto", "gaussian", "laplace")


@dataclass(frozen=True)
class QuerySettings(Settings):
    """Questions about the table, answered with noise (method statistics)."""

    spend: float = setting(
        1.0,
        "Share of people's remaining budgets (without a ledger, of their whole budgets) that all "
        "answers together may use: of μ² with Gaussian noise, of ε with Laplace noise.",
        above=0,
        most=1,
    )
    noise: str = setting(
        "auto",
        "auto takes Laplace noise where so few questions are asked that it is smaller, and Gaussian "
        "noise otherwise.",
        choices=NOISES,
    )
    weights: str = same_as(SumsSettings, "weights")
    neighbours: str | None = same_as(SumsSettings, "neighbours")
    confidence: float = setting(0.95, "Confidence of the intervals.", above=0, below=1)
    noise_seed: int | None = setting(
        None,
        "Noise from a seed, for experiments. The answers are then NOT PRIVATE, and marked so.",
        kind="whole number",
        least=0,
        most=2**32 - 1,
        example="0",
    )
