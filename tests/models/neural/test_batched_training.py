"""A batched teacher is the teacher that a plain loop makes of its shard alone."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from reference_training import train_plainly  # noqa: E402
from torch import nn  # noqa: E402

from collegium.models.neural.blueprint import draw_up  # noqa: E402
from collegium.models.neural.groups import Shard, train_in_groups  # noqa: E402
from collegium.models.neural.machine import Machine  # noqa: E402
from collegium.models.neural.networks import mlp, seed_cnn, small_cnn  # noqa: E402
from collegium.models.neural.recipes import TrainingRecipe  # noqa: E402

CPU = torch.device("cpu")
EQUAL, UNEQUAL = (40, 40, 40), (41, 16, 33, 5, 2)


def shards_of(sizes, shape, n_classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    prototypes = torch.rand(n_classes, *shape, generator=generator)
    made = []
    for number, size in enumerate(sizes):
        y = torch.randint(0, n_classes, (size,), generator=generator)
        X = prototypes[y] + 0.3 * torch.randn(size, *shape, generator=generator)
        made.append(Shard(X, y, seed=100 + number))
    return made


def trained(factory, shards, recipe, *, group_size=None, by_hand=True, threads=1, n_classes=3):
    blueprint = draw_up(factory, n_classes, tuple(shards[0].X.shape[1:]), by_hand=by_hand)
    rows = train_in_groups(blueprint, recipe, shards, Machine(CPU, threads, group_size))
    return blueprint, [blueprint.module(*row) for row in rows]


def answers(modules, x):
    with torch.no_grad():
        return torch.stack([module(x) for module in modules])


def tiny_cnn(n_classes, input_shape):
    """Every kind of layer that is differentiated by hand, in a network that costs little."""
    return nn.Sequential(
        nn.Conv2d(input_shape[0], 6, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Conv2d(6, 4, (2, 3), dilation=(1, 2), padding=(0, 1)),
        nn.GELU(),
        nn.MaxPool2d(2, stride=1),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(36, 8, bias=False),
        nn.BatchNorm1d(8, affine=False),
        nn.ReLU(),
        nn.Linear(8, n_classes),
    )


class TwoWays(nn.Module):
    """No chain of layers: a sum of two, a layer norm, and a parameter that is not trained."""

    def __init__(self, n_classes, input_shape):
        super().__init__()
        self.first = nn.Linear(input_shape[0], 8)
        self.second = nn.Sequential(nn.Linear(input_shape[0], 8), nn.Tanh(), nn.Dropout(0.3))
        self.norm = nn.LayerNorm(8)
        self.scale = nn.Parameter(torch.full((1,), 2.0), requires_grad=False)
        self.batch = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, n_classes)

    def forward(self, x):
        return self.last(self.batch(self.norm(self.first(x) + self.second(x)) * self.scale))


# Adam divides by |g| + epsilon, so that with a small epsilon the rounding of a gradient that is nearly 0
# becomes a step of the size of the learning rate. With a larger one, rounding stays rounding.
CASES = {
    "seed cnn": (seed_cnn, (1, 10, 10), TrainingRecipe(epochs=3, epsilon=1e-4)),
    "small cnn": (
        small_cnn,
        (2, 12, 11),
        TrainingRecipe(epochs=3, schedule="one-cycle", epsilon=1e-4),
    ),
    "tiny cnn": (
        tiny_cnn,
        (3, 10, 12),
        TrainingRecipe(epochs=3, label_smoothing=0.1, epsilon=1e-4),
    ),
    "perceptron": (
        lambda n, shape: mlp(n, shape, (12, 6), dropout=0.25),
        (7,),
        TrainingRecipe(epochs=5, augment=False, weight_decay=0.1, epsilon=1e-4),
    ),
    "two ways": (TwoWays, (6,), TrainingRecipe(epochs=4, augment=False, epsilon=1e-4)),
}


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize("stopping", [False, True], ids=["all epochs", "early stopping"])
@pytest.mark.parametrize("case", CASES)
def test_a_batched_teacher_equals_a_plain_loop(case, sizes, stopping):
    factory, shape, recipe = CASES[case]
    sizes = sizes if not stopping else tuple(size for size in sizes if size >= 5)
    if stopping:
        recipe = recipe.but({"patience": 1, "epochs": 6})
    shards = shards_of(sizes, shape)
    _, batched = trained(factory, shards, recipe, group_size=len(sizes))
    plain = [train_plainly(factory, shard.X, shard.y, shard.seed, 3, recipe) for shard in shards]
    x = shards_of((20,), shape, seed=9)[0].X
    difference = (answers(batched, x) - answers(plain, x)).abs().amax(dim=(1, 2))
    assert difference.max() < 5e-4, difference
    # The comparison can fail: other teachers answer otherwise.
    assert (answers(batched, x)[0] - answers(plain, x)[1]).abs().max() > 0.05


@pytest.mark.parametrize("case", CASES)
def test_grouping_changes_nothing(case):
    factory, shape, recipe = CASES[case]
    recipe = recipe.but({"patience": 2, "epochs": 5})
    shards = shards_of((30, 17, 30, 24, 9), shape)
    x = shards_of((20,), shape, seed=9)[0].X
    alone = answers(trained(factory, shards, recipe, group_size=1)[1], x)
    for group_size, threads in ((2, 1), (5, 1), (2, 2)):
        _, together = trained(factory, shards, recipe, group_size=group_size, threads=threads)
        assert (answers(together, x) - alone).abs().max() < 5e-4, (group_size, threads)


@pytest.mark.parametrize("case", [name for name in CASES if name != "two ways"])
def test_the_general_path_agrees_with_layers_by_hand(case):
    factory, shape, recipe = CASES[case]
    shards = shards_of((30, 17, 30), shape)
    x = shards_of((20,), shape, seed=9)[0].X
    by_hand, first = trained(factory, shards, recipe)
    mapped, second = trained(factory, shards, recipe, by_hand=False)
    assert (by_hand.method, mapped.method) == ("by hand", "mapped")
    assert (answers(first, x) - answers(second, x)).abs().max() < 5e-4


def test_teachers_stop_on_their_own():
    """Early stopping really stops some teachers before others, and before the last epoch."""
    shards = shards_of((40, 40, 40, 40), (7,))
    recipe = TrainingRecipe(epochs=40, augment=False, patience=2, learning_rate=0.02)
    epochs = {}

    def watch(number, describe):
        epochs[number] = describe()["epoch"]

    from collegium.models.neural.training import GroupTraining, Learner

    blueprint = draw_up(mlp, 3, (7,))
    learners = [
        Learner.of(number, shard.X, shard.y, shard.seed, recipe)
        for number, shard in enumerate(shards)
    ]
    rows = [blueprint.initial(shard.seed) for shard in shards]
    GroupTraining(blueprint, recipe, learners, rows, CPU).run(watch)
    assert len(set(epochs.values())) > 1
    assert max(epochs.values()) < recipe.epochs


def test_a_neighbour_of_another_shard_changes_nothing():
    """Not one bit flows from one shard to another, in values as well as in random numbers."""
    shards = shards_of((24, 30, 24), (7,))
    other = [shards[0], shards_of((30,), (7,), seed=5)[0], shards[2]]
    recipe = TrainingRecipe(epochs=4, augment=False, patience=2)
    blueprint = draw_up(lambda n, s: mlp(n, s, dropout=0.2), 3, (7,))
    machine = Machine(CPU, 1, group_size=3)
    before = train_in_groups(blueprint, recipe, shards, machine)
    after = train_in_groups(blueprint, recipe, other, machine)
    for number in (0, 2):
        assert torch.equal(before[number][0], after[number][0])
        assert torch.equal(before[number][1], after[number][1])
    assert not torch.equal(before[1][0], after[1][0])


@pytest.mark.parametrize("changed", [(31,), (29,), (70,), None])
@pytest.mark.parametrize("patience", [None, 2])
def test_the_size_of_another_shard_changes_not_one_bit(changed, patience):
    """One record more, one less, many more, or no such shard in the call: as a neighbour would have it."""
    sizes = (24, 30, 50)
    shards = shards_of(sizes, (7,))
    others = [shards[0], *(shards_of(changed, (7,), seed=5) if changed else []), shards[2]]
    recipe = TrainingRecipe(epochs=20, augment=False, patience=patience)
    blueprint = draw_up(mlp, 3, (7,))
    before = train_in_groups(blueprint, recipe, shards, Machine(CPU, 2))
    after = train_in_groups(blueprint, recipe, others, Machine(CPU, 2))
    for ours, theirs in ((0, 0), (2, -1)):
        assert torch.equal(before[ours][0], after[theirs][0])
        assert torch.equal(before[ours][1], after[theirs][1])


class Noisy(nn.Module):
    """Draws from PyTorch's global generator in its own way."""

    def __init__(self, n_classes, input_shape):
        super().__init__()
        self.last = nn.Linear(input_shape[0], n_classes)

    def forward(self, x):
        return self.last(x + torch.randn_like(x) if self.training else x)


class Branching(nn.Module):
    """Looks at its records to decide what to do, which cannot be mapped."""

    def __init__(self, n_classes, input_shape):
        super().__init__()
        self.last = nn.Linear(input_shape[0], n_classes)

    def forward(self, x):
        return self.last(x if x.sum() > 0 else x / 2)


@pytest.mark.parametrize("factory", [Noisy, Branching])
def test_what_cannot_be_mapped_is_trained_one_by_one(factory, caplog):
    shards = shards_of((20, 12, 20), (5,))
    recipe = TrainingRecipe(epochs=3, augment=False)
    blueprint, together = trained(factory, shards, recipe, group_size=3)
    assert blueprint.method == "singly"
    assert "one after another" in caplog.text
    _, alone = trained(factory, shards, recipe, group_size=1)
    x = shards_of((20,), (5,), seed=9)[0].X
    assert torch.equal(answers(together, x), answers(alone, x))


class Wordy(Branching):
    """Fails with one long line, as PyTorch does."""

    def forward(self, x):
        try:
            return super().forward(x)
        except RuntimeError:
            raise RuntimeError("this cannot be mapped because " + "of many words " * 50) from None


def test_why_networks_are_not_batched_is_said_once_and_shortly(caplog):
    for _ in range(2):  # training and voting each look at the network
        assert draw_up(Wordy, 3, (5,)).method == "singly"
    (record,) = caplog.records
    message = record.getMessage()
    assert "(this cannot be mapped because of many words" in message
    assert message.endswith("[...]): its teachers are trained one after another")
    assert len(message) < 220 and "\n" not in message
    draw_up(Wordy, 4, (5,))
    assert len(caplog.records) == 2, "another network is another line"


def smooth(n_classes, input_shape):
    return nn.Sequential(nn.Flatten(), nn.Linear(100, 16), nn.Tanh(), nn.Linear(16, n_classes))


@pytest.mark.parametrize(
    ("factory", "by_hand"), [(seed_cnn, True), (smooth, True), (smooth, False)]
)
def test_bfloat16_is_close_and_not_the_same(factory, by_hand):
    shards = shards_of((40, 40), (1, 10, 10))
    recipe = TrainingRecipe(epochs=4)
    x = shards_of((30,), (1, 10, 10), seed=9)[0].X
    _, exact = trained(factory, shards, recipe)
    blueprint = draw_up(factory, 3, (1, 10, 10), torch.bfloat16, by_hand)
    for group_size in (1, 2):
        rows = train_in_groups(blueprint, recipe, shards, Machine(CPU, 1, group_size))
        rough = answers([blueprint.module(*row) for row in rows], x)
        difference = (rough - answers(exact, x)).abs().max()
        assert 1e-4 < difference < 0.5, group_size


def test_precision_that_cannot_be_mapped_is_not_used(caplog):
    blueprint = draw_up(seed_cnn, 3, (1, 10, 10), torch.bfloat16, by_hand=False)
    if blueprint.precision == torch.float32:  # PyTorch's batch normalisation may learn it one day
        assert "using float32" in caplog.text
    assert blueprint.method == "mapped"


def test_results_do_not_depend_on_the_global_generator():
    shards = shards_of((20, 20), (7,))
    recipe = TrainingRecipe(epochs=2, augment=False)
    torch.manual_seed(1)
    _, first = trained(mlp, shards, recipe)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    _, second = trained(mlp, shards, recipe)
    assert torch.equal(before, torch.get_rng_state())
    x = shards[0].X
    assert torch.equal(answers(first, x), answers(second, x))


def test_batches_are_a_tenth_of_the_shard():
    recipe = TrainingRecipe()
    for records in (1, 2, 15, 16, 17, 100, 159, 240, 241, 1000, 5000):
        sizes = recipe.batch_sizes(records)
        assert sum(sizes) == records
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= max(16, min(64, round(records / 10)))
    assert recipe.batch_sizes(240) == [24] * 10
    assert np.mean(recipe.batch_sizes(1000)) > 60
