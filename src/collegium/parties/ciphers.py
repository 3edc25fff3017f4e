"""The few cryptographic tools that parties need, all of the package ``cryptography``.

Signatures are Ed25519 (RFC 8032), agreed secrets X25519 (RFC 7748) and HKDF with SHA-256 (RFC 5869), streams
ChaCha20 and sealed messages ChaCha20-Poly1305 (RFC 8439). Every derived key is bound to all that it is for.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError

Words = NDArray[np.uint64]

KEY_BYTES = 32
_NONCE_BYTES = 12


def encoded(content: Mapping[str, Any]) -> bytes:
    """Write text, whole numbers, lists and objects as JSON, in the one way that is signed and hashed.

    Examples
    --------
    >>> encoded({"b": 1, "a": "x"})
    b'{\\n "a": "x",\\n "b": 1\\n}\\n'
    """
    return json.dumps(content, sort_keys=True, indent=1).encode() + b"\n"


def digest(content: bytes | Mapping[str, Any]) -> str:
    """SHA-256 in hexadecimal: of bytes, or of an object as :func:`encoded` writes it."""
    return hashlib.sha256(content if isinstance(content, bytes) else encoded(content)).hexdigest()


def public_of_signing(private: bytes) -> bytes:
    """Ed25519 public key of a private one."""
    key = _part("asymmetric.ed25519").Ed25519PrivateKey.from_private_bytes(private)
    return bytes(key.public_key().public_bytes_raw())


def signature(private: bytes, content: bytes) -> bytes:
    """Sign with an Ed25519 private key."""
    key = _part("asymmetric.ed25519").Ed25519PrivateKey.from_private_bytes(private)
    return bytes(key.sign(content))


def is_signed(public: bytes, signed: bytes, content: bytes) -> bool:
    """Tell whether an Ed25519 signature holds."""
    try:
        key = _part("asymmetric.ed25519").Ed25519PublicKey.from_public_bytes(public)
        key.verify(signed, content)
    except (ValueError, import_module("cryptography.exceptions").InvalidSignature):
        return False
    return True


def public_of_agreement(private: bytes) -> bytes:
    """X25519 public key of a private one."""
    key = _part("asymmetric.x25519").X25519PrivateKey.from_private_bytes(private)
    return bytes(key.public_key().public_bytes_raw())


def agreed(private: bytes, public: bytes, about: Mapping[str, Any]) -> bytes:
    """Key of 256 bits that the holders of two X25519 keys have in common.

    ``about``: all that the key is for; another purpose has another, independent key.
    Raises ValueError if the other key is one of the few with which nothing can be agreed.
    """
    x25519 = _part("asymmetric.x25519")
    other = x25519.X25519PublicKey.from_public_bytes(public)
    secret = x25519.X25519PrivateKey.from_private_bytes(private).exchange(other)
    derive = _part("kdf.hkdf").HKDF(
        algorithm=_part("hashes").SHA256(), length=KEY_BYTES, salt=None, info=encoded(about)
    )
    return bytes(derive.derive(secret))


def stream(seed: bytes, size: int) -> Words:
    """Pseudo-random words, uniform modulo 2**64, that a seed of 256 bits determines.

    Examples
    --------
    >>> stream(bytes(32), 1).tolist()
    [10393729187455219830]
    """
    ciphers = _part("ciphers")
    cipher = ciphers.Cipher(ciphers.algorithms.ChaCha20(seed, bytes(16)), mode=None)
    return np.frombuffer(cipher.encryptor().update(bytes(8 * size)), dtype="<u8")


def sealed(key: bytes, content: bytes, about: Mapping[str, Any]) -> bytes:
    """Encrypt and authenticate with ChaCha20-Poly1305, bound to what the content is about."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    cipher = _part("ciphers.aead").ChaCha20Poly1305(key)
    return bytes(nonce + cipher.encrypt(nonce, content, encoded(about)))


def unsealed(key: bytes, content: bytes, about: Mapping[str, Any]) -> bytes | None:
    """Read what :func:`sealed` wrote; None if anything about it is different."""
    cipher = _part("ciphers.aead").ChaCha20Poly1305(key)
    try:
        nonce, rest = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
        return bytes(cipher.decrypt(nonce, rest, encoded(about)))
    except (ValueError, import_module("cryptography.exceptions").InvalidTag):
        return None


def _part(name: str) -> Any:
    try:
        return import_module(f"cryptography.hazmat.primitives.{name}")
    except ImportError:
        raise InputError(
            "sums of several parties need the package cryptography: install collegium with its extra "
            "'parties'"
        ) from None
