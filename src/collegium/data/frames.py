"""Tables of other libraries (Polars, DuckDB, whatever speaks Arrow's C interface) as Arrow or pandas."""

from __future__ import annotations

from typing import Any

import pandas as pd

from collegium.checks import listed, shown
from collegium.errors import InputError


def as_arrow(frame: Any) -> Any:
    """Take a table as a pyarrow Table; its cells are not copied where that can be helped.

    Raises InputError if it is no table.
    """
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if hasattr(frame, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(frame)])
    if hasattr(frame, "tocsr"):
        raise InputError(
            "a table with named columns is needed (pandas, Polars or Arrow), and a sparse array has none: "
            "give pandas.DataFrame(X.toarray(), columns=[…])"
        )
    raise InputError(
        f"a table is needed (pandas, Polars or Arrow), got {shown(type(frame).__name__)}: give a DataFrame"
    )


def as_pandas(records: Any) -> Any:
    """Take a table of another library as a pandas DataFrame, and anything else as it is.

    Types follow from the library's own, column by column; none is guessed from cells.

    Raises InputError if the table is not read yet, or a column holds lists, records or bytes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_pandas(pa.table({"town": ["Ulm", None], "age": [40, 50]}))["age"].tolist()
    [40, 50]
    >>> as_pandas([[1, 2]])
    [[1, 2]]
    """
    if isinstance(records, pd.DataFrame):
        return records
    if hasattr(records, "collect"):
        raise InputError("the records are a query that was not run yet: give X.collect()")
    speaks_arrow = hasattr(records, "__arrow_c_stream__") or hasattr(records, "__arrow_c_array__")
    if not speaks_arrow or not (hasattr(records, "columns") or hasattr(records, "column_names")):
        return records
    import pyarrow as pa

    table = as_arrow(records)
    deep = [
        name
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    ]
    if deep:
        raise InputError(
            f"column {listed(deep)} holds lists, records or bytes: give numbers, text, truth values or dates"
        )
    return table.to_pandas(date_as_object=False)
