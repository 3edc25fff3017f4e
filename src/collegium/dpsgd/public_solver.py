"""From a few noisy gradients to a model, by way of unlabelled public records: post-processing.

A gradient says more than which way is down. Public records tell how gradients change with the parameters, so
that each one that was released says, whatever the parameters at which it was taken, what the labels of the
private records have to do with their features; and all of them are used for every model.

Two classes, y in {0, 1}, and σ the logistic function. A step at θ_t releases

    g_t = E x·clip(σ(x·θ_t) − y) + noise,

a mean over people, where the error is clipped to c = C/‖x‖. Of people whose y is 1 with probability σ(x·θ),
the clipped error is, on average, ℓ_t − m_t·σ(x·θ), with

    ℓ_t = min(σ_t, c),   m_t = min(σ_t, c) + min(1 − σ_t, c),   σ_t = σ(x·θ_t).

So θ is where E x·(ℓ_t − m_t·σ(x·θ)) equals g_t: with the mean over *public* x, and over steps with weights
a_t, the stationary point of the convex function

    F(θ) = E m·log(1 + exp(x·θ)) − b·θ,   m = Σ a_t·m_t / Σ a_t,   b = Σ a_t·(E x·ℓ_t − g_t) / Σ a_t.

The clip biases nothing where the model is right, and what public records get wrong about how private ones lie
is multiplied with σ(x·θ) − σ(x·θ_t), which vanishes as steps come near θ; steps weigh the less, the farther
from there they were taken.

b has noise of known size τ. F is therefore minimised with penalties in units of τ: an absolute one on columns
of 0 and 1, most of which tell nothing (twice τ: soft thresholds of Donoho and Johnstone 1994), and a square
one on all. How large the latter is follows from the gradients themselves (Dawid 1984): every candidate was
made before the next gradient was drawn, whose noise is independent of it, so that the F of that gradient
alone judges it; on the half of the public records which the judged copy was not fitted to, since a copy bends
to its own. There each candidate is also stretched: a penalty that suppresses noise makes scores too small.
What noise may have added to a judgement is added to it once more: where noise decides, more is suppressed.

Candidates are of several kinds, since no penalty suits all tables: of all columns, without those of 0 and 1,
and, where trees of public labels tell some (:class:`~collegium.models.preprocessing.TaughtTable`), without
these. They pay no penalty: there are few, and they tell much. Beside them all others tell less, and more of
it goes under in noise. The best candidates of all kinds are mixed, with weights that gradients judge alike.

A person of several records gives one gradient, the clipped sum of theirs. Where that may be, gradients have
an unknown scale s, which follows from how they change: g_t is s·E x·(ℓ_t − m_t·σ(x·θ)), but for a constant.
It is looked for where public records vary most, since there no model bends to the few of them.

References
----------
A. P. Dawid (1984). Statistical theory: the prequential approach. J. R. Statist. Soc. A 147.
D. L. Donoho, I. M. Johnstone (1994). Ideal spatial adaptation by wavelet shrinkage. Biometrika 81.
A. Beck, M. Teboulle (2009). A fast iterative shrinkage-thresholding algorithm. SIAM J. Imaging Sci. 2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from collegium.dpsgd.by_rule import largest_moment
from collegium.dpsgd.linear_sums import CONSTANT
from collegium.dpsgd.optimiser import State

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
FEWEST = 500
"""Public records without which gradients are followed, step by step."""
LEAST_SIGNAL = 100.0
"""Σ μ below which probabilities are less far off where gradients are followed."""
_WIDTH = 4096  # features, at most
_FEWEST_KINDS = 100  # of public records that differ
_LOOKS = 10  # different parameters at which gradients are drawn, at most
_THRESHOLD, _THRESHOLD_BESIDE = 2.0, 1.0  # alone, and beside what public labels tell
_SQUARES = ((0.05, 1.0), (0.2, 2.0), (0.5, 4.0), (1.0, 4.0), (2.0, 8.0), (4.0, 16.0))
"""Square penalties, in units of τ: on columns of 0 and 1, and on others."""
_FIRST = 3  # which of them, before any was judged
_ITERATIONS = 25
_DRAWS = 4
_MOST_ROWS = 8000
_LEAST_STRETCH, _MOST_STRETCH, _MOST_SHIFT = 0.1, 10.0, 3.0
_UNSTRETCHED = 1e-3  # how much it costs to be stretched by 1
_CAUTION = 2.0  # how many standard deviations of noise a judgement is raised by
_LEAST_SCALE, _MOST_SCALE = 0.5, 100.0
_ONE_EACH = 25.0  # how sure it is, beforehand, that gradients have scale 1: a deviation of 0.2
_WIDEST, _ROUNDS = 10, 8
_MOST_SHARE = 1.6  # of one look, for how many there are and one
_JUDGED_FROM = 3  # gradients that a candidate has seen before it is judged


def expected_errors(beliefs: Floats, clips: Floats) -> tuple[Floats, Floats]:
    """Tell what clipped errors are on average: ℓ − m·p for records whose class is 1 with probability p.

    ``beliefs`` (n,): σ of each record's score, at the parameters at which errors are taken.
    ``clips`` (n,): what errors are clipped to.
    Returns: ℓ and m.
    """
    least = np.minimum(beliefs, clips)
    return least, least + np.minimum(1.0 - beliefs, clips)


def can_solve(n_classes: int | None, rows: NDArray[Any] | None) -> bool:
    """Tell whether this is for such records; public numbers decide.

    ``n_classes``: None for numbers.
    ``rows`` (n_public, d): public records as the model sees them, where there are any.
    """
    if n_classes != 2 or rows is None or len(rows) < FEWEST or rows.shape[1] > _WIDTH:
        return False
    kinds: set[bytes] = set()
    for row in rows[:_MOST_ROWS]:
        kinds.add(np.round(row, 6).tobytes())
        if len(kinds) >= _FEWEST_KINDS:
            return True
    return False


@dataclass(frozen=True)
class Columns:
    """What features are, as far as they are treated differently.

    ``cells``: how many of the first were 0 and 1. ``taught``: how many of the last are told by public labels.
    """

    cells: int = 0
    taught: int = 0

    @classmethod
    def of(cls, transformer: Any) -> Columns:
        """Of what a fitted preprocessing makes."""
        last = transformer[-1] if isinstance(transformer, Pipeline) else transformer
        return cls(int(getattr(last, "n_cells_", 0)), int(getattr(last, "n_taught_", 0)))


@dataclass(frozen=True, eq=False)
class Look:
    """One or more gradients at the same parameters: released.

    ``parameters``, ``gradient`` (d,): with the constant's behind; the mean of the gradients.
    ``noise``: standard deviation of each entry of it.
    """

    parameters: Floats
    gradient: Floats
    noise: float


@dataclass(frozen=True, eq=False)
class _Seen:
    """A look, and what public records say about it.

    ``beliefs``, ``least``, ``weights`` (n_public,): σ_t, ℓ_t and m_t.
    """

    look: Look
    beliefs: Floats
    least: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class _Judged:
    """What one look says of all candidates, on rows that they were not fitted to.

    ``scores`` (n, n_candidates), ``weights`` (n,): of these rows.
    ``gained``, ``lost`` (n_candidates,): mean of x·ℓ_t, and the gradient, along each candidate.
    ``gained_by_shift``, ``lost_by_shift``: along the constant.
    ``lengths`` (n_candidates,): norms, without the constant.
    ``noise``, ``place``: of the look, and which it is.
    """

    scores: Rows
    weights: Rows
    gained: Floats
    lost: Floats
    gained_by_shift: float
    lost_by_shift: float
    lengths: Floats
    noise: float
    place: int


class PublicSolver:
    """Makes a model of looks, in their order.

    Parameters
    ----------
    rows : ndarray of shape (n_public, d - 1)
        Public records, of unit length.
    columns : Columns
        What their columns are.
    clip_norm : float
        To which gradients were clipped.
    one_each : bool, default=True
        Whether every person has one record; if that is not known, gradients have an unknown scale.

    Attributes
    ----------
    seconds : float
        What solving took, by the clock.
    """

    def __init__(
        self,
        rows: Floats,
        columns: Columns,
        clip_norm: float,
        one_each: bool = True,
    ) -> None:
        self.seconds, self._one_each = 0.0, one_each
        with threadpool_limits(1), np.errstate(all="ignore"):
            self._prepare(rows, columns, clip_norm)

    def _prepare(self, rows: Floats, columns: Columns, clip_norm: float) -> None:
        # In no order that anybody chose: halves of a table that is sorted are not alike.
        rows = rows[np.random.default_rng(0).permutation(len(rows))[:_MOST_ROWS]]
        n, d = rows.shape[0], rows.shape[1] + 1
        units = np.full((n, d), CONSTANT, dtype=np.float32)
        units[:, :-1] = rows
        self._units = units
        self._clips = clip_norm / np.sqrt(np.einsum("ij,ij->i", units, units, dtype=np.float64))
        self._places = [slice(None), slice(0, None, 2), slice(1, None, 2)]
        self._parts = [np.ascontiguousarray(units[place]) for place in self._places]
        self._bends = [0.25 * largest_moment(part) for part in self._parts]
        self._squares, self._absolute = _penalties(d, columns)
        # What leaves cells out is found without looking at them: they are most of the columns.
        narrow = np.isinf(self._absolute[: columns.cells]).all(axis=0) & (columns.cells > 0)
        self._groups = []
        for chosen, first in ((~narrow, 0), (narrow, columns.cells)):
            if chosen.any():
                parts = [np.ascontiguousarray(part[:, first:]) for part in self._parts]
                self._groups.append((np.flatnonzero(chosen), first, parts))
        self._wide = _widest(units)
        self._far = units @ self._wide
        self._start_again()

    def _start_again(self) -> None:
        d, n_candidates = self._squares.shape
        self._candidates = [np.zeros((d, n_candidates), dtype=np.float32) for _ in self._parts]
        self._mixed, self._shift = {_FIRST: 1.0}, 0.0
        self._seen: list[_Seen] = []
        self._judged: list[_Judged] = []

    def stepped(self, state: State, gradient: Floats, steps: int, noise: float) -> State:
        """Take a released gradient into account; at every tenth of the steps, solve.

        ``gradient`` (d or more, 1): what is beyond this model's parameters stays as it is.
        ``steps``: how many there will be.
        ``noise``: standard deviation of each entry of the gradient.
        """
        d = len(self._squares)
        step, found = state.step + 1, gradient[:d, 0]
        stands = state.parameters[:d, 0]
        looks, counts = state.looks, state.counts
        if len(looks) and np.array_equal(looks[-1, 0], stands):
            n = counts[-1] + 1
            mean = looks[-1, 1] + (found - looks[-1, 1]) / n
            looks = np.concatenate([looks[:-1], [[stands, mean]]])
            counts = np.append(counts[:-1], n)
        else:
            looks = np.concatenate([looks.reshape(-1, 2, d), [[stands, found]]])
            counts = np.append(counts, 1)
        rounds = min(steps, _LOOKS)
        is_due = step * rounds // steps > state.step * rounds // steps
        state = replace(state, step=step, looks=looks, counts=counts)
        return self.ended(state, noise) if is_due else state

    def seconds_ahead(self, steps: int) -> float:
        """Time a part of the work, and tell how long all of it will take."""
        with threadpool_limits(1):
            begun = time.perf_counter()
            for units, candidates in zip(self._parts, self._candidates, strict=True):
                _ = units.T @ expit(units @ candidates)
            return (time.perf_counter() - begun) * _ITERATIONS * min(steps, _LOOKS)

    def ended(self, state: State, noise: float) -> State:
        """Solve for the model of all that was drawn."""
        if not len(state.looks):
            return state
        parameters = state.parameters.copy()
        parameters[: len(self._squares), 0] = self.after(_looks(state.looks, state.counts, noise))
        return replace(state, parameters=parameters)

    def recall(self, state: State, noise: float) -> None:
        """See again what was seen until a state that an earlier process kept."""
        self.after(_looks(state.looks, state.counts, noise))

    @property
    def noise_left(self) -> float:
        """Standard deviation that the noise of all gradients leaves in scores of public records, about.

        0 before the first.
        """
        if not self._seen:
            return 0.0
        goal, weights, unit = self._last
        draws = np.random.default_rng(0).normal(size=(len(goal), _DRAWS)).astype(np.float32) * unit
        scores = np.zeros((len(self._units), _DRAWS))
        with threadpool_limits(1), np.errstate(all="ignore"):
            for place, part in self._mixed.items():
                start = np.repeat(self._candidates[0][:, [place]], _DRAWS, axis=1)
                moved = _minimised(
                    self._units,
                    weights,
                    goal + draws,
                    start,
                    np.repeat(self._squares[:, [place]] * unit, _DRAWS, axis=1),
                    np.repeat(self._absolute[:, [place]] * unit, _DRAWS, axis=1),
                    self._bends[0],
                )
                scores += part * (self._units @ (moved - start)).astype(np.float64)
        return float(np.sqrt(np.mean(scores**2)))

    def after(self, looks: Sequence[Look]) -> Floats:
        """Make the model of all looks so far, which begin with those of the last call.

        Returns (d,): the constant's behind.
        """
        begun = time.perf_counter()
        # Bits do not depend on how many threads there are, nor does underflow on what callers ask of NumPy.
        with threadpool_limits(1), np.errstate(all="ignore"):
            if not self._begin_alike(looks):
                self._start_again()
            for look in looks[len(self._seen) :]:
                self._see(look)
        self.seconds += time.perf_counter() - begun
        return self._model()

    def _begin_alike(self, looks: Sequence[Look]) -> bool:
        """Whether looks go on from those that were seen."""
        n = len(self._seen)
        if n == 0 or len(looks) < n:
            return n == 0
        return np.array_equal(looks[n - 1].gradient, self._seen[-1].look.gradient)

    def _see(self, look: Look) -> None:
        beliefs = expit(self._units @ look.parameters.astype(np.float32)).astype(np.float64)
        least, weights = expected_errors(beliefs, self._clips)
        if len(self._seen) >= _JUDGED_FROM:
            self._judge(look, least, weights)
        self._seen.append(_Seen(look, beliefs, least, weights))
        scale, shares = self.scale, self._shares()
        if self._judged:
            self._choose(scale, shares)
        self._fit(scale, shares)

    @staticmethod
    def _mean(units: Rows, values: Floats) -> Floats:
        """Mean of x times a value of each row."""
        return np.asarray(values.astype(np.float32) @ units, dtype=np.float64) / len(units)

    def _judge(self, look: Look, least: Floats, weights: Floats) -> None:
        """Hear what a look says of the candidates that were there before."""
        for fitted, other in ((1, 2), (2, 1)):
            units, place = self._parts[other], self._places[other]
            candidates = self._candidates[fitted]
            self._judged.append(
                _Judged(
                    units @ candidates,
                    weights[place].astype(np.float32),
                    self._mean(units, least[place]) @ candidates,
                    look.gradient @ candidates,
                    float(least[place].mean()),
                    float(look.gradient[-1]) / CONSTANT,
                    np.linalg.norm(candidates[:-1], axis=0).astype(np.float64),
                    look.noise,
                    len(self._seen),
                )
            )

    def _shares(self) -> Floats:
        """How much each look counts: less where it is noisy, or was taken far from where models are now.

        What a sample of n public records gets wrong about x·(σ_t − σ) is some ‖σ_t − σ‖/√(n·d) in each entry.
        None of t counts for less than one before, or for more than 1.6/(t + 1): models would jump from side
        to side where private records bend F more than public ones do.
        """
        n, d = self._units.shape
        now = self._seen[-1].beliefs
        far = np.array([np.mean((one.beliefs - now) ** 2) for one in self._seen])
        noises = np.array([one.look.noise for one in self._seen])
        trust = np.maximum.accumulate(1.0 / (noises**2 + far / (n * d)))
        shares = np.asarray(trust / trust.sum())
        most = _MOST_SHARE / (len(shares) + 1)
        for _ in shares:  # each time some are brought down, and the others share what is over
            above = shares > most
            rest = shares < most
            if not above.any() or not rest.any():
                break
            shares[above] = most
            shares[rest] *= (1 - most * (~rest).sum()) / shares[rest].sum()
        shares = np.minimum(shares, most)
        return np.asarray(shares / shares.sum())

    @property
    def scale(self) -> float:
        """How large gradients are, for what public records say about how they change.

        Nearer to 1 where noise hides it.
        """
        if self._one_each or len(self._seen) < 2:
            return 1.0
        trust = np.array([one.look.noise**-2.0 for one in self._seen])
        now = self._seen[-1].beliefs
        errors = np.array([one.least - one.weights * now for one in self._seen])
        gained = errors @ self._far / len(self._units)
        drawn = np.array([one.look.gradient for one in self._seen]) @ self._wide
        gained -= trust @ gained / trust.sum()
        expected = float(trust @ (gained**2).sum(axis=1))  # one over the variance of what is found
        found = float(trust @ (gained * drawn).sum(axis=1))
        found = (found + _ONE_EACH) / (expected + _ONE_EACH)
        return min(max(found, _LEAST_SCALE), _MOST_SCALE)

    def _choose(self, scale: float, shares: Floats) -> None:
        """Stretch all candidates by what looks said of them, and mix the best ones of each kind."""
        shares = shares[[one.place for one in self._judged]]
        shares /= shares.sum()
        noises = shares * np.array([one.noise for one in self._judged]) / scale
        lengths = np.array([one.lengths for one in self._judged])
        chances = np.sqrt(2 * (noises**2 @ lengths**2))  # both halves hear the same noise

        scores = np.concatenate([one.scores for one in self._judged])
        rows = np.concatenate(
            [
                share / len(one.weights) * one.weights.astype(np.float64)
                for share, one in zip(shares.tolist(), self._judged, strict=True)
            ]
        )
        along = shares @ np.array([one.gained - one.lost / scale for one in self._judged])
        shifts = [one.gained_by_shift - one.lost_by_shift / scale for one in self._judged]
        by_shift = float(shares @ np.array(shifts))

        def judged(numbers: list[int]) -> tuple[Floats, float]:
            cautions = _CAUTION * chances[numbers]
            return _stretched(scores[:, numbers], rows, along[numbers], by_shift, cautions)

        found = [judged([number]) for number in range(self._squares.shape[1])]
        costs = np.array([cost for _, cost in found])
        n = len(_SQUARES)
        best = [first + int(costs[first : first + n].argmin()) for first in range(0, len(costs), n)]
        weights = found[best[0]][0] if len(best) == 1 else judged(best)[0]
        self._mixed = dict(zip(best, weights[:-1].tolist(), strict=True))
        self._shift = float(weights[-1])

    def _fit(self, scale: float, shares: Floats) -> None:
        """Fit all candidates to all looks."""
        least = shares @ np.array([one.least for one in self._seen])
        weights = shares @ np.array([one.weights for one in self._seen])
        drawn = shares @ np.array([one.look.gradient for one in self._seen])
        noises = np.array([one.look.noise for one in self._seen])
        unit = np.float32(math.sqrt(float((shares * noises) @ (shares * noises))) / scale)
        for number, (units, place) in enumerate(zip(self._parts, self._places, strict=True)):
            goal = _column(self._mean(units, least[place]) - drawn / scale)
            some = _column(weights[place])
            if number == 0:
                self._last = goal, some, unit
            for chosen, first, parts in self._groups:
                here = np.ix_(np.arange(first, len(goal)), chosen)
                self._candidates[number][here] = _minimised(
                    parts[number],
                    some,
                    goal[first:],
                    self._candidates[number][here],
                    self._squares[here] * unit,
                    self._absolute[here] * unit,
                    self._bends[number],
                )

    def _model(self) -> Floats:
        parameters = np.zeros(len(self._squares))
        for number, weight in self._mixed.items():
            parameters += weight * self._candidates[0][:, number].astype(np.float64)
        parameters[-1] += self._shift / CONSTANT
        return parameters


def _column(values: Floats) -> Rows:
    return values.astype(np.float32)[:, None]


def _looks(looks: Floats, counts: NDArray[np.intp], noise: float) -> list[Look]:
    return [
        Look(at, gradient, noise / math.sqrt(n))
        for (at, gradient), n in zip(looks, counts.tolist(), strict=True)
    ]


def _penalties(d: int, columns: Columns) -> tuple[Rows, Rows]:
    """Square and absolute penalties of each candidate, in units of τ: (d, n_candidates) each.

    As many candidates as there are square penalties for each kind of model, one kind after the other: of all
    columns, without those of 0 and 1, and, where public labels tell some, without these, which are free.
    """
    squares = np.array(_SQUARES, dtype=np.float32)
    is_cell = (np.arange(d) < columns.cells)[:, None]
    is_taught = ((np.arange(d) >= d - 1 - columns.taught) & (np.arange(d) < d - 1))[:, None]
    is_free = is_taught | (np.arange(d) == d - 1)[:, None]
    square = np.where(is_cell, squares[:, 0], squares[:, 1]) * ~is_free
    left_out = [np.zeros_like(is_cell)]
    if 0 < columns.cells < d - 1 - columns.taught:
        left_out.append(is_cell)
    if columns.taught:
        left_out.append(is_taught)
    absolute = []
    for out in left_out:
        heard = columns.taught and out is not is_taught
        threshold = _THRESHOLD_BESIDE if heard else _THRESHOLD
        one = np.where(out, np.inf, threshold * is_cell).astype(np.float32)
        absolute.append(np.repeat(one, len(squares), axis=1))
    return np.hstack([square] * len(left_out)), np.hstack(absolute)


def _widest(units: Rows) -> Floats:
    """Find the directions in which public records vary most, in which a model bends to none of them."""
    found = np.random.default_rng(0).normal(size=(units.shape[1], _WIDEST)).astype(np.float32)
    for _ in range(_ROUNDS):
        found = np.linalg.qr(units.T @ (units @ found))[0]
    return found.astype(np.float64)


def _minimised(
    units: Rows, weights: Rows, goal: Rows, start: Rows, squares: Rows, absolute: Rows, bend: float
) -> Rows:
    """Minimise mean(weights·log(1 + exp(x·θ))) − goal·θ + squares·θ²/2 + absolute·|θ|, by column (FISTA).

    ``weights`` (n, 1), ``goal`` (d, 1), ``absolute`` (d, 1), or of each column; ``start``, ``squares`` (d,
    n_columns).
    ``bend``: largest eigenvalue of the mean of x ⊗ x / 4, at least.
    """
    steps = (1.0 / (bend * float(weights.max()) + squares.max(axis=0))).astype(np.float32)
    thresholds = absolute * steps
    weights = weights / np.float32(len(units))
    now, ahead, pace = start, start, 1.0
    for _ in range(_ITERATIONS):
        errors = weights * expit(units @ ahead)
        moved = ahead - steps * (units.T @ errors - goal + squares * ahead)
        moved = np.sign(moved) * np.maximum(np.abs(moved) - thresholds, np.float32(0.0))
        faster = (1.0 + math.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
        ahead = moved + np.float32((pace - 1.0) / faster) * (moved - now)
        now, pace = moved, faster
    return now


def _stretched(
    scores: Rows, rows: Floats, along: Floats, by_shift: float, cautions: Floats
) -> tuple[Floats, float]:
    """Find by what to multiply scores, and what to add to their sum; and what is left of F then.

    ``scores`` (n, k); ``rows`` (n,): how much each row counts.
    ``along`` (k,), ``by_shift``: what F gains with each weight, and with the shift.
    ``cautions`` (k,): by how much noise may have made F of scores as they are too small.
    Returns: k weights and the shift.
    """
    k = len(cautions)

    def cost(found: Floats) -> tuple[float, Floats]:
        weights, shift = found[:-1], found[-1]
        away = weights.sum() - 1.0
        at = scores @ weights.astype(np.float32) + np.float32(shift)
        errors = rows * expit(at)
        value = _UNSTRETCHED * away**2 + float((cautions - along) @ weights) - shift * by_shift
        value += float(rows @ np.logaddexp(np.float32(0.0), at))
        by_weight = errors.astype(np.float32) @ scores - along + 2 * _UNSTRETCHED * away + cautions
        return value, np.append(by_weight, float(errors.sum()) - by_shift)

    least = _LEAST_STRETCH if k == 1 else 0.0
    bounds = [(least, _MOST_STRETCH)] * k + [(-_MOST_SHIFT, _MOST_SHIFT)]
    start = np.append(np.full(k, 1.0 / k), 0.0)
    found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x, float(found.fun)
