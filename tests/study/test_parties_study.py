"""Studies over three hospitals' tables: the same release at each, whoever is killed; what is refused."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from collegium import Collective, IdentityKey, Ledger
from collegium.errors import CollegiumError
from collegium.parties.ciphers import encoded
from collegium.parties.mailbox import FolderMailbox, MemoryMailbox
from collegium.parties.messages import Label, Post
from collegium.parties.party_sum import PartySum
from collegium.pate.voting.charging import LOST
from collegium.study.config import read_config
from collegium.study.folder import StudyFolder
from collegium.study.forgetting import forget
from collegium.study.runner import plan_study, run_study
from collegium.study.verifying import examine
from tests.study.hospitals import NAMES, Hospitals, Server

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and forks of POSIX")
SAME = {
    "statistics": ("answers.json", "privacy.json"),
    "synthesis": ("model.json", "synthetic.csv", "marginals.csv", "privacy.json"),
    "dpsgd": ("student.skops", "privacy.json"),
    "pate": ("labels.csv", "histograms.parquet", "student.skops", "privacy.json"),
}
COUNTED = {"statistics": "questions_lost", "synthesis": "draws_lost", "dpsgd": "steps_lost"}
#: A sum of each that two parties stay away from; in the first one, keys are exchanged.
SUM = {"statistics": 1, "synthesis": 2, "dpsgd": 1, "pate": 20}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def hospitals(tmp_path: Path, server: Server) -> Hospitals:
    return Hospitals(tmp_path, server)


def check_same(hospitals: Hospitals, method: str) -> None:
    """All have released the same, and each ledger has charged it once."""
    for file in SAME[method]:
        first, *others = (hospitals.released(name, file) for name in hospitals.names)
        assert all(one == first for one in others), file
    for name in hospitals.names:
        account = Ledger(hospitals.folder / name / "people.ledger").account_of(f"{name}0")
        assert account is not None and account.has_ended and len(account.charges) == 1
        assert not [
            one for one in examine(StudyFolder(hospitals.folder / name / "study")) if one.trouble
        ]


def lost(hospitals: Hospitals, name: str, method: str) -> object:
    """Count what was charged, and has no result."""
    if method in COUNTED:
        return hospitals.privacy(name)[COUNTED[method]]
    journal = StudyFolder(hospitals.folder / name / "study").open_journal()
    return sum(one.verdict == LOST for one in journal.settled())


def people_of(hospitals: Hospitals) -> pd.DataFrame:
    tables = [pd.read_csv(hospitals.folder / name / "people.csv") for name in hospitals.names]
    return pd.concat(tables, ignore_index=True)


# What all get


def test_all_get_the_answers_of_one_table(hospitals: Hospitals) -> None:
    hospitals.write("statistics")
    assert hospitals.run_all() == [0, 0, 0], hospitals.said("a")
    check_same(hospitals, "statistics")
    assert hospitals.run_all() == [0, 0, 0]  # which publishes it once more
    check_same(hospitals, "statistics")
    people = people_of(hospitals)
    count, means = json.loads(hospitals.released("c", "answers.json"))["answers"]
    (cell,) = count["cells"]
    # Of 180 people with ε from 1 on: 6 standard errors, a false alarm of about 1e-9 for each of three values.
    assert abs(cell["value"] - people.sick.sum()) < 6 * cell["standard_error"] < 180
    young, old = sorted(means["cells"], key=lambda one: float(one["value"]))
    for one, sick in ((young, False), (old, True)):
        assert (
            abs(one["value"] - people[people.sick == sick].age.mean()) < 6 * one["standard_error"]
        )
    told = hospitals.privacy("b")
    assert sum(group["owners"] for group in told["groups"]) == len(people)  # type: ignore[attr-defined]
    assert "Records lie with 3 parties" in str(told)
    ledgers = [Ledger(hospitals.folder / name / "people.ledger") for name in NAMES]
    assert ledgers[0].account_of("b0") is None and ledgers[1].account_of("a0") is None


# Killed at any point


@pytest.mark.parametrize("method", SAME)
def test_whoever_is_killed_gets_what_all_get(hospitals: Hospitals, method: str) -> None:
    """One hospital after the other is killed (SIGKILL) around what it makes durable, and begun again."""
    hospitals.write(method)
    rng = np.random.default_rng(list(SAME).index(method))
    for name in NAMES:
        hospitals.begin(name, killed_at=int(rng.integers(1, 90)))
    kills, running = 0, set(NAMES)
    while running:
        name = hospitals.first_to_end(running)
        code = hospitals.end(name)
        if code == -signal.SIGKILL:
            kills += 1
            # At some point of what is left, often soon: where it had been the time before.
            again = int(rng.integers(1, rng.choice([12, 60]))) if kills < 7 else 0
            hospitals.begin(name, killed_at=again)
        else:
            assert code == 0, hospitals.said(name)
            running.discard(name)
    assert kills >= 6
    check_same(hospitals, method)
    assert all(lost(hospitals, name, method) == 0 for name in NAMES)


# What is refused, or waited for: each in a thread


def run_in_threads(hospitals: Hospitals, names: tuple[str, ...] = NAMES) -> list[str]:
    """Run the study at some of them; returns what each complains of."""

    def run(name: str) -> str:
        folder = hospitals.folder / name
        try:
            run_study(read_config(folder / "study.toml"), folder / "study")
        except CollegiumError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(len(names)) as threads:
        return list(threads.map(run, names))


def check_nothing_opened(hospitals: Hospitals) -> None:
    assert not list(hospitals.folder.glob("shared/*/*/masked*"))
    for name in hospitals.names:
        vault = StudyFolder(hospitals.folder / name / "study").vault
        assert not (vault / "answers.json").exists()


@pytest.fixture
def asking(hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch) -> Hospitals:
    """All are to ask, and nobody waits for long."""
    monkeypatch.setenv("COLLEGIUM_LEDGER", "none")
    hospitals.write("statistics")
    for name in hospitals.names:
        hospitals.change(name, "study.toml", "give_up_s = 300", "give_up_s = 0.5")
    return hospitals


def be_patient(asking: Hospitals) -> None:
    """Let a slow machine have its time, where all come."""
    for name in asking.names:
        asking.change(name, "study.toml", "give_up_s = 0.5", "give_up_s = 1200")


OTHERWISE = {
    "questions": (
        "study.toml",
        '"count where sick", "mean',
        '"count", "mean',
        "statistics.questions",
    ),
    "confidence": (
        "study.toml",
        "[statistics]",
        "[statistics]\nconfidence = 0.9",
        "statistics.confidence",
    ),
    "schema": ("schema.toml", "bounds = [18, 98]", "bounds = [18, 99]", "schema records"),
    "names of people": ("study.toml", 'owner = "person"\n', "", "people are named"),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_another_plan_is_refused_by_all(asking: Hospitals, what: str) -> None:
    file, before, after, named = OTHERWISE[what]
    be_patient(asking)
    asking.change("b", file, before, after)
    if what == "schema":
        asking.change("b", file, "60, 98]", "60, 99]")
    for line in run_in_threads(asking):
        assert "\n" not in line and "plans something else" in line and named in line
    check_nothing_opened(asking)


def test_files_of_its_own_may_have_other_names(asking: Hospitals) -> None:
    folder = asking.folder / "b"
    (folder / "people.csv").rename(folder / "patients.csv")
    asking.change("b", "study.toml", "people.csv", "patients.csv")
    be_patient(asking)
    assert run_in_threads(asking) == ["", "", ""]
    assert asking.released("a", "answers.json") == asking.released("b", "answers.json")


def test_a_key_that_is_not_listed_is_refused(asking: Hospitals) -> None:
    (asking.folder / "c" / "own.key").unlink()
    IdentityKey.make(asking.folder / "c" / "own.key")
    assert "is none of the 3 parties'" in run_in_threads(asking)[2]
    check_nothing_opened(asking)


def census_of(hospitals: Hospitals, key: IdentityKey, number: str = "9") -> bytes:
    """Write what the third hospital might tell, signed with a key."""
    agreement = hospitals.collective.agreement(b"census of Ages 2026")
    memory = MemoryMailbox()
    members = [*agreement.members[:2], key.member("Hospital C")]
    forged = Collective(members).agreement(b"census of Ages 2026")
    Post(forged, key, MemoryMailbox(), memory).send(
        "census",
        Label(agreement.digest),
        {"plan": {}, "groups": {"strict": ["1.0", "1e-05", number]}},
    )
    ((_, content),) = memory.files.items()
    return content


def forged(hospitals: Hospitals) -> bytes:
    return census_of(hospitals, IdentityKey.fresh())


def unsigned(hospitals: Hospitals) -> bytes:
    message = json.loads(forged(hospitals))["message"]
    return encoded({"message": message, "signature": ""})


@pytest.mark.parametrize("made", [forged, unsigned])
def test_a_file_that_its_party_has_not_signed_is_refused(
    asking: Hospitals, made: Callable[[Hospitals], bytes]
) -> None:
    run_in_threads(asking, ("a", "b"))  # so that the folder is there
    (asking.folder / "shared" / "ages-2026" / "census-p03.json").write_bytes(made(asking))
    for line in run_in_threads(asking, ("a", "b")):
        assert "\n" not in line and "census-p03.json of Hospital C" in line
        assert "is not signed with the key that is listed" in line
    check_nothing_opened(asking)


def test_two_versions_are_refused(asking: Hospitals) -> None:
    run_in_threads(asking, ("a",))
    key = IdentityKey.read(asking.folder / "c" / "own.key")
    shared = FolderMailbox(asking.folder / "shared" / "ages-2026")
    (shared.path / "census-p03.json").write_bytes(census_of(asking, key))
    (shared.path / "census-p03 (copy).json").write_bytes(census_of(asking, key, "10"))
    (line,) = run_in_threads(asking, ("a",))
    assert "two versions" in line or "plans something else" in line
    check_nothing_opened(asking)


def test_half_a_file_and_a_party_that_comes_late_are_waited_for(asking: Hospitals) -> None:
    missing = "Hospital C posted no numbers of people in time: what was posted stands"
    assert all(missing in line for line in run_in_threads(asking, ("a", "b")))
    run_in_threads(asking, ("c",))  # which finds the others' numbers, and waits for their keys
    path = asking.folder / "shared" / "ages-2026" / "census-p03.json"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert all(missing in line for line in run_in_threads(asking, ("a", "b")))
    check_nothing_opened(asking)
    path.write_bytes(whole)
    be_patient(asking)
    assert run_in_threads(asking) == ["", "", ""]
    assert len({asking.released(name, "answers.json") for name in NAMES}) == 1


def test_a_plan_needs_nobody_else_and_then_knows_everybody(asking: Hospitals) -> None:
    folder = asking.folder / "a"

    def planned() -> dict[str, int]:
        config = read_config(folder / "study.toml")
        made = plan_study(config, StudyFolder(folder / "study"))
        assert "Records lie with 3 parties" in " ".join(made.plan.arrangement.provisos)
        return {row.group: row.owners for row in made.plan.session.privacy_.groups}  # type: ignore[attr-defined]

    assert sum(planned().values()) == 60
    be_patient(asking)
    assert run_in_threads(asking) == ["", "", ""]
    assert sum(planned().values()) == 180


# A sum that is not opened


@pytest.mark.parametrize("method", SAME)
def test_a_sum_that_is_not_opened_is_lost_at_all(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Two of four stay away from one sum, and come back: it is charged, and goes on as lost, at all four."""
    monkeypatch.setenv("COLLEGIUM_LEDGER", "none")
    names = ("a", "b", "c", "d")
    hospitals = Hospitals(tmp_path, server, drop_outs=1, names=names)
    hospitals.write(method, "collect_s = 5")
    noised, ended = PartySum.noised, threading.Event()

    def late(self: PartySum, *given: object, query: int, purpose: str) -> object:
        number = self._post.number
        is_it = query == SUM[method]
        if is_it and number > 2:
            assert ended.wait(1200)
        try:
            return noised(self, *given, query=query, purpose=purpose)  # type: ignore[arg-type]
        except CollegiumError:
            if is_it:
                ended.set()
            raise

    monkeypatch.setattr(PartySum, "noised", late)
    assert run_in_threads(hospitals, names) == ["", "", "", ""]
    for file in SAME[method]:
        assert len({hospitals.released(name, file) for name in names}) == 1, file
    # A sum of votes is about a batch, here the second half of all public records.
    assert [lost(hospitals, name, method) for name in names] == [20 if method == "pate" else 1] * 4


# What a file may say

REFUSED = {
    'key = "own.key"\n': ("", "[parties] needs parties.key"),
    'name = "Ages 2026"': ("", "[parties] needs study.name"),
    "mean age by sick": ("median age", "ask for a histogram"),
    "[statistics]": ('[statistics]\nnoise = "laplace"', "no shares that parties could add"),
}


@pytest.mark.parametrize("before", REFUSED)
def test_what_parties_cannot_do_is_refused_before_anything_is_posted(
    asking: Hospitals, before: str
) -> None:
    after, why = REFUSED[before]
    asking.change("a", "study.toml", before, after)
    (line,) = run_in_threads(asking, ("a",))
    assert why in line and "\n" not in line
    assert not list((asking.folder / "shared").iterdir())


VOTES_REFUSED = {
    "noise without shares": (
        'aggregator = "confident"\nthreshold = 7\nsigma_threshold = 30\nsigma = 40',
        'aggregator = "pfmax"',
        "exponential noise, of which parties cannot add shares",
    ),
    "account of counts": (
        "[privacy]",
        '[privacy]\nguarantee = "data-dependent"',
        "the votes of all parties, which nobody sees",
    ),
    "price of labels": ("[privacy]", '[privacy]\nprice = "labels"', "leave it out"),
    "labels alone": ("[aggregation]", '[aggregation]\nrelease = "labels"', "what all parties see"),
    "turns": ("[run]", '[personalisation]\nmethod = "vanishing"\n[run]', "use 'weighting'"),
    "active": ('"doubtful"', '"active"', "parties ask many at once"),
    "classes": ("classes = [false, true]\n", "", "read off this party's labels"),
    "public level": (
        "open = 3.0 }",
        'open = inf }\npublic = ["open"]',
        "privacy.public does not go with",
    ),
}


@pytest.fixture
def voting(asking: Hospitals) -> Hospitals:
    """All are to let their teachers vote."""
    asking.write("pate")
    for name in asking.names:
        asking.change(name, "study.toml", "give_up_s = 300", "give_up_s = 0.5")
    return asking


@pytest.mark.parametrize("what", VOTES_REFUSED)
def test_what_teachers_cannot_vote_on_together_is_refused_before_anything_is_posted(
    voting: Hospitals, what: str
) -> None:
    before, after, why = VOTES_REFUSED[what]
    if what == "classes":
        public = voting.folder / "a" / "public.csv"
        pd.read_csv(public)[["age"]].to_csv(public, index=False)
    voting.change("a", "study.toml", before, after)
    (line,) = run_in_threads(voting, ("a",))
    assert why in line and "\n" not in line
    assert not list((voting.folder / "shared").iterdir())


def test_a_study_that_leaves_open_how_it_is_learnt_is_refused(voting: Hospitals) -> None:
    path = voting.folder / "a" / "study.toml"
    path.write_text(path.read_text().split("[preprocessing]")[0])
    with pytest.raises(CollegiumError, match="nothing says how it is learnt"):
        read_config(path)


def test_a_level_too_small_for_a_teacher_is_refused_by_all(voting: Hospitals) -> None:
    for name in NAMES:
        voting.change(name, "study.toml", "n_teachers = 12", "n_teachers = 3")
    be_patient(voting)
    lines = run_in_threads(voting)
    assert len(set(lines)) == 1 and "too few for one of 3 teachers" in lines[0], lines
    check_nothing_opened(voting)


def test_nobody_is_forgotten_in_what_other_parties_have_planned_with(voting: Hospitals) -> None:
    run_in_threads(voting, ("a",))
    folder = voting.folder / "a"
    before = (folder / "people.csv").read_bytes()
    of_study = (read_config(folder / "study.toml"), folder / "study")
    with pytest.raises(CollegiumError, match="plan with all whom this one has counted"):
        forget("a0", [of_study], remove_records=True)
    assert (folder / "people.csv").read_bytes() == before


def test_a_party_smaller_than_the_number_of_teachers_can_plan(voting: Hospitals) -> None:
    """Of all teachers: 60 people here, and 100 teachers of 180."""
    voting.change("a", "study.toml", "n_teachers = 12", "n_teachers = 100")
    planned = plan_study(read_config(voting.folder / "a" / "study.toml")).plan
    groups = planned.run.plan.groups.values()  # type: ignore[attr-defined]
    assert sum(one.owners for one in groups) == 60
    assert sum(one.teachers for one in groups) == 100
    assert planned.numbers()["answers_affordable"] > 0


def test_another_list_of_parties_is_another_study(asking: Hospitals) -> None:
    run_in_threads(asking, ("a",))
    folder = asking.folder / "a"
    members = [*asking.collective.members[:2], IdentityKey.fresh().member("Hospital D")]
    (folder / "collective.toml").write_text(Collective(members).toml())
    (line,) = run_in_threads(asking, ("a",))
    assert "holds another study" in line and "parties" in line
