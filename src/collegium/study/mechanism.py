"""From the section ``aggregation`` to a mechanism: numbers that were left out follow the teachers."""

from __future__ import annotations

from collegium.pate.voting.aggregators import Aggregator, aggregator_from
from collegium.pate.voting.least_noise import least_sigma
from collegium.personalisation.electorate import Electorate
from collegium.study.sections import BELONGING, Aggregation


def mechanism_of(
    chosen: Aggregation, n_teachers: int, electorate: Electorate | None = None
) -> Aggregator:
    """Build the aggregator of a study.

    Parameters
    ----------
    chosen : Aggregation
        The section.
    n_teachers : int
        Nominal number of teachers k.
    electorate : Electorate, optional
        Who votes; without it, a number of answers does not decide on the noise.
    """
    name = chosen.aggregator
    in_proportion = {
        "threshold": (0.4 if name == "interactive" else 0.8) * n_teachers,
        "sigma_threshold": 0.6 * n_teachers,
        "sigma": 0.16 * n_teachers,
        "gamma": 12.5 / n_teachers,
    }
    numbers = {key: getattr(chosen, key) for key in BELONGING["aggregation.aggregator"][name]}
    if chosen.answers is not None and electorate is not None:
        numbers["sigma"] = least_sigma(electorate, chosen.answers)
    return aggregator_from(
        name,
        **{
            key: in_proportion[key] if number is None else number for key, number in numbers.items()
        },
    )
