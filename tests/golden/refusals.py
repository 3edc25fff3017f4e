"""What is refused: bad files, options, budgets, tables and ledgers.

Recorded is the class of the error (of a command: how it ends) and what the message names: the key of the
file, the option or the argument. How it is said is nobody's business here.
"""

from __future__ import annotations

import math
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import questions
import training
from drivers import Entry, write_votes
from faces import (
    KEYS,
    OPTIONS,
    command,
    key_of_today,
    ledgers_in,
    of_today,
    parameters_of,
    toml_of,
)
from few_people import (
    KINDS,
    LEVELS,
    MEASURED,
    SCHEMA,
    people,
    private_animals,
    public_animals,
    write_animals,
    write_people,
)
from label_options import LABEL_KEYS
from stories import VOTES

import collegium as cg

# --- files of a study -------------------------------------------------------------------------------------

#: Keys by what they hold.
TEXT = [
    "study.name",
    "data.dataset",
    "data.target",
    "data.owner",
    "data.missing",
    "data.separator",
    "data.decimal",
    "privacy.column",
    "privacy.guarantee",
    "privacy.conversion",
    "privacy.bounds",
    "privacy.price",
    "method.kind",
    "preprocessing.kind",
    "preprocessing.categorical",
    "preprocessing.normalise",
    "descent.start",
    "descent.noise",
    "descent.sampling",
    "descent.bound",
    "descent.schedule",
    "descent.neighbours",
    "descent.accountant",
    "statistics.noise",
    "statistics.weights",
    "statistics.neighbours",
    "teachers.model",
    "teachers.assignment",
    "personalisation.method",
    "personalisation.rule",
    "aggregation.aggregator",
    "aggregation.noise",
    "aggregation.release",
    "aggregation.query_order",
    "student.model",
    "student.preprocessing",
    "student.targets",
    "student.goal",
    "ledger.url",
    "run.engine",
    "run.address",
    "data.private",
    "data.private_labels",
    "data.public",
    "data.public_labels",
    "data.test",
    "data.test_labels",
    "privacy.file",
    "statistics.schema",
    "ledger.key",
    "run.data_dir",
]
CHOICES = [
    "data.dataset",
    "data.decimal",
    "privacy.guarantee",
    "privacy.conversion",
    "privacy.orders",
    "privacy.bounds",
    "privacy.price",
    "method.kind",
    "preprocessing.kind",
    "preprocessing.categorical",
    "preprocessing.normalise",
    "descent.start",
    "descent.noise",
    "descent.sampling",
    "descent.bound",
    "descent.schedule",
    "descent.neighbours",
    "descent.accountant",
    "statistics.noise",
    "statistics.weights",
    "statistics.neighbours",
    "teachers.assignment",
    "personalisation.method",
    "aggregation.aggregator",
    "aggregation.noise",
    "aggregation.release",
    "aggregation.query_order",
    "student.preprocessing",
    "student.targets",
    "student.goal",
]
YES_OR_NO = [
    "data.public_may_overlap",
    "data.scales_may_differ",
    "ledger.newcomers",
    "run.streaming",
]
LISTS = [
    "data.not_people",
    "data.exclude",
    "data.classes",
    "privacy.public",
    "statistics.questions",
    "statistics.calibrated",
]
TABLES = [
    "data.types",
    "privacy.levels",
    "privacy.sizes",
    "privacy.shares",
    "teachers.params",
    "teachers.class_shares",
    "student.params",
    "student.class_shares",
]
#: Numbers, with values beyond what they may be.
WHOLE = {
    "study.seed": [-1, 2**32],
    "data.private_records": [0], "data.public_records": [0], "data.test_records": [0],
    "preprocessing.components": [0], "descent.noise_seed": [-1], "descent.steps": [0, 10**7],
    "descent.components": [0], "statistics.noise_seed": [-1, 2**32], "teachers.n_teachers": [0],
    "personalisation.max_duplicates": [0, 1001], "personalisation.precision": [-1, 7],
    "personalisation.shuffle_every": [0], "personalisation.partitions": [1, 1001],
    "aggregation.answers": [0], "aggregation.refit_every": [0], "aggregation.max_queries": [0],
    "aggregation.max_labels": [0], "aggregation.noise_seed": [-1], "run.n_jobs": [0, 10**5],
}  # fmt: skip
NUMBERS = {
    "privacy.delta": [0, 1, -1e-5], "preprocessing.whiten": [-0.1, 1.1], "descent.filter": [0.5, 101],
    "descent.rate": [0, 1], "descent.clip_norm": [0, 1e7], "descent.learning_rate": [0, 1e7],
    "descent.momentum": [-0.1, 1], "descent.averaging": [-0.1, 1.1], "statistics.spend": [0, 1.1],
    "statistics.confidence": [0, 1], "personalisation.tolerance": [-0.1, 1],
    "personalisation.noise_to_votes": [-1], "aggregation.threshold": [], "aggregation.sigma_threshold": [0],
    "aggregation.sigma": [0], "aggregation.gamma": [0], "aggregation.confidence": [-0.1, 1.1],
}  # fmt: skip
OTHERS: list[tuple[str, str, Any]] = [
    ("votes", "privacy.levels", {"high": -1.0, "low": 1.0}),
    ("votes", "privacy.levels", {}),
    ("votes", "privacy.levels", {"high": "1"}),
    ("votes", "privacy.shares", {"high": 0.5, "low": 0.6}),
    ("votes", "privacy.shares", {"high": 0.5, "low": 0.5}),
    ("votes", "privacy.sizes", {"high": -1, "low": 3}),
    ("votes", "privacy.sizes", {"other": 10}),
    ("votes", "privacy.public", ["high"]),
    ("votes", "privacy.orders", [0.5]),
    ("votes", "privacy.file", "levels.csv"),
    ("votes", "privacy.bounds", "papers"),
    ("votes", "privacy.column", None),
    ("votes", "privacy.levels", None),
    ("votes", "data.private", None),
    ("votes", "data.public", None),
    ("votes", "data.target", None),
    ("votes", "data.classes", ["cat"]),
    ("votes", "data.classes", ["cat", "cat", "dog", "owl"]),
    ("votes", "data.types", {"a": "colour"}),
    ("votes", "data.separator", ";;"),
    ("votes", "data.dataset", "digits"),
    ("votes", "data.private_records", 10),
    ("votes", "data.private_labels", "labels.npy"),
    ("votes", "teachers.class_shares", {"cat": 0.5, "dog": 0.2, "owl": 0.2}),
    ("votes", "teachers.params", {"no_such": 1}),
    ("votes", "teachers.model", "no_such"),
    ("votes", "teachers.model", "os.path.join"),
    ("votes", "student.class_shares", {"cat": 1.0}),
    ("votes", "student.params", {"no_such": 1}),
    ("votes", "student.model", "no_such"),
    ("votes", "personalisation.shuffle_every", 5),
    ("votes", "personalisation.max_duplicates", 5),
    ("votes", "personalisation.rule", "no_such"),
    ("votes", "aggregation.threshold", 5.0),
    ("votes", "aggregation.gamma", 0.1),
    ("votes", "aggregation.answers", 10),
    ("votes", "run.address", "nowhere"),
    ("votes", "run.engine", "no_such"),
    ("votes", "run.streaming", True),
    ("votes", "descent.steps", 8),
    ("votes", "statistics.questions", ["count"]),
    ("direct", "teachers.n_teachers", 20),
    ("direct", "personalisation.method", "weighting"),
    ("direct", "aggregation.sigma", 4.0),
    ("direct", "statistics.questions", ["count"]),
    ("direct", "privacy.orders", "seeds"),
    ("direct", "privacy.conversion", "mironov"),
    ("direct", "privacy.guarantee", "data-dependent"),
    ("direct", "student.targets", "argmax"),
    ("direct", "descent.rate", 0.2),
    ("direct", "descent.sampling", "sample"),
    ("direct", "run.streaming", True),
    ("direct", "run.engine", "dask"),
    ("statistics", "statistics.questions", []),
    ("statistics", "statistics.questions", ["mean nothing"]),
    ("statistics", "statistics.questions", ["mean income where"]),
    ("statistics", "statistics.questions", ["select * from people"]),
    ("statistics", "statistics.questions", ["count by sex", "count by sex"]),
    ("statistics", "statistics.calibrated", ["mean age"]),
    ("statistics", "statistics.schema", None),
    ("statistics", "statistics.schema", "no-such.toml"),
    ("statistics", "data.public", "public.csv"),
    ("statistics", "data.target", "age"),
    ("statistics", "data.test", "test.csv"),
    ("statistics", "descent.steps", 8),
    ("statistics", "teachers.n_teachers", 20),
    ("statistics", "aggregation.sigma", 4.0),
    ("statistics", "student.goal", "auc"),
    ("statistics", "preprocessing.kind", "none"),
    ("statistics", "run.streaming", True),
    ("statistics", "run.engine", "dask"),
    ("statistics", "privacy.shares", {"high": 0.5, "low": 0.5}),
    ("statistics", "privacy.orders", "seeds"),
    ("statistics", "privacy.guarantee", "data-dependent"),
]
BASES: dict[str, dict[str, dict[str, Any]]] = {
    "votes": VOTES,
    "direct": training.SECTIONS,
    "statistics": questions.SECTIONS,
}
_ALL = [*TEXT, *YES_OR_NO, *LISTS, *TABLES, *WHOLE, *NUMBERS]


def _files() -> Iterator[tuple[str, str, Any]]:
    """List kind of study, key and bad value; None: the key is missing."""
    for wrong, keys in (
        (3, TEXT), ("nonsense", CHOICES), ("true", YES_OR_NO), (1, LISTS), ("x", TABLES),
        (1.5, WHOLE), ("1", NUMBERS), (math.nan, NUMBERS),
    ):  # fmt: skip
        for key in keys:
            yield _base_of(key), key, wrong
    for key, values in {**WHOLE, **NUMBERS}.items():
        for value in values:
            yield _base_of(key), key, value
    for section in dict.fromkeys(key.partition(".")[0] for key in _ALL):
        yield _base_of(f"{section}."), f"{section}.no_such", 1
    yield from OTHERS


def _base_of(key: str) -> str:
    return {"descent": "direct", "statistics": "statistics"}.get(key.partition(".")[0], "votes")


def _file(base: str, key: str, value: Any, folder: Path) -> Entry:
    section, _, name = key.partition(".")
    sections = {one: dict(keys) for one, keys in BASES[base].items()}
    sections.setdefault(section, {})[name] = value
    if value is None:
        del sections[section][name]
    toml = folder / base / "study.toml"
    toml.write_text(toml_of(sections), encoding="utf-8")
    keys = [key, *(one for one in _ALL if one != key)]
    return _told(lambda: cg.plan(toml), keys, key_of_today)


def _told(act: Callable[[], Any], names: list[str], called: Callable[[str], str]) -> Entry:
    """Say how it is refused, and which of the names the message has: the first, or else any other."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            act()
    except (cg.CollegiumError, TypeError) as error:
        return {"error": type(error).__name__, "names": _named(str(error), names, called)}
    return {"error": None, "names": None}


def _named(message: str, names: list[str], called: Callable[[str], str]) -> str | None:
    for name in names:
        if re.search(rf"(?<![\w.-]){re.escape(called(name))}(?![\w-])", message):
            return name
    return None


# --- command lines ----------------------------------------------------------------------------------------

_ACCOUNT = "account --level high=1:540 --level low=3:90"
_ASK = "ask PEOPLE count --schema SCHEMA --ledger none --owner person"
_WHOSE = "--privacy level --levels high=1,low=3"
_LABEL = "label --votes VOTES --budgets BUDGETS-TEACHERS --classes 10 --out FOLDER/out"
_LEDGER = "FOLDER/no.ledger"
#: Command lines; words in capitals are files.
COMMANDS = f"""
no-such-command
run
run FOLDER/no-such.toml
run TEXT
run STUDY --engine no-such
run STUDY --address nowhere
run STUDY --no-such-option
run STUDY --out TEXT
plan
plan FOLDER/no-such.toml
plan STUDY --what-if high
plan STUDY --what-if other=1
plan STUDY --what-if high=-1
plan STUDY --what-if high=x
plan STUDY --optimise nonsense
plan STUDY --optimise labels
report FOLDER/no-such
report FOLDER
verify FOLDER/no-such
verify FOLDER
statement FOLDER/no-such
statement FOLDER
statement FOLDER --format nonsense
predict FOLDER TABLE
predict FOLDER/no-such TABLE
onnx FOLDER TABLE
audit nonsense
audit mechanism --runs 0
audit mechanism --queries 0
audit mechanism --teachers 0
audit mechanism --level high
audit mechanism --level high=1
audit mechanism --aggregator nonsense
audit mechanism --personalisation nonsense
audit mechanism --observe nonsense
audit mechanism --release nonsense
audit mechanism --confidence 1.5
audit mechanism --delta 2
account
account --level high=1
account --level high=x:3
account --level high=1:0
account --level high=-1:5
account --level high=1:5 --level high=2:5
{_ACCOUNT} --delta 0
{_ACCOUNT} --delta 1
{_ACCOUNT} --teachers 0
{_ACCOUNT} --checks -1
{_ACCOUNT} --answers -1
{_ACCOUNT} --answers x
{_ACCOUNT} --personalisation nonsense
{_ACCOUNT} --rule nonsense
{_ACCOUNT} --aggregator nonsense
{_ACCOUNT} --sigma 0
{_ACCOUNT} --sigma -1
{_ACCOUNT} --sigma nan
{_ACCOUNT} --gamma 0.1
{_ACCOUNT} --aggregator lnmax --sigma 1
{_ACCOUNT} --aggregator lnmax --gamma 0
{_ACCOUNT} --aggregator gnmax --threshold 3
{_ACCOUNT} --price nonsense
{_ACCOUNT} --aggregator lnmax --price labels
{_ACCOUNT} --left FOLDER
{_ACCOUNT} gaussian(40)
account --left FOLDER/no-such
account --left FOLDER
account --export FOLDER
account --left FOLDER --export FOLDER
account --compare
account --compare gaussian(0)
account --compare nonsense(1)
account --compare gaussian
account --compare gaussian(40) --group 0
account --compare gaussian(40) --delta 0
account --compare 0x gaussian(40)
ask PEOPLE
ask PEOPLE count
ask FOLDER/no-such.csv count {_WHOSE} --schema SCHEMA
{_ASK}
{_ASK} --privacy no-such --levels high=1,low=3
{_ASK} --privacy level
{_ASK} --privacy level --levels high=1
{_ASK} --privacy level --levels high
{_ASK} --privacy level --levels high=-1,low=3
{_ASK} --levels high=1,low=3
{_ASK} --epsilon 0
{_ASK} --epsilon -1
{_ASK} --epsilon 1 {_WHOSE}
{_ASK} --epsilon 1 --delta 1
{_ASK} --epsilon 1 --policy TEXT
{_ASK} {_WHOSE} --policy TEXT
{_ASK} {_WHOSE} --spend 0
{_ASK} {_WHOSE} --spend 2
{_ASK} {_WHOSE} --neighbours nonsense
{_ASK} {_WHOSE} --noise nonsense
{_ASK} {_WHOSE} --weights nonsense
{_ASK} {_WHOSE} --confidence 1
{_ASK} {_WHOSE} --noise-seed -1
{_ASK} {_WHOSE} --decimal x
{_ASK} {_WHOSE} --record TEXT
{_ASK} {_WHOSE} --out TEXT
ask PEOPLE count --schema TEXT --epsilon 1
ask PEOPLE count --schema FOLDER/no-such.toml --epsilon 1
ask PEOPLE nonsense --schema SCHEMA --epsilon 1
ask PEOPLE median --schema SCHEMA --epsilon 1
schema show FOLDER/no-such.toml
schema show TEXT
schema init FOLDER/no-such.csv
schema init PEOPLE --out SCHEMA
label
label --votes VOTES --budgets BUDGETS-TEACHERS
label --votes VOTES --budgets BUDGETS-TEACHERS --out FOLDER/out
label --votes TEXT --budgets BUDGETS-TEACHERS --classes 10 --out FOLDER/out
label --votes VOTES --budgets TEXT --classes 10 --out FOLDER/out
label --votes VOTES --budgets BUDGETS-COPIES --classes 10 --out FOLDER/out
label --votes VOTES --budgets BUDGETS-TEACHERS --classes 3 --out FOLDER/out
label --votes VOTES --budgets BUDGETS-TEACHERS --classes 10 --out TEXT
{_LABEL} --votes-are nonsense
{_LABEL} --votes-are counts
{_LABEL} --classes 0
{_LABEL} --classes 20000
{_LABEL} --personalisation nonsense
{_LABEL} --rule nonsense
{_LABEL} --aggregator nonsense
{_LABEL} --aggregator interactive
{_LABEL} --aggregator gnmax --threshold 3
{_LABEL} --sigma 0
{_LABEL} --gamma 1
{_LABEL} --confidence 0.5
{_LABEL} --refit-every 5
{_LABEL} --price nonsense
{_LABEL} --guarantee nonsense
{_LABEL} --guarantee data-dependent --release histogram
{_LABEL} --guarantee data-dependent --price labels
{_LABEL} --conversion nonsense
{_LABEL} --orders nonsense
{_LABEL} --max-labels 0
{_LABEL} --max-queries 0
{_LABEL} --release nonsense
{_LABEL} --aggregator pfmax --release histogram
{_LABEL} --shuffle-seed -1
{_LABEL} --noise-seed -1
{_LABEL} --people FOLDER/no-such.csv
{_LABEL} --people TABLE
init TEXT
init FOLDER/new.toml --from FOLDER/no-such.csv
init FOLDER/new.toml --from TABLE --public FOLDER/no-such.csv
init FOLDER/new.toml --from TABLE --target no-such
init FOLDER/new.toml --from TABLE --levels high
init FOLDER/new.toml --public TABLE
init FOLDER/new.toml --all-keys --from TABLE
init FOLDER/new.toml --from TABLE --owner who --no-owner
forget p1
forget p1 FOLDER/no-such.toml
forget nobody STUDY
forget p1 STUDY STUDY --out FOLDER/out
policy explain FOLDER/no-such.toml
policy explain TEXT
receipt p1 --ledger {_LEDGER}
receipt --ledger {_LEDGER}
receipt p1 --all TABLE --ledger {_LEDGER}
receipt p1
ledger init TEXT
ledger show {_LEDGER}
ledger show TEXT
ledger history {_LEDGER}
ledger history TEXT
ledger verify {_LEDGER}
ledger verify TEXT
ledger export {_LEDGER}
ledger change {_LEDGER} TABLE
ledger settle {_LEDGER} nothing
ledger forget {_LEDGER} p1
ledger init LEDGER
ledger show LEDGER --key TEXT
ledger settle LEDGER no-such
ledger change LEDGER TABLE
ledger change LEDGER FOLDER/no-such.csv
receipt --all TABLE --ledger LEDGER
receipt p1 --owner who --ledger LEDGER
""".strip().splitlines()


def _command(line: str, files: Mapping[str, str], folder: Path) -> Entry:
    words = [_filled(word, files) for word in line.split(" ")]
    before = _contents(folder)
    with ledgers_in(folder):
        code, _, errors = command(*words)
    assert "Traceback" not in errors
    given = [word for word in line.split() if word.startswith("--")]
    called = {**OPTIONS, **(LABEL_KEYS if line.startswith("label") else {})}
    left = _contents(folder)
    for path in set(left) - set(before):  # what another program leaves is in nobody's way
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return {
        "exit": code,
        "names": _named(errors, given[::-1], lambda one: called.get(one, one)),
    }


def _filled(word: str, files: Mapping[str, str]) -> str:
    start, slash, rest = word.partition("/")
    return files.get(start, start) + slash + rest if start in files else word


def _contents(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


# --- Python: budgets, tables, sessions, estimators --------------------------------------------------------


def _fit(table: Any = None, labels: Any = None, budgets: Any = None, **how: Any) -> None:
    private, settings = private_animals(), {"steps": 2, "classes": KINDS}
    settings |= {name: how.pop(name) for name in list(how) if name in training_settings()}
    cg.DPSGDClassifier(**parameters_of(settings), noise_seed=1).fit(
        private[MEASURED] if table is None else table,
        private["kind"] if labels is None else labels,
        **of_today(
            {
                "budgets": 1.0 if budgets is None else budgets,
                "X_public": public_animals()[MEASURED],
                **how,
            }
        ),
    )  # fmt: skip


def training_settings() -> set[str]:
    """Name the settings of the estimator, as recorded."""
    back = {now: before for before, now in KEYS.items()}
    named = {*cg.DPSGDClassifier().get_params(), *cg.Sampling().get_params()}
    return {back.get(name, name) for name in named}


def _vote(**how: Any) -> None:
    private = private_animals()
    fitted = {
        name: how.pop(name) for name in list(how) if name in ("X_public", "budgets", "X", "y")
    }
    settings = {"n_teachers": 10, "classes": KINDS, "noise_seed": 1, **how}
    if "assignment" in settings:
        settings["personalisation"] = cg.Weighting(assignment=settings.pop("assignment"))
    if "teacher_class_shares" in settings:
        settings["class_shares"] = {"teacher": settings.pop("teacher_class_shares")}
    given = {
        "X": private[MEASURED],
        "y": private["kind"],
        "budgets": 5.0,
        "X_public": public_animals()[MEASURED],
    }
    given |= fitted
    cg.PATEClassifier(**settings).fit(given.pop("X"), given.pop("y"), **given)


def _ask(
    question: str = "count where age > 30", each: Any = None, table: Any = None, **how: Any
) -> None:
    from collegium import Schema

    schema = how.pop("schema", None)
    if schema is None:
        import tomllib

        schema = Schema(tomllib.loads(SCHEMA)["columns"])
    given = {
        "budgets": cg.Policy({"high": 1.0, "low": 3.0}),
        "privacy": "level",
        "owner": "person",
        "noise_seed": 1,
    }
    given = {**given, **how}
    table = people() if table is None else table
    cg.Statistics(table, given.pop("budgets"), schema=schema, **of_today(given)).ask(
        question, **(each or {})
    )


def _column(**what: Any) -> Callable[[], Any]:
    return lambda: cg.Schema({"age": what})


def _plan(**how: Any) -> Callable[[], Any]:
    given = {"steps": 3, **how}
    groups, sizes = given.pop("groups", {"a": cg.Budget(1.0)}), given.pop("sizes", {"a": 50})
    return lambda: cg.plan_dpsgd(groups, sizes, **of_today(given))


#: What is refused, and the argument that it is about.
_NAN = float("nan")
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    **{f"budget epsilon={one!r}": (partial(cg.Budget, one), "epsilon") for one in (-1, _NAN, None, True)},
    **{f"budget delta={one!r}": (partial(cg.Budget, 1.0, one), "delta") for one in (-1e-5, 1, 2, _NAN, "x")},
    "budget delta=0": (partial(cg.Budget, 1.0, 0.0), "delta"),
    "policy empty": (lambda: cg.Policy({}), "levels"),
    "policy list": (lambda: cg.Policy([1, 2]), "levels"),
    "policy negative": (lambda: cg.Policy({"a": -1}), "epsilon"),
    "policy delta": (lambda: cg.Policy({"a": 1}, delta=2), "delta"),
    "assign unknown": (lambda: cg.Policy({"a": 1}).assign(["b"]), "level"),
    "assign missing": (lambda: cg.Policy({"a": 1}).assign(["a", None]), "level"),
    "assign nobody": (lambda: cg.Policy({"a": 1}).assign([]), "record"),
    "assign owners": (lambda: cg.Policy({"a": 1}).assign(["a", "a"], owners=["x"]), "owners"),
    "assign missing owner": (lambda: cg.Policy({"a": 1}).assign(["a", "a"], owners=["x", None]), "owner"),
    "assign two levels": (
        lambda: cg.Policy({"a": 1, "b": 2}).assign(["a", "b"], owners=["x", "x"]), "owner",
    ),
    "epsilons negative": (lambda: cg.Budgets.from_epsilons([1, -1]), "epsilon"),
    "epsilons text": (lambda: cg.Budgets.from_epsilons(["x"]), "epsilon"),
    "epsilons none": (lambda: cg.Budgets.from_epsilons([]), "record"),
    **{
        f"fit {name}={value!r}": (partial(_fit, **{name: value}), name)
        for name, values in {
            "sampling": ["nonsense", "sample"], "steps": [0, 1.5, "2"], "filter": [0.5, "x"], "rate": [0.2],
            "clip_norm": [0, _NAN], "bound": ["x"], "learning_rate": [0], "components": [0],
            "momentum": [1, -1],
            "schedule": ["x"], "averaging": [2], "neighbours": ["x"], "accountant": ["x"], "delta": [0, 1],
            "classes": [["cat"], ["cat", "cat"]], "goal": ["x"], "preprocessing": ["x"],
        }.items()
        for value in values
    },
    "fit sample replaced": (
        partial(_fit, sampling="sample", rate=0.2, neighbours="replaced"), "neighbours",
    ),
    "fit sample filter": (partial(_fit, sampling="sample", rate=0.2, filter=2.0), "filter"),
    "fit balanced alone": (partial(_fit, goal="balanced", X_public=None), "goal"),
    "fit y_public alone": (partial(_fit, X_public=None, y_public=["cat"]), "y_public"),
    "fit y_public short": (partial(_fit, y_public=["cat"]), "public"),
    "fit other columns": (partial(_fit, table=private_animals()[["b", "c"]]), "columns"),
    "fit no records": (partial(_fit, table=private_animals()[MEASURED].iloc[:0], labels=[]), "records"),
    "fit labels short": (partial(_fit, labels=["cat"]), "labels"),
    "fit labels unknown": (partial(_fit, labels=["fox"] * 240), "classes"),
    "fit labels missing": (partial(_fit, labels=[None] * 240), "labels"),
    "fit infinite": (partial(_fit, table=np.full((240, 3), np.inf)), "X"),
    "fit budgets short": (partial(_fit, budgets=[1.0]), "budgets"),
    "fit budgets nothing": (partial(_fit, budgets=0.0), "budgets"),
    "fit budgets negative": (partial(_fit, budgets=-1.0), "epsilon"),
    "fit budgets unlimited": (partial(_fit, budgets=float("inf")), "budgets"),
    "fit public is private": (partial(_fit, X_public=private_animals()[MEASURED]), "public_may_overlap"),
    "fit other scale": (partial(_fit, table=private_animals()[MEASURED] * 1000), "scales_may_differ"),
    "fit ledger text": (partial(_fit, ledger="people.ledger"), "ledger"),
    "fit overlap text": (partial(_fit, public_may_overlap="yes"), "public_may_overlap"),
    "regress bounds": (lambda: cg.DPSGDRegressor(bounds=(3, 1)).fit([[1.0]], [1.0], budgets=1.0), "bounds"),
    "regress no bounds": (lambda: cg.DPSGDRegressor().fit([[1.0]], [1.0], budgets=1.0), "bounds"),
    **{
        f"vote {name}={value!r}": (partial(_vote, **{name: value}), name)
        for name, values in {
            "n_teachers": [0, 1.5, 10**7], "aggregator": ["x", 3], "personalisation": ["x"],
            "classes": [["cat"]],
            "assignment": ["x"], "budgets": [0.0, -1.0, [1.0]], "X_public": [None, [[1.0]]],
            "teacher_class_shares": [{"cat": 1.0}], "noise_seed": [-1],
        }.items()
        for value in values
    },
    "queries order": (lambda: cg.Queries("x"), "query_order"),
    "queries max": (lambda: cg.Queries(max_queries=0), "max_queries"),
    "queries release": (lambda: cg.Queries(release="x"), "release"),
    "queries targets": (lambda: cg.Queries(targets="x"), "targets"),
    "account guarantee": (lambda: cg.Account("x"), "guarantee"),
    "account conversion": (lambda: cg.Account(conversion="x"), "conversion"),
    "gnmax sigma": (lambda: cg.GNMax(sigma=0), "sigma"),
    "lnmax gamma": (lambda: cg.LNMax(gamma=-1), "gamma"),
    "confident threshold": (
        lambda: cg.ConfidentGNMax(threshold=_NAN, sigma_threshold=1, sigma=1), "threshold",
    ),
    "upsampling duplicates": (lambda: cg.Upsampling(max_duplicates=0), "max_duplicates"),
    "weighting rule": (lambda: cg.Weighting(rule="x"), "rule"),
    "vanishing shuffle": (lambda: cg.Vanishing(shuffle_every=0), "shuffle_every"),
    "plan steps": (_plan(steps=0), "steps"),
    "plan kind": (_plan(kind="x"), "kind"),
    "plan rate": (_plan(kind="sample", rate=2), "rate"),
    "plan no rate": (_plan(kind="sample"), "rate"),
    "plan accountant": (_plan(kind="sample", rate=0.2, accountant="x"), "accountant"),
    "plan bound": (_plan(bound="x"), "bound"),
    "plan sizes": (_plan(sizes={}), "sizes"),
    "plan sizes negative": (_plan(sizes={"a": -1}), "sizes"),
    "plan groups": (_plan(groups={}), "groups"),
    "schema empty": (lambda: cg.Schema({}), "columns"),
    "schema kind": (_column(kind="x"), "kind"),
    "schema no bounds": (_column(kind="whole"), "bounds"),
    "schema bounds turned": (_column(kind="whole", bounds=[9, 1]), "bounds"),
    "schema bounds nan": (_column(kind="number", bounds=[0, _NAN]), "bounds"),
    "schema bins": (_column(kind="whole", bounds=[1, 9], bins=[1]), "bins"),
    "schema step": (_column(kind="number", bounds=[1, 9], step=-1), "step"),
    "schema categories": (_column(kind="category", categories=["a", "a"]), "categories"),
    "schema no categories": (_column(kind="category"), "categories"),
    "schema unknown": (_column(kind="flag", colour="red"), "colour"),
    "schema rows": (lambda: cg.Schema({"a": {"kind": "flag"}}, rows_per_owner=0), "rows_per_owner"),
    **{
        f"ask {name}={value!r}": (partial(_ask, **{name: value}), name)
        for name, values in {
            "spend": [0, 2], "questions": [0, 1.5], "noise": ["x"], "weights": ["x"], "neighbours": ["x"],
            "confidence": [1], "noise_seed": [-1], "schema": ["x"], "privacy": ["no_such"],
            "owner": ["no_such"],
            "ledger": ["x"], "budgets": [cg.Policy({"high": 1.0})],
        }.items()
        for value in values
    },
    **{
        f"question {one!r}": (partial(_ask, one), "question")
        for one in (
            "", "mean", "mean sex", "mean nothing", "sum age by nothing", "sum age by income", "median sex",
            "quantile age", "quantile(2) age", "crosstab sex", "cov age", "count where",
            "count where age", "count where nothing > 3", "count where age > 'x'",
            "select count(*) from people",
            "ridge age on", "mean age; mean income", "count by sex by smokes",
        )
    },
    **{
        f"question with {name}={value!r}": (partial(_ask, each={name: value}), name)
        for name, value in {
            "spend": 2, "weights": "x", "penalty": 0, "expected": 2, "interval": 3, "no_such": 1,
        }.items()
    },
    "question calibrated": (partial(_ask, "median age", each={"calibrated": True}), "calibrated"),
    "question no interval": (partial(_ask, "mean age", each={"interval": False}), "interval"),
    "ask no rows": (partial(_ask, table=people().iloc[:0]), "table"),
    "ask without a column": (partial(_ask, "mean age", table=people().drop(columns="age")), "age"),
    "ask two levels": (partial(_ask, table=people().assign(person="p")), "owner"),
    "ledger not there": (lambda: cg.Ledger("no-such-folder/no.ledger"), "ledger"),
    "ledger number": (lambda: cg.Ledger(3), "ledger"),
    "load nothing": (lambda: cg.load_student("no-such-folder"), "release"),
    "recommend nothing": (lambda: cg.plan("no-such.toml"), "study"),
}  # fmt: skip

# --- tables of a study ------------------------------------------------------------------------------------


def _edited(name: str, edit: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        edit(pd.read_csv(folder / name)).to_csv(folder / name, index=False)

    return write


def _raw(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


_EMPTY = lambda table: table.iloc[:0]  # noqa: E731
#: What is done to the files of a study.
TABLES_OF_STUDIES: dict[str, tuple[str, Callable[[Path], None]]] = {
    **{
        f"{base} {what}": (base, _edited(file, edit))
        for base, own, extra in (
            ("votes", "private.csv", ("kind", "who", "a")),
            ("direct", "private.csv", ("kind", "who", "a")),
            ("statistics", "people.csv", ("age", "person")),
        )
        for what, file, edit in (
            *((f"without {one}", own, partial(pd.DataFrame.drop, columns=one)) for one in extra),
            ("without levels", own, partial(pd.DataFrame.drop, columns="level")),
            ("no rows", own, _EMPTY),
            ("unknown level", own, lambda table: table.assign(level="other")),
            ("missing level", own, lambda table: table.assign(level=table["level"].where(table.index > 0))),
            (
                "several levels", own,
                lambda table: table.assign(level=["high", "low"] * (len(table) // 2), who="p", person="p"),
            ),
        )
    },
    **{
        f"{base} {what}": (base, act)
        for base in ("votes", "direct")
        for what, act in (
            ("unknown class", _edited("private.csv", lambda table: table.assign(kind="fox"))),
            ("public without a", _edited("public.csv", partial(pd.DataFrame.drop, columns="a"))),
            ("no public", _edited("public.csv", _EMPTY)),
            ("text for numbers", _edited("public.csv", lambda table: table.assign(a="x"))),
            ("binary", _raw("private.csv", bytes(range(256)))),
            ("nothing", _raw("private.csv", b"")),
            ("ragged", _raw("public.csv", b"a,b,c,kind\n1,2,3,cat\n1,2,3,4,5,dog\n")),
        )
    },
    "statistics binary": ("statistics", _raw("people.csv", bytes(range(256)))),
    "statistics nothing": ("statistics", _raw("people.csv", b"")),
    "statistics schema": ("statistics", _raw("schema.toml", b"[columns")),
}  # fmt: skip


def _table(base: str, act: Callable[[Path], None], folder: Path) -> Entry:
    place = folder / "changed"
    (write_people if base == "statistics" else write_animals)(place)
    act(place)
    toml = place / "study.toml"
    toml.write_text(toml_of(BASES[base]), encoding="utf-8")
    code, _, errors = command("run", toml)
    assert "Traceback" not in errors
    released = (place / "study/release").exists() and any((place / "study/release").iterdir())
    shutil.rmtree(place)
    return {"exit": code, "released": bool(released)}


# --- all of them ------------------------------------------------------------------------------------------


def refused(folder: Path) -> dict[str, Entry]:
    """Try everything: how each is refused. What it was made of by one change is accepted."""
    for base in ("votes", "direct"):
        write_animals(folder / base)
    write_people(folder / "statistics")
    found = {}
    for base, key, value in _files():
        found[f"file: {base}: {key} = {value!r}"] = _file(base, key, value, folder)
    files = _files_of_commands(folder)
    _good_ones_are_accepted(files, folder)
    for line in COMMANDS:
        found[f"command: {line}"] = _command(line, files, folder)
    for name, (act, argument) in CALLS.items():
        back = KEYS.get(argument, argument)
        found[f"call: {name}"] = _told(act, [argument], lambda _, back=back: back)
    for name, (base, change) in TABLES_OF_STUDIES.items():
        found[f"table: {name}"] = _table(base, change, folder)
    return found


def _good_ones_are_accepted(files: Mapping[str, str], folder: Path) -> None:
    for base, sections in BASES.items():
        toml = folder / base / "study.toml"
        toml.write_text(toml_of(sections), encoding="utf-8")
        assert command("plan", toml)[0] == 0, base
    for line in (_ACCOUNT, f"{_ASK} {_WHOSE}", f"{_LABEL} --noise-seed 1"):
        assert _command(line, files, folder)["exit"] == 0, line
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for accepted in (_fit, _vote, _ask, _plan(), _column(kind="whole", bounds=[1, 9])):
            accepted()


def _files_of_commands(folder: Path) -> dict[str, str]:
    (folder / "text.txt").write_text("this is no file of anything\n", encoding="utf-8")
    toml = folder / "votes/study.toml"
    toml.write_text(toml_of(VOTES), encoding="utf-8")
    with ledgers_in(folder):
        cg.Ledger.create(folder / "votes/people.ledger")
    return {
        **write_votes(folder),
        "FOLDER": str(folder),
        "TEXT": str(folder / "text.txt"),
        "STUDY": str(toml),
        "TABLE": str(folder / "votes/private.csv"),
        "PEOPLE": str(folder / "statistics/people.csv"),
        "SCHEMA": str(folder / "statistics/schema.toml"),
        "LEDGER": str(folder / "votes/people.ledger"),
    }


LEVELS_OF_ALL = LEVELS
