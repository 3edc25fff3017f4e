"""Checks of single values: each message names the value, says what is allowed, and shows what was given."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import CollegiumError, InputError
from collegium.plain_text import among_others

_WIDTH = 60  # of a value in a message, in letters


def shown(value: Any) -> str:
    """Write a value for a message: in one line, cut where it is long.

    Examples
    --------
    >>> shown(10**5000), shown("word"), len(shown("w" * 1000))
    ('a number of more than 4,300 digits', "'word'", 60)
    """
    if isinstance(value, type):
        return f"the class {value.__name__}: write {value.__name__}()"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to write whole numbers of so many digits
        return "a number of more than 4,300 digits"
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def exact_float(value: Any) -> float:
    """Turn text or a number into a float that is infinite only where infinity was meant.

    Raises OverflowError for 1e400, which Python reads as infinity; in a budget that would be "no privacy".

    Examples
    --------
    >>> exact_float("1e300"), exact_float("inf")
    (1e+300, inf)
    >>> exact_float("1e400")
    Traceback (most recent call last):
    OverflowError: 1e400 is larger than any number that can be computed with: write inf for infinity
    """
    number = float(value)
    if math.isinf(number):
        if isinstance(value, str):
            meant = value.strip().lower().lstrip("+-") in ("inf", "infinity")
        else:
            meant = bool(value == number)
        if not meant:
            raise OverflowError(
                f"{str(value)[:_WIDTH]} is larger than any number that can be computed with: write inf for "
                "infinity"
            )
    return number


def exact_floats(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """Turn a column into floats, as :func:`exact_float` does; None where that cannot be done."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
        if values.dtype.kind not in "biuf":
            for row in np.flatnonzero(np.isinf(numbers)):
                exact_float(values[row])
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers


def as_numbers(values: Any) -> NDArray[np.float64] | None:
    """Turn a number, or numbers in any shape, into floats; None where that cannot be done.

    Examples
    --------
    >>> as_numbers([1, 2]), as_numbers("x"), as_numbers(10**400), as_numbers([1j])
    (array([1., 2.]), None, None, None)
    """
    try:
        if np.iscomplexobj(values):
            return None
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def listed(names: Any, most: int = 20) -> str:
    """Write names one after the other for a message; of many, the first few and how many there are.

    Examples
    --------
    >>> listed(["cat", "dog"]), listed(range(1000), most=2)
    ('cat, dog', '0, 1, … (1,000 in all)')
    """
    texts = [str(name) for name in names]
    if len(texts) <= most:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])}, … ({len(texts):,} in all)"


def people(number: int) -> str:
    """Count people for a message.

    Examples
    --------
    >>> people(1), people(19_067)
    ('1 person', '19,067 people')
    """
    return f"{number:,} {'person' if number == 1 else 'people'}"


def nearest(name: str, allowed: Collection[str]) -> str:
    """Say which of some names was probably meant, or which there are.

    Examples
    --------
    >>> nearest("agee", ["age", "sex"]), nearest("?", ["age", "sex"])
    ("did you mean 'age'?", 'allowed are age, sex')
    """
    near = difflib.get_close_matches(name, allowed, n=1)
    return (
        f"did you mean {near[0]!r}?"
        if near
        else f"allowed are {listed(map(among_others, allowed))}"
    )


def check_separator(separator: str | None, name: str = "separator") -> None:
    """Refuse what cannot stand between the cells of a CSV file. ``name``: what the user calls it.

    Examples
    --------
    >>> check_separator(";;", "data.separator")
    Traceback (most recent call last):
    collegium.errors.InputError: data.separator must be one character, got ';;'
    """
    if separator is None:
        return
    if not separator.strip(" \n"):
        raise InputError(f"{name} must not be empty, got {separator!r}")
    if len(separator) != 1 or separator in ' \n\r"':
        raise InputError(f"{name} must be one character, got {separator!r}")


def is_whole(value: Any) -> bool:
    """Tell whether a value is a whole number; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Tell whether a value is a number, infinity among them; NaN, True and False are not."""
    return not isinstance(value, bool) and isinstance(value, Real) and value == value


def check_whole(
    name: str,
    value: Any,
    least: int = 1,
    most: int | None = None,
    error: type[CollegiumError] = InputError,
) -> None:
    """Refuse what is not a whole number between two others.

    Examples
    --------
    >>> check_whole("n_teachers", 0)
    Traceback (most recent call last):
    collegium.errors.InputError: n_teachers must be a whole number of at least 1, got 0
    """
    if not is_whole(value) or value < least or (most is not None and value > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise error(f"{name} must be a whole number {allowed}, got {shown(value)}")


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    error: type[CollegiumError] = InputError,
) -> None:
    """Refuse what is not a number in a range; ``below=math.inf`` refuses infinity.

    Examples
    --------
    >>> check_number("mistrust", 1, least=0, below=1)
    Traceback (most recent call last):
    collegium.errors.InputError: mistrust must be at least 0 and below 1, got 1
    """
    if not is_number(value):
        raise error(f"{name} must be a number, got {shown(value)}")
    try:
        float(value)
    except OverflowError:
        raise error(
            f"{name} is larger than any number that can be computed with, got {shown(value)}: at most "
            "1.7e308 is allowed, or inf"
        ) from None
    inside = (
        (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
        and (below is None or value < below)
    )
    if not inside:
        raise error(f"{name} must {_range(least, above, most, below)}, got {shown(value)}")


def check_positive(name: str, value: Any, error: type[CollegiumError] = InputError) -> None:
    """Refuse what is not a finite number above 0."""
    check_number(name, value, above=0, below=math.inf, error=error)


def check_share(name: str, value: Any, error: type[CollegiumError] = InputError) -> None:
    """Refuse what is not a number between 0 and 1."""
    check_number(name, value, least=0, most=1, error=error)


def check_choice(
    name: str, value: Any, choices: Collection[str], error: type[CollegiumError] = InputError
) -> None:
    """Refuse what is not among a few words.

    Examples
    --------
    >>> check_choice("release", "votes", ("labels", "histogram"))
    Traceback (most recent call last):
    collegium.errors.InputError: release must be one of labels, histogram, got 'votes'
    """
    if not isinstance(value, str) or value not in choices:
        raise error(f"{name} must be one of {', '.join(choices)}, got {shown(value)}")


def check_is(
    name: str,
    value: Any,
    kind: type,
    advice: str,
    error: type[CollegiumError] = InputError,
) -> None:
    """Refuse what is of another type; of the value nothing but its type is told.

    ``advice``: where such a thing comes from.

    Examples
    --------
    >>> check_is("budgets", [1.0, 3.0], dict, "give one by name")
    Traceback (most recent call last):
    collegium.errors.InputError: budgets must be of type dict, got one of type list: give one by name
    """
    if not isinstance(value, kind):
        plain = value is None or isinstance(value, type)
        given = shown(value) if plain else f"one of type {type(value).__name__}"
        raise error(f"{name} must be of type {kind.__name__}, got {given}: {advice}")


def check_callable(name: str, value: Any, advice: str) -> None:
    """Refuse what cannot be called.

    ``advice``: what it is called for.
    """
    if not callable(value):
        raise InputError(f"{name} must be a function, got {shown(value)}: {advice}")


def check_truth(name: str, value: Any, error: type[CollegiumError] = InputError) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, (bool, np.bool_)):
        raise error(f"{name} must be true or false, got {shown(value)}")


def _range(
    least: float | None, above: float | None, most: float | None, below: float | None
) -> str:
    if least is not None and most is not None:
        return f"lie between {least} and {most:,}"
    finite = below is not None and math.isinf(below)
    if above is not None and below is not None and not finite:
        return f"lie strictly between {above} and {below}"
    parts = ["finite"] if finite else []
    limits = {"at least": least, "greater than": above, "at most": most}
    limits["below"] = None if finite else below
    return "be " + " and ".join(
        [*parts, *(f"{word} {limit}" for word, limit in limits.items() if limit is not None)]
    )
