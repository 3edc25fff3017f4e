"""One target, learnt from every table: scores on held-out records, and what learning nothing would give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from collegium.checks import listed, shown
from collegium.data.cells import Cells
from collegium.data.schema_column import CATEGORY, FLAG
from collegium.errors import InputError
from collegium.evaluation.synthetic_groups import Truth
from collegium.evaluation.synthetic_learning import (
    LOGISTIC,
    MODELS,
    Answers,
    Estimate,
    Task,
    accuracy,
    area,
    difference,
    explained,
    loss_saved,
    majority,
    share_estimate,
)
from collegium.evaluation.synthetic_quality import AREA, EXPLAINED, NOTHING, PUBLIC, Learnt
from collegium.evaluation.synthetic_tables import IN_WORDS

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

_SHUFFLES, _SHUFFLED_ROWS = 20, 2_000
_T_975 = float(stdtrit(_SHUFFLES, 0.975))


class TargetScores:
    """One target, learnt from each of the tables."""

    def __init__(
        self,
        cells: Cells,
        target: str,
        positive: Any,
        held: Mapping[str, NDArray[Any]],
        held_codes: Codes,
        seed: int,
    ) -> None:
        place = cells.names.index(target)
        column = cells.columns[place]
        self.keys = column.column.keys if column.column.kind in (CATEGORY, FLAG) else ()
        self.measure = AREA if self.keys else EXPLAINED
        self.task = Task(cells, place, len(self.keys), seed)
        self.name, self.held_codes = target, held_codes
        values = self._values(held_codes, held)
        known = ~np.isnan(values)
        self.values: Floats = values[known]
        if len(np.unique(self.values)) < 2:
            raise InputError(
                f"the held-out records have {len(np.unique(self.values))} different values of target "
                f"{target!r}, and at least two are needed to test a model: give others"
            )
        chosen = self._positive(positive)
        self.truth = Truth(known, self.values, len(self.keys), chosen)
        self.positive = None if chosen is None else str(self.keys[chosen])
        self.notes = []
        if not known.all():
            self.notes.append(
                f"{int((~known).sum()):,} held-out records without a value of {target} tested nothing."
            )

    def answers(self, codes: Codes, arrays: Mapping[str, NDArray[Any]], name: str) -> list[Answers]:
        """Train both models on a table."""
        values = self._values(codes, arrays)
        known = ~np.isnan(values)
        if not known.any():
            raise InputError(
                f"{IN_WORDS[name]} has no value of target {self.name!r} that the schema knows: write it as "
                "the schema does"
            )
        if len(np.unique(values[known])) == 1:
            written = self.keys[int(values[known][0])] if self.keys else f"{values[known][0]:g}"
            self.notes.append(
                f"{IN_WORDS[name].capitalize()} has one value of {self.name} only ({shown(written)}): "
                "nothing can be learnt from it."
            )
        asked = self.held_codes[self.truth.known]
        return [self.task.answers(model, codes[known], values[known], asked) for model in MODELS]

    def scores(self, answers: Mapping[str, Sequence[Answers]]) -> dict[str, tuple[Learnt, ...]]:
        """Score all tables, each beside the public rows."""
        found = {
            name: [self._score(one.beliefs) for one in answered]
            for name, answered in answers.items()
        }
        beside = found.get(PUBLIC)
        return {
            name: tuple(
                Learnt(
                    model=model,
                    score=score,
                    accuracy=accuracy(self._labels, answers[name][number].beliefs)
                    if self.keys
                    else None,
                    loss_saved=loss_saved(self._labels, answers[name][number].beliefs)
                    if self.keys
                    else None,
                    beyond_public=None
                    if beside is None or name == PUBLIC
                    else difference(
                        influence,
                        beside[number][1],
                        score.value - beside[number][0].value,
                        self._labels if self.keys else np.zeros(len(self.values), dtype=np.int64),
                    ),
                )
                for number, (model, (score, influence)) in enumerate(
                    zip(MODELS, scored, strict=True)
                )
            )
            for name, scored in found.items()
        }

    def chance(self, codes: Codes, arrays: Mapping[str, NDArray[Any]]) -> float:
        """Score that a model which learnt nothing stays below, but once in 40 times.

        Logistic regression learns from rows of the synthetic table whose targets were shuffled. How many
        rows does not matter: it finds a random direction, and where columns go together many a direction
        looks good. Trees vary less.
        """
        values = self._values(codes, arrays)
        rows = np.flatnonzero(~np.isnan(values))
        asked = self.held_codes[self.truth.known]
        rng = np.random.default_rng(self.task.seed)
        found = []
        for _ in range(_SHUFFLES):
            chosen = rng.permutation(rows)[:_SHUFFLED_ROWS]
            dealt = rng.permutation(values[chosen])
            said = self.task.answers(LOGISTIC, codes[chosen], dealt, asked)
            found.append(self._score(said.beliefs)[0].value)
        nothing = NOTHING[self.measure]
        apart = np.array(found) - nothing
        if not self.keys:  # its mean is below 0
            return nothing + max(0.0, float(apart.mean() + _T_975 * apart.std(ddof=1)))
        return nothing + _T_975 * math.sqrt(float((apart**2).mean()))

    def constant(self) -> tuple[Learnt, ...]:
        """What always giving the held-out records' most frequent answer, or their mean, is worth."""
        nothing = NOTHING[self.measure]
        right = None
        if self.keys:
            most = majority(self._labels, len(self.keys))
            right = share_estimate(int((self._labels == most).sum()), len(self._labels))
        return tuple(Learnt(model, Estimate(nothing, nothing, nothing), right) for model in MODELS)

    @property
    def _labels(self) -> Codes:
        return self.values.astype(np.int64)

    def _score(self, beliefs: Floats) -> tuple[Estimate, Floats]:
        found = area(self._labels, beliefs) if self.keys else explained(self.values, beliefs[:, 0])
        assert found is not None  # at least two values occur
        return found

    def _values(self, codes: Codes, arrays: Mapping[str, NDArray[Any]]) -> Floats:
        """Class numbers, or numbers; NaN where one is missing."""
        if not self.keys:
            return np.asarray(arrays[self.name], dtype=np.float64)
        found = codes[:, self.task.target]
        return np.where(found < len(self.keys), found, np.nan)

    def _positive(self, given: Any) -> int | None:
        if len(self.keys) != 2:
            if given is not None:
                raise InputError(
                    f"positive is for targets of two classes, and {self.name!r} has "
                    f"{len(self.keys) or 'numbers'}: leave it out"
                )
            return None
        if given is None:
            return 1 - majority(self._labels, 2)
        column = self.task.cells.columns[self.task.target].column
        place = column.place_of(given)
        if place < 0:
            raise InputError(
                f"positive must be a class of {self.name!r} ({listed(self.keys)}), got {shown(given)}"
            )
        return place
