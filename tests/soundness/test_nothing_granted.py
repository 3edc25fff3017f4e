"""Records of people who granted nothing (ε = 0) are read into nothing: all is what it is without them."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from collegium import Budgets, GNMax, PATEClassifier, Policy, PrivacyWarning, Weighting
from collegium.budgets import NOTHING
from collegium.errors import InputError
from collegium.personalisation import PERSONALISATIONS
from collegium.study.config import config_from, read_config
from collegium.study.runner import plan_study, run_study
from collegium.study.study_data import load_study_data
from collegium.zero_and_public_budgets import has_budget, require_budgets

POLICY = Policy({"high": 8.0, "none": 0.0, "low": 16.0, "never": 0})
CLASSES = ["ill", "well"]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def people(n=120, seed=0, private=True):
    generator = np.random.default_rng(seed)
    ill = generator.random(n) < 0.5
    table = pd.DataFrame(
        {
            "age": generator.integers(20, 60, n) + 20 * ill,
            "dose": generator.normal(ill, 0.5),
            "ward": generator.choice(["east", "west"], n),
            "state": np.where(ill, "ill", "well"),
        }
    )
    if private:
        person = generator.integers(0, n // 2, n)
        table["person"] = [f"p{number}" for number in person]
        table["privacy"] = np.array(["high", "low"])[person % 2]
    return table


def silent(kind, n=25):
    """Make records of people who granted nothing, which say what they like."""
    table = people(n, seed=9).assign(privacy="none")
    table["person"] = [f"silent {number // 2}" for number in range(n)]
    table.loc[table.index[-6:], "privacy"] = "never"
    table.loc[table.index[-8:], "person"] = "never asked"  # two levels, which both mean nothing
    if kind == "odd":
        table = table.assign(age=10**9, dose=-1e300, ward="the moon", state="dead")
    elif kind == "missing":
        table[["dose", "ward", "state", "age"]] = None, None, None, None
    elif kind == "text":
        table = table.astype(object).assign(age="n/a", dose="much", ward=7, state=3.5)
    return table


def mixed(speaking, kind, seed=3):
    """Put silent records among the others, which stay in their order."""
    if kind == "absent":
        return speaking
    table = pd.concat([speaking, silent(kind)], ignore_index=True)
    place = np.concatenate([np.arange(len(speaking)), np.zeros(25)])
    place[len(speaking) :] = np.random.default_rng(seed).uniform(-1, len(speaking), 25)
    return table.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)


def fitted(table, *, personalisation="weighting", classes=CLASSES, as_list=False):
    features = table[["age", "dose", "ward"]]
    public = people(60, seed=1, private=False)[["age", "dose", "ward"]]
    X, y = features, table["state"]
    teacher = make_pipeline(
        OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(random_state=0)
    )
    if as_list:
        X, y, public = (
            X.drop(columns="ward").to_numpy().tolist(),
            y.tolist(),
            public.drop(columns="ward"),
        )
        public, teacher = public.to_numpy(), DecisionTreeClassifier(random_state=0)
    model = PATEClassifier(
        teacher, student=teacher, n_teachers=6, aggregator=GNMax(sigma=4), noise_seed=1, random_state=2,
        personalisation=personalisation, classes=classes,
    )  # fmt: skip
    budgets = POLICY.assign(table["privacy"], table["person"])
    return model.fit(X, y, budgets=budgets, X_public=public, keep_sensitive=True), public


def bits(fit):
    model, public = fit
    return {
        "votes": [
            model.sensitive_votes_.counts(q, np.ones(model.plan_.n_teachers)).tolist()
            for q in range(60)
        ],
        "labels": model.labels_.tolist(),
        "rows": model.labelled_indices_.tolist(),
        "classes": model.classes_.tolist(),
        "plan": model.plan_,
        "statement": model.privacy_.sentences(),
        "spent": model.privacy_.to_dict(),
        "student": model.predict_proba(public).tolist(),
    }


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        *(({"personalisation": name}, ["odd"]) for name in PERSONALISATIONS),
        ({}, ["likely", "missing", "text"]),
        ({"personalisation": Weighting(assignment="balanced")}, ["odd"]),
        ({"classes": None}, ["text"]),
        ({"as_list": True}, ["text"]),
        ({"as_list": True, "classes": None}, ["odd"]),
    ],
    ids=str,
)
def test_an_estimator_gives_the_same_bits_whatever_they_say_or_without_them(options, kinds):
    without = bits(fitted(people(), **options))
    for kind in kinds:
        assert bits(fitted(mixed(people(), kind), **options)) == without, kind


TOML = """
[data]
private = "private.{suffix}"
public = "public.{suffix}"
target = "state"
owner = "person"
missing = "?"
{classes}
[privacy]
levels = {{ high = 8.0, none = 0, low = 16.0, never = 0.0 }}
column = "privacy"
[teachers]
model = "sklearn.tree.DecisionTreeClassifier"
n_teachers = 6
[aggregation]
aggregator = "gnmax"
sigma = 4
noise = "seeded"
[student]
model = "sklearn.tree.DecisionTreeClassifier"
[run]
n_jobs = 1
streaming = {streaming}
"""


def study(folder, table, *, streaming=False, suffix="parquet", classes=f"classes = {CLASSES}"):
    folder.mkdir()
    public = people(60, seed=1, private=False).drop(columns="state")
    for name, records in {"private": table, "public": public}.items():
        if suffix == "csv":
            records.to_csv(folder / f"{name}.csv", index=False)
        else:
            records.to_parquet(folder / f"{name}.parquet", row_group_size=20)
    text = TOML.format(suffix=suffix, streaming=str(streaming).lower(), classes=classes)
    (folder / "study.toml").write_text(text)
    return read_config(folder / "study.toml")


def published(config):
    """Everything that a study releases but the head of its journal, which names the files; and its votes."""
    result = run_study(config, config.folder / "out")
    files = {path.name: path.read_bytes() for path in result.folder.release.iterdir()}
    digests = json.loads(files.pop("digests.json"))["files"]
    votes = np.load(config.folder / "out" / "vault" / "votes.npy").tolist()
    return {"votes": votes, "digests": digests, **files}


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({"suffix": "csv", "classes": ""}, ("text",)),
        ({"suffix": "parquet"}, ("odd",)),
        ({"streaming": True}, ("odd", "missing")),
    ],
    ids=str,
)
def test_a_study_publishes_the_same_bytes_whatever_they_say_or_without_them(
    tmp_path, monkeypatch, options, kinds
):
    monkeypatch.setattr("collegium.study.pages.render_page", lambda page: repr(page.privacy))
    without = published(study(tmp_path / "without", people(), **options))
    for kind in kinds:
        with_them = published(study(tmp_path / kind, mixed(people(), kind), **options))
        assert with_them.keys() == without.keys()
        for name, content in without.items():
            assert with_them[name] == content, (kind, name)


@pytest.mark.parametrize("levels_in_a_file", [False, True])
@pytest.mark.parametrize("numbers", [False, True])
def test_a_split_puts_them_on_no_side(tmp_path, levels_in_a_file, numbers):
    levels = {"high": 8.0, "low": 16.0, "none": 0.0, "never": 0.0}

    def load(table):
        if numbers:
            table = table.assign(privacy=table["privacy"].map(levels))
        table[["privacy"]].to_csv(tmp_path / "levels.csv", index=False)
        shown = table.drop(columns="privacy") if levels_in_a_file else table
        shown.to_csv(tmp_path / "all.csv", index=False)
        where = {"file": "levels.csv"} if levels_in_a_file else {"column": "privacy"}
        split = {"private_records": 60, "public_records": 30, "test_records": 20}
        data = {"private": "all.csv", "target": "state", "owner": "person", **split}
        privacy = {**where, **({} if numbers else {"levels": levels})}
        return load_study_data(config_from({"data": data, "privacy": privacy}, tmp_path))

    without = load(people())
    for kind in ("likely", "missing", "text"):
        table = mixed(people(), kind)
        found = load(table)
        granted_nothing = set(np.flatnonzero(table["privacy"].isin(["none", "never"])))
        assert not granted_nothing & set(found.public_rows.tolist())
        for name in ("X", "X_public", "X_test"):
            here, there = getattr(found, name), getattr(without, name)
            pd.testing.assert_frame_equal(*(x.reset_index(drop=True) for x in (here, there)))
        for name in ("codes", "classes", "y_public", "y_test"):
            np.testing.assert_array_equal(getattr(found, name), getattr(without, name))
        assert found.budgets.owners.tolist() == without.budgets.owners.tolist()
        assert found.budgets.group_sizes() == without.budgets.group_sizes()


@pytest.mark.parametrize("streaming", [False, True])
def test_who_says_none_and_something_else_is_refused(tmp_path, streaming):
    table = mixed(people(), "likely")
    who = table.loc[table["privacy"] == "high", "person"].iloc[0]
    table.loc[np.flatnonzero(table["privacy"] == "none")[-1], "person"] = who
    config = study(tmp_path / "torn", table, streaming=streaming)
    with pytest.raises(InputError, match=r"^1 owner\(s\) with two budgets"):
        plan_study(config, on_ledger=False)


@pytest.mark.parametrize("streaming", [False, True])
def test_they_must_not_be_among_the_public_records_either(tmp_path, streaming):
    config = study(tmp_path / "known", mixed(people(), "likely"), streaming=streaming)
    public = pd.read_parquet(config.folder / "public.parquet")
    public["person"] = [f"silent {number}" for number in range(9)] + ["somebody else"] * 51
    public.to_parquet(config.folder / "public.parquet")
    with pytest.raises(InputError, match="public record"):
        plan_study(config, on_ledger=False)


@pytest.mark.parametrize("streaming", [False, True])
def test_if_everybody_granted_nothing_it_is_said_in_one_line(tmp_path, streaming):
    table = people().assign(privacy="none")
    config = study(tmp_path / "all", table, streaming=streaming)
    for run in (lambda: plan_study(config, on_ledger=False), lambda: fitted(table)):
        with pytest.raises(InputError, match=r"^everybody granted nothing \(ε = 0\)") as error:
            run()
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"^everybody granted nothing"):
        PATEClassifier(n_teachers=2).fit(
            [[0.0]] * 9, [0, 1, 1] * 3, budgets=0.0, X_public=[[0.0]] * 9
        )


def test_how_many_they_are_is_told_on_the_screen_alone(tmp_path):
    table = mixed(people(), "odd")
    for run in (
        lambda: fitted(table),
        lambda: plan_study(study(tmp_path / "memory", table), on_ledger=False),
        lambda: plan_study(study(tmp_path / "stream", table, streaming=True), on_ledger=False),
    ):
        with pytest.warns(
            PrivacyWarning, match=r"^10 owner\(s\) granted nothing .* 25 record\(s\)"
        ):
            run()


def test_numbers_say_it_too_and_a_part_of_the_budgets_still_does():
    budgets = Budgets.from_epsilons([0, 2, 0.0, 1, math.inf], owners=list("abacd"))
    assert budgets.record_groups().tolist() == ["nothing", "ε=2", "nothing", "ε=1", "ε=inf"]
    assert budgets.group_sizes() == {"ε=1": 1, "ε=2": 1, "ε=inf": 1}
    assert has_budget(budgets[1:]).tolist() == [0, 2, 3]
    assert budgets.strictest().owner_group.tolist() == [NOTHING, 0, 0, 0]
    with pytest.raises(InputError, match=r"^1 owner\(s\) have no budget"):
        require_budgets(budgets)


def test_without_being_left_out_they_would_have_no_teacher():
    budgets = POLICY.assign(["high", "none", "low"] * 20)
    plan = Weighting().plan_for(budgets, 5)
    assert set(plan.groups) == {"high", "low"}
    assert sum(group.owners for group in plan.groups.values()) == 40
    teachers = plan.assign(budgets, b"key").owner_teachers
    assert (teachers[1::3] == -1).all()
    assert (teachers[0::3] >= 0).all()
