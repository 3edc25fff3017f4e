"""Wavelets of images as a graph of ONNX: the matrices of :class:`~collegium.models.features.cascade.Cascade`.

As there, Fourier transforms of short axes are products with small real matrices, in single precision; records
come first here, so that a file answers for any number of them.
"""

from __future__ import annotations

import numpy as np

from collegium.models.features.cascade import Cascade
from collegium.models.features.scattering import ScatteringTransform
from collegium.study.onnx_graph import FLOAT, Graph


def write_scattering(graph: Graph, transform: ScatteringTransform, records: str) -> str:
    """Write down a scattering transform; ``records`` (n, n_pixels) or images."""
    height, width, depth = transform.image_shape_
    times = transform.enlargement_
    cascade = Cascade(
        (height * times, width * times), transform.J, transform.L, transform.max_order, 1
    )
    planes = graph.reshaped(graph.cast(records, FLOAT), -1, height, width, depth)
    planes = graph.reshaped(graph.add("Transpose", planes, perm=[0, 3, 1, 2]), -1, height, width)
    for axis, places in enumerate(cascade._pad, start=1):
        rows = graph.constant(places // times, np.int64)
        planes = graph.add("Gather", planes, rows, axis=axis)
    made = _Scattered(graph, cascade).of(planes)
    made = graph.reshaped(made, -1, transform.n_features_out_)
    if transform.root:
        size = graph.add("Sqrt", graph.add("Abs", made))
        made = graph.add("Mul", graph.add("Sign", made), size)
    return made


class _Scattered:
    """Writes the cascade of one size; all planes (n, channels, height, width) go through it together."""

    def __init__(self, graph: Graph, cascade: Cascade) -> None:
        self._graph, self._of = graph, cascade
        self._scales, self._angles = cascade._scales, cascade._angles

    def of(self, planes: str) -> str:
        """Give all channels of planes (n, height, width), in the order of the cascade."""
        graph, low = self._graph, self._of.output_shape[1:]
        parts = [graph.reshaped(self._blurred(planes, 0), -1, 1, *low)]
        order, second = self._of._order, []
        spectrum = self._spectrum(planes, 0) if order else planes
        for scale in range(self._scales if order else 0):
            waves = self._modulus(spectrum, 0, scale)
            parts.append(self._blurred(waves, scale))
            if order < 2 or scale == self._scales - 1:
                continue
            height, width = (length >> scale for length in self._of._size)
            inner = self._spectrum(graph.reshaped(waves, -1, height, width), scale)
            coarser = [
                graph.reshaped(
                    self._blurred(self._modulus(inner, scale, one), one),
                    *(-1, self._angles, self._angles, *low),
                )
                for one in range(scale + 1, self._scales)
            ]
            joined = coarser[0] if len(coarser) == 1 else graph.add("Concat", *coarser, axis=2)
            second.append(graph.reshaped(joined, -1, self._angles**2 * len(coarser), *low))
        return graph.joined([*parts, *second])

    def _spectrum(self, planes: str, level: int) -> str:
        """Fourier transform: (n, y, x) → (n, wave number y, [re, im], wave number x)."""
        graph = self._graph
        rows, columns = self._of._forward[level]
        height, width = (length >> level for length in self._of._size)
        half = graph.add("MatMul", graph.constant(rows.real_input, np.float32), planes)
        half = graph.reshaped(half, -1, height, 2 * width)
        turned = graph.constant(columns.complex_input.T, np.float32)
        return graph.add("MatMul", half, turned)

    def _modulus(self, spectrum: str, level: int, scale: int) -> str:
        """Filter by the wavelets of a scale, subsample, transform back: (n, angles, y, x)."""
        graph, factor = self._graph, 2 ** (scale - level)
        height, width = (length >> scale for length in self._of._size)
        folded = graph.reshaped(spectrum, -1, 1, factor, height, 2, factor, width)
        quarters = self._of._filters[level, scale].transpose(4, 0, 2, 1, 3)[:, :, :, None]
        product = graph.add("Mul", folded, graph.constant(quarters, np.float32))
        axes = graph.constant([2, 5], np.int64)
        total = graph.add("ReduceSum", product, axes, keepdims=0)
        total = graph.reshaped(total, -1, self._angles, height, 2 * width)
        rows, columns = self._of._inverse[scale]
        half = graph.add("MatMul", total, graph.constant(columns.rows_together.T, np.float32))
        half = graph.reshaped(half, -1, self._angles, 2 * height, width)
        whole = graph.add("MatMul", graph.constant(rows.parts_apart, np.float32), half)
        parts = graph.reshaped(whole, -1, self._angles, 2, height, width)
        squares = graph.add("Mul", parts, parts)
        axis = graph.constant([2], np.int64)
        return graph.add("Sqrt", graph.add("ReduceSum", squares, axis, keepdims=0))

    def _blurred(self, planes: str, level: int) -> str:
        """Blur and subsample to the last scale: (…, y, x) → (…, y', x')."""
        graph = self._graph
        rows, columns = self._of._low[level]
        half = graph.add("MatMul", graph.constant(rows, np.float32), planes)
        return graph.add("MatMul", half, graph.constant(columns.T, np.float32))
