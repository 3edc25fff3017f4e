"""What must hold of a study that was killed, looked at from outside: its folder, its draws, its ledger.

Not a benchmark by itself: ``kills.py`` asks after every kill. A violation is an ``AssertionError``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from collegium.accounting.gaussian import gdp_epsilon
from collegium.budgets import Budget
from collegium.durable import PARTIAL
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost
from collegium.pate.voting.labelling import Outcome
from collegium.study.folder import StudyFolder
from collegium.study.methods.dpsgd.settings import DPSGDKind
from collegium.study.methods.statistics.settings import StatisticsKind
from collegium.study.terms import TERMS, read_terms
from collegium.study.verifying import examine
from kill_studies import CLASSES, LEVELS, is_votes

ROUNDING = 1e-9
LEDGER_FILE = "people.ledger"
DELTA = 1e-5


def known(folder: Path) -> dict[int, Outcome]:
    """Return what the journal says of each query, after every piece of the folder was held against it."""
    study = StudyFolder(folder)
    if not (study.vault / "key").exists():
        return {}
    found = [one.piece for one in examine(study) if one.trouble]
    wrong = [
        piece for piece in found if not piece.endswith(PARTIAL)
    ]  # a killed writer's is to be there
    assert not wrong, f"{wrong}: not what the study wrote there"
    outcomes = study.open_journal().settled()
    assert len({outcome.query for outcome in outcomes}) == len(outcomes), "a query was asked twice"
    return {outcome.query: outcome for outcome in outcomes}


def remembered(folder: Path) -> dict[str, Any]:
    """Return all that a later run may not change: outcomes, answers, and that steps were charged."""
    outcomes = {f"query {q}": o for q, o in known(folder).items() if o.verdict != "lost"}
    answers = {f"answer {one['number']}": one for one in answers_of(folder)}
    steps = n_charged(folder) if method_of(folder) else 0
    return outcomes | answers | {f"step {step}": "charged" for step in range(steps)}


def answers_of(folder: Path) -> list[dict[str, Any]]:
    """Read the answers that a study has kept."""
    path = folder / "vault" / "answers.json"
    if not path.exists():
        return []
    kept: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["answers"]
    return kept


def method_of(folder: Path) -> str:
    """Tell which method was begun; empty before its terms are agreed, when nothing may be drawn."""
    begun = (folder / "vault" / TERMS).exists()
    return read_terms(folder)[0].method if begun else ""


def n_charged(folder: Path) -> int:
    """Count the steps, or the questions about a table, that are charged."""
    return StudyFolder(folder).open_journal().steps


def draws(folder: Path) -> list[tuple[int, str]]:
    """Return which noise was drawn, whatever became of it: query or step, and what for."""
    path = Path(f"{folder}.drawn")
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [(int(query), purpose) for query, _, purpose in (line.partition(" ") for line in lines)]


def check_draws(folder: Path) -> None:
    """See that nothing was drawn twice, and that whatever was drawn is charged in the journal."""
    drawn = draws(folder)
    twice = [one for one, count in Counter(drawn).items() if count > 1]
    assert not twice, f"drawn twice: {twice[:3]}"
    if not drawn:
        return
    method = method_of(folder)
    assert method, "drawn before terms were agreed"
    queries = {query for query, _ in drawn}
    counts = method in (DPSGDKind.name, StatisticsKind.name)
    charged = set(range(n_charged(folder)) if counts else known(folder))
    assert queries <= charged, f"drawn, and not charged: {sorted(queries - charged)[:3]}"


def check_ledger(folder: Path, is_finished: bool = False) -> None:
    """See that a ledger has what was charged: reserved while it runs, and settled once it has ended."""
    kept_file, place = folder / "vault" / "ledger.json", folder.parent / LEDGER_FILE
    if not kept_file.exists():
        assert not draws(folder) or not place.exists(), "drawn without a ledger"
        return
    kept = json.loads(kept_file.read_text("utf-8"))
    journal = StudyFolder(folder).open_journal()
    is_there = place.exists() and not Ledger.is_to_be_made(place)
    if not is_there:
        assert not journal.asked, "asked, and there is no ledger"
        return
    ledger = Ledger(place)
    ledger.verify()
    entries = Counter(
        (entry.kind, entry.body["release"])
        for entry in ledger.history()
        if entry.kind in ("reserve", "settle")
    )
    assert set(entries.values()) <= {1}, "a release was entered twice"
    release = ledger.contents().releases.get(kept["release"])
    if release is None:
        assert not journal.asked, "asked, and the ledger knows nothing of it"
        return
    costs = dict(zip(kept["groups"], release.costs, strict=True))
    if release.is_settled:
        assert StudyFolder(folder).voting_has_ended(), "settled, and more may be drawn"
    if not journal.asked:
        return
    terms, journal = read_terms(folder)
    for name, epsilon in terms.spent(journal).epsilon.items():
        booked = booked_in(ledger, costs[name])
        assert epsilon <= booked * (1 + ROUNDING), f"{name}: {epsilon} drawn, {booked} booked"
    if is_finished:
        check_settled(ledger, kept, folder)


def check_settled(ledger: Ledger, kept: dict[str, Any], folder: Path) -> None:
    """Compare what is settled with the statement: of everybody, by name."""
    assert kept["settled"], "finished, and not settled"
    people = pd.read_csv(folder.parent / "private.csv")[["person", "privacy"]].drop_duplicates()
    accounts = ledger.accounts_of(people["person"].tolist())
    said = {row["group"]: row for row in statement_of(folder)["groups"]}
    for level, account in zip(people["privacy"], accounts, strict=True):
        assert account is not None and account.has_ended
        (charge,) = account.charges
        row, cost = said[level], charge.cost
        booked = booked_in(ledger, cost)
        assert same(booked, row["epsilon_spent"]), f"{level}: {booked} settled, {row}"


def booked_in(ledger: Ledger, cost: Cost) -> float:
    """ε of what a ledger has booked, beside what it sets aside of δ."""
    return ledger.lifetime.limit(Budget(max(LEVELS.values()), DELTA)).epsilon_of(cost, DELTA)


def statement_of(folder: Path) -> dict[str, Any]:
    """Read the statement of a release."""
    found: dict[str, Any] = json.loads((folder / "release" / "privacy.json").read_text("utf-8"))
    return found


def same(one: float, other: float) -> bool:
    """Whether two accounts of one thing agree, but for rounding."""
    return math.isclose(one, other, rel_tol=1e-6)


def check_statement(folder: Path) -> None:
    """Compare what was stated with the sum of the journal's prices, and with what was granted."""
    terms, journal = read_terms(folder)
    again = terms.spent(journal)
    for row in statement_of(folder)["groups"]:
        name, stated = row["group"], row["epsilon_spent"]
        assert stated <= LEVELS[name] * (1 + ROUNDING), f"{name}: {stated} is more than granted"
        assert same(stated, again.epsilon[name]), (
            f"{name}: {stated} stated, {again.epsilon[name]} charged"
        )
        if again.gaussian and again.uses[name]:  # the same sum, added up here
            squared = sum(use.count * float(use.event.mu_squared[0]) for use in again.uses[name])
            by_hand = min(float(gdp_epsilon(math.sqrt(squared), row["delta"])), LEVELS[name])
            assert same(stated, by_hand), f"{name}: {stated} stated, {by_hand} by hand"


def check_finished(kind: str, folder: Path) -> None:
    """Compare what was published with what was drawn, and what was stated with what was charged."""
    assert not any(folder.rglob(f".*{PARTIAL}")), "a killed writer's copy is still there"
    check_draws(folder)
    check_statement(folder)
    check_ledger(folder, is_finished=True)
    if is_votes(kind):
        check_labels(kind, folder)
    elif method_of(folder) == StatisticsKind.name:
        check_answers(folder)
    else:
        check_steps(folder)


def check_labels(kind: str, folder: Path) -> None:
    """See that labels are what the journal says."""
    table = pd.read_csv(folder / "release" / "labels.csv")
    labels = table["label"] if kind == "label" else table["label"].map(CLASSES.index)
    answered = {q: o.label for q, o in known(folder).items() if o.verdict == "answered"}
    released = dict(zip(table["row"].tolist(), labels.tolist(), strict=True))
    taken = {query: label for query, label in released.items() if query in answered}
    assert taken == answered, "what is published is not what the journal says"


def check_answers(folder: Path) -> None:
    """See that answers are those that were kept, and that all others are told of as lost."""
    terms, journal = read_terms(folder)
    told = json.loads((folder / "release" / "answers.json").read_text("utf-8"))
    kept = answers_of(folder)
    questions = list(terms.own_to_json()["questions"])
    assert journal.steps == len(questions), "not every question was charged"
    wanted = [{k: v for k, v in one.items() if k != "number"} for one in kept]
    assert told["answers"] == wanted, "what is published is not what was kept"
    answered = {one["number"] for one in kept}
    lost = [question for one, question in enumerate(questions, 1) if one not in answered]
    assert sorted(told["lost"]) == sorted(lost), "what was lost is not what is told of as lost"


def check_steps(folder: Path) -> None:
    """See that no more steps count as taken than noise was drawn for."""
    terms, journal = read_terms(folder)
    assert journal.steps == terms.n_steps_taken, "not every step was charged"  # type: ignore[attr-defined]
    taken = journal.steps - statement_of(folder)["steps_lost"]
    assert taken <= len(draws(folder)), "more steps count as taken than were drawn"
