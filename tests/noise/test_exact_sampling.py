"""Every draw is the integer that the random bits define: exact, without chance (SOUNDNESS 15)."""

import decimal
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import libmp
from numpy.typing import NDArray
from scipy import stats
from scipy.special import erfcinv

from collegium.noise import exact_sampling
from collegium.noise.exact_sampling import (
    FLOAT_ERROR,
    GAUSSIAN,
    GUMBEL,
    LAPLACE,
    MAX_SCALE_STEPS,
    StandardVariable,
    draw_rounded,
)
from collegium.noise.grid import GRID

VARIABLES = {"gaussian": GAUSSIAN, "laplace": LAPLACE}
LAWS: dict[str, Any] = {"gaussian": stats.norm, "laplace": stats.laplace}
each_variable = pytest.mark.parametrize("name", ["gaussian", "laplace"])


class Script:
    """A source of words that plays back a list and refuses to go beyond it."""

    def __init__(self, words: list[int]) -> None:
        self.words = words
        self.used = 0

    def __call__(self, count: int) -> NDArray[np.uint64]:
        assert self.used + count <= len(self.words), "more randomness was asked for than scripted"
        self.used += count
        return np.array(self.words[self.used - count : self.used], dtype=np.uint64)


# ---------------------------------------------------------------- oracles, 60 and more digits


def oracle_tail(name: str, t: Any) -> Any:
    return mpmath.erfc(t / mpmath.sqrt(2)) if name == "gaussian" else mpmath.exp(-t)


def oracle_magnitude(name: str, u: Any) -> Any:
    """Solve tail(t) = u: exactly for Laplace, by Newton from a float for Gaussian."""
    if name == "laplace":
        return -mpmath.log(u)
    t = mpmath.mpf(math.sqrt(2) * float(erfcinv(float(u))))
    for digits in (36, 66, 95):  # each step doubles those that are right
        with mpmath.workdps(digits):
            slope = mpmath.sqrt(2 / mpmath.pi) * mpmath.exp(-t * t / 2)
            step = (oracle_tail(name, t) - u) / slope
            t += step
    assert abs(step) < mpmath.mpf(10) ** -45
    return t


def uniform_of(words: list[int]) -> Any:
    """The middle of what the revealed words leave open of u; bit 0 of the first is the sign."""
    numerator, bits = words[0] >> 1, 63
    for word in words[1:]:
        numerator, bits = (numerator << 64) | word, bits + 64
    return (mpmath.mpf(numerator) + mpmath.mpf(1) / 2) / mpmath.mpf(2) ** bits


def oracle_steps(name: str, scale: float, words: list[int]) -> int:
    magnitude = mpmath.mpf(scale) * oracle_magnitude(name, uniform_of(words))
    nearest = int(mpmath.floor(magnitude + mpmath.mpf(1) / 2))
    return -nearest if words[0] & 1 else nearest


def boundary_words(
    name: str, scale: float, integer: int, extra: int, offset: int, rng: np.random.Generator
) -> list[int]:
    """Words whose u agrees with tail(boundary) in 63 + 64 * extra bits, up to ``offset`` units."""
    bits = 63 + 64 * extra
    tail = oracle_tail(name, (mpmath.mpf(integer) - 0.5) / mpmath.mpf(scale))
    numerator = min(max(int(mpmath.floor(mpmath.ldexp(tail, bits))) + offset, 0), 2**bits - 1)
    words = [numerator >> (64 * part) & (2**64 - 1) for part in range(extra - 1, -1, -1)]
    first = (numerator >> (64 * extra)) << 1 | int(rng.integers(2))
    return [first, *words, *(int(word) for word in rng.integers(2**64, size=3, dtype=np.uint64))]


# ---------------------------------------------------------------- the sampler is exact


@each_variable
def test_adversarial_uniforms_at_rounding_boundaries(name: str) -> None:
    """Many u next to a boundary, with up to 191 bits in common: all settled rightly."""
    rng = np.random.default_rng(1)
    refined = 0
    with mpmath.workdps(90):
        for scale in (0.3, 3.0, 104.8576, 40 / GRID, 1e4 / GRID, MAX_SCALE_STEPS):
            for _ in range(18):
                integer = 1 + int(scale * abs(rng.standard_normal()) * rng.choice([0.01, 1.0, 2.0]))
                for extra in (0, 1, 2):
                    for offset in (-2, -1, 0, 1, 2):
                        words = boundary_words(name, scale, integer, extra, offset, rng)
                        source = Script(words)
                        drawn = draw_rounded(VARIABLES[name], scale, 1, source)
                        assert drawn[0] == oracle_steps(name, scale, words)
                        if offset == 0:
                            assert source.used >= extra + 2  # the boundary was still open
                        refined += source.used > 1
    assert refined > 800


@pytest.mark.parametrize("below_median", [False, True])
def test_both_branches_of_a_gumbel_variable_at_rounding_boundaries(below_median: bool) -> None:
    """Beginning with the first boundary after the median, -log(log 2): on the lower side below 0."""
    rng = np.random.default_rng(5)
    sign = -1 if below_median else 1
    with mpmath.workdps(60):
        for scale in (0.8, 3.0, 104.8576, 40 / GRID):
            first = math.floor(sign * 0.36651292 * scale + 0.5) + 1
            for integer in (first, first + 1, first + int(scale), first + 2 * int(scale)):
                t = (mpmath.mpf(integer) - 0.5) / mpmath.mpf(scale)
                rate = mpmath.exp(-sign * t)
                tail = 2 * mpmath.exp(-rate) if below_median else -2 * mpmath.expm1(-rate)
                numerator = int(mpmath.floor(mpmath.ldexp(tail, 127)))
                for offset in (-2, -1, 1, 2):
                    high, low = divmod(numerator + offset, 2**64)
                    words = [2 * high + below_median, low, *rng.integers(2**63, size=2).tolist()]
                    reached = integer if offset < 0 else integer - 1
                    assert draw_rounded(GUMBEL, scale, 1, Script(words))[0] == sign * reached


@each_variable
def test_random_uniforms_against_the_oracle(name: str) -> None:
    rng = np.random.default_rng(2)
    with mpmath.workdps(60):
        for scale in (1e-3, 0.7, 3.0, 150 / GRID, 1e7 / GRID, MAX_SCALE_STEPS):
            words = [int(word) for word in rng.integers(2**64, size=120, dtype=np.uint64)]
            spare = [int(word) for word in rng.integers(2**64, size=40, dtype=np.uint64)]
            drawn = draw_rounded(VARIABLES[name], scale, 120, Script(words + spare))
            expected = [oracle_steps(name, scale, [word]) for word in words]
            assert drawn.tolist() == expected


@each_variable
@pytest.mark.parametrize("scale", [1e-300, 1e-3, 3.0, 150 / GRID, MAX_SCALE_STEPS])
def test_extreme_uniforms(name: str, scale: float) -> None:
    """The far tail (u near 0, settled without an estimate) and the centre (u near 1)."""
    numerators = [0, 1, 2, 2**19, 2**20 - 1, 2**20, 2**20 + 1, 2**53 + 1, 2**63 - 1, 2**63 - 2]
    with mpmath.workdps(60):
        for numerator in numerators:
            words = [numerator << 1, 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9]
            drawn = draw_rounded(VARIABLES[name], scale, 1, Script(words))
            assert drawn[0] == oracle_steps(name, scale, words)


def test_settling_does_not_depend_on_the_bracket() -> None:
    rng = np.random.default_rng(3)
    for name, variable in VARIABLES.items():
        for numerator in rng.integers(2**20, 2**63, size=60).tolist():
            drawn = draw_rounded(variable, 1000.5, 1, Script([numerator << 1, 5, 6]))
            found = exact_sampling._settle(variable, 1000.5, numerator, Script([5, 6]))
            assert drawn[0] == found, name


def test_beyond_the_largest_float_integer_is_refused() -> None:
    with pytest.raises(ArithmeticError, match="2\\*\\*53"):
        draw_rounded(LAPLACE, MAX_SCALE_STEPS, 1, Script([0] * 40))


@each_variable
@pytest.mark.parametrize("scale", [0.2, 3.0, 25.0])
def test_stratified_uniforms_give_each_atom_its_probability(name: str, scale: float) -> None:
    """Exact, no chance: of N equidistant u, N * Pr[K = k] (within 1 per end) map to k."""
    count = 40_000
    words = [((2 * index + 1) * 2**63 // (2 * count)) << 1 for index in range(count)]
    steps = draw_rounded(VARIABLES[name], scale, count, Script([*words, *[12345] * 10]))
    for value, observed in zip(*np.unique(steps, return_counts=True), strict=True):
        upper = LAWS[name].sf(max(value - 0.5, 0) / scale)
        expected = 2 * count * (upper - LAWS[name].sf((value + 0.5) / scale))
        assert abs(observed - expected) <= 1.001


@each_variable
@given(word=st.integers(0, 2**64 - 1), scale=st.floats(1e-3, 1e13), factor=st.floats(1, 100))
@settings(max_examples=60)
def test_sign_flips_and_larger_scale_never_shrinks(
    name: str, word: int, scale: float, factor: float
) -> None:
    def draw(first: int, chosen: float) -> int:
        return int(draw_rounded(VARIABLES[name], chosen, 1, Script([first, 7, 8, 9]))[0])

    assert draw(word, scale) == -draw(word ^ 1, scale)
    wider = min(scale * factor, MAX_SCALE_STEPS)
    assert abs(draw(word, wider)) >= abs(draw(word, scale))


# ---------------------------------------------------------------- what the proof assumes


@each_variable
def test_estimates_are_far_inside_the_float_error(name: str) -> None:
    """Measured against mpmath, incl. tails and the seams of the approximations: an 8th of it."""
    rng = np.random.default_rng(4)
    seams = np.exp([-2.0, -32.0, -8.0]) * 2
    uniforms = np.concatenate(
        [
            rng.random(1500),
            2.0 ** -rng.uniform(0, 44, 1500),
            1 - 2.0 ** -rng.uniform(1, 53, 500),
            *(seam * (1 + rng.uniform(-1, 1, 150) * 1e-9) for seam in seams),
            [1.0, np.nextafter(1, 0), 2.0**-43, 0.5, np.nextafter(0.5, 1)],
        ]
    )
    uniforms = uniforms[uniforms <= 1]
    estimates = VARIABLES[name].estimate(uniforms)
    with mpmath.workdps(40):
        for uniform, estimate in zip(uniforms.tolist(), estimates.tolist(), strict=True):
            t = mpmath.mpf(estimate)
            tail = oracle_tail(name, t)
            slope = tail if name == "laplace" else 2 * mpmath.npdf(t)
            # First-order distance to the true t; the second-order term is below 1e-28.
            assert abs(tail - mpmath.mpf(uniform)) / slope <= FLOAT_ERROR / 8 * (1 + t)


def test_tails_against_independent_decimal_arithmetic() -> None:
    """mpmath's erfc and exp, by a series in another library, to the promised absolute error."""
    with decimal.localcontext() as context:
        context.prec = 130
        pi = decimal.Decimal(_machin_pi(120)).scaleb(-120)
        factor = (2 / pi).sqrt()
        for numerator in [1, 7, 130, 700, 1413, 1415, 2000, 2830, 4100, 5700, 8000, 9300]:
            t = decimal.Decimal(numerator) / 1024
            # erf(t/sqrt 2) = sqrt(2/pi) exp(-t^2/2) (t + t^3/3 + t^5/(3*5) + ...), positive terms.
            term, total, odd = t, t, 1
            while term > decimal.Decimal(10) ** -125:
                odd += 2
                term = term * t * t / odd
                total += term
            expected = 1 - factor * (-t * t / 2).exp() * total
            raw = libmp.mpf_div(libmp.from_int(numerator), libmp.from_int(1024), 100)
            for variable, wanted in ((GAUSSIAN, expected), (LAPLACE, (-t).exp())):
                for precision in (95, 223, 350):
                    assert _difference(variable, raw, precision, wanted) < Fraction(1, 2**precision)


def _machin_pi(digits: int) -> int:
    """Pi * 10**digits by Machin's formula, off by a few units."""
    unit: int = 10 ** (digits + 10)

    def arctan_inverse(base: int) -> int:
        term = total = unit // base
        odd, sign = 1, 1
        while term:
            term //= base * base
            odd, sign = odd + 2, -sign
            total += sign * (term // odd)
        return total

    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239)) // 10**10


def _difference(
    variable: StandardVariable, raw: Any, precision: int, wanted: decimal.Decimal
) -> Fraction:
    numerator, denominator = libmp.to_rational(variable.tail(raw, precision))
    return abs(Fraction(int(numerator), int(denominator)) - Fraction(wanted))


@pytest.mark.parametrize("shift", [1, 2, 5])
def test_rounded_gaussian_never_leaks_more_than_the_gaussian_and_a_discrete_one_does(
    shift: int,
) -> None:
    """Why not the discrete Gaussian: at sigma = 3 steps its δ(ε) exceeds the exact account."""
    sigma, integers = 3.0, np.arange(-80, 81)
    edges = np.arange(-80.5, 81) / sigma
    rounded = np.where(integers < 0, np.diff(stats.norm.cdf(edges)), -np.diff(stats.norm.sf(edges)))
    discrete = np.exp(-(integers**2) / (2 * sigma**2))
    discrete /= discrete.sum()
    mu, excess = shift / sigma, []
    for epsilon in np.linspace(0.01, 6, 600):
        claimed = stats.norm.cdf(-epsilon / mu + mu / 2)
        claimed -= math.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2)

        def delta(atoms: NDArray[np.float64], factor: float = math.exp(epsilon)) -> float:
            return float(np.maximum(atoms[:-shift] - factor * atoms[shift:], 0).sum())

        assert delta(rounded) <= claimed + 1e-13
        excess.append(delta(discrete) - claimed)
    assert max(excess) > 1e-4
