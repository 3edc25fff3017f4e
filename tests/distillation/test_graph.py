"""Graph and Gaussian-process students: released answers flow between public records."""

import pickle
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from collegium.distillation.embedding import PublicEmbedding
from collegium.distillation.gaussian_process import GaussianProcessStudent, OnSameRecords
from collegium.distillation.graph import METHODS, GraphStudent
from collegium.distillation.nearest import nearest, similarity_graph
from collegium.distillation.smoothing import averaging, harmonic, normalised, posterior, spreading
from collegium.errors import InputError, NothingReleasedError

IMAGES, DIGITS = load_digits(return_X_y=True)
PUBLIC, PUBLIC_DIGITS = IMAGES[:700], DIGITS[:700]
NEW, NEW_DIGITS = IMAGES[1200:], DIGITS[1200:]
STUDENTS = [
    GraphStudent(n_components=30),
    GraphStudent(n_components=30, method="harmonic"),
    GraphStudent(n_components=30, method="spreading"),
    GaussianProcessStudent(n_components=30, n_landmarks=200),
]
NAMES = ["posterior", "harmonic", "spreading", "gaussian-process"]


def release(n_queries, signal, seed=0):
    """Targets of histograms in which the right class stands out by ``signal`` standard deviations."""
    generator = np.random.default_rng(seed)
    queries = generator.permutation(len(PUBLIC))[:n_queries]
    noisy = signal * np.eye(10)[PUBLIC_DIGITS[queries]] + generator.normal(size=(n_queries, 10))
    return queries, softmax(signal * noisy, axis=1)


# ---------------------------------------------------------------- neighbours


@pytest.mark.parametrize("skip_self", [False, True])
def test_neighbours_are_those_of_a_plain_search(skip_self):
    among = PUBLIC[:300]
    asked = among if skip_self else NEW[:50]
    found = nearest(asked, among, 6, skip_self=skip_self)
    distances, rows = (
        NearestNeighbors(n_neighbors=6).fit(among).kneighbors(None if skip_self else asked)
    )
    assert np.sqrt(found.squared) == pytest.approx(distances, abs=1e-2)
    assert (found.rows == rows).mean() > 0.98  # ties between integer pixels may swap


def test_nobody_is_their_own_neighbour_among_duplicates():
    found = nearest(np.zeros((5, 2)), np.zeros((5, 2)), 4, skip_self=True)
    assert all(row not in others for row, others in enumerate(found.rows.tolist()))
    graph, scales = similarity_graph(np.zeros((5, 2)), 2)
    assert np.isfinite(graph.toarray()).all()
    assert (scales > 0).all()


def test_more_neighbours_than_records_are_refused():
    with pytest.raises(InputError, match="from 1 to 2"):
        nearest(PUBLIC[:3], PUBLIC[:3], 3, skip_self=True)


def test_graph_is_symmetric_and_has_no_loops():
    graph, _ = similarity_graph(PUBLIC[:200], 5)
    dense = graph.toarray()
    assert np.allclose(dense, dense.T)
    assert not dense.diagonal().any()
    assert ((dense > 0).sum(axis=1) >= 5).all()


# ---------------------------------------------------------------- smoothing


def small_graph(n=40):
    graph, _ = similarity_graph(PUBLIC[:n], 4)
    return graph


def test_harmonic_solves_its_equation():
    generator = np.random.default_rng(0)
    normal = normalised(small_graph())
    targets, precision = generator.normal(size=(40, 3)), generator.random(40)
    dense = np.diag(precision) + 2.5 * (np.eye(40) * (1 + 1e-6) - normal.toarray())
    exact = np.linalg.solve(dense, precision[:, None] * targets)
    assert harmonic(normal, targets, precision, 2.5) == pytest.approx(exact, abs=2e-3)


def test_harmonic_believes_precise_answers_more():
    pair = normalised(sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])))
    f = harmonic(pair, np.array([[1.0], [0.0]]), np.array([9.0, 1.0]), 1e3)
    assert f.ravel() == pytest.approx([0.9, 0.9], abs=0.01)


def test_spreading_solves_its_equation():
    normal = normalised(small_graph())
    targets = np.random.default_rng(1).normal(size=(40, 2))
    exact = np.linalg.solve(np.eye(40) - 0.8 * normal.toarray(), 0.2 * targets)
    assert spreading(normal, targets, np.ones(40), 0.8) == pytest.approx(exact, abs=2e-3)


def test_posterior_is_a_fixed_point_and_without_coupling_bayes_rule():
    average = averaging(small_graph())
    evidence = np.random.default_rng(2).normal(size=(40, 3))
    assert posterior(lambda q: average @ q, evidence, 0.0) == pytest.approx(
        softmax(evidence, axis=1)
    )
    q = posterior(lambda q: average @ q, evidence, 3.0)
    assert q == pytest.approx(softmax(evidence + 3.0 * (average @ q), axis=1), abs=1e-3)


# ---------------------------------------------------------------- students


@cache
def learnt(name):
    """One that learnt from 60 clear answers, to be looked at only."""
    student = STUDENTS[NAMES.index(name)]
    return clone(student).fit_released(PUBLIC, *release(60, signal=5.0))


@pytest.mark.parametrize("name", NAMES)
def test_a_few_clear_answers_beat_a_supervised_student(name):
    queries, targets = release(60, signal=5.0)
    fitted = learnt(name)
    supervised = KNeighborsClassifier(1).fit(PUBLIC[queries], targets.argmax(axis=1))
    assert fitted.score(NEW, NEW_DIGITS) > supervised.score(NEW, NEW_DIGITS)
    assert (fitted.beliefs_.argmax(axis=1) == PUBLIC_DIGITS).mean() > 0.85


@pytest.mark.parametrize("student", STUDENTS, ids=NAMES)
def test_many_answers_that_say_little_each_say_as_much_together(student):
    """50 answers at 5σ, or 700 at 5σ/√14: the same total; one alone is right in less than half of cases."""
    queries, targets = release(700, signal=5.0 / np.sqrt(14))
    assert (targets.argmax(axis=1) == PUBLIC_DIGITS[queries]).mean() < 0.5
    fitted = clone(student).fit_released(PUBLIC, queries, targets)
    assert fitted.score(NEW, NEW_DIGITS) > 0.8


def test_knowing_that_a_record_has_one_class_is_best():
    queries, targets = release(700, signal=1.0)
    scores = [
        clone(s).fit_released(PUBLIC, queries, targets).score(NEW, NEW_DIGITS) for s in STUDENTS
    ]
    assert scores[0] >= max(scores[1:3])


@pytest.mark.parametrize("name", NAMES)
def test_students_keep_the_manners_of_scikit_learn(name):
    student = STUDENTS[NAMES.index(name)]
    first = learnt(name)
    again = clone(student).fit_released(PUBLIC, *release(60, signal=5.0))
    believed = first.predict_proba(NEW[:50])
    assert believed.sum(axis=1) == pytest.approx(1)
    assert (believed >= 0).all()
    assert np.array_equal(believed, again.predict_proba(NEW[:50]))
    assert np.array_equal(believed, pickle.loads(pickle.dumps(first)).predict_proba(NEW[:50]))
    assert first.classes_.tolist() == list(range(10))
    assert set(clone(student).get_params()) == set(student.get_params())
    # A prediction does not depend on who else is asked about.
    assert first.predict_proba(NEW[7:8]) == pytest.approx(believed[7:8], abs=1e-6)


@pytest.mark.parametrize("student", STUDENTS, ids=NAMES)
def test_plain_fit_takes_labels_of_any_kind(student):
    names = np.array([f"digit {d}" for d in DIGITS])
    fitted = clone(student).fit(PUBLIC[:300], names[:300])
    assert fitted.score(NEW, names[1200:]) > 0.85


def test_wrong_labels_are_outvoted_and_mistrusted():
    """Labels of which 40 % are random: the choice among released answers finds out that they are."""
    generator = np.random.default_rng(5)
    queries = generator.permutation(700)[:600]
    labels = np.where(
        generator.random(600) < 0.4, generator.integers(0, 10, 600), PUBLIC_DIGITS[queries]
    )
    fitted = GraphStudent(n_components=30).fit_released(PUBLIC, queries, np.eye(10)[labels])
    assert fitted.mistrust_ == 0.3
    assert fitted.score(NEW, NEW_DIGITS) > 0.85


def test_fewer_labels_than_classes_and_one_class_only():
    queries = np.flatnonzero(PUBLIC_DIGITS < 3)[:6]
    fitted = GraphStudent(n_components=30).fit_released(
        PUBLIC, queries, np.eye(10)[PUBLIC_DIGITS[queries]]
    )
    assert fitted.predict_proba(NEW).shape == (len(NEW), 10)
    same = np.flatnonzero(PUBLIC_DIGITS == 4)[:5]
    alone = GraphStudent(n_components=30).fit_released(PUBLIC, same, np.eye(10)[np.full(5, 4)])
    assert alone.predict(NEW[NEW_DIGITS == 4][:20]).tolist() == [4] * 20


@pytest.mark.parametrize("name", NAMES)
def test_public_records_of_another_shape_are_refused(name):
    with pytest.raises(InputError, match="prepare them in the same way") as error:
        learnt(name).predict(NEW[:, :63])
    assert "\n" not in str(error.value)


def test_images_may_be_flat_or_not():
    queries, targets = release(60, signal=5.0)
    flat = learnt("posterior")
    square = GraphStudent(n_components=30).fit_released(PUBLIC.reshape(-1, 8, 8), queries, targets)
    assert np.array_equal(flat.predict(NEW), square.predict(NEW.reshape(-1, 8, 8)))


@pytest.mark.parametrize(
    ("student", "said"),
    [
        (GraphStudent(method="magic"), "one of posterior, harmonic, spreading"),
        (GraphStudent(n_neighbors=0), "n_neighbors"),
        (GraphStudent(coupling=0.0), "coupling"),
        (GraphStudent(mistrust=1.0), "mistrust"),
        (GraphStudent(n_components=-1), "n_components"),
        (GraphStudent(features="sift"), "'scattering'"),
        (GaussianProcessStudent(n_landmarks=0), "n_landmarks"),
        (GaussianProcessStudent(length_scale=-1.0), "length_scale"),
        (GaussianProcessStudent(mistrust=-0.1), "mistrust"),
        (GaussianProcessStudent(coupling=-1.0), "coupling"),
        (GaussianProcessStudent(coupling=0.0, graph_coupling=0.0), "go nowhere"),
    ],
)
def test_parameters_out_of_range_are_refused(student, said):
    with pytest.raises(InputError, match=said):
        student.fit_released(PUBLIC[:50], [0, 1], [[0.9, 0.1], [0.1, 0.9]])


def test_no_answers_and_a_single_record():
    with pytest.raises(NothingReleasedError):
        GraphStudent().fit_released(PUBLIC, [], np.empty((0, 10)))
    with pytest.raises(InputError, match="at least 2 public records"):
        GraphStudent().fit_released(PUBLIC[:1], [0], [[0.5, 0.5]])


def test_all_methods_are_tested():
    assert {s.method for s in STUDENTS[:3]} == set(METHODS)


def test_embedding_of_a_record_is_its_own():
    embedding = PublicEmbedding(n_components=20)
    points = embedding.fit_transform(PUBLIC)
    assert embedding.transform(PUBLIC[3:4]) == pytest.approx(points[3:4], abs=1e-5)


def test_a_student_that_is_taught_again_learns_as_a_new_one_does():
    random = np.random.default_rng(5)
    X = random.normal(size=(90, 4)).astype(np.float32)
    again, asked = OnSameRecords(random_state=0), np.arange(60)
    for _ in range(2):
        targets = random.dirichlet(np.ones(3), 60)
        fresh = GaussianProcessStudent(random_state=0).fit_released(X, asked, targets)
        again = clone(again).fit_released(X, asked, targets)
        for some in (X, X[60:]):
            assert np.array_equal(again.predict_proba(some), fresh.predict_proba(some))
    with pytest.raises(InputError, match="other public records"):
        again.fit_released(X.copy(), asked, targets)
