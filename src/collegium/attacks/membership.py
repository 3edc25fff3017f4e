"""What membership inference found: how many of those who were in, at how many false alarms.

Scores of people who were in, and of people who were not, from one attack. At a share α of false alarms those
are accused whose score is above that of all but the α·n highest of n who were out. The true share of false
alarms beyond such a score is a Beta variable (it is an order statistic), so that it has Clopper and
Pearson's limits, and so has the share of those in who are above it. Where the interval of what is found at
α begins, the threshold is so strict that its false alarms are surely at most α; where it ends, so lax that
they are at least that. People of one release share its noise: where the same people are asked about in each
of many runs, all limits are of runs (:mod:`collegium.attacks.clusters`); otherwise they are of independent
scores.

All of these are averages over the people of a group, in which one who is wholly exposed hides. So the guesses
about each person are counted, too, where there are many (:mod:`collegium.attacks.people`).

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
from collegium.attacks.clusters import Side, area_of
from collegium.attacks.finding import Finding
from collegium.attacks.finite import finite_numbers
from collegium.attacks.people import WorstPerson, worst_person
from collegium.budgets import Budget
from collegium.checks import check_number, shown
from collegium.errors import InputError
from collegium.evaluation.synthetic_learning import Estimate

Floats = NDArray[np.float64]

RATES = (0.001, 0.01, 0.1)
"""Shares of false alarms at which attacks are judged, chosen before any score is seen."""
_TAIL = 0.025 / 2  # of a limit: half for the threshold, half for what is found at it


@dataclass(frozen=True)
class FoundAtRate:
    """How many are found at one share of false alarms, on average over a group.

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
    """What membership inference showed about one group: on average, and about its most exposed person.

    ``n_in``, ``n_out``: people that were asked about, each as often as there were runs.
    ``mu``: what the account charged each.
    ``auc``: with a 95 % interval; ``most_auc``: what the account allows, Φ(μ/√2). ``auc_mu``: μ that
    the area shows.
    ``rates``: where there are people enough: at least one false alarm.
    ``worst``: the person about whom most guesses were right; None where nobody was asked about often.
    """

    n_in: int
    n_out: int
    mu: float
    auc: Estimate
    most_auc: float
    auc_mu: float
    rates: tuple[FoundAtRate, ...]
    worst: WorstPerson | None = None

    legend: ClassVar[str] = (
        "AUC of the attack, and what it finds at so many false alarms, on average over the level's people, "
        "each beside what the account allows the best test; one exposed person hides in an average, and is "
        "looked for by guesses about each person"
    )

    @property
    def lower_mu(self) -> float:
        """The largest μ that is shown, at the stated confidence."""
        persons = [] if self.worst is None else [self.worst.lower_mu]
        return max([self.auc_mu, *(one.lower_mu for one in self.rates), *persons])

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
        asked_once = "not looked for: one guess each"
        written["worst person"] = asked_once if self.worst is None else self.worst.cell()
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
            "worst_person": None if self.worst is None else self.worst.to_json(),
        }


def judge_membership(
    scores: Floats,
    is_in: NDArray[np.bool_],
    mus: Mapping[str, float],
    groups: Sequence[str] | None = None,
    budgets: Mapping[str, Budget] | None = None,
    confidence: float = 0.95,
    *,
    right: NDArray[np.bool_] | None = None,
) -> tuple[MembershipFinding, ...]:
    """Judge an attack's scores, group by group.

    Parameters
    ----------
    scores : ndarray of shape (n_people,) or (n_runs, n_people)
        Larger where the attack takes somebody for a participant. Scores in one row are taken for independent;
        in several, people of one run are not, and limits are of runs.
    is_in : ndarray, shaped like ``scores``
        Who was one.
    mus : mapping of str to float
        By group, what the account charged each person, in μ (add or remove); infinite for a control without
        noise.
    groups : sequence of str of length n_people, optional
        Group of each person; default: all are of the only one in ``mus``.
    budgets : mapping of str to Budget, optional
        By group; default: none is said, which is written as infinite.
    confidence : float, default=0.95
        Probability that all lower bounds on μ of one group hold.
    right : ndarray of bool of shape (n_guesses, n_people), optional
        Which guesses about each person's fair coins were right, each made without the coins of later runs;
        default: nothing is shown of single people, and all is on average over the group.

    Returns
    -------
    tuple of MembershipFinding
        In the order of ``mus``.

    Raises
    ------
    InputError
        If a group has nobody in, or nobody out; a score is NaN or infinite; or shapes differ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> is_in = rng.random(20_000) < 0.5
    >>> [found] = judge_membership(rng.normal(size=20_000) + 0.5 * is_in, is_in, {"all": 0.5})
    >>> found.verdict, round(found.auc.value, 2), round(found.most_auc, 2)
    ('detected', 0.64, 0.64)
    """
    check_number("confidence", confidence, above=0, below=1)
    scores = finite_numbers("scores", scores)
    is_in = np.asarray(is_in, dtype=bool)
    if scores.ndim not in (1, 2):
        raise InputError(
            f"scores must have shape (n_people,) or (n_runs, n_people), got {shown(scores.shape)}"
        )
    n_people = scores.shape[-1]
    names = np.asarray(list(mus)[:1] * n_people if groups is None else groups)
    shapes = {
        "is_in": (is_in.shape, scores.shape),
        "groups": (names.shape, (n_people,)),
        "right": ((n_people,) if right is None else right.shape[1:], (n_people,)),
    }
    for name, (given, expected) in shapes.items():
        if given != expected:
            raise InputError(
                f"{name} has shape {shown(given)} beside scores of shape {shown(scores.shape)}, and must "
                f"have {shown(expected)}: give one for each person, or score"
            )
    found = []
    for group, mu in mus.items():
        own = np.broadcast_to(names == group, scores.shape)
        inside, outside = Side.of(scores, own & is_in), Side.of(scores, own & ~is_in)
        if not len(inside) or not len(outside):
            raise InputError(
                f"group {group!r} has {len(inside):,} people in and {len(outside):,} out: ask about both"
            )
        n_bounds = len(RATES) + (1 if right is None else 2)
        error = (1 - confidence) / n_bounds
        worst = (
            None if right is None else worst_person(right, np.flatnonzero(names == group), error)
        )
        budget = (budgets or {}).get(group, Budget(np.inf))
        found.append(_judged(group, mu, budget, inside, outside, worst, error))
    return tuple(found)


def _judged(
    group: str,
    mu: float,
    budget: Budget,
    inside: Side,
    outside: Side,
    worst: WorstPerson | None,
    error: float,
) -> MembershipFinding:
    rates = tuple(
        _at_rate(alarms, mu, inside, outside, error / 2)
        for alarms in RATES
        if alarms * len(outside) >= 1
    )
    auc, least = area_of(inside, outside, error)
    auc_mu = max(0.0, float(np.sqrt(2) * ndtri(min(max(least, 0.0), 1.0))))
    shown_mus = [auc_mu, *(one.lower_mu for one in rates)]
    if worst is not None:
        shown_mus.append(worst.lower_mu)
    return MembershipFinding(
        group=group,
        budget=budget,
        lower_epsilon=gdp_epsilon(max(shown_mus), budget.delta),
        claim_epsilon=gdp_epsilon(mu, budget.delta),
        n_in=len(inside),
        n_out=len(outside),
        mu=mu,
        auc=auc,
        most_auc=float(ndtr(mu / np.sqrt(2))),
        auc_mu=auc_mu,
        rates=rates,
        worst=worst,
    )


def _at_rate(alarms: float, mu: float, inside: Side, outside: Side, error: float) -> FoundAtRate:
    n_alarms = int(alarms * len(outside))
    threshold = outside.beyond(n_alarms)
    n_found = inside.above(threshold)
    surely_found, _ = inside.limits(n_found, threshold, error)
    _, at_most = outside.limits(n_alarms, threshold, error)
    kept = outside.kept(threshold, _TAIL)
    counts = np.arange(min(len(outside), int((4 * n_alarms + 40) / kept)))
    least, largest = binomial_bounds(counts * kept, len(outside) * kept, _TAIL)
    strict, lax = counts[largest <= alarms], counts[least >= alarms]
    low, high = 0.0, 1.0
    if len(strict):
        at = outside.beyond(int(strict[-1]))
        low, _ = inside.limits(inside.above(at), at, _TAIL)
    if len(lax):
        at = outside.beyond(int(lax[0]))
        _, high = inside.limits(inside.above(at), at, _TAIL)
    return FoundAtRate(
        alarms=alarms,
        found=Estimate(n_found / len(inside), low, high),
        most=float(ndtr(ndtri(alarms) + mu)),
        lower_mu=float(mu_from_rates(surely_found, at_most)),
    )
