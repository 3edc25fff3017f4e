"""`plan` with nasty values for every key: it works, or says in one line what is wrong; never a traceback."""

import copy
import math
import sys

import numpy as np
import pandas as pd
import pytest

from collegium.cli.main import main
from collegium.study.methods.kinds import all_keys

BASE = {
    "data": {
        "private": "private.csv",
        "public": "public.csv",
        "test": "test.csv",
        "target": "kind",
        "classes": ["cat", "dog"],
    },
    "privacy": {"levels": {"high": 1.0, "low": 3.0}, "column": "privacy"},
    "preprocessing": {"kind": "tabular"},
    "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 6},
    "aggregation": {"aggregator": "gnmax", "answers": 5},
    "student": {"model": "sklearn.naive_bayes.GaussianNB"},
}
ANY = [[[]], {"a": []}, True, "", 10**400, -1]
NASTY = {
    "text": ["word", "../..", "💣"],
    "text or list": ["word", [], [1], [2, "x"], [math.inf], [10**400], [2, 3.5]],
    "path": ["none.csv", "x/" * 3000, "x" * 300, ".", "private.csv/x", "labels.npy"],
    "number": [math.inf, -math.inf, math.nan, 1e300, -1e300, 5e-324, 0, 10**30],
    "whole number": [2**31, 2**32, 2**63, 10**30, -(10**30), 0, 1],
    "yes/no": [False, "yes"],
    "list": [["x"], ["x", 1], [{}], [None], [0, 10**30], ["", ""], [math.nan], ["cat", "dog", "\0"]],
    "table": [
        {"high": 1e300, "low": 3.0}, {"high": math.nan}, {"high": 10**400, "low": 1}, {"": 1.0},
        {"high": 5e-324, "low": 1e15}, {"high": "x"}, {"high": {}}, {"high": [[]], "low": 1},
        {"cat": 0.5, "dog": 0.5}, {"cat": [], "dog": 1.0}, {"random_state": 10**30}, {"priors": "x"},
    ],
}  # fmt: skip
#: What else has to be said for a key to mean anything.
NEEDS = {
    "data.test_labels": {"data": {"target": None, "private_labels": "labels.npy"}},
    "data.private_labels": {"data": {"target": None}},
    "data.private_records": {"data": {"public": None, "public_records": 20}},
    "data.public_records": {"data": {"public": None, "private_records": 60}},
    "data.test_records": {
        "data": {"public": None, "test": None, "private_records": 40, "public_records": 20}
    },
    "privacy.file": {"privacy": {"column": None}},
    "privacy.shares": {"privacy": {"column": None}},
    "personalisation.max_duplicates": {"personalisation": {"method": "upsampling"}},
    "personalisation.tolerance": {"personalisation": {"method": "upsampling"}},
    "personalisation.precision": {
        "personalisation": {"method": "upsampling", "rule": "algorithm1"}
    },
    "personalisation.shuffle_every": {"personalisation": {"method": "vanishing"}},
    "aggregation.sigma": {"aggregation": {"answers": None}},
    **{
        f"aggregation.{name}": {"aggregation": {"aggregator": aggregator, "answers": None}}
        for name, aggregator in {
            "threshold": "confident",
            "sigma_threshold": "confident",
            "gamma": "lnmax",
            "confidence": "interactive",
            "refit_every": "interactive",
        }.items()
    },
    "aggregation.noise_seed": {"aggregation": {"noise": "seeded"}},
    "preprocessing.components": {"preprocessing": {"kind": "principal"}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files of a small study."""
    made = tmp_path_factory.mktemp("study")
    generator = np.random.default_rng(0)
    for name, n in (("private", 90), ("public", 30), ("test", 20)):
        table = pd.DataFrame(generator.normal(size=(n, 2)), columns=["a", "b"])
        table["kind"] = np.where(table["a"] > 0, "cat", "dog")
        if name == "private":
            table["privacy"] = np.where(np.arange(n) % 3 == 0, "low", "high")
        table.to_csv(made / f"{name}.csv", index=False)
        table.replace({"cat": 0, "dog": 1}).to_csv(made / f"{name}-numbers.csv", index=False)
    np.save(made / "labels.npy", np.where(np.arange(90) % 2 == 0, "cat", "dog"))
    return made


@pytest.fixture
def plan(folder, monkeypatch, capsys):
    """Write a study with other settings than the base's, and plan it: exit code and errors."""

    def call(*, base=None, **sections):
        settings = copy.deepcopy(BASE)
        for given in (base or {}, sections):
            for section, keys in given.items():
                settings.setdefault(section, {}).update(keys)
        text = "".join(
            f"[{section}]\n"
            + "".join(f"{k} = {toml(v)}\n" for k, v in keys.items() if v is not None)
            for section, keys in settings.items()
        )
        (folder / "study.toml").write_text(text, encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["collegium", "plan", str(folder / "study.toml")])
        with pytest.raises(SystemExit) as ended:
            main()
        lines = capsys.readouterr().err.strip().splitlines()
        return ended.value.code or 0, [line for line in lines if not line.startswith("warning:")]

    return call


def toml(value):
    """Write a value as TOML does."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or c in '"\\' else c for c in value)
        return f'"{escaped}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml(str(k))} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in value if v is not None) + "]"
    return hex(value) if isinstance(value, int) and value > 10**300 else repr(value)


def test_the_study_itself_is_planned(plan):
    assert plan() == (0, [])


@pytest.mark.parametrize("key", all_keys(), ids=lambda key: key.path)
def test_no_value_of_any_key_ends_in_a_traceback(plan, key):
    ended = set()
    for value in [*ANY, *NASTY[key.setting.kind], *key.setting.choices]:
        code, errors = plan(base=NEEDS.get(key.path), **{key.section: {key.name: value}})
        ended.add(code)
        assert code in (0, 2), (value, errors)
        if code == 2:
            assert len(errors) == 1, (value, errors)
            assert errors[0].startswith("error:")
            assert len(errors[0]) < 1500 or key.setting.kind == "path", (
                "nobody reads so long a message"
            )
    assert 2 in ended


def refused(plan, **sections):
    code, errors = plan(**sections)
    assert code == 2, "planned, though it can never be run"
    (line,) = errors
    return line


@pytest.mark.parametrize(
    "key", [key for key in all_keys() if key.setting.kind == "path"], ids=lambda k: k.path
)
def test_an_empty_name_is_not_the_folder_of_the_study(plan, key):
    line = refused(plan, base=NEEDS.get(key.path), **{key.section: {key.name: ""}})
    assert f"{key.path} must not be empty" in line


@pytest.mark.parametrize("who", ["teachers", "student"])
@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        ("", {}, "model must not be empty"),
        ("a\0b", {}, "must not contain"),
        ("parrot", {}, "unknown model 'parrot'"),
        ("..parrot", {}, "there is no class '..parrot'"),
        ("..", {}, "there is no class '..'"),
        ("sklearn.svm.Parrot", {}, "there is no class"),
        ("math.pi", {}, "is no class"),
        ("sklearn.preprocessing.StandardScaler", {}, "has no fit and predict"),
        ("random-forest", {"trees": 3}, "does not take these parameters"),
        ("random-forest", {"n_estimators": "many"}, "does not take these parameters"),
        ("logistic-regression", {"C": -1.0}, "does not take these parameters"),
        ("svm", {"random_state": 2**32}, "does not take these parameters"),
    ],
)
def test_models_that_cannot_be_made_are_refused_before_records_are_read(
    plan, who, model, params, message
):
    for records in ("private.csv", "none.csv"):
        line = refused(plan, data={"private": records}, **{who: {"model": model, "params": params}})
        assert message in line and f"{who}.model" in line


def test_a_student_that_cannot_choose_questions_is_refused(plan):
    assert plan(aggregation={"query_order": "active"}) == (0, [])
    line = refused(
        plan, aggregation={"query_order": "active"}, student={"model": "sklearn.svm.LinearSVC"}
    )
    assert "LinearSVC" in line


def test_a_seed_that_no_model_takes_is_refused(plan):
    assert plan(study={"seed": 2**32 - 1}, student={"model": "random-forest"}) == (0, [])
    assert "study.seed must be at most" in refused(plan, study={"seed": 2**32})


def test_noise_that_cannot_be_drawn_is_refused(plan):
    line = refused(plan, aggregation={"answers": None, "sigma": 1e30})
    assert "can be drawn exactly" in line
    line = refused(plan, aggregation={"answers": None, "sigma": 5e-324})
    assert "cannot afford" in line


@pytest.mark.parametrize("method", ["weighting", "upsampling", "vanishing", "uniform"])
def test_an_epsilon_beyond_all_accounts_is_named_with_its_level(plan, method):
    line = refused(
        plan, privacy={"levels": {"high": 1.0, "low": 1e300}}, personalisation={"method": method}
    )
    assert "level 'low': epsilon must be at most 1e+15, or infinite" in line


@pytest.mark.parametrize("rule", ["budget", "sqrt"])
def test_budgets_too_far_apart_are_both_named(plan, rule):
    line = refused(
        plan,
        privacy={"levels": {"high": 5e-324, "low": 1e15}},
        personalisation={"method": "upsampling", "rule": rule},
        aggregation={"aggregator": "gnmax", "answers": None, "sigma": 100.0},
    )
    assert "'high'" in line and "'low'" in line and "cannot be planned together" in line


def test_more_teachers_than_anybody_can_train_are_refused(plan):
    line = refused(
        plan,
        privacy={"levels": {"high": 1.000001, "low": 1e9}},
        personalisation={"method": "upsampling", "rule": "algorithm1", "precision": 6},
    )
    assert "would train" in line and "use rule 'exact'" in line


NUMBERS = {f: f"{f}-numbers.csv" for f in ("private", "public", "test")}


def test_numbers_and_text_are_told_apart(plan):
    assert plan(data={**NUMBERS, "classes": [0, 1]}) == (0, [])
    # In a file of characters, 0 is what both 0 and "0" mean.
    assert plan(data={**NUMBERS, "classes": ["0", "1"]}) == (0, [])
    line = refused(plan, data={"classes": [0, 1]})
    assert "the labels are text and the classes numbers" in line
    line = refused(plan, data={"public": NUMBERS["public"]})
    assert "no label of the public records" in line and "the labels are numbers" in line
    line = refused(plan, data={"classes": ["cat", "owl"]})
    assert line.endswith("allowed are cat, owl")


def test_numbers_and_text_are_told_apart_in_a_stream(plan, folder):
    pd.read_csv(folder / NUMBERS["private"]).to_parquet(folder / "private.parquet")
    line = refused(
        plan,
        data={**NUMBERS, "private": "private.parquet", "classes": ["0", "1"]},
        run={"streaming": True, "n_jobs": 1},
    )
    assert "the labels are numbers and the classes text" in line
