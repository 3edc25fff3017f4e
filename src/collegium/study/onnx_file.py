"""A published student as an ONNX file, for programs that know neither Python nor scikit-learn.

A conversion computes in another order, often in 32 bits, and so may answer otherwise on some records: on how
many is counted, with records that are given for it.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from collegium.distillation.goal import BalancedAnswers
from collegium.errors import InputError
from collegium.study.student_file import StoredStudent


def onnx_bytes(stored: StoredStudent, records: Any) -> tuple[bytes, int]:
    """Convert a student, and ask both about some records.

    ``stored``: as read; its columns, if it takes a table, must be numbers.
    ``records`` (n, n_features): as the student takes them.
    Returns: the file, whose one input ``records`` holds one row per record, columns in the student's order;
        on how many of the records the two differ.
    Raises InputError if what converts is not installed, or cannot convert this student.
    """
    try:
        import onnxruntime  # noqa: F401
        import skl2onnx  # noqa: F401
    except ImportError:
        raise InputError(
            "ONNX files need three packages more: pip install 'collegium[onnx]'"
        ) from None
    texts = [name for name, kind in stored.inputs.get("columns", []) if kind != "numbers"]
    if texts or np.ndim(records) != 2:
        what = (
            f"columns of text ({', '.join(texts[:3])})" if texts else "more than a row of numbers"
        )
        raise InputError(
            f"the student takes {what} for a record, and only rows of numbers are converted: use "
            "`collegium predict`"
        )
    right = np.asarray(stored.student.predict(records))
    found, reason = [], ""
    for type_name, dtype in (("FloatTensorType", np.float32), ("DoubleTensorType", np.float64)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                content = _converted(stored, np.shape(records)[1], type_name)
                answers = _asked(content, np.asarray(records, dtype=dtype))
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


def _converted(stored: StoredStudent, n_features: int, type_name: str) -> bytes:
    from onnx.helper import set_model_props
    from skl2onnx import to_onnx
    from skl2onnx.common import data_types

    student, balanced = _apart(stored.student)
    kind = getattr(data_types, type_name)
    model = to_onnx(
        student,
        initial_types=[("records", kind([None, n_features]))],
        options={"zipmap": False} if hasattr(student, "predict_proba") else None,
    )
    if balanced is not None:
        _answer_balanced(model, balanced)
    set_model_props(model, {"inputs": json.dumps(stored.inputs)})
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _apart(student: Any) -> tuple[Any, BalancedAnswers | None]:
    """Take what answers for a goal off the end of a student, which no converter knows."""
    if isinstance(student, BalancedAnswers):
        return student.student, student
    last = student.steps[-1][1] if isinstance(student, Pipeline) else None
    if isinstance(last, BalancedAnswers):
        return Pipeline([*student.steps[:-1], (student.steps[-1][0], last.student)]), last
    return student, None


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


def _asked(content: bytes, records: NDArray[Any]) -> NDArray[Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    first = session.get_outputs()[0].name
    return np.asarray(session.run([first], {"records": records})[0])
