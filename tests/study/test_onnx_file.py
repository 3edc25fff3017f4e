"""A student as an ONNX file: it answers alike, or says on how many records it does not."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from collegium.cli.main import main
from collegium.data.tables import described
from collegium.distillation.goal import BalancedAnswers
from collegium.features import TabularEncoder
from collegium.study.student_file import student_bytes

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
    model = make_pipeline(TabularEncoder(), GaussianNB()).fit(table, y)
    code, said = converted(tmp_path, model, table, monkeypatch, capsys)
    assert code == 2 and "cannot be converted to ONNX" in said and "Traceback" not in said
    table["d"] = np.where(table["d"] > 0, "x", "y")
    model = make_pipeline(TabularEncoder(), GaussianNB()).fit(table, y)
    code, said = converted(tmp_path, model, table, monkeypatch, capsys)
    assert code == 2 and "columns of text (d)" in said
    assert not (tmp_path / "student.onnx").exists()


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
