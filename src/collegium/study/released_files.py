"""Files of a release, believed only as they were released: held against the digests beside them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from collegium.errors import InputError
from collegium.json_files import read_json

DIGESTS_FILE = "digests.json"
_DIGESTS = {"files": dict}
_ADVICE = "get the whole release again, or run the study again, which costs nobody anything"


def released_names(release: Path) -> list[str]:
    """List the files of a release, as the digests in its folder do.

    Raises InputError if they name anything outside of it.
    """
    known = release / DIGESTS_FILE
    names = sorted(read_json(known, _DIGESTS, _ADVICE, InputError)["files"])
    if any(Path(name).name != name for name in names):
        raise InputError(f"{known} names files outside of its folder: {_ADVICE}")
    return names


def released_content(path: Path) -> bytes | None:
    """Read a file of a release; None if the release has no such file.

    Where there are no digests beside it, the file is read as it is: it was taken out of its release.
    Raises InputError if it is not as it was released: the digests tell damage, and one file of another
        release, not a forged release.
    """
    content = path.read_bytes() if path.is_file() else None
    known = path.with_name(DIGESTS_FILE)
    if not known.exists():
        return content
    digest = read_json(known, _DIGESTS, _ADVICE, InputError)["files"].get(path.name)
    if digest == (None if content is None else hashlib.sha256(content).hexdigest()):
        return content
    raise InputError(
        f"{path} {'is gone' if content is None else 'is not what was released'} ({known.name} beside it says "
        f"so): {_ADVICE}"
    )
