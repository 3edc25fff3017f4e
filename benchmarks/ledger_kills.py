"""Kill releases of every kind that are entered in a ledger, and see that each was charged for what left.

    python benchmarks/ledger_kills.py --kills 300                # ledgers in files
    python benchmarks/ledger_kills.py --kills 60 --postgresql    # on a PostgreSQL server of its own

Releases about the same people follow one another on one ledger: studies (labels, histograms, with a check,
with a student that is asked, vanishing, upsampling, streamed), label jobs, fits of an estimator, and bare
reservations. Each is killed (SIGKILL) at a random moment of its time, or around a step that it takes (the
ledger is made, an entry is written, committed, kept in mind; a question is drawn), and the same command goes
on. Now and then yesterday's ledger is put back meanwhile. Then four programs make releases at once, with
kills. At last releases meet a full disk, a ledger that is locked, a server that stops.

From the outside, after every kill: what the journals say was asked, replayed with the terms in the folders,
costs no more than the ledger has booked for that release, for every group; nobody's total is above the limit;
a release has one reservation and at most one settlement; no question was asked twice and no outcome has
changed; every entry is proven.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from collegium.accounting.accountants import GaussianAccountant
from collegium.budgets import Budget
from collegium.ledger.ledger import Ledger
from collegium.pate.voting.labelling import Outcome
from collegium.study.folder import StudyFolder
from collegium.study.methods.votes.terms import JobTerms
from collegium.study.terms import read_terms
from kill_checks import known
from kill_studies import (
    CHECK,
    CLASSES,
    STREAMED,
    Changes,
    write_settings,
    write_tables,
    write_votes,
)
from ledger_programs import FULL, PAUSE, At, Program

FEW = {"max_labels": 8}
MORE = {"sigma": 20, "max_labels": 24}
LEAVES: dict[str, Any] = {"privacy": {"column": "privacy", "price": "histogram"}}

#: Studies that use what is left, and leave something.
STUDIES: dict[str, Changes] = {
    "histogram": {"aggregation": {"aggregator": "gnmax", "release": "histogram", **MORE}},
    "confident": {"aggregation": {"aggregator": "confident", **CHECK, **FEW}},
    "interactive": {"aggregation": {"aggregator": "interactive", **CHECK, "refit_every": 4, **FEW}},
    "vanishing": {
        "aggregation": {"aggregator": "gnmax", **MORE},
        "personalisation": {"method": "vanishing"},
    },
    "upsampling": {
        "aggregation": {"aggregator": "gnmax", **MORE},
        "personalisation": {"method": "upsampling"},
    },
    "streamed": {**STREAMED, "aggregation": {"aggregator": "gnmax", **MORE}},
}
#: Those that take all that is left.
WHOLE: dict[str, Changes] = {
    "labels, whole": {"aggregation": {"aggregator": "gnmax", "sigma": 9}},
    "streamed, whole": STREAMED,
    "Laplace, whole": {"aggregation": {"aggregator": "lnmax", "gamma": 0.2}},
}
OTHERS = ("label job", "bare", "estimator")
REFUSED = ("refused", "nothing left", "has anything left")
TIMES = 6
"""How often one release is killed at most, before it is left in peace."""


@dataclass
class Place:
    """Where ledgers are: in files beside the tables, or on a server.

    ``server``: which is asked for a database for each ledger; None: files.
    """

    server: Any = None

    @property
    def name(self) -> str:
        """For people."""
        return "SQLite" if self.server is None else "PostgreSQL"

    def new(self, folder: Path) -> tuple[str, Path]:
        """Say where a ledger about the people of a folder's tables is, and its key; not made in a file."""
        url = str(folder / "people.ledger") if self.server is None else self.server.new_database()
        key = folder / "people.ledger.key"
        if self.server is not None:
            Ledger.create(url, key)
        return url, key


@dataclass
class Story:
    """One ledger, and releases about the same people.

    ``place``: where it is. ``folder``: with tables.
    ``before``: what each study's journal said last.
    """

    place: Place
    folder: Path
    url: str = ""
    key: Path = Path()
    count: int = 0
    before: dict[str, dict[int, Outcome]] = field(default_factory=dict)

    @classmethod
    def begun(cls, place: Place, folder: Path) -> Story:
        """Write tables into a new folder, and find a place for a ledger."""
        write_tables(folder, n_public=60)
        write_votes(folder, 60)
        url, key = place.new(folder)
        return cls(place, folder, url, key)

    def command(self, kind: str) -> tuple[Path, list[object]]:
        """Begin a release of this kind; returns what it is known by, and the command."""
        self.count += 1
        name = f"{self.count}-{kind.replace(', ', '-').replace(' ', '-')}"
        released = self.folder / name
        asked_for = {} if self.place.server is None else {"url": self.url, "key": str(self.key)}
        if kind in WHOLE or kind in STUDIES:
            ledger = {"ledger": asked_for} if asked_for else {}
            leaves = LEAVES if kind in STUDIES else {}
            settings = {**WHOLE, **STUDIES}[kind]
            path = self.folder / f"{name}.toml"
            write_settings(path, leaves, settings, ledger)
            return released, ["collegium", "run", path]
        if kind == "label job":
            lines = [
                "aggregation.sigma = 9",
                "aggregation.max_labels = 8",
                "privacy.price = 'histogram'",
            ]
            lines += [f"ledger.{key} = {json.dumps(value)}" for key, value in asked_for.items()]
            path = self.folder / f"{name}.toml"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            command: list[object] = ["collegium", "label", "--votes", self.folder / "votes.npy"]
            command += ["--budgets", self.folder / "budgets.csv", "--classes", 3, "--out", released]
            command += ["--people", self.folder / "people.csv", "--aggregator", "gnmax"]
            return released, [*command, "--settings", path]
        program = {"bare": "bare", "estimator": "fit"}[kind]
        return released, [program, self.url, self.key, self.folder, released]

    @property
    def ledger(self) -> Ledger | None:
        """The ledger, if it was made."""
        missing = self.place.server is None and (
            not Path(self.url).exists() or Ledger.is_to_be_made(self.url, self.key)
        )
        return None if missing else Ledger(self.url, self.key)


def asked(folder: Path) -> tuple[dict[str, Any], JobTerms, list[Outcome]] | None:
    """Read what a study or label job may have asked; None where nothing was."""
    if not (folder / "vault" / "terms.json").exists():
        if (folder / "vault" / "key").exists():
            assert not StudyFolder(folder).open_journal().asked, f"{folder}: asked without terms"
        return None
    terms, journal = read_terms(folder)
    outcomes = journal.settled()
    kept = json.loads((folder / "vault" / "ledger.json").read_text("utf-8"))
    return (kept, terms, outcomes) if outcomes else None


def check(story: Story) -> None:
    """Hold everything that was released against the ledger."""
    jobs = [
        job for path in sorted(story.folder.iterdir()) if path.is_dir() and (job := asked(path))
    ]
    files = {path.name: path for path in story.folder.glob("*-bare")}
    files |= {path.name: path for path in story.folder.glob("*-estimator")}
    written = {name: json.loads(path.read_text("utf-8")) for name, path in files.items()}
    ledger = story.ledger  # after everything that is held against it
    if ledger is None:
        assert not jobs and not written, "something was released, and there is no ledger"
        return
    ledger.verify()
    books = ledger.contents()
    for kept, terms, outcomes in jobs:
        assert kept["release"] in books.releases, f"{kept}: released, and not in the ledger"
        costs = books.releases[kept["release"]].costs
        paid_for(kept, terms, outcomes, costs)
    for name, content in written.items():
        (release,) = (one for one in books.releases.values() if one.name == name)
        if "mu_squared" in content:
            for cost, left in zip(release.costs, content["mu_squared"].values(), strict=True):
                assert left <= cost.mu_squared, (name, left, cost)
        else:
            assert release.is_settled
            for cost, (epsilon, delta) in zip(
                release.costs, content["groups"].values(), strict=True
            ):
                booked = ledger.lifetime.limit(Budget(epsilon, delta)).epsilon_of(cost, delta)
                assert epsilon <= booked * (1 + 1e-9), (name, epsilon, cost)
    for standing in ledger.standings():
        assert standing.limit.allows(standing.spent), standing
    entries = collections.Counter(
        (entry.kind, entry.body["release"])
        for entry in ledger.history()
        if entry.kind in ("reserve", "settle")
    )
    assert all(count == 1 for count in entries.values()), "a release was entered twice"


def paid_for(
    kept: dict[str, Any], terms: JobTerms, outcomes: list[Outcome], costs: list[Any]
) -> None:
    """Compare what was asked with what is booked, group by group."""
    account = terms.replayed(outcomes).account
    assert isinstance(account, GaussianAccountant)
    booked = dict(zip(kept["groups"], costs, strict=True))
    for name, mu_squared in zip(account.names, account.mu_squared.tolist(), strict=True):
        assert mu_squared <= booked[name].mu_squared, (name, mu_squared, booked[name])


def unchanged(story: Story, folder: Path) -> None:
    """Hold a folder's pieces against its journal, and its outcomes against those of before."""
    if not (folder / "vault").is_dir():
        return
    now = known(folder)
    for query, outcome in story.before.get(folder.name, {}).items():
        assert now[query] == outcome or outcome.verdict == "lost", "it changed its mind"
    story.before[folder.name] = {q: o for q, o in now.items() if o.verdict != "lost"}


def check_finished(kind: str, folder: Path) -> None:
    """Compare what was published with the journal, and see that it was settled."""
    if not (folder / "vault").is_dir():
        return
    kept = json.loads((folder / "vault" / "ledger.json").read_text("utf-8"))
    assert kept["settled"] and kept["entry"], kept
    answered = {q: o.label for q, o in known(folder).items() if o.verdict == "answered"}
    table = pd.read_csv(folder / "release" / "labels.csv")
    labels = table["label"] if kind == "label job" else table["label"].map(CLASSES.index)
    released = dict(zip(table["row"].tolist(), labels.tolist(), strict=True))
    taken = {query: label for query, label in released.items() if query in answered}
    assert taken == answered, "what is published is not what the journal says"


def check_refused(said: str, folder: Path) -> None:
    """See that nothing left where a release was refused, and that it was said in one line."""
    lines = [line for line in said.splitlines() if "error:" in line]
    assert len(lines) == 1, said
    if folder.is_dir():
        assert asked(folder) is None
        assert not (folder / "release").is_dir() or not list((folder / "release").iterdir())
    else:
        assert not folder.exists()


def check_people(story: Story, chance: random.Random) -> None:
    """Add up what a few people paid for, as it is told of each of them."""
    ledger = story.ledger
    assert ledger is not None
    jobs = [
        job for path in sorted(story.folder.iterdir()) if path.is_dir() and (job := asked(path))
    ]
    by_release = {kept["release"]: (kept, terms, outcomes) for kept, terms, outcomes in jobs}
    for number in chance.sample(range(120), 3):
        account = ledger.account_of(f"person {number}")
        assert account is not None
        level, spent = ("high", "low")[number % 2], 0.0
        for charge in account.charges:
            kept, terms, outcomes = by_release.get(charge.release.id, (None, None, None))
            if kept is None or terms is None or outcomes is None:
                spent += charge.cost.mu_squared
                continue
            group = list(kept["groups"])[charge.part]
            assert group.split(",")[0] == level, (number, group)
            again = terms.replayed(outcomes).account
            assert isinstance(again, GaussianAccountant)
            each = zip(again.names, again.mu_squared.tolist(), strict=True)
            spent += max(cost for name, cost in each if name == group)
        assert spent <= account.standing.spent.mu_squared * (1 + 1e-12)
        assert account.standing.limit.allows(account.standing.spent)


MAKING = ("key", "file", "begin", "join")


def aim(
    usual: tuple[collections.Counter[str], float], is_first: bool, chance: random.Random
) -> tuple[float, At | None]:
    """Choose a moment: anywhere in a release's time, or around one of its steps.

    ``is_first``: whether there may be no ledger yet.
    """
    steps, duration = usual
    if chance.random() < 0.35:
        return duration * chance.random(), None
    step = chance.choice([one for one in sorted(steps) if is_first or one not in MAKING])
    nth = chance.randint(1, max(1, steps[step] - (0 if is_first else 2) * (step == "anchor")))
    wait = chance.choice([0.0, 0.0, 0.02 * chance.random() ** 2])
    return 0.0, At(step, chance.choice(["before", "after"]), nth, wait)


class Usual:
    """How each kind of release goes where nobody disturbs it: how long, and by which steps."""

    def __init__(self, place: Place, folder: Path, program: Program) -> None:
        self._place, self._folder, self._program = place, folder, program
        program.run("collegium", "--version")  # it has imported everything
        self._known: dict[str, tuple[collections.Counter[str], float]] = {}

    def __getitem__(self, kind: str) -> tuple[collections.Counter[str], float]:
        if kind not in self._known:
            story = Story.begun(self._place, self._folder / f"usual-{kind.replace(' ', '-')}")
            path, command = story.command(kind)
            began = time.monotonic()
            code, said, steps = self._program.run(*command)
            assert code == 0, (kind, said)
            self._known[kind] = steps, time.monotonic() - began
            check(story)
            check_finished(kind, path)
        return self._known[kind]


class Yesterday:
    """A copy of a ledger, which can be put back while no program uses it."""

    def __init__(self, story: Story) -> None:
        self._story = story
        if story.place.server is None:
            self._kept = self._files()
        else:
            self._anchor = Path(f"{story.key}.anchor").read_bytes()
            self._copy = story.place.server.copied(story.url)

    def _files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self._story.folder.glob("people.ledger*")}

    @contextlib.contextmanager
    def put_back(self, with_anchor: bool) -> Iterator[None]:
        """Have yesterday's ledger there; afterwards today's."""
        story = self._story
        anchor = Path(f"{story.key}.anchor")
        today = anchor.read_bytes()
        if story.place.server is None:
            files = self._files()
            self._write({p: c for p, c in self._kept.items() if with_anchor or p != anchor}, anchor)
            yield
            self._write(files, None)
            return
        server = story.place.server
        server.exchange(story.url, self._copy)
        if with_anchor:
            anchor.write_bytes(self._anchor)
        yield
        server.exchange(story.url, self._copy)
        anchor.write_bytes(today)

    def _write(self, files: dict[Path, bytes], but: Path | None) -> None:
        for path in self._files():
            if path != but and not path.name.endswith((".key", ".lock")):
                path.unlink()
        for path, content in files.items():
            path.write_bytes(content)
            path.chmod(0o600)


@dataclass
class Tally:
    """What was done."""

    kills: collections.Counter[str] = field(default_factory=collections.Counter)
    steps: collections.Counter[str] = field(default_factory=collections.Counter)
    releases: int = 0
    refused: int = 0
    copies: int = 0


def release(
    story: Story,
    kind: str,
    program: Program,
    usual: Usual,
    tally: Tally,
    chance: random.Random,
    times: int = TIMES,
) -> None:
    """Make one release, killed again and again."""
    its, is_first = usual[kind], story.ledger is None or not story.count
    yesterday = Yesterday(story) if story.ledger is not None else None
    path, command = story.command(kind)
    for attempt in range(times + 1):
        seconds, at = aim(its, is_first, chance) if attempt < times else (0.0, None)
        code, said, _ = program.run(*command, seconds=seconds, at=at)
        check(story)
        unchanged(story, path)
        if code != -signal.SIGKILL:
            break
        tally.kills[kind] += 1
        tally.steps["any moment" if at is None else f"{at.when} {at.step}"] += 1
        if yesterday is not None and (path / "vault").is_dir() and chance.random() < 0.25:
            tally.copies += see_through(story, yesterday, path, program, command)
        if kind == "estimator":  # it keeps nothing: again is another one
            path, command = story.command(kind)
    if code == 2 and any(word in said for word in REFUSED):
        tally.refused += 1
        check_refused(said, path)
        return
    assert code == 0, (kind, said)
    tally.releases += 1
    check_finished(kind, path)
    if kind != "estimator":
        entries = len(story.ledger.history()) if story.ledger is not None else 0
        code, said, _ = program.run(*command)
        assert code == 0, said
        assert story.ledger is not None and len(story.ledger.history()) == entries
        unchanged(story, path)


def see_through(
    story: Story, yesterday: Yesterday, path: Path, program: Program, command: list[object]
) -> int:
    """Put yesterday's ledger back under a release that is entered, and not ended; count if that was seen."""
    kept = path / "vault" / "ledger.json"
    entered = kept.exists() and json.loads(kept.read_text("utf-8"))
    ledger = story.ledger
    if not entered or entered["entry"] is None or entered["settled"] or ledger is None:
        return 0
    before = asked(path)
    with yesterday.put_back(with_anchor=False):
        code, said, _ = program.run(*command)
        assert code == 2 and "older copy" in said, said
    with yesterday.put_back(with_anchor=True):
        code, said, _ = program.run(*command)
        assert code == 2 and re.search("does not know this release|another copy", said), said
    after = asked(path)
    assert (before and before[2]) == (after and after[2]), "it asked, with yesterday's ledger"
    check(story)
    return 2


def stories(
    place: Place, scratch: Path, kills: int, seed: int, tally: Tally, program: Program, usual: Usual
) -> None:
    """Kill releases, one ledger after the other, until there were so many kills."""
    number = 0
    while tally.kills.total() < kills:
        number += 1
        chance = random.Random(f"{seed} {number}")
        story = Story.begun(place, scratch / f"story-{number}")
        if number % 4 == 0:
            kinds = [list(WHOLE)[number // 4 % len(WHOLE)], chance.choice([*STUDIES, *OTHERS])]
        else:
            kinds = [*chance.sample([*STUDIES, "label job", "bare"], 5), "estimator", "confident"]
        told = []
        for kind in kinds:
            before = tally.kills.total(), tally.refused
            times = TIMES if kind != "estimator" else 2
            release(story, kind, program, usual, tally, chance, times)
            refused = " (refused)" * (tally.refused - before[1])
            told.append(f"{kind} {tally.kills.total() - before[0]}{refused}")
            if tally.kills.total() >= kills:
                break
        check_people(story, chance)
        print(f"ledger {number}: {', '.join(told)}", flush=True)


def four_at_once(
    place: Place,
    scratch: Path,
    kills: int,
    seed: int,
    tally: Tally,
    programs: list[Program],
    usual: Usual,
) -> None:
    """Let four programs make releases about the same people, with kills."""
    story = Story.begun(place, scratch / "four")
    lock, wrong = threading.Lock(), []
    aims = {kind: usual[kind] for kind in ("histogram", "confident", "streamed", "label job")}

    def work(program: Program, number: int) -> None:
        chance = random.Random(f"{seed} four {number}")
        kinds = list(aims)[number:] + list(aims)[:number]
        done = killed = 0
        for kind in kinds * 6:
            with lock:
                path, command = story.command(kind)
            for attempt in range(TIMES):
                wanted = attempt < TIMES - 1 and killed < kills / 4
                seconds, at = aim(aims[kind], not done, chance) if wanted else (0.0, None)
                code, said, _ = program.run(*command, seconds=seconds, at=at)
                with lock:
                    check(story)
                    if code == -signal.SIGKILL:
                        tally.kills[f"{kind}, one of four"] += 1
                        killed += 1
                unchanged(story, path)
                if code != -signal.SIGKILL:
                    break
            if code == 2 and any(word in said for word in REFUSED):
                check_refused(said, path)
                with lock:
                    tally.refused += 1
                continue
            assert code == 0, said
            check_finished(kind, path)
            with lock:
                tally.releases += 1
            done += 1
            if done >= 2 and killed >= kills / 4:
                return

    def watched(program: Program, number: int) -> None:
        try:
            work(program, number)
        except BaseException as error:
            wrong.append(error)
            raise

    threads = [
        threading.Thread(target=watched, args=(program, number))
        for number, program in enumerate(programs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    check(story)
    check_people(story, random.Random(seed))


def faults(place: Place, scratch: Path, program: Program, usual: Usual) -> Iterator[str]:
    """Let a study meet everything that may fail around it; yield what was seen."""

    def begun(kind: str, name: str) -> tuple[Story, Path, list[object]]:
        story = Story.begun(place, scratch / f"{kind}-{name}".replace(" ", "-"))
        code, said, _ = program.run(*story.command("bare")[1])  # the ledger is there
        assert code == 0, said
        return story, *story.command(kind)

    def failed(said: str, story: Story, path: Path) -> str:
        check(story)
        assert "Traceback" not in said, said
        lines = [line for line in said.splitlines() if line.startswith("error:")]
        assert len(lines) == 1, said
        released = path / "release"
        assert not released.is_dir() or not [p for p in released.iterdir() if p.suffix == ".csv"]
        return lines[0]

    def goes_on(story: Story, path: Path, command: list[object], kind: str) -> None:
        code, said, _ = program.run(*command)
        assert code == 0, said
        check(story)
        check_finished(kind, path)

    for kind in ("histogram", "label job"):
        steps, _ = usual[kind]
        for step in ("join", "reserve", "settle"):
            if not steps[step]:
                continue
            story, path, command = begun(kind, f"full-{step}")
            if step == "join":  # the first entry about people; here they are known already
                story = Story.begun(place, scratch / f"{kind}-full-new".replace(" ", "-"))
                path, command = story.command(kind)
            at = At(step, "before", 1, 0.0, FULL)
            code, said, _ = program.run(*command, at=at)
            if code == 0:  # on a server, whose disk is another
                raise AssertionError(f"{kind}: went on after {step} on a full disk: {said}")
            line = failed(said, story, path)
            goes_on(story, path, command, kind)
            yield f"disk full before {step} ({kind}): {line}"
        if place.server is None:
            story, path, command = begun(kind, "locked")
            with contextlib.closing(sqlite3.connect(story.url, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                program.start(*command)
                time.sleep(3 * usual[kind][1])
                assert asked(path) is None, "it asked, while the ledger was locked"
                other.execute("ROLLBACK")
            code, said, _ = program.wait()
            assert code == 0, said
            check(story)
            check_finished(kind, path)
            yield f"locked ({kind}): waited for, nothing asked before"
            continue
        for step, when in (
            ("reserve", "before"),
            ("reserve", "after"),
            ("kept", "after"),
            ("answer", "after"),
            ("settle", "after"),
        ):
            story, path, command = begun(kind, f"stopped-{when}-{step}")
            for name in ("paused", "go"):
                (scratch / name).unlink(missing_ok=True)
            program.start(*command, at=At(step, when, 1, 0.0, PAUSE))
            while not (scratch / "paused").exists():
                time.sleep(0.01)
            place.server.stop()
            (scratch / "go").touch()
            code, said, _ = program.wait()
            place.server.start()
            if code == 0:  # it was settled before
                kept = json.loads((path / "vault" / "ledger.json").read_text("utf-8"))
                assert kept["settled"], said
                line = "settled before, and published"
                check(story)
            else:
                line = failed(said, story, path)
            goes_on(story, path, command, kind)
            yield f"server stopped {when} {step} ({kind}): {line}"


def quick(scratch: Path) -> int:
    """Kill a label job where it matters most, on a ledger of its own; return how often."""
    story = Story.begun(Place(), scratch / "quick")
    path, command = story.command("label job")
    kills = 0
    with Program(scratch, studies=False) as program:
        for step in ("begin", "reserve", "kept", "question", "settle"):
            code, said, _ = program.run(*command, at=At(step))
            assert code == -signal.SIGKILL, said
            check(story)
            unchanged(story, path)
            kills += 1
        code, said, _ = program.run(*command)
        assert code == 0, said
    check(story)
    check_finished("label job", path)
    check_people(story, random.Random(1))
    return kills


@contextlib.contextmanager
def postgresql() -> Iterator[Any]:
    """Have a PostgreSQL server of one's own."""
    import psycopg
    from sqlalchemy import make_url

    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from tests.postgresql_server import Server, running

    class Own(Server):
        def told(self, *statements: str) -> None:
            place = f"host={self.folder} user=steward dbname=postgres"
            with psycopg.connect(place, autocommit=True) as connection:
                for one in statements:
                    connection.execute(one)

        def copied(self, url: str) -> str:
            self.n_databases += 1
            copy = f"copy_{self.n_databases}"
            self.told(f"CREATE DATABASE {copy} TEMPLATE {make_url(url).database}")
            return copy

        def exchange(self, url: str, copy: str) -> None:
            one = make_url(url).database
            self.told(
                f"ALTER DATABASE {one} RENAME TO aside",
                f"ALTER DATABASE {copy} RENAME TO {one}",
                f"ALTER DATABASE aside RENAME TO {copy}",
            )

    with running(Own) as server:
        yield server


def main() -> None:
    """Kill, and count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=300, help="of one release after the other")
    parser.add_argument("--at-once", type=int, default=40, help="kills of four programs at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgresql", action="store_true", help="on a server of its own")
    parser.add_argument("--quick", action="store_true", help="a few kills of one label job")
    arguments = parser.parse_args()
    os.environ["XDG_STATE_HOME"] = os.devnull  # many ledgers about the same people
    tally, began = Tally(), time.monotonic()
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ledger-kills-")))
        if arguments.quick:
            print(f"{quick(scratch)} kills")
            return
        place = Place(stack.enter_context(postgresql()) if arguments.postgresql else None)
        programs = [stack.enter_context(Program(scratch)) for _ in range(4)]
        usual = Usual(place, scratch, programs[0])
        stories(place, scratch, arguments.kills, arguments.seed, tally, programs[0], usual)
        four_at_once(place, scratch, arguments.at_once, arguments.seed, tally, programs, usual)
        for line in faults(place, scratch, programs[0], usual):
            print(line, flush=True)
    for table in (tally.kills, tally.steps):
        print(pd.Series(dict(table.most_common())).to_string())
    print(
        f"{place.name}: {tally.kills.total()} kills; {tally.releases} releases, {tally.refused} refused, "
        f"{tally.copies} old copies noticed; released was never more than charged, nobody above the limit, "
        f"nothing asked or charged twice ({time.monotonic() - began:.0f} s)"
    )


if __name__ == "__main__":
    main()
