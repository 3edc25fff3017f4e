"""Teachers depend on their shard and their seed, and on nothing else."""

import re
import traceback
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from collegium import Budgets
from collegium.errors import ConfigError, InputError, ModelError
from collegium.models.catalogue import build_model
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.pate.teachers.ensemble import Teacher, TeacherEnsemble, teacher_seed, train_teacher
from collegium.personalisation import Assignment

N_TEACHERS = 5


@pytest.fixture
def data():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(100, 4))
    y = (X[:, 0] + 0.5 * generator.normal(size=100) > 0).astype(int) + (X[:, 1] > 1)
    return X, y, generator.normal(size=(30, 4))


def assigned(teacher_of_record):
    """Each record belongs to an owner of its own and goes to the given teacher."""
    teachers = np.asarray(teacher_of_record, dtype=np.int32)
    budgets = Budgets.from_epsilons(np.ones(len(teachers)), delta=1e-9)
    return Assignment(budgets, teachers[:, None], N_TEACHERS)


EVENLY = assigned(np.arange(100) % N_TEACHERS)


class Plain:
    """No scikit-learn estimator: remembers the largest class."""

    def __init__(self):
        self.seen = 0

    def fit(self, X, y):
        self.seen += 1
        self.largest = y.max()

    def predict(self, X):
        assert self.seen == 1, "every teacher starts from the same untrained object"
        return [self.largest] * len(X)


class Failing(BaseEstimator, ClassifierMixin):
    """Quotes a record in its message, as many libraries do."""

    def __init__(self, when="fit", error=ValueError):
        self.when = when
        self.error = error

    def fit(self, X, y):
        if self.when == "fit":
            raise self.error(f"cannot use\nthe value {X[0, 0]!r} of Ann Secret")
        return self

    def predict(self, X):
        raise self.error("Ann Secret was\nin my shard")


def test_teachers_equal_estimators_trained_alone(data):
    X, y, public = data
    forest = RandomForestClassifier(n_estimators=7, max_depth=3)
    ensemble = TeacherEnsemble(forest, seed=11)
    teachers = ensemble.train(X, y, EVENLY)
    votes = ensemble.ask(teachers, public)
    assert votes.shape == (30, N_TEACHERS)
    assert votes.dtype == np.int32
    for number in range(N_TEACHERS):
        shard = np.arange(number, 100, N_TEACHERS)
        alone = train_teacher(forest, X[shard], y[shard], teacher_seed(11, number))
        assert votes[:, number].tolist() == alone.vote(public).tolist()
        seeded = clone(forest).set_params(random_state=alone.sensitive_model.random_state)
        assert votes[:, number].tolist() == seeded.fit(X[shard], y[shard]).predict(public).tolist()
    assert not hasattr(forest, "estimators_")
    assert forest.random_state is None


def test_a_teacher_does_not_depend_on_other_shards(data):
    X, y, public = data
    ensemble = TeacherEnsemble(RandomForestClassifier(n_estimators=5), seed=1)
    votes = ensemble.ask(ensemble.train(X, y, EVENLY), public)
    others = np.arange(100) % N_TEACHERS != 2
    changed_X, changed_y = X.copy(), y.copy()
    changed_X[others] = 100
    changed_y[others] = 0
    changed = ensemble.ask(ensemble.train(changed_X, changed_y, EVENLY), public)
    assert changed[:, 2].tolist() == votes[:, 2].tolist()
    some = ensemble.train(X, y, EVENLY, teachers=[4, 2])
    assert ensemble.ask(some, public).tolist() == votes[:, [4, 2]].tolist()


def test_parallel_training_changes_nothing(data):
    X, y, public = data
    model = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=3))
    votes = []
    for n_jobs in (1, 2):
        ensemble = TeacherEnsemble(model, seed=5, n_jobs=n_jobs)
        votes.append(ensemble.ask(ensemble.train(X, y, EVENLY), public).tolist())
    assert votes[0] == votes[1]


def test_seeds_differ_between_teachers_and_studies(data):
    X, y, _ = data
    assert len({teacher_seed(seed, teacher) for seed in range(10) for teacher in range(10)}) == 100
    forests = [
        teacher.sensitive_model.random_state
        for seed in (1, 2)
        for teacher in TeacherEnsemble(RandomForestClassifier(2), seed).train(X, y, EVENLY)
    ]
    assert len(set(forests)) == 2 * N_TEACHERS


def test_every_random_state_inside_pipelines_is_set(data):
    X, y, _ = data
    model = make_pipeline(
        StandardScaler(), BaggingClassifier(DecisionTreeClassifier(max_features=1), n_estimators=3)
    )
    first, again, other = (train_teacher(model, X, y, seed).sensitive_model for seed in (4, 4, 5))
    states = {
        name: value for name, value in first.get_params().items() if name.endswith("random_state")
    }
    assert set(states) == {
        "baggingclassifier__random_state",
        "baggingclassifier__estimator__random_state",
    }
    assert all(isinstance(value, int) for value in states.values())
    assert len(set(states.values())) == 2
    assert states.items() <= again.get_params().items()
    assert not states.items() <= other.get_params().items()


def test_a_shard_with_one_class_always_votes_for_it(data):
    X, _, public = data
    teacher = train_teacher(LogisticRegression(), X, np.full(100, 2), seed=0)
    assert teacher == Teacher(None, 2)
    assert teacher.vote(public).tolist() == [2] * 30


def test_a_teacher_without_records_abstains(data):
    X, y, public = data
    assignment = assigned(np.where(np.arange(100) < 60, 1, 3))
    ensemble = TeacherEnsemble(DecisionTreeClassifier(), seed=0)
    votes = ensemble.ask(ensemble.train(X, y, assignment), public)
    for empty in (0, 2, 4):
        assert (votes[:, empty] == -1).all()
    assert (votes[:, [1, 3]] >= 0).all()


def test_a_teacher_knows_the_numbers_of_its_classes_only(data):
    X, _, public = data
    y = np.where(np.arange(100) % N_TEACHERS == 0, 7, 3) + (X[:, 0] > 0)
    ensemble = TeacherEnsemble(DecisionTreeClassifier(), seed=0)
    votes = ensemble.ask(ensemble.train(X, y, EVENLY), public)
    assert set(votes[:, 0].tolist()) == {7, 8}
    assert set(votes[:, 1:].ravel().tolist()) == {3, 4}


def test_objects_with_fit_and_predict_are_enough(data):
    X, y, public = data
    prototype = Plain()
    ensemble = TeacherEnsemble(prototype, seed=0)
    votes = ensemble.ask(ensemble.train(X, y, EVENLY), public)
    assert votes.tolist() == [[y[i::N_TEACHERS].max() for i in range(N_TEACHERS)]] * 30
    assert prototype.seen == 0


def test_pipelines_over_columns_by_name_get_data_frames(data):
    X, y, public = data
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(100) + 1000)
    frame["sex"] = np.where(X[:, 0] > 0.3, "f", "m")
    new = pd.DataFrame(public, columns=list("abcd"))
    new["sex"] = np.where(public[:, 0] > 0.3, "f", "m")
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["sex"]), (StandardScaler(), ["a", "c"])
        ),
        LogisticRegression(),
    )
    ensemble = TeacherEnsemble(model, seed=0)
    teachers = ensemble.train(frame, y, EVENLY)
    votes = ensemble.ask(teachers, new)
    for number in range(N_TEACHERS):
        alone = clone(model).fit(frame.iloc[number::N_TEACHERS], y[number::N_TEACHERS])
        assert votes[:, number].tolist() == alone.predict(new).tolist()


def test_what_is_kept_is_fetched_again(data, tmp_path):
    X, y, public = data
    cupboard = {}

    def keep(number, teacher):
        cupboard[f"teacher {number}"] = teacher
        return f"teacher {number}"

    plain = TeacherEnsemble(DecisionTreeClassifier(), seed=0)
    votes = plain.ask(plain.train(X, y, EVENLY), public)
    ensemble = TeacherEnsemble(
        DecisionTreeClassifier(), seed=0, keep=keep, fetch=cupboard.__getitem__
    )
    kept = ensemble.train(X, y, EVENLY)
    assert kept == [f"teacher {number}" for number in range(N_TEACHERS)]
    assert ensemble.ask(kept, public).tolist() == votes.tolist()


def test_progress_counts_up_to_all_teachers(data):
    X, y, public = data
    told = []
    ensemble = TeacherEnsemble(Plain(), 0, progress=lambda done, total: told.append((done, total)))
    teachers = ensemble.train(X, y, EVENLY)
    done = [count for count, _ in told]
    assert done == sorted(set(done))
    assert done[-1] == N_TEACHERS
    assert {total for _, total in told} == {N_TEACHERS}
    told.clear()
    ensemble.ask(teachers, public)
    assert told[-1] == (N_TEACHERS, N_TEACHERS)


@pytest.mark.parametrize(("estimator", "lacks"), [(object(), "fit"), (StandardScaler(), "predict")])
def test_what_cannot_teach_is_refused_before_training(estimator, lacks):
    with pytest.raises(InputError, match=f"needs a method '{lacks}'") as error:
        TeacherEnsemble(estimator, seed=0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("at_once", [0, -1, 2.0, True, "all", None])
def test_an_impossible_number_of_teachers_at_once_is_refused_wherever_it_is_given(at_once):
    words = re.escape(f"teachers_at_once must be a whole number of at least 1, got {at_once!r}")
    with pytest.raises(ModelError, match=words):
        TeacherEnsemble(RidgeTeachers(teachers_at_once=at_once), seed=0, n_classes=2)
    with pytest.raises(ConfigError, match=f"^teachers.model: {words}$"):
        build_model("teachers.model", "ridge", {"teachers_at_once": at_once})


@pytest.mark.parametrize(
    ("n_jobs", "kind"), [(1, ValueError), (1, RuntimeError), (1, KeyError), (2, KeyError)]
)
def test_a_failing_teacher_is_reported_in_one_line_without_what_it_saw(data, n_jobs, kind):
    X, y, _ = data
    with pytest.raises(InputError, match=f"could not be trained: {kind.__name__}") as error:
        TeacherEnsemble(Failing(error=kind), seed=0, n_jobs=n_jobs).train(X, y, EVENLY)
    assert "\n" not in str(error.value)
    shown = "".join(traceback.format_exception(error.value))
    assert "Secret" not in shown.replace('of Ann Secret")', "")  # the line of code that raises
    assert repr(X[0, 0]) not in shown
    assert error.value.__context__ is None or n_jobs == 2


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, KeyError])
def test_a_teacher_that_fails_when_asked_is_reported_likewise(data, kind):
    X, y, public = data
    ensemble = TeacherEnsemble(Failing("predict", kind), seed=0)
    teachers = ensemble.train(X, y, EVENLY)
    with pytest.raises(InputError, match=f"could not vote.*{kind.__name__}") as error:
        ensemble.ask(teachers, public)
    assert "Secret" not in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.__context__ is None


def test_usual_reasons_for_a_failure_are_named(data):
    X, y, _ = data
    X = X.copy()
    X[:, 1] = np.nan
    for records in (X, pd.DataFrame(X)):
        with pytest.raises(InputError, match="contain NaN or infinity"):
            TeacherEnsemble(LogisticRegression(), seed=0).train(records, y, EVENLY)


@pytest.mark.parametrize("vote", [0.5, np.nan, "first", None])
def test_votes_that_are_no_class_numbers_are_refused_not_truncated(data, vote):
    class Odd(Plain):
        def predict(self, X):
            return np.array([vote] * len(X))

    X, y, public = data
    ensemble = TeacherEnsemble(Odd(), seed=0)
    teachers = ensemble.train(X, y, EVENLY)
    with pytest.raises(InputError, match="could not vote"):
        ensemble.ask(teachers, public)


@pytest.mark.parametrize("vote", [-2, 3, 99])
def test_votes_for_no_class_are_refused_without_a_count_of_them(data, vote):
    class Off(Plain):
        def predict(self, X):
            return np.array([0] * (len(X) - 1) + [vote])

    X, y, public = data
    ensemble = TeacherEnsemble(Off(), seed=0, n_classes=3)
    teachers = ensemble.train(X, y, EVENLY)
    with pytest.raises(InputError, match="something else than the classes 0 … 2") as error:
        ensemble.ask(teachers, public)
    assert [word for word in str(error.value).split() if word.isdigit()] == ["0", "2"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_in_public_records_are_named_where_votes_fail(data, value):
    X, y, public = data
    ensemble = TeacherEnsemble(LogisticRegression(), seed=0)
    teachers = ensemble.train(X, y, EVENLY)
    public = public.copy()
    public[1, 0] = value
    with pytest.raises(InputError, match=r"could not vote.*contain NaN or infinity") as error:
        ensemble.ask(teachers, public)
    assert "fill in what public records lack" in str(error.value)
    assert "the numbers of classes" not in str(error.value)


def test_whole_floats_are_votes(data):
    class Floats(Plain):
        def predict(self, X):
            return np.full(len(X), 1.0)

    X, y, public = data
    ensemble = TeacherEnsemble(Floats(), seed=0)
    assert (ensemble.ask(ensemble.train(X, y, EVENLY), public) == 1).all()


def test_warnings_about_a_shard_stay_silent(data):
    class Loud(Plain):
        def fit(self, X, y):
            warnings.warn("this shard is odd", stacklevel=1)
            super().fit(X, y)

        def predict(self, X):
            warnings.warn("my shard was odd", stacklevel=1)
            return super().predict(X)

    X, y, public = data
    ensemble = TeacherEnsemble(Loud(), seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ensemble.ask(ensemble.train(X, y, EVENLY), public)


class GlobalDraws(Plain):
    """Draws from NumPy's global generator as often as its shard has records, and once to answer."""

    def fit(self, X, y):
        super().fit(X, y)
        self.largest = np.random.rand(len(y) + 1)[-1]  # noqa: NPY002

    def predict(self, X):
        return [int(1000 * (self.largest + np.random.rand())) for _ in range(len(X))]  # noqa: NPY002


@pytest.mark.parametrize("workers", [1, 2])
def test_what_one_shard_draws_from_a_global_generator_changes_no_other_teacher(data, workers):
    X, y, public = data
    votes = []
    for kept in (np.arange(100), np.arange(1, 100)):
        np.random.seed(len(kept))  # noqa: NPY002 (whatever it was: teachers have seeds of their own)
        ensemble = TeacherEnsemble(GlobalDraws(), seed=3)
        with joblib.parallel_config("threading", n_jobs=workers):
            teachers = ensemble.train(X[kept], y[kept], assigned(kept % N_TEACHERS))
            votes.append(ensemble.ask(teachers, public))
    assert (votes[0] != votes[1]).any(axis=0).tolist() == [True, False, False, False, False]
    assert np.random.rand() == np.random.RandomState(99).rand()  # noqa: NPY002
