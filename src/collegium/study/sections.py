"""The sections of a study's file: every key with its type, default, meaning and allowed values.

What the pipeline has settings for is taken from there (:mod:`collegium.pate.settings`, the personalisations
and the aggregators); here stands only what is the study's own. The checks of ``collegium run``, the commented
example of ``collegium init --all-keys`` and its JSON Schema are made from these fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

from collegium.distillation.goal import ACCURACY, GOALS
from collegium.dpsgd.settings import DPSGDSettings
from collegium.parameters import Setting, Settings, same_as, setting, settings_of
from collegium.pate.settings import Account, Queries
from collegium.pate.voting.aggregators import AGGREGATORS, InteractiveGNMax
from collegium.personalisation import (
    PERSONALISATIONS,
    Bagging,
    Hybrid,
    Personalisation,
    Upsampling,
    Vanishing,
    Weighting,
)
from collegium.statistics.settings import QuerySettings

MOST_JOBS = 10_000
"""Parallel jobs that may be asked for: more are a slip of the pen, and would start as many processes."""

_MOST_SEED = 2**32 - 1  # of scikit-learn's random_state

AUTO, PATE, DPSGD, STATISTICS = "auto", "pate", "dpsgd", "statistics"
ZERO, FROM_LABELS = "zero", "public-labels"
PREPROCESSINGS = (
    "none",
    "tabular",
    "principal",
    "binned",
    "pixels",
    "pca",
    "scattering",
    "kernel",
    "components",
    "embeddings",
)


@dataclass(frozen=True)
class Study(Settings):
    """What this is."""

    name: str = setting("study", "Title of the report. Left out: what is predicted, and from what.")
    seed: int = setting(
        0,
        "Public randomness: splits, assignment of owners to teachers, training, order of the queries. "
        "Never used for privacy noise.",
        least=0,
        most=_MOST_SEED,
    )
    section: ClassVar[str] = "study"


@dataclass(frozen=True)
class Data(Settings):
    """Private records, public records, and (optional) public test records."""

    dataset: str | None = setting(
        None,
        "A named data set instead of files of your own.",
        kind="text",
        choices=("digits", "mnist", "adult", "diabetes130", "diabetes130-readmitted"),
        example='"adult"',
    )
    private: str | None = setting(
        None,
        "File with the private records: .csv, .csv.gz, .parquet (file or folder), .npy or IDX.",
        kind="path",
        example='"private.csv"',
    )
    private_labels: str | None = setting(
        None,
        "Labels of the private records, where they are no column of a table (.npy or IDX).",
        kind="path",
        example='"private-labels.npy"',
    )
    public: str | None = setting(
        None,
        "File with the public records: the same features. A target column in it is used to measure how "
        "right the released labels are, and for the list of classes where none is given.",
        kind="path",
        example='"public.csv"',
    )
    public_labels: str | None = setting(
        None,
        "True labels of the public records, if known; used as such a target column.",
        kind="path",
        example='"public-labels.npy"',
    )
    test: str | None = setting(
        None,
        "File with labelled public records on which the student is measured.",
        kind="path",
        example='"test.csv"',
    )
    test_labels: str | None = setting(
        None, "Labels of the test records.", kind="path", example='"test-labels.npy"'
    )
    public_may_overlap: bool | None = setting(
        None,
        "Whether public and test records may equal private ones, or be of people who have private ones (by "
        "names in the owner's column). By default more than a handful are refused; if it is allowed, the "
        "statement of the guarantee says so.",
        kind="yes/no",
        example="true",
    )
    scales_may_differ: bool | None = setting(
        None,
        "Whether private and public numbers may lie on different scales. By default they are refused if one "
        "side seems to be scaled, or a column to be in another unit (records in memory only).",
        kind="yes/no",
        example="true",
    )
    target: str | None = setting(None, "Column to predict.", kind="text", example='"income"')
    owner: str | None = setting(
        None,
        "Column that says whose record it is. Left out: every record has an owner of its own, named by its "
        "position: a record may then be replaced or left blank, not taken out.",
        kind="text",
        example='"patient_id"',
    )
    not_identifiers: Sequence[str] | None = setting(
        None,
        "Columns whose values repeat as those of a person's name do, and are none: they are not asked about.",
        kind="list",
        example='["postcode"]',
        items=("text",),
    )
    exclude: Sequence[str] = setting(
        [], "Columns that are not features, in whichever of the files they are.", items=("text",)
    )
    classes: Sequence[Any] | None = setting(
        None,
        "The public list of classes. Left out: those of the labels of public and test records; without "
        "such labels, those of the private records, which the guarantee then does not cover.",
        kind="list",
        example='["<=50K", ">50K"]',
        items=("text", "number", "yes/no"),
    )
    missing: str | None = setting(
        None,
        "Text that marks a missing value; records that contain it are dropped.",
        kind="text",
        example='"?"',
        may_be_empty=True,
    )
    types: Mapping[str, str] | None = setting(
        None,
        "Which features are numbers and which are text, where the public records do not show it: number or "
        "text. What is no number in a column of numbers is a missing value. Private records never decide.",
        kind="table",
        example='{ age = "number", postcode = "text" }',
        items=("text",),
    )
    separator: str | None = setting(
        None,
        "The character between the cells of CSV files. Left out: a comma, or whichever of semicolon, tab and "
        "| is alone in separating the names of the columns.",
        kind="text",
        example='";"',
        may_be_empty=True,  # a tab is; its length is checked
    )
    decimal: str | None = setting(
        None,
        "What stands before the decimals of numbers in CSV files. Left out: what the public records show.",
        kind="text",
        choices=(".", ","),
        example='","',
    )
    private_records: int | None = setting(
        None,
        "Split of a single data set: number of private records. Records of one owner stay on one side.",
        kind="whole number",
        example="37222",
    )
    public_records: int | None = setting(
        None, "Split: number of public records.", kind="whole number", example="7000"
    )
    test_records: int | None = setting(
        None, "Split: number of public test records.", kind="whole number", example="1000"
    )
    section: ClassVar[str] = "data"


@dataclass(frozen=True)
class Privacy(Account):
    """What people granted, and which guarantee they get."""

    levels: Mapping[str, float] | None = setting(
        None,
        "Privacy levels in words, with the ε that they mean; inf means no privacy, and 0 that these people's "
        "records are read into nothing.",
        kind="table",
        example="{ high = 1.0, average = 2.0, low = 3.0 }",
        items=("number",),
        least=0,
        advice="give a positive ε (inf for no privacy), or 0 for people who grant nothing",
    )
    public: Sequence[str] | None = setting(
        None,
        "Levels with ε = inf whose people let their records be published: the student learns from these "
        "records as they are, and no teacher does.",
        kind="list",
        example='["gift"]',
        items=("text",),
    )
    delta: float = same_as(Account, "delta")
    column: str | None = setting(
        None,
        "Column of the private table with each record's level, or with ε as a number (then leave out "
        "`levels`).",
        kind="text",
        example='"privacy"',
    )
    sizes: Mapping[str, int] | None = setting(
        None,
        "Declared public number of people of each level with a budget (not of those with ε = 0, nor of "
        "public ones), from which the plan is made and which is published. "
        "Left out: they are counted in the private records, and treated as public.",
        kind="table",
        example="{ high = 540, average = 370, low = 90 }",
        items=("whole number",),
        least=0,
    )
    file: str | None = setting(
        None,
        "CSV with one level or ε per private record in its only column, where there is no such column "
        "in the table.",
        kind="path",
        example='"privacy.csv"',
    )
    shares: Mapping[str, float] | None = setting(
        None,
        "For experiments: give levels to owners at random in these shares.",
        kind="table",
        example="{ high = 0.54, average = 0.37, low = 0.09 }",
        items=("number",),
        least=0,
        most=1,
    )
    section: ClassVar[str] = "privacy"


@dataclass(frozen=True)
class Method(Settings):
    """How it is learnt."""

    kind: str = setting(
        AUTO,
        "auto: chosen from public facts, with everything else that a file leaves open; where a section says "
        "how it is learnt, that decides: [dpsgd] and [statistics] mean themselves, others pate. "
        "pate: teachers learn from shards of the private records, and vote on public ones. dpsgd: one model "
        "learns from the private records directly, by noisy steps; it is a linear one, and goes with "
        "[dpsgd] instead of [teachers], [personalisation] and [aggregation]. statistics: nothing is "
        "learnt; questions about the private table are answered with noise, as [statistics] says.",
        choices=(AUTO, PATE, DPSGD, STATISTICS),
    )
    section: ClassVar[str] = "method"


@dataclass(frozen=True)
class Preprocessing(Settings):
    """Fitted on the public records only, applied to all."""

    kind: str | None = setting(
        None,
        "Left out: tabular for a table in which public records have text, none otherwise; with method dpsgd, "
        "binned for any table. "
        "none; tabular: numbers scaled and categories coded; principal: tables as principal coordinates, "
        "best for the model `tabular`; binned: beside these, in which bin each number is, best for method "
        "dpsgd; pixels: flattened images in [0, 1]; pca: pixels, then principal "
        "components; scattering: scattering features of images, then principal components, best for the "
        "model `ridge`; kernel: similarities of images to public ones, then principal components, best for "
        "method dpsgd; components: rows of numbers as principal components; embeddings: the records are "
        "embeddings of a public model.",
        kind="text",
        choices=PREPROCESSINGS,
        example='"none"',
    )
    categorical: str = setting(
        "ordinal", "tabular: codes, or one column per category.", choices=("ordinal", "onehot")
    )
    components: int = setting(
        50,
        "pca, principal, binned, scattering, kernel, components: number of components; with method dpsgd at "
        "most so many.",
    )
    whiten: float | None = setting(
        None,
        "scattering: how far components are brought to one variance, 0 to 1. Left out: 0.25 for teachers, "
        "0.75 for method dpsgd.",
        kind="number",
        least=0,
        most=1,
        example="0.5",
    )
    normalise: str = setting(
        "length",
        "embeddings: each divided by its own length; centred and scaled as the public ones show; or left.",
        choices=("length", "public", "none"),
    )
    section: ClassVar[str] = "preprocessing"


NOISE = setting(
    "secure",
    "secure: from the operating system. seeded: for experiments; the study is then NOT PRIVATE and "
    "says so everywhere.",
    choices=("secure", "seeded"),
)
NOISE_SEED = setting(0, "Seed of seeded noise.", least=0, most=_MOST_SEED)


@dataclass(frozen=True)
class DPSGDSection(DPSGDSettings):
    """Direct training (method dpsgd): noisy steps, each over clipped gradients of the private records."""

    start: str = setting(
        ZERO,
        "zero: every weight begins at 0. public-labels: at a model of the public records whose classes are "
        "known, which costs nobody anything; these records then say less about how good the model is.",
        choices=(ZERO, FROM_LABELS),
    )
    noise: str = NOISE
    noise_seed: int = NOISE_SEED

    def build(self) -> DPSGDSettings:
        """Take what decides on the steps."""
        return DPSGDSettings(
            **{field.name: getattr(self, field.name) for field in fields(DPSGDSettings)}
        )


@dataclass(frozen=True)
class StatisticsSection(QuerySettings):
    """Questions about the private table, answered with noise (method statistics)."""

    schema: str | None = setting(
        None,
        "File with what is public about the table: `collegium schema init` drafts it from public records.",
        kind="path",
        example='"schema.toml"',
    )
    questions: Sequence[str] = setting(
        [],
        "What is asked, in words: mean income by sex where age >= 40. They share what is spent evenly.",
        items=("text",),
    )
    calibrated: Sequence[str] = setting(
        [],
        "Those of the questions (counts, sums, means, tables) that hear everybody alike, whatever they "
        "granted, and show what each group says by itself: where budgets may go with the data.",
        items=("text",),
    )
    section: ClassVar[str] = "statistics"


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


@dataclass(frozen=True)
class StudentSection(Settings):
    """The model that is published; with method dpsgd only if something besides a goal stands here."""

    model: str = setting(
        "logistic-regression",
        "As for teachers; or one that learns from all public records: graph, gaussian-process, "
        "evidence-regression (for tables), either (the better of "
        "the last two); with PyTorch self-training (or semi-supervised), fixmatch, vat.",
    )
    params: Mapping[str, Any] = setting({}, "Parameters of the model.")
    preprocessing: str = setting(
        "same",
        "What the student sees of the records, if not the same as the teachers: another kind of "
        "preprocessing, with the numbers of its section. May be changed later, at no cost.",
        choices=("same", *PREPROCESSINGS),
    )
    targets: str | None = setting(
        None,
        settings_of(Queries)["targets"].meaning + f" Default: {Queries.targets}.",
        kind="text",
        choices=settings_of(Queries)["targets"].choices,
        example=f'"{Queries.targets}"',
    )
    class_shares: Mapping[str, float] | None = setting(
        None,
        "Public shares of the classes: the student is corrected until its mean belief in each class, over "
        "the public records, is the class's share. May be changed later, at no cost.",
        kind="table",
        example='{ "<=50K" = 0.76, ">50K" = 0.24 }',
        items=("number",),
    )
    goal: str = setting(
        ACCURACY,
        "What it is to be good at. accuracy: to be right as often as possible. balanced: to be right about "
        "each class alike, however rare it is. auc: to put records in order. With the last two, teachers "
        "vote as if the classes of their shards were equally frequent. Costs nobody anything.",
        choices=GOALS,
    )
    section: ClassVar[str] = "student"


@dataclass(frozen=True)
class LedgerPlace(Settings):
    """Who remembers, over all releases, what was learnt from whom; nothing here is part of a study."""

    url: str | None = setting(
        None,
        'One account per person, over all releases: a file, postgresql://USER@HOST/DATABASE, or "none". Left '
        "out: COLLEGIUM_LEDGER, else people.ledger beside the private records, made when it is needed.",
        kind="text",
        example='"people.ledger"',
    )
    key: str | None = setting(
        None,
        "File of the ledger's key. Left out: beside a file, with .key added; for a server it must be given.",
        kind="path",
        example='"people.ledger.key"',
    )
    allow_new_people: bool = setting(
        False,
        "Whether most of these people are meant to be new to a ledger that knows others.",
    )
    section: ClassVar[str] = "ledger"


@dataclass(frozen=True)
class Run(Settings):
    """Speed only: nothing here can change a result, a label or an account."""

    n_jobs: int = setting(
        -1, "Parallel jobs; -1: all cores.", most=MOST_JOBS, also={-1: "all cores"}
    )
    streaming: bool = setting(
        False,
        "Read private records (a Parquet file or folder) piece by piece into shards on disk, instead of "
        "into memory. Gives the same teachers, and the same directly trained model.",
    )
    engine: str = setting(
        "local",
        "Where teachers are trained and asked, or streamed records are summed over. local: processes (or "
        "threads) on this machine. dask, ray: on a cluster. "
        "Or any other backend of joblib, such as threading.",
    )
    address: str | None = setting(
        None,
        "Of an existing cluster. dask: tcp://host:8786, tls://host:8786 or a scheduler file; ray: "
        "head:6379, or ray://host:10001. Left out: workers are started on this machine.",
        kind="text",
        example='"tls://scheduler:8786"',
    )
    data_dir: str | None = setting(
        None,
        "Folder with named data sets; default: COLLEGIUM_DATA, else a cache folder.",
        kind="path",
        example='"data"',
    )
    section: ClassVar[str] = "run"


SECTIONS: dict[str, type[Settings]] = {
    cls.section: cls
    for cls in (
        Study,
        Data,
        Privacy,
        Method,
        Preprocessing,
        DPSGDSection,
        StatisticsSection,
        Teachers,
        PersonalisationSection,
        Aggregation,
        StudentSection,
        LedgerPlace,
        Run,
    )
}


class Key(NamedTuple):
    """One key of the file."""

    section: str
    name: str
    setting: Setting

    @property
    def path(self) -> str:
        """Name with section, as messages call it."""
        return f"{self.section}.{self.name}"


KEYS = tuple(
    Key(section, name, about)
    for section, cls in SECTIONS.items()
    for name, about in settings_of(cls).items()
)

_OF_A_TABLE = (
    "private",
    "owner",
    "separator",
    "decimal",
)  # keys of [data]: questions are asked of one

#: For each method, the sections and keys that mean nothing to it.
OF_OTHER_METHODS: dict[str, tuple[str, ...]] = {
    AUTO: (),
    PATE: (DPSGDSection.section, StatisticsSection.section),
    DPSGD: (
        StatisticsSection.section,
        Teachers.section,
        PersonalisationSection.section,
        Aggregation.section,
        *(f"privacy.{name}" for name in settings_of(Account) if name not in ("delta", "guarantee")),
        "student.targets",
    ),
    STATISTICS: (
        Preprocessing.section,
        DPSGDSection.section,
        Teachers.section,
        PersonalisationSection.section,
        Aggregation.section,
        StudentSection.section,
        *(f"data.{name}" for name in settings_of(Data) if name not in _OF_A_TABLE),
        *(
            f"privacy.{name}"
            for name in settings_of(Privacy)
            if name not in ("levels", "delta", "column", "guarantee")
        ),
        "run.streaming",
        "run.engine",
        "run.address",
        "run.data_dir",
    ),
}

#: What a file that leaves the choice open may still say of these sections.
OPEN_KEYS = {StudentSection.section: ("goal", "class_shares")}
#: Sections that say how it is learnt.
HOW = (
    Preprocessing.section,
    DPSGDSection.section,
    StatisticsSection.section,
    Teachers.section,
    PersonalisationSection.section,
    Aggregation.section,
    StudentSection.section,
)

#: For each key that chooses between classes, the keys that belong to each choice.
BELONGING = {
    "personalisation.method": {
        name: tuple(
            field.name for field in fields(cls) if field.name not in settings_of(Personalisation)
        )
        for name, cls in PERSONALISATIONS.items()
    },
    "aggregation.aggregator": {
        name: tuple(field.name for field in fields(cls)) for name, cls in AGGREGATORS.items()
    },
}
