"""Studies that are killed: their tables, and the settings of every kind.

Not a benchmark by itself: ``kills.py`` and ``ledger_kills.py`` kill them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LEVELS = {"high": 4.0, "low": 12.0}
CLASSES = ["cat", "dog", "owl"]

CHECK = {"threshold": 5, "sigma_threshold": 30, "sigma": 9}  # allows several blocks of questions

Changes = dict[str, dict[str, Any] | None]

#: Nothing is learnt or taught in these: sections that votes need are left out.
_NO_TEACHERS: Changes = {"teachers": None, "student": None}
#: Without it a ledger is made beside the private table.
_NO_LEDGER: Changes = {"ledger": {"url": "none"}}

SCHEMA = """
rows_per_owner = 2
[columns.height]
kind = "number"
bounds = [-1, 3]
step = 0.05
[columns.weight]
kind = "number"
bounds = [-4, 4]
[columns.kind]
kind = "category"
categories = ["cat", "dog", "owl"]
"""

SUMS = ("mean height by kind", "mean weight where kind == 'owl'", "histogram kind", "sum weight")
MOMENTS = ("var weight", "std height by kind", "cov height, weight", "ridge weight on height")
QUANTILES = (
    "median height",
    "quantile(0.9) weight by kind",
    "mean weight",
    "median weight where height > 1",
    "quantile(0.25) height by kind",
)


def _votes(aggregation: dict[str, Any], **more: dict[str, Any]) -> Changes:
    return {"aggregation": aggregation, **more}


def _dpsgd(**settings: Any) -> Changes:
    return {"method": {"kind": "dpsgd"}, "dpsgd": {"steps": 50, **settings}, **_NO_TEACHERS}


def _statistics(*questions: str, **settings: Any) -> Changes:
    asked = {"schema": "schema.toml", "questions": list(questions), **settings}
    about = {"public": None, "test": None, "target": None, "classes": None}
    return {"method": {"kind": "statistics"}, "statistics": asked, "data": about, **_NO_TEACHERS}


GNMAX = {"aggregator": "gnmax", "sigma": 9}
HISTOGRAM = {**GNMAX, "release": "histogram"}

STREAMED: Changes = _votes(GNMAX, data={"private": "private.parquet"}, run={"streaming": True})

#: Every kind of run: what changes in the settings; None leaves a section, or a key, out.
KINDS: dict[str, Changes] = {
    **{
        kind: {**changes, **_NO_LEDGER}
        for kind, changes in (
            ("gnmax", _votes(GNMAX)),
            ("confident", _votes({"aggregator": "confident", **CHECK})),
            ("interactive", _votes({"aggregator": "interactive", **CHECK, "refit_every": 10})),
            ("histogram", _votes(HISTOGRAM)),
            ("vanishing", _votes(GNMAX, personalisation={"method": "vanishing"})),
            ("streamed", STREAMED),
            ("dpsgd", _dpsgd()),
            ("dpsgd-sample", _dpsgd(sampling="sample", rate=0.3, accountant="rdp")),
            ("dpsgd-filter", _dpsgd(individual_filter=1.5)),
            ("two-rounds", _statistics(*SUMS, *MOMENTS, noise="gaussian")),
            ("calibrated", _statistics(*SUMS, calibrated=[SUMS[1], SUMS[3]])),
            ("quantiles", _statistics(*QUANTILES)),
            ("laplace", _statistics(*SUMS, *QUANTILES, noise="laplace")),
        )
    },
    "ledger-whole": _votes(GNMAX),
    "ledger-votes": _votes(HISTOGRAM, privacy={"column": "privacy", "price": "histogram"}),
    "ledger-streamed": STREAMED,
    # What is left would be rehearsed, and a rehearsal's noise is no draw.
    "ledger-dpsgd": {**_dpsgd(), "privacy": {"spend": 0.7}},
    "ledger-filter": {**_dpsgd(individual_filter=1.5), "privacy": {"spend": 0.7}},
    "ledger-statistics": _statistics(*SUMS, *QUANTILES, calibrated=[SUMS[1]]),
    "label": {},
}


def is_votes(kind: str) -> bool:
    """Whether teachers vote in runs of this kind."""
    return "aggregation" in KINDS[kind] or kind == "label"


def write_study(folder: Path, kind: str, n_public: int = 120) -> Path:
    """Write tables and what a run of this kind is told: a TOML file, or the arguments of a label job."""
    write_tables(folder, n_public)
    if kind == "label":
        return write_label_job(folder, n_public)
    (folder / "schema.toml").write_text(SCHEMA, "utf-8")
    return write_settings(folder / "study.toml", KINDS[kind])


def write_tables(folder: Path, n_public: int = 120) -> None:
    """Write private, public and test records of a study into a new folder."""
    folder.mkdir()
    for name, n, seed in (("private", 240, 1), ("public", n_public, 2), ("test", 60, 3)):
        generator = np.random.default_rng(seed)
        number = generator.integers(0, 3, n)
        table = pd.DataFrame(
            {"height": number + generator.normal(0, 0.2, n), "weight": generator.normal(0, 1, n)}
        )
        table["kind"] = np.array(CLASSES)[number]
        if name == "private":
            table["person"] = [f"person {one}" for one in np.arange(n) // 2]
            table["privacy"] = np.array(["high", "low"])[(np.arange(n) // 2) % 2]
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_parquet(folder / f"{name}.parquet", index=False)


def write_settings(path: Path, *changes: Changes) -> Path:
    """Write the TOML file of a study about these tables; None leaves a section, or a key, out."""
    sections: dict[str, dict[str, Any]] = {
        "data": {
            "private": "private.csv",
            "public": "public.csv",
            "test": "test.csv",
            "target": "kind",
            "owner": "person",
            "classes": CLASSES,
        },
        "privacy": {"column": "privacy"},
        "privacy.levels": LEVELS,
        "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 12},
        "student": {"model": "sklearn.naive_bayes.GaussianNB"},
        "run": {"n_jobs": 1},
    }
    for change in changes:
        for section, keys in change.items():
            if keys is None:
                sections.pop(section, None)
            else:
                sections[section] = {**sections.get(section, {}), **keys}
    text = ""
    for section, keys in sections.items():
        said = {key: value for key, value in keys.items() if value is not None}
        text += f"[{section}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in said.items())
    path.write_text(text, "utf-8")
    return path


def write_votes(folder: Path, n_public: int) -> None:
    """Write votes of 12 teachers, what their people granted, and who these are, for label jobs."""
    votes = np.random.default_rng(1).integers(0, 3, (n_public, 12))
    votes[:, 3:] = (np.arange(n_public) % 3)[:, None]
    np.save(folder / "votes.npy", votes)
    names = list(LEVELS)
    budgets = {"epsilon": [*LEVELS.values()] * 6, "group": names * 6}
    pd.DataFrame(budgets).to_csv(folder / "budgets.csv", index=False)
    people = {"owner": [f"person {one}" for one in range(120)], "group": names * 60}
    pd.DataFrame(people).to_csv(folder / "people.csv", index=False)


def write_label_settings(folder: Path) -> Path:
    """Write how the votes of a label job are counted and charged."""
    path = folder / "label.toml"
    path.write_text("aggregation.sigma = 9\nprivacy.price = 'histogram'\n", "utf-8")
    return path


def write_label_job(folder: Path, n_public: int) -> Path:
    """Write votes, and the arguments of a label job on a ledger, which is made beside them."""
    write_votes(folder, n_public)
    path = folder / "study.json"
    argv: list[object] = ["label", "--votes", folder / "votes.npy", "--classes", 3]
    argv += ["--budgets", folder / "budgets.csv", "--people", folder / "people.csv"]
    argv += ["--aggregator", "gnmax", "--settings", write_label_settings(folder)]
    argv += ["--out", path.with_suffix("")]
    path.write_text(json.dumps([str(one) for one in argv]), "utf-8")
    return path
