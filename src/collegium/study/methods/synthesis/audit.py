"""An audit of a study of synthetic tables: its counts are drawn again and again, with some people blank."""

from __future__ import annotations

from collegium.accounting.neighbours import Arrangement
from collegium.attacks.marginal_releases import ASKED, RELEASES, audit_marginals
from collegium.report.audit import Audit
from collegium.runs.observer import Observer
from collegium.study.methods.protocol import AuditSettings
from collegium.synthesis.run import Synthesis

DO_NOT_RELEASE = """\
Nothing in this folder may be published, and nothing that this audit computed either.

It comes from noisy counts of real people's records that were drawn many times, while an auditor knew all
records. Its numbers say whether an account can be trusted; they are not covered by any account.
"""


def audit(
    run: Synthesis, arrangement: Arrangement, settings: AuditSettings, observer: Observer
) -> Audit:
    """Draw its counts many times."""
    releases = settings.runs or RELEASES
    groups = len(run.table.groups)
    asked = ASKED if settings.canaries is None else max(1, settings.canaries // (releases * groups))
    findings = audit_marginals(
        run,
        releases=releases,
        asked=asked,
        confidence=settings.confidence,
        progress=observer.advanced,
    )
    return Audit(
        f"{releases:,} times the noisy counts of {settings.file}",
        settings.confidence,
        arrangement,
        findings,
        {"runs": releases},
        do_not_release=DO_NOT_RELEASE,
    )
