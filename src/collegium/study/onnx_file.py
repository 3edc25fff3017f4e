"""A published student as an ONNX file, for programs that know neither Python nor scikit-learn.

A conversion computes in another order, often in 32 bits, and so may answer otherwise on some records: on how
many is counted, with records that are given for it.
"""

from __future__ import annotations

import json
import warnings
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from collegium.distillation.goal import BalancedAnswers
from collegium.errors import InputError
from collegium.models.preprocessing.columns import MISSING, numbers_of, texts_of
from collegium.study.onnx_graph import DOUBLE, INT64, IR_VERSION, OPSETS, STRING, Graph
from collegium.study.onnx_students import knows, write_student
from collegium.study.onnx_views import is_written, written
from collegium.study.student_file import StoredStudent


def onnx_bytes(stored: StoredStudent, records: Any) -> tuple[bytes, int]:
    """Convert a student, and ask both about some records.

    ``stored``: as read.
    ``records`` (n, n_features): as the student takes them.
    Returns: the file. Its one input ``records`` holds one row per record, columns in the student's order; or,
        where a table has text, each column is an input of that name and of shape (n, 1), whose text is text
        and whose numbers are doubles (dates: days since 1970). A missing number is NaN, missing text empty.
        And on how many of the records the two differ.
    Raises InputError if what converts is not installed, or cannot convert this student.
    """
    try:
        import onnxruntime  # noqa: F401
        import skl2onnx  # noqa: F401
    except ImportError:
        raise InputError(
            "ONNX files need three packages more: pip install 'collegium[onnx]'"
        ) from None
    right = np.asarray(stored.student.predict(records))
    found, reason = [], ""
    for type_name, dtype in (("FloatTensorType", np.float32), ("DoubleTensorType", np.float64)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                content = _converted(stored, np.shape(records)[1:], type_name)
                answers = _asked(content, _fed(stored.inputs, records, dtype))
        except Exception as error:  # of a converter that knows this model or not
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        else:
            found.append((int((answers != right).sum()), content))
    if not found:
        raise InputError(
            f"this student cannot be converted to ONNX ({reason}): use `collegium predict`, or a student of "
            "scikit-learn without preprocessing"
        )
    differing, content = min(found, key=lambda one: one[0])
    return content, differing


def _converted(stored: StoredStudent, shape: tuple[int, ...], type_name: str) -> bytes:
    """Write the file. ``shape``: of a record; ``type_name``: in which scikit-learn's models compute."""
    from onnx.helper import set_model_props

    steps, last = _steps(stored.student)
    begins = list(takewhile(is_written, steps))
    student, balanced = _apart(last)
    if len(begins) == len(steps) and knows(student):
        model = _of_our_own(begins, last, stored.inputs, shape)
    else:
        if not begins and (_is_by_column(stored.inputs) or len(shape) > 1):
            raise InputError("its records are read by a model that is not known to the converter")
        parts = [*steps[len(begins) :], student]
        rest: Any = Pipeline([(str(place), step) for place, step in enumerate(parts)])
        rest = student if len(parts) == 1 else rest
        model = _of_scikit_learn(rest, None if begins else shape[0], type_name)
        if balanced is not None:
            _answer_balanced(model, balanced)
        if begins:
            model = _behind(begins, model, stored.inputs, shape)
    set_model_props(model, {"inputs": json.dumps(stored.inputs)})
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _steps(student: Any) -> tuple[list[Any], Any]:
    """List the steps before the one that answers; pipelines may hold pipelines."""
    if not isinstance(student, Pipeline):
        return [], student
    before: list[Any] = []
    for _, step in student.steps[:-1]:
        inner, last = _steps(step)
        before += [*inner, last]
    inner, last = _steps(student.steps[-1][1])
    return [*before, *inner], last


def _of_scikit_learn(student: Any, n_features: int | None, type_name: str) -> Any:
    from skl2onnx import to_onnx
    from skl2onnx.common import data_types

    n_features = student.n_features_in_ if n_features is None else n_features
    kind = getattr(data_types, type_name)
    return to_onnx(
        student,
        initial_types=[("records", kind([None, n_features]))],
        options={"zipmap": False} if hasattr(student, "predict_proba") else None,
        target_opset=OPSETS,
    )


def _begun(
    begins: list[Any], inputs: dict[str, Any], shape: tuple[int, ...]
) -> tuple[Graph, list[Any], str]:
    """Write down what records go through first: the graph, what it takes, and what comes out."""
    from onnx import helper

    graph, seen = Graph(), "records"
    columns = dict(inputs.get("columns", []))
    if _is_by_column(inputs):
        graph.columns = {name: name for name in columns}
        kinds = {name: STRING if kind == "text" else DOUBLE for name, kind in columns.items()}
        takes = [helper.make_tensor_value_info(*one, [None, 1]) for one in kinds.items()]
    else:
        takes = [helper.make_tensor_value_info(seen, DOUBLE, [None, *shape])]
        graph.columns = {
            name: graph.add("Gather", seen, graph.constant([place], np.int64), axis=1)
            for place, name in enumerate(columns)
        }
    for step in begins:
        seen = written(graph, step, seen)
    return graph, takes, seen


def _of_our_own(
    begins: list[Any], student: Any, inputs: dict[str, Any], shape: tuple[int, ...]
) -> Any:
    """Convert a student of the package, with what its records go through first."""
    from onnx import checker, helper

    graph, takes, seen = _begun(begins, inputs, shape)
    answered, believed = write_student(graph, student, seen)
    is_number = np.asarray(student.classes_).dtype.kind in "biu"
    gives = {"label": INT64 if is_number else STRING, "probabilities": DOUBLE}
    outputs = []
    for (name, kind), made in zip(gives.items(), (answered, believed), strict=True):
        free = _free(name, inputs)
        graph.nodes.append(helper.make_node("Identity", [made], [free]))
        size = [None] if name == "label" else [None, len(student.classes_)]
        outputs.append(helper.make_tensor_value_info(free, kind, size))
    model = _model(graph, takes, outputs)
    checker.check_model(model)
    return model


def _behind(begins: list[Any], model: Any, inputs: dict[str, Any], shape: tuple[int, ...]) -> Any:
    """Put a converted model behind what its records go through first."""
    from onnx import checker, compose, helper

    graph, takes, seen = _begun(begins, inputs, shape)
    taken = model.graph.input[0]
    kind = taken.type.tensor_type.elem_type
    gives = graph.cast(seen, kind)
    first = _model(graph, takes, [helper.make_tensor_value_info(gives, kind, [None, None])])
    first.ir_version = model.ir_version
    # It declares the least versions that it needs, of operators that were made for these.
    del model.opset_import[:]
    model.opset_import.extend(first.opset_import)
    outputs = [(one.name, one.type) for one in model.graph.output]
    both = compose.merge_models(
        first, compose.add_prefix(model, "student/"), io_map=[(gives, f"student/{taken.name}")]
    )
    del both.graph.output[:]
    for name, its in outputs:
        free = _free(name, inputs)
        both.graph.node.append(helper.make_node("Identity", [f"student/{name}"], [free]))
        both.graph.output.append(helper.make_value_info(free, its))
    checker.check_model(both)
    return both


def _model(graph: Graph, takes: list[Any], gives: list[Any]) -> Any:
    from onnx import helper

    return helper.make_model(
        helper.make_graph(graph.nodes, "records", takes, gives, graph.constants),
        opset_imports=[helper.make_opsetid(*one) for one in OPSETS.items()],
        ir_version=IR_VERSION,
    )


def _free(name: str, inputs: dict[str, Any]) -> str:
    """Name an output: another name than that of a column."""
    taken = {column for column, _ in inputs.get("columns", [])}
    return f"{name} of the student" if name in taken else name


def _is_by_column(inputs: dict[str, Any]) -> bool:
    """Tell whether each column is an input of its own: where not all are numbers."""
    return any(kind != "numbers" for _, kind in inputs.get("columns", []))


def _fed(inputs: dict[str, Any], records: Any, dtype: Any) -> dict[str, NDArray[Any]]:
    """Write records as the file takes them; of plain arrays in the type that is tried."""
    if not _is_by_column(inputs):
        return {"records": np.asarray(records, dtype=dtype)}
    words = [name for name, kind in inputs["columns"] if kind == "text"]
    others = [name for name, kind in inputs["columns"] if kind != "text"]
    texts, numbers = texts_of(records, words), numbers_of(records, others)
    texts[texts == MISSING] = ""
    fed = {name: texts[:, [place]] for place, name in enumerate(words)}
    return {**fed, **{name: numbers[:, [place]] for place, name in enumerate(others)}}


def _apart(student: Any) -> tuple[Any, BalancedAnswers | None]:
    """Take what answers for a goal off the end of a student, which no converter knows."""
    return (student.student, student) if isinstance(student, BalancedAnswers) else (student, None)


def _answer_balanced(model: Any, balanced: BalancedAnswers) -> None:
    """Let a converted student name the class whose probability is largest beside its share."""
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    label, beliefs = graph.output[0], graph.output[1]
    for node in graph.node:  # what it would have named stays inside
        node.output[:] = [f"{name}_plain" if name == label.name else name for name in node.output]
    is_double = beliefs.type.tensor_type.elem_type == TensorProto.DOUBLE
    shares = np.asarray(balanced.shares, dtype=np.float64 if is_double else np.float32)
    is_text = label.type.tensor_type.elem_type == TensorProto.STRING
    names = balanced.classes_.astype(str).astype(object) if is_text else balanced.classes_
    names = names if is_text else names.astype(np.int64)
    graph.initializer.extend(
        [numpy_helper.from_array(shares, "shares"), numpy_helper.from_array(names, "names")]
    )
    graph.node.extend(
        [
            helper.make_node("Div", [beliefs.name, "shares"], ["beside_shares"]),
            helper.make_node("ArgMax", ["beside_shares"], ["number"], axis=1, keepdims=0),
            helper.make_node("Gather", ["names", "number"], [label.name]),
        ]
    )


def _asked(content: bytes, fed: dict[str, NDArray[Any]]) -> NDArray[Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    kinds = {one.name: np.float64 for one in session.get_inputs() if one.type == "tensor(double)"}
    fed = {name: cells.astype(kinds.get(name, cells.dtype)) for name, cells in fed.items()}
    first = session.get_outputs()[0].name
    return np.asarray(session.run([first], fed)[0])
