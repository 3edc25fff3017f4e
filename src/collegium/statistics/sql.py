"""SQL where a question is expected: recognised, and refused with the question that asks the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from collegium.errors import InputError

_PARTS = re.compile(
    r"\s*select\s+(?P<what>.*?)\s+from\s+\S+(?:\s+where\s+(?P<where>.*?))?"
    r"(?:\s+group\s+by\s+(?P<by>.*?))?(?:\s+(?:having|order\s+by|limit)\b.*)?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_CALL = re.compile(r"(\w+)\s*\(\s*(?:distinct\s+)?([^()]*?)\s*\)", re.IGNORECASE)
_KINDS = {
    "avg": "mean", "mean": "mean", "sum": "sum", "count": "count", "median": "median",
    "variance": "var", "var_pop": "var", "var_samp": "var", "var": "var",
    "stddev": "std", "stddev_pop": "std", "stddev_samp": "std", "stdev": "std", "std": "std",
    "corr": "corr", "covar_pop": "cov", "covar_samp": "cov",
}  # fmt: skip


def refusal_of_sql(text: str, parse: Callable[[str], Any]) -> InputError:
    """Make the error about a statement of SQL.

    ``parse``: turns a question into its canonical form, or raises InputError.
    """
    asked = _same_in_words(text)
    if asked is not None:
        try:
            return InputError(f"SQL is not understood; ask instead: {parse(asked)}")
        except InputError as error:
            return InputError(
                f"SQL is not understood; as a question it would be: {asked}; but {error}"
            )
    return InputError(
        "SQL is not understood; a question is one of count, count people, share, sum, mean, var, std, "
        "median, quantile(0.9), histogram, top, crosstab, cov, corr and ridge with its columns, as in: mean "
        "income by sex where age >= 40"
    )


def _same_in_words(text: str) -> str | None:
    """Write the first aggregate of a SELECT as a question; None where that cannot be told."""
    parts = _PARTS.fullmatch(text)
    call = _CALL.search(parts["what"]) if parts else None
    kind = _KINDS.get(call[1].casefold()) if call else None
    if parts is None or call is None or kind is None:
        return None
    column = "" if kind == "count" else call[2]
    if kind == "count" and "distinct" in call[0].casefold():
        kind = "count people"
    asked = f"{kind} {column}".strip()
    if parts["by"]:
        asked += f" by {parts['by'].strip()}"
    if parts["where"]:
        asked += f" where {parts['where'].strip()}"
    return " ".join(asked.split())
