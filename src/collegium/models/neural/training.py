"""Training of a group of teachers, side by side and each as if it were alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import Tensor

from collegium.models.neural.augmentation import Augmentation, move_images
from collegium.models.neural.blueprint import Blueprint
from collegium.models.neural.optimiser import StackedAdam
from collegium.models.neural.recipes import TrainingRecipe
from collegium.models.neural.stacks import StepInput

Rows = tuple[Tensor, Tensor]
State = dict[str, Any]
#: Called after an epoch with a teacher's number and a function that describes where it stands.
Watch = Callable[[int, Callable[[], State]], None]


@dataclass
class Learner:
    """One teacher in training.

    ``number``: which teacher of the call.
    ``records`` (n, *record): what it is trained on.
    ``labels`` (n,): class numbers.
    ``held_out``: records and labels that tell when to stop.
    ``generator``: all its random numbers, but its first weights, come from here.
    ``sizes``: records of each step of an epoch.
    """

    number: int
    records: Tensor
    labels: Tensor
    held_out: tuple[Tensor, Tensor] | None
    generator: torch.Generator
    sizes: list[int]
    starts: list[int] = field(init=False)
    epoch: int = 0
    step: int = 0
    best_loss: float = math.inf
    stale: int = 0

    def __post_init__(self) -> None:
        self.starts = [sum(self.sizes[:step]) for step in range(len(self.sizes))]

    @classmethod
    def of(cls, number: int, X: Tensor, y: Tensor, seed: int, recipe: TrainingRecipe) -> Learner:
        """Split a shard by the teacher's own generator, if records are to be held out."""
        generator = torch.Generator().manual_seed(seed)
        held_out = None
        if recipe.patience is not None and len(X) >= 4:
            order = torch.randperm(len(X), generator=generator)
            count = min(max(1, round(recipe.validation_share * len(X))), len(X) - 2)
            held_out = X[order[:count]], y[order[:count]]
            X, y = X[order[count:]], y[order[count:]]
        return cls(number, X, y, held_out, generator, recipe.batch_sizes(len(X)))


class GroupTraining:
    """Trains teachers side by side.

    Every teacher has a row of its own, random numbers of its own, and stops on its own. In each round
    every teacher that is still learning goes through its shard once.

    ``learners``: at least one.
    ``first_weights``: rows of each.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        recipe: TrainingRecipe,
        learners: Sequence[Learner],
        first_weights: Sequence[Rows],
        device: torch.device,
    ) -> None:
        # Teachers with more steps in an epoch come first, so that those who are at it are always the
        # first rows, which no copying is needed to select.
        order = sorted(range(len(learners)), key=lambda place: -len(learners[place].sizes))
        self._learners = [learners[place] for place in order]
        self._blueprint, self._recipe, self._device = blueprint, recipe, device
        self._shards = self._stacked()
        self._stack = blueprint.stack(len(learners), device)
        for row, place in enumerate(order):
            self._stack.put(row, *first_weights[place])
        self._adam = StackedAdam(
            self._stack.trained, self._stack.gradients, recipe.epsilon, recipe.weight_decay
        )
        self._best = None
        if recipe.patience is not None:
            self._best = self._stack.trained.clone(), self._stack.buffers.clone()
        self._augmentation = None
        if recipe.augment:
            self._augmentation = Augmentation(recipe.rotation, recipe.shift)

    def run(self, watch: Watch | None = None) -> dict[int, Rows]:
        """Train until every teacher is done.

        ``watch``: ``watch(number, describe)`` after every epoch of every teacher; what it raises
            ends the training.
        Returns: rows of each teacher, on the CPU, by number.
        """
        done: dict[int, Rows] = {}
        self._dismiss(done)
        while self._learners:
            self._round()
            for row, learner in enumerate(self._learners):
                if watch is not None:
                    watch(learner.number, partial(self.describe, row))
            self._dismiss(done)
        return done

    def describe(self, row: int) -> State:
        """Describe where the teacher in a row stands, for :meth:`restore`. **Sensitive.**"""
        learner = self._learners[row]
        state: State = {
            "epoch": learner.epoch,
            "step": learner.step,
            "best_loss": learner.best_loss,
            "stale": learner.stale,
            "generator": learner.generator.get_state(),
        }
        for name, tensor in self._tensors().items():
            state[name] = tensor[row].to("cpu", copy=True)
        return state

    def restore(self, number: int, state: State) -> None:
        """Put a teacher where it stood."""
        row = next(row for row, learner in enumerate(self._learners) if learner.number == number)
        learner = self._learners[row]
        learner.epoch, learner.step = state["epoch"], state["step"]
        learner.best_loss, learner.stale = state["best_loss"], state["stale"]
        learner.generator.set_state(state["generator"])
        self._adam.steps[row] = state["step"]
        for name, tensor in self._tensors().items():
            tensor[row] = state[name]

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {
            "trained": self._stack.trained,
            "buffers": self._stack.buffers,
            "first": self._adam.first,
            "second": self._adam.second,
        }
        if self._best is not None:
            tensors["best trained"], tensors["best buffers"] = self._best
        return tensors

    def _round(self) -> None:
        learners = self._learners
        records, targets = self._shuffled()
        for step in range(len(learners[0].sizes)):
            active = [learner for learner in learners if step < len(learner.sizes)]
            x, y = self._batch(records, targets, active, step)
            self._stack.backpropagate(x, y, self._random_input(active, step, x.shape[1]))
            self._adam.step([self._rate(learner) for learner in active])
            for learner in active:
                learner.step += 1
        for learner in learners:
            learner.epoch += 1
        if self._best is not None:
            self._judge()

    def _rate(self, learner: Learner) -> float:
        return self._recipe.rate(learner.step / (self._recipe.epochs * len(learner.sizes)))

    def _stacked(self) -> tuple[Tensor, Tensor]:
        """Stack every teacher's records and labels, those of short shards lengthened."""
        longest = max(len(learner.labels) for learner in self._learners)
        return (
            torch.stack([_lengthened(learner.records, longest) for learner in self._learners]),
            torch.stack([_lengthened(learner.labels, longest) for learner in self._learners]),
        )

    def _shuffled(self) -> tuple[Tensor, Tensor]:
        """Put every teacher's records into the order, and the place, of its coming epoch."""
        records, labels = self._shards
        longest = labels.shape[1]
        orders, movements = [], []
        for learner in self._learners:
            order = torch.randperm(len(learner.labels), generator=learner.generator)
            orders.append(_lengthened(order, longest))
            if self._augmentation is not None:
                drawn = self._augmentation.draw(len(order), learner.generator)
                movements.append(_lengthened(drawn, longest))
        order = torch.stack(orders).to(self._device)
        rows = torch.arange(len(order), device=self._device)[:, None]
        records, labels = records[rows, order], labels[rows, order]
        if movements:
            moved = move_images(records.flatten(0, 1), torch.cat(movements))
            records = moved.view(records.shape)
        n_classes = self._blueprint.n_classes
        one_hot = F.one_hot(labels, n_classes).float()
        smoothing = self._recipe.label_smoothing
        targets = one_hot * (1 - smoothing) + smoothing / n_classes if smoothing else one_hot
        return records, targets

    def _batch(
        self, records: Tensor, targets: Tensor, active: list[Learner], step: int
    ) -> tuple[Tensor, Tensor]:
        k = len(active)
        starts = {learner.starts[step] for learner in active}
        width = max(learner.sizes[step] for learner in active)
        if len(starts) == 1:
            (start,) = starts
            return records[:k, start : start + width], targets[:k, start : start + width]
        first = torch.tensor([learner.starts[step] for learner in active], device=self._device)
        places = first[:, None] + torch.arange(width, device=self._device)
        places.clamp_(max=records.shape[1] - 1)
        rows = torch.arange(k, device=self._device)[:, None]
        return records[rows, places], targets[rows, places]

    def _random_input(self, active: list[Learner], step: int, width: int) -> StepInput:
        masks = {}
        for place in self._blueprint.places:
            drawn = [
                _lengthened(place.draw(learner.sizes[step], learner.generator), width)
                for learner in active
            ]
            masks[f"{place.name}.mask"] = torch.stack(drawn).to(self._device)
        seeds = []
        if self._blueprint.method == "singly":
            seeds = [
                int(torch.randint(2**31, (), generator=learner.generator)) for learner in active
            ]
        return StepInput([learner.sizes[step] for learner in active], masks, seeds)

    def _judge(self) -> None:
        """Compare every teacher on its own held-out records with its best so far."""
        assert self._best is not None
        for row, loss in enumerate(self._held_out_losses()):
            learner = self._learners[row]
            learner.stale += 1
            if learner.held_out is None or loss < learner.best_loss:
                learner.best_loss, learner.stale = loss, 0
                self._best[0][row] = self._stack.trained[row]
                self._best[1][row] = self._stack.buffers[row]

    def _held_out_losses(self) -> list[float]:
        parts = [
            learner.held_out or (learner.records[:1], learner.labels[:1])
            for learner in self._learners
        ]
        longest = max(len(labels) for _, labels in parts)
        x = torch.stack([_lengthened(records, longest) for records, _ in parts])
        logits = self._stack.logits(x)
        return [
            float(F.cross_entropy(own_logits[: len(labels)], labels))
            for own_logits, (_, labels) in zip(logits, parts, strict=True)
        ]

    def _dismiss(self, done: dict[int, Rows]) -> None:
        """Take the results of teachers that are done, and close ranks."""
        staying = []
        results = self._best or (self._stack.trained, self._stack.buffers)
        for row, learner in enumerate(self._learners):
            patience = self._recipe.patience
            stopped = patience is not None and learner.stale >= patience
            if stopped or learner.epoch >= self._recipe.epochs:
                trained, buffers = (rows[row].to("cpu", copy=True) for rows in results)
                done[learner.number] = trained, buffers
            else:
                staying.append(row)
        if len(staying) < len(self._learners):
            self._stack.move(staying)
            self._adam.move(staying)
            for tensor in self._best or ():
                for place, row in enumerate(staying):
                    tensor[place] = tensor[row]
            self._learners = [self._learners[row] for row in staying]
            if staying:
                self._shards = self._stacked()


def _lengthened(tensor: Tensor, length: int) -> Tensor:
    """Fill up with the first entry, so that what is absent is at least finite."""
    missing = length - len(tensor)
    if missing == 0:
        return tensor
    return torch.cat([tensor, tensor[:1].expand(missing, *tensor.shape[1:])])
