"""Noisy sums over several parties, for every method that draws through a noisy sum."""

from __future__ import annotations

import numpy as np

from collegium.checks import check_whole
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise
from collegium.noise.sums import Integers, LocalSum, Noise, integer
from collegium.parties.mailbox import Mailbox
from collegium.parties.members import Agreement, IdentityKey
from collegium.parties.messages import Label, Post
from collegium.parties.noise_shares import share_of
from collegium.parties.quorum import Quorum
from collegium.parties.session import Session, begin
from collegium.parties.summing import Opened, Summing
from collegium.parties.waiting import Patience, Steps, SumNotOpenedError

_MOST_QUERY = 999_999
_MOST_SIZE = 2**27
_ENDED = b"nothing was opened\n"


class NoiseOfParties:
    """What is known of the noise in a sum of parties before anything is drawn.

    ``quorum``: of the parties.
    ``source``: where this party's share of the noise comes from.
    """

    def __init__(self, quorum: Quorum, source: LocalSum) -> None:
        self._quorum, self._source = quorum, source
        self.present: tuple[int, ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether a privacy guarantee may be stated: as this party's share of the noise allows."""
        return self._source.is_private

    @property
    def description(self) -> str:
        """Where it comes from, in words: an answer prints it, statements say so of their arrangement."""
        return (
            f"noise in shares of {self._quorum.parties} parties, enough for {self._quorum.drop_outs} that "
            f"stay away and {self._quorum.colluders} that collude; of each: {self._source.description}"
        )

    @property
    def excess(self) -> float:
        """How much larger the noise in a sum is than what was asked for: at most, or in the last sum.

        As a multiple of the standard deviation: error bars are that much wider. The account is not smaller:
        colluders can subtract the difference.
        """
        return self._quorum.excess(len(self.present) or self._quorum.parties)


class PartySum(NoiseOfParties):
    """A sum with terms at several parties: one party's part in it.

    A :class:`~collegium.noise.sums.NoisySum`: every party runs the same method with the same public plan on
    its own rows, and all of them get the same sum, over all parties that took part, with Gaussian noise in
    it of at least the size that was asked for. Nobody sees anything else of another party's rows
    (``docs/parties.md``: who sees what, and what is not proved).

    Parameters
    ----------
    agreement : Agreement
        Plan, parties and quorum; the same for all.
    key : IdentityKey
        This party's.
    mailbox : Mailbox
        Where the parties leave files for one another.
    memory : Mailbox
        Where this party keeps what it has posted, and the secrets of the session; it survives a crash, and
        belongs to one agreement. In a folder: :class:`~collegium.parties.mailbox.FolderMemory`.
    source : LocalSum, default SecureNoise()
        Where this party's share of the noise comes from.
    patience : Patience, default Patience()
    attempts : int, optional
        After so many attempts at one sum no other is made: SumNotOpenedError again. For whoever does not
        remember whether a call that was cut off had failed.

    Attributes
    ----------
    about : str
        What the sums of a method are about, added to their purpose: parties that ask about different things
        then sum nothing.
    present : tuple of int
        Whose vectors are in the last sum, by number from 1; empty before.

    Raises
    ------
    InputError
        If the key is not listed, or the package cryptography is missing.

    Examples
    --------
    Three parties, each in a thread of its own:

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from collegium.parties.mailbox import MemoryMailbox
    >>> from collegium.parties.quorum import Quorum
    >>> keys = [IdentityKey.fresh() for _ in range(3)]
    >>> members = [key.member(f"Hospital {name}") for key, name in zip(keys, "ABC")]
    >>> agreement, mailbox = Agreement(b"how many are ill?", members, Quorum(3)), MemoryMailbox()
    >>> def party(key, count):
    ...     patience = Patience(poll_s=0.001)
    ...     noisy = PartySum(agreement, key, mailbox, MemoryMailbox(), patience=patience)
    ...     return noisy.noised(np.array([count]), Noise("gaussian", 40.0), query=0, purpose="count").tolist()
    >>> with ThreadPoolExecutor() as pool:
    ...     sums = list(pool.map(party, keys, [1000, 2000, 3000]))
    >>> sums[0] == sums[1] == sums[2], abs(sums[0][0] - 6000) < 500
    (True, True)
    """

    def __init__(
        self,
        agreement: Agreement,
        key: IdentityKey,
        mailbox: Mailbox,
        memory: Mailbox,
        *,
        source: LocalSum | None = None,
        patience: Patience | None = None,
        attempts: int | None = None,
    ) -> None:
        super().__init__(agreement.quorum, source or SecureNoise())
        self._post = Post(agreement, key, mailbox, memory)
        self._attempts, self._patience = attempts, patience or Patience()
        self._session: Session | None = None
        self._last: Summing | None = None
        self._done: set[tuple[int, str]] = set()
        self.about = ""

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        """Add this party's numbers to the others', with noise: see :meth:`NoisySum.noised`.

        A call that was cut off, by StillWaitingError, Ctrl-C or a crash, is made again with the same name,
        and goes on: what this party has posted for it counts, whatever is given now. After SumNotOpenedError
        the next call of that name is a new attempt, with fresh noise, that has to be charged again.

        Parameters
        ----------
        sensitive_sum : ndarray of int64, any shape
            What this party adds, in grid steps; over all parties below ``MOST_TOTAL`` in magnitude.
        noise : Noise
            Gaussian. Each party adds a share of it, of at least 8 grid steps.
        query, purpose : int, str
            Name this sum, the same for all parties; used once.

        Returns
        -------
        ndarray of int64, of the same shape
            In grid steps: the same at every party.

        Raises
        ------
        InputError
            If the noise has no shares, or a file of another party cannot be used; nothing is opened, and the
            call can be made again.
        SumNotOpenedError
            If too few took part. It counts as drawn.
        StillWaitingError
            If the others have not posted what is needed in time.
        """
        opened = self._patience.drive(
            self.steps(sensitive_sum, noise, query=query, purpose=purpose)
        )
        return opened.total

    def steps(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Steps[Opened]:
        """Take part in a sum, for whoever drives several parties in one process; see :meth:`noised`."""
        name = self._checked_name(query, purpose)
        share = share_of(noise, self._quorum)
        _check_integers(sensitive_sum)
        if name in self._done:
            raise InputError(
                f"sum {query} ({purpose}) was opened already: each sum has a name of its own"
            )
        if self._session is None:
            self._session = yield from begin(self._post)
        if self._last is not None:
            self._last.compare()
        self._post.forget()
        label = self._label(self._session.name, *name)
        if self._attempts is not None and label.attempt > self._attempts:
            raise SumNotOpenedError(
                f"sum {query} ({name[1]}) was not opened, and is not tried again: it stays charged"
            )
        summing = Summing(self._session, label, sensitive_sum.shape, noise)

        def own() -> Integers:
            return self._source.noised(sensitive_sum, share, query=name[0], purpose=name[1])

        try:
            opened = yield from summing.steps(own)
        except SumNotOpenedError:
            self._post.memory.post(_ended(label), _ENDED)
            raise
        self._last, self.present = summing, opened.present
        self._done.add(name)
        return opened

    def _label(self, session: str, query: int, purpose: str) -> Label:
        label = Label(session, query, purpose, attempt=1)
        while self._post.memory.read(_ended(label), len(_ENDED)) is not None:
            label = Label(session, query, purpose, label.attempt + 1)
        return label

    def _checked_name(self, query: int, purpose: str) -> tuple[int, str]:
        number = integer("query", query)
        check_whole("query", number, least=0, most=_MOST_QUERY)
        if not isinstance(purpose, str) or not purpose.isprintable():
            raise InputError(f"purpose = {purpose!r} is no line of text; say what the sum is for")
        return number, f"{purpose} of {self.about}" if self.about else purpose


def _ended(label: Label) -> str:
    return f"{label.folder}/ended.json"


def _check_integers(sensitive_sum: Integers) -> None:
    if not isinstance(sensitive_sum, np.ndarray) or sensitive_sum.dtype != np.int64:
        raise InputError(
            "a sum of parties takes arrays of whole numbers of type int64: round to grid steps first"
        )
    if not 0 < sensitive_sum.size <= _MOST_SIZE:
        raise InputError(
            f"a vector of {sensitive_sum.size:,} numbers cannot be summed: from 1 to {_MOST_SIZE:,}"
        )
