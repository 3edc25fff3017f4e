"""Trees that a file holds: scikit-learn follows their row numbers without looking, so they are checked here.

A number that points outside ends the process when the model is asked, or reads what is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.neighbors import KDTree
from sklearn.tree._tree import Tree

from collegium.errors import InputError


def check_trees(model: Any) -> None:
    """Refuse trees whose nodes point outside of them, or at features that the model does not have.

    ``model``: as read from a file; everything in it is looked at.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> model = DecisionTreeClassifier().fit(X, X[:, 0] > 3)
    >>> check_trees(model)
    >>> model.n_features_in_ = 0  # as if the tree asked for a feature that is not there
    >>> check_trees(model)
    Traceback (most recent call last):
    collegium.errors.InputError: a tree in it points outside
    """
    for tree, n_features in _trees(model, None, set()):
        if isinstance(tree, KDTree):
            ends = _is_a_heap(tree)
        elif isinstance(tree, Tree):
            ends = 1 <= tree.node_count == tree.capacity and _is_a_tree(tree, n_features)
        else:
            nodes = tree.nodes
            inner = nodes["is_leaf"] == 0
            ends = _leads_down(inner, nodes["left"], nodes["right"]) and _lies_below(
                nodes["feature_idx"][inner], n_features
            )
            by_category = inner & (nodes["is_categorical"] != 0)
            ends &= _lies_below(nodes["bitset_idx"][by_category], len(tree.raw_left_cat_bitsets))
        if not ends:
            raise InputError("a tree in it points outside")


def _trees(part: Any, n_features: int | None, met: set[int]) -> Iterator[tuple[Any, int | None]]:
    """Find all trees, and the least number of features of the estimators around each."""
    if isinstance(part, Tree | TreePredictor | KDTree):
        yield part, n_features
    elif id(part) not in met and not isinstance(part, type):
        met.add(id(part))
        inside: Any = ()
        if isinstance(part, dict):
            inside = part.values()
        elif isinstance(part, list | tuple | set):
            inside = part
        elif isinstance(part, np.ndarray):
            inside = part.ravel().tolist() if part.dtype == object else ()
        elif hasattr(part, "__dict__"):
            own = vars(part).get("n_features_in_")
            if own is not None:
                n_features = int(own) if n_features is None else min(n_features, int(own))
            inside = vars(part).values()
        for one in inside:
            yield from _trees(one, n_features, met)


def _is_a_tree(tree: Tree, n_features: int | None) -> bool:
    inner = tree.children_left != -1
    leads_down = _leads_down(inner, tree.children_left, tree.children_right)
    return leads_down and _lies_below(tree.feature[inner], n_features)


def _leads_down(inner: NDArray[np.bool_], *children: NDArray[Any]) -> bool:
    """Every child lies behind its parent and within the tree: each way ends at a leaf."""
    here = np.flatnonzero(inner)
    return all(((c[inner] > here) & (c[inner] < len(inner))).all() for c in children)


def _lies_below(numbers: NDArray[Any], end: int | None) -> bool:
    return end is None or bool(((numbers >= 0) & (numbers < end)).all())


def _is_a_heap(tree: KDTree) -> bool:
    data, rows, nodes, bounds = (np.asarray(part) for part in tree.get_arrays())
    start, stop = nodes["idx_start"], nodes["idx_end"]
    n = len(data)
    # A node's children have the numbers 2i + 1 and 2i + 2: those of inner nodes must be there.
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    return bool(
        len(rows) == n
        and ((rows >= 0) & (rows < n)).all()
        and ((start >= 0) & (start <= stop) & (stop <= n)).all()
        and (2 * inner + 2 < len(nodes)).all()
        and bounds.shape[1:] == (len(nodes), data.shape[1])
    )
