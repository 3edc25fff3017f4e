"""What a mechanism gives back: a value that may be shown, and the event that says what it cost whom."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from collegium.accounting.accountant import Accountant
from collegium.accounting.events import Event

Value = TypeVar("Value")


class Released(NamedTuple, Generic[Value]):
    """A released value beside its event.

    Attributes
    ----------
    value
        What was drawn. It may be shown to anybody.
    event : Event
        What was noised, how much, and how far one owner of each cohort moves it; charge it to an account, or
        give the account to the mechanism, which then charges it before it draws.
    """

    value: Value
    event: Event


def charge(account: Accountant | None, event: Event) -> None:
    """Charge an account, if there is one: what it refuses is not drawn."""
    if account is not None:
        account.charge(event)
