"""Tables of other libraries (Polars, DuckDB, whatever speaks Arrow's C interface) as Arrow or pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from collegium.checks import listed, shown
from collegium.errors import InputError

_DEEP = (list, tuple, dict, set, np.ndarray, bytes)


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
    failure = ""
    try:
        table = as_arrow(records)
        others = [
            name for name in table.column_names if not _is_plain(table.schema.field(name).type)
        ]
        if not others:
            return table.to_pandas(date_as_object=False)
    except InputError:
        raise
    except Exception as error:  # of whatever library, about whatever cell
        failure, others = type(error).__name__, []
    if failure:
        raise InputError(
            f"the {type(records).__name__} cannot be read as Arrow ({failure}, whose message is not shown "
            "because it may quote records): give columns of numbers, text, truth values or dates"
        )
    raise _no_cells(others)


def with_dates(frame: pd.DataFrame) -> pd.DataFrame:
    """Take columns of Python's dates, as readers of Parquet give them, for dates: pandas has no type of days.

    Names of people are spelt as they were read, so this is for features alone.

    Examples
    --------
    >>> from datetime import date
    >>> frame = pd.DataFrame({"visit": [date(2024, 2, 29), None], "town": ["Ulm", None]})
    >>> [dtype.kind for dtype in with_dates(frame).dtypes][0]
    'M'
    """
    found = {
        place: column.astype("datetime64[s]")
        for place, (_, column) in enumerate(frame.items())
        if column.dtype == object and infer_dtype(column) == "date"
    }
    if not found:
        return frame
    columns = [found.get(place, column) for place, (_, column) in enumerate(frame.items())]
    return pd.concat(columns, axis=1)


def refuse_objects(frame: pd.DataFrame) -> None:
    """Refuse columns of lists and the like, which are neither numbers nor categories."""
    others = [
        name
        for name in frame.columns
        if frame[name].dtype == object and any(isinstance(c, _DEEP) for c in frame[name].tolist())
    ]
    if others:
        raise _no_cells(others)


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _is_plain(kind.value_type)
    checks = (types.is_nested, types.is_binary, types.is_large_binary, types.is_binary_view)
    return not any(check(kind) for check in (*checks, types.is_fixed_size_binary, types.is_time))


def _no_cells(columns: list[Any]) -> InputError:
    return InputError(
        f"column {listed(columns)} holds lists, records, bytes or times of day: give numbers, text, truth "
        "values or dates"
    )
