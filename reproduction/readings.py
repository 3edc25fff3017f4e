"""Two readings of every cell: as published, and sound."""

from __future__ import annotations

from dataclasses import dataclass, field

from collegium import Account, Uniform, Upsampling, Vanishing, Weighting
from collegium.accounting.renyi import SEED_ORDERS
from collegium.errors import InputError
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.pricing import Pricing, pricing_for
from collegium.personalisation import Electorate, Personalisation


@dataclass(frozen=True)
class Reading:
    """How an experiment is read: account, rules of influence, models.

    Attributes
    ----------
    name : {"published", "sound"}
    words : str
        For headings.
    guarantee : {"data-dependent", "worst-case"}
    personalisations : dict of str to Personalisation
        By variant.
    teachers, students : dict of str to str
        Names of model kinds (:mod:`reproduction.kinds`) by data set.
    answered_share : dict of str to float
        By data set: the share of the public records about which students learn a noisy histogram,
        instead of labels by the sources' mechanism.
    stand_in : str
        What is added to the model of a small stand-in to get its student.
    """

    name: str
    words: str
    guarantee: str
    personalisations: dict[str, Personalisation]
    teachers: dict[str, str]
    students: dict[str, str]
    answered_share: dict[str, float] = field(default_factory=dict)
    stand_in: str = ""

    def personalisation(self, variant: str) -> Personalisation:
        """Return the personalisation of a variant.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        if variant not in self.personalisations:
            raise InputError(
                f"there is no variant {variant!r}: allowed are {', '.join(self.personalisations)}"
            )
        return self.personalisations[variant]

    @property
    def settings(self) -> Account:
        """The account of a voting."""
        if self.guarantee == "worst-case":
            return Account()
        return Account("data-dependent", "mironov", "seeds", "papers")

    def pricing(self, aggregator: Aggregator, electorate: Electorate) -> Pricing:
        """Make the prices of one voting."""
        chosen = self.settings
        return pricing_for(
            chosen.guarantee,
            aggregator,
            electorate,
            chosen.renyi_orders,
            chosen.conversion,
            bounds=chosen.bounds,
        )

    @property
    def account(self) -> str:
        """The account in words; part of what results are cached by."""
        if self.guarantee == "worst-case":
            return "worst case, exact Gaussian DP"
        return f"data-dependent, mironov, orders {SEED_ORDERS[0]:g}…{SEED_ORDERS[-1]:g}"


PUBLISHED = Reading(
    "published",
    "as published: data-dependent account, Mironov's conversion, orders 2…50, influence ∝ ε",
    "data-dependent",
    {
        "none": Uniform(),
        "upsampling": Upsampling(rule="budget", tolerance=0.0),
        "weighting": Weighting(rule="budget"),
        "vanishing": Vanishing(rule="thesis"),
        "algorithm2": Weighting(rule="algorithm2"),
    },
    teachers={"mnist": "seed-cnn", "svhn": "seed-cnn", "adult": "forest"},
    students={"mnist": "seed-cnn", "svhn": "seed-cnn", "adult": "forest"},
)

SOUND = Reading(
    "sound",
    "sound: worst case, exact Gaussian DP, influence ∝ μ(ε, δ), our best student",
    "worst-case",
    {
        "none": Uniform(),
        "upsampling": Upsampling(),
        "weighting": Weighting(),
        "vanishing": Vanishing(),
        "algorithm2": Weighting(rule="algorithm2"),
    },
    teachers={"mnist": "scattering-ridge", "svhn": "small-cnn", "adult": "tabular"},
    students={
        "mnist": "scattering-process",
        "svhn": "self-training",
        "adult": "evidence-regression",
    },
    answered_share={"mnist": 1.0, "svhn": 1.0, "adult": 1.0, "digits": 1.0},
    stand_in="-soft",
)

READINGS = {reading.name: reading for reading in (PUBLISHED, SOUND)}


def readings_named(name: str) -> tuple[Reading, ...]:
    """Return one reading, or ``both``.

    Raises
    ------
    InputError
        If there is no such reading.

    Examples
    --------
    >>> [reading.name for reading in readings_named("both")]
    ['published', 'sound']
    """
    if name == "both":
        return (PUBLISHED, SOUND)
    if name not in READINGS:
        raise InputError(f"there is no reading {name!r}: allowed are published, sound and both")
    return (READINGS[name],)
