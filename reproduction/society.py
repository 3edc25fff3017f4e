"""Who grants what in an experiment: groups of records with budgets, dealt by public randomness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium import Budget, Budgets, Policy
from collegium.errors import InputError

DELTA = 1e-5


@dataclass(frozen=True)
class Society:
    """Budgets and the shares of the records that have them.

    Parameters
    ----------
    epsilons : tuple of float
        ε of each group.
    shares : tuple of float
        Share of the records in each group, adding up to 1. With ``only_class``: of that class.
    only_class : int, optional
        All groups but the first consist of records of this class; everybody else is in the first.
    delta : float, default=1e-5
        δ of everybody.

    Raises
    ------
    InputError
        If there is not one share per budget, or they do not add up to 1.

    Examples
    --------
    >>> society = Society((1.0, 3.0), (0.75, 0.25))
    >>> society.budgets(np.zeros(8, dtype=int), seed=0).group_sizes()
    {'ε=1': 6, 'ε=3': 2}
    """

    epsilons: tuple[float, ...]
    shares: tuple[float, ...]
    only_class: int | None = None
    delta: float = DELTA

    def __post_init__(self) -> None:
        if len(self.epsilons) != len(self.shares) or abs(sum(self.shares) - 1) > 1e-9:
            raise InputError(
                f"a society needs one share per budget, adding up to 1; got budgets {self.epsilons} and "
                f"shares {self.shares}"
            )

    @property
    def group_names(self) -> tuple[str, ...]:
        """Name of each group, in the order of ``epsilons``."""
        return tuple(f"ε={epsilon:.4g}" for epsilon in self.epsilons)

    @property
    def groups(self) -> dict[str, Budget]:
        """Every group's budget."""
        pairs = zip(self.group_names, self.epsilons, strict=True)
        return {name: Budget(epsilon, self.delta) for name, epsilon in pairs}

    def groups_of(self, codes: NDArray[np.intp], seed: int) -> NDArray[np.intp]:
        """Deal the groups.

        Parameters
        ----------
        codes : ndarray of int, shape (n_records,)
            Class numbers; looked at only with ``only_class``.
        seed : int
            Which records have which budget depends on it and the shares, not on the budgets.

        Returns
        -------
        ndarray of int, shape (n_records,)
            Position in ``epsilons``.
        """
        order = np.random.default_rng([seed, 2]).permutation(len(codes))
        if self.only_class is not None:
            order = order[codes[order] == self.only_class]
        groups = np.zeros(len(codes), dtype=np.intp)
        ends = np.rint(np.cumsum(self.shares[::-1]) * len(order)).astype(int)
        first = 0
        for group, end in zip(range(len(self.shares) - 1, 0, -1), ends, strict=False):
            groups[order[first:end]] = group
            first = int(end)
        return groups

    def budgets(self, codes: NDArray[np.intp], seed: int) -> Budgets:
        """Give every record its budget; see :meth:`groups_of`."""
        names = np.asarray(self.group_names, dtype=object)
        return Policy(self.groups, self.delta).assign(names[self.groups_of(codes, seed)])


def everybody(epsilon: float, delta: float = DELTA) -> Society:
    """Return a society in which all grant the same."""
    return Society((epsilon,), (1.0,), delta=delta)


def two_groups(lower: float, higher: float, share: float, only_class: int | None = None) -> Society:
    """Return a society in which a share of the records grants a higher budget."""
    return Society((lower, higher), (1 - share, share), only_class)


def describe_shares(shares: Sequence[float]) -> str:
    """Write shares as the tables do.

    Examples
    --------
    >>> describe_shares((0.34, 0.43, 0.23))
    '34%-43%-23%'
    """
    return "-".join(f"{share:.0%}" for share in shares)
