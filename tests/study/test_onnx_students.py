"""Students of the package as ONNX files: the demo's, those of votes, and wavelets by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from collegium.data.tables import described
from collegium.distillation.goal import BalancedAnswers
from collegium.distillation.share_matching import ShareMatched
from collegium.distillation.supervised import NamedClasses
from collegium.distillation.where_in_doubt import WhereInDoubt
from collegium.dpsgd.linear_model import linear_classifier
from collegium.features import (
    ImagePoints,
    KernelComponents,
    PrincipalTable,
    PublicComponents,
    ScatteringTransform,
)
from collegium.students import GaussianProcessStudent, GraphStudent, RegressionStudent
from collegium.study.onnx_file import onnx_bytes
from collegium.study.onnx_graph import DOUBLE, FLOAT, IR_VERSION, OPSETS, Graph
from collegium.study.onnx_views import written
from collegium.study.student_file import StoredStudent

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")
X, Y = load_digits(return_X_y=True)
PUBLIC = 250


def session_of(content: bytes) -> Any:
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        ({"J": 1, "max_order": 0}, (8, 8)),
        ({"J": 2, "L": 4, "max_order": 1}, (9, 12)),
        ({"J": 2, "root": True, "least_side": 16}, (8, 8)),
        ({"J": 3, "L": 3}, (17, 8)),
        ({"J": 2, "L": 2}, (8, 10, 3)),
    ],
    ids=str,
)
def test_wavelets_are_the_same(settings: dict[str, Any], shape: tuple[int, ...]) -> None:
    from onnx import helper

    images = np.random.default_rng(0).random((5, *shape))
    transform = ScatteringTransform(**settings).fit(images)
    graph = Graph()
    made = written(graph, transform, "records")
    takes = [helper.make_tensor_value_info("records", DOUBLE, [None, *shape])]
    gives = [helper.make_tensor_value_info(made, FLOAT, [None, None])]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "wavelets", takes, gives, graph.constants),
        opset_imports=[helper.make_opsetid(*one) for one in OPSETS.items()],
        ir_version=IR_VERSION,
    )
    for some in (images, images[:1]):
        [found] = session_of(model.SerializeToString()).run(None, {"records": some})
        assert np.allclose(found, transform.transform(some), atol=2e-5)


@pytest.mark.parametrize("shape", [(28, 28), (18, 21, 3), (8, 8), (130, 70, 3)], ids=str)
def test_images_as_points_answer_alike(shape: tuple[int, ...]) -> None:
    noise = np.random.default_rng(0).normal(size=(80, *shape))
    records = gaussian_filter(noise, (0, 2, 2, *[0] * (len(shape) - 2))) * 300
    codes = (records.reshape(80, -1)[:, : records[0].size // 2].mean(axis=1) > 0).astype(int)
    transform = make_pipeline(ImagePoints(20, n_patches=30), KernelComponents(12)).fit(records)
    student = LogisticRegression().fit(transform.transform(records), codes)
    model = make_pipeline(transform, student)
    content, differing = onnx_bytes(StoredStudent(model, described(records)), records)
    assert differing == 0
    _, believed = session_of(content).run(None, {"records": records[:7]})
    assert np.allclose(believed, model.predict_proba(records[:7]), atol=1e-3)


def view(records: Any) -> Any:
    return make_pipeline(
        ScatteringTransform(root=True, least_side=16),
        PublicComponents(60, whiten=0.5, or_fewer=True),
        KernelComponents(24),
    ).fit(records)


def taught(student: Any, seen: Any, codes: Any, n_classes: int) -> Any:
    targets = np.full((len(codes), n_classes), 0.1 / n_classes)
    targets[np.arange(len(codes)), codes] += 0.9
    return student.fit_released(seen, np.arange(len(codes)), targets)


NAMES = np.array([f"digit {place}" for place in range(10)])


@pytest.mark.parametrize(("named", "shape"), [(False, (64,)), (True, (8, 8))], ids=str)
def test_the_demos_student_answers_alike(named: bool, shape: tuple[int, ...]) -> None:
    records = X.reshape(-1, *shape)
    public = records[:PUBLIC]
    transform = view(public)
    student = taught(
        GaussianProcessStudent(mistrust=0.01), transform.transform(public), Y[:200], 10
    )
    student = NamedClasses(student, NAMES) if named else student
    model = make_pipeline(transform, student)
    content, differing = onnx_bytes(StoredStudent(model, described(public)), records[:600])
    assert differing == 0
    strange = np.concatenate(
        [records[-20:], np.zeros_like(records[:1]), records[:1] * 1e6, -records[:5]]
    )
    for some in (records[600:900], strange, strange[-1:]):
        label, believed = session_of(content).run(None, {"records": some.astype(float)})
        assert (label == model.predict(some)).all()
        assert np.allclose(believed, model.predict_proba(some), atol=1e-3)


@pytest.mark.parametrize(
    "student",
    [
        GaussianProcessStudent(n_components=None, mistrust=0.01, graph_coupling=0.0),
        GraphStudent(mistrust=0.01), RegressionStudent(),
    ],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
@pytest.mark.parametrize("goal", ["plain", "shares", "balanced"])
def test_students_of_votes_on_tables_answer_alike(student: Any, goal: str) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    table["town"] = rng.choice(["Bonn", "Ulm"], 400)
    codes = ((table["a"] > 0.3) ^ (table["town"] == "Ulm")).to_numpy(int)
    public = table[:200]
    transform = PrincipalTable().fit(public)
    last = NamedClasses(taught(student, transform.transform(public), codes[:150], 2), NAMES[:2])
    if goal == "shares":
        last = ShareMatched(last, np.array([0.7, -0.7]))
    elif goal == "balanced":
        last = BalancedAnswers(last, np.array([0.3, 0.7]))
    model = make_pipeline(transform, last)
    table.loc[210:230, "town"], table.loc[240:250, "b"] = "Atlantis", np.nan
    content, differing = onnx_bytes(StoredStudent(model, described(public)), table)
    assert differing == 0
    fed = {name: table[[name]].to_numpy() for name in table}
    assert np.allclose(session_of(content).run(None, fed)[1], model.predict_proba(table), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_model_with_a_student_where_it_is_in_doubt_answers_alike(n_classes: int) -> None:
    public, codes = X[:PUBLIC], Y % n_classes
    transform = view(public)
    seen = transform.transform(public)
    student = taught(GaussianProcessStudent(mistrust=0.01), seen, codes[:200], n_classes)
    random = np.random.default_rng(0)
    n_outputs = 1 if n_classes == 2 else n_classes
    parameters = random.normal(size=(seen.shape[1] + 1, n_outputs))
    model = linear_classifier(parameters, np.arange(n_classes))
    both = WhereInDoubt(model, student, noise=0.3, reach=1.5)
    shown = transform.transform(X[600:900])
    answers = [one.predict(shown) for one in (model, student, both)]
    assert all((one != answers[2]).mean() > 0.05 for one in answers[:2])
    content, differing = onnx_bytes(
        StoredStudent(make_pipeline(transform, both), described(public)), X[600:900]
    )
    assert differing == 0
    believed = session_of(content).run(None, {"records": X[600:900].astype(float)})[1]
    assert np.allclose(believed, both.predict_proba(shown), atol=1e-3)


def test_students_with_features_of_their_own_are_refused() -> None:
    from collegium.errors import InputError

    student = taught(GraphStudent("scattering", mistrust=0.01), X[:PUBLIC], Y[:200], 10)
    with pytest.raises(InputError, match="cannot be converted to ONNX"):
        onnx_bytes(StoredStudent(student, described(X)), X[:20])
