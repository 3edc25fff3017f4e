"""An audit of a study that asks: the same session is asked once about canaries in columns of their own."""

from __future__ import annotations

from dataclasses import fields

from collegium.attacks.counted_canaries import audit_statistics
from collegium.report.audit import Audit
from collegium.runs.observer import Observer
from collegium.statistics.settings import QuerySettings
from collegium.study.methods.protocol import AuditSettings
from collegium.study.methods.statistics.session import KeptSession
from collegium.study.methods.statistics.settings import StatisticsSection

_OF_ANSWERS = {"noise_seed", "confidence"}


def audit(
    session: KeptSession, questions: int, settings: AuditSettings, observer: Observer
) -> Audit:
    """Ask as many questions as it does."""
    observer.stage("answers about canaries")
    section = settings.config.of(StatisticsSection)
    given = {
        one.name: getattr(section, one.name)
        for one in fields(QuerySettings)
        if one.name not in _OF_ANSWERS
    }
    given["noise"] = session.noise  # "auto" follows the study's ledger, and canaries have none
    rows = session.privacy_.groups
    findings = audit_statistics(
        {row.group: row.budget for row in rows},
        {row.group: row.owners for row in rows},
        questions=questions,
        settings=given,
        canaries=settings.canaries,
        confidence=settings.confidence,
    )
    canaries = sum(one.bounds.n_in + one.bounds.n_out for one in findings)
    return Audit(
        f"{questions:,} answers of {settings.file} about {canaries:,} canaries",
        settings.confidence,
        session.arrangement,
        findings,
    )
