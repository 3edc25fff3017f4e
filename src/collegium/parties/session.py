"""A session: the keys that parties agree upon once, and what follows from them for each sum."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from collegium.errors import InputError
from collegium.parties.ciphers import (
    KEY_BYTES,
    Words,
    agreed,
    digest,
    encoded,
    public_of_agreement,
    sealed,
    stream,
    unsealed,
)
from collegium.parties.messages import Label, Post, as_text, from_text
from collegium.parties.secret_sharing import SHARE_BYTES, shares_of
from collegium.parties.waiting import Steps, Waiting, still_waiting

_SECRETS = "secrets.json"
_MOST_BYTES = 4096


@dataclass(frozen=True)
class Session:
    """A party in a session that has begun.

    ``name``: digest of all that was agreed, and of everybody's keys.
    ``mask_keys``, ``share_keys``: public ones, by party.
    """

    post: Post
    name: str
    mask_keys: Mapping[int, bytes]
    share_keys: Mapping[int, bytes]
    _mask_key: bytes
    _share_key: bytes

    def pair_seed(self, label: Label, other: int) -> bytes:
        """Seed of the mask that this party and another have in common, for one attempt at one sum."""
        pair = sorted((self.post.number, other))
        return self._agreed(
            self._mask_key, self.mask_keys, other, label.about(use="mask", pair=pair)
        )

    def seal(self, label: Label, other: int, content: bytes) -> str:
        """Encrypt for another party, or for oneself."""
        about = label.about(use="shares", of=self.post.number, to=other)
        key = self._agreed(self._share_key, self.share_keys, other, about)
        return as_text(sealed(key, content, about))

    def unseal(self, label: Label, other: int, content: str) -> bytes | None:
        """Decrypt what another party has encrypted for this one; None if that is not what it is."""
        about = label.about(use="shares", of=other, to=self.post.number)
        key = self._agreed(self._share_key, self.share_keys, other, about)
        try:
            return unsealed(key, from_text(content), about)
        except ValueError:
            return None

    def _agreed(
        self, mine: bytes, theirs: Mapping[int, bytes], other: int, about: Mapping[str, object]
    ) -> bytes:
        try:
            return agreed(mine, theirs[other], about)
        except ValueError:
            raise InputError(
                f"nothing can be agreed with the keys of {self.post.name_of(other)}: ask which version it "
                f"runs"
            ) from None


def begin(post: Post) -> Steps[Session]:
    """Post this party's keys for the session, and wait for everybody's."""
    label = Label(post.agreement.digest)
    mask_key, share_key = _secrets(post)
    if post.own("keys", label) is None:
        mine = {"masks": public_of_agreement(mask_key), "shares": public_of_agreement(share_key)}
        post.send("keys", label, {name: key.hex() for name, key in mine.items()})
    late = False
    while True:
        found = {number: post.received("keys", label, number) for number in post.everybody}
        missing = tuple(post.name_of(number) for number, one in found.items() if one is None)
        if not missing:
            break
        waiting = Waiting("keys", missing)
        if late:
            raise still_waiting(waiting)
        late = yield waiting
    keys: dict[str, dict[int, bytes]] = {"masks": {}, "shares": {}}
    digests = []
    for number, one in found.items():
        assert one is not None
        digests.append(one.digest)
        for use, by_party in keys.items():
            try:
                by_party[number] = bytes.fromhex(one.content[use])
            except ValueError:
                raise post.refuse(
                    "keys", label, number, "holds no keys: ask which version it runs"
                ) from None
    name = digest({"agreement": post.agreement.digest, "keys": digests})
    return Session(post, name, keys["masks"], keys["shares"], mask_key, share_key)


def _secrets(post: Post) -> tuple[bytes, bytes]:
    """Take this party's secret keys of the session, or make them."""
    content = post.memory.read(_SECRETS, _MOST_BYTES)
    if content is None:
        made = {"masks": secrets.token_bytes(KEY_BYTES), "shares": secrets.token_bytes(KEY_BYTES)}
        about = {"agreement": post.agreement.digest}
        post.memory.post(
            _SECRETS, encoded({**about, **{use: key.hex() for use, key in made.items()}})
        )
        return made["masks"], made["shares"]
    try:
        kept = json.loads(content)
        agreement = kept["agreement"]
        keys = bytes.fromhex(kept["masks"]), bytes.fromhex(kept["shares"])
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{_SECRETS} in the party's memory is damaged: restore it from a backup"
        ) from None
    if agreement != post.agreement.digest:
        raise InputError(
            "this memory belongs to another plan, list of parties or quorum: give each its own memory"
        )
    return keys


@dataclass(frozen=True)
class Masking:
    """What hides one party's vector in one attempt at one sum.

    ``seeds``: by party; this party's own seed, at its own number, and those that it has with the others.
    """

    number: int
    seeds: Mapping[int, bytes]

    @classmethod
    def fresh(cls, session: Session, label: Label) -> Masking:
        """Draw this party's own seed, and derive the others."""
        number = session.post.number
        return cls(
            number,
            {
                other: secrets.token_bytes(KEY_BYTES)
                if other == number
                else session.pair_seed(label, other)
                for other in session.post.everybody
            },
        )

    def hidden(self, vector: Words) -> Words:
        """Add all masks, modulo 2**64."""
        total = vector.copy()
        for other, seed in self.seeds.items():
            add_mask(total, seed, self.number, other)
        return total

    def shared(self, session: Session, label: Label) -> list[str]:
        """Share all seeds; the shares for each party, encrypted for it, in the order of the parties."""
        everybody = session.post.everybody
        quorum = session.post.agreement.quorum
        shares = [
            shares_of(self.seeds[other], quorum.threshold, quorum.parties) for other in everybody
        ]
        return [
            session.seal(label, other, b"".join(of_one[other - 1] for of_one in shares))
            for other in everybody
        ]

    def commitments(self, label: Label) -> list[str]:
        """Digests that tell whether a seed was put together rightly, in the order of the parties."""
        return [
            commitment(label, self.number, other, self.seeds[other]) for other in sorted(self.seeds)
        ]


def add_mask(total: Words, seed: bytes, number: int, other: int, *, removed: bool = False) -> None:
    """Add, or take off, the mask of one seed in the vector of party ``number``.

    The masks that two parties have in common cancel: the one with the smaller number adds, the other
    subtracts.
    """
    mask = stream(seed, total.size)
    if (number <= other) != removed:
        np.add(total, mask, out=total)
    else:
        np.subtract(total, mask, out=total)


def commitment(label: Label, dealer: int, other: int, seed: bytes) -> str:
    """Digest of a seed and of all that it is for: a seed of 256 bits is not found from it."""
    return digest(label.about(use="commitment", dealer=dealer, other=other, seed=seed.hex()))


def share_in(content: bytes, other: int) -> bytes:
    """Find the share of one seed among those of one dealer for one party."""
    return content[(other - 1) * SHARE_BYTES : other * SHARE_BYTES]
