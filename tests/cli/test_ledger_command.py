"""The ledger's commands, from a steward's first minute on."""

import json

import pytest

from collegium import Ledger, Policy
from collegium.accounting import Neighbours
from collegium.errors import BudgetExceededError, LedgerError
from collegium.ledger import Cost


@pytest.fixture
def done(collegium):
    """Run a command that ends well, and give what it printed."""

    def run(*arguments: str) -> str:
        code, printed, _ = collegium("ledger", *arguments)
        assert code == 0
        return printed

    return run


@pytest.fixture
def refused(collegium):
    """Run a command that is refused, and give its one line."""

    def run(*arguments: str) -> str:
        code, printed, error = collegium("ledger", *arguments)
        assert (code, printed, error.count("\n")) == (2, "", 1)
        return error

    return run


@pytest.fixture
def consent(tmp_path):
    def write(*rows: str) -> str:
        path = tmp_path / "consent.csv"
        path.write_text("\n".join(["patient,privacy", *rows, ""]))
        return str(path)

    return write


LEVELS = [
    "--owner",
    "patient",
    "--level-column",
    "privacy",
    "--level",
    "high=1",
    "--level",
    "low=3",
]


def test_a_ledger_from_the_first_minute_to_the_last(done, collegium, tmp_path, consent):
    place = str(tmp_path / "people.ledger")
    assert "knows nobody yet" in done("init", place)
    assert "knows nobody yet" in done("show", place)
    said = done("change", place, consent("007,high", "8,low", "9,low"), *LEVELS)
    assert "3 people joined, 0 raised their budgets, 0 lowered" in said
    people = Policy({"high": 1.0, "low": 3.0}).assign(["high", "low", "low"], ["007", "8", "9"])
    costs = {"high": Cost(0.04), "low": Cost(0.36)}
    made = Ledger(place).reserve(
        "count-1", "a count", people, costs, neighbours=Neighbours.ANY_CHANGE
    )
    made.settle([Cost(0.01), Cost(0.3)], events=[{"gaussian": 10.0}])
    said = done("change", place, consent("007,low", "8,high"), *LEVELS)
    assert "0 people joined, 1 raised their budgets, 1 lowered" in said
    assert "1 of them have spent more than they grant now: no further release" in said
    assert "No further release will use" in done("forget", place, "9")
    code, printed, errors = collegium("ledger", "forget", place, "7")
    assert (code, printed) == (2, "") and "knows nobody of the name '7'" in errors
    shown = json.loads(done("show", place, "--json"))["standings"]
    assert sorted((one["level"], one["people"], one["has_left"]) for one in shown) == [
        ("high", 1, False), ("low", 1, False), ("low", 1, True),
    ]  # fmt: skip
    table = done("show", place)
    assert "has left" in table and "0.0 %" in table
    assert "98.0 %" in table  # 1 − 0.01/0.5166, rounded down
    lines = done("history", place).splitlines()
    assert len(lines) == 6
    assert "reserved from the budgets of 3 people" in lines[2] and "2 people changed" in lines[4]
    entries = json.loads(done("history", place, "--json"))
    assert [entry["kind"] for entry in entries][2:4] == ["reserve", "settle"]
    exported = json.loads(done("export", place))
    assert exported["releases"]["count-1"]["events"] == [{"gaussian": 10.0}]
    assert exported["releases"]["count-1"]["parts"][0] == [0.01, "inf", 0.0]
    assert {tuple(charge) for one in exported["cohorts"] for charge in one["charges"]} == {
        ("count-1", 0), ("count-1", 1),
    }  # fmt: skip
    assert "All 6 entries" in done("verify", place)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "missing.ledger"], "missing.ledger: make one"),
        (["init", ""], "place of the ledger is empty"),
        (["init", "mysql://x/y"], "mysql"),
        (["init", "postgresql://x/y"], "give key=FILE"),
        (["init", "new.ledger", "--delta-0-share", "2"], "delta_0_share"),
    ],
)
def test_refusals(refused, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    error = refused(*arguments)
    assert message in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--owner", "who", "--level-column", "privacy", "--level", "high=1"], "no column 'who'"),
        ([*LEVELS[:4], "--level", "high"], "not NAME=EPSILON"),
        ([*LEVELS[:4], "--level", "high=x"], "not NAME=EPSILON"),
        ([*LEVELS[:4], "--level", "high=1", "--level", "high=2"], "given twice"),
        ([*LEVELS[:4], "--level", "high=1"], "does not know"),
    ],
)
def test_changes_that_are_refused_change_nothing(
    done, refused, tmp_path, consent, options, message
):
    place = str(tmp_path / "people.ledger")
    done("init", place)
    error = refused("change", place, consent("1,high", "2,low"), *options)
    assert message in error
    assert not Ledger(place).standings()


def test_somebody_with_two_levels(done, refused, tmp_path, consent):
    place = str(tmp_path / "people.ledger")
    done("init", place)
    error = refused("change", place, consent("1,high", "1,low"), *LEVELS)
    assert "two budgets" in error


@pytest.fixture
def lost(done, tmp_path):
    """A ledger with a reservation whose program is gone."""
    place = str(tmp_path / "people.ledger")
    done("init", place)
    return place, begin(place)


def begin(place, **options):
    people = Policy({"high": 1.0}).assign(["high", "high"], owners=["ann", "bob"])
    about = {"neighbours": Neighbours.ANY_CHANGE, **options}
    return Ledger(place).reserve("count-1", "a count", people, {"high": Cost(0.04)}, **about)


@pytest.mark.parametrize(
    ("how", "left", "told"),
    [
        ("--as-reserved", 0.04, "at all that was reserved; reason given: folder lost, says Ada"),
        (
            "--nothing-was-drawn",
            0.0,
            "at nothing, as nothing was drawn; reason given: folder lost, says Ada",
        ),
    ],
)
def test_a_program_that_is_gone_for_good(done, lost, how, left, told):
    place, made = lost
    line = (
        "a count (count-1), 2 people: Reserved, not settled, for less than a minute: takes 55.8 %"
    )
    assert line in done("show", place)
    (shown,) = json.loads(done("show", place, "--json"))["reservations"]
    assert (shown["release"], shown["people"], shown["settled_at"]) == ("count-1", 2, None)
    done("settle", place, "count-1", how, "--reason", "folder lost, says Ada")
    (standing,) = Ledger(place).standings()
    assert standing.spent.mu_squared == left
    said = done("show", place)
    assert "not settled" not in said
    assert ("takes 55.8 % of a budget" if left else "released nothing") in said
    assert f"count-1 was settled by hand {told}" in done("history", place)
    if left:
        assert begin(place, again=True).is_settled
    else:
        with pytest.raises(
            LedgerError, match=r"by hand \(folder lost, says Ada\): no more noise may be"
        ):
            begin(place, again=True)
    assert Ledger(place).standings() == [standing]
    made.settle([Cost(0.03)])  # it comes back all the same: what was drawn is charged
    (standing,) = Ledger(place).standings()
    assert standing.spent.mu_squared == 0.03


def test_who_has_left_is_told_to_have_left_since_when(done, lost):
    place, made = lost
    made.settle([Cost(0.04)])
    assert "No further release will use" in done("forget", place, "ann")
    before = done("history", place)
    day = Ledger(place).history()[-1].at[:10]
    assert f"left already, on {day}: nothing was changed" in done("forget", place, "ann")
    assert done("history", place) == before
    (shown,) = json.loads(done("show", place, "--json"))["releases"]
    assert shown["release"] == "count-1" and shown["takes"] == pytest.approx([0.5574] * 2, abs=1e-4)


def test_what_was_given_back_and_spent_otherwise_is_not_released(done, lost):
    place, made = lost
    done("settle", place, "count-1", "--nothing-was-drawn", "--reason", "it never began, says Ada")
    ann = Policy({"high": 1.0}).assign(["high"], owners=["ann"])
    costs = {"high": Cost(0.06)}
    Ledger(place).reserve("2", "", ann, costs, neighbours=Neighbours.ANY_CHANGE).settle(costs)
    with pytest.raises(
        BudgetExceededError, match=r"never began.* more than is left for 1 person; do not"
    ):
        made.settle([Cost(0.03)])
    bob, ann = sorted(one.spent.mu_squared for one in Ledger(place).standings())
    assert bob == 0.03 and 0.09 <= ann < 0.091  # charged all the same


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["count-1", "--reason", "x"], "give one of --as-reserved"),
        (
            ["count-1", "--reason", "x", "--as-reserved", "--nothing-was-drawn"],
            "give one of --as-reserved",
        ),
        (["count-1", "--reason", " ", "--as-reserved"], "the reason is empty"),
        (["count-2", "--reason", "x", "--as-reserved"], "has no release 'count-2'"),
        (["done", "--reason", "x", "--nothing-was-drawn"], "release 'done' was settled on"),
    ],
)
def test_what_cannot_be_settled_by_hand(refused, lost, arguments, message):
    place, _ = lost
    people = Policy({"high": 1.0}).assign(["high"], owners=["ann"])
    costs = {"high": Cost(0.01)}
    made = Ledger(place).reserve("done", "", people, costs, neighbours=Neighbours.ANY_CHANGE)
    made.settle(costs)
    before = Ledger(place).history()
    assert message in refused("settle", place, *arguments)
    assert Ledger(place).history() == before
