"""Programs that make releases on a ledger, forked warm, which die or meet a fault at a chosen step.

Not a benchmark by itself: ``ledger_kills.py`` starts it, once for each program that is to run at a time.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

LEVELS = {"high": 4.0, "low": 12.0}
BARE = (0.1, 0.06)
"""Shares of everybody's limit that a release without study or estimator reserves, and costs."""

KILL, FULL, PAUSE = "kill", "full", "pause"


class At(NamedTuple):
    """What happens to a program, and where.

    ``step``: which one (:func:`watch` has their names); empty: nowhere.
    ``when``: "before" or "after" it. ``nth``: time that it is reached. ``wait``: so many seconds later.
    ``what``: it is killed; or no file grows any more, as on a full disk; or it stands still until a file
        called "go" is there.
    """

    step: str = ""
    when: str = "after"
    nth: int = 1
    wait: float = 0.0
    what: str = KILL


class Program:
    """A program that waits for orders, having imported what it needs.

    ``studies``: whether that is more than for label jobs.
    """

    def __init__(self, folder: Path, studies: bool = True) -> None:
        here = str(Path(__file__).resolve().parent)
        code = f"import sys; sys.path.insert(0, {here!r}); import ledger_programs as p; "
        code += f"p.serve({studies})"
        self._server = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()  # closes its standard input, which ends it

    def run(
        self, *argv: object, seconds: float = 0.0, at: At | None = None
    ) -> tuple[int, str, collections.Counter[str]]:
        """Run it; kill it after so long, or at a step.

        Returns: exit code (negative: the signal), what it printed, and how often each step was reached.
        """
        self.start(*argv, seconds=seconds, at=at)
        return self.wait()

    def start(self, *argv: object, seconds: float = 0.0, at: At | None = None) -> None:
        """The same without waiting for its end."""
        assert self._server.stdin is not None
        order = [[str(one) for one in argv], seconds, at or At()]
        print(json.dumps(order), file=self._server.stdin, flush=True)

    def wait(self) -> tuple[int, str, collections.Counter[str]]:
        """Wait for the end of what was started."""
        assert self._server.stdout is not None
        code, said, steps = json.loads(self._server.stdout.readline())
        return code, said, collections.Counter(steps)


def serve(studies: bool) -> None:
    """Take orders from standard input, fork for each, and answer."""
    os.environ.pop("COLLEGIUM_LEDGER", None)
    os.environ["XDG_STATE_HOME"] = os.devnull  # many ledgers about the same people
    _import_for_label_jobs()
    if studies:
        _import_for_studies()
    for line in sys.stdin:
        argv, seconds, at = json.loads(line)
        said, told = os.pipe()
        steps, counted = os.pipe()
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            os.close(said)
            os.dup2(told, 1)
            os.dup2(told, 2)
            # What stands for the old ones may think that they can be rewound.
            sys.stdout, sys.stderr = (os.fdopen(end, "w", closefd=False) for end in (1, 2))
            _be(argv, seconds, At(*at), counted)
        for end in (told, counted):
            os.close(end)
        with os.fdopen(said, errors="replace") as file, os.fdopen(steps) as reached:
            # Steps are few bytes, which the pipe takes before anybody reads.
            answer = file.read(), reached.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps([code, answer[0], answer[1].split()]), flush=True)


def _import_for_label_jobs() -> None:
    import alembic.command
    import alembic.config

    import collegium.cli.blocks
    import collegium.cli.label
    import collegium.cli.progress
    import collegium.ledger.versions
    import collegium.study.methods.votes.label_job
    import collegium.study.runner  # noqa: F401
    from collegium.cli.main import _built, app

    assert alembic.command and alembic.config
    _built(app)


def _import_for_studies() -> None:
    import jinja2
    import matplotlib.backends.backend_svg
    import matplotlib.figure
    import matplotlib.style
    import sklearn.naive_bayes
    import skops.io

    import collegium.study.runner
    import collegium.study.streaming  # noqa: F401

    assert jinja2 and matplotlib and sklearn and skops


def _be(argv: list[str], seconds: float, at: At, counted: int) -> None:
    """Be the program, and end."""
    code = 1
    try:
        watch(at, counted)
        if seconds:
            _kill_after(seconds)
        code = {"collegium": _command, "fit": _fit, "bare": _bare}[argv[0]](argv[1:])
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException as error:
        traceback.print_exception(error)
        code = 3
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _kill_after(seconds: float) -> None:
    timer = threading.Timer(seconds, os.killpg, (0, signal.SIGKILL))
    timer.daemon = True
    timer.start()


def watch(at: At, counted: int) -> None:
    """Do what is ordered at a step, and count all of them.

    ``key``, ``file``, ``begin``: a ledger is made. ``join``, ``reserve``, ``settle``: an entry is written,
    not yet committed; ``anchor``: it is committed. ``kept``: the folder remembers that. ``question``,
    ``answer``: a block of them is entered in the journal. ``fsync``: anything else comes to the disk.
    """
    from collegium.ledger.chain import Key
    from collegium.ledger.database import Database
    from collegium.ledger.storage import Storage, Transaction
    from collegium.study.journal import FileJournal
    from collegium.study.on_ledger import StudyLedger

    left = at.nth

    def reached(step: str, when: str) -> None:
        nonlocal left
        if when == "before" and at.what == KILL:
            os.write(counted, f"{step}\n".encode())
        if (step, when) != (at.step, at.when):
            return
        left -= 1
        if not left:
            _do(at)

    def around(owner: Any, name: str, step: Callable[..., str]) -> None:
        real = getattr(owner, name)

        @functools.wraps(real)
        def watched(*args: Any, **options: Any) -> Any:
            here = step(*args)
            reached(here, "before")
            done = real(*args, **options)
            reached(here, "after")
            return done

        setattr(owner, name, staticmethod(watched) if hasattr(real, "__self__") else watched)

    around(os, "fsync", lambda *_: "fsync")
    around(Key, "make", lambda *_: "key")
    around(Database, "make_private", lambda *_: "file")
    around(Transaction, "write", lambda _self, kind, _body: kind)
    around(Storage, "_remember", lambda *_: "anchor")
    around(StudyLedger, "_keep", lambda *_: "kept")
    around(FileJournal, "reserve", lambda *_: "question")
    around(FileJournal, "settle", lambda *_: "answer")


def _do(at: At) -> None:
    if at.what == FULL:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    elif at.what == PAUSE:
        Path("paused").touch()
        while not Path("go").exists():
            time.sleep(0.01)
    elif at.wait:
        _kill_after(at.wait)
    else:
        os.killpg(0, signal.SIGKILL)


def _command(argv: list[str]) -> int:
    from collegium.cli.main import main

    sys.argv = ["collegium", *argv]
    main()


def _fit(argv: list[str]) -> int:
    """Fit an estimator on a ledger; what it released is written when all is there, as a script does."""
    from sklearn.naive_bayes import GaussianNB

    import collegium as cg
    from collegium.accounting.neighbours import Neighbours
    from collegium.errors import CollegiumError
    from collegium.ledger.places import Place
    from collegium.pate.settings import Account, Queries
    from collegium.pate.voting.aggregators import GNMax

    url, key, tables, released = argv
    table = pd.read_csv(Path(tables, "private.csv"))
    public = pd.read_csv(Path(tables, "public.csv"))
    columns = ["height", "weight"]
    model = cg.PATEClassifier(
        GaussianNB(),
        n_teachers=12,
        aggregator=GNMax(sigma=9),
        account=Account(price="histogram"),
        queries=Queries(max_labels=10),
        student=GaussianNB(),
        classes=["cat", "dog", "owl"],
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ledger = Place(url, Path(key), "://" in url).made(Neighbours.ADD_OR_REMOVE)
            budgets = cg.Policy(LEVELS).assign(table["privacy"], owners=table["person"])
            model.fit(
                table[columns],
                table["kind"],
                budgets=budgets,
                X_public=public[columns],
                ledger=ledger,
                spend=1.0,
                release_name=Path(released).name,
            )
    except CollegiumError as error:
        print(f"error: {error}")
        return 2
    groups = {row.group: [row.epsilon_spent, row.budget.delta] for row in model.privacy_.groups}
    _write(Path(released), {"groups": groups, "labels": model.labels_.tolist()})
    return 0


def _bare(argv: list[str]) -> int:
    """Release a number about everybody: reserve, draw, keep, settle."""
    import collegium as cg
    from collegium.accounting.neighbours import Neighbours
    from collegium.errors import CollegiumError
    from collegium.ledger.ledger import Cost
    from collegium.ledger.limits import Lifetime
    from collegium.ledger.places import Place

    url, key, tables, released = argv
    table = pd.read_csv(Path(tables, "private.csv"))
    try:
        ledger = Place(url, Path(key), "://" in url).made(Neighbours.ADD_OR_REMOVE)
        budgets = cg.Policy(LEVELS).assign(table["privacy"], owners=table["person"])
        limits = {
            name: Lifetime().limit(budget).mu_squared for name, budget in budgets.groups.items()
        }
        at_most, costs = (
            {name: Cost(share * limit) for name, limit in limits.items()} for share in BARE
        )
        name = Path(released).name
        is_drawn = Path(released).exists()
        if is_drawn:
            reservation = ledger.reservation(name, budgets, all_is_drawn=True)
        else:
            reservation = ledger.reserve(
                name, name, budgets, at_most, neighbours=Neighbours.ANY_CHANGE, again=True
            )
        if not is_drawn:
            drawn = float(np.random.default_rng().normal())
            paid = {name: cost.mu_squared for name, cost in costs.items()}
            _write(Path(released), {"mu_squared": paid, "drawn": drawn})
        reservation.settle(costs)
    except CollegiumError as error:
        print(f"error: {error}")
        return 2
    return 0


def _write(path: Path, content: dict[str, Any]) -> None:
    from collegium.durable import write_durably

    write_durably(path, json.dumps(content).encode())
