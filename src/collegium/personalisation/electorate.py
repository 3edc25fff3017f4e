"""What the voting sees of a personalisation: weights, participation, and who is moved by how much.

After this point nothing knows about upsampling, weighting, vanishing or bagging. Every query has a
:class:`Ballot`: the weight of each teacher and, per *cohort*, the individual sensitivity Δ: how far one
owner of the cohort can move one class's count. A cohort is a set of owners with one budget who are
treated alike at every query: a group, or (when teachers vanish) the owners of one teacher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collegium.budgets import Budget

_TICKS = 2**20  # frequencies are multiples of 1/_TICKS, so that participation is integer arithmetic


@dataclass(frozen=True, eq=False)
class Ballot:
    """One query's electorate.

    ``weights`` (n_teachers,): weight of each teacher's vote, multiples of the grid; 0 where the
        teacher does not take part.
    ``scale``: ``total`` / nominal number of teachers: the factor for the threshold and the noise.
    ``sensitivity`` (n_cohorts,): Δ: votes that one owner of each cohort can move from one class to
        another.
    """

    weights: NDArray[np.float64]
    total: float
    scale: float
    sensitivity: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Electorate:
    """Weights of all teachers and budgets of all cohorts, for every query of a job.

    ``n_nominal``: number of teachers k for which threshold and noise are given.
    ``weights`` (n_teachers,): weight of each teacher when it takes part.
    ``groups``: the groups that have members.
    ``cohort_groups``: the group of each cohort.
    ``sensitivity`` (n_cohorts,): Δ of each cohort at a query in which its teachers take part.
    ``participation``: which teachers take part when; None: all, always. With participation, cohort
        i is the owners of teacher i.
    """

    n_nominal: int
    weights: NDArray[np.float64]
    groups: Mapping[str, Budget]
    cohort_groups: tuple[str, ...]
    sensitivity: NDArray[np.float64]
    participation: Participation | None = None
    _static: Ballot | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.participation is None:
            object.__setattr__(self, "_static", self._ballot(self.weights, self.sensitivity))

    @property
    def n_teachers(self) -> int:
        """Number of teachers who may vote."""
        return int(self.weights.size)

    @property
    def is_static(self) -> bool:
        """Whether every query has the same ballot."""
        return self.participation is None

    @property
    def cohort_budgets(self) -> tuple[Budget, ...]:
        """Budget of each cohort."""
        return tuple(self.groups[name] for name in self.cohort_groups)

    def ballot(self, position: int) -> Ballot:
        """Electorate of the query asked at a position (0 for the first) in the order of asking."""
        if self._static is not None:
            return self._static
        assert self.participation is not None
        present = self.participation.present(position).astype(np.float64)
        return self._ballot(self.weights * present, self.sensitivity * present)

    def _ballot(self, weights: NDArray[np.float64], sensitivity: NDArray[np.float64]) -> Ballot:
        total = float(weights.sum())
        return Ballot(weights, total, total / self.n_nominal, sensitivity)


class Participation:
    """Periodic participation with an almost constant number of voters.

    Teacher i of a group with frequency f takes part in query t when the fractional part of
    ``t·f + phase_i`` is below f. The phases of a group are equally spaced, so each query has
    ⌊n·f⌋ or ⌈n·f⌉ of its n teachers, and between two shuffles each teacher takes part
    in every window of T queries T·f times, give or take one (PoPETs 2023, Appendix C: "randomly
    selected sets of teachers participate periodically", with equal periods shifted). The phases are
    dealt anew every ``shuffle_every`` queries, from public randomness: who takes part never depends
    on data.

    ``groups``: the teachers of each group.
    ``frequencies``: share of the queries in which each group's teachers take part, in (0, 1].
    ``seed``: public randomness for the phases.

    Examples
    --------
    >>> import numpy as np
    >>> schedule = Participation([np.arange(10)], [0.25], seed=1)
    >>> sorted({int(schedule.present(t).sum()) for t in range(40)})
    [2, 3]
    """

    def __init__(
        self,
        groups: Sequence[NDArray[np.intp]],
        frequencies: Sequence[float],
        seed: int,
        shuffle_every: int = 100,
    ) -> None:
        self.groups = [np.asarray(group) for group in groups]
        self.frequencies = tuple(float(frequency) for frequency in frequencies)
        self.seed = seed
        self.shuffle_every = shuffle_every
        self.n_teachers = sum(len(group) for group in self.groups)
        self._frequency_ticks = np.full(self.n_teachers, _TICKS, dtype=np.int64)
        self._circle = np.full(self.n_teachers, _TICKS, dtype=np.int64)
        for group, frequency in zip(self.groups, self.frequencies, strict=True):
            ticks = max(1, round(frequency * _TICKS))
            self._frequency_ticks[group] = ticks * 2 * len(group)
            self._circle[group] = _TICKS * 2 * len(group)
        self._epoch = -1
        self._phases = np.zeros(self.n_teachers, dtype=np.int64)

    def present(self, position: int) -> NDArray[np.bool_]:
        """Which teachers take part in the query at a position, shape (n_teachers,)."""
        epoch, step = divmod(position, self.shuffle_every)
        if epoch != self._epoch:
            self._deal_phases(epoch)
        turned = (step * self._frequency_ticks + self._phases) % self._circle
        return np.asarray(turned < self._frequency_ticks)

    def _deal_phases(self, epoch: int) -> None:
        generator = np.random.default_rng([self.seed, epoch])
        for group in self.groups:
            order = generator.permutation(len(group))
            self._phases[group] = (2 * order + 1) * _TICKS
        self._epoch = epoch
