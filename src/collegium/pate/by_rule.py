"""Votes by rule: teachers, their view, release and students, from public numbers alone.

One faint histogram for each public record, and a student that learns from all of them. What counts is the
*signal* S = Σ_o μ_o (how many people there are, times what they grant in Gaussian DP), as in direct training.

* **How many teachers.** An answer's noise does not depend on their number, and the lead of the right class
  grows with it, as long as each still sees enough to be more often right than wrong. So small budgets want
  many weak teachers, large ones few strong ones: shards of :data:`SHARD` · classes · √S records.
* **What they see.** A student that averages over public records mends noise only along what it sees, so as
  many components as there is signal for, 3/8 of direct training's √(S·classes): whitened, each
  teacher is weaker alone and all of them are stronger together.
* **Answers.** n answers have √n times the noise, and there are n of them: a student that averages gains
  nothing from fewer, clearer ones, but from answers where they decide. So a third of the public records of
  images are asked about, and half of these are the ones that regression of the other half can hardly tell.
  Where that would leave fewer than twenty answers for each component, and of tables, more, or all.
* **Tables.** Classes are seldom equally frequent, and teachers of some dozen records hardly ever name a
  rare one: where 12 % are of a class, what plain votes release is a constant. So teachers vote as if classes
  were equally frequent; where the student is to be right as often as possible, two of three do
  (:mod:`collegium.models.balanced`). With fewer than :data:`MANY_PEOPLE` people, teachers are many and small.
* **Students.** Least squares on the noisy histograms (where classes overlap), or a Gaussian process with a
  graph (where public records lie in clusters of a class), which is believed unless answers that it did
  not see contradict it: :func:`~collegium.distillation.held_out.choose_held_out`.

How each was found, with what else was tried: ``docs/results/pate.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from collegium.accounting.gaussian import gdp_mu
from collegium.budgets import Budget
from collegium.checks import check_choice, check_positive, check_whole
from collegium.data.record_kinds import IMAGES, ROWS, TABLE
from collegium.distillation.goal import ACCURACY, wants_balanced_votes
from collegium.errors import InputError
from collegium.pate.queries.selection import DOUBTFUL, RANDOM

SHARD = 0.03
"""Records of a teacher, in units of classes · √S."""
VIEW = 3 / 8
"""Components that teachers see, in units of √(S·classes)."""
ASKED, LEAST_ANSWERS = 1 / 3, 20
"""Share of the public images that are asked about; and how many at least, for each component."""
FEWEST, MOST_TEACHERS = 10, 5000
FEWEST_ASKED = 4
"""Teachers: fewer hide nobody well, more take minutes."""
LEAST_SHARD = 2
"""Records of a teacher, in units of classes: below, most shards lack classes."""
MOST_COMPONENTS, LEAST_COMPONENTS = 400, 10
TEACHERS_OF_FEW, MANY_PEOPLE = 250, 15_000
TABLE_TEACHERS, TABLE_COLUMNS, TABLE_SHARD = 500, 60, 60
"""Of tables with many people (``benchmarks/imbalance.py``); the last are records of a teacher."""


@dataclass(frozen=True)
class StudentChoice:
    """A student by its short name, its parameters, and what it sees (``student.preprocessing``)."""

    model: str
    params: Mapping[str, Any] = field(default_factory=dict)
    preprocessing: str = "same"


@dataclass(frozen=True)
class VoteChoice:
    """Settings of PATE as study files write them; a function of public numbers.

    ``preprocessing``, ``components``: what teachers see (``preprocessing.kind``, ``.components``).
    ``model``, ``params``, ``n_teachers``: the teachers.
    ``answers``: histograms asked for; the noise follows, the least that every budget pays for.
    ``query_order``: about which public records (``aggregation.query_order``).
    ``student``: learns from all histograms.
    ``reasons``: one line for each of teachers, view, answers, student.
    """

    preprocessing: str
    components: int | None
    model: str
    params: Mapping[str, Any]
    n_teachers: int
    answers: int
    student: StudentChoice
    reasons: Mapping[str, str]
    query_order: str = RANDOM
    release: str = "histogram"
    aggregator: str = "gnmax"


def signal(budgets: Mapping[str, Budget], sizes: Mapping[str, int]) -> float:
    """Add up μ(ε, δ) over people, so far as they have a finite budget.

    ``budgets``, ``sizes``: of each group, by the same names; public.
    Raises InputError if nobody has a finite, positive budget.

    Examples
    --------
    >>> round(signal({"all": Budget(1.0)}, {"all": 60_000}))
    16083
    """
    total = sum(
        sizes[name] * gdp_mu(budget.epsilon, budget.delta)
        for name, budget in budgets.items()
        if not budget.is_unlimited and budget.epsilon > 0
    )
    if total <= 0:
        raise InputError(
            "no group has people and a finite epsilon above 0; votes need people who pay: give such a group"
        )
    return float(total)


def votes_by_rule(
    n_people: int,
    total: float,
    n_public: int,
    n_classes: int,
    kind: str = IMAGES,
    goal: str = ACCURACY,
) -> VoteChoice:
    """Choose all settings of PATE.

    Parameters
    ----------
    n_people : int
        Private owners; each has one record, or few.
    total : float
        Their signal Σ μ, from :func:`signal`.
    n_public : int
        Public records without labels.
    n_classes : int
        Length of the public list of classes.
    kind : {"images", "table", "rows"}, default="images"
        Of the records.
    goal : {"accuracy", "balanced", "auc"}, default="accuracy"
        What the student is to be good at: all but the first need balanced votes.

    Returns
    -------
    VoteChoice
        The same for neighbouring data sets: no private record is read.

    Raises
    ------
    InputError
        If a number is out of range, or there are too few people for ten teachers.

    Examples
    --------
    MNIST at ε = 1 for everybody:

    >>> choice = votes_by_rule(60_000, 16_083, 9_000, 10)
    >>> choice.n_teachers, choice.components, choice.answers, choice.query_order
    (1577, 150, 3000, 'doubtful')
    """
    check_whole("n_people", n_people, least=FEWEST)
    check_positive("total", total)
    check_whole("n_public", n_public, least=FEWEST_ASKED)
    check_whole("n_classes", n_classes, least=2)
    check_choice("kind", kind, (IMAGES, TABLE, ROWS))
    everything = (
        f"all {n_public:,} public records: many faint histograms tell as much as few clear ones"
    )
    if kind != IMAGES:
        components: int | None = None
        if kind == ROWS or n_people < MANY_PEOPLE:
            view, model = ("components", "ridge") if kind == ROWS else ("principal", "tabular")
            n_teachers = max(FEWEST, min(TEACHERS_OF_FEW, n_people // (10 * n_classes)))
        else:
            view, model = "binned", "logistic"
            components = max(1, min(TABLE_COLUMNS, n_public - 1))
            n_teachers = min(TABLE_TEACHERS, n_people // TABLE_SHARD)
        params = {}
        if not wants_balanced_votes(goal):
            model, params = "mostly-balanced", {"estimator": model}
        return VoteChoice(
            view,
            components,
            model,
            params,
            n_teachers,
            n_public,
            StudentChoice("evidence-regression"),
            {
                "teachers": f"{n_teachers} of about {n_people // n_teachers:,} records each"
                + (
                    ", two of three of which vote as if classes were equally frequent"
                    if params
                    else ""
                ),
                "view": "columns of public records, each number also as the bin it is in"
                if view == "binned"
                else "coordinates of public records, in the order of their importance",
                "answers": everything,
                "student": "regression of what the histograms say: classes of a table overlap",
            },
        )
    shard = max(LEAST_SHARD * n_classes, SHARD * n_classes * math.sqrt(total))
    n_teachers = int(max(FEWEST, min(MOST_TEACHERS, n_people // shard)))
    wanted = round(VIEW * math.sqrt(total * n_classes))
    components = max(1, min(max(wanted, LEAST_COMPONENTS), MOST_COMPONENTS, n_public - 1))
    answers = min(n_public, max(round(ASKED * n_public), LEAST_ANSWERS * components))
    doubtful = answers < n_public
    return VoteChoice(
        "kernel",
        components,
        "ridge",
        {},
        n_teachers,
        answers,
        StudentChoice("either"),
        {
            "teachers": f"{n_teachers:,} of about {n_people // n_teachers:,} records each: the noise of an "
            "answer does not depend on their number",
            "view": f"{components} kernel components: what there is signal for (sum of mu: {total:,.0f})",
            "answers": f"{answers:,} of {n_public:,} public records, half of them where classes are hard "
            "to tell apart"
            if doubtful
            else everything,
            "student": "a Gaussian process, or least squares if released histograms contradict it",
        },
        query_order=DOUBTFUL if doubtful else RANDOM,
    )
