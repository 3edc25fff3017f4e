"""The house is open: a mechanism that nobody thought of becomes a room of its own, here, in full.

A noisy weighted count: how many people have a property, where each counts as much as their budget allows.
It needs no other room: influence from the budgets, its event, an account, exact noise, and a statement.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import Budget
from collegium.accounting import (
    Gaussian,
    GaussianAccountant,
    Neighbours,
    from_dp_event,
    to_dp_event,
)
from collegium.accounting.export import Use
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.statement import statement
from collegium.errors import BudgetExceededError, InputError
from collegium.mechanisms import SecureNoise, SeededNoise
from collegium.noise.grid import GRID, to_grid
from collegium.noise.sums import Noise
from collegium.personalisation.rules import relative_influence

# --------------------------------------------------------------------------------------- the room


@dataclass(frozen=True)
class WeightedCount:
    """Σ w_i x_i + N(0, σ²), with x_i in {0, 1} and the weight that owner i's budget buys.

    Neighbours: an owner comes or goes, which moves the sum by w_i at most; μ_i = w_i/σ.
    """

    sigma: float

    def weights(self, groups):
        """Largest weight 1, on the grid of the noise."""
        influence = relative_influence(groups)
        return {name: float(to_grid(share)) for name, share in influence.items()}

    def event(self, groups):
        weights = list(self.weights(groups).values())
        return Gaussian(weights, self.sigma, neighbours=Neighbours.ADD_OR_REMOVE)

    def release(self, has_it, group_of, groups, account, noise, query):
        """Charge everybody, or nobody; then draw, and estimate how many have it."""
        account.charge(self.event(groups))
        weights = self.weights(groups)
        sensitive_sum = sum(weights[group_of[i]] for i in np.flatnonzero(has_it))
        steps = np.array([round(sensitive_sum / GRID)])
        its = Noise.in_votes("gaussian", self.sigma)
        return float(noise.noised(steps, its, query=query, purpose="count")[0] * GRID)


def open_account(groups):
    return GaussianAccountant(
        [budget.epsilon for budget in groups.values()],
        [budget.delta for budget in groups.values()],
        list(groups),
        Neighbours.ADD_OR_REMOVE,
    )


# --------------------------------------------------------------------------------------- its tests

GROUPS = {"high": Budget(0.5), "average": Budget(1.0), "low": Budget(2.0)}
SIZES = {"high": 540, "average": 370, "low": 90}
GROUP_OF = [name for name, size in SIZES.items() for _ in range(size)]
HAS_IT = np.arange(1000) % 3 == 0
ROOM = WeightedCount(sigma=5.0)


def count(account, query=0, noise=None):
    return ROOM.release(HAS_IT, GROUP_OF, GROUPS, account, noise or SecureNoise(), query)


def test_a_release_is_near_the_truth_on_the_grid_and_said_to_be_private():
    account = open_account(GROUPS)
    released = count(account)
    weights = ROOM.weights(GROUPS)
    truth = sum(weights[GROUP_OF[i]] for i in np.flatnonzero(HAS_IT))
    assert abs(released - truth) < 8 * ROOM.sigma
    assert released / GRID == int(released / GRID)
    said = statement(
        account,
        SIZES,
        GROUPS,
        Arrangement(sizes_declared=True, blanked_only=True),
        SecureNoise().is_private,
        released="one noisy weighted count of the people who have the property",
    )
    assert said.may_publish_spending
    text = " ".join(said.sentences())
    assert "Neighbouring data sets: all records of one owner are there or blanked." in text
    assert "Released: one noisy weighted count" in text
    spent = [row.epsilon_spent for row in said.groups]
    assert 0 < spent[0] < spent[1] < spent[2]  # who granted more is heard more
    assert all(row.epsilon_spent <= row.budget.epsilon for row in said.groups)


def test_all_groups_run_out_together_and_one_more_changes_nothing():
    account = open_account(GROUPS)
    affordable = account.how_many(ROOM.event(GROUPS))
    noise = SeededNoise(0)
    for query in range(affordable):
        count(account, query, noise)
    shares = account.epsilon_spent() / account.epsilon
    assert affordable > 5 and (shares > 0.9).all() and np.ptp(shares) < 0.01
    before = account.state()

    class Silent:
        def noised(self, *arguments, **options):
            raise AssertionError("nothing may be drawn")

    with pytest.raises(BudgetExceededError, match="Gaussian noise would overspend group"):
        count(account, affordable, Silent())
    assert account.state() == before


def test_neighbours_move_the_sum_by_no_more_than_was_charged():
    class NoNoise:
        def noised(self, total, noise, **options):
            return total

    free = {name: Budget(np.inf, budget.delta) for name, budget in GROUPS.items()}
    event = ROOM.event(GROUPS)
    for cohort, group in enumerate(GROUPS):
        owner = GROUP_OF.index(group)
        sums = []
        for present in (True, False):
            blanked = HAS_IT.copy()
            blanked[owner] = present
            account = open_account(free)
            sums.append(ROOM.release(blanked, GROUP_OF, GROUPS, account, NoNoise(), 0))
        assert abs(sums[0] - sums[1]) == event.sensitivity[cohort]


def test_it_is_not_charged_to_an_account_about_replacement_and_exports_itself():
    other = GaussianAccountant([1.0] * 3, 1e-5, neighbours=Neighbours.REPLACE)
    with pytest.raises(InputError, match="other neighbours"):
        other.charge(ROOM.event(GROUPS))
    assert Use("count", ROOM.event(GROUPS).towards(2), 4).noise_multiplier == pytest.approx(5.0)
    pytest.importorskip("dp_accounting")
    there = to_dp_event(ROOM.event(GROUPS), cohort=2)
    assert there.noise_multiplier == pytest.approx(5.0)
    assert from_dp_event(there).neighbours is Neighbours.ADD_OR_REMOVE
