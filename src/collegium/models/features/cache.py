"""Features on disk, so that nothing is computed twice; the cache of private records is private.

A cached array is named by what it was made of, so it cannot be stale; it carries a digest, so it cannot
be damaged unnoticed; it appears whole or not at all, so writers need no lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone

from collegium.durable import PARTIAL, SEAL_BYTES, read_sealed, write_sealed
from collegium.errors import InputError
from collegium.models.features.in_parts import transformed

#: Default bound of a cache, in bytes.
MAX_BYTES = 8 * 2**30
_ENDING = ".features"
_ABANDONED_AFTER = 3600.0  # seconds until the partial file of a killed writer is removed


class FeatureCache:
    """Arrays in a folder, by name.

    ``folder``: made when something is stored, for its owner's eyes only (mode 0700, files 0600):
        features of private records are as private as the records.
    ``max_bytes``: size of all files together; the least recently used ones are removed first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = FeatureCache(folder)
    ...     made = cache.get_or_make("ones", lambda: np.ones(3))
    ...     again = cache.get_or_make("ones", lambda: np.zeros(3))
    >>> again.tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> None:
        self.folder = Path(folder)
        self.max_bytes = max_bytes

    def get_or_make(self, key: str, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Read an array, or make it and store it.

        ``key``: everything that the array depends on.
        Returns: the array. A damaged or truncated file counts as none: the array is made again. A
            folder that cannot be written costs a warning and the time of computing again, nothing
            else.
        """
        path = self.path(key)
        known = _read(path)
        if known is not None:
            return known
        array = make()
        try:
            self._store(path, array)
        except OSError as error:
            warnings.warn(
                f"features could not be cached in {self.folder} ({error.strerror}): they will be computed "
                "again next time",
                UserWarning,
                stacklevel=2,
            )
        return array

    def path(self, key: str) -> Path:
        """Where the array of a key lies, if it is there."""
        return self.folder / (hashlib.sha256(key.encode()).hexdigest() + _ENDING)

    def _store(self, path: Path, array: NDArray[Any]) -> None:
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        content = buffer.getbuffer()
        if len(content) + SEAL_BYTES > self.max_bytes:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_sealed(path, content, private=True)
        self._make_room(path)

    def _make_room(self, newest: Path) -> None:
        """Remove what killed writers left, and what was not used for longest."""
        entries = []
        for path in self.folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process makes room as well
                status = path.stat()
                if path.name.endswith(PARTIAL):
                    if time.time() - status.st_mtime > _ABANDONED_AFTER:
                        path.unlink(missing_ok=True)
                elif path.name.endswith(_ENDING):
                    entries.append((path != newest, -status.st_mtime_ns, path, status.st_size))
        total = 0
        for _, _, path, size in sorted(entries):
            total += size
            if total > self.max_bytes:
                path.unlink(missing_ok=True)


class CachedTransform(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer whose output is kept on disk.

    Parameters
    ----------
    transformer : transformer
        Treats each record by itself. If it has a ``cache_key``, that names it; else a digest of its whole
        fitted state does.
    folder : path-like, optional
        Where the features are kept; it will hold the features of every record transformed, **private ones
        too**, so it belongs into a vault. None: nothing is kept.
    max_bytes : int, optional
        Bound of the folder.

    Attributes
    ----------
    transformer_ : transformer
        Fitted.

    Notes
    -----
    A pickled copy forgets the folder: a published model neither tells the path nor writes there.

    Examples
    --------
    >>> import tempfile
    >>> from collegium.models.features import ScatteringTransform
    >>> images = np.random.default_rng(0).random((2, 8, 8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     slow_once = CachedTransform(ScatteringTransform(J=1), folder).fit(images)
    ...     bool((slow_once.transform(images) == slow_once.transform(images)).all())
    True
    """

    def __init__(
        self,
        transformer: Any,
        folder: str | os.PathLike[str] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.transformer = transformer
        self.folder = folder
        self.max_bytes = max_bytes

    def fit(self, X: Any, y: object = None) -> Self:
        """Fit the transformer (to public records, if it learns anything).

        Parameters
        ----------
        X : array-like
            Records.
        y : object, optional
            Ignored.

        Returns
        -------
        CachedTransform
            Itself.
        """
        self.transformer_ = clone(self.transformer).fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Transform, or read what an equal transformer made of the same records.

        Parameters
        ----------
        X : array-like or DataFrame
            Records.

        Returns
        -------
        ndarray
            Features.
        """
        if self.folder is None:
            return transformed(self.transformer_, X)
        return transform_cached(self.transformer_, X, FeatureCache(self.folder, self.max_bytes))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "folder": None}


def transform_cached(transformer: Any, X: Any, cache: FeatureCache) -> NDArray[Any]:
    """Apply a fitted transformer, or read what it made of the same records before.

    ``cache``: where to look and store.
    """

    def make() -> NDArray[Any]:
        made = transformed(transformer, X)
        if not isinstance(made, np.ndarray) or made.dtype.kind not in "biuf":
            raise InputError(
                f"{type(transformer).__name__} made a {type(made).__name__} that cannot be cached; allowed "
                "are arrays of numbers"
            )
        return made

    return cache.get_or_make(f"{transformer_key(transformer)} of {content_key(X)}", make)


def transformer_key(transformer: Any) -> str:
    """Name a fitted transformer by all that its output depends on.

    Returns: a key, equal for transformers that make the same of the same records.
    """
    if hasattr(transformer, "cache_key"):
        return str(transformer.cache_key())
    kind = f"{type(transformer).__module__}.{type(transformer).__qualname__}"
    try:
        return f"{kind} {joblib.hash(transformer, hash_name='sha1')}"
    except (pickle.PicklingError, TypeError, AttributeError):
        raise InputError(
            f"{type(transformer).__name__} cannot be pickled, so a cache cannot tell it from another one: "
            "give it a method cache_key that returns a text, or do not cache it"
        ) from None


def content_key(X: Any) -> str:
    """Name records by their content.

    Returns: a digest of values, types, shape and names of columns.
    """
    if hasattr(X, "iloc") or hasattr(X, "tocsr"):
        return f"table {joblib.hash(X, hash_name='sha1')}"
    array = np.asarray(X)
    if array.dtype.hasobject:
        return f"objects {joblib.hash(array, hash_name='sha1')}"
    digest = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data)
    return f"array {array.dtype.str} {array.shape} {digest.hexdigest()}"


def _read(path: Path) -> NDArray[Any] | None:
    """Read a stored array; None if it is not there, or not whole."""
    try:
        content = read_sealed(path)
        if content is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used just now
        return np.asarray(np.load(io.BytesIO(content), allow_pickle=False))
    except (OSError, ValueError, EOFError):
        return None
