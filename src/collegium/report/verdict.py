"""What a report says first: does a guarantee hold, for whom, is the student any good, why voting stopped."""

from __future__ import annotations

from typing import Any

from collegium.accounting.statement import (
    GroupSpending,
    PrivacyStatement,
    budget_and_cost,
    percent_spent,
)
from collegium.evaluation.quality import Quality
from collegium.report.numbers import count, down, up, up_of_down
from collegium.report.report_data import PageData, ReportData
from collegium.report.words import KEPT_IN_VAULT

_STOPS = {
    "queries": "Voting stopped because all queries had been asked: one for each public record, or as many as "
    "max_queries.",
    "labels": "Voting stopped because the number of labels asked for had been released.",
    "interrupted": "Voting was interrupted from outside; what had been charged until then is accounted for.",
}


def verdict(privacy: PrivacyStatement) -> dict[str, str]:
    """Sum up the guarantee: ``tone`` (good, plain, caution or danger), ``heading`` and ``text``."""
    if not privacy.noise_is_private:
        return {
            "tone": "danger",
            "heading": "NOT PRIVATE: seeded noise",
            "text": "The noise was drawn from a seed, so it can be computed and taken away again. This is "
            "an experiment: no ε on this page holds for anybody until the study is run with secure "
            "noise. Do not publish its labels or its student if the records are confidential.",
        }
    if _overspent(privacy):
        return {
            "tone": "danger",
            "heading": "GUARANTEE BROKEN: a budget was overspent",
            "text": "This must not happen. Do not publish this study, and report it to the makers of "
            "this software.",
        }
    if all(row.budget.is_unlimited for row in privacy.groups):
        return {
            "tone": "danger",
            "heading": "NO PRIVACY: every budget is unlimited",
            "text": "Nothing is promised to anybody: every group has ε = ∞.",
        }
    some = any(row.budget.is_unlimited for row in privacy.groups)
    suffix = ", but not for everybody" if some else ""
    meaning = privacy.meaning
    if privacy.may_publish_spending:
        return {
            "tone": "caution" if some or privacy.large_deltas else "good",
            "heading": f"Worst-case guarantee{suffix}",
            "text": f"It {meaning}.",
        }
    return {
        "tone": "caution",
        "heading": f"Data-dependent guarantee{suffix}",
        "text": f"It is {meaning}.",
    }


def banners(data: PageData) -> list[dict[str, str]]:
    """Put together what is said of guarantee and student, and all notices, the alarming ones first.

    Only where nothing is wrong with either of the two is the page green.
    """
    guarantee, student = verdict(data.privacy), student_verdict(data.quality, data.without_quality)
    student["text"] = f"{student['text']} {data.foretold}".rstrip()
    found = [guarantee, student]
    if not (guarantee["tone"] == student["tone"] == "good"):
        found = [{**one, "tone": one["tone"].replace("good", "plain")} for one in found[::-1]]
    found += notices(data.privacy)
    return sorted(found, key=lambda item: item["tone"] != "danger")


def student_verdict(
    quality: Quality | None,
    without: tuple[str, str] = ("There is no student", "No label was released."),
) -> dict[str, str]:
    """Say whether the student is better than always giving one answer; form as of :func:`verdict`.

    ``without``: heading and text where nothing is known.
    """
    if quality is None:
        return {"tone": "plain", "heading": without[0], "text": without[1]}
    figures = quality.figures()
    return {
        "tone": quality.tone,
        "heading": quality.verdict,
        "text": f"{quality.reason} {figures[:1].upper()}{figures[1:]}{'.' * bool(figures)}",
    }


def notices(privacy: PrivacyStatement) -> list[dict[str, str]]:
    """Name the groups for which something is wrong: ``tone``, ``heading`` and ``text`` each."""
    found = []
    for row in privacy.groups:
        budget = row.budget
        if budget.is_unlimited:
            found.append(
                {
                    "tone": "danger",
                    "heading": f"NO PRIVACY for group {row.group}: ε = ∞",
                    "text": f"{count(row.owners)} owner(s) granted an unlimited budget: anything about "
                    "them may be revealed.",
                }
            )
            continue
        if row in _overspent(privacy):
            found.append(
                {
                    "tone": "danger",
                    "heading": f"OVERSPENT: group {row.group}",
                    "text": f"Each owner granted ε = {down(budget.epsilon)} and spent "
                    f"{up(row.epsilon_spent)} (per owner, δ = {down(budget.delta)}, "
                    f"{privacy.title}).",
                }
            )
    if privacy.large_deltas:
        found.append(
            {"tone": "caution", "heading": "δ is large", "text": f"{privacy.large_deltas}."}
        )
    return found


def spending_of(row: GroupSpending, privacy: PrivacyStatement) -> dict[str, Any]:
    """Give ``epsilon`` of a group, and ``spent``, ``share`` (of the budget): None where sensitive.

    ``privacy``: decides whether the amount may be shown.
    """
    if not privacy.may_publish_spending:
        # Not even the number of digits may depend on what was spent.
        hidden = dict.fromkeys(("spent", "share"))
        return {"epsilon": down(row.budget.epsilon), **hidden, "reason": KEPT_IN_VAULT}
    granted, paid = budget_and_cost(row.budget.epsilon, row.epsilon_spent)
    return {
        "epsilon": granted,
        "spent": paid,
        "share": percent_spent(row.share),
        "reason": "",
    }


def stop_sentence(data: ReportData) -> str:
    """Say why the voting stopped, and no more than may be said."""
    if data.stop_reason != "budget":
        return _STOPS.get(data.stop_reason, f"Voting stopped: {data.stop_reason}.")
    if not data.privacy.may_publish_spending:
        return (
            "Voting stopped because the next query could have overspent somebody's budget under the "
            "data-dependent account; whose, and how much was left, stays in the vault."
        )
    limited = [row for row in data.privacy.groups if not row.budget.is_unlimited]
    sentence = "Voting stopped because the next query could have overspent somebody's budget."
    if not limited:
        return sentence
    nearest = max(limited, key=lambda row: row.share)
    return (
        f"{sentence} Closest to its limit is group {nearest.group}: each owner has spent ε = "
        f"{up_of_down(nearest.epsilon_spent, nearest.budget.epsilon)} (per owner, δ = "
        f"{down(nearest.budget.delta)}, {data.privacy.title})."
    )


def _overspent(privacy: PrivacyStatement) -> list[GroupSpending]:
    if not privacy.may_publish_spending:
        return []
    return [row for row in privacy.groups if not row.epsilon_spent <= row.budget.epsilon]
