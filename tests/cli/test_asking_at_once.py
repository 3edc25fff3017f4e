"""Several commands ask at once, and keep their answers in one file: each question is paid for once."""

import contextlib
import json
import multiprocessing
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from collegium import Ledger
from collegium.cli import answer_record
from collegium.cli.main import main

N = 3
PROGRAMS = multiprocessing.get_context("forkserver")
PROGRAMS.set_forkserver_preload([__name__, "collegium.cli.ask", "collegium.cli.query_session"])
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def folder(tmp_path):
    age = np.random.default_rng(1).integers(18, 90, 400)
    people = pd.DataFrame({"id": [f"p{number}" for number in range(400)], "age": age})
    people.to_csv(tmp_path / "people.csv", index=False)
    schema = 'rows_per_owner = 1\n[columns.age]\nkind = "whole"\nbounds = [18, 90]\n'
    (tmp_path / "schema.toml").write_text(schema)
    Ledger.create(tmp_path / "people.ledger")
    return tmp_path


def asking(folder, record, *questions):
    where = ("--schema", folder / "schema.toml", "--ledger", folder / "people.ledger")
    who = ("--owner", "id", "--epsilon", 1, "--spend", 0.2)
    return ("ask", folder / "people.csv", *questions, *where, *who, "--record", record, "--json")


def program(barrier, arguments, printed):
    sys.argv = ["collegium", *map(str, arguments)]
    with Path(printed).open("w") as file, contextlib.redirect_stdout(file):
        barrier.wait()
        main()


def releases(folder):
    known = Ledger(folder / "people.ledger").contents().releases.values()
    return [one for one in known if any(cost.mu_squared for cost in one.costs)]


def test_three_at_once_pay_once_and_have_the_same_answer(folder):
    barrier, record = PROGRAMS.Barrier(N), folder / "answers.json"
    printed = [folder / f"printed-{number}" for number in range(N)]
    asked = asking(folder, record, "mean age", "median age")
    programs = [PROGRAMS.Process(target=program, args=(barrier, asked, file)) for file in printed]
    for one in programs:
        one.start()
    for one in programs:
        one.join()
    assert [one.exitcode for one in programs] == [0] * N
    told = [json.loads(file.read_text())["answers"] for file in printed]
    values = [[answer["cells"] for answer in answers] for answers in told]
    assert values[0] == values[1] == values[2]
    paid = [[not answer["from_record"] for answer in answers] for answers in told]
    assert sorted(paid) == [[False] * 2, [False] * 2, [True] * 2]
    assert len(json.loads(record.read_text())["answers"]) == 2
    assert len(releases(folder)) == 1


def test_a_link_is_followed_and_stays_one(folder, collegium):
    kept = folder / "kept"
    kept.mkdir()
    (folder / "link.json").symlink_to(kept / "answers.json")
    assert collegium(*asking(folder, folder / "link.json", "mean age"))[0] == 0
    assert (folder / "link.json").is_symlink()
    assert len(json.loads((kept / "answers.json").read_text())["answers"]) == 1
    code, printed, _ = collegium(*asking(folder, kept / "answers.json", "mean age"))
    assert code == 0 and json.loads(printed)["answers"][0]["from_record"] is True


def test_what_came_meanwhile_is_not_asked(folder, collegium, monkeypatch):
    """By hand, or from a machine whose locks are not seen here."""
    record, real = folder / "answers.json", answer_record.AnswerRecord.add
    assert collegium(*asking(folder, folder / "other.json", "median age"))[0] == 0

    def add(kept, *given, **how):
        real(kept, *given, **how)
        content, other = (json.loads(file.read_text()) for file in (record, folder / "other.json"))
        record.write_text(json.dumps({**content, "answers": content["answers"] + other["answers"]}))

    monkeypatch.setattr(answer_record.AnswerRecord, "add", add)
    code, printed, _ = collegium(*asking(folder, record, "mean age", "median age"))
    monkeypatch.undo()
    (median,) = json.loads((folder / "other.json").read_text())["answers"]
    assert code == 0 and json.loads(printed)["answers"][1]["cells"] == median["cells"]


def test_no_place_for_a_lock_and_no_file_is_said_before_anything_is_asked(folder, collegium):
    (folder / ".answers.json.lock").mkdir()
    code, _, errors = collegium(*asking(folder, folder / "answers.json", "mean age"))
    assert code == 2 and "cannot be written" in errors
    (folder / "records").mkdir()
    code, _, errors = collegium(*asking(folder, folder / "records", "mean age"))
    assert code == 2 and "is no file: give another one with --record" in errors
    assert not releases(folder)


def test_who_waits_is_told_for_whom(folder, collegium, monkeypatch):
    monkeypatch.setattr(answer_record, "_PATIENCE_S", 0)
    record, real = folder / "answers.json", answer_record.FileLock
    busy = real(folder / ".answers.json.lock")
    busy.acquire()

    class Lock(real):
        def acquire(self, timeout=None):
            if timeout is None:
                busy.release()  # the other one has ended
            return super().acquire(timeout)

    monkeypatch.setattr(answer_record, "FileLock", Lock)
    code, _, errors = collegium(*asking(folder, record, "mean age"))
    assert code == 0 and f"keeps its answers in {record}: waiting for it" in errors
