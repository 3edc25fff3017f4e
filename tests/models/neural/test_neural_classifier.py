"""The estimator: scikit-learn's manners, the ensemble's protocol, and one line about bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from sklearn.base import clone  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from torch import nn  # noqa: E402

from collegium import Budgets, Uniform, load_dataset  # noqa: E402
from collegium.errors import ConfigError, InputError, ModelError  # noqa: E402
from collegium.models.batched import BatchedEstimator  # noqa: E402
from collegium.models.catalogue import build_model  # noqa: E402
from collegium.models.neural import machine  # noqa: E402
from collegium.models.neural.neural_classifier import NeuralClassifier  # noqa: E402
from collegium.models.neural.recipes import TrainingRecipe  # noqa: E402
from collegium.pate.teachers.ensemble import TeacherEnsemble  # noqa: E402


@pytest.fixture(autouse=True)
def one_core():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def table(n=90, seed=0):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, n)
    return (np.eye(3, 4)[y] * 2 + generator.normal(size=(n, 4))).astype(np.float32), y


def small(**options):
    settings = {"epochs": 8, "network_params": {"hidden": (8,)}, "random_state": 0}
    settings["learning_rate"] = 0.05
    return NeuralClassifier("mlp", **{**settings, **options})


def linear(n_classes, input_shape):
    return nn.Linear(input_shape[0], n_classes)


def test_manners_of_an_estimator():
    X, y = table()
    names = np.array(["ant", "bee", "cat"])[y]
    model = small()
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    model.fit(X, names)
    assert model.score(X, names) > 0.8
    assert list(model.classes_) == ["ant", "bee", "cat"]
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    again = clone(model).fit(pd.DataFrame(X), names)
    np.testing.assert_array_equal(again.predict_proba(X), shares)
    other = small(random_state=1).fit(X, names)
    assert not np.array_equal(other.predict_proba(X), shares)
    pipeline = make_pipeline(StandardScaler(), small()).fit(X, names)
    assert pipeline.score(X, names) > 0.8


def test_fitted_models_are_small_and_whole_when_pickled():
    X, y = table()
    (model,) = small().fit_shards([(X, y)], [0], 3)
    stored = pickle.dumps(model)
    numbers = model.sensitive_weights.nbytes + model.sensitive_averages.nbytes
    assert len(stored) < numbers + 1500
    np.testing.assert_array_equal(pickle.loads(stored).predict(X), model.predict(X))
    ordinary = model.module()(torch.from_numpy(X)).softmax(dim=1).detach().numpy()
    np.testing.assert_allclose(ordinary, model.predict_proba(X), atol=1e-5)


def test_a_shard_alone_and_among_others():
    """fit, fit_shards of one, and fit_shards of many make the same network."""
    shards = [table(n, seed=n) for n in (60, 45, 60, 31)]
    model = small()
    together = model.fit_shards(shards, [0, 1, 2, 3], 3)
    X, y = shards[2]
    (alone,) = model.fit_shards([(X, y)], [2], 3)
    fitted = small(random_state=2).fit(X, y)
    public, _ = table(40, seed=9)
    np.testing.assert_allclose(
        together[2].predict_proba(public), alone.predict_proba(public), atol=1e-3
    )
    np.testing.assert_array_equal(fitted.predict_proba(public), alone.predict_proba(public))
    for votes, one in zip(model.predict_shards(together, public), together, strict=True):
        assert (votes == one.predict(public)).mean() > 0.97  # up to rounding
    assert model.predict_shards([], public) == []


def test_in_an_ensemble():
    digits = load_dataset("digits")
    X, y = digits.X.reshape(len(digits.X), -1) / 16, np.asarray(digits.y)
    X = np.pad(X.reshape(-1, 8, 8), ((0, 0), (2, 2), (2, 2))).reshape(len(X), -1)
    budgets = Budgets.from_epsilons(np.ones(1200), 1e-5)
    assignment = Uniform().plan_for(budgets, 5).assign(budgets, b"public key")
    model = build_model("teachers.model", "small-cnn", {"epochs": 12})
    assert isinstance(model, BatchedEstimator)
    assert model.get_params()["network"] == "small-cnn"
    ensemble = TeacherEnsemble(model, seed=0, n_classes=10)
    teachers = ensemble.train(X[:1200], y[:1200], assignment)
    votes = ensemble.ask(teachers, X[1200:])
    assert votes.shape == (597, 5)
    assert (votes == y[1200:, None]).mean() > 0.85
    again = TeacherEnsemble(model.set_params(group_size=1), seed=0, n_classes=10)
    alone = again.train(X[:1200], y[:1200], assignment, teachers=[3])
    assert (again.ask(alone, X[1200:])[:, 0] == votes[:, 3]).mean() > 0.97


def test_studies_know_the_names():
    assert build_model("teachers.model", "seed-cnn", {"epochs": 3}).network == "seed-cnn"
    assert build_model("teachers.model", "mlp", {}).network == "mlp"
    with pytest.raises(ConfigError, match="epoch"):
        build_model("teachers.model", "mlp", {"epoch": 3})


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_shards_of_very_few_records(n):
    X, y = table()
    for patience, group_size in ((None, 1), (1, 1), (None, 2), (1, 2)):
        model = small(patience=patience, group_size=group_size)
        (tiny, usual) = model.fit_shards([(X[:n], y[:n]), (X, y)], [0, 1], 3)
        assert np.isfinite(tiny.predict_proba(X)).all()
        assert (usual.predict(X) == y).mean() > 0.7


def test_classes_that_a_shard_lacks_keep_their_numbers():
    X, y = table()
    rows = y != 1
    (model,) = small(epochs=30).fit_shards([(X[rows], y[rows])], [0], 3)
    assert model.predict_proba(X).shape == (90, 3)
    assert (model.predict(X[rows]) == y[rows]).mean() > 0.8


def test_one_class_only():
    X, _ = table()
    model = small().fit(X, np.full(90, "only"))
    assert set(model.predict(X)) == {"only"}


def test_images_in_every_form():
    images = np.random.default_rng(0).random((24, 12, 12)).astype(np.float32)
    y = np.arange(24) % 3
    model = NeuralClassifier("small-cnn", epochs=2, random_state=0)
    flat = model.fit(images.reshape(24, -1), y).predict_proba(images)
    square = clone(model).fit(images, y).predict_proba(images[:, None])
    np.testing.assert_array_equal(flat, square)
    colour = np.repeat(images[:, None], 3, axis=1)
    assert clone(model).fit(colour, y).model_.input_shape == (3, 12, 12)
    flat_colour = clone(model).set_params(input_shape=(3, 12, 12))
    assert flat_colour.fit(colour.reshape(24, -1), y).n_features_in_ == 432


def broken(n_classes, input_shape):
    raise RuntimeError("no such layer")


NAN = table()[0].copy()
NAN[7, 1] = np.nan
HUGE = table()[0].copy()
HUGE[7, 1] = 1e300 if HUGE.dtype == np.float64 else np.inf


@pytest.mark.parametrize(
    ("options", "X", "y", "error", "said"),
    [
        ({}, NAN, None, InputError, "NaN or infinity"),
        ({}, HUGE, None, InputError, "NaN or infinity"),
        ({}, np.full((90, 4), "Jane Doe"), None, InputError, "no numbers"),
        ({}, np.zeros(90), None, InputError, "(90,)"),
        ({}, np.zeros((90, 0)), None, InputError, "(90, 0)"),
        ({}, None, np.full(90, 3), InputError, "from 0 to 2"),
        ({}, None, np.full(90, -1), InputError, "from 0 to 2"),
        ({}, None, np.zeros(90), InputError, "float64"),
        ({}, None, np.zeros(89, int), InputError, "90 records"),
        ({"network": lambda n, s: nn.Linear(4, n + 1)}, None, None, ModelError, "(2, 4)"),
        ({"network": lambda n, s: nn.Linear(5, n)}, None, None, ModelError, "(4,)"),
        ({"network": lambda n, s: "a network"}, None, None, ModelError, "returned str"),
        ({"network": broken}, None, None, ModelError, "no such layer"),
        ({"network": "huge-cnn"}, None, None, InputError, "huge-cnn"),
        ({"network": 3}, None, None, InputError, "network=3"),
        ({"network": "seed-cnn"}, None, None, ModelError, "at least 4 × 4"),
        ({"network": "seed-cnn", "input_shape": (1, 2, 3)}, None, None, InputError, "(1, 2, 3)"),
        (
            {"epochs": 0},
            None,
            None,
            InputError,
            "epochs must be a whole number of at least 1, got 0",
        ),
        (
            {"epochs": 2.5},
            None,
            None,
            InputError,
            "epochs must be a whole number of at least 1, got 2.5",
        ),
        (
            {"learning_rate": 0},
            None,
            None,
            InputError,
            "learning_rate must be finite and greater than 0",
        ),
        (
            {"learning_rate": "fast"},
            None,
            None,
            InputError,
            "learning_rate must be a number, got 'fast'",
        ),
        (
            {"patience": 0},
            None,
            None,
            InputError,
            "patience must be a whole number of at least 1, got 0",
        ),
        ({"rotation": "x"}, None, None, InputError, "rotation must be a number, got 'x'"),
        ({"rotation": 181}, None, None, InputError, "rotation must lie between 0 and 180, got 181"),
        ({"rotation": float("nan")}, None, None, InputError, "must be a number, got nan"),
        ({"shift": -0.1}, None, None, InputError, "shift must lie between 0 and 1, got -0.1"),
        ({"shift": True}, None, None, InputError, "shift must be a number, got True"),
        ({"input_shape": 4}, None, None, InputError, "input_shape=4 was given; allowed are seq"),
        ({"input_shape": "4"}, None, None, InputError, "input_shape='4' was given"),
        ({"input_shape": (2.0, 2)}, None, None, InputError, "input_shape=(2.0, 2) was given"),
        ({"input_shape": (-2, -2)}, None, None, InputError, "input_shape=(-2, -2) was given"),
        ({"input_shape": ()}, None, None, InputError, "input_shape=() was given"),
        ({"augment": True}, None, None, InputError, "only images"),
        ({"augment": 1}, None, None, InputError, "augment must be true or false, got 1"),
        ({"device": "tpu"}, None, None, InputError, "tpu"),
        (
            {"group_size": 0},
            None,
            None,
            InputError,
            "group_size must be a whole number of at least 1, got 0",
        ),
        ({"precision": "float16"}, None, None, InputError, "float16"),
    ],
)
def test_bad_input_is_one_line_without_records(options, X, y, error, said):
    options = {"network_params": None, **options} if "network" in options else options
    options = {"epochs": 2, **options}
    good_X, good_y = table()
    X, y = (good_X if X is None else X), (good_y if y is None else y)
    network = options.pop("network", "mlp")
    model = NeuralClassifier(network, random_state=0, **options)
    with pytest.raises(error) as caught:
        model.fit_shards([(X, y)], [0], 3)
    message = str(caught.value)
    assert said in message
    assert "\n" not in message
    assert "Jane" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"schedule": "cosine"}, "one-cycle"),
        ({"label_smoothing": 1}, "label_smoothing must be at least 0 and below 1"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
    ],
)
def test_recipes_are_checked(setting, said):
    with pytest.raises(InputError, match=said):
        TrainingRecipe(**setting)


def test_there_are_at_most_fifteen_parameters():
    assert len(NeuralClassifier().get_params()) <= 15


def test_no_gpu_is_one_line(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="no GPU here"):
        small(device="cuda").fit(*table())


def test_without_pytorch_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'pip install "collegium\[torch\]"'):
        small()


def test_records_of_another_shape_are_refused_when_asked():
    X, y = table()
    model = small().fit(X, y)
    with pytest.raises(InputError, match=r"\(3,\)"):
        model.predict(X[:, :3])
