"""The same settings give the same bits from TOML and from Python, in memory and streamed."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from collegium import (
    ConfidentGNMax,
    ExponentialMax,
    GNMax,
    InteractiveGNMax,
    LNMax,
    PATEClassifier,
    PermuteAndFlip,
    Policy,
    PrivacyWarning,
    Queries,
    load_student,
)
from collegium.cli.main import app
from collegium.models.preprocessing.tabular_encoder import TabularEncoder
from collegium.personalisation import PERSONALISATIONS
from collegium.study.config import read_config
from collegium.study.folder import HISTOGRAMS_FILE
from collegium.study.runner import run_study
from collegium.study.terms import read_terms
from tests.settings_file import settings

SEED, NOISE_SEED = 7, 11
LEVELS = {"high": 4.0, "average": 6.0, "low": 9.0}
FEATURES, CLASSES = ["age", "dose", "ward"], ["ill", "well"]
AGGREGATORS = {
    aggregator.name: aggregator
    for aggregator in (
        LNMax(gamma=0.05),
        GNMax(sigma=10.0),
        ConfidentGNMax(threshold=3.0, sigma_threshold=12.0, sigma=10.0),
        InteractiveGNMax(
            threshold=0.0, sigma_threshold=8.0, sigma=10.0, confidence=0.9, refit_every=4
        ),
        PermuteAndFlip(gamma=0.05),
        ExponentialMax(gamma=0.05),
    )
}
#: Whose labels alone are released, and charged as labels.
LABELS = GNMax(sigma=7.0)
TEACHER = {"max_depth": 3, "max_features": 1}  # draws: its seed decides on its votes
STUDENT = {"max_depth": 4, "max_features": 1}
TOML = """
[study]
name = "same bits"
seed = {seed}
[data]
private = "private.parquet"
public = "public.parquet"
test = "test.parquet"
target = "state"
owner = "person"
classes = {classes}
[privacy]
levels = {levels}
column = "privacy"
[preprocessing]
kind = "tabular"
[teachers]
model = "sklearn.tree.DecisionTreeClassifier"
params = {teacher}
n_teachers = 8
[personalisation]
method = "{personalisation}"
[aggregation]
{aggregation}
release = "{release}"
noise = "seeded"
noise_seed = {noise_seed}
[student]
model = "sklearn.tree.DecisionTreeClassifier"
params = {student}
[run]
n_jobs = 1
streaming = {streaming}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """160 people with 200 records between them, 40 public records and 60 for testing."""
    path = tmp_path_factory.mktemp("records")
    generator = np.random.default_rng(1)
    X = generator.normal(size=(300, 2))
    table = pd.DataFrame(X, columns=FEATURES[:2])
    table["ward"] = np.where(generator.random(300) > 0.5, "east", "west")
    table["state"] = np.where(X[:, 0] + X[:, 1] > 0, *CLASSES)
    private = table[:200].copy()
    private["person"] = [f"p{number % 160}" for number in range(200)]
    private["privacy"] = np.array(["high", "high", "average", "low"])[np.arange(200) % 160 % 4]
    private.to_parquet(path / "private.parquet")
    table[200:240].reset_index(drop=True).to_parquet(path / "public.parquet")
    table[240:].reset_index(drop=True).to_parquet(path / "test.parquet")
    return path


def release_of(aggregator):
    shows = aggregator.pays_for_histogram and aggregator is not LABELS
    return "histogram" if shows else "labels"


def from_toml(folder, out, personalisation, aggregator, streaming=False):
    given = {name: value for name, value in vars(aggregator).items() if value is not None}
    numbers = "\n".join(f"{name} = {value}" for name, value in given.items())
    text = TOML.format(
        seed=SEED,
        classes=CLASSES,
        levels=_inline(LEVELS),
        teacher=_inline(TEACHER),
        student=_inline(STUDENT),
        personalisation=personalisation,
        aggregation=f'aggregator = "{aggregator.name}"\n{numbers}',
        release=release_of(aggregator),
        noise_seed=NOISE_SEED,
        streaming=json.dumps(streaming),
    )
    path = folder / f"{out.name}.toml"
    path.write_text(text, encoding="utf-8")
    result = run_study(read_config(path), out)
    test = pd.read_parquet(folder / "test.parquet")[FEATURES]
    student = load_student(out / "release/student.skops")
    found = {
        "votes": np.load(out / "vault/votes.npy"),
        "asked": np.array([outcome.query for outcome in result.labels.outcomes]),
        "rows": result.labels.queries,
        "labels": np.array(CLASSES)[result.labels.labels],
        "stop": result.labels.stop_reason,
        "account": result.privacy,
        "plan": result.plan.groups,
        "student": student.predict_proba(test),
        "answers": student.predict(test),
    }
    if release_of(aggregator) == "histogram":
        table = pd.read_parquet(out / "release" / HISTOGRAMS_FILE)
        found["counts"] = table[[f"count: {name}" for name in CLASSES]].to_numpy()
        found["checks"] = table["check"].to_numpy()
    return found


def from_python(folder, personalisation, aggregator):
    private, public, test = (
        pd.read_parquet(folder / f"{name}.parquet") for name in ("private", "public", "test")
    )
    model = PATEClassifier(
        DecisionTreeClassifier(**TEACHER),
        n_teachers=8,
        personalisation=personalisation,
        aggregator=aggregator,
        queries=Queries(release=release_of(aggregator)),
        student=DecisionTreeClassifier(**STUDENT),
        preprocessing=TabularEncoder(),
        classes=CLASSES,
        noise_seed=NOISE_SEED,
        random_state=SEED,
    )
    budgets = Policy(LEVELS).assign(private["privacy"], private["person"])
    model.fit(
        private[FEATURES],
        private["state"],
        budgets=budgets,
        X_public=public[FEATURES],
        keep_sensitive=True,
    )
    histograms = getattr(model, "histograms_", None)
    found = {
        "votes": model.sensitive_votes_.sensitive_table,
        # Without a check every question is answered, so the labels' rows are all that was asked.
        "asked": model.labelled_indices_ if histograms is None else histograms.queries,
        "rows": model.labelled_indices_,
        "labels": model.labels_,
        "stop": model.stop_reason_,
        "account": model.privacy_,
        "plan": model.plan_.groups,
        "student": model.predict_proba(test[FEATURES]),
        "answers": model.predict(test[FEATURES]),
    }
    if histograms is not None:
        found |= {"counts": histograms.counts, "checks": histograms.checks}
    return found


def _inline(table):
    return "{ " + ", ".join(f"{name} = {value}" for name, value in table.items()) + " }"


def require_same_bits(found, expected):
    assert set(found) == set(expected)
    assert not expected["account"].noise_is_private
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found[name], value, err_msg=name)
        else:
            assert found[name] == value, name


@pytest.mark.parametrize(
    ("personalisation", "aggregator"),
    [
        ("uniform", "gnmax"),
        ("upsampling", "interactive"),
        ("weighting", "confident"),
        ("vanishing", "lnmax"),
        ("weighting", "pfmax"),
        ("uniform", "expmax"),
        ("upsampling", "gnmax's labels"),
        ("vanishing", "gnmax's labels"),
    ],
)
def test_a_study_and_the_estimator_give_the_same_bits(
    folder, tmp_path, personalisation, aggregator
):
    """Each of both once; the golden record holds the estimator against the study in all combinations."""
    aggregator = AGGREGATORS.get(aggregator, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        expected = from_toml(folder, tmp_path / "study", personalisation, aggregator)
        found = from_python(folder, personalisation, aggregator)
    assert len(expected["asked"]) > 4 and len(set(expected["labels"])) == 2
    charged_as_labels = (
        aggregator is LABELS and personalisation != "vanishing"
    )  # there no more can be asked
    assert expected["account"].price == ("labels" if charged_as_labels else "histogram")
    require_same_bits(found, expected)


@pytest.mark.parametrize("personalisation", list(PERSONALISATIONS))
def test_a_streamed_study_gives_the_same_bits(folder, tmp_path, personalisation):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        confident = AGGREGATORS["confident"]
        streamed = from_toml(folder, tmp_path / "streamed", personalisation, confident, True)
        require_same_bits(streamed, from_python(folder, personalisation, confident))


def test_the_label_command_on_a_studys_votes_gives_its_labels_and_its_account(folder, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        study = from_toml(folder, tmp_path / "study", "weighting", LABELS)
    rows = [
        f"{LEVELS[name]},{name},{group.owners // group.teachers + 1}"
        for name, group in study["plan"].items()
        for _ in range(group.teachers)
    ]
    (tmp_path / "budgets.csv").write_text(
        "epsilon,group,owners\n" + "\n".join(rows) + "\n", "utf-8"
    )
    options = ["--votes", tmp_path / "study/vault/votes.npy", "--votes-are", "predictions"]
    options += ["--budgets", tmp_path / "budgets.csv", "--classes", 2, "--out", tmp_path / "job"]
    options += ["--aggregator", "gnmax", "--sigma", LABELS.sigma, "--noise-seed", NOISE_SEED]
    options += settings(tmp_path, f"study.seed = {SEED}")
    done = CliRunner().invoke(app, ["label", *map(str, options)])
    assert done.exit_code == 0, done.output
    terms, journal = read_terms(tmp_path / "job")
    outcomes = journal.settled()
    assert terms.price == study["account"].price == "labels"
    assert [outcome.query for outcome in outcomes] == study["asked"].tolist()
    assert [CLASSES[outcome.label] for outcome in outcomes] == study["labels"].tolist()
    spent = terms.replayed(outcomes).account.epsilon_spent_by_name()
    assert spent == {row.group: row.epsilon_spent for row in study["account"].groups}
