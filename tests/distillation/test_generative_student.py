"""PATE-G: a student that learns beside a generator, on small images."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

torch = pytest.importorskip("torch")

from collegium.distillation import generative_student_training as training  # noqa: E402
from collegium.distillation.generative_student import GenerativeStudent  # noqa: E402
from collegium.distillation.generative_student_networks import (  # noqa: E402
    Noisy,
    classifier,
    generator,
    settle,
)
from collegium.errors import InputError, NothingReleasedError  # noqa: E402

IMAGES, DIGITS = load_digits(return_X_y=True)
FEW = np.flatnonzero(DIGITS < 4)
PUBLIC, PUBLIC_DIGITS = IMAGES[FEW[:400]], DIGITS[FEW[:400]]
NEW, NEW_DIGITS = IMAGES[FEW[400:]], DIGITS[FEW[400:]]


def student(**changed):
    settings = {
        "input_shape": (1, 8, 8),
        "hidden": (64, 32),
        "noise_size": 16,
        "epochs": 30,
        "batch_size": 50,
        "device": "cpu",
    }
    return GenerativeStudent(**{**settings, **changed})


def answers(n=40, wrong=0, seed=0):
    queries = np.random.default_rng(seed).permutation(400)[:n]
    labels = PUBLIC_DIGITS[queries].copy()
    labels[:wrong] = (labels[:wrong] + 1) % 4
    return queries, np.eye(4)[labels]


def test_it_learns_from_few_answers_some_of_which_are_wrong():
    fitted = student().fit_released(PUBLIC, *answers(40, wrong=4))
    assert fitted.score(NEW, NEW_DIGITS) > 0.8
    assert fitted.steps_ == 30 * 8


def test_its_generator_makes_records_like_the_public_ones():
    """Mean pixels are nearer to the public ones than those of the generator that it started as."""
    fitted = student().fit_released(PUBLIC, *answers())
    noise = torch.rand((500, 16), generator=torch.Generator().manual_seed(0))
    mean = torch.from_numpy(PUBLIC / 16).float().mean(0)
    with torch.no_grad():
        made = fitted.generator_(noise)
        before = generator(16, 64, bounded=True, seed=1).train()(noise)
    assert made.shape == (500, 64) and made.min() >= 0 and made.max() <= 1
    assert (made.mean(0) - mean).norm() < 0.6 * (before.mean(0) - mean).norm()


def test_losses_are_those_of_one_more_class():
    """With the output of "generated" fixed at 0: cross entropy of m + 1 classes, of what is known of each."""
    real, fake = torch.randn(20, 4), torch.randn(20, 4)
    zeros = torch.zeros(20, 1)
    logs = [torch.cat([one, zeros], dim=1).log_softmax(1) for one in (real, fake)]
    wanted = -(logs[0][:, :4].logsumexp(1).mean() + logs[1][:, 4].mean()) / 2
    assert torch.allclose(training.unlabelled_loss(real, fake), wanted, atol=1e-6)


def test_features_are_matched_by_the_generator_alone():
    """What the generator lessens is the distance of mean features, and moves public records' ones nowhere."""
    network = classifier(6, 3, (8, 5), seed=0).eval()
    known, real = torch.rand(10, 6), torch.rand(30, 6, requires_grad=True)
    fake = torch.rand(30, 6, requires_grad=True)
    losses = training._losses(network, known, torch.zeros(10, 3), real, fake, 1.0)
    with torch.no_grad():
        wanted = (network[:-1](real).mean(0) - network[:-1](fake).mean(0)).square().mean()
        judged = training.unlabelled_loss(network(real), network(fake))
    assert torch.allclose(losses[1], wanted, atol=1e-7)
    assert torch.allclose(losses[0], judged, atol=1e-6)  # answers that say nothing have no loss
    of_real, of_fake = torch.autograd.grad(losses[1], [real, fake], allow_unused=True)
    assert of_real is None and of_fake.abs().sum() > 0


def test_hidden_layers_cannot_outgrow_their_noise():
    """After training their weights are as long as where layers had been scaled to a variance of 1."""
    fitted = student(epochs=3).fit_released(PUBLIC, *answers())
    network = classifier(64, 4, (64, 32), seed=0)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(0))
    settle(network, torch.from_numpy(PUBLIC / 16).float()[order])
    before, after = (
        [layer.weight.norm(dim=1) for layer in one if isinstance(layer, torch.nn.Linear)]
        for one in (network, fitted.network_)
    )
    for hidden in (0, 1):
        assert torch.allclose(before[hidden], after[hidden], rtol=1e-4)
    assert not torch.allclose(before[2], after[2], rtol=1e-2)


def test_features_are_what_it_learns_from():
    few = student(features="scattering", n_components=20, epochs=25, hidden=(32,))
    fitted = few.fit_released(PUBLIC.reshape(-1, 8, 8), *answers())
    assert fitted.score(NEW.reshape(-1, 8, 8), NEW_DIGITS) > 0.9
    assert fitted.network_[1].in_features == 20
    assert fitted.generator_(torch.rand(3, 16)).shape == (3, 20)
    kept = pickle.loads(pickle.dumps(fitted))
    new = NEW.reshape(-1, 8, 8)[:30]
    assert np.array_equal(kept.predict_proba(new), fitted.predict_proba(new))


def test_layers_start_with_outputs_of_variance_one():
    network = classifier(64, 4, (32, 16), seed=0).eval()
    records = torch.from_numpy(PUBLIC / 16).float()
    settle(network, records)
    x = records
    for layer in network:
        x = layer(x)
        if isinstance(layer, torch.nn.Linear):
            varying = x.std(0) > 1e-3
            assert varying.float().mean() > 0.9
            assert torch.allclose(x.mean(0), torch.zeros(x.shape[1]), atol=1e-3)
            assert torch.allclose(x.std(0)[varying], torch.ones(int(varying.sum())), atol=1e-2)


def test_noise_is_for_training_only():
    noisy = Noisy(0.5)
    x = torch.zeros(2000)
    assert float(noisy.train()(x).std()) == pytest.approx(0.5, abs=0.05)
    assert torch.equal(noisy.eval()(x), x)


def test_the_same_seed_gives_the_same_student_and_leaves_torch_alone():
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    first = student(epochs=2).fit_released(PUBLIC, *answers())
    assert torch.rand(1) == expected
    second = clone(student(epochs=2)).fit_released(PUBLIC, *answers())
    other = student(epochs=2, random_state=1).fit_released(PUBLIC, *answers())
    believed = first.predict_proba(NEW)
    assert np.array_equal(believed, second.predict_proba(NEW))
    assert not np.array_equal(believed, other.predict_proba(NEW))
    assert believed.sum(axis=1) == pytest.approx(1)
    kept = pickle.loads(pickle.dumps(first))
    assert np.array_equal(believed, kept.predict_proba(NEW))
    assert not hasattr(kept, "generator_")


def test_only_public_records_and_answers_are_looked_at(monkeypatch):
    seen = []
    train = training.train
    monkeypatch.setattr(
        training,
        "train",
        lambda network, lesson, *rest: (seen.append(lesson), train(network, lesson, *rest))[1],
    )
    queries, targets = answers()
    student(epochs=1).fit_released(PUBLIC, queries, targets)
    (lesson,) = seen
    assert np.allclose(lesson.records * 16, PUBLIC)
    assert lesson.evidence.shape == (40, 4) and np.array_equal(lesson.answered, queries)


def test_tables_and_plain_labels_work_too():
    generator = np.random.default_rng(0)
    X = generator.normal(5, 3, size=(300, 6))
    y = np.where(X[:, 0] + X[:, 1] > 10, "up", "down")
    fitted = student(input_shape=None).fit(X, y)
    assert fitted.score(X, y) > 0.85
    assert fitted.classes_.tolist() == ["down", "up"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 1}, "batch_size"),
        ({"hidden": ()}, "one a layer"),
        ({"hidden": (0,)}, "each of hidden"),
        ({"noise_size": 0}, "noise_size"),
        ({"n_components": 0}, "n_components"),
        ({"features": "wavelets"}, "features must be"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"generated_weight": -1.0}, "generated_weight"),
        ({"input_shape": (1, 7, 8)}, "input_shape"),
        ({"device": "abacus"}, "device"),
    ],
)
def test_parameters_out_of_range_are_refused(changed, said):
    with pytest.raises(InputError, match=said):
        student(**changed).fit_released(PUBLIC, *answers())


def test_what_cannot_be_learnt_or_predicted_is_refused():
    with pytest.raises(NothingReleasedError):
        student().fit_released(PUBLIC, [], np.empty((0, 4)))
    fitted = student(epochs=1).fit_released(PUBLIC, *answers())
    with pytest.raises(InputError, match="prepare them in the same way"):
        fitted.predict(NEW[:, :60])


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("collegium.models.neural.machine.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"collegium\[torch\]"):
        student().fit_released(PUBLIC, *answers())
