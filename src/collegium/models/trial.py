"""Trying things on public records: what fails there is told in one line, and costs nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from collegium.errors import CollegiumError, InputError


@contextmanager
def one_line_about(key: str, purpose: str) -> Iterator[None]:
    """Refuse what fails on public records alone; such a message cannot quote private ones.

    ``key``: the configuration's key that is to blame.
    ``purpose``: what was tried, as in "… cannot be *trained on public records*".

    Examples
    --------
    >>> with one_line_about("student.model", "trained on public records"):
    ...     int("seven")
    Traceback (most recent call last):
    collegium.errors.InputError: student.model cannot be trained on public records (ValueError: ...
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except CollegiumError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        way_out = "correct its parameters, or the preprocessing"
        if "could not convert string to float" in reason:
            way_out = "columns of text need a preprocessing that takes them, such as TabularEncoder (tabular)"
        raise InputError(
            f"{key} cannot be {purpose} ({type(error).__name__}: {reason}): {way_out}"
        ) from None
