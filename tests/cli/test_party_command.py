"""`collegium party`: a key of one's own, the list of all parties, and what is in the folder they share."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collegium import Collective, IdentityKey
from collegium.parties.ciphers import encoded
from collegium.parties.shared_folder import releases_in
from tests.study.hospitals import NAMES, Hospitals, Server


def test_keys_become_a_list_of_parties(collegium, tmp_path):
    keys = []
    for name in NAMES:
        code, said, _ = collegium("party", "key", tmp_path / f"{name}.key", "--quiet")
        assert code == 0
        keys.append(said.strip())
    assert keys[0] == IdentityKey.read(tmp_path / "a.key").public
    if os.name != "nt":
        assert stat.S_IMODE((tmp_path / "a.key").stat().st_mode) == 0o600
    members = [
        f"--member=Hospital {name.upper()}={key}" for name, key in zip(NAMES, keys, strict=True)
    ]
    path = tmp_path / "collective.toml"
    code, said, _ = collegium("party", "collective", path, *members)
    assert code == 0 and "3 parties" in said
    made = Collective.read(path)
    assert [one.name for one in made.members] == ["Hospital A", "Hospital B", "Hospital C"]
    assert [one.key for one in made.members] == keys and made.colluders == 1
    code, _, said = collegium("party", "collective", path, *members)
    assert code == 2 and "exists already" in said  # and is left as it is
    code, _, said = collegium("party", "key", tmp_path / "a.key")
    assert code == 2 and "exists already" in said
    assert IdentityKey.read(tmp_path / "a.key").public == keys[0]


@pytest.mark.parametrize(
    ("members", "more", "why"),
    [
        (["A=12"], [], "must be 64 hexadecimal digits"),
        (["Hospital A"], [], "has no key: give NAME=KEY"),
        ([f"{name}={name * 64}" for name in "ab"], [], "parties"),
        ([f"{name}={'a' * 64}" for name in "abc"], [], "two parties have the key"),
        ([f"{name}={name * 64}" for name in "abc"], ["--drop-outs", "1"], "can do without"),
    ],
)
def test_what_is_no_list_of_parties_is_refused(collegium, tmp_path, members, more, why):
    given = [f"--member={one}" for one in members]
    code, _, said = collegium("party", "collective", tmp_path / "all.toml", *given, *more)
    assert code == 2 and why in said and said.count("\n") == 1
    assert not (tmp_path / "all.toml").exists()


class NoServer(Server):
    """Runs nothing."""

    def __init__(self) -> None:
        pass


@pytest.fixture
def asked(tmp_path, monkeypatch) -> Hospitals:
    """The first hospital has begun, and waits for nobody."""
    monkeypatch.setenv("COLLEGIUM_LEDGER", "none")
    hospitals = Hospitals(tmp_path, NoServer())
    hospitals.write("statistics")
    hospitals.change("a", "study.toml", "give_up_s = 300", "give_up_s = 0.01")
    return hospitals


def test_an_auditor_sees_who_has_posted_what(collegium, asked):
    shared, listed = asked.folder / "shared", asked.folder / "a" / "collective.toml"
    assert collegium("party", "show", shared)[1].startswith("Nothing was posted")
    code, _, said = collegium("run", asked.folder / "a" / "study.toml")
    assert code == 2
    assert (
        "Hospital B, Hospital C posted no numbers of people in time: what was posted stands" in said
    )
    code, said, _ = collegium("party", "show", shared, "--collective", listed)
    assert code == 0
    assert "ages-2026: 0 sums begun, 0 opened" in said
    assert "told of their people: Hospital A\n" in said and "posted keys: nobody yet" in said
    # Half a file, and one that somebody else has signed.
    whole = (shared / "ages-2026" / "census-p01.json").read_bytes()
    (shared / "ages-2026" / "census-p02.json").write_bytes(whole[:100])
    forged = json.loads(whole)
    forged["message"]["sender"] = 3
    (shared / "ages-2026" / "census-p03.json").write_bytes(encoded(forged))
    code, said, _ = collegium("party", "show", shared, "--collective", listed, "--json")
    (release,) = json.loads(said)["releases"]
    assert code == 1
    assert release["begun"]["rounds"] == {"census": ["Hospital A"]}
    assert release["begun"]["unusable"] == {
        "census-p02.json": "is half a file, or no message",
        "census-p03.json": "is not signed with the key that is listed",
    }
    code, _, said = collegium("party", "show", asked.folder / "nowhere")
    assert code == 2 and "is no folder" in said


def test_a_plan_says_what_it_can_say_alone(collegium, asked):
    code, said, _ = collegium("plan", asked.folder / "a" / "study.toml", "--json")
    assert code == 0 and len(json.loads(said)["plans"]) == 2
    assert not list((asked.folder / "shared").iterdir())


def test_an_audit_is_of_one_table(collegium, asked):
    code, _, said = collegium("audit", asked.folder / "a" / "study.toml")
    assert code == 2 and "remove [parties] from a copy" in said and said.count("\n") == 1


# Processes


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.mark.skipif(os.name == "nt", reason="signals and forks of POSIX")
def test_ctrl_c_while_it_waits_loses_nothing_and_shows_for_whom(
    tmp_path: Path, server: Server, collegium
) -> None:
    hospitals = Hospitals(tmp_path, server)
    hospitals.write("statistics")
    hospitals.begin("a", "run study.toml")
    posted = tmp_path / "shared" / "ages-2026" / "census-p01.json"
    for _ in range(6000):
        if posted.exists():
            break
        time.sleep(0.01)
    os.kill(hospitals.process("a"), signal.SIGINT)
    assert hospitals.end("a") == 130
    assert (
        "nothing that was paid for is lost; the same command goes on from here"
        in hospitals.said("a")
    )
    before = posted.read_bytes()
    assert hospitals.run_all() == [0, 0, 0], hospitals.said("a")
    assert posted.read_bytes() == before
    assert len({hospitals.released(name, "answers.json") for name in NAMES}) == 1
    # What an auditor sees then: each sum once, and the same at all.
    found = releases_in(tmp_path / "shared", hospitals.collective.members)
    assert [len(one.sums) for one in found] == [len(found[0].sums)] and len(found[0].sums) >= 2
    for one in found[0].sums:
        assert not one.unusable and len(one.sums) == 1 and one.took_part("opened") == [1, 2, 3]
    # The account of one party is read and verified like any other.
    hospitals.begin("b", "verify study")
    assert hospitals.end("b") == 0, hospitals.said("b")
    hospitals.begin("c", "receipt c0 --ledger people.ledger")
    assert hospitals.end("c") == 0, hospitals.said("c")
    assert "Ages 2026" in hospitals.said("c")
