"""What students of the package believe about a record, as a graph of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from collegium.distillation.embedding import PublicEmbedding
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.goal import BalancedAnswers
from collegium.distillation.graph import GraphStudent
from collegium.distillation.nearest import LOCAL
from collegium.distillation.regression import RegressionStudent
from collegium.distillation.share_matching import LEAST, ShareMatched
from collegium.distillation.supervised import NamedClasses
from collegium.distillation.where_in_doubt import WhereInDoubt
from collegium.dpsgd.linear_model import is_linear_model
from collegium.study.onnx_graph import DOUBLE, FLOAT, Graph
from collegium.study.onnx_views import written


def knows(student: Any) -> bool:
    """Tell whether a student, and all that is in it, can be written down here."""
    if isinstance(student, BalancedAnswers | ShareMatched | NamedClasses):
        return knows(student.student)
    if isinstance(student, WhereInDoubt):
        alike = np.array_equal(student.classes_, getattr(student.student, "classes_", ()))
        return alike and is_linear_model(student.model) and knows(student.student)
    embedding = getattr(student, "embedding_", None)
    return type(student) in _WRITERS and (embedding is None or embedding.features is None)


def write_student(graph: Graph, student: Any, seen: str) -> tuple[str, str]:
    """Write down what a student answers, and what it believes, of records as it sees them."""
    believed = _believed(graph, student, seen)
    weighed = believed
    if isinstance(student, BalancedAnswers):
        weighed = graph.add("Div", believed, graph.constant(student.shares))
    place = graph.add("ArgMax", weighed, axis=1, keepdims=0)
    return graph.add("Gather", graph.names(student.classes_), place), believed


def _believed(graph: Graph, student: Any, seen: str) -> str:
    if isinstance(student, BalancedAnswers | NamedClasses):
        return _believed(graph, student.student, seen)
    if isinstance(student, ShareMatched):
        believed = _believed(graph, student.student, seen)
        sure = graph.add("Log", graph.add("Max", believed, graph.constant(LEAST)))
        return graph.softmax(graph.add("Add", sure, graph.constant(student.offsets)))
    if isinstance(student, WhereInDoubt):
        return _where_in_doubt(graph, student, seen)
    return _WRITERS[type(student)](graph, student, seen)


def _where_in_doubt(graph: Graph, both: WhereInDoubt, seen: str) -> str:
    model = both.model[-1]
    rows = graph.cast(graph.unit_rows(seen), DOUBLE)
    coefficients, intercept = model.coef_, model.intercept_
    if len(coefficients) == 1:
        nothing = np.zeros_like(coefficients)
        coefficients, intercept = np.vstack([nothing, coefficients]), np.append(0.0, intercept)
    scores = graph.add("Add", graph.product(rows, coefficients.T), graph.constant(intercept[None]))
    mine, theirs = graph.softmax(scores), _believed(graph, both.student, seen)
    named = graph.add("ArgMax", scores, axis=1, keepdims=1)
    others = graph.add("ArgMax", theirs, axis=1, keepdims=1)
    apart = [graph.add("GatherElements", scores, one, axis=1) for one in (named, others)]
    near = graph.add("Less", graph.add("Sub", *apart), graph.constant(both.reach * both.deviation))
    differ = graph.add("Not", graph.add("Equal", named, others))
    heard = graph.add("And", differ, near)
    return graph.add("Where", heard, theirs, mine)


def _gaussian_process(graph: Graph, student: GaussianProcessStudent, seen: str) -> str:
    points = _embedded(graph, student.embedding_, seen)
    wide = graph.cast(points, DOUBLE)
    squares = graph.squared_distances(wide, student._landmarks)
    kernel = graph.add("Exp", graph.scaled(squares, -1 / (2 * student._scale**2)))
    heard = graph.product(kernel, student.coupling * (student._half @ student._weights))
    heard = graph.add("Add", heard, graph.constant(student._log_shares))
    if student.graph_coupling:
        usable = np.where(student._deviation > 0, student._deviation, 1.0)
        first = graph.constant(range(len(usable)), np.int64)
        near = graph.cast(graph.add("Gather", points, first, axis=1), DOUBLE)
        near = graph.unit_rows(graph.add("Div", near, graph.constant(usable ** (1 / 3))))
        around = _around(graph, student.graph_, near, student.beliefs_)
        heard = graph.add("Add", heard, graph.scaled(around, student.graph_coupling))
    return graph.softmax(heard)


def _graph(graph: Graph, student: GraphStudent, seen: str) -> str:
    around = _around(graph, student, seen, student.beliefs_)
    return graph.add("Div", around, graph.sums(around))


def _around(graph: Graph, student: GraphStudent, seen: str, beliefs: Any) -> str:
    """Average beliefs about the public records that are nearest, weighed as the student does."""
    public = student._points
    centre = public.mean(axis=0, dtype=np.float64)
    where = (public - centre).astype(np.float32).astype(np.float64)
    points = graph.cast(_embedded(graph, student.embedding_, seen), DOUBLE)
    centred = graph.add("Sub", points, graph.constant(centre))
    squares = graph.squared_distances(centred, where)
    k = min(student.n_neighbors, len(public))
    nearest, rows = graph.smallest(squares, k)
    last = graph.constant([min(LOCAL, k) - 1], np.int64)
    own = graph.add("Sqrt", graph.add("Gather", nearest, last, axis=1))
    least = float(student._scales[student._scales > 0].min(initial=1.0))
    own = graph.add("Max", own, graph.constant(min(least, 1e-6)))
    theirs = graph.add("Gather", graph.constant(student._scales), rows)
    alike = graph.add("Div", nearest, graph.add("Mul", own, theirs))
    weights = graph.add("Exp", graph.add("Neg", alike))
    far = graph.add("LessOrEqual", graph.sums(weights), graph.constant(1e-12))
    weights = graph.add("Where", far, graph.constant(1.0), weights)
    weights = graph.add("Div", weights, graph.sums(weights))
    told = graph.add("Gather", graph.constant(beliefs), rows)
    each = graph.add("Mul", graph.reshaped(weights, -1, k, 1), told)
    return graph.add("ReduceSum", each, graph.constant([1], np.int64), keepdims=0)


def _regression(graph: Graph, student: RegressionStudent, seen: str) -> str:
    table = graph.cast(seen, DOUBLE)
    leads = graph.constant(student._offset[None])
    for basis, (centre, weights, share) in zip(student._bases, student._fits, strict=True):
        if share <= 1e-6:
            continue
        points = graph.add("Sub", table, graph.constant(basis.view.centre))
        points = graph.add("Mul", points, graph.constant(basis.view.factor))
        if basis.width is not None:
            squares = graph.squared_distances(points, basis.landmarks)
            points = graph.add("Exp", graph.scaled(squares, -1 / (2 * basis.width**2)))
        turn = weights if basis.width is None else basis.half @ weights
        moved = graph.add("Sub", graph.product(points, turn), graph.constant(centre @ weights))
        leads = graph.add("Add", leads, moved)
    return graph.softmax(graph.scaled(leads, student.temperature_))


def _embedded(graph: Graph, embedding: PublicEmbedding, seen: str) -> str:
    if embedding.n_components is None:
        return graph.cast(seen, FLOAT)
    points = written(graph, embedding.components_, seen)
    return graph.unit_rows(points) if embedding.unit else points


_WRITERS: dict[type, Callable[[Graph, Any, str], str]] = {
    GaussianProcessStudent: _gaussian_process,
    GraphStudent: _graph,
    RegressionStudent: _regression,
}
