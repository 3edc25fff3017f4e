"""What a desk keeps beside its ledger, and what it does with both."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from collegium.desk.doorkeeper import Doorkeeper
from collegium.desk.links import Links
from collegium.durable import private_folder
from collegium.errors import InputError
from collegium.ledger.ledger import Ledger
from collegium.report.languages import Language
from collegium.report.own_page import OwnPage, version_of
from collegium.report.policy_page import explain
from collegium.report.receipt import NOT_USED, receipt_of
from collegium.study.policy_file import StatedPolicy

_LINKS, _SECRETS, _LOCK = "links.sqlite", "secrets.json", "desk.lock"


class Books:
    """A ledger, the levels that people may choose, and the desk's own files.

    Parameters
    ----------
    ledger : Ledger
    stated : StatedPolicy
        The levels, as a file states them.
    folder : Path
        Of the desk's files; made, for its owner's eyes only.

    Attributes
    ----------
    new_secrets : dict
        Of steward and reader, if they were made now: told once.

    Raises
    ------
    InputError
        If another desk has the folder, or the policy promises something else than the ledger does.
    """

    def __init__(self, ledger: Ledger, stated: StatedPolicy, folder: Path) -> None:
        promise = ledger.lifetime.promise
        if stated.promise not in (None, promise):
            raise InputError(
                f"the levels are those of a study whose ledger promises {stated.promise}, and this one "
                f"promises {promise}: give the levels of this ledger"
            )
        self.ledger, self.stated = ledger, stated
        private_folder(folder)
        self._lock = FileLock(folder / _LOCK, timeout=0, mode=0o600)
        try:
            self._lock.acquire()
        except Timeout:
            raise InputError(
                f"another desk uses {folder}: end it, or give this one a --folder of its own"
            ) from None
        secrets = folder / _SECRETS
        self._one_at_a_time = threading.Lock()
        self.new_secrets = {} if secrets.exists() else Doorkeeper.make(secrets)
        self.doorkeeper, self.links = Doorkeeper(secrets), Links(folder / _LINKS)

    def close(self) -> None:
        """Let another desk use the folder."""
        self._lock.release()

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels that people may choose."""
        return tuple(self.stated.policy.levels)

    def own_page(
        self, name: str, language: Language, told: str = "", leaving: bool = False
    ) -> OwnPage:
        """Make a person's own page."""
        account = self.ledger.account_of(name)
        policy, promise = self.stated.policy, self.ledger.lifetime.promise
        receipt = receipt_of(name, account, self.ledger.neighbours, language)
        if account is None:  # whoever sent the link knows how the name is spelt
            receipt = replace(receipt, heading=language.say(NOT_USED))
        return OwnPage(
            receipt,
            self.levels,
            explain(policy, self.stated.arrangement, promise, language),
            account,
            told,
            leaving,
        )

    def choose(self, name: str, level: str, version: str) -> bool:
        """Enter a person's choice; False if they left, or their account has changed since they saw it."""
        with self._one_at_a_time:
            account = self.ledger.account_of(name)
            if version != version_of(account) or (account and account.standing.has_left):
                return False
            self.ledger.change(self.stated.policy.assign([level], owners=[name]))
            return True

    def leave(self, name: str, version: str) -> bool:
        """Enter that a person leaves; False if their account has changed since they saw it."""
        with self._one_at_a_time:
            if version != version_of(self.ledger.account_of(name)):
                return False
            return self.ledger.forget(name)

    def make_links(self, names: Sequence[str], days: int) -> list[str]:
        """Make a link for each of some people; who had one has another now."""
        persons = [(name, self.ledger.pseudonym(name)) for name in names]
        return self.links.make(persons, days)

    def revoke(self, names: Sequence[str]) -> int:
        """End the links of some people."""
        return self.links.revoke([self.ledger.pseudonym(name) for name in names])
