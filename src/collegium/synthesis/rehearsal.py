"""What a synthetic table will be worth, tried beforehand on public records: it costs nobody anything.

Half of the public records stand for the private table: as many rows are drawn from them, with replacement,
as it has, or fewer with as much less noise. The very draws are made of these, and the rows that come of it
are judged by the other half, beside the first half itself: public rows alone. A private table says more
than so few records repeated, so that what is found is rather too low.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budgets
from collegium.data.cells import Cells
from collegium.data.schema_arrays import n_rows
from collegium.errors import InputError
from collegium.evaluation.synthetic import evaluate_synthetic
from collegium.evaluation.synthetic_quality import PUBLIC, SyntheticQuality
from collegium.noise.sources import SeededNoise
from collegium.noise.sums import Integers, Noise
from collegium.synthesis.run import Synthesis
from collegium.weighted_sums.tables import InMemory

LEAST_PUBLIC = 400
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Prediction:
    """What to expect.

    ``measure``: "AUC", "R²", or empty without a target. ``scores``: of each model; ``public_alone``: the
    same, of public rows alone. ``pairs``: mean total variation of pairs of columns; ``pairs_public``: of
    public rows alone;
    ``pairs_least``: what sampling alone explains. ``judged_by``: public records.
    """

    measure: str
    scores: Mapping[str, float]
    public_alone: Mapping[str, float]
    pairs: float
    pairs_public: float
    pairs_least: float | None
    judged_by: int

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        """Read it again."""
        return cls(**kept)


def predicted(run: Synthesis, public: Any, seed: int) -> Prediction | None:
    """Rehearse. ``public``: table of public records; ``seed``: of the split and of everything drawn.

    Returns: None where there are too few records, or those that judge have one class only.
    """
    n = n_rows(public)
    if n < LEAST_PUBLIC:
        return None
    cells = Cells.with_edges(run.cells.plain_schema, run.cells.edges)
    arrays = run.cells.schema.arrays(public, list(run.cells.names))
    rng = np.random.default_rng([seed, 7])
    order = rng.permutation(n)
    half, rest = order[: n // 2], order[n // 2 :]
    frames = [
        cells.frame({name: one[rows] for name, one in arrays.items()}) for rows in (half, rest)
    ]
    people = min(run.n_rows, _MOST_ROWS)
    drawn_rows = rng.integers(0, len(half), people)
    table = InMemory(frames[0].iloc[drawn_rows], _budgets(run, people, rng), cells.schema)
    target = None if run.target is None else cells.names[run.target]
    trial = Synthesis(table, cells, target, run.settings, run.neighbours)
    trial.stages = run.stages
    noise = _Scaled(seed, people / run.n_rows)
    drawn: dict[int, dict[str, Any]] = {}
    for number in range(1, len(run.stages.drawn) + 1):
        drawn[number] = trial.draw(number, drawn, noise)
    rows = trial.model(drawn).sample(people, rng)
    try:
        found = evaluate_synthetic(
            rows, frames[1], schema=cells.schema, target=target, public=frames[0], seed=seed
        )
    except InputError:  # the half that judges has one class only
        return None
    return _prediction(found)


def _prediction(found: SyntheticQuality) -> Prediction:
    alone = found.table(PUBLIC)
    assert alone is not None
    pairs, its = found.synthetic.distances, alone.distances
    place = min(1, len(pairs) - 1)
    return Prediction(
        found.measure,
        {one.model: one.score.value for one in found.synthetic.learnt},
        {one.model: one.score.value for one in alone.learnt},
        pairs[place].mean,
        its[place].mean,
        pairs[place].sampling_mean,
        found.n_held_out,
    )


def _budgets(run: Synthesis, people: int, rng: np.random.Generator) -> Budgets:
    """Deal the groups' budgets out, in the shares that they have."""
    sizes = run.table.sizes / run.table.sizes.sum() * people
    counts = np.maximum(np.floor(sizes), 1).astype(np.int64)
    counts[np.argmax(counts)] += people - counts.sum()
    codes: NDArray[np.intp] = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return Budgets(dict(run.table.groups), codes)


class _Scaled(SeededNoise):
    """Seeded noise, smaller: where a few rows stand for many."""

    __slots__ = ("_factor",)

    def __init__(self, seed: int, factor: float) -> None:
        super().__init__(seed)
        self._factor = factor

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        """Add noise that is as much smaller."""
        smaller = Noise(noise.kind, noise.scale * self._factor)
        return super().noised(sensitive_sum, smaller, query=query, purpose=purpose)
