"""DP-GAN: what is private is one noisy sum a step, and everything else follows from what it released."""

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import collegium as cg  # noqa: E402
from collegium.dpsgd.grid import UNIT  # noqa: E402
from collegium.dpsgd.networks import owner_sums, private_steps  # noqa: E402
from collegium.errors import InputError  # noqa: E402
from collegium.generative import dp_gan_training  # noqa: E402
from collegium.generative.dp_gan import DPGAN  # noqa: E402
from collegium.generative.dp_gan_fakes import ImageFakes, TableFakes  # noqa: E402
from collegium.generative.dp_gan_training import (  # noqa: E402
    Course,
    FakeGradient,
    cap_spectral_norms,
    realness_loss,
)
from collegium.generative.image_networks import image_discriminator, seen  # noqa: E402

SCHEMA = cg.Schema(
    {
        "age": {"kind": "whole", "bounds": [0, 99], "bins": [0, 30, 60, 99], "missing": False},
        "smokes": {"kind": "flag", "missing": False},
        "town": {"kind": "category", "categories": ["A", "B", "C"]},
    }
)
EPSILONS = {"low": 1.0, "high": 3.0}
SMALL = {"steps": 12, "rate": 0.4, "hidden": 8, "noise_size": 4, "batch_size": 16, "noise_seed": 3}


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    smokes = rng.random(n) < 0.5
    age = np.where(smokes, 70, 20) + rng.integers(0, 10, n)
    return pd.DataFrame({"age": age, "smokes": smokes, "town": rng.choice(list("AABC"), n)})


def images(n=120, seed=0, shape=(4, 4)):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, n)
    return rng.random((n, *shape)) * 16 * classes[:, None, None], classes


def budgets(n=120, **epsilons):
    return cg.Policy(epsilons or EPSILONS).assign((["low", "high", "low"] * n)[:n])


def model(records=SCHEMA, **changed):
    return DPGAN(records, **{**SMALL, "random_state": 1, **changed})


def of_images(**changed):
    return model((4, 4), classes=[0, 1], bounds=(0, 16), **changed)


class Recorder:
    """Noise that keeps each private sum; it releases what was recorded before, where something was."""

    is_private, description = True, "recorded"

    def __init__(self, releases=None):
        self.totals, self.noises, self.released = [], [], []
        self._releases = releases

    def noised(self, total, noise, *, query, purpose):
        self.totals.append(total.copy())
        self.noises.append(noise)
        if self._releases is not None:
            return self._releases[query]
        drawn = np.random.default_rng([7, query]).normal(0, noise.scale, total.shape)
        self.released.append(total + np.rint(drawn).astype(np.int64))
        return self.released[-1]


def recorded(monkeypatch, make, X, y=None, releases=None, its=None):
    recorder = Recorder(releases)
    with monkeypatch.context() as patch:
        patch.setattr(private_steps, "noise_from", lambda seed: recorder)
        fitted = make().fit(X, y, budgets=its or budgets(len(X)))
    return fitted, recorder


def numbers(network):
    return torch.cat([p.detach().flatten() for p in network.parameters()]).numpy()


# ---------------------------------------------------------------- the account


@pytest.mark.parametrize("rate", [0.4, 1.0])
def test_the_account_is_that_of_the_plan(rate):
    its = budgets()
    fitted = model(rate=rate).fit(table(), budgets=its)
    kind = {} if rate == 1 else {"kind": "sample", "rate": rate}
    plan = cg.plan_dpsgd(its.groups, its.public_sizes(), steps=12, **kind)
    assert fitted.plan_ == plan
    spent = {group.group: group.epsilon_spent for group in fitted.privacy_.groups}
    assert spent == pytest.approx(plan.epsilon(), rel=1e-9)
    assert all(0.9 * EPSILONS[name] < spent[name] <= EPSILONS[name] for name in spent)
    assert not fitted.privacy_.noise_is_private  # seeded
    assert (
        model(noise_seed=None, steps=2, rate=1.0)
        .fit(table(), budgets=its)
        .privacy_.noise_is_private
    )


def test_each_step_is_one_noisy_sum_with_the_plans_noise_and_charged_before(monkeypatch):
    log = []

    class Noted(Recorder):
        def noised(self, total, noise, *, query, purpose):
            log.append(("drawn", query + 1))
            return super().noised(total, noise, query=query, purpose=purpose)

    recorder = Noted()
    monkeypatch.setattr(private_steps, "noise_from", lambda seed: recorder)
    fitted = model().fit(
        table(), budgets=budgets(), charge=lambda number: log.append(("charged", number))
    )
    assert log == [(what, number) for number in range(1, 13) for what in ("charged", "drawn")]
    assert {noise.scale for noise in recorder.noises} == {fitted.plan_.noise / UNIT}
    assert {len(total) for total in recorder.totals} == {fitted.n_parameters_}


# ---------------------------------------------------------------- record and replay


def check_replay(monkeypatch, make, one, other, who):
    """Run on neighbours that differ in one person, with what the first run released.

    Each private sum differs by at most what that person may move it by, twice; all else is the same.
    """
    first, before = recorded(monkeypatch, make, *one)
    second, after = recorded(monkeypatch, make, *other, releases=before.released)
    most = first.plan_.groups[budgets().record_groups()[who]].clip / UNIT
    moved = [
        float(np.linalg.norm((a - b).astype(float)))
        for a, b in zip(before.totals, after.totals, strict=True)
    ]
    assert max(moved) <= 2 * most
    assert np.array_equal(numbers(first.generator_), numbers(second.generator_))
    return moved, most


def replaced(who=5):
    X, y = images()
    changed, other = X.copy(), y.copy()
    changed[who], other[who] = 16 * np.random.default_rng(9).random((4, 4)), 1 - y[who]
    return (X, y), (changed, other), who


def test_another_record_moves_only_its_clipped_part_of_each_sum(monkeypatch):
    moved, _ = check_replay(monkeypatch, of_images, *replaced())
    assert max(moved) > 0 and min(moved) == 0  # who is not drawn moves nothing
    one = table()
    other = one.copy()
    other.loc[5] = [99, not one.smokes[5], "C"]
    moved, _ = check_replay(monkeypatch, model, (one,), (other,), 5)
    assert max(moved) > 0


def test_a_record_that_is_no_number_counts_as_nothing(monkeypatch):
    (X, y), _, who = replaced()
    broken = X.copy()
    broken[who] = np.nan
    moved, most = check_replay(monkeypatch, of_images, (X, y), (broken, y), who)
    assert 0 < max(moved) <= most


def test_the_generator_follows_from_what_was_released_whatever_the_records_are(monkeypatch):
    first, before = recorded(monkeypatch, of_images, *images())
    second, after = recorded(monkeypatch, of_images, *images(seed=5), releases=before.released)
    assert any((a != b).any() for a, b in zip(before.totals, after.totals, strict=True))
    assert np.array_equal(numbers(first.generator_), numbers(second.generator_))
    samples = [fitted.sample(20, random_state=0)[0] for fitted in (first, second)]
    assert np.array_equal(*samples)


def test_mutant_without_clipping_is_noticed(monkeypatch):
    def unclipped(norms, clips, weights):
        return np.where(
            np.isfinite(norms), 1e3 * np.append(weights, np.zeros(len(norms)))[: len(norms)], 0
        )

    monkeypatch.setattr(owner_sums, "_factors", unclipped)
    with pytest.raises(AssertionError):
        check_replay(monkeypatch, of_images, *replaced())


def test_mutant_whose_fakes_hold_a_real_record_is_noticed(monkeypatch):
    """Batch normalisation over fakes and records, or a penalty between them, is of this kind."""
    read, make = ImageFakes.read, ImageFakes.__call__

    def kept(self, X, y):
        self.mean = read(self, X, y).mean(0)
        return read(self, X, y)

    monkeypatch.setattr(ImageFakes, "read", kept)
    monkeypatch.setattr(
        ImageFakes, "__call__", lambda self, n, coins: make(self, n, coins) - self.mean
    )
    with pytest.raises(AssertionError):
        check_replay(monkeypatch, of_images, *replaced())


def test_mutant_with_batch_normalisation_is_refused(monkeypatch):
    def normalising(self, hidden):
        inputs = self.generator.blocks.width
        return nn.Sequential(nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))

    monkeypatch.setattr(TableFakes, "new_discriminator", normalising)
    with pytest.raises(InputError, match="mixes the records of a batch"):
        model().fit(table(), budgets=budgets())


def test_who_granted_nothing_is_never_read(monkeypatch):
    asked = []
    read = ImageFakes.read
    monkeypatch.setattr(
        ImageFakes, "read", lambda self, X, y: (asked.append(X.copy()), read(self, X, y))[1]
    )
    X, y = images()
    X[::3] = -1.0
    levels = ["none", "low", "high"] * 40
    its = cg.Policy({"none": 0, **EPSILONS}).assign(levels)
    with pytest.warns(cg.PrivacyWarning, match="granted nothing"):
        fitted = of_images().fit(X, y, budgets=its)
    assert len(asked) == 1 and asked[0].shape == (80, 4, 4) and asked[0].min() >= 0
    assert set(fitted.plan_.groups) == {"low", "high"}


# ---------------------------------------------------------------- the two parts of a step


@pytest.mark.parametrize("most", [0.05, 100.0])
def test_fakes_add_the_mean_of_their_clipped_gradients_after_the_noise(most):
    fakes = ImageFakes((1, 4, 4), [0, 1], (0, 1), network="mlp", noise_size=4, hidden=8, seed=0)
    discriminator = fakes.new_discriminator(8)
    course = Course(1e-3, 1e-3, 1, 1, 10, most)
    add = FakeGradient(discriminator, fakes, course, torch.Generator().manual_seed(4))
    with torch.no_grad():
        made = fakes(10, torch.Generator().manual_seed(4))
    wanted = 0.0
    for fake in made:
        loss = nn.functional.softplus(discriminator(fake[None])).sum()
        each = torch.autograd.grad(loss, list(discriminator.parameters()))
        gradient = torch.cat([g.flatten() for g in each])
        wanted = wanted + gradient * min(1.0, most / float(gradient.norm())) / 10
    for parameter in discriminator.parameters():
        parameter.grad = torch.full_like(parameter, 2.0)  # what noise and records made
    add()
    found = torch.cat([p.grad.flatten() for p in discriminator.parameters()])
    assert torch.allclose(found, 2 + wanted, atol=1e-6)


def test_losses_of_records_and_fakes_pull_apart():
    outputs = torch.tensor([[2.0], [2.0]])
    real, fake = realness_loss(outputs, torch.tensor([1.0, 0.0])).tolist()
    assert real == pytest.approx(np.log1p(np.exp(-2))) and fake == pytest.approx(
        np.log1p(np.exp(2))
    )


@pytest.mark.parametrize("network", ["mlp", "convolutional"])
def test_spectral_norms_are_at_most_one_after_each_step(network, monkeypatch):
    torch.manual_seed(0)
    made = image_discriminator((1, 8, 8), 2, hidden=16, network=network)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter *= 5
    cap_spectral_norms(made)
    layers = [layer for layer in made if hasattr(layer, "weight")]
    for layer in layers:
        matrix = layer.weight.detach().flatten(1).numpy()
        assert np.linalg.svd(matrix, compute_uv=False)[0] == pytest.approx(1, abs=1e-5)
    calls = []
    monkeypatch.setattr(
        dp_gan_training, "cap_spectral_norms", lambda given, least=1.0: calls.append(least)
    )
    X, y = images(shape=(8, 8))
    model((8, 8), classes=[0, 1], network=network, steps=3, rate=1.0).fit(X, y, budgets=budgets())
    assert calls == [0.0, 1.0, 1.0, 1.0]


def test_a_discriminator_takes_each_record_by_itself():
    for network in ("mlp", "convolutional"):
        made = image_discriminator((1, 8, 8), 3, hidden=16, network=network)
        batch = seen(torch.rand(4, 1, 8, 8), torch.eye(3)[[0, 1, 2, 0]], network)
        alone = torch.cat([made(batch[i : i + 1]) for i in range(4)])
        assert torch.allclose(made(batch), alone, atol=1e-6)


# ---------------------------------------------------------------- what comes of it


def test_a_table_with_ample_budgets_has_its_relations():
    """Seeded; seeds 0, 1 and 2 hold. Independent columns would have a distance of 0.5 in this pair."""
    its = cg.Policy({"all": 300.0}).assign(["all"] * 200)
    rows = table(200)
    fitted = model(
        steps=350,
        rate=1.0,
        hidden=32,
        batch_size=64,
        discriminator_rate=0.005,
        generator_rate=0.002,
        random_state=0,
    ).fit(rows, budgets=its)
    made = fitted.sample(4000, random_state=0)
    assert list(made.columns) == list(SCHEMA) and made.age.between(0, 99).all()
    pairs = [
        pd.crosstab(one.age >= 60, one.smokes, normalize=True).reindex(
            index=[False, True], columns=[False, True], fill_value=0.0
        )
        for one in (rows, made)
    ]
    assert np.abs(pairs[0].to_numpy() - pairs[1].to_numpy()).sum() / 2 < 0.25
    shares = made.town.value_counts(normalize=True)
    assert abs(shares["A"] - 0.5) < 0.2


@pytest.mark.parametrize("network", ["mlp", "convolutional"])
def test_images_have_their_class_and_bounds(network):
    y = np.arange(60) % 2
    X = 12 * y[:, None, None] + 2 * np.random.default_rng(0).random((60, 8, 8))
    its = cg.Policy({"all": 300.0}).assign(["all"] * 60)
    fitted = model(
        (8, 8), classes=["dark", "light"], bounds=(0, 16), network=network,
        steps={"mlp": 200, "convolutional": 120}[network],
        rate=1.0,
        hidden=32, discriminator_rate=0.005, generator_rate=0.002, batch_size=64, random_state=0,
    ).fit(X, np.where(y == 1, "light", "dark"), budgets=its)  # fmt: skip
    made, classes = fitted.sample(500, random_state=0)
    assert made.shape == (500, 8, 8) and made.min() >= 0 and made.max() <= 16
    assert set(classes) == {"dark", "light"}
    assert made[classes == "light"].mean() > made[classes == "dark"].mean() + 2


def test_by_default_about_300_people_are_in_a_step():
    its = cg.Policy({"all": 1.0}).assign(["all"] * 600)
    assert model(rate=None, steps=1).fit(table(600), budgets=its).plan_.groups["all"].rate == 0.5
    few = model(rate=None, steps=1).fit(table(), budgets=budgets())
    assert few.plan_.kind == "full-batch"


def test_samples_repeat_by_their_seed_alone():
    fitted = model(steps=2, rate=1.0).fit(table(), budgets=budgets())
    assert fitted.sample(50, random_state=1).equals(fitted.sample(50, random_state=1))
    assert not fitted.sample(50, random_state=1).equals(fitted.sample(50, random_state=2))
    assert not fitted.sample(50).equals(fitted.sample(50))
    assert len(fitted.sample(5000)) == 5000


def test_the_same_seeds_give_the_same_generator_and_leave_torch_alone():
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    one, two = (of_images().fit(*images(), budgets=budgets()) for _ in range(2))
    assert torch.rand(1) == expected
    assert np.array_equal(numbers(one.generator_), numbers(two.generator_))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("records", "changed", "said"),
    [
        (SCHEMA, {"steps": 0}, "steps"),
        (SCHEMA, {"rate": 0.0}, "rate"),
        (SCHEMA, {"rate": 1.5}, "rate"),
        (SCHEMA, {"hidden": 0}, "hidden"),
        (SCHEMA, {"max_grad_norm": 0.0}, "max_grad_norm"),
        (SCHEMA, {"classes": [0, 1]}, "has them in a column"),
        ((4, 4), {"network": "transformer"}, "mlp, convolutional"),
        ((4, 4), {"bounds": (1, 0)}, "the lower one first"),
        ((4, 4), {"classes": [1, 1]}, "at least two different names"),
        ((4,), {}, "shape of an image"),
        ((0, 4), {}, "each side"),
        ((6, 6), {"network": "convolutional"}, "multiples of 4"),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(records, changed, said):
    X = table() if records is SCHEMA else np.zeros((120, *records))
    with pytest.raises(InputError, match=said):
        model(records, **changed).fit(X, budgets=budgets())


def test_what_does_not_fit_together_is_refused():
    X, y = images()
    with pytest.raises(InputError, match="budgets of 100"):
        of_images().fit(X, y, budgets=budgets(100))
    with pytest.raises(InputError, match="or neither"):
        of_images().fit(X, budgets=budgets())
    with pytest.raises(InputError, match="not in the public list"):
        of_images().fit(X, y + 1, budgets=budgets())
    with pytest.raises(InputError, match="was declared"):
        of_images().fit(X[:, :3], y, budgets=budgets())
    with pytest.raises(InputError, match="leave it out"):
        model().fit(table(), y, budgets=budgets())
    fitted = model(steps=1, rate=1.0)
    with pytest.raises(InputError, match="call fit first"):
        fitted.sample(3)
    fitted.fit(table(), budgets=budgets())
    for n in (0, -1, 10**9, 2.5):
        with pytest.raises(InputError, match="n must be"):
            fitted.sample(n)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("collegium.models.neural.machine.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"collegium\[torch\]"):
        model().fit(table(), budgets=budgets())
