"""The class list is public input; read off private labels it is said, in every file, not to be covered."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from collegium import GNMax, PATEClassifier, PrivacyWarning
from collegium.accounting.neighbours import Arrangement
from collegium.data.tables import classes_of_public
from collegium.errors import InputError
from collegium.study.config import config_from
from collegium.study.runner import plan_study, run_study

NOT_COVERED = (
    "Not covered: the list of class names, which was read off private labels (a class that only one person "
    "has is visible)"
)
RARE = "rare-disease"


def people(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n)
    return pd.DataFrame(
        {
            "age": age,
            "weight": rng.normal(size=n),
            "sick": np.where(age > 0, "yes", "no"),
            "privacy": rng.choice(["high", "low"], n),
        }
    )


def config(folder, public_labels=False, test_labels=False, rare=True, streamed=False, **data):
    private = people(240, 0)
    if rare:
        private.loc[17, "sick"] = RARE
    form = "parquet" if streamed else "csv"
    private.to_parquet(folder / "private.parquet")
    private.to_csv(folder / "private.csv", index=False)
    dropped = ["privacy"] if public_labels else ["privacy", "sick"]
    people(80, 1).drop(columns=dropped).to_csv(folder / "public.csv", index=False)
    people(40, 2).drop(columns="privacy").to_csv(folder / "test.csv", index=False)
    given = {"private": f"private.{form}", "public": "public.csv", "target": "sick", **data}
    if test_labels:
        given["test"] = "test.csv"
    return config_from(
        {
            "data": given,
            "privacy": {"column": "privacy", "levels": {"high": 40.0, "low": 80.0}, "delta": 1e-6},
            "teachers": {"n_teachers": 10, "model": "sklearn.naive_bayes.GaussianNB"},
            "aggregation": {"aggregator": "gnmax", "sigma": 2.0, "max_labels": 30},
            "student": {"model": "sklearn.naive_bayes.GaussianNB"},
            "run": {"n_jobs": 1, "streaming": streamed},
        },
        folder,
    )


def guaranteeing(release):
    """Text of every released file that says something of the guarantee."""
    texts = {path.name: path.read_bytes().decode(errors="replace") for path in release.iterdir()}
    return {name: text for name, text in texts.items() if "guarantee" in text.lower()}


@pytest.mark.parametrize("streamed", [False, True])
def test_a_list_read_off_private_labels_is_not_covered_as_every_released_file_says(
    tmp_path, streamed
):
    with pytest.warns(PrivacyWarning, match="which no budget pays for"):
        result = run_study(config(tmp_path, streamed=streamed), tmp_path / "out")
    said = guaranteeing(result.folder.release)
    assert set(said) == {"privacy.json", "report.html", "README.md"}
    assert all(NOT_COVERED in text for text in said.values())
    assert RARE in (result.folder.release / "effects.json").read_text()  # why it must be said
    terms = json.loads((tmp_path / "out/vault/terms.json").read_text())
    assert NOT_COVERED in Arrangement(**terms["arrangement"]).sentence


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "source", [{"classes": ["no", "yes"]}, {"public_labels": True}, {"test_labels": True}]
)
def test_a_list_that_was_given_or_is_that_of_public_labels_is_covered(tmp_path, source, streamed):
    study = config(tmp_path, rare=False, streamed=streamed, **source)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the list of classes")
        result = run_study(study, tmp_path / "out")
    assert not any("Not covered" in t for t in guaranteeing(result.folder.release).values())
    effects = json.loads((result.folder.release / "effects.json").read_text())
    assert [row["name"] for row in effects["classes"]] == ["no", "yes"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_private_class_that_no_public_label_has_is_refused_and_not_named(tmp_path, streamed):
    study = config(tmp_path, public_labels=True, streamed=streamed)
    with pytest.raises(InputError, match="the list is that of the public labels") as refused:
        plan_study(study, on_ledger=False)
    assert RARE not in str(refused.value)


@pytest.mark.parametrize("streamed", [False, True])
def test_another_error_says_nothing_of_the_list(tmp_path, streamed):
    study = config(tmp_path, public_labels=True, streamed=streamed, rare=False)
    form = "parquet" if streamed else "csv"
    table = people(240, 0).assign(sick=lambda all_: all_["sick"].where(all_.index != 17))
    getattr(table, f"to_{form}")(tmp_path / f"private.{form}", index=False)
    with pytest.raises(InputError, match="without a label") as refused:
        plan_study(study, on_ledger=False)
    assert "the list is that of" not in str(refused.value)


def test_the_terminal_says_it(tmp_path, collegium):
    config(tmp_path)
    (tmp_path / "study.toml").write_text(
        "[data]\nprivate = 'private.csv'\npublic = 'public.csv'\ntarget = 'sick'\n"
        "[privacy]\ncolumn = 'privacy'\nlevels = { high = 40.0, low = 80.0 }\n"
        "[teachers]\nn_teachers = 10\n[aggregation]\naggregator = 'gnmax'\nsigma = 2.0\nmax_labels = 9\n"
        "[run]\nn_jobs = 1\n"
    )
    code, printed, errors = collegium("run", tmp_path / "study.toml")
    assert code == 0
    assert "which no budget pays for" in " ".join(errors.split())
    assert NOT_COVERED in " ".join(printed.split())
    left = collegium("account", "--remaining", tmp_path / "study")[1]
    assert NOT_COVERED in " ".join(left.split())


def test_python_warns_and_the_object_that_may_be_pickled_says_it():
    rng = np.random.default_rng(0)
    X, X_public = rng.normal(size=(200, 3)), rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no").astype(object)
    y[3] = RARE
    model = PATEClassifier(n_teachers=5, aggregator=GNMax(sigma=1.0), random_state=0)
    with pytest.warns(PrivacyWarning, match="a class that only one person has will show"):
        model.fit(X, y, budgets=np.full(200, 50.0), X_public=X_public)
    assert RARE in model.classes_
    assert NOT_COVERED in pickle.loads(pickle.dumps(model)).privacy_.sentences()[1]
    y[3] = "no"
    model.set_params(classes=["no", "yes"])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the list of classes")
        model.fit(X, y, budgets=np.full(200, 50.0), X_public=X_public)
    assert "Not covered" not in model.privacy_.adjacency


@pytest.mark.parametrize(
    ("columns", "classes"),
    [
        ([np.array(["b", "a", None], dtype=object), None], ["a", "b"]),
        ([np.array([1, 2]), np.array([3.0, np.nan])], [1, 2, 3]),
        ([np.array([True, False])], [False, True]),
        ([np.array([np.nan, np.nan]), None], None),
    ],
)
def test_classes_of_public_labels(columns, classes):
    found = classes_of_public(*columns)
    assert (found if found is None else found.tolist()) == classes


def test_public_labels_of_two_kinds_are_refused():
    with pytest.raises(InputError, match=r"some labels .* numbers and some text"):
        classes_of_public(np.array(["a", 1], dtype=object))
