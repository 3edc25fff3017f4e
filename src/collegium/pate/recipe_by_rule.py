"""A recipe with the teachers, view, release and student that public numbers call for."""

from __future__ import annotations

from dataclasses import replace

from collegium.models.catalogue import build_model, build_preprocessing
from collegium.pate.by_rule import VoteChoice
from collegium.pate.recipe import Recipe
from collegium.pate.settings import Queries
from collegium.pate.voting.aggregators import aggregator_from
from collegium.runs.views import SAME

FEW_COMPONENTS = 50
"""Where a choice leaves their number open."""


def chosen_recipe(recipe: Recipe, choice: VoteChoice) -> Recipe:
    """Put what was chosen by rule into a recipe.

    ``recipe``: says everything else; not changed.
    """
    return replace(
        recipe,
        teacher=build_model("teachers.model", choice.model, choice.params),
        student=build_model("student.model", choice.student.model, choice.student.params),
        n_teachers=choice.n_teachers,
        aggregator=aggregator_from(choice.aggregator, answers=choice.answers),
        queries=Queries(choice.query_order, release=choice.release),
        preprocessing=build_preprocessing(
            choice.preprocessing,
            categorical="ordinal",
            components=choice.components or FEW_COMPONENTS,
            random_state=recipe.seed,
        ),
        student_preprocessing=SAME,
    )
