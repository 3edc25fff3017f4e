import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from collegium import Budgets, Uniform
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.pate.teachers.class_balance import LEAST_KEPT, rows_in_shares
from collegium.pate.teachers.ensemble import TeacherEnsemble

shards = st.integers(2, 5).flatmap(
    lambda m: st.tuples(
        st.lists(st.integers(0, m - 1), min_size=1, max_size=120).map(np.array),
        st.lists(st.floats(0.02, 1), min_size=m, max_size=m).map(lambda s: np.array(s) / sum(s)),
    )
)


@given(shards, st.integers(0, 2**31))
def test_rows_come_in_the_wanted_shares_and_none_twice(shard, seed):
    y, shares = shard
    rows = rows_in_shares(y, shares, seed)
    present, counts = np.unique(y, return_counts=True)
    assert (np.diff(rows) > 0).all()
    if present.size == 1:
        assert rows.tolist() == list(range(len(y)))
        return
    wanted = shares[present] / shares[present].sum()
    chosen = np.array([(y[rows] == label).sum() for label in present])
    assert (chosen >= 1).all()
    size = (counts / wanted).min()
    if size >= len(y) * LEAST_KEPT:
        # As large as the shares allow: each class has its share of the size, to the nearest record.
        assert (np.abs(chosen - np.maximum(size * wanted, 1)) <= 0.5 + 1e-9).all()
    else:
        assert len(rows) >= len(y) * LEAST_KEPT - len(present)
        # One size fits all classes: each has its share of it, or gave everything it had.
        low, high = (chosen - 0.5) / wanted, (chosen + 0.5) / wanted
        free = (chosen < counts) & (chosen > 1)
        lowest = low[free].max(initial=0.0)
        assert lowest <= high[free].min(initial=np.inf) + 1e-6
        assert (high[chosen < counts] >= lowest - 1e-6).all()


def test_rows_depend_on_nothing_but_labels_shares_and_seed():
    y = np.random.default_rng(0).integers(0, 3, 100)
    shares = np.array([0.2, 0.3, 0.5])
    first = rows_in_shares(y, shares, 7)
    assert (rows_in_shares(y.copy(), shares.copy(), 7) == first).all()
    assert (rows_in_shares(y, shares, 8) != first).any()


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(random_state=0), RidgeTeachers()])
def test_one_owner_changes_only_the_teachers_that_see_them(estimator):
    """Neighbouring data sets differ in the votes of the same teachers, with class shares as without."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(300, 4)), generator.integers(0, 3, 300)
    shares = np.array([0.6, 0.3, 0.1])
    plan = Uniform().plan_for(Budgets.from_epsilons(np.ones(300), 1e-5), 10)
    without = Budgets.from_epsilons(np.ones(299), 1e-5, owners=np.arange(299))
    whole = Budgets.from_epsilons(np.ones(300), 1e-5, owners=np.arange(300))
    votes = []
    for budgets in (whole, without):
        assignment = plan.assign(budgets, b"key")
        ensemble = TeacherEnsemble(estimator, seed=3, n_classes=3, class_shares=shares)
        n = len(budgets)
        votes.append(ensemble.ask(ensemble.train(X[:n], y[:n], assignment), X))
        seen = [t for t in range(10) if 299 in assignment.records_of(t)]
        if n == 300:
            touched = seen
    others = [t for t in range(10) if t not in touched]
    assert (votes[0][:, others] == votes[1][:, others]).all()


@pytest.mark.parametrize("estimator", [GaussianNB(), RidgeTeachers()])
def test_teachers_of_bent_shards_name_classes_in_public_shares_again(estimator):
    """Class 1 is half of what teachers see, and a fifth of the people: shares bring it back."""
    generator = np.random.default_rng(1)
    y = (generator.random(4000) < 0.5).astype(np.intp)
    X = generator.normal(size=(4000, 1)) + 1.2 * y[:, None]
    truth = (generator.random(3000) < 0.2).astype(np.intp)
    X_public = generator.normal(size=(3000, 1)) + 1.2 * truth[:, None]
    assignment = (
        Uniform()
        .plan_for(Budgets.from_epsilons(np.ones(4000), 1e-5), 10)
        .assign(Budgets.from_epsilons(np.ones(4000), 1e-5), b"key")
    )
    right = {}
    for shares in (None, np.array([0.8, 0.2])):
        ensemble = TeacherEnsemble(estimator, seed=0, n_classes=2, class_shares=shares)
        votes = ensemble.ask(ensemble.train(X, y, assignment), X_public)
        right[shares is None] = (votes == truth[:, None]).mean()
    # Bayes: 0.841 with the right shares, 0.726 with equal ones; 10 teachers of 400 records each.
    assert right[True] < 0.78 and right[False] > 0.81
