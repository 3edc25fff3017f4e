"""What cannot work is found on public records with synthetic classes; nothing is spent or changed by it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from collegium import Budgets, GNMax, InteractiveGNMax, PATEClassifier, Queries
from collegium.distillation.graph import GraphStudent
from collegium.distillation.rehearsal import (
    TRIED,
    rehearse_student,
    rows_that_lack_values,
    telling_rows,
)
from collegium.errors import ConfigError, InputError, StudentError
from collegium.models.catalogue import build_model
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.pate import pipeline, recipe
from collegium.pate.rehearsal import rehearse_teacher
from collegium.pate.teachers.ensemble import TeacherEnsemble

N, N_PUBLIC = 120, 60
STUMP = DecisionTreeClassifier(max_depth=2)
pytestmark = pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(N + N_PUBLIC, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    return X[:N], y[:N], X[N:]


@pytest.fixture
def spent(monkeypatch):
    """Learn of every noise source that is made: without one, nothing can be released."""
    made = []
    source = recipe.noise_from
    monkeypatch.setattr(recipe, "noise_from", lambda seed: made.append(seed) or source(seed))
    return made


@pytest.fixture
def trained(monkeypatch):
    """Learn of every training of teachers on private records."""
    calls = []
    train = TeacherEnsemble.train
    monkeypatch.setattr(
        TeacherEnsemble, "train", lambda self, *a: calls.append(a) or train(self, *a)
    )
    return calls


def fit(data, *, X_public=None, X=None, **settings):
    defaults = {
        "teacher": STUMP,
        "n_teachers": 6,
        "aggregator": GNMax(sigma=0.5),
        "student": LogisticRegression(),
        "noise_seed": 1,
        "random_state": 0,
    }
    model = PATEClassifier(**{**defaults, **settings})
    private, y, public = data
    return model.fit(
        private if X is None else X,
        y,
        budgets=np.full(N, 1e5),
        X_public=public if X_public is None else X_public,
    )


def refused(data, message, **settings):
    with pytest.raises(InputError, match=message) as error:
        fit(data, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)


class Plain:
    """No scikit-learn estimator: fit and predict."""

    def __init__(self, says=0):
        self.says = says

    def fit(self, X, y):
        self.fitted_ = True  # scikit-learn's pipelines look for such a name
        return self

    def predict(self, X):
        return np.full(len(X), self.says)


UNUSABLE = {
    "a class": (LogisticRegression, "must be an object, got the class LogisticRegression: write"),
    "a parameter": (LogisticRegression(C=-1), r"cannot be trained on public records.*'C' param"),
    "a late parameter": (
        make_pipeline(StandardScaler(), SGDClassifier(loss="x")),
        r"cannot be trained.*'loss'",
    ),
    "a clusterer": (KMeans(3), "must be a classifier, but KMeans is a clusterer"),
    "a clusterer at the end": (make_pipeline(StandardScaler(), KMeans(3)), "is a clusterer"),
    "a regressor": (LinearRegression(), "must be a classifier, but LinearRegression is a regr"),
    "another class": (Plain(3), "must predict one of the classes that it was taught"),
    "names": (Plain("yes"), "must predict one of the classes|no class number"),
    "halves": (Plain(0.5), "must predict one of the classes|no class number"),
    "a wrong length": (Plain([0, 1]), "must predict one of the classes|could not broadcast"),
}


@pytest.mark.parametrize("role", ["teacher", "student"])
@pytest.mark.parametrize("what", list(UNUSABLE))
def test_an_unusable_model_is_refused_before_training_and_before_anything_is_spent(
    data, spent, trained, role, what
):
    model, message = UNUSABLE[what]
    assert role in refused(data, message, **{role: model})
    assert (spent, trained) == ([], [])


class Untagged(Plain, BaseEstimator):
    """A scikit-learn estimator that does not say of which kind it is."""


@pytest.mark.parametrize(
    "model", [Plain(1), Untagged(1), make_pipeline(StandardScaler(), Untagged(1))]
)
def test_objects_with_just_fit_and_predict_are_allowed(data, spent, model):
    assert set(fit(data, teacher=model, student=model).predict(data[0])) == {1}
    assert len(spent) == 1


@pytest.mark.parametrize("key", ["teachers.model", "student.model"])
def test_a_study_refuses_what_is_no_classifier_as_well(key):
    with pytest.raises(ConfigError, match=f"^{key} must be a classifier, but KMeans is a clust"):
        build_model(key, "sklearn.cluster.KMeans", {})


@pytest.mark.parametrize(
    "settings",
    [
        {"queries": Queries("active")},
        {"aggregator": InteractiveGNMax(threshold=0, sigma_threshold=8, sigma=0.5)},
        {"class_shares": {"student": [0.3, 0.4, 0.3]}},
    ],
)
def test_probabilities_that_are_needed_later_are_asked_for(data, spent, settings):
    class Mute(KNeighborsClassifier):
        def predict_proba(self, X):
            raise RuntimeError("not today")

    refused(data, "student cannot be trained.*not today", student=Mute(), **settings)
    assert spent == []
    fit(data, student=Mute())


# Missing values


@pytest.mark.parametrize("row", [0, 37, N_PUBLIC - 1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("role", ["teacher", "student"])
def test_a_missing_value_anywhere_in_the_public_records_is_named_and_not_quoted(
    data, spent, trained, role, row, value
):
    public = np.tile(data[2], (6, 1))  # more than a quick trial looks at
    public[row * 6, 1] = value
    tolerant = RandomForestClassifier(3) if np.isnan(value) else Plain()
    models = {"teacher": tolerant, "student": tolerant, role: LogisticRegression()}
    told = refused(data, "public records contain NaN or infinity", X_public=public, **models)
    assert f"as the {role} sees them; first record {row * 6 + 1} " in told
    assert "numbers of classes" not in told
    assert (spent, trained) == ([], [])


def test_models_that_take_missing_values_get_them(data):
    public = data[2].copy()
    public[5] = np.nan
    fit(data, X_public=public, student=STUMP)


def test_missing_values_in_private_records_are_advised_on_in_words_of_both_faces(data, spent):
    private = data[0].copy()
    private[7, 0] = np.nan
    told = refused(data, "contain NaN or infinity", teacher=LogisticRegression(), X=private)
    assert "drop these records, or give preprocessing that fills missing values in" in told
    assert spent == []


# Preprocessing


def test_preprocessing_that_cannot_be_fitted_is_refused_in_one_line(data, spent, trained):
    broken = StandardScaler(with_mean="x")
    for setting, name in (
        (broken, "preprocessing"),
        ({"student": broken}, "preprocessing of the student"),
    ):
        refused(
            data,
            f"^{name} cannot be fitted to the public records.*'n_compo|^{name}.*with_mean",
            preprocessing=setting,
        )
    assert (spent, trained) == ([], [])


def test_a_failing_preprocessing_does_not_quote_private_records(data, spent):
    kinds = np.array(["a", "b"] * 30, dtype=object)
    public = pd.DataFrame({"kind": kinds})
    private = pd.DataFrame({"kind": np.where(np.arange(N) == 9, "SECRET", "a").astype(object)})
    told = refused(
        data, "OneHotEncoder.*ValueError", X=private, X_public=public, preprocessing=OneHotEncoder()
    )
    assert "SECRET" not in told
    assert spent == []


# No false alarms: what needs more records than a quick trial has


def numbers(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def test_a_model_that_needs_more_records_than_a_quick_trial_is_tried_on_all():
    hungry = KNeighborsClassifier(TRIED + 50)
    rehearse_student(hungry, numbers(TRIED + 50), np.arange(3))
    rehearse_teacher(hungry, numbers(40), 3, shard_size=TRIED + 50)
    with pytest.raises(InputError, match="n_neighbors"):
        rehearse_student(hungry, numbers(TRIED + 50), np.arange(3), most_labels=TRIED)
    with pytest.raises(InputError, match="n_neighbors"):
        rehearse_teacher(hungry, numbers(40), 3, shard_size=TRIED)


def test_a_teacher_is_rehearsed_with_as_many_records_as_it_will_have_whoever_owns_them(data):
    X, y, public = (np.tile(part.T, 6).T for part in data)
    model = PATEClassifier(
        KNeighborsClassifier(500),  # of 720 records, which are 240 people's
        n_teachers=1,
        aggregator=GNMax(sigma=0.01),
        student=STUMP,
        noise_seed=1,
        random_state=0,
    )
    budgets = Budgets.from_epsilons(np.full(720, 1e9), owners=np.arange(720) // 3)
    model.fit(X, y, budgets=budgets, X_public=public)
    assert model.plan_.n_teachers == 1
    with pytest.raises(InputError, match="n_neighbors"):
        model.set_params(teacher__n_neighbors=800).fit(X, y, budgets=budgets, X_public=public)


def test_a_model_that_needs_many_records_of_each_class_is_tried_with_two():
    inner = CalibratedClassifierCV(LogisticRegression(), cv=15)
    rehearse_student(inner, numbers(60), np.arange(10))
    rehearse_teacher(inner, numbers(60), 10, shard_size=30)
    with pytest.raises(InputError, match="15"):
        rehearse_student(inner, numbers(60), np.arange(10), most_labels=20)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("soft", [False, True])
def test_few_public_records_are_no_reason_to_refuse(n, n_classes, soft):
    for student in (LogisticRegression(), GraphStudent(), SVC()):
        rehearse_student(student, numbers(n), np.arange(n_classes), soft=soft)
    for teacher in (STUMP, RidgeTeachers()):
        rehearse_teacher(teacher, numbers(n), n_classes, shard_size=5)


def test_teachers_that_are_trained_many_at_once_are_rehearsed_as_such():
    rehearse_teacher(RidgeTeachers(), numbers(50), 3, shard_size=20)
    with pytest.raises(InputError, match=r"kernel must be one of .*, got .nonsense."):
        rehearse_teacher(RidgeTeachers(kernel="nonsense"), numbers(50), 3, shard_size=20)


# No traces


class Watched(ClassifierMixin, BaseEstimator):
    """Remembers every record that any of its copies was shown; draws from the global random state."""

    shown: list = []  # noqa: RUF012

    def __init__(self, random_state=None, checkpoint_folder=None):
        self.random_state = random_state
        self.checkpoint_folder = checkpoint_folder

    def fit(self, X, y):
        Watched.shown.append(np.array(X))
        np.random.random()  # noqa: NPY002
        if self.random_state is not None and hasattr(self.random_state, "random"):
            self.random_state.random()
        if self.checkpoint_folder is not None:
            (self.checkpoint_folder / "began").write_text("")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("rehearse", [rehearse_student, rehearse_teacher])
def test_a_rehearsal_leaves_no_trace(rehearse, tmp_path):
    own = np.random.RandomState(4)
    model = make_pipeline(StandardScaler(), Watched(own, tmp_path))
    before = (own.get_state()[1].tolist(), np.random.get_state()[1].tolist())  # noqa: NPY002
    position = np.random.get_state()[2]  # noqa: NPY002
    X = numbers(30)
    kept = X.copy()
    Watched.shown.clear()
    if rehearse is rehearse_teacher:
        rehearse(model, X, 2, shard_size=5)
    else:
        rehearse(model, X, np.array(["no", "yes"]))
    assert Watched.shown  # it was tried
    assert not hasattr(model[-1], "classes_")
    assert (model[-1].random_state, model[-1].checkpoint_folder) == (own, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert before == (own.get_state()[1].tolist(), np.random.get_state()[1].tolist())  # noqa: NPY002
    assert position == np.random.get_state()[2]  # noqa: NPY002
    assert (kept == X).all()


def test_the_rehearsal_sees_public_records_only_and_changes_nothing_that_is_released(
    data, monkeypatch
):
    seen = []
    for name in ("rehearse_teacher", "rehearse_student"):
        rehearse = getattr(pipeline, name)

        def watched(*args, rehearse=rehearse, **options):
            Watched.shown.clear()
            rehearse(*args, **options)
            seen.extend(Watched.shown)

        monkeypatch.setattr(pipeline, name, watched)
    settings = {"student": Watched(), "queries": Queries(release="histogram")}
    rehearsed = fit(data, teacher=Watched(), **settings)
    assert len(seen) >= 2
    public = {row.tobytes() for row in data[2]}
    assert all(row.tobytes() in public for records in seen for row in records)
    for name in ("rehearse_teacher", "rehearse_student"):
        monkeypatch.setattr(pipeline, name, lambda *args, **options: None)
    plain = fit(data, teacher=Watched(), **settings)
    assert (plain.histograms_.counts == rehearsed.histograms_.counts).all()
    assert (plain.labelled_indices_ == rehearsed.labelled_indices_).all()


# After the labels are there


class Choosy(LogisticRegression):
    """Fails on classes that are not synthetic: the k-th record is not of class k modulo 3."""

    def fit(self, X, y, sample_weight=None):
        if not np.array_equal(y, np.arange(len(y)) % 3):
            raise ValueError("only synthetic classes, please\nno others")
        return super().fit(X, y)


@pytest.mark.parametrize("student", [Choosy(), KNeighborsClassifier(50)])
def test_a_student_that_fails_on_the_released_labels_leaves_them_to_another(data, spent, student):
    model = PATEClassifier(
        STUMP,
        n_teachers=6,
        aggregator=GNMax(sigma=4),
        student=student,
        noise_seed=1,
        random_state=0,
    )
    with pytest.raises(StudentError, match="cannot learn from the labels") as error:
        model.fit(data[0], data[1], budgets=np.full(N, 8.0), X_public=data[2])
    assert not isinstance(error.value, InputError)  # which would say that nothing was spent
    assert "\n" not in str(error.value)
    assert len(spent) == 1
    assert 2 <= len(model.labels_) < 50
    assert len(model.labels_) == len(model.labelled_indices_) == len(model.targets_)
    assert (model.privacy_.by_group()["epsilon_spent"] > 0).all()
    assert not hasattr(model, "student_")
    LogisticRegression().fit(data[2][model.labelled_indices_], model.labels_)


class Late(TransformerMixin, BaseEstimator):
    """Fails when it is used for the n-th time."""

    used = 0

    def __init__(self, fails_at=1):
        self.fails_at = fails_at

    def fit(self, X, y=None):
        return self._count()

    def transform(self, X):
        self._count()
        return X

    def _count(self):
        Late.used += 1
        if Late.used >= self.fails_at:
            raise RuntimeError("too late")
        return self


@pytest.mark.parametrize("role", ["teacher", "student", "preprocessing"])
@pytest.mark.parametrize("fails_at", [1, 2, 3, 4, 5, 8, 11, 15, 20, 25])
def test_whatever_fails_whenever_an_input_error_means_that_nothing_was_spent(
    data, spent, role, fails_at
):
    Late.used = 0
    late = Late(fails_at)
    given = late if role == "preprocessing" else make_pipeline(late, STUMP)
    try:
        fit(data, **{role: given})
    except InputError:
        assert spent == []
    except StudentError:
        assert len(spent) == 1


# Which records tell


TABLES = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 4)),
    elements=st.sampled_from([0.0, 1.0, np.nan, np.inf, -np.inf]),
)


@given(TABLES, st.sampled_from([1, 8, 2**22]))
def test_the_first_record_that_lacks_a_value_is_found_in_each_column(table, at_once):
    expected = sorted(
        {int(np.flatnonzero(~np.isfinite(c))[0]) for c in table.T if not np.isfinite(c).all()}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("collegium.distillation.rehearsal._NUMBERS_AT_ONCE", at_once)
        assert rows_that_lack_values(table).tolist() == expected
    assert rows_that_lack_values(table[:, :, None]).tolist() == expected
    assert rows_that_lack_values(pd.DataFrame(table)).tolist() == expected
    assert rows_that_lack_values(sparse.csr_array(table)).tolist() == expected
    assert rows_that_lack_values(sparse.csr_matrix(table)).tolist() == expected


@given(st.integers(1, 700), st.sets(st.integers(0, 699), max_size=3))
def test_telling_records_are_different_and_hold_those_that_lack_values(n, lacking):
    table = np.zeros((n, 3))
    chosen = sorted(row for row in lacking if row < n)
    for column, row in enumerate(chosen):
        table[row, column] = np.nan
    rows = telling_rows(table).tolist()
    assert rows[: len(chosen)] == chosen
    assert len(set(rows)) == len(rows) <= TRIED + 3
    assert set(rows) >= set(range(n)) if n <= TRIED else {0, n - 1} <= set(rows)
