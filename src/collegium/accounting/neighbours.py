"""Which data sets count as neighbours: what a guarantee hides about one owner."""

from __future__ import annotations

from enum import Enum


class Neighbours(Enum):
    """What may differ between two neighbouring data sets: all records of one owner, in one of these ways.

    Numbers about different neighbours mean different things: under replacement a count moves twice as far
    as when an owner comes or goes.
    """

    #: An owner's records are there or not: the other data set has blanks in their place.
    ADD_OR_REMOVE = "add or remove"
    #: An owner's records are replaced by others, as many or fewer.
    REPLACE = "replace"
    #: Either.
    ANY_CHANGE = "any change"

    def include(self, others: Neighbours) -> bool:
        """Whether what holds about these neighbours holds about ``others``: about any change, about all."""
        return self is others or self is Neighbours.ANY_CHANGE

    @property
    def in_words(self) -> str:
        """What may happen to the records, as a sentence says it."""
        return _WORDS[self]

    @classmethod
    def from_words(cls, sentence: str) -> Neighbours:
        """Find out what a sentence of an older file is about.

        Examples
        --------
        >>> Neighbours.from_words("all records of one owner are replaced").name
        'REPLACE'
        >>> Neighbours.from_words("all records of one owner are added, removed or replaced").name
        'ANY_CHANGE'
        """
        if "replaced" not in sentence:
            return cls.ADD_OR_REMOVE
        return cls.ANY_CHANGE if "removed" in sentence else cls.REPLACE


_WORDS = {
    Neighbours.ADD_OR_REMOVE: "all records of one owner are added or removed",
    Neighbours.REPLACE: "all records of one owner are replaced",
    Neighbours.ANY_CHANGE: "all records of one owner are added, removed or replaced",
}
