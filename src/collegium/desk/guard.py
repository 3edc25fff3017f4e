"""What holds of every request and answer of a desk: who may call it, and what a browser may do.

Pages have no scripts and fetch nothing from elsewhere; the policy that goes with every answer says so to the
browser. The log has a line for each request, with the name of the page instead of its address: an address may
hold the token of a link.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any

from collegium.errors import CollegiumError

MOST_BYTES = 4 * 2**20
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

Message = dict[str, Any]
Log = Callable[[str], None]


class TooLargeError(CollegiumError):
    """More was sent than a page takes."""


class Guard:
    """An ASGI application around another one.

    Parameters
    ----------
    inner : ASGI application
    hosts : collection of str
        Under which names, in lower case and without port, the desk may be called: a page of another site that
        makes a browser call it under a name of its own is refused.
    log : callable
        Is given each line of the log.
    larger : mapping of str to int
        How many bytes each page takes that takes more than :data:`MOST_BYTES`.
    """

    def __init__(
        self, inner: Any, hosts: Collection[str], log: Log, larger: Mapping[str, int]
    ) -> None:
        self._inner, self._hosts, self._log = inner, frozenset(hosts), log
        self._larger = larger

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        asked = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        status, taken = 500, 0
        most = self._larger.get(scope["path"], MOST_BYTES)
        too_large = f"This page takes at most {most // 2**20} MB"

        async def limited() -> Message:
            nonlocal taken
            got: Message = await receive()
            taken += len(got.get("body", b""))
            if taken > most:
                raise TooLargeError(too_large)
            return got

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name.decode("latin-1") for name, _ in message["headers"]}
                more = [(name, value) for name, value in _HEADERS.items() if name not in own]
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in more),
                ]
            await send(message)

        try:
            if _host_of(asked.get("host", "")) not in self._hosts:
                await _answer(
                    guarded, 421, "This desk has another address: use the one that it printed."
                )
            elif _length_of(asked) > most:
                await _answer(guarded, 413, f"{too_large}.")
            else:
                await self._inner(scope, limited, guarded)
        except Exception as error:
            scope["role"] = type(error).__name__  # and nothing of what it says
            raise
        finally:
            page = getattr(scope.get("endpoint"), "__name__", "no page")
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self._log(f"{now} {scope['method'][:10]} {page} {status} {scope.get('role', '-')}")


def _host_of(host: str) -> str:
    """Take a name without its port."""
    if host.startswith("["):
        return host.partition("]")[0].removeprefix("[").lower()
    return host.partition(":")[0].lower()


def _length_of(asked: dict[str, str]) -> int:
    length = asked.get("content-length", "0")
    return int(length) if length.isdecimal() and len(length) < 20 else sys.maxsize


async def _answer(send: Any, status: int, text: str) -> None:
    body = f"<!DOCTYPE html><title>Collegium</title><p>{escape(text)}</p>".encode()
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
