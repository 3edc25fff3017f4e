"""Secrets of 256 bits in shares, any ``threshold`` of which give them back, and fewer say nothing.

References
----------
A. Shamir. How to share a secret. Communications of the ACM 22(11), 1979.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from collegium.parties.ciphers import KEY_BYTES

PRIME = 2**256 + 297
"""Smallest prime above 2**256: shares are numbers modulo it."""

SHARE_BYTES = 33


def shares_of(secret: bytes, threshold: int, parties: int) -> list[bytes]:
    """Share a secret of 32 bytes; the share of party i (from 1) stands at place i - 1.

    Shares are the values at 1, ..., ``parties`` of a random polynomial of degree ``threshold`` - 1 whose
    value at 0 is the secret: fewer of them are independent and uniform, whatever the secret is.

    Examples
    --------
    >>> shares = shares_of(bytes(range(32)), 2, 3)
    >>> from_shares({1: shares[0], 3: shares[2]}) == bytes(range(32))
    True
    """
    polynomial = [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    polynomial.append(int.from_bytes(secret, "big"))
    values = []
    for place in range(1, parties + 1):
        value = 0
        for coefficient in polynomial:
            value = (value * place + coefficient) % PRIME
        values.append(value.to_bytes(SHARE_BYTES, "big"))
    return values


def from_shares(shares: Mapping[int, bytes]) -> bytes | None:
    """Put a secret together from exactly ``threshold`` shares, by party from 1; None if they do not fit."""
    secret = 0
    for place, share in shares.items():
        above, below = 1, 1
        for other in shares:
            if other != place:
                above = above * other % PRIME
                below = below * (other - place) % PRIME
        secret += int.from_bytes(share, "big") * above * pow(below, -1, PRIME)
    secret %= PRIME
    return secret.to_bytes(KEY_BYTES, "big") if secret < 2 ** (8 * KEY_BYTES) else None
