"""What a desk keeps beside its ledger, and what it does with both."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from collegium.budgets import Policy
from collegium.checks import listed, shown
from collegium.desk.doorkeeper import Doorkeeper
from collegium.desk.links import Links
from collegium.desk.questions import Questions
from collegium.desk.studies import Studies
from collegium.desk.tables import Tables
from collegium.durable import private_folder, write_durably
from collegium.errors import InputError
from collegium.ledger.ledger import Ledger
from collegium.ledger.places import VARIABLE
from collegium.report.languages import Language
from collegium.report.own_page import OwnPage, version_of
from collegium.report.policy_page import Explanation, explain
from collegium.report.receipt import NOT_USED, receipt_of
from collegium.study.policy_file import StatedPolicy, read_policy
from collegium.toml_files import toml_text

_LINKS, _SECRETS, _LOCK, _LEVELS = "links.sqlite", "secrets.json", "desk.lock", "levels.toml"
_LARGEST_DELTA = 0.001


class Books:
    """A ledger, the levels that people may choose, and the desk's own files.

    Parameters
    ----------
    ledger : Ledger
    levels : Path or None
        A file that states the levels; None: the steward sets them at the desk.
    folder : Path
        Of the desk's files; made, for its owner's eyes only.
    key : Path or None
        Of the ledger's key file, where it is not beside the ledger.

    Attributes
    ----------
    new_secrets : dict
        Of steward and reader, if they were made now: told once.
    incoming : Path
        Folder for what is being sent.
    tables : Tables
    studies : Studies
    questions : Questions

    Raises
    ------
    InputError
        If another desk has the folder, or the policy promises something else than the ledger does.
    """

    def __init__(
        self, ledger: Ledger, levels: Path | None, folder: Path, key: Path | None = None
    ) -> None:
        folder = folder.resolve()
        self.ledger, self._is_given = ledger, levels is not None
        self.levels_file = (folder / _LEVELS) if levels is None else levels.resolve()
        self.stated: StatedPolicy | None = None
        if levels is not None:
            self.stated = self._read(self.levels_file)
        private_folder(folder)
        self._lock = FileLock(folder / _LOCK, timeout=0, mode=0o600)
        try:
            self._lock.acquire()
        except Timeout:
            raise InputError(
                f"another desk uses {folder}: end it, or give this one a --folder of its own"
            ) from None
        if levels is None and self.levels_file.exists():
            self.stated = self._read(self.levels_file)
        secrets = folder / _SECRETS
        self._one_at_a_time = threading.Lock()
        self.new_secrets = {} if secrets.exists() else Doorkeeper.make(secrets)
        self.doorkeeper, self.links = Doorkeeper(secrets), Links(folder / _LINKS)
        place = str(ledger)
        environment = {VARIABLE: place if "://" in place else str(Path(place).resolve())}
        self.incoming = folder / "incoming"
        private_folder(self.incoming)
        self.tables = Tables(folder)
        self.studies = Studies(folder, environment, key)
        self.questions = Questions(folder, environment, key, self.tables, ledger)

    def _read(self, file: Path) -> StatedPolicy:
        stated, promise = read_policy(file), self.ledger.lifetime.promise
        if stated.promise not in (None, promise):
            raise InputError(
                f"the levels are those of a study whose ledger promises {stated.promise}, and this one "
                f"promises {promise}: give the levels of this ledger"
            )
        return stated

    def close(self) -> None:
        """Let another desk use the folder."""
        self._lock.release()

    @property
    def policy(self) -> Policy:
        """The levels that people may choose. Raises InputError if there are none yet."""
        if self.stated is None:
            raise InputError("there are no levels yet: set them first, on the page of levels")
        return self.stated.policy

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels that people may choose."""
        return () if self.stated is None else tuple(self.stated.policy.levels)

    @property
    def may_set_levels(self) -> bool:
        """Whether levels are set at the desk: no file was given that states them."""
        return not self._is_given

    def set_levels(self, levels: Mapping[str, float], delta: float) -> None:
        """Set the levels that people may choose.

        What a level means stays as it is, once people may have chosen it: then levels are only added.
        """
        if self._is_given:
            raise InputError(f"the levels stand in {self.levels_file.name}: change them there")
        odd = [name for name in levels if set(name) & set(",=") or not name.isprintable()]
        if odd:
            raise InputError(
                f"{shown(odd[0])} cannot be a level: leave commas and = out of its name"
            )
        if len({name.casefold() for name in levels}) < len(levels):
            raise InputError(
                "two levels differ in capital letters alone: give each a name of its own"
            )
        if not 0 < delta <= _LARGEST_DELTA:
            raise InputError(
                f"δ must be above 0 and at most {_LARGEST_DELTA}, well below 1 / number of people"
            )
        given = Policy(levels, delta)
        if outside := [*given.outside, *(n for n, one in given.levels.items() if one.is_unlimited)]:
            raise InputError(
                f"the ε of {listed(outside)} must be a number above 0: whoever grants nothing needs no level"
            )
        with self._one_at_a_time:
            if self.stated is not None and self.ledger.standings():
                changed = [
                    name
                    for name, budget in self.policy.levels.items()
                    if given.levels.get(name) != budget
                ]
                if changed:
                    raise InputError(
                        f"people may have chosen {listed(changed)}, so what it means stays as it is: add a "
                        "level of another name"
                    )
            text = f"delta = {toml_text(delta)}\nlevels = {toml_text(dict(levels))}\n"
            write_durably(self.levels_file, text.encode(), private=True)
            self.stated = self._read(self.levels_file)

    def explained(self, language: Language) -> Explanation:
        """Explain the levels in the words of a consent form. Raises InputError if there are none yet."""
        policy, promise = self.policy, self.ledger.lifetime.promise
        assert self.stated is not None
        return explain(policy, self.stated.arrangement, promise, language)

    def own_page(
        self, name: str, language: Language, told: str = "", leaving: bool = False
    ) -> OwnPage:
        """Make a person's own page."""
        account = self.ledger.account_of(name)
        receipt = receipt_of(name, account, self.ledger.neighbours, language)
        if account is None:  # whoever sent the link knows how the name is spelt
            receipt = replace(receipt, heading=language.say(NOT_USED))
        return OwnPage(receipt, self.levels, self.explained(language), account, told, leaving)

    def choose(self, name: str, level: str, version: str) -> bool:
        """Enter a person's choice; False if they left, or their account has changed since they saw it."""
        with self._one_at_a_time:
            account = self.ledger.account_of(name)
            if version != version_of(account) or (account and account.standing.has_left):
                return False
            self.ledger.change(self.policy.assign([level], owners=[name]))
            return True

    def leave(self, name: str, version: str) -> bool:
        """Enter that a person leaves; False if their account has changed since they saw it."""
        with self._one_at_a_time:
            if version != version_of(self.ledger.account_of(name)):
                return False
            return self.ledger.forget(name)

    def levels_to_enter(self, names: Sequence[str], levels: Sequence[str]) -> dict[str, int]:
        """Count who would join with which level, as :meth:`enter_levels` would enter them."""
        new = self._new_people(names, levels)
        return {level: sum(one == level for one in new.values()) for level in self.levels}

    def enter_levels(self, names: Sequence[str], levels: Sequence[str]) -> tuple[int, int]:
        """Enter the levels of people who have not chosen yet; whoever has chosen, or left, stays as they are.

        ``names``, ``levels``: one of each for every row; the rows of one person agree.
        Returns: how many people joined, and how many were there before.
        """
        with self._one_at_a_time:
            new = self._new_people(names, levels)
            if new:
                self.ledger.change(self.policy.assign([*new.values()], owners=[*new]))
        return len(new), len(set(names)) - len(new)

    def _new_people(self, names: Sequence[str], levels: Sequence[str]) -> dict[str, str]:
        """Find the level of each person whom the ledger does not know.

        Raises RecordError if a level is unknown, or a person has two.
        """
        self.policy.assign(list(levels), owners=list(names))
        level_of = dict(zip(names, levels, strict=True))
        accounts = self.ledger.accounts_of(list(level_of))
        known = zip(level_of.items(), accounts, strict=True)
        return {name: level for (name, level), account in known if account is None}

    def make_links(self, names: Sequence[str], days: int) -> list[str]:
        """Make a link for each of some people; who had one has another now.

        Raises InputError if there are no levels to choose from yet.
        """
        if not self.policy.levels:
            raise InputError("no level has a budget, so there is nothing to choose")
        persons = [(name, self.ledger.pseudonym(name)) for name in names]
        return self.links.make(persons, days)

    def with_links(self, names: Sequence[str]) -> int:
        """Count those of some people who have a link that opens their page."""
        return self.links.good([self.ledger.pseudonym(name) for name in names])

    def come_back(self, name: str, level: str) -> None:
        """Enter that somebody who left is back, with all that was spent before."""
        with self._one_at_a_time:
            account = self.ledger.account_of(name)
            if account is None or not account.standing.has_left:
                raise InputError(
                    "nobody of this name has left, so nothing was changed: check that it is spelt as in the "
                    "records"
                )
            back = self.policy.assign([level], owners=[name])
            self.ledger.change(back, come_back=True)

    def revoke(self, names: Sequence[str]) -> int:
        """End the links of some people."""
        return self.links.revoke([self.ledger.pseudonym(name) for name in names])
