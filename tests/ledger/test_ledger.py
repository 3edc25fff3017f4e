"""The ledger beside a model of a few lines: one list of costs per person."""

import json
import math
import random
from dataclasses import dataclass, field

import pytest

from collegium import Budget, Budgets, Ledger, Policy
from collegium.accounting import Composition, Gaussian, Laplace, Neighbours, PoissonGaussian
from collegium.accounting.export import Use
from collegium.errors import BudgetExceededError, InputError, LedgerError
from collegium.ledger import Cost, Lifetime
from collegium.ledger.export import as_json
from collegium.report.ledger_words import what_happened
from tests.ledger.conftest import ask, people

POLICY = {"high": 1.0, "average": 2.0, "low": 3.0, "public": math.inf}


@dataclass
class Person:
    """What a ledger must know of one person."""

    level: str
    costs: dict[str, Cost] = field(default_factory=dict)
    has_left: bool = False

    @property
    def spent(self) -> Cost:
        return Cost.total(self.costs.values())

    def affords(self, cost: Cost) -> bool:
        return (
            Lifetime()
            .limit(Budget(POLICY[self.level]))
            .allows(Cost.total([*self.costs.values(), cost]))
        )


class Town:
    """Random things happen to random people, in the ledger and in the model."""

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self.ledger, self.random = ledger, random.Random(seed)
        self.people: dict[str, Person] = {}
        self.open: dict[str, tuple[object, list[Cost], dict[str, int]]] = {}
        self.n_releases = self.n_refused = 0

    def _some(self) -> dict[str, str]:
        """Some people with their levels; now and then, with newcomers."""
        present = [name for name, one in self.people.items() if not one.has_left]
        chosen = self.random.sample(present, self.random.randint(0, len(present)))
        if self.random.random() < 0.3 or not chosen:
            chosen += [f"p{len(self.people) + i}" for i in range(self.random.randint(1, 5))]
        levels = list(POLICY)
        return {
            name: self.people[name].level if name in self.people else self.random.choice(levels)
            for name in chosen
        }

    def _cost(self) -> Cost:
        kind, much = self.random.random(), self.random.random() ** 3
        if kind < 0.1:
            return Cost(0.0)
        if kind < 0.3:
            return Cost(much * 0.1, math.sqrt(much) * 0.3)
        return Cost(much * 0.1, math.inf, 0.0 if kind < 0.9 else much * 3e-8)

    def reserve(self) -> None:
        levels = self._some()
        costs = [self._cost() for _ in range(3)]
        parts = [self.random.randrange(3) for _ in levels]
        self.n_releases += 1
        id = f"r{self.n_releases}"
        affordable = all(
            (self.people.get(name) or Person(level)).affords(costs[part])
            for (name, level), part in zip(levels.items(), parts, strict=True)
            if not costs[part].is_nothing
        )
        budgets = people(levels, POLICY)
        try:
            made = ask(self.ledger, id, budgets, costs, parts, allow_new_people=True)
        except BudgetExceededError:
            assert not affordable
            self.n_refused += 1
            return
        assert affordable
        who = dict(zip(levels, parts, strict=True))
        for name, level in levels.items():
            self.people.setdefault(name, Person(level))
            if not costs[who[name]].is_nothing:
                self.people[name].costs[id] = costs[who[name]]
        self.open[id] = made, costs, who

    def settle(self) -> None:
        if not self.open:
            return
        id = self.random.choice(list(self.open))
        made, costs, who = self.open.pop(id)
        less = [
            Cost(cost.mu_squared * share, cost.pure_epsilon, cost.delta_0 * share)
            for cost in costs
            for share in [self.random.choice([0.1, 0.5, 1.0])]
        ]
        made.settle(less)
        for name, part in who.items():
            if id in self.people[name].costs:
                self.people[name].costs[id] = less[part]

    def change(self) -> None:
        levels = {
            name: self.random.choice(list(POLICY)) if self.random.random() < 0.3 else level
            for name, level in self._some().items()
        }
        self.ledger.change(people(levels, POLICY), come_back=True)
        for name, level in levels.items():
            self.people.setdefault(name, Person(level)).level = level

    def forget(self) -> None:
        present = [name for name, one in self.people.items() if not one.has_left]
        if present:
            name = self.random.choice(present)
            assert self.ledger.forget(name)
            self.people[name].has_left = True

    def check(self) -> None:
        for name, one in self.people.items():
            account = self.ledger.account_of(name)
            assert {charge.release.id: charge.cost for charge in account.charges} == one.costs
            assert (account.grants[-1].level, account.grants[-1].has_left) == (
                one.level,
                one.has_left,
            )
        standings = self.ledger.standings()
        assert sum(standing.owners for standing in standings) == len(self.people)
        figures = {
            (one.level, one.has_left, one.spent, len(one.costs)) for one in self.people.values()
        }
        assert len(standings) == len(figures)
        self.ledger.verify()


@pytest.mark.parametrize("seed", range(6))
def test_the_ledger_is_one_list_of_costs_per_person(tmp_path, seed):
    town = Town(Ledger.create(tmp_path / "people.ledger"), seed)
    for _ in range(60):
        happens = town.random.choices(
            [town.reserve, town.settle, town.change, town.forget], [6, 4, 1, 1]
        )[0]
        happens()
    assert town.n_refused, "the model never saw a refusal"
    town.ledger = Ledger(tmp_path / "people.ledger")
    town.check()


def test_the_same_on_a_server(server, tmp_path):
    url, key = server.new_database(), tmp_path / "key"
    town = Town(Ledger.create(url, key), seed=7)
    for _ in range(25):
        town.random.choice([town.reserve, town.settle, town.change])()
    town.ledger = Ledger(url, key)
    town.check()


def test_who_has_one_history_is_one_cohort(ledger):
    everybody = people({f"p{i}": "high" if i % 2 else "low" for i in range(1000)})
    for number in range(5):
        ask(ledger, str(number), everybody, [Cost(1e-3), Cost(2e-3)])
    assert [standing.owners for standing in ledger.standings()] == [500, 500]


def test_asking_again_after_a_crash_reserves_nothing_twice(ledger):
    two, at_most = people({"ann": "high", "bob": "low"}), [Cost(0.04), Cost(0.36)]
    first = ask(ledger, "a", two, at_most)
    with pytest.raises(LedgerError, match="was begun before: use another id"):
        ask(ledger, "a", two, at_most)
    again = ask(ledger, "a", two, at_most, again=True)
    assert (first.entry, first.mac) == (again.entry, again.mac)
    assert len(ledger.history()) == 3
    again.settle([Cost(0.01), Cost(0.02)])
    first.settle({"high": Cost(0.01), "low": Cost(0.02)})
    assert len(ledger.history()) == 4
    with pytest.raises(LedgerError, match="was made before: use another id"):
        ask(ledger, "a", two, at_most)
    with pytest.raises(LedgerError, match="was given back"):
        ask(ledger, "a", two, at_most, again=True)
    late = ledger.reservation("a", two, all_is_drawn=True)
    assert late.is_settled and late.costs == (Cost(0.01), Cost(0.02))
    with pytest.raises(LedgerError, match="settled before at other costs"):
        late.settle([Cost(0.01), Cost(0.01)])
    for others, costs in ((two, [Cost(0.05), Cost(0.36)]), (people({"ann": "high"}), at_most)):
        with pytest.raises(LedgerError, match="other people or other costs"):
            ask(ledger, "a", others, costs, again=True)
    ask(ledger, "b", two, at_most)
    ledger.forget("ann")
    with pytest.raises(LedgerError, match="1 of 2 people have left"):
        ask(ledger, "b", two, at_most, again=True)


def test_one_token_goes_on_and_settles(ledger):
    two, at_most = people({"ann": "high", "bob": "low"}), [Cost(0.04), Cost(0.36)]
    first = ask(ledger, "a", two, at_most, token="1")
    for held in ((), ("0",)):
        with pytest.raises(LedgerError, match="another copy has gone on"):
            ledger.reservation("a", two, token="2", held=held)
    second = ledger.reservation("a", two, token="2", held=("1",))
    with pytest.raises(LedgerError, match="do not publish"):
        first.settle(at_most)
    with pytest.raises(LedgerError, match="another copy has gone on"):
        ask(ledger, "a", two, at_most, again=True, token="3", held=("1",))
    second.settle(at_most)
    second.settle(at_most)
    assert "was taken up again" in what_happened(ledger.history()[-2])


def test_nothing_is_drawn_about_who_grants_less_by_now(ledger):
    two, at_most = people({"ann": "high", "bob": "low"}), [Cost(0.04), Cost(0.36)]
    ask(ledger, "a", two, at_most)
    ledger.change(Policy({"high": 0.1, "low": 3.0}).assign(["high"], owners=["ann"]))
    with pytest.raises(BudgetExceededError, match=r"now grants ε = .* less than"):
        ask(ledger, "a", two, at_most, again=True)
    with pytest.raises(BudgetExceededError, match=r"now grants ε = .* less than"):
        ledger.reservation("a", two)
    ledger.reservation("a", two, all_is_drawn=True).settle(at_most)


def test_who_grants_a_budget_or_has_left_is_not_published(ledger):
    ask(ledger, "a", people({"ann": "high", "bob": "low"}), [Cost(0.04), Cost(0.36)])
    ledger.refuse_published(["eve"])
    with pytest.raises(LedgerError, match="the records of 1 person are to be published"):
        ledger.refuse_published(["eve", "ann"])
    ledger.change(Policy({"open": math.inf}).assign(["open"], owners=["ann"]))
    ledger.refuse_published(["ann"])
    ledger.forget("ann")
    with pytest.raises(LedgerError, match="knows that they have left"):
        ledger.refuse_published(["ann"])


def test_a_reservation_outlives_those_who_left_and_is_for_nobody_else(ledger):
    bob = people({"bob": "low"})
    ask(ledger, "a", people({"ann": "high", "bob": "low"}), [Cost(0.04), Cost(0.36)])
    ledger.forget("ann")
    ask(ledger, "b", people({"cid": "low"}), [Cost(0.0), Cost(0.1)], allow_new_people=True)
    again = ledger.reservation("a", bob)
    assert (again.entry, again.costs, again.is_settled) == (3, (Cost(0.04), Cost(0.36)), False)
    for others, words in (
        ({"ann": "high", "bob": "low"}, "1 of 2 people have left"),
        ({"bob": "low", "cid": "low"}, "not reserved for 1 of these 2 people"),
        ({"bob": "low", "new": "low"}, "not reserved for 1 of these 2 people"),
    ):
        with pytest.raises(LedgerError, match=words):
            ledger.reservation("a", people(others))
    with pytest.raises(LedgerError, match="is not in the ledger"):
        ledger.reservation("c", bob)
    again.settle([Cost(0.01), Cost(0.02)])
    assert ledger.account_of("ann").standing.spent == Cost(0.01)
    ledger.end("b", "it never began, says its steward", nothing_was_drawn=True)
    with pytest.raises(LedgerError, match="given back by hand"):
        ledger.reservation("b", people({"cid": "low"}))


def test_costs_are_tied_to_levels_by_name(ledger):
    one = Budgets({"low": Budget(3.0), "high": Budget(1.0)}, [1], ["ann"])
    costs = {"high": Cost(0.01), "low": Cost(0.05)}
    ledger.reserve("a", "study", one, costs, neighbours=Neighbours.ANY_CHANGE)
    other_order = people({"ann": "high"})
    ledger.reserve("b", "study", other_order, costs, neighbours=Neighbours.ANY_CHANGE)
    assert ledger.standings()[0].spent.mu_squared == pytest.approx(0.02)
    for wrong in ({"high": Cost(0.01)}, {**costs, "other": Cost(0.0)}, [Cost(0.01), Cost(0.05)]):
        with pytest.raises(
            InputError, match=r"give costs by level|must have one for each of the levels"
        ):
            ledger.reserve("c", "study", one, wrong, neighbours=Neighbours.ANY_CHANGE)


def test_who_left_may_come_back_with_what_was_spent(ledger):
    one = people({"ann": "high"})
    ask(ledger, "a", one, [Cost(0.05), Cost(0.0)])
    ledger.forget("ann")
    with pytest.raises(LedgerError, match="1 of these 1 people have left"):
        ledger.change(one)
    nothing = {"joined": 0, "raised": 0, "lowered": 0, "overdrawn": 0}
    assert ledger.change(one, come_back=True) == nothing
    assert [grant.has_left for grant in ledger.account_of("ann").grants] == [False, True, False]
    with pytest.raises(BudgetExceededError):
        ask(ledger, "b", one, [Cost(0.05), Cost(0.0)])


def test_who_is_beyond_one_limit_has_nothing_left_of_the_other(ledger):
    one = Budgets({"high": Budget(1.0, 1e-5)}, [0], ["ann"])
    ask(ledger, "a", one, [Cost(0.001, math.inf, 9e-8)])
    less = Budgets({"high": Budget(1.0, 1e-6)}, [0], ["ann"])
    ledger.change(less)
    assert ledger.left(less).share.tolist() == [0.0]
    with pytest.raises(BudgetExceededError, match=r"has μ = 0 left of .*; δ₀ = 0 left of 1e-08"):
        ask(ledger, "b", less, [Cost(0.001)])


def test_a_release_that_cost_more_than_was_reserved_is_refused(ledger):
    made = ask(ledger, "a", people({"ann": "high"}), [Cost(0.04), Cost(0.0)])
    for wrong in ([Cost(0.05), Cost(0.0)], [Cost(0.04, math.inf, 1e-9), Cost(0.0)], [Cost(0.01)]):
        with pytest.raises(LedgerError, match="more than was reserved"):
            made.settle(wrong)
    assert len(ledger.history()) == 3


def test_a_refusal_says_who_and_what_is_left_and_changes_nothing(ledger):
    two = people({"ann": "high", "bob": "low"})
    ask(ledger, "a", two, [Cost(0.05), Cost(0.05)])
    before = [json.dumps(entry.body) for entry in ledger.history()]
    with pytest.raises(
        BudgetExceededError, match=r"level 'high' \(1 person, .* μ = 0\.1475 left of 0\.2679"
    ):
        ask(ledger, "b", people({"ann": "high", "new": "low"}), [Cost(0.03), Cost(0.1)])
    assert [json.dumps(entry.body) for entry in ledger.history()] == before
    assert ledger.account_of("new") is None


def test_a_mind_that_changes(ledger):
    ask(ledger, "a", people({"ann": "high"}), [Cost(0.05), Cost(0.0)])
    with pytest.raises(LedgerError, match=r"for 1 person, ε = 3 .* but ε = 1"):
        ask(ledger, "b", people({"ann": "low"}), [Cost(0.0), Cost(0.2)])
    assert ledger.change(people({"ann": "low"}))["raised"] == 1
    ask(ledger, "b", people({"ann": "low"}), [Cost(0.0), Cost(0.2)])
    assert ledger.change(people({"ann": "high"})) == {
        "joined": 0, "raised": 0, "lowered": 1, "overdrawn": 1,
    }  # fmt: skip
    with pytest.raises(BudgetExceededError):
        ask(ledger, "c", people({"ann": "high"}), [Cost(1e-12), Cost(0.0)])
    account = ledger.account_of("ann")
    assert [grant.level for grant in account.grants] == ["high", "low", "high"]
    assert [charge.cost.mu_squared for charge in account.charges] == [0.05, 0.2]


def test_who_left_is_in_no_release_and_keeps_what_was_spent(ledger):
    two = people({"ann": "high", "bob": "high"})
    ask(ledger, "a", two, [Cost(0.05), Cost(0.0)])
    assert ledger.forget("ann") and ledger.forget("ann") and not ledger.forget("nobody")
    with pytest.raises(LedgerError, match="1 of 2 people have left"):
        ask(ledger, "b", two, [Cost(0.001), Cost(0.0)])
    ask(ledger, "b", people({"bob": "high"}), [Cost(0.001), Cost(0.0)])
    assert [(one.has_left, one.spent.mu_squared) for one in ledger.standings()] == [
        (False, pytest.approx(0.051)),
        (True, 0.05),
    ]


def test_whose_ledger_is_it(ledger):
    ask(ledger, "a", people({f"p{i}": "high" for i in range(10)}), [Cost(0.01), Cost(0)])
    others = people({f"q{i}": "high" for i in range(10)})
    with pytest.raises(LedgerError, match=r"only 0 of these 10: if they are the same"):
        ask(ledger, "b", others, [Cost(0.01), Cost(0)])
    ask(ledger, "b", others, [Cost(0.01), Cost(0)], allow_new_people=True)


def test_what_is_left_follows_each_owner(ledger):
    ask(ledger, "a", people({"ann": "high", "bob": "low"}), [Cost(0.03), Cost(0.1)])
    left = ledger.left(people({"ann": "high", "bob": "low", "cid": "low"}))
    high, low = (Lifetime().limit(Budget(epsilon)).mu_squared for epsilon in (1.0, 3.0))
    assert left.share.tolist() == pytest.approx([1 - 0.03 / high, 1 - 0.1 / low, 1.0])
    assert left.cohort[2] == 0
    unlimited = ledger.left(people({"ann": "high", "eve": "public"}, POLICY))
    assert unlimited.share[1] == 1.0


def test_costs_about_less_than_the_ledger_promises_are_refused(ledger):
    one = people({"ann": "high"})
    with pytest.raises(LedgerError, match=r"are replaced, but the ledger .* there or blanked"):
        ask(ledger, "a", one, [Cost(0.01)], [0], neighbours=Neighbours.REPLACE)
    assert not ledger.standings()


def test_what_events_cost():
    costs = Cost.of_event(Gaussian([0.5, 1.0], scale=10.0))
    assert [cost.mu_squared for cost in costs] == pytest.approx([0.0025, 0.01])
    (laplace,) = Cost.of_event(Laplace([1.0], inverse_scale=0.5))
    assert laplace.pure_epsilon == pytest.approx(0.5) and laplace.delta_0 == 0
    (steps,) = Cost.of_event(PoissonGaussian([0.1], [5.0], 100), delta_0=1e-7)
    assert steps.delta_0 == 1e-7 and 0.2 < math.sqrt(steps.mu_squared) < 0.21


def test_sub_sampled_training_and_counts_share_one_account(ledger):
    """The oracle of (.1, 5, 100), twice, and a count: within ε = 3 of one person, not ε = 1 of the other."""
    costs = Cost.of_event(PoissonGaussian([0.1], [5.0], 100), delta_0=4e-8)
    both = people({"ann": "high", "bob": "low"})
    ask(ledger, "a", both, costs, [0, 0])
    with pytest.raises(BudgetExceededError, match="'high'"):
        ask(ledger, "b", both, costs, [0, 0])
    ask(ledger, "b", people({"bob": "low"}), costs, [0])
    ask(ledger, "c", people({"bob": "low"}), [Cost(0.4)], [0])
    with pytest.raises(
        BudgetExceededError, match=r"'low' .* has δ₀ = 2e-08 left of 1e-07 \(this may"
    ):
        ask(ledger, "d", people({"bob": "low"}), [Cost(0.0, math.inf, 5e-8)], [0])
    ann, bob = ledger.standings()
    assert 0.75 < ann.epsilon_spent < 0.77
    assert 2.9 < bob.epsilon_spent <= 3


def test_a_ledger_needs_names(ledger):
    rows = Policy({"high": 1.0}).assign(["high", "high"])
    for unnamed in (rows, rows[1:]):
        with pytest.raises(InputError, match="these budgets have none"):
            ask(ledger, "a", unnamed, [Cost(0.01)])
    numbers = Policy({"high": 1.0}).assign(["high", "high"], owners=[7, 8])
    ask(ledger, "a", numbers, [Cost(0.01)])
    assert ledger.left(Policy({"high": 1.0}).assign(["high"], owners=["7"])).cohort.tolist() == [1]


def test_an_event_is_entered_for_each_part(ledger):
    both = Composition([Gaussian([0.5, 1.0], scale=10.0), Laplace([0.0, 1.0], 0.01)], [3, 1])
    costs = Cost.of_event(both)
    reservation = ask(ledger, "1", people({"ann": "high", "bob": "low"}), costs)
    with pytest.raises(InputError, match="1 cohorts, but the release has 2 parts"):
        reservation.settle(costs, Gaussian([1.0], scale=10.0))
    assert ledger.standings()[0].n_releases == 1 and not reservation.is_settled
    reservation.settle(costs, both)
    (release,) = as_json(ledger)["releases"].values()
    of_ann, of_bob = (
        [Use.from_json(use, Neighbours(release["neighbours"])) for use in uses]
        for uses in json.loads(json.dumps(release["events"]))
    )
    assert [(use.kind, use.count) for use in of_ann] == [("gaussian", 3)]
    assert [(use.kind, use.count) for use in of_bob] == [("gaussian", 3), ("laplace", 1)]
    assert sum(use.count * use.event.mu_squared[0] for use in of_bob) == pytest.approx(
        costs[1].mu_squared, rel=1e-12
    )
