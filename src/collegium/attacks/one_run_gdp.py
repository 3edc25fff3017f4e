"""Right guesses about one run of a Gaussian-DP mechanism: a lower bound on μ.

References
----------
.. [1] S. Mahloujifar, L. Melis, K. Chaudhuri, "Auditing f-differential privacy in one run", ICML 2025,
   arXiv 2410.22235: the inequality between neighbouring numbers of right guesses, and the recursion.
"""

from __future__ import annotations

from statistics import NormalDist

from collegium.attacks.bounds import Guesses
from collegium.checks import check_number

_NORMAL = NormalDist()
_HALVINGS = 40
_LARGEST = 64.0


def is_refuted(guesses: Guesses, mu: float, error: float) -> bool:
    """Tell whether so many right guesses have a probability below ``error`` under μ-GDP.

    Let T be the number of right ones among r guesses about m canaries, S(k) = Pr[T ≥ k],
    R(k) = E[T; T ≥ k]/m and H(k) = E[r − T; T ≥ k]/m. Flipping one canary's coin turns "guessed right, and
    at least k right in all" into "guessed wrong, and at least k − 1 right in all", which are the same event
    about the output and the others' coins. The trade-off function bounds the one by the other; its inverse
    g(x) = Φ(Φ⁻¹(x) − μ) is convex, so that the mean over canaries and coins obeys H(k − 1) ≥ g(R(k)) [1]_.

    Suppose S(v) ≥ error. Then S is smallest at every k if exactly v guesses are right whenever as many are,
    and if each S(k − 1) is as small as the inequality lets it be: S and R, which is a sum of S, grow with
    every S(j), j ≥ k, and so does the next S(k − 1). If the smallest S(k) of any k is above 1, the
    supposition is wrong. Guesses may depend on one another and on the whole output in any way; r is fixed
    beforehand.

    ``mu``: the hypothesis, of each canary's owner, added or removed.

    Examples
    --------
    >>> is_refuted(Guesses(100, 100, 60), 0.0, 0.05), is_refuted(Guesses(100, 100, 55), 0.0, 0.05)
    (True, False)
    """
    m, made, right = guesses.canaries, guesses.guessed, guesses.correct
    right_mass = error * right / m
    wrong_mass = error * (made - right) / m
    for k in range(right - 1, -1, -1):
        if right_mass + wrong_mass > made / m:
            return True
        needed = _NORMAL.cdf(_NORMAL.inv_cdf(right_mass) - mu) if right_mass > 0 else 0.0
        if needed <= wrong_mass:
            return False  # neither grows any more
        right_mass += k / (made - k) * (needed - wrong_mass)
        wrong_mass = needed
    return right_mass + wrong_mass > made / m


def one_run_mu(guesses: Guesses, error: float) -> float:
    """Bound μ from below by one run: every smaller μ is refuted.

    A run that is μ₀-GDP for each canary's owner gets a bound above μ₀ with probability below ``error``. The
    hypothesis is the whole trade-off curve, so that much more is seen than at a single (ε, δ)
    (:func:`~collegium.attacks.bounds.one_run_epsilon`).

    Parameters
    ----------
    guesses : Guesses
        How many there were, and how many were right.
    error : float
        1 − confidence.

    Returns
    -------
    float
        At least 0; 0 if even μ = 0 cannot be refuted.

    Examples
    --------
    >>> round(one_run_mu(Guesses(1_000, 200, 150), 0.05), 3)
    0.339
    """
    check_number("the error probability", error, above=0, below=1)
    if not is_refuted(guesses, 0.0, error):
        return 0.0
    low, high = 0.0, 1.0
    while is_refuted(guesses, high, error):
        low, high = high, 2 * high
        if high > _LARGEST:
            return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if is_refuted(guesses, middle, error):
            low = middle
        else:
            high = middle
    return low
