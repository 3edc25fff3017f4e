"""Plans: budgets become influence, tied to groups by name."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Bagging, Budget, Budgets, Uniform, Upsampling, Vanishing, Weighting
from collegium.accounting import gdp_mu
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.personalisation import PERSONALISATIONS, Participation, as_personalisation
from collegium.personalisation.rules import relative_influence

# The three groups of the PoPETs paper, with the published names of their levels.
THREE = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
SIZES = {"high": 540, "average": 370, "low": 90}
MU = {
    "high": 0.268051123211,
    "average": 0.50155168917,
    "low": 0.719117435222,
}  # the design's oracle

ALL_PLANNERS = [
    cls(rule=rule, **extra)
    for cls in PERSONALISATIONS.values()
    for rule in cls.rules
    for extra in {Upsampling: [{}, {"max_duplicates": 3}], Bagging: [{"partitions": 2}]}.get(
        cls, [{}]
    )
]


def label(personalisation):
    return f"{personalisation.name}-{personalisation.rule}"


def each_group(plan, attribute):
    return {name: getattr(group, attribute) for name, group in plan.groups.items()}


budgets_by_name = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.tuples(st.sampled_from([0.5, 1.0, 1.5, 2.0, 5.0]), st.integers(40, 200)),
    min_size=1,
)


@pytest.mark.parametrize("personalisation", ALL_PLANNERS, ids=label)
@settings(max_examples=12)
@given(groups=budgets_by_name, n_teachers=st.integers(20, 40), random=st.randoms())
def test_the_order_of_groups_never_matters(personalisation, groups, n_teachers, random):
    budgets = {name: Budget(epsilon) for name, (epsilon, _) in groups.items()}
    sizes = {name: size for name, (_, size) in groups.items()}
    plan = personalisation.plan(budgets, sizes, n_teachers)
    order = list(groups)
    random.shuffle(order)
    other = personalisation.plan({g: budgets[g] for g in order}, sizes, n_teachers)
    for name in groups:
        one, two = plan.groups[name], other.groups[name]
        assert (one.budget, one.owners) == (two.budget, two.owners) == (budgets[name], sizes[name])
        assert (one.teachers, one.duplicates) == (two.teachers, two.duplicates)
        assert one.weight == pytest.approx(two.weight, abs=2 * GRID)
        assert one.frequency == pytest.approx(two.frequency, rel=1e-12)
        assert one.utilisation == pytest.approx(two.utilisation, rel=1e-4)
    assert plan.n_teachers == other.n_teachers
    assert plan.efficiency == pytest.approx(other.efficiency, rel=1e-4)


def test_ties_between_groups_are_broken_by_name_and_not_by_order():
    groups = {"a": Budget(1.0), "b": Budget(2.0)}
    for order in itertools.permutations(groups):
        plan = Weighting().plan({g: groups[g] for g in order}, {"a": 50, "b": 50}, 11)
        assert each_group(plan, "teachers") == {"a": 6, "b": 5}


@pytest.mark.parametrize("order", list(itertools.permutations(THREE)))
def test_exact_weights_are_proportional_to_mu_for_the_three_groups(order):
    plan = Weighting().plan({g: THREE[g] for g in order}, SIZES, 100)
    assert each_group(plan, "teachers") == {"high": 54, "average": 37, "low": 9}
    total = 54 * MU["high"] + 37 * MU["average"] + 9 * MU["low"]
    for name, weight in each_group(plan, "weight").items():
        assert weight == pytest.approx(100 * MU[name] / total, abs=2 * GRID)
    assert plan.efficiency == pytest.approx(1, abs=1e-5)
    assert all(u == pytest.approx(1, abs=1e-5) for u in each_group(plan, "utilisation").values())


def test_budget_and_square_root_weights_of_the_three_groups():
    by_budget = Weighting("budget").plan(THREE, SIZES, 100)
    total = 54 * 1 + 37 * 2 + 9 * 3
    for name, epsilon in {"high": 1, "average": 2, "low": 3}.items():
        assert by_budget.groups[name].weight == pytest.approx(100 * epsilon / total, abs=2 * GRID)
    by_root = Weighting("sqrt").plan(THREE, SIZES, 100)
    total = 54 + 37 * math.sqrt(2) + 9 * math.sqrt(3)
    for name, epsilon in {"high": 1, "average": 2, "low": 3}.items():
        weight = 100 * math.sqrt(epsilon) / total
        assert by_root.groups[name].weight == pytest.approx(weight, abs=2 * GRID)


@pytest.mark.parametrize("order", list(itertools.permutations(THREE)))
def test_algorithm_2_as_printed_gives_the_most_generous_group_the_smallest_weight(order):
    plan = Weighting("algorithm2").plan({g: THREE[g] for g in order}, SIZES, 100)
    # Lines 3 to 8: ε̄ = 1/6, 2/6, 3/6; n̄ = .54, .37, .09; w̄ = .09, .12333, .045; W = .25833.
    printed = {
        "high": 0.09 / 0.2583333333 * 100,
        "average": 0.1233333333 / 0.2583333333 * 100,
        "low": 0.045 / 0.2583333333 * 100,
    }
    for name, weight in each_group(plan, "weight").items():
        assert weight == pytest.approx(printed[name], rel=1e-6)
    weights = each_group(plan, "weight")
    assert weights["average"] / weights["high"] == pytest.approx(0.74 / 0.54, rel=1e-6)
    assert weights["low"] / weights["high"] == pytest.approx(0.27 / 0.54, rel=1e-6)
    # Δ/μ is largest in the strictest group, so it ends the voting; the third has then spent
    # (w_low/μ_low) / (w_high/μ_high) of its μ.
    assert plan.groups["high"].utilisation == pytest.approx(1)
    spent = 0.5 * MU["high"] / MU["low"]
    assert plan.groups["low"].utilisation == pytest.approx(spent, rel=1e-5)
    assert spent < 0.2


def test_algorithm_2_agrees_with_the_text_for_two_groups_of_one_size():
    groups, sizes = {"a": Budget(1.0), "b": Budget(2.0)}, {"a": 500, "b": 500}
    weights = each_group(Weighting("algorithm2").plan(groups, sizes, 100), "weight")
    assert weights["b"] / weights["a"] == pytest.approx(2, rel=1e-5)


def test_algorithm_1_divides_scaled_budgets_by_their_greatest_divisor():
    # ε·10² = 100, 150 → D = 50 → 2, 3; 100, 200, 300 → D = 100 → 1, 2, 3.
    cases = [
        ([1.0, 1.5], 2, [2, 3]),
        ([1.0, 2.0, 3.0], 2, [1, 2, 3]),
        ([1.0, 5.0], 2, [1, 5]),
        ([2.0, 4.0], 2, [1, 2]),
        ([0.29, 0.58], 2, [1, 2]),
        ([math.log(2), math.log(4), math.log(16)], 1, [1, 2, 4]),  # 7, 14, 28
        ([math.log(2), math.log(4), math.log(16)], 2, [69, 139, 277]),
    ]
    for epsilons, precision, expected in cases:
        groups = {f"g{i}": Budget(epsilon) for i, epsilon in enumerate(epsilons)}
        plan = Upsampling("algorithm1", precision=precision).plan(
            groups, dict.fromkeys(groups, 1000), 250
        )
        assert list(each_group(plan, "duplicates").values()) == expected


def test_frequencies_of_vanishing_as_printed():
    expected = {
        "exact": {g: (MU[g] / MU["low"]) ** 2 for g in THREE},
        "budget": {"high": 1 / 9, "average": 4 / 9, "low": 1},  # Appendix C: at least quadratic
        "sqrt": {"high": 1 / 3, "average": 2 / 3, "low": 1},
        "algorithm3": {"high": 1 / 3, "average": 2 / 3, "low": 1},  # line 5: ε_j / ε_max
        "footnote2": {"high": 1 / 81, "average": 16 / 81, "low": 1},  # to the power of four
        "thesis": {"high": 1 / 18, "average": 2 / 9, "low": 1},  # double of the square of the ratio
    }
    assert set(expected) == set(Vanishing.rules)
    for rule, frequencies in expected.items():
        plan = Vanishing(rule).plan(THREE, SIZES, 100)
        assert each_group(plan, "frequency") == pytest.approx(frequencies, rel=1e-9)
        assert set(each_group(plan, "weight").values()) == {1.0}


def test_exact_vanishing_lets_all_budgets_run_out_together():
    plan = Vanishing().plan(THREE, SIZES, 100)
    assert all(u == pytest.approx(1, rel=1e-9) for u in each_group(plan, "utilisation").values())
    # rms of the three groups is ∝ μ and Σ n·f is the scale, so efficiency is as computed by hand:
    frequency = {g: (MU[g] / MU["low"]) ** 2 for g in THREE}
    scale = sum(SIZES[g] * frequency[g] for g in THREE)
    granted = sum(SIZES[g] * MU[g] for g in THREE)
    assert plan.efficiency == pytest.approx(scale * MU["low"] / granted, rel=1e-6)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
@pytest.mark.parametrize(
    ("epsilon", "numbers"), [(1.5, (2, 3)), (2, (1, 2)), (3, (1, 3)), (5, (1, 5))]
)
def test_upsampling_gives_the_numbers_of_the_thesis(epsilon, numbers, share):
    sizes = {"strict": round(10_000 * (1 - share)), "generous": round(10_000 * share)}
    groups = {"generous": Budget(epsilon), "strict": Budget(1.0)}
    for rule in ("budget", "algorithm1"):
        plan = Upsampling(rule).plan(groups, sizes, 250)
        assert each_group(plan, "duplicates") == {"strict": numbers[0], "generous": numbers[1]}
        copies = numbers[0] * (1 - share) + numbers[1] * share
        assert abs(plan.n_teachers - 250 * copies) <= 0.5
        assert set(each_group(plan, "teachers").values()) == {plan.n_teachers}


def test_upsampling_example_of_the_thesis_needs_375_teachers():
    # Section 6.2: one half duplicated once, 250 teachers and sigma 40 become 375 and 60.
    groups, sizes = {"a": Budget(1.0), "b": Budget(2.0)}, {"a": 500, "b": 500}
    plan = Upsampling("budget").plan(groups, sizes, 250)
    assert plan.n_teachers == 375
    assert plan.electorate(0).ballot(0).scale * 40 == 60


def test_upsampling_states_its_waste():
    plan = Upsampling().plan(THREE, SIZES, 100)
    assert each_group(plan, "duplicates") == {"high": 1, "average": 2, "low": 3}
    # 1/μ: 3.731, 3.988, 4.172: the third group runs out first.
    assert plan.groups["low"].utilisation == 1
    ratio = {g: u * MU["low"] / (3 * MU[g]) for g, u in {"high": 1, "average": 2}.items()}
    for name, expected in ratio.items():
        assert plan.groups[name].utilisation == pytest.approx(expected, rel=1e-6)
    copies = 540 * 1 + 370 * 2 + 90 * 3
    granted = sum(SIZES[g] * MU[g] for g in THREE)
    assert plan.n_teachers == 155
    # 1550 copies for 155 teachers: no rounding of the number of teachers enters.
    assert plan.efficiency == pytest.approx(copies * MU["low"] / 3 / granted, rel=1e-6)


@given(groups=budgets_by_name, most=st.integers(1, 6))
def test_upsampling_is_as_efficient_as_any_whole_numbers_within_its_tolerance(groups, most):
    budgets = {name: Budget(epsilon) for name, (epsilon, _) in groups.items()}
    sizes = {name: size for name, (_, size) in groups.items()}
    mu = {g: gdp_mu(budget.epsilon, budget.delta) for g, budget in budgets.items()}
    granted = sum(sizes[g] * mu[g] for g in groups)

    def efficiency(duplicates):
        copies = sum(sizes[g] * duplicates[g] for g in groups)
        return copies * min(mu[g] / duplicates[g] for g in groups) / granted

    best = max(
        efficiency(dict(zip(groups, numbers, strict=True)))
        for numbers in itertools.product(range(1, most + 1), repeat=len(groups))
    )
    plan = Upsampling(max_duplicates=most).plan(budgets, sizes, 40)
    chosen = each_group(plan, "duplicates")
    assert all(1 <= number <= most for number in chosen.values())
    assert efficiency(chosen) >= best - Upsampling.tolerance - 1e-6


@pytest.mark.parametrize("personalisation", ALL_PLANNERS, ids=label)
@settings(max_examples=12)
@given(groups=budgets_by_name, n_teachers=st.integers(20, 40))
def test_efficiency_and_utilisation_are_shares_and_somebody_uses_all(
    personalisation, groups, n_teachers
):
    budgets = {name: Budget(epsilon) for name, (epsilon, _) in groups.items()}
    sizes = {name: size for name, (_, size) in groups.items()}
    plan = personalisation.plan(budgets, sizes, n_teachers)
    used = each_group(plan, "utilisation")
    assert 0 < plan.efficiency <= 1
    assert all(0 < share <= 1 for share in used.values())
    assert max(used.values()) == pytest.approx(1, rel=1e-12)
    one_budget = len({epsilon for epsilon, _ in groups.values()}) == 1
    if personalisation.name == "uniform" or label(personalisation) == "vanishing-exact":
        assert (plan.efficiency > 1 - 1e-9) == one_budget


@given(groups=budgets_by_name, n_teachers=st.integers(20, 40))
def test_weights_of_all_teachers_add_up_to_their_number(groups, n_teachers):
    budgets = {name: Budget(epsilon) for name, (epsilon, _) in groups.items()}
    sizes = {name: size for name, (_, size) in groups.items()}
    for rule in ("exact", "budget", "sqrt"):
        plan = Weighting(rule).plan(budgets, sizes, n_teachers)
        ballot = plan.electorate(0).ballot(0)
        assert sum(each_group(plan, "teachers").values()) == plan.n_teachers == n_teachers
        assert (
            ballot.total == ballot.weights.sum() == pytest.approx(n_teachers, abs=n_teachers * GRID)
        )
        assert (ballot.weights % GRID == 0).all()
        for name, delta in zip(plan.groups, ballot.sensitivity, strict=True):
            first, end = plan.teacher_ranges()[name]
            assert (ballot.weights[first:end] == delta).all()


@pytest.mark.parametrize("order", list(itertools.permutations(THREE)))
@pytest.mark.parametrize("personalisation", ALL_PLANNERS, ids=label)
def test_the_electorate_ties_sensitivities_to_budgets_by_name(personalisation, order):
    plan = personalisation.plan({g: THREE[g] for g in order}, SIZES, 100)
    electorate = plan.electorate(3)
    ballot = electorate.ballot(0)
    for name, budget, delta in zip(
        electorate.cohort_groups, electorate.cohort_budgets, ballot.sensitivity, strict=True
    ):
        group = plan.groups[name]
        assert budget == THREE[name]
        assert delta in ({0.0, group.sensitivity} if group.frequency < 1 else {group.sensitivity})
    assert set(electorate.cohort_groups) == set(THREE)


def test_sensitivity_of_upsampling_counts_all_teachers_of_an_owner():
    ballot = Upsampling().plan(THREE, SIZES, 100).electorate(0).ballot(0)
    assert ballot.sensitivity.tolist() == [1, 2, 3]
    assert ballot.weights.tolist() == [1] * 155
    assert (ballot.total, ballot.scale) == (155, 1.55)


def test_algorithm_2_makes_groups_not_teachers_add_up_but_relations_stay():
    # Line 8 of the algorithm: one group gets all of k, so each of its teachers weighs k; threshold
    # and noise are k times larger as well.
    ballot = (
        Weighting("algorithm2").plan({"a": Budget(2.0)}, {"a": 100}, 20).electorate(0).ballot(0)
    )
    assert ballot.weights.tolist() == [20.0] * 20
    assert (ballot.scale, ballot.sensitivity.tolist()) == (20, [20.0])


# Algorithm 2 as printed scales everything by the number of teachers: tested above.
NORMALISED = [p for p in ALL_PLANNERS if p.rule != "algorithm2" and p.name != "bagging"]


@pytest.mark.parametrize("personalisation", NORMALISED, ids=label)
def test_with_one_common_budget_every_personalisation_is_uniform(personalisation):
    budgets = Budgets.from_epsilons(np.full(300, 2.0), delta=1e-9, owners=np.arange(300) // 2)
    uniform, plan = (p.plan_for(budgets, 20) for p in (Uniform(), personalisation))
    ballot = plan.electorate(5).ballot(17)
    assert ballot.weights.tolist() == [1.0] * 20
    assert ballot.sensitivity.tolist() == [1.0]
    assert (ballot.total, ballot.scale, plan.efficiency) == (20, 1, 1)
    assert plan.electorate(5).is_static
    assert plan.electorate(5).cohort_budgets == uniform.electorate(5).cohort_budgets
    for assignment in ("hash", "balanced"):
        one, other = (p.assign(budgets, b"key", assignment) for p in (uniform, plan))
        assert one.owner_teachers.tolist() == other.owner_teachers.tolist()
        for mine, yours in zip(one.shards(), other.shards(), strict=True):
            assert mine.tolist() == yours.tolist()


@pytest.mark.parametrize("personalisation", ALL_PLANNERS, ids=label)
def test_groups_without_members_take_no_part(personalisation):
    groups = {"nobody": Budget(0.01), **THREE}
    plan = personalisation.plan(groups, {"nobody": 0, **SIZES}, 100)
    same = personalisation.plan(THREE, SIZES, 100)
    assert plan == same


@pytest.mark.parametrize(
    "personalisation", [p for p in NORMALISED if p.rule != "algorithm1"], ids=label
)
def test_infinite_budgets_get_as_much_influence_as_the_most_generous_finite_one(personalisation):
    groups = {"strict": Budget(1.0), "generous": Budget(3.0), "none": Budget(math.inf)}
    plan = personalisation.plan(groups, dict.fromkeys(groups, 400), 60)
    generous, none = plan.groups["generous"], plan.groups["none"]
    assert (none.duplicates, none.weight, none.frequency) == (
        generous.duplicates,
        generous.weight,
        generous.frequency,
    )
    assert 0 < plan.efficiency <= 1
    only = personalisation.plan({"none": Budget(math.inf)}, {"none": 100}, 10)
    assert only.electorate(0).ballot(0).weights.tolist() == [1.0] * 10


@pytest.mark.parametrize("personalisation", [Weighting(), Vanishing()], ids=label)
def test_a_group_too_small_for_a_teacher_is_named_and_upsampling_offered(personalisation):
    groups = {"many": Budget(1.0), "few": Budget(2.0)}
    for order in itertools.permutations(groups):
        with pytest.raises(InputError, match=r"group 'few' has 4 owner\(s\).*upsampling") as error:
            personalisation.plan({g: groups[g] for g in order}, {"many": 996, "few": 4}, 100)
        assert "\n" not in str(error.value)
    assert personalisation.plan(groups, {"many": 995, "few": 5}, 100).groups["few"].teachers == 1
    alone = Upsampling(tolerance=0).plan(groups, {"many": 999, "few": 1}, 100)
    assert alone.groups["few"].duplicates > alone.groups["many"].duplicates


@pytest.mark.parametrize("personalisation", ALL_PLANNERS, ids=label)
def test_more_teachers_than_owners_are_refused(personalisation):
    with pytest.raises(InputError, match="11 teachers, but only 10 owners"):
        personalisation.plan({"a": Budget(1.0)}, {"a": 10}, 11)
    with pytest.raises(InputError, match="at least 1, got 0"):
        personalisation.plan({"a": Budget(1.0)}, {"a": 10}, 0)
    with pytest.raises(InputError, match="no group has any member"):
        personalisation.plan({"a": Budget(1.0)}, {"a": 0}, 1)


@given(st.lists(st.integers(20, 100), min_size=1, max_size=6), st.integers(6, 50))
def test_teachers_are_shared_in_proportion_and_none_is_lost(sizes, n_teachers):
    named = {f"g{i}": size for i, size in enumerate(sizes)}
    people = sum(sizes)
    if min(sizes) * n_teachers < people or n_teachers > people:
        return  # too small a group is refused or rounded up: tested above
    plan = Weighting().plan({g: Budget(1.0) for g in named}, named, n_teachers)
    teachers = each_group(plan, "teachers")
    assert sum(teachers.values()) == n_teachers
    for name, size in named.items():
        assert abs(teachers[name] - Fraction(n_teachers * size, people)) < 1


@pytest.mark.parametrize("personalisation", [Weighting(), Vanishing(), Upsampling()], ids=label)
def test_very_different_budgets_still_make_a_plan_in_which_everybody_has_a_say(personalisation):
    groups = {"tiny": Budget(1e-6), "usual": Budget(20.0)}
    plan = personalisation.plan(groups, {"tiny": 100, "usual": 100}, 20)
    assert all(math.isfinite(g.utilisation) and g.utilisation > 0 for g in plan.groups.values())
    assert all(g.sensitivity >= GRID for g in plan.groups.values())


def test_relative_influence_has_the_largest_at_one():
    for rule in ("exact", "budget", "sqrt"):
        influence = relative_influence(THREE, rule)
        assert influence["low"] == 1
        assert influence["high"] < influence["average"] < 1
    assert relative_influence(THREE)["high"] == pytest.approx(MU["high"] / MU["low"], rel=1e-9)


def test_exact_influence_takes_each_groups_own_delta():
    groups = {"a": Budget(1.0, 1e-5), "b": Budget(1.0, 1e-9)}
    influence = relative_influence(groups)
    assert influence["b"] == pytest.approx(gdp_mu(1.0, 1e-9) / gdp_mu(1.0, 1e-5), rel=1e-12)
    assert influence["b"] < 1


def test_personalisations_are_found_by_name():
    assert as_personalisation("vanishing", "footnote2") == Vanishing("footnote2")
    given_one = Upsampling(max_duplicates=2)
    assert as_personalisation(given_one) is given_one


ALGORITHM_1 = Upsampling("algorithm1")
UNLIMITED = {"a": Budget(1.0), "b": Budget(math.inf)}
UNKNOWN = "allowed are uniform, upsampling, weighting, vanishing"


@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ALGORITHM_1.plan({"a": Budget(0.001)}, {"a": 100}, 10), "raise the precision"),
        (lambda: ALGORITHM_1.plan(UNLIMITED, {"a": 50, "b": 50}, 10), "use rule 'exact'"),
        (lambda: relative_influence(THREE, "linear"), "allowed are exact, budget, sqrt"),
        (lambda: as_personalisation("hybridd"), UNKNOWN),
        *(
            (lambda made=made: made("best"), f"{made.name!r} has no weight rule 'best'")
            for made in PERSONALISATIONS.values()
        ),
        (lambda: Upsampling(max_duplicates=0), "must"),
        (lambda: Upsampling(tolerance=1.0), "must"),
        (lambda: Upsampling(tolerance=-0.1), "must"),
        (lambda: Upsampling(precision=7), "must"),
    ],
)
def test_what_cannot_be_planned_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


# Vanishing: who takes part when.

schedules = st.tuples(
    st.lists(
        st.tuples(st.integers(1, 30), st.floats(0.01, 1.0, allow_subnormal=False)),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 2**31),
    st.integers(1, 120),
)


def schedule(groups, seed, shuffle_every):
    ends = np.cumsum([0, *(size for size, _ in groups)])
    teachers = [np.arange(ends[i], ends[i + 1]) for i in range(len(groups))]
    return Participation(teachers, [f for _, f in groups], seed, shuffle_every), teachers


@given(schedules)
def test_voters_of_each_group_stay_between_floor_and_ceiling(made):
    participation, teachers = schedule(*made)
    for position in range(3 * made[2]):
        present = participation.present(position)
        for group, (size, frequency) in zip(teachers, made[0], strict=True):
            # Frequencies are rounded to 2⁻²⁰, hence the slack of 30 · 2⁻²¹ before floor and ceiling.
            exact, slack = size * frequency, size * 2.0**-21
            count = int(present[group].sum())
            assert math.floor(exact - slack) <= count <= math.ceil(exact + slack)


@pytest.mark.parametrize(("frequency", "voters"), [(0.2, 2), (0.24, 2), (0.26, 3), (0.34, 3)])
def test_phases_lie_half_a_teacher_off_so_a_shuffle_begins_with_the_nearest_whole_number(
    frequency, voters
):
    participation, _ = schedule([(10, frequency)], 1, 5)
    assert [int(participation.present(5 * epoch).sum()) for epoch in range(4)] == [voters] * 4


@settings(max_examples=30)
@given(schedules, st.data())
def test_between_shuffles_every_teacher_takes_part_its_share_of_any_window(made, data):
    participation, teachers = schedule(*made)
    every = made[2]
    epoch = data.draw(st.integers(0, 3))
    start = data.draw(st.integers(0, every - 1))
    stop = data.draw(st.integers(start + 1, every))
    window = np.stack([participation.present(epoch * every + t) for t in range(start, stop)])
    for group, (_, frequency) in zip(teachers, made[0], strict=True):
        counts = window[:, group].sum(axis=0)
        assert (np.abs(counts - (stop - start) * frequency) < 1 + every * 2.0**-20).all()


@settings(max_examples=30)
@given(schedules, st.permutations(range(40)))
def test_participation_does_not_depend_on_the_order_of_asking(made, order):
    in_order, _ = schedule(*made)
    expected = [in_order.present(position).tolist() for position in range(40)]
    at_random, _ = schedule(*made)
    for position in order:
        assert at_random.present(position).tolist() == expected[position]


def test_frequencies_hold_in_the_long_run_and_shuffles_change_who_votes_together():
    participation, _ = schedule([(20, 0.3), (10, 1.0)], 11, 50)
    rounds = np.stack([participation.present(t) for t in range(2000)])
    # 40 epochs, each within one of its 15 votes: the share is within 1/50 in any case.
    assert np.abs(rounds[:, :20].mean(axis=0) - 0.3).max() <= 1 / 50
    assert rounds[:, 20:].all()
    # Without shuffles, two teachers would always or never meet in some fixed pattern.
    together = (rounds[:50, :20].T.astype(float) @ rounds[:50, :20]) / 50
    later = (rounds[50:100, :20].T.astype(float) @ rounds[50:100, :20]) / 50
    assert not np.allclose(together, later)


def test_participation_differs_between_seeds_and_is_the_same_for_one():
    plans = [Vanishing().plan(THREE, SIZES, 100).electorate(seed) for seed in (1, 1, 2)]
    ballots = [np.stack([e.ballot(t).weights for t in range(30)]) for e in plans]
    assert (ballots[0] == ballots[1]).all()
    assert (ballots[0] != ballots[2]).any()


def test_vanishing_ballots_scale_with_voters_and_only_voters_are_charged():
    plan = Vanishing().plan(THREE, SIZES, 100)
    electorate = plan.electorate(4)
    assert not electorate.is_static
    for position in (7, 250, 3, 99, 100):
        ballot = electorate.ballot(position)
        assert set(ballot.weights.tolist()) <= {0.0, 1.0}
        assert ballot.sensitivity.tolist() == ballot.weights.tolist()
        assert ballot.total == ballot.weights.sum()
        assert ballot.scale == ballot.total / 100
    for teacher, name in enumerate(electorate.cohort_groups):
        first, end = plan.teacher_ranges()[name]
        assert first <= teacher < end


def test_two_equal_groups_with_half_participation_have_three_quarters_of_the_voters():
    # PoPETs 2023, Appendix B: the higher budget is twice the lower; thesis: 187 or 188 of 250.
    groups, sizes = {"a": Budget(1.0), "b": Budget(2.0)}, {"a": 500, "b": 500}
    electorate = Vanishing("algorithm3").plan(groups, sizes, 250).electorate(0)
    totals = {electorate.ballot(t).total for t in range(100)}
    assert totals == {187.0, 188.0}


def test_plans_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for personalisation in ALL_PLANNERS:
            personalisation.plan(THREE, SIZES, 100)


@pytest.mark.parametrize("personalisation", ALL_PLANNERS, ids=label)
def test_effective_votes_are_those_of_everybodys_influence_one_by_one(personalisation):
    plan = personalisation.plan(THREE, SIZES, 100)
    said = [
        group.sensitivity * group.frequency
        for group in plan.groups.values()
        for _ in range(group.owners)
    ]
    share = math.fsum(said) ** 2 / math.fsum(one * one for one in said) / len(said)
    assert plan.effective_votes == pytest.approx(100 * share, rel=1e-12)
    alike = personalisation.plan(dict.fromkeys(THREE, Budget(1.0)), SIZES, 100)
    if personalisation.rule != "algorithm2":  # where large groups weigh more, whatever they grant
        assert alike.effective_votes == pytest.approx(100)
