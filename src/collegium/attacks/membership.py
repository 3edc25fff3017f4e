"""What membership inference found: how many of those who were in, at how many false alarms.

Scores of people who were in, and of people who were not, from one attack. At a share α of false alarms those
are accused whose score is above that of all but the α·n highest of n who were out. The true share of false
alarms beyond such a score is a Beta variable (it is an order statistic), so that it has Clopper and
Pearson's limits, and so has the share of those in who are above it. Where the interval of what is found at
α begins, the threshold is so strict that its false alarms are surely at most α; where it ends, so lax that
they are at least that. All of it holds where people's scores are independent: people of one release share
its noise where they share cells, so that few of them should be asked about in each of many releases.

The area under the ROC curve, over all shares of false alarms, shows a weak leak with fewer people: of what is
μ-GDP no test has a larger one than Φ(μ/√2), the area under the best test's curve, so that it bounds μ, too,
if only as well as a normal distribution fits it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from collegium.accounting.gaussian import gdp_epsilon
from collegium.attacks.bounds import binomial_bounds, mu_from_rates
from collegium.attacks.finding import Finding
from collegium.budgets import Budget
from collegium.checks import check_number
from collegium.errors import InputError
from collegium.evaluation.synthetic_learning import Estimate, area, spread_of

Floats = NDArray[np.float64]

RATES = (0.001, 0.01, 0.1)
"""Shares of false alarms at which attacks are judged, chosen before any score is seen."""
_TAIL = 0.025 / 2  # of a limit: half for the threshold, half for what is found at it


@dataclass(frozen=True)
class FoundAtRate:
    """How many are found at one share of false alarms.

    ``alarms``: the share. ``found``: share of those who were in, with a 95 % interval of exact limits, which
    counts that the threshold is estimated, too. ``most``: what the account allows the best test,
    Φ(Φ⁻¹(α) + μ). ``lower_mu``: μ that is shown.
    """

    alarms: float
    found: Estimate
    most: float
    lower_mu: float


@dataclass(frozen=True, kw_only=True)
class MembershipFinding(Finding):
    """What membership inference showed about one group.

    ``n_in``, ``n_out``: people that were asked about. ``mu``: what the account charged each.
    ``auc``: with DeLong's 95 % interval; ``most_auc``: what the account allows, Φ(μ/√2). ``auc_mu``: μ that
    the area shows.
    ``rates``: where there are people enough: at least one false alarm.
    """

    n_in: int
    n_out: int
    mu: float
    auc: Estimate
    most_auc: float
    auc_mu: float
    rates: tuple[FoundAtRate, ...]

    legend: ClassVar[str] = (
        "AUC of the attack, and what it finds at so many false alarms, each beside what the account allows "
        "the best test"
    )

    @property
    def lower_mu(self) -> float:
        """The largest μ that is shown, at the stated confidence."""
        return max([self.auc_mu, *(one.lower_mu for one in self.rates)])

    @property
    def of_mu(self) -> tuple[float, float, float]:
        """Lower bound, claim and budget in μ."""
        return self.lower_mu, self.mu, self.mu

    @property
    def verdict(self) -> str:
        """Say in a word what was found; that nothing was found does not mean that nothing is there."""
        if self.lower_mu > self.mu:
            return "more than the account allows"
        return "detected" if self.lower_mu > 0 else "not detected"

    def cells(self) -> dict[str, str]:
        """Write what was found, beside what is allowed."""
        written = {"AUC": f"{self.auc.value:.3f} (at most {self.most_auc:.3f})"}
        for one in self.rates:
            name = f"found at {100 * one.alarms:g} %"
            written[name] = f"{100 * one.found.value:.2f} % (at most {100 * one.most:.2f} %)"
        return written

    def numbers(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "verdict": self.verdict,
            "n_in": self.n_in,
            "n_out": self.n_out,
            "lower_mu": self.lower_mu,
            "claim_mu": self.mu,
            "auc": [self.auc.value, self.auc.low, self.auc.high],
            "most_auc": self.most_auc,
            "found": [
                {
                    "false_alarms": one.alarms,
                    "share": [one.found.value, one.found.low, one.found.high],
                    "at_most": one.most,
                }
                for one in self.rates
            ],
        }


def judge_membership(
    scores: Floats,
    is_in: NDArray[np.bool_],
    mus: Mapping[str, float],
    groups: Sequence[str] | None = None,
    budgets: Mapping[str, Budget] | None = None,
    confidence: float = 0.95,
) -> tuple[MembershipFinding, ...]:
    """Judge an attack's scores, group by group.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Larger where the attack takes somebody for a participant.
    is_in : ndarray of shape (n,)
        Who was one.
    mus : mapping of str to float
        By group, what the account charged each person, in μ (add or remove); infinite for a control without
        noise.
    groups : sequence of str, optional
        Group of each person; default: all are of the only one in ``mus``.
    budgets : mapping of str to Budget, optional
        By group; default: none is said, which is written as infinite.
    confidence : float, default=0.95
        Probability that all lower bounds on μ of one group hold.

    Returns
    -------
    tuple of MembershipFinding
        In the order of ``mus``.

    Raises
    ------
    InputError
        If a group has nobody in, or nobody out; or a score is NaN.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> is_in = rng.random(20_000) < 0.5
    >>> [found] = judge_membership(rng.normal(size=20_000) + 0.5 * is_in, is_in, {"all": 0.5})
    >>> found.verdict, round(found.auc.value, 2), round(found.most_auc, 2)
    ('detected', 0.64, 0.64)
    """
    check_number("confidence", confidence, above=0, below=1)
    scores = np.asarray(scores, dtype=np.float64)
    is_in = np.asarray(is_in, dtype=bool)
    if np.isnan(scores).any():
        raise InputError(f"{int(np.isnan(scores).sum()):,} scores are NaN: give a number for each")
    names = np.asarray(list(mus)[:1] * len(scores) if groups is None else groups)
    found = []
    for group, mu in mus.items():
        own = names == group
        inside, outside = scores[own & is_in], scores[own & ~is_in]
        if not len(inside) or not len(outside):
            raise InputError(
                f"group {group!r} has {len(inside):,} people in and {len(outside):,} out: ask about both"
            )
        budget = (budgets or {}).get(group, Budget(np.inf))
        found.append(_judged(group, mu, budget, inside, outside, confidence))
    return tuple(found)


def _judged(
    group: str, mu: float, budget: Budget, inside: Floats, outside: Floats, confidence: float
) -> MembershipFinding:
    rates = tuple(
        _at_rate(alarms, mu, inside, outside, (1 - confidence) / (2 * len(RATES) + 2))
        for alarms in RATES
        if alarms * len(outside) >= 1
    )
    truth = np.repeat([1, 0], [len(inside), len(outside)]).astype(np.int64)
    both = np.concatenate([inside, outside])
    ordered = area(truth, np.column_stack([-both, both]))
    assert ordered is not None
    auc_mu = _mu_of_area(*ordered, truth, (1 - confidence) / (len(RATES) + 1))
    shown_mu = max([auc_mu, *(one.lower_mu for one in rates)])
    return MembershipFinding(
        group=group,
        budget=budget,
        lower_epsilon=gdp_epsilon(shown_mu, budget.delta),
        claim_epsilon=gdp_epsilon(mu, budget.delta),
        n_in=len(inside),
        n_out=len(outside),
        mu=mu,
        auc=ordered[0],
        most_auc=float(ndtr(mu / np.sqrt(2))),
        auc_mu=auc_mu,
        rates=rates,
    )


def _mu_of_area(
    found: Estimate, influence: Floats, truth: NDArray[np.int64], error: float
) -> float:
    """Bound μ from below by the area under the ROC curve."""
    low = found.value + float(ndtri(error)) * spread_of(influence, truth)
    if found.value == 1.0:  # no variance is left to see: the smaller side's records are all found
        low = error ** (1 / min(int(truth.sum()), int((1 - truth).sum())))
    return max(0.0, float(np.sqrt(2) * ndtri(low)))


def _at_rate(
    alarms: float, mu: float, inside: Floats, outside: Floats, error: float
) -> FoundAtRate:
    n_alarms = int(alarms * len(outside))
    n_found = _above(inside, outside, n_alarms)
    surely_found, _ = binomial_bounds(n_found, len(inside), error)
    _, at_most = binomial_bounds(n_alarms, len(outside), error)
    counts = np.arange(min(len(outside), 4 * n_alarms + 40))
    least, largest = binomial_bounds(counts, len(outside), _TAIL)
    strict, lax = counts[largest <= alarms], counts[least >= alarms]
    low = 0.0
    if len(strict):
        low = float(binomial_bounds(_above(inside, outside, strict[-1]), len(inside), _TAIL)[0])
    high = 1.0
    if len(lax):
        high = float(binomial_bounds(_above(inside, outside, lax[0]), len(inside), _TAIL)[1])
    return FoundAtRate(
        alarms=alarms,
        found=Estimate(n_found / len(inside), low, high),
        most=float(ndtr(ndtri(alarms) + mu)),
        lower_mu=float(mu_from_rates(surely_found, at_most)),
    )


def _above(inside: Floats, outside: Floats, n_alarms: int) -> int:
    """How many of those in have a score above all but so many of those out."""
    place = len(outside) - 1 - int(n_alarms)
    return int((inside > np.partition(outside, place)[place]).sum())
