"""The one pipeline: what the account, the statement and the memory are told about a run."""

import numpy as np
import pytest

from collegium import GNMax, PATEClassifier, Policy, PrivacyWarning, Queries, Vanishing, Weighting
from collegium.accounting import Neighbours
from collegium.accounting.neighbours import Arrangement
from collegium.errors import InputError
from collegium.pate import pipeline
from collegium.pate.classifier import default_model
from collegium.pate.pipeline import PateRun
from collegium.pate.recipe import Recipe
from collegium.runs.records import Records


@pytest.fixture
def released(monkeypatch):
    generator = np.random.default_rng(1)
    X = generator.normal(size=(120, 3))
    budgets = Policy({"all": 50.0}, delta=1e-5).assign(["all"] * 120)
    accounts = []

    def pricing_for(*given):
        accounts.append(real(*given).accountant)
        return real(*given)

    real = pipeline.pricing_for
    monkeypatch.setattr(pipeline, "pricing_for", pricing_for)

    def release(assignment, noise_seed=None):
        recipe = Recipe(
            default_model(),
            default_model(),
            8,
            GNMax(sigma=3.0),
            Weighting(assignment=assignment),
            queries=Queries(max_queries=5, release="histogram"),
            noise_seed=noise_seed,
        )
        records = Records(X, (X[:, 0] > 0).astype(np.intp), budgets, np.arange(2), X[:30])
        run = PateRun(recipe, records)
        return run.release(run.votes()), run.arrangement, accounts[-1]

    return release


@pytest.mark.parametrize(
    ("assignment", "neighbours"),
    [("hash", Neighbours.ANY_CHANGE), ("balanced", Neighbours.REPLACE)],
)
def test_account_statement_and_run_are_about_the_same_neighbours(released, assignment, neighbours):
    result, arrangement, account = released(assignment)
    assert account.neighbours is arrangement.neighbours is neighbours
    done = Arrangement(assignment=assignment)
    assert result.privacy.adjacency == arrangement.sentence == done.sentence


def test_a_large_delta_is_warned_of_where_the_user_called():
    X = np.random.default_rng(1).normal(size=(60, 3))
    model = PATEClassifier(n_teachers=2, classes=[0, 1], aggregator=GNMax(sigma=0.1))
    budgets = Policy({"all": 5.0}, delta=0.5).assign(["all"] * 20)
    with (
        pytest.warns(PrivacyWarning, match="δ is large for group all") as caught,
        pytest.raises(InputError, match="cannot afford"),
    ):
        model.fit(X[:20], np.arange(20) % 2, budgets=budgets, X_public=X[20:])
    assert {one.filename for one in caught if "δ is large" in str(one.message)} == {__file__}


@pytest.mark.parametrize("seed", [None, 7])
def test_a_statement_says_whether_the_noise_is_private(released, seed):
    assert released("hash", seed)[0].privacy.noise_is_private is (seed is None)


def test_noise_is_fresh_in_every_run_although_all_else_has_one_seed(released):
    """The same ten draws twice would be a miracle, or a seed."""
    one, other = (released("hash")[0].histograms for _ in range(2))
    np.testing.assert_array_equal(one.queries, other.queries)
    assert (one.counts != other.counts).any()
    seeded, again = (released("hash", 7)[0].histograms for _ in range(2))
    np.testing.assert_array_equal(seeded.counts, again.counts)


def test_who_takes_part_does_not_follow_from_private_records():
    """The same plan and seed; other people's features and labels."""
    budgets = Policy({"high": 1.0, "low": 9.0}).assign(["high", "low"] * 40)
    recipe = Recipe(default_model(), default_model(), 8, GNMax(sigma=30.0), Vanishing(), seed=4)
    present = []
    for label in (0, 1):
        X, codes = np.full((80, 3), float(label)), np.full(80, label, dtype=np.intp)
        run = PateRun(recipe, Records(X, codes, budgets, np.arange(2), np.eye(3)))
        present.append([run.electorate.ballot(position).weights for position in range(20)])
    np.testing.assert_array_equal(*present)
