"""All parties of one sum in one process: the real protocol, on a mailbox in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collegium.errors import InputError
from collegium.noise.sources import noise_from
from collegium.noise.sums import MOST_TOTAL, Integers, Noise
from collegium.parties.mailbox import MemoryMailbox
from collegium.parties.members import Agreement, IdentityKey
from collegium.parties.party_sum import PartySum
from collegium.parties.quorum import Quorum
from collegium.parties.summing import Opened
from collegium.parties.waiting import Steps, SumNotOpenedError


@dataclass(frozen=True, eq=False)
class SecureSum:
    """A sum of several parties, opened only with noise.

    ``total``: what all parties get, in grid steps.
    ``present``: whose vectors are in it, by place from 0.
    ``noise``: the whole noise in it: its standard deviation before rounding is never below what was asked
    for.
    ``bytes_posted``: by each party, in this sum and for its keys.
    """

    total: Integers
    present: tuple[int, ...]
    noise: Noise
    bytes_posted: tuple[int, ...]


def secure_sum(
    vectors: Sequence[Any],
    noise: Noise,
    *,
    drop_outs: int = 0,
    colluders: int = 1,
    seed: int | None = None,
) -> SecureSum:
    """Sum vectors of several parties so that nothing of them is seen but the sum, with noise in it.

    All parties are played here, by the code that they run in earnest
    (:class:`~collegium.parties.party_sum.PartySum`): each masks its vector modulo 2**64, adds its share of
    the noise, and no share of a seed is revealed unless a majority of the honest has confirmed which vectors
    count.

    Parameters
    ----------
    vectors : sequence of arrays of integers, or None
        What each of 3 to 20 parties adds, in grid steps, all of one shape; None for a party that stays away.
        All magnitudes together must be below 2**62.
    noise : Noise
        Gaussian, in grid steps; each party's share of it must be at least 8 steps.
    drop_outs : int, default 0
        How many parties may stay away. At most N - floor((N + c)/2) - 1 of N parties.
    colluders : int, default 1
        How many parties, with whoever reads the files, may put together what they know.
    seed : int, optional
        Makes the noise, and nothing else, repeatable: for experiments, never for a release.

    Returns
    -------
    SecureSum

    Raises
    ------
    InputError
        If the vectors are not integers of one shape, too large, or the numbers of parties contradict each
        other.
    SumNotOpenedError
        If more parties stay away than may.

    Notes
    -----
    For a person who moves the sum by at most Delta in L2 this is (mu, delta_0) in the currency of accounts,
    with mu = Delta / sigma and the :func:`~collegium.parties.noise_shares.delta_0` of its shares, towards any
    ``colluders`` parties and all who read the files (semi-honest; ``docs/parties.md``). The noise in the
    result is larger than sigma by sqrt(present / (N - d - c)).

    References
    ----------
    .. [1] K. Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning", CCS
    2017:
       masks, shares of seeds, and the consistency check.
    .. [2] P. Kairouz, Z. Liu, T. Steinke, "The distributed discrete Gaussian mechanism for federated learning
       with secure aggregation", ICML 2021, arXiv 2102.06387: noise in shares.

    Examples
    --------
    >>> vectors = [[1000, 1], [2000, 2], None, [4000, 4], [5000, 5]]
    >>> result = secure_sum(vectors, Noise("gaussian", 40.0), drop_outs=1)
    >>> result.present, bool(np.all(abs(result.total - [12000, 12]) < 500))
    ((0, 1, 3, 4), True)
    >>> round(result.noise.scale, 6)
    46.188022
    >>> secure_sum([[1.5], [2.0], [3.0]], Noise("gaussian", 40.0))
    Traceback (most recent call last):
    collegium.errors.InputError: the vector of party 1 holds no integers (float64): round it to grid steps
    first
    """
    quorum = Quorum(len(vectors), drop_outs, colluders)
    given = _checked(vectors)
    if len(given) < quorum.fewest:
        raise SumNotOpenedError(
            f"{len(given)} of {quorum.parties} parties gave a vector, and {quorum.fewest} have to: nothing "
            "was drawn"
        )
    keys = [IdentityKey.fresh() for _ in vectors]
    members = [key.member(f"party {number}") for number, key in enumerate(keys, start=1)]
    agreement, mailbox = Agreement(b"one sum", members, quorum), MemoryMailbox()
    parties = [
        PartySum(
            agreement,
            key,
            mailbox,
            MemoryMailbox(),
            source=noise_from(None if seed is None else seed + place),
        )
        for place, key in enumerate(keys)
    ]
    shape = next(iter(given.values())).shape
    begun = {
        place: party.steps(
            given.get(place, np.zeros(shape, np.int64)), noise, query=0, purpose="sum"
        )
        for place, party in enumerate(parties)
    }
    for place in begun.keys() - given.keys():
        next(begun[place])  # its keys are posted: the others come later
    opened = play({place: begun[place] for place in given}, mailbox)
    first = next(iter(opened.values()))
    posted = [
        sum(
            len(content)
            for name, content in mailbox.files.items()
            if name.endswith(f"-p{number:02d}.json")
        )
        for number in range(1, len(vectors) + 1)
    ]
    return SecureSum(
        first.total,
        tuple(number - 1 for number in first.present),
        Noise("gaussian", noise.scale * quorum.excess(len(first.present))),
        tuple(posted),
    )


def play(parties: Mapping[int, Steps[Opened]], mailbox: MemoryMailbox) -> dict[int, Opened]:
    """Let parties take turns until all have the sum; no time passes while any of them can go on."""
    waiting = {place: next(steps) for place, steps in parties.items()}
    opened: dict[int, Opened] = {}

    def turn(place: int, late: bool = False) -> None:
        try:
            waiting[place] = parties[place].send(late)
        except StopIteration as ended:
            opened[place] = ended.value
            del waiting[place]

    while waiting:
        before = len(mailbox.files), len(opened)
        for place in list(waiting):
            turn(place)
        if waiting and before == (len(mailbox.files), len(opened)):
            turn(min(waiting, key=lambda place: waiting[place].turns or math.inf), late=True)
    return opened


def _checked(vectors: Sequence[Any]) -> dict[int, Integers]:
    """Take the vectors that are there, as int64, by place."""
    given: dict[int, Integers] = {}
    largest = 0
    for place, vector in enumerate(vectors):
        if vector is None:
            continue
        array = np.asarray(vector)
        if array.dtype.kind not in "iu" or not array.size:
            raise InputError(
                f"the vector of party {place + 1} holds no integers ({array.dtype}): round it to grid steps "
                f"first"
            )
        if given and array.shape != (shape := next(iter(given.values())).shape):
            raise InputError(
                f"the vector of party {place + 1} has shape {array.shape}, not {shape}: all must have one "
                f"shape"
            )
        largest += max(abs(int(array.max())), abs(int(array.min())))
        if largest >= MOST_TOTAL:
            raise InputError(
                "the vectors together may be beyond 2**62 in magnitude: take a coarser grid"
            )
        given[place] = array.astype(np.int64)
    if not given:
        raise InputError("no party gave a vector: give at least those that are to be summed")
    return given
