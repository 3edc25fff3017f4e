"""The pieces of a study's folder, held against its journal, which vouches for each of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from collegium.durable import digest_of, is_foreign
from collegium.errors import StudyMismatchError
from collegium.study.journal import FileJournal
from collegium.study.released_files import DIGESTS_FILE
from collegium.study.sealing import KEY_FILE

JOURNAL_FILE, MARK_FILE = "journal.jsonl", "journal.mark"
DIGESTS = f"release/{DIGESTS_FILE}"
HISTOGRAMS_FILE = "histograms.parquet"
RELEASED = ("labels.csv", HISTOGRAMS_FILE, "privacy.json", "answers.json", "answers.csv")
MANIFEST = "vault/manifest.json"
VOTES = "vault/votes.npy"
LEARNT = ("partition.npy", "votes.npy", "terms.json")
"""In the vault: one of them is there as soon as anything was learnt from private records."""
KEPT_ALLOWANCE, KEPT_CODES = "vault/ledger.json", "vault/left.npy"
"""What a ledger had left for the study, and its release there; and for whom."""
LEAVERS = "vault/leavers.json"
"""Who has left, and the group sizes that the plan was made of."""
STATE, STEPS_ENDED = "vault/dpsgd.npz", "vault/dpsgd.json"
"""Where DP-SGD stands; and how it ended."""
ACCOUNTS = "vault/sensitive-accounts.npz"
"""What owners have left in DP-SGD with a filter."""
PARTIES = "vault/parties.json"
"""What all parties have told of their people, in a study over several tables."""
ANSWERS, ASKING_ENDED = "vault/answers.json", "vault/asked.json"
"""Answers that were drawn, of a study that asks; and that all were."""
NEEDED_ONCE_ASKED = {
    *(f"vault/{name}" for name in ("terms.json", "order.npy", "aggregation.json")),
    STATE,
    STEPS_ENDED,
    ACCOUNTS,
    PARTIES,
    ANSWERS,
    ASKING_ENDED,
}
"""What decides on questions: if it is gone after the first one, it is not made again."""


SPARE_ONCE_VOTED = "vault/partition.npy"
"""Written before teachers are trained, and read by nobody once their votes are kept."""


RESTORE = "restore the whole folder from one backup"
DELETE = "delete it"
DELETE_SPARE = "delete what is not needed"
AS_IT_SAYS = "its line says what to do"
MOVE = f"move away what somebody else put there; if nobody did, {RESTORE}"


@dataclass(frozen=True)
class Finding:
    """What was found about a piece.

    ``piece``: its path in the folder.
    ``trouble``: what is wrong with it; empty if nothing is.
    ``digest``: which it has; None: it is not there.
    ``remedy``: what to do about it.
    ``made_again``: whether the next run makes it again, since nothing depends on it, or a crash came before
        it was written.
    ``is_spare``: whether nothing needs it, so that no run makes it again.
    """

    piece: str
    trouble: str
    digest: str | None = None
    remedy: str = RESTORE
    made_again: bool = False
    is_spare: bool = False


def findings(folder: Path, journal: FileJournal) -> Iterator[Finding]:
    """Hold every piece of a folder against its journal, and nothing is changed.

    Not asked about: what is sealed by itself (teachers, checkpoints, features, shards).
    """
    yield from _against_the_release(folder, journal)
    has_voted = (folder / VOTES).exists()
    for name, written in journal.files.items():
        now = digest_of(folder / name)
        if has_voted and name == SPARE_ONCE_VOTED and now is None:
            yield Finding(name, "", is_spare=True)
        elif now == written[-1]:
            yield Finding(name, "", now)
        elif journal.was_cut_off(name, now):
            yield Finding(name, "", now, made_again=True)
        else:
            needed = name in (MANIFEST, KEPT_ALLOWANCE, KEPT_CODES, LEAVERS) or (
                journal.asked and name in NEEDED_ONCE_ASKED
            )
            is_spare = has_voted and name == SPARE_ONCE_VOTED
            remedy = RESTORE if needed else DELETE_SPARE if is_spare else DELETE
            if now is None:
                yield Finding(name, "is gone", None, remedy, made_again=not needed)
            else:
                words = "is not what this study wrote there last"
                yield Finding(name, words, now, remedy, is_spare=is_spare)
    for name in _unknown(folder, journal):
        yield Finding(
            name,
            "is not known to the journal: it is another run's, or the journal is older",
            remedy=MOVE if name.startswith("vault/") else RESTORE,
        )


def _against_the_release(folder: Path, journal: FileJournal) -> Iterator[Finding]:
    """Tell whether the journal has been where it was when the release was made of it."""
    try:
        made_of = json.loads((folder / DIGESTS).read_bytes())["made_of"]
        known = journal.has_been_at(made_of["records"], made_of["head"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return  # it is not there, or damaged: that is found by its digest
    if not known:
        yield Finding(
            f"vault/{JOURNAL_FILE}", "is older than what was published, or of another run than that"
        )


def _unknown(folder: Path, journal: FileJournal) -> Iterator[str]:
    """Name files that a run would read, or has released, and that the journal does not know."""
    own = {f"vault/{name}" for name in (KEY_FILE, JOURNAL_FILE, MARK_FILE)}
    in_vault = [path.name for path in (folder / "vault").iterdir() if path.is_file()]
    names = [f"vault/{name}" for name in sorted(in_vault) if not name.startswith(".")]
    names += released_digests(folder)
    for name in names:
        if name not in journal.files and name not in own:
            yield name


def released_digests(folder: Path) -> dict[str, str]:
    """Digest the files that say what was released."""
    named = {f"release/{name}" for name in RELEASED} | {DIGESTS}
    found = {name: digest_of(folder / name) for name in sorted(named)}
    return {name: digest for name, digest in found.items() if digest is not None}


def require_sound(folder: Path, journal: FileJournal) -> list[Finding]:
    """Refuse a folder of which any piece is another than the journal says.

    Returns: what is not yet as it was going to be, since a crash came between: one file at most.
    """
    found = list(findings(folder, journal))
    for one in found:
        if one.trouble and not one.made_again:
            raise StudyMismatchError(
                f"{folder / one.piece} {one.trouble}: nothing was asked, drawn or written; restore the whole "
                "folder from one backup (`collegium verify` tells all that is wrong)"
            )
    return [one for one in found if one.made_again and not one.trouble]


def refuse_links(vault: Path) -> None:
    """Refuse a vault that is a link, or holds one, or anything of another user: it is not followed."""
    for entry in _entries(vault):
        if entry.is_symlink():
            raise StudyMismatchError(
                f"{entry} is a link, and links are not followed in a vault: put the file itself there"
            )
        if is_foreign(entry):
            raise StudyMismatchError(
                f"{entry} belongs to another user: nothing was read; see who wrote there"
            )


def _entries(vault: Path) -> Iterator[Path]:
    yield vault
    if vault.is_symlink():
        return
    for place, folders, files in os.walk(vault):
        for name in (*folders, *files):
            yield Path(place, name)
