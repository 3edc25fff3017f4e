"""Looking through a study's folder: every piece against the journal, every seal, and what is nobody's.

Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from collegium.data.sharding.shard_store import ShardStore
from collegium.durable import PARTIAL, digest_of, read_sealed
from collegium.errors import CollegiumError, InputError
from collegium.parties.shared_folder import releases_in
from collegium.study.folder import LOCK_FILE, StudyFolder
from collegium.study.journal import FileJournal, room_beside
from collegium.study.manifest_check import (
    AS_IT_SAYS,
    DELETE,
    DELETE_SPARE,
    JOURNAL_FILE,
    MARK_FILE,
    MOVE,
    VOTES,
    Finding,
    findings,
    refuse_links,
)
from collegium.study.parties import PARTY_MEMORY
from collegium.study.sealing import KEY_FILE, sealed_content
from collegium.study.stored_teachers import TEACHERS

_SEALED = (TEACHERS, "checkpoints", "features")
_SHARDS = ("shards", "dpsgd-shards")
"""Folders in a vault whose files bear their own seals; and those that are kept by a list of their own."""
_OURS = (KEY_FILE, JOURNAL_FILE, MARK_FILE, LOCK_FILE, room_beside(Path(JOURNAL_FILE)).name)
_UNFINISHED = ("vault/.votes.npy.partial", "vault/.votes.npy.json")


def examine(folder: StudyFolder) -> list[Finding]:
    """Look through a study's or label job's folder, whose lock is held; nothing is changed."""
    try:
        refuse_links(folder.vault)
        journal = folder.open_journal()
    except CollegiumError as error:
        return [Finding(f"vault/{JOURNAL_FILE}", str(error), remedy=AS_IT_SAYS)]
    found = list(findings(folder.path, journal))
    if not any(one.piece == f"vault/{JOURNAL_FILE}" for one in found):
        found.insert(0, Finding(f"vault/{JOURNAL_FILE}", ""))
    has_voted = (folder.path / VOTES).exists()
    found += _sealed(
        folder, TEACHERS, lambda path: sealed_content(folder.vault, path) is not None, has_voted
    )
    for place in ("checkpoints", "features"):
        found += _sealed(folder, place, lambda path: read_sealed(path) is not None, has_voted)
    found += _shards(folder)
    found += _posted(folder)
    named = {one.piece for one in found}
    return [*found, *(one for one in _foreign(folder, journal) if one.piece not in named)]


def _sealed(
    folder: StudyFolder, place: str, is_whole: Callable[[Path], bool], is_spare: bool
) -> Iterator[Finding]:
    """Check files that bear their own seal.

    ``is_spare``: whether nothing needs them any more: no run makes them again.
    """
    paths = sorted(path for path in (folder.vault / place).glob("[!.]*") if path.is_file())
    damaged = [path for path in paths if not is_whole(path)]
    for path in damaged:
        name = f"vault/{place}/{path.name}"
        remedy = DELETE_SPARE if is_spare else DELETE
        yield Finding(name, "is not what this study wrote there", None, remedy, is_spare=is_spare)
    if len(paths) > len(damaged):
        yield Finding(f"vault/{place} ({len(paths) - len(damaged)} sealed files)", "")


def _shards(folder: StudyFolder) -> Iterator[Finding]:
    place = folder.vault / "shards"
    if not (place / "manifest.json").exists():
        return
    try:
        for entry in ShardStore(place).sensitive_entries:
            if digest_of(place / entry.file) != entry.fingerprint:
                raise InputError(f"{entry.file} is not what was written")
    except InputError as error:
        yield Finding("vault/shards", str(error), remedy=DELETE)
        return
    yield Finding("vault/shards", "")


def _posted(folder: StudyFolder) -> Iterator[Finding]:
    """Check what this party has posted for sums with others: messages that it has signed."""
    memory, count = folder.vault / PARTY_MEMORY, 0
    for one in releases_in(memory, is_own=True) if memory.is_dir() else ():
        for posted in (one.begun, *one.sums):
            count += sum(map(len, posted.rounds.values()))
            for file, why in posted.unusable.items():
                place = one.name if posted is one.begun else f"{one.name}/{posted.folder}"
                yield Finding(f"vault/{PARTY_MEMORY}/{place}/{file}", why)
    if count:
        yield Finding(f"vault/{PARTY_MEMORY} ({count} messages to other parties)", "")


def _foreign(folder: StudyFolder, journal: FileJournal) -> Iterator[Finding]:
    """Name what no run wrote here, or what one that was killed left: it may hold records, or be published."""
    ours = {f"vault/{name}" for name in _OURS} | set(journal.files)
    partials = [path for path in folder.path.glob(f".*{PARTIAL}") if path.is_file()]
    for path in sorted([*partials, *folder.vault.rglob("*"), *folder.release.rglob("*")]):
        name = path.relative_to(folder.path).as_posix()
        if name in ours or (path.is_dir() and not path.is_symlink()):
            continue
        if name in _UNFINISHED:
            continue  # votes of streamed records: the next run goes on with them
        if path.name.endswith(PARTIAL):
            words = "was left by a run that was killed, and may hold private records"
            yield Finding(name, words, None, DELETE_SPARE, is_spare=True)
        elif path.is_relative_to(folder.release):
            yield Finding(name, "was not released by this study", remedy=MOVE)
        elif not _is_in_its_place(path.relative_to(folder.vault)):
            yield Finding(name, "was not written by this study", remedy=MOVE)


def _is_in_its_place(path: Path) -> bool:
    """Tell whether a file of a vault is one that bears its own seal, which was looked at."""
    if path.parts[0] in (*_SHARDS, PARTY_MEMORY):
        return True
    return path.parent.name in _SEALED and len(path.parts) == 2 and not path.name.startswith(".")
