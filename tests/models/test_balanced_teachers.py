"""Teachers that vote as if classes were equally frequent, and see nothing but their own shard."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from collegium.errors import InputError, ModelError
from collegium.models.balanced import (
    BalancedTeachers,
    MostlyBalancedTeachers,
    SensitiveMiddles,
    balanced,
)
from collegium.teachers import LogisticTeachers, RidgeTeachers, TabularTeachers


def shard(n, seed, rare=0.12):
    generator = np.random.default_rng(seed)
    y = (generator.random(n) < rare).astype(np.intp)
    return generator.normal(size=(n, 4)) + 1.2 * y[:, None], y


def share_right(named, y):
    return np.array([(named[y == label] == label).mean() for label in (0, 1)])


@pytest.mark.parametrize(
    "teacher",
    [
        LogisticRegression(), GaussianNB(), make_pipeline(StandardScaler(), LinearSVC()), RidgeTeachers(),
        LogisticTeachers(), TabularTeachers(),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_both_classes_are_told_alike(teacher):
    fair = balanced(teacher)
    X, y = shard(1000, 99)
    right = [share_right(fair.fit(*shard(250, seed)).predict(X), y) for seed in range(4)]
    assert np.ptp(np.mean(right, axis=0)) < 0.1
    assert np.mean(right) > 0.85


def test_what_cannot_be_balanced_is_refused():
    for teacher, need in ((Silent(), "predict_proba"), (Batched(), "believe_shards")):
        with pytest.raises(InputError, match=f"cannot vote as if .* it needs {need}"):
            balanced(teacher)
    for teacher in (balanced(GaussianNB()), balanced(RidgeTeachers())):
        assert balanced(teacher) is teacher  # a recipe that is changed is made anew
    assert balanced(Perceptron()).fit(*shard(300, 1)).predict(shard(5, 2)[0]).shape == (5,)


class Silent:
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Batched:
    teachers_at_once = 2

    def fit_shards(self, shards, seeds, n_classes):
        return []

    def predict_shards(self, models, X_public):
        return []


def test_a_teacher_sees_its_own_shard_alone():
    X = shard(200, 50)[0]
    one, other = shard(90, 1), shard(90, 2)
    turned = (other[0][::-1] * 3, 1 - other[1])
    teachers = BalancedTeachers(RidgeTeachers())
    assert teachers.exact_together
    votes = [
        teachers.predict_shards(teachers.fit_shards([one, beside], [0, 1], 2), X)
        for beside in (other, turned)
    ]
    assert np.array_equal(votes[0][0], votes[1][0])
    assert not np.array_equal(votes[0][1], votes[1][1])
    alone = teachers.fit(*one)
    assert np.array_equal(alone.predict(X), votes[0][0])


def test_of_three_teachers_two_vote_balanced_and_one_as_it_believes():
    X, shards = shard(200, 50)[0], [shard(90, seed) for seed in range(6)]
    mixed, plain = MostlyBalancedTeachers("ridge"), RidgeTeachers()
    all_balanced, seeds = BalancedTeachers(RidgeTeachers()), range(6)
    given = [each.predict_shards(each.fit_shards(shards, seeds, 2), X)
             for each in (mixed, all_balanced, plain)]  # fmt: skip
    for seed, votes, fair, usual in zip(seeds, *given, strict=True):
        assert not np.array_equal(fair, usual)
        assert np.array_equal(votes, fair if seed % 3 else usual)
    assert type(balanced(mixed)) is BalancedTeachers
    with pytest.raises(ModelError, match="estimator"):
        MostlyBalancedTeachers("forest").fit(*shards[0])


def test_no_scale_of_beliefs_changes_from_where_on_a_record_speaks_for_a_class():
    generator = np.random.default_rng(4)
    y = np.repeat([0, 1], [400, 60])
    rare = generator.normal(size=460) + y
    sure = 1 / (1 + np.exp(-9 * rare - 5))
    middles = [
        SensitiveMiddles.of(y, np.stack([1 - b, b], axis=1)).middles[1] for b in (rare, sure)
    ]
    assert middles[1] == pytest.approx(1 / (1 + np.exp(-9 * middles[0] - 5)), abs=0.02)
    assert (rare[y == 1] > middles[0]).mean() == pytest.approx(
        (rare[y == 0] < middles[0]).mean(), abs=0.02
    )


def test_a_class_seen_once_or_never_is_no_obstacle():
    X, y = shard(60, 7)
    y[:] = 0
    y[5], y[10:20] = 3, 2
    X[5] += 4
    X[10:20] -= 2
    for teacher in (LogisticRegression(), RidgeTeachers()):
        named = balanced(teacher).fit(X, y).predict(X)
        assert set(named.tolist()) <= {0, 2, 3} and (named[10:20] == 2).mean() > 0.7
