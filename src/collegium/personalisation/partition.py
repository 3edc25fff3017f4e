"""Who teaches whom: a keyed hash of the owner, so that nobody's presence moves anybody else.

The assignment of an owner depends on the owner's name and on a public key alone. Adding or removing one
owner therefore changes that owner's teachers and no other (tested with fingerprints of every teacher's
training set). The key is public randomness: it need not be secret, only fixed before the data are seen.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.names import as_names, spelling

_WEYL = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_PARTS = 2**40  # streams that no choice of teachers uses


def owner_hashes(owners: NDArray[Any], key: bytes) -> NDArray[np.uint64]:
    """Hash owners' names with BLAKE2b under a key.

    ``owners`` (n_owners,): names, as :func:`~collegium.names.as_names` spells them: ``7``, ``7.0`` and
        ``"7"`` are one owner, whatever type the column of owners has.
    ``key``: up to 64 bytes of public randomness.
    Returns (n_owners,).
    """
    keyed = hashlib.blake2b(key=key, digest_size=8, person=b"collegium-owner")
    if owners.dtype.kind in "iu":  # this loop is most of the time that millions of owners take
        spelt = (b"int:%d" % owner for owner in owners.tolist())
    else:
        spelt = (spelling(name) for name in as_names(owners).tolist())
    digests = []
    for name in spelt:
        hasher = keyed.copy()
        hasher.update(name)
        digests.append(hasher.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _stream(hashes: NDArray[np.uint64], step: int) -> NDArray[np.uint64]:
    """Derive the ``step``-th independent-looking value of each hash (SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        mixed = hashes + np.uint64(step + 1) * _WEYL
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX_1
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX_2
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def hashes_of_part(hashes: NDArray[np.uint64], part: int, n_parts: int) -> NDArray[np.uint64]:
    """Derive the hashes by which owners are placed in one of several independent partitions.

    ``hashes`` (n_owners,): from :func:`owner_hashes`; of a single partition they are used as they are.
    """
    return hashes if n_parts == 1 else _stream(hashes, _PARTS + part)


def choose_teachers(
    hashes: NDArray[np.uint64], n_teachers: int, n_chosen: int
) -> NDArray[np.int32]:
    """Choose different teachers for each owner by hash alone.

    ``hashes`` (n_owners,): from :func:`owner_hashes`.
    ``n_teachers``: teachers to choose from, numbered from 0.
    ``n_chosen``: how many different teachers each owner gets.
    Returns (n_owners, n_chosen): without repetition in a row; every teacher is equally likely.
    """
    _refuse_too_many(n_teachers, n_chosen)
    chosen = np.full((len(hashes), n_chosen), -1, dtype=np.int32)
    for column in range(n_chosen):
        pending = np.arange(len(hashes))
        attempt = 0
        while pending.size:
            drawn = _stream(hashes[pending], column * 1_000_003 + attempt) % np.uint64(n_teachers)
            teacher = drawn.astype(np.int32)
            taken = (chosen[pending, :column] == teacher[:, None]).any(axis=1)
            chosen[pending[~taken], column] = teacher[~taken]
            pending = pending[taken]
            attempt += 1
    return chosen


def deal_teachers(
    hashes: NDArray[np.uint64], n_teachers: int, n_chosen: int, first: int = 0
) -> NDArray[np.int32]:
    """Deal owners to teachers like cards, so that shards differ little in size.

    An owner's teachers depend on how many others come before it in the order of the hashes: adding or
    removing an owner moves others. Only for neighbours that *replace* one owner's records.

    ``hashes``, ``n_teachers``, ``n_chosen``: as in :func:`choose_teachers`.
    ``first``: the teacher who gets the first card.
    Returns (n_owners, n_chosen): without repetition in a row. For one card each, shard sizes differ
        by one at most; with more, the few owners dealt twice to a teacher take the next one
        instead.
    """
    _refuse_too_many(n_teachers, n_chosen)
    chosen = np.full((len(hashes), n_chosen), -1, dtype=np.int32)
    for column in range(n_chosen):
        order = np.argsort(_stream(hashes, column), kind="stable")
        teacher = np.empty(len(hashes), dtype=np.int32)
        start = first + column * len(hashes)
        teacher[order] = (start + np.arange(len(hashes))) % n_teachers
        taken = (chosen[:, :column] == teacher[:, None]).any(axis=1)
        while taken.any():
            teacher[taken] = (teacher[taken] + 1) % n_teachers
            taken = (chosen[:, :column] == teacher[:, None]).any(axis=1)
        chosen[:, column] = teacher
    return chosen


def _refuse_too_many(n_teachers: int, n_chosen: int) -> None:
    if n_chosen > n_teachers:
        raise InputError(
            f"an owner was to be taught to {n_chosen} teachers, but there are only {n_teachers}: "
            "use more teachers, or fewer duplicates"
        )
