"""Which data sets count as neighbours: what a guarantee hides about one owner, in one true sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from collegium.accounting.promises import Promise
from collegium.checks import shown
from collegium.errors import InputError


class Neighbours(Enum):
    """How far all records of one owner may differ between two neighbouring data sets.

    Numbers about different neighbours mean different things: under replacement a count moves twice as far
    as when an owner comes or goes. Whether the list of owners may differ, too, depends on what was done
    with it: see :class:`Arrangement`.
    """

    #: An owner's records are there or not: the other data set has blanks in their place.
    ADD_OR_REMOVE = "add or remove"
    #: An owner's records are replaced by others, as many or fewer.
    REPLACE = "replace"
    #: Either.
    ANY_CHANGE = "any change"

    @classmethod
    def checked(cls, name: str, value: Any) -> Neighbours:
        """Return what is one of these; ``name`` is what the message calls it.

        Examples
        --------
        >>> Neighbours.checked("neighbours", "replaced")
        Traceback (most recent call last):
        collegium.errors.InputError: neighbours must be Neighbours.ADD_OR_REMOVE, .REPLACE or .ANY_CHANGE ...
        """
        if not isinstance(value, cls):
            raise InputError(
                f"{name} must be Neighbours.{', .'.join(one.name for one in list(cls)[:-1])} or "
                f".{list(cls)[-1].name} (of collegium.accounting), got {shown(value)}"
            )
        return value

    def include(self, others: Neighbours) -> bool:
        """Whether what holds about these neighbours holds about ``others``: about any change, about all."""
        return self is others or self is Neighbours.ANY_CHANGE

    @property
    def in_words(self) -> str:
        """What may happen to the records, in words."""
        return _WORDS[self]


_WORDS = {
    Neighbours.ADD_OR_REMOVE: "all records of one owner are there or blanked",
    Neighbours.REPLACE: "all records of one owner are replaced",
    Neighbours.ANY_CHANGE: "all records of one owner are replaced or blanked",
}

OVERLAP_ALLOWED = (
    "Public records may equal private ones, which is refused by default and was allowed for this run: what a "
    "public record says of somebody is seen without noise, and no budget covers it"
)

WHAT_IS_LEFT = (
    "A ledger keeps one account per person over all releases. What a group grants here is at most what every "
    "one of its members had left there, and not all that they once granted; who had too little left takes no "
    "part"
)
KEPT_BACK = "A small share of each δ is kept back there"
GIVEN = (
    "People who chose {} let their records be published: the student learns from them as they are, and "
    "nothing is promised to them. They are in no group, and no teacher learns from them"
)
BETWEEN_PARTIES = (
    "Records lie with {} parties that show one another none. As many as {} may stay away from a sum, and as "
    "many as {} may put together all that they know: they see sums with all the noise that is accounted for. "
    "Whoever has records at two parties is two people to the account, and what both allow adds up. No party "
    "proves that what it adds is true: false numbers spoil the result, and nobody's privacy"
)
OF_PARTIES = BETWEEN_PARTIES.replace(
    "Whoever has records at two parties is two people to the account, and what both allow adds up. ",
    "Each party grants a budget for everything that it holds, and what several of them hold is not protected "
    "together. ",
)

GIVEN_DIRECTLY = (
    "People who chose {} let their records be published: what is learnt may start from them as they are, and "
    "nothing is promised to them. They are in no group, and no noisy step is taken over them"
)

BROUGHT = (
    "Records are seen through a network that was trained elsewhere, and was brought along: {}. What it was "
    "trained on is not covered by this guarantee: if these people's records were among that, no budget "
    "covers what it tells of them"
)

_CLASSES = (
    "Not covered: the list of class names, which was read off private labels (a class that only one person "
    "has is visible)"
)
OWNER, ROW, TEACHER, PARTY = "owner", "row", "teacher", "party"
_WHOSE = {
    OWNER: "all records of one owner",
    ROW: "one record",
    TEACHER: "all that one teacher has learnt from",
    PARTY: "everything that one party holds",
}


@dataclass(frozen=True)
class Arrangement:
    """What was done with owners, group sizes and classes: all that decides which data sets are neighbours.

    From it follow the :attr:`neighbours` that an account is about and the one :attr:`sentence` that every
    statement prints. Derivation, case by case: ``docs/guarantees.md``.

    Parameters
    ----------
    unit : {"owner", "row", "teacher", "party"}
        Whose data may differ: those of a named owner; one row, where its position is its owner's name;
        all that one teacher has learnt from, where nothing is known of owners; or all that one of several
        parties holds.
    sizes_declared : bool
        Whether group sizes were declared by the user, instead of counted in the private records.
    assignment : {"hash", "balanced", "elsewhere"}
        Who is taught by whom: by a keyed hash of the owner's name alone, dealt out evenly among all
        owners, or decided outside this program.
    split : bool
        Whether public and private records come from one table, dealt by hash in given numbers.
    levels_by_lot : bool
        Whether privacy levels were dealt out among all owners.
    private_classes : bool
        Whether the list of classes was read off the private labels.
    together : bool
        Whether teachers that are trained or asked in one call may change one another by rounding.
    public_may_overlap : bool
        Whether public records were allowed to equal private ones.
    promise : Promise
        What the ledger promises that decided who takes part, and what they have left; without one, "either".
    blanked_only : bool
        Whether costs are those of owners whose records are there or blank, and not of others in their place.
    seen_together : bool
        Whether features or gradients of several people are computed together, in arithmetic that may round
        one of them by another's presence.
    public_levels : tuple of str
        Levels whose people let their records be published, whether anybody chose them or not.
    direct : bool
        Whether it is learnt by noisy steps, and not from teachers.
    parties : int
        Between how many parties the records lie that show one another none; 0: they are in one place.
    drop_outs, colluders : int
        How many of them may stay away from a sum, and how many may put together all that they know.
    brought : tuple of str
        Networks trained elsewhere, through which records are seen: file, name and digest of each.
    regrouped : bool
        Whether people with different budgets were put into groups, of which statements tell: how many have
        each budget decides who is in which.

    Examples
    --------
    >>> Arrangement(sizes_declared=True).sentence
    'all records of one owner are added, removed or replaced'
    >>> Arrangement(unit="row").sentence.split(" (")[0]
    'one record is replaced or left blank at its place'
    """

    unit: str = OWNER
    sizes_declared: bool = False
    assignment: str = "hash"
    split: bool = False
    levels_by_lot: bool = False
    private_classes: bool = False
    together: bool = False
    public_may_overlap: bool = False
    promise: Promise = Promise.EITHER
    blanked_only: bool = False
    seen_together: bool = False
    public_levels: tuple[str, ...] = ()
    direct: bool = False
    regrouped: bool = False
    parties: int = 0
    drop_outs: int = 0
    colluders: int = 0
    brought: tuple[str, ...] = ()

    @property
    def on_ledger(self) -> bool:
        """Whether a ledger decided who takes part, and with how much."""
        return self.promise is not Promise.EITHER

    @property
    def neighbours(self) -> Neighbours:
        """How far an owner's records may differ."""
        if self.blanked_only:
            return Neighbours.ADD_OR_REMOVE
        return Neighbours.REPLACE if self._only_replaced else Neighbours.ANY_CHANGE

    @property
    def counts_in(self) -> str:
        """What a group's members are called."""
        return self.unit if self.unit in (TEACHER, PARTY) else OWNER

    @property
    def sentence(self) -> str:
        """Which data sets are neighbours, in words, with everything that this depends on."""
        whose = _WHOSE[self.unit] + (" on the private side of the split" if self.split else "")
        verb = "are" if self.unit == OWNER else "is"
        said = "; ".join([f"{whose} {verb} {self._change}", *self._conditions()])
        if self.private_classes:
            said += f". {_CLASSES}"
        return said

    @property
    def in_short(self) -> str:
        """What is protected and what is not, in one line for terminals; :attr:`sentence` is exact.

        Examples
        --------
        >>> Arrangement().in_short.split(". ")[0]
        "Protected: everything in one person's records"
        """
        protected = {
            OWNER: "in one person's records",
            ROW: "in one record",
            TEACHER: "that one teacher has learnt from",
            PARTY: "that one party holds",
        }[self.unit]
        seen = {TEACHER: "which teachers there are", PARTY: "which parties took part"}.get(
            self.unit, "who took part"
        )
        chose = "how many have each" if self.unit == TEACHER else "how many chose each"
        more = ["how many records each person has"] * self._row_by_row
        hidden = ", ".join([seen, "their level", *([chose, *more][:-1])])
        return (
            f"Protected: everything {protected}. Not hidden: {hidden}, and {[chose, *more][-1]}."
            + f" {_CLASSES}." * self.private_classes
        )

    @property
    def provisos(self) -> tuple[str, ...]:
        """What else was allowed and weakens a guarantee, one sentence each."""
        levels = ", ".join(repr(level) for level in self.public_levels)
        said = {
            OVERLAP_ALLOWED: self.public_may_overlap,
            WHAT_IS_LEFT: self.on_ledger and self.promise is Promise.PURE,
            f"{WHAT_IS_LEFT}. {KEPT_BACK}": self.on_ledger and self.promise is not Promise.PURE,
            (GIVEN_DIRECTLY if self.direct else GIVEN).format(levels): bool(levels),
            (OF_PARTIES if self.unit == PARTY else BETWEEN_PARTIES).format(
                self.parties, self.drop_outs, self.colluders
            ): bool(self.parties),
            BROUGHT.format("; ".join(self.brought)): bool(self.brought),
        }
        return tuple(sentence for sentence, holds in said.items() if holds)

    @property
    def _only_replaced(self) -> bool:
        return self.assignment == "balanced" or self._row_by_row

    @property
    def _row_by_row(self) -> bool:
        """Whether an owner's records must be as many as before, and in the same rows."""
        return self.split or self.levels_by_lot

    @property
    def _change(self) -> str:
        if self.blanked_only:
            if self.unit == ROW:
                return "there or left blank at its place (a row's position names its owner: none moves up)"
            return "there or blanked"
        if self._row_by_row:
            return "replaced" if self.unit == ROW else "replaced, row by row"
        if self._only_replaced:
            return "replaced"
        if self.unit == ROW:
            return "replaced or left blank at its place (a row's position names its owner: none moves up)"
        counted = self.on_ledger or not (self.assignment == "elsewhere" or self.sizes_declared)
        if self.unit == OWNER and not counted:
            return "added, removed or replaced"
        return "replaced or blanked"

    def _conditions(self) -> list[str]:
        said = []
        if self.unit == TEACHER:
            said.append("provided that no other teacher changes with it")
        elif self.unit == PARTY:
            said.append(
                "which parties there are, and what each grants, is public and the same in both"
            )
        elif self.assignment == "elsewhere":
            said.append(
                "provided that only that owner's teachers change with them: who is taught by whom must not "
                "depend on who else is there"
            )
        elif not self.sizes_declared:
            each = (
                "granted each budget (from which groups are made)"
                if self.regrouped
                else "each group has"
            )
            said.append(f"how many owners {each} is public and the same in both")
        if self.assignment == "balanced":
            said.append(
                "who the owners are is public and the same in both (all of them decide who is taught by whom)"
            )
        if self._row_by_row:
            decides = " and ".join(
                ["who comes to the private side"] * self.split
                + ["which level is dealt to whom"] * self.levels_by_lot
            )
            said.append(
                "which rows there are, and whose each is, is public and the same in both (it decides "
                f"{decides})"
            )
        if self.on_ledger:
            said.append(
                "who takes part, and what a ledger has left of their budgets, is public and the same in both"
            )
        if self.seen_together:
            said.append(
                "provided that records that are shown to the model together do not change one another, not "
                "even by rounding in the last bits"
            )
        if self.together:
            said.append(
                "provided that teachers trained or asked together do not change one another, not even by "
                'rounding (on a GPU they may: device = "cpu" rules it out)'
            )
        return said
