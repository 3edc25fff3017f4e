"""A protocol's steps, and how long one waits between them.

What a party does is written as a generator: it goes on until it needs what others have not posted, and yields
whom it waits for. Whoever drives it looks again later, and says when it has taken too long. So the protocol
knows no clock: a folder is polled, and parties in one process take turns.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from collegium.checks import check_callable, check_positive
from collegium.errors import CollegiumError, frames_to_user

T = TypeVar("T")
_QUIET_S = 60.0


class SumNotOpenedError(CollegiumError):
    """Too few parties took part. Nothing of this sum was opened, or will be; it counts as drawn."""


class StillWaitingError(CollegiumError):
    """Others have not posted what is needed. Nothing is lost: the same call goes on from here."""


class WaitingWarning(UserWarning):
    """Others have posted nothing for a minute."""


@dataclass(frozen=True)
class Waiting:
    """Whom a party waits for.

    ``what``: they have not posted: a noun.
    ``parties``: their names.
    ``turns``: after how many times ``collect_s`` it is told that it is late; None: when patience ends.
    """

    what: str
    parties: tuple[str, ...]
    turns: int | None = None


Steps = Generator[Waiting, bool, T]
"""Yields whom it waits for; is sent whether it is late; returns a T."""


@dataclass(frozen=True)
class Patience:
    """How long a party waits, by this machine's monotonic clock: no date is read, and none is believed.

    Parameters
    ----------
    collect_s : float, default 3600.0
        Seconds in which all vectors should come; then those that are there count, if they are enough. Public,
        and the same for all.
    give_up_s : float, default 86400.0
        Seconds after which a call ends with StillWaitingError; it can be made again.
    poll_s : float, default 1.0
        Seconds between two looks.
    told : callable, optional
        Is called with a Waiting whenever it changes. By default there is a WaitingWarning after a minute.
    """

    collect_s: float = 3600.0
    give_up_s: float = 86_400.0
    poll_s: float = 1.0
    told: Callable[[Waiting], None] | None = None

    def __post_init__(self) -> None:
        for name in ("collect_s", "give_up_s", "poll_s"):
            check_positive(name, getattr(self, name))
        if self.told is not None:
            check_callable("told", self.told, "it is told whom a party waits for")

    def drive(self, steps: Steps[T]) -> T:
        """Go through the steps, looking again every ``poll_s`` seconds.

        Raises StillWaitingError, and what the steps raise.
        """
        waiting, late, warned = None, False, False
        begun, end = 0.0, math.inf
        try:
            while True:
                now_for = next(steps) if waiting is None else steps.send(late)
                now = time.monotonic()
                if waiting is None or now_for.what != waiting.what:
                    begun, warned = now, False
                    end = (
                        self.give_up_s if now_for.turns is None else now_for.turns * self.collect_s
                    )
                if self.told is not None and now_for != waiting:
                    self.told(now_for)
                elif self.told is None and not warned and now - begun >= _QUIET_S:
                    warned = True
                    warnings.warn(
                        f"waiting for {', '.join(now_for.parties)}: no {now_for.what} yet",
                        WaitingWarning,
                        stacklevel=frames_to_user(),
                    )
                waiting = now_for
                late = now - begun >= end
                if not late:
                    time.sleep(min(self.poll_s, max(end - (now - begun), 0.0)))
        except StopIteration as ended:
            done: T = ended.value
            return done


def still_waiting(waiting: Waiting) -> StillWaitingError:
    """Say who is missing."""
    return StillWaitingError(
        f"{', '.join(waiting.parties)} posted no {waiting.what} in time: what was posted stands; a study "
        "goes on when it is run again, and anything else begins anew under another name"
    )
