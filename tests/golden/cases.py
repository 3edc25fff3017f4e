"""What the golden record is about: cases as plain data, and the small society that all of them are run on.

Nothing in here knows the package: a case says in words and numbers what a user asks for. How it is asked
stands in ``drivers.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

N_PRIVATE, N_PUBLIC, N_TEST, N_TEACHERS = 900, 120, 100, 24
CLASSES = list(range(10))
FEATURES = [f"block {number}" for number in range(16)]
LEVELS = {"high": 5.0, "average": 9.0, "low": 16.0}
SEED, NOISE_SEED = 11, 7  # public randomness, and the seed of the noise
EVERYWHERE = ("estimator", "study")
ESTIMATOR, STUDY, STREAMED = ("estimator",), ("study",), ("streamed",)

PERSONALISATIONS = ("uniform", "upsampling", "weighting", "vanishing")
AGGREGATORS: dict[str, dict[str, dict[str, float]]] = {
    "worst-case": {
        "lnmax": {"gamma": 0.14},
        "gnmax": {"sigma": 7.0},
        "confident": {"threshold": 13.0, "sigma_threshold": 10.0, "sigma": 7.0},
        "interactive": {
            "threshold": 6.0, "sigma_threshold": 10.0, "sigma": 7.0, "confidence": 0.7, "refit_every": 5,
        },
        "pfmax": {"gamma": 0.14},
        "expmax": {"gamma": 0.14},
    },
    "data-dependent": {  # less noise, so that agreement makes answers cheaper
        "lnmax": {"gamma": 0.35},
        "gnmax": {"sigma": 4.0},
        "confident": {"threshold": 13.0, "sigma_threshold": 8.0, "sigma": 4.0},
        "interactive": {
            "threshold": 6.0, "sigma_threshold": 8.0, "sigma": 4.0, "confidence": 0.7, "refit_every": 5,
        },
        "pfmax": {"gamma": 0.35},
        "expmax": {"gamma": 0.35},
    },
}  # fmt: skip
PAYS_FOR_HISTOGRAM = ("lnmax", "gnmax", "confident", "interactive")
OTHER_RULES = {
    "upsampling": ("budget", "sqrt", "algorithm1"),
    "weighting": ("budget", "sqrt", "algorithm2"),
    "vanishing": ("budget", "sqrt", "algorithm3", "footnote2", "thesis"),
}
UNEVEN = {0: 0.19, **dict.fromkeys(range(1, 10), 0.09)}
BAYES = "sklearn.naive_bayes.GaussianNB"


@dataclass(frozen=True)
class Case:
    """What a user asks for. Keys of ``extras`` are those of a study's section [personalisation]."""

    id: str
    personalisation: str = "weighting"
    rule: str = "exact"
    extras: Mapping[str, Any] = field(default_factory=dict)
    aggregator: str = "gnmax"
    numbers: Mapping[str, float] = field(default_factory=dict)  # of the aggregator
    answers: int | None = None  # instead of them
    release: str = "labels"
    targets: str | None = None
    guarantee: str = "worst-case"
    orders: str = "wide"
    conversion: str = "canonne"
    bounds: str | None = None
    query_order: str = "random"
    assignment: str = "hash"
    teacher_shares: Mapping[int, float] | None = None
    student_shares: Mapping[int, float] | None = None
    max_queries: int | None = None
    max_labels: int | None = None
    levels: Mapping[str, float] = field(default_factory=lambda: LEVELS)
    teacher: str = BAYES
    teacher_params: Mapping[str, Any] = field(default_factory=lambda: {"var_smoothing": 0.02})
    student: str = BAYES
    student_params: Mapping[str, Any] = field(default_factory=lambda: {"var_smoothing": 0.1})
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    student_preprocessing: str = "same"
    drivers: tuple[str, ...] = EVERYWHERE


@dataclass(frozen=True)
class CommandCase:
    """A command line; FOLDER, VOTES, COUNTS, FEATURES and BUDGETS-… stand for files of the case.

    ``before`` are commands that are run first, without a record of what they print.
    """

    id: str
    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Society:
    """Handwritten digits in 4 x 4 blocks: a table with class, person and privacy, and two public ones."""

    private: pd.DataFrame
    public: pd.DataFrame
    test: pd.DataFrame


def society() -> Society:
    """Make the records; a person has one or two records, and one privacy level."""
    digits = load_digits()
    blocks = digits.images.reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(-1, 16)
    table = pd.DataFrame(blocks, columns=FEATURES)
    table["digit"] = digits.target.astype(np.int64)
    private = table.iloc[:N_PRIVATE].reset_index(drop=True)
    person = np.arange(N_PRIVATE) * 2 // 3
    chosen = np.random.default_rng(5).choice(3, N_PRIVATE, p=[0.5, 0.3, 0.2])
    private["person"] = [f"person {number}" for number in person]
    private["privacy"] = np.array(["high", "average", "low"])[chosen[person]]
    public = table.iloc[N_PRIVATE : N_PRIVATE + N_PUBLIC].reset_index(drop=True)
    test = table.iloc[-N_TEST:].reset_index(drop=True)
    return Society(private, public, test)


def _matrix() -> list[Case]:
    """Make every pair of personalisation, aggregator, and what is promised and released.

    All of them go through one pipeline, which knows no triple. Every personalisation meets every
    aggregator as an estimator; as a study, every aggregator meets what it can promise and release.
    """
    allowed = [("worst-case", "labels"), ("worst-case", "histogram"), ("data-dependent", "labels")]
    made = []
    for number, name in enumerate(AGGREGATORS["worst-case"]):
        possible = [
            (guarantee, release)
            for guarantee, release in allowed
            if release == "labels" or name in PAYS_FOR_HISTOGRAM
        ]
        for turn in range(len(PERSONALISATIONS)):
            method = PERSONALISATIONS[(number + turn) % len(PERSONALISATIONS)]
            guarantee, release = possible[turn % len(possible)]
            made.append(
                Case(
                    f"{method}-{name}-{release}-{guarantee}",
                    personalisation=method,
                    extras={"shuffle_every": 8} if method == "vanishing" else {},
                    aggregator=name,
                    numbers=AGGREGATORS[guarantee][name],
                    release=release,
                    guarantee=guarantee,
                    drivers=EVERYWHERE if turn < len(possible) else ESTIMATOR,
                )
            )
    return made


def _worst_case(id_: str, aggregator: str = "gnmax", **given: Any) -> Case:
    numbers = AGGREGATORS["worst-case"][aggregator]
    return Case(id_, aggregator=aggregator, **{"numbers": numbers, **given})


def _data_dependent(id_: str, aggregator: str = "confident", **given: Any) -> Case:
    numbers = AGGREGATORS["data-dependent"][aggregator]
    return Case(id_, aggregator=aggregator, numbers=numbers, guarantee="data-dependent", **given)


def _others() -> list[Case]:
    table = {
        "teacher": "tabular", "teacher_params": {},
        "preprocessing": {"kind": "principal", "components": 8}, "drivers": STUDY,
    }  # fmt: skip
    soft: dict[str, Any] = {"release": "histogram", "student_params": {}}
    regression: dict[str, Any] = {
        "release": "histogram",
        "student": "evidence-regression",
        "student_params": {"n_landmarks": 60},
    }
    return [
        *(
            _worst_case(f"rule-{method}-{rule}", personalisation=method, rule=rule,
                        drivers=EVERYWHERE if number == 1 else ESTIMATOR)
            for method, rules in OTHER_RULES.items()
            for number, rule in enumerate(rules)
        ),
        _worst_case("order-coverage", query_order="coverage"),
        _worst_case("order-coverage-confident-histogram", "confident", query_order="coverage",
                    release="histogram", drivers=ESTIMATOR),
        _worst_case("order-coverage-streamed", query_order="coverage", drivers=STREAMED),
        _worst_case("order-active", query_order="active"),
        _worst_case("order-active-confident", "confident", query_order="active",
                    personalisation="upsampling", drivers=ESTIMATOR),
        _worst_case("order-active-lnmax-histogram", "lnmax", query_order="active", release="histogram",
                    personalisation="vanishing", drivers=ESTIMATOR),
        _worst_case("answers-weighting", numbers={}, answers=40, drivers=STUDY),
        _worst_case("answers-vanishing", numbers={}, answers=25, drivers=STUDY,
                    personalisation="vanishing"),
        _worst_case("answers-upsampling", numbers={}, answers=30, drivers=STREAMED,
                    personalisation="upsampling"),
        _worst_case("shares-of-teachers", teacher_shares=UNEVEN, drivers=(*ESTIMATOR, *STREAMED)),
        _worst_case("shares-of-student", student_shares=UNEVEN),
        _worst_case("shares-of-both-histogram", "confident", teacher_shares=UNEVEN,
                    student_shares=UNEVEN, release="histogram", drivers=ESTIMATOR),
        _worst_case("assignment-balanced", assignment="balanced"),
        _worst_case("targets-noise", release="histogram", targets="noise"),
        _worst_case("targets-argmax", release="histogram", targets="argmax"),
        _worst_case("limit-queries", max_queries=13),
        _worst_case("limit-labels", "confident", max_labels=9),
        _worst_case("no-limit-for-some", levels={**LEVELS, "low": float("inf")}),
        _worst_case("upsampling-few-duplicates", personalisation="upsampling",
                    extras={"max_duplicates": 3, "tolerance": 0.1}),
        _data_dependent("account-mironov", conversion="mironov", drivers=ESTIMATOR),
        _data_dependent("account-seeds", orders="seeds", drivers=ESTIMATOR),
        _data_dependent("account-mironov-seeds", "gnmax", conversion="mironov", orders="seeds"),
        _data_dependent("account-mironov-seeds-lnmax", "lnmax", conversion="mironov", orders="seeds",
                        personalisation="uniform", drivers=ESTIMATOR),
        _data_dependent("bounds-papers", bounds="papers", drivers=STUDY),
        _data_dependent("bounds-sharp-seeds", bounds="sharp", orders="seeds", drivers=STUDY),
        _data_dependent("bounds-papers-gnmax", "gnmax", bounds="papers", drivers=ESTIMATOR,
                        personalisation="upsampling"),
        _data_dependent("data-dependent-coverage", "gnmax", query_order="coverage", drivers=ESTIMATOR),
        _data_dependent("data-dependent-streamed", "gnmax", drivers=STREAMED,
                        personalisation="vanishing"),
        _worst_case("own-tabular", "confident", **regression, **table),
        _worst_case("own-tabular-streamed", **regression,
                    **{**table, "drivers": STREAMED}),
        _worst_case("own-ridge-gaussian-process", student="gaussian-process",
                    **soft, **{**table, "teacher": "ridge"}),
        _worst_case("own-logistic-graph", student="graph",
                    **soft, **{**table, "teacher": "logistic"}),
        _worst_case("own-views", preprocessing={"kind": "tabular"}, student_preprocessing="principal",
                    drivers=STUDY),
    ]  # fmt: skip


CASES = [*_matrix(), *_others()]

_LEVELS = ("--level", "high=1:540", "--level", "average=2:370", "--level", "low=3:90")
_LABEL = (
    "label",
    "--votes",
    "VOTES",
    "--classes",
    "10",
    "--out",
    "FOLDER",
    "--noise-seed",
    "3",
    "--json",
)
_OWN = ("--budgets", "BUDGETS-TEACHERS")
_FEW = ("--sigma", "5.5", "--aggregator", "gnmax")
_CHECKED = ("--sigma", "5", "--sigma-threshold", "7", "--threshold", "7")


def _labelled(*options: str) -> tuple[str, ...]:
    return (*_LABEL, *options)


COMMANDS = [
    *(
        CommandCase(f"account-{method}-{name}", ("account", *_LEVELS, "--personalisation", method,
                                                 "--aggregator", name, "--json"))
        for method, name in [
            ("uniform", "gnmax"), ("upsampling", "confident"), ("weighting", "lnmax"),
            ("vanishing", "interactive"), ("weighting", "pfmax"), ("vanishing", "expmax"),
        ]
    ),
    CommandCase("account-checks", ("account", *_LEVELS, "--checks", "150", "--answers", "100", "--json")),
    CommandCase("account-table", ("account", *_LEVELS, "--rule", "algorithm2", "--answers", "20")),
    CommandCase("label-weighting", _labelled(*_OWN, *_FEW)),
    CommandCase("label-vanishing-histogram",
                _labelled(*_OWN, "--personalisation", "vanishing", "--aggregator", "confident", *_CHECKED,
                          "--release", "histogram")),
    CommandCase("label-upsampling",
                _labelled("--budgets", "BUDGETS-COPIES", "--personalisation", "upsampling", *_FEW,
                          "--shuffle-seed", "4", "--max-queries", "60")),
    CommandCase("label-uniform-counts",
                ("label", "--votes", "COUNTS", "--votes-are", "counts", "--budgets", "BUDGETS-ONE",
                 "--personalisation", "uniform", "--aggregator", "lnmax", "--gamma", "0.17",
                 "--out", "FOLDER", "--noise-seed", "3", "--json")),
    CommandCase("label-interactive",
                _labelled(*_OWN, "--aggregator", "interactive", "--features", "FEATURES", *_CHECKED,
                          "--confidence", "0.7", "--refit-every", "5", "--max-labels", "30")),
    CommandCase("label-data-dependent",
                _labelled(*_OWN, "--guarantee", "data-dependent", "--conversion", "mironov", "--orders",
                          "seeds", "--aggregator", "gnmax", "--sigma", "2.5")),
    CommandCase("label-pfmax-rule", _labelled(*_OWN, "--aggregator", "pfmax", "--gamma", "0.17",
                                              "--rule", "sqrt")),
    CommandCase("left-checked", ("account", "--remaining", "FOLDER", "--json"),
                (_labelled(*_OWN, "--aggregator", "confident", *_CHECKED, "--max-labels", "10"),)),
    CommandCase("left-vanishing", ("account", "--remaining", "FOLDER", "--json"),
                (_labelled(*_OWN, *_FEW, "--personalisation", "vanishing", "--max-queries", "7"),)),
    CommandCase("left-table", ("account", "--remaining", "FOLDER"),
                (_labelled(*_OWN, *_FEW, "--max-labels", "10"),)),
    CommandCase("export-checked", ("account", "--export", "FOLDER"),
                (_labelled(*_OWN, "--aggregator", "confident", *_CHECKED, "--max-labels", "10"),)),
    CommandCase("export-lnmax", ("account", "--export", "FOLDER"),
                (_labelled(*_OWN, "--aggregator", "lnmax", "--gamma", "0.17", "--max-labels", "10"),)),
    CommandCase("export-expmax", ("account", "--export", "FOLDER"),
                (_labelled(*_OWN, "--aggregator", "expmax", "--gamma", "0.17", "--max-labels", "10"),)),
]  # fmt: skip
