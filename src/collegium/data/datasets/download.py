"""Raw files of known data sets: found in a folder or fetched from the source, always verified."""

import gzip
import hashlib
import http.client
import io
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from collegium.data.datasets.raw import CHUNK_BYTES, UNREADABLE, open_raw, reason_of
from collegium.durable import write_durably
from collegium.errors import InputError

#: No file of the known data sets, unpacked or packed, comes near this.
LARGEST_DOWNLOAD_BYTES = 1 << 28


@dataclass(frozen=True)
class RawFile:
    """One file of a data set: where it lies below the data folder, and what it must contain.

    ``path``: path below the data folder, with ``/``, without ``.gz``; its last part is the name
        that the file has at its source.
    ``sha256``: SHA-256 of the uncompressed content, 64 lower-case hexadecimal digits.
    """

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class ZipArchive:
    """A zip file on the web that holds the files of a data set; calling it fetches them.

    ``url``: an ``http`` or ``https`` address.
    ``seconds_without_data``: how long the server may be silent.
    ``seconds_in_total``: how long everything may take.
    """

    url: str
    seconds_without_data: float = 30.0
    seconds_in_total: float = 600.0

    def __call__(self, names: Collection[str]) -> dict[str, bytes]:
        """Fetch the archive and unpack the wanted files.

        ``names``: base names of the wanted files, which may lie in folders or in a zip file inside.
        Returns: uncompressed content by base name; a name that is not in the archive is left out.
        """
        try:
            return unpack_zip(self._content(), names)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, *UNREADABLE) as error:
            if isinstance(error, OSError):
                raise
            raise ValueError(f"what came is not a whole zip file: {reason_of(error)}") from error
        except http.client.HTTPException as error:
            raise ValueError(f"the answer was cut short or garbled: {reason_of(error)}") from error

    def _content(self) -> bytes:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError("only http and https addresses are fetched")
        deadline = time.monotonic() + self.seconds_in_total
        request = urllib.request.Request(self.url, headers={"User-Agent": "collegium"})
        content = bytearray()
        with urllib.request.urlopen(request, timeout=self.seconds_without_data) as answer:
            declared = answer.headers.get("Content-Length")
            # read1 returns what has come, so that the deadline is looked at between packets.
            while chunk := answer.read1(CHUNK_BYTES):
                content += chunk
                if len(content) > LARGEST_DOWNLOAD_BYTES:
                    raise ValueError("the answer is far larger than the data set")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"not complete after {self.seconds_in_total:g} seconds")
        if declared is not None and declared.isdigit() and int(declared) != len(content):
            raise ValueError(f"the answer was cut short at {len(content)} of {declared} bytes")
        return bytes(content)

    def __str__(self) -> str:
        """Return the address."""
        return self.url


def unpack_zip(content: bytes, names: Collection[str], depth: int = 2) -> dict[str, bytes]:
    """Find files in a zip file by base name, wherever they lie, also in zip files inside.

    ``depth``: how many zip files inside each other are opened.
    Returns: content by base name; a name that was not found is left out.
    """
    found: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        # Nearer members first: a file outside a nested archive wins over one inside.
        members = sorted(archive.infolist(), key=lambda member: member.filename.endswith(".zip"))
        for member in members:
            name = PurePosixPath(member.filename).name
            nested = name.endswith(".zip") and depth > 1 and set(names) - set(found)
            if member.is_dir() or (not nested and (name not in names or name in found)):
                continue
            if member.file_size > LARGEST_DOWNLOAD_BYTES:
                raise ValueError(f"{name!r} in the archive is far larger than the data set")
            inside = archive.read(member)
            if nested:
                found = unpack_zip(inside, names, depth - 1) | found
            else:
                found[name] = inside
    return found


def obtain(
    files: Collection[RawFile],
    folder: Path,
    fetch: Callable[[Collection[str]], Mapping[str, bytes]],
    *,
    download: bool,
) -> dict[str, bytes]:
    """Return the verified contents of files, fetching those that the folder does not have.

    ``folder``: the data folder; each file may lie there plain or as ``.gz``. Fetched files are
        stored there as ``.gz``, whole or not at all.
    ``fetch``: takes base names, returns contents by base name; ``str(fetch)`` names the source.
    ``download``: whether missing files may be fetched.
    Returns: uncompressed content by the files' ``path``.
    """
    contents = {file.path: _local_content(file, folder) for file in files}
    missing = [file for file in files if contents[file.path] is None]
    if missing:
        names = ", ".join(file.name for file in missing)
        advice = (
            f"put the files under {str(folder)!r} as {missing[0].path}[.gz], or pass --data-dir"
        )
        if not download:
            raise InputError(f"{names} is not there and downloading is off; {advice}")
        try:
            fetched = fetch([file.name for file in missing])
        except (OSError, ValueError) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            reason = reason_of(cause) if isinstance(cause, BaseException) else str(cause)
            if isinstance(error, urllib.error.HTTPError):
                reason = f"HTTP {error.code} {error.reason}"
            raise InputError(
                f"{names} could not be fetched from {fetch}: {reason}; {advice}"
            ) from error
        for file in missing:
            if file.name not in fetched:
                raise InputError(f"{file.name} is not in what {fetch} delivers; {advice}")
            got = hashlib.sha256(fetched[file.name]).hexdigest()
            if got != file.sha256:
                raise InputError(
                    f"{file.name} from {fetch} is not the published file "
                    f"(sha256 expected {file.sha256[:12]}, got {got[:12]}); {advice}"
                )
        # Only now, when everything is known to be right, does anything reach the folder.
        for file in missing:
            contents[file.path] = fetched[file.name]
            _store(fetched[file.name], folder / f"{file.path}.gz")
    return {path: content for path, content in contents.items() if content is not None}


def _local_content(file: RawFile, folder: Path) -> bytes | None:
    path = folder / file.path
    try:
        if not path.is_file():
            path = folder / f"{file.path}.gz"
        if not path.is_file():
            return None
        with open_raw(path) as stream:
            content = stream.read()
    except UNREADABLE as error:
        raise InputError(
            f"{str(path)!r} cannot be read ({reason_of(error)}); delete or replace the file"
        ) from error
    got = hashlib.sha256(content).hexdigest()
    if got != file.sha256:
        raise InputError(
            f"{str(path)!r} is not the published file "
            f"(sha256 of the content expected {file.sha256[:12]}, got {got[:12]}); "
            "delete or replace the file"
        )
    return content


def _store(content: bytes, path: Path) -> None:
    """Write a compressed file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, gzip.compress(content, mtime=0))
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written ({reason_of(error)}); "
            "a writable folder is needed; pass --data-dir or set COLLEGIUM_DATA"
        ) from error
