"""The tables of a study that publishes a synthetic one: the private table, and public ones beside it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.neighbours import OWNER, ROW, Arrangement
from collegium.budgets import Budgets
from collegium.data.cells import Cells
from collegium.data.engines.sources import fingerprint_of
from collegium.data.overlap_checks import refuse_same_people
from collegium.data.schema import Schema
from collegium.data.schema_arrays import n_rows
from collegium.errors import InputError
from collegium.names import as_names
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.query_table import Rows
from collegium.study.schema_table import known_people, read_private_rows, read_public_rows
from collegium.study.study_data import OVERLAP_KEY
from collegium.synthesis.public_records import refuse_names_of_people, refuse_private_as_public
from collegium.weighted_sums.whose import table_of


@dataclass(frozen=True, eq=False)
class SynthesisData:
    """What a synthetic table is made of.

    ``rows``: of those who granted anything; or files, and the policy for the levels in them.
    ``cells``: of the schema's columns.
    ``public``, ``test``: tables of public records; None: there are none.
    ``fingerprints``: what was read.
    """

    rows: Rows
    cells: Cells
    public: Any
    test: Any
    fingerprints: dict[str, str]
    arrangement: Arrangement
    made_public: NDArray[Any] | None = None

    @property
    def schema(self) -> Schema:
        """What is public of the private table."""
        return self.cells.schema

    @property
    def people(self) -> Budgets:
        """Who granted what, by name. **Sensitive.**"""
        assert isinstance(self.rows.budgets, Budgets), "a ledger's people are read into memory"
        return self.rows.budgets


def read_tables(config: StudyConfig, observer: Observer, *, may_stream: bool) -> SynthesisData:
    """Read the schema, and those columns of all tables that it describes.

    ``may_stream``: whether a table in Parquet files or a database may stay there, for each draw.
    """
    schema_path = config.path("synthesis.schema")
    assert schema_path is not None, "checked with the settings"
    schema = Schema.read(schema_path)
    names = list(Cells(schema).names)
    refuse_names_of_people(names, config.data.owner)
    others: dict[str, Any] = {}
    fingerprints: dict[str, str] = {}
    for role in ("public", "test"):
        source = config.source(f"data.{role}")
        others[role] = None
        if source is not None:
            others[role] = read_public_rows(config, source, schema, names)
            if not n_rows(others[role]):
                raise InputError(f"data.{role} has no rows: give a file with some, or leave it out")
            fingerprints[role] = fingerprint_of(source)
    rows = read_private_rows(config, schema, names, observer, may_stream=may_stream)
    cells = Cells(schema, others["public"])
    arrangement = Arrangement(unit=ROW if config.data.owner is None else OWNER, direct=True)
    if config.data.public_may_overlap:
        arrangement = Arrangement(unit=arrangement.unit, direct=True, public_may_overlap=True)
    else:
        for role, table in others.items():
            if table is not None:
                its = table_of(rows.frame, rows.budgets, schema, **rows.columns)
                with contextlib.closing(its):
                    refuse_private_as_public(its, cells, table, role, OVERLAP_KEY)
                _refuse_same_people(config, role, rows)
    return SynthesisData(
        rows,
        cells,
        others["public"],
        others["test"],
        {"private": rows.fingerprint, "schema": schema.digest, **fingerprints},
        arrangement,
    )


def _refuse_same_people(config: StudyConfig, role: str, rows: Rows) -> None:
    """Refuse public records of people who have private ones, and warn of such test records."""
    source = config.source(f"data.{role}")
    assert source is not None
    known = known_people(config, source)
    if known is None or not isinstance(rows.budgets, Budgets):
        return
    mine = as_names(np.asarray(rows.budgets.owners)[rows.budgets.record_owner])
    n_known = int(pd.Series(known).isin(mine).sum())
    refuse_same_people(n_known, len(known), role, str(config.data.owner), OVERLAP_KEY)
