"""A ledger that is made when it is needed: by one program, whoever else asks, and whoever was cut off."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from collegium import Ledger
from collegium.accounting import Neighbours
from collegium.errors import LedgerError
from collegium.ledger import chain
from collegium.ledger.chain import Key
from collegium.ledger.database import Database
from collegium.ledger.places import Place
from collegium.ledger.storage import Storage, Transaction

PROMISED = Neighbours.ADD_OR_REMOVE
STEPS = {
    "before the key": (Key, "make"),
    "before the file": (Database, "make_private"),
    "before the tables": (Storage, "begin"),
    "before the first entry": (Transaction, "write"),
    "before it is seen": (Storage, "_remember"),
}


def test_ledgers_are_made_in_several_threads(tmp_path):
    with ThreadPoolExecutor(4) as threads:
        made = list(
            threads.map(lambda n: Ledger.create(tmp_path / f"{n}" / "people.ledger"), range(8))
        )
    assert all(ledger.verify() == 1 for ledger in made)


@pytest.mark.parametrize("step", STEPS)
def test_who_is_cut_off_when_making_a_ledger_stands_in_nobodys_way(tmp_path, monkeypatch, step):
    def cut_off(*_):
        raise KeyboardInterrupt

    place = Place(str(tmp_path / "people.ledger"))
    monkeypatch.setattr(*STEPS[step], cut_off)
    with pytest.raises(KeyboardInterrupt):
        place.made(PROMISED)
    monkeypatch.undo()
    assert (place.opened() is None) == (step != "before it is seen")
    assert place.made(PROMISED).verify() == 1
    assert Path(place.url).stat().st_mode & 0o077 == 0


def test_a_ledger_that_was_used_and_is_gone_is_not_made_anew(tmp_path):
    place = Place(str(tmp_path / "people.ledger"))
    place.made(PROMISED)
    for path in tmp_path.glob("people.ledger*"):
        if ".key" not in path.name:
            path.unlink()
    with pytest.raises(LedgerError, match="the key of another ledger"):
        place.made(PROMISED)
    Path(place.url).touch()
    with pytest.raises(LedgerError, match="there is no ledger at"):
        place.opened()


def test_several_programs_that_need_it_first_make_one(tmp_path):
    place = Place(str(tmp_path / "people.ledger"))
    with ThreadPoolExecutor(8) as programs:
        made = list(programs.map(lambda _: place.made(PROMISED).id, range(8)))
    assert len(set(made)) == 1
    assert Ledger(place.url).verify() == 1


def test_a_folder_that_takes_no_files_is_refused_and_not_waited_for(tmp_path, monkeypatch):
    """The lock was waited for without an end, since it could not be made."""

    def takes_none(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(chain, "check_folder", takes_none)
    with pytest.raises(LedgerError, match=r"cannot be used \(Permission denied\)"):
        Ledger.create(tmp_path / "people.ledger")


def test_a_lock_that_is_not_given_back_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(chain, "_WAIT_S", 0.05)
    held = pytest.raises(LedgerError, match=r"another program has held .* for 0\.05 seconds")
    with FileLock(tmp_path / "people.ledger.key.anchor.lock"), held:
        Ledger.create(tmp_path / "people.ledger")
