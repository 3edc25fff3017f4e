"""An audit of direct training: its steps are attacked, with records that move each of them most."""

from __future__ import annotations

from collegium.attacks.dpsgd_game import play_dpsgd
from collegium.dpsgd.run import DPSGDRun
from collegium.report.audit import Audit
from collegium.runs.observer import Observer
from collegium.study.methods.protocol import AuditSettings


def audit(run: DPSGDRun, settings: AuditSettings, observer: Observer) -> Audit:
    """Train again and again, with and without one owner."""
    findings = play_dpsgd(
        run,
        runs=settings.runs,
        confidence=settings.confidence,
        progress=observer.advanced,
    )
    title = f"{run.plan.steps:,} steps of {settings.file}: {settings.runs:,} runs on each side"
    about = {"runs": settings.runs}
    return Audit(title, settings.confidence, run.arrangement, findings, about)
