"""What fails on private records, told without its message: it may quote them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from collegium.errors import CollegiumError, InputError

Made = TypeVar("Made")


def unquoted(work: Callable[[], Made], what: str, advice: str) -> Made:
    """Do some work on private records, and let no message of a failure out, nor the failure itself.

    ``what``, ``advice``: what failed then, and what to do.
    """
    try:
        return work()
    except CollegiumError:
        raise
    except Exception as error:
        failure = type(error).__name__
    raise InputError(
        f"{what} failed: {failure}, whose message is not shown because it may quote private records; {advice}"
    )
