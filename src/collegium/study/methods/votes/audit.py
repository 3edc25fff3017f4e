"""An audit of a study of votes: it is run once, with canaries among the private records."""

from __future__ import annotations

from collegium.attacks.one_run import OneRunSettings, audit_run
from collegium.pate.pipeline import PateRun
from collegium.report.audit import Audit
from collegium.runs.observer import Observer
from collegium.study.methods.protocol import AuditSettings

DO_NOT_RELEASE = """\
Nothing in this folder may be published, and nothing that this audit computed either.

It comes from a run in which canaries (invented people with wrong records) were among the private
records, and in which an auditor saw noisy counts. Its numbers say whether an account can be trusted; they
are not covered by any account.
"""


def audit(run: PateRun, settings: AuditSettings, observer: Observer) -> Audit:
    """Run it once with canaries."""
    how = OneRunSettings(
        settings.canaries,
        settings.copies,
        settings.guess_share,
        settings.confidence,
        settings.observe or "noisy",
    )
    findings = audit_run(run, how, stage=observer.stage)
    canaries = sum(one.guesses.canaries for one in findings)
    title = f"one run of {settings.file} with {canaries} canaries"
    return Audit(
        title,
        settings.confidence,
        run.arrangement,
        findings,
        do_not_release=DO_NOT_RELEASE,
    )
