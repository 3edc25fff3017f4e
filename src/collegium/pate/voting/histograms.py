"""Noisy histograms as they are released: a table with all that is needed to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.pate.voting.labelling import NO_LABEL, Labels
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.personalisation.electorate import Electorate

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class NoisyHistograms:
    """What a job that releases histograms has shown of every query asked. Safe to publish.

    Rows are in the order of asking. All numbers are in votes. Totals, noise scales and thresholds are
    public: they follow from the plan and the aggregator.

    ``queries`` (n_asked,): rows of the public records.
    ``verdicts``: "answered", "rejected", "reinforced" or "lost".
    ``labels`` (n_asked,): released class number, -1 for none.
    ``counts`` (n_asked, n_classes): weighted votes + noise; NaN where the teachers did not answer.
    ``checks`` (n_asked,): largest weighted vote + noise, as compared with the threshold (for the
        interactive aggregator: the largest of votes less what the student expected); NaN where
        there was no check.
    ``totals`` (n_asked,): weight of all votes. Teachers that abstain, having no record, are missing
        from the counts.
    ``noise_scales``, ``check_scales`` (n_asked,): scale of the noise on each count, and on the
        check (NaN without a check).
    ``thresholds`` (n_asked,): what the check was compared with (NaN without a check).
    ``noise``: distribution of the noise on the counts; its scale is σ, or 1/γ. Checks are always
        Gaussian.
    """

    queries: NDArray[np.intp]
    verdicts: tuple[str, ...]
    labels: NDArray[np.intp]
    counts: Floats
    checks: Floats
    totals: Floats
    noise_scales: Floats
    check_scales: Floats
    thresholds: Floats
    noise: str

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        answered = int(self.answered.sum())
        scales = np.unique(self.noise_scales[self.answered])
        noise = f", {self.noise} noise of scale {_range(scales)}" if scales.size else ""
        return (
            f"NoisyHistograms({len(self)} queries × {self.counts.shape[1]} classes, "
            f"{answered} answered{noise})"
        )

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which queries have a histogram, shape (n_asked,)."""
        return np.asarray(~np.isnan(self.counts[:, 0]))

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which queries have a label, shape (n_asked,): in this order stand the job's labels."""
        return np.asarray(self.labels != NO_LABEL)

    def rows(self, chosen: NDArray[Any]) -> NoisyHistograms:
        """Take some queries only.

        ``chosen``: (n_asked,).
        """
        numbers = np.arange(len(self))[chosen]
        return NoisyHistograms(
            self.queries[numbers],
            tuple(self.verdicts[number] for number in numbers.tolist()),
            self.labels[numbers],
            self.counts[numbers],
            self.checks[numbers],
            self.totals[numbers],
            self.noise_scales[numbers],
            self.check_scales[numbers],
            self.thresholds[numbers],
            self.noise,
        )

    def to_frame(
        self, classes: Sequence[Any] | NDArray[Any], public_rows: NDArray[np.intp] | None = None
    ) -> pd.DataFrame:
        """Tabulate, one row per query asked, with names for files.

        ``public_rows``: row in the file of each public record; default: as numbered here.
        Returns: columns ``row``, ``verdict``, ``label`` (missing where there is none), ``total``,
            ``noise_scale``, ``check``, ``check_scale``, ``threshold``, and ``count: NAME`` for each
            class.
        """
        rows = self.queries if public_rows is None else public_rows[self.queries]
        names = [str(name) for name in classes]
        labels = [None if label == NO_LABEL else names[label] for label in self.labels.tolist()]
        return pd.DataFrame(
            {
                "row": rows,
                "verdict": list(self.verdicts),
                "label": pd.Series(labels, dtype=object),
                "total": self.totals,
                "noise_scale": self.noise_scales,
                "check": self.checks,
                "check_scale": self.check_scales,
                "threshold": self.thresholds,
                **{f"count: {name}": self.counts[:, code] for code, name in enumerate(names)},
            }
        )


def released_histograms(
    labels: Labels,
    electorate: Electorate,
    aggregator: Aggregator,
    n_classes: int,
    excess: float = 1.0,
) -> NoisyHistograms:
    """Collect the noisy values of a job's outcomes, with the public numbers that belong to them.

    ``labels``: of a job with ``release="histogram"``.
    ``excess``: by how much the noise is larger than what was asked for (:attr:`NoisySum.excess`).

    Examples
    --------
    >>> from collegium.budgets import Budget
    >>> from collegium.personalisation import Uniform
    >>> from collegium.pate.voting.aggregators import GNMax
    >>> from collegium.pate.voting.labelling import LabellingJob
    >>> from collegium.noise.sources import SeededNoise
    >>> from collegium.pate.voting.pricing import WorstCasePricing
    >>> from collegium.pate.voting.vote_table import VoteTable
    >>> votes = VoteTable.from_counts([[90, 10], [20, 80]])
    >>> electorate = Uniform().plan({"all": Budget(8.0)}, {"all": 5000}, 100).electorate(0)
    >>> mechanism = GNMax(sigma=20)
    >>> job = LabellingJob(votes, electorate, mechanism, WorstCasePricing(mechanism, electorate),
    ...                    SeededNoise(0), np.arange(2), release="histogram")
    >>> shown = released_histograms(job.run(), electorate, mechanism, 2)
    >>> shown.counts.shape, shown.totals.tolist(), shown.noise_scales.tolist()
    ((2, 2), [100.0, 100.0], [20.0, 20.0])
    >>> bool((shown.counts.argmax(axis=1) == shown.labels).all())
    True
    """
    outcomes = labels.outcomes
    ballots = [electorate.ballot(outcome.position) for outcome in outcomes]
    scale = np.array([ballot.scale for ballot in ballots])
    counts = np.full((len(outcomes), n_classes), np.nan)
    checks = np.full(len(outcomes), np.nan)
    for row, outcome in enumerate(outcomes):
        if outcome.noisy_counts is not None:
            counts[row] = outcome.noisy_counts
        if outcome.noisy_check is not None:
            checks[row] = outcome.noisy_check
    return NoisyHistograms(
        queries=np.array([outcome.query for outcome in outcomes], dtype=np.intp),
        verdicts=tuple(outcome.verdict for outcome in outcomes),
        labels=np.array([outcome.label for outcome in outcomes], dtype=np.intp),
        counts=counts,
        checks=checks,
        totals=np.array([ballot.total for ballot in ballots]),
        noise_scales=aggregator.noise_scale * scale * excess,
        check_scales=aggregator.check_scale * scale * excess,
        thresholds=aggregator.check_threshold * scale,
        noise=aggregator.noise,
    )


def _range(values: Floats) -> str:
    """Write ascending numbers as one, or as the least and the largest."""
    ends = [f"{value:g}" for value in (values[0], values[-1])]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
