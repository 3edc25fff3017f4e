"""One exposed person among many: not seen in the group's average, and seen by guesses about each."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from collegium.accounting.neighbours import Arrangement
from collegium.attacks.people import right_guesses, worst_person
from collegium.attacks.shadow_runs import infer_membership, run_shadows
from collegium.report.audit import Audit

MU = 0.72


def one_exposed(place, n, mu=MU, seed=1):
    """Noisy answers about everybody at μ, and about one person without noise."""

    def release(is_in, run):
        noise = np.random.default_rng([seed, run]).normal(size=n)
        noise[place] = 0.0
        return mu * is_in + noise

    return release


def test_one_exposed_person_among_fifty_is_seen():
    """However little the release moves: the average sees nobody, guesses see the one."""
    [found] = infer_membership(one_exposed(17, 50, mu=1e-6), {"all": MU}, ["all"] * 50)
    assert found.worst.place == 17
    assert (found.worst.right, found.worst.guesses) == (48, 48)
    assert found.worst.lower_mu == found.worst.most_mu > MU
    assert max([found.auc_mu, *(one.lower_mu for one in found.rates)]) < MU
    assert found.verdict == "more than the account allows" and not found.holds


def test_each_group_has_its_own():
    groups = ["strict"] * 30 + ["free"] * 30
    found = infer_membership(one_exposed(41, 60), {"strict": MU, "free": MU}, groups)
    assert [one.holds for one in found] == [True, False]
    assert found[0].worst.place < 30 and found[1].worst.place == 41


def test_nobody_is_accused_where_the_account_holds():
    """20 attacks on 50 people of μ = 0.72, in each of which some bound is too high with probability 0.01.

    More than 2 of them with probability 0.001.
    """
    too_high = 0
    for seed in range(20):

        def release(is_in, run, seed=seed):
            return MU * is_in + np.random.default_rng([seed, run]).normal(size=50)

        [found] = infer_membership(release, {"all": MU}, ["all"] * 50, seed=seed)
        too_high += found.worst.lower_mu > MU
    assert too_high <= 2


def test_guesses_are_right_as_often_as_chance_makes_of_them():
    """Where nothing is released: of 20,000 people, 7.2 are due with 36 right guesses of 48 or more.

    More than 18 of them with probability 2e-4.
    """

    def nothing(is_in, run):
        return np.random.default_rng([4, run]).normal(size=len(is_in))

    attack = run_shadows(nothing, 20_000)
    right = right_guesses(attack.seen, attack.is_in).sum(axis=0)
    assert right.mean() == pytest.approx(24, abs=0.12)
    assert right.var() == pytest.approx(12, rel=0.05)
    assert int((right >= 36).sum()) <= 18


def test_guesses_do_not_know_later_runs():
    attack = run_shadows(one_exposed(3, 40), 40)
    seen, is_in = attack.seen.copy(), attack.is_in.copy()
    is_in[50:] ^= True
    seen[50:] += 3
    before = right_guesses(attack.seen, attack.is_in)[:34]
    np.testing.assert_array_equal(before, right_guesses(seen, is_in)[:34])


def test_the_bound_is_clopper_and_pearsons():
    right = np.zeros((40, 10), dtype=bool)
    right[:36, 4], right[:38, 5] = True, True
    found = worst_person(right, np.arange(5), 0.05)
    assert (found.place, found.right) == (4, 36)
    assert found.most_mu == pytest.approx(2 * ndtri(0.01 ** (1 / 40)))
    assert 0 < found.lower_mu < found.most_mu
    assert worst_person(~right, np.arange(4, 6), 0.05).lower_mu == 0.0


def test_few_runs_show_nothing_of_a_person_and_say_so():
    [found] = infer_membership(one_exposed(3, 50), {"all": MU}, ["all"] * 50, runs=32)
    assert found.worst.guesses == 16 and found.worst.most_mu < MU
    assert "if all were: " in found.cells()["worst person"]


def test_an_audit_tells_averages_from_people():
    found = infer_membership(one_exposed(3, 50, mu=1e-6), {"all": math.inf}, ["all"] * 50)
    audit = Audit("answers", 0.95, Arrangement(), found)
    table = audit.table()
    assert "on average over the level's people" in table.caption
    assert "48 of 48 right" in table.rows[0][-2]
    assert audit.to_json()["groups"]["all"]["worst_person"]["person"] == 3
