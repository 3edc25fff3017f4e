"""A fitted table as JSON: numbers and names alone, so that reading it runs nothing."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.cells import Cells, CellsOfColumn
from collegium.data.schema import Schema
from collegium.data.schema_column import CATEGORY, FLAG, TEXT
from collegium.durable import write_durably
from collegium.errors import InputError
from collegium.json_files import read_json
from collegium.synthesis.coarsening import Coarsening
from collegium.synthesis.junction_tree import Clique, cells_needed
from collegium.synthesis.max_entropy import Marginal
from collegium.synthesis.model import TableModel
from collegium.synthesis.rules import rules_of

FORMAT = "collegium synthetic table 1"
_DIGITS = 12
_MOST_CELLS = 1 << 28
"""Of a tree that is read: two gigabytes."""
_SHAPE = {
    "format": str,
    "rows": int,
    "rows_per_owner": int,
    "schema": {},
    "edges": {},
    "coarse": [{"place": [int], "within": [float]}],
    "factors": [{"columns": [int], "theta": [(float, int, str)]}],
    "marginals": [{"columns": [int], "shares": [(float, int)], "sd": [(float, int)]}],
    "constraints": [str],
}
_ADVICE = "get the file from its source again"


def write_model(model: TableModel, path: str | os.PathLike[str], target: str | None) -> None:
    """Write a fitted table; an older file is replaced."""
    write_durably(Path(path), model_bytes(model, target))


def model_bytes(model: TableModel, target: str | None) -> bytes:
    """Write a fitted table as JSON."""
    schema = model.cells.schema
    content = {
        "format": FORMAT,
        "rows": model.n_rows,
        "target": target,
        "rows_per_owner": schema.rows_per_owner,
        "schema": {one.name: one.column.said() for one in model.cells.columns},
        "edges": model.cells.edges,
        "coarse": [
            {"place": one.place.tolist(), "within": [float(part) for part in _short(one.within)]}
            for one in model.coarse
        ],
        "factors": [
            {"columns": list(columns), "theta": _short(theta)}
            for columns, theta in zip(model.factors, model.thetas, strict=True)
        ],
        "marginals": [
            {
                "columns": list(one.columns),
                "shares": _short(one.shares),
                "sd": _short(np.broadcast_to(one.sd, one.shares.shape)),
            }
            for one in model.marginals
        ],
        "constraints": [str(rule) for rule in model.rules],
        **({"hidden": model.hidden} if model.hidden else {}),
    }
    return json.dumps(content, ensure_ascii=False, default=_plain).encode()


def read_model(path: str | os.PathLike[str]) -> tuple[TableModel, str | None]:
    """Read a fitted table. Returns it, and its target.

    Raises InputError, in one line, if the file is none, or is damaged.
    """
    file = Path(path)
    content = read_json(file, _SHAPE, _ADVICE, InputError)
    try:
        return _model_of(content), content.get("target")
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
        raise InputError(f"{file} is damaged and cannot be read: {_ADVICE}") from None
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _model_of(content: dict[str, Any]) -> TableModel:
    if content["format"] != FORMAT:
        raise InputError(f"it is no synthetic table that this version knows: {_ADVICE}")
    schema = Schema(content["schema"], content["rows_per_owner"])
    if content["rows"] < 1 or not (content.get("target") is None or content["target"] in schema):
        raise ValueError("rows or target")
    if list(content["edges"]) != list(schema):
        raise ValueError("edges")
    cells = Cells.with_edges(schema, content["edges"])
    for column in cells.columns:
        _check_edges(column)
    coarse = tuple(
        Coarsening(np.array(one["place"], dtype=np.int64), np.array(one["within"], np.float64))
        for one in content["coarse"]
    )
    if tuple(len(one.place) for one in coarse) != cells.sizes:
        raise ValueError("coarse")
    for one in coarse:
        used = np.unique(one.place)
        parts = one.within
        if not np.array_equal(used, np.arange(len(used))) or parts.shape != one.place.shape:
            raise ValueError("coarse")
        if not (np.isfinite(parts) & (parts >= 0)).all():
            raise ValueError("coarse")
    n_columns = len(coarse)
    hidden = content.get("hidden", 0)
    if type(hidden) is not int or hidden < 0:
        raise ValueError("hidden")
    sizes = [*(one.size for one in coarse), *([hidden] if hidden else [])]
    factors, thetas = [], []
    for one in content["factors"]:
        clique = _clique(one["columns"], len(sizes))
        factors.append(clique)
        thetas.append(_array(one["theta"], clique, sizes))
    if cells_needed(sizes, factors) > _MOST_CELLS:
        raise ValueError("factors")
    marginals = tuple(
        Marginal(clique, _array(one["shares"], clique, sizes), _array(one["sd"], clique, sizes))
        for one in content["marginals"]
        for clique in [_clique(one["columns"], n_columns)]
    )
    if any(np.isnan(one).any() or (one == np.inf).any() for one in thetas):
        raise ValueError("theta")
    return TableModel(
        cells,
        coarse,
        tuple(factors),
        tuple(thetas),
        marginals,
        rules_of(content["constraints"], cells),
        content["rows"],
        hidden,
    )


def _check_edges(one: CellsOfColumn) -> None:
    """Refuse edges that are no numbers in order, or stand where there are none."""
    column, edges = one.column, one.edges
    if edges is None:
        if not column.has_keys:
            raise ValueError("edges")
        return
    rising = edges.ndim == 1 and len(edges) >= 2 and bool((np.diff(edges) > 0).all())
    if column.kind in (CATEGORY, FLAG, TEXT) or not rising or not np.isfinite(edges).all():
        raise ValueError("edges")
    if edges[0] > column.lower or edges[-1] < column.upper:
        raise ValueError("edges")


def _clique(columns: list[int], n: int) -> Clique:
    clique = tuple(columns)
    if sorted(set(clique)) != list(clique) or not clique or not 0 <= clique[0] <= clique[-1] < n:
        raise ValueError("columns")
    return clique


def _array(values: list[Any], clique: Clique, sizes: list[int]) -> NDArray[np.float64]:
    shape = tuple(sizes[one] for one in clique)
    if len(values) != math.prod(shape):
        raise ValueError("shape")
    return np.array([float(value) for value in values], dtype=np.float64).reshape(shape)


def _short(values: NDArray[np.float64]) -> list[float | str]:
    """Write numbers with the digits that matter; minus infinity as text."""
    return [
        float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else str(value)
        for value in values.ravel().tolist()
    ]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else list(value)
