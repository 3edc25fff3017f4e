"""The composition of a job for other accountants: a ``dp_accounting`` event for each group, or JSON.

Worst case only, so all of this may be published. An event says what one owner of the group loses, whose
records are changed as the account's adjacency says. All its distances are in units of how far that owner
moves the noised value, which is what dp-accounting's ``ADD_OR_REMOVE_ONE`` and ``REPLACE_SPECIAL`` mean;
its ``REPLACE_ONE`` doubles distances and is wrong here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from collegium.errors import InputError

KINDS = ("gaussian", "laplace", "pure")


@dataclass(frozen=True)
class Mechanism:
    """One mechanism of a job, towards the owners of one group, and how often it was used.

    Attributes
    ----------
    purpose : str
        ``check`` or ``answer``.
    kind : {"gaussian", "laplace", "pure"}
        ``laplace`` noises every count, and an owner moves two of them; ``pure`` is any other (ε, 0)-DP
        mechanism, described by the Gaussian mechanism that dominates it.
    noise_multiplier : float
        Scale of the noise divided by how far one owner moves what is noised: σ_T/Δ for checks,
        σ/(√2·Δ) for Gaussian answers (in L2), 1/(γ·Δ) for each of the two counts of a Laplace answer;
        1/μ for ``pure``, which is μ-GDP.
    count : int
        How often.
    """

    purpose: str
    kind: str
    noise_multiplier: float
    count: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(
                f"unknown kind of mechanism {self.kind!r}: allowed are {', '.join(KINDS)}"
            )
        if not self.noise_multiplier > 0:
            raise InputError(f"noise_multiplier must be above 0, got {self.noise_multiplier:g}")
        if self.count < 0:
            raise InputError(f"a mechanism cannot be used {self.count} times: give at least 0")

    @property
    def mu_squared(self) -> float | None:
        """μ² of all uses together, None for Laplace noise, which is described more sharply."""
        return None if self.kind == "laplace" else self.count / self.noise_multiplier**2


def to_dp_event(mechanisms: Sequence[Mechanism]) -> Any:
    """Make a ``dp_accounting`` event of all mechanisms towards one group.

    Gaussian mechanisms become ``GaussianDpEvent``, and so do pure ones: every (ε, 0)-DP mechanism is
    dominated by a Gaussian one (:func:`~collegium.accounting.gaussian.pure_to_gdp`). (Binary randomised
    response would be sharper, but dp-accounting's ``REPLACE_SPECIAL`` compares it with a coin, which
    understates ε.) A Laplace answer becomes two ``LaplaceDpEvent``, one for each count that the owner
    moves: exact for the whole noisy histogram.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
        Everything that was asked.

    Returns
    -------
    dp_accounting.DpEvent
        A ``NoOpDpEvent`` if nothing was asked, else a ``ComposedDpEvent`` of ``SelfComposedDpEvent``.

    Raises
    ------
    InputError
        If dp-accounting is not installed.

    Examples
    --------
    >>> event = to_dp_event([Mechanism("check", "gaussian", 150.0, 640)])
    >>> event.events[0].count, event.events[0].event.noise_multiplier
    (640, 150.0)
    """
    dp = _dp_accounting()
    used = [mechanism for mechanism in mechanisms if mechanism.count]
    if not used:
        return dp.NoOpDpEvent()
    return dp.ComposedDpEvent([_event_of(dp, mechanism) for mechanism in used])


def _event_of(dp: Any, mechanism: Mechanism) -> Any:
    if mechanism.kind == "laplace":
        return dp.SelfComposedDpEvent(
            dp.LaplaceDpEvent(mechanism.noise_multiplier), 2 * mechanism.count
        )
    return dp.SelfComposedDpEvent(dp.GaussianDpEvent(mechanism.noise_multiplier), mechanism.count)


def _dp_accounting() -> Any:
    try:
        return import_module("dp_accounting")
    except ImportError:
        raise InputError(
            "events need the package dp-accounting: install collegium with its extra 'dp-accounting', or "
            "export JSON, which needs nothing"
        ) from None


def to_json(
    composition: Mapping[str, Sequence[Mechanism]], adjacency: str, **about: Any
) -> dict[str, Any]:
    """Write down a job's composition as a dictionary for JSON.

    Parameters
    ----------
    composition : mapping of str to sequence of Mechanism
        By group.
    adjacency : str
        Which neighbours, in words.
    **about : object
        More entries, for JSON.

    Returns
    -------
    dict
    """
    return {
        "format": 1,
        "guarantee": "worst-case",
        "adjacency": adjacency,
        **about,
        "groups": {
            group: [
                {**asdict(mechanism), "mu_squared": mechanism.mu_squared}
                for mechanism in mechanisms
            ]
            for group, mechanisms in composition.items()
        },
    }


def from_json(content: Mapping[str, Any]) -> dict[str, list[Mechanism]]:
    """Read the composition that :func:`to_json` wrote, by group.

    Raises
    ------
    InputError
        If it is something else.
    """
    try:
        if content["format"] != 1:
            raise InputError(f"unknown format {content['format']!r} of a composition: expected 1")
        return {
            group: [
                Mechanism(
                    str(one["purpose"]), str(one["kind"]), float(one["noise_multiplier"]), int(one["count"])
                )
                for one in mechanisms
            ]
            for group, mechanisms in content["groups"].items()
        }  # fmt: skip
    except (KeyError, TypeError, AttributeError):
        raise InputError(
            "this is no composition as `collegium account --export` writes it"
        ) from None
