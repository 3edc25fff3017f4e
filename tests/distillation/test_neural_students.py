"""Neural students: pseudo-labels, FixMatch and virtual adversarial training on small images."""

import pickle

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits

torch = pytest.importorskip("torch")

from collegium.distillation import neural_training  # noqa: E402
from collegium.distillation.augmented_views import Views  # noqa: E402
from collegium.distillation.graph import GraphStudent  # noqa: E402
from collegium.distillation.losses import (  # noqa: E402
    consistency_loss,
    entropy,
    evidence_loss,
    soft_loss,
    virtual_adversarial_loss,
)
from collegium.distillation.neural_student import METHODS, NeuralStudent  # noqa: E402
from collegium.distillation.neural_training import hidden_values  # noqa: E402
from collegium.distillation.student_network import student_network  # noqa: E402
from collegium.errors import InputError  # noqa: E402

IMAGES, DIGITS = load_digits(return_X_y=True)
FEW = np.flatnonzero(DIGITS < 4)
PUBLIC, PUBLIC_DIGITS = IMAGES[FEW[:400]], DIGITS[FEW[:400]]
NEW, NEW_DIGITS = IMAGES[FEW[400:]], DIGITS[FEW[400:]]
GUIDE = GraphStudent(n_components=20, coupling=8.0, mistrust=0.02)


def small_network(n_classes, input_shape):
    return student_network(n_classes, input_shape, width=4, dropout=0.0)


def student(**changed):
    settings = {
        "guide": GUIDE,
        "network": small_network,
        "input_shape": (1, 8, 8),
        "epochs": 6,
        "batch_size": 40,
        "device": "cpu",
    }
    return NeuralStudent(**{**settings, **changed})


def release(signal, n=400, seed=0):
    generator = np.random.default_rng(seed)
    queries = generator.permutation(400)[:n]
    noisy = signal * np.eye(4)[PUBLIC_DIGITS[queries]] + generator.normal(size=(n, 4))
    return queries, softmax(signal * noisy, axis=1)


# ---------------------------------------------------------------- losses


def test_soft_loss_is_cross_entropy():
    logits = torch.randn(20, 5, generator=torch.Generator().manual_seed(0)) * 30
    targets = torch.rand(20, 5, generator=torch.Generator().manual_seed(1)).softmax(dim=1)
    exact = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    assert torch.allclose(soft_loss(logits, targets), exact, atol=1e-4)


def test_evidence_loss_is_least_at_the_true_shares_and_not_at_the_posteriors():
    """One network output for all records, 30 % of class 0, answers of half a standard deviation."""
    generator = np.random.default_rng(0)
    classes = (generator.random(60_000) > 0.3).astype(int)
    noisy = 0.5 * np.eye(2)[classes] + generator.normal(size=(60_000, 2))
    evidence = torch.from_numpy(0.5 * noisy)
    shares = np.linspace(0.05, 0.95, 91)
    losses = [
        float(evidence_loss(torch.tensor([[p, 1 - p]]).log().expand(60_000, 2), evidence).mean())
        for p in shares
    ]
    assert shares[int(np.argmin(losses))] == pytest.approx(0.3, abs=0.05)


def test_adversarial_direction_is_worse_than_a_random_one():
    torch.manual_seed(0)
    network = student_network(3, (6,), dropout=0.0).eval()
    records = torch.randn(64, 6)
    logits = network(records)
    worst = virtual_adversarial_loss(
        network, records, logits, 1.0, torch.Generator().manual_seed(0)
    )
    random = torch.nn.functional.normalize(torch.randn(64, 6), dim=1)
    changed = network(records + random).log_softmax(1)
    plain = (logits.softmax(1) * (logits.log_softmax(1) - changed)).sum(1)
    assert worst.mean() > 1.5 * plain.mean()
    assert (worst >= -1e-6).all()


def test_no_gradient_flows_through_the_weak_view():
    weak = torch.tensor([[9.0, 0.0]], requires_grad=True)
    strong = torch.zeros(1, 2, requires_grad=True)
    consistency_loss(weak, strong, 0.9).sum().backward()
    assert weak.grad is None
    assert strong.grad is not None
    assert float(entropy(torch.zeros(1, 4))) == pytest.approx(np.log(4))


def test_strong_views_change_more_than_weak_ones():
    images = torch.from_numpy(PUBLIC[:50].reshape(-1, 1, 8, 8)).float()
    views, generator = Views(), torch.Generator().manual_seed(0)
    weak = (views.weak(images, generator) - images).abs().mean()
    strong = (views.strong(images, generator) - images).abs().mean()
    assert 0 < weak < strong
    vectors = torch.ones(200, 30)
    assert torch.equal(views.weak(vectors, generator), vectors)
    assert float(views.strong(vectors, generator).mean()) == pytest.approx(0.7, abs=0.05)


# ---------------------------------------------------------------- students


@pytest.mark.parametrize("method", METHODS)
def test_each_method_learns_from_answers_that_say_little_each(method):
    queries, targets = release(signal=1.0)
    assert (targets.argmax(axis=1) == PUBLIC_DIGITS[queries]).mean() < 0.75
    fitted = student(method=method).fit_released(PUBLIC, queries, targets)
    assert fitted.score(NEW, NEW_DIGITS) > 0.85
    fitted.guide_share = 0.5  # both together
    assert fitted.score(NEW, NEW_DIGITS) > 0.9


@pytest.mark.parametrize("method", ["fixmatch", "vat"])
def test_consistency_needs_no_guide(method):
    queries, targets = release(signal=4.0, n=100)
    fitted = student(method=method, guide=None, epochs=10).fit_released(PUBLIC, queries, targets)
    assert fitted.guide_ is None
    assert fitted.score(NEW, NEW_DIGITS) > 0.85


def test_the_same_seed_gives_the_same_student_and_leaves_torch_alone():
    queries, targets = release(signal=2.0)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    first = student(epochs=2).fit_released(PUBLIC, queries, targets)
    assert torch.rand(1) == expected
    second = clone(student(epochs=2)).fit_released(PUBLIC, queries, targets)
    other = student(epochs=2, random_state=1).fit_released(PUBLIC, queries, targets)
    believed = first.predict_proba(NEW)
    assert np.array_equal(believed, second.predict_proba(NEW))
    assert not np.array_equal(believed, other.predict_proba(NEW))
    assert np.array_equal(believed, pickle.loads(pickle.dumps(first)).predict_proba(NEW))
    assert believed.sum(axis=1) == pytest.approx(1)


def test_a_second_round_joins_what_the_network_finds_similar():
    queries, targets = release(signal=1.0)
    fitted = student(rounds=2).fit_released(PUBLIC, queries, targets)
    assert fitted.steps_ == 2 * 6 * 10
    assert (fitted.beliefs_.argmax(axis=1) == PUBLIC_DIGITS).mean() > 0.9
    seen = hidden_values(
        fitted.network_, np.zeros((3, 1, 8, 8), dtype=np.float32), torch.device("cpu")
    )
    assert seen.shape == (3, 128)


def test_there_are_at_most_fifteen_parameters():
    assert len(NeuralStudent().get_params()) <= 15


def test_tables_and_plain_labels_work_too():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 6))
    y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    fitted = NeuralStudent(epochs=5, batch_size=50, device="cpu").fit(X, y)
    assert fitted.score(X, y) > 0.85
    assert fitted.classes_.tolist() == ["down", "up"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"method": "mixmatch"}, "one of self-training, fixmatch, vat"),
        ({"guide": None}, "need a guide"),
        ({"guide": "oracle"}, "a student or None"),
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 1}, "batch_size"),
        ({"confidence": 2.0}, "confidence"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"input_shape": (1, 7, 8)}, "input_shape"),
        ({"device": "abacus"}, "device"),
    ],
)
def test_parameters_out_of_range_are_refused(changed, said):
    queries, targets = release(signal=2.0)
    with pytest.raises(InputError, match=said):
        student(**changed).fit_released(PUBLIC, queries, targets)


def test_other_shapes_are_refused_at_predict():
    queries, targets = release(signal=2.0)
    fitted = student(epochs=1).fit_released(PUBLIC, queries, targets)
    with pytest.raises(InputError, match="prepare them in the same way"):
        fitted.predict(NEW[:, :60])


def test_without_torch_the_extra_is_named(monkeypatch):
    queries, targets = release(signal=2.0)
    monkeypatch.setattr("collegium.models.neural.machine.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"collegium\[torch\]"):
        student().fit_released(PUBLIC, queries, targets)


def test_a_single_answer_is_enough_without_a_guide():
    for method in ("fixmatch", "vat"):
        fitted = student(method=method, guide=None, epochs=1)
        fitted.fit_released(PUBLIC, [3], np.full((1, 4), 0.1) + 0.6 * np.eye(4)[[1]])
        assert np.isfinite(fitted.predict_proba(NEW)).all()


@pytest.mark.parametrize("answers", [400, 30])
def test_dropout_is_no_adversary(answers, monkeypatch):
    """All passes of a step drop out the same, so that nothing diverges where nothing is changed."""
    seen = []

    def spy(network, records, logits, radius, generator):
        seen.append(float((network(records) - logits).detach().abs().max()))
        return virtual_adversarial_loss(network, records, logits, radius, generator)

    monkeypatch.setattr(neural_training, "virtual_adversarial_loss", spy)

    def dropping_out(n_classes, input_shape):
        return student_network(n_classes, input_shape, width=4, dropout=0.5)

    queries, targets = release(signal=4.0, n=answers)
    made = student(method="vat", guide=None, epochs=1, network=dropping_out)
    made.fit_released(PUBLIC, queries, targets)
    assert len(seen) == 10
    assert max(seen) < 1e-5
