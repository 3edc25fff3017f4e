"""An audit of direct training: one run with canaries; or its steps alone, again and again."""

from __future__ import annotations

from collegium.attacks.dpsgd_canaries import audit_dpsgd
from collegium.attacks.dpsgd_game import play_dpsgd
from collegium.dpsgd.run import DPSGDRun
from collegium.report.audit import Audit
from collegium.runs.observer import Observer
from collegium.study.methods.protocol import AuditSettings

DO_NOT_RELEASE = """\
Nothing in this folder may be published, and nothing that this audit computed either.

It comes from a training with canaries (invented people) beside the real records, in which an auditor saw
every noisy sum. Its numbers say whether an account can be trusted; they are not covered by any account.
"""


def audit(run: DPSGDRun, settings: AuditSettings, observer: Observer) -> Audit:
    """Train once with canaries; where a number of runs is asked for, play with and without one owner."""
    if settings.runs is not None:
        findings = play_dpsgd(
            run,
            runs=settings.runs,
            confidence=settings.confidence,
            progress=observer.advanced,
        )
        title = f"{run.plan.steps:,} steps of {settings.file}: {settings.runs:,} runs on each side"
        about = {"runs": settings.runs}
        return Audit(title, settings.confidence, run.arrangement, findings, about)
    observer.stage("training with canaries")
    found = audit_dpsgd(run, canaries=settings.canaries, confidence=settings.confidence)
    canaries = sum(one.bounds.n_in + one.bounds.n_out for one in found)
    return Audit(
        f"one run of {settings.file} with {canaries:,} canaries",
        settings.confidence,
        run.arrangement,
        found,
        do_not_release=DO_NOT_RELEASE,
    )
