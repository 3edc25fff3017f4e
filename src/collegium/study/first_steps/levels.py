"""What privacy levels mean: said, asked, or that the column holds ε itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.budgets import Policy
from collegium.checks import exact_float, listed
from collegium.data.column_types import numbers_of
from collegium.errors import InputError
from collegium.names import as_names
from collegium.study.first_steps import inference
from collegium.study.first_steps.classes import refuse_more_columns
from collegium.study.first_steps.prompts import LOOK, NUMBERS, Begun, Question

_MOST_LEVELS = 20
_EXAMPLE = "high=1,average=2,low=3"

Meaning = dict[str, Any]
"""Keys of [privacy]: ``levels``, or none where ε is given as a number."""


def what_levels_mean(
    begun: Begun, name: str, path: Path, read: Callable[[], NDArray[Any]]
) -> Meaning | None:
    """Find what levels mean; None where nobody says it.

    ``name``: of the column or file that holds them.
    ``path``: of the file.
    ``read``: reads them all; called only where the user allows it.
    """
    source, given, names = repr(name), begun.wanted.levels, None
    if path != begun.files.private:
        refuse_more_columns(path)
    if begun.wanted.may_look:
        names = _names_of(begun, source, path, read())
    if given is not None:
        return read_levels(given, names, source)
    if inference.holds_epsilon(name) and (names is None or _are_numbers(names)):
        begun.talk.tell(
            f"privacy.levels: none; {source} holds epsilon as a number, by its name (--levels says otherwise)"
        )
        return {}
    if names is None:
        said = ask_without_names(begun, source, path.name)
        if said != LOOK:
            return None if said is None else read_levels(said, None, source)
        names = _names_of(begun, source, path, read())
    return _ask_about(begun, source, names)


def ask_without_names(begun: Begun, source: str, file: str) -> str | None:
    """Ask what levels mean whose names were not looked at; the answer may be to look at them."""

    def checked(text: str) -> str:
        if text != LOOK:
            read_levels(text, None, source)
        return text

    answer: str | None = begun.talk.ask(
        Question(
            f"What does each level in {source} mean, as epsilon (smaller protects more)? For instance "
            f"{_EXAMPLE}; {NUMBERS!r} if epsilon itself stands there; {LOOK!r} to have the names of the "
            f"levels read from {file}",
            "--levels NAME=EPSILON,… (what does each privacy level mean? --look-at-levels lists them), or "
            "--numeric-levels if epsilon itself stands there",
            checked,
        )
    )
    return answer


def read_levels(text: str, names: Sequence[str] | None, source: str) -> Meaning:
    """Read what was said of levels: ``NAME=EPSILON,…``, or that they are numbers.

    ``names``: of the levels that are there, if they were looked at.

    Examples
    --------
    >>> read_levels("high=1, low=inf", None, "'privacy'")
    {'levels': {'high': 1.0, 'low': inf}}
    >>> read_levels("numbers", ["0.5", "2"], "'budget'")
    {}
    """
    if text == NUMBERS:
        if names is not None and not _are_numbers(names):
            raise InputError(
                f"{source} holds {listed(names, 8)}, which are no numbers: say what each means with --levels"
            )
        return {}
    levels: dict[str, float] = {}
    for part in map(str.strip, text.split(",")):
        name, epsilon = _level(part)
        if name in levels:
            raise InputError(f"--levels names {name!r} twice: give each level once")
        levels[name] = epsilon
    if names is not None and set(levels) != set(names):
        raise InputError(
            f"--levels names {listed(levels)}, but {source} holds {listed(names)}: name these, as they are "
            "spelt there"
        )
    Policy(levels)
    return {"levels": levels}


def _level(part: str) -> tuple[str, float]:
    name, _, number = part.rpartition("=")
    try:
        if not name.strip():
            raise ValueError
        return name.strip(), exact_float(number)
    except OverflowError as error:
        raise InputError(f"--levels {part!r}: {error}") from None
    except ValueError:
        raise InputError(
            f"--levels {part!r} is not NAME=EPSILON: write, for instance, {_EXAMPLE}"
        ) from None


def _ask_about(begun: Begun, source: str, names: Sequence[str]) -> Meaning | None:
    wanted, numbers = ",".join(f"{name}=…" for name in names), _are_numbers(names)
    answer: Meaning | None = begun.talk.ask(
        Question(
            f"{source} holds {listed(names)}. What does each mean, as epsilon (smaller protects more)? Write "
            f"{wanted}" + f"; or {NUMBERS!r}: this is epsilon itself" * numbers,
            f"--levels {wanted} with an epsilon for each"
            + ", or --numeric-levels if this is epsilon itself" * numbers,
            lambda text: read_levels(text, names, source),
            proposal=NUMBERS if numbers else None,
        )
    )
    return answer


def _names_of(begun: Begun, source: str, path: Path, values: NDArray[Any]) -> list[str]:
    names = sorted({name for name in as_names(pd.unique(pd.Series(values))) if name is not None})
    if not names or (len(names) > _MOST_LEVELS and not _are_numbers(names)):
        many = f"{len(names):,} different values" if names else "no value"
        raise InputError(
            f"{source} has {many}: are these privacy levels? Say where they are with --privacy COLUMN or "
            "--privacy-file FILE"
        )
    begun.talk.tell(f"levels: {listed(names)}; read from {path.name}")
    return names


def _are_numbers(names: Sequence[str]) -> bool:
    column = pd.Series(list(names), dtype=object)
    return bool((np.isfinite(numbers_of(column)) | np.isfinite(numbers_of(column, ","))).all())
