"""What the pages of all methods share that publish a model: how good it is, how it is used, where it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget
from collegium.data.tables import described
from collegium.distillation.goal import ACCURACY, BALANCED
from collegium.evaluation.effects import Effects
from collegium.evaluation.quality import Quality
from collegium.report.effect_tables import influence_table, spread_sentence
from collegium.report.numbers import clean, count
from collegium.report.quality import quality_banner
from collegium.report.sections import (
    Banner,
    Block,
    Code,
    Column,
    Listing,
    Paragraph,
    Section,
    Table,
    Text,
)
from collegium.study.config import StudyConfig
from collegium.study.study_data import StudyData

_SHOWN = 200  # classes


@dataclass(frozen=True)
class ModelUse:
    """How a published model is used.

    ``inputs``: what a record is: :func:`~collegium.data.tables.described`.
    ``classes``: what it names.
    ``remarks``: what its answers mean, where that is not what one expects.
    """

    inputs: Mapping[str, Any]
    classes: Sequence[str]
    remarks: str = ""

    def blocks(self) -> list[Block]:
        """Say what goes in and what comes out, and show the code that does it."""
        file = "table.csv" if "columns" in self.inputs else "records.npy"
        return [
            *self._inputs(),
            Paragraph(f"Classes: {self._listed()}."),
            *([Paragraph(self.remarks)] if self.remarks else []),
            Paragraph(("On a terminal, where ", Code("RELEASE"), " is this folder:")),
            Listing(f"collegium predict RELEASE {file} --out predictions.csv"),
            Paragraph("Or in Python:"),
            Listing(
                'import collegium\n\nstudent = collegium.load_student("RELEASE")\n'
                f'records = collegium.read_records("{file}", "RELEASE")\nstudent.predict(records)',
                "python",
            ),
            Paragraph("Loading runs no code from the file, and reads known types only."),
        ]

    def _inputs(self) -> list[Block]:
        if "columns" not in self.inputs:
            shape = " × ".join(map(str, self.inputs["shape"]))
            kind = self.inputs["kind"]
            return [Paragraph(f"A record is an array of {kind} of shape {shape}.")]
        columns = (Column("Column", is_number=False), Column("Holds", is_number=False))
        caption = "The columns of a record."
        return [Table(columns, [tuple(row) for row in self.inputs["columns"]], caption)]

    def _listed(self) -> str:
        more = f", … ({count(len(self.classes))} in all)" if len(self.classes) > _SHOWN else ""
        return ", ".join(map(clean, self.classes[:_SHOWN])) + more


def use_of(config: StudyConfig, data: StudyData, *, equal_chances: bool) -> ModelUse:
    """Find out how a study's model is used, from public facts alone.

    ``equal_chances``: whether the goal may have taught it that all classes are equally frequent.
    """
    goal, remarks = config.student.goal, []
    if goal == BALANCED:
        remarks.append(
            "The model should be right about each class alike, however frequent that is: the class that it "
            "names need not be the most probable one."
        )
    if equal_chances and goal != ACCURACY and config.student.class_shares is None:
        remarks.append(
            "Its probabilities are those of classes that are equally frequent: they put records in order, "
            "and are no chances."
        )
    return ModelUse(
        described(data.X_public), [str(name) for name in data.classes.tolist()], " ".join(remarks)
    )


@dataclass(frozen=True, kw_only=True)
class ModelReport:
    """What every report about a model shows. Nothing in it depends on private records except through noise.

    ``privacy``: what was promised and (worst-case only) spent.
    ``chosen``: budgets as people chose them, by level, where they are on a ledger.
    ``effects``: what became of each class and group.
    ``history``: empty under a data-dependent guarantee.
    ``quality``: the published model beside one that always gives one answer; None where there is none, or
        nothing to judge it by: then ``without_quality`` says so, in a heading and a sentence.
    ``n_public``, ``n_test``: public records, and public test records.
    ``foretold``: a sentence about what was predicted, and what came out; empty where nothing was.
    ``student_notes``: what the user should know about how the model was trained.
    ``settings``: further public settings, in the order in which they are shown.
    ``use``: how the model is used; None where there is none.
    """

    title: str
    privacy: PrivacyStatement
    effects: Effects
    history: Sequence[Any]
    n_public: int
    n_test: int
    settings: Mapping[str, str]
    versions: Mapping[str, str]
    quality: Quality | None
    without_quality: tuple[str, str] = ("There is no student", "No label was released.")
    student_notes: Sequence[str] = ()
    foretold: str = ""
    chosen: Mapping[str, Budget] = field(default_factory=dict)
    use: ModelUse | None = None

    def shared(self) -> dict[str, Any]:
        """Fill the fields of a page that do not depend on how the model was learnt."""
        return {
            "title": self.title,
            "privacy": self.privacy,
            "chosen": self.chosen,
            "verdict": self.verdict,
            "use": [] if self.use is None else self.use.blocks(),
            "settings": self.settings,
            "versions": self.versions,
        }

    @property
    def verdict(self) -> Banner:
        """Whether the model is any good."""
        return quality_banner(self.quality, self.without_quality, self.foretold)

    def notes(self, model: str) -> list[Paragraph]:
        """Write what the user should know about how the model was trained."""
        return [
            Paragraph(f"About the {model}: {clean(note)}.", "note") for note in self.student_notes
        ]

    def limits(self, learnt: str) -> list[Text]:
        """Say where the model ends; ``learnt``: from what."""
        return [
            f"It was learnt {learnt}, so it may never name a class that few people have.",
            "It was measured on the public records of one study, if at all. How good it is for other people, "
            "places or times is unknown.",
        ]

    def effects_section(self, model: str, influence: str, classes: Sequence[Block] = ()) -> Section:
        """Show who shaped the model, and whom it serves.

        ``influence``: what a level's share is of. ``classes``: what became of each class.
        """
        shown = {row.group for row in self.privacy.shown}
        blocks: list[Block] = [
            Paragraph(
                "People with larger budgets have more influence. If people of one kind chose larger budgets "
                f"than others, the {model} leans towards them. "
                + spread_sentence(self.effects, model)
            ),
            influence_table(self.effects, shown, model, influence),
            *classes,
        ]
        return Section(
            "effects", f"Who shaped the {model}, and whom it serves", blocks, on_card=True
        )
