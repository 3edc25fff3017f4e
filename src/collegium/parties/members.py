"""Who takes part: names and public keys, the same list for all; and one's own key, in a file."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collegium.checks import check_is, shown
from collegium.durable import write_durably
from collegium.errors import InputError
from collegium.parties.ciphers import KEY_BYTES, digest, public_of_signing, signature
from collegium.parties.quorum import Quorum

FORMAT = "collegium parties 1"
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Member:
    """A party as all parties know it.

    ``name``: what messages call it.
    ``key``: its public key (Ed25519), 64 hexadecimal digits: :attr:`IdentityKey.public` of its key.
    """

    name: str
    key: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise InputError(
                f"a party's name must be a line of text, got {shown(self.name)}: name it for the others"
            )
        if not isinstance(self.key, str) or not _KEY.fullmatch(self.key):
            raise InputError(
                f"the key of {self.name} must be 64 hexadecimal digits, got {shown(self.key)}: ask for "
                "its public key"
            )


class IdentityKey:
    """A party's own key, with which it signs all that it posts.

    Examples
    --------
    >>> IdentityKey.fresh().member("Hospital A").name
    'Hospital A'
    """

    def __init__(self, content: bytes) -> None:
        self._content, self.public = content, public_of_signing(content).hex()

    @classmethod
    def fresh(cls) -> IdentityKey:
        """Make a key that is nowhere but in this process."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def make(cls, path: str | Path) -> IdentityKey:
        """Make a key, and keep it in a file for its owner's eyes only; one that is there is not replaced."""
        path = Path(path)
        if path.exists():
            raise InputError(
                f"{path} is there already, and no key is replaced: read it, or name another"
            )
        key = cls.fresh()
        write_durably(path, key._content, private=True)
        return key

    @classmethod
    def read(cls, path: str | Path) -> IdentityKey:
        """Read a key. Raises InputError if there is none, others could have read it, or it is damaged."""
        path = Path(path)
        try:
            content, mode = path.read_bytes(), path.stat().st_mode
        except OSError as error:
            raise InputError(
                f"the party's key {path} cannot be read ({error.strerror}): make one, or give its place"
            ) from None
        if os.name != "nt" and mode & 0o077:
            raise InputError(
                f"{path} can be read by others: if nobody has read it, run `chmod 600` on it"
            )
        if len(content) != KEY_BYTES:
            raise InputError(f"{path} is damaged, or no party's key: restore it from a backup")
        return cls(content)

    def member(self, name: str) -> Member:
        """Say who this is, for the list of parties."""
        return Member(name, self.public)

    def sign(self, content: bytes) -> bytes:
        """Sign."""
        return signature(self._content, content)


@dataclass(frozen=True)
class Agreement:
    """What all parties must have in common before they begin; public.

    Parameters
    ----------
    plan : bytes
        What they agreed to do, written in whatever way they all write it: methods, schema, budgets per level.
    members : sequence of Member
        In an order that all of them use. The first one says which vectors count.
    quorum : Quorum

    Raises
    ------
    InputError
        If there are more or fewer parties than the quorum says, or two have one name or key.
    """

    plan: bytes
    members: Sequence[Member]
    quorum: Quorum

    def __post_init__(self) -> None:
        check_is("plan", self.plan, bytes, "write it down, the same for all parties")
        object.__setattr__(self, "members", tuple(self.members))
        if len(self.members) != self.quorum.parties:
            raise InputError(
                f"{len(self.members)} parties are listed, and the quorum is one of {self.quorum.parties}: "
                "list them all"
            )
        for what in ("name", "key"):
            values = [getattr(member, what) for member in self.members]
            twice = next((value for value in values if values.count(value) > 1), None)
            if twice is not None:
                raise InputError(f"two parties have the {what} {twice}: list each once")

    @property
    def digest(self) -> str:
        """SHA-256 of all of it: what two parties have to compare."""
        return digest(self._written())

    def number_of(self, key: IdentityKey) -> int:
        """Find the place of a key's owner, from 1; InputError if it is not listed."""
        keys = [member.key for member in self.members]
        if key.public not in keys:
            raise InputError(
                f"the key {key.public} is none of the {len(keys)} parties': list it, or give the key that "
                f"is listed"
            )
        return keys.index(key.public) + 1

    def _written(self) -> Mapping[str, Any]:
        return {
            "format": FORMAT,
            "plan": digest(self.plan),
            "parties": [[member.name, member.key] for member in self.members],
            "drop_outs": self.quorum.drop_outs,
            "colluders": self.quorum.colluders,
        }
