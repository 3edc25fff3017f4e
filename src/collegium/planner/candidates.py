"""Ways to learn that a plan chooses between, as sections of a study; each is our best measured recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from collegium.dpsgd.by_rule import USUAL_STUDENT, USUAL_VIEW
from collegium.dpsgd.classifier import DPSGDClassifier
from collegium.dpsgd.estimator_base import AUTO
from collegium.dpsgd.settings import MOST_COMPONENTS
from collegium.models.catalogue import build_preprocessing
from collegium.pate.classifier import PATEClassifier
from collegium.planner.facts import Facts

DIRECT, TOGETHER, VOTES = "direct training", "direct training and a student", "votes (PATE)"
Sections = dict[str, dict[str, Any]]
_WHY = {
    "kernel": "for images: similarities to public images, in patches and wavelets; a linear model on "
    "them did best in our measurements (docs/results/dpsgd.md)",
    "crossed": "for tables: each number as the bin it is in, and similarities to public records, so that a "
    "linear model can follow curves, and columns that act together",
    "components": "for rows of numbers: principal components of the public records, in comparable "
    "units",
}


@dataclass(frozen=True)
class Candidate:
    """A way to learn.

    ``name``: for people.
    ``sections``: of a study's file, those that say how it is learnt.
    ``reasons``: key and why, for each choice.
    ``estimator``: makes the estimator that learns so, not fitted.
    ``usual_components``: of what it sees of records, where ``sections`` names no number.
    """

    name: str
    sections: Sections
    reasons: dict[str, str]
    estimator: Callable[..., DPSGDClassifier | PATEClassifier]
    usual_components: int

    @property
    def sees(self) -> str:
        """Kind of preprocessing."""
        return str(self.sections["preprocessing"]["kind"])

    @property
    def has_student(self) -> bool:
        """Whether a student learns from what was released."""
        return "model" in self.sections.get("student", {})

    def preprocessing(self, seed: int) -> Any:
        """Build what it sees of records, not fitted."""
        most = self.sections["preprocessing"].get("components", self.usual_components)
        return build_preprocessing(
            self.sees, categorical="ordinal", components=most, random_state=seed
        )


def direct(facts: Facts) -> Candidate:
    """Direct training; on images with a student of its beliefs, which are free, and which noise spoils."""
    sees = USUAL_VIEW[facts.kind]
    sections: Sections = {"method": {"kind": "dpsgd"}, "preprocessing": {"kind": sees}}
    reasons = {
        "method.kind": "every record takes part in every step, and no votes are lost",
        "preprocessing.kind": _WHY[sees],
    }
    if facts.kind not in USUAL_STUDENT:
        return Candidate(DIRECT, sections, reasons, DPSGDClassifier, MOST_COMPONENTS)
    sections["student"] = {"model": USUAL_STUDENT[facts.kind]}
    reasons["student.model"] = (
        "learns from the model's predictions for all public records, which costs no budget; the "
        "better of the two is published, or both, each where it knows better"
    )
    estimator = partial(DPSGDClassifier, student=AUTO)
    return Candidate(TOGETHER, sections, reasons, estimator, MOST_COMPONENTS)
