"""The training loop of neural students. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from collegium.distillation.augmented_views import Views
from collegium.distillation.losses import (
    consistency_loss,
    entropy,
    evidence_loss,
    soft_loss,
    virtual_adversarial_loss,
)

Floats = NDArray[np.float64]
_ASKED_AT_ONCE = 512
_WEIGHT_DECAY = 1e-3  # AdamW's
_RADIUS = 1.5  # of VAT, in units of the records (pixels in [0, 1])


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a network is to learn.

    ``records`` (n_public, ...): all public records, in the network's shape.
    ``evidence`` (n_public, n_classes): log-likelihood ratios of what was released; 0 where nothing
        was.
    ``answered``: rows with an answer.
    ``pseudo`` (n_public, n_classes): a guide's beliefs about all records.
    """

    records: NDArray[np.float32]
    evidence: Floats
    answered: NDArray[np.intp]
    pseudo: Floats | None


@dataclass(frozen=True)
class Course:
    """How it learns it; see :class:`~collegium.distillation.neural_student.NeuralStudent`."""

    method: str
    epochs: int
    batch_size: int
    learning_rate: float
    confidence: float
    views: Views


def train(
    network: nn.Module, lesson: Lesson, course: Course, device: torch.device, seed: int
) -> int:
    """Train a network in place.

    ``network``: left on ``device``, in evaluation mode.
    """
    batches = _Batches(lesson, course, device, seed)
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=course.learning_rate, weight_decay=_WEIGHT_DECAY
    )
    total = course.epochs * batches.per_epoch
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, course.learning_rate, total_steps=max(total, 2), pct_start=0.15
    )
    # The channels of a pixel lie together: convolutions on a CPU take two thirds of the time.
    network.to(device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    step_loss = _STEPS[course.method]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _ in range(total):
            loss = step_loss(network, batches, course)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    network.eval()
    return total


class _Batches:
    """Draws public records, and what is known about them."""

    def __init__(self, lesson: Lesson, course: Course, device: torch.device, seed: int) -> None:
        n = len(lesson.records)
        self.generator = torch.Generator().manual_seed(seed)
        self.size = min(course.batch_size, n)
        self.per_epoch = max(1, n // self.size)
        self.device = device
        self.records = torch.from_numpy(lesson.records)
        self.evidence = torch.from_numpy(lesson.evidence).float()
        self.answered = torch.from_numpy(lesson.answered.astype(np.int64))
        self.pseudo = None if lesson.pseudo is None else torch.from_numpy(lesson.pseudo).float()
        self._all_answered = len(lesson.answered) == n
        self._orders: dict[str, Tensor] = {}

    def any(self) -> Tensor:
        """Rows of the next batch of all public records; each once an epoch."""
        return self._next("any", len(self.records))

    def known(self, rows: Tensor) -> Tensor:
        """Rows of the next batch with answers: the same as ``rows``, where all have one."""
        if self._all_answered:
            return rows
        return self.answered[self._next("known", len(self.answered))]

    def there(self, records: Tensor) -> Tensor:
        """Records on the device, in the layout of the network."""
        if records.ndim != 4:
            return records.to(self.device)
        return records.to(self.device, memory_format=torch.channels_last)

    def take(self, rows: Tensor) -> Tensor:
        """Records of these rows, on the CPU."""
        return self.records[rows]

    def _next(self, name: str, n: int) -> Tensor:
        size = min(self.size, n)
        order = self._orders.get(name)
        if order is None or len(order) < size:
            order = torch.randperm(n, generator=self.generator)
        self._orders[name] = order[size:]
        return order[:size]


def _self_training_step(network: nn.Module, batches: _Batches, course: Course) -> Tensor:
    rows = batches.any()
    assert batches.pseudo is not None
    seen = batches.there(course.views.weak(batches.take(rows), batches.generator))
    targets = batches.pseudo[rows].to(batches.device)
    return soft_loss(network(seen), targets).mean()


def _answers_loss(logits: Tensor, rows: Tensor, batches: _Batches) -> Tensor:
    """Loss of what is known: a guide's beliefs where there is one, else the released evidence."""
    if batches.pseudo is not None:
        targets = batches.pseudo[rows].to(batches.device)
        return soft_loss(logits, targets).mean()
    return evidence_loss(logits, batches.evidence[rows].to(batches.device)).mean()


def _fixmatch_step(network: nn.Module, batches: _Batches, course: Course) -> Tensor:
    rows = batches.any()
    known = rows if batches.pseudo is not None else batches.known(rows)
    weak = course.views.weak(batches.take(rows), batches.generator)
    strong = course.views.strong(batches.take(rows), batches.generator)
    parts = [weak, strong]
    if known is not rows:
        parts.append(course.views.weak(batches.take(known), batches.generator))
    # One pass for all views, so that batch normalisation sees them together.
    logits = network(batches.there(torch.cat(parts)))
    of_weak, of_strong = logits[: len(rows)], logits[len(rows) : 2 * len(rows)]
    of_known = of_weak if known is rows else logits[2 * len(rows) :]
    loss = _answers_loss(of_known, known, batches)
    agree = consistency_loss(of_weak, of_strong, course.confidence).mean()
    total: Tensor = loss + agree
    return total


def _vat_step(network: nn.Module, batches: _Batches, course: Course) -> Tensor:
    rows = batches.any()
    known = rows if batches.pseudo is not None else batches.known(rows)
    seen = batches.there(course.views.weak(batches.take(rows), batches.generator))
    beside = seen[:0]
    if known is not rows:
        beside = batches.there(course.views.weak(batches.take(known), batches.generator))
    masks = int(torch.randint(2**62, (), generator=batches.generator))

    def ask(records: Tensor) -> Tensor:
        """One pass for all, with the same records beside them and the same dropout each time."""
        with torch.random.fork_rng(
            devices=[batches.device] if batches.device.type == "cuda" else []
        ):
            torch.manual_seed(masks)
            answer: Tensor = network(torch.cat([records, beside]))
        return answer

    logits = ask(seen)
    of_rows = logits[: len(rows)]
    with _frozen_statistics(network):
        smooth = virtual_adversarial_loss(
            lambda records: ask(records)[: len(rows)],
            seen,
            of_rows,
            _RADIUS,
            batches.generator,
        ).mean()
    of_known = of_rows if known is rows else logits[len(rows) :]
    loss = _answers_loss(of_known, known, batches)
    total: Tensor = loss + (smooth + entropy(of_rows).mean())
    return total


class _frozen_statistics:  # noqa: N801 (used like a function)
    """Keep running statistics of batch normalisation as they are: adversarial records are not typical."""

    def __init__(self, network: nn.Module) -> None:
        self._layers = [
            layer
            for layer in network.modules()
            if isinstance(layer, nn.modules.batchnorm._BatchNorm)
        ]

    def __enter__(self) -> None:
        self._kept = [layer.track_running_stats for layer in self._layers]
        for layer in self._layers:
            layer.track_running_stats = False

    def __exit__(self, *error: object) -> None:
        for layer, kept in zip(self._layers, self._kept, strict=True):
            layer.track_running_stats = kept


_STEPS: dict[str, Callable[[nn.Module, _Batches, Course], Tensor]] = {
    "self-training": _self_training_step,
    "fixmatch": _fixmatch_step,
    "vat": _vat_step,
}


@torch.no_grad()
def probabilities(network: nn.Module, records: NDArray[np.float32], device: torch.device) -> Floats:
    """Ask a network about records, shape (n, n_classes)."""
    parts = [
        network(torch.from_numpy(records[first : first + _ASKED_AT_ONCE]).to(device)).softmax(dim=1)
        for first in range(0, len(records), _ASKED_AT_ONCE)
    ]
    return np.asarray(torch.cat(parts).double().cpu().numpy())


@torch.no_grad()
def hidden_values(network: nn.Module, records: NDArray[np.float32], device: torch.device) -> Any:
    """What goes into the network's last linear layer, shape (n, n_hidden): records as it sees them."""
    last = [layer for layer in network.modules() if isinstance(layer, nn.Linear)][-1]
    seen: list[Tensor] = []
    hook = last.register_forward_pre_hook(lambda _, given: seen.append(given[0].flatten(1).cpu()))
    try:
        probabilities(network, records, device)
    finally:
        hook.remove()
    return torch.cat(seen).numpy()
