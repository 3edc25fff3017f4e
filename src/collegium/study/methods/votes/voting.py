"""What is planned of questions to teachers, whoever trained them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collegium.accounting.neighbours import Arrangement
from collegium.ledger.limits import Cost
from collegium.pate.ledgered import LedgeredRun
from collegium.pate.pipeline import Released
from collegium.study.folder import StudyFolder
from collegium.study.methods.protocol import AgreedTerms, Draws, Plan
from collegium.study.methods.votes.terms import JobTerms


class VotingPlan(Plan[LedgeredRun, Released]):
    """Questions to teachers, planned.

    ``agreed``: the public terms, from public numbers alone; their price is that with which it was begun.
    """

    def __init__(self, agreed: JobTerms) -> None:
        self.agreed = agreed

    @property
    def arrangement(self) -> Arrangement:
        """As it was agreed."""
        return self.agreed.arrangement

    def at_most(self, spending: LedgeredRun, folder: StudyFolder) -> list[Cost]:
        """What all questions may cost."""
        return spending.at_most()

    def spent(self, drawn: Released) -> tuple[Any, ...]:
        """What was released, and about which neighbours."""
        return drawn, self.agreed.neighbours

    def terms(self) -> AgreedTerms:
        """Who is asked, how votes are counted, and what an answer costs."""
        return AgreedTerms(self.agreed.to_json(), "other terms", "nothing was asked")


class VotingDraws(Draws[Released]):
    """Votes are there, and nobody was asked. **Sensitive.**

    ``ask``: asks, or reads again what was answered.
    """

    def __init__(self, folder: StudyFolder, ask: Callable[[], Released]) -> None:
        self._folder, self._ask = folder, ask

    @property
    def is_all_charged(self) -> bool:
        """Whether voting has ended."""
        return self._folder.voting_has_ended()

    def end(self) -> None:
        """Do nothing: that was kept when voting ended."""

    def draw(self) -> Released:
        """Ask, or read again what was answered."""
        return self._ask()
