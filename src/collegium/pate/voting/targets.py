"""What a noisy histogram says about a record's class: soft targets for students.

Everything here is computed from released values and public numbers: post-processing, at no cost.

**What was released.** Of a query, r = n + Z: the weighted votes n ≥ 0 of m classes, which add up to the
ballot's total W (give or take teachers that abstain), and noise Z of known distribution and scale,
independent in each coordinate. By Bayes' rule, Pr[class = c | r] ∝ π_c · p(r | c), with
p(r | c) = ∫ p(r | n) dP(n | c), so the question is what is assumed of n.

``"argmax"`` assumes nothing, and believes the label completely: one-hot rows.

``"noise"`` asks which class had the most votes, knowing the noise only. Let n be uniform on {Σ n = W}.
For Gaussian noise, n given r then has mean r − (Σr − W)/m·1 and covariance σ²(I − 11ᵀ/m), which is how
z − (Σz − W)/m·1 is distributed for z ~ N(r, σ²I). A common shift does not change which coordinate is
largest, so Pr[arg max n = j | r] = Pr[arg max z = j] = ∫ φ_j(v) Π_{i≠j} Φ_i(v) dv: *the sum alone tells
nothing*. Knowing n ≥ 0 besides would help, but only with a prior on n: a uniform one says that teachers
hardly ever agree, and measured worse than none. So negative counts are allowed here, and where noise
is larger than the margins this method is too sure of itself. (Laplace noise: counts uniform
and independent, the same integral.)

``"mixture"`` learns from all released histograms together how far teachers agree (empirical Bayes). With
*dissent* t in [0, 1), a query of class c has the votes n = W·((1 − t)·e_c + t·1/m): a share 1 − t for the
class, the rest spread evenly. The unknown distribution g of dissent is estimated by expectation
maximisation on a grid of ``LEVELS`` values of t, with ``LEVEL_COUNT`` pseudo-observations of each; so is
π, if asked for. For Gaussian noise

    log p(r | c, t) = [W(1 − t)·r_c + (Wt/m)·Σr − ½(a² + (m − 1)b²)]/σ² + const,
    a = W(1 − t) + b,  b = Wt/m.

The *class* here is the one that the plurality of the teachers would name without noise: where teachers
are wrong together, released counts cannot tell. Under Confident-GNMax, g and π are those of the answered
queries, which is how the check's outcome enters. (The check's own noisy value adds nothing that could be
measured beside the histogram: see ``docs/students.md``.)

**Which prior.** A student does not learn from one target but from their mean over like records. Both
methods treat classes alike: p(r | c) is p(r' | c') for r' with the two coordinates exchanged. With uniform
π, a record of class c' therefore has the mean target α on c' and β < α on each other class, whatever c'
is; so where a student estimates E[target | x] = β + (α − β)·Pr[class | x], *its arg max is that of
Pr[class | x]*, however much noise there is and however rare a class. With any other π this fails: noisy
targets fall back to π, and students name the frequent classes. Uniform π is the default for this
reason. To believe in single records where classes are not balanced, ask for ``prior="estimated"``
(``CLASS_COUNT`` pseudo-observations of each class, in units of queries without noise), or
give what is known.

References
----------
Robbins 1956, *An empirical Bayes approach to statistics*; Dempster, Laird & Rubin 1977, *Maximum
likelihood from incomplete data via the EM algorithm*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp

from collegium.checks import check_choice
from collegium.data.tables import one_hot
from collegium.errors import InputError
from collegium.pate.voting.histograms import NoisyHistograms
from collegium.pate.voting.labelling import Labels

Floats = NDArray[np.float64]
METHODS = ("argmax", "noise", "mixture")
NOISES = ("gaussian", "laplace")
ESTIMATED = "estimated"
LEVELS = 20
LEVEL_COUNT = 1.0
CLASS_COUNT = 20.0
_ITERATIONS, _TOLERANCE = 200, 1e-5
_CELLS = 2**21  # numbers in memory at once
_NODES = 256


@dataclass(frozen=True, eq=False)
class _Released:
    """Checked input: histograms with one scale and total each."""

    counts: Floats
    scale: Floats
    total: Floats
    noise: str

    def chunks(self, per_row: int) -> Iterator[tuple[slice, _Released]]:
        step = max(1, _CELLS // max(1, per_row))
        for start in range(0, len(self.counts), step):
            rows = slice(start, start + step)
            yield (
                rows,
                _Released(self.counts[rows], self.scale[rows], self.total[rows], self.noise),
            )


def class_posterior(
    histograms: ArrayLike,
    noise_scale: ArrayLike,
    total: ArrayLike,
    method: str = "mixture",
    prior: ArrayLike | str | None = None,
    noise: str = "gaussian",
) -> Floats:
    """Probability of each class, given released noisy histograms.

    ``histograms`` (n, n_classes): released noisy counts, in votes.
    ``noise_scale`` (n,): standard deviation of the noise on each count (Laplace: its scale 1/γ), in
        votes.
    ``total`` (n,): weight of all votes of the query.
    ``method``: see the head of this module.
    ``prior`` (n_classes,): probability of each class before the histogram was seen: public shares
        of the classes, or what a student believes about each record; or estimated from the
        histograms by the mixture. Default: uniform, which is right for training students.
        ``argmax`` does not use it.
    Returns (n, n_classes): rows add up to 1.

    Examples
    --------
    >>> class_posterior([[150.0, 60.0, 40.0], [85.0, 95.0, 70.0]], 40, 250, "noise").round(2)
    array([[0.93, 0.05, 0.02],
           [0.34, 0.46, 0.2 ]])
    """
    released = _checked(histograms, noise_scale, total, noise)
    check_choice("targets", method, METHODS)
    if method == "argmax":
        return one_hot(released.counts.argmax(axis=1), released.counts.shape[1])
    believed = _as_prior(prior, released.counts.shape)
    if method == "mixture" or believed is None:
        model = _fitted(released, believed)
        believed = model.class_prior if believed is None else believed
    by_noise = method == "noise"
    likelihood = _log_largest(released) if by_noise else model._log_likelihood(released)
    with np.errstate(divide="ignore"):
        return _normalised(likelihood + np.log(believed))


@dataclass(frozen=True, eq=False)
class ConsensusMixture:
    """How far teachers agree, learnt from released histograms (method ``mixture``).

    ``levels`` (n_levels,): dissent t: the share of the votes that is spread evenly.
    ``level_weights`` (n_levels,): estimated distribution of t.
    ``class_prior`` (n_classes,): distribution of the classes: estimated, if asked for, or as given
        for all queries.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> votes = np.where(np.arange(2) == generator.integers(0, 2, (300, 1)), 90.0, 10.0)
    >>> noisy = votes + generator.normal(0, 40, votes.shape)
    >>> model = ConsensusMixture.fit(noisy, 40, 100)
    >>> float(model.levels @ model.level_weights) < 0.5  # teachers agree
    True
    >>> model.log_likelihood(noisy[:5], 40, 100).shape
    (5, 2)
    """

    levels: Floats
    level_weights: Floats
    class_prior: Floats
    noise: str

    @classmethod
    def fit(
        cls,
        histograms: ArrayLike,
        noise_scale: ArrayLike,
        total: ArrayLike,
        prior: ArrayLike | str | None = None,
        noise: str = "gaussian",
    ) -> ConsensusMixture:
        """Estimate the distribution of dissent, and of classes where the prior is "estimated".

        Parameters are those of :func:`class_posterior`.
        """
        released = _checked(histograms, noise_scale, total, noise)
        return _fitted(released, _as_prior(prior, released.counts.shape))

    def log_likelihood(
        self, histograms: ArrayLike, noise_scale: ArrayLike, total: ArrayLike
    ) -> Floats:
        """Log-likelihood of each class for histograms, up to a constant in each row.

        For students that hold beliefs of their own: belief × likelihood, normalised, is what to
        believe after the histogram.

        Returns (n, n_classes).
        """
        return self._log_likelihood(_checked(histograms, noise_scale, total, self.noise))

    def _log_likelihood(self, released: _Released) -> Floats:
        result = np.empty(released.counts.shape)
        with np.errstate(divide="ignore"):
            weights = np.log(self.level_weights)
        for rows, part in released.chunks(released.counts.shape[1] * self.levels.size):
            result[rows] = logsumexp(_at_levels(part, self.levels) + weights, axis=2)
        return result


def released_targets(
    labels: Labels,
    n_classes: int,
    histograms: NoisyHistograms | None = None,
    method: str = "mixture",
) -> Floats:
    """Targets of a job's labels, in their order.

    ``histograms``: what the job released besides. Without it, and for labels without a histogram (a
        confident student's own, in the interactive aggregator), targets are one-hot.
    Returns (n_labels, n_classes): rows add up to 1.
    """
    targets = one_hot(labels.labels, n_classes)
    if histograms is None or not histograms.answered.any():
        return targets
    shown = histograms.rows(histograms.labelled)
    answered = shown.answered
    own = shown.rows(answered)
    targets[answered] = class_posterior(
        own.counts, own.noise_scales, own.totals, method, noise=own.noise
    )
    return targets


def _checked(histograms: ArrayLike, scale: ArrayLike, total: ArrayLike, noise: str) -> _Released:
    counts = np.asarray(histograms, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise InputError(
            f"histograms must have one row per query and one column per class (at least 2), got shape "
            f"{counts.shape}"
        )
    if not np.isfinite(counts).all():
        raise InputError("histograms must be finite: leave out queries that were not answered")
    check_choice("noise", noise, NOISES)
    rows = []
    for name, given in (("noise_scale", scale), ("total", total)):
        values = np.asarray(given, dtype=np.float64)
        if values.shape not in ((), (len(counts),)):
            raise InputError(
                f"{name} must be one number, or one for each of {len(counts)} queries, got shape "
                f"{values.shape}"
            )
        if not (np.isfinite(values) & (values > 0)).all():
            raise InputError(f"{name} must be finite and greater than 0, in votes")
        rows.append(np.broadcast_to(values, (len(counts),)))
    return _Released(counts, rows[0], rows[1], noise)


def _as_prior(prior: ArrayLike | str | None, shape: tuple[int, ...]) -> Floats | None:
    """Check a prior; None if it is to be estimated."""
    if prior is None:
        return np.full(shape[1], 1 / shape[1])
    if isinstance(prior, str):
        if prior != ESTIMATED:
            raise InputError(f"prior must be probabilities or {ESTIMATED!r}, got {prior!r}")
        return None
    table = np.asarray(prior, dtype=np.float64)
    if table.shape not in (shape, shape[1:]):
        raise InputError(
            f"prior must have shape {shape[1:]} or {shape} (one probability per class), got {table.shape}"
        )
    sums = table.sum(axis=-1, keepdims=True)
    if not (np.isfinite(table) & (table >= 0)).all() or not (sums > 0).all():
        raise InputError("prior must hold probabilities: at least 0, and not all 0")
    return np.asarray(table / sums)


def _normalised(logs: Floats) -> Floats:
    """Exponentiate and scale rows to 1; the largest entry of a row is never lost."""
    table = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _at_levels(released: _Released, levels: Floats) -> Floats:
    """Log-likelihood of each class and level, up to a constant per row, shape (n, classes, levels)."""
    counts, n_classes = released.counts, released.counts.shape[1]
    rest = released.total[:, None] * levels / n_classes
    top = released.total[:, None] * (1 - levels) + rest
    if released.noise == "laplace":
        away = np.abs(counts[:, :, None] - rest[:, None, :])
        one = np.abs(counts[:, :, None] - top[:, None, :])
        distance = away.sum(axis=1, keepdims=True) - away + one
        return np.asarray(-distance / released.scale[:, None, None])
    # In units of σ first: squares of votes would overflow or cancel long before these do.
    scale = released.scale[:, None]
    seen, top, rest = counts / scale, top / scale, rest / scale
    centre = seen.mean(axis=1, keepdims=True)
    own = (seen - centre)[:, :, None] * (top - rest)[:, None, :]
    # Σ_j (seen_j − n_j)² = Σ seen² − 2·own − 2·centre·Σn + Σ n², where Σn is the same at every level.
    return np.asarray(own - (top**2 + (n_classes - 1) * rest**2)[:, None, :] / 2)


def _fitted(released: _Released, prior: Floats | None) -> ConsensusMixture:
    """Expectation maximisation, with pseudo-observations: each step raises the posterior density."""
    if prior is None:
        return _fitted_with_classes(released)
    levels, n = np.arange(LEVELS) / LEVELS, len(released.counts)
    likelihood = np.empty(
        (n, LEVELS)
    )  # of each level, whatever the class: stays the same throughout
    for rows, part in released.chunks(released.counts.shape[1] * LEVELS):
        believed = prior if prior.ndim == 1 else prior[rows]
        with np.errstate(divide="ignore"):
            logs = logsumexp(_at_levels(part, levels) + np.log(believed)[..., None], axis=1)
        likelihood[rows] = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(LEVELS, 1 / LEVELS)
    for _ in range(_ITERATIONS):
        shares = likelihood * weights
        shares /= shares.sum(axis=1, keepdims=True)
        before, weights = weights, (LEVEL_COUNT + shares.sum(axis=0)) / (LEVELS * LEVEL_COUNT + n)
        if np.abs(weights - before).max() < _TOLERANCE:
            break
    shared = prior if prior.ndim == 1 else prior.mean(axis=0) if n else prior.sum(axis=0)
    return ConsensusMixture(levels, weights, shared, released.noise)


def _fitted_with_classes(released: _Released) -> ConsensusMixture:
    """The same, with the shares of the classes to be estimated, too."""
    n_classes = released.counts.shape[1]
    levels, weights = np.arange(LEVELS) / LEVELS, np.full(LEVELS, 1 / LEVELS)
    shared = np.full(n_classes, 1 / n_classes)
    for _ in range(_ITERATIONS if len(released.counts) else 0):
        by_level = np.full(LEVELS, LEVEL_COUNT)
        by_class = np.full(n_classes, CLASS_COUNT * _noisy_per_clean(released, levels @ weights))
        for _rows, part in released.chunks(n_classes * LEVELS):
            logs = _at_levels(part, levels) + np.log(shared)[:, None] + np.log(weights)
            logs -= logs.max(axis=(1, 2), keepdims=True)
            shares = np.exp(logs, out=logs)
            shares /= shares.sum(axis=(1, 2), keepdims=True)
            by_level += shares.sum(axis=(0, 1))
            by_class += shares.sum(axis=(0, 2))
        before, weights = weights, by_level / by_level.sum()
        was, shared = shared, by_class / by_class.sum()
        if max(np.abs(weights - before).max(), np.abs(shared - was).max()) < _TOLERANCE:
            break
    return ConsensusMixture(levels, weights, shared, released.noise)


def _noisy_per_clean(released: _Released, dissent: float) -> float:
    """Tell how many noisy histograms say as much about the shares of the classes as one without noise.

    A class that wins with a lead of A = W(1 − t) shows in r_c/A with the variance of its indicator, about
    1/m, plus (σ/A)².
    """
    lead = released.total * (1 - dissent)
    return float(1 + released.counts.shape[1] * np.mean((released.scale / lead) ** 2))


# ---------------------------------------------------------------- which class had the most votes


def _log_largest(released: _Released) -> Floats:
    """Logarithm of the probability that each class had the most votes (method ``noise``)."""
    result = np.empty(released.counts.shape)
    for rows, part in released.chunks(_NODES * released.counts.shape[1]):
        result[rows] = _largest_of(part)
    return result


def _largest_of(released: _Released) -> Floats:
    """Integrate over the largest count v, from where it surely is not to where it surely is not."""
    seen = released.counts / released.scale[:, None]
    highest = seen.max(axis=1, keepdims=True)
    half, half_weights = np.polynomial.legendre.leggauss(_NODES // 2)
    half, half_weights = (half + 1) / 2, half_weights / 2
    law, reach = _LAWS[released.noise]
    # Two panels that meet at the highest count, where Laplace noise has a kink; denser near it.
    points = highest + reach * np.concatenate([-(half**2), half**2])
    node_weights = np.tile(half_weights * half, 2)
    density, below = law(points[:, :, None] - seen[:, None, :])
    logs = density + below.sum(axis=2, keepdims=True) - below
    return np.asarray(logsumexp(logs + np.log(node_weights)[:, None], axis=1))


def _gaussian(z: Floats) -> tuple[Floats, Floats]:
    """Log density (without its constant) and log distribution function of standard Gaussian noise."""
    return -(z**2) / 2, log_ndtr(z)


def _laplace(z: Floats) -> tuple[Floats, Floats]:
    tail = -np.abs(z) - np.log(2)
    return -np.abs(z), np.where(z < 0, tail, np.log1p(-np.exp(tail)))


_LAWS = {"gaussian": (_gaussian, 9.0), "laplace": (_laplace, 36.0)}  # integrated so many scales out
