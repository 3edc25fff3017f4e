"""From a study's settings to the recipe of a run of votes."""

from __future__ import annotations

from dataclasses import replace

from collegium.models.catalogue import build_model
from collegium.parties.collective import Collective
from collegium.pate.between_parties import PERSON, recipe_of_parties
from collegium.pate.recipe import Recipe
from collegium.study.config import StudyConfig
from collegium.study.from_settings import NAMES, preprocessing_of, student_preprocessing_of
from collegium.study.methods.votes.settings import (
    Aggregation,
    PersonalisationSection,
    Teachers,
    aggregator_of,
    has_teachers,
    queries_of,
)


def recipe_of(config: StudyConfig) -> Recipe:
    """Build the models and everything else that decides on the result of a study of votes.

    ``config``: settled, or else nothing can be trained with the recipe.
    """
    teachers, student = config.of(Teachers), config.student
    personalisation = config.of(PersonalisationSection).build()
    recipe = Recipe(
        teacher=build_model("teachers.model", teachers.model, teachers.params),
        student=build_model("student.model", student.model, student.params),
        n_teachers=teachers.n_teachers,
        personalisation=replace(personalisation, assignment=teachers.assignment),
        aggregator=aggregator_of(config),
        account=config.account(),
        queries=queries_of(config),
        preprocessing=preprocessing_of(config),
        student_preprocessing=student_preprocessing_of(config),
        teacher_class_shares=teachers.class_shares,
        student_class_shares=student.class_shares,
        goal=student.goal,
        seed=config.study.seed,
        noise_seed=config.of(Aggregation).seed_of_noise,
        names=NAMES,
    )
    path = config.path("parties.collective")
    if path is None:
        return recipe
    members = Collective.read(path).members
    return recipe_of_parties(recipe, PERSON, len(members), has_teachers(config))
