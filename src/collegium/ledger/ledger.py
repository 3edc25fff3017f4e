"""The ledger: one durable account per person, over everything that is ever learnt from their records."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.events import Event
from collegium.accounting.export import uses_of
from collegium.accounting.neighbours import Neighbours
from collegium.accounting.promises import Promise
from collegium.budgets import Budget, Budgets
from collegium.checks import check_choice, check_truth
from collegium.checks import people as counted_people
from collegium.errors import BudgetExceededError, InputError, LedgerError, LedgerWarning
from collegium.ledger import entries
from collegium.ledger.admission import IN_PYTHON, admit, refuse_strangers
from collegium.ledger.balances import Balance, left_of
from collegium.ledger.chain import Entry, Key
from collegium.ledger.entries import Account, Books, Release, Standing, cost_as_json
from collegium.ledger.known_ledgers import note
from collegium.ledger.limits import DELTA_0_SHARE, PROMISES, Cost, Lifetime
from collegium.ledger.people import People, alike, by_part, divide, in_order
from collegium.ledger.refusals import (
    refuse_who_left,
    require_affordable,
    require_charged,
    require_same_budgets,
    require_still_granted,
)
from collegium.ledger.storage import Storage, parts_of
from collegium.ledger.transaction import Transaction
from collegium.ledger.versions import make_tables
from collegium.names import as_names


class Reservation:
    """What a release may cost, set aside before any noise is drawn.

    Attributes
    ----------
    id : str
        Of the release.
    entry : int
        Number of the entry that reserved it.
    mac : str
        Proof of that entry: an older copy of the ledger, which lacks it, is refused when this is settled.
    costs : tuple of Cost
        For each part of the owners at most; what it did cost, once it is settled.
    is_settled : bool
        Whether it has ended.
    """

    def __init__(self, ledger: Ledger, release: Release, levels: Sequence[str]) -> None:
        self._ledger, self._levels = ledger, levels
        self.id = release.id
        self.entry, self.mac = release.opened.number, release.opened.mac
        self.costs, self.is_settled = tuple(release.costs), release.is_settled
        self.token = release.token

    def settle(self, costs: Mapping[str, Cost] | Sequence[Cost], events: Any = None) -> None:
        """Say what the release did cost: the rest of what was reserved is free again.

        A mechanism of many steps whose cost was fitted as a whole settles at what it reserved.

        Parameters
        ----------
        costs : mapping of str to Cost, or sequence of Cost
            As it was reserved: by level, or one for each part; none above what was reserved.
        events : Event or JSON, optional
            What was drawn, for those who want to compute it again: an event with a cohort for each part (or
            level, in the order of the budgets' groups), or a list with an entry for each part. Public.

        Raises
        ------
        LedgerError
            If it cost more than was reserved, or was settled before at other costs; nothing was changed.
        InputError
            If an event has other cohorts than there are parts.
        """
        if isinstance(costs, Mapping):
            costs = in_order(costs, self._levels)
        if isinstance(events, Event):
            events = _by_part_as_json(events, len(self.costs))
        self._ledger._settle(self, tuple(costs), events)
        self.costs, self.is_settled = tuple(costs), True


class Ledger:
    """One durable account per person, over all releases, methods and years.

    A release *reserves* what it may cost each owner at most, before any noise is drawn; draws; and *settles*
    what it did cost. A crash in between leaves the reservation. What anybody could not afford is refused, and
    changes nothing. Guarantee, for every owner, whatever is released in the light of what: all releases
    together are (ε, δ)-DP at the owner's own budget, and μ-GDP at its μ (but for a small δ₀), about the
    ledger's :class:`Neighbours`; or, of a ledger that promises pure ε, (ε, 0)-DP. Derived in
    ``docs/ledger.md``.

    Attributes
    ----------
    id : str
        Of the ledger.
    lifetime : Lifetime
        What it promises everybody: fixed when it was made.
    neighbours : Neighbours
        About whom.

    Parameters
    ----------
    place : str or Path
        A file (SQLite), or ``postgresql://USER@HOST/DATABASE``.
    key : str or Path, optional
        File of the ledger's key, without which no name can be told from the ledger. Default: ``PLACE.key``
        beside a file; must be given with a server.
    allow_new_people : bool, default=False
        Whether it is meant that most people of a release are new to a ledger that knows others, or are those
        of another ledger of this user.

    Raises
    ------
    LedgerError
        If there is no ledger, or it is of another version, changed by something else, older than when it was
        last seen here, or out of reach.
    InputError
        If place or key cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> from collegium.accounting import Neighbours
    >>> from collegium.budgets import Policy
    >>> budgets = Policy({"high": 1.0, "low": 3.0}).assign(["high", "low"], owners=["ann", "bob"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(Path(folder, "people.ledger"))
    ...     at_most = {"high": Cost(0.04), "low": Cost(0.36)}
    ...     release = ledger.reserve(
    ...         "1", "a count", budgets, at_most, neighbours=Neighbours.ANY_CHANGE
    ...     )
    ...     release.settle({"high": Cost(0.01), "low": Cost(0.09)})
    ...     [round(standing.epsilon_spent, 3) for standing in ledger.standings()]
    [0.341, 1.133]
    """

    def __init__(
        self, place: str | Path, key: str | Path | None = None, *, allow_new_people: bool = False
    ) -> None:
        check_truth("allow_new_people", allow_new_people)
        self.allow_new_people, self.face = allow_new_people, IN_PYTHON
        self._storage, self._key_file = (
            Storage.opened(place, key),
            None if key is None else Path(key),
        )
        with self._storage.reading() as seen:
            self.id, self.lifetime = seen.ledger, seen.books.lifetime
            self.neighbours = seen.books.neighbours

    @classmethod
    def create(
        cls,
        place: str | Path,
        key: str | Path | None = None,
        delta_0_share: float = DELTA_0_SHARE,
        neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
        promise: str = Promise.GAUSSIAN,
    ) -> Ledger:
        """Make a ledger that knows nobody yet.

        Parameters
        ----------
        place, key
            As for the class; both must be new, or left by one who was cut off here.
        delta_0_share : float, default=0.01
            Share of every δ that is set aside for mechanisms that need a δ₀; it cannot be changed later.
        neighbours : Neighbours, optional
            What the ledger's promise is about; default: an owner's records are there or blanked, which
            costs of any change are about, too. It cannot be changed later.
        promise : {"gaussian", "pure"}, default="gaussian"
            In what budgets are kept. "gaussian": in μ of Gaussian DP; at ε = 1 and δ = 1e-5 nobody is right
            about a person more than 56 times in 100. "pure": in Σε, so that nothing with Gaussian noise fits;
            at ε = 1 that is 74 times. It cannot be changed later.

        Raises
        ------
        LedgerError
            If there is a ledger, or a key, already.
        """
        check_choice("promise", promise, PROMISES)
        lifetime = Lifetime(Promise(promise), delta_0_share)
        Neighbours.checked("neighbours", neighbours)
        database, key_file, anchor = parts_of(place, key)
        _warn_of_neighbour(key_file)
        key_file.parent.mkdir(parents=True, exist_ok=True)
        with anchor.held():  # others who find none meanwhile find this one then
            if not database.is_blank:
                raise LedgerError(f"there is a ledger at {database} already: nothing was changed")
            storage = Storage(database, Key.make(key_file, anchor), anchor)
            database.make_private()
            storage.begin(
                {
                    "promise": lifetime.promise.value,
                    "delta_0_share": lifetime.delta_0_share,
                    "neighbours": neighbours.value,
                },
                make_tables,
            )
        return cls(place, key)

    @staticmethod
    def is_to_be_made(place: str | Path, key: str | Path | None = None) -> bool:
        """Whether there is none yet, or what somebody left who was cut off when making it.

        Parameters
        ----------
        place, key
            As for the class.
        """
        database, _, anchor = parts_of(place, key)
        with anchor.held():
            return database.is_blank and not anchor.path.exists()

    def __str__(self) -> str:
        return str(self._storage.database)

    def __repr__(self) -> str:
        return f"Ledger({str(self)!r})"

    def reserve(
        self,
        id: str,
        name: str,
        budgets: Budgets,
        costs: Mapping[str, Cost] | Sequence[Cost],
        parts: ArrayLike | None = None,
        *,
        neighbours: Neighbours,
        about: Any = None,
        allow_new_people: bool = False,
        again: bool = False,
        token: str = "",
        held: Collection[str] = (),
    ) -> Reservation:
        """Set aside what a release may cost at most; nothing may be drawn before.

        Parameters
        ----------
        id : str
            Of the release, chosen by whoever makes it.
        name : str
            For people.
        budgets : Budgets
            Whose records it uses, and what they grant: as the ledger knows it, or else they join.
        costs : mapping of str to Cost, or sequence of Cost
            By level; or, with ``parts``, one for each part. Owners whom it costs nothing take no part in the
            release.
        parts : array-like of int, shape (n_owners,), optional
            The part of each of ``budgets.owners``.
        neighbours : Neighbours
            What the costs are about, such as ``event.neighbours``.
        about : JSON, optional
            What it is, for those who read the history. Public.
        allow_new_people : bool, default=False
            Whether it is meant that most of these people are new to a ledger that knows others, or are those
            of another ledger of this user. So it is where the ledger was opened with it.
        again : bool, default=False
            Whether to give the same reservation again, after a crash. **Only if all that was drawn under it
            is kept, and never drawn anew**: otherwise begin another release.
        token : str, optional
            Secret of who may go on with the release and settle it, kept with the draws: of several copies of
            them, only the one that came last may.
        held : collection of str
            With ``again``: tokens that the caller has. One of them must be the release's; it gives way to
            ``token``.

        Raises
        ------
        BudgetExceededError
            If anybody could not afford it: names the level, and what is left.
        LedgerError
            If the ledger knows these people otherwise, or not at all, or the release already.
        """
        if not Neighbours.checked("neighbours", neighbours).include(self.neighbours):
            raise LedgerError(
                f"the costs hold where {neighbours.in_words}, but the ledger at {self} promises "
                f"something where {self.neighbours.in_words}: compute the costs for that; nothing was "
                "released"
            )
        listed, part_of = by_part(budgets, costs, parts)
        people = People(self._storage.key, budgets)
        asked = [
            [
                int((part_of == part).sum()),
                self._storage.key.seal(f"{id} {part} {people.tags(part_of == part)}"),
                cost_as_json(cost),
            ]
            for part, cost in enumerate(listed)
        ]
        if not allow_new_people:
            self._refuse_strangers(people, id)
        with self._storage.writing() as transaction:
            known = transaction.books.releases.get(id)
            if known is not None:
                return self._again(transaction, people, known, asked, again, token, held)
            cohort = admit(transaction, people, str(self))
            takes_part = np.array([not cost.is_nothing for cost in listed], dtype=bool)[part_of]
            charges = divide(transaction, people, np.where(takes_part, cohort, 0), part_of)
            body = {
                "release": id,
                "name": name,
                "about": about,
                "neighbours": neighbours.value,
                "parts": asked,
                "charges": charges,
                **({"token": token} if token else {}),
            }
            transaction.write(entries.RESERVE, body)
            release = transaction.books.releases[id]
            # Who cannot afford it undoes all of this transaction.
            require_affordable(transaction.books, release, (cohort for cohort, _ in charges))
        note(str(self), self._key_file)
        return Reservation(self, release, budgets.group_names)

    def _refuse_strangers(self, people: People, id: str) -> None:
        """Ask about who is offered, unless they are those of a release that is there."""
        with self._storage.reading() as seen:
            cohort, known = people.look_up(seen), seen.books.n_owners
            is_known = id in seen.books.releases
        if not is_known and not self.allow_new_people:
            refuse_strangers(people.budgets, str(self), self.face, cohort, known)

    def reservation(
        self,
        id: str,
        budgets: Budgets,
        *,
        all_is_drawn: bool = False,
        token: str = "",
        held: Collection[str] = (),
    ) -> Reservation:
        """Give the reservation of a release that is in the ledger, after a crash, or after somebody has left.

        As ``reserve(…, again=True)``, and **only where all that was drawn under it is kept**; but of those
        whom it was made for, some may be missing in ``budgets``.

        Parameters
        ----------
        id : str
            Of the release.
        budgets : Budgets
            Whose records it still uses.
        all_is_drawn : bool, default=False
            Whether it is only to be settled: then nobody's change of mind matters any more.
        token, held
            As for :meth:`reserve`.

        Raises
        ------
        BudgetExceededError
            If anybody has lowered the budget below what is booked, and more is to be drawn.
        LedgerError
            If the ledger does not know the release, or anybody of these has left, or is new; or if another
            copy has gone on with it.
        """
        people = People(self._storage.key, budgets)
        with self._storage.writing() as transaction:
            release = transaction.books.releases.get(id)
            if release is None:
                raise LedgerError(
                    f"release {id!r} is not in the ledger at {self}: begin a new release"
                )
            cohort = people.look_up(transaction)
            require_charged(transaction.books, release, cohort)
            self._go_on(transaction, release, cohort, all_is_drawn)
            release = _taken(transaction, release, token, held)
        return Reservation(self, release, budgets.group_names)

    def _go_on(
        self,
        transaction: Transaction,
        release: Release,
        cohort: NDArray[np.intp],
        all_is_drawn: bool,
    ) -> None:
        """Refuse to go on where nothing more may be drawn."""
        _refuse_if_given_back(release, all_is_drawn)
        if not all_is_drawn:
            refuse_who_left(transaction.books, cohort)
            require_still_granted(transaction.books, cohort)

    def _again(
        self,
        transaction: Transaction,
        people: People,
        release: Release,
        asked: list[Any],
        again: bool,
        token: str,
        held: Collection[str],
    ) -> Reservation:
        if release.opened.body["parts"] != asked:
            raise LedgerError(
                f"release {release.id!r} is in the ledger with other people or other costs: begin a "
                "new release"
            )
        if not again:
            raise LedgerError(
                f"release {release.id!r} was {'made' if release.is_settled else 'begun'} before: use "
                "another id for new noise; give again=True only to go on with noise that was kept"
            )
        self._go_on(transaction, release, people.look_up(transaction), all_is_drawn=False)
        release = _taken(transaction, release, token, held)
        return Reservation(self, release, people.budgets.group_names)

    def _settle(self, reservation: Reservation, costs: tuple[Cost, ...], events: Any) -> None:
        with self._storage.writing() as transaction:
            transaction.require_entry(reservation.entry, reservation.mac, "that of this release")
            release = transaction.books.releases[reservation.id]
            if release.token != reservation.token:
                raise LedgerError(
                    f"another copy has gone on with release {release.id!r} since: do not publish what "
                    "this one has drawn"
                )
            if release.is_settled and release.costs == costs:
                return
            reason = release.ended_by_hand
            if release.is_settled and reason is None:
                raise LedgerError(
                    f"release {release.id!r} was settled before at other costs: nothing was changed"
                )
            reserved = release.reserved
            if len(costs) != len(reserved) or not all(
                most.covers(cost) for most, cost in zip(reserved, costs, strict=True)
            ):
                raise LedgerError(
                    f"release {release.id!r} cost more than was reserved: nothing was changed"
                )
            _close(transaction, release, costs, {"events": events})
            overdrawn = 0 if reason is None else transaction.books.overdrawn_by(release.id)
        if overdrawn:  # charged all the same: it was drawn
            raise BudgetExceededError(
                f"release {release.id!r} was given back by hand ({reason}), but noise was drawn: it is "
                f"charged now, and costs more than is left for {counted_people(overdrawn)}; do not "
                "publish it"
            )

    def end(self, id: str, reason: str, *, nothing_was_drawn: bool = False) -> Release:
        """End a reservation whose program is gone for good.

        A program that can go on settles by itself: run it again instead. Settled as reserved, all of it
        stays charged, which holds whatever the program drew; should it come back, it still settles at what
        it did cost. Where everything was given back, it may draw nothing more; what it says it drew is
        charged after all, and where people cannot afford that any more, it may not release
        (BudgetExceededError).

        Parameters
        ----------
        id : str
            Of the release.
        reason : str
            How that is known, and who says so. Public: it stands in the history.
        nothing_was_drawn : bool, default=False
            Give everything back. **Only if the program never drew any noise**, whether or not anybody saw it:
            the ledger cannot know, and believes whoever says so.

        Returns
        -------
        Release
            As it is settled now.

        Raises
        ------
        LedgerError
            If there is no such release, or it is settled; nothing was changed.
        """
        if not reason.strip():
            raise InputError(
                "the reason is empty: write how it is known that the program is gone, and who says so"
            )
        with self._storage.writing() as transaction:
            release = transaction.books.releases.get(id)
            if release is None:
                raise LedgerError(
                    f"the ledger at {self} has no release {id!r}: `collegium ledger show` lists those "
                    "that are open; nothing was changed"
                )
            if release.closed is not None:
                raise LedgerError(
                    f"release {id!r} was settled on {release.closed.at} already: nothing was changed"
                )
            costs = tuple(Cost(0.0) if nothing_was_drawn else cost for cost in release.costs)
            _close(transaction, release, costs, {"events": None, "by_hand": reason})
            return transaction.books.releases[id]

    def reservations(self) -> list[Release]:
        """All releases that are reserved and not settled, oldest first."""
        with self._storage.reading() as seen:
            return [one for one in seen.books.releases.values() if not one.is_settled]

    def releases(self) -> list[tuple[Release, float, float]]:
        """All releases, oldest first, each with the least and the most of a budget that it takes.

        These are shares of what a person grants now, as the ledger counts it (of μ², or of ε where that is
        promised), of those who have not left; 0 where nobody of them is left.
        """
        with self._storage.reading() as seen:
            books = seen.books
            # Thousands of cohorts have a few budgets, and paid a few prices.
            paid: dict[str, set[tuple[Budget, Cost]]] = {one: set() for one in books.releases}
            for cohort in books.cohorts.values():
                if cohort.members and not cohort.has_left:
                    budget = cohort.budget
                    for charge in books.charges_of(cohort.id):
                        if not charge.cost.is_nothing:
                            paid[charge.release.id].add((budget, charge.cost))
            found = []
            for id, one in books.releases.items():
                takes = [self.lifetime.limit(budget).share_of(cost) for budget, cost in paid[id]]
                found.append((one, min(takes, default=0.0), max(takes, default=0.0)))
            return found

    def refuse_published(self, names: Sequence[Any] | NDArray[Any]) -> None:
        """Refuse to publish the very records of people who grant a budget here, or have left.

        Parameters
        ----------
        names : sequence
            Of people whose records are to be given to everybody.

        Raises
        ------
        LedgerError
            If there are any.
        """
        ids = [self._storage.key.owner(str(name)) for name in as_names(np.asarray(names))]
        with self._storage.reading() as seen:
            found = [seen.books.cohorts[one] for one in seen.cohorts_of(ids) if one]
        private = sum(one.has_left or not one.budget.is_unlimited for one in found)
        if private:
            raise LedgerError(
                f"the records of {counted_people(private)} are to be published, but the ledger at "
                f"{self} limits their budget, or knows that they have left: take their records out, "
                "or, if they changed their mind, enter that with `collegium ledger change`; nothing "
                "was released"
            )

    def left(self, budgets: Budgets) -> Balance:
        """Look up what owners have left; people who are new have all that they grant.

        Parameters
        ----------
        budgets : Budgets
            Who, and what they grant.

        Raises
        ------
        LedgerError
            If the ledger knows other budgets of them; or if most are new to a ledger that knows others, or
            known to another ledger of this user, and it was not opened with ``allow_new_people``.
        """
        people = People(self._storage.key, budgets)
        with self._storage.reading() as seen:
            cohort, known = people.look_up(seen), seen.books.n_owners
            require_same_budgets(seen.books, budgets, cohort, str(self))
            left = left_of(seen.books, budgets, cohort)
        if not self.allow_new_people:
            refuse_strangers(budgets, str(self), self.face, cohort, known)
        return left

    def knows(self, budgets: Budgets) -> bool:
        """Whether it knows anybody of some owners.

        Parameters
        ----------
        budgets : Budgets
            Who.
        """
        people = People(self._storage.key, budgets)
        with self._storage.reading() as seen:
            return bool(people.look_up(seen).any())

    def change(self, budgets: Budgets, *, come_back: bool = False) -> dict[str, int]:
        """Take over the budgets of people who changed their mind; who is new joins, nobody leaves.

        A raised budget counts at once. A lowered one limits what comes: what was released stays released,
        and where more was spent than is granted now, nothing more is released about them.

        Parameters
        ----------
        budgets : Budgets
            Of those who changed their mind; anybody else may be among them.
        come_back : bool, default=False
            Whether those among them who had left are back, with all that was spent before.

        Raises
        ------
        LedgerError
            If somebody among them has left, and is not said to be back; nothing was changed.

        Returns
        -------
        dict
            How many ``joined``, ``raised`` and ``lowered`` theirs, and are ``overdrawn``: have spent more
            than they grant now.
        """
        people = People(self._storage.key, budgets)
        done: Counter[str] = Counter(joined=0, raised=0, lowered=0, overdrawn=0)
        with self._storage.writing() as transaction:
            before_all = transaction.books.n_owners
            cohort = admit(transaction, people, str(self), same_budgets=False)
            done["joined"] = transaction.books.n_owners - before_all
            gone = [one.id for one in transaction.books.cohorts.values() if one.has_left]
            if (count := int(np.isin(cohort, gone).sum())) and not come_back:
                raise LedgerError(
                    f"{count:,} of these {len(cohort):,} people have left: take them out of the table, "
                    "or, if they are back, give come_back=True (--come-back); nothing was changed"
                )
            moved: list[int] = []
            by_cohort = np.lexsort((budgets.owner_group, cohort))
            for chosen in alike(by_cohort, cohort, budgets.owner_group):
                was = int(cohort[chosen[0]])
                level = budgets.group_names[budgets.owner_group[chosen[0]]]
                before, budget = transaction.books.cohorts[was], budgets.groups[level]
                same = (before.level, before.budget) == (level, budget)
                if same and not before.has_left:
                    continue
                ids, tags = people.ids_of(chosen), people.tags(chosen)
                moved.append(transaction.changes.split(was, ids, tags, level=level, budget=budget))
                limits = [self.lifetime.limit(one) for one in (before.budget, budget)]
                old, new = ((limit.mu_squared, limit.pure_epsilon) for limit in limits)
                if new != old:
                    raised = new > old
                    done["raised" if raised else "lowered"] += len(ids)
            if moved:
                transaction.write(entries.CHANGE, {})
            for one in moved:
                standing = transaction.books.standing(one)
                if not standing.limit.allows(standing.spent):
                    done["overdrawn"] += standing.owners
        note(str(self), self._key_file)
        return dict(done)

    def forget(self, name: str) -> bool:
        """Remember that somebody has left: no release may use that name any more.

        The hash stays, and what was spent.

        Returns
        -------
        bool
            False for a name that the ledger does not know.
        """
        one = self._storage.key.owner(name)
        with self._storage.writing() as transaction:
            (cohort,) = transaction.cohorts_of([one])
            if not cohort:
                return False
            if not transaction.books.cohorts[cohort].has_left:
                tags = self._storage.key.members([one])
                transaction.changes.split(cohort, [one], tags, has_left=True)
                transaction.write(entries.LEAVE, {})
        return True

    def standings(self) -> list[Standing]:
        """How all people stand, oldest first: those who granted and spent the same are one of them."""
        together: dict[Standing, int] = {}
        with self._storage.reading() as seen:
            for cohort in seen.books.cohorts.values():
                if cohort.members:
                    figures = replace(seen.books.standing(cohort.id), owners=0)
                    together[figures] = together.get(figures, 0) + cohort.members
        return [replace(one, owners=owners) for one, owners in together.items()]

    def pseudonym(self, name: str) -> str:
        """Call a person as the ledger does, whether it knows them or not: nobody can without its key."""
        return self._storage.key.owner(name).hex()

    def account_of(self, name: str) -> Account | None:
        """Look up one person: grants, releases, and how things stand; None for an unknown name."""
        return self.accounts_of([name])[0]

    def accounts_of(self, names: Sequence[str]) -> list[Account | None]:
        """Look up people as :meth:`account_of` does; those with one history have one account."""
        ids = [self._storage.key.owner(name) for name in names]
        with self._storage.reading() as seen:
            cohorts = seen.cohorts_of(ids)
            accounts = {one: seen.books.account(one) for one in set(cohorts) if one}
        return [accounts.get(one) for one in cohorts]

    def levels_of(self, names: Sequence[str]) -> list[str | None]:
        """Look up which level people grant now; None for who is not known, or has left."""
        ids = [self._storage.key.owner(name) for name in names]
        with self._storage.reading() as seen:
            cohorts, known = seen.cohorts_of(ids), seen.books.cohorts
        granted = {
            one: None if known[one].has_left else known[one].level for one in set(cohorts) - {0}
        }
        return [granted.get(one) for one in cohorts]

    def contents(self) -> Books:
        """All that the entries say, each proven anew."""
        with self._storage.reading(anew=True) as seen:
            return seen.books

    def history(self) -> list[Entry]:
        """All entries, oldest first."""
        with self._storage.reading() as seen:
            return list(seen.entries)

    def verify(self) -> int:
        """Prove every entry, and who has which history; changes nothing.

        Returns
        -------
        int
            Number of entries.

        Raises
        ------
        LedgerError
            If anything is not as it was written.
        """
        with self._storage.reading(anew=True) as seen:
            seen.prove_everybody()
            return seen.next_number - 1


def _taken(
    transaction: Transaction, release: Release, token: str, held: Collection[str]
) -> Release:
    """Let one copy go on with a release, and no other any more."""
    if release.token and release.token not in held:
        raise LedgerError(
            f"another copy has gone on with release {release.id!r}, so this one may not draw or "
            "publish anything: go on with that copy, or begin a new release"
        )
    if token:
        transaction.write(entries.TAKE, {"release": release.id, "token": token})
    return transaction.books.releases[release.id]


def _refuse_if_given_back(release: Release, all_is_drawn: bool = False) -> None:
    """What was given back may have been spent on something else by now."""
    if not release.is_settled or release.costs == release.reserved:
        return
    if all_is_drawn:
        return  # it is charged at what it cost after all, if people can afford that
    if release.ended_by_hand is None:
        raise LedgerError(
            f"release {release.id!r} has ended, and what it did not use was given back: no more noise "
            "may be drawn for it; begin a new release"
        )
    else:
        raise LedgerError(
            f"release {release.id!r} was given back by hand ({release.ended_by_hand}): no more noise "
            "may be drawn for it; begin a new release"
        )


def _close(
    transaction: Transaction, release: Release, costs: tuple[Cost, ...], more: dict[str, Any]
) -> None:
    written = [cost_as_json(cost) for cost in costs]
    transaction.write(entries.SETTLE, {"release": release.id, "costs": written, **more})


def _warn_of_neighbour(key_file: Path) -> None:
    for other in sorted(key_file.parent.glob("*.key")):
        if other != key_file and other.with_suffix("").is_file():
            warnings.warn(
                f"{other.with_suffix('')} is a ledger, too: if it is about the same people, use that "
                "one; two ledgers know nothing of each other, so budgets would be spent twice",
                LedgerWarning,
                stacklevel=3,
            )


def _by_part_as_json(event: Event, n_parts: int) -> list[list[dict[str, Any]]]:
    if len(event) != n_parts:
        raise InputError(
            f"the event has {len(event)} cohorts, but the release has {n_parts} parts: give one cohort "
            "for each part; nothing was changed"
        )
    return [[use.to_json() for use in uses_of(event, part)] for part in range(n_parts)]


__all__ = ["Balance", "Ledger", "Reservation"]
