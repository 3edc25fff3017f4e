"""A session of questions whose charges are durable before noise is drawn, and that can be taken up again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Event
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.promises import Promise
from collegium.statistics.answer_words import in_digits
from collegium.statistics.answers import Answer
from collegium.statistics.ledgered import StatisticsSpending
from collegium.statistics.query import Query
from collegium.statistics.session import Statistics
from collegium.study.parties import ALONE, Alone

_MOST_SAID = 8


class KeptSession(Statistics):
    """A session that can be taken up again: what was charged is charged, and no more is drawn for it.

    ``kept_in``: what the ledger promises that remembers what it spends; without one, either.
    ``spending``: what it may use there, which another one takes care of.
    ``parties``: that answer together; their people are among ``budgets``.
    ``settings``: of :class:`~collegium.statistics.session.Statistics`.
    """

    _charges_at_most = True  # so that what an interrupted study paid is known without its answers

    def __init__(
        self,
        frame: Any,
        budgets: Any,
        *,
        kept_in: Promise,
        spending: StatisticsSpending | None = None,
        parties: Alone = ALONE,
        **settings: Any,
    ) -> None:
        self._kept_in, self._with = kept_in, parties
        self._before_noise: Callable[[], None] = _uncharged
        super().__init__(frame, budgets, **settings)
        if spending is not None:
            self._remember(spending)
        self._noise = parties.noise(self._local)

    @property
    def _arrangement(self) -> Arrangement:
        return self._with.arranged(super()._arrangement)

    @property
    def arrangement(self) -> Arrangement:
        """What was done with people and rows."""
        return self._arrangement

    @property
    def account(self) -> GaussianAccountant:
        """What everybody has paid."""
        return self._account

    @property
    def charged(self) -> list[Event]:
        """What was charged, question by question."""
        return self._charged

    def at_most(self) -> dict[str, float]:
        """What all answers may cost: Σμ², or Σε, of each group."""
        return dict(zip(self._table.groups, self._most().tolist(), strict=True))

    def events_of(self, asked: Query, how: Mapping[str, Any]) -> list[Event]:
        """What a question costs, by public numbers alone."""
        _, share, question = self._how(asked, how)
        return self._events(question, min(share, 1.0))

    def charge_again(self, asked: Query, how: Mapping[str, Any]) -> None:
        """Charge what was charged before an interruption; nothing is read or drawn."""
        _, share, question = self._how(asked, how)
        share = min(share, self._left)
        super()._charge(self._events(question, share), share)
        self._queries += 1

    def ask_durably(
        self, asked: Query, how: Mapping[str, Any], before_noise: Callable[[], None]
    ) -> dict[str, Any]:
        """Ask a question. ``before_noise`` makes its charge durable."""
        self._before_noise = before_noise
        answer = self._answer(asked, how)
        return {**answer.to_dict(), **_by_group(answer), "text": str(answer)}

    def _ask_about(self, question: str) -> None:
        self._with.ask_about(question)

    def _charge(self, events: Sequence[Event], share: float) -> Event:
        event = super()._charge(events, share)
        self._before_noise()
        return event


def _uncharged() -> None:
    raise RuntimeError("a question was asked whose charge nothing keeps")


def _by_group(answer: Answer) -> dict[str, Any]:
    """What each group says by itself, of a calibrated answer that is one value."""
    if answer.groups is None:
        return {}
    rows: list[dict[str, Any]] = answer.groups.reset_index().to_dict("records")
    p_same = float(answer.groups.attrs["p_same"])
    said = [
        f"{row['group']} {row['per_person']:.{digits}f}, standard error {row['standard_error']:.{digits}f}"
        for row in rows[:_MOST_SAID]
        for digits in [in_digits(row["standard_error"], row["per_person"])]
    ]
    more = "; …" if len(rows) > len(said) else ""
    note = (
        f"per person, each group by itself: {'; '.join(said)}{more}; if all were the same, they would differ "
        f"as much with probability {p_same:.2g}"
    )
    return {"groups": rows, "p_same": p_same, "notes": [*answer.notes, note]}
