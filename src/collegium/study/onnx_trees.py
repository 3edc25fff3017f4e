"""Random and boosted trees of scikit-learn as nodes of ONNX, from the arrays that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from collegium.study.onnx_graph import DOUBLE, Graph

_Tree = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
"""Of each node: feature, threshold, the nodes at its left and right (-1: a leaf), and what a leaf adds."""


def write_trees(graph: Graph, model: Any, rows: str) -> str:
    """Write down what trees predict for rows of single precision without gaps.

    Returns: in double precision, numbers (n, 1), or probabilities (n, n_classes).
    """
    return _WRITERS[type(model)](graph, model, rows)


def _forest(graph: Graph, model: Any, rows: str) -> str:
    trees = [
        (t.feature, t.threshold, t.children_left, t.children_right, t.value[:, 0])
        for t in (one.tree_ for one in model.estimators_)
    ]
    total = graph.cast(_ensemble(graph, [(tree, None) for tree in trees], rows), DOUBLE)
    return graph.scaled(total, 1 / len(trees))


def _boosted_classes(graph: Graph, model: Any, rows: str) -> str:
    raw = _raw(graph, model, rows)
    if len(model.classes_) > 2:
        return graph.softmax(raw)
    second = graph.add("Sigmoid", raw)
    return graph.joined([graph.add("Sub", graph.constant(1.0), second), second])


def _raw(graph: Graph, model: Any, rows: str) -> str:
    """Write down the sum of what boosted trees say, and of the baseline."""
    trees = [
        (_of_predictor(one.nodes), place)
        for each in model._predictors
        for place, one in enumerate(each)
    ]
    total = graph.cast(_ensemble(graph, trees, rows), DOUBLE)
    return graph.add("Add", total, graph.constant(np.reshape(model._baseline_prediction, (1, -1))))


def _of_predictor(nodes: NDArray[Any]) -> _Tree:
    leaf = nodes["is_leaf"] != 0
    left, right = (np.where(leaf, -1, nodes[side].astype(int)) for side in ("left", "right"))
    return nodes["feature_idx"], nodes["num_threshold"], left, right, nodes["value"][:, None]


def _ensemble(graph: Graph, trees: Sequence[tuple[_Tree, int | None]], rows: str) -> str:
    """Write one node for all trees: the sum of their leaves; each tree adds to one target, or to all."""
    tables: dict[str, list[Any]] = {}
    n_targets = 1
    for number, (tree, target) in enumerate(trees):
        for name, values in _columns(number, tree, target):
            tables.setdefault(name, []).extend(values)
        n_targets = max(n_targets, tree[4].shape[1] if target is None else target + 1)
    return graph.add(
        "TreeEnsembleRegressor",
        rows,
        domain="ai.onnx.ml",
        n_targets=n_targets,
        aggregate_function="SUM",
        post_transform="NONE",
        **tables,
    )


def _columns(number: int, tree: _Tree, target: int | None) -> Iterator[tuple[str, list[Any]]]:
    feature, threshold, left, right, value = tree
    inner = left >= 0
    n = len(feature)
    # A number of single precision is at most t if it is at most the largest such number that is.
    nearest = np.where(inner, threshold, 0.0).astype(np.float32)
    too_large = nearest > np.where(inner, threshold, 0.0)
    nearest[too_large] = np.nextafter(nearest[too_large], np.float32(-np.inf))
    yield "nodes_treeids", [number] * n
    yield "nodes_nodeids", list(range(n))
    yield "nodes_featureids", np.where(inner, feature, 0).tolist()
    yield "nodes_values", nearest.tolist()
    yield "nodes_modes", np.where(inner, "BRANCH_LEQ", "LEAF").tolist()
    yield "nodes_truenodeids", np.where(inner, left, 0).tolist()
    yield "nodes_falsenodeids", np.where(inner, right, 0).tolist()
    leaves = np.flatnonzero(~inner)
    targets = range(value.shape[1]) if target is None else [target]
    yield "target_treeids", [number] * (len(leaves) * len(targets))
    yield "target_nodeids", np.repeat(leaves, len(targets)).tolist()
    yield "target_ids", list(targets) * len(leaves)
    yield "target_weights", value[leaves].astype(np.float32).ravel().tolist()


_WRITERS: dict[type, Callable[[Graph, Any, str], str]] = {
    ExtraTreesClassifier: _forest,
    ExtraTreesRegressor: _forest,
    HistGradientBoostingClassifier: _boosted_classes,
    HistGradientBoostingRegressor: _raw,
}
