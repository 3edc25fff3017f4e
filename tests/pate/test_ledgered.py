"""PATEClassifier with a ledger: a second release about the same people sees what the first one left."""

import math
import warnings

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from collegium import Account, GNMax, LNMax, PATEClassifier, Policy, Queries
from collegium.accounting.export import Use
from collegium.accounting.neighbours import Neighbours
from collegium.errors import BudgetExceededError, InputError, LedgerError, PrivacyWarning
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost
from collegium.pate.pipeline import PateRun

POLICY = Policy({"high": 1.0, "low": 3.0})
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
    return PATEClassifier(
        GaussianNB(), n_teachers=20, classes=["no", "yes"], noise_seed=3, random_state=0, **settings
    )


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
    assert all("% left" in group for group in groups)
    together = {one.level: one for one in ledger.standings()}
    for level, epsilon in (("high", 1.0), ("low", 3.0)):
        assert after_one[level].epsilon_spent < together[level].epsilon_spent <= epsilon
        assert together[level].n_releases == 2
    assert len(second.labels_) > len(first.labels_) == 3
    # What the second one may buy is what one run would buy, less what the first one bought.
    alone = fit(model(account=Account(price="histogram")), None)
    assert len(alone.labels_) - 4 <= len(first.labels_) + len(second.labels_) <= len(alone.labels_)
    third = model()
    with pytest.raises(InputError):  # too little is left for one answer, or nothing
        fit(third, ledger, name="third")
    assert [entry.kind for entry in ledger.history()].count("reserve") == 2


def test_what_is_entered_is_what_the_events_cost(ledger):
    fit(model(queries=Queries(max_labels=5)), ledger)
    (settled,) = (entry for entry in ledger.history() if entry.kind == "settle")
    spent = {one.level: one.spent for one in ledger.standings()}
    for level, uses in settled.body["events"].items():
        again = [Use.from_json(use, Neighbours.ANY_CHANGE) for use in uses]
        costs = [Cost.of_event(use.event)[0] for use in again for _ in range(use.count)]
        assert sum(use.count for use in again) == 5
        assert Cost.total(costs).mu_squared == pytest.approx(spent[level].mu_squared, rel=1e-12)


def test_everything_is_reserved_before_the_first_vote(ledger, monkeypatch):
    def crash(self):
        (entry,) = (one for one in ledger.history() if one.kind == "reserve")
        assert sum(part[0] for part in entry.body["parts"]) == N
        raise KeyboardInterrupt

    monkeypatch.setattr(PateRun, "votes", crash)
    with pytest.raises(KeyboardInterrupt):
        fit(model(), ledger)
    monkeypatch.undo()
    for one in ledger.standings():
        assert one.epsilon_spent == pytest.approx(one.budget.epsilon, rel=1e-3)
    with pytest.raises((BudgetExceededError, InputError)):
        fit(model(), ledger)


def test_who_has_less_left_weighs_less_and_who_has_nothing_takes_no_part(ledger):
    half = Cost(0.0359)  # half of ε = 1
    some = slice(0, 200)
    people = POLICY.assign(LEVELS[some], owners=NAMES[some])
    everything = Cost(float(ledger.left(people).mu_squared.max()))  # of ε = 3
    ledger.reserve("before", "another method", people, [half, everything]).settle(
        [half, everything]
    )
    budgets = POLICY.assign(LEVELS, owners=NAMES)
    with pytest.warns(PrivacyWarning, match="150 of 400 owners have nothing left .* take no part"):
        made = model().fit(X, Y, budgets=budgets, X_public=X_PUBLIC, ledger=ledger)
    groups = made.plan_.groups
    (used,) = (group for name, group in groups.items() if name.startswith("high, 49.9"))
    fresh = groups["high"]
    assert (fresh.owners, used.owners, groups["low"].owners) == (50, 50, 150)
    assert used.weight / fresh.weight == pytest.approx(math.sqrt(0.4998), rel=1e-2)
    assert len(ledger.account_of("p1").charges) == 1  # low, had nothing left
    assert len(ledger.account_of("p0").charges) == 2


def test_without_a_ledger_nothing_changes():
    with_none, without = fit(model(), None), model()
    budgets = POLICY.assign(LEVELS, owners=NAMES)
    without.fit(X, Y, budgets=budgets, X_public=X_PUBLIC)
    assert with_none.labels_.tolist() == without.labels_.tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"aggregator": LNMax(gamma=0.05)}, "does not draw Gaussian noise"),
        ({"account": Account("data-dependent")}, "counts worst-case costs only"),
        ({"account": Account(price="labels")}, "a ledger counts in μ"),
    ],
)
def test_what_cannot_be_entered_is_refused(ledger, settings, message):
    with pytest.raises(InputError, match=message):
        fit(model(**settings), ledger)
    assert len(ledger.history()) == 1


def test_what_the_ledger_does_not_promise_is_refused(ledger):
    with pytest.raises(LedgerError, match="there or blanked"):
        fit(model(assignment="balanced"), ledger)
    with pytest.raises(InputError, match="no names were given"):
        model().fit(X, Y, budgets=POLICY.assign(LEVELS), X_public=X_PUBLIC, ledger=ledger)
    assert len(ledger.history()) == 1
