"""The noise of a sum, in shares: each party adds its own, and no one can take it out again.

Each of N parties adds a rounded Gaussian of standard deviation s = sigma / sqrt(N - d - c). At least
n = N - d - c of the shares in a sum are unknown to any c colluders, and the sum of these is, but for
aliasing, what rounding makes of a continuous Gaussian of standard deviation sigma and some more noise. How
far it is from that is bounded in closed form here; the proof is in ``docs/parties.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction

from collegium.accounting.gaussian import gdp_log_delta
from collegium.checks import check_positive, check_whole
from collegium.errors import InputError
from collegium.noise.sums import Noise
from collegium.parties.quorum import Quorum

LEAST_SHARE = 8.0
"""Smallest standard deviation of a share, in grid steps.

At it, (mu, :func:`delta_0`) is below (mu, 1e-100) for mu up to 12 and 2**30 coordinates, whatever the
parties.
"""

_LOG_SMALLEST = math.log(math.ulp(0.0))
_SAFE = 1 + 2.0**-40  # far more than the few roundings of a closed form


def share_of(noise: Noise, quorum: Quorum) -> Noise:
    """Noise that each party adds: N - d - c shares together have at least the variance asked for.

    Raises InputError unless it is Gaussian, with at least :data:`LEAST_SHARE` grid steps for each.

    Examples
    --------
    >>> round(share_of(Noise("gaussian", 40.0), Quorum(10, drop_outs=2)).scale, 6)
    15.118579
    >>> round(share_of(Noise("gaussian", 40.0), Quorum(3)).scale, 6)
    28.284271
    >>> share_of(Noise("laplace", 40.0), Quorum(3))
    Traceback (most recent call last):
    collegium.errors.InputError: 'laplace' noise has no shares that several parties could add: choose a
    release with gaussian noise
    """
    if noise.kind != "gaussian":
        raise InputError(
            f"{noise.kind!r} noise has no shares that several parties could add: choose a release with "
            "gaussian noise"
        )
    count = quorum.surely_honest
    scale = noise.scale / math.sqrt(count)
    while Fraction(scale) ** 2 * count < Fraction(noise.scale) ** 2:
        scale = math.nextafter(scale, math.inf)
    if scale < LEAST_SHARE:
        least = math.ceil(LEAST_SHARE * math.sqrt(count))
        raise InputError(
            f"noise of {noise.scale:g} grid steps is {scale:.3g} for each of {count} parties, and rounding "
            f"would show: take at least {least} steps, on a finer grid or with more noise"
        )
    return Noise("gaussian", scale)


def log_distance(share: float, parties: int) -> float:
    """Natural logarithm of a bound on how far the sum of rounded Gaussians is from the rounded sum.

    The distance is the total variation between the laws, in one coordinate, of the sum of ``parties``
    independent Gaussians of standard deviation ``share``, each rounded to an integer, and of
    round(Z + U_1 + ... + U_{parties - 1}) with Z ~ N(0, parties share^2) and U_j uniform on (-1/2, 1/2).

    Examples
    --------
    >>> log_distance(28.0, 1), round(log_distance(28.0, 2))
    (-inf, -7728)
    """
    check_positive("share", share)
    check_whole("parties", parties)
    if parties == 1:
        return -math.inf
    square, n = share * share, parties
    other = math.exp(-4 * math.pi**2 * square)
    beta = (8 + 4 * other / (1 - other)) / (3 * math.pi)
    terms = [n * math.log(beta) - n * math.pi**2 * square / 2]
    for j in range(1, n + 1):
        exponent = j * (n - j) / n if 2 * j <= n else n / 4
        terms.append(
            math.log(math.comb(n, j)) + j * math.log(beta) - 2 * math.pi**2 * square * exponent
        )
    log_point = _log_sum(terms)  # |difference of the two probabilities of any one integer|
    if log_point >= 0:
        return 0.0
    points = n / 2 + share * math.sqrt(n) * math.sqrt(-2 * log_point) + 2.5
    return min(log_point + math.log(points), 0.0)


def delta_0(share: float, parties: int, *, coordinates: int, mu: float) -> float:
    """Probability that beside ``mu`` pays for the sum of shares of noise, in the currency of accounts.

    Noise that is the sum of ``parties`` rounded Gaussians, added to ``coordinates`` integers that one person
    moves by at most Delta in L2, costs (mu, delta_0) with mu = Delta / (share sqrt(parties)): its privacy
    profile is at most delta_0 + (1 - delta_0) delta_mu(epsilon) at every epsilon
    (:class:`~collegium.accounting.currency.GaussianBound`).

    Parameters
    ----------
    share : float
        Standard deviation of one share before it is rounded, in grid steps.
    parties : int
        How many shares nobody can subtract: N - d - c. More shares make it no worse.
    coordinates : int
        Length of the vector.
    mu : float
        Gaussian-DP parameter of one person, in (0, 37).

    Returns
    -------
    float
        In (0, 1]; the smallest positive float where it is below that, 0 for one share, which is exact.

    Notes
    -----
    Proved in ``docs/parties.md``, for neighbours that differ in one person's records in whatever way Delta
    covers. With tau the total variation between the noise and the rounded Gaussian that it stands for, the
    profile is at most delta_mu(epsilon) + (1 + e^epsilon) tau, which is used up to the epsilon where
    delta_mu has fallen to e^epsilon tau, and beyond it the profile does not grow. Dividing by 1 -
    delta_mu(0) = 2 Phi(-mu/2) brings it into the currency's form.

    Examples
    --------
    >>> delta_0(8.0, 2, coordinates=100_000, mu=1.0) < 1e-250
    True
    """
    check_whole("coordinates", coordinates)
    check_positive("mu", mu)
    log_tau = log_distance(share, parties) + math.log(coordinates)
    if math.isinf(log_tau):
        return 0.0
    if mu >= 37 or log_tau >= 0:
        return 1.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * log_tau) + 1
    for _ in range(100):
        middle = (low + high) / 2
        if gdp_log_delta(mu, middle) > log_tau + middle:
            low = middle
        else:
            high = middle
    beyond = _log_sum([gdp_log_delta(mu, high), log_tau, log_tau + high])
    log_delta_0 = beyond - math.log(math.erfc(mu / math.sqrt(8)))
    if log_delta_0 <= _LOG_SMALLEST:
        return math.ulp(0.0)
    return min(math.exp(log_delta_0) * _SAFE + math.ulp(0.0), 1.0)


def _log_sum(logarithms: list[float]) -> float:
    most = max(logarithms)
    return most + math.log(math.fsum(math.exp(one - most) for one in logarithms))
