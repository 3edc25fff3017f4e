"""How a network is trained: what a user may set, with defaults for each network that has a name."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from collegium.checks import (
    check_choice,
    check_number,
    check_positive,
    check_share,
    check_truth,
    check_whole,
)
from collegium.errors import ModelError

SCHEDULES = ("constant", "one-cycle")


@dataclass(frozen=True)
class TrainingRecipe:
    """Settings of training.

    ``epochs``: passes over a shard (at most, with early stopping).
    ``learning_rate``: Adam's, at its highest.
    ``schedule``: one cycle: up from a tenth over the first quarter of the steps, then down to 0
        along a cosine.
    ``weight_decay``: decoupled (AdamW), per step times the learning rate.
    ``label_smoothing``: share of a target's probability that is spread over all classes.
    ``augment``: whether images are rotated and shifted at random.
    ``rotation``: degrees, see :class:`~collegium.models.neural.augmentation.Augmentation`.
    ``shift``: share of the image.
    ``batch_size``: None: a tenth of the shard, but at least 16 and at most 64 records.
    ``patience``: stop when the loss on held-out records has not improved for so many epochs, and
        return what was best. None: train for all epochs, on all records.
    ``validation_share``: share of a shard that is held out where ``patience`` is given.
    ``epsilon``: Adam's, in the denominator (TensorFlow's default, 1e-7).
    """

    epochs: int = 20
    learning_rate: float = 1e-3
    schedule: str = "constant"
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    augment: bool = True
    rotation: float = 7.5
    shift: float = 0.07
    batch_size: int | None = None
    patience: int | None = None
    validation_share: float = 0.2
    epsilon: float = 1e-7

    def __post_init__(self) -> None:
        check_whole("epochs", self.epochs, error=ModelError)
        for name in ("batch_size", "patience"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), error=ModelError)
        check_choice("schedule", self.schedule, SCHEDULES, ModelError)
        check_truth("augment", self.augment, ModelError)
        for name in ("learning_rate", "epsilon"):
            check_positive(name, getattr(self, name), ModelError)
        check_number("weight_decay", self.weight_decay, least=0, below=math.inf, error=ModelError)
        check_number("label_smoothing", self.label_smoothing, least=0, below=1, error=ModelError)
        check_movement(self.rotation, self.shift)
        check_number("validation_share", self.validation_share, above=0, below=1, error=ModelError)

    def but(self, settings: dict[str, Any]) -> TrainingRecipe:
        """Return the recipe with the settings that are not None."""
        return replace(
            self, **{name: value for name, value in settings.items() if value is not None}
        )

    def batch_sizes(self, records: int) -> list[int]:
        """Split an epoch over so many records into steps of sizes that differ by at most 1.

        Examples
        --------
        >>> TrainingRecipe().batch_sizes(240)
        [24, 24, 24, 24, 24, 24, 24, 24, 24, 24]
        >>> TrainingRecipe().batch_sizes(33), TrainingRecipe().batch_sizes(5)
        ([11, 11, 11], [5])
        """
        wanted = self.batch_size or min(max(round(records / 10), 16), 64)
        steps = max(1, math.ceil(records / wanted))
        return [records // steps + (step < records % steps) for step in range(steps)]

    def rate(self, done: float) -> float:
        """Return the learning rate when a share of training, in [0, 1), is done."""
        if self.schedule == "constant":
            return self.learning_rate
        rise = 0.25
        if done < rise:
            return self.learning_rate * (0.1 + 0.9 * done / rise)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (done - rise) / (1 - rise)))


def check_movement(rotation: Any, shift: Any) -> None:
    """Refuse rotations outside [0, 180] (degrees), and shifts outside [0, 1] (of an image)."""
    check_number("rotation", rotation, least=0, most=180, error=ModelError)
    check_share("shift", shift, ModelError)
