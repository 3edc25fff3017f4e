"""Events: what was noised, how much, and how far one owner of each cohort moves it.

An event is a frozen value. It says everything about a mechanism that a public account needs, and nothing
about data: how far an owner *can* move what is noised follows from the plan. What it costs follows from it,
in every notion; costs are rounded up. An event may be chosen in the light of everything released before it.

Arrays have one entry for each cohort of owners, and are read-only. An owner whom an event cannot touch
(sensitivity, ε, range or rate 0) pays nothing.

Costs are towards the neighbours that an event names: towards others, it would be another event.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from collegium.accounting._inputs import as_floats
from collegium.accounting.arg_max import gaussian_arg_max_rdp
from collegium.accounting.bookkeeping import MOST_CHARGES, add_repeatedly, add_up
from collegium.accounting.currency import (
    GaussianBound,
    gaussian_bound,
    laplace_bound,
    poisson_gaussian_bound,
    pure_bound,
)
from collegium.accounting.gaussian import pure_to_gdp
from collegium.accounting.neighbours import Neighbours
from collegium.accounting.renyi import laplace_rdp, poisson_gaussian_rdp, pure_rdp, validate_orders
from collegium.checks import check_is, check_number, check_positive, is_number, is_whole, shown
from collegium.errors import InputError

__all__ = [
    "BoundedRange",
    "Composition",
    "Event",
    "Gaussian",
    "GaussianArgMax",
    "Laplace",
    "Nothing",
    "PoissonGaussian",
    "PureNoise",
    "SensitiveCurve",
    "rounded_up",
]

Floats = NDArray[np.float64]


def rounded_up(values: Floats) -> Floats:
    """Make up for a handful of floating-point operations: by four units in the last place; 0 stays 0."""
    return np.where(values > 0, values * (1 + 2.0**-50), 0.0)


@dataclass(frozen=True, eq=False)
class Event(ABC):
    """What one mechanism does to the owners of each cohort.

    ``neighbours``: what may differ: the event's numbers hold about these neighbours.
    """

    neighbours: Neighbours = field(default=Neighbours.ANY_CHANGE, kw_only=True)
    sensitive: ClassVar[bool] = False
    words: ClassVar[str]

    @property
    @abstractmethod
    def mu_squared(self) -> Floats:
        """μ² of Gaussian DP for each cohort, rounded up, shape (n_cohorts,).

        Raises InputError if no μ holds without a δ₀ beside it.
        """

    @property
    @abstractmethod
    def pure_epsilon(self) -> Floats:
        """ε of pure DP for each cohort, rounded up, shape (n_cohorts,); ``inf`` where there is none."""

    @abstractmethod
    def rdp(self, orders: Floats) -> Floats:
        """Rényi-DP ε for each cohort at each order, rounded up, shape (n_cohorts, n_orders)."""

    @abstractmethod
    def bound(self, cohort: int, delta_0: float = 0.0) -> GaussianBound:
        """Cost in the common currency of all accounts, towards an owner of one cohort.

        ``delta_0``: needed, and used, by Poisson samples only.
        """

    def towards(self, cohort: int) -> Self:
        """Keep one cohort only."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        kept: dict[str, Any] = {
            name: value[[cohort]] for name, value in own.items() if isinstance(value, np.ndarray)
        }
        return replace(self, **kept)

    @abstractmethod
    def __len__(self) -> int: ...

    def __str__(self) -> str:
        return self.words

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __add__(self, other: Event) -> Composition:
        return Composition((self, other)) if isinstance(other, Event) else NotImplemented

    def _key(self) -> tuple[Any, ...]:
        own = (getattr(self, one.name) for one in fields(self))
        return type(self), *(tuple(v.tolist()) if isinstance(v, np.ndarray) else v for v in own)

    def _keep(self, name: str, value: Any, largest: float = np.inf, infinite: bool = False) -> None:
        """Keep a read-only copy of amounts per cohort, if they make sense."""
        amounts = np.array(as_floats(name, value))
        if amounts.ndim != 1 or not amounts.size:
            raise InputError(
                f"{name} needs one number for each cohort, got shape {amounts.shape}; give a list of them"
            )
        if not ((amounts >= 0) & (amounts <= largest)).all() or (
            np.isinf(amounts).any() and not infinite
        ):
            allowed = f"at least 0{'' if infinite else ' and finite'}"
            allowed += f" and at most {largest:g}" if np.isfinite(largest) else ""
            raise InputError(f"{name} must be {allowed} for every cohort, got {amounts.tolist()}")
        amounts.setflags(write=False)
        object.__setattr__(self, name, amounts)


@dataclass(frozen=True, eq=False)
class Nothing(Event):
    """Nothing was drawn, nothing was released: costs nothing."""

    n_cohorts: int
    words = "nothing"

    def __len__(self) -> int:
        return self.n_cohorts

    @cached_property
    def mu_squared(self) -> Floats:
        """0."""
        return np.zeros(self.n_cohorts)

    @cached_property
    def pure_epsilon(self) -> Floats:
        """0."""
        return np.zeros(self.n_cohorts)

    def rdp(self, orders: Floats) -> Floats:
        """0."""
        return np.zeros((self.n_cohorts, len(orders)))

    def bound(self, cohort: int, delta_0: float = 0.0) -> GaussianBound:
        """0."""
        return GaussianBound(0.0)

    def towards(self, cohort: int) -> Self:
        """Keep one cohort only."""
        return replace(self, n_cohorts=1)


@dataclass(frozen=True, eq=False)
class Gaussian(Event):
    """Independent N(0, scale²) was added to every coordinate of a vector, and the vector released.

    An owner moves at most ``coordinates`` of its coordinates, each by at most the sensitivity; what is
    computed from the noisy vector costs nothing more. μ² = coordinates · (sensitivity/scale)²
    (Dong, Roth & Su 2022, arXiv 1905.02383v3, Theorem 2.7); Rényi: μ²α/2, exactly (Mironov 2017, arXiv
    1702.07476v3, Proposition 7).

    Attributes
    ----------
    sensitivity : ndarray, shape (n_cohorts,)
        How far an owner moves one coordinate. An L2 sensitivity belongs here with ``coordinates=1``.
    scale : float
        Standard deviation, in the unit of the sensitivity.
    coordinates : int, default=1
        How many coordinates an owner moves.
    """

    sensitivity: Floats
    scale: float
    coordinates: int = 1
    words = "Gaussian noise"

    def __post_init__(self) -> None:
        self._keep("sensitivity", self.sensitivity)
        check_positive("scale", self.scale)
        _require_count("coordinates", self.coordinates)

    def __len__(self) -> int:
        return len(self.sensitivity)

    @cached_property
    def mu_squared(self) -> Floats:
        """coordinates · (sensitivity/scale)²."""
        return rounded_up(self.coordinates * (self.sensitivity / self.scale) ** 2)

    @cached_property
    def pure_epsilon(self) -> Floats:
        """``inf`` for whom it touches."""
        return np.where(self.sensitivity > 0, np.inf, 0.0)

    def rdp(self, orders: Floats) -> Floats:
        """μ²α/2."""
        return rounded_up(self.mu_squared[:, None] * validate_orders(orders) / 2)

    def bound(self, cohort: int, delta_0: float = 0.0) -> GaussianBound:
        """Exact."""
        moves = float(self.sensitivity[cohort])
        return gaussian_bound(self.scale / moves, self.coordinates) if moves else GaussianBound(0.0)


@dataclass(frozen=True, eq=False)
class GaussianArgMax(Gaussian):
    """Independent N(0, scale²) was added to every coordinate, and only which one is the largest released.

    An owner moves weight up to the sensitivity from some coordinates to others. μ² is that of the whole noisy
    vector: a single label may tell as much about one threshold. Its Rényi cost is lower, by about 0.64 at
    moderate orders (proof: ``docs/vote-accounts.md``).

    Attributes
    ----------
    sensitivity : ndarray, shape (n_cohorts,)
        Weight that an owner moves.
    scale : float
    coordinates : int, default=2
        2: what is taken from one is given to another.
    resolution : float, default=0.0
        Grid step to which the noisy vector was rounded, if it was.

    Examples
    --------
    >>> from collegium.accounting import GaussianAccountant, RenyiAccountant
    >>> label = GaussianArgMax([1.0], scale=40.0)
    >>> GaussianAccountant([1.0], 1e-5).how_many(label), RenyiAccountant([1.0], 1e-5).how_many(label)
    (57, 74)
    """

    coordinates: int = 2
    resolution: float = 0.0
    words = "the arg max of Gaussian noise"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("resolution", self.resolution, least=0, below=np.inf)
        if self.coordinates != 2:
            raise InputError(
                f"an arg max has two coordinates that are moved, got {shown(self.coordinates)}: leave it out"
            )

    def rdp(self, orders: Floats) -> Floats:
        """The smaller of the label's bound and μ²α/2."""
        of_label = gaussian_arg_max_rdp(self.sensitivity, self.scale, orders, self.resolution)
        return np.minimum(rounded_up(of_label), super().rdp(orders))


@dataclass(frozen=True, eq=False)
class Laplace(Event):
    """Independent Laplace noise was added to every coordinate of a vector, and the vector released.

    An owner moves at most ``coordinates`` of its coordinates, each by at most the sensitivity:
    ε = coordinates · inverse_scale · sensitivity (Dwork, McSherry, Nissim & Smith 2006).

    Attributes
    ----------
    sensitivity : ndarray, shape (n_cohorts,)
        How far an owner moves one coordinate. An L1 sensitivity belongs here with ``coordinates=1``.
    inverse_scale : float
        1/b for the density exp(-|x|/b)/2b, per unit of the sensitivity.
    coordinates : int, default=1
        How many coordinates an owner moves.
    """

    sensitivity: Floats
    inverse_scale: float
    coordinates: int = 1
    words = "Laplace noise"

    def __post_init__(self) -> None:
        self._keep("sensitivity", self.sensitivity)
        check_positive("inverse_scale", self.inverse_scale)
        _require_count("coordinates", self.coordinates)

    def __len__(self) -> int:
        return len(self.sensitivity)

    @cached_property
    def mu_squared(self) -> Floats:
        """That of any mechanism with this ε; :meth:`bound` is a little sharper."""
        return _squared_mu_of_pure(self.pure_epsilon)

    @cached_property
    def pure_epsilon(self) -> Floats:
        """coordinates · inverse_scale · sensitivity."""
        return rounded_up(self.coordinates * self.inverse_scale * self.sensitivity)

    def rdp(self, orders: Floats) -> Floats:
        """Exact for each coordinate: Mironov 2017, Proposition 6."""
        one = laplace_rdp(self.sensitivity * self.inverse_scale, orders)
        return rounded_up(self.coordinates * one)

    def bound(self, cohort: int, delta_0: float = 0.0) -> GaussianBound:
        """That of each coordinate, composed."""
        moves = float(self.sensitivity[cohort])
        if not moves:
            return GaussianBound(0.0)
        one = laplace_bound(1 / (self.inverse_scale * moves) * (1 - 2.0**-50))
        return GaussianBound.composed(one.repeated(self.coordinates))


@dataclass(frozen=True, eq=False)
class PureNoise(Event):
    """Anything that is (ε, 0)-DP for an owner; nothing else is known about it.

    μ is that of randomised response (:func:`~collegium.accounting.gaussian.pure_to_gdp`), which has the
    largest loss at every test.

    Attributes
    ----------
    epsilon : ndarray, shape (n_cohorts,)
        Not below the true one: whoever computes it rounds it up. May be infinite.
    """

    epsilon: Floats
    words = "a purely private mechanism"

    def __post_init__(self) -> None:
        self._keep("epsilon", self.epsilon, infinite=True)

    def __len__(self) -> int:
        return len(self.epsilon)

    @cached_property
    def mu_squared(self) -> Floats:
        """That of randomised response."""
        return _squared_mu_of_pure(self.epsilon)

    @cached_property
    def pure_epsilon(self) -> Floats:
        """ε."""
        return self.epsilon

    def rdp(self, orders: Floats) -> Floats:
        """That of randomised response."""
        return pure_rdp(self.epsilon, orders)

    def bound(self, cohort: int, delta_0: float = 0.0) -> GaussianBound:
        """That of randomised response."""
        return pure_bound(float(self.epsilon[cohort]))


@dataclass(frozen=True, eq=False)
class BoundedRange(Event):
    """Anything whose log-ratios for an owner lie in an interval of length η that contains 0.

    The exponential mechanism is of this kind, and so is choosing by Gumbel noise (Durfee & Rogers 2019, arXiv
    1905.04273). It is (η, 0)-DP, (η²/8)-zCDP (Cesar & Rogers 2021, arXiv 2004.07223), and μ-GDP with the μ
    of (η/2, 0)-DP (proof in ``docs/vote-accounts.md``).

    Attributes
    ----------
    eta : ndarray, shape (n_cohorts,)
        Not below the true one: whoever computes it rounds it up. May be infinite.
    """

    eta: Floats
    words = "an exponential mechanism"

    def __post_init__(self) -> None:
        self._keep("eta", self.eta, infinite=True)

    def __len__(self) -> int:
        return len(self.eta)

    @cached_property
    def mu_squared(self) -> Floats:
        """That of randomised response at η/2."""
        return _squared_mu_of_pure(self.eta / 2)

    @cached_property
    def pure_epsilon(self) -> Floats:
        """η."""
        return self.eta

    def rdp(self, orders: Floats) -> Floats:
        """The smaller of η²α/8 and that of (η, 0)-DP."""
        with np.errstate(over="ignore"):
            by_range = rounded_up(self.eta[:, None] ** 2 * validate_orders(orders) / 8)
        return np.minimum(by_range, pure_rdp(self.eta, orders))

    def bound(self, cohort: int, delta_0: float = 0.0) -> GaussianBound:
        """That of randomised response at η/2."""
        return pure_bound(float(self.eta[cohort]) / 2)


@dataclass(frozen=True, eq=False)
class PoissonGaussian(Event):
    """Steps that each noise the sum over a fresh Poisson sample of owners, and release the noisy vector.

    In every step an owner takes part with probability ``rate``, independently of all others and of other
    steps, and moves the sum by at most scale/noise_multiplier in L2. Rates, noise and the number of steps
    are fixed beforehand. Neighbours are those of an owner who is there or not: with replacement, a
    subsampled step costs about twice the ε, and would be another event.

    There is no μ without a δ₀: a Gaussian account takes it only where every rate is 0 or 1.

    Attributes
    ----------
    rate : ndarray, shape (n_cohorts,)
        In [0, 1].
    noise_multiplier : ndarray, shape (n_cohorts,)
        Standard deviation of the noise divided by how far an owner who takes part moves the sum.
    steps : int, default=1
    """

    rate: Floats
    noise_multiplier: Floats
    steps: int = 1
    neighbours: Neighbours = field(default=Neighbours.ADD_OR_REMOVE, kw_only=True)
    words = "Gaussian noise on Poisson samples"

    def __post_init__(self) -> None:
        self._keep("rate", self.rate, largest=1.0)
        self._keep("noise_multiplier", self.noise_multiplier)
        _require_count("steps", self.steps, least=0)
        if self.rate.shape != self.noise_multiplier.shape or not self.noise_multiplier.all():
            raise InputError(
                "noise_multiplier needs one number above 0 for each rate; correct the settings"
            )
        if self.neighbours is not Neighbours.ADD_OR_REMOVE:
            raise InputError(
                f"Poisson samples are accounted for owners who are there or not, not for "
                f"{self.neighbours.value!r}: use neighbours ADD_OR_REMOVE"
            )

    def __len__(self) -> int:
        return len(self.rate)

    @cached_property
    def mu_squared(self) -> Floats:
        """steps/noise_multiplier² for those who always take part."""
        if ((self.rate > 0) & (self.rate < 1)).any():
            raise InputError(
                "Gaussian noise on Poisson samples has no Gaussian-DP cost without a δ₀: use a Rényi "
                "account, or its bound(cohort, delta_0); nothing was charged"
            )
        return rounded_up(self.rate * self.steps / self.noise_multiplier**2)

    @cached_property
    def pure_epsilon(self) -> Floats:
        """``inf`` for whom it touches."""
        return np.where(self.rate * self.steps > 0, np.inf, 0.0)

    def rdp(self, orders: Floats) -> Floats:
        """From dp-accounting (Mironov, Talwar & Zhang 2019, arXiv 1908.10530)."""
        pairs = list(zip(self.rate.tolist(), self.noise_multiplier.tolist(), strict=True))
        known = {pair: poisson_gaussian_rdp(*pair, orders) for pair in set(pairs)}
        return rounded_up(self.steps * np.array([known[pair] for pair in pairs]))

    def bound(self, cohort: int, delta_0: float = 0.0) -> GaussianBound:
        """From the pessimistic privacy loss distribution; see ``docs/composition.md``."""
        rate, noise = float(self.rate[cohort]), float(self.noise_multiplier[cohort])
        return poisson_gaussian_bound(rate, noise, self.steps, delta_0)


@dataclass(frozen=True, eq=False, init=False)
class Composition(Event):
    """Several events, one after the other, each as often as its count says.

    Attributes
    ----------
    events : sequence of Event, at least 1
        Of the same cohorts.
    counts : sequence of int, optional
        How often; default: once each.
    neighbours : Neighbours
        Follows from the events: the neighbours about whom all of them hold.
    """

    events: tuple[Event, ...]
    counts: tuple[int, ...]

    def __init__(self, events: Sequence[Event], counts: Sequence[int] = ()) -> None:
        events = _sequence("events", events)
        counts = _sequence("counts", counts) or (1,) * len(events)
        for event in events:
            check_is("an event", event, Event, "make one such as Gaussian([1.0], scale=40.0)")
        if not events or len({len(event) for event in events}) != 1 or len(counts) != len(events):
            raise InputError(
                "a composition needs events of the same cohorts, with one count for each of them"
            )
        for count in counts:
            _require_count("count", count, least=0)
        object.__setattr__(self, "events", tuple(events))
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "neighbours", _about_all([event.neighbours for event in events]))

    def __len__(self) -> int:
        return len(self.events[0])

    @cached_property
    def mu_squared(self) -> Floats:
        """Σ μ² (Dong, Roth & Su 2022, Corollary 3.3)."""
        return self._summed([event.mu_squared for event in self.events])

    @cached_property
    def pure_epsilon(self) -> Floats:
        """Σ ε."""
        return self._summed([event.pure_epsilon for event in self.events])

    def rdp(self, orders: Floats) -> Floats:
        """Added up order by order (Mironov 2017, Proposition 1)."""
        return self._summed([event.rdp(orders) for event in self.events])

    def bound(self, cohort: int, delta_0: float = 0.0) -> GaussianBound:
        """Composed of all; delta_0 is shared evenly between those that need one."""
        parts = [(event, count) for event, count in self._single() if count]
        leaks = sum(count for event, count in parts if isinstance(event, PoissonGaussian))
        share = delta_0 / max(leaks, 1) * (1 - 2.0**-48)  # what composing rounds up
        bounds = [event.bound(cohort, share).repeated(count) for event, count in parts]
        return GaussianBound.composed(one for some in bounds for one in some)

    def towards(self, cohort: int) -> Self:
        """Keep one cohort only."""
        return type(self)([event.towards(cohort) for event in self.events], self.counts)

    def __str__(self) -> str:
        return " and ".join(
            dict.fromkeys(str(e) for e in self.events if not isinstance(e, Nothing))
        )

    def _single(self) -> Iterator[tuple[Event, int]]:
        """Yield the events that are no compositions, with how often each happened in all."""
        for event, count in zip(self.events, self.counts, strict=True):
            if isinstance(event, Composition):
                yield from ((one, inner * count) for one, inner in event._single())
            else:
                yield event, count

    def _summed(self, parts: list[Floats]) -> Floats:
        """Add up as an account does that is charged with one after the other: rounded up each time."""
        counted = [(part, c) for part, c in zip(parts, self.counts, strict=True) if c]
        if not counted:
            return np.zeros_like(parts[0])
        first, often = counted[0]
        total = add_repeatedly(first, first, often - 1) if often > 1 else first
        for part, count in counted[1:]:
            total = add_up(total, part) if count == 1 else add_repeatedly(total, part, count)
        return total


@dataclass(frozen=True, eq=False)
class SensitiveCurve:
    """What one mechanism cost each cohort on this one data set, computed from votes. **Sensitive.**

    ``sensitive_rdp`` (n_cohorts, n_orders): Rényi-DP ε at each order.
    ``orders`` (n_orders,): orders α > 1.
    ``neighbours``: what may differ.
    """

    sensitive_rdp: Floats
    orders: Floats
    neighbours: Neighbours = Neighbours.ANY_CHANGE
    sensitive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        shape = np.shape(self.sensitive_rdp)
        if len(shape) != 2 or shape[1] != len(self.orders):
            raise InputError(f"a cost of shape {shape} was given at {len(self.orders)} orders")

    def __len__(self) -> int:
        return len(self.sensitive_rdp)

    def __str__(self) -> str:
        return "an event of sensitive cost"

    def __add__(self, other: SensitiveCurve) -> SensitiveCurve:
        if not isinstance(other, SensitiveCurve):
            return NotImplemented
        if not np.array_equal(self.orders, other.orders):
            raise InputError(
                "two costs at different orders do not add up: compute them at the same"
            )
        return SensitiveCurve(
            add_up(self.sensitive_rdp, other.sensitive_rdp),
            self.orders,
            _about_all([self.neighbours, other.neighbours]),
        )


def _sequence(name: str, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str | bytes):
        raise InputError(f"{name} must be a list, got {shown(values)}")
    return tuple(values)


def _about_all(neighbours: Sequence[Neighbours]) -> Neighbours:
    narrow = {one for one in neighbours if one is not Neighbours.ANY_CHANGE}
    if len(narrow) > 1:
        raise InputError(
            f"costs about different neighbours ({' and '.join(sorted(one.value for one in narrow))}) do not "
            "add up: state all of them about the same"
        )
    return narrow.pop() if narrow else Neighbours.ANY_CHANGE


def _squared_mu_of_pure(epsilon: Floats) -> Floats:
    values, back = np.unique(epsilon, return_inverse=True)
    mu = np.array([pure_to_gdp(float(value)) for value in values])[back]
    return rounded_up(mu**2)


def _require_count(name: str, value: Any, least: int = 1) -> None:
    is_one = is_whole(value) or (is_number(value) and float(value).is_integer())
    if not is_one or not least <= value <= MOST_CHARGES:
        raise InputError(f"{name} must be a whole number of at least {least}, got {shown(value)}")
