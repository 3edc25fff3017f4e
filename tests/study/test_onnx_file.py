"""A student as an ONNX file: it answers alike, or says on how many records it does not."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import collegium as cg
from collegium.cli.main import main
from collegium.data.tables import described
from collegium.distillation.goal import BalancedAnswers
from collegium.features import (
    BinnedTable,
    CrossedTable,
    PrincipalTable,
    PublicComponents,
    TabularEncoder,
)
from collegium.models.preprocessing import TaughtTable
from collegium.study.onnx_file import onnx_bytes
from collegium.study.student_file import StoredStudent, student_bytes
from collegium.teachers import TabularTeachers

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")


def converted(folder, student, table, monkeypatch, capsys):
    (folder / "student.skops").write_bytes(student_bytes(student, described(table)))
    table.to_csv(folder / "records.csv", index=False)
    given = ["onnx", folder, folder / "records.csv", "--out", folder / "student.onnx"]
    monkeypatch.setattr(sys, "argv", ["collegium", *map(str, given)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return ended.value.code or 0, " ".join((said.out + said.err).split())


def records():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    return table, np.where(table["a"] * table["b"] > rng.normal(0, 0.2, 300), "up", "down")


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(), LogisticRegression(), SVC(), DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(9, random_state=0), make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_what_is_said_to_differ_differs(model, tmp_path, monkeypatch, capsys):
    table, y = records()
    model.fit(table[:200], y[:200])
    code, said = converted(tmp_path, model, table, monkeypatch, capsys)
    assert code == 0, said
    session = onnxruntime.InferenceSession(str(tmp_path / "student.onnx"))
    kind = np.float32 if session.get_inputs()[0].type == "tensor(float)" else np.float64
    answers = session.run(None, {"records": table.to_numpy(kind)})[0]
    differing = int((answers != model.predict(table)).sum())
    assert differing < 10
    assert f"answers differently for {differing} of the 300 records" in said


def test_what_cannot_be_converted_is_refused_in_one_line(tmp_path, monkeypatch, capsys):
    table, y = records()
    model = make_pipeline(StandardScaler(), TabularTeachers()).fit(table, y)
    code, said = converted(tmp_path, model, table, monkeypatch, capsys)
    assert code == 2 and "cannot be converted to ONNX" in said and "Traceback" not in said
    table["d"] = np.where(table["d"] > 0, "x", "y")
    model = make_pipeline(OrdinalEncoder(), GaussianNB()).fit(table, y)
    code, said = converted(tmp_path, model, table, monkeypatch, capsys)
    assert code == 2 and "are read by a model that is not known to the converter" in said
    assert not (tmp_path / "student.onnx").exists()


def plain_table(n, seed):
    """Numbers, text, truth values and dates, with gaps; columns are called as outputs are."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "label": rng.integers(18, 90, n),
            "town of birth": rng.choice(["Bonn", "Köln", "Ulm"], n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(4, 8, n)),
            "constant": 1.0,
            "smokes": rng.random(n) < 0.3,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    score = (table["label"] > 50) * 2 + table["smokes"] + (table["town of birth"] == "Ulm")
    table.loc[rng.random(n) < 0.1, "town of birth"] = None
    table.loc[rng.random(n) < 0.1, "since"] = pd.NaT
    return table, np.where(score > 1, "yes", "no")


def strange(table):
    """Records with what public ones lack."""
    table = table.copy()
    table.loc[:20, "town of birth"] = "Atlantis"
    table.loc[15:40, "town of birth"] = "<missing>"
    table.loc[30:60, "income"] = [-1e12, 1e12, 0.0, np.nan, 1e-30] * 6 + [1e15]
    table.loc[50:70, "since"] = pd.Timestamp("1900-01-01")
    table["label"] = table["label"].astype(float)
    table.loc[65:90, "label"] = np.nan
    return table


def fed_by_hand(table):
    days = (table["since"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    fed = {name: table[name].to_numpy(float)[:, None] for name in ("label", "income", "constant")}
    fed["smokes"] = table["smokes"].to_numpy(float)[:, None]
    towns = table["town of birth"].fillna("").to_numpy(object)[:, None]
    return {**fed, "since": days.to_numpy(float)[:, None], "town of birth": towns}


@pytest.mark.parametrize(
    "view",
    [
        TabularEncoder(), TabularEncoder("onehot", "none"), TabularEncoder("ordinal", "standard", 2),
        PrincipalTable(), PrincipalTable(4, rarity=0.0), BinnedTable(), BinnedTable(5, bins=3),
        CrossedTable(30), CrossedTable(5, bins=3, whiten=0.0),
        make_pipeline(TabularEncoder("onehot"), PublicComponents(3)),
        TaughtTable(CrossedTable(30), 2), TaughtTable(BinnedTable(5), 2, share=0.5),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("balanced", [False, True], ids=["plain", "balanced"])
def test_tables_with_text_give_the_same_answers(view, balanced, tmp_path, monkeypatch, capsys):
    public, y = plain_table(300, 0)
    student = make_pipeline(Normalizer(), LogisticRegression())
    y = (y == "yes").astype(float) if isinstance(view, TaughtTable) else y
    model = make_pipeline(clone(view), student).fit(public, y)
    if balanced:
        model.steps[-1] = (
            "student",
            make_pipeline(student[0], BalancedAnswers(student[1], np.array([0.7, 0.3]))),
        )
    stored = StoredStudent(model, described(public))
    content, differing = onnx_bytes(stored, public)
    assert differing == 0
    session = onnxruntime.InferenceSession(content)
    assert {one.name for one in session.get_inputs()} == set(public)
    for table in (public, plain_table(400, 1)[0], strange(plain_table(400, 2)[0])):
        given = session.run(None, fed_by_hand(table))
        assert (given[0] == model.predict(table)).all()
        assert np.allclose(given[1], model.predict_proba(table), atol=1e-4)


def test_what_an_estimator_publishes_is_converted(tmp_path, monkeypatch, capsys):
    private, y = plain_table(900, 3)
    public, _ = plain_table(300, 4)
    private, public = (t.drop(columns="since") for t in (private, public))
    model = cg.DPSGDClassifier(steps=20, classes=["no", "yes"], noise_seed=1)
    model = model.fit(private, y, budgets=3.0, X_public=public).model_
    code, said = converted(tmp_path, model, public, monkeypatch, capsys)
    assert code == 0 and "differently for 0 of the 300 records" in said


@pytest.mark.parametrize("names", [["down", "up"], [0, 1]], ids=["text", "numbers"])
@pytest.mark.parametrize("step", [[], [StandardScaler()]], ids=["alone", "behind a view"])
def test_what_answers_for_a_goal_answers_alike(names, step, tmp_path, monkeypatch, capsys):
    table, y = records()
    y = np.array(names)[(table["a"] > 1.2).astype(int)]
    plain = make_pipeline(*step, LogisticRegression()).fit(table, y)
    model = make_pipeline(*step, BalancedAnswers(plain[-1], np.array([0.9, 0.1])))
    code, said = converted(tmp_path, model, table, monkeypatch, capsys)
    assert code == 0, said
    session = onnxruntime.InferenceSession(str(tmp_path / "student.onnx"))
    kind = np.float32 if session.get_inputs()[0].type == "tensor(float)" else np.float64
    answers, beliefs = session.run(None, {"records": table.to_numpy(kind)})
    assert (answers != model.predict(table)).sum() <= 2
    assert (answers != plain.predict(table)).sum() > 10
    assert np.allclose(beliefs, plain.predict_proba(table), atol=1e-4)
