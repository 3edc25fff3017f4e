"""A study on a ledger: where that is, what it left, and what the study's folder remembers of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import ROW, Arrangement, Neighbours
from collegium.accounting.promises import Promise
from collegium.budgets import Budget, Budgets
from collegium.data.engines.places import Place as Table
from collegium.errors import (
    InputError,
    LedgerError,
    StudyMismatchError,
)
from collegium.json_files import number_as_json, read_json
from collegium.ledger.admission import IN_A_STUDY, Face, refuse_strangers
from collegium.ledger.allowance import Allowance, Entry, Spending
from collegium.ledger.entries import Release
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.limits import Cost, Lifetime
from collegium.ledger.places import FOR_ALL, NONE, Place, find_place, is_none, is_unwanted
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.manifest_check import KEPT_ALLOWANCE, KEPT_CODES, LEARNT

S = TypeVar("S", bound=Spending)
_KEPT = {
    "ledger": str,
    "release": str,
    "promise": str,
    "delta_0_share": float,
    "groups": dict,
    "entry": (list, type(None)),
    "settled": bool,
    "tokens": [str],
}


def place_of(config: StudyConfig) -> Place | None:
    """Find a study's ledger: as it says, or the environment says, or beside the private records."""
    url, key, records = config.ledger.url, config.path("ledger.key"), config.place("data.private")
    if records is None:
        return find_place(url, key, config.path("data.private"), config.folder)
    owner = config.data.owner
    return place_beside(url, key, records, owner, 'ledger.url = "people.ledger"', config.folder)


def place_beside(
    url: str | None, key: Path | None, table: Table, owner: str | None, how: str, folder: Path
) -> Place | None:
    """Find the ledger of a table in a database or workbook; None: not wanted.

    ``how``: to say which it is.
    Raises InputError where nothing says so, and there is no folder to look in: beside a server.
    """
    found = find_place(url, key, table.file, folder)
    unwanted = is_none(url) if url and url.strip() else is_unwanted()
    if found is None and not unwanted and owner is not None:
        raise InputError(
            f"{table} lies on a server, beside which there is no folder for a ledger, and without one nobody "
            f"remembers what is spent: say where it is ({how}, a file or postgresql://USER@HOST/DATABASE), "
            "or 'none'"
        )
    return found


def place_within(folder: StudyFolder, neighbours: Neighbours) -> str:
    """Make a ledger in a study's own folder, unless there is one; for a demonstration."""
    place = folder.path / FOR_ALL
    if not place.exists():
        folder.open()
        Ledger.create(place, neighbours=neighbours)
    return str(place.resolve())


class StudyPeople(Protocol):
    """What a ledger needs to know of a study's records."""

    @property
    def arrangement(self) -> Arrangement: ...  # noqa: D102
    @property
    def people(self) -> Budgets: ...  # noqa: D102
    @property
    def made_public(self) -> NDArray[Any] | None: ...  # noqa: D102


def why_not(config: StudyConfig, data: StudyPeople) -> str:
    """Say why no ledger can remember a study; empty if one can."""
    if data.arrangement.unit == ROW and config.data.dataset is None:
        return "the records do not say whose they are; of a table, data.owner names the column"
    if config.privacy.guarantee != "worst-case":
        return "its guarantee is data-dependent, a statement about one data set"
    if config.noise_is_seeded:
        return "its noise is seeded"
    if data.arrangement.private_classes:
        return "its list of classes is read off the private labels; data.classes gives a public one"
    return ""


class StudyLedger(Generic[S]):
    """What a study, or a labelling job, does about its ledger.

    ``place``: of the ledger.
    ``spending``: what the release may use.
    ``promised``: the ledger as it was opened; None: there is none yet.
    ``left``: what people had left when it was planned; None where that was decided before.
    ``kept``: what its folder remembers, if it was begun.
    """

    def __init__(
        self,
        place: Place,
        spending: S,
        promised: Ledger | None,
        left: Balance | None,
        kept: dict[str, Any] | None = None,
    ) -> None:
        self.place, self.spending, self.left = place, spending, left
        self.promised, self._kept = promised, kept

    @property
    def in_words(self) -> str:
        """What it leaves to people, for the user."""
        spending, found = self.spending, {}
        if self.left is not None:
            found = spending.allowance.left_afterwards(spending.people, self.left, spending.used)
        if not found:
            return f"the ledger {self.place} remembers this release"
        takes = [taken for taken, _ in found.values()]
        leaves = [after for _, after in found.values()]
        return (
            f"the ledger {self.place} remembers this release, which takes at most {_from_to(takes)} of what "
            f"people granted; after it, those who take part have at least {_from_to(leaves)} left of what "
            f"they granted{self._rounded()}"
        )

    def _rounded(self) -> str:
        """Say that what is left counts in whole tenths, where that makes a difference."""
        assert self.left is not None
        tenths = 10 * self.left.share[self.spending.allowance.codes >= 0]
        if np.allclose(tenths, np.round(tenths), atol=1e-6):
            return ""
        return " (what they had left was rounded down to tenths)"

    def was_just_entered(self) -> bool:
        """Tell whether its ledger knows it, and its folder does not know that: a crash came between."""
        if self._kept is None or self._kept["entry"] is not None:
            return False
        ledger = self.place.opened()
        return ledger is not None and self._kept["release"] in ledger.contents().releases

    def keep(self, folder: StudyFolder) -> None:
        """Write into the vault what the run may use, before anything is learnt; once. The folder is locked.

        Raises StudyMismatchError if another process has begun it, or gone on with it, since this was planned.
        """
        path = folder.path / KEPT_ALLOWANCE
        if (read_json(path, _KEPT) if path.exists() else None) != self._kept:
            raise StudyMismatchError(
                f"another process has begun {folder.path}, or gone on with it, since this one looked at it: "
                "nothing was asked or changed; run it again"
            )
        if self._kept is not None:
            return
        allowance = self.spending.allowance
        groups = {
            name: [number_as_json(one.epsilon), one.delta, allowance.delta_0[name]]
            for name, one in allowance.groups.items()
        }
        lifetime = allowance.lifetime
        self._kept = {
            "ledger": "",
            "release": allowance.release,
            "promise": lifetime.promise.value,
            "delta_0_share": lifetime.delta_0_share,
            "groups": groups,
            "entry": None,
            "settled": False,
            "tokens": [],
        }
        folder.write_array(folder.path / KEPT_CODES, allowance.codes.astype(np.int32))
        folder.write_json(folder.path / KEPT_ALLOWANCE, self._kept)

    def reserve(
        self,
        folder: StudyFolder,
        name: str,
        costs: list[Cost],
        arrangement: Arrangement,
    ) -> None:
        """Set aside what the release may cost, unless all was drawn before.

        ``name``: what the ledger calls it, for people.
        ``costs``: at most, of each of its groups.
        Raises LedgerError if the ledger is another one, or older than what was entered.
        """
        assert self._kept is not None
        if self._kept["settled"]:
            return
        ledger = self.place.made(_promised(arrangement.neighbours))
        id, entry = self._kept["release"], self._kept["entry"]
        if self._kept["ledger"] not in ("", ledger.id):
            raise LedgerError(
                f"this release was begun on another ledger than {self.place}: name its own in ledger.url; "
                "nothing was asked"
            )
        known = ledger.contents().releases.get(id)
        if entry is not None and (
            known is None or [known.opened.number, known.opened.mac] != entry
        ):
            raise LedgerError(
                f"the ledger {self.place} does not know this release, which was entered there: it is an "
                "older copy, so restore its newest backup; nothing was asked"
            )
        by_hand = known is not None and known.ended_by_hand is not None
        if known is not None and known.is_settled and not by_hand and not folder.voting_has_ended():
            raise StudyMismatchError(
                f"the ledger {self.place} knows this release as ended, and {folder.path} does not: the "
                "folder is an older copy, so restore its newest backup; nothing was asked"
            )
        held, token = list(self._kept["tokens"]), uuid4().hex
        # Kept before the ledger has it: whatever is cut off, one of those that are kept is the ledger's.
        self._keep(folder, tokens=[*held, token])
        if entry is not None:  # whoever has left since
            all_is_drawn = folder.voting_has_ended()
            assert folder.journal is not None
            if by_hand and folder.journal.asked and not all_is_drawn:
                self._charge_what_was_given_back(ledger, known, token, held)
            self.spending.go_on(ledger, all_is_drawn=all_is_drawn, token=token, held=held)
            self._keep(folder, tokens=[token])
            return
        reservation = self.spending.reserve(
            ledger,
            name,
            costs,
            arrangement,
            allow_new_people=True,  # the user was asked when it was planned
            again=True,  # the journal keeps all that is drawn
            token=token,
            held=held,
        )
        entered = [reservation.entry, reservation.mac]
        self._keep(folder, ledger=ledger.id, entry=entered, tokens=[token])

    def _charge_what_was_given_back(
        self, ledger: Ledger, known: Release | None, token: str, held: list[str]
    ) -> None:
        """Charge again what somebody gave back as if nothing had been drawn: something was."""
        assert known is not None
        if known.costs == known.reserved:
            return
        reservation = self.spending.go_on(ledger, all_is_drawn=True, token=token, held=held)
        reservation.settle(known.reserved)
        raise LedgerError(
            f"this release was given back by hand ({known.ended_by_hand}), but questions had been asked: all "
            "that was reserved is charged now, and nothing more is drawn; a new one (--out) may use the rest"
        )

    def settle(self, folder: StudyFolder, *drawn: Any) -> None:
        """Enter what it did cost, before anything is published.

        ``drawn``: what was, as :attr:`spending` takes it.
        Raises LedgerError if that fails: all that was drawn is kept, and the same command enters it. It also
            fails where another copy of the folder has gone on with the release.
        """
        assert self._kept is not None
        if self._kept["settled"]:
            return
        self.spending.settle(*drawn)
        self._keep(folder, settled=True)

    def _keep(self, folder: StudyFolder, **changes: Any) -> None:
        assert self._kept is not None
        changed = {**self._kept, **changes}
        if changed != self._kept:
            self._kept = changed
            folder.write_json(folder.path / KEPT_ALLOWANCE, changed)


def _from_to(shares: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{100 * f(shares):.0f} %" for f in (min, max)))


class Reserved(NamedTuple):
    """What is set aside: a release's name for people, its costs at most, and what was done with people."""

    name: str
    costs: list[Cost]
    arrangement: Arrangement


@contextlib.contextmanager
def reserved(
    ledger: StudyLedger[S] | None, folder: StudyFolder, at_most: Callable[[], Reserved]
) -> Iterator[Entry]:
    """Set aside what a release may cost, and lend what settles it; without a ledger there is nothing to do.

    Whatever cuts the block off, all of it stays set aside: the folder keeps what was drawn, and the next run
    goes on, and settles.
    """
    if ledger is None:
        yield Entry(lambda *_: None)
        return
    ledger.reserve(folder, *at_most())
    yield Entry(partial(ledger.settle, folder))


def ledger_of(config: StudyConfig, folder: StudyFolder, name: str) -> Ledger | None:
    """Open the ledger that remembers a study that was begun, or would remember it; None if there is none.

    ``name``: of one of its people.

    Raises LedgerError if it is not the one with which the study was begun.
    """
    place, path = place_of(config), folder.path / KEPT_ALLOWANCE
    begun_on = read_json(path, _KEPT)["ledger"] if path.exists() else ""
    if not begun_on:
        somebody = Budgets({"": Budget(1.0)}, [0], [name])
        return None if place is None else place.of(somebody)[1]
    ledger = None if place is None else place.with_id(begun_on)
    if ledger is None:
        raise LedgerError(
            f"{folder.path} was begun on another ledger than {place or NONE}: name its own in ledger.url; "
            "nothing was changed"
        )
    return ledger


@dataclass(frozen=True, eq=False)
class PeopleOnLedger:
    """Which ledger is to remember a release, and of whom.

    ``place``: of the ledger; None: the user wants none.
    ``why_not``: why none can remember it; empty if one can.
    ``people``: who granted what, by name; asked only if one can.
    ``allow_new_people``: whether most of them may be new to a ledger that knows others.
    ``made_public``: names of those whose records it makes public.
    ``face``: how the user names a ledger.
    """

    place: Place | None
    why_not: str
    people: Callable[[], Budgets]
    allow_new_people: bool = False
    made_public: Sequence[Any] | NDArray[Any] = ()
    face: Face = IN_A_STUDY

    @classmethod
    def of_study(cls, config: StudyConfig, data: StudyPeople) -> PeopleOnLedger:
        """Read it off a study's settings and records."""
        return cls(
            place_of(config),
            why_not(config, data),
            lambda: data.people,
            config.ledger.allow_new_people,
            () if data.made_public is None else data.made_public,
        )

    def found(self, granted: Budgets) -> tuple[Place, Ledger | None]:
        """Find their ledger; None if it is not there yet."""
        assert self.place is not None
        return self.place.of(granted)

    def looked_up(self, place: Place, granted: Budgets, ledger: Ledger | None) -> Balance:
        """Look up what people have left in a ledger; None: there is none yet.

        Raises LedgerError if they may be others than those whom it knows, or another ledger's.
        """
        if ledger is None:
            if not self.allow_new_people:
                refuse_strangers(granted, str(place), self.face)
            return Balance.of_newcomers(granted)
        ledger.allow_new_people, ledger.face = self.allow_new_people, self.face
        if len(self.made_public):
            ledger.refuse_published(self.made_public)
        return ledger.left(granted)


def begin(
    wanted: PeopleOnLedger,
    decide: Callable[[Balance, Ledger | None], Allowance],
    folder: StudyFolder | None,
    observer: Observer,
    spend: Callable[[Budgets, Allowance], S],
    found: tuple[Place, Ledger | None] | None = None,
) -> StudyLedger[S] | None:
    """Find out what a release may use of people's budgets; None if no ledger remembers it.

    ``decide``: what it may use, given what they have left in a ledger; None: there is none yet.
    ``folder``: if it holds this very release, begun before.
    ``spend``: makes what the release does about it, given who granted what, and what of it it may use.
    ``found``: where its ledger is, if that was found before.
    Raises InputError if the user named a ledger that cannot remember this; LedgerError if these people may be
        others than those whom it knows.
    """
    place = wanted.place
    if folder is not None and (folder.path / KEPT_ALLOWANCE).exists():
        return _begun(wanted, folder, spend)
    if folder is not None and any((folder.vault / name).exists() for name in LEARNT):
        if place is not None:
            observer.note("this was begun without a ledger, and goes on without")
        return None
    if place is None:
        return None
    if wanted.why_not:
        if place.is_asked_for:
            raise InputError(
                f'no ledger can remember this: {wanted.why_not}; or name none ("none")'
            )
        observer.note(
            f"no ledger remembers what this costs people, so that whatever is learnt from them next cannot "
            f"count it: {wanted.why_not}"
        )
        return None
    granted = wanted.people()
    place, ledger = wanted.found(granted) if found is None else found
    left = wanted.looked_up(place, granted, ledger)
    new = int((left.cohort == 0).sum())
    if ledger is not None and 0 < new < granted.n_owners:
        observer.note(
            f"{new:,} of {granted.n_owners:,} people are new to the ledger {place}, and join with whole "
            "budgets"
        )
    return StudyLedger(place, spend(granted, decide(left, ledger)), ledger, left)


def _begun(
    wanted: PeopleOnLedger,
    folder: StudyFolder,
    spend: Callable[[Budgets, Allowance], S],
) -> StudyLedger[S]:
    kept = read_json(folder.path / KEPT_ALLOWANCE, _KEPT)
    if wanted.place is None and not kept["settled"]:
        raise InputError("this was begun on a ledger, and goes on with it only: name it")
    people = wanted.people()
    try:
        codes = np.load(folder.path / KEPT_CODES, allow_pickle=False)
        groups = {
            name: Budget(float(eps), delta) for name, (eps, delta, _) in kept["groups"].items()
        }
        delta_0 = {name: float(one) for name, (_, _, one) in kept["groups"].items()}
        lifetime = Lifetime(Promise(kept["promise"]), kept["delta_0_share"])
        whole = codes.shape == (people.n_owners,) and codes.max(initial=-1) < len(groups)
    except (OSError, ValueError, EOFError, TypeError):
        whole = False
    if not whole:
        raise StudyMismatchError(
            f"{folder.path / KEPT_CODES} is not what this study wrote there: nothing was asked; restore the "
            "whole folder from one backup"
        )
    allowance = Allowance(kept["release"], lifetime, groups, delta_0, codes.astype(np.intp))
    place, promised = (Place(NONE), None) if wanted.place is None else wanted.found(people)
    return StudyLedger(place, spend(people, allowance), promised, None, kept)


def _promised(neighbours: Neighbours) -> Neighbours:
    """What a ledger that a study makes is about: a person's records there or blanked, if the study is."""
    wanted = Neighbours.ADD_OR_REMOVE
    return wanted if neighbours.include(wanted) else neighbours
