"""Taking over a folder that was written before journals were chained and teachers sealed.

Nothing in such a folder proves who wrote it, so this is only done when its owner says so.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collegium.durable import digest_of, write_durably
from collegium.errors import InputError, StudyMismatchError
from collegium.study.folder import LOST_KEY, StudyFolder
from collegium.study.journal import START, FileJournal, chained
from collegium.study.manifest_check import JOURNAL_FILE, MANIFEST, RELEASED
from collegium.study.sealing import (
    KEY_FILE,
    NEW_KEY,
    make_key,
    read_key,
    seal_as_it_is,
    sealed_content,
)
from collegium.study.stored_teachers import TEACHERS

_NEW_JOURNAL = f".{JOURNAL_FILE}"


def adopt(folder: StudyFolder) -> None:
    """Make a key for a folder, seal its teachers, and let its journal vouch for every file as it is now.

    A call that was cut off is gone on with. The key takes its name last: until then, no run goes on.

    ``folder``: opened; its lock is held.
    Raises StudyMismatchError if the journal does not fit what was released, or is damaged.
    """
    vault = folder.vault
    if (vault / KEY_FILE).exists():
        raise InputError(f"{folder.path} has a key already: there is nothing to adopt")
    if not (folder.path / MANIFEST).exists():
        raise InputError(f"{folder.path} holds no study or label job: there is nothing to adopt")
    if folder.has_lost_its_key():
        raise StudyMismatchError(
            f"{folder.path} was not written by an earlier version: {LOST_KEY.format(vault / KEY_FILE)}"
        )
    known = (vault / NEW_KEY).exists()
    key = read_key(vault, NEW_KEY) if known else make_key(vault, NEW_KEY)
    path, new = vault / JOURNAL_FILE, vault / _NEW_JOURNAL
    if not _is_chained(path, key):
        lines, head = [], START
        for entry in (*_files(folder.path), *_former_entries(path)):
            head, line = chained(key, head, entry)
            lines.append(line)
        write_durably(new, *lines, private=True)
        _refuse_other_than_released(folder, FileJournal(new, key=key))
        new.replace(path)
    for teacher in sorted((vault / TEACHERS).glob("[!.]*.joblib")):
        if sealed_content(vault, teacher, key) is None:
            seal_as_it_is(vault, teacher, key)
    write_durably(vault / KEY_FILE, key, private=True)
    (vault / NEW_KEY).unlink()


def _is_chained(path: Path, key: bytes) -> bool:
    try:
        return FileJournal(path, key=key).records > 0
    except StudyMismatchError:
        return False


def _files(folder: Path) -> Iterator[dict[str, Any]]:
    for place in ("vault", "release"):
        for path in sorted((folder / place).glob("[!.]*")):
            name = f"{place}/{path.name}"
            if path.is_file() and path.name != JOURNAL_FILE:
                yield {"file": [name, digest_of(path)]}


def _former_entries(path: Path) -> Iterator[Any]:
    """Read lines with a checksum each; a torn last one was never acted upon."""
    *lines, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
    for number, line in enumerate((*lines, rest), 1):
        checksum, _, text = line.partition(b" ")
        if checksum == b"%08x" % zlib.crc32(text):
            yield json.loads(text)
        elif number <= len(lines):
            raise StudyMismatchError(
                f"the journal {path} is damaged in line {number}: nothing was adopted; restore the file from "
                "a backup"
            )


def _refuse_other_than_released(folder: StudyFolder, journal: FileJournal) -> None:
    """Compare the number of questions with what was written down when they ended, and published."""
    asked = len(journal.settled())
    for path, name in (
        (folder.voting_ended, "asked"),
        (folder.release / "privacy.json", "queries_asked"),
    ):
        try:
            said = json.loads(path.read_bytes())[name] if path.exists() else asked
        except (ValueError, KeyError, TypeError, RecursionError):
            said = None
        if said != asked:
            raise StudyMismatchError(
                f"{path} speaks of {said} questions, and the journal of {asked}: they do not belong "
                "together; nothing was adopted; restore both from one backup"
            )
    if not asked and any((folder.release / name).exists() for name in RELEASED):
        raise StudyMismatchError(
            f"labels were released into {folder.release}, but the journal in the vault knows of no question: "
            "nothing was adopted; restore it from a backup"
        )
