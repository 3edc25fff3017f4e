"""Malformed inputs over commands and Python, seeded: each must end soon, in one line or in success.

``python benchmarks/malformed.py`` tries 500; ``--number 60`` a few of each kind. What fails is listed: a
traceback (an exception that is not Collegium's), more than one line, another exit status, or a hang.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collegium import Budget, Budgets, GNMax, PATEClassifier, Policy, Queries
from collegium.checks import shown
from collegium.cli.main import main
from collegium.errors import CollegiumError

SECONDS = 60  # of processor time, after which an input hangs; ten times as many by the clock

STUDY = """
[study]
seed = 1
[data]
private = "private.csv"
public = "public.csv"
target = "kind"
classes = ["cat", "dog"]
[privacy]
levels = { high = 8.0, low = 16.0 }
column = "level"
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 6
[aggregation]
aggregator = "gnmax"
sigma = 6
max_queries = 10
[student]
model = "sklearn.naive_bayes.GaussianNB"
[run]
n_jobs = 1
"""
KEYS = [line.split(" = ")[0] for line in STUDY.splitlines() if " = " in line]
VALUES = [
    *(
        "1e400",
        "-1e400",
        "inf",
        "nan",
        "-1",
        "0",
        "1e308",
        "9" * 400,
        "9" * 5000,
        "true",
        "[]",
        "{}",
    ),
    *(
        '""',
        '" "',
        '"\\u0000"',
        '"../../.."',
        '"\\u001b[2J"',
        '"=1+1"',
        "[[]]",
        "{ a = {} }",
        "[1, 'a']",
    ),
    *(
        "1979-05-27",
        "[" * 3000,
        '"' + "x" * 100_000 + '"',
        "{ high = 1e400, low = 1 }",
        '["a", "a"]',
    ),
    "[" + ", ".join(f'"{number}"' for number in range(100_002)) + "]",
]
JSONS = [
    *(
        "",
        "[]",
        "{}",
        "null",
        "0",
        '"text"',
        "[null]",
        '{"a": 1}',
        "[" * 5000,
        "[" * 900 + "]" * 900,
        "1e400",
    ),
    *('{"asked": "x", "stop_reason": 3}', '{"asked": 1e400}', "\x00", "\ud800", '{"format": [1]}'),
]
CELLS = [
    *(
        "",
        "1e400",
        "-1e400",
        "nan",
        "inf",
        "x",
        "=1+1",
        "\x1b[31m",
        "\x00",
        "9" * 400,
        '"',
        '"a\nb"',
        ",",
        ";",
    ),
    *("1,5", "\ud7ff", "High", " high", "1e-400", "True", "[]", "'", "\t", "\r"),
]
OBJECTS: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        3.0,
        1e308,
        float("inf"),
        float("nan"),
        "1e400",
        "3",
        b"3",
        [],
        [[]],
        {},
        {"a": 1},
    ),
    *(
        object(),
        [1, "a"],
        [[1], [2, 3]],
        np.zeros((0, 2)),
        np.zeros((3, 0)),
        np.zeros(3),
        np.array("x"),
    ),
    *(
        np.array([1 + 2j]),
        pd.DataFrame(),
        pd.Series([1, "a"]),
        10**400,
        -(10**5000),
        [None] * 90,
        ["x"] * 90,
    ),
    *(
        np.full(90, np.inf),
        np.full(90, "1e400"),
        np.arange(90) / 7,
        [{}] * 90,
        [1, "a", None] * 30,
        lambda: 0,
    ),
]


class Malformed:
    """Makes inputs; each is a name and what to do."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._study = folder / "study"
        self._study.mkdir()
        self._write_study(self._study)
        self._job = folder / "job"
        self._job.mkdir()
        votes = self._numbers.integers(0, 3, (20, 12))
        np.save(self._job / "votes.npy", votes)
        (self._job / "budgets.csv").write_text("epsilon\n20\n", encoding="utf-8")
        with quiet():
            _exit_status("run", str(self._study / "study.toml"))
            _exit_status(*self._label(self._job))

    def _write_study(self, folder: Path) -> None:
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        for name, count in {"private": 120, "public": 30}.items():
            kind = self._numbers.integers(0, 2, count)
            table = pd.DataFrame({"height": kind + self._numbers.normal(0, 0.2, count)})
            table["weight"] = self._numbers.normal(0, 1, count)
            table["kind"] = np.array(["cat", "dog"])[kind]
            if name == "private":
                table["level"] = np.array(["high", "low"])[self._numbers.integers(0, 2, count)]
            table.to_csv(folder / f"{name}.csv", index=False)

    def _label(self, folder: Path) -> list[str]:
        given = {"--votes": "votes.npy", "--budgets": "budgets.csv", "--out": "labels"}
        options = [text for name, file in given.items() for text in (name, str(folder / file))]
        return ["label", *options, "--classes", "3", "--votes-are", "predictions", "--sigma", "5"]

    def _copy(self, source: Path) -> Path:
        copy = Path(tempfile.mkdtemp(dir=self._folder))
        shutil.copytree(source, copy, dirs_exist_ok=True)
        return copy

    def toml(self) -> tuple[str, Callable[[], Any]]:
        """A study's file with another value, or damaged."""
        folder, text = self._copy(self._study), STUDY
        key, value = self._random.choice(KEYS), self._random.choice(VALUES)
        lines = [
            f"{key} = {value}" if line.startswith(key + " = ") else line
            for line in text.splitlines()
        ]
        if self._random.random() < 0.2:
            place = self._random.randrange(len(text))
            lines = (text[:place] + self._random.choice(VALUES)[:50] + text[place:]).splitlines()
        (folder / "study.toml").write_text("\n".join(lines), encoding="utf-8")
        return f"{key} = {value[:30]}", lambda: _command("plan", str(folder / "study.toml"))

    def table(self) -> tuple[str, Callable[[], Any]]:
        """A table with another cell, header or byte, or a bomb."""
        folder, cell = self._copy(self._study), self._random.choice(CELLS)
        path = folder / self._random.choice(["private.csv", "public.csv"])
        lines = path.read_text(encoding="utf-8").splitlines()
        what = self._random.choice(
            ["cell"] * 6 + ["header", "bytes", "bomb", "wide", "same", "empty"]
        )
        if what in ("cell", "header"):
            row = 0 if what == "header" else self._random.randrange(1, len(lines))
            cells = lines[row].split(",")
            cells[self._random.randrange(len(cells))] = cell
            lines[row] = ",".join(cells)
            path.write_text("\n".join(lines), encoding="utf-8")
        elif what == "bytes":
            content = bytearray(path.read_bytes())
            for _ in range(5):
                content[self._random.randrange(len(content))] = self._random.randrange(256)
            path.write_bytes(content)
        elif what == "bomb":
            path.write_bytes(gzip.compress(lines[0].encode() + b"\n" + b"0" * (1 << 28), 1))
        elif what == "wide":
            columns = ",".join(f"c{number}" for number in range(10**6))
            path.write_text(f"{columns}\n{','.join(['1'] * 10**6)}\n", encoding="utf-8")
        elif what == "same":
            table = pd.read_csv(folder / "private.csv")
            table.drop(columns="level").to_csv(folder / "public.csv", index=False)
        else:
            path.write_text(self._random.choice(["", "\n", "a\n", lines[0]]), encoding="utf-8")
        return f"{path.name}: {what} {cell!r}"[:60], lambda: _command(
            "plan", str(folder / "study.toml")
        )

    def kept(self) -> tuple[str, Callable[[], Any]]:
        """A study's or a label job's folder with a damaged file."""
        study = self._random.random() < 0.6
        folder = self._copy(self._study if study else self._job)
        out = folder / ("study" if study else "labels")
        path = self._random.choice(sorted(out.rglob("*.json")))
        content = self._random.choice(JSONS)
        path.write_text(content, encoding="utf-8", errors="surrogatepass")
        commands = [
            ["account", "--remaining", str(out)],
            ["account", "--export", str(out)],
            ["report", str(out)],
        ]
        commands.append(["run", str(folder / "study.toml")] if study else self._label(folder))
        command = self._random.choice([*commands, commands[-1], commands[-1]])
        return f"{command[0]}: {path.name} is {content[:20]!r}", lambda: _command(*command)

    def votes(self) -> tuple[str, Callable[[], Any]]:
        """Votes and budgets of somebody else, damaged."""
        folder, cell = self._copy(self._job), self._random.choice(CELLS)
        shutil.rmtree(folder / "labels")
        command = self._label(folder)
        what = self._random.choice(["epsilon", "column", "csv", "bytes", "shape", "option"])
        if what == "epsilon":
            (folder / "budgets.csv").write_text(f"epsilon\n{cell}\n", encoding="utf-8")
        elif what == "column":
            column = self._random.choice(
                ["group", "delta", "owners", "teachers_per_owner", "teacher", cell]
            )
            (folder / "budgets.csv").write_text(f"epsilon,{column}\n9,{cell}\n", encoding="utf-8")
        elif what == "csv":
            (folder / "votes.csv").write_text(f"0,1,{cell}\n1,2,0\n", encoding="utf-8")
            command[2] = str(folder / "votes.csv")
        elif what == "bytes":
            content = bytearray((folder / "votes.npy").read_bytes())
            for _ in range(4):
                content[self._random.randrange(len(content))] = self._random.randrange(256)
            (folder / "votes.npy").write_bytes(content)
        elif what == "shape":
            shape = self._random.choice([(0, 3), (3, 0), (3,), (2, 2, 2), ()])
            np.save(
                folder / "votes.npy", np.zeros(shape, self._random.choice([int, float, complex]))
            )
        else:
            name = self._random.choice(
                ["--classes", "--sigma", "--out", "max_labels", "aggregator"]
            )
            value = self._random.choice(["", "1e400", "nan", "-1", "x", "0", "99999999999"])
            if not name.startswith("--"):
                settings = folder / "settings.toml"
                settings.write_text(f"[aggregation]\n{name} = {value}\n", encoding="utf-8")
                name, value = "--settings", str(settings)
            command += [name, value]
        return f"{what} {cell!r} {command[-2:]}"[:60], lambda: _command(*command)

    def account(self) -> tuple[str, Callable[[], Any]]:
        """Amounts that nobody has."""
        number = self._random.choice(
            ["1e400", "nan", "-1", "0", "1e-400", "1e11", "x", "", "9" * 400, "inf"]
        )
        people = self._random.choice(["5", "500", "0", "-1", "9" * 30, "1e3", ""])
        command = ["account", "--level", f"{self._random.choice(CELLS)}={number}:{people}"]
        if self._random.random() < 0.7:
            command = ["account", "--level", "low=8:500"]
            name = self._random.choice(
                ["--answers", "--delta", "--teachers", "--sigma", "--threshold"]
            )
            command += [name, self._random.choice([number, "100000000000"])]
        return " ".join(map(repr, command[1:]))[:60], lambda: _command(*command)

    def python(self) -> tuple[str, Callable[[], Any]]:
        """Objects that are no records, labels, budgets or settings."""
        kind = self._numbers.integers(0, 2, 120)
        X = np.column_stack([kind, self._numbers.normal(size=120)])
        given: dict[str, Any] = {"X": X[:90], "y": kind[:90], "budgets": 9.0, "X_public": X[90:]}
        settings: dict[str, Any] = {"n_teachers": 4, "aggregator": GNMax(sigma=5), "noise_seed": 1}
        wrong = self._random.choice(OBJECTS)
        where = self._random.choice(
            [
                *given,
                *given,
                "n_teachers",
                "aggregator",
                "classes",
                "Budget",
                "Policy",
                "Budgets",
                "Queries",
            ]
        )
        calls: dict[str, Callable[[], Any]] = {
            "Budget": lambda: Budget(wrong),
            "Policy": lambda: Policy({"a": wrong}).assign(["a", "a"]),
            "Budgets": lambda: Budgets.from_epsilons(wrong),
            "Queries": lambda: Queries(max_queries=wrong),
        }
        if where in given:
            given[where] = wrong
        elif where not in calls:
            settings[where] = wrong

        def fit() -> None:
            with contextlib.suppress(CollegiumError):
                if where in calls:
                    calls[where]()
                else:
                    PATEClassifier(**settings).fit(**given)

        return f"{where}: {shown(wrong)}", fit


KINDS = ("toml", "table", "kept", "votes", "account", "python")


@contextlib.contextmanager
def quiet() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Catch what is printed."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield out, err


def _exit_status(*arguments: str) -> Any:
    before, sys.argv = sys.argv, ["collegium", *arguments]
    try:
        main()
    except SystemExit as ended:
        return ended.code
    finally:
        sys.argv = before


def _command(*arguments: str) -> None:
    with quiet() as (out, err):
        code = _exit_status(*arguments)
    lines = [
        line for line in err.getvalue().splitlines() if not line.startswith(("warning: ", "Note: "))
    ]
    shown = out.getvalue() + err.getvalue()
    if code not in (0, 2) or (code == 2 and len(lines) != 1):
        raise AssertionError(f"exit status {code} with {len(lines)} lines")
    if any((ord(letter) < 32 and letter != "\n") or 127 <= ord(letter) < 160 for letter in shown):
        raise AssertionError("what a terminal obeys was printed")


def _hangs(*_: object) -> None:
    raise TimeoutError("hangs")


def attack(number: int, seed: int, kinds: tuple[str, ...] = KINDS) -> dict[str, list[str]]:
    """Try so many inputs of all kinds in turn; return, by kind, a line for each that failed."""
    failed: dict[str, list[str]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        malformed = Malformed(Path(folder), seed)
        before = {sent: signal.signal(sent, _hangs) for sent in (signal.SIGPROF, signal.SIGALRM)}
        try:
            for count in range(number):
                kind = kinds[count % len(kinds)]
                name, act = getattr(malformed, kind)()
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)
                try:
                    with quiet():
                        act()
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    failed[kind].append(f"{name}: {type(error).__name__} {str(error)[:80]!r}")
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                    signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            for sent, handler in before.items():
                signal.signal(sent, handler)
    return failed


def _table(number: int, failed: dict[str, list[str]], seconds: float) -> None:
    tried = Counter(KINDS[count % len(KINDS)] for count in range(number))
    for kind in KINDS:
        print(f"{kind:<10} {tried[kind]:>5} inputs  {len(failed[kind]):>4} failed")
    print(
        json.dumps(
            {"inputs": number, "failed": sum(map(len, failed.values())), "seconds": round(seconds)}
        )
    )
    for kind, lines in failed.items():
        for line in lines:
            print(f"  {kind}: {line}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    result = attack(options.number, options.seed)
    _table(options.number, result, time.monotonic() - start)
    sys.exit(any(result.values()))
