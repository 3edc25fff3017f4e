"""The published figures about costs as data, and how their curves are measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium import Upsampling, Vanishing, Weighting
from collegium.personalisation import Personalisation
from reproduction.laboratory import Laboratory
from reproduction.published import budget_from_text
from reproduction.readings import PUBLISHED, Reading
from reproduction.society import everybody, two_groups
from reproduction.votings import History

N_POINTS = 120
"""Points of a curve that are kept."""


@dataclass(frozen=True)
class Panel:
    """One setting of a figure: budgets as printed, and the share of the records with the higher one."""

    lower: str
    higher: str
    share: float

    @property
    def name(self) -> str:
        """For the panel's title and the results."""
        return f"ε = {self.lower} | {self.higher}, {1 - self.share:.0%} | {self.share:.0%}"


@dataclass(frozen=True)
class CurveSpec:
    """A published figure.

    Attributes
    ----------
    name, title : str
        For the command line.
    scene : str
        Which records.
    panels : tuple of Panel
    variants : tuple of str
        Which personalisations are drawn.
    quantity : {"cost", "order", "ratio"}
        ε of each group per label; best Rényi order per query; ε of the higher group over that of the
        lower one per query.
    baseline : bool
        Whether the curve without individual budgets is drawn, too.
    max_labels, max_queries : int, optional
        Length of the curves.
    rule : {"budget", "sqrt"}
        How the source turned budgets into influence here.
    seeds, runs : int
        Ensembles of each kind, votings of each ensemble, in the source.
    """

    name: str
    title: str
    scene: str
    panels: tuple[Panel, ...]
    variants: tuple[str, ...]
    quantity: str = "cost"
    baseline: bool = True
    max_labels: int | None = None
    max_queries: int | None = None
    rule: str = "budget"
    seeds: int = 3
    runs: int = 5


def _panels(lower: str, higher: tuple[str, ...], shares: tuple[float, ...]) -> tuple[Panel, ...]:
    return tuple(Panel(lower, budget, share) for budget in higher for share in shares)


_SHARES = (0.25, 0.5, 0.75)
_LOGS = ("log4", "log8", "log16")
_BOTH, _ALL = ("upsampling", "weighting"), ("upsampling", "vanishing", "weighting")

CURVES = {
    spec.name: spec
    for spec in (
        CurveSpec(
            "thesis-fig-6.3",
            "Best order over the votings, budgets (1 | 9)",
            "mnist",
            _panels("1", ("9",), (0.5,)),
            _ALL,
            "order",
            max_queries=3500,
            rule="sqrt",
        ),
        CurveSpec(
            "thesis-fig-6.4",
            "Ratio of the two groups' costs, budgets (1 | 4) to (1 | 49)",
            "mnist",
            _panels("1", ("4", "9", "16", "25", "36", "49"), (0.5,)),
            _ALL,
            "ratio",
            baseline=False,
            max_queries=9000,
            rule="sqrt",
            seeds=1,
        ),
        CurveSpec(
            "thesis-fig-6.5",
            "Costs over the first 2,000 labels (MNIST)",
            "mnist",
            _panels("1", ("1.5", "2", "3", "5"), _SHARES),
            _ALL,
            max_labels=2000,
        ),
        CurveSpec(
            "paper-fig-1",
            "Costs over the first 2,000 labels (MNIST), log 2 | log 8, upsampling",
            "mnist",
            _panels("log2", ("log8",), (0.5,)),
            ("upsampling",),
            max_labels=2000,
            seeds=10,
        ),
        CurveSpec(
            "paper-fig-3",
            "Ratio of the two groups' costs for sensitivities 2 : 1 to 9 : 1",
            "mnist",
            _panels("1", tuple(str(c) for c in range(2, 10)), (0.5,)),
            _BOTH,
            "ratio",
            baseline=False,
            max_queries=4000,
            seeds=10,
        ),
        CurveSpec(
            "paper-fig-5",
            "Costs over the first 2,000 labels (MNIST)",
            "mnist",
            _panels("log2", _LOGS, _SHARES),
            _BOTH,
            max_labels=2000,
            seeds=10,
        ),
        CurveSpec(
            "paper-fig-6",
            "Costs over the first 2,000 labels (Adult)",
            "adult",
            _panels("log2", _LOGS, _SHARES),
            _BOTH,
            max_labels=2000,
            seeds=10,
        ),
    )
}
"""All figures about costs by name."""


def influence(reading: Reading, rule: str) -> Reading:
    """Let a reading follow the rule of a figure: the sources' rule, or exact ones in a sound reading."""
    if reading is not PUBLISHED:
        rule = "exact"
    rules: dict[str, Personalisation] = {
        "upsampling": Upsampling(rule=rule, tolerance=0.0, max_duplicates=9),
        "weighting": Weighting(rule=rule),
        "vanishing": Vanishing(rule="thesis" if rule == "budget" else rule),
    }
    return replace(reading, personalisations=reading.personalisations | rules)


def run_curves(laboratory: Laboratory, spec: CurveSpec, reading: Reading) -> pd.DataFrame:
    """Measure the curves of a figure.

    Parameters
    ----------
    laboratory : Laboratory
        With the options.
    spec : CurveSpec
        Which figure.
    reading : Reading
        How.

    Returns
    -------
    pandas.DataFrame
        Columns reading, panel, variant, group (``lower``, ``higher`` or ``both``), x (labels or
        queries), mean, sd, histories (how many reach x).

    Raises
    ------
    DataNotThereError
        If the records are not in the data folder.
    """
    laboratory.there({spec.scene: spec.scene})
    seeds, runs = laboratory.seeds_and_runs(spec.seeds, spec.runs)
    reading = influence(reading, spec.rule)
    panels = spec.panels[:1] if laboratory.options.quick else spec.panels
    collected: dict[tuple[str, str, str], list[History]] = {}
    for seed in range(seeds):
        split = laboratory.split(spec.scene, seed)
        for panel, variant in _settings(spec, panels):
            if not laboratory.wants(variant):
                continue
            lower, higher = budget_from_text(panel.lower), budget_from_text(panel.higher)
            same = variant == "none"
            society = everybody(lower) if same else two_groups(lower, higher, panel.share)
            plan = laboratory.plan(split, society, reading, variant)
            teacher = laboratory.teachers_of(reading, split)
            key = ("" if same else panel.name, variant, "")
            collected.setdefault(key, []).extend(
                laboratory.histories(
                    laboratory.ensemble(split, society, plan, teacher),
                    plan,
                    reading,
                    split.scene.aggregator,
                    runs,
                    max_labels=spec.max_labels,
                    max_queries=spec.max_queries,
                )
            )
    rows = [
        {"reading": reading.name, "panel": panel_name, "variant": variant, **point}
        for (panel_name, variant, _), histories in collected.items()
        for point in _points(spec, histories)
    ]
    return pd.DataFrame(rows)


def _settings(spec: CurveSpec, panels: tuple[Panel, ...]) -> Iterator[tuple[Panel, str]]:
    if spec.baseline:
        yield panels[0], "none"
    for panel in panels:
        for variant in spec.variants:
            yield panel, variant


def _points(spec: CurveSpec, histories: list[History]) -> Iterator[dict[str, Any]]:
    longest = max(
        (int(h.labels[-1]) if spec.quantity == "cost" else len(h.labels)) if len(h.labels) else 0
        for h in histories
    )
    if not longest:
        return
    curves = [_curve(spec, history, longest) for history in histories]
    groups = ("lower", "higher") if curves[0].shape[1] == 2 else ("both",)
    for x in np.unique(np.linspace(1, longest, N_POINTS).astype(int)):
        for column, group in enumerate(groups):
            values = np.array([curve[x - 1, column] for curve in curves])
            values = values[~np.isnan(values)]
            if values.size:
                yield {
                    "group": group,
                    "x": int(x),
                    "mean": float(values.mean()),
                    "sd": float(values.std(ddof=1)) if values.size > 1 else 0.0,
                    "histories": int(values.size),
                }


def _curve(spec: CurveSpec, history: History, longest: int) -> NDArray[np.float64]:
    """Values of one history, shape (longest, n_groups or 1); NaN after its end."""
    if spec.quantity == "cost":
        return history.at_labels(longest)
    values = history.order if spec.quantity == "order" else _ratios(history.epsilon)
    padded = np.full((longest, values.shape[1]), np.nan)
    padded[: len(values)] = values
    return padded


def _ratios(epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = epsilon[:, 1:] / epsilon[:, :1]
    return np.where(np.isfinite(ratio), ratio, np.nan)
