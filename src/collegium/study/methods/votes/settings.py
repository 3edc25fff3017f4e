"""What a study's file says of teachers who vote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from collegium.distillation.goal import ACCURACY, wants_balanced_votes
from collegium.errors import ConfigError
from collegium.parameters import Settings, same_as, setting, settings_of
from collegium.pate import recipe
from collegium.pate.queries.selection import ACTIVE
from collegium.pate.settings import Account, Queries
from collegium.pate.voting.aggregators import (
    AGGREGATORS,
    Aggregator,
    InteractiveGNMax,
    aggregator_from,
)
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.personalisation import (
    PERSONALISATIONS,
    Bagging,
    Hybrid,
    Personalisation,
    Upsampling,
    Vanishing,
    Weighting,
)
from collegium.study.sections import (
    NOISE,
    NOISE_SEED,
    PartiesSection,
    Preprocessing,
    StudentSection,
)
from collegium.study.study_settings import Kind, StudyConfig

#: What a file that leaves the choice open may still say of the student.
_OPEN = {"goal", "class_shares"}


@dataclass(frozen=True)
class Teachers(Settings):
    """One model for each shard of private records."""

    model: str = setting(
        "logistic-regression",
        "random-forest, logistic-regression, svm, nearest-neighbours, gradient-boosting; made for small "
        "shards: ridge, logistic, tabular, small-cnn, seed-cnn, mlp; or the full name of any class with "
        "fit and predict, such as sklearn.naive_bayes.GaussianNB.",
    )
    params: Mapping[str, Any] = setting({}, "Parameters of the model.")
    n_teachers: int = setting(
        250, "Nominal number of teachers k, for which the aggregation's numbers are given."
    )
    assignment: str = same_as(Personalisation, "assignment")
    class_shares: Mapping[str, float] | None = setting(
        None,
        "Public shares of the classes (a census, say; never counted in the private records). Each teacher "
        "sees its own shard in these shares, so that budgets that go by class do not bend votes. Costs "
        "nobody anything.",
        kind="table",
        example='{ "<=50K" = 0.76, ">50K" = 0.24 }',
        items=("number",),
    )
    section: ClassVar[str] = "teachers"


@dataclass(frozen=True)
class PersonalisationSection(Settings):
    """How budgets become influence."""

    method: str = setting(
        Weighting.name,
        "uniform: everybody pays what the strictest allows. upsampling: who grants more is seen by more "
        "teachers. weighting: teachers of who grants more weigh more. vanishing: teachers of who grants "
        "less stay away from some votes. bagging: everybody alike, split among the teachers several times. "
        "hybrid: weighting, where levels too small for a teacher of their own share some.",
        choices=tuple(PERSONALISATIONS),
    )
    rule: str = same_as(Personalisation, "rule")
    max_duplicates: int = same_as(Upsampling, "max_duplicates")
    tolerance: float = same_as(Upsampling, "tolerance")
    precision: int = same_as(Upsampling, "precision")
    shuffle_every: int = same_as(Vanishing, "shuffle_every")
    partitions: int | None = setting(
        None,
        f"bagging: how often all people are split among the teachers; left out: {Bagging().partitions}.",
        kind="whole number",
        least=2,
        most=1000,
        example=str(Bagging().partitions),
    )
    noise_to_votes: float | None = same_as(Hybrid, "noise_to_votes")
    section: ClassVar[str] = "personalisation"

    def build(self) -> Personalisation:
        """Make the personalisation that is chosen; how owners get their teachers, another section says."""
        cls = PERSONALISATIONS[self.method]
        given = {field.name: getattr(self, field.name, None) for field in fields(cls)}
        return cls(**{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True)
class Aggregation(Settings):
    """How votes become labels."""

    aggregator: str = setting(
        "confident",
        "lnmax: Laplace noise. gnmax: Gaussian noise. confident: answer only where teachers agree. "
        "interactive: answer only where they disagree with the student. pfmax: exponential noise "
        "(permute-and-flip). expmax: Gumbel noise (exponential mechanism).",
        choices=tuple(AGGREGATORS),
    )
    threshold: float | None = setting(
        None,
        "confident, interactive: threshold T of the check. Default: 0.8 k, or 0.4 k for interactive.",
        kind="number",
        example="200",
    )
    sigma_threshold: float | None = setting(
        None,
        "confident, interactive: noise of the check. Default: 0.6 k.",
        kind="number",
        example="150",
        above=0,
    )
    sigma: float | None = setting(
        None,
        "gnmax, confident, interactive: noise of the answer. Default: 0.16 k.",
        kind="number",
        example="40",
        above=0,
    )
    answers: int | None = setting(
        None,
        "gnmax, instead of sigma: as much noise as it takes for all budgets to pay for so many answers "
        "(worst-case guarantee only).",
        kind="whole number",
        example="9000",
    )
    gamma: float | None = setting(
        None,
        "lnmax, pfmax, expmax: inverse scale of the noise. Default: 12.5 / k.",
        kind="number",
        example="0.05",
        above=0,
    )
    confidence: float = setting(
        InteractiveGNMax.confidence,
        "interactive: how sure a student must be to be reinforced.",
        least=0,
        most=1,
    )
    refit_every: int = setting(
        InteractiveGNMax.refit_every, "interactive: labels between two fits of the student."
    )
    max_queries: int | None = same_as(Queries, "max_queries")
    max_labels: int | None = same_as(Queries, "max_labels")
    noise: str = NOISE
    noise_seed: int = NOISE_SEED
    release: str = same_as(Queries, "release")
    query_order: str = same_as(Queries, "query_order")
    section: ClassVar[str] = "aggregation"

    @property
    def seed_of_noise(self) -> int | None:
        """None: noise comes from the operating system."""
        return self.noise_seed if self.noise == "seeded" else None


class VotesKind(Kind):
    """Teachers learn from shards of the private records, and vote on public ones."""

    name = "pate"
    meaning = "teachers learn from shards of the private records, and vote on public ones."
    method_at = "collegium.study.methods.votes.method:Votes"
    terms_at = "collegium.study.methods.votes.terms:JobTerms"
    sections = (Teachers, PersonalisationSection, Aggregation)
    unused = ()
    is_chosen = True
    learner = "the student"
    in_words = ""
    cannot_forget = ""
    adds_up = True
    belonging: ClassVar[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
        "personalisation.method": {
            name: tuple(
                field.name
                for field in fields(cls)
                if field.name not in settings_of(Personalisation)
            )
            for name, cls in PERSONALISATIONS.items()
        },
        "aggregation.aggregator": {
            name: tuple(field.name for field in fields(cls)) for name, cls in AGGREGATORS.items()
        },
    }
    narrowed: ClassVar[Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]] = {
        "personalisation.method": {
            name: {"rule": cls.rules} for name, cls in PERSONALISATIONS.items()
        }
    }

    def meant_by(self, given: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether anything says how it is learnt, or accounts for it, as only votes do."""
        hows = (Preprocessing, *self.sections, StudentSection)
        says = {cls.section: set(given.get(cls.section, {})) for cls in hows}
        says[StudentSection.section] -= _OPEN
        of_votes = settings_of(Account).keys() - {"delta", "guarantee"}
        privacy = given.get("privacy", {})
        is_data_dependent = privacy.get("guarantee", "worst-case") != "worst-case"
        return any(says.values()) or bool(of_votes & privacy.keys()) or is_data_dependent

    def has_student(self, given: Mapping[str, Mapping[str, Any]]) -> bool:
        """Always: nothing else of what is learnt is published."""
        return True

    def settled(
        self, sections: dict[str, Any], given: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Release histograms, where several parties see them."""
        aggregation = sections[Aggregation.section]
        if given.get(PartiesSection.section) and "release" not in given.get(
            aggregation.section, {}
        ):
            sections[aggregation.section] = replace(aggregation, release=HISTOGRAM)
        return sections

    def check(self, config: StudyConfig) -> None:
        """Refuse numbers that do not go together."""
        personalisation = config.of(PersonalisationSection).build()
        how = (aggregator_of(config), config.account())
        if config.parties.collective is not None:
            from collegium.pate import between_parties

            order, given = queries_of(config).query_order, has_teachers(config)
            unit = between_parties.PERSON
            between_parties.refuse_alone(*how, personalisation, order, unit, given)
            if config.of(Aggregation).release == LABELS:
                raise ConfigError(
                    "aggregation.release = 'labels' would hide what all parties see, which are noisy counts: "
                    "leave it out"
                )
        recipe.check_together(*how, queries_of(config))
        if config.student.targets is not None and config.of(Aggregation).release == LABELS:
            raise ConfigError(
                "student.targets would have no effect: only labels are released: remove it, or set "
                "aggregation.release = 'histogram'"
            )

    def noise_is_seeded(self, config: StudyConfig) -> bool:
        """Whether it says so."""
        return config.of(Aggregation).noise == "seeded"

    def how_to_secure(self) -> str:
        """Unsay it."""
        return f"set {Aggregation.section}.noise = 'secure'"

    def arrangement(self, config: StudyConfig) -> dict[str, Any]:
        """How people are dealt to teachers."""
        return {"assignment": config.of(Teachers).assignment}

    def frozen(self, config: StudyConfig) -> dict[str, dict[str, Any]]:
        """All but the student, which may be replaced, unless its opinion steers the voting or the choice of
        questions.
        """
        settings = config.public()
        active = config.of(Aggregation).query_order == ACTIVE
        if not (aggregator_of(config).consults_student or active):
            del settings["student"]
        else:  # shares correct the student that is published, not the one that steers
            settings["student"].pop("class_shares", None)
            settings["student"].pop("goal", None)
        # Teachers that voted for one goal cannot be asked for another.
        if wants_balanced_votes(config.student.goal):
            settings["teachers"]["votes"] = f"balanced (student.goal is not {ACCURACY!r})"
        return settings

    def unstreamed(self, config: StudyConfig) -> str:
        """Refuse what needs all owners at once."""
        assignment = config.of(Teachers).assignment
        if assignment == "hash":
            return ""
        return f"teachers.assignment {assignment!r} needs all owners at once: use 'hash'"


def has_teachers(config: StudyConfig) -> bool:
    """Whether the file says how many teachers there are."""
    return "n_teachers" in config.given.get(Teachers.section, {})


def queries_of(config: StudyConfig) -> Queries:
    """What is asked, and what is shown of the answers."""
    chosen = config.of(Aggregation)
    given = {
        name: getattr(config.student if name == "targets" else chosen, name)
        for name in settings_of(Queries)
    }
    return Queries(**{name: value for name, value in given.items() if value is not None})


def aggregator_of(config: StudyConfig) -> Aggregator:
    """Build the aggregator; numbers that were left out follow the teachers when a run resolves it."""
    chosen = config.of(Aggregation)
    names = VotesKind.belonging["aggregation.aggregator"][chosen.aggregator]
    return aggregator_from(chosen.aggregator, **{name: getattr(chosen, name) for name in names})
