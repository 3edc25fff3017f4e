"""All composition theorems beside each other: what several mechanisms cost an owner, by each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from collegium.accounting._inputs import as_delta
from collegium.accounting.composition import (
    advanced_composition,
    basic_composition,
    bounded_range_composition,
    optimal_composition,
    zcdp_epsilon,
)
from collegium.accounting.currency import GaussianBound, loss_distributions, self_composed
from collegium.accounting.events import (
    BoundedRange,
    Composition,
    Event,
    Gaussian,
    Laplace,
    PoissonGaussian,
    PureNoise,
)
from collegium.accounting.export import uses_of
from collegium.accounting.gaussian import gdp_epsilon
from collegium.accounting.renyi import DEFAULT_ORDERS, rdp_to_epsilon
from collegium.accounting.subsampled import poisson_gaussian_epsilon
from collegium.checks import check_whole
from collegium.errors import InputError

__all__ = ["ComparedBound", "compare", "towards_group"]

#: What may depend on earlier answers for a bound to hold.
FULLY, MECHANISMS, NOTHING = "fully", "mechanisms", "no"

_SHARE = 0.5 * (1 - 2.0**-40)  # of delta, where a theorem wants some for itself
_CONVOLUTION_ERROR = 1e-11  # as in currency.py: what a convolution may be wrong by
_COARSEST, _POINTS, _LARGEST = 1e-4, 5e4, 200.0  # of dp_accounting's grid of losses
_MOST_DIFFERENT = 100  # mechanisms whose losses are convolved with each other: seconds
_MOST_PEOPLE = 10**12
_ROUND_UP, _TIE = 1 + 1e-12, 1 + 1e-9
# At these, a sampled step's Rényi cost is a finite sum; at others dp_accounting's series may not converge.
_WHOLE_ORDERS = np.unique(
    np.round(DEFAULT_ORDERS[(DEFAULT_ORDERS >= 2) & (DEFAULT_ORDERS < 2_000)])
)


@dataclass(frozen=True)
class ComparedBound:
    """One theorem's answer for a list of events.

    Attributes
    ----------
    name : str
        Of the bound.
    epsilon : float or None
        Per owner, at the delta that was asked for, rounded up; None where the bound does not apply.
    why_not : str
        Why it does not; else empty.
    theorem : str
        Where it is proved; papers and versions: ``docs/composition.md``.
    adaptive : str
        What may depend on earlier answers: "fully", mechanisms and their amounts, so that it may be used
        as a filter; "mechanisms", whose number and amounts are fixed; or "no", nothing.
    tightest : bool
        The smallest epsilon of all, up to rounding.
    relied_on : bool
        Whether it is what the house's own accounts charge: Gaussian DP, and the common currency where there
        is no mu without a delta_0. (Beside Gaussian DP they allow what adds up to few pure epsilons.)

    Examples
    --------
    >>> from collegium.accounting import Gaussian, compare
    >>> basic = compare([Gaussian([1.0], scale=40.0)], 1e-5)[0]
    >>> isinstance(basic, ComparedBound), round(basic.epsilon, 6), basic.adaptive
    (True, 0.074942, 'fully')
    """

    name: str
    epsilon: float | None
    why_not: str
    theorem: str
    adaptive: str
    tightest: bool = False
    relied_on: bool = False

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON."""
        return asdict(self)


def compare(
    events: Event | Sequence[Event], delta: float, cohort: int = 0, group: int = 1
) -> tuple[ComparedBound, ...]:
    """Bound what several mechanisms cost an owner together, by every theorem there is.

    Basic, advanced and optimal composition know of each mechanism only an (epsilon, delta): where one has
    no pure epsilon (Gaussian noise), half of delta is shared evenly between such mechanisms (all of it for
    basic composition), sampled steps one by one, and each is stated at its share. The others use what they
    know of the noise. All are about the neighbours that the events name.

    Parameters
    ----------
    events : Event, or sequence of Event
        What is done; a :class:`~collegium.accounting.events.Composition` says how often.
    delta : float
        In (0, 1), per owner, of everything together.
    cohort : int, default 0
        Towards whom: place in the events' arrays.
    group : int, default 1
        How many people are to be protected together (see :func:`towards_group`).

    Returns
    -------
    tuple of ComparedBound
        From the simplest to the sharpest, those that do not apply among them.

    Raises
    ------
    InputError
        If events are about different cohorts or neighbours, promise nothing, or delta is out of range.

    Examples
    --------
    >>> from collegium.accounting import Composition, PureNoise, compare
    >>> hundred = Composition([PureNoise([0.1])], [100])
    >>> for bound in compare(hundred, 1e-5):
    ...     if bound.epsilon is not None and bound.name != "loss distribution":
    ...         print(f"{bound.name}: {bound.epsilon:.6f}")
    basic: 10.000000
    advanced, Dwork & Roth: 5.850235
    advanced, Kairouz et al.: 5.298110
    optimal for (ε, δ): 4.306791
    zCDP, as in its paper: 5.298526
    zCDP, best order: 4.728387
    Rényi: 4.615283
    Gaussian DP: 5.696124
    common currency: 5.696124
    """
    delta = as_delta(delta)
    whole = events if isinstance(events, Event) else Composition(events)
    check_whole("cohort", cohort, least=0, most=len(whole) - 1)
    parts = _Parts(towards_group(_gathered(whole), group), cohort, delta)
    for one, _ in parts.uses:
        if isinstance(one, PureNoise | BoundedRange) and math.isinf(one.pure_epsilon[0]):
            raise InputError(
                f"{one} that promises nothing (ε = ∞) has no cost at any δ: leave it out"
            )
    rows = []
    for name, theorem, adaptive, bound in _BOUNDS:
        epsilon: float | None
        why_not = ""
        try:
            epsilon = bound(parts)
        except InputError as error:
            epsilon, why_not = None, str(error).rstrip(".")
        except (ArithmeticError, ValueError):
            epsilon, why_not = (
                None,
                "its formula cannot be computed with such numbers in floating point",
            )
        if epsilon is not None and math.isinf(epsilon):
            epsilon, why_not = None, "it gives no finite ε"
        rows.append(ComparedBound(name, epsilon, why_not, theorem, adaptive))
    found = [row.epsilon for row in rows if row.epsilon is not None]
    applies = {row.name for row in rows if row.epsilon is not None}
    charged = _GAUSSIAN if _GAUSSIAN in applies else _CURRENCY
    return tuple(
        replace(
            row,
            tightest=row.epsilon is not None and row.epsilon <= min(found) * _TIE,
            relied_on=row.name == charged,
        )
        for row in rows
    )


def _gathered(event: Event) -> Event:
    """Count equal events of a composition, so that each is computed once."""
    if not isinstance(event, Composition):
        return event
    counts: dict[Event, int] = {}
    for one, count in event._single():
        counts[one] = counts.get(one, 0) + count
    is_gathered = len(counts) < len(event.events)
    return Composition(list(counts), list(counts.values())) if is_gathered else event


def towards_group(event: Event, size: int) -> Event:
    """State an event towards groups of owners: they move what is noised by `size` times as much.

    By the triangle inequality along a chain of neighbours; log-ratios (pure, bounded range) add up along it
    as well. For Poisson samples this is refused: a group takes part in parts.

    Parameters
    ----------
    event : Event
    size : int
        People in the group, at least 1.

    Examples
    --------
    >>> from collegium.accounting import Gaussian
    >>> towards_group(Gaussian([1.0, 2.0], scale=10.0), 3).sensitivity
    array([3., 6.])
    """
    check_whole("group", size, least=1, most=_MOST_PEOPLE)
    if size == 1:
        return event
    if isinstance(event, Composition):
        return Composition([towards_group(one, size) for one in event.events], event.counts)
    for amount in ("sensitivity", "epsilon", "eta"):
        if hasattr(event, amount):
            one = getattr(event, amount)
            moved: dict[str, Any] = {amount: np.where(one > 0, np.nextafter(size * one, np.inf), 0)}
            return replace(event, **moved)
    raise InputError(f"{event} is accounted for one owner at a time: leave groups out")


class _Parts:
    """What is composed, towards one owner: single events with how often, and delta."""

    def __init__(self, event: Event, cohort: int, delta: float) -> None:
        self.event, self.cohort, self.delta = event, cohort, delta
        self.uses = [(use.event, use.count) for use in uses_of(event, cohort) if use.count]
        self.impure = sum(
            count * _repeats(one) for one, count in self.uses if math.isinf(one.pure_epsilon[0])
        )

    def stated(self, of_delta: float) -> tuple[list[float], list[float], list[int]]:
        """Each mechanism as (epsilon, delta), those without a pure epsilon with even shares of `of_delta`."""
        share = of_delta * (1 - 2.0**-40) / max(self.impure, 1)
        epsilons, deltas, counts = [], [], []
        for one, count in self.uses:
            if math.isinf(one.pure_epsilon[0]):
                epsilons.append(self._epsilon_at(one, share))
                deltas.append(share)
            else:
                epsilons.append(_of_one_coordinate(one))
                deltas.append(0.0)
            counts.append(count * _repeats(one))
        return epsilons, deltas, counts

    def bound(self) -> GaussianBound:
        """In the common currency; a hundredth of delta is for what it needs a delta_0 for."""
        return self.event.bound(self.cohort, self.delta / 100)

    @staticmethod
    def _epsilon_at(one: Event, delta: float) -> float:
        if isinstance(one, PoissonGaussian):
            rate, noise = float(one.rate[0]), float(one.noise_multiplier[0])
            account = "pld" if delta > 2 * _CONVOLUTION_ERROR else "rdp"
            return poisson_gaussian_epsilon(rate, noise, 1, delta, account)
        return gdp_epsilon(math.sqrt(float(one.mu_squared[0])) * _ROUND_UP, delta)


def _of_one_coordinate(one: Event) -> float:
    if isinstance(one, Laplace):
        return float(replace(one, coordinates=1).pure_epsilon[0])
    return float(one.pure_epsilon[0])


def _basic(parts: _Parts) -> float:
    return basic_composition(*parts.stated(parts.delta)).epsilon


def _halved(parts: _Parts) -> tuple[list[float], float, list[float], list[int]]:
    slack = parts.delta * _SHARE if parts.impure else parts.delta
    epsilons, deltas, counts = parts.stated(parts.delta * _SHARE)
    return epsilons, slack, deltas, counts


def _advanced(parts: _Parts) -> float:
    return advanced_composition(*_halved(parts)).epsilon


def _kairouz(parts: _Parts) -> float:
    return advanced_composition(*_halved(parts), form="kairouz").epsilon


def _optimal(parts: _Parts) -> float:
    return optimal_composition(*_halved(parts)).epsilon


def _rho(parts: _Parts) -> float:
    total = 0.0
    for one, count in parts.uses:
        if isinstance(one, PoissonGaussian) and one.rate[0] < 1:
            raise InputError("Gaussian noise on samples has no Rényi bound linear in the order")
        if isinstance(one, Gaussian | PoissonGaussian):
            rho = float(one.mu_squared[0]) / 2
        elif isinstance(one, BoundedRange):
            rho = float(one.eta[0]) ** 2 / 8
        else:
            coordinates = one.coordinates if isinstance(one, Laplace) else 1
            rho = coordinates * _of_one_coordinate(one) ** 2 / 2
        total += count * rho
    return total * _ROUND_UP


def _zcdp(parts: _Parts) -> float:
    return zcdp_epsilon(_rho(parts), parts.delta, "bun-steinke")


def _zcdp_best(parts: _Parts) -> float:
    return zcdp_epsilon(_rho(parts), parts.delta)


def _renyi(parts: _Parts) -> float:
    sampled = any(isinstance(one, PoissonGaussian) for one, _ in parts.uses)
    orders = _WHOLE_ORDERS if sampled else DEFAULT_ORDERS
    curve = parts.event.rdp(orders)[parts.cohort]
    return float(rdp_to_epsilon(curve, orders, parts.delta)[0])


def _gaussian(parts: _Parts) -> float:
    for one, _ in parts.uses:
        if isinstance(one, PoissonGaussian) and one.rate[0] < 1:
            raise InputError("Gaussian noise on samples has no μ without a δ₀ beside it")
    mu_squared = float(parts.event.mu_squared[parts.cohort])
    return gdp_epsilon(math.sqrt(mu_squared) * _ROUND_UP, parts.delta)


def _currency(parts: _Parts) -> float:
    return parts.bound().epsilon(parts.delta)


def _bounded_range(parts: _Parts) -> float:
    ranges = {float(one.eta[0]) if isinstance(one, BoundedRange) else None for one, _ in parts.uses}
    if len(ranges) != 1 or None in ranges:
        raise InputError("it is for exponential mechanisms of one range alone")
    (eta,) = ranges
    assert eta is not None
    count = sum(count for _, count in parts.uses)
    return bounded_range_composition(eta, count, parts.delta)


def _loss_distribution(parts: _Parts) -> float:
    try:
        pld = import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        raise InputError("it needs the package dp-accounting") from None
    if len(parts.uses) > _MOST_DIFFERENT:
        raise InputError(f"it takes too long for more than {_MOST_DIFFERENT} different mechanisms")
    if parts.delta <= 2 * _CONVOLUTION_ERROR:
        raise InputError(f"δ must be above {2 * _CONVOLUTION_ERROR:g} for its floating point")
    bound = parts.bound()
    rough = bound.epsilon(parts.delta)
    if rough > _LARGEST:
        raise InputError(f"losses of ε = {rough:.0f} are too large for its grid")
    # A grid as coarse as the losses themselves would add up to much where there are many of them.
    least = min((_size_of(one) for one, _ in parts.uses), default=1.0)
    interval = max(min(_COARSEST, least / 10), max(rough, bound.mu) / _POINTS)
    together: Any = None
    for one, count in parts.uses:
        losses = self_composed(_losses_of(one, interval, pld), count * _repeats(one))
        together = losses if together is None else together.compose(losses)
    if together is None:
        return 0.0
    return max(one.epsilon(parts.delta) for one in loss_distributions(together))


def _repeats(one: Event) -> int:
    """How many mechanisms one event is: sampled steps, and coordinates with Laplace noise."""
    if isinstance(one, PoissonGaussian):
        return one.steps
    return one.coordinates if isinstance(one, Laplace) else 1


def _size_of(one: Event) -> float:
    """How large a loss of one event is about."""
    if isinstance(one, PoissonGaussian):
        return float(one.rate[0] / one.noise_multiplier[0])
    if isinstance(one, Gaussian):
        return math.sqrt(float(one.mu_squared[0]))
    return _of_one_coordinate(one)


def _losses_of(one: Event, interval: float, pld: Any) -> Any:
    grid = {"value_discretization_interval": interval}
    if isinstance(one, PoissonGaussian):
        noise, rate = float(one.noise_multiplier[0]), float(one.rate[0])
        return pld.from_gaussian_mechanism(noise, sampling_prob=rate, **grid)
    if isinstance(one, Gaussian):
        return pld.from_gaussian_mechanism(1 / math.sqrt(float(one.mu_squared[0])), **grid)
    if isinstance(one, Laplace):
        return pld.from_laplace_mechanism(1 / _of_one_coordinate(one), **grid)
    if isinstance(one, BoundedRange):
        raise InputError("no single pair of distributions is the worst for exponential mechanisms")
    truth = -np.logaddexp(0.0, -float(one.pure_epsilon[0]))
    lie = -np.logaddexp(0.0, float(one.pure_epsilon[0]))
    return pld.from_two_probability_mass_functions({0: lie, 1: truth}, {0: truth, 1: lie}, **grid)


_GAUSSIAN, _CURRENCY = "Gaussian DP", "common currency"
_Bound = Callable[[_Parts], float]
_BOUNDS: list[tuple[str, str, str, _Bound]] = [
    ("basic", "Dwork & Roth, 3.16", FULLY, _basic),
    ("advanced, Dwork & Roth", "Dwork & Roth, 3.20", MECHANISMS, _advanced),
    ("advanced, Kairouz et al.", "Kairouz et al., 3.5", MECHANISMS, _kairouz),
    ("optimal for (ε, δ)", "Kairouz et al., 3.3", MECHANISMS, _optimal),
    ("zCDP, as in its paper", "Bun & Steinke, 1.3", FULLY, _zcdp),
    ("zCDP, best order", "Canonne et al., 12", FULLY, _zcdp_best),
    ("Rényi", "Mironov, 1", MECHANISMS, _renyi),
    (_GAUSSIAN, "Dong, Roth & Su, 3.3", FULLY, _gaussian),
    (_CURRENCY, "Smith & Thakurta", FULLY, _currency),
    ("bounded range, fixed", "Dong et al., 3", NOTHING, _bounded_range),
    ("loss distribution", "Doroshenko et al.", MECHANISMS, _loss_distribution),
]
