"""What a report says first: does a guarantee hold, for whom, and what voids it."""

from __future__ import annotations

from dataclasses import replace

from collegium.accounting.statement import GroupSpending, PrivacyStatement
from collegium.report.numbers import count, down, up
from collegium.report.sections import Banner


def verdict(privacy: PrivacyStatement) -> Banner:
    """Sum up the guarantee."""
    if not privacy.noise_is_private:
        return Banner(
            "danger",
            "NOT PRIVATE: seeded noise",
            "The noise was drawn from a seed, so it can be computed and taken away again. This is "
            "an experiment: no ε on this page holds for anybody until the study is run with secure "
            "noise. Do not publish what was released if the records are confidential.",
        )
    if _overspent(privacy):
        return Banner(
            "danger",
            "GUARANTEE BROKEN: a budget was overspent",
            "This must not happen. Do not publish this study, and report it to the makers of "
            "this software.",
        )
    if all(row.budget.is_unlimited for row in privacy.groups):
        return Banner(
            "danger",
            "NO PRIVACY: every budget is unlimited",
            "Nothing is promised to anybody: every level has ε = ∞.",
        )
    some = any(row.budget.is_unlimited for row in privacy.groups)
    suffix = ", but not for everybody" if some else ""
    meaning = privacy.meaning
    if privacy.may_publish_spending:
        return Banner(
            "caution" if some or privacy.large_deltas else "good",
            f"Worst-case guarantee{suffix}",
            f"It {meaning}.",
        )
    return Banner("caution", f"Data-dependent guarantee{suffix}", f"It is {meaning}.")


def banners(privacy: PrivacyStatement, released: Banner) -> list[Banner]:
    """Put together what is said of what was released, of the guarantee, and of all that is wrong; that first.

    Only where nothing is wrong with either of the two is the page green.
    """
    found = [released, verdict(privacy)]
    if any(one.tone != "good" for one in found):
        found = [replace(one, tone=one.tone.replace("good", "plain")) for one in found]
    found += notices(privacy)
    return sorted(found, key=lambda one: one.tone != "danger")


def notices(privacy: PrivacyStatement) -> list[Banner]:
    """Name the levels for which something is wrong."""
    found = []
    for row in privacy.groups:
        budget = row.budget
        if budget.is_unlimited:
            found.append(
                Banner(
                    "danger",
                    f"NO PRIVACY for level {row.group}: ε = ∞",
                    f"{count(row.owners)} people granted an unlimited budget: anything about them "
                    "may be revealed.",
                )
            )
            continue
        if row in _overspent(privacy):
            found.append(
                Banner(
                    "danger",
                    f"OVERSPENT: level {row.group}",
                    f"Each person granted ε = {down(budget.epsilon)}, and {up(row.epsilon_spent)} "
                    f"was spent (per person, δ = {down(budget.delta)}, "
                    f"{privacy.title}).",
                )
            )
    if privacy.large_deltas:
        found.append(Banner("caution", "δ is large", f"{privacy.large_deltas}."))
    return found


def _overspent(privacy: PrivacyStatement) -> list[GroupSpending]:
    if not privacy.may_publish_spending:
        return []
    return [row for row in privacy.groups if not row.epsilon_spent <= row.budget.epsilon]
