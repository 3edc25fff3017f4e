"""What budgets do to classes and groups, as PATEClassifier shows it, and the two ways to mend it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from collegium import GNMax, PATEClassifier, Policy, Queries
from collegium.errors import InputError
from collegium.evaluation.effects import measure_effects

SHARES = np.array([0.8, 0.2])
POLICY = Policy({"careful": 4.0, "generous": 32.0}, delta=1e-5)


def people(n, seed):
    generator = np.random.default_rng(seed)
    y = (generator.random(n) < SHARES[1]).astype(int)
    return generator.normal(size=(n, 2)) + 1.2 * y[:, None] * np.array([1, 0]), y


X, Y = people(3000, 0)
X_PUBLIC, Y_PUBLIC = people(800, 1)
X_TEST, Y_TEST = people(2000, 2)
LEVELS = np.where(Y == 1, "generous", "careful")  # who has class 1 grants more


def fitted(keep_sensitive=False, **settings):
    model = PATEClassifier(
        LogisticRegression(),
        n_teachers=50,
        personalisation="upsampling",
        aggregator=GNMax(sigma=40),
        student=LogisticRegression(),
        classes=[0, 1],
        noise_seed=0,
        random_state=0,
        **settings,
    )
    return model.fit(
        X, Y, budgets=POLICY.assign(LEVELS), X_public=X_PUBLIC, keep_sensitive=keep_sensitive
    )


@pytest.fixture(scope="module")
def plain():
    """A fitted model, which no test may change."""
    return fitted()


def test_budgets_by_class_bend_the_student_and_both_ways_mend_it_at_no_cost():
    shown = Queries(release="histogram")
    bent = fitted(queries=shown)
    by_teachers = fitted(queries=shown, class_shares={"teacher": SHARES})
    by_student = fitted(queries=shown, class_shares={"student": {0: 0.8, 1: 0.2}})
    named = {
        name: float((model.predict(X_TEST) == 1).mean())
        for name, model in {"bent": bent, "teachers": by_teachers, "student": by_student}.items()
    }
    # Deterministic: every seed is fixed. Bayes' rule names class 1 for 12 % of the people.
    assert named["bent"] > 0.3
    assert named["teachers"] < 0.25
    assert by_student.predict_proba(X_PUBLIC).mean(axis=0) == pytest.approx(SHARES, abs=1e-6)
    assert named["student"] < 0.25
    spent = bent.privacy_.by_group()["epsilon_spent"].tolist()
    for model in (by_teachers, by_student):
        assert model.score(X_TEST, Y_TEST) > bent.score(X_TEST, Y_TEST) + 0.05
        assert model.privacy_.by_group()["epsilon_spent"].tolist() == spent


def test_effects_are_those_of_the_fitted_student():
    model = fitted(class_shares={"student": SHARES})
    groups = np.where(np.arange(2000) % 2, "careful", "generous")
    effects = model.effects(X_TEST, Y_TEST, groups=groups, y_public=Y_PUBLIC)
    predicted = model.predict(X_TEST)
    classes = effects.by_class()
    for label in (0, 1):
        row = classes.loc[str(label)]
        own = label == Y_TEST
        assert row["student_accuracy"] == (predicted[own] == label).mean()
        labelled = Y_PUBLIC[model.labelled_indices_] == label
        assert row["label_accuracy"] == (model.labels_[labelled] == label).mean()
        assert row["public_share"] == SHARES[label]
    table = effects.by_group()
    assert table["test_records"].tolist() == [1000, 1000]
    assert table.loc["generous", "influence_per_owner"] > 1
    right = (predicted == Y_TEST)[groups == "careful"].mean()
    assert table.loc["careful", "student_accuracy"] == right
    assert measure_effects(model.plan_, [0, 1], model.labels_).classes[0].student_accuracy is None


def test_teachers_by_class_need_votes_that_were_kept(plain):
    with pytest.raises(InputError, match="keep_sensitive=True"):
        plain.sensitive_teacher_effects(Y_PUBLIC)
    table = fitted(keep_sensitive=True).sensitive_teacher_effects(Y_PUBLIC)
    assert table["public_records"].sum() == 800
    assert table["teachers"].between(0, 1).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"class_shares": {"teacher": [0.5, 0.3]}},
            "class_shares of the teacher must be greater than 0 and add",
        ),
        (
            {"class_shares": {"student": {0: 1.0}}},
            "class_shares of the student must give each class one share",
        ),
        (
            {"class_shares": {"student": SHARES}, "student": RidgeClassifier()},
            "has no predict_proba",
        ),
    ],
)
def test_shares_that_cannot_be_used_are_refused_before_anything_is_trained(settings, message):
    class Untrained(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("a teacher was trained")

    given = {"student": LogisticRegression(), **settings}
    model = PATEClassifier(Untrained(), n_teachers=10, classes=[0, 1], **given)
    with pytest.raises(InputError, match=message):
        model.fit(X, Y, budgets=POLICY.assign(LEVELS), X_public=X_PUBLIC)


def test_test_records_and_groups_must_fit(plain):
    model = plain
    with pytest.raises(InputError, match="2000 test records, but 3 groups"):
        model.effects(X_TEST, Y_TEST, groups=["careful"] * 3)
    with pytest.raises(InputError, match="2000 test records, but 2 classes"):
        model.effects(X_TEST, [0, 1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y_public": Y_PUBLIC[:5]}, "800 public records, but 5 true classes"),
        ({"y_public": np.append(Y_PUBLIC, 0)}, "800 public records, but 801 true classes"),
        ({"y_public": 1}, r"800 public records, but an array of shape \(\) of true classes"),
        ({"y_public": np.ones((800, 2))}, r"of shape \(800, 2\) of true classes"),
        ({"groups": "careful"}, r"2000 test records, but an array of shape \(\) of groups"),
        ({"groups": ["careful"]}, "2000 test records, but 1 groups"),
        ({"y": Y_TEST[:7]}, "2000 test records, but 7 classes"),
        ({"y": 1}, r"2000 test records, but an array of shape \(\) of classes"),
        ({"y": None}, r"2000 test records, but an array of shape \(\) of classes"),
    ],
)
def test_effects_need_one_of_everything_for_each_record(plain, given, message):
    with pytest.raises(InputError, match=message) as error:
        plain.effects(**{"X": X_TEST, "y": Y_TEST, **given})
    assert "\n" not in str(error.value)
