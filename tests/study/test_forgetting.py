"""Somebody leaves: only this person's teachers are trained again, the records go, and what was spent stays."""

import gzip
import json
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

from collegium.errors import CollegiumError, InputError, LedgerError, PrivacyWarning
from collegium.ledger.ledger import Ledger
from collegium.study import forgetting
from collegium.study.config import config_from
from collegium.study.folder import StudyFolder
from collegium.study.forgetting import forget
from collegium.study.stages import run_study
from collegium.study.verifying import examine

N, PUBLIC, TEACHERS = 120, 40, 8
PLANTED = 7771234.5  # in the records of the one who leaves
ANN, BOB = "p10", "p11"


def table(n, seed):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, n)
    X = generator.normal(size=(n, 2)) + 2.5 * y[:, None]
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.array(["no", "yes"])[y]})


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    people = np.arange(N) // 2
    private = table(N, 1).assign(
        who=[f"p{number}" for number in people], level=np.where(people % 3, "low", "high")
    )
    private.loc[private["who"] == ANN, "a"] = PLANTED
    private.to_csv(folder / "private.csv", index=False)
    private.to_csv(folder / "private.csv.gz", index=False)
    private.to_parquet(folder / "private.parquet", index=False)
    table(PUBLIC, 2).drop(columns="y").to_csv(folder / "public.csv", index=False)
    return folder


@pytest.fixture
def folder(tables, tmp_path, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER")
    for path in tables.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def study(folder, **sections):
    settings = {
        "data": {"private": "private.csv", "public": "public.csv", "target": "y", "owner": "who",
                 "classes": ["no", "yes"], "public_may_overlap": True, "scales_may_differ": True},
        "privacy": {"column": "level", "levels": {"high": 1.0, "low": 3.0}},
        "teachers": {"model": "nearest-neighbours", "params": {"n_neighbors": 1},
                     "n_teachers": TEACHERS},
        "aggregation": {"aggregator": "gnmax", "sigma": 25, "max_labels": 24},
        "run": {"n_jobs": 1},
    }  # fmt: skip
    for section, keys in sections.items():
        settings[section] = {**settings.get(section, {}), **keys}
    return config_from(settings, folder)


def quietly(work, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return work(*arguments, **options)


def run(config, out):
    return quietly(run_study, config, out)


def leave(name, config, out, **options):
    (done,) = quietly(forget, name, [(config, out)], **{"remove_records": True, **options})
    return done


def files(folder, place="vault/teachers"):
    return {path.name: path.read_bytes() for path in (folder / place).iterdir() if path.is_file()}


def votes(out):
    return np.load(out / "vault/votes.npy")


def is_sound(out):
    folder = StudyFolder(out)
    with folder.locked():
        return not any(one.trouble for one in examine(folder))


class CutOff(Exception):  # noqa: N818
    pass


def stop_at(monkeypatch, owner, name, call=1):
    """Stop at one call of something, as a crash does."""
    real, calls = getattr(owner, name), []

    def stop(*arguments, **options):
        calls.append(name)
        if len(calls) == call:
            raise CutOff
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, stop)
    return lambda: monkeypatch.setattr(owner, name, real)


def half_asked(monkeypatch, config, out):
    from collegium.study.journal import FileJournal

    restore = stop_at(monkeypatch, FileJournal, "reserve", call=2)
    with pytest.raises(CutOff):
        run(config, out)
    restore()


def trained(monkeypatch, config, out):
    from collegium.pate.pipeline import PateRun

    restore = stop_at(monkeypatch, PateRun, "release")
    with pytest.raises(CutOff):
        run(config, out)
    restore()


def half_trained(monkeypatch, config, out):
    from collegium.pate.teachers import ensemble

    restore = stop_at(monkeypatch, ensemble.TeacherEnsemble, "ask")
    with pytest.raises(CutOff):
        run(config, out)
    restore()


def to_the_end(monkeypatch, config, out):
    run(config, out)


STATES = [half_trained, trained, half_asked, to_the_end]


def planted_in(vault):
    """Search stored models and arrays for the bytes of the planted number, and tables for its digits."""
    found = [np.float64(PLANTED).tobytes(), np.float32(PLANTED).tobytes(), str(PLANTED).encode()]
    return [
        path.relative_to(vault).as_posix()
        for path in vault.rglob("*")
        if path.is_file() and any(one in path.read_bytes() for one in found)
    ]


@pytest.mark.parametrize("state", STATES)
def test_only_the_persons_teachers_are_trained_again_and_all_else_goes_on(
    folder, monkeypatch, state
):
    config, out = study(folder), folder / "out"
    state(monkeypatch, config, out)
    before, release = files(out), files(out, "release")
    assert planted_in(out / "vault")
    ledger = Ledger(folder / "people.ledger") if state is not half_trained else None
    spent = ledger and ledger.account_of(ANN).standing.spent
    done = leave(ANN, config, out)
    assert done.records == 2 and done.teachers == 1
    assert done.has_asked == (state in (half_asked, to_the_end))
    assert done.voted_again == (state is not half_trained)
    after = files(out)
    changed = {name for name in before if after.get(name) != before[name]}
    assert len(changed) == 1 and set(before) - changed <= set(after)
    assert not planted_in(out / "vault") and files(out, "release") == release
    assert is_sound(out)
    if ledger:
        standing = ledger.account_of(ANN).standing
        assert standing.has_left and standing.spent == spent
    result = run(config, out)
    assert len(result.labels.labels) == 24 and is_sound(out)
    kinds = [entry.kind for entry in Ledger(folder / "people.ledger").history()]
    assert kinds.count("reserve") == kinds.count("settle") == 1
    if state is to_the_end:
        for name in ("labels.csv", "privacy.json", "student.skops"):
            assert files(out, "release").get(name) == release.get(name)
