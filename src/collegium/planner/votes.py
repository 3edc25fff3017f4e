"""Votes (PATE) as a way to learn: the recipe that public numbers call for, and its rehearsal."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budgets
from collegium.data.tables import take_rows
from collegium.distillation.supervised import beliefs_of
from collegium.errors import InputError, PrivacyWarning
from collegium.models.catalogue import build_model
from collegium.pate.by_rule import FEWEST, FEWEST_ASKED, signal, votes_by_rule
from collegium.pate.classifier import PATEClassifier
from collegium.pate.pipeline import PateRun
from collegium.pate.queries.selection import RANDOM
from collegium.pate.recipe import Recipe
from collegium.pate.recipe_by_rule import FEW_COMPONENTS
from collegium.pate.settings import Queries
from collegium.pate.voting.aggregators import GNMax
from collegium.personalisation import as_personalisation
from collegium.planner.candidates import VOTES, Candidate, Sections
from collegium.planner.facts import Facts
from collegium.planner.public_features import Looks
from collegium.planner.rehearsal import Rehearsed, scored
from collegium.planner.surrogates import StandIns
from collegium.runs.records import Records
from collegium.runs.views import SAME

_MOST_RECORDS = 60_000
"""Records that are made up for a rehearsal, at most: with more, teachers have less each."""
_MANY = 12
"""Groups from which on a hybrid is asked for: each need not fill teachers of its own."""


def votes(facts: Facts) -> Candidate | None:
    """Choose a recipe of votes from public numbers; None with too few people for any."""
    if facts.n_people < FEWEST or facts.n_public < FEWEST_ASKED:
        return None
    made = votes_by_rule(
        facts.n_people,
        signal(facts.groups, facts.sizes),
        facts.n_public,
        len(facts.classes),
        facts.kind,
        facts.kept_goal,
    )
    view: dict[str, Any] = {"kind": made.preprocessing}
    if made.components is not None:
        view["components"] = made.components
    teachers: dict[str, Any] = {"model": made.model, "n_teachers": made.n_teachers}
    method = _personalisation(facts, teachers["n_teachers"])
    if method is None:
        return None
    if made.params:
        teachers["params"] = dict(made.params)
    shown: dict[str, Any] = {"model": made.student.model}
    if made.student.params:
        shown["params"] = dict(made.student.params)
    sections: Sections = {
        "method": {"kind": "pate"},
        "preprocessing": view,
        "teachers": teachers,
        "personalisation": {"method": method},
        "aggregation": {
            "aggregator": made.aggregator,
            "release": made.release,
            "answers": made.answers,
            **({} if made.query_order == RANDOM else {"query_order": made.query_order}),
        },
        "student": shown,
    }
    reasons = {
        "method.kind": "labels of public records are released, so any model can learn from them",
        "preprocessing.kind": made.reasons["view"],
        "teachers.n_teachers": made.reasons["teachers"],
        "aggregation.release": "the noisy counts cost no more than the label that follows from them",
        "aggregation.answers": made.reasons["answers"],
        "student.model": made.reasons["student"],
    }
    # The rest follows from the same public numbers.
    estimator = partial(PATEClassifier, personalisation=method)
    return Candidate(VOTES, sections, reasons, estimator, FEW_COMPONENTS)


def _personalisation(facts: Facts, n_teachers: int) -> str | None:
    """Choose what budgets become: a hybrid where a group is too small for its own teachers.

    Returns None if neither fits.
    """
    for method in ("hybrid",) if len(facts.groups) > _MANY else ("weighting", "hybrid"):
        try:
            as_personalisation(method).plan(facts.groups, facts.sizes, n_teachers)
        except InputError:
            continue
        return method
    return None


def recipe_of(candidate: Candidate, n_answers: int, facts: Facts) -> Recipe:
    """Build a recipe for records that are seen already."""
    teachers, student = candidate.sections["teachers"], candidate.sections["student"]
    return Recipe(
        teacher=build_model("teachers.model", teachers["model"], teachers.get("params", {})),
        student=build_model("student.model", student["model"], student.get("params", {})),
        n_teachers=teachers["n_teachers"],
        personalisation=as_personalisation(candidate.sections["personalisation"]["method"]),
        aggregator=GNMax(answers=n_answers),
        queries=Queries(
            candidate.sections["aggregation"].get("query_order", RANDOM), release="histogram"
        ),
        student_preprocessing=SAME,
        goal=facts.kept_goal,
        seed=facts.seed,
        noise_seed=facts.seed,
    )


def rehearse_votes(
    facts: Facts, found: StandIns, candidate: Candidate, looks: Looks | None = None
) -> Rehearsed:
    """Vote on half of the stand-ins, with teachers of as many people as there are, drawn from the other half.

    ``found``: with a class for each.
    ``looks``: at the stand-ins, if others have looked before.
    """
    looks = Looks(found.X) if looks is None else looks
    seen = looks.seen(looks.view(candidate.preprocessing(facts.seed)))
    random = np.random.default_rng([facts.seed, 9])
    dealt = random.permutation(found.labelled)
    learn, asked = np.sort(dealt[::2]), np.sort(dealt[1::2])
    budgets = _as_many(facts, random)
    drawn = random.choice(learn, len(budgets))
    classes = np.arange(len(facts.classes))
    records = Records(
        X=take_rows(seen, drawn),
        codes=found.codes[drawn],
        budgets=budgets,
        classes=classes,
        X_public=take_rows(seen, asked),
    )
    answers = -(-len(asked) * candidate.sections["aggregation"]["answers"] // facts.n_public)
    run = PateRun(recipe_of(candidate, answers, facts), records)
    with warnings.catch_warnings():  # what stand-ins lack, the plan says
        warnings.simplefilter("ignore", PrivacyWarning)
        student = run.teach(run.release(run.votes()))
    beliefs = beliefs_of(student, records.X_public, classes)
    named = np.asarray(student.predict(records.X_public), dtype=np.intp)
    return scored(facts, beliefs, found.codes[asked], named)


def _as_many(facts: Facts, random: np.random.Generator) -> Budgets:
    """Make up as many people with such budgets as there are, at most so many that a laptop can hold them."""
    names = [name for name in facts.groups if facts.sizes[name]]
    sizes = np.array([facts.sizes[name] for name in names])
    fewer = min(1.0, _MOST_RECORDS / sizes.sum())
    codes: NDArray[np.intp] = np.repeat(
        np.arange(len(names)), np.maximum(1, np.floor(sizes * fewer)).astype(int)
    )
    groups: dict[str, Any] = {name: facts.groups[name] for name in names}
    return Budgets(groups, random.permutation(codes))
