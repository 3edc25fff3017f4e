"""What a recommendation says: scores one way, shares that buy the same at once, and consent that helps."""

from types import SimpleNamespace

import pytest

from collegium.planner.recommend import Consent
from collegium.planner.share import Share
from collegium.report.choice import expectations, figures


def recommended(gains=(0.0,), measure="accuracy"):
    return SimpleNamespace(
        answers=None,
        minutes=0.2,
        gigabytes=1.0,
        alternatives={},
        expected=SimpleNamespace(measure=measure, in_words=lambda: "-"),
        share=Share(0.2, "", {0.1: 0.61, 0.2: 0.7, 0.9: 0.70001, 1.0: 0.71}),
        consent=[
            Consent(
                group=f"level {place}", people=9, epsilon=1.0, instead=1.5, signal=1.2, gain=gain
            )
            for place, gain in enumerate(gains)
        ],
    )


@pytest.mark.parametrize(
    ("gains", "says"),
    [
        ((0.0, 0.0001), ["larger budgets of one level would not help"]),
        (
            (0.02, 0.0),
            [
                "If level 0 (9 people) granted ε = 1.5 instead of 1: +20 % signal, worth +2.0 points."
            ],
        ),
        ((None,), ["If level 0 (9 people) granted ε = 1.5 instead of 1: +20 % signal."]),
        ((), []),
    ],
)
def test_of_more_consent_only_what_helps_is_said(gains, says):
    lines = figures(recommended(gains))
    assert lines[0] == "A run takes about 12 seconds and 1.0 GB here."
    assert len(lines) == 1 + len(says) and all(
        one in line for one, line in zip(says, lines[1:], strict=True)
    )


def test_shares_that_buy_the_same_are_said_at_once_and_scores_as_everywhere():
    (_, said) = expectations(recommended())
    assert said.endswith("left: 10 %: 61.0 %; 20 % to 90 %: 70.0 %; 100 %: 71.0 %.")
    (_, said) = expectations(recommended(measure="ROC AUC"))
    assert said.endswith("left: 10 %: 0.610; 20 % to 90 %: 0.700; 100 %: 0.710.")
