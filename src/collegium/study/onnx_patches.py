"""Patches of images as a graph of ONNX: see :class:`~collegium.models.features.patches.PatchFeatures`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium.models.features.patches import PatchFeatures
from collegium.study.onnx_graph import FLOAT, Graph


def write_resized(
    graph: Graph, records: str, shape: tuple[int, int, int], scale: tuple[int, int]
) -> str:
    """Write down how images, flattened or not, come to the size in which they are looked at.

    ``shape``: (height, width, channels); ``scale``: see :func:`~collegium.models.features.images.scale_of`.
    Returns: images (n, height, width, channels).
    """
    height, width, _ = shape
    images = graph.reshaped(graph.cast(records, FLOAT), -1, *shape)
    images = graph.add("Transpose", images, perm=[0, 3, 1, 2])
    rows, columns = (_resizing(length, *scale) for length in (height, width))
    images = graph.add("MatMul", graph.constant(rows, np.float32), images)
    images = graph.add("MatMul", images, graph.constant(columns.T, np.float32))
    return graph.add("Transpose", images, perm=[0, 2, 3, 1])


def write_patches(graph: Graph, patches: PatchFeatures, resized: str) -> str:
    """Write down how patches are compared; ``resized``: as :func:`write_resized` gives images."""
    (height, width), depth = patches.seen_sides_, patches.image_shape_[2]
    size = patches.patch_size
    pixels = np.arange(height * width * depth).reshape(height, width, depth)
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (size, size), axis=(0, 1))
    places = windows.transpose(0, 1, 3, 4, 2).reshape(-1, size * size * depth)
    flat = graph.reshaped(resized, -1, height * width * depth)
    seen = graph.add("Gather", flat, graph.constant(places, np.int64), axis=1)
    mean = graph.add("ReduceMean", seen, axes=[2], keepdims=1)
    centred = graph.add("Sub", seen, mean)
    variance = graph.add("ReduceMean", graph.add("Mul", centred, centred), axes=[2], keepdims=1)
    contrast = graph.add("Sqrt", graph.add("Add", variance, _single(graph, patches.contrast_)))
    agreed = graph.add("MatMul", seen, _single(graph, patches.filters_))
    agreed = graph.add("Div", agreed, contrast)
    agreed = graph.add("Sub", agreed, _single(graph, patches.offset_))
    threshold, pooling = _single(graph, patches.threshold), _single(graph, patches.pooling_)
    sides = [agreed, graph.add("Neg", agreed)]
    beyond = [graph.add("Relu", graph.add("Sub", side, threshold)) for side in sides]
    pooled = graph.add("Concat", *(graph.add("MatMul", pooling, one) for one in beyond), axis=2)
    return graph.reshaped(graph.add("Sqrt", pooled), -1, patches.n_features_out_)


def _resizing(length: int, times: int, merged: int) -> NDArray[np.float32]:
    """What a side is multiplied with: pixels repeated, or averaged."""
    if times > 1:
        return np.eye(length, dtype=np.float32).repeat(times, axis=0)
    sums = np.add.reduceat(np.eye(length, dtype=np.float32), np.arange(0, length, merged), axis=0)
    return np.asarray(sums / sums.sum(axis=1, keepdims=True))


def _single(graph: Graph, values: object) -> str:
    return graph.constant(values, np.float32)
