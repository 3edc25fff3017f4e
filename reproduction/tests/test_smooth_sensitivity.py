"""Smooth sensitivity against all vote tables of small ensembles, and the paper's formulas."""

import itertools
import math
from dataclasses import dataclass
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    threshold_log_q,
    threshold_rdp,
)
from collegium.errors import InputError
from reproduction.smooth.cost_profiles import answer_profile, check_profile, constant_profile
from reproduction.smooth.smooth_sensitivity import (
    Owners,
    local_sensitivity,
    owner_steps,
    smooth_sensitivity,
)

ABSTAIN = -1


@dataclass(frozen=True)
class Small:
    """An ensemble small enough to enumerate every vote of every teacher on every query.

    `taught` names, for one owner of each kind, the group and the teachers who saw the owner.
    """

    weights: tuple[float, ...]
    taught: tuple[tuple[int, tuple[int, ...]], ...]
    n_classes: int
    n_queries: int = 1
    abstaining: bool = False
    sigma: float = 1.0
    order: float = 2.0
    check: tuple[float, float] | None = None
    n_distances: int = 24

    @property
    def sensitivity(self):
        """Delta of each group."""
        groups = 1 + max(group for group, _ in self.taught)
        delta = np.zeros(groups)
        for group, teachers in self.taught:
            delta[group] = max(delta[group], sum(self.weights[i] for i in teachers))
        return delta

    @property
    def owners(self):
        return Owners(self.sensitivity, self.order, n_distances=self.n_distances)

    def tables(self):
        """Return all votes (n_tables, n_teachers * n_queries) and counts."""
        choices = list(range(self.n_classes)) + ([ABSTAIN] if self.abstaining else [])
        n_votes = len(self.weights) * self.n_queries
        votes = np.array(list(itertools.product(choices, repeat=n_votes)))
        shaped = votes.reshape(len(votes), len(self.weights), self.n_queries, 1)
        hits = shaped == np.arange(self.n_classes)
        return votes, np.einsum("ntqc,t->nqc", hits, np.array(self.weights))

    def profile(self, counts):
        total = sum(self.weights)
        profile = answer_profile(counts, self.owners, self.sigma, total=total)
        if self.check:
            profile += check_profile(counts.max(axis=1), self.owners, *self.check, total=total)
        return profile

    def costs(self, counts):
        """Total cost of each group, by the functions that charge it, shape (n_tables, n_groups)."""
        flat = counts.reshape(-1, self.n_classes)
        order, delta = [self.order], self.sensitivity
        cost = gnmax_rdp(gnmax_log_q(flat, self.sigma), delta, self.sigma, order)[..., 0]
        if self.check:
            log_q = threshold_log_q(flat.max(axis=1), *self.check)
            cost = cost + threshold_rdp(log_q, delta, self.check[1], order)[..., 0]
        return cost.reshape(*counts.shape[:2], -1).sum(axis=1)

    def neighbourhoods(self, votes):
        """For one owner of each kind: which tables differ in nothing but the owner's teachers."""
        for group, teachers in self.taught:
            columns = [
                teacher * self.n_queries + query
                for teacher in range(len(self.weights))
                for query in range(self.n_queries)
                if teacher not in teachers
            ]
            _, label = np.unique(votes[:, columns], axis=0, return_inverse=True)
            yield group, label.ravel()


def singles(*groups):
    """One teacher for each owner."""
    return tuple((group, (teacher,)) for teacher, group in enumerate(groups))


SMALL = {
    "equal": Small((1.0,) * 5, singles(0, 0, 0, 0, 0), 3),
    "seven": Small((1.0,) * 7, singles(*[0] * 7), 2, order=3.0, sigma=0.7),
    "weighted": Small((0.5, 0.5, 1.0, 1.0, 1.75), singles(0, 0, 1, 1, 2), 3),
    "abstaining": Small((0.7, 1.0, 1.3, 1.0), singles(0, 1, 2, 1), 3, abstaining=True),
    "upsampled": Small(
        (1.0,) * 5, ((0, (0,)), (0, (2,)), (0, (4,)), (1, (0, 1)), (1, (2, 3)), (2, (1, 3, 4))), 3
    ),
    "two queries": Small((1.0, 1.0, 2.0), singles(0, 0, 1), 3, n_queries=2, sigma=0.8),
    "confident": Small(
        (0.5, 1.0, 1.5), singles(0, 1, 2), 2, n_queries=2, sigma=0.5, check=(1.5, 0.4)
    ),
    "low order": Small((1.0, 1.0, 1.0, 2.0), singles(0, 0, 0, 1), 3, sigma=1.2, order=1.2),
}


@cache
def profiles_of(name):
    """Work out the profile of each table once: many have the same counts."""
    _, counts = SMALL[name].tables()
    known = {row.tobytes(): row for row in counts}
    known = {key: SMALL[name].profile(row) for key, row in known.items()}
    return [known[row.tobytes()] for row in counts]


def spread(values, label):
    """Largest and smallest value within each neighbourhood, at each table."""
    largest = np.full((label.max() + 1, *values.shape[1:]), -np.inf)
    smallest = np.full_like(largest, np.inf)
    np.maximum.at(largest, label, values)
    np.minimum.at(smallest, label, values)
    return largest[label], smallest[label]


@pytest.mark.parametrize("name", SMALL)
def test_bounds_hold_for_all_tables_within_three_changed_owners(name):
    small = SMALL[name]
    votes, counts = small.tables()
    costs, steps = small.costs(counts), np.asarray(small.owners.steps)
    profiles = profiles_of(name)
    charged = np.array([profile.sensitive_cost for profile in profiles])
    assert (charged >= costs).all()
    assert (charged <= costs * (1 + 1e-6) + 1e-12).all()

    change = np.array([profile.sensitive_change for profile in profiles])
    truth = np.zeros((len(votes), steps.size, steps.size))
    for group, label in small.neighbourhoods(votes):
        largest, smallest = spread(charged, label)
        moved = np.maximum(largest - charged, charged - smallest)
        truth[:, :, group] = np.maximum(truth[:, :, group], moved)
    assert truth.max() > 0
    within = [truth]
    for distance in range(1, 3 * int(steps.max()) + 1):
        farther = within[-1].copy()
        for group, label in small.neighbourhoods(votes):
            if steps[group] <= distance:
                reached, _ = spread(within[distance - steps[group]], label)
                farther = np.maximum(farther, reached)
        within.append(farther)
    for distance, exact in enumerate(within):
        assert (change[..., distance] >= exact).all()

    for beta in (0.02, 0.3):
        smooth = np.array([smooth_sensitivity(profile, beta) for profile in profiles])
        assert (smooth[:, :, None] * steps >= truth).all()
        for group, label in small.neighbourhoods(votes):
            largest, smallest = spread(smooth, label)
            assert (largest <= smallest * math.exp(beta * steps[group]) * (1 + 1e-9)).all()


def test_bounds_are_not_vacuous():
    small = SMALL["equal"]
    _, counts = small.tables()
    costs = small.costs(counts)[:, 0]
    bounds = np.array([local_sensitivity(profile)[0, 0] for profile in profiles_of("equal")])
    assert bounds.min() < 0.05 * (costs.max() - costs.min())


@pytest.mark.parametrize("name", ["weighted", "confident"])
def test_admissible_exactly(name):
    # Within c steps of a table, the bound at distance k is at most the table's at k + c.
    small = SMALL[name]
    votes, _ = small.tables()
    change = np.array([profile.sensitive_change for profile in profiles_of(name)])
    steps = np.asarray(small.owners.steps)
    for group, label in small.neighbourhoods(votes):
        largest, _ = spread(change, label)
        kept = change.shape[-1] - steps[group]
        assert (largest[..., :kept] <= change[..., steps[group] :] * (1 + 1e-12)).all()


# --- the unweighted case of the paper


def paper_local_sensitivity(log_q, n_classes, sigma, order, distance):
    """Largest LS of Papernot et al. 2018, Appendix B, over q from B_L^d(q) to B_U^d(q), in mpmath."""
    others = n_classes - 1

    def moved(q, by):
        z = mpmath.erfinv(1 - 2 * q / others)
        return others * mpmath.erfc(z + mpmath.mpf(by) / sigma) / 2

    def cost(q):
        log_probability = float(mpmath.log(min(q, mpmath.mpf(others) / n_classes)))
        return gnmax_rdp([log_probability], [1.0], sigma, [order])[0, 0, 0]

    largest = 0.0
    with mpmath.workdps(60):
        for by in np.linspace(-distance, distance, 1 + 4 * distance):
            middle = moved(mpmath.exp(log_q), by)
            up, down = cost(moved(middle, -1)), cost(moved(middle, 1))
            largest = max(largest, up - cost(middle), cost(middle) - down)
    return largest


@pytest.mark.parametrize("counts", [[240.0, 6.0, 4.0], [180.0, 60.0, 10.0], [130.0, 70.0, 50.0]])
@pytest.mark.parametrize("distance", [0, 1, 3, 10])
def test_weight_one_gives_the_bounds_of_the_paper(counts, distance):
    sigma, order = 20.0, 12.0
    profile = answer_profile([counts], Owners([1.0], order), sigma, total=250.0)
    ours = local_sensitivity(profile, distance)[0, 0]
    log_q = float(gnmax_log_q([counts], sigma)[0])
    paper = paper_local_sensitivity(log_q, 3, sigma, order, distance)
    assert paper <= ours <= 1.08 * paper + 1e-12


# --- what theory promises


weights = st.floats(0.3, 4.0)
votes = st.lists(st.integers(0, 60), min_size=3, max_size=5)


@settings(max_examples=80)
@given(
    votes=votes,
    moved=st.floats(0, 1),
    delta=weights,
    source=st.integers(0, 2),
    target=st.integers(-1, 2),
    sigma=st.floats(1.0, 20.0),
    order=st.floats(1.1, 40.0),
    beta=st.floats(1e-3, 0.5),
)
def test_any_change_of_any_real_weight(votes, moved, delta, source, target, sigma, order, beta):
    table = np.array(votes, dtype=float)
    other = table.copy()
    amount = min(moved * delta, table[source])
    other[source] -= amount
    if target >= 0:
        other[target] += amount
    owners = Owners([delta], order, n_distances=64)
    total = table.sum() + 1
    one = answer_profile([table], owners, sigma, total=total)
    two = answer_profile([other], owners, sigma, total=total)
    difference = abs(one.sensitive_cost[0] - two.sensitive_cost[0])
    s, t = smooth_sensitivity(one, beta)[0], smooth_sensitivity(two, beta)[0]
    assert difference <= min(local_sensitivity(one)[0, 0], local_sensitivity(two)[0, 0])
    assert difference <= min(s, t)
    assert abs(math.log(s / t)) <= beta * (1 + 1e-9) if min(s, t) > 0 else s == t


@given(
    values=st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=4),
    moves=st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4),
    delta=weights,
    threshold=st.floats(-20.0, 60.0),
    beta=st.floats(1e-3, 0.5),
)
def test_interactive_checks_move_by_one_delta(values, moves, delta, threshold, beta):
    before = np.array(values)
    after = np.clip(before + delta * np.array(moves)[: before.size], -50, 50)
    owners = Owners([delta], 8.0, n_distances=64)
    one = check_profile(before, owners, threshold, 3.0, total=50.0)
    two = check_profile(after, owners, threshold, 3.0, total=50.0)
    difference = abs(one.sensitive_cost[0] - two.sensitive_cost[0])
    s, t = smooth_sensitivity(one, beta)[0], smooth_sensitivity(two, beta)[0]
    assert difference <= min(s, t)
    assert abs(math.log(s / t)) <= beta * (1 + 1e-9) if min(s, t) > 0 else s == t


def table_of(n_queries, seed=3):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(4, 0.4), n_queries)
    return np.array([rng.multinomial(80, share) for share in shares], dtype=float)


def test_queries_add_up_and_groups_permute():
    counts, delta = table_of(30), np.array([0.5, 1.0, 2.0])
    steps = owner_steps(delta)
    owners = Owners(delta, [6.0, 8.0, 10.0], steps)
    whole = answer_profile(counts, owners, 10.0, total=80.0)
    parts = answer_profile(counts[:11], owners, 10.0, total=80.0) + answer_profile(
        counts[11:], owners, 10.0, total=80.0
    )
    for name in ("worst_case", "sensitive_cost", "sensitive_change"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-10)
    turned = np.array([2, 0, 1])
    other = answer_profile(
        counts, Owners(delta[turned], owners.orders[turned], steps[turned]), 10.0, total=80.0
    )
    np.testing.assert_array_equal(other.sensitive_cost, whole.sensitive_cost[turned])
    np.testing.assert_array_equal(
        other.sensitive_change, whole.sensitive_change[np.ix_(turned, turned)]
    )


def test_queries_that_are_not_charged_cost_nothing():
    counts = table_of(12)
    charged = np.arange(12)[:, None] % np.array([1, 3]) == 0
    owners = Owners([1.0, 1.0], 6.0)
    some = answer_profile(counts, owners, 10.0, total=80.0, charged=charged)
    third = answer_profile(counts[::3], owners, 10.0, total=80.0)
    np.testing.assert_allclose(some.sensitive_cost[1], third.sensitive_cost[1], rtol=1e-12)
    np.testing.assert_allclose(some.sensitive_change[1], third.sensitive_change[1], rtol=1e-12)
    assert some.sensitive_cost[0] > some.sensitive_cost[1]


def test_nobody_changes_public_costs_and_the_powerless_change_nothing():
    owners = Owners([0.0, 1.0], 6.0)
    profile = answer_profile(table_of(5), owners, 10.0, total=80.0)
    assert profile.sensitive_cost[0] == 0
    assert not profile.sensitive_change[:, 0].any()
    assert not profile.sensitive_change[0].any()
    raised = profile + constant_profile([0.0, 0.5], owners)
    np.testing.assert_allclose(raised.sensitive_cost, [0.0, profile.sensitive_cost[1] + 0.5])
    np.testing.assert_allclose(raised.sensitive_change, profile.sensitive_change, rtol=1e-11)


def test_no_queries_cost_nothing():
    profile = answer_profile(np.empty((0, 3)), Owners([1.0], 6.0), 10.0, total=80.0)
    assert smooth_sensitivity(profile, 0.1)[0] == 0


def test_larger_distances_and_smaller_beta_never_lower_the_bounds():
    profile = answer_profile(table_of(20), Owners([1.0, 1.5], 6.0), 10.0, total=80.0)
    assert (np.diff(profile.sensitive_change, axis=-1) >= 0).all()
    bounds = [smooth_sensitivity(profile, beta) for beta in (0.4, 0.1, 0.01)]
    assert (np.diff(bounds, axis=0) >= 0).all()


def test_a_short_ladder_is_valid_and_only_looser():
    counts = table_of(20)
    short = answer_profile(counts, Owners([1.0], 6.0, n_distances=4), 10.0, total=80.0)
    full = answer_profile(counts, Owners([1.0], 6.0), 10.0, total=80.0)
    assert (short.sensitive_change >= full.sensitive_change[..., :4] * (1 - 1e-12)).all()
    assert short.sensitive_change[0, 0, -1] >= full.sensitive_change.max() * (1 - 1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0], 2.0), "sensitivity"),
        (([1.0], 1.0), "orders"),
        (([1.0], [2.0, 3.0]), "one per group"),
        (([1.0], 2.0, [0]), "whole numbers"),
        (([1.0], 2.0, [1.5]), "whole numbers"),
        (([1.0], 2.0, None, 0), "n_distances"),
    ],
)
def test_owners_refuse(arguments, message):
    with pytest.raises(InputError, match=message):
        Owners(*arguments)


def test_profiles_refuse():
    owners = Owners([1.0], 6.0)
    with pytest.raises(InputError, match="total"):
        answer_profile([[50.0, 50.0]], owners, 10.0, total=80.0)
    with pytest.raises(InputError, match="total"):
        check_profile([81.0], owners, 10.0, 10.0, total=80.0)
    with pytest.raises(InputError, match="threshold"):
        check_profile([8.0], owners, math.inf, 10.0, total=80.0)
    with pytest.raises(InputError, match="charged"):
        answer_profile([[5.0, 5.0]], owners, 10.0, total=80.0, charged=[[1.0]])
    with pytest.raises(InputError, match="one per group"):
        constant_profile([1.0, 2.0], owners)
    profile = answer_profile([[5.0, 5.0]], owners, 10.0, total=80.0)
    with pytest.raises(InputError, match="cannot be added"):
        profile + answer_profile([[5.0, 5.0]], Owners([1.0], 7.0), 10.0, total=80.0)
    with pytest.raises(InputError, match="distance"):
        local_sensitivity(profile, -1)
    with pytest.raises(InputError, match="beta"):
        smooth_sensitivity(profile, 0.0)
    with pytest.raises(InputError, match="too small"):
        answer_profile([[5.0, 5.0]], Owners([1e-9], 6.0), 10.0, total=80.0)
