"""Three studies in two years about people who change their minds, computed again by dp_accounting alone.

Whoever computes it again has what `collegium ledger export` prints, dp_accounting and two formulas of
docs/composition.md, and nothing of Collegium.
"""

import json
import math
import warnings
from datetime import UTC, datetime

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import collegium as cg
from collegium import Ledger
from collegium.accounting import Composition, Gaussian, Laplace, PoissonGaussian
from collegium.ledger import Cost, transaction
from collegium.ledger.export import as_json

dp = pytest.importorskip("dp_accounting")
from dp_accounting import pld  # noqa: E402
from dp_accounting.pld.privacy_loss_mechanism import (  # noqa: E402
    AdjacencyType,
    GaussianPrivacyLoss,
)

from tests.accounting.a_stranger import dp_event, exact_mu_squared  # noqa: E402

POLICY = cg.Policy({"high": 1.0, "low": 3.0, "open": 6.0})
EXACT = 1e-9


class Clock:
    """Says what time it is: what the test says."""

    at: datetime

    def set(self, *day):
        self.at = datetime(*day, 12, tzinfo=UTC)

    def now(self, zone):
        return self.at.astimezone(zone)


def records(names):
    """Two features and a class for each person, the same whenever they are asked for."""
    numbers = np.array([int(name[1:]) for name in names])
    y = numbers % 2
    drawn = np.random.default_rng(0).normal(size=(numbers.max() + 1, 2))
    return drawn[numbers] + 2.5 * y[:, None], y


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The ledger after two years, and what it exports."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction, "datetime", clock)
        clock.set(2024, 1, 10)
        ledger = Ledger.create(tmp_path_factory.mktemp("story") / "people.ledger")
        live(ledger, clock)
    return ledger, json.loads(json.dumps(as_json(ledger), allow_nan=False))


def live(ledger, clock):
    level = {f"p{number}": "low" if number % 4 else "high" for number in range(200)}

    def granted(names):
        return POLICY.assign([level[name] for name in names], owners=names)

    def changed(names, to):
        level.update(dict.fromkeys(names, to))
        return ledger.change(granted(names), come_back=True)

    # A count, in which who grants more counts more.
    clock.set(2024, 1, 15)
    count = Gaussian(sensitivity=[0.5, 1.0, 1.5], scale=5.0)
    people = granted(list(level))
    costs = dict(zip(POLICY.levels, Cost.of_event(count), strict=True))
    one = ledger.reserve("count", "a count", people, costs, neighbours=count.neighbours)
    one.settle(costs, count)

    clock.set(2024, 6, 1)
    assert changed([f"p{number}" for number in range(20)], "open")["raised"] == 20
    fewer = [f"p{number}" for number in range(40, 64) if number % 4]
    assert changed(fewer, "high")["lowered"] == 18
    for number in range(20, 25):
        assert ledger.forget(f"p{number}")
    left = {f"p{number}": level.pop(f"p{number}") for number in range(20, 25)}
    assert changed([f"p{number}" for number in range(200, 220)], "low")["joined"] == 20

    # A classifier on what everybody has left.
    clock.set(2024, 11, 20)
    names = list(level)
    X, y = records(names)
    model = cg.PATEClassifier(
        GaussianNB(), n_teachers=15, aggregator=cg.GNMax(sigma=8), classes=[0, 1], random_state=0,
        queries=cg.Queries(max_labels=6),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(
            X, y, budgets=granted(names), X_public=records([f"p{n}" for n in range(300, 400)])[0],
            ledger=ledger, release_name="a classifier",
        )  # fmt: skip

    clock.set(2025, 3, 1)
    level["p20"] = left["p20"]
    ledger.change(granted(["p20"]), come_back=True)
    assert changed(["p30", "p31"], "high")["overdrawn"] == 2
    ledger.forget("p200")
    del level["p200"], level["p30"], level["p31"]

    # Subsampled training and a count with Laplace noise, of those who can pay; ten people are new.
    clock.set(2025, 12, 10)
    level.update({f"p{number}": "open" for number in range(220, 230)})
    both = Composition(
        [
            Laplace([0.5, 1.0, 1.0], inverse_scale=0.05),
            PoissonGaussian([0.05, 0.1, 0.1], [5.0] * 3, steps=10),
        ]
    )
    people = granted(list(level))
    costs = dict(zip(POLICY.levels, Cost.of_event(both, delta_0=5e-8), strict=True))
    last = ledger.reserve("training", "a training", people, costs, neighbours=both.neighbours)
    last.settle(costs, both)


def parts(exported):
    for release in exported["releases"].values():
        for (mu_squared, _, delta_0), uses in zip(release["parts"], release["events"], strict=True):
            yield mu_squared, delta_0, uses


def test_every_cost_follows_from_its_events(told):
    kinds = set()
    for mu_squared, delta_0, uses in parts(told[1]):
        exact = [use for use in uses if use["kind"] != "poisson-gaussian"]
        steps = [use for use in uses if use["kind"] == "poisson-gaussian"]
        kinds |= {use["kind"] for use in uses}
        rest = mu_squared - math.fsum(map(exact_mu_squared, exact))
        if not steps:
            assert (rest, delta_0) == (pytest.approx(0, abs=EXACT * mu_squared), 0)
            continue
        # Of the steps, (μ, δ₀) has to lie above dp_accounting's own profile, and hardly above it.
        (use,) = steps
        step = dp_event(use).event
        profile = pld.privacy_loss_distribution.from_gaussian_mechanism(
            step.event.noise_multiplier, sampling_prob=step.sampling_probability
        ).self_compose(dp_event(use).count)
        epsilons = np.linspace(0, 1.0, 101)
        theirs = np.array([profile.get_delta_for_epsilon(epsilon) for epsilon in epsilons])
        mu = math.sqrt(rest)
        assert (theirs <= bound(mu, delta_0, epsilons)).all()
        assert (theirs > bound(0.999 * mu, delta_0, epsilons)).any()
    assert kinds == {"gaussian", "laplace", "poisson-gaussian"}


def bound(mu, delta_0, epsilons):
    one = GaussianPrivacyLoss(1 / mu, adjacency_type=AdjacencyType.REMOVE)
    deltas = np.array([one.get_delta_for_epsilon(epsilon) for epsilon in epsilons])
    return delta_0 + (1 - delta_0) * deltas


def test_every_persons_account_follows_from_what_is_exported(told):
    exported = told[1]
    assert sum(cohort["people"] for cohort in exported["cohorts"]) == 230
    for cohort in exported["cohorts"]:
        paid = [exported["releases"][id]["parts"][part] for id, part in cohort["charges"]]
        mu_squared = math.fsum(cost[0] for cost in paid)
        delta_0 = math.fsum(cost[2] for cost in paid)
        assert cohort["spent"]["mu_squared"] == pytest.approx(mu_squared, rel=EXACT)
        assert cohort["spent"]["delta_0"] == pytest.approx(delta_0, rel=EXACT)
        if not mu_squared:
            assert cohort["epsilon_spent"] == 0
            continue
        aside = exported["delta_0_share"] * cohort["delta"]  # used or not
        inside = (cohort["delta"] - aside) / (1 - aside)
        epsilon = dp.get_epsilon_gaussian(1 / math.sqrt(mu_squared), inside)
        assert cohort["epsilon_spent"] == pytest.approx(epsilon, rel=EXACT)
        # All events at once, as dp_accounting adds them up on its grid: the same for Gaussian noise;
        # less than the common currency says, where there is other noise.
        uses = [
            use
            for id, part in cohort["charges"]
            for use in exported["releases"][id]["events"][part]
        ]
        together = pld.PLDAccountant(value_discretization_interval=1e-3)
        together.compose(dp.ComposedDpEvent([dp_event(use) for use in uses]))
        theirs = together.get_epsilon(inside)
        assert 0.7 * epsilon < theirs < epsilon + 1e-3
        if all(use["kind"] == "gaussian" for use in uses):
            assert theirs > epsilon - 1e-3


def test_nobody_ever_paid_more_than_was_granted_then(told):
    exported = told[1]
    share = exported["delta_0_share"]
    seen = 0
    for cohort in exported["cohorts"]:
        mu_squared = delta_0 = 0.0
        for id, part in cohort["charges"]:
            release = exported["releases"][id]
            cost = release["parts"][part]
            mu_squared, delta_0 = mu_squared + cost[0], delta_0 + cost[2]
            then = [one for one in cohort["grants"] if one["at"] <= release["reserved_at"]][-1]
            reserve = share * then["delta"]
            inside = (then["delta"] - reserve) / (1 - reserve)
            limit = 1 / dp.get_sigma_gaussian(then["epsilon"], inside)
            assert not then["has_left"]
            assert mu_squared <= limit**2 * (1 + EXACT) and delta_0 <= reserve * (1 + EXACT)
            seen += 1
    assert seen > 20


def test_changes_of_mind_are_told(told):
    ledger, exported = told

    def account(name):
        """Find what is exported about a person, whom only the ledger's key can tell."""
        its = ledger.account_of(name)
        charges = [[charge.release.id, charge.part] for charge in its.charges]
        grants = [(one.at, one.level, one.has_left) for one in its.grants]
        found = next(
            cohort
            for cohort in exported["cohorts"]
            if cohort["charges"] == charges
            and [(one["at"], one["level"], one["has_left"]) for one in cohort["grants"]] == grants
        )
        days = [(at[:10], *chosen) for at, *chosen in grants]
        return days, [exported["releases"][id]["name"] for id, _ in charges], found

    first, all_three = ("2024-01-15", "low", False), ["a count", "a classifier", "a training"]
    assert account("p101")[:2] == ([first], all_three)
    assert account("p1")[:2] == ([first, ("2024-06-01", "open", False)], all_three)
    assert account("p41")[:2] == ([first, ("2024-06-01", "high", False)], all_three)
    assert account("p21")[:2] == ([first, ("2024-06-01", "low", True)], ["a count"])
    came_back = [
        ("2024-01-15", "high", False),
        ("2024-06-01", "high", True),
        ("2025-03-01", "high", False),
    ]
    assert account("p20")[:2] == (came_back, ["a count", "a training"])
    grants, releases, overdrawn = account("p30")
    assert grants == [first, ("2025-03-01", "high", False)] and releases == all_three[:2]
    assert overdrawn["epsilon_spent"] > overdrawn["epsilon"] == 1.0
    assert overdrawn["left"]["mu_squared"] == 0
    assert account("p225")[:2] == ([("2025-12-10", "open", False)], ["a training"])
    text = json.dumps(exported)
    assert not any(f'"{name}"' in text for name in ("p0", "p20", "p225"))
