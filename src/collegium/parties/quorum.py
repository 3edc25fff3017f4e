"""How many parties there are, how many may stay away, and how many may work together against the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

from collegium.checks import check_whole
from collegium.errors import InputError

FEWEST, MOST = 3, 20


@dataclass(frozen=True)
class Quorum:
    """What a sum of several parties withstands; public, and the same for all of them.

    A secret is shared so that ``threshold`` parties can put it together. More than half of the honest
    parties are among any ``threshold`` of them, so any two such sets have an honest party in common: that is
    why no two sets of vectors of one query are ever opened (``docs/parties.md``).

    Parameters
    ----------
    parties : int
        N, from 3 to 20.
    drop_outs : int, default 0
        d: so many may stay away, in any round, and the sum is still opened.
    colluders : int, default 1
        c: so many may put together all that they know, whoever reads the files among them, and still see
        nothing but a sum with all the noise that was asked for. At least 1, since a party knows its own
        noise.

    Raises
    ------
    InputError
        If they contradict each other: at most N - floor((N + c)/2) - 1 parties may stay away.

    Examples
    --------
    >>> quorum = Quorum(10, drop_outs=2, colluders=1)
    >>> quorum.threshold, quorum.fewest, quorum.surely_honest
    (6, 8, 7)
    >>> Quorum(3, drop_outs=1)
    Traceback (most recent call last):
    collegium.errors.InputError: drop_outs = 1 is more than 3 parties with 1 colluder can do without: at most
    0
    """

    parties: int
    drop_outs: int = 0
    colluders: int = 1

    def __post_init__(self) -> None:
        check_whole("parties", self.parties, least=FEWEST, most=MOST)
        check_whole("drop_outs", self.drop_outs, least=0)
        check_whole("colluders", self.colluders, least=1)
        if self.colluders >= self.parties:
            raise InputError(
                f"colluders = {self.colluders} of {self.parties} parties leave nobody to protect: at most "
                f"{self.parties - 1}"
            )
        most = self.parties - self.threshold
        if self.drop_outs > most:
            colluders = f"{self.colluders} colluder{'s' if self.colluders > 1 else ''}"
            raise InputError(
                f"drop_outs = {self.drop_outs} is more than {self.parties} parties with {colluders} can do "
                f"without: at most {most}"
            )

    @property
    def threshold(self) -> int:
        """How many parties put a shared secret together: floor((N + c)/2) + 1."""
        return (self.parties + self.colluders) // 2 + 1

    @property
    def fewest(self) -> int:
        """How many vectors a sum has at least: N - d."""
        return self.parties - self.drop_outs

    @property
    def surely_honest(self) -> int:
        """How many shares of noise nobody can subtract, at least: N - d - c."""
        return self.parties - self.drop_outs - self.colluders

    def excess(self, present: int) -> float:
        """By how much the noise in a sum of so many vectors is larger than what was asked for.

        As a multiple of the standard deviation: sqrt(present / (N - d - c)).

        Examples
        --------
        >>> round(40 * Quorum(10, drop_outs=2).excess(10), 6), round(40 * Quorum(3).excess(3), 6)
        (47.809144, 48.989795)
        """
        return math.sqrt(present / self.surely_honest)
