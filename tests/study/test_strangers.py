"""People whom another ledger knows are not asked again unnoticed, whichever way a ledger is used."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import collegium as cg
from collegium import Ledger
from collegium.accounting import Neighbours
from collegium.errors import LedgerError
from collegium.ledger import Cost, Lifetime
from collegium.pate.pipeline import PateRun
from collegium.runs.observer import Observer
from collegium.study import planned_settings
from collegium.study.config import config_from
from collegium.study.planned_settings import recommended
from collegium.study.runner import plan_study

POLICY = cg.Policy({"high": 1.0, "low": 3.0})
N = 60
GENERATOR = np.random.default_rng(2)
X = GENERATOR.normal(size=(N, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")
TABLE = pd.DataFrame(
    {
        "who": [f"p{number}" for number in range(N)],
        "level": np.where(np.arange(N) % 3 == 0, "high", "low"),
        "a": X[:, 0].round(3),
        "b": X[:, 1].round(3),
        "y": Y,
    }
)
BUDGETS = POLICY.assign(TABLE["level"], owners=TABLE["who"])
SCHEMA = cg.Schema({"a": {"kind": "number", "bounds": [-4, 4]}})
VOTES = {
    "method": {"kind": "pate"},
    "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 5},
    "aggregation": {"aggregator": "gnmax", "sigma": 4},
}
OPEN = {"method": {"kind": "auto"}}
DIRECT = {"method": {"kind": "dpsgd"}}
ASK = {
    "method": {"kind": "statistics"},
    "statistics": {"schema": "schema.toml", "questions": ["mean a"]},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Another folder than that of the ledger in which these people have nothing left."""
    monkeypatch.delenv("COLLEGIUM_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    used = Ledger.create(tmp_path / "used.ledger")
    spent = {
        level: Cost(Lifetime().limit(budget).mu_squared) for level, budget in POLICY.levels.items()
    }
    used.reserve("before", "last year", BUDGETS, spent, neighbours=Neighbours.ANY_CHANGE)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    TABLE.to_csv(folder / "private.csv", index=False)
    pd.DataFrame({"a": X[:30, 0] + 0.5, "b": X[:30, 1], "y": Y[:30]}).to_csv(
        folder / "public.csv", index=False
    )
    text = '[columns.a]\nkind = "number"\nbounds = [-4, 4]\n'
    (folder / "schema.toml").write_text(text)
    np.save(folder / "votes.npy", np.arange(60).reshape(12, 5) % 3)
    (folder / "budgets.csv").write_text("teacher,group,epsilon\n" + "".join(
        f"{number},{level},{epsilon}\n"
        for number, (level, epsilon) in enumerate([("high", 1.0)] * 2 + [("low", 3.0)] * 3)
    ))  # fmt: skip
    TABLE.rename(columns={"who": "owner", "level": "group"})[["owner", "group"]].to_csv(
        folder / "people.csv", index=False
    )
    return folder


def of_its_own(folder):
    return Ledger.create(folder / "own.ledger")


def study(folder, method):
    data = {"private": "private.csv", "owner": "who"}
    if method is not ASK:
        data |= {"public": "public.csv", "target": "y", "classes": ["no", "yes"]}
        data["public_may_overlap"] = True
    return config_from(
        {
            "data": data,
            "privacy": {"column": "level", "levels": {"high": 1.0, "low": 3.0}},
            **method,
        },
        folder,
    )


def asking(*more):
    levels = ("--privacy", "level", "--levels", "high=1,low=3", "--owner", "who", "--spend", 0.5)
    return lambda folder: (
        "ask", folder / "private.csv", "mean a", "--schema", folder / "schema.toml", *levels, *more
    )  # fmt: skip


def labelling(folder):
    files = {"votes": "votes.npy", "budgets": "budgets.csv", "people": "people.csv", "out": "out"}
    given = [part for name, file in files.items() for part in (f"--{name}", folder / file)]
    return ("label", *given, "--classes", 3, "--aggregator", "gnmax", "--sigma", 50)


IN_PYTHON = {
    "votes": lambda folder: cg.PATEClassifier(
        GaussianNB(), n_teachers=5, aggregator=cg.GNMax(sigma=4), classes=["no", "yes"]
    ).fit(X, Y, budgets=BUDGETS, X_public=X[:30] + 0.5, ledger=of_its_own(folder)),
    "direct training": lambda folder: cg.DPSGDClassifier(steps=2, classes=["no", "yes"]).fit(
        X, Y, budgets=BUDGETS, ledger=of_its_own(folder)
    ),
    "regression": lambda folder: cg.DPSGDRegressor(steps=2, bounds=(-4, 4)).fit(
        X, X[:, 1], budgets=BUDGETS, ledger=of_its_own(folder)
    ),
    "a plan": lambda folder: cg.DPSGDClassifier(steps=2).plan(BUDGETS, ledger=of_its_own(folder)),
    "questions": lambda folder: cg.Statistics(
        TABLE, BUDGETS, schema=SCHEMA, ledger=of_its_own(folder)
    ),
    "a program's own release": lambda folder: of_its_own(folder).reserve(
        "1", "a count", BUDGETS, dict.fromkeys(POLICY.levels, Cost(0.01)),
        neighbours=Neighbours.ANY_CHANGE,
    ),
    "a study of votes": lambda folder: plan_study(study(folder, VOTES)),
    "a study that learns directly": lambda folder: plan_study(study(folder, DIRECT)),
    "a study that asks": lambda folder: plan_study(study(folder, ASK)),
    "an open study": lambda folder: recommended(study(folder, OPEN), Observer()),
}  # fmt: skip
ON_THE_COMMAND_LINE = {
    "ask": asking(),
    "ask --plan": asking("--plan"),
    "ask on a new ledger": lambda folder: asking("--ledger", of_its_own(folder))(folder),
    "label": labelling,
    "label on a new ledger": lambda folder: (*labelling(folder), "--ledger", of_its_own(folder)),
}
SAID = "another ledger, .*used.ledger, knows 60 of these 60 people: name it"


def rehearsed(*_, **__):
    raise AssertionError("something was rehearsed first")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("way", IN_PYTHON.values(), ids=IN_PYTHON)
def test_in_python_another_ledger_that_knows_them_is_named_before_a_rehearsal(
    folder, way, monkeypatch
):
    monkeypatch.setattr(PateRun, "rehearse", rehearsed)
    monkeypatch.setattr(planned_settings, "recommend_from", rehearsed)
    with pytest.raises(LedgerError, match=SAID):
        way(folder)
    for place in folder.glob("*.ledger"):
        assert not Ledger(place).standings()


@pytest.mark.parametrize("way", ON_THE_COMMAND_LINE.values(), ids=ON_THE_COMMAND_LINE)
def test_on_the_command_line_too(folder, way, collegium):
    code, _, errors = collegium(*way(folder))
    assert code == 2 and re.search(SAID, " ".join(errors.split()))
    assert not (folder / "private.ledger").exists()


def test_who_says_that_they_are_others_lets_them_join_and_is_not_asked_again(folder, collegium):
    on_it = asking("--json")(folder)
    assert collegium(*on_it, "--allow-new-people")[0] == 0
    code, printed, _ = collegium(*on_it)
    assert code == 0 and json.loads(printed)["ledger"].endswith("elsewhere/private.ledger")
    opened = Ledger.create(folder / "own.ledger")
    opened.allow_new_people = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cg.DPSGDClassifier(steps=2, classes=["no", "yes"]).fit(X, Y, budgets=BUDGETS, ledger=opened)
    assert sum(one.owners for one in opened.standings()) == N


def test_people_who_were_entered_by_hand_are_known_too(folder):
    others = POLICY.assign(TABLE["level"], owners="q" + TABLE["who"])
    Ledger.create(folder.parent / "consent.ledger").change(others)
    with pytest.raises(LedgerError, match=r"consent\.ledger, knows 60 of these 60"):
        of_its_own(folder).left(others)
