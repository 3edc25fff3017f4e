"""Aggregators: from weighted vote counts to one noisy label.

Each class states its mechanism, its sensitivity and what it costs; all numbers are given for a total
vote weight of k teachers and scaled with the ballot (see
:class:`~collegium.personalisation.electorate.Ballot`).
"""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.parameters import Searchable

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Aggregator(Searchable, ABC):
    """A noisy maximum, possibly behind a noisy check.

    Attributes
    ----------
    name : str
        Name in configurations.
    noise : {"gaussian", "laplace", "exponential", "gumbel"}
        Distribution of the answer's noise: a method of
        :class:`~collegium.noise.sources.NoiseSource`.
    pays_for_histogram : bool
        Whether the worst-case account of an answer covers the whole vector of noisy counts, and not
        only which of them is the largest. False unless it is proved.
    """

    name: ClassVar[str]
    noise: ClassVar[str]
    pays_for_histogram: ClassVar[bool] = False
    consults_student: ClassVar[bool] = False

    def resolved(self, n_teachers: int, electorate: Any = None) -> Aggregator:
        """With all its numbers."""
        return self

    @property
    def noise_scale(self) -> float:
        """Scale of the answer's noise, in votes, for a total vote weight of k teachers."""
        raise InputError(f"aggregator {self.name!r} does not say what noise its answers carry")

    def __post_init__(self) -> None:
        for parameter, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
                raise InputError(f"{self.name}: {parameter} must be a number, got {value!r}")
            if not math.isfinite(value):
                raise InputError(f"{self.name}: {parameter} must be finite, got {value!r}")
            if parameter.startswith(("sigma", "gamma")) and value <= 0:
                raise InputError(
                    f"{self.name}: {parameter} must be greater than 0, got {value!r}: it is the "
                    "scale of the noise"
                )


class GaussianAggregator(Aggregator):
    """Answers with arg max_j (n_j + N(0, sigma²)); the vector is √2·Δ/σ-GDP, whatever is read off it."""

    sigma: float
    noise: ClassVar[str] = "gaussian"
    pays_for_histogram: ClassVar[bool] = True

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the answer's noise, in votes."""
        return self.sigma


class PureAggregator(Aggregator):
    """Answers with arg max_j (n_j + noise of scale 1/gamma), (ε, 0)-DP per answer."""

    gamma: float

    @property
    def noise_scale(self) -> float:
        """Scale of the answer's noise, in votes."""
        return 1 / self.gamma


class CheckedAggregator(GaussianAggregator):
    """Answers only after a check with noise N(0, sigma_threshold²) against ``threshold``.

    The checked value moves by Δ at most, so the noisy value is Δ/σ_T-GDP, and so is everything computed
    from it: the account pays for the value itself, of rejected queries, too.
    """

    threshold: float
    sigma_threshold: float


@dataclass(frozen=True)
class LNMax(PureAggregator):
    """Noisy maximum with Laplace noise: arg max_j (n_j + Lap(1/γ)) (Papernot et al. 2017).

    Parameters
    ----------
    gamma : float
        Inverse scale of the noise, for a total vote weight of k teachers.

    Notes
    -----
    An owner with sensitivity Δ moves two counts by Δ at most, so 2Δ in L1, and the answer is
    (2γΔ, 0)-DP for the owner (arXiv 1610.05755v4, Thm. 2). That is the Laplace mechanism's own guarantee,
    so it holds for the whole vector of noisy counts.
    """

    gamma: float = 0.05
    name: ClassVar[str] = "lnmax"
    noise: ClassVar[str] = "laplace"
    pays_for_histogram: ClassVar[bool] = True


@dataclass(frozen=True)
class PermuteAndFlip(PureAggregator):
    """Noisy maximum with exponential noise: arg max_j (n_j + Expo(1/γ)).

    The winner is distributed as in permute-and-flip (McKenna & Sheldon 2020, arXiv 2010.12603;
    equality: Ding et al. 2021, arXiv 2105.07260). At the same cost as :class:`LNMax` its noise has
    half the variance: the best choice for a handful of answers.

    Parameters
    ----------
    gamma : float
        Inverse scale of the noise, for a total vote weight of k teachers.

    Notes
    -----
    An owner with sensitivity Δ moves every count by Δ at most, and the answer is (2γΔ, 0)-DP for the
    owner, exactly that for noise on the grid, too; no smaller ε holds, and no Rényi curve that is
    smaller to leading order (proofs in ``docs/bounds.md``).
    """

    gamma: float = 0.05
    name: ClassVar[str] = "pfmax"
    noise: ClassVar[str] = "exponential"


@dataclass(frozen=True)
class ExponentialMax(PureAggregator):
    """Noisy maximum with Gumbel noise, which is the exponential mechanism: Pr[j] ∝ exp(γ n_j).

    McSherry & Talwar 2007. One answer costs the same pure ε as :class:`LNMax` at the same γ, but it has
    *bounded range* (Durfee & Rogers 2019, arXiv 1905.04273; Dong, Durfee & Rogers 2020, arXiv
    1909.13830), so many answers compose as if ε were half as large.

    Parameters
    ----------
    gamma : float
        Inverse scale of the noise, for a total vote weight of k teachers.

    Notes
    -----
    An owner with sensitivity Δ moves one count up and another down by Δ at most. The log-ratio of the
    probabilities of an answer then lies in an interval of length η = 2γΔ that contains 0: the
    answer is η-DP and (η²/8)-zCDP (Cesar & Rogers 2021, arXiv 2004.07223), and μ-GDP with
    the μ of an (η/2, 0)-DP mechanism. Rounding to the grid is paid for by two grid steps on top of
    Δ (proofs in ``docs/bounds.md``).
    """

    gamma: float = 0.05
    name: ClassVar[str] = "expmax"
    noise: ClassVar[str] = "gumbel"


@dataclass(frozen=True)
class GNMax(GaussianAggregator):
    """Noisy maximum with Gaussian noise: arg max_j (n_j + N(0, σ²)) (Papernot et al. 2018).

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, for a total vote weight of k teachers.

    Notes
    -----
    An owner with sensitivity Δ moves the counts by √2·Δ in L2 at most, so the noisy counts (and
    whatever is computed from them) are (√2·Δ/σ)-GDP for the owner (Dong, Roth & Su 2022, Thm. 2.7).
    """

    sigma: float = 40.0
    name: ClassVar[str] = "gnmax"


@dataclass(frozen=True)
class ConfidentGNMax(CheckedAggregator):
    """Answer only where the teachers agree (Papernot et al. 2018, Algorithm 1).

    A query is answered if max_j n_j + N(0, σ_T²) ≥ T, with an independent noisy maximum.

    Parameters
    ----------
    threshold : float
        T, for a total vote weight of k teachers.
    sigma_threshold : float
        σ_T, standard deviation of the check's noise.
    sigma : float
        σ, standard deviation of the answer's noise.

    Notes
    -----
    An owner with sensitivity Δ moves the maximum by Δ at most: the check is (Δ/σ_T)-GDP, and is
    charged for every query, answered or not. The answer costs what :class:`GNMax` does.
    """

    threshold: float = 200.0
    sigma_threshold: float = 150.0
    sigma: float = 40.0
    name: ClassVar[str] = "confident"


@dataclass(frozen=True)
class InteractiveGNMax(CheckedAggregator):
    """Answer only where the teachers disagree with the student (Papernot et al. 2018, Algorithm 2).

    The teachers answer if max_j (n_j − W·p_j) + N(0, σ_T²) ≥ T, where p_j are the student's
    probabilities and W is the total vote weight. Otherwise, a student who is surer than ``confidence``
    is reinforced: its own label joins the training set, at no further cost. The student is refitted as
    labels arrive; before the first fit p_j = 0, so the check is that of :class:`ConfidentGNMax`.

    Parameters
    ----------
    threshold : float
        T, for a total vote weight of k teachers.
    sigma_threshold : float
        σ_T, standard deviation of the check's noise.
    sigma : float
        σ, standard deviation of the answer's noise.
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

    threshold: float = 100.0
    sigma_threshold: float = 150.0
    sigma: float = 40.0
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


AGGREGATORS: dict[str, type[Aggregator]] = {
    cls.name: cls
    for cls in (LNMax, GNMax, ConfidentGNMax, InteractiveGNMax, PermuteAndFlip, ExponentialMax)
}


def aggregator_from(name: str, **parameters: float) -> Aggregator:
    """Make an aggregator from its name and parameters, as configurations give them.

    Raises
    ------
    InputError
        If the name or a parameter is unknown.

    Examples
    --------
    >>> aggregator_from("gnmax", sigma=40)
    GNMax(sigma=40)
    """
    if name not in AGGREGATORS:
        raise InputError(f"unknown aggregator {name!r}: allowed are {', '.join(AGGREGATORS)}")
    cls = AGGREGATORS[name]
    allowed = [field.name for field in fields(cls)]
    unknown = [parameter for parameter in parameters if parameter not in allowed]
    if unknown:
        raise InputError(
            f"aggregator {name!r} has no parameter {unknown[0]!r}: allowed are {', '.join(allowed)}"
        )
    return cls(**parameters)


def default_aggregator(n_teachers: int) -> ConfidentGNMax:
    """Confident-GNMax with the published MNIST settings (T = 200, σ_T = 150, σ = 40 for 250 teachers).

    Scaled to the number of teachers.

    Examples
    --------
    >>> default_aggregator(250)
    ConfidentGNMax(threshold=200.0, sigma_threshold=150.0, sigma=40.0)
    """
    return ConfidentGNMax(
        threshold=0.8 * n_teachers, sigma_threshold=0.6 * n_teachers, sigma=0.16 * n_teachers
    )
