"""Thin adapters that run a case with the package, and say in a plain dictionary what came of it.

This is the only file of the golden record that knows the package: where its interface changes, only this
file follows. Every driver returns text, whole numbers, lists and dictionaries; floats are written with
``float.hex``, and large things as a digest with a few readable figures.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import re
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from cases import (
    CLASSES,
    FEATURES,
    N_TEACHERS,
    NOISE_SEED,
    SEED,
    Case,
    CommandCase,
    Society,
)
from label_options import label_of_today
from sklearn.naive_bayes import GaussianNB

from collegium import Account, PATEClassifier, Policy, PrivacyWarning, Queries, load_student
from collegium.accounting.neighbours import Arrangement
from collegium.cli import console
from collegium.cli.main import main
from collegium.pate.voting.aggregators import aggregator_from
from collegium.personalisation import PERSONALISATIONS
from collegium.study.config import read_config
from collegium.study.runner import run_study
from collegium.study.terms import read_terms

Entry = dict[str, Any]
_FIRST = 6  # readable figures of each digest


# --- the four drivers -------------------------------------------------------------------------------------


def estimator(case: Case, records: Society, folder: Path) -> Entry:
    """Fit a ``PATEClassifier``; nothing is written."""
    kept = _fitted(case, records)
    histograms = getattr(kept, "histograms_", None)
    said = kept.privacy_.to_dict()
    return {
        "labels": _labels(kept.labelled_indices_, kept.labels_),
        **_verdicts_of_histograms(histograms),
        "asked": int(kept.n_queries_),
        "stop": str(kept.stop_reason_),
        "spent": {row.group: _float(row.epsilon_spent) for row in kept.privacy_.groups},
        "votes": _array(kept.sensitive_votes_.sensitive_table, np.int16),
        "student": _array(kept.predict(records.test[FEATURES]), np.int64),
        "targets": _floats(kept.targets_),
        "plan": _plan(kept.plan_),
        "statement": _statement(said),
    }


def study(case: Case, records: Society, folder: Path) -> Entry:
    """Run a study on CSV files, with the private records in memory; its page has no figures."""
    with without_figures():
        return _study(case, records, folder, "csv", streaming=False)


def streamed(case: Case, records: Society, folder: Path) -> Entry:
    """Run a study on Parquet files, with the private records on disk."""
    return _study(case, records, folder, "parquet", streaming=True)


def command(case: CommandCase, records: Society, folder: Path) -> Entry:
    """Run ``collegium label`` and ``collegium account`` on files of votes."""
    names = write_votes(folder)
    for before in case.before:
        code, _, errors = call(_filled(before, names))
        assert code == 0, errors
    code, printed, errors = call(_filled(case.command, names))
    entry: Entry = {"exit": code}
    if "--json" in case.command or "--export" in case.command:
        content = json.loads(printed)
        for key in ("labels", "histograms", "release"):  # where they are, not what
            if isinstance(content.get(key), str):
                del content[key]
        if content.get("price") == "histogram":  # newer than the record: what there was
            del content["price"]
        if "--export" in case.command:  # newer than the record: whole events beside what was there
            del content["neighbours"]
            for use in (use for uses in content["groups"].values() for use in uses):
                del use["event"]
        entry["printed"] = _exact(content)
    else:
        entry["printed"] = printed.splitlines()
    entry["errors"] = " ".join(errors.split())
    out = Path(names["FOLDER"])
    if out.exists():
        entry |= _on_disk(out)
    return entry


DRIVERS = {"estimator": estimator, "study": study, "streamed": streamed, "command": command}


# --- the estimator ----------------------------------------------------------------------------------------


def _fitted(case: Case, records: Society) -> PATEClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        budgets = Policy(dict(case.levels), delta=1e-5).assign(
            records.private["privacy"].to_numpy(), owners=records.private["person"].to_numpy()
        )
    model = PATEClassifier(
        _bayes(case.teacher_params),
        n_teachers=N_TEACHERS,
        personalisation=PERSONALISATIONS[case.personalisation](
            rule=case.rule, assignment=case.assignment, **case.extras
        ),
        aggregator=aggregator_from(case.aggregator, **case.numbers),
        account=Account(case.guarantee, case.conversion, case.orders, case.bounds),
        queries=Queries(
            case.query_order,
            case.max_queries,
            case.max_labels,
            case.release,
            case.targets or "mixture",
        ),
        student=_bayes(case.student_params),
        classes=CLASSES,
        class_shares={"teacher": case.teacher_shares, "student": case.student_shares},
        noise_seed=NOISE_SEED,
        random_state=SEED,
        n_jobs=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return model.fit(
            records.private[FEATURES],
            records.private["digit"].to_numpy(),
            budgets=budgets,
            X_public=records.public[FEATURES],
            keep_sensitive=True,
        )


def _bayes(params: Mapping[str, Any]) -> GaussianNB:
    return GaussianNB(**params)


def _plan(plan: Any) -> Entry:
    return {
        name: [
            group.owners, group.teachers, group.duplicates,
            *(_float(value) for value in (group.weight, group.frequency, group.sensitivity)),
        ]
        for name, group in plan.groups.items()
    }  # fmt: skip


def _verdicts_of_histograms(histograms: Any) -> Entry:
    if histograms is None:
        return {}
    return {
        "verdicts": dict(sorted(Counter(histograms.verdicts).items())),
        "histograms": _floats(np.column_stack([histograms.counts, histograms.checks])),
    }


# --- the study --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def without_figures() -> Iterator[None]:
    """Draw no figures, which take half of a small study's time."""

    def nothing(figure: Any, stream: Any, **how: Any) -> None:
        stream.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>')

    with mock.patch("matplotlib.figure.Figure.savefig", nothing):
        yield


def _study(case: Case, records: Society, folder: Path, form: str, streaming: bool) -> Entry:
    write_tables(records, folder, form)
    path = folder / "study.toml"
    path.write_text(study_toml(case, form, streaming), encoding="utf-8")
    out = folder / "out"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        result = run_study(read_config(path), out)
    return {
        **finished_study(out, records),
        "plan": _plan(result.plan),
        "accuracy": [_float(result.label_accuracy), _float(result.student_accuracy)],
    }


def finished_study(out: Path, records: Society) -> Entry:
    """Read what a finished study left on disk, and ask the published student about the test records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        student = load_student(out)
    seen = [name for name in FEATURES if name in records.test]
    entry = {**_on_disk(out), "student": _array(student.predict(records.test[seen]), np.int64)}
    vault = out / "vault"
    entry["votes"] = _array(np.load(vault / "votes.npy"), np.int16)
    if (vault / "partition.npy").exists():  # a streamed study keeps no table of owners
        entry["assignment"] = _array(np.load(vault / "partition.npy"), np.int32)
    if (vault / "order.npy").exists():
        entry["order"] = _array(np.load(vault / "order.npy"), np.int64)
    effects = json.loads((out / "release/effects.json").read_text("utf-8"))
    entry["effects"] = _digest(json.dumps(_exact(effects)).encode())
    by_class = (vault / "sensitive-teachers-by-class.csv").read_bytes()
    entry["teachers_by_class"] = _digest(by_class)
    entry["report"] = _digest(_without_versions((out / "release/report.html").read_text("utf-8")))
    return entry


def _on_disk(out: Path) -> Entry:
    """Read the release and the vault of a study or label job."""
    vault, release = out / "vault", out / "release"
    lines = _journal_as_before(vault / "journal.jsonl")
    settled = [
        row for line in lines for row in json.loads(line.split(b" ", 1)[1]).get("settle", [])
    ]
    labels = pd.read_csv(release / "labels.csv")
    said = json.loads((release / "privacy.json").read_text("utf-8"))
    settings = _as_called_before(said.pop("config", said.pop("settings", None)))
    terms = _terms_as_before(json.loads((vault / "terms.json").read_text("utf-8")))
    entry: Entry = {
        "labels": _labels(labels["row"].to_numpy(), labels["label"].to_numpy()),
        "verdicts": dict(sorted(Counter(row[2] for row in settled).items())),
        "asked": said.pop("queries_asked"),
        "stop": said.pop("stopped_by"),
        "statement": _statement(said),
        "settings": _digest(json.dumps(_exact(settings), sort_keys=True).encode()),
        "terms": _digest(json.dumps(_exact(terms), sort_keys=True).encode()),
        "journal": _digest(b"\n".join(lines)),
    }
    if (release / "histograms.parquet").exists():
        table = pd.read_parquet(release / "histograms.parquet")
        counts = [name for name in table.columns if name.startswith("count: ")]
        entry["histograms"] = _floats(table[[*counts, "check"]].to_numpy())
        others = table.drop(columns=[*counts, "check"])
        entry["histogram_table"] = _digest(others.to_csv(index=False).encode())
    if (vault / "sensitive-spending.json").exists():
        spent = json.loads((vault / "sensitive-spending.json").read_text("utf-8"))
    else:
        spent = {row["group"]: row["epsilon_spent"] for row in said["groups"]}
        entry["account"] = _account(out)
    entry["spent"] = {name: _float(value) for name, value in spent.items()}
    return entry


def _terms_as_before(terms: Entry) -> Entry:
    """Say the terms of a job as they were said when only votes had any."""
    own, arrangement = terms["own"], Arrangement(**terms["arrangement"])
    before = {
        "format": 1,
        "guarantee": terms["guarantee"],
        "adjacency": arrangement.sentence,
        "unit": arrangement.unit,
        "private_noise": terms["private_noise"],
        "owners": terms["people"],
        "groups": terms["groups"],
        **own,
    }
    if own["price"] == "histogram":  # it was the only one
        del before["price"]
    return before


def _journal_as_before(path: Path) -> list[bytes]:
    """Take the lines about questions, each with a checksum of its own, as they were before they were chained.

    Heads follow from a random key, and lines about files are newer than the record.
    """
    texts = [line.split(b" ", 1)[1] for line in path.read_bytes().splitlines()]
    return [b"%08x %s" % (zlib.crc32(text), text) for text in texts if b'"file"' not in text[:8]]


def _without_versions(page: str) -> bytes:
    """Take the report without its table of software, whose numbers may change."""
    names = "python|collegium|numpy|scipy|scikit-learn|pandas|joblib"
    page = page.replace("teachers.n_teachers", "teachers.number")
    return re.sub(rf'(<th scope="row">(?:{names})</th><td>)[^<]*', r"\1", page).encode()


def _as_called_before(settings: Any) -> Any:
    """Give keys the names that they had when the record was made, and leave out those that came since."""
    settings = {
        name: dict(keys) if isinstance(keys, Mapping) else keys for name, keys in settings.items()
    }
    if "n_teachers" in settings.get("teachers", {}):
        settings["teachers"]["number"] = settings["teachers"].pop("n_teachers")
    if settings.get("method") == {"kind": "pate"}:
        del settings["method"]
    if settings.get("release") == "labels":  # of a label job
        del settings["release"]
    if (
        isinstance(settings.get("student"), Mapping)
        and settings["student"].get("goal") == "accuracy"
    ):
        del settings["student"]["goal"]
    return settings


def _account(out: Path) -> Entry:
    """Charge the journal again, as the terms say."""
    terms, journal = read_terms(out)
    outcomes = journal.settled()
    account = terms.replayed(outcomes).account
    state = account.state()
    # As accounts said it before neighbours had names and accounts a notion.
    del state["notion"], state["neighbours"]
    state = _exact({**state, "adjacency": terms.adjacency})
    digest = _digest(json.dumps(state, sort_keys=True).encode())
    if terms.price == "labels":
        orders, spent = account.fixed_order.tolist(), account.epsilon_spent().tolist()
        return {
            "state": digest,
            "orders": [_float(order) for order in orders[:_FIRST]],
            "spent": [_float(e) for e in spent[:_FIRST]],
        }
    return {
        "state": digest,
        "mu_squared": [_float(value) for value in account.mu_squared.tolist()[:_FIRST]],
    }


def write_tables(records: Society, folder: Path, form: str) -> None:
    """Write the records as CSV, or the private ones as a folder of Parquet files."""
    if form == "csv":
        for name in ("private", "public", "test"):
            getattr(records, name).to_csv(folder / f"{name}.csv", index=False)
        return
    (folder / "private").mkdir()
    for part in range(3):
        rows = records.private.iloc[part * len(records.private) // 3 :][: len(records.private) // 3]
        rows.to_parquet(folder / "private" / f"{part}.parquet", row_group_size=110)
    for name in ("public", "test"):
        getattr(records, name).to_parquet(folder / f"{name}.parquet")


def study_toml(case: Case, form: str = "csv", streaming: bool = False) -> str:
    """Write the case as a study's TOML file."""
    ending = f".{form}"
    sections: dict[str, dict[str, Any]] = {
        "study": {"name": case.id, "seed": SEED},
        "data": {
            "private": "private" + ("" if form == "parquet" else ending),
            "public": "public" + ending,
            "test": "test" + ending,
            "target": "digit",
            "owner": "person",
            "classes": CLASSES,
        },
        "privacy": {
            "levels": case.levels,
            "column": "privacy",
            "guarantee": case.guarantee,
            "orders": case.orders,
            "conversion": case.conversion,
            "bounds": case.bounds,
        },
        "preprocessing": case.preprocessing,
        "teachers": {
            "model": case.teacher,
            "params": case.teacher_params,
            "n_teachers": N_TEACHERS,
            "assignment": case.assignment,
            "class_shares": case.teacher_shares,
        },
        "personalisation": {
            "method": case.personalisation,
            "rule": case.rule,
            **case.extras,
        },
        "aggregation": {
            "aggregator": case.aggregator,
            **case.numbers,
            "answers": case.answers,
            "release": case.release,
            "query_order": case.query_order,
            "max_queries": case.max_queries,
            "max_labels": case.max_labels,
            "noise": "seeded",
            "noise_seed": NOISE_SEED,
        },
        "student": {
            "model": case.student,
            "params": case.student_params,
            "targets": case.targets,
            "class_shares": case.student_shares,
            "preprocessing": case.student_preprocessing,
        },
        "run": {"n_jobs": 1, "streaming": streaming},
    }
    lines = []
    for section, keys in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {_toml(value)}" for key, value in keys.items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f'"{k}" = {_toml(v)}' for k, v in value.items()) + " }"
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return json.dumps(value)


# --- the command line -------------------------------------------------------------------------------------


def call(arguments: tuple[str, ...]) -> tuple[int, str, str]:
    """Run the command line as the script does, at a width of 100: exit code, output, errors."""
    printed, errors = io.StringIO(), io.StringIO()
    before, width = sys.argv, os.environ.get("COLUMNS")
    code = 0
    os.environ["COLUMNS"] = "100"
    console.out.width = console.err.width = 100
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(errors),
            warnings.catch_warnings(),
        ):
            sys.argv = ["collegium", *label_of_today(arguments, Path(folder))]
            main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv = before
        if width is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = width
    return code, printed.getvalue(), errors.getvalue()


def write_votes(folder: Path) -> dict[str, str]:
    """Write votes of 20 teachers on 120 queries, and budgets; returns what stands for which file."""
    generator = np.random.default_rng(9)
    truth = generator.integers(0, 10, 120)
    agrees = generator.random((120, 20)) < 0.75
    votes = np.where(agrees, truth[:, None], generator.integers(0, 10, (120, 20)))
    features = np.eye(10)[truth] + generator.normal(0, 0.3, (120, 10))
    groups = ["high"] * 10 + ["average"] * 6 + ["low"] * 4
    tables = {
        "BUDGETS-TEACHERS": [f"{name},{4 * 2**step}" for name in groups
                             for step in [["high", "average", "low"].index(name)]],
        "BUDGETS-COPIES": ["high,4,100,1", "average,8,60,2", "low,16,40,3"],
        "BUDGETS-ONE": ["all,6"],
    }  # fmt: skip
    names = {}
    for name, rows in tables.items():
        head = "group,epsilon" + (",owners,teachers_per_owner" if name.endswith("COPIES") else "")
        path = folder / f"{name.lower()}.csv"
        path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
        names[name] = str(path)
    counts = np.stack([(votes == digit).sum(axis=1) for digit in range(10)], axis=1)
    for name, array in {"VOTES": votes, "COUNTS": counts, "FEATURES": features}.items():
        np.save(folder / f"{name.lower()}.npy", array)
        names[name] = str(folder / f"{name.lower()}.npy")
    return {**names, "FOLDER": str(folder / "out")}


def _filled(arguments: tuple[str, ...], names: dict[str, str]) -> tuple[str, ...]:
    return tuple(names.get(argument, argument) for argument in arguments)


# --- plain values -----------------------------------------------------------------------------------------


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]


def _float(value: float | None) -> str | None:
    return None if value is None else float(value).hex()


def _exact(content: Any) -> Any:
    """Write every float of a JSON document with all its bits."""
    if isinstance(content, Mapping):
        return {str(key): _exact(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_exact(value) for value in content]
    return content.hex() if isinstance(content, float) else content


def _array(values: Any, kind: Any) -> Entry:
    array = np.ascontiguousarray(np.asarray(values).astype(kind))
    return {
        "shape": list(array.shape),
        "first": array.ravel()[: 2 * _FIRST].tolist(),
        "sha256": _digest(array.astype(array.dtype.newbyteorder("<")).tobytes()),
    }


def _floats(values: Any) -> Entry:
    array = np.ascontiguousarray(np.asarray(values, dtype="<f8"))
    array = np.where(np.isnan(array), np.nan, array)  # one NaN
    return {
        "shape": list(array.shape),
        "first": [_float(value) for value in array.ravel()[:3].tolist()],
        "sha256": _digest(array.tobytes()),
    }


def _labels(rows: Any, labels: Any) -> Entry:
    pairs = np.column_stack([np.asarray(rows, np.int64), np.asarray(labels, np.int64)])
    return {
        "number": len(pairs),
        "first": pairs[:_FIRST].tolist(),
        "sha256": _digest(pairs.astype("<i8").tobytes()),
    }


def _statement(said: Mapping[str, Any]) -> Entry:
    """Take the statement without the versions of the software, which may change."""
    words = [re.sub(r"\s+", " ", line) for line in said["statement"]]
    about = [said[key] for key in ("guarantee", "released", "private_noise")]
    return {
        "about": about,
        "neighbours": _digest((said["adjacency"] + said["meaning"]).encode()),
        "groups": _digest(json.dumps(_exact(said["groups"])).encode()),
        "words": _digest("\n".join(words).encode()),
    }
