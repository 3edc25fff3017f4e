"""The student of a study that trains directly, as its file names it."""

from __future__ import annotations

from collegium.data.class_shares import as_class_shares
from collegium.dpsgd.run import DPSGDRun
from collegium.dpsgd.student import DistilledStudent
from collegium.study.config import StudyConfig
from collegium.study.from_settings import NAMES, student_of, student_preprocessing_of


def distilled_student_of(config: StudyConfig, run: DPSGDRun) -> DistilledStudent | None:
    """Build the student of a study; None where there is to be none."""
    if not config.has_student:
        return None
    shares, section = config.student.class_shares, config.student
    named = None
    if shares is not None:
        named = as_class_shares(shares, run.records.classes, NAMES["student_class_shares"])
    return DistilledStudent(
        run,
        student_of(config),
        preprocessing=student_preprocessing_of(config),
        shares=named,
        goal=section.goal,
        name=NAMES["student"],
        view_name=NAMES["student_preprocessing"],
    )
