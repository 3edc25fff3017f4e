"""Noise on numbers: the Laplace and the Gaussian mechanism, the sparse vector, randomised response."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountant import Accountant
from collegium.accounting.bookkeeping import MOST_CHARGES
from collegium.accounting.events import Gaussian, Laplace, PureNoise, rounded_up
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.neighbours import Neighbours
from collegium.checks import check_choice, check_number, check_positive, check_whole
from collegium.errors import InputError
from collegium.mechanisms.on_grid import as_rounded, noised, per_cohort, to_steps
from collegium.mechanisms.people import as_column, refuse_other_lengths
from collegium.mechanisms.released import Released, charge
from collegium.mechanisms.selection import choose
from collegium.noise.sources import WordSource
from collegium.noise.sums import Noise, NoisySum

_MOST_ANSWERS = 100_000

Floats = NDArray[np.float64]


def laplace(
    value: ArrayLike,
    sensitivity: ArrayLike,
    scale: float,
    *,
    exact: bool = False,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    noise: NoisySum | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[Floats]:
    """Add Laplace noise: pure differential privacy for a number or a vector.

    Parameters
    ----------
    value : float or array-like, shape () or (n_coordinates,)
        What is to be released. Beyond ±2**33 it is clipped; it is rounded to the noise's grid of 2**-20.
    sensitivity : float or array-like, shape (n_cohorts,)
        How far an owner of each cohort moves the value in L1 towards the neighbours that are named.
    scale : float
        b of the density exp(-\\|z\\|/b)/2b, at most 2**24. For ε: sensitivity/ε.
    exact : bool, default=False
        Whether the value is a multiple of 2**-20 on every data set, as counts are. Otherwise rounding may
        move it by one step per coordinate more, which is charged.
    neighbours : Neighbours, default=ADD_OR_REMOVE
        What the sensitivity is about.
    noise, query : SecureNoise or SeededNoise, int
        Where the noise comes from; default: the operating system's randomness. ``query`` names the draw
        for seeded noise.
    account : Accountant, optional
        Charged before anything is drawn.

    Returns
    -------
    Released
        Of the value's shape, and a :class:`~collegium.accounting.events.Laplace`.

    Raises
    ------
    InputError
        If something is no number, or out of its range.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    Theorem 3.6 of Dwork & Roth [1]_: (Δ/b, 0)-DP, as the densities of two neighbours differ by a factor of
    at most exp(\\|x - x'\\|/b) everywhere. The noise is the continuous one, rounded to the grid; of a value
    on the grid that is post-processing (``docs/noise.md``). From seven releases on (ε = 1 in all, δ = 1e-5)
    Gaussian noise has the smaller variance; to find the largest of several counts, :func:`permute_and_flip`
    is better.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Theorem 3.6.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> count = laplace(300, sensitivity=[0.1, 0.2], scale=1.0, exact=True, noise=SeededNoise(2))
    >>> round(float(count.value), 3), count.event.pure_epsilon.round(6).tolist()
    (302.007, [0.1, 0.2])
    """
    steps = to_steps("value", value, exact=exact)
    check_positive("scale", scale)
    moved = as_rounded(per_cohort("sensitivity", sensitivity), steps.size, 1, exact=exact)
    event = Laplace(moved, math.nextafter(1 / scale, math.inf), neighbours=neighbours)
    its = Noise.in_votes("laplace", scale)
    charge(account, event)
    return Released(noised(steps, its, noise, query=query, purpose="laplace")[()], event)


def gaussian(
    value: ArrayLike,
    sensitivity: ArrayLike,
    sigma: float,
    *,
    exact: bool = False,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    noise: NoisySum | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[Floats]:
    """Add Gaussian noise: exact Gaussian differential privacy for a number or a vector.

    Parameters
    ----------
    value, exact, neighbours, noise, query, account
        As in :func:`laplace`.
    sensitivity : float or array-like, shape (n_cohorts,)
        How far an owner of each cohort moves the value in L2.
    sigma : float
        Standard deviation, at most 2**24. For (ε, δ): :func:`gaussian_sigma`.

    Returns
    -------
    Released
        Of the value's shape, and a :class:`~collegium.accounting.events.Gaussian`: μ = Δ/σ for each cohort.

    Raises
    ------
    InputError
        If something is no number, or out of its range.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    Theorem 2.7 of Dong, Roth & Su [1]_: μ-GDP with μ = Δ/σ, and no smaller: along the line between two
    neighbours, noisy values are N(0, 1) against N(μ, 1) in units of σ. The rest is as for :func:`laplace`.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS-B 84(1), 2022,
       arXiv 1905.02383v3, Theorem 2.7.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> sums = gaussian([3.0, 4.0], sensitivity=1.0, sigma=gaussian_sigma(1.0, 1e-5), noise=SeededNoise(0))
    >>> sums.value.shape, round(float(sums.event.bound(0).epsilon(1e-5)), 4)
    ((2,), 1.0)
    """
    steps = to_steps("value", value, exact=exact)
    check_positive("sigma", sigma)
    moved = as_rounded(per_cohort("sensitivity", sensitivity), steps.size, 2, exact=exact)
    event = Gaussian(moved, float(sigma), neighbours=neighbours)
    its = Noise.in_votes("gaussian", sigma)
    charge(account, event)
    return Released(noised(steps, its, noise, query=query, purpose="gaussian")[()], event)


def gaussian_sigma(
    epsilon: float, delta: float, sensitivity: float = 1.0, *, rule: str = "analytic"
) -> float:
    """Calibrate Gaussian noise to (ε, δ).

    Parameters
    ----------
    epsilon, delta : float
        The guarantee: ε > 0, δ in (0, 1).
    sensitivity : float, default=1.0
        In L2.
    rule : {"analytic", "classical"}, default="analytic"
        ``analytic``: the smallest σ there is (Balle & Wang [1]_, Theorem 8). ``classical``:
        Δ √(2 ln(1.25/δ))/ε (Dwork & Roth [2]_, Theorem A.1), to compare with: it is proved for ε < 1 only,
        false for large ε, and refused above 1.

    Returns
    -------
    float
        Standard deviation, rounded up.

    Raises
    ------
    InputError
        If a number is out of its range.

    References
    ----------
    .. [1] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
       arXiv 1805.06530v2.
    .. [2] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Theorem A.1.

    Examples
    --------
    >>> round(gaussian_sigma(1.0, 1e-5), 6), round(gaussian_sigma(1.0, 1e-5, rule="classical"), 6)
    (3.730632, 4.844805)
    """
    check_choice("rule", rule, ("analytic", "classical"))
    check_positive("sensitivity", sensitivity)
    check_number("epsilon", epsilon, least=0, below=math.inf)
    if rule == "analytic":
        return sensitivity / float(gdp_mu(epsilon, delta)) * (1 + 2.0**-50)
    check_number("epsilon, for the classical rule,", epsilon, above=0, most=1)
    check_number("delta", delta, above=0, below=1)
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def above_threshold(
    values: ArrayLike,
    threshold: float,
    sensitivity: ArrayLike,
    *,
    threshold_scale: float,
    value_scale: float,
    most: int = 1,
    monotone: bool = False,
    exact: bool = False,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    noise: NoisySum | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[NDArray[np.bool_]]:
    """Tell which values lie above a threshold, until so many do: the sparse vector technique.

    Any number of values below the threshold costs nothing more; each value above it does.

    Parameters
    ----------
    values : array-like of float, shape (n_values,)
        In the order in which they are asked about.
    threshold : float
        Public.
    sensitivity : float or array-like, shape (n_cohorts,)
        How far an owner of each cohort moves any one value.
    threshold_scale, value_scale : float
        Scales of the Laplace noise on the threshold (once), and on every value.
    most : int, default=1
        After so many values above the threshold it stops.
    monotone : bool, default=False
        Whether an owner moves all values in the same direction, as with counts and owners who come or go.
    exact, neighbours, noise, query, account
        As in :func:`laplace`.

    Returns
    -------
    Released
        Which of the values that were looked at lie above, shape (at most n_values,), and a
        :class:`~collegium.accounting.events.PureNoise`: Δ/threshold_scale + 2·most·Δ/value_scale, or half of
        the second part where values are monotone.

    Raises
    ------
    InputError
        If something is no number, or out of its range.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    Algorithm 7 of Lyu, Su & Li [1]_ without numeric answers, Theorems 4 and 5. Its noise on the
    threshold is drawn once; noise on values is drawn for each and scales with ``most``. Several published
    variants lack the one or the other, or release the noisy values that were above, and are not private
    (their Section 3). Proof in a line: whatever was seen, let the threshold's noise be Δ larger and each
    noise of a value above 2Δ larger (Δ, if monotone); then all answers on the neighbour are the same. It
    holds on the grid, where noise has the same ratios. Comparisons are sharpest where the two parts of ε are
    as 1 to (2·most)^(2/3), or most^(2/3) if monotone (their Section 4.2). Where more than a few values are
    expected above the threshold, noisy values (:func:`gaussian`) say more for the same price.

    References
    ----------
    .. [1] M. Lyu, D. Su, N. Li, "Understanding the sparse vector technique for differential privacy",
       PVLDB 10(6), 2017, arXiv 1603.01699v2.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> asked = above_threshold(
    ...     [10, 20, 300, 5], 100, 1.0, threshold_scale=4, value_scale=8, exact=True, noise=SeededNoise(0)
    ... )
    >>> asked.value.tolist(), asked.event.pure_epsilon.round(6).tolist()
    ([False, False, True], [0.5])
    """
    steps = np.atleast_1d(to_steps("values", values, exact=exact))
    check_positive("threshold_scale", threshold_scale)
    check_positive("value_scale", value_scale)
    check_whole("most", most, most=MOST_CHARGES)
    check_number("threshold", threshold, above=-math.inf, below=math.inf)
    moved = as_rounded(per_cohort("sensitivity", sensitivity), 1, 1, exact=exact)
    times = most if monotone else 2 * most
    event = PureNoise(
        rounded_up(moved / threshold_scale + times * moved / value_scale), neighbours=neighbours
    )
    of_line, of_values = (
        Noise.in_votes("laplace", scale) for scale in (threshold_scale, value_scale)
    )
    charge(account, event)
    line = to_steps("threshold", float(threshold), exact=False)
    noisy_line = noised(line, of_line, noise, query=query, purpose="threshold")
    noisy_values = noised(steps, of_values, noise, query=query, purpose="above threshold")
    above = noisy_values >= noisy_line
    reached = np.flatnonzero(np.cumsum(above) >= most)
    return Released(above[: int(reached[0]) + 1] if reached.size else above, event)


def randomised_response(
    answers: ArrayLike,
    epsilons: ArrayLike,
    n_answers: int = 2,
    *,
    noise: WordSource | None = None,
    query: int = 0,
    account: Accountant | None = None,
) -> Released[NDArray[np.intp]]:
    """Let everybody answer truthfully only with the probability that their own ε allows.

    Each report is private by itself, before anybody collects it. Shares are estimated by
    :func:`response_shares`.

    Parameters
    ----------
    answers : array-like of int, shape (n_people,)
        From 0 to n_answers - 1, one per person.
    epsilons : array-like of float, shape (n_people,)
        ε of each person, above 0. People of one ε are a cohort; the event's cohorts are in ascending order.
    n_answers : int, default=2
        How many answers there are.
    noise, query, account
        As in :func:`laplace`.

    Returns
    -------
    Released
        A report per person, shape (n_people,), and a :class:`~collegium.accounting.events.PureNoise` about
        answers that are replaced: that somebody answered at all is not hidden.

    Raises
    ------
    InputError
        If an answer is none of these, lengths differ, or an ε is not above 0 and finite.
    BudgetExceededError
        If the account refuses. Nothing is drawn then.

    Notes
    -----
    The truth has probability e^ε/(e^ε + n_answers - 1), every other answer 1/(e^ε + n_answers - 1): their
    ratio is e^ε, and no other ratio exceeds it (Warner 1965 for two answers; Kairouz, Oh & Viswanath [1]_,
    who show when it is optimal). It is drawn exactly, as the exponential mechanism with score 1 for the
    truth. Where a table is held by somebody who is trusted, noise on counts is better by a factor of about
    √n_people.

    References
    ----------
    .. [1] P. Kairouz, S. Oh, P. Viswanath, "Extremal mechanisms for local differential privacy", JMLR 17,
       2016, arXiv 1407.1338.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> answers, epsilons = [0, 1, 2, 2] * 1000, [1.0, 3.0, 1.0, 3.0] * 1000
    >>> reports = randomised_response(answers, epsilons, 3, noise=SeededNoise(0))
    >>> response_shares(reports.value, epsilons, 3).round(2).tolist()
    [0.25, 0.24, 0.51]
    """
    truth, kinds, cohort = _responses(answers, epsilons, n_answers)
    event = PureNoise(kinds, neighbours=Neighbours.REPLACE)
    charge(account, event)
    scores = np.zeros(n_answers, dtype=np.int64)
    scores[0] = 1
    reports = np.empty(len(truth), dtype=np.intp)
    for number, epsilon in enumerate(kinds.tolist()):
        own = cohort == number
        shift = choose(
            scores,
            unit=epsilon,
            noise=noise,
            query=query,
            purpose=f"responses {number}",
            draws=int(own.sum()),
        )
        reports[own] = (truth[own] + shift) % n_answers
    return Released(reports, event)


def response_shares(
    reports: ArrayLike, epsilons: ArrayLike, n_answers: int = 2, *, weighting: str = "people"
) -> Floats:
    """Estimate the shares of all answers from randomised responses.

    Parameters
    ----------
    reports, epsilons, n_answers
        As in :func:`randomised_response`.
    weighting : {"people", "information"}, default="people"
        ``people``: without bias, whatever budgets have to do with answers; those of small ε bring noise.
        ``information``: a cohort weighs (p - q)²/(q(1 - q)) per person, with p and q the chances of the truth
        and of another answer: less noise, but where budgets go with answers, the shares are those of
        this weighted mixture.

    Returns
    -------
    ndarray, shape (n_answers,)
        They add up to 1, and may lie outside [0, 1].

    Raises
    ------
    InputError
        If a report is none of the answers, lengths differ, or an ε is not above 0 and finite.
    """
    check_choice("weighting", weighting, ("people", "information"))
    seen, kinds, cohort = _responses(reports, epsilons, n_answers)
    other = 1 / (np.exp(kinds) + n_answers - 1)
    lift = np.expm1(kinds) * other
    tells = lift**2 / (other * (1 - other)) if weighting == "information" else np.ones(len(kinds))
    estimates, weights = np.zeros(n_answers), 0.0
    for number in range(len(kinds)):
        counts = np.bincount(seen[cohort == number], minlength=n_answers)
        estimates += tells[number] * (counts - counts.sum() * other[number]) / lift[number]
        weights += tells[number] * counts.sum()
    return np.asarray(estimates / weights)


def _responses(
    answers: ArrayLike, epsilons: ArrayLike, n_answers: int
) -> tuple[NDArray[np.intp], Floats, NDArray[np.intp]]:
    """Answers, different ε in ascending order, and the place of everybody's ε among them."""
    check_whole("n_answers", n_answers, least=2, most=_MOST_ANSWERS)
    given, budgets = as_column("answers", answers), as_column("epsilons", epsilons)
    refuse_other_lengths(answers=given, epsilons=budgets)
    whole = given.astype(np.intp)
    if (whole != given).any() or (whole < 0).any() or (whole >= n_answers).any():
        raise InputError(
            f"answers must be whole numbers from 0 to {n_answers - 1}, and one is not: correct it"
        )
    if (budgets <= 0).any():
        raise InputError("epsilons must be above 0: leave out people who grant nothing")
    kinds, cohort = np.unique(budgets, return_inverse=True)
    return whole, kinds, cohort
