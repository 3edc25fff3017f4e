"""Events in words, as they are typed: ``100 x laplace(0.1)``."""

from __future__ import annotations

import re

import numpy as np

from collegium.accounting.bookkeeping import MOST_CHARGES
from collegium.accounting.events import (
    BoundedRange,
    Composition,
    Event,
    Gaussian,
    GaussianArgMax,
    Laplace,
    PoissonGaussian,
    PureNoise,
)
from collegium.checks import check_is, exact_float, shown
from collegium.errors import InputError

__all__ = ["KINDS", "event_of_words"]

#: What each kind of event is told, for an owner of sensitivity 1.
KINDS = {
    "gaussian": ("NOISE",),
    "argmax": ("NOISE",),
    "laplace": ("EPSILON",),
    "pure": ("EPSILON",),
    "exponential": ("RANGE",),
    "poisson": ("RATE", "NOISE", "STEPS"),
}
_WORDS = re.compile(r"\s*(?:(\d[\d_,]*)\s*[x×*]\s*)?([a-z]+)\s*\(([^()]*)\)\s*", re.IGNORECASE)


def event_of_words(words: str) -> Event:
    """Read an event of one cohort, whose owners have sensitivity 1, as it is typed.

    ``KIND(NUMBERS)``, or ``COUNT x KIND(NUMBERS)`` for several. Kinds:

    * ``gaussian(NOISE)``: noise of that standard deviation, in units of how far an owner moves the vector
      in L2.
    * ``argmax(NOISE)``: only the largest of such coordinates is told; an owner moves a weight of 1 from
      one to another.
    * ``laplace(EPSILON)``: Laplace noise of scale 1/EPSILON, in units of how far an owner moves the number.
    * ``pure(EPSILON)``: anything (EPSILON, 0)-DP.
    * ``exponential(RANGE)``: log-ratios for an owner in an interval of that length.
    * ``poisson(RATE, NOISE, STEPS)``: Gaussian noise on Poisson samples; STEPS may be left out.

    Parameters
    ----------
    words : str

    Returns
    -------
    Event

    Raises
    ------
    InputError
        If it is something else, or a number is out of range.

    Examples
    --------
    >>> event_of_words("100 x laplace(0.1)").pure_epsilon.round(9)
    array([10.])
    >>> event_of_words("gaussian(40)").mu_squared.round(9)
    array([0.000625])
    """
    check_is("words", words, str, "write for instance 'gaussian(40)'")
    found = _WORDS.fullmatch(words)
    if not found or found[2].lower() not in KINDS:
        raise InputError(
            f"{shown(words)} is no event: write KIND(NUMBERS) or COUNT x KIND(NUMBERS), for instance "
            f"'100 x laplace(0.1)', with one of {_forms()}"
        )
    kind, often = found[2].lower(), found[1]
    told = [one.strip() for one in found[3].split(",")]
    wanted = KINDS[kind]
    fewest = len(wanted) - (kind == "poisson")
    try:
        numbers = [exact_float(one) for one in told]
    except (ValueError, OverflowError):
        numbers = []
    if not fewest <= len(numbers) <= len(wanted):
        raise InputError(f"{shown(words)} is not understood: write {_form(kind)} with numbers")
    event = _event(kind, numbers)
    if often is None:
        return event
    count = int(re.sub("[_,]", "", often))
    if not 1 <= count <= MOST_CHARGES:
        raise InputError(f"{shown(words)}: give a count from 1 to {MOST_CHARGES:,}")
    return Composition([event], [count])


def _event(kind: str, numbers: list[float]) -> Event:
    first = np.array(numbers[:1])
    if kind == "poisson":
        steps = numbers[2] if len(numbers) > 2 else 1.0
        if not steps.is_integer() or steps < 1:
            raise InputError(f"{steps:g} steps: give a whole number of at least 1")
        return PoissonGaussian(first, np.array(numbers[1:2]), int(steps))
    if kind == "gaussian":
        return Gaussian(np.ones(1), numbers[0])
    if kind == "argmax":
        return GaussianArgMax(np.ones(1), numbers[0])
    if kind == "laplace":
        return Laplace(np.ones(1), numbers[0])
    return PureNoise(first) if kind == "pure" else BoundedRange(first)


def _form(kind: str) -> str:
    return f"{kind}({', '.join(KINDS[kind])})"


def _forms() -> str:
    return ", ".join(map(_form, KINDS))
