"""Clipped sums of networks: beside brute force, on the grid, within their bounds, and between neighbours."""

import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from collegium.dpsgd.grid import UNIT
from collegium.dpsgd.networks.by_layer import ByLayer
from collegium.dpsgd.networks.by_transform import ByTransform
from collegium.dpsgd.networks.owner_sums import Drawn, OwnerSums, per_record
from collegium.dpsgd.networks.parts import Outer, Rows


class Residual(nn.Module):
    """Not a plain sequence, with one layer that is used twice and one that is frozen."""

    def __init__(self):
        super().__init__()
        self.first, self.same, self.last = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.first.bias.requires_grad_(False)

    def forward(self, x):
        h = torch.tanh(self.first(x))
        h = h + torch.relu(self.same(h))
        return self.last(h + torch.relu(self.same(h)))


class Twofold(nn.Module):
    """Both its own parameters have one tensor as their gradient (as both biases of an LSTM)."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.one, self.other = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.ones(3))

    def forward(self, x):
        return torch.tanh(self.layer(x)) + (self.one + self.other)


def tanh_cnn():
    return nn.Sequential(
        nn.Conv2d(2, 4, (4, 3), (2, 1), padding=(1, 2)), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.GroupNorm(2, 4), nn.Conv2d(4, 6, 3, dilation=2), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.LazyLinear(8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 3, bias=False),
    )  # fmt: skip


NETWORKS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Sequential(nn.Linear(8, 3))), (6,)),
    "cnn": (tanh_cnn, (2, 16, 9)),
    "places": (
        lambda: nn.Sequential(
            nn.Linear(4, 5), nn.GELU(), nn.LayerNorm((7, 5)), nn.Flatten(), nn.Linear(35, 3)
        ),
        (7, 4),
    ),
    "residual": (Residual, (6,)),
    "twofold": (Twofold, (6,)),
}  # fmt: skip


def network(name, seed=0):
    torch.manual_seed(seed)
    make, shape = NETWORKS[name]
    module = make()
    with torch.no_grad():
        module(torch.zeros(2, *shape))  # gives lazy layers their shapes
    return module, shape


def data(shape, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn((n, *shape), generator=generator)
    return X, torch.randint(3, (n,), generator=generator)


def reader(X, y):
    return lambda rows, seeds: [(X[torch.from_numpy(rows)], y[torch.from_numpy(rows)])]


def drawn(counts, clips, weights=None):
    counts = np.asarray(counts)
    clips = np.broadcast_to(np.asarray(clips, dtype=float), counts.shape)
    weights = np.ones_like(clips) if weights is None else np.asarray(weights, dtype=float)
    n = counts.sum()
    seeds = torch.arange(n)
    return Drawn(np.arange(n), np.cumsum(counts) - counts, clips, weights, seeds, 0)


def gradient(module, X, y):
    trained = [p for p in module.parameters() if p.requires_grad]
    found = torch.autograd.grad(F.cross_entropy(module(X), y, reduction="sum"), trained)
    return torch.cat([each.flatten() for each in found]).double().numpy()


def brute_force(module, X, y, its, clip_norm):
    module = copy.deepcopy(module).double()
    total, ends = 0.0, np.append(its.starts[1:], len(its.rows))
    for first, last, clip, weight in zip(its.starts, ends, its.clips, its.weights, strict=True):
        rows = its.rows[first:last]
        owners = gradient(module, X[rows].double(), y[rows]) / clip_norm
        total = total + owners * min(weight, clip / np.linalg.norm(owners))
    return total


@pytest.mark.parametrize("counts", [[1] * 23, [1, 3, 1, 2, 9, 4, 1, 2]])
@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 5e-7), (torch.float32, 5e-6)])
@pytest.mark.parametrize("name", NETWORKS)
def test_sums_are_those_of_brute_force(name, counts, dtype, most):
    module, shape = network(name)
    X, y = data(shape, 23)
    module, X = module.to(dtype), X.to(dtype)
    rng = np.random.default_rng(1)
    its = drawn(counts, rng.uniform(0.5, 2, len(counts)), rng.uniform(0.5, 2, len(counts)))
    for clip_norm in (0.3, 5.0):  # all are clipped; few are
        total = OwnerSums(module, F.cross_entropy, clip_norm, micro_batch=8)
        found = total.clipped_sum(its, reader(X, y)) * UNIT
        expected = brute_force(module, X, y, its, clip_norm)
        assert np.linalg.norm(found - expected) <= most * np.linalg.norm(expected)


def test_plain_sequences_go_layer_by_layer_and_all_others_through_transforms():
    def way(*layers):
        return type(per_record(nn.Sequential(*layers), F.cross_entropy, torch.device("cpu")))

    class Own(nn.Linear):
        def forward(self, x):
            return super().forward(x) + x.mean(0)

    shared, hooked = nn.Linear(4, 4), nn.Linear(4, 4)
    hooked.register_forward_hook(lambda *_: None)
    assert way(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5)) is ByLayer
    for layers in (
        [Own(4, 4)],
        [shared, nn.Tanh(), shared],
        [hooked],
        [nn.Linear(4, 4), nn.ReLU(inplace=True)],
        [nn.Flatten(0, 1), nn.Linear(4, 4)],
        [nn.Conv2d(4, 4, 3, groups=2)],
        [nn.Conv2d(4, 4, 3, padding="same")],
        [nn.Embedding(4, 4), nn.Linear(4, 4)],
        [nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))],
    ):
        assert way(*layers) is ByTransform


@pytest.mark.parametrize("name", ["cnn", "residual"])
def test_micro_batches_and_order_change_no_more_than_rounding(name):
    module, shape = network(name)
    X, y = data(shape, 30)
    sums = [
        OwnerSums(module, F.cross_entropy, 0.1, size).clipped_sum(
            drawn([1] * 30, 1.0), reader(X, y)
        )
        for size in (1, 7, 64)
    ]
    for other in sums[1:]:
        assert np.linalg.norm((other - sums[0]) * UNIT) <= 30 * 2e-6


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-30, 1e-9, 1e-3, 1.0, 1e4, 1e18]),
    clip=st.floats(1e-7, 100),
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=1),
    way=st.sampled_from(["mlp", "cnn", "residual"]),
)
def test_no_contribution_is_longer_than_its_clip_after_rounding(seed, scale, clip, counts, way):
    """Whole numbers of grid steps, whose exact norm (in unbounded integers) is within the bound."""
    module, shape = network(way, seed % 3)
    X, y = data(shape, counts[0], seed)
    its = drawn(counts, clip, [1e12])
    total = OwnerSums(module, F.cross_entropy, 0.7, 4).clipped_sum(its, reader(scale * X, y))
    assert total.dtype == np.int64
    assert sum(int(entry) ** 2 for entry in total) <= (clip / UNIT) ** 2


def test_who_is_clipped_uses_the_whole_bound():
    module, shape = network("cnn")
    X, y = data(shape, 1)
    total = OwnerSums(module, F.cross_entropy, 1e-3).clipped_sum(drawn([1], 0.5), reader(X, y))
    assert 0.5 * (1 - 1e-6) < np.linalg.norm(total * UNIT) <= 0.5


@pytest.mark.parametrize("name", ["mlp", "cnn", "places", "residual"])
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e38])
@pytest.mark.parametrize("counts", [[1] * 6, [2, 2, 2]])
def test_what_is_no_number_counts_as_nothing_and_changes_nobody_else(name, poison, counts):
    module, shape = network(name)
    X, y = data(shape, 6)
    its = drawn(counts, 1.0)
    sums = OwnerSums(module, F.cross_entropy, 0.1, 8)
    X[1].flatten()[0] = poison
    found = sums.clipped_sum(its, reader(X, y))
    if counts[0] == 1:
        others = sum(
            sums.clipped_sum(drawn([1], 1.0), reader(X[i : i + 1], y[i : i + 1]))
            for i in range(6)
            if i != 1
        )
        apart = np.linalg.norm((found - others) * UNIT)
        assert apart <= (1.0 if poison == 1e38 else 1e-5)
    assert np.linalg.norm(found * UNIT) <= len(counts)
    everything_bad = sums.clipped_sum(its, reader(X * np.nan, y))
    assert (everything_bad == 0).all()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("counts", [[1] * 11, [3, 1, 4, 3]])
def test_record_and_replay_one_owner_moves_the_sum_by_at_most_the_clip(name, counts):
    """Other contributions are the same to the last bit, so that the bound holds without any tolerance."""
    module, shape = network(name)
    X, y = data(shape, 11)
    clips = np.linspace(0.5, 1.5, len(counts))
    its = drawn(counts, clips, clips)
    sums = OwnerSums(module, F.cross_entropy, 0.05, 4)
    whole = sums.clipped_sum(its, reader(X, y))
    ends = np.cumsum(counts)
    for owner in range(len(counts)):
        rows = slice(ends[owner] - counts[owner], ends[owner])
        for blank, most in ((True, 1), (False, 2)):
            X2, y2 = X.clone(), y.clone()
            X2[rows] = np.nan if blank else 3 * X[rows].flip(1)
            y2[rows] = (y[rows] + 1) % 3
            moved = whole - sums.clipped_sum(its, reader(X2, y2))
            squared = sum(int(entry) ** 2 for entry in moved)
            assert squared <= (most * clips[owner] / UNIT) ** 2
            assert squared >= (0.5 * clips[owner] / UNIT) ** 2  # and it does move


def test_mutant_clipping_record_by_record_is_noticed():
    """Nine records clipped one by one move a sum nine times as far as their owner may."""
    module, shape = network("mlp")
    X, y = data(shape, 1)
    X, y = X.repeat(9, 1), y.repeat(9)
    sums = OwnerSums(module, F.cross_entropy, 1e-3, 4)
    by_owner = sums.clipped_sum(drawn([9], 1.0), reader(X, y))
    by_record = sums.clipped_sum(drawn([1] * 9, 1.0), reader(X, y))
    assert np.linalg.norm(by_owner * UNIT) <= 1
    assert np.linalg.norm(by_record * UNIT) > 8.9


def test_variants_of_a_record_are_averaged_before_clipping():
    module, shape = network("mlp")
    X, y = data(shape, 5)
    other = X.flip(1)

    def variants(rows, seeds):
        return [
            (values[torch.from_numpy(rows)], y[torch.from_numpy(rows)]) for values in (X, other)
        ]

    clip_norm = 1.3  # some are clipped
    sums = OwnerSums(module, F.cross_entropy, clip_norm, 4)
    found = sums.clipped_sum(drawn([1] * 5, 1.0), variants)
    module, norms = module.double(), []
    expected = 0.0
    for i in range(5):
        both = [
            gradient(module, v[i : i + 1].double(), y[i : i + 1]) / clip_norm for v in (X, other)
        ]
        mean = np.mean(both, axis=0)
        norms.append(np.linalg.norm(mean))
        expected = expected + mean * min(1, 1 / np.linalg.norm(mean))
    assert min(norms) < 1 < max(norms)
    assert np.linalg.norm(found * UNIT - expected) <= 1e-6 * np.linalg.norm(expected)


def test_norms_of_many_numbers_are_computed_in_double_precision():
    """One large entry swallows thousands of small ones in single precision, and the bound with them."""
    row = torch.full((1, 2**16), 1e-4)
    row[0, 77] = 1.0
    exact = math.fsum(float(entry) ** 2 for entry in row[0])
    parts = Rows("w", row), Outer("w", torch.ones(1, 1), row, torch.empty(1, 1, 2**16))
    for part in parts:
        assert abs(float(part.squared_norms()[0]) - exact) <= 2**-26


def test_nobody_drawn_is_a_sum_of_zeros():
    module, shape = network("mlp")
    X, y = data(shape, 5)
    sums = OwnerSums(module, F.cross_entropy, 0.5, 4)
    assert (sums.clipped_sum(drawn(np.zeros(0, dtype=int), 1.0), reader(X, y)) == 0).all()


def test_a_loss_that_would_mix_a_batch_sees_one_record_at_a_time():
    module, shape = network("mlp")
    X, y = data(shape, 8)
    sizes = set()

    def contrast(outputs, targets):
        sizes.add(len(outputs))
        return ((outputs - outputs.mean(0)) ** 2).sum() + F.cross_entropy(outputs, targets)

    plain = OwnerSums(module, F.cross_entropy, 0.5, 4).clipped_sum(
        drawn([1] * 8, 1.0), reader(X, y)
    )
    found = OwnerSums(module, contrast, 0.5, 4).clipped_sum(drawn([1] * 8, 1.0), reader(X, y))
    assert sizes == {1}
    assert np.allclose(found * UNIT, plain * UNIT, atol=1e-5)


def test_dropout_draws_for_each_record():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Dropout(0.5), nn.Linear(40, 2))
    for module in (plain, Wrapped(plain)):
        X, y = torch.ones(8, 40), torch.zeros(8, dtype=torch.long)
        part = per_record(module, F.cross_entropy, torch.device("cpu")).parts(
            X, y, torch.arange(8)
        )[0]
        seen = part.rows(torch.ones(8, dtype=torch.float64)).numpy() != 0
        assert len(np.unique(seen, axis=0)) == 8
        assert 0.3 < seen.mean() < 0.7


def test_variants_of_a_record_have_masks_of_their_own():
    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(40, 2))
    X, y = torch.ones(1, 40), torch.zeros(1, dtype=torch.long)
    sums = OwnerSums(module, F.cross_entropy, 1e3, 4)
    found = sums.clipped_sum(drawn([1], 1.0), lambda rows, seeds: 2 * reader(X, y)(rows, seeds))
    assert len(np.unique(np.abs(found[:40]))) == 4  # left out of both, of either one, of none


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("first, second, record", [(1.0, 1e37, 1e-37), (0.0, 30.0, 3e38)])
@pytest.mark.parametrize("counts", [[1], [2]])
def test_gradients_that_leave_the_range_of_floats_on_the_way_stay_within_the_clip(
    first, second, record, counts
):
    """Factors beside huge errors, and products of errors and huge records that are summed unclipped."""
    module = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Linear(1, 2, bias=False))
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor([[first, 0.0]]))
        module[1].weight.copy_(torch.tensor([[second], [-second]]))
    X, y = torch.tensor([[record, record], [record, 0.0]]), torch.tensor([1, 1])
    sums = OwnerSums(module, F.cross_entropy, 0.5, 4)
    total = sums.clipped_sum(drawn(counts, 1.0), reader(X, y))
    assert np.linalg.norm(total * UNIT) <= 1
