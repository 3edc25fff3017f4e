"""The noise of a release: fresh, rightly distributed and on the grid (SOUNDNESS 7 and 15).

Secure draws have no seed, so tests on them state their false-alarm rate. That each draw is exact
is tested without chance in ``test_exact_sampling.py``.
"""

import copy
import math
import os
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from collegium.errors import InputError
from collegium.mechanisms import SecureNoise, SeededNoise
from collegium.noise.grid import GRID, MAX_GRID_VALUE, to_grid

FALSE_ALARM = 1e-8
LAWS: dict[str, Any] = {"gaussian": stats.norm, "laplace": stats.laplace}
each_variable = pytest.mark.parametrize("name", ["gaussian", "laplace"])
SECURE = SecureNoise()


def secure(name: str, scale: float, size: int) -> NDArray[np.float64]:
    result: NDArray[np.float64] = getattr(SECURE, name)(scale, size, query=0, purpose="answer")
    return result


# ---------------------------------------------------------------- secure noise, statistically


@each_variable
def test_goodness_of_fit_on_the_grid(name: str) -> None:
    """Chi-square over all atoms at scale = 3 grid steps; false alarms 1e-8."""
    size, edge = 300_000, 9
    steps = np.clip(secure(name, 3 * GRID, size) / GRID, -edge, edge).astype(int)
    observed = np.bincount(steps + edge, minlength=2 * edge + 1)
    inner = LAWS[name].cdf((np.arange(-edge, edge) + 0.5) / 3)
    expected = size * np.diff(np.concatenate([[0.0], inner, [1.0]]))
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert stats.chi2.sf(statistic, 2 * edge) > FALSE_ALARM


@each_variable
def test_distribution_and_moments_at_a_usual_scale(name: str) -> None:
    """KS, mean and second moment at scale 40; false alarms 3e-8 in all (grid effect < 1e-8)."""
    size = 200_000
    values = secure(name, 40.0, size) / 40.0
    assert stats.kstest(values, LAWS[name].cdf).pvalue > FALSE_ALARM
    variance, fourth = {"gaussian": (1.0, 3.0), "laplace": (2.0, 24.0)}[name]
    limit = stats.norm.isf(FALSE_ALARM / 2)
    assert abs(values.mean()) * math.sqrt(size / variance) < limit
    spread = math.sqrt((fourth - variance**2) / size)
    assert abs((values**2).mean() - variance) / spread < limit


@each_variable
def test_calls_and_positions_are_independent(name: str) -> None:
    """Correlations of values, magnitudes and signs at lags 1..20; false alarms 1e-8 in all."""
    values = np.concatenate([secure(name, 3.0, 10) for _ in range(4000)])
    series = [values, np.abs(values), np.sign(values)]
    limit = stats.norm.isf(FALSE_ALARM / (2 * len(series) * 20))
    for one in series:
        centred = (one - one.mean()) / one.std()
        for lag in range(1, 21):
            pairs = centred[:-lag] * centred[lag:]
            assert abs(pairs.mean()) * math.sqrt(len(pairs)) < limit


def test_no_noise_twice() -> None:
    """Same arguments, fresh noise: calls, copies, pickles and forks; false alarms < 1e-30."""
    sources = [SECURE, copy.copy(SECURE), copy.deepcopy(SECURE), pickle.loads(pickle.dumps(SECURE))]
    seen = {
        source.gaussian(40.0, 10, query=3, purpose="check").tobytes()
        for source in sources
        for _ in range(500)
    }
    assert len(seen) == 2000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_draw_differently() -> None:
    """False alarms < 1e-30."""
    secure("gaussian", 40.0, 10)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.write(writer, secure("gaussian", 40.0, 10).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reader, 80)
    os.close(reader)
    os.close(writer)
    assert len(theirs) == 80
    assert theirs != secure("gaussian", 40.0, 10).tobytes()


def test_secure_noise_has_nothing_to_seed_or_to_switch_off() -> None:
    assert SECURE.is_private
    for attribute in ("is_private", "seed", "description"):
        with pytest.raises(AttributeError):
            setattr(SECURE, attribute, False)
    with pytest.raises(TypeError):
        SecureNoise(1)  # type: ignore[call-arg]


# ---------------------------------------------------------------- seeded noise


def test_seeded_noise_is_a_function_of_seed_query_and_purpose() -> None:
    keys = [(query, purpose) for query in range(30) for purpose in ("check", "answer")]

    def draws(order: list[tuple[int, str]]) -> dict[tuple[int, str], bytes]:
        noise = SeededNoise(11)
        return {
            key: noise.gaussian(40.0, 10, query=key[0], purpose=key[1]).tobytes() for key in order
        }

    forwards = draws(keys)
    assert forwards == draws(keys[::-1])
    assert len(set(forwards.values())) == len(keys)
    other = SeededNoise(12).gaussian(40.0, 10, query=0, purpose="check").tobytes()
    assert other not in forwards.values()
    assert not SeededNoise(11).is_private
    assert SeededNoise(11).description == "not private: seeded noise"


def test_seeded_noise_is_the_same_on_every_machine() -> None:
    values = SeededNoise(7).laplace(40.0, 3, query=1, purpose="answer") / GRID
    assert values.tolist() == [20286529.0, -53793087.0, -10776530.0]


@each_variable
def test_seeded_check_and_answer_are_independent(name: str) -> None:
    """Over 3,000 queries of a fixed seed: uncorrelated, and each fits (1e-8, fixed)."""
    noise = SeededNoise(5)
    check, answer = (
        np.concatenate(
            [getattr(noise, name)(40.0, 1, query=query, purpose=purpose) for query in range(3000)]
        )
        for purpose in ("check", "answer")
    )
    limit = stats.norm.isf(FALSE_ALARM / 2)
    assert abs(np.corrcoef(check, answer)[0, 1]) * math.sqrt(3000) < limit
    for values in (check, answer):
        assert stats.kstest(values / 40.0, LAWS[name].cdf).pvalue > FALSE_ALARM


# ---------------------------------------------------------------- grid and validation


@given(st.lists(st.floats(-MAX_GRID_VALUE, MAX_GRID_VALUE), min_size=1))
@example([MAX_GRID_VALUE, -MAX_GRID_VALUE])
def test_to_grid_is_the_nearest_multiple_exactly(values: list[float]) -> None:
    rounded = to_grid(values)
    for value, result in zip(values, rounded.tolist(), strict=True):
        steps = Fraction(result) / Fraction(GRID)
        assert steps.denominator == 1
        assert abs(Fraction(result) - Fraction(value)) <= Fraction(GRID) / 2
        assert not (result == 0 and math.copysign(1, result) < 0)
    assert to_grid(rounded).tobytes() == rounded.tobytes()


def test_to_grid_keeps_the_shape() -> None:
    assert to_grid(0.1).shape == ()
    assert to_grid(np.zeros((2, 3))).shape == (2, 3)
    assert isinstance(to_grid(1), np.ndarray)


@pytest.mark.parametrize("values", [[math.nan], [1.0, math.inf], [-1e10], ["many"], [None, {}]])
def test_to_grid_refuses(values: Any) -> None:
    with pytest.raises(InputError, match="grid"):
        to_grid(values)


@each_variable
@pytest.mark.parametrize("scale", [5e-324, 1e-4, 1.0, 1e7, 2.0**24])
def test_noise_is_on_the_grid_and_sums_are_exact(name: str, scale: float) -> None:
    values = secure(name, scale, 200)
    assert values.dtype == np.float64
    assert to_grid(values).tobytes() == values.tobytes()
    count = to_grid(12345.678)
    exact = [Fraction(float(count)) + Fraction(value) for value in values.tolist()]
    assert [Fraction(value) for value in (count + values).tolist()] == exact


@each_variable
@pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(1)])
@pytest.mark.parametrize(
    ("scale", "size"),
    [
        *((scale, 1) for scale in (0.0, -1.0, math.inf, math.nan, 1.7e7, "1", None, True)),
        *((1.0, size) for size in (0, -3, 2.5, True, "3")),
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    name: str, source: Any, scale: Any, size: Any
) -> None:
    draw: Callable[..., Any] = getattr(source, name)
    with pytest.raises(InputError, match=r"sigma|scale|size") as caught:
        draw(scale, size, query=0, purpose="answer")
    assert "\n" not in str(caught.value)


def test_seed_and_query_must_be_integers() -> None:
    for bad in (1.5, "7", None, True):
        with pytest.raises(InputError, match="seed"):
            SeededNoise(bad)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="query"):
            SeededNoise(1).gaussian(1.0, 1, query=bad, purpose="check")  # type: ignore[arg-type]
    numpy_integer: Any = np.int64(2)
    noise = SeededNoise(numpy_integer).gaussian(1.0, numpy_integer, query=0, purpose="check")
    assert noise.shape == (2,)
