"""Ledgers in one folder: nobody has two accounts there, and one that cannot be opened is not passed over."""

import pytest

from collegium import Budget, Budgets
from collegium.accounting import Neighbours
from collegium.errors import LedgerError
from collegium.ledger import Cost
from collegium.ledger.places import find_place

MU = 0.1


@pytest.fixture
def used(tmp_path, monkeypatch):
    """Enter a release about people, for a table of this folder; tell which ledger has it."""
    monkeypatch.delenv("COLLEGIUM_LEDGER", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def enter(table, names):
        people = Budgets({"all": Budget(1.0)}, [0] * len(names), list(names))
        place, ledger = find_place(None, None, tmp_path / table).of(people)
        ledger = place.made(Neighbours.ADD_OR_REMOVE) if ledger is None else ledger
        ledger.left(people)
        costs = {"all": Cost(MU**2)}
        reserved = ledger.reserve(table, "test", people, costs, neighbours=Neighbours.ADD_OR_REMOVE)
        reserved.settle(costs)
        return place.url.rpartition("/")[2]

    return enter


OURS, THEIRS = [f"a{one}" for one in range(20)], [f"b{one}" for one in range(20)]


def test_who_has_an_account_in_another_ledger_of_the_folder_gets_no_second_one(used, tmp_path):
    assert used("a.csv", OURS) == "a.ledger" and used("b.csv", THEIRS) == "b.ledger"
    assert used("copy.csv", OURS) == "a.ledger"
    with pytest.raises(
        LedgerError, match=r"b\.ledger, knows 3 of the 3 people who would be new here"
    ):
        used("a grows.csv", OURS + THEIRS[:3])
    with pytest.raises(LedgerError, match=r"b\.ledger, knows 8 of the 13 people who would be new"):
        used("both.csv", OURS[:12] + THEIRS[:8] + ["c1", "c2", "c3", "c4", "c5"])
    assert used("a and newcomers.csv", [*OURS, "c1", "c2"]) == "a.ledger"


def test_a_ledger_that_cannot_be_opened_is_named_and_no_new_one_begun(used, tmp_path):
    used("a.csv", OURS)
    for key in tmp_path.glob("a.ledger.key*"):
        key.rename(tmp_path / f"away{key.suffix}")
    with pytest.raises(LedgerError, match=r"a\.ledger, beside the private records, may know these"):
        used("copy.csv", OURS)
    assert not (tmp_path / "copy.ledger").exists()
