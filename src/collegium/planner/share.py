"""How much of people's budgets one release needs, so that something is left for the next.

Noise costs a model accuracy until there is little of it, and nothing after that. So a release takes the least
share of μ² at which the model is expected to be as good as with all of it, up to what a rehearsal can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from collegium.checks import check_number
from collegium.ledger.limits import HALF
from collegium.planner.expected import MEASURES, score_in_words
from collegium.planner.facts import Facts
from collegium.planner.rehearsal import DPSGDRehearsal, Rehearsed
from collegium.planner.surrogates import stand_ins

AUTO = "auto"
TENTHS = 10
_NO_LABELS = (
    "half, since no public label is known by which a rehearsal could tell what less would buy"
)
NOT_ALL_CLASSES = (
    "half, since public labels do not show all classes: no rehearsal tells what less buys"
)


@dataclass(frozen=True)
class Share:
    """A share of what people have left (of their μ²), and why it was chosen.

    ``value``: above 0, at most 1.
    ``why``: a reason, in words.
    ``buys``: predicted score for each tenth, where that was rehearsed.
    """

    value: float
    why: str
    buys: Mapping[float, float]

    def __post_init__(self) -> None:
        check_number("share", self.value, above=0, most=1)

    def to_json(self) -> dict[str, Any]:
        """Write it for JSON."""
        return {"value": self.value, "why": self.why, "buys": list(self.buys.items())}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Share:
        """Read what :meth:`to_json` wrote."""
        buys = {float(part): float(score) for part, score in kept["buys"]}
        return cls(float(kept["value"]), str(kept["why"]), buys)

    @classmethod
    def of_answers(cls) -> Share:
        """What votes take."""
        return cls.half("half, since no rehearsal tells what fewer answers would buy")

    @classmethod
    def half(cls, why: str = _NO_LABELS) -> Share:
        """Half of it."""
        return cls(HALF, why, {})


def least_share(score: Callable[[float], Rehearsed], measure: str) -> Share:
    """Find the least number of tenths that is expected to be as good as everything.

    ``score``: rehearses with a share of μ².
    ``measure``: of what its scores are.

    As good is what lies within the standard error of the score with everything: a rehearsal tells no more.
    The last tenth is never taken. At most five shares are rehearsed; what lies between them is interpolated,
    as the score never falls while the share grows.
    """
    tried = {TENTHS: score(1.0)}
    enough = tried[TENTHS].score - tried[TENTHS].error
    low, high = 0, TENTHS - 1  # too little; and what is taken unless less is enough
    while high - low > 1:
        middle = (low + high) // 2
        tried[middle] = score(middle / TENTHS)
        if tried[middle].score >= enough:
            high = middle
        else:
            low = middle
    if high not in tried:
        tried[high] = score(high / TENTHS)
    buys = _between({tenths: one.score for tenths, one in tried.items()})
    value, shown = high / TENTHS, partial(score_in_words, measure=measure)
    if buys[value] >= enough:
        why = (
            f"to spend everything would do no better, as far as a rehearsal can tell: {measure} "
            f"{shown(buys[value])}, with everything {shown(buys[1.0])} (± {shown(tried[TENTHS].error)})"
        )
    else:
        why = (
            f"more helps up to the end ({measure} {shown(buys[value])}, with everything "
            f"{shown(buys[1.0])}), and the last tenth is taken only if privacy.spend says so"
        )
    return Share(value, why, buys)


def rehearsed_share(facts: Facts, preprocessing: Any, with_student: bool) -> Share:
    """The same for direct training that is set: with this preprocessing, and perhaps a student."""
    found = stand_ins(facts)
    if found.synthetic:
        return Share.half()
    rehearsal = DPSGDRehearsal(facts, found, preprocessing, with_student)
    return least_share(
        lambda part: rehearsal.score(facts.with_share(part).signal), MEASURES[facts.goal]
    )


def _between(scores: Mapping[int, float]) -> dict[float, float]:
    known = sorted(scores)
    best = np.maximum.accumulate([scores[tenths] for tenths in known])
    all_tenths = range(known[0], TENTHS + 1)
    found = np.interp(np.log(list(all_tenths)), np.log(known), best)
    return {tenths / TENTHS: float(one) for tenths, one in zip(all_tenths, found, strict=True)}
