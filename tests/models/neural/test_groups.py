"""Groups fit: smaller ones when memory runs out, larger ones when networks are small."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from collegium.errors import ModelError  # noqa: E402
from collegium.models.neural import groups as module  # noqa: E402
from collegium.models.neural.blueprint import draw_up  # noqa: E402
from collegium.models.neural.groups import Shard, in_threads, train_in_groups  # noqa: E402
from collegium.models.neural.machine import Machine  # noqa: E402
from collegium.models.neural.networks import mlp, seed_cnn  # noqa: E402
from collegium.models.neural.predicting import ask_networks  # noqa: E402
from collegium.models.neural.recipes import TrainingRecipe  # noqa: E402
from collegium.models.neural.trained_network import TrainedNetwork  # noqa: E402

CPU = torch.device("cpu")
RECIPE = TrainingRecipe(epochs=2, augment=False)


def shards(count=7):
    generator = torch.Generator().manual_seed(0)
    return [
        Shard(torch.randn(20, 5, generator=generator), torch.arange(20) % 3, seed)
        for seed in range(count)
    ]


class Small:
    """Stands for a GPU with room for so many teachers: the rest of training is the real one."""

    def __init__(self, monkeypatch, room):
        self.tried = []
        original = module.GroupTraining

        def training(blueprint, recipe, learners, *rest):
            self.tried.append(len(learners))
            if len(learners) > room:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
            return original(blueprint, recipe, learners, *rest)

        monkeypatch.setattr(module, "GroupTraining", training)


def test_out_of_memory_means_smaller_groups_and_says_so(monkeypatch, caplog):
    blueprint = draw_up(mlp, 3, (5,))
    expected = train_in_groups(blueprint, RECIPE, shards(), Machine(CPU, 1, 7))
    small = Small(monkeypatch, room=2)
    rows = train_in_groups(blueprint, RECIPE, shards(), Machine(CPU, 1, 7))
    assert small.tried == [7, 3, 1, 1, 1, 1, 1, 1, 1]
    assert "out of memory with 7 teachers side by side: going on with 3" in caplog.text
    for (one, _), (other, _) in zip(expected, rows, strict=True):
        assert torch.allclose(one, other, atol=1e-3)


def test_not_even_one_fits(monkeypatch):
    Small(monkeypatch, room=0)
    with pytest.raises(ModelError, match="one teacher alone does not fit") as caught:
        train_in_groups(draw_up(mlp, 3, (5,)), RECIPE, shards(2), Machine(CPU, 1, 2))
    assert "\n" not in str(caught.value)


def test_on_a_processor_teachers_are_trained_alone_unless_groups_are_asked_for():
    machine = Machine(CPU, 1)
    assert machine.group_size_for(draw_up(seed_cnn, 10, (1, 28, 28)), TrainingRecipe(), 240) == 1
    assert machine.group_size_for(draw_up(mlp, 2, (14,)), RECIPE, 149) == 1
    assert Machine(CPU, 1, 5).group_size_for(draw_up(mlp, 2, (14,)), RECIPE, 149) == 5


def test_threads_are_given_back_and_failures_come_out():
    before = torch.get_num_threads()
    seen = set()
    both = threading.Barrier(2, timeout=1200)

    def work(numbers):
        both.wait()  # only two at a time get past
        seen.add((threading.get_ident(), torch.get_num_threads()))
        if numbers == [3]:
            raise ModelError("the fourth fails")
        return numbers

    stop = threading.Event()
    results = in_threads(work, [[0], [1], [2], [3]], 2, stop)
    with pytest.raises(ModelError, match="fourth"):
        list(results)
    assert len(seen) == 2
    assert {threads for _, threads in seen} == {1}
    assert torch.get_num_threads() == before
    assert stop.is_set()


def test_who_else_is_in_a_call_changes_not_one_bit_of_a_teacher_or_its_answers():
    """Neither whether anybody is: threads inside an operation would add in another order."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(2, 60, 1, 28, 28, generator=generator)
    y = torch.arange(60) % 10
    both = [Shard(X[0], y, 1), Shard(X[1], y, 2)]
    recipe = TrainingRecipe(epochs=2, augment=False)
    blueprint, machine = draw_up(seed_cnn, 10, (1, 28, 28)), Machine(CPU, 2)
    (alone,) = train_in_groups(blueprint, recipe, both[:1], machine)
    first, second = train_in_groups(blueprint, recipe, both, machine)
    assert torch.equal(alone[0], first[0])
    assert torch.equal(alone[1], first[1])
    networks = [
        TrainedNetwork(seed_cnn, 10, (1, 28, 28), weights.numpy(), averages.numpy())
        for weights, averages in (first, second)
    ]
    (asked_alone,) = ask_networks(networks[:1], X[1].numpy(), machine)
    asked, _ = ask_networks(networks, X[1].numpy(), machine)
    assert np.array_equal(asked_alone, asked)
