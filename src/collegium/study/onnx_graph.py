"""A graph of ONNX, written node after node: what its operators are called, and their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

OPSETS = {"": 17, "ai.onnx.ml": 3}
IR_VERSION = 8
"""Of the format: that of these operators."""
FLOAT, INT64, STRING, DOUBLE = 1, 7, 8, 11
"""Types, as ONNX numbers them."""


@dataclass
class Graph:
    """Nodes that are written one after the other; each gives one result, by name.

    ``columns``: input of each column, where records are a table.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    _numbers: Any = field(default_factory=count)

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Write a node, and name its result."""
        from onnx import helper

        name = f"collegium/{next(self._numbers)}"
        node = helper.make_node(operator, list(inputs), [name], domain=domain, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Write numbers that were learnt."""
        from onnx import numpy_helper

        name = f"collegium/{next(self._numbers)}"
        array = np.asarray(values, dtype=dtype, order="C")
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def cast(self, name: str, to: int) -> str:
        """Convert to another type."""
        return self.add("Cast", name, to=to)

    def joined(self, names: Sequence[str]) -> str:
        """Put columns side by side."""
        return names[0] if len(names) == 1 else self.add("Concat", *names, axis=1)

    def reshaped(self, name: str, *shape: int) -> str:
        """Give something another shape; -1 where that follows."""
        return self.add("Reshape", name, self.constant(shape, np.int64))

    def product(self, rows: str, matrix: NDArray[Any]) -> str:
        """Multiply rows, in double precision."""
        return self.add("MatMul", rows, self.constant(matrix))

    def names(self, classes: NDArray[Any]) -> str:
        """Write the names of classes: text as text, numbers as whole numbers."""
        if np.asarray(classes).dtype.kind in "biu":
            return self.constant(classes, np.int64)
        return self.constant([str(one) for one in classes], object)

    def scaled(self, name: str, factor: float) -> str:
        """Multiply with a number, in double precision."""
        return self.add("Mul", name, self.constant(factor))

    def softmax(self, name: str) -> str:
        """Make probabilities of rows of scores."""
        return self.add("Softmax", name, axis=1)

    def sums(self, name: str) -> str:
        """Add up each row."""
        return self.add("ReduceSum", name, self.constant([1], np.int64), keepdims=1)

    def unit_rows(self, rows: str) -> str:
        """Divide rows by their lengths, but for those of length 0; in single precision."""
        wide = self.cast(rows, DOUBLE)
        squares = self.sums(self.add("Mul", wide, wide))
        is_zero = self.add("Equal", squares, self.constant(0.0))
        length = self.add("Where", is_zero, self.constant(1.0), self.add("Sqrt", squares))
        return self.cast(self.add("Div", wide, length), FLOAT)

    def squared_distances(self, points: str, others: NDArray[Any]) -> str:
        """Square the distances of points to others that were learnt, in double precision."""
        wide = np.asarray(others, dtype=np.float64)
        own = self.sums(self.add("Mul", points, points))
        squares = self.add("Add", own, self.constant((wide**2).sum(axis=1)[None]))
        both = self.add("Sub", squares, self.product(points, 2 * wide.T))
        return self.add("Max", both, self.constant(0.0))

    def smallest(self, table: str, k: int) -> tuple[str, str]:
        """Find the k smallest of each row, and where they stand."""
        from onnx import helper

        found = [f"collegium/{next(self._numbers)}" for _ in range(2)]
        number = self.constant([k], np.int64)
        self.nodes.append(helper.make_node("TopK", [table, number], found, axis=1, largest=0))
        return found[0], found[1]
