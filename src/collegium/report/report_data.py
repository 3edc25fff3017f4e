"""What a report shows: only what may be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collegium.accounting.statement import PrivacyStatement
from collegium.pate.effects import Effects
from collegium.pate.quality import Quality
from collegium.pate.voting.history import SpendingPoint
from collegium.personalisation.plan import Plan


@dataclass(frozen=True)
class ReportData:
    """All numbers and words of a report. Nothing in it depends on votes except through noise.

    ``privacy``: what was promised and (worst-case only) spent.
    ``plan``: teachers, duplicates, weights and frequencies of each group.
    ``aggregator``: ``name`` and parameters, as configured.
    ``scale``: total vote weight / nominal number of teachers: parameters were multiplied by it (by
        its average, where teachers vanish).
    ``stop_reason``: "budget", "queries", "labels" or "interrupted".
    ``n_public``, ``n_asked``, ``n_answered``, ``n_reinforced``, ``n_lost``: public records; queries
        asked; answered by the teachers; taken from a confident student; charged but lost in a
        crash.
    ``effects``: what became of each class and group.
    ``history``: empty under a data-dependent guarantee.
    ``label_accuracy``: against public truth, where it is known.
    ``quality``: the student beside one that always gives one answer; None where there is no student.
    ``n_test``: public test records.
    ``student_notes``: what the user should know about how the student was trained.
    ``settings``: further public settings, in the order in which they are shown.
    """

    title: str
    privacy: PrivacyStatement
    plan: Plan
    aggregator: Mapping[str, str | float]
    scale: float
    stop_reason: str
    n_public: int
    n_asked: int
    n_answered: int
    n_reinforced: int
    n_lost: int
    effects: Effects
    history: Sequence[SpendingPoint]
    teacher: str
    student: str
    label_accuracy: float | None
    n_test: int
    settings: Mapping[str, str]
    versions: Mapping[str, str]
    quality: Quality | None
    student_notes: Sequence[str] = ()

    @property
    def class_names(self) -> list[str]:
        """The public class list."""
        return [row.name for row in self.effects.classes]

    @property
    def labels_per_class(self) -> list[int]:
        """Released labels of each class."""
        return [row.labels for row in self.effects.classes]
