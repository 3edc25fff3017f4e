"""What every command says: one small story for each method and each place that people keep accounts in.

A story runs commands one after the other. What they print as JSON is parted into numbers, and sentences; what
they write for people (statement, card, page, receipt) is kept whole, but for what changes from day to day.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import questions
import training
from cases import NOISE_SEED
from drivers import write_votes
from faces import as_recorded, command, ledgers_in, parted, steady, toml_of
from few_people import LEVELS, write_animals, write_people


@dataclass
class Told:
    """What a story tells: numbers by command, and texts by the name of the file that keeps them."""

    folder: Path
    numbers: dict[str, Any] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    def says(self, name: str, *arguments: object, codes: tuple[int, ...] = (0,)) -> None:
        """Run a command that prints JSON; part what it says."""
        code, printed, errors = command(*arguments)
        assert code in codes, f"{arguments}: {code}: {errors}"
        self.numbers[name], sentences = parted(as_recorded(json.loads(printed)), self.folder)
        lines = [f"{place}: {text}" for place, text in sentences.items()]
        self.words[f"{name}.json.txt"] = "\n".join([*lines, *self._noted(errors)])
        self.numbers[f"{name}: exit"] = code

    def tells(self, name: str, *arguments: object, codes: tuple[int, ...] = (0,)) -> None:
        """Run a command that prints text."""
        code, printed, errors = command(*arguments)
        assert code in codes, f"{arguments}: {code}: {errors}"
        self.words[f"{name}.txt"] = "\n".join([steady(printed, self.folder), *self._noted(errors)])
        self.numbers[f"{name}: exit"] = code

    def does(self, *arguments: object) -> None:
        """Run a command of which nothing is kept."""
        code, _, errors = command(*arguments)
        assert code == 0, f"{arguments}: {code}: {errors}"

    def keeps(self, name: str, path: Path) -> None:
        """Keep a file, as text; of figures, what they are called and what they show."""
        text = steady(path.read_text("utf-8"), self.folder)
        text = re.sub(r"(?s)<style>.*?</style>", "<style></style>", text)
        self.words[name] = "\n".join(line.rstrip() for line in text.splitlines())

    def _noted(self, errors: str) -> list[str]:
        text = steady(" ".join(errors.split()), self.folder)
        return [f"beside it: {text}"] if text else []


def _study(told: Told, toml: Path, learns: bool = True) -> None:
    """Run all commands that there are for a study."""
    out = told.folder / "study"
    told.says("plan", "plan", toml, "--json")
    told.tells("plan", "plan", toml)
    told.says("run", "run", toml, "--json")
    told.tells("run", "run", toml)
    told.says("report", "report", out, "--json")
    told.tells("report", "report", out)
    told.says("verify", "verify", out, "--json")
    told.tells("statement", "statement", out)
    told.says("statement", "statement", out, "--json")
    told.says("left", "account", "--left", out, "--json")
    told.tells("left", "account", "--left", out)
    told.says("export", "account", "--export", out)
    told.keeps("card.md", out / "release/README.md")
    told.keeps("page.html", out / "release/report.html")
    if learns:
        told.tells("predict", "predict", out, told.folder / "test.csv")


VOTES: dict[str, dict[str, Any]] = {
    **{name: training.SECTIONS[name] for name in ("study", "data", "privacy", "run", "ledger")},
    "method": {"kind": "pate"},
    "teachers": {
        "model": "sklearn.naive_bayes.GaussianNB",
        "n_teachers": 20,
        "params": {"var_smoothing": 0.05},
    },
    "aggregation": {
        "aggregator": "gnmax",
        "sigma": 4.0,
        "noise": "seeded",
        "noise_seed": NOISE_SEED,
        "max_queries": 40,
    },
}


def votes(told: Told) -> None:
    """Let teachers vote."""
    write_animals(told.folder)
    toml = told.folder / "study.toml"
    toml.write_text(toml_of(VOTES), encoding="utf-8")
    _study(told, toml)
    told.says("forget", "forget", "p3", toml, "--json", "--remove-records")


def direct(told: Told) -> None:
    """Train directly."""
    write_animals(told.folder)
    toml = told.folder / "study.toml"
    toml.write_text(toml_of(training.sections_of({})), encoding="utf-8")
    _study(told, toml)


def statistics(told: Told) -> None:
    """Ask."""
    toml = questions.write_study(told.folder, questions.sections_of())
    _study(told, toml, learns=False)


def ask(told: Told) -> None:
    """Ask a table by the command alone."""
    write_people(told.folder)
    table, schema = told.folder / "people.csv", told.folder / "schema.toml"
    whose = (
        "--privacy",
        "level",
        "--levels",
        "high=1,low=3",
        "--owner",
        "person",
        "--ledger",
        "none",
    )
    seeded = ("--noise-seed", NOISE_SEED, "--schema", schema)
    asked = ("mean income by sex where age >= 40", "median age", "count where smokes")
    told.says("plan", "ask", table, *asked, *whose, *seeded, "--plan", "--json")
    told.tells("plan", "ask", table, *asked, *whose, *seeded, "--plan")
    told.says("ask", "ask", table, *asked, *whose, *seeded, "--json")
    told.tells("ask", "ask", table, *asked, *whose, *seeded)
    told.says("schema", "schema", "show", schema, "--json")
    told.tells("schema", "schema", "show", schema)
    drafted = told.folder / "drafted.toml"
    told.does("schema", "init", told.folder / "people.csv", "--out", drafted)
    told.keeps("drafted.toml", drafted)


def label(told: Told) -> None:
    """Label with votes of an ensemble of one's own."""
    names = write_votes(told.folder)
    told.says(
        "label", "label", "--votes", names["VOTES"], "--budgets", names["BUDGETS-TEACHERS"], "--classes",
        "10", "--sigma", "5", "--sigma-threshold", "7", "--threshold", "7", "--noise-seed", "3", "--out",
        names["FOLDER"], "--json",
    )  # fmt: skip
    told.tells("statement", "statement", names["FOLDER"])
    told.says("statement", "statement", names["FOLDER"], "--json")
    told.says("report", "report", names["FOLDER"], "--json", codes=(0, 2))


def ledger(told: Told) -> None:
    """Keep one account per person: make it, use it, look at it, change minds, leave, and tell people."""
    write_animals(told.folder)
    toml, place = told.folder / "study.toml", told.folder / "people.ledger"
    sections = training.sections_of(training.ON_A_LEDGER)
    del sections["descent"]["noise_seed"]
    toml.write_text(toml_of(sections), encoding="utf-8")
    with ledgers_in(told.folder):
        told.tells("init", "ledger", "init", place)
        told.says("run", "run", toml, "--json")
        told.says("left", "account", "--left", told.folder / "study", "--json")
        told.tells("left", "account", "--left", told.folder / "study")
        told.says("statement", "statement", told.folder / "study", "--json")
        told.tells("statement", "statement", told.folder / "study")
        told.says("show", "ledger", "show", place, "--json")
        told.tells("show", "ledger", "show", place)
        told.says("history", "ledger", "history", place, "--json")
        told.tells("verify", "ledger", "verify", place)
        told.tells("receipt", "receipt", "p1", "--ledger", place)
        told.does("receipt", "p1", "--ledger", place, "--html", told.folder / "receipt.html")
        told.keeps("receipt.html", told.folder / "receipt.html")
        told.tells("forget", "ledger", "forget", place, "p3")
    told.numbers["run"].pop("accuracy", None)
    for name in (
        "quality",
        "verdict",
        "student_accuracy",
        "choice",
    ):  # of a model with private noise
        told.numbers["run"].pop(name, None)
    kept = [
        line for line in told.words["run.json.txt"].splitlines() if line.startswith("statement")
    ]
    told.words["run.json.txt"] = "\n".join(kept)


def registry(told: Told) -> None:
    """Register releases, which takes noise that is private: what depends on it is no part of a record."""
    write_animals(told.folder)
    secure = {**VOTES, "aggregation": {**VOTES["aggregation"], "noise": "secure"}}
    del secure["aggregation"]["noise_seed"]
    trained = training.sections_of({"descent": {"noise": "secure"}})
    del trained["descent"]["noise_seed"]
    for name, sections in {"votes": secure, "direct": trained}.items():
        toml = told.folder / f"{name}.toml"
        toml.write_text(toml_of(sections), encoding="utf-8")
        told.does("run", toml)
        told.says(name, "statement", told.folder / name, "--format", "registry")


def account(told: Told) -> None:
    """Tell what queries would cost, and compare theorems."""
    levels = ("--level", "high=1:540", "--level", "low=3:90", "--answers", "40")
    told.says("account", "account", *levels, "--json")
    told.tells("account", "account", *levels)
    events = ("100 x laplace(0.1)", "gaussian(40)", "argmax(30)", "exponential(0.1)", "pure(0.2)")
    told.says("compare", "account", "--compare", *events, "--json")
    told.tells("compare", "account", "--compare", *events)


def audit(told: Told) -> None:
    """Attack a mechanism; what the attack finds comes from noise that nobody can seed, and is left out."""
    told.says(
        "audit", "audit", "mechanism", "--runs", "200", "--queries", "2", "--teachers", "20", "--aggregator",
        "gnmax", "--sigma", "3", "--level", "high=20:60", "--level", "low=40:40", "--confidence", "0.999999",
        "--json",
    )  # fmt: skip
    for group in told.numbers["audit"]["groups"].values():
        for name in [name for name in group if "rate" in name or "lower" in name]:
            group[name] = None


def beginning(told: Told) -> None:
    """Begin a study, and explain a policy."""
    write_animals(told.folder)
    made = told.folder / "made.toml"
    told.tells(
        "init", "init", made, "--from", told.folder / "private.csv", "--public", told.folder / "public.csv",
        "--target", "kind", "--owner", "who", "--privacy", "level", "--levels", "high=2,low=6",
    )  # fmt: skip
    told.keeps("made.toml", made)
    every_key = told.folder / "every-key.toml"
    told.does("init", every_key, "--all-keys")
    told.keeps("every-key.toml", every_key)
    policy = told.folder / "policy.toml"
    levels = ", ".join(f"{name} = {epsilon}" for name, epsilon in LEVELS.items())
    policy.write_text(
        f"delta = 1e-5\n[levels]\n{levels.replace(', ', chr(10))}\n", encoding="utf-8"
    )
    told.tells("policy", "policy", "explain", policy)


Story = Callable[[Told], None]
STORIES: Mapping[str, Story] = {
    one.__name__: one
    for one in (votes, direct, statistics, ask, label, ledger, registry, account, audit, beginning)
}
