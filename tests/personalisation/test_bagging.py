"""Bagging: everybody once in each of several independent partitions, at the price of one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import collegium as cg
from collegium import Bagging, Budget, Budgets, Uniform
from collegium.errors import InputError
from collegium.personalisation import as_personalisation
from collegium.study.config import read_config
from collegium.study.methods.votes.settings import PersonalisationSection

GROUPS = {"strict": Budget(1.0), "generous": Budget(3.0)}
SIZES = {"strict": 4_000, "generous": 2_000}


def people(n: int) -> Budgets:
    return Budgets.from_epsilons(np.where(np.arange(n) % 3, 1.0, 3.0), delta=1e-6)


@pytest.mark.parametrize("assignment", ["hash", "balanced"])
def test_everybody_is_once_in_each_partition_and_partitions_are_independent(assignment):
    budgets = people(6_000)
    plan = Bagging(partitions=3).plan_for(budgets, 20)
    teachers = plan.assign(budgets, b"key", assignment).owner_teachers
    assert plan.n_teachers == 60
    assert (teachers // 20 == [0, 1, 2]).all()
    for one, other in ((0, 1), (0, 2), (1, 2)):
        pairs = (teachers[:, one] % 20) * 20 + teachers[:, other] % 20
        counts = np.bincount(pairs, minlength=400)
        # False alarms: 1e-6 each; partitions that agree (or repeat each other) leave most pairs out.
        assert ((counts - 15.0) ** 2 / 15.0).sum() < chi2.isf(1e-6, 399)


def test_dealt_partitions_are_of_almost_equal_size():
    budgets = people(1_003)
    plan = Bagging(partitions=4).plan_for(budgets, 10)
    sizes = [len(shard) for shard in plan.assign(budgets, b"key", "balanced").shards()]
    assert set(sizes) == {100, 101}


def test_a_label_costs_what_it_costs_under_uniform():
    uniform, bagging = (p.plan(GROUPS, SIZES, 50) for p in (Uniform(), Bagging(partitions=7)))
    one, other = (plan.electorate(0).ballot(0) for plan in (uniform, bagging))
    assert (other.sensitivity == 7).all()
    assert (other.sensitivity / other.scale == one.sensitivity / one.scale).all()
    assert bagging.efficiency == uniform.efficiency
    assert {g: p.utilisation for g, p in bagging.groups.items()} == {
        g: p.utilisation for g, p in uniform.groups.items()
    }


def test_an_estimator_spends_what_uniform_spends_and_answers_as_many():
    X, y = load_digits(return_X_y=True)

    def fitted(personalisation):
        model = cg.PATEClassifier(
            teacher=GaussianNB(),
            n_teachers=15,
            personalisation=personalisation,
            aggregator=cg.GNMax(sigma=6.0),
            queries=cg.Queries(max_labels=12),
            classes=range(10),
            random_state=1,
            noise_seed=1,
        )
        return model.fit(
            X[:600], y[:600], budgets=Budgets.from_epsilons(np.full(600, 9.0)), X_public=X[600:700]
        )

    one, other = fitted("uniform"), fitted(Bagging(partitions=2))
    assert other.plan_.n_teachers == 30
    for before, after in zip(one.privacy_.groups, other.privacy_.groups, strict=True):
        assert before == after


def test_a_study_says_how_many_partitions(tmp_path):
    path = tmp_path / "study.toml"
    text = """
    [data]
    dataset = "digits"
    private_records = 900
    public_records = 200
    [privacy]
    levels = { everybody = 2.0 }
    shares = { everybody = 1.0 }
    [personalisation]
    method = "bagging"
    partitions = 5
    """
    path.write_text(text)
    assert read_config(path).of(PersonalisationSection).build() == Bagging(partitions=5)
    path.write_text(text.replace('"bagging"', '"weighting"'))
    with pytest.raises(InputError, match="partitions"):
        read_config(path)


def test_one_partition_and_too_many_teachers_are_refused():
    with pytest.raises(InputError, match="partitions"):
        Bagging(partitions=1)
    with pytest.raises(InputError, match="use fewer partitions"):
        Bagging(partitions=1000).plan({"a": Budget(1.0)}, {"a": 10**7}, 2_000)
    assert as_personalisation("bagging") == Bagging()
