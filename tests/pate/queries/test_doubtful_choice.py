"""Doubtful choice: a function of public records and released outcomes, wherever blocks begin."""

import numpy as np
import pytest

import collegium as cg
from collegium import GNMax, VoteTable
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise
from collegium.pate.queries.doubtful_choice import DoubtfulChooser, most_doubtful
from collegium.pate.queries.selection import DOUBTFUL
from collegium.pate.voting.labelling import LabellingJob
from collegium.pate.voting.pricing import WorstCasePricing

N, K, ASKED = 300, 40, 120
RANDOM = np.random.default_rng(0)
POINTS = np.column_stack([RANDOM.uniform(-3, 3, N), RANDOM.normal(size=N)])
ORDER = RANDOM.permutation(N)
CLEAR = POINTS[:, :1] + RANDOM.normal(0, 0.3, (N, K))  # two classes, divided by the first column
VOTES = VoteTable.from_predictions((CLEAR > 0).astype(np.intp), 2)
MECHANISM = GNMax(sigma=3)


class PerQueryNoise(SeededNoise):
    """Noise that depends on the query alone, so that every job draws the same."""

    def noised(self, total, noise, *, query, purpose):
        drawn = noise.scale * np.random.default_rng([query, len(purpose)]).standard_normal(
            total.shape
        )
        return total + np.rint(drawn).astype(np.int64)


def run(house, tell=lambda line: None, points=POINTS, votes=VOTES, **options):
    electorate = house.unlimited(K)
    choose = DoubtfulChooser(
        points, ORDER, ASKED, electorate, MECHANISM, 2, release="histogram", tell=tell
    )
    pricing = WorstCasePricing(MECHANISM, electorate)
    return LabellingJob(
        votes,
        electorate,
        MECHANISM,
        pricing,
        PerQueryNoise(0),
        choose,
        max_queries=ASKED,
        release="histogram",
        **options,
    ).run()


def test_half_follow_the_order_and_half_lie_between_the_classes(house):
    rows = [outcome.query for outcome in run(house).outcomes]
    assert rows[:60] == ORDER[:60].tolist()
    assert len(set(rows)) == ASKED
    distance = np.abs(POINTS[:, 0])
    others = np.setdiff1d(np.arange(N), rows)
    assert np.median(distance[rows[60:]]) < 0.6 * np.median(distance[rows[:60]])
    assert distance[rows[60:]].max() < np.median(distance[others])


@pytest.mark.parametrize("block", [1, 7, 300])
def test_the_choice_does_not_depend_on_where_blocks_begin(house, block):
    assert run(house, block=block).outcomes == run(house).outcomes


def test_the_choice_reads_nothing_but_public_records_and_outcomes(house):
    """Other votes whose released counts are the same lead to the same questions."""
    first = run(house)
    electorate = house.unlimited(K)
    again = DoubtfulChooser(POINTS, ORDER, ASKED, electorate, MECHANISM, 2, release="histogram")
    rows = []
    for place in range(ASKED):
        rows += again.next(1, tuple(first.outcomes[:place]))
    assert rows == [outcome.query for outcome in first.outcomes]


def test_where_nothing_can_be_learnt_the_order_goes_on(house):
    one = VoteTable.from_predictions(np.zeros((N, K), dtype=np.intp), 2)
    rows = [outcome.query for outcome in run(house, votes=one).outcomes]
    assert rows == ORDER[:ASKED].tolist()


def test_records_between_two_classes_come_first_whichever_they_are():
    points = np.linspace(-1, 1, 51).reshape(-1, 1)
    targets = np.where(points > 0.4, [[0.95, 0.05]], [[0.05, 0.95]])
    order = np.random.default_rng(1).permutation(51)
    ranking = most_doubtful(points, order, np.arange(51), targets)
    assert sorted(ranking.tolist()) == list(range(51))
    assert abs(points[ranking[:5], 0].mean() - 0.4) < 0.2


def given(**changed):
    return {
        "aggregator": GNMax(answers=40),
        "queries": cg.Queries(DOUBTFUL, release="histogram"),
    } | (changed)


def fitted(**changed):
    X = np.random.default_rng(2).normal(size=(3_000, 3))
    y = (X[:, 0] > 0).astype(int)
    model = cg.PATEClassifier(
        n_teachers=100, classes=[0, 1], random_state=0, noise_seed=0, **given(**changed)
    )
    return model.fit(X[:2_500], y[:2_500], budgets=8.0, X_public=X[2_500:]), X[2_500:]


def test_a_classifier_asks_half_of_its_answers_where_it_doubts():
    model, public = fitted()
    rows = np.asarray(model.labelled_indices_)
    assert len(rows) == 40
    near = np.abs(public[:, 0])
    assert near[rows[20:]].mean() < 0.5 * near[rows[:20]].mean()


def test_votes_with_a_price_of_their_own_cannot_be_chosen():
    with pytest.raises(InputError, match="cannot be chosen actively under a data-dependent"):
        fitted(
            aggregator=GNMax(sigma=5),
            queries=cg.Queries(DOUBTFUL),
            account=cg.Account("data-dependent"),
        )
