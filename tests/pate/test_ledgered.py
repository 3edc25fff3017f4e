"""PATEClassifier with a ledger: a second release about the same people sees what the first one left."""

import math
import warnings

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from collegium import (
    Account,
    GNMax,
    Ledger,
    LNMax,
    PATEClassifier,
    Policy,
    PrivacyWarning,
    Queries,
    Weighting,
)
from collegium.accounting import Neighbours
from collegium.accounting.export import Use
from collegium.errors import BudgetExceededError, InputError, LedgerError, LedgerWarning
from collegium.ledger import Cost, Lifetime
from collegium.pate.pipeline import PateRun
from collegium.runs import repeated_fits

POLICY = Policy({"high": 1.0, "low": 3.0})
RAISED = Policy({"high": 4.0, "low": 6.0})
N, PUBLIC = 400, 150


def table(n, seed):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, n)
    return generator.normal(size=(n, 2)) + 2.5 * y[:, None], np.array(["no", "yes"])[y]


X, Y = table(N, 1)
X_PUBLIC, _ = table(PUBLIC, 2)
NAMES = np.array([f"p{number}" for number in range(N)])
LEVELS = np.where(np.arange(N) % 4 == 0, "high", "low")


def model(**settings):
    settings = {"aggregator": GNMax(sigma=8), **settings}
    settings = {"classes": ["no", "yes"], **settings}
    return PATEClassifier(GaussianNB(), n_teachers=20, random_state=0, **settings)


def fit(made, ledger, chosen=slice(None), name="a study"):
    budgets = POLICY.assign(LEVELS[chosen], owners=NAMES[chosen])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return made.fit(
            X[chosen],
            Y[chosen],
            budgets=budgets,
            X_public=X_PUBLIC,
            ledger=ledger,
            spend=None if ledger is None else 1.0,
            release_name=name,
        )


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "people.ledger")


def test_a_second_fit_gets_what_the_first_one_left(ledger):
    first = fit(model(queries=Queries(max_labels=3)), ledger, name="first")
    after_one = {one.level: one for one in ledger.standings()}
    assert {name: one.owners for name, one in after_one.items()} == {"high": 100, "low": 300}
    assert 0 < after_one["high"].epsilon_spent < 1
    second = fit(model(), ledger, name="second")
    groups = list(second.privacy_.by_group().index)
    assert groups == ["high, 7/10 left", "low, 7/10 left"]
    together = {one.level: one for one in ledger.standings()}
    for level, epsilon in (("high", 1.0), ("low", 3.0)):
        assert after_one[level].epsilon_spent < together[level].epsilon_spent <= epsilon
        assert together[level].n_releases == 2
    assert len(second.labels_) > len(first.labels_) == 3
    # What the second one may buy is what one run would buy, less what the first one bought, in tenths.
    alone = fit(model(account=Account(price="histogram")), None)
    together = len(first.labels_) + len(second.labels_)
    assert 0.8 * len(alone.labels_) <= together <= len(alone.labels_)
    with pytest.raises(BudgetExceededError, match="no budget is left in the ledger for 400 people"):
        fit(model(), ledger, name="third")
    assert [entry.kind for entry in ledger.history()].count("reserve") == 2


def test_what_is_entered_is_what_the_events_cost(ledger):
    fit(model(queries=Queries(max_labels=5)), ledger)
    (settled,) = (entry for entry in ledger.history() if entry.kind == "settle")
    spent = {one.level: one.spent for one in ledger.standings()}
    for level, uses in zip(["high", "low"], settled.body["events"], strict=True):
        again = [Use.from_json(use, Neighbours.ANY_CHANGE) for use in uses]
        costs = [Cost.of_event(use.event)[0] for use in again for _ in range(use.count)]
        assert sum(use.count for use in again) == 5
        assert Cost.total(costs).mu_squared == pytest.approx(spent[level].mu_squared, rel=1e-12)


def reserved(ledger):
    (entry,) = (one for one in ledger.history() if one.kind == "reserve")
    return sum(part[0] for part in entry.body["parts"])


def test_everything_is_reserved_before_the_first_vote_and_given_back_if_nothing_was_drawn(
    ledger, monkeypatch
):
    def crash(self):
        assert reserved(ledger) == N
        assert all(one.epsilon_spent > 0.99 * one.budget.epsilon for one in ledger.standings())
        raise KeyboardInterrupt

    monkeypatch.setattr(PateRun, "votes", crash)
    with pytest.raises(KeyboardInterrupt):
        fit(model(), ledger)
    assert [one.epsilon_spent for one in ledger.standings()] == [0.0, 0.0]


def test_what_may_have_been_drawn_stays_charged(ledger, monkeypatch):
    def crash(self, votes):
        raise KeyboardInterrupt

    monkeypatch.setattr(PateRun, "release", crash)
    with pytest.raises(KeyboardInterrupt):
        fit(model(), ledger)
    monkeypatch.undo()
    for one in ledger.standings():
        assert one.epsilon_spent == pytest.approx(one.budget.epsilon, rel=1e-3)
    with pytest.raises(BudgetExceededError, match="no budget is left in the ledger for 400 people"):
        fit(model(), ledger)


def test_labels_that_were_paid_for_are_kept_where_the_ledger_cannot_be_reached(ledger, monkeypatch):
    def crash(*_):
        raise LedgerError("the network is gone")

    monkeypatch.setattr(Ledger, "_settle", crash)
    budgets = POLICY.assign(LEVELS, owners=NAMES)
    with pytest.warns(LedgerWarning, match="keeps all that was reserved.* the network is gone"):
        made = model().fit(X, Y, budgets=budgets, X_public=X_PUBLIC, ledger=ledger, spend=1.0)
    assert len(made.labels_) > 3


def charge_first(ledger, chosen, share):
    people = POLICY.assign(LEVELS[chosen], owners=NAMES[chosen])
    limits = {name: Lifetime().limit(budget).mu_squared for name, budget in POLICY.levels.items()}
    costs = {name: Cost(share[name] * limit) for name, limit in limits.items()}
    ledger.reserve("before", "another method", people, costs, neighbours=Neighbours.ANY_CHANGE)


def test_who_has_less_left_weighs_less_and_who_has_nothing_takes_no_part(ledger):
    charge_first(ledger, slice(0, 200), {"high": 0.5, "low": 0.995})
    budgets = POLICY.assign(LEVELS, owners=NAMES)
    with pytest.warns(PrivacyWarning, match=r"150 of 400 people take no part"):
        made = model().fit(X, Y, budgets=budgets, X_public=X_PUBLIC, ledger=ledger, spend=1.0)
    groups = made.plan_.groups
    fresh, used = groups["high"], groups["high, 5/10 left"]
    assert (fresh.owners, used.owners, groups["low"].owners) == (50, 50, 150)
    assert used.weight / fresh.weight == pytest.approx(math.sqrt(0.5), rel=1e-3)
    assert len(ledger.account_of("p1").charges) == 1  # low, had next to nothing left
    assert len(ledger.account_of("p0").charges) == 2


def test_a_few_people_with_a_history_of_their_own_are_no_group(ledger):
    """They are lowered to the next group of their level; the lowest take no part."""
    ledger.change(POLICY.assign(LEVELS, owners=NAMES))  # everybody joins
    charge_first(ledger, slice(0, 200), {"high": 0.35, "low": 0.35})
    some = POLICY.assign(LEVELS[200:203], owners=NAMES[200:203])
    tiny = {"high": Cost(1e-3), "low": Cost(1e-2)}
    ledger.reserve("a few", "a count", some, tiny, neighbours=Neighbours.ANY_CHANGE)
    fewer = POLICY.assign(LEVELS[196:200], owners=NAMES[196:200])
    more = {"high": Cost(2e-2), "low": Cost(0.2)}
    ledger.reserve("some", "a count", fewer, more, neighbours=Neighbours.ANY_CHANGE)
    made = fit(model(queries=Queries(max_labels=2)), ledger)
    assert {name: group.owners for name, group in made.plan_.groups.items()} == {
        "high": 49, "high, 6/10 left": 50, "low": 148, "low, 6/10 left": 149,
    }  # fmt: skip


def test_without_a_ledger_the_first_fit_of_a_process_says_so_in_one_line(monkeypatch, ledger):
    monkeypatch.setattr(repeated_fits, "_fits", repeated_fits._fits[:0])
    monkeypatch.delenv("COLLEGIUM_LEDGER")

    def said(**how):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model(queries=Queries(max_labels=1)).fit(
                X, Y, budgets=POLICY.assign(LEVELS, owners=NAMES), X_public=X_PUBLIC, **how
            )
        return [str(one.message) for one in caught if "nobody remembers" in str(one.message)]

    assert not said(ledger=ledger)
    monkeypatch.setattr(repeated_fits, "_fits", repeated_fits._fits[:0])
    assert len(said()) == 1
    assert not said()
    monkeypatch.setattr(repeated_fits, "_fits", repeated_fits._fits[:0])
    monkeypatch.setenv("COLLEGIUM_LEDGER", "none")
    assert not said()


def test_without_a_ledger_nothing_changes():
    with_none, without = fit(model(noise_seed=3), None), model(noise_seed=3)
    budgets = POLICY.assign(LEVELS, owners=NAMES)
    without.fit(X, Y, budgets=budgets, X_public=X_PUBLIC)
    assert with_none.labels_.tolist() == without.labels_.tolist()


def test_a_first_release_is_charged_as_every_other(ledger):
    """By itself a label costs less than all noisy counts; beside other releases it does not."""
    made = fit(model(), ledger)
    assert made.privacy_.price == "histogram" and made.privacy_.gaussian
    for row in made.privacy_.groups:
        granted = POLICY.levels[row.group]
        assert row.budget.epsilon == granted.epsilon  # what was granted, not what δ₀ leaves of it
        assert row.budget.delta < granted.delta
    labels = model(account=Account(price="labels"))
    with pytest.raises(InputError, match="a label costs as much as all noisy counts"):
        fit(labels, ledger)
    assert len(fit(labels, None).labels_) > len(made.labels_)


@pytest.mark.parametrize("before", [0.0, 0.5])
def test_laplace_noise_is_charged_by_its_mu(ledger, before):
    if before:
        charge_first(ledger, slice(0, N), {"high": before, "low": before})
    made = fit(model(aggregator=LNMax(gamma=0.03)), ledger)
    assert made.privacy_.gaussian and len(made.labels_) > 1
    for one in ledger.standings():
        assert one.limit.allows(one.spent) and one.share_left < 0.5
    (settled,) = (entry for entry in ledger.history() if entry.kind == "settle")
    for (mu_squared, pure, _), uses in zip(
        settled.body["costs"], settled.body["events"], strict=True
    ):
        (use,) = uses
        event = Use.from_json(use, Neighbours.ANY_CHANGE).event
        assert use["count"] == len(made.labels_)
        assert mu_squared == pytest.approx(use["count"] * event.mu_squared[0])
        assert pure == pytest.approx(use["count"] * event.pure_epsilon[0])


@pytest.fixture
def pure(tmp_path):
    return Ledger.create(tmp_path / "pure.ledger", promise="pure")


def test_a_ledger_of_pure_epsilon_counts_epsilon(pure):
    made = fit(model(aggregator=LNMax(gamma=0.1), queries=Queries(max_labels=2)), pure)
    assert not made.privacy_.gaussian and len(made.labels_) == 2
    used = {one.level: one.epsilon_spent for one in pure.standings()}
    assert {row.group: row.epsilon_spent for row in made.privacy_.groups} == used
    assert all(one.share_left < 1 for one in pure.standings())
    again = fit(model(aggregator=LNMax(gamma=0.1)), pure)
    assert all("/10 left" in row.group for row in again.privacy_.groups)
    for one in pure.standings():
        assert used[one.level] < one.epsilon_spent <= one.budget.epsilon


def test_gaussian_noise_is_refused_before_anything_is_rehearsed(pure, monkeypatch):
    monkeypatch.setattr(PateRun, "__init__", None)
    with pytest.raises(InputError, match=r"promises pure ε .* the aggregator is 'gnmax'"):
        fit(model(aggregator=GNMax(sigma=8)), pure)
    assert len(pure.history()) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise_seed": 3}, "noise from a seed protects nobody"),
        ({"classes": None}, "no cost that a ledger could count"),
        ({"account": Account("data-dependent")}, "no budget that a ledger could count"),
    ],
)
def test_what_cannot_be_entered_is_refused(ledger, settings, message):
    with pytest.raises(InputError, match=message):
        fit(model(**settings), ledger)
    assert len(ledger.history()) == 1


def test_what_the_ledger_does_not_promise_is_refused(ledger):
    with pytest.raises(LedgerError, match="there or blanked"):
        fit(model(personalisation=Weighting(assignment="balanced")), ledger)
    with pytest.raises(InputError, match="these budgets have none"):
        model().fit(
            X, Y, budgets=POLICY.assign(LEVELS), X_public=X_PUBLIC, ledger=ledger, spend=1.0
        )
    assert len(ledger.history()) == 1


def test_declared_sizes_are_refused_where_what_is_left_is_counted(ledger):
    ledger.change(POLICY.assign(LEVELS, owners=NAMES))
    charge_first(ledger, slice(0, 4), {"high": 0.1, "low": 0.0})
    budgets = POLICY.assign(LEVELS, owners=NAMES, sizes={"high": 100, "low": 300})
    with pytest.raises(InputError, match="sizes are declared, but with a ledger"):
        model().fit(X, Y, budgets=budgets, X_public=X_PUBLIC, ledger=ledger, spend=1.0)
