"""What a report shows: only what may be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collegium.accounting.statement import PrivacyStatement
from collegium.evaluation.effects import Effects
from collegium.evaluation.quality import Quality
from collegium.pate.voting.history import SpendingPoint
from collegium.personalisation.plan import Plan


@dataclass(frozen=True, kw_only=True)
class PageData:
    """What every report shows. Nothing in it depends on private records except through noise.

    ``privacy``: what was promised and (worst-case only) spent.
    ``effects``: what became of each class and group.
    ``history``: empty under a data-dependent guarantee.
    ``quality``: the published model beside one that always gives one answer; None where there is none, or
        nothing to judge it by: then ``without_quality`` says so, in a heading and a sentence.
    ``n_public``, ``n_test``: public records, and public test records.
    ``foretold``: a sentence about what was predicted, and what came out; empty where nothing was.
    ``student_notes``: what the user should know about how the model was trained.
    ``settings``: further public settings, in the order in which they are shown.
    """

    title: str
    privacy: PrivacyStatement
    effects: Effects
    history: Sequence[SpendingPoint]
    n_public: int
    n_test: int
    settings: Mapping[str, str]
    versions: Mapping[str, str]
    quality: Quality | None
    without_quality: tuple[str, str] = ("There is no student", "No label was released.")
    student_notes: Sequence[str] = ()
    foretold: str = ""


@dataclass(frozen=True, kw_only=True)
class ReportData(PageData):
    """All numbers and words of a report about PATE.

    ``plan``: teachers, duplicates, weights and frequencies of each group.
    ``aggregator``: ``name`` and parameters, as configured.
    ``scale``: total vote weight / nominal number of teachers: parameters were multiplied by it (by
        its average, where teachers vanish).
    ``stop_reason``: "budget", "queries", "labels" or "interrupted".
    ``n_asked``, ``n_answered``, ``n_reinforced``, ``n_lost``: queries asked; answered by the teachers; taken
        from a confident student; charged but lost in a crash.
    ``label_accuracy``: against public truth, where it is known.
    """

    plan: Plan
    aggregator: Mapping[str, str | float]
    scale: float
    stop_reason: str
    n_asked: int
    n_answered: int
    n_reinforced: int
    n_lost: int
    teacher: str
    student: str
    label_accuracy: float | None

    @property
    def class_names(self) -> list[str]:
        """The public class list."""
        return [row.name for row in self.effects.classes]

    @property
    def labels_per_class(self) -> list[int]:
        """Released labels of each class."""
        return [row.labels for row in self.effects.classes]
