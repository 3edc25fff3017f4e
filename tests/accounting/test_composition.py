"""Composition: oracles, formulas at 60 digits, and the truth by listing everything that can happen."""

import itertools
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
    GaussianArgMax,
    Laplace,
    PoissonGaussian,
    PureNoise,
    advanced_composition,
    basic_composition,
    bounded_range_composition,
    compare,
    event_of_words,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    group_privacy,
    optimal_composition,
    zcdp_epsilon,
)
from collegium.accounting.comparison import towards_group
from collegium.errors import InputError

DELTA = 1e-5
FORMS = ("dwork-roth", "kairouz")
mpmath.mp.dps = 60


def pairs_of_response(epsilon, delta=0.0):
    """What any (epsilon, delta)-DP mechanism is a part of: (P, Q) of each outcome, exactly."""
    e, leak = mpmath.mpf(epsilon), mpmath.mpf(delta)
    true, lie = mpmath.exp(e) / (1 + mpmath.exp(e)), 1 / (1 + mpmath.exp(e))
    rest = 1 - leak
    return [(rest * true, rest * lie), (rest * lie, rest * true), (leak, 0), (0, leak)]


def product(mechanisms):
    """(P, Q) of every outcome of all together."""
    for outcome in itertools.product(*mechanisms):
        p, q = mpmath.mpf(1), mpmath.mpf(1)
        for of_p, of_q in outcome:
            p, q = p * of_p, q * of_q
        yield p, q


def true_delta(outcomes, epsilon):
    grown = mpmath.exp(mpmath.mpf(epsilon))
    return mpmath.fsum(max(p - grown * q, 0) for p, q in outcomes)


def named(bounds, name):
    (found,) = [one for one in bounds if one.name == name]
    return found


# oracles


def test_a_hundred_mechanisms_of_a_tenth():
    assert basic_composition(0.1, counts=100).epsilon == pytest.approx(10, rel=1e-15)
    advanced = advanced_composition(0.1, DELTA, counts=100)
    assert round(advanced.epsilon, 6) == 5.850235 and advanced.delta == DELTA
    hundred = compare(Composition([PureNoise([0.1])], [100]), DELTA)
    assert round(named(hundred, "Gaussian DP").epsilon, 6) == 5.696124
    ranges = compare(Composition([BoundedRange([0.1])], [100]), DELTA)
    assert round(named(ranges, "Gaussian DP").epsilon, 6) == 2.567453
    assert named(ranges, "common currency").epsilon <= named(ranges, "Gaussian DP").epsilon


def test_a_group_of_three():
    together = group_privacy(3, epsilon=1.0, delta=DELTA)
    assert together.epsilon == 3.0 and float(f"{together.delta:.6e}") == 1.110734e-4
    assert round(gdp_epsilon(group_privacy(3, mu=gdp_mu(1.0, DELTA)), DELTA), 6) == 3.407016


def test_the_lecture_prints_a_looser_formula_that_still_holds():
    for epsilon, count in itertools.product([0.01, 0.1, 0.5, 0.9, 1.0, 2.0], [1, 3, 100]):
        root = math.sqrt(2 * count * math.log(1 / DELTA) * epsilon)
        printed = root + count * epsilon * math.expm1(epsilon)
        assert printed >= optimal_composition(epsilon, DELTA, counts=count).epsilon * (1 - 1e-12)
        if epsilon < 1:
            assert printed > advanced_composition(epsilon, DELTA, counts=count).epsilon
    assert round(math.sqrt(200 * math.log(1e5) * 0.1) + 10 * math.expm1(0.1), 2) == 16.23


# formulas


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 3), st.floats(0, 1e-3), st.integers(0, 99)), min_size=1, max_size=5
    ),
    st.floats(1e-12, 0.1),
)
def test_closed_forms_are_those_of_the_papers_rounded_up(used, slack):
    epsilons, deltas, counts = map(list, zip(*used, strict=True))
    e = [mpmath.mpf(x) for x, _, c in used for _ in range(c)]
    d = [mpmath.mpf(y) for _, y, c in used for _ in range(c)]
    squares, tail = mpmath.fsum(x**2 for x in e), -mpmath.log(mpmath.mpf(slack))
    drift = mpmath.fsum(x * mpmath.tanh(x / 2) for x in e)
    other = mpmath.log(mpmath.e + mpmath.sqrt(squares) / mpmath.mpf(slack))
    leak = 1 - (1 - mpmath.mpf(slack)) * mpmath.fprod(1 - y for y in d)
    expected = {
        basic_composition(epsilons, deltas, counts): (mpmath.fsum(e), mpmath.fsum(d)),
        advanced_composition(epsilons, slack, deltas, counts): (
            mpmath.sqrt(2 * squares * tail) + mpmath.fsum(x * mpmath.expm1(x) for x in e),
            mpmath.fsum(d) + mpmath.mpf(slack),
        ),
        advanced_composition(epsilons, slack, deltas, counts, form="kairouz"): (
            min(mpmath.fsum(e), drift + mpmath.sqrt(2 * squares * min(tail, other))),
            leak,
        ),
    }
    for given_back, (epsilon, delta) in expected.items():
        assert epsilon <= given_back.epsilon <= epsilon * (1 + mpmath.mpf(1e-13))
        assert min(delta, 1) <= given_back.delta <= delta * (1 + mpmath.mpf(1e-13))


@pytest.mark.parametrize("rho", [1e-9, 1e-3, 0.125, 3.0, 400.0])
@pytest.mark.parametrize("delta", [1e-12, DELTA, 0.3])
def test_zcdp_is_converted_at_the_best_order(rho, delta):
    r, d = mpmath.mpf(rho), mpmath.mpf(delta)
    paper = r + 2 * mpmath.sqrt(-r * mpmath.log(d))
    plain = zcdp_epsilon(rho, delta, "bun-steinke")
    best = zcdp_epsilon(rho, delta)
    assert paper <= plain <= paper * (1 + 1e-13)

    def at(order):
        return r * order + mpmath.log1p(-1 / order) - mpmath.log(d * order) / (order - 1)

    grid = 1 + np.geomspace(1e-4, 1e6, 20_001)
    rough = grid * rho + np.log1p(-1 / grid) - (math.log(delta) + np.log(grid)) / (grid - 1)
    expected = 0 if rho <= 2 * delta**2 else float(min(plain, at(mpmath.mpf(grid[rough.argmin()]))))
    assert best <= plain and best == pytest.approx(expected, rel=1e-5)
    # what Gaussian noise of this rho really costs
    assert gdp_epsilon(math.sqrt(2 * rho), delta) <= best * (1 + 1e-12)


def test_nothing_costs_nothing():
    for guarantee in (
        basic_composition(0.0, counts=9),
        advanced_composition(0.0, DELTA, counts=9),
        advanced_composition(0.3, DELTA, counts=0, form="kairouz"),
        optimal_composition([0.0, 0.0], DELTA),
    ):
        assert guarantee.epsilon == 0
    assert zcdp_epsilon(0.0, DELTA) == zcdp_epsilon(DELTA**2, DELTA) == 0
    assert bounded_range_composition(0.0, 9, DELTA) == bounded_range_composition(1.0, 0, DELTA) == 0


# above the truth, by listing every outcome


LISTS = [
    ([0.1] * 8, 1e-3),
    ([0.5, 0.5, 0.5, 1.0, 1.0], 1e-4),
    ([0.1, 0.25, 0.7, 0.3], 0.01),
    ([1 / 3, 1 / 7, 0.9, 1.7, 0.05], 1e-6),
    ([2.0], 0.2),
    ([30.0, 1.0, 1.0], 1e-9),
]


@pytest.mark.parametrize(("epsilons", "slack"), LISTS)
def test_optimal_composition_is_the_truth_and_nothing_is_below_it(epsilons, slack):
    outcomes = list(product([pairs_of_response(e)[:2] for e in epsilons]))
    optimal = optimal_composition(epsilons, slack)
    assert optimal.delta == slack and true_delta(outcomes, optimal.epsilon) <= slack
    # the unit of losses rounds amounts up by a few parts in 1e5 where they have none in common
    slightly_less = optimal.epsilon * (1 - 1e-4) - 1e-12
    assert slightly_less < 0 or true_delta(outcomes, slightly_less) > slack
    for form in FORMS:
        assert advanced_composition(epsilons, slack, form=form).epsilon >= optimal.epsilon * (
            1 - 1e-4
        )
    assert optimal.epsilon <= basic_composition(epsilons).epsilon


@pytest.mark.parametrize("epsilon", [0.1, 0.37, 2.0])
@pytest.mark.parametrize("count", [1, 7, 100])
def test_equal_amounts_are_composed_exactly(epsilon, count):
    """Theorem 3.3 as it is printed gives delta at (k - 2i) epsilon; between these the profile is known."""
    e, k = mpmath.mpf(epsilon), count
    outcomes = [
        (mpmath.binomial(k, i) * mpmath.exp((k - i) * e) / (1 + mpmath.exp(e)) ** k,
         mpmath.binomial(k, i) * mpmath.exp(i * e) / (1 + mpmath.exp(e)) ** k)
        for i in range(k + 1)
    ]  # fmt: skip
    for i in range(0, k // 2 + 1, 1 + k // 10):
        printed = (
            mpmath.fsum(
                mpmath.binomial(k, j) * (mpmath.exp((k - j) * e) - mpmath.exp((k - 2 * i + j) * e))
                for j in range(i)
            )
            / (1 + mpmath.exp(e)) ** k
        )
        assert mpmath.almosteq(printed, true_delta(outcomes, (k - 2 * i) * e), 1e-30, 1e-40)
    for slack in (1e-10, 1e-5, 0.05):
        found = optimal_composition(epsilon, slack, counts=count).epsilon
        assert true_delta(outcomes, found) <= slack
        assert found == 0 or true_delta(outcomes, found * (1 - 1e-9)) > slack


@pytest.mark.parametrize(
    "used", [[(0.3, 0.01)] * 3, [(0.1, 0.05), (0.9, 0.0), (0.5, 1e-4)], [(0.0, 0.1), (1.0, 0.02)]]
)
@pytest.mark.parametrize("slack", [1e-3, 0.05])
def test_promises_with_a_delta_hold_together(used, slack):
    outcomes = list(product([pairs_of_response(*one) for one in used]))
    epsilons, deltas = zip(*used, strict=True)
    for found in (
        basic_composition(epsilons, deltas),
        advanced_composition(epsilons, slack, deltas),
        advanced_composition(epsilons, slack, deltas, form="kairouz"),
        optimal_composition(epsilons, slack, deltas),
    ):
        assert true_delta(outcomes, found.epsilon) <= found.delta
    # and the last is the truth: no less epsilon at this delta
    assert true_delta(outcomes, found.epsilon * (1 - 1e-3)) > found.delta


def test_many_mechanisms_of_many_amounts_stay_in_order():
    rng = np.random.default_rng(0)
    for epsilons, counts in [
        (rng.uniform(0.05, 0.15, 500), 1),
        ([1.0, 0.5], [10_000, 3_000]),
        ([1e-3, 1e-3 * math.sqrt(2)], [100_000, 20_000]),
    ]:
        optimal = optimal_composition(epsilons, DELTA, counts=counts).epsilon
        closed = [
            advanced_composition(epsilons, DELTA, counts=counts, form=f).epsilon for f in FORMS
        ]
        assert 0.5 * min(closed) < optimal < min(closed)
    # a million tiny ones are one Gaussian
    tiny = optimal_composition(1e-3, DELTA, counts=1_000_000).epsilon
    assert tiny == pytest.approx(gdp_epsilon(1.0, DELTA), rel=1e-5)


def test_dp_accounting_says_the_same():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    for epsilon, count in [(0.1, 100)]:
        true, lie = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))
        by_side = [
            pld.from_two_probability_mass_functions(
                {0: lie, 1: true},
                {0: true, 1: lie},
                pessimistic_estimate=pessimistic,
                value_discretization_interval=1e-5,
            )
            .self_compose(count)
            .get_epsilon_for_delta(DELTA)
            for pessimistic in (False, True)
        ]
        found = optimal_composition(epsilon, DELTA, counts=count).epsilon
        assert by_side[0] - 1e-6 <= found <= by_side[1] + 1e-6


# bounded range


def pairs_of_range(eta, t):
    """(P, Q) of the two outcomes whose log-ratios are t and t - eta."""
    eta, t = mpmath.mpf(eta), mpmath.mpf(t)
    q = (mpmath.exp(-t) - mpmath.exp(-eta)) / (1 - mpmath.exp(-eta))
    return [(q * mpmath.exp(t), q), (1 - q * mpmath.exp(t), 1 - q)]


@pytest.mark.parametrize(
    ("eta", "count", "delta"), [(0.5, 3, 0.01), (2.0, 2, 1e-3), (1.0, 1, 0.05)]
)
def test_no_mechanisms_of_bounded_range_lose_more(eta, count, delta):
    found = bounded_range_composition(eta, count, delta)
    grid = np.linspace(0, eta, 25)
    worst = max(
        true_delta(product([pairs_of_range(eta, t) for t in choice]), found)
        for choice in itertools.combinations_with_replacement(grid, count)
    )
    assert worst <= delta
    finer = [list(product([pairs_of_range(eta, t)] * count)) for t in np.linspace(0, eta, 801)]
    assert max(true_delta(one, found * (1 - 1e-4)) for one in finer) > delta


def test_bounded_range_is_below_the_currency_and_pure_bounds():
    for eta, count in [(0.1, 100), (1.0, 20), (3.0, 300), (0.01, 1_000)]:
        found = bounded_range_composition(eta, count, DELTA)
        assert found < Composition([BoundedRange([eta])], [count]).bound(0).epsilon(DELTA)
        assert found <= optimal_composition(eta, DELTA, counts=count).epsilon


def test_choosing_as_one_goes_costs_more_than_the_fixed_bound_and_less_than_the_currency():
    """The gap of Dong, Durfee & Rogers, Section 3.3, on two mechanisms of range 1."""
    eta, epsilon = 1.0, 0.1
    grid = np.linspace(0, eta, 41)[1:-1]
    every = {t: pairs_of_range(eta, t) for t in grid}

    def second(
        grown,
    ):  # the largest delta of the second one, where the first has left exp(epsilon) = grown
        return max(sum(max(p - grown * q, 0) for p, q in pair) for pair in every.values())

    adaptive = max(
        mpmath.fsum(p * second(mpmath.exp(epsilon) * q / p) for p, q in pair)
        for pair in every.values()
    )
    fixed = max(
        true_delta(product([pairs_of_range(eta, t)] * 2), epsilon) for t in np.linspace(0, eta, 201)
    )
    assert adaptive > fixed * 1.04  # measured: 4.1 % more
    bound = Composition([BoundedRange([eta])], [2]).bound(0)
    assert adaptive <= bound.delta(epsilon)
    assert bounded_range_composition(eta, 2, float(adaptive)) < epsilon


# groups


@pytest.mark.parametrize("size", [1, 2, 5, 40])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-3), (1e-9, 1e-6), (1.0, DELTA), (20.0, 1e-30)]
)
def test_a_groups_delta_is_a_geometric_sum(size, epsilon, delta):
    found = group_privacy(size, epsilon=epsilon, delta=delta)
    exact = min(1, delta * mpmath.fsum(mpmath.exp(j * mpmath.mpf(epsilon)) for j in range(size)))
    assert exact * (1 - mpmath.mpf(1e-16)) <= found.delta <= exact * (1 + mpmath.mpf(1e-11))
    assert found.epsilon >= size * mpmath.mpf(epsilon)


def test_what_noise_costs_a_group_is_within_what_its_promise_implies():
    mu = gdp_mu(1.0, DELTA)
    promised = group_privacy(4, epsilon=1.0, delta=DELTA)
    assert gdp_delta(group_privacy(4, mu=mu), promised.epsilon) < promised.delta
    assert group_privacy(4, rho=mu**2 / 2) == pytest.approx((4 * mu) ** 2 / 2)
    events = Composition([Gaussian([1.0], 40.0), Laplace([1.0], 0.1), BoundedRange([0.1])])
    three = towards_group(events, 3)
    assert three.mu_squared[0] == pytest.approx(
        9 / 1600 + PureNoise([0.3]).mu_squared[0] + BoundedRange([0.3]).mu_squared[0]
    )
    bounds = compare(Gaussian([1.0], 1 / mu), DELTA, group=3)
    assert round(named(bounds, "Gaussian DP").epsilon, 6) == 3.407016


# beside each other


MIXED = [
    [Composition([PureNoise([0.1])], [100])],
    [Composition([Laplace([1.0], 0.1)], [100]), Gaussian([1.0], 40.0)],
    [Laplace([1.0], 0.2, coordinates=3), BoundedRange([0.4]), PureNoise([0.3])],
]


@pytest.mark.parametrize("events", MIXED)
def test_no_bound_is_below_what_the_best_known_distributions_lose(events):
    """Every theorem is about more than these mechanisms, or about them: none may be below the truth."""
    pytest.importorskip("dp_accounting")
    bounds = compare(events, DELTA)
    told = {one.name: one.epsilon for one in bounds if one.epsilon is not None}
    exact = told.get("loss distribution", 0.0)
    assert all(epsilon >= exact * (1 - 2e-3) for epsilon in told.values())
    assert sum(one.tightest for one in bounds) >= 1
    assert [one.name for one in bounds if one.relied_on] == ["Gaussian DP"]
    assert all(bool(one.why_not) is (one.epsilon is None) for one in bounds)
    tightest = [one.epsilon for one in bounds if one.tightest]
    assert tightest == pytest.approx([min(told.values())] * len(tightest), rel=1e-8)


def test_gaussian_noise_alone_is_told_exactly():
    bounds = compare(Composition([Gaussian([1.0], 100.0)], [640]), DELTA)
    exact = gdp_epsilon(math.sqrt(640) / 100, DELTA)
    assert named(bounds, "common currency").epsilon == pytest.approx(exact, rel=1e-9)
    assert named(bounds, "common currency").tightest
    assert named(bounds, "loss distribution").epsilon == pytest.approx(exact, rel=1e-3)
    assert named(bounds, "basic").epsilon > 25 * exact


def test_exponential_mechanisms_are_told_by_their_range():
    bounds = compare(Composition([BoundedRange([0.1])], [100]), DELTA)
    told = {one.name: one.epsilon for one in bounds if one.epsilon is not None}
    assert told["zCDP, as in its paper"] == pytest.approx(
        0.125 + 2 * math.sqrt(0.125 * math.log(1 / DELTA)), rel=1e-9
    )
    assert min(told, key=told.get) == "bounded range, fixed"
    assert named(bounds, "bounded range, fixed").adaptive == "no"
    mixed = compare([BoundedRange([0.1]), BoundedRange([0.2])], DELTA)
    assert named(mixed, "bounded range, fixed").why_not


def test_where_there_is_no_pure_epsilon_delta_is_shared_and_never_exceeded():
    noise = Composition([Gaussian([1.0], 20.0)], [2])
    bounds = compare([noise, PureNoise([0.1])], DELTA)
    whole = gdp_epsilon(1 / 20, DELTA / 2)
    assert named(bounds, "basic").epsilon == pytest.approx(2 * whole + 0.1, rel=1e-9)
    one = gdp_epsilon(1 / 20, DELTA / 4)
    theorems = [
        ("advanced, Dwork & Roth", advanced_composition, {}),
        ("advanced, Kairouz et al.", advanced_composition, {"form": "kairouz"}),
        ("optimal for (ε, δ)", optimal_composition, {}),
    ]
    for name, theorem, form in theorems:
        expected = theorem([one, one, 0.1], DELTA / 2, [DELTA / 4, DELTA / 4, 0.0], **form)
        assert expected.delta <= DELTA * (1 + 1e-12)
        assert named(bounds, name).epsilon == pytest.approx(expected.epsilon, rel=1e-6)


def test_every_coordinate_of_laplace_noise_is_a_mechanism():
    three = compare(Laplace([1.0], 0.2, coordinates=3), DELTA)
    alone = compare(Composition([Laplace([1.0], 0.2)], [3]), DELTA)
    assert named(three, "basic").epsilon == pytest.approx(0.6)
    for one, other in zip(three, alone, strict=True):
        if (
            one.name == "Gaussian DP"
        ):  # as the event states it: all coordinates as one pure mechanism
            continue
        assert one.epsilon == (other.epsilon and pytest.approx(other.epsilon, rel=1e-9))


def test_labels_alone_are_told_by_renyi_and_else_as_the_whole_vector():
    bounds = compare(Composition([GaussianArgMax([1.0], 40.0)], [50]), DELTA)
    whole = compare(Composition([Gaussian([1.0], 40.0, coordinates=2)], [50]), DELTA)
    assert named(bounds, "Rényi").tightest and not named(whole, "Rényi").tightest
    assert named(bounds, "Gaussian DP").epsilon == named(whole, "Gaussian DP").epsilon


def test_sampled_steps_have_fewer_bounds_and_say_why():
    pytest.importorskip("dp_accounting")
    bounds = compare(PoissonGaussian([0.1], [5.0], 100), DELTA)
    assert named(bounds, "Gaussian DP").why_not and named(bounds, "zCDP, best order").why_not
    assert [one.name for one in bounds if one.relied_on] == ["common currency"]
    exact = named(bounds, "loss distribution").epsilon
    assert exact == pytest.approx(0.7584, abs=2e-3)
    assert exact < named(bounds, "common currency").epsilon < named(bounds, "Rényi").epsilon


def test_a_cohort_is_told_what_it_pays_and_who_is_not_touched_nothing():
    events = Composition([Gaussian([0.0, 1.0], 10.0)], [4])
    assert all(one.epsilon in (0.0, None) for one in compare(events, DELTA))
    touched = named(compare(events, DELTA, cohort=1), "Gaussian DP").epsilon
    assert touched == pytest.approx(gdp_epsilon(0.2, DELTA), rel=1e-9)


# in words, and what means nothing


@pytest.mark.parametrize(
    ("words", "event"),
    [
        ("gaussian(40)", Gaussian([1.0], 40.0)),
        (" 3 x Laplace( 0.1 ) ", Composition([Laplace([1.0], 0.1)], [3])),
        ("1,000×pure(1e-3)", Composition([PureNoise([1e-3])], [1000])),
        ("2*exponential(.5)", Composition([BoundedRange([0.5])], [2])),
        ("argmax(40)", GaussianArgMax([1.0], 40.0)),
        ("poisson(0.1, 5, 100)", PoissonGaussian([0.1], [5.0], 100)),
        ("poisson(0.1, 5)", PoissonGaussian([0.1], [5.0])),
    ],
)
def test_events_are_read_as_they_are_typed(words, event):
    assert event_of_words(words) == event


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "is no event"),
        ("gaussian", "is no event"),
        ("cauchy(1)", "with one of gaussian(NOISE)"),
        ("gaussian(x)", "write gaussian(NOISE)"),
        ("gaussian(1, 2)", "write gaussian(NOISE)"),
        ("gaussian(nan)", "got nan"),
        ("gaussian(0)", "greater than 0"),
        ("0 x pure(1)", "count from 1"),
        ("poisson(0.1)", "write poisson(RATE, NOISE, STEPS)"),
        ("poisson(0.1, 5, 1.5)", "whole number"),
        ("poisson(2, 5)", "at most 1"),
    ],
)
def test_words_that_mean_nothing_are_refused_in_one_line(words, says):
    with pytest.raises(InputError, match=r"^[^\n]+$") as error:
        event_of_words(words)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: basic_composition(-1.0), "at least 0"),
        (lambda: basic_composition(math.inf), "finite"),
        (lambda: basic_composition([0.1, 0.2], counts=[1, 2, 3]), "shapes"),
        (lambda: basic_composition([[0.1]]), "list of numbers"),
        (lambda: basic_composition(0.1, deltas=1.0), "below 1"),
        (lambda: basic_composition(0.1, counts=1.5), "whole numbers"),
        (lambda: advanced_composition(0.1, 0.0), "strictly between 0 and 1"),
        (lambda: advanced_composition(0.1, DELTA, form="best"), "form"),
        (lambda: optimal_composition(0.1, DELTA, counts=2_000_000), "advanced_composition"),
        (lambda: bounded_range_composition(0.1, 1_001, DELTA), "count"),
        (lambda: zcdp_epsilon(1.0, DELTA, "best"), "conversion"),
        (lambda: group_privacy(0, epsilon=1.0), "size"),
        (lambda: group_privacy(2), "one of epsilon"),
        (lambda: group_privacy(2, mu=1.0, delta=0.1), "one of epsilon"),
        (lambda: compare(PureNoise([math.inf]), DELTA), "promises nothing"),
        (lambda: compare(PoissonGaussian([0.1], [5.0]), DELTA, group=2), "one owner at a time"),
        (lambda: compare(Gaussian([1.0], 1.0), DELTA, group=0), "group"),
        (lambda: compare(Gaussian([1.0], 1.0), 1.0), "delta"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line(call, says):
    with pytest.raises(InputError, match=r"^[^\n]+$") as error:
        call()
    assert says in str(error.value)
