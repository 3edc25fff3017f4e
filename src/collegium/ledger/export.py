"""A ledger as JSON: for those who want to compute it again. No name is in it, no hash of one, no key."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from collegium.json_files import number_as_json
from collegium.ledger.entries import Books, Release, Standing, cost_as_json
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost

SCHEMA = "collegium-ledger/3"


def as_json(ledger: Ledger) -> dict[str, Any]:
    """Write releases with their costs and events, and for every cohort which of them its owners paid.

    ``promise`` says which of them add up to a limit: μ² and δ₀ ("gaussian"), or Σε ("pure"). ``parts`` of a
    release are its costs per owner, ``[μ², Σε of pure DP, δ₀]``; its ``events`` are a list for each part (as
    :meth:`Use.to_json <collegium.accounting.export.Use.to_json>` writes them), unless whoever settled it gave
    something else, or nothing. A cohort's ``charges`` are pairs of a release and one of its parts, its
    ``grants`` what its owners chose over time: both oldest first.
    """
    books = ledger.contents()
    return {
        "schema": SCHEMA,
        "ledger": ledger.id,
        "promise": ledger.lifetime.promise.value,
        "delta_0_share": ledger.lifetime.delta_0_share,
        "neighbours": ledger.neighbours.value,
        "releases": {id: _release(release) for id, release in books.releases.items()},
        "cohorts": [_cohort(books, one.id) for one in books.cohorts.values() if one.members],
    }


def standing_as_json(standing: Standing) -> dict[str, Any]:
    """Write how some people stand; what has no limit in the ledger's promise has "inf" left."""
    return {
        "level": standing.level,
        "epsilon": number_as_json(standing.budget.epsilon),
        "delta": standing.budget.delta,
        "people": standing.owners,
        "has_left": standing.has_left,
        "releases": standing.n_releases,
        "epsilon_spent": number_as_json(standing.epsilon_spent),
        "spent": _cost(standing.spent),
        "left": _cost(standing.left),
    }


def reservation_as_json(release: Release) -> dict[str, Any]:
    """Write what is reserved and not settled."""
    return {"release": release.id, "people": release.n_owners, **_release(release)}


def _cohort(books: Books, cohort: int) -> dict[str, Any]:
    account = books.account(cohort)
    grants = [
        {
            "at": grant.at,
            "level": grant.level,
            "epsilon": number_as_json(grant.budget.epsilon),
            "delta": grant.budget.delta,
            "has_left": grant.has_left,
        }
        for grant in account.grants
    ]
    charges = [[charge.release.id, charge.part] for charge in account.charges]
    return {**standing_as_json(account.standing), "grants": grants, "charges": charges}


def _release(release: Release) -> dict[str, Any]:
    closed = release.closed
    return {
        "name": release.name,
        "reserved_at": release.opened.at,
        "settled_at": None if closed is None else closed.at,
        "about": release.about,
        "neighbours": release.opened.body["neighbours"],
        "parts": [cost_as_json(cost) for cost in release.costs],
        "events": None if closed is None else closed.body["events"],
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {name: number_as_json(value) for name, value in asdict(cost).items()}
