"""From a study's settings to the recipe of direct training."""

from __future__ import annotations

from collegium.dpsgd.between_parties import for_parties
from collegium.dpsgd.run import DPSGDRecipe
from collegium.study.config import StudyConfig
from collegium.study.from_settings import preprocessing_of
from collegium.study.methods.dpsgd.settings import DPSGDSection


def dpsgd_recipe_of(config: StudyConfig) -> DPSGDRecipe:
    """Build everything that decides on what a study learns directly. ``config``: settled."""
    steps = config.of(DPSGDSection)
    recipe = DPSGDRecipe(
        dpsgd=steps.build(),
        preprocessing=preprocessing_of(config),
        seed=config.study.seed,
        noise_seed=steps.noise_seed if config.noise_is_seeded else None,
    )
    return recipe if config.parties.collective is None else for_parties(recipe, None)
