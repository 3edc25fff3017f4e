"""The sample mechanism: who grants less is left out by a coin, before any other mechanism runs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountant import Accountant
from collegium.accounting.currency import GaussianBound
from collegium.accounting.events import PureNoise, rounded_up
from collegium.accounting.gaussian import pure_to_gdp
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budget, Budgets
from collegium.checks import check_is, check_number, check_positive
from collegium.errors import InputError, PrivacyWarning
from collegium.mechanisms.on_grid import noised, source_of
from collegium.mechanisms.people import as_column, as_flags, refuse_other_lengths
from collegium.mechanisms.released import Released, charge
from collegium.noise.grid import GRID
from collegium.noise.sources import WordSource
from collegium.noise.sums import Noise, NoisySum

_MOST_EPSILON = 700.0  # whose rates are no zeros in floating point

Floats = NDArray[np.float64]
_GROUP = "sampled"
_NEVER = 700.0  # below e^-700 nobody is kept


def keeping_rate(epsilon: float, threshold: float) -> float:
    """Probability with which somebody of budget ε is kept before a mechanism of the threshold's ε.

    p = (e^ε - 1)/(e^t - 1) below the threshold t, and 1 from there on; rounded down.

    Examples
    --------
    >>> round(keeping_rate(1.0, 2.0), 6), keeping_rate(3.0, 2.0)
    (0.268941, 1.0)
    """
    if epsilon >= threshold:
        return 1.0
    apart = threshold - epsilon
    if apart > _NEVER:
        return 0.0
    share = math.exp(-apart) * math.expm1(-epsilon) / math.expm1(-threshold)
    return share * (1 - (8 + apart) * 2.0**-51)


def sampled_epsilon(rate: float, epsilon: float) -> float:
    """ε towards somebody who is kept with probability p: ln(1 + p·(e^ε - 1)), rounded up.

    Examples
    --------
    >>> round(sampled_epsilon(0.268941421, 2.0), 6)
    1.0
    """
    if rate >= 1:
        return epsilon
    if not rate:
        return 0.0
    if epsilon < 1:
        held = math.log1p(rate * math.expm1(epsilon))
    else:  # in logarithms: e^ε may be no float
        held = float(np.logaddexp(0.0, math.log(rate) + epsilon + math.log1p(-math.exp(-epsilon))))
    return min(epsilon, held * (1 + 2.0**-48) + (epsilon - 1) * 2.0**-50 * (epsilon > 1))


@dataclass(frozen=True, eq=False)
class Sampled:
    """Who was kept, what everybody kept may be charged, and what that means for each group.

    Attributes
    ----------
    sensitive_records : ndarray of int
        Positions of the records that were kept. **Sensitive**, as their number is: nothing about who was kept
        may leave, or sampling protects nobody.
    budgets : Budgets
        Of these records: one group, with the threshold's budget, of a declared size: how many were to be
        expected.
    threshold : Budget
    rates : dict of str to float
        Probability with which an owner of each group was kept.
    granted : dict of str to Budget
        What each group granted.
    """

    sensitive_records: NDArray[np.intp] = field(repr=False)
    budgets: Budgets = field(repr=False)
    threshold: Budget
    rates: Mapping[str, float]
    granted: Mapping[str, Budget]

    def guarantee(self, group: str, spent: Budget | None = None) -> Budget:
        """Return what holds for an owner of a group once a mechanism has run on the sample.

        Parameters
        ----------
        group : str
            One of those in ``rates``.
        spent : Budget, optional
            What the mechanism guarantees to owners that are added or removed; default: the threshold.
        """
        whole, rate = spent or self.threshold, self.rates[group]
        return Budget(
            sampled_epsilon(rate, whole.epsilon),
            min(rate * whole.delta * (1 + 2.0**-50), whole.delta),
        )

    def sentences(self, spent: Budget | None = None) -> list[str]:
        """Say what holds for each group: what to publish beside the statement of what ran on the sample."""
        said = []
        for name, one in self.granted.items():
            held = self.guarantee(name, spent)
            said.append(
                f"Each owner of group {name!r} granted ε = {one.epsilon:g} at δ = {one.delta:g}, was kept "
                f"with probability {self.rates[name]:.4g}, and loses at most ε = {held.epsilon:.4g} at "
                f"δ = {held.delta:.4g}, whether their records are there or not"
            )
        return said

    def bound(self, group: str, spent: Budget | None = None) -> GaussianBound:
        """Return the same in the currency in which releases add up: nothing better is known of (ε, δ)."""
        held = self.guarantee(group, spent)
        return GaussianBound(float(pure_to_gdp(held.epsilon)), held.delta)


def sample(
    budgets: Budgets,
    threshold: float | Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    noise: WordSource | None = None,
    query: int = 0,
) -> Sampled:
    """Keep each owner by a coin that their budget weighs, so that *any* mechanism respects all budgets.

    What runs on the records that are kept treats everybody alike, with the threshold's budget. Owners below
    it are kept with p = (e^ε - 1)/(e^t - 1), and at most δ/δ_t; all others always, and get no more than the
    threshold.

    Parameters
    ----------
    budgets : Budgets
        Who granted what; all records of an owner are kept or left out together. Who is in no group is left
        out.
    threshold : float or Budget
        ε (and δ) of the mechanism that runs on the sample. A number: with the smallest δ that is granted.
    neighbours : Neighbours, default=ADD_OR_REMOVE
        Nothing else is allowed.
    noise, query : SecureNoise or SeededNoise, int
        Where the coins come from; ``query`` names them for seeded noise.

    Returns
    -------
    Sampled
        The records to learn from, their budgets, and what holds for each group.

    Raises
    ------
    InputError
        If neighbours are others, nobody is in a group, or the threshold is infinite.

    Warns
    -----
    PrivacyWarning
        Where coins are seeded: whoever knows the seed knows who was kept.

    Notes
    -----
    Jorgensen, Yu & Cormode [1]_, Definition 9; with δ: Li, Qardaji & Su [2]_, Theorem 1: if M
    is (t, δ)-DP, then M after keeping somebody with probability p is (ln(1 + p(e^t - 1)), p·δ)-DP for them.
    Proof: let A and B be M's output with the person kept, and not; P = pA + (1-p)B against Q = B. From A(S)
    <= e^t·B(S) + δ follows P(S) <= (1 + p(e^t - 1))·Q(S) + pδ. From B(S) <= e^t·A(S) + δ follows P(S) >= (1
    - p + p·e^-t)·Q(S) - pδ·e^-t, and 1/(1 - p + p·e^-t) <= 1 + p(e^t - 1) <= e^t (Balle, Barthe & Gaboardi
    2018, arXiv 1807.01647v2, Theorem 8, where it is shown to be tight).

    **What it needs.** *That B is M without the person*, so what M shows must not depend on who, or how many,
    were kept, other than through a mechanism that pays for it. ``budgets`` of the sample therefore declares
    the number that was to be expected; with it
    :class:`~collegium.DPSGDClassifier` and :class:`~collegium.PATEClassifier` plan and publish. Their
    statements speak of the sample: they charge everybody kept the whole threshold, which is true and more
    than is lost. What holds for the groups is :meth:`Sampled.guarantee`. *No ledger*: it would be charged
    for those kept, and tell who they are; enter :meth:`Sampled.bound` for everybody instead. *No
    replacement*: somebody whose record is replaced is kept in both worlds or in neither, so the other world
    is not M without them, and the loss is up to twice ε. *One mechanism*: two that run on two samples add
    up; two that run on one sample are one mechanism, with the sum of their losses as t.

    **What it costs.** Records are thrown away, and budgets above the threshold are not used: personalisations
    of PATE and the rates or clips of direct training use all records and all budgets, and are better.

    References
    ----------
    .. [1] Z. Jorgensen, T. Yu, G. Cormode, "Conservative or liberal? Personalized differential privacy",
       ICDE 2015.
    .. [2] N. Li, W. Qardaji, D. Su, "On sampling, anonymization, and differential privacy", ASIACCS 2012,
       arXiv 1101.2604.

    Examples
    --------
    >>> from collegium import DPSGDClassifier, Policy
    >>> from collegium.noise.sources import SeededNoise
    >>> warnings.simplefilter("ignore", PrivacyWarning)  # these coins and this noise are seeded
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> budgets = Policy({"high": 1.0, "low": 3.0}).assign(["high", "low"] * 500)
    >>> kept = sample(budgets, 3.0, noise=SeededNoise(0))
    >>> model = DPSGDClassifier(classes=[0, 1], steps=10, noise_seed=0)
    >>> rows = kept.sensitive_records
    >>> model = model.fit(X[rows], y[rows], budgets=kept.budgets)
    >>> spent = Budget(model.privacy_.groups[0].epsilon_spent, 1e-5)
    >>> round(kept.guarantee("high", spent).epsilon, 2), round(kept.guarantee("low", spent).epsilon, 2)
    (1.0, 3.0)
    """
    check_is("budgets", budgets, Budgets, "make them by policy.assign(column)")
    if neighbours is not Neighbours.ADD_OR_REMOVE:
        raise InputError(
            f"a sample protects owners who are there or not, not {neighbours.value!r}: whose records are "
            "replaced is kept in both worlds, and loses up to twice as much; use neighbours ADD_OR_REMOVE"
        )
    sizes = budgets.public_sizes()
    granted = {name: budgets.groups[name] for name in budgets.group_names if sizes[name]}
    if not granted:
        raise InputError("nobody granted a budget, so there is nobody to sample: check the levels")
    if not isinstance(threshold, Budget):
        check_positive("the threshold", threshold)
        threshold = Budget(threshold, min(one.delta for one in granted.values()))
    if threshold.is_unlimited:
        raise InputError(
            "the threshold must be finite, got inf: it is what the mechanism guarantees"
        )
    rates = {
        name: min(keeping_rate(one.epsilon, threshold.epsilon), one.delta / threshold.delta, 1.0)
        for name, one in granted.items()
    }
    source = source_of(noise)
    if not source.is_private:
        warnings.warn(
            "the sample's coins are seeded: whoever knows the seed knows who was kept; take SecureNoise",
            PrivacyWarning,
            stacklevel=2,
        )
    of_group = np.array([rates.get(name, 0.0) for name in budgets.group_names])
    rate_of = np.where(budgets.owner_group >= 0, of_group[budgets.owner_group], 0.0)
    kept = _tossed(rate_of, source, query)
    records = np.flatnonzero(kept[budgets.record_owner])
    expected = max(1, round(sum(sizes[name] * rate for name, rate in rates.items())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # it would tell that the number is unusual
        of_sample = Budgets(
            {_GROUP: threshold},
            np.zeros(len(records), dtype=np.intp),
            budgets.owners[budgets.record_owner[records]],
            {_GROUP: expected},
        )
    return Sampled(records, of_sample, threshold, rates, granted)


def sampled_count(
    has_it: ArrayLike,
    epsilons: ArrayLike,
    threshold: float,
    *,
    rescale: bool = True,
    noise: NoisySum | None = None,
    coins: WordSource | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[float]:
    """Count people in a sample, with Laplace noise: the sample mechanism as it was published.

    Parameters
    ----------
    has_it : array-like of bool, shape (n_people,)
        Who is counted.
    epsilons : array-like of float, shape (n_people,)
        ε of each person, above 0. People of one ε are a cohort; the event's cohorts are in ascending order.
    threshold : float
        ε of the count on the sample; usually the largest or the mean of all ε.
    rescale : bool, default=True
        Whether the count is divided by the mean rate, which is public: without bias where budgets have
        nothing to do with who is counted. Otherwise it misses those left out.
    noise, coins : SecureNoise or SeededNoise, optional
        Where noise and coins come from; default: the operating system's randomness.
    query, account
        As in :func:`~collegium.mechanisms.basics.laplace`.

    Returns
    -------
    Released
        The count, and a :class:`~collegium.accounting.events.PureNoise` about people who are there or not.
        How many were kept is never returned: it is a count without noise.

    Raises
    ------
    InputError
        If something is no number, or out of its range.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    A weighted sum dominates it: give everybody the weight p_i in place of a coin of probability p_i. The
    mean is the same, no coin adds variance, and person i pays p_i·t <= ln(1 + p_i·(e^t - 1)), as the
    logarithm is concave. For 1,000 people of whom 30 % have it, ε = .01/.2/1 at 54/37/9 % and t = .2 the
    root mean square error about the expected 300 is 25.60 (about the table's own count: 21.11; saturating
    weights: 19.83).

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> epsilons, seeded = np.repeat([0.1, 1.0], [500, 500]), SeededNoise(0)
    >>> count = sampled_count(np.arange(1000) % 4 == 0, epsilons, 1.0, noise=seeded, coins=seeded)
    >>> round(count.value), count.event.epsilon.round(6).tolist()
    (248, [0.1, 1.0])
    """
    having, budgets = as_flags("has_it", has_it), as_column("epsilons", epsilons)
    refuse_other_lengths(has_it=having, epsilons=budgets)
    check_number("threshold", threshold, above=0, most=_MOST_EPSILON)
    if (budgets <= 0).any():
        raise InputError("epsilons must be above 0: leave out people who grant nothing")
    kinds, cohort = np.unique(budgets, return_inverse=True)
    rates = np.array([keeping_rate(epsilon, threshold) for epsilon in kinds.tolist()])
    losses = [sampled_epsilon(rate, threshold) for rate in rates.tolist()]
    event = PureNoise(np.array(losses), neighbours=Neighbours.ADD_OR_REMOVE)
    its = Noise.in_votes("laplace", float(rounded_up(np.array(1 / threshold))))
    charge(account, event)
    kept = _tossed(rates[cohort], source_of(coins), query)
    count = np.array([int((having & kept).sum()) * round(1 / GRID)])
    factor = 1 / float(rates[cohort].mean()) if rescale else 1.0
    noisy = noised(count, its, noise, query=query, purpose="sampled count")
    return Released(factor * float(noisy[0]), event)


def _tossed(rates: Floats, source: WordSource, query: int) -> NDArray[np.bool_]:
    """Toss everybody's coin; rates are rounded down to 2^-64."""
    words = source.words(query=query, purpose="sample")(len(rates))
    bounds = np.floor(np.minimum(rates, np.nextafter(1.0, 0.0)) * 2.0**64).astype(np.uint64)
    return np.asarray((words < bounds) | (rates >= 1.0))
