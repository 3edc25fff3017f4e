"""How much of people's budgets a release takes: the least that a rehearsal cannot tell from everything."""

import math

import numpy as np
import pytest

from collegium import Budget
from collegium.planner.facts import Facts
from collegium.planner.recommend import recommend_from
from collegium.planner.rehearsal import Rehearsed
from collegium.planner.share import Share, least_share


def scores(curve, error=0.01):
    tried = []

    def score(share):
        tried.append(share)
        return Rehearsed(curve(share), error, 0.0, 100)

    return score, tried


@pytest.mark.parametrize("tenths", range(1, 10))
def test_the_least_share_that_is_as_good_is_found_in_five_rehearsals(tenths):
    score, tried = scores(lambda share: 0.9 if share >= tenths / 10 - 1e-9 else 0.6)
    found = least_share(score, "accuracy")
    assert found.value == tenths / 10
    assert len(tried) <= 6 and len(set(tried)) == len(tried)
    assert found.buys[found.value] == found.buys[1.0] == 0.9
    assert "accuracy 90.0 %, with everything 90.0 % (± 1.0 %)" in found.why


def test_the_last_tenth_is_never_taken():
    found = least_share(scores(lambda share: share)[0], "accuracy")
    assert found.value == 0.9 and "only if privacy.spend says so" in found.why


def test_what_lies_between_rehearsed_shares_never_falls_and_is_what_was_rehearsed_there():
    score, tried = scores(lambda share: 0.5 + 0.4 * math.sqrt(share), error=0.05)
    found = least_share(score, "accuracy")
    bought = list(found.buys.values())
    assert bought == sorted(bought)
    for share in tried:
        if share in found.buys:
            assert found.buys[share] == pytest.approx(0.5 + 0.4 * math.sqrt(share))


def table(n_people, epsilon, known):
    random = np.random.default_rng(3)
    X = random.normal(size=(400, 4))
    codes = (X @ [1.0, 0.5, 0.0, 0.0] + 0.5 * random.normal(size=400) > 0).astype(int)
    return Facts(
        {"all": Budget(epsilon)},
        {"all": n_people},
        np.array(["no", "yes"]),
        X,
        np.where(np.arange(400) < known, codes, -1),
        n_people,
    )


def test_with_much_signal_a_tenth_is_taken_and_half_where_no_label_is_known():
    rich = recommend_from(table(20_000, 1.0, 300), spend="auto")
    assert rich.sections["privacy"] == {"spend": rich.share.value} == {"spend": 0.1}
    assert "privacy.spend" in rich.reasons and rich.to_dict()["share"]["value"] == 0.1
    unknown = recommend_from(table(20_000, 1.0, 0), spend="auto")
    assert unknown.share == Share.half() and unknown.sections["privacy"]["spend"] == 0.5
    assert "no public label" in unknown.share.why


def test_what_is_expected_is_of_what_is_spent_and_consent_speaks_of_what_was_granted():
    facts = table(300, 0.3, 300)
    all_of_it, little = recommend_from(facts), recommend_from(facts, spend=0.1)
    assert all_of_it.share is None and "privacy" not in all_of_it.sections
    assert little.expected.middle < all_of_it.expected.middle
    assert little.consent[0].epsilon == 0.3 and little.consent[0].instead == pytest.approx(0.45)


def test_a_share_is_of_mu_squared():
    facts = table(300, 1.0, 300)
    assert facts.with_share(0.25).signal == pytest.approx(facts.signal / 2, rel=1e-6)
    assert facts.with_share(1.0) is facts
