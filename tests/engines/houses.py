"""Tables of people to ask where they lie, and changed there by somebody else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tests.engines.generated_tables import into_duckdb, into_postgresql
from tests.postgresql_server import Server


def as_table(frame: pd.DataFrame) -> pa.Table:
    """Make an Arrow table with text of the usual kind; what is NaN among numbers is NULL."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    kinds = [pa.string() if pa.types.is_large_string(kind) else kind for kind in table.schema.types]
    return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))


@dataclass
class House:
    """A database: a DuckDB file, or one on a PostgreSQL server."""

    where: str
    server: Server | None = None

    @classmethod
    def at(cls, engine: str, get: Any, folder: Path) -> House:
        """Have one of either engine. ``get``: gets a fixture by name."""
        if engine == "duckdb":
            return cls(f"duckdb:///{folder / 'house.duckdb'}")
        return cls(get("database"), get("server"))

    def put(self, name: str, frame: pd.DataFrame) -> str:
        """Put a table there, and say where it lies."""
        table = as_table(frame)
        if self.server is None:
            into_duckdb(table, Path(self.where.removeprefix("duckdb:///")), name)
        else:
            into_postgresql(table, self.where, name)
        return self.place(name)

    def place(self, name: str) -> str:
        """Say where a table lies."""
        return f"{self.where}#{name}"

    def run(self, *statements: str) -> None:
        """Run statements as somebody else."""
        if self.server is not None:
            for statement in statements:
                self.server.run(self.where, statement)
            return
        import duckdb

        with duckdb.connect(self.where.removeprefix("duckdb:///")) as connection:
            for statement in statements:
                connection.execute(statement)
