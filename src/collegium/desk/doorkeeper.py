"""Who may come in: two secrets, for a steward and for a reader, and sessions that end.

A secret is kept as its scrypt hash. Wrong ones cost time: after five, each further try has to wait, twice as
long every time, half a minute at most. A session ends after half an hour without a request, and after a
working day; each of its forms can be sent once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from collegium.durable import write_durably
from collegium.errors import CollegiumError
from collegium.json_files import read_json

STEWARD, READER = "steward", "reader"
ROLES = (STEWARD, READER)
_FREE_TRIES, _LONGEST_WAIT_S = 5, 30.0
_IDLE_S, _DAY_S = 30 * 60.0, 8 * 3600.0
_MOST_FORMS = 2_000
_COST = {"n": 2**14, "r": 8, "p": 1}


class TooManyTriesError(CollegiumError):
    """Too many wrong secrets in a row: the next try has to wait."""


@dataclass
class Session:
    """Somebody who has signed in.

    ``role``: steward, who may change things, or reader.
    """

    role: str
    begun: float
    seen: float
    _forms: dict[str, None] = field(default_factory=dict)

    @property
    def may_write(self) -> bool:
        """Whether it is the steward's."""
        return self.role == STEWARD

    def form(self) -> str:
        """Name a form that is shown: whoever sends it back has seen it."""
        name = secrets.token_urlsafe(16)
        self._forms[name] = None
        while len(self._forms) > _MOST_FORMS:
            del self._forms[next(iter(self._forms))]
        return name

    def take(self, form: str) -> bool:
        """Take a form that was sent; False if it was never shown, or was sent before."""
        return self._forms.pop(form, False) is None


class Doorkeeper:
    """Knows the hashes of the secrets, and who has signed in.

    Parameters
    ----------
    path : Path
        File of the hashes: :meth:`make` writes it.
    clock : callable
        Tells seconds that nobody sets back.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._hashes: dict[str, dict[str, str]] = read_json(
            path, {role: {"salt": str, "hash": str} for role in ROLES}
        )
        self._clock = clock
        self._sessions: dict[str, Session] = {}
        self._wrong, self._next_try = 0, 0.0
        self._one_at_a_time = threading.Lock()

    @staticmethod
    def make(path: Path) -> dict[str, str]:
        """Make a secret for each role, and keep their hashes; the secrets are told once."""
        made = {role: secrets.token_urlsafe(15) for role in ROLES}
        kept = {}
        for role, secret in made.items():
            salt = secrets.token_bytes(16)
            kept[role] = {"salt": salt.hex(), "hash": _hashed(secret, salt).hex()}
        write_durably(path, json.dumps(kept, indent=1).encode() + b"\n", private=True)
        return made

    def sign_in(self, secret: str) -> str | None:
        """Begin a session; returns its name, None for a wrong secret. Raises TooManyTriesError."""
        with self._one_at_a_time:
            now = self._clock()
            if now < self._next_try:
                raise TooManyTriesError(
                    f"too many wrong secrets: try again in {self._next_try - now:.0f} seconds"
                )
            for role, kept in self._hashes.items():
                mine = _hashed(secret, bytes.fromhex(kept["salt"]))
                if hmac.compare_digest(mine, bytes.fromhex(kept["hash"])):
                    self._wrong = 0
                    name = secrets.token_urlsafe(32)
                    self._sessions[name] = Session(role, now, now)
                    return name
            self._wrong += 1
            if self._wrong >= _FREE_TRIES:
                wait = min(2.0 ** (self._wrong - _FREE_TRIES), _LONGEST_WAIT_S)
                self._next_try = now + wait
            return None

    def session(self, name: str | None, *, is_seen: bool = True) -> Session | None:
        """Find a session that has not ended; ``is_seen``: whether somebody is there, so that it goes on."""
        with self._one_at_a_time:
            now = self._clock()
            over = [
                key
                for key, one in self._sessions.items()
                if now - one.seen > _IDLE_S or now - one.begun > _DAY_S
            ]
            for key in over:
                del self._sessions[key]
            found = self._sessions.get(name or "")
            if found is not None and is_seen:
                found.seen = now
            return found

    def sign_out(self, name: str | None) -> None:
        """End a session."""
        with self._one_at_a_time:
            self._sessions.pop(name or "", None)


def _hashed(secret: str, salt: bytes) -> bytes:
    return hashlib.scrypt(secret.encode(), salt=salt, dklen=32, **_COST)
