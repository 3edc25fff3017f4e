"""A synthetic table judged on held-out records: what it teaches, and how far its marginals are off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import check_is, check_whole
from collegium.data.cells import Cells
from collegium.data.schema import Schema
from collegium.data.schema_arrays import series_of
from collegium.data.schema_column import CATEGORY, FLAG
from collegium.evaluation.synthetic_groups import Groups, measure_groups
from collegium.evaluation.synthetic_learning import MODELS, Answers
from collegium.evaluation.synthetic_marginals import (
    Measured,
    associations,
    distances,
    without_relations,
)
from collegium.evaluation.synthetic_quality import (
    CONSTANT,
    PUBLIC,
    REAL,
    SYNTHETIC,
    Associations,
    ColumnShares,
    Learnt,
    SyntheticQuality,
    TableQuality,
)
from collegium.evaluation.synthetic_scores import TargetScores
from collegium.evaluation.synthetic_tables import (
    arrays_of,
    cells_of,
    check_names,
    check_tables,
    refuse_equal,
    sampling_notes,
    shared_row_notes,
    unknown_column_notes,
    unreadable_notes,
    with_missing,
)

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


def evaluate_synthetic(
    synthetic: Any,
    held_out: Any,
    *,
    schema: Schema,
    target: str | None = None,
    real: Any = None,
    public: Any = None,
    by: str | None = None,
    positive: Any = None,
    seed: int = 0,
) -> SyntheticQuality:
    """Judge a synthetic table by real records that took no part in making it.

    Two questions. What does somebody learn from it? Logistic regression and boosted trees are trained on it
    and tested on the held-out records, beside the same models trained on public rows alone (which anybody
    could have had without a synthetic table), on real records, and beside a constant. And how far are its
    marginals off? Total variation of all of one and two columns, and of three, beside what sampling alone
    would explain, so that nobody takes a floor for a failure, and beside columns that have nothing to do
    with one another, so that nobody takes a failure for a success.

    Numbers are compared in the cells of the schema (its bins, or cells placed at quantiles of the held-out
    records); what no cell is for counts as missing, in a cell of its own.

    Parameters
    ----------
    synthetic : table
        pandas, or any table with Arrow's C interface, with the columns of the schema that are not text.
    held_out : table
        Real records, at least 50, that are neither in ``real`` nor in ``public``. They are looked at without
        noise: where they are public that costs nothing; people in private ones are not protected from what
        the result says.
    schema : Schema
        The public schema of these tables.
    target : str, optional
        What is to be learnt: classes (AUC and accuracy), or a number (R²). Default: marginals alone.
    real : table, optional
        The training records, as the upper line: only where they may be looked at, as in benchmarks.
    public : table, optional
        Public records, so that "public rows alone" stands beside.
    by : str, optional
        A column with groups of people: shares, scores, calibration and marginals of each. A column that
        only ``held_out`` has (each person's level, say) compares the whole table with each group.
    positive : optional
        Of two classes, the one whose probabilities are compared by group. Default: the rarer one.
    seed : int, default=0
        Of models, splits, and of which marginals are measured where there are too many.

    Returns
    -------
    SyntheticQuality

    Raises
    ------
    InputError
        If a table is empty, lacks a column or is another one of them; or a name is not in the schema; or the
        held-out records have one class only.

    Notes
    -----
    Intervals are of the held-out records: DeLong's for AUC, Wilson's for shares, the delta method's for R².
    Another synthetic table, made with other noise, may lie outside.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def people(n):
    ...     smokes = rng.random(n) < 0.3
    ...     return pd.DataFrame({"smokes": smokes, "ill": rng.random(n) < 0.1 + 0.5 * smokes})
    >>> schema = Schema({"smokes": {"kind": "flag"}, "ill": {"kind": "flag"}})
    >>> found = evaluate_synthetic(people(2000), people(2000), schema=schema, target="ill", public=people(30))
    >>> found.better_than_constant, found.keeps_relations
    (True, True)
    >>> [table.name for table in found.tables]
    ['synthetic', 'public rows alone', 'constant']
    """
    check_is("schema", schema, Schema, "read one with collegium.Schema.read, or draft one")
    check_whole("seed", seed, least=0)
    given = {SYNTHETIC: synthetic, REAL: real, PUBLIC: public}
    tables = {name: table for name, table in given.items() if table is not None}
    check_tables(tables, held_out)
    wide = with_missing(schema)
    check_names(wide, target, by, held_out)
    cells = cells_of(wide, held_out)
    rng = np.random.default_rng(seed)
    measured = Measured.of(cells.names, cells.sizes, rng)
    arrays = {name: arrays_of(cells, table, name) for name, table in tables.items()}
    held = arrays_of(cells, held_out, "held_out")
    codes = {name: cells.codes_of(found) for name, found in arrays.items()}
    held_codes = cells.codes_of(held)
    refuse_equal(codes, held_codes)
    notes = [
        *shared_row_notes(arrays, held),
        *unreadable_notes(cells, codes[SYNTHETIC], synthetic),
        *unknown_column_notes(schema, synthetic),
        *sampling_notes(measured, codes),
    ]
    learning, chance = None, None
    if target is not None:
        learning = TargetScores(cells, target, positive, held, held_codes, seed)
    answers: dict[str, list[Answers]] = {}
    learnt: dict[str, tuple[Learnt, ...]] = {}
    if learning is not None:
        answers = {name: learning.answers(codes[name], arrays[name], name) for name in codes}
        learnt = learning.scores(answers)
        chance = learning.chance(codes[SYNTHETIC], arrays[SYNTHETIC])
        notes += learning.notes
    associated = associations(measured, held_codes)
    seen = associations(measured, codes[SYNTHETIC])
    judged = [
        _judged(
            name,
            measured,
            codes[name],
            held_codes,
            learnt.get(name, ()),
            associated,
            seen if name == SYNTHETIC else associations(measured, codes[name]),
            rng,
        )
        for name in codes
    ]
    nothing = np.where(np.isnan(associated), np.nan, np.eye(len(cells.names)))
    judged.append(
        TableQuality(
            CONSTANT,
            len(codes[SYNTHETIC]),
            () if learning is None else learning.constant(),
            distances(
                measured,
                without_relations(held_codes, len(codes[SYNTHETIC]), rng),
                held_codes,
                rng,
            ),
            *_difference(nothing, associated),
        )
    )
    groups: tuple[Any, ...] = ()
    if by is not None:
        groups = measure_groups(
            _groups(cells, by, held_out, held_codes),
            measured,
            codes,
            held_codes,
            answers,
            None if learning is None else learning.truth,
            rng,
        )
    return SyntheticQuality(
        target=target,
        positive=None if learning is None else learning.positive,
        measure="" if learning is None else learning.measure,
        chance=chance,
        n_held_out=len(held_codes),
        models=() if learning is None else MODELS,
        tables=tuple(judged),
        by=by,
        groups=groups,
        columns=_shares(cells, held_codes, codes[SYNTHETIC]),
        associations=Associations(cells.names, _rows(associated), _rows(seen)),
        measured=tuple(
            (len(order), n_all)
            for order, n_all in zip(measured.cliques, measured.n_all, strict=True)
        ),
        notes=tuple(notes),
        used_real=real is not None,
    )


def _judged(
    name: str,
    measured: Measured,
    codes: Codes,
    held_out: Codes,
    learnt: tuple[Learnt, ...],
    associated: Floats,
    seen: Floats,
    rng: np.random.Generator,
) -> TableQuality:
    return TableQuality(
        name,
        len(codes),
        learnt,
        distances(measured, codes, held_out, rng),
        *_difference(seen, associated),
    )


def _difference(seen: Floats, associated: Floats) -> tuple[float | None, float | None]:
    """Mean and largest difference of two association matrices, above their diagonals.

    A column that is one value throughout goes together with nothing.
    """
    above = np.triu(np.ones(associated.shape, dtype=bool), 1) & ~np.isnan(associated)
    if not above.any():
        return None, None
    apart = np.abs(np.nan_to_num(seen[above]) - associated[above])
    return float(apart.mean()), float(apart.max())


def _groups(cells: Cells, by: str, held_out: Any, held_codes: Codes) -> Groups:
    if by in cells.names:
        place = cells.names.index(by)
        return Groups(cells.columns[place].labels, held_codes[:, place], place)
    values = series_of(held_out, by)
    named = values.astype(object).where(~pd.isna(values), "missing").map(str)
    places, names = pd.factorize(named, sort=True)
    return Groups(tuple(map(str, names)), places.astype(np.int64), None)


def _shares(cells: Cells, held_out: Codes, synthetic: Codes) -> tuple[ColumnShares, ...]:
    told = []
    for place, column in enumerate(cells.columns):
        shares = [
            np.bincount(codes[:, place], minlength=column.size) / len(codes)
            for codes in (held_out, synthetic)
        ]
        told.append(
            ColumnShares(
                column.name,
                column.labels,
                column.column.kind not in (CATEGORY, FLAG),
                tuple(shares[0].tolist()),
                tuple(shares[1].tolist()),
            )
        )
    return tuple(told)


def _rows(matrix: Floats) -> tuple[tuple[float | None, ...], ...]:
    return tuple(
        tuple(None if np.isnan(value) else float(value) for value in row) for row in matrix
    )
