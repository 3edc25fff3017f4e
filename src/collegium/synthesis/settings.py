"""Settings of a synthetic table: of the Python face, and of a study's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collegium.parameters import Settings, same_as, setting
from collegium.weighted_sums.settings import SumsSettings

GOALS = ("auto", "target", "fidelity", "both")


@dataclass(frozen=True)
class SynthesisSettings(Settings):
    """A synthetic table, from noisy counts (method synthesis)."""

    goal: str = setting(
        "auto",
        "What rows are to be good for. target: learning to predict data.target, so that all is spent on how "
        "each column goes with it; fidelity: any question, so that all pairs of columns count alike; both; "
        "auto: both, or target where few people or small budgets leave too little for more, or fidelity "
        "without a target.",
        choices=GOALS,
    )
    structure: Sequence[str] = setting(
        [],
        'Columns that are measured together, such as "age, income"; default: pairs chosen by noisy scores.',
        items=("text",),
    )
    constraints: Sequence[str] = setting(
        [],
        'What is known to hold for every row, such as "age >= 18 or not married" or "admitted <= '
        'discharged". A row with a missing value satisfies it.',
        items=("text",),
    )
    weights: str = same_as(SumsSettings, "weights")
    calibrated: bool = setting(
        False,
        "Whether to measure, too, in what people of each budget differ from all, and to correct for it: "
        "where budgets may go with the data.",
    )
    neighbours: str | None = same_as(SumsSettings, "neighbours")
    noise_seed: int | None = setting(
        None,
        "Noise from a seed, for experiments. The table is then NOT PRIVATE, and marked so.",
        kind="whole number",
        least=0,
        most=2**32 - 1,
        example="0",
    )
