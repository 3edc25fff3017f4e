"""What every aggregator is, and the kinds of noise: how votes become noisy, and what that costs.

An aggregator says its own events, from a ballot alone; and, for a data-dependent account, bounds computed
from the raw votes, which are **sensitive**. All its numbers are given for a total vote weight of k teachers
and scaled with the ballot (see :class:`~collegium.personalisation.electorate.Ballot`).
"""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.events import Event, Gaussian, GaussianArgMax, Nothing
from collegium.accounting.neighbours import Neighbours
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    threshold_log_q,
    threshold_rdp,
    threshold_rdp_data_independent,
    threshold_rdp_exact,
)
from collegium.accounting.votes.winner_probability import gnmax_log_q_exact
from collegium.checks import check_number
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.parameters import Searchable
from collegium.personalisation.electorate import Ballot, Electorate

Floats = NDArray[np.float64]
ANY_CHANGE = Neighbours.ANY_CHANGE


@dataclass(frozen=True, repr=False)
class Aggregator(Searchable, ABC):
    """A noisy maximum, possibly behind a noisy check.

    Noise that is not given follows the number of teachers: :meth:`resolved` fills it in, and without it
    nothing can be drawn or priced.

    Attributes
    ----------
    name : str
        Name in configurations.
    noise : {"gaussian", "laplace", "exponential", "gumbel"}
        Distribution of the answer's noise: the kind of a :class:`~collegium.noise.sums.Noise`.
    pays_for_histogram : bool
        Whether the worst-case account of an answer covers the whole vector of noisy counts, and not
        only which of them is the largest. False unless it is proved.
    has_label_price : bool
        Whether a label alone costs less than that vector.
    has_check : bool
        Whether a noisy check decides if a query is answered.
    consults_student : bool
        Whether a student's opinion decides with it.
    """

    name: ClassVar[str]
    noise: ClassVar[str]
    pays_for_histogram: ClassVar[bool] = False
    has_label_price: ClassVar[bool] = False
    has_check: ClassVar[bool] = False
    consults_student: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field in fields(self):
            parameter, value = field.name, getattr(self, field.name)
            if value is None and field.default is None:
                continue
            check_number(f"{self.name}: {parameter}", value, above=-math.inf, below=math.inf)
            if parameter.startswith(("sigma", "gamma")) and value <= 0:
                raise InputError(
                    f"{self.name}: {parameter} must be greater than 0, got {value!r}: it is the "
                    "scale of the noise"
                )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.given().items())})"

    def given(self) -> dict[str, Any]:
        """Parameters that have a value, by name."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in own.items() if value is not None}

    def settings(self) -> dict[str, Any]:
        """Name and parameters, for files."""
        return {"name": self.name, **self.given()}

    def resolved(self, n_teachers: int, electorate: Electorate | None = None) -> Self:
        """Fill in the noise that is not given: in proportion to the number of teachers.

        The published settings for MNIST with 250 teachers (T = 200, σ_T = 150, σ = 40; γ = 0.05), scaled.

        Parameters
        ----------
        n_teachers : int
            Nominal number of teachers k.
        electorate : Electorate, optional
            Needed where a number of answers decides on the noise.

        Examples
        --------
        >>> from collegium import ConfidentGNMax
        >>> ConfidentGNMax(sigma=30).resolved(100)
        ConfidentGNMax(threshold=80.0, sigma_threshold=60.0, sigma=30)
        """
        usual = self._usual(n_teachers)
        own = {field.name for field in fields(self)}
        missing = {k: v for k, v in usual.items() if k in own and getattr(self, k) is None}
        return replace(self, **missing)

    def _usual(self, k: int) -> dict[str, float]:
        checks = {"threshold": 0.8 * k, "sigma_threshold": 0.6 * k}
        return {**checks, "sigma": 0.16 * k, "gamma": 12.5 / k}

    def _number(self, parameter: str) -> float:
        """A parameter that has to be known by now."""
        value: float | None = getattr(self, parameter)
        if value is None:
            raise InputError(
                f"{self.name}: {parameter} follows the number of teachers, which is not known here: give "
                f"{parameter}, or call resolved(n_teachers) first"
            )
        return value

    # ------------------------------------------------------------------------------ what is drawn

    @property
    def noise_scale(self) -> float:
        """Scale of the answer's noise, in votes, for a total vote weight of k teachers."""
        raise InputError(f"aggregator {self.name!r} does not say what noise its answers carry")

    @property
    def check_scale(self) -> float:
        """Standard deviation of the check's noise, in votes; NaN without a check."""
        return math.nan

    @property
    def check_threshold(self) -> float:
        """What the noisy check is compared with, in votes; NaN without a check."""
        return math.nan

    def reinforces(self, believed: Floats) -> bool:
        """Whether a student with these beliefs labels a query that the teachers leave to it."""
        return False

    def wants_refit(self, n_new_labels: int) -> bool:
        """Whether the student is fitted again after so many labels."""
        return False

    # ----------------------------------------------------------------------------- what it costs

    def check_event(self, ballot: Ballot, neighbours: Neighbours = ANY_CHANGE) -> Event:
        """Say what a check of one query is, whatever the votes are.

        Parameters
        ----------
        ballot : Ballot
            Who votes, and how far each cohort's owners can move a count.
        neighbours : Neighbours, optional
            About whom the ballot's sensitivities hold.
        """
        return Nothing(len(ballot.sensitivity), neighbours=neighbours)

    def answer_event(self, ballot: Ballot, neighbours: Neighbours = ANY_CHANGE) -> Event:
        """Say what an answer to one query is, whatever the votes are: see :meth:`check_event`."""
        raise InputError(f"aggregator {self.name!r} has no worst-case price")

    def label_event(self, ballot: Ballot, neighbours: Neighbours = ANY_CHANGE) -> Event:
        """Say what an answer is of which only the label is released: see :meth:`check_event`."""
        return self.answer_event(ballot, neighbours)

    def sensitive_check_rdp(
        self, counts: Floats, scale: float, sensitivity: Floats, orders: Floats, bounds: str
    ) -> Floats:
        """Bound the Rényi cost of a check at these votes. **Sensitive.**

        Parameters
        ----------
        counts : ndarray, shape (n, n_classes)
            Weighted votes on some queries.
        scale : float
            The scale of their ballots.
        sensitivity : ndarray, shape (n_levels,)
        orders : ndarray, shape (n_orders,)
        bounds : {"papers", "sharp", "sharp-check", "sharp-q"}
            Those of the papers, or the exact ones of this package.

        Returns
        -------
        ndarray, shape (n, n_levels, n_orders), or (1, n_levels, n_orders) if votes do not matter
        """
        return np.zeros((1, sensitivity.size, orders.size))

    def sensitive_answer_rdp(
        self, counts: Floats, scale: float, sensitivity: Floats, orders: Floats, bounds: str
    ) -> Floats:
        """Bound the Rényi cost of an answer: see :meth:`sensitive_check_rdp`. **Sensitive.**"""
        raise InputError(f"aggregator {self.name!r} has no data-dependent price")


class GaussianAggregator(Aggregator):
    """Answers with arg max_j (n_j + N(0, sigma²)); the vector is √2·Δ/σ-GDP, whatever is read off it.

    Data-dependent: Theorem 6 of Papernot et al. 2018, with the union bound or the exact q.
    """

    sigma: float | None
    noise: ClassVar[str] = "gaussian"
    pays_for_histogram: ClassVar[bool] = True
    has_label_price: ClassVar[bool] = True

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the answer's noise, in votes."""
        return self._number("sigma")

    def answer_event(self, ballot: Ballot, neighbours: Neighbours = ANY_CHANGE) -> Event:
        """Gaussian noise on two counts that an owner moves by Δ: μ² = 2Δ²/(s·σ)²."""
        scale = self.noise_scale * ballot.scale
        return Gaussian(ballot.sensitivity, scale, coordinates=2, neighbours=neighbours)

    def label_event(self, ballot: Ballot, neighbours: Neighbours = ANY_CHANGE) -> Event:
        """Which of the noisy counts is the largest: less than the counts (``docs/vote-accounts.md``)."""
        scale = self.noise_scale * ballot.scale
        moves = ballot.sensitivity
        return GaussianArgMax(moves, scale, resolution=GRID, neighbours=neighbours)

    def sensitive_answer_rdp(
        self, counts: Floats, scale: float, sensitivity: Floats, orders: Floats, bounds: str
    ) -> Floats:
        """Theorem 6 of Papernot et al. 2018. **Sensitive.**"""
        sigma = self.noise_scale
        if bounds in ("sharp", "sharp-q"):
            log_q = gnmax_log_q_exact(counts, sigma * scale, resolution=GRID)
        else:
            log_q = gnmax_log_q(counts, sigma * scale)
        return gnmax_rdp(log_q, sensitivity, sigma * scale, orders)


class CheckedAggregator(GaussianAggregator):
    """Answers only after a check with noise N(0, sigma_threshold²) against ``threshold``.

    The checked value moves by Δ at most, so the noisy value is Δ/σ_T-GDP, and so is everything computed
    from it: the account pays for the value itself, of rejected queries, too.
    """

    threshold: float | None
    sigma_threshold: float | None
    has_check: ClassVar[bool] = True

    @property
    def check_scale(self) -> float:
        """Standard deviation of the check's noise, in votes."""
        return self._number("sigma_threshold")

    @property
    def check_threshold(self) -> float:
        """T, in votes."""
        return self._number("threshold")

    def check_event(self, ballot: Ballot, neighbours: Neighbours = ANY_CHANGE) -> Event:
        """Gaussian noise on a maximum that an owner moves by Δ: μ² = Δ²/(s·σ_T)²."""
        return Gaussian(ballot.sensitivity, self.check_scale * ballot.scale, neighbours=neighbours)

    def sensitive_check_rdp(
        self, counts: Floats, scale: float, sensitivity: Floats, orders: Floats, bounds: str
    ) -> Floats:
        """Theorem 6 of Papernot et al. 2018, or the exact divergence of the two outcomes. **Sensitive.**"""
        value, sigma = counts.max(axis=1), self.check_scale * scale
        threshold = self.check_threshold * scale
        if bounds in ("sharp", "sharp-check"):
            passes_from = (math.ceil(threshold / GRID) - 0.5) * GRID  # before rounding
            return threshold_rdp_exact(value, passes_from, sensitivity, sigma, orders)
        log_q = threshold_log_q(value, threshold, sigma)
        return threshold_rdp(log_q, sensitivity, sigma, orders)

    def _check_rdp_of_any_votes(self, scale: float, sensitivity: Floats, orders: Floats) -> Floats:
        independent = threshold_rdp_data_independent(sensitivity, self.check_scale, orders)
        return np.asarray(independent[None] / (scale * scale))
