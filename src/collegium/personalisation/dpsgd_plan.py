"""The public plan of DP-SGD: how often each group takes part in a step, and how far it may move it.

A step sums over the owners who take part, each bounded in norm, adds noise, and divides by a public constant.
A plan is computed from public numbers only (budgets, group sizes, settings) before any record is read, and
neighbouring data sets share it. Derivations: ``docs/dpsgd-proofs.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.currency import GaussianBound
from collegium.accounting.events import Composition, Event, Gaussian, PoissonGaussian
from collegium.accounting.gaussian import gdp_epsilon, gdp_mu
from collegium.accounting.neighbours import Neighbours
from collegium.accounting.statement import left_out, some_of
from collegium.accounting.subsampled import poisson_gaussian_epsilon
from collegium.budgets import Budget, Budgets
from collegium.checks import check_whole
from collegium.errors import InputError
from collegium.notebooks import InNotebooks

FULL_BATCH = "full-batch"
EXACT = "gaussian"
"""The accountant of everybody in every step."""
_LEAK = 0.1  # of δ, as δ₀ of bounds beside it


@dataclass(frozen=True)
class GroupSteps:
    """What a step does about the owners of one group.

    ``budget``: what each owner of the group granted.
    ``owners``: number of owners (public).
    ``rate``: probability with which an owner takes part in a step, in (0, 1].
    ``clip``: norm to which an owner's contribution is bounded, in the plan's unit.
    ``utilisation``: share of its budget (in μ) that the group spends in all steps; 0 where the budget is
        unlimited.
    """

    budget: Budget
    owners: int
    rate: float
    clip: float
    utilisation: float


@dataclass(frozen=True)
class DPSGDPlan(InNotebooks):
    """Rates, clips and noise of DP-SGD whose steps are fixed, from public numbers only.

    A step releases Σ b_i·v_i + N(0, noise²) in every coordinate, divided by :attr:`divisor`: owner i takes
    part (b_i = 1) with the group's rate, independently of everybody and of other steps, and v_i has at most
    the group's clip as its Euclidean norm. All of it may be multiplied by one public number, the clipping
    norm of a trainer: clips and noise are in units of it.

    Attributes
    ----------
    kind : {"full-batch", "sample", "scale", "uniform"}
        Everybody in every step, influence by clips; influence by rates; by clips of sampled owners; everybody
        alike, at the strictest budget.
    bound : {"clip", "weight"}
        How a gradient comes to its norm: ``clip``, it is clipped to the group's clip; ``weight``, it is
        clipped to :attr:`gradient_norm`, the same for everybody, and multiplied by clip/gradient_norm. Same
        sensitivity, same events.
    steps : int
        How many.
    noise : float
        Standard deviation in every coordinate of the sum, in the unit of the clips.
    groups : mapping of str to GroupSteps
        The groups that have owners, by name. The unit is such that clips are 1 for ``sample`` and
        ``uniform`` (above 1 where a rate has reached 1), and on average over owners otherwise.
    neighbours : Neighbours
        About whom the guarantee holds. An owner whose records are replaced moves a sum by twice the clip.
    accountant : {"gaussian", "pld", "rdp"}
        Exact Gaussian DP (everybody in every step), pessimistic loss distributions, or Rényi DP.
    gigabytes : float, optional
        Memory that a fit takes, roughly, where the plan was made with public records.
    """

    kind: str
    bound: str
    steps: int
    noise: float
    groups: Mapping[str, GroupSteps]
    neighbours: Neighbours
    accountant: str
    gigabytes: float | None = None

    def __post_init__(self) -> None:
        if self.accountant != EXACT and self.neighbours is not Neighbours.ADD_OR_REMOVE:
            raise InputError(
                f"accountant {self.accountant!r} is about owners who are there or not, and the plan about "
                f"{self.neighbours.value!r}: use plan_dpsgd with kind={FULL_BATCH!r}"
            )
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))

    @property
    def gradient_norm(self) -> float:
        """Norm to which gradients are clipped before weights, with ``bound="weight"``: the unit."""
        return 1.0

    @cached_property
    def divisor(self) -> float:
        """Σ over groups of owners · rate · clip: the public constant that a noisy sum is divided by.

        From the plan's own sizes, never from who is there or was drawn.
        """
        return math.fsum(group.owners * group.rate * group.clip for group in self.groups.values())

    @property
    def utilisation(self) -> float:
        """Share of all finite budgets (in μ) that is spent in all steps."""
        finite = [group for group in self.groups.values() if not group.budget.is_unlimited]
        granted = [g.owners * gdp_mu(g.budget.epsilon, g.budget.delta) for g in finite]
        used = [mu * group.utilisation for mu, group in zip(granted, finite, strict=True)]
        return math.fsum(used) / math.fsum(granted)

    def event(self, steps: int | None = None) -> Event:
        """What so many steps do; default: all. One cohort for each group, in the order of ``groups``.

        Parameters
        ----------
        steps : int, optional
            At least 0.

        Returns
        -------
        Event
        """
        steps = self._so_many(steps)
        clips = self._each("clip")
        if self.accountant != EXACT:
            return PoissonGaussian(self._each("rate"), self.noise / clips, steps)
        step = Gaussian(reach(self.neighbours) * clips, self.noise, neighbours=self.neighbours)
        return Composition([step], [steps])

    def epsilon(self, steps: int | None = None) -> dict[str, float]:
        """ε that the owners of each group have spent after so many steps, at their δ, rounded up.

        Towards :attr:`neighbours`, by the :attr:`accountant`; the worst case, whatever the records.

        Parameters
        ----------
        steps : int, optional
            At least 0; default: all.
        """
        if self.accountant != EXACT:
            return self._sampled_epsilon(self._so_many(steps))
        mu = np.sqrt(self.event(steps).mu_squared) * (1 + 2.0**-50)
        delta = np.array([group.budget.delta for group in self.groups.values()])
        spent = np.empty_like(mu)
        for one in np.unique(delta):
            spent[delta == one] = gdp_epsilon(mu[delta == one], float(one))
        return dict(zip(self.groups, spent.tolist(), strict=True))

    @cached_property
    def bounds(self) -> Mapping[str, GaussianBound]:
        """What all steps of loss distributions cost each group as (μ, δ₀), with δ₀ a tenth of δ.

        It says of every test what (ε, δ) says of one; where none is found, μ is infinite.
        """
        found = dict.fromkeys(self.groups, GaussianBound(math.inf))
        known: dict[tuple[float, ...], GaussianBound | None] = {}
        event = self.event()
        for cohort, (name, group) in enumerate(self.groups.items()):
            if self.accountant != "pld" or group.budget.is_unlimited:
                continue
            one = (group.rate, group.clip, group.budget.delta)
            if one not in known:
                known[one] = _bound_of(event, cohort, _LEAK * group.budget.delta)
            bound = known[one]
            if bound is not None:
                found[name] = bound
        return found

    @property
    def mu_spent(self) -> NDArray[np.float64]:
        """What everybody in every step costs each group's owners in μ, rounded up, in the groups' order."""
        return np.asarray(np.sqrt(self.event().mu_squared) * (1 + 2.0**-50))

    @property
    def over_budget(self) -> tuple[str, ...]:
        """Groups whose owners would spend more than they granted; none of a plan that was found by rule."""
        budgets = [group.budget for group in self.groups.values()]
        if self.accountant == EXACT:  # ε is over budget exactly if μ is
            within = self.mu_spent <= granted_mu(budgets)
        else:
            spent = self.epsilon().values()
            within = np.array([e <= b.epsilon for e, b in zip(spent, budgets, strict=True)])
        return tuple(name for name, kept in zip(self.groups, within, strict=True) if not kept)

    def places_of(self, budgets: Budgets) -> NDArray[np.intp]:
        """Find the position in the plan of each group of budgets, by name; -1 of those that have no owners.

        Parameters
        ----------
        budgets : Budgets
            Of the people who are to be trained on.

        Raises
        ------
        InputError
            If somebody is in a group that the plan does not know.
        """
        place = {name: position for position, name in enumerate(self.groups)}
        sizes = budgets.public_sizes()
        for name, size in sizes.items():
            if size and name not in place:
                raise InputError(
                    f"group {name!r} has owners but no place in the plan: make the plan from the same policy"
                )
        found = [place[name] if sizes[name] else -1 for name in budgets.group_names]
        return np.array(found, dtype=np.intp)

    @property
    def signal_to_noise(self) -> float:
        """How far a step goes, if all clipped gradients agree, in standard deviations of one coordinate."""
        return self.divisor / self.noise

    def by_group(self) -> pd.DataFrame:
        """Tabulate what each owner of a group grants, does in a step, and pays.

        Returns
        -------
        DataFrame
            Indexed by group, with columns ``owners``, ``epsilon``, ``delta``, ``rate`` (with which an owner
            takes part in a step), ``weight`` or ``clip`` (as :attr:`bound` says), ``noise_multiplier`` (of a
            step: noise over how far the owner may move the sum), ``say`` (the group's share of all that is
            summed), ``first_step`` and ``all_steps`` (ε spent after one and after all).
        """
        first, last = self.epsilon(1), self.epsilon()
        moves = reach(self.neighbours)
        rows = {
            name: {
                "owners": group.owners,
                "epsilon": group.budget.epsilon,
                "delta": group.budget.delta,
                "rate": group.rate,
                self.bound: group.clip,
                "noise_multiplier": self.noise / (moves * group.clip),
                "say": group.owners * group.rate * group.clip / self.divisor,
                "first_step": first[name],
                "all_steps": last[name],
            }
            for name, group in self.groups.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("group")

    def __str__(self) -> str:
        """Show it as a table."""
        rows = [name for name, _ in some_of(list(self.groups.items()), lambda item: item[1].budget)]
        table = self.by_group().loc[rows].to_string(float_format="{:.4g}".format)
        if left_out(len(self.groups)):
            table += f"\n{left_out(len(self.groups))}"
        return (
            f"{self.steps:,} steps of {self.kind}, with noise of {self.noise:.4g} clip norms in each; "
            f"{self.neighbours.in_words}\n{table}\nSignal to noise of a step, at most: "
            f"{self.signal_to_noise:.4g} in each coordinate"
            + (
                ""
                if self.gigabytes is None
                else f"\nA fit takes about {self.gigabytes:.1f} GB of memory"
            )
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it, with a read-only view of the groups again."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _restored, (values | {"groups": dict(self.groups)},)

    def _sampled_epsilon(self, steps: int) -> dict[str, float]:
        noise = (self.noise / self._each("clip")).tolist()
        return {
            name: poisson_gaussian_epsilon(
                group.rate, multiplier, steps, group.budget.delta, self.accountant
            )
            for (name, group), multiplier in zip(self.groups.items(), noise, strict=True)
        }

    def _so_many(self, steps: int | None) -> int:
        steps = self.steps if steps is None else steps
        check_whole("steps", steps, least=0)
        return int(steps)

    def _each(self, name: str) -> NDArray[np.float64]:
        return np.array([getattr(group, name) for group in self.groups.values()], dtype=np.float64)


def _restored(values: dict[str, Any]) -> DPSGDPlan:
    return DPSGDPlan(**values)


def reach(neighbours: Neighbours) -> int:
    """How many clips an owner moves a sum by: what was there goes, and with replacement another comes."""
    return 1 if neighbours is Neighbours.ADD_OR_REMOVE else 2


def _bound_of(event: Event, cohort: int, delta_0: float) -> GaussianBound | None:
    try:
        return event.bound(cohort, delta_0)
    except InputError:  # δ₀ is too small for it, or what reckons it is not installed
        return None


def granted_mu(budgets: Sequence[Budget]) -> NDArray[np.float64]:
    """Find the μ that each budget buys, rounded down; ``inf`` where it is unlimited."""
    epsilon = np.array([budget.epsilon for budget in budgets])
    delta = np.array([budget.delta for budget in budgets])
    mu = np.empty_like(epsilon)
    for one in np.unique(delta):
        mu[delta == one] = gdp_mu(epsilon[delta == one], float(one))
    return mu
