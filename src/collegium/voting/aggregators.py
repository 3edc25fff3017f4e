"""Aggregators: from weighted vote counts to one noisy label.

Each class states its mechanism, its sensitivity and what it costs; all numbers are given for a total
vote weight of k teachers and scaled with the ballot (see
:class:`~collegium.personalisation.electorate.Ballot`).
"""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Aggregator(ABC):
    """A noisy maximum, possibly behind a noisy check.

    Attributes
    ----------
    name : str
        Name in configurations.
    """

    name: ClassVar[str]

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
    """Answers with arg max_j (n_j + N(0, sigma²))."""

    sigma: float


class CheckedAggregator(GaussianAggregator):
    """Answers only after a check with noise N(0, sigma_threshold²) against ``threshold``."""

    threshold: float
    sigma_threshold: float


@dataclass(frozen=True)
class LNMax(Aggregator):
    """Noisy maximum with Laplace noise: arg max_j (n_j + Lap(1/γ)) (Papernot et al. 2017).

    Parameters
    ----------
    gamma : float
        Inverse scale of the noise, for a total vote weight of k teachers.

    Notes
    -----
    An owner with sensitivity Δ moves two counts by Δ at most, so 2Δ in L1, and the answer is
    (2γΔ, 0)-DP for the owner (arXiv 1610.05755v4, Thm. 2).
    """

    gamma: float = 0.05
    name: ClassVar[str] = "lnmax"


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

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.confidence <= 1:
            raise InputError(f"interactive: confidence must lie in [0, 1], got {self.confidence}")
        if self.refit_every < 1 or self.refit_every != int(self.refit_every):
            raise InputError(
                f"interactive: refit_every must be a whole number of at least 1, got {self.refit_every}"
            )


AGGREGATORS: dict[str, type[Aggregator]] = {
    cls.name: cls for cls in (LNMax, GNMax, ConfidentGNMax, InteractiveGNMax)
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
