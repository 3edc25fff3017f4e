"""Looking through a study's folder: every piece against the journal, every seal. Nothing is unpickled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from collegium.data.sharding.shard_store import ShardStore
from collegium.durable import digest_of, read_sealed
from collegium.errors import CollegiumError, InputError
from collegium.study.folder import StudyFolder
from collegium.study.manifest_check import (
    AS_IT_SAYS,
    DELETE,
    JOURNAL_FILE,
    Finding,
    findings,
    refuse_links,
)
from collegium.study.sealing import sealed_content
from collegium.study.stored_teachers import TEACHERS


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
    found += _sealed(folder, TEACHERS, lambda path: sealed_content(folder.vault, path) is not None)
    for place in ("checkpoints", "features"):
        found += _sealed(folder, place, lambda path: read_sealed(path) is not None)
    return [*found, *_shards(folder)]


def _sealed(folder: StudyFolder, place: str, is_whole: Callable[[Path], bool]) -> Iterator[Finding]:
    """Check files that bear their own seal."""
    paths = sorted(path for path in (folder.vault / place).glob("[!.]*") if path.is_file())
    damaged = [path for path in paths if not is_whole(path)]
    for path in damaged:
        name = f"vault/{place}/{path.name}"
        yield Finding(name, "is not what this study wrote there", remedy=DELETE)
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
