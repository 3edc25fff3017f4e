"""Which columns are numbers and which are text: as the public records show it, or a schema says.

Never as private records show it: a reader of tables types a column as a whole, so that one private "n/a"
would make text of everybody's numbers, and another model of everybody's teachers.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import (
    infer_dtype,
    is_bool_dtype,
    is_complex_dtype,
    is_datetime64_any_dtype,
    is_numeric_dtype,
)

from collegium.data.date_format import DateFormat, date_format_of, format_from
from collegium.data.number_format import (
    NumberFormat,
    UnclearDecimalError,
    are_numbers,
    format_of,
)
from collegium.errors import InputError, PrivacyWarning, counted
from collegium.names import as_names

NUMBER, TEXT, DATE = "number", "text", "date"
#: What may be declared, beside an example of a date, which is a number.
DECLARED = (NUMBER, TEXT)
_WORDS = {NUMBER: "numbers", TEXT: "text", DATE: "dates"}
IN_NUMBERS, _TRUTHS = _WORDS[NUMBER], "truth values"
_NUMBERS_OF_PYTHON = ("integer", "floating", "mixed-integer-float", "boolean", "decimal")
#: The words that pandas takes for truth values.
TRUTH = {
    **dict.fromkeys(("True", "TRUE", "true"), 1.0),
    **dict.fromkeys(("False", "FALSE", "false"), 0.0),
}
_COMMA = re.compile(r"\s*[+-]?\d+(,\d+)?\s*")
_THOUSAND = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")
_THOUSANDS = re.compile(
    r"\s*[+-]?[1-9]\d{0,2}([,.'’ \u00a0\u202f])\d{3}(\1\d{3})*((?!\1)[,.]\d+)?\s*"
)
_LEAST_TOLD = 20  # fewer values say nothing about how many there are


@dataclass(frozen=True)
class ColumnTypes:
    """The type of every column, known before any private record is looked at.

    ``kinds``: "number", "text" or "date", by column.
    ``floats``: in which type the numbers of a column are kept, by column.
    ``decimal``: what stands before the decimals of numbers that are text; "," or ".".
    ``formats``: how numbers with separated thousands or a unit are written, or dates (which are then days
        since 1970), by column.
    ``words``: what stands for a missing number in public records, such as "n/a", by column.
    ``unlike_numbers``: text columns in which no public record has a number.
    ``typed``: text columns in which public records hold numbers as well, which were no text.
    ``medians``: what stands in for a private record's missing number, by column; see
        :meth:`with_medians`.
    """

    kinds: Mapping[str, str]
    floats: Mapping[str, Any]
    decimal: str = "."
    unlike_numbers: frozenset[str] = frozenset()
    medians: Mapping[str, float] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()
    formats: Mapping[str, NumberFormat | DateFormat] = field(default_factory=dict)
    words: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        X_public: pd.DataFrame,
        *,
        declared: Mapping[str, str] | None = None,
        decimal: str | None = None,
        characters: bool = False,
    ) -> ColumnTypes:
        """Find the types of public records.

        ``declared``: types of some columns, whatever the records show: "number", "text", or an example of
            a date.
        ``decimal``: "," or "."; default: what the numbers show, where ``characters``.
        ``characters``: whether cells are the characters of a file. Otherwise text is text.
        """
        declared = {} if declared is None else declared
        unknown = [name for name in declared if name not in X_public.columns]
        if unknown:
            raise InputError(
                f"data.types names column {unknown[0]!r}, which is not a feature: the features are "
                f"{', '.join(map(str, X_public.columns))}"
            )
        examples = {
            name: DateFormat.of(kind) for name, kind in declared.items() if kind not in DECLARED
        }  # a date is days since 1970
        declared = {**declared, **dict.fromkeys(examples, NUMBER)}
        formats = _formats_of(X_public, declared, decimal, examples) if characters else {}
        if decimal is None:
            others = {**declared, **dict.fromkeys(formats, TEXT)}
            decimal = _decimal_of(X_public, others) if characters else "."
        kinds: dict[str, str] = {}
        floats: dict[str, Any] = {}
        unlike: list[str] = []
        typed: list[str] = []
        words: dict[str, frozenset[str]] = {}
        for name in X_public.columns:
            column = X_public[name]
            kind = declared.get(name) or _kind_of_cells(column)
            has_text = characters and kind_of(column.dtype) == TEXT
            if has_text and declared.get(name) != TEXT and name not in formats:
                _refuse_thousands(column, decimal)
            if kind == TEXT:
                given = column.notna().to_numpy()
                numbers = _read(column, decimal, formats.get(name))[given]
                are, cells = np.isfinite(numbers), as_names(column[given])
                mixed = characters and name not in declared and are.mean() > 0.5
                is_certain = name in formats and formats[name].is_certain
                if mixed and (is_certain or are_numbers(numbers, cells)):
                    kind = NUMBER
                    words[name] = frozenset(cells[~are])
                elif mixed:
                    _tell_of_mixture(column[given], are)
                elif name not in declared:
                    _tell_of_names(column[given])
                if not are.any():
                    unlike.append(name)
                if typed_cells(column):
                    typed.append(name)
            kinds[name] = kind
            if kind != NUMBER:
                formats.pop(name, None)
            if kind == NUMBER:
                floats[name] = _float_of(column.dtype)
        return cls(
            kinds,
            floats,
            decimal,
            frozenset(unlike),
            typed=frozenset(typed),
            formats=formats,
            words={name: those for name, those in words.items() if those},
        )

    def with_medians(self, X_public: pd.DataFrame) -> ColumnTypes:
        """Let the public median stand in where a private record lacks a number and no public one does.

        For models that see records as they are: a gap that public records never have is one that the
        model was never tried with. Where a word stands for missing numbers, it is filled in everywhere.

        ``X_public``: of these types already.
        """
        medians = {}
        for name in self.floats:
            numbers = X_public[name].to_numpy()
            given = numbers[np.isfinite(numbers)]
            if len(given) == len(numbers) or name in self.words:
                medians[name] = float(np.median(given))
        return replace(self, medians=medians)

    def reading(self) -> dict[str, Any]:
        """Say how others' records are read, for JSON: what does not go without saying."""
        said: dict[str, Any] = {"decimal": self.decimal} if self.decimal != "." else {}
        if self.formats:
            said["written"] = {name: str(one) for name, one in self.formats.items()}
        if self.words:
            said["missing"] = {name: sorted(those) for name, those in self.words.items()}
        return {**said, **({"medians": dict(self.medians)} if self.medians else {})}

    def applied(self, X: pd.DataFrame, name: str = "private", tell: bool = True) -> pd.DataFrame:
        """Bring records to these types, each cell by itself: what is no number is a missing one.

        ``X``: with the columns of the public records.
        ``name``: what to call these records in messages.
        ``tell``: whether to warn of cells that are no numbers, on the operator's screen alone.

        Raises InputError if a column is of another kind altogether.
        """
        made: dict[str, Any] = {}
        for column, kind in self.kinds.items():
            values = X[column]
            if kind == NUMBER:
                made[column] = self._numbers(values, column, name, tell)
            else:
                self._refuse_other_kind(values, column, kind, name)
                made[column] = values if kind == DATE else _as_text(values)
        return pd.DataFrame(made, index=X.index, columns=X.columns)

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Bring private records of one shard to these types, in silence."""
        return self.applied(X, tell=False)

    def _numbers(self, values: pd.Series, column: str, name: str, tell: bool) -> NDArray[Any]:
        written = self.formats.get(column)
        if kind_of(values.dtype) == DATE and not isinstance(written, DateFormat):
            raise _other_kind(column, NUMBER, name, DATE)
        numbers = _read(values, self.decimal, written)
        if name == "private":
            numbers[np.isinf(numbers)] = np.nan
        words = {word for those in self.words.values() for word in those}
        expected = values.isna() | values.isin(list(words))
        wrong = np.flatnonzero(np.isnan(numbers) & ~expected.to_numpy(bool))
        if tell and wrong.size:
            if 2 * wrong.size > int(values.notna().sum()):
                raise _other_kind(column, NUMBER, name, TEXT)
            _tell_of_gaps(column, name, wrong.size, _row(values, wrong[0]))
        median = self.medians.get(column)
        if median is not None and (name == "private" or column in self.words):
            numbers[np.isnan(numbers)] = median
        return np.asarray(numbers.astype(self.floats[column]))

    def _refuse_other_kind(self, values: pd.Series, column: str, kind: str, name: str) -> None:
        other = kind_of(values.dtype)
        if kind == TEXT and name == "private" and column not in self.typed and typed_cells(values):
            other = NUMBER
        elif other == TEXT and kind == TEXT and column in self.unlike_numbers:
            given = values.dropna()
            looks = (given.iloc[:100], given)  # nearly always the first cells tell, and soon
            if len(given) and all(
                np.isfinite(numbers_of(one, self.decimal)).all() for one in looks
            ):
                other = NUMBER
        if other != kind and not (len(values) and bool(values.isna().all())):
            raise _other_kind(column, kind, name, other)


def read_as_described(X: pd.DataFrame, inputs: Mapping[str, Any], name: str) -> pd.DataFrame:
    """Bring the characters of a file to the types that a student learnt; each cell by itself.

    ``X``: columns of text, some of them perhaps unknown: these are left out.
    ``inputs``: from :func:`~collegium.data.tables.described`, with :meth:`ColumnTypes.reading`.
    ``name``: what to call ``X`` in messages.

    Examples
    --------
    >>> table = pd.DataFrame({"age": ["7,5", "n/a"], "town": ["07", "b"]})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", PrivacyWarning)
    ...     read_as_described(table, {"columns": [["age", "numbers"], ["town", "text"]]}, "table.csv")
       age town
    0  7.5   07
    1  NaN    b
    """
    kinds = {word: kind for kind, word in _WORDS.items() if kind in DECLARED}
    declared = {
        column: kinds[word]
        for column, word in inputs.get("columns", [])
        if column in X.columns and word in kinds
    }
    written = {
        column: format_from(example)
        for column, example in inputs.get("written", {}).items()
        if declared.get(column) == NUMBER
    }
    numbers = X[[name for name, kind in declared.items() if kind == NUMBER and name not in written]]
    readable = {
        column: np.isfinite(numbers_of(numbers[column]))
        | np.isfinite(numbers_of(numbers[column], ","))
        for column in numbers
    }
    try:
        decimal = _decimal_of(numbers.where(pd.DataFrame(readable, index=X.index)), {})
    except UnclearDecimalError:
        decimal = inputs.get("decimal", ".")
        if decimal == ".":
            raise InputError(
                f"{name} has a column of numbers with commas, which may mark decimals or separate thousands: "
                "write decimals with a point, and thousands without a separator"
            ) from None
    types = ColumnTypes.of(X[list(declared)], declared=declared, decimal=decimal)
    missing = {name: frozenset(words) for name, words in inputs.get("missing", {}).items()}
    types = replace(types, formats=written, words=missing)
    dates = {
        column: pd.to_datetime(X[column], format="ISO8601", errors="coerce", utc=True)
        for column, word in inputs.get("columns", [])
        if column in X.columns and word == _WORDS[DATE]
    }
    return X.assign(**types.applied(X[list(declared)], "new"), **dates)


def check_declared(column: str, kind: str) -> None:
    """Refuse a declared type that is none: allowed are "number", "text", and an example of a date."""
    if kind not in DECLARED:
        try:
            DateFormat.of(kind)
        except InputError:
            raise InputError(
                f"column {column!r} must be {', '.join(DECLARED)}, or a date that shows how dates are "
                f"written, such as 31.12.2024, got {kind!r}"
            ) from None


def kind_of(dtype: Any) -> str:
    """Tell the kind of a column that has a type."""
    if (is_numeric_dtype(dtype) and not is_complex_dtype(dtype)) or is_bool_dtype(dtype):
        return NUMBER
    return DATE if is_datetime64_any_dtype(dtype) else TEXT


def typed_cells(values: pd.Series) -> str:
    """Say which cells of a column a reader of tables has typed: "numbers", "truth values", or none ("").

    It types a column, or some thousand rows of it, only where all cells look alike: then one person's odd
    cell decides whether everybody else's ``007`` is 7.

    Examples
    --------
    >>> typed_cells(pd.Series([7, None])), typed_cells(pd.Series(["007", None, "x"]))
    ('numbers', '')
    >>> typed_cells(pd.Series([True, None]))
    'truth values'
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = pd.Series(values.cat.categories)
    if values.dtype != object:
        if kind_of(values.dtype) != NUMBER or values.isna().all():
            return ""
        return _TRUTHS if is_bool_dtype(values.dtype) else IN_NUMBERS
    others = [cell for cell in values.tolist() if not isinstance(cell, str)]
    typed = [
        isinstance(cell, bool | np.bool_)
        for cell in others
        if isinstance(cell, Number | np.bool_)
        and not (isinstance(cell, float | np.floating) and np.isnan(cell))
    ]
    return "" if not typed else _TRUTHS if all(typed) else IN_NUMBERS


def in_words(dtype: Any) -> str:
    """Say what a column holds."""
    return _WORDS[kind_of(dtype)]


def numbers_of(column: pd.Series, decimal: str = ".") -> NDArray[np.float64]:
    """Read numbers, each cell by itself; NaN where there is none.

    ``column`` (n,): numbers, or text. ``True`` and ``false`` are 1 and 0.
    ``decimal``: what stands before the decimals.

    Examples
    --------
    >>> numbers_of(pd.Series(["7", " 7.5", "n/a", "True", None])).tolist()
    [7.0, 7.5, nan, 1.0, nan]
    >>> numbers_of(pd.Series(["7,5", "7.5", "7"]), decimal=",").tolist()
    [7.5, nan, 7.0]
    """
    if kind_of(column.dtype) == NUMBER:
        return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
    cells = column.astype(object)
    if decimal != ".":
        cells = cells.map(lambda cell: _swapped(cell, decimal), na_action="ignore")
    numbers = np.array(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)
    unread = np.isnan(numbers)
    if unread.any():
        numbers[unread] = cells[unread].map(TRUTH).to_numpy(dtype=np.float64)
    return numbers


def labels_of(texts: NDArray[Any], classes: Any) -> NDArray[Any]:
    """Read labels that are the characters of a file as what the public list of classes holds.

    ``texts`` (n,): text; missing ones are NaN or None.
    ``classes``: None: numbers if all of the labels are numbers.
    Returns (n,): labels that are no class stay text.

    Examples
    --------
    >>> labels_of(np.array(["0", "1", "n/a"], dtype=object), [0, 1]).tolist()
    [0, 1, 'n/a']
    >>> labels_of(np.array(["0", "1"], dtype=object), ["0", "1"]).tolist()
    ['0', '1']
    >>> labels_of(np.array(["0", "1", None], dtype=object), None).tolist()
    [0, 1, None]
    """
    column = pd.Series(texts, dtype=object)
    numbers, is_truth = numbers_of(column), column.isin(list(TRUTH)).to_numpy()
    if classes is not None:
        labels = column.to_numpy(dtype=object, copy=True)
        found = column.isin([name for name in classes if isinstance(name, str)]).to_numpy()
        others = [name for name in classes if not isinstance(name, str)]
        for name in others:
            here = (numbers == name) & (is_truth == isinstance(name, bool)) & ~found
            labels[here] = name
            found = found | here
        if found.any():
            plain = found.all() and len(others) == len(classes)
            return np.array(labels.tolist()) if plain else np.asarray(labels)
    given = column.notna().to_numpy()
    if not given.any() or np.isnan(numbers[given]).any():
        return np.asarray(column, dtype=object)
    if not given.all():  # the known ones are read as if there were no others
        labels = column.to_numpy(dtype=object, copy=True)
        labels[given] = labels_of(labels[given], None).tolist()
        return np.asarray(labels)
    if is_truth.all():
        return np.asarray(numbers == 1)
    whole = (numbers == np.rint(numbers)).all() and np.abs(numbers).max() < 2**53
    return numbers.astype(np.int64) if whole else numbers


def _kind_of_cells(column: pd.Series) -> str:
    """Tell the kind of a public column: of Python's own numbers and truth values, too."""
    if column.dtype == object and infer_dtype(column) in _NUMBERS_OF_PYTHON:
        return NUMBER
    return kind_of(column.dtype)


def _float_of(dtype: Any) -> Any:
    """Numbers are floats, since any of them may be missing; the shortest that lose nothing."""
    short = isinstance(dtype, np.dtype) and dtype.kind in "iuf" and np.can_cast(dtype, np.float32)
    return np.float32 if short else np.float64


def _as_text(values: pd.Series) -> Any:
    if isinstance(values.dtype, pd.CategoricalDtype) and typed_cells(values):
        names = as_names(values.cat.categories)
        return (
            values.cat.rename_categories(names) if pd.Index(names).is_unique else as_names(values)
        )
    if kind_of(values.dtype) == TEXT and values.dtype != object:
        return values  # strings, and categories of a file's own
    return as_names(values)


def _read(
    values: pd.Series, decimal: str, written: NumberFormat | DateFormat | None
) -> NDArray[np.float64]:
    if written is None or kind_of(values.dtype) == NUMBER:
        return numbers_of(values, decimal)
    return written.read(values.tolist())


def _formats_of(
    X_public: pd.DataFrame,
    declared: Mapping[str, str],
    decimal: str | None,
    examples: Mapping[str, DateFormat],
) -> dict[str, NumberFormat | DateFormat]:
    """Find the columns that hold dates, or numbers with separated thousands or a unit."""
    found: dict[str, NumberFormat | DateFormat] = dict(examples)
    for name in X_public.columns:
        column = X_public[name]
        if name not in found and declared.get(name) != TEXT and kind_of(column.dtype) == TEXT:
            cells = [cell for cell in column.tolist() if isinstance(cell, str)]
            written: NumberFormat | DateFormat | None = date_format_of(cells, str(name))
            written = format_of(cells, str(name), decimal) if written is None else written
            if written is not None and written.separates_or_names:
                found[name] = written
    return found


def _swapped(cell: Any, decimal: str) -> Any:
    """Write decimals behind a point; what had a point already is no number."""
    return cell.replace(".", "_").replace(decimal, ".") if isinstance(cell, str) else cell


def _decimal_of(X_public: pd.DataFrame, declared: Mapping[str, str]) -> str:
    """Tell by public cells whether their decimals stand after a comma."""
    for name in X_public.columns:
        if declared.get(name) == TEXT or kind_of(X_public[name].dtype) != TEXT:
            continue
        cells = X_public[name].dropna().astype(str)
        commas = cells[cells.str.contains(",", regex=False)]
        if not len(commas) or not cells.map(lambda cell: bool(_COMMA.fullmatch(cell))).all():
            continue
        if commas.map(lambda cell: bool(_THOUSAND.fullmatch(cell))).all():
            raise UnclearDecimalError(f"column {name!r}: a comma may mark decimals or thousands")
        return ","
    return "."


def _refuse_thousands(column: pd.Series, decimal: str) -> None:
    """Refuse numbers whose thousands are separated: as text, each would be a category of its own."""
    cells = column.dropna().astype(str)
    unread = np.isnan(numbers_of(cells, decimal))
    marked = unread & cells.map(lambda cell: bool(_THOUSANDS.fullmatch(cell))).to_numpy(bool)
    strange = unread & ~marked & np.isnan(numbers_of(cells)) & np.isnan(numbers_of(cells, ","))
    if marked.any() and 2 * strange.sum() < len(cells):
        raise InputError(
            f"column {column.name!r} of the public records holds {cells[marked].iloc[0]!r}, which would "
            "count as text, because its thousands are separated: write thousands without a separator in all "
            "records; if "
            f'the column is text, set data.types = {{ {column.name} = "text" }}'
        )


def _other_kind(column: str, kind: str, name: str, other: str) -> InputError:
    here, public = _WORDS[other], _WORDS[kind]
    if name == "private":
        said = f"holds {public} in the public records, but {here} in the private ones"
    else:
        said = f"holds {here} in the {name} records, but {public} in the public ones"
    return InputError(f"column {column!r} {said}: convert one of them")


def _row(column: pd.Series, position: Any) -> int:
    """Tell where a record stands in its file: an index of whole numbers knows, after some were left out."""
    label = column.index[position]
    return int(label) if isinstance(label, (int, np.integer)) else int(position)


def _tell_of_gaps(column: str, name: str, n_wrong: int, row: int) -> None:
    warnings.warn(
        f"column {column!r} holds numbers in the public records, but {n_wrong:,} {name} record(s) hold "
        f"something else there, the first of them {counted(row)}: it counts as missing in these records",
        PrivacyWarning,
        stacklevel=2,
    )


def _tell_of_mixture(column: pd.Series, are: NDArray[np.bool_]) -> None:
    """Warn of public text that is almost a column of numbers. Public cells may be shown."""
    first = np.flatnonzero(~are)[0]
    warnings.warn(
        f"column {column.name!r} is read as text, because {int((~are).sum())} of {len(are)} public values "
        f"are not numbers, the first of them {str(column.iloc[first])[:40]!r} in "
        f"{counted(_row(column, first))}: if they "
        f'stand for missing values, set data.types = {{ {column.name} = "number" }}',
        PrivacyWarning,
        stacklevel=2,
    )


def mostly_different(column: pd.Series) -> bool:
    """Tell whether text differs in more than half of the records: as categories it teaches hardly anything.

    ``column``: public values, without the missing ones.
    """
    different = column.astype(str).nunique()
    return len(column) >= _LEAST_TOLD and 2 * different > len(column)


def _tell_of_names(column: pd.Series) -> None:
    """Warn of public text that is different nearly everywhere: dates, names, numbers with units."""
    if mostly_different(column):
        different = column.astype(str).nunique()
        warnings.warn(
            f"column {column.name!r} is text with {different:,} different values in {len(column):,} public "
            "records, and hardly anything can be learnt from text that differs nearly everywhere: write "
            "dates with years of four digits, numbers without words, and leave names out (in a study: "
            "data.exclude)",
            PrivacyWarning,
            stacklevel=2,
        )
