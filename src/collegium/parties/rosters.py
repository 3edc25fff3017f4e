"""Whose vectors count: parties propose rosters, each confirms one, and enough confirmations choose it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collegium.parties.ciphers import digest
from collegium.parties.messages import Label, Post, Received
from collegium.parties.waiting import Steps, SumNotOpenedError, Waiting, still_waiting

_NONE = "none"  # the roster of a party that has seen that nothing can be opened


@dataclass(frozen=True)
class Roster:
    """Whose vectors count, and which ones: digests of their files, by party."""

    masked: Mapping[int, str]

    @property
    def digest(self) -> str:
        """What is confirmed: the same whoever proposed it."""
        return digest({"masked": [[number, self.masked[number]] for number in sorted(self.masked)]})

    def half_there(self, everybody: range) -> list[tuple[int, int]]:
        """Pairs of a party that counts and one that does not: their masks do not cancel."""
        away = [number for number in everybody if number not in self.masked]
        return [(here, other) for here in sorted(self.masked) for other in away]


class Rosters:
    """One party's part in choosing the roster of one attempt at one sum.

    ``masked``: reads a party's vector, checked; None if it is not there yet.
    """

    def __init__(self, post: Post, label: Label, masked: Callable[[int], Received | None]) -> None:
        self._post, self._label, self._masked = post, label, masked
        self._quorum = post.agreement.quorum

    def confirm(self) -> Steps[None]:
        """Confirm one roster: the first party's, or that of the next one if it stays silent."""
        if self._post.own("confirm", self._label) is not None:
            return
        late = False
        while (roster := self._proposal()) is None:
            masked = {number: self._masked(number) for number in self._post.everybody}
            there = {number: one.digest for number, one in masked.items() if one is not None}
            missing = tuple(self._post.name_of(number) for number in masked if number not in there)
            if late or (not missing and self._post.number == 1):
                self._propose(there)
                continue
            self._post.refuse_other_sums(self._label, [one for one in masked if one not in there])
            late = yield Waiting(
                "masked sum", missing or (self._post.name_of(1),), self._post.number
            )
        if isinstance(roster, Roster):
            yield from self.complete(roster)
            self._send_confirmation(roster.digest)
        else:
            self._send_confirmation(_NONE)

    def mine(self) -> str:
        """Digest of what this party has confirmed."""
        confirmed = self._post.own("confirm", self._label)
        assert confirmed is not None
        return str(confirmed.content["roster"])

    def chosen(self) -> Steps[Roster]:
        """Wait until ``threshold`` parties have confirmed one roster, or cannot do so any more.

        Each party confirms once. So what is impossible here, with the confirmations that are there and any
        that may still come, is impossible at every party: none of them takes as lost what others open.
        """
        late = False
        while True:
            confirmed = {
                number: found.content["roster"]
                for number in self._post.everybody
                if (found := self._post.received("confirm", self._label, number)) is not None
            }
            missing = tuple(
                self._post.name_of(number)
                for number in self._post.everybody
                if number not in confirmed
            )
            counts = {one: list(confirmed.values()).count(one) for one in confirmed.values()}
            nothing = counts.pop(_NONE, 0)
            chosen = next(
                (one for one, count in counts.items() if count >= self._quorum.threshold), None
            )
            if chosen is not None and (roster := self._proposed(chosen)) is not None:
                return roster
            if (
                chosen is None
                and max(counts.values(), default=0) + len(missing) < self._quorum.threshold
            ):
                raise self._not_opened(
                    f"fewer than {self._quorum.fewest} parties took part in"
                    if nothing
                    else "parties confirmed different vectors of"
                )
            waiting = Waiting("confirmation", missing)
            if chosen is not None:  # and whoever proposed it has not come through yet
                waiting = Waiting("roster", self._without_roster())
            if late:
                raise still_waiting(waiting)
            late = yield waiting

    def complete(self, roster: Roster) -> Steps[None]:
        """Wait for every vector of a roster, and check that it is the one that is meant."""
        late = False
        while True:
            missing = []
            for number, expected in roster.masked.items():
                found = self._masked(number)
                if found is None:
                    missing.append(self._post.name_of(number))
                elif found.digest != expected:
                    raise self._post.refuse(
                        "masked",
                        self._label,
                        number,
                        "is another one than the roster says: ask which one is right",
                    )
            if not missing:
                return
            waiting = Waiting("vector of the roster", tuple(missing))
            if late:
                raise still_waiting(waiting)
            late = yield waiting

    def _send_confirmation(self, roster: str) -> None:
        self._post.send("confirm", self._label, {"roster": roster})

    def _propose(self, there: Mapping[int, str]) -> None:
        numbers = sorted(there)
        content = {
            "present": numbers,
            "digests": [there[number] for number in numbers],
            "opens": len(there) >= self._quorum.fewest,
        }
        self._post.send("roster", self._label, content)

    def _proposal(self) -> Roster | str | None:
        """Find the roster of the first party that has proposed one; None yet, or that nothing is opened."""
        for number in self._post.everybody:
            found = self._post.received("roster", self._label, number)
            if found is not None:
                roster = self._roster(number, found)
                return roster if found.content["opens"] else _NONE
        return None

    def _proposed(self, chosen: str) -> Roster | None:
        for number in self._post.everybody:
            found = self._post.received("roster", self._label, number)
            if found is not None and found.content["opens"]:
                roster = self._roster(number, found)
                if roster.digest == chosen:
                    return roster
        return None

    def _without_roster(self) -> tuple[str, ...]:
        return tuple(
            self._post.name_of(number)
            for number in self._post.everybody
            if self._post.received("roster", self._label, number) is None
        )

    def _roster(self, number: int, found: Received) -> Roster:
        present, digests = found.content["present"], found.content["digests"]
        right = (
            len(present) == len(digests)
            and all(type(one) is int and one in self._post.everybody for one in present)
            and present == sorted(set(present))
            and all(isinstance(one, str) for one in digests)
        )
        if not right or (found.content["opens"] and len(present) < self._quorum.fewest):
            raise self._post.refuse(
                "roster",
                self._label,
                number,
                f"is no list of at least {self._quorum.fewest} parties: nothing is opened",
            )
        return Roster(dict(zip(present, digests, strict=True)))

    def _not_opened(self, why: str) -> SumNotOpenedError:
        return SumNotOpenedError(
            f"{why} sum {self._label.query} ({self._label.purpose}): nothing was opened, and what was "
            "charged stays charged"
        )
