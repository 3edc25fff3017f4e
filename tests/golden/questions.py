"""Questions to a table as they are recorded: plans, answers, accounts and what was paid, to the last bit.

Noise is seeded, but for what stands on a ledger, which takes none from a seed: of it, amounts are recorded
and no answer.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from cases import NOISE_SEED
from drivers import Entry
from faces import (
    as_recorded,
    command,
    cut_off,
    json_of,
    ledgers_in,
    of_today,
    parted,
    plain,
    toml_of,
)
from few_people import ASKED_LEVELS, SCHEMA, people, write_people

import collegium as cg

ALL_KINDS = (
    "count where age >= 40",
    "count by sex",
    "sum income",
    "mean income by sex where smokes",
    "var income",
    "std age by sex",
    "median age",
    "quantile(0.9) income by sex",
    "histogram age",
    "crosstab sex, smokes",
    "cov age, income",
    "corr age, income where smokes",
    "ridge income on age, smokes",
)
FEW = ("mean income by sex where age >= 40", "count where smokes", "median income", "histogram age")
SUMS = ("mean income by sex where age >= 40", "count where smokes", "sum income", "histogram age")

#: Settings of a session, what is asked, and options of each question.
SESSIONS: dict[str, tuple[dict[str, Any], Sequence[str], dict[str, Any]]] = {
    "every-kind-gaussian": ({"noise": "gaussian", "questions": 13}, ALL_KINDS, {}),
    "every-kind-laplace": ({"noise": "laplace", "questions": 13}, ALL_KINDS, {}),
    "few": ({"questions": 4}, FEW, {}),
    "replaced": ({"neighbours": "replaced", "noise": "gaussian", "questions": 4}, FEW, {}),
    "proportional": ({"weights": "proportional", "questions": 4}, FEW, {}),
    "uniform": ({"weights": "uniform", "questions": 4, "confidence": 0.8}, FEW, {}),
    "part": ({"spend": 0.3, "questions": 4}, FEW, {}),
    "calibrated": ({"questions": 4, "noise": "gaussian"}, SUMS, {"calibrated": True}),
    "calibrated-laplace": ({"questions": 4, "noise": "laplace"}, SUMS, {"calibrated": True}),
    "expected": ({"questions": 4}, ("count where income > 980",), {"expected": 0.02}),
    "one-question": ({"questions": 1}, ("mean income",), {}),
    "no-interval": (
        {"questions": 3, "noise": "gaussian"},
        ("median age", "quantile(0.1) income by sex where smokes"),
        {"interval": False},
    ),
}


def session(name: str, folder: Path) -> Entry:
    """Plan each question, and ask it."""
    how, questions, of_each = SESSIONS[name]
    return _asked(people(), how, questions, of_each)


def several_rows(name: str, folder: Path) -> Entry:
    """Ask about people with two rows each, where at most so many count."""
    schema = "rows_per_owner = 2\n" + SCHEMA
    return _asked(people(rows=2), {"questions": 4}, FEW, {}, schema)


def parquet(name: str, folder: Path) -> Entry:
    """Ask files, read in batches."""
    for part in range(2):
        people().iloc[part * 200 : part * 200 + 200].to_parquet(
            folder / f"{part}.parquet", row_group_size=70
        )
    files = [folder / "0.parquet", folder / "1.parquet"]
    return _asked(files, {"questions": 4}, FEW, {})


def grouped(name: str, folder: Path) -> Entry:
    """Ask by groups, twice the same, and for what is public; some grant nothing and others all."""
    table = people()
    levels = {**ASKED_LEVELS, "nothing": 0.0, "all": float("inf")}
    table["level"] = table["level"].where(table.index % 10 != 0, "nothing")
    table["level"] = table["level"].where(table.index % 10 != 1, "all")
    ask = _session(table, {"questions": 5}, levels=levels)
    first = ask.groupby("sex").mean("income")
    again = ask.groupby("sex").mean("income")
    public = ask.count()
    tables = ask.groupby("sex", "smokes").histogram("age")
    return plain(
        {
            "answers": [_answer(one) for one in (first, public, tables)],
            "twice_is_once": again is first,
            **_accounts(ask),
        }
    )


def _session(table: Any, how: Mapping[str, Any], schema: str = SCHEMA, levels: Any = None) -> Any:
    import tomllib

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = tomllib.loads(schema)
        made = cg.Schema(read["columns"], **{k: v for k, v in read.items() if k != "columns"})
        return cg.Statistics(
            table,
            cg.Policy(levels or ASKED_LEVELS),
            schema=made,
            privacy="level",
            owner="person",
            **{"noise_seed": NOISE_SEED, **of_today(how)},
        )


def _asked(
    table: Any,
    how: Mapping[str, Any],
    questions: Sequence[str],
    of_each: Mapping[str, Any],
    schema: str = SCHEMA,
) -> Entry:
    ask, answers, plans = _session(table, how, schema), [], []
    for question in questions:
        options = of_today(of_each)
        planned = ask.plan(question, **options)
        plans.append(
            {"errors": planned.predicted, "heard": planned.heard, "epsilon": planned.epsilon}
        )
        answers.append(_answer(ask.ask(question, **options)))
    return plain({"noise": ask.noise, "plans": plans, "answers": answers, **_accounts(ask)})


def _answer(answer: Any) -> Entry:
    said = as_recorded(answer.to_dict())
    kept = ("question", "keys", "cells", "effective", "people", "confidence", "represented", "paid")
    found = {key: said[key] for key in kept}
    found["notes"] = len(said["notes"])
    if answer.groups is not None:
        found["groups"] = _table(answer.groups)
        found["alike"] = {str(key): value for key, value in answer.groups.attrs.items()}
    if answer.matrix is not None:
        found["matrix"] = _table(answer.matrix)
    return found


def _table(table: pd.DataFrame) -> Any:
    return as_recorded(
        json.loads(table.reset_index().to_json(orient="split", double_precision=15))
    )["data"]


def _accounts(ask: Any) -> Entry:
    return {
        "left": _table(ask.left()),
        "spent": {
            str(name): [one for one in row if isinstance(one, float)]
            for name, *row in ask.privacy_.by_group().itertuples()
        },
    }


# --- studies ----------------------------------------------------------------------------------------------

SECTIONS: dict[str, dict[str, Any]] = {
    "data": {"private": "people.csv", "owner": "person"},
    "privacy": {"levels": ASKED_LEVELS, "column": "level"},
    "method": {"kind": "statistics"},
    "statistics": {
        "schema": "schema.toml",
        "questions": list(FEW),
        "noise_seed": NOISE_SEED,
    },
    "ledger": {"url": "none"},
}
STUDIES: dict[str, dict[str, Any]] = {
    "few": {},
    "gaussian": {"noise": "gaussian", "spend": 0.5},
    "calibrated": {"questions": list(SUMS), "calibrated": [SUMS[0], SUMS[3]]},
    "every-kind": {"questions": list(ALL_KINDS), "weights": "proportional"},
}


def sections_of(**more: Any) -> dict[str, dict[str, Any]]:
    """Put together a study's sections."""
    return {**SECTIONS, "statistics": {**SECTIONS["statistics"], **more}}


def write_study(folder: Path, sections: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write a study with its table and schema."""
    write_people(folder)
    (folder / "study.toml").write_text(toml_of(sections), encoding="utf-8")
    return folder / "study.toml"


def study(name: str, folder: Path) -> Entry:
    """Run a study, and ask all that may be asked about it afterwards."""
    toml, out = write_study(folder, sections_of(**STUDIES[name])), folder / "study"
    entry = {
        "planned": json_of("plan", toml, "--json"),
        "ran": json_of("run", toml, "--json"),
        **_said(out),
    }
    return parted(entry, folder)[0]


def _said(out: Path) -> Entry:
    return {
        "privacy": as_recorded(json.loads((out / "release/privacy.json").read_text("utf-8"))),
        "answers": as_recorded(json.loads((out / "release/answers.json").read_text("utf-8"))),
        "left": json_of("account", "--left", out, "--json"),
        "exported": json_of("account", "--export", out),
        "released_files": sorted(path.name for path in (out / "release").iterdir()),
    }


def killed(name: str, folder: Path) -> Entry:
    """End a run wherever it waits for the disk: what was charged and not answered is paid for, and lost."""
    questions = ["count where smokes", "count by sex"]
    return cut_off(write_study(folder, sections_of(questions=questions)), _outcome)


def _outcome(out: Path) -> Entry:
    entry = {
        "left": json_of("account", "--left", out, "--json"),
        "answers": as_recorded(json.loads((out / "release/answers.json").read_text("utf-8"))),
    }
    return parted(entry, out.parent)[0]


def ledger(name: str, folder: Path) -> Entry:
    """Ask on a ledger, whose amounts do not depend on noise, and give back what was not used."""
    place = cg.Ledger.create(folder / "people.ledger")
    both = ({"spend": 0.5, "noise": "gaussian"}, {"spend": 0.2})
    sessions = [_on_ledger(place, how) for how in both]
    other = cg.Ledger.create(folder / "other.ledger")
    sessions.append(_on_ledger(other, {"spend": 1.0, "noise": "laplace", "weights": "uniform"}))
    return plain({"sessions": sessions, "entries": [entry.kind for entry in place.history()]})


def _on_ledger(place: Any, how: Mapping[str, Any]) -> Entry:
    with _session(people(), {"questions": 2, "noise_seed": None, "ledger": place, **how}) as ask:
        ask.count(where="age >= 40")
        if how.get("noise") == "gaussian":
            ask.median("income")
        reserved = _standings(place)
    return {"reserved": reserved, "spent": _standings(place), **_accounts(ask)}


def _standings(place: Any) -> Any:
    return [[one.level, one.owners, one.epsilon_spent, one.n_releases] for one in place.standings()]


def ledger_study(name: str, folder: Path) -> Entry:
    """Run a study on a ledger, and another one with what it left."""
    sections = sections_of(noise="gaussian", spend=0.5)
    del sections["statistics"]["noise_seed"]
    toml = write_study(folder, {**sections, "ledger": {"url": "people.ledger"}})
    said = {}
    with ledgers_in(folder):
        assert command("ledger", "init", folder / "people.ledger")[0] == 0
        for out in ("first", "second"):
            json_of("run", toml, "--json", "--out", folder / out)
            said[f"{out} left"] = json_of("account", "--left", folder / out, "--json")
            toml.write_text(toml.read_text("utf-8").replace("0.5", "1.0"), encoding="utf-8")
        said["shown"] = json_of("ledger", "show", folder / "people.ledger", "--json")
    return parted(said, folder)[0]


Driver = Callable[[str, Path], Entry]
ASKED: dict[str, tuple[Driver, str]] = {
    **{f"questions/session-{name}": (session, name) for name in SESSIONS},
    "questions/session-several-rows": (several_rows, ""),
    "questions/session-parquet": (parquet, ""),
    "questions/session-grouped": (grouped, ""),
    **{f"questions/study-{name}": (study, name) for name in STUDIES},
    "questions/study-killed": (killed, ""),
    "questions/ledger": (ledger, ""),
    "questions/study-ledger": (ledger_study, ""),
}
