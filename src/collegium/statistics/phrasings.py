"""Phrasings that people try, and the question that asks the same, which an error names."""

from __future__ import annotations

from difflib import get_close_matches

_COUNT, _PEOPLE = "count where …", "count people where …"
_SHARE, _TOP = "share where …, or share of COLUMN", "top 5 of COLUMN"
_DIFFERENCE = "difference of mean COLUMN by GROUP between 'A' and 'B'"
_QUANTILES = "quantiles(0.25, 0.5, 0.75) of COLUMN"
_YEARS = "count by year(COLUMN)"
_RANGE = "quantiles(0.01, 0.99) of COLUMN"
_MEANT = {
    "how many people": _PEOPLE, "how many persons": _PEOPLE, "how many patients": _PEOPLE,
    "number of people": _PEOPLE, "number of patients": _PEOPLE, "unique": _PEOPLE, "distinct": _PEOPLE,
    "how many": _COUNT, "number of": _COUNT, "number": _COUNT, "size": _COUNT, "n": _COUNT,
    "percentage": _SHARE, "percent": _SHARE, "per cent": _SHARE, "proportion": _SHARE, "fraction": _SHARE,
    "ratio": _SHARE, "rate": _SHARE, "probability": _SHARE, "prevalence": _SHARE, "what share": _SHARE,
    "most frequent": _TOP, "most common": _TOP, "mode": _TOP, "largest": _TOP, "ranking": _TOP, "rank": _TOP,
    "compare": _DIFFERENCE, "gap": _DIFFERENCE, "diff": _DIFFERENCE, "t test": _DIFFERENCE,
    "ttest": _DIFFERENCE, "effect": _DIFFERENCE, "change": _DIFFERENCE,
    "quartiles": _QUANTILES, "deciles": _QUANTILES, "percentiles": _QUANTILES, "boxplot": _QUANTILES,
    "iqr": _QUANTILES, "interquartile range": _QUANTILES, "describe": _QUANTILES, "summary": _QUANTILES,
    "range": _RANGE, "extremes": _RANGE, "outliers": _RANGE,
    "trend": _YEARS, "time series": _YEARS, "over time": _YEARS, "yearly": _YEARS, "monthly": _YEARS,
    "how old": "mean age(COLUMN, 2024-12-31)", "year": _YEARS, "age": "mean age(COLUMN, 2024-12-31)",
    "distribution": "histogram COLUMN", "frequency": "histogram COLUMN", "frequencies": "histogram COLUMN",
    "bar chart": "histogram COLUMN", "density": "histogram COLUMN", "value counts": "histogram COLUMN",
    "pivot": "crosstab A, B", "cross tabulation": "crosstab A, B", "contingency table": "crosstab A, B",
    "regression": "ridge Y on A, B", "regress": "ridge Y on A, B", "linear model": "ridge Y on A, B",
    "predict": "ridge Y on A, B", "slope": "ridge Y on A, B",
    "association": "corr A, B", "relationship": "corr A, B", "dependence": "corr A, B",
    "total": "sum COLUMN", "add up": "sum COLUMN", "typical": "median COLUMN", "middle": "median COLUMN",
    "spread": "std COLUMN", "dispersion": "std COLUMN", "standard deviation": "std COLUMN",
    "expected": "mean COLUMN", "what is the average": "mean COLUMN", "the average": "mean COLUMN",
    "list": _COUNT, "show": _COUNT, "rows": _COUNT, "filter": _COUNT, "find": _COUNT, "who": _COUNT,
}  # fmt: skip
_CLAUSES = {
    **dict.fromkeys(("per", "group", "grouped", "each", "split", "across"), "by"),
    **dict.fromkeys(("if", "when", "with", "having", "whose", "for", "who", "in", "among", "only"), "where"),
    "order": "top 5 of COLUMN, which is in order", "limit": "top 5 of COLUMN",
}  # fmt: skip


def nearest_question(text: str) -> str | None:
    """Find the question that a text which is none probably means; None where nothing is near.

    Examples
    --------
    >>> nearest_question("How many people smoke?"), nearest_question("persentage of smokers")
    ('count people where …', 'share where …, or share of COLUMN')
    >>> nearest_question("xyzzy") is None
    True
    """
    words = "".join(letter if letter.isalnum() else " " for letter in text.casefold()).split()
    starts = [" ".join(words[:length]) for length in range(min(4, len(words)), 0, -1)]
    for start in starts:
        if start in _MEANT:
            return _MEANT[start]
    for start in starts:
        if near := get_close_matches(start, _MEANT, n=1, cutoff=0.8):
            return _MEANT[near[0]]
    return None


def nearest_clause(word: str) -> str | None:
    """Find what a word behind a question probably means."""
    return _CLAUSES.get(word.casefold())
