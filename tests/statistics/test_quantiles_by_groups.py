"""Who moves from one group to another leaves a quantile and joins another: both are paid for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from collegium import Schema, Statistics
from collegium.statistics.language import parse_question
from collegium.statistics.quantiles import Ranks, scores_of

SCHEMA = Schema(
    {
        "x": {"kind": "whole", "bounds": [0, 9]},
        "group": {"kind": "category", "categories": ["a", "b"]},
    }
)
PEOPLE = pd.DataFrame({"x": [0] * 20 + [9] * 20, "group": ["a"] * 20 + ["b"] * 20})


def log_chances(people: pd.DataFrame, level: float, neighbours: str) -> tuple[np.ndarray, float]:
    """Log-odds of each group's candidates in the draw, (n_groups, n_candidates); and its η."""
    ask = Statistics(
        people,
        4.0,
        schema=SCHEMA,
        noise="laplace",
        neighbours=neighbours,
        noise_seed=1,
        questions=1,
    )
    asked = parse_question(f"quantile({level}) x by group", SCHEMA)
    _, share, question = ask._how(asked, {})
    features = ask._features(asked)
    priced, events = ask._priced(question, share, features)
    (ranks,) = Ranks.of(ask._table, features, SCHEMA["x"], [priced.weighing])
    scores, unit = scores_of(ranks.sensitive_steps, level, priced.step)
    return scores * unit, float(events[0].pure_epsilon[0])


@pytest.mark.parametrize("level", [0.5, 0.75, 0.9, 0.25])
def test_nobody_who_changes_the_group_pays_less_than_is_lost(level: float) -> None:
    before, eta = log_chances(PEOPLE, level, "replace-one")
    lost = []
    for person in (0, 39):
        for value, group in ((0, "a"), (0, "b"), (9, "a"), (9, "b")):
            changed = PEOPLE.copy()
            changed.loc[person, ["x", "group"]] = [value, group]
            after, _ = log_chances(changed, level, "replace-one")
            # What all groups' draws together tell: the ranges of independent draws add up.
            lost.append(float(np.ptp(after - before, axis=1).sum()))
    assert max(lost) <= eta
    assert max(lost) > 0.7 * eta
