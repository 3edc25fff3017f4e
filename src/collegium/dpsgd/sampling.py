"""Who takes part in a step: every owner by a coin of their own, real Poisson sampling."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
KEY_BYTES = 32


@dataclass(frozen=True)
class Sample:
    """The coins of one step. **Sensitive**: who took part is never shown, and the key tells it.

    An owner takes part with probability ``rate``, rounded down to 2^-64, independently of all others and of
    other steps: coins are the output of SHAKE-256 under a key that is drawn afresh for every step, so that
    any machine that holds some of the records can throw the coins of their owners, and throws the same again
    if it is asked twice. A sample is never kept beyond its step.

    ``key``: of this step; None: everybody takes part, whatever their rate.
    """

    key: bytes | None = field(default=None, repr=False)

    @classmethod
    def fresh(cls) -> Sample:
        """Draw a key from the operating system's randomness."""
        return cls(os.urandom(KEY_BYTES))

    @classmethod
    def seeded(cls, seed: int, step: int) -> Sample:
        """For experiments only: whoever knows the seed knows who took part."""
        return cls(hashlib.sha256(f"collegium sample|{seed}|{step}".encode()).digest())

    def takes_part(self, rates: Floats, where: str) -> NDArray[np.bool_]:
        """Throw the coins of some owners.

        ``rates`` (n_owners,): probabilities.
        ``where``: names these owners; no other call in this step may be for the same name.
        """
        if self.key is None:
            return np.ones(len(rates), dtype=bool)
        stream = hashlib.shake_256(self.key + where.encode()).digest(8 * len(rates))
        coins = np.frombuffer(stream, dtype="<u8")
        # rate 2^64 may be 2^64 itself, which no 64-bit number is: those always take part.
        bounds = np.floor(np.minimum(rates, np.nextafter(1.0, 0.0)) * 2.0**64).astype(np.uint64)
        return np.asarray((coins < bounds) | (rates >= 1.0))
