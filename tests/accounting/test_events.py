"""Events: what they say costs what the theorems say, in every notion, and never less."""

import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.accounting import (
    BoundedRange,
    Composition,
    Gaussian,
    GaussianBound,
    Laplace,
    Neighbours,
    PoissonGaussian,
    PureNoise,
    from_dp_event,
    pure_to_gdp,
    to_dp_event,
)
from collegium.accounting.events import Nothing, SensitiveCurve
from collegium.accounting.export import Use, from_json, to_json
from collegium.accounting.renyi import laplace_rdp, pure_rdp
from collegium.errors import InputError

ORDERS = np.array([1.01, 1.5, 2.0, 8.0, 64.0, 2000.0])
EVENTS = [
    Gaussian([0.0, 1.0, 2.5], scale=40.0, coordinates=2),
    Laplace([0.0, 1.0, 2.5], inverse_scale=0.05, coordinates=2),
    PureNoise([0.0, 0.1, 2.0]),
    BoundedRange([0.0, 0.1, 2.0]),
    Nothing(3),
]
each_event = pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)


@settings(max_examples=200, deadline=None)
@given(ratio=st.floats(-6, 1.5).map(lambda x: 10.0**x), order=st.sampled_from(ORDERS.tolist()))
def test_renyi_curves_are_never_below_the_exact_ones_and_close_to_them(ratio, order):
    with mpmath.workdps(60):
        t, a = mpmath.mpf(ratio), mpmath.mpf(order)
        moment = a * mpmath.exp((a - 1) * t) + (a - 1) * mpmath.exp(-a * t)
        laplace = mpmath.log(moment / (2 * a - 1)) / (a - 1)
        response = mpmath.log(
            (mpmath.exp(a * t) + mpmath.exp((1 - a) * t)) / (1 + mpmath.exp(t))
        ) / (a - 1)
        for ours, exact in (
            (laplace_rdp(ratio, [order]), laplace),
            (pure_rdp(ratio, [order]), response),
        ):
            assert (
                exact <= mpmath.mpf(float(ours[0])) <= exact * mpmath.mpf(1.0001) + a * t**2 / 1000
            )


@each_event
def test_whom_an_event_does_not_touch_pays_nothing(event):
    assert event.mu_squared[0] == event.pure_epsilon[0] == event.rdp(ORDERS)[0].max() == 0
    assert event.bound(0) == GaussianBound(0.0)


@each_event
@pytest.mark.parametrize("cohort", [1, 2])
def test_the_common_currency_is_never_dearer_than_the_gaussian_account(event, cohort):
    bound = event.bound(cohort)
    assert bound.delta_0 == 0
    assert bound.mu**2 <= event.mu_squared[cohort] * (1 + 1e-12)
    assert bound.mu**2 >= event.mu_squared[cohort] * 0.4


@each_event
def test_one_cohort_alone_is_what_it_was_among_others(event):
    for cohort in range(3):
        one = event.towards(cohort)
        assert len(one) == 1
        assert one.mu_squared[0] == event.mu_squared[cohort]
        assert one.rdp(ORDERS).tolist() == event.rdp(ORDERS)[[cohort]].tolist()


@each_event
def test_the_renyi_curve_of_an_event_is_at_most_that_of_its_gaussian(event):
    """Whatever is μ-GDP has the Rényi curve of N(μ, 1) at most (Dong, Roth & Su 2022, Corollary B.6)."""
    assert (event.rdp(ORDERS) <= event.mu_squared[:, None] * ORDERS / 2 * (1 + 1e-9)).all()


def test_gaussian_amounts_by_hand():
    event = EVENTS[0]
    assert event.mu_squared == pytest.approx([0.0, 2 / 1600, 2 * 6.25 / 1600], rel=1e-14)
    assert event.pure_epsilon.tolist() == [0.0, math.inf, math.inf]
    assert EVENTS[1].pure_epsilon == pytest.approx([0.0, 0.1, 0.25], rel=1e-14)
    assert EVENTS[2].mu_squared[2] == pytest.approx(pure_to_gdp(2.0) ** 2, rel=1e-14)
    assert EVENTS[3].mu_squared[2] == pytest.approx(pure_to_gdp(1.0) ** 2, rel=1e-14)


def test_events_are_values():
    assert Gaussian([1.0], 2.0) == Gaussian(np.ones(1), 2.0)
    assert hash(Gaussian([1.0], 2.0)) == hash(Gaussian(np.ones(1), 2.0))
    assert Gaussian([1.0], 2.0) != Gaussian([1.0], 2.0, coordinates=2)
    assert PureNoise([1.0]) != BoundedRange([1.0])
    assert Gaussian([1.0], 2.0) != Gaussian([1.0], 2.0, neighbours=Neighbours.REPLACE)
    moves = np.ones(2)
    event = Gaussian(moves, 2.0)
    moves[0] = 100.0
    assert event.sensitivity.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        event.sensitivity[0] = 0.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian([-1.0], 1.0),
        lambda: Gaussian([math.inf], 1.0),
        lambda: Gaussian([math.nan], 1.0),
        lambda: Gaussian([], 1.0),
        lambda: Gaussian([[1.0]], 1.0),
        lambda: Gaussian([1.0], 0.0),
        lambda: Gaussian([1.0], math.inf),
        lambda: Gaussian([1.0], 1.0, coordinates=0),
        lambda: Laplace([1.0], -1.0),
        lambda: PureNoise([-1e-300]),
        lambda: BoundedRange([math.nan]),
        lambda: PoissonGaussian([1.5], [1.0]),
        lambda: PoissonGaussian([0.5], [0.0]),
        lambda: PoissonGaussian([0.5], [1.0, 1.0]),
        lambda: PoissonGaussian([0.5], [1.0], steps=-1),
        lambda: PoissonGaussian([0.5], [1.0], neighbours=Neighbours.ANY_CHANGE),
        lambda: Composition([]),
        lambda: Composition([Nothing(1), Nothing(2)]),
        lambda: Composition([Nothing(1)], [1, 2]),
        lambda: Composition([Nothing(1)], [-1]),
        lambda: SensitiveCurve(np.zeros(3), ORDERS),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(make):
    with pytest.raises(InputError) as refusal:
        make()
    assert "\n" not in str(refusal.value)


def test_compositions_add_up_and_say_whom_they_are_about():
    one, other = Gaussian([1.0], 10.0), Laplace([1.0], 0.1)
    both = Composition([one, other], [3, 2])
    assert both.mu_squared[0] == pytest.approx(3 * one.mu_squared[0] + 2 * other.mu_squared[0])
    assert both.rdp(ORDERS) == pytest.approx(3 * one.rdp(ORDERS) + 2 * other.rdp(ORDERS))
    assert Composition([other], [4]).pure_epsilon == pytest.approx([0.4])
    assert both.bound(0).mu == pytest.approx(
        math.sqrt(3 * one.bound(0).mu ** 2 + 2 * other.bound(0).mu ** 2)
    )
    replaced = Gaussian([1.0], 10.0, neighbours=Neighbours.REPLACE)
    assert (one + replaced).neighbours is Neighbours.REPLACE
    with pytest.raises(InputError, match="different neighbours"):
        replaced + PoissonGaussian([0.1], [1.0])


def test_a_composition_of_compositions_leaks_no_more_than_it_was_allowed():
    pytest.importorskip("dp_accounting")
    steps, once = PoissonGaussian([0.1], [5.0], steps=10), Gaussian([1.0], 20.0)
    flat = Composition([steps, once], [4, 2])
    nested = Composition([Composition([steps, Composition([once])], [2, 1])], [2])
    assert 0.99e-6 < nested.bound(0, 1e-6).delta_0 <= 1e-6
    assert nested.bound(0, 1e-6).mu == pytest.approx(flat.bound(0, 1e-6).mu, rel=1e-9)
    assert Composition([steps, once], [0, 1]).bound(0) == once.bound(0)  # nothing asks for a leak


def test_poisson_steps_that_come_back_from_dp_accounting_are_fitted_as_a_whole():
    pytest.importorskip("dp_accounting")
    steps = PoissonGaussian([0.1], [5.0], steps=10)
    assert from_dp_event(to_dp_event(steps)) == steps
    twice = from_dp_event(to_dp_event(Composition([steps], [2])))
    assert twice.bound(0, 1e-6).mu == PoissonGaussian([0.1], [5.0], steps=20).bound(0, 1e-6).mu


# -------------------------------------------------------------------------------- there and back


PUBLIC = [
    Gaussian([1.0, 2.5], scale=40.0, coordinates=2),
    Laplace([1.0, 2.5], inverse_scale=0.05, coordinates=2),
    PureNoise([0.1, 2.0]),
    BoundedRange([0.1, 2.0]),
    PoissonGaussian([0.1, 1.0], [2.0, 5.0], steps=20),
]


@pytest.mark.parametrize("event", PUBLIC, ids=lambda event: type(event).__name__)
def test_events_come_back_from_dp_accounting(event):
    pytest.importorskip("dp_accounting")
    neighbours = event.neighbours
    for cohort in range(2):
        for whole in (event, Composition([event, Nothing(2, neighbours=neighbours)], [3, 2])):
            there = to_dp_event(whole, cohort)
            back = from_dp_event(there, neighbours)
            assert back.neighbours is neighbours and len(back) == 1
            assert _same_dp_event(to_dp_event(back), there)
            expected = whole.towards(cohort).rdp(ORDERS)
            if isinstance(event, PureNoise | BoundedRange):  # as the Gaussian that dominates it
                assert (back.rdp(ORDERS) >= expected).all()
            else:
                assert back.rdp(ORDERS) == pytest.approx(expected, rel=1e-9)


def _same_dp_event(one, other):
    """Equal but for compositions of one, and for the last digits of noise multipliers."""
    import dp_accounting as dp

    flat = []
    for event in (one, other):
        parts, todo = [], [(event, 1)]
        while todo:
            part, count = todo.pop()
            if isinstance(part, dp.ComposedDpEvent):
                todo += [(inner, count) for inner in part.events]
            elif isinstance(part, dp.SelfComposedDpEvent):
                todo.append((part.event, count * part.count))
            elif isinstance(part, dp.PoissonSampledDpEvent):
                multiplier = part.event.noise_multiplier
                parts.append((type(part), count, part.sampling_probability, f"{multiplier:.12g}"))
            else:
                parts.append((type(part), count, f"{part.noise_multiplier:.12g}"))
        flat.append(sorted(parts, key=str))
    return flat[0] == flat[1]


def test_other_events_of_dp_accounting_are_refused():
    dp = pytest.importorskip("dp_accounting")
    with pytest.raises(InputError, match="SampledWithReplacement"):
        from_dp_event(dp.SampledWithReplacementDpEvent(10, 2, dp.GaussianDpEvent(1.0)))
    assert isinstance(to_dp_event(Nothing(1)), dp.NoOpDpEvent)
    assert from_dp_event(dp.NoOpDpEvent()) == Nothing(1, neighbours=Neighbours.ADD_OR_REMOVE)


@pytest.mark.parametrize("event", PUBLIC, ids=lambda event: type(event).__name__)
def test_events_come_back_from_json_to_the_last_bit(event):
    uses = {"a": [Use("answer", event.towards(0), 3)], "b": [Use("step", event.towards(1), 1)]}
    written = to_json(uses, event.neighbours, "in words")
    assert from_json(json.loads(json.dumps(written, allow_nan=False))) == uses
