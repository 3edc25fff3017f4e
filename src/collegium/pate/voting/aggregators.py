"""The aggregators: from weighted vote counts to one noisy label.

Each class states its mechanism, its sensitivity and what it costs. What they share is in
:mod:`collegium.pate.voting.noisy_maxima`; there it says how noise that is not given follows the number of
teachers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.events import BoundedRange, Event, Laplace, PureNoise, rounded_up
from collegium.accounting.neighbours import Neighbours
from collegium.accounting.votes.laplace_max import lnmax_log_q, lnmax_pure_epsilon, lnmax_rdp
from collegium.accounting.votes.pure_max import (
    exponential_log_q,
    exponential_rdp,
    permute_and_flip_log_q,
)
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.pate.voting.least_noise import least_sigma
from collegium.pate.voting.noisy_maxima import (
    ANY_CHANGE,
    Aggregator,
    CheckedAggregator,
    GaussianAggregator,
)
from collegium.personalisation.electorate import Ballot, Electorate

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "ConfidentGNMax",
    "ExponentialMax",
    "GNMax",
    "InteractiveGNMax",
    "LNMax",
    "PermuteAndFlip",
    "aggregator_from",
]

Floats = NDArray[np.float64]


class PureAggregator(Aggregator):
    """Answers with arg max_j (n_j + noise of scale 1/gamma), (ε, 0)-DP per answer.

    Data-dependent: Theorem 3 of Papernot et al. 2017.
    """

    gamma: float | None

    @property
    def noise_scale(self) -> float:
        """Scale of the answer's noise, in votes."""
        return 1 / self._number("gamma")

    def inverse_scale(self, ballot_scale: float) -> float:
        """γ at a ballot of this scale."""
        return self._number("gamma") / ballot_scale


@dataclass(frozen=True, repr=False)
class LNMax(PureAggregator):
    """Noisy maximum with Laplace noise: arg max_j (n_j + Lap(1/γ)) (Papernot et al. 2017).

    Parameters
    ----------
    gamma : float, optional
        Inverse scale of the noise, for a total vote weight of k teachers; default: 12.5/k.

    Notes
    -----
    An owner with sensitivity Δ moves two counts by Δ at most, so 2Δ in L1, and the answer is
    (2γΔ, 0)-DP for the owner (arXiv 1610.05755v4, Thm. 2). That is the Laplace mechanism's own guarantee,
    so it holds for the whole vector of noisy counts.
    """

    gamma: float | None = None
    name: ClassVar[str] = "lnmax"
    noise: ClassVar[str] = "laplace"
    pays_for_histogram: ClassVar[bool] = True

    def answer_event(self, ballot: Ballot, neighbours: Neighbours = ANY_CHANGE) -> Event:
        """Laplace noise on two counts that an owner moves by Δ: ε = 2γΔ/s."""
        gamma = self.inverse_scale(ballot.scale)
        return Laplace(ballot.sensitivity, gamma, coordinates=2, neighbours=neighbours)

    def sensitive_answer_rdp(
        self, counts: Floats, scale: float, sensitivity: Floats, orders: Floats, bounds: str
    ) -> Floats:
        """Theorem 3 and Lemma 4 of Papernot et al. 2017. **Sensitive.**"""
        gamma = self.inverse_scale(scale)
        return lnmax_rdp(lnmax_log_q(counts, gamma), sensitivity, gamma, orders)


@dataclass(frozen=True, repr=False)
class PermuteAndFlip(PureAggregator):
    """Noisy maximum with exponential noise: arg max_j (n_j + Expo(1/γ)).

    The winner is distributed as in permute-and-flip (McKenna & Sheldon 2020, arXiv 2010.12603;
    equality: Ding et al. 2021, arXiv 2105.07260). At the same cost as :class:`LNMax` its noise has
    half the variance: the best choice for a handful of answers.

    Parameters
    ----------
    gamma : float, optional
        Inverse scale of the noise, for a total vote weight of k teachers; default: 12.5/k.

    Notes
    -----
    An owner with sensitivity Δ moves every count by Δ at most, and the answer is (2γΔ, 0)-DP for the
    owner, exactly that for noise on the grid, too; no smaller ε holds, and no Rényi curve that is
    smaller to leading order (proofs in ``docs/vote-accounts.md``).
    """

    gamma: float | None = None
    name: ClassVar[str] = "pfmax"
    noise: ClassVar[str] = "exponential"

    def answer_event(self, ballot: Ballot, neighbours: Neighbours = ANY_CHANGE) -> Event:
        """A pure mechanism: ε = 2γΔ/s."""
        gamma = self.inverse_scale(ballot.scale)
        epsilon = rounded_up(lnmax_pure_epsilon(ballot.sensitivity, gamma))
        return PureNoise(epsilon, neighbours=neighbours)

    def sensitive_answer_rdp(
        self, counts: Floats, scale: float, sensitivity: Floats, orders: Floats, bounds: str
    ) -> Floats:
        """Theorem 3 of Papernot et al. 2017, with a q of its own. **Sensitive.**"""
        gamma = self.inverse_scale(scale)
        return lnmax_rdp(permute_and_flip_log_q(counts, gamma), sensitivity, gamma, orders)


@dataclass(frozen=True, repr=False)
class ExponentialMax(PureAggregator):
    """Noisy maximum with Gumbel noise, which is the exponential mechanism: Pr[j] ∝ exp(γ n_j).

    McSherry & Talwar 2007. One answer costs the same pure ε as :class:`LNMax` at the same γ, but it has
    *bounded range* (Durfee & Rogers 2019, arXiv 1905.04273; Dong, Durfee & Rogers 2020, arXiv
    1909.13830), so many answers compose as if ε were half as large.

    Parameters
    ----------
    gamma : float, optional
        Inverse scale of the noise, for a total vote weight of k teachers; default: 12.5/k.

    Notes
    -----
    An owner with sensitivity Δ moves one count up and another down by Δ at most. The log-ratio of the
    probabilities of an answer then lies in an interval of length η = 2γΔ that contains 0: the
    answer is η-DP and (η²/8)-zCDP (Cesar & Rogers 2021, arXiv 2004.07223), and μ-GDP with
    the μ of an (η/2, 0)-DP mechanism. Rounding to the grid is paid for by two grid steps on top of
    Δ (proofs in ``docs/vote-accounts.md``).
    """

    gamma: float | None = None
    name: ClassVar[str] = "expmax"
    noise: ClassVar[str] = "gumbel"

    def answer_event(self, ballot: Ballot, neighbours: Neighbours = ANY_CHANGE) -> Event:
        """An exponential mechanism: η = 2γ(Δ + 2 grid steps)/s."""
        gamma = self.inverse_scale(ballot.scale)
        eta = rounded_up(lnmax_pure_epsilon(_on_the_grid(ballot.sensitivity), gamma))
        return BoundedRange(eta, neighbours=neighbours)

    def sensitive_answer_rdp(
        self, counts: Floats, scale: float, sensitivity: Floats, orders: Floats, bounds: str
    ) -> Floats:
        """Bounded range, or Theorem 3 of Papernot et al. 2017 with the exact q. **Sensitive.**"""
        gamma, moves = self.inverse_scale(scale), _on_the_grid(sensitivity)
        return exponential_rdp(exponential_log_q(counts, gamma), moves, gamma, orders)


@dataclass(frozen=True, repr=False)
class GNMax(GaussianAggregator):
    """Noisy maximum with Gaussian noise: arg max_j (n_j + N(0, σ²)) (Papernot et al. 2018).

    Parameters
    ----------
    sigma : float, optional
        Standard deviation of the noise, for a total vote weight of k teachers; default: 0.16·k.
    answers : int, optional
        Instead: the least noise with which all budgets pay for so many answers
        (:func:`~collegium.pate.voting.least_noise.least_sigma`).

    Notes
    -----
    An owner with sensitivity Δ moves the counts by √2·Δ in L2 at most, so the noisy counts (and
    whatever is computed from them) are (√2·Δ/σ)-GDP for the owner (Dong, Roth & Su 2022, Thm. 2.7).
    """

    sigma: float | None = None
    answers: int | None = None
    name: ClassVar[str] = "gnmax"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.answers is None:
            return
        if self.sigma is not None:
            raise InputError("gnmax: answers finds the noise, and sigma gives it: give one of both")
        if self.answers < 1 or self.answers != int(self.answers):
            raise InputError(
                f"gnmax: answers must be a whole number of at least 1, got {self.answers!r}"
            )

    def resolved(self, n_teachers: int, electorate: Electorate | None = None) -> Self:
        """Fill in the noise, in proportion to the number of teachers, or found for ``answers``.

        Parameters
        ----------
        n_teachers : int
        electorate : Electorate, optional
            Whose budgets pay; without it, noise for ``answers`` stays open.
        """
        if self.answers is None:
            return super().resolved(n_teachers)
        if electorate is None:
            return self
        return replace(self, sigma=least_sigma(electorate, self.answers), answers=None)


@dataclass(frozen=True, repr=False)
class ConfidentGNMax(CheckedAggregator):
    """Answer only where the teachers agree (Papernot et al. 2018, Algorithm 1).

    A query is answered if max_j n_j + N(0, σ_T²) ≥ T, with an independent noisy maximum.

    Parameters
    ----------
    threshold : float, optional
        T, for a total vote weight of k teachers; default: 0.8·k.
    sigma_threshold : float, optional
        σ_T, standard deviation of the check's noise; default: 0.6·k.
    sigma : float, optional
        σ, standard deviation of the answer's noise; default: 0.16·k.

    Notes
    -----
    An owner with sensitivity Δ moves the maximum by Δ at most: the check is (Δ/σ_T)-GDP, and is
    charged for every query, answered or not. The answer costs what :class:`GNMax` does.
    """

    threshold: float | None = None
    sigma_threshold: float | None = None
    sigma: float | None = None
    name: ClassVar[str] = "confident"


@dataclass(frozen=True, repr=False)
class InteractiveGNMax(CheckedAggregator):
    """Answer only where the teachers disagree with the student (Papernot et al. 2018, Algorithm 2).

    The teachers answer if max_j (n_j − W·p_j) + N(0, σ_T²) ≥ T, where p_j are the student's
    probabilities and W is the total vote weight. Otherwise, a student who is surer than ``confidence``
    is reinforced: its own label joins the training set, at no further cost. The student is refitted as
    labels arrive; before the first fit p_j = 0, so the check is that of :class:`ConfidentGNMax`.

    Parameters
    ----------
    threshold : float, optional
        T, for a total vote weight of k teachers; default: 0.4·k.
    sigma_threshold : float, optional
        σ_T, standard deviation of the check's noise; default: 0.6·k.
    sigma : float, optional
        σ, standard deviation of the answer's noise; default: 0.16·k.
    confidence : float
        In [0, 1]: how sure a student must be to be reinforced.
    refit_every : int
        Labels between two refits of the student.

    Notes
    -----
    p_j is computed from public data and released labels, so it is the same for both neighbours, and
    n_j − W·p_j moves exactly as n_j: an owner with sensitivity Δ moves the maximum by Δ at most. The
    check is (Δ/σ_T)-GDP and charged for every query; the answer costs what :class:`GNMax` does.
    """

    threshold: float | None = None
    sigma_threshold: float | None = None
    sigma: float | None = None
    confidence: float = 0.9
    refit_every: int = 50
    name: ClassVar[str] = "interactive"
    consults_student: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.confidence <= 1:
            raise InputError(f"interactive: confidence must lie in [0, 1], got {self.confidence}")
        if self.refit_every < 1 or self.refit_every != int(self.refit_every):
            raise InputError(
                f"interactive: refit_every must be a whole number of at least 1, got {self.refit_every}"
            )

    def _usual(self, k: int) -> dict[str, float]:
        return {**super()._usual(k), "threshold": 0.4 * k}

    def reinforces(self, believed: Floats) -> bool:
        """Whether the student is surer than ``confidence``."""
        return bool(believed.max() > self.confidence)

    def wants_refit(self, n_new_labels: int) -> bool:
        """Whether ``refit_every`` labels arrived."""
        return n_new_labels >= self.refit_every

    def sensitive_check_rdp(
        self, counts: Floats, scale: float, sensitivity: Floats, orders: Floats, bounds: str
    ) -> Floats:
        """That of any votes: what is checked depends on the student, too."""
        return self._check_rdp_of_any_votes(scale, sensitivity, orders)


def _on_the_grid(moves: Floats) -> Floats:
    """Sensitivities with what rounding costs Gumbel noise: two grid steps (docs/vote-accounts.md)."""
    return np.where(moves > 0, moves + 2 * GRID, 0.0)


AGGREGATORS: dict[str, type[Aggregator]] = {
    cls.name: cls
    for cls in (LNMax, GNMax, ConfidentGNMax, InteractiveGNMax, PermuteAndFlip, ExponentialMax)
}


def aggregator_from(name: str, **parameters: float | None) -> Aggregator:
    """Make an aggregator from its name and parameters, as configurations give them; None: not given.

    Examples
    --------
    >>> aggregator_from("gnmax", sigma=40)
    GNMax(sigma=40)
    """
    if name not in AGGREGATORS:
        raise InputError(f"unknown aggregator {name!r}: allowed are {', '.join(AGGREGATORS)}")
    cls = AGGREGATORS[name]
    allowed = [field.name for field in fields(cls)]
    given = {parameter: value for parameter, value in parameters.items() if value is not None}
    unknown = [parameter for parameter in given if parameter not in allowed]
    if unknown:
        raise InputError(
            f"aggregator {name!r} has no parameter {unknown[0]!r}: allowed are {', '.join(allowed)}"
        )
    return cls(**given)
