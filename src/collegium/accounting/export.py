"""Events for other accountants: as ``dp_accounting`` events, and as JSON; and back.

Public events only, so all of this may be published. An exported event says what one owner of one cohort
loses, whose records differ as the event's neighbours say. All its distances are in units of how far that
owner moves the noised value, which is what dp-accounting's ``ADD_OR_REMOVE_ONE`` and ``REPLACE_SPECIAL``
mean; its ``REPLACE_ONE`` doubles distances and is wrong here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any

import numpy as np

from collegium.accounting.events import (
    BoundedRange,
    Composition,
    Event,
    Gaussian,
    GaussianArgMax,
    Laplace,
    Nothing,
    PoissonGaussian,
    PureNoise,
)
from collegium.accounting.neighbours import Neighbours
from collegium.errors import InputError

_KINDS: dict[type[Event], str] = {
    Gaussian: "gaussian",
    GaussianArgMax: "gaussian",
    Laplace: "laplace",
    PureNoise: "pure",
    BoundedRange: "pure",
    PoissonGaussian: "poisson-gaussian",
}
_EVENTS = {kind.__name__: kind for kind in _KINDS}


@dataclass(frozen=True)
class Use:
    """What one mechanism did to the owners of one cohort, and how often.

    ``purpose``: for instance ``check`` or ``answer``.
    ``event``: of this one cohort.
    ``count``: how often.
    """

    purpose: str
    event: Event
    count: int

    def __post_init__(self) -> None:
        if type(self.event) not in _KINDS or len(self.event) != 1:
            raise InputError(
                f"{type(self.event).__name__} is no single event towards one cohort: use towards(cohort)"
            )
        if self.count < 0:
            raise InputError(f"a mechanism cannot be used {self.count} times: give at least 0")

    @property
    def kind(self) -> str:
        """Kind of noise: gaussian, laplace, poisson-gaussian, or pure for any other (ε, 0)-DP mechanism."""
        return _KINDS[type(self.event)]

    @property
    def noise_multiplier(self) -> float:
        """Scale of the noise divided by how far one owner moves what is noised.

        σ/√(coordinates)·Δ for Gaussian noise (in L2), b/Δ for each coordinate with Laplace noise; 1/μ for
        ``pure``: the Gaussian mechanism that dominates it.
        """
        if isinstance(self.event, PoissonGaussian):
            return float(self.event.noise_multiplier[0])
        if isinstance(self.event, Laplace):
            return self.event.coordinates / float(self.event.pure_epsilon[0])
        return 1 / math.sqrt(float(self.event.mu_squared[0]))

    @property
    def mu_squared(self) -> float | None:
        """μ² of all uses together; None where other accountants describe the noise more sharply."""
        if isinstance(self.event, Laplace | PoissonGaussian):
            return None
        return self.count / self.noise_multiplier**2

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON, exact to the last bit."""
        event = {"type": type(self.event).__name__}
        for one in fields(self.event):
            value = getattr(self.event, one.name)
            if isinstance(value, Neighbours):
                continue
            event[one.name] = value.tolist() if isinstance(value, np.ndarray) else value
        return {
            "purpose": self.purpose,
            "kind": self.kind,
            "noise_multiplier": self.noise_multiplier,
            "count": self.count,
            "mu_squared": self.mu_squared,
            "event": event,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], neighbours: Neighbours) -> Use:
        """Read what :meth:`to_json` made."""
        values = dict(content["event"])
        kind = _EVENTS[values.pop("type")]
        event = kind(**values, neighbours=neighbours)
        return cls(str(content["purpose"]), event, int(content["count"]))


def uses_of(event: Event, cohort: int = 0, purpose: str = "release") -> list[Use]:
    """List what an event did to the owners of one cohort; nothing where it cannot touch them.

    Examples
    --------
    >>> both = Composition([Gaussian([1.0, 2.0], scale=150.0), Laplace([0.0, 1.0], 0.1)], [640, 1])
    >>> [(use.kind, use.count) for use in uses_of(both, cohort=1)]
    [('gaussian', 640), ('laplace', 1)]
    >>> len(uses_of(both, cohort=0))
    1
    """
    if isinstance(event, Composition):
        return [
            Use(purpose, use.event, use.count * count)
            for part, count in zip(event.events, event.counts, strict=True)
            for use in uses_of(part, cohort, purpose)
        ]
    one = event.towards(cohort)
    return [] if isinstance(one, Nothing) or not one.pure_epsilon[0] else [Use(purpose, one, 1)]


def to_dp_event(event: Event, cohort: int = 0) -> Any:
    """Make a ``dp_accounting`` event of what happened to the owners of one cohort.

    Gaussian noise becomes ``GaussianDpEvent``, and so do pure mechanisms and exponential ones, which a
    Gaussian one dominates (:func:`~collegium.accounting.gaussian.pure_to_gdp`). (Binary randomised
    response would be sharper, but dp-accounting's ``REPLACE_SPECIAL`` compares it with a coin, which
    understates ε.) Laplace noise becomes one ``LaplaceDpEvent`` for each coordinate that the owner
    moves: exact for the whole noisy vector.

    Parameters
    ----------
    event : Event
    cohort : int, default=0

    Returns
    -------
    dp_accounting.DpEvent

    Raises
    ------
    InputError
        If dp-accounting is not installed, or a pure mechanism promises nothing (ε = ∞).

    Examples
    --------
    >>> exported = to_dp_event(Composition([Gaussian([1.0, 2.0], scale=150.0)], [640]), cohort=1)
    >>> exported.events[0].count, round(exported.events[0].event.noise_multiplier, 9)
    (640, 75.0)
    """
    dp = _dp_accounting()
    if isinstance(event, Composition):
        parts = [
            (to_dp_event(part, cohort), count)
            for part, count in zip(event.events, event.counts, strict=True)
        ]
        used = [(p, c) for p, c in parts if c and not isinstance(p, dp.NoOpDpEvent)]
        if not used:
            return dp.NoOpDpEvent()
        return dp.ComposedDpEvent([_repeated(dp, part, count) for part, count in used])
    one = event.towards(cohort)
    if isinstance(one, PoissonGaussian):
        noise = dp.GaussianDpEvent(float(one.noise_multiplier[0]))
        step = dp.PoissonSampledDpEvent(float(one.rate[0]), noise)
        return dp.SelfComposedDpEvent(step, one.steps)
    if isinstance(one, Nothing) or not one.pure_epsilon[0]:
        return dp.NoOpDpEvent()
    if isinstance(one, Laplace):
        noise = dp.LaplaceDpEvent(Use("", one, 1).noise_multiplier)
        return dp.SelfComposedDpEvent(noise, one.coordinates)
    if math.isinf(one.mu_squared[0]):
        raise InputError(f"{one} without any bound cannot be exported")
    return dp.GaussianDpEvent(Use("", one, 1).noise_multiplier)


def _repeated(dp: Any, part: Any, count: int) -> Any:
    if isinstance(part, dp.SelfComposedDpEvent):
        part, count = part.event, part.count * count
    return dp.SelfComposedDpEvent(part, count)


def from_dp_event(exported: Any, neighbours: Neighbours = Neighbours.ADD_OR_REMOVE) -> Event:
    """Read a ``dp_accounting`` event, as an event of one cohort with sensitivity 1.

    Parameters
    ----------
    exported : dp_accounting.DpEvent
        Of Gaussian and Laplace noise, Poisson samples of Gaussian noise, and compositions of these.
    neighbours : Neighbours, optional
        About whom it was stated.

    Raises
    ------
    InputError
        If it is any other event, or dp-accounting is not installed.

    Examples
    --------
    >>> import dp_accounting
    >>> from_dp_event(dp_accounting.GaussianDpEvent(2.0)).mu_squared.round(9)
    array([0.25])
    """
    dp = _dp_accounting()
    if isinstance(exported, dp.NoOpDpEvent):
        return Nothing(1, neighbours=neighbours)
    if isinstance(exported, dp.GaussianDpEvent):
        return Gaussian(np.ones(1), float(exported.noise_multiplier), neighbours=neighbours)
    if isinstance(exported, dp.LaplaceDpEvent):
        return Laplace(np.ones(1), 1 / exported.noise_multiplier, neighbours=neighbours)
    if isinstance(exported, dp.ComposedDpEvent):
        return Composition([from_dp_event(part, neighbours) for part in exported.events])
    if isinstance(exported, dp.SelfComposedDpEvent):
        one = from_dp_event(exported.event, neighbours)
        if isinstance(one, PoissonGaussian):  # fitted as a whole, its steps cost less
            return replace(one, steps=one.steps * exported.count)
        return Composition([one], [exported.count])
    if isinstance(exported, dp.PoissonSampledDpEvent) and isinstance(
        exported.event, dp.GaussianDpEvent
    ):
        rate, noise = exported.sampling_probability, exported.event.noise_multiplier
        return PoissonGaussian(np.array([rate]), np.array([noise]), neighbours=neighbours)
    raise InputError(
        f"{type(exported).__name__} has no counterpart here: known are Gaussian, Laplace, Poisson-sampled "
        "Gaussian, and compositions of them"
    )


def _dp_accounting() -> Any:
    try:
        return import_module("dp_accounting")
    except ImportError:
        raise InputError(
            "events need the package dp-accounting: install collegium with its extra 'dp-accounting', or "
            "export JSON, which needs nothing"
        ) from None


def to_json(
    composition: Mapping[str, Sequence[Use]], neighbours: Neighbours, adjacency: str, **about: Any
) -> dict[str, Any]:
    """Write down what a job is composed of, as a dictionary for JSON.

    ``composition``: by group.
    ``adjacency``: the same, in a sentence with all that it depends on.
    ``**about``: more entries, for JSON.
    """
    return {
        "format": 1,
        "guarantee": "worst-case",
        "neighbours": neighbours.value,
        "adjacency": adjacency,
        **about,
        "groups": {group: [use.to_json() for use in uses] for group, uses in composition.items()},
    }


def from_json(content: Mapping[str, Any]) -> dict[str, list[Use]]:
    """Read the composition that :func:`to_json` wrote, by group.

    Raises InputError if it is something else.
    """
    try:
        if content["format"] != 1:
            raise InputError(f"unknown format {content['format']!r} of a composition: expected 1")
        neighbours = Neighbours(content["neighbours"])
        return {
            group: [Use.from_json(use, neighbours) for use in uses]
            for group, uses in content["groups"].items()
        }
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputError(
            "this is no composition as `collegium account --export` writes it"
        ) from None
