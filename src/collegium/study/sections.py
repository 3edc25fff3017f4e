"""The sections of a study's file: every key with its type, default, meaning and allowed values.

Here stand those that studies of every method have; a method's own stand with it
(:mod:`collegium.study.methods.kinds` knows all). The checks of ``collegium run``, the commented example of
``collegium init --all-keys`` and its JSON Schema are made from these fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from collegium.distillation.goal import ACCURACY, GOALS
from collegium.parameters import Settings, same_as, setting, settings_of
from collegium.pate.settings import Account, Queries

MOST_JOBS = 10_000
"""Parallel jobs that may be asked for: more are a slip of the pen, and would start as many processes."""

_MOST_SEED = 2**32 - 1  # of scikit-learn's random_state

AUTO = "auto"
PREPROCESSINGS = (
    "none",
    "tabular",
    "principal",
    "binned",
    "crossed",
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

    name: str = setting(
        "study",
        "Title of the report, and of what used their records on people's receipts. Left out: what is "
        "predicted, and from what.",
    )
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
        "The private records: .csv, .csv.gz, .parquet (file or folder), .xlsx, .npy, .npz (X, and classes y) "
        "or IDX; a folder of images, flat or with one subfolder per class; or a table in a database: "
        "duckdb:///FILE#TABLE, sqlite:///FILE#TABLE, postgresql://USER@HOST/DATABASE#TABLE.",
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
        "The public records, likewise: the same features. A target column of theirs is used to measure how "
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
        "Which features are numbers, text or dates, where the public records do not show it: number, text, "
        "or an example of a date. What is no number in a column of numbers, or no date in one of dates, is a "
        "missing value. Private records never decide.",
        kind="table",
        example='{ age = "number", postcode = "text", visit = "31/12/2024" }',
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
        None,
        "Split: number of public records. Their labels only measure.",
        kind="whole number",
        example="7000",
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
        "CSV with one level or ε per private record in its only column, in the order of the records "
        "(images of a folder: class by class, and each class by file names), where there is no such column "
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
    spend: float | None = setting(
        None,
        "On a ledger: share of what people have left (of their μ²) that this release may use. Left out: the "
        "least of which a rehearsal on public records expects as much as of everything, and never the last "
        "tenth; half, where there is nothing to rehearse with.",
        kind="number",
        above=0,
        most=1,
        example="0.3",
    )
    section: ClassVar[str] = "privacy"


@dataclass(frozen=True)
class Method(Settings):
    """How it is learnt."""

    kind: str = AUTO
    section: ClassVar[str] = "method"


@dataclass(frozen=True)
class Features(Settings):
    """A network that was trained elsewhere, and is brought along: records are seen through it."""

    weights: str | None = setting(
        None,
        "File with the network's state, as torch.save(network.state_dict(), FILE) writes it (.pt, .pth), or "
        ".safetensors: nothing in it is run. Left out: no network. What it was trained on is not covered by "
        "the guarantee, and the statement says so.",
        kind="path",
        example='"network.pt"',
    )
    network: str | None = setting(
        None,
        "Which network that is: small-cnn, seed-cnn, mlp, or the full name of an installed class of "
        "torch.nn.Module, or of a function annotated to return one. Nothing is downloaded.",
        kind="text",
        example='"torchvision.models.resnet18"',
    )
    params: Mapping[str, Any] = setting({}, "Arguments for making the network.")
    layer: str | None = setting(
        None,
        "Name of the module whose output is taken. Left out: what enters the last linear layer.",
        kind="text",
        example='"avgpool"',
    )
    input_shape: Sequence[int] | None = setting(
        None,
        "Shape of a record, where flat rows are images: channels, height, width.",
        kind="list",
        example="[1, 28, 28]",
        items=("number",),
    )
    mean: Sequence[float] = setting(
        [0.0],
        "What was subtracted from records where the network was trained, on the scale of these records: one "
        "number, or one for each channel.",
        items=("number",),
    )
    deviation: Sequence[float] = setting(
        [1.0], "What they were divided by then, likewise.", items=("number",)
    )
    batch_size: int = setting(
        1,
        "Records that are computed together. 1: each alone, so that none can change another's features, not "
        "even by rounding. More is faster where networks are small; statements then make a proviso.",
    )
    device: str = setting("auto", "auto: a GPU, if there is one.", choices=("auto", "cpu", "cuda"))
    section: ClassVar[str] = "features"


@dataclass(frozen=True)
class Preprocessing(Settings):
    """Fitted on the public records only, applied to all."""

    kind: str | None = setting(
        None,
        "Left out: tabular for a table in which public records have text, none otherwise; with method dpsgd, "
        "crossed for any table, and kernel for images; with [features], components. "
        "none; tabular: numbers scaled and categories coded; principal: tables as principal coordinates, "
        "best for the model `tabular`; binned: beside these, in which bin each number is; crossed: fine "
        "bins, and columns that act together, best for method dpsgd; pixels: flattened images in [0, 1]; "
        "pca: pixels, then principal components; scattering: scattering features of images, then principal "
        "components, best for the model `ridge`; kernel: similarities of images to public ones, then "
        "principal components, best for method dpsgd; components: rows of numbers as principal components; "
        "embeddings: the records are embeddings of a public model.",
        kind="text",
        choices=PREPROCESSINGS,
        example='"none"',
    )
    categorical: str = setting(
        "ordinal", "tabular: codes, or one column per category.", choices=("ordinal", "onehot")
    )
    components: int = setting(
        50,
        "pca, principal, binned, crossed, scattering, kernel, components: number of components; with method "
        "dpsgd at most so many.",
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
class StudentSection(Settings):
    """The model that is published; with method dpsgd only if something besides a goal stands here."""

    model: str = setting(
        "logistic-regression",
        "As for teachers; or one that learns from all public records: graph, gaussian-process, "
        "evidence-regression (for tables), either (the better of "
        "the last two); with PyTorch self-training (or semi-supervised), fixmatch, vat, pate-g.",
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
        "out: COLLEGIUM_LEDGER, else one beside the private records, named after their table.",
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
class PartiesSection(Settings):
    """With whom a study is run, each on a table of its own: all have the same file, and publish the same."""

    collective: str | None = setting(
        None,
        "File that all parties have: who they are, how many may stay away, and how many may collude "
        "(`collegium party collective` writes it). study.name is then the same for all, too.",
        kind="path",
        example='"collective.toml"',
    )
    key: str | None = setting(
        None,
        "File of this party's own key (`collegium party key` makes one).",
        kind="path",
        example='"own.key"',
    )
    folder: str | None = setting(
        None,
        "Folder that all parties see: shared, synchronised or carried.",
        kind="path",
        example='"../shared"',
    )
    collect_s: float = setting(
        3600.0,
        "Seconds in which all parties should add to a sum; then those that have count, if they are enough. "
        "The same for all.",
        above=0,
    )
    give_up_s: float = setting(
        86_400.0, "Seconds after which a run stops waiting; the same command goes on.", above=0
    )
    poll_s: float = setting(1.0, "Seconds between two looks into the folder.", above=0)
    section: ClassVar[str] = "parties"


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
