"""What public preprocessing does to a record, as a graph of ONNX: numbers as they come, text as text.

Each function writes down the arithmetic of one transformer, in the precision in which that computes, from
what it learnt of public records. A missing number is NaN; missing text is empty, as in a CSV file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from collegium.data.datasets.table_files import MISSING_CELLS
from collegium.errors import InputError
from collegium.models.features.image_points import ImagePoints
from collegium.models.features.kernel_components import KernelComponents
from collegium.models.features.patches import PatchFeatures
from collegium.models.features.principal import PublicComponents
from collegium.models.features.scattering import ScatteringTransform
from collegium.models.preprocessing import (
    BinnedTable,
    CrossedTable,
    PrincipalTable,
    TabularEncoder,
    TaughtTable,
)
from collegium.models.preprocessing.columns import MISSING
from collegium.models.preprocessing.crossed_table import PART
from collegium.models.preprocessing.principal_table import FARTHEST
from collegium.models.preprocessing.taught_table import LEAST, MOST
from collegium.study.onnx_graph import DOUBLE, FLOAT, INT64, Graph
from collegium.study.onnx_patches import write_patches, write_resized
from collegium.study.onnx_scattering import write_scattering
from collegium.study.onnx_trees import write_trees

Floats = NDArray[np.float32]
_MOST_OF_FLOATS = float(np.finfo(np.float32).max)


def written(graph: Graph, transformer: Any, records: str) -> str:
    """Write down what a transformer does; ``records``: what it sees, where that is no table.

    Raises InputError if nobody wrote down how it works.
    """
    writer = _WRITERS.get(type(transformer))
    if writer is None:
        raise InputError(f"{type(transformer).__name__} is not known to the converter")
    return writer(graph, transformer, records)


def is_written(transformer: Any) -> bool:
    """Tell whether it can be written down here."""
    return type(transformer) in _WRITERS


def _encoded(graph: Graph, encoder: TabularEncoder, records: str) -> str:
    parts = []
    for place, name in enumerate(encoder.numeric_columns_):
        number = graph.columns[name]
        median = graph.constant([[encoder.medians_[name]]])
        number = graph.add("Where", graph.add("IsNaN", number), median, number)
        parts.append(_scaled(graph, number, encoder._number_scaler, place))
    for place, name in enumerate(encoder.categorical_columns_):
        known = encoder.categories_[name]
        code = _code(graph, graph.columns[name], known)
        if encoder.categorical == "onehot":
            code = graph.add("Equal", code, graph.constant([range(len(known))], np.int64))
            parts.append(graph.cast(code, FLOAT))
        else:
            code = graph.cast(code, DOUBLE)
            parts.append(_scaled(graph, code, encoder._code_scaler, place))
    return graph.joined(parts)


def _code(graph: Graph, words: str, known: Sequence[str]) -> str:
    """Number a category; -1: public records do not show it."""
    codes = {name: place for place, name in enumerate(known)}
    codes = {**dict.fromkeys(MISSING_CELLS, codes[MISSING]), **codes}
    return graph.add(
        "LabelEncoder",
        words,
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_int64s=list(codes.values()),
        default_int64=-1,
    )


def _scaled(graph: Graph, number: str, scaler: Any, place: int) -> str:
    """Scale a column as scikit-learn's scaler does; in single precision from then on."""
    if isinstance(scaler, MinMaxScaler):
        number = graph.add("Mul", number, graph.constant([[scaler.scale_[place]]]))
        number = graph.add("Add", number, graph.constant([[scaler.min_[place]]]))
        low, high = (graph.constant(limit) for limit in scaler.feature_range)
        number = graph.add("Clip", number, low, high)
    elif isinstance(scaler, StandardScaler):
        number = graph.add("Sub", number, graph.constant([[scaler.mean_[place]]]))
        number = graph.add("Div", number, graph.constant([[scaler.scale_[place]]]))
    low, high = graph.constant(-_MOST_OF_FLOATS), graph.constant(_MOST_OF_FLOATS)
    return graph.cast(graph.add("Clip", number, low, high), FLOAT)


def _some(graph: Graph, encoded: str, places: Sequence[int]) -> str:
    return graph.add("Gather", encoded, graph.constant(places, np.int64), axis=1)


def _principal(graph: Graph, table: PrincipalTable, records: str) -> str:
    encoded = graph.cast(_encoded(graph, table._encoder, records), DOUBLE)
    n_numbers = len(table._encoder.numeric_columns_)
    width = len(table._encoder.get_feature_names_out())
    parts = []
    if n_numbers:
        numbers = _some(graph, encoded, range(n_numbers))
        ranks = [
            _normal_score(graph, _some(graph, encoded, [place]), table._sorted[:, place])
            for place in range(n_numbers)
        ]
        low, high = graph.constant(-FARTHEST), graph.constant(FARTHEST)
        parts.append(graph.add("Clip", _standard(graph, table, numbers, 0), low, high))
        parts.append(_standard(graph, table, graph.joined(ranks), 1))
    if width > n_numbers:
        parts.append(_standard(graph, table, _some(graph, encoded, range(n_numbers, width)), 2))
    return graph.cast(graph.product(graph.joined(parts), table._directions), FLOAT)


def _standard(graph: Graph, table: PrincipalTable, columns: str, part: int) -> str:
    centred = graph.add("Sub", columns, graph.constant(table._means[part][None]))
    return graph.add("Mul", centred, graph.constant(1.0 / table._divisors[part][None]))


def _normal_score(graph: Graph, number: str, known: NDArray[np.float64]) -> str:
    """Look the normal quantile of a number's rank up, by how many public values are below, and not above."""
    values, counts = np.unique(known, return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])
    ranks = np.empty(2 * len(values) + 1)
    ranks[::2], ranks[1::2] = 2 * below, below[:-1] + below[1:]
    scores = ndtri((ranks / 2.0 + 0.5) / (len(known) + 1.0))
    row, axis = graph.constant(values[None]), graph.constant([1], np.int64)
    sides = [
        graph.add("ReduceSum", graph.cast(graph.add(compare, number, row), FLOAT), axis, keepdims=1)
        for compare in ("Greater", "GreaterOrEqual")
    ]
    return graph.add("Gather", graph.constant(scores), graph.cast(graph.add("Add", *sides), INT64))


def _binned(graph: Graph, table: BinnedTable, records: str) -> str:
    indicators = _indicators(graph, table._encoder, table.edges_, records)
    indicators = graph.add("Div", indicators, graph.constant(table._divisor, np.float32))
    described = graph.joined([_principal(graph, table._table, records), indicators])
    return _components(graph, table._components, described)


def _indicators(
    graph: Graph, encoder: TabularEncoder, edges_of_each: list[Floats], records: str
) -> str:
    """Write down categories, bins and edges, as `indicators_of` tells them."""
    encoded = _encoded(graph, encoder, records)
    n_numbers, width = len(edges_of_each), len(encoder.get_feature_names_out())
    parts = [_some(graph, encoded, range(n_numbers, width))] if width > n_numbers else []
    for place, edges in enumerate(edges_of_each):
        number = _some(graph, encoded, [place])
        if not len(edges):
            ones = graph.add("Equal", number, number)
            parts.append(graph.cast(ones, FLOAT))
            continue
        reached = graph.add("GreaterOrEqual", number, graph.constant(edges[None], np.float32))
        above = graph.cast(reached, FLOAT)
        zero = graph.add("Mul", number, graph.constant([[0.0]], np.float32))
        one = graph.add("Add", zero, graph.constant([[1.0]], np.float32))
        parts += [
            graph.add("Sub", graph.joined([one, above]), graph.joined([above, zero])),
            above,
        ]
    return graph.joined(parts)


def _crossed(graph: Graph, table: CrossedTable, records: str) -> str:
    compared = _binned(graph, table._table, records)
    if table._kernel is None:
        return compared
    indicators = _indicators(graph, table._encoder, table.edges_, records)
    cells = _some(graph, indicators, table._kept.tolist())
    cells = graph.add("Sub", cells, graph.constant(table._means, np.float32))
    cells = graph.add("Div", cells, graph.constant(table._divisors, np.float32))
    halves = [cells, _kernel(graph, table._kernel, compared)]
    part = graph.constant(PART, np.float32)
    return graph.joined([graph.add("Mul", graph.unit_rows(half), part) for half in halves])


def _taught(graph: Graph, table: TaughtTable, records: str) -> str:
    seen = graph.unit_rows(written(graph, table.view_, records))
    part = graph.constant(np.sqrt(1 - table.share), np.float32)
    if table._encoder is None:
        largest = graph.constant(_MOST_OF_FLOATS), graph.constant(-_MOST_OF_FLOATS)
        wide = graph.cast(records, DOUBLE)
        wide = graph.add("Where", graph.add("IsNaN", wide), graph.constant(0.0), wide)
        shown = graph.cast(graph.add("Max", graph.add("Min", wide, largest[0]), largest[1]), FLOAT)
    else:
        shown = _encoded(graph, table._encoder, records)
    each = [_said_by(graph, model, shown, table.n_classes) for model in table.trees_]
    said = graph.scaled(graph.add("Add", *each), 0.5)
    said = graph.add("Sub", said, graph.constant(table._middle[None]))
    said = graph.add("Div", said, graph.constant(table._divisors[None]))
    limit = graph.constant(table._limit)
    said = graph.add("Clip", said, graph.constant(-table._limit), limit)
    return graph.joined([graph.add("Mul", seen, part), graph.cast(said, FLOAT)])


def _said_by(graph: Graph, trees: Any, shown: str, n_classes: int | None) -> str:
    """Write down what one of a table's models says, in double precision, as `TaughtTable` tells it."""
    answered = write_trees(graph, trees, shown)
    if n_classes is None:
        return answered
    low, high = graph.constant(LEAST), graph.constant(MOST)
    logs = graph.add("Log", graph.add("Clip", answered, low, high))
    if n_classes == 2:
        parts = [
            graph.add("Gather", logs, graph.constant([place], np.int64), axis=1) for place in (1, 0)
        ]
        return graph.add("Sub", *parts)
    mean = graph.scaled(graph.sums(logs), 1 / n_classes)
    return graph.add("Sub", logs, mean)


def _components(graph: Graph, components: PublicComponents, records: str) -> str:
    centred = graph.add(
        "Sub", graph.cast(records, FLOAT), graph.constant(components.mean_, np.float32)
    )
    if components.n_components is not None:
        turned = graph.product(graph.cast(centred, DOUBLE), components.components_.T)
        centred = graph.cast(turned, FLOAT)
    return graph.add("Div", centred, graph.constant(components.scale_, np.float32))


def _patches(graph: Graph, patches: PatchFeatures, records: str) -> str:
    resized = write_resized(graph, records, patches.image_shape_, patches.scale_)
    return write_patches(graph, patches, resized)


def _points(graph: Graph, points: ImagePoints, records: str) -> str:
    resized = write_resized(graph, records, points.image_shape_, points.scale_)
    grey = graph.add("ReduceMean", resized, axes=[3], keepdims=0)
    parts = [(write_scattering(graph, points.wavelets_, grey), points.scales_[1])]
    if points.patches_ is not None:
        parts.insert(0, (write_patches(graph, points.patches_, resized), points.scales_[0]))
    scaled = [graph.add("Div", part, graph.constant(scale, np.float32)) for part, scale in parts]
    seen = graph.joined(scaled)
    made = _components(graph, points.components_, seen)
    if not points.is_mirrored:
        return made
    mirrored = graph.add("Gather", seen, graph.constant(points.mirrored_places_, np.int64), axis=1)
    both = graph.joined([made, _components(graph, points.components_, mirrored)])
    return graph.reshaped(both, -1, 2, len(points.components_.scale_))


def _kernel(graph: Graph, components: KernelComponents, records: str) -> str:
    of_each = []
    for place in range(components.n_variants_):
        variant = records
        if components.n_variants_ > 1:
            variant = graph.add("Gather", records, graph.constant(place, np.int64), axis=1)
        rows = graph.cast(graph.unit_rows(graph.cast(variant, FLOAT)), DOUBLE)
        distances = graph.squared_distances(rows, components.anchors_)
        of_each.append(graph.add("Exp", graph.scaled(distances, -0.5 / components.width_**2)))
    alike = of_each[0]
    for other in of_each[1:]:
        alike = graph.add("Add", alike, other)
    alike = graph.scaled(alike, 1 / len(of_each))
    turned = graph.product(alike, components.projection_)
    return graph.cast(graph.add("Sub", turned, graph.constant(components.offset_)), FLOAT)


_WRITERS: dict[type, Callable[[Graph, Any, str], str]] = {
    TabularEncoder: _encoded,
    PrincipalTable: _principal,
    BinnedTable: _binned,
    CrossedTable: _crossed,
    TaughtTable: _taught,
    PublicComponents: _components,
    KernelComponents: _kernel,
    ScatteringTransform: write_scattering,
    PatchFeatures: _patches,
    ImagePoints: _points,
}
