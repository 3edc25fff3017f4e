"""One sum: masked vectors, a roster of those that count, shares of seeds, the opened sum.

``docs/parties.md`` says what each round is for, and proves what it protects. Two rules carry it: a party
confirms one roster for each attempt at a sum, and reveals shares for a roster only when ``threshold`` parties
have confirmed that very one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from collegium.errors import InputError
from collegium.noise.sums import MOST_TOTAL, Integers, Noise
from collegium.parties.ciphers import Words
from collegium.parties.messages import Label, Received, as_text, from_text
from collegium.parties.rosters import Roster, Rosters
from collegium.parties.secret_sharing import SHARE_BYTES, from_shares
from collegium.parties.session import Masking, Session, add_mask, commitment, share_in
from collegium.parties.waiting import Steps, Waiting, still_waiting


@dataclass(frozen=True)
class Opened:
    """A sum as all parties get it.

    ``total``: with all the noise, in grid steps.
    ``present``: whose vectors are in it, by number from 1.
    """

    total: Integers
    present: tuple[int, ...]


class Summing:
    """One party's part in one attempt at one sum.

    ``label``: which; ``shape`` and ``noise`` are public, and the same for all parties.
    """

    def __init__(
        self, session: Session, label: Label, shape: tuple[int, ...], noise: Noise
    ) -> None:
        self._session, self._post, self._label = session, session.post, label
        self._quorum = session.post.agreement.quorum
        self._shape, self._noise = shape, noise
        self._size = int(np.prod(shape, dtype=np.int64))

    def steps(self, own: Callable[[], Integers]) -> Steps[Opened]:
        """Go through all rounds.

        ``own``: what this party adds, with its share of noise; called once in the life of a sum.
        Raises SumNotOpenedError, StillWaitingError, and InputError where a file cannot be used.
        """
        self._post_masked(own)
        rosters = Rosters(self._post, self._label, self._masked)
        yield from rosters.confirm()
        roster = yield from rosters.chosen()
        yield from rosters.complete(roster)
        if rosters.mine() == roster.digest:
            self._reveal(roster)
        total = self._unmasked(roster, (yield from self._helpers(roster)))
        self._publish_digest(roster, total)
        self.compare()
        return Opened(total.reshape(self._shape), tuple(sorted(roster.masked)))

    # Masked vectors

    def _post_masked(self, own: Callable[[], Integers]) -> None:
        public = {"shape": list(self._shape), "noise": self._noise.scale.hex()}
        posted = self._post.own("masked", self._label, self._size)
        if posted is not None:
            self._check_public(self._post.number, posted)
            return
        masking = Masking.fresh(self._session, self._label)
        hidden = masking.hidden(own().reshape(-1).view(np.uint64))
        content = {
            **public,
            "sum": as_text(hidden.astype("<u8").tobytes()),
            "commitments": masking.commitments(self._label),
            "shares": masking.shared(self._session, self._label),
        }
        self._post.send("masked", self._label, content, self._size)

    def _masked(self, number: int) -> Received | None:
        found = self._post.received("masked", self._label, number, self._size)
        if found is not None:
            self._check_public(number, found)
        return found

    def _check_public(self, number: int, masked: Received) -> None:
        content, parties = masked.content, self._quorum.parties
        if content["shape"] != list(self._shape) or content["noise"] != self._noise.scale.hex():
            raise self._refuse(
                "masked",
                number,
                "sums something else, or with other noise: all parties need the same plan",
            )
        for part, length in (("commitments", parties), ("shares", parties)):
            if len(content[part]) != length:
                raise self._refuse(
                    "masked", number, f"holds {len(content[part])} {part}, not {length}"
                )
        self._vector(number, masked)

    def _vector(self, number: int, masked: Received) -> Words:
        try:
            content = from_text(masked.content["sum"])
        except ValueError:
            content = b""
        if len(content) != 8 * self._size:
            raise self._refuse(
                "masked",
                number,
                f"is no vector of {self._size:,} numbers: ask which plan its party has",
            )
        return np.frombuffer(content, dtype="<u8").astype(np.uint64)

    # Shares of seeds

    def _reveal(self, roster: Roster) -> None:
        """Post shares of the own seeds of those that count, and of their pairs with those that do not."""
        if self._post.own("unmask", self._label) is not None:
            return
        shares = {number: self._shares_of(number) for number in roster.masked}
        content = {
            "roster": roster.digest,
            "seeds": {str(number): share_in(shares[number], number).hex() for number in shares},
            "pairs": {
                f"{here}-{away}": share_in(shares[here], away).hex()
                for here, away in roster.half_there(self._post.everybody)
            },
        }
        self._post.send("unmask", self._label, content)

    def _shares_of(self, dealer: int) -> bytes:
        masked = self._masked(dealer)
        assert masked is not None
        content = self._session.unseal(
            self._label, dealer, masked.content["shares"][self._post.number - 1]
        )
        if content is None or len(content) != SHARE_BYTES * self._quorum.parties:
            raise self._refuse(
                "masked", dealer, "holds no shares for this party: ask which version it runs"
            )
        return content

    def _helpers(self, roster: Roster) -> Steps[Mapping[int, Received]]:
        late = False
        while True:
            helpers, missing = {}, []
            for number in self._post.everybody:
                found = self._post.received("unmask", self._label, number)
                if found is not None and found.content["roster"] == roster.digest:
                    helpers[number] = found
                else:
                    missing.append(self._post.name_of(number))
            if len(helpers) >= self._quorum.threshold:
                return dict(list(helpers.items())[: self._quorum.threshold])
            waiting = Waiting("shares of seeds", tuple(missing))
            if late:
                raise still_waiting(waiting)
            late = yield waiting

    # The opened sum

    def _unmasked(self, roster: Roster, helpers: Mapping[int, Received]) -> Integers:
        total = np.zeros(self._size, dtype=np.uint64)
        for number in roster.masked:
            masked = self._masked(number)
            assert masked is not None
            np.add(total, self._vector(number, masked), out=total)
            seed = self._seed(helpers, "seeds", str(number), number, number)
            add_mask(total, seed, number, number, removed=True)
        for here, away in roster.half_there(self._post.everybody):
            seed = self._seed(helpers, "pairs", f"{here}-{away}", here, away)
            add_mask(total, seed, here, away, removed=True)
        signed = total.view(np.int64)
        most = MOST_TOTAL + 2**53 * self._quorum.parties
        if ((signed > most) | (signed < -most)).any():
            raise InputError(
                f"sum {self._label.query} ({self._label.purpose}) is beyond what the plan allows: a party "
                f"added "
                "numbers out of range"
            )
        return signed

    def _seed(
        self, helpers: Mapping[int, Received], part: str, key: str, dealer: int, other: int
    ) -> bytes:
        """Put a seed together; its commitment says whether it is the one that its dealer used."""
        shares = {}
        for number, found in helpers.items():
            try:
                share = bytes.fromhex(found.content[part][key])
            except (KeyError, TypeError, ValueError):
                share = b""
            if len(share) != SHARE_BYTES:
                raise self._refuse(
                    "unmask", number, f"lacks a share for {self._post.name_of(dealer)}"
                )
            shares[number] = share
        seed = from_shares(shares)
        masked = self._masked(dealer)
        assert masked is not None
        expected = masked.content["commitments"][other - 1]
        if seed is None or commitment(self._label, dealer, other, seed) != expected:
            helping = ", ".join(self._post.name_of(number) for number in helpers)
            raise InputError(
                f"shares of {self._post.name_of(dealer)}'s seeds do not fit together: it dealt false ones, "
                f"or "
                f"one of {helping} posted one"
            )
        return seed

    def _publish_digest(self, roster: Roster, total: Integers) -> None:
        mine = hashlib.sha256(total.astype("<i8").tobytes()).hexdigest()
        if self._post.own("opened", self._label) is None:
            self._post.send("opened", self._label, {"roster": roster.digest, "sum": mine})

    def compare(self) -> None:
        """Compare the opened sum with that of every party whose digest is there: they are the same bits."""
        mine = self._post.own("opened", self._label)
        for number in self._post.everybody:
            found = self._post.received("opened", self._label, number)
            if mine and found and found.content != {**mine.content, "sender": number}:
                raise self._refuse(
                    "opened", number, "says that it got another sum: compare the files"
                )

    def _refuse(self, what: str, number: int, why: str) -> InputError:
        return self._post.refuse(what, self._label, number, why)
