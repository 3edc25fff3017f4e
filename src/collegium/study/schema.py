"""Every key of a study's TOML file: its type, default, meaning and allowed values.

The commented example that ``collegium init`` writes and the checks of ``collegium run`` are both made
from this list, so they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collegium.accounting.renyi import CONVERSIONS
from collegium.pate.students.selection import QUERY_ORDERS, RANDOM
from collegium.pate.students.targets import METHODS
from collegium.pate.voting.aggregators import AGGREGATORS
from collegium.pate.voting.pricing import GUARANTEES
from collegium.pate.voting.release import RELEASES
from collegium.personalisation import PERSONALISATIONS


@dataclass(frozen=True)
class Key:
    """One key.

    Attributes
    ----------
    section, name : str
        Where it stands.
    kind : str
        "text", "path" (of a file or folder), "number", "whole number", "yes/no", "list" or "table".
    default : object
        None: may be left out.
    meaning : str
        One or two sentences.
    choices : tuple of str
        Allowed values; empty: any.
    example : str
        What the example file shows for a key without default.
    items : tuple of str
        Kinds of what a list or table holds; empty: anything.
    least, most : int
        Between which a whole number lies.
    may_be_empty : bool
        Whether a text may be empty.
    """

    section: str
    name: str
    kind: str
    default: Any
    meaning: str
    choices: tuple[str, ...] = ()
    example: str = ""
    items: tuple[str, ...] = ()
    least: int = 1
    most: int = 1_000_000_000
    may_be_empty: bool = False

    @property
    def path(self) -> str:
        """Name with section, as messages call it."""
        return f"{self.section}.{self.name}"


SECTIONS = {
    "study": "What this is.",
    "data": "Private records, public records, and (optional) public test records.",
    "privacy": "What people granted, and which guarantee they get.",
    "preprocessing": "Fitted on the public records only, applied to all.",
    "teachers": "One model for each shard of private records.",
    "personalisation": "How budgets become influence.",
    "aggregation": "How votes become labels.",
    "student": "The model that is published.",
    "run": "Speed only: nothing here can change a result, a label or an account.",
}

MOST_JOBS = 10_000
"""Parallel jobs that may be asked for: more are a slip of the pen, and would start as many processes."""

_MOST_SEED = 2**32 - 1  # of scikit-learn's random_state

PREPROCESSINGS = ("none", "tabular", "principal", "pixels", "pca", "scattering", "embeddings")

KEYS = (
    Key("study", "name", "text", "study", "Title of the report."),
    Key(
        "study",
        "seed",
        "whole number",
        0,
        "Public randomness: splits, assignment of owners to teachers, training, order of the queries. "
        "Never used for privacy noise.",
        least=0,
        most=_MOST_SEED,
    ),
    Key(
        "data",
        "dataset",
        "text",
        None,
        "A named data set instead of files of your own.",
        ("digits", "mnist", "adult", "diabetes130"),
        '"adult"',
    ),
    Key(
        "data",
        "private",
        "path",
        None,
        "File with the private records: .csv, .csv.gz, .parquet (file or folder), .npy or IDX.",
        (),
        '"private.csv"',
    ),
    Key(
        "data",
        "private_labels",
        "path",
        None,
        "Labels of the private records, where they are no column of a table (.npy or IDX).",
        (),
        '"private-labels.npy"',
    ),
    Key(
        "data",
        "public",
        "path",
        None,
        "File with the public records: the same features. A target column in it is used only to "
        "measure how right the released labels are.",
        (),
        '"public.csv"',
    ),
    Key(
        "data",
        "public_labels",
        "path",
        None,
        "True labels of the public records, if known; used only to measure.",
        (),
        '"public-labels.npy"',
    ),
    Key(
        "data",
        "test",
        "path",
        None,
        "File with labelled public records on which the student is measured.",
        (),
        '"test.csv"',
    ),
    Key(
        "data", "test_labels", "path", None, "Labels of the test records.", (), '"test-labels.npy"'
    ),
    Key("data", "target", "text", None, "Column to predict.", (), '"income"'),
    Key(
        "data",
        "owner",
        "text",
        None,
        "Column that says whose record it is. Left out: every record has an owner of its own.",
        (),
        '"patient_id"',
    ),
    Key("data", "exclude", "list", [], "Columns that are not features.", items=("text",)),
    Key(
        "data",
        "classes",
        "list",
        None,
        "The public list of classes. Left out: the classes that occur in the private records, which are "
        "thereby treated as public.",
        (),
        '["<=50K", ">50K"]',
        items=("text", "number", "yes/no"),
    ),
    Key(
        "data",
        "missing",
        "text",
        None,
        "Text that marks a missing value; records that contain it are dropped.",
        (),
        '"?"',
        may_be_empty=True,
    ),
    Key(
        "data",
        "private_records",
        "whole number",
        None,
        "Split of a single data set: number of private records. Records of one owner stay on one side.",
        (),
        "37222",
    ),
    Key(
        "data",
        "public_records",
        "whole number",
        None,
        "Split: number of public records.",
        (),
        "7000",
    ),
    Key(
        "data",
        "test_records",
        "whole number",
        None,
        "Split: number of public test records.",
        (),
        "1000",
    ),
    Key(
        "privacy",
        "levels",
        "table",
        None,
        "Privacy levels in words, with the ε that they mean; inf means no privacy.",
        (),
        "{ high = 1.0, average = 2.0, low = 3.0 }",
        items=("number",),
    ),
    Key("privacy", "delta", "number", 1e-5, "δ of every level; well below 1 / number of people."),
    Key(
        "privacy",
        "column",
        "text",
        None,
        "Column of the private table with each record's level, or with ε as a number (then leave out "
        "`levels`).",
        (),
        '"privacy"',
    ),
    Key(
        "privacy",
        "file",
        "path",
        None,
        "CSV with one level or ε per private record in its only column, where there is no such column "
        "in the table.",
        (),
        '"privacy.csv"',
    ),
    Key(
        "privacy",
        "shares",
        "table",
        None,
        "For experiments: give levels to owners at random in these shares.",
        (),
        "{ high = 0.54, average = 0.37, low = 0.09 }",
        items=("number",),
    ),
    Key(
        "privacy",
        "guarantee",
        "text",
        "worst-case",
        "worst-case: holds whatever the data are. data-dependent: the papers' account of this one data "
        "set, which is itself sensitive and stays in the vault.",
        GUARANTEES,
    ),
    Key(
        "privacy",
        "conversion",
        "text",
        "canonne",
        "From Rényi DP to (ε, δ) in the data-dependent account.",
        tuple(CONVERSIONS),
    ),
    Key(
        "privacy",
        "orders",
        "text",
        "wide",
        "Rényi orders of the data-dependent account; seeds: the papers' 2, 3 … 50.",
        ("wide", "seeds"),
    ),
    Key(
        "privacy",
        "bounds",
        "text",
        None,
        "Bounds of the data-dependent account. papers: as published. sharp: the exact divergence of the "
        "check and the exact probability of another winner. Default: papers where conversion or orders "
        "are the papers', else sharp.",
        ("papers", "sharp"),
        '"papers"',
    ),
    Key(
        "preprocessing",
        "kind",
        "text",
        "none",
        "none; tabular: numbers scaled and categories coded; principal: tables as principal coordinates, "
        "best for the model `tabular`; pixels: flattened images in [0, 1]; pca: pixels, then principal "
        "components; scattering: scattering features of images, then principal components, best for the "
        "model `ridge`; embeddings: the records are embeddings of a public model.",
        PREPROCESSINGS,
    ),
    Key(
        "preprocessing",
        "categorical",
        "text",
        "ordinal",
        "tabular: codes, or one column per category.",
        ("ordinal", "onehot"),
    ),
    Key(
        "preprocessing",
        "components",
        "whole number",
        50,
        "pca, principal, scattering: number of components.",
    ),
    Key(
        "preprocessing",
        "normalise",
        "text",
        "length",
        "embeddings: each divided by its own length; centred and scaled as the public ones show; or left.",
        ("length", "public", "none"),
    ),
    Key(
        "teachers",
        "model",
        "text",
        "logistic-regression",
        "random-forest, logistic-regression, svm, nearest-neighbours, gradient-boosting; made for small "
        "shards: ridge, logistic, tabular, small-cnn, seed-cnn, mlp; or the full name of any class with "
        "fit and predict, such as sklearn.naive_bayes.GaussianNB.",
    ),
    Key("teachers", "params", "table", {}, "Parameters of the model."),
    Key(
        "teachers",
        "number",
        "whole number",
        250,
        "Nominal number of teachers k, for which the aggregation's numbers are given.",
    ),
    Key(
        "teachers",
        "assignment",
        "text",
        "hash",
        "hash: adding or removing an owner changes only that owner's teachers. balanced: shards of equal "
        "size, protecting against replacement only.",
        ("hash", "balanced"),
    ),
    Key(
        "teachers",
        "class_shares",
        "table",
        None,
        "Public shares of the classes (a census, say; never counted in the private records). Each teacher "
        "sees its own shard in these shares, so that budgets that go by class do not bend votes. Costs "
        "nobody anything.",
        (),
        '{ "<=50K" = 0.76, ">50K" = 0.24 }',
        items=("number",),
    ),
    Key(
        "personalisation",
        "method",
        "text",
        "weighting",
        "uniform: everybody pays what the strictest allows. upsampling: who grants more is seen by more "
        "teachers. weighting: teachers of who grants more weigh more. vanishing: teachers of who grants "
        "less stay away from some votes.",
        tuple(PERSONALISATIONS),
    ),
    Key(
        "personalisation",
        "rule",
        "text",
        "exact",
        "exact: all budgets run out together. budget, sqrt: as in the papers (∝ ε, ∝ √ε). algorithm1 "
        "(upsampling), algorithm2 (weighting), algorithm3, footnote2 and thesis (vanishing): as printed "
        "there.",
    ),
    Key(
        "personalisation",
        "max_duplicates",
        "whole number",
        6,
        "upsampling: most teachers for one owner.",
    ),
    Key(
        "personalisation",
        "tolerance",
        "number",
        0.02,
        "upsampling: efficiency that may be given up for fewer duplicates.",
    ),
    Key(
        "personalisation",
        "precision",
        "whole number",
        2,
        "upsampling, algorithm1: decimals of ε.",
        least=0,
    ),
    Key(
        "personalisation",
        "shuffle_every",
        "whole number",
        100,
        "vanishing: queries after which participation is dealt anew.",
    ),
    Key(
        "aggregation",
        "aggregator",
        "text",
        "confident",
        "lnmax: Laplace noise. gnmax: Gaussian noise. confident: answer only where teachers agree. "
        "interactive: answer only where they disagree with the student. pfmax: exponential noise "
        "(permute-and-flip). expmax: Gumbel noise (exponential mechanism).",
        tuple(AGGREGATORS),
    ),
    Key(
        "aggregation",
        "threshold",
        "number",
        None,
        "confident, interactive: threshold T of the check. Default: 0.8 k, or 0.4 k for interactive.",
        (),
        "200",
    ),
    Key(
        "aggregation",
        "sigma_threshold",
        "number",
        None,
        "confident, interactive: noise of the check. Default: 0.6 k.",
        (),
        "150",
    ),
    Key(
        "aggregation",
        "sigma",
        "number",
        None,
        "gnmax, confident, interactive: noise of the answer. Default: 0.16 k.",
        (),
        "40",
    ),
    Key(
        "aggregation",
        "answers",
        "whole number",
        None,
        "gnmax, instead of sigma: as much noise as it takes for all budgets to pay for so many answers "
        "(worst-case guarantee only).",
        (),
        "9000",
    ),
    Key(
        "aggregation",
        "gamma",
        "number",
        None,
        "lnmax, pfmax, expmax: inverse scale of the noise. Default: 12.5 / k.",
        (),
        "0.05",
    ),
    Key(
        "aggregation",
        "confidence",
        "number",
        0.9,
        "interactive: how sure a student must be to be reinforced.",
    ),
    Key(
        "aggregation",
        "refit_every",
        "whole number",
        50,
        "interactive: labels between two fits of the student.",
    ),
    Key(
        "aggregation",
        "max_queries",
        "whole number",
        None,
        "Stop after so many queries.",
        (),
        "9000",
    ),
    Key(
        "aggregation", "max_labels", "whole number", None, "Stop after so many labels.", (), "2000"
    ),
    Key(
        "aggregation",
        "noise",
        "text",
        "secure",
        "secure: from the operating system. seeded: for experiments; the study is then NOT PRIVATE and "
        "says so everywhere.",
        ("secure", "seeded"),
    ),
    Key(
        "aggregation",
        "noise_seed",
        "whole number",
        0,
        "Seed of seeded noise.",
        least=0,
        most=_MOST_SEED,
    ),
    Key(
        "aggregation",
        "release",
        "text",
        "labels",
        "labels: the winner of each vote. histogram: the noisy counts of all classes and the noisy value "
        "of each check, at the same price (worst-case guarantee; lnmax, gnmax, confident and interactive "
        "only). Cannot be changed once a study has begun.",
        RELEASES,
    ),
    Key(
        "aggregation",
        "query_order",
        "text",
        RANDOM,
        "Which public records are asked about first. coverage: those that represent the others best. "
        "active: those of which the student, fitted again as labels are released, is least certain "
        "(worst-case guarantee only; costs nothing). The last two compare records after preprocessing.",
        QUERY_ORDERS,
    ),
    Key(
        "student",
        "model",
        "text",
        "logistic-regression",
        "As for teachers; or one that learns from all public records: graph, gaussian-process, "
        "evidence-regression (for tables); with PyTorch self-training (or semi-supervised), fixmatch, vat.",
    ),
    Key("student", "params", "table", {}, "Parameters of the model."),
    Key(
        "student",
        "preprocessing",
        "text",
        "same",
        "What the student sees of the records, if not the same as the teachers: another kind of "
        "preprocessing, with the numbers of its section. May be changed later, at no cost.",
        ("same", *PREPROCESSINGS),
    ),
    Key(
        "student",
        "targets",
        "text",
        None,
        "What the student learns where histograms are released. mixture: the probability of each class, "
        "with the teachers' agreement learnt from all histograms. noise: the same from the noise alone. "
        "argmax: the label. Default: mixture.",
        METHODS,
        '"mixture"',
    ),
    Key(
        "student",
        "class_shares",
        "table",
        None,
        "Public shares of the classes: the student is corrected until its mean belief in each class, over "
        "the public records, is the class's share. May be changed later, at no cost.",
        (),
        '{ "<=50K" = 0.76, ">50K" = 0.24 }',
        items=("number",),
    ),
    Key(
        "run",
        "jobs",
        "whole number",
        -1,
        "Parallel jobs; -1: all cores.",
        least=-1,
        most=MOST_JOBS,
    ),
    Key(
        "run",
        "streaming",
        "yes/no",
        False,
        "Read private records (a Parquet file or folder) piece by piece into shards on disk, instead of "
        "into memory. Gives the same teachers.",
    ),
    Key(
        "run",
        "engine",
        "text",
        "local",
        "Where teachers are trained and asked. local: processes on this machine. dask, ray: on a cluster. "
        "Or any other backend of joblib, such as threading.",
    ),
    Key(
        "run",
        "address",
        "text",
        None,
        "Of an existing cluster. dask: tcp://host:8786, tls://host:8786 or a scheduler file; ray: "
        "head:6379, or ray://host:10001. Left out: workers are started on this machine.",
        (),
        '"tls://scheduler:8786"',
    ),
    Key(
        "run",
        "data_dir",
        "path",
        None,
        "Folder with named data sets; default: COLLEGIUM_DATA, else a cache folder.",
        (),
        '"data"',
    ),
)
