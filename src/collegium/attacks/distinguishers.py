"""Which event tells two neighbours apart: learnt on half of the runs, judged on the other half.

A distinguisher is a linear score of a run's features, with a threshold. Features are sums over a run,
apart for even and odd queries, so that noise that was used twice cancels in a difference and
gives itself away. The discriminant is Fisher's: it needs no knowledge of the mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.attacks.bounds import binomial_bounds, epsilon_from_rates, mu_from_rates

Floats = NDArray[np.float64]
_THRESHOLDS = 399
_RIDGE = 1e-10


@dataclass(frozen=True, eq=False)
class Runs:
    """What was seen of many runs on one vote table.

    ``checks`` (n_runs, queries): noisy maxima; NaN where no check was made or it was not seen.
    ``answers`` (n_runs, queries, n_classes): noisy counts; NaN where no answer was given or it was
        not seen.
    ``labels`` (n_runs, queries): released label, -1 for none.
    ``mu_squared``, ``epsilon`` (n_runs, n_cohorts): what the account had charged each cohort when
        the run ended.
    """

    checks: Floats
    answers: Floats
    labels: NDArray[np.intp]
    mu_squared: Floats
    epsilon: Floats

    def half(self, second: bool) -> Runs:
        """Take the first or the second half of the runs."""
        middle = len(self.labels) // 2
        part = slice(middle, None) if second else slice(0, middle)
        return Runs(
            self.checks[part],
            self.answers[part],
            self.labels[part],
            self.mu_squared[part],
            self.epsilon[part],
        )


@dataclass(frozen=True, eq=False)
class Lens:
    """What an adversary who knows everything but one owner's vote makes of a run.

    ``counts`` (queries, n_classes): counts without noise on one side: subtracted, so that only
        noise and the difference remain.
    ``present`` (queries,): queries in which a teacher of the owner takes part.
    ``noisy``: whether the noisy values are seen, or only the released labels.
    """

    counts: Floats
    present: NDArray[np.bool_]
    noisy: bool

    def features(self, runs: Runs) -> Floats:
        """Sum what was seen over each run, apart for even and odd queries.

        Returns (n_runs, n_features).
        """
        parity = np.arange(len(self.present)) % 2
        n_classes = self.counts.shape[1]
        per_query = [(runs.labels == label).astype(np.float64) for label in range(-1, n_classes)]
        if self.noisy:
            checks = runs.checks - self.counts.max(axis=1)
            answered = ~np.isnan(runs.answers[:, :, 0])
            per_query.append(np.where(answered, checks, np.nan))
            per_query.append(np.where(answered, np.nan, checks))
            for label in range(n_classes):
                moved = runs.answers[:, :, label] - self.counts[:, label]
                per_query += [moved, np.sign(moved)]
        columns = [
            np.nansum(values[:, self.present & (parity == side)], axis=1)
            for values in per_query
            for side in (0, 1)
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class LinearTest:
    """A linear score above a threshold."""

    direction: Floats
    threshold: float

    def count(self, features: Floats, allowed: NDArray[np.bool_]) -> int:
        """Count the runs in which it happens; a run that is not allowed never counts."""
        return int(((features @ self.direction > self.threshold) & allowed).sum())


def choose_events(
    without: Floats, with_it: Floats, delta: float, error: float
) -> tuple[LinearTest, LinearTest]:
    """Learn the best events for bounding ε and μ from training runs.

    ``without``, ``with_it`` (n_runs, n_features): features on the two neighbouring tables.
    ``delta``: the δ at which ε is claimed.
    ``error``: error probability of one confidence limit in the later judgement: an event is worth
        only as much as can be shown about it.
    """
    direction = _discriminant(without, with_it)
    alarms, hits = np.sort(without @ direction), np.sort(with_it @ direction)
    thresholds = np.quantile(np.concatenate([alarms, hits]), np.linspace(0, 1, _THRESHOLDS))
    above_hits = len(hits) - np.searchsorted(hits, thresholds, side="right")
    above_alarms = len(alarms) - np.searchsorted(alarms, thresholds, side="right")
    hit_low, _ = binomial_bounds(above_hits, len(hits), error)
    _, alarm_high = binomial_bounds(above_alarms, len(alarms), error)
    best_epsilon = int(np.argmax(epsilon_from_rates(hit_low, alarm_high, delta)))
    best_mu = int(np.argmax(mu_from_rates(hit_low, alarm_high)))
    return (
        LinearTest(direction, float(thresholds[best_epsilon])),
        LinearTest(direction, float(thresholds[best_mu])),
    )


def _discriminant(without: Floats, with_it: Floats) -> Floats:
    """Fisher's linear discriminant; directions without any noise count almost infinitely much."""
    spread = np.concatenate([without, with_it]).std(axis=0)
    used = spread > 0
    scale = np.where(used, spread, 1.0)
    first, second = without / scale, with_it / scale
    difference = np.where(used, second.mean(axis=0) - first.mean(axis=0), 0.0)
    within = np.cov(first, rowvar=False) + np.cov(second, rowvar=False)
    within[np.diag_indices_from(within)] += _RIDGE
    return np.asarray(np.linalg.solve(within, difference) / scale)
