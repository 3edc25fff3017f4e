"""What a release has spent: the one form in which spending leaves a method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collegium.accounting.events import PoissonGaussian
from collegium.accounting.export import Use


@dataclass(frozen=True)
class Spent:
    """What one member of each group has spent, at the worst.

    Every group that was promised anything is in it, also if it spent nothing: a group that is missing is an
    error wherever it is looked up, never a cost of nothing.

    Attributes
    ----------
    uses : mapping of str to tuple of Use
        By group: which events its most burdened member was exposed to, and how often.
    epsilon : mapping of str to float
        By group: what that amounts to at the group's δ, rounded up.
    gaussian : bool
        Whether all that was charged is Gaussian noise, so that the account counts in μ and is exact.
    sensitive : bool
        Whether it depends on private data. Then nothing is in here, and nothing may be told.

    Raises
    ------
    ValueError
        If ``uses`` and ``epsilon`` are not about the same groups, or anything sensitive is given.

    Examples
    --------
    >>> from collegium.accounting.events import Gaussian
    >>> from collegium.accounting.export import uses_of
    >>> uses = tuple(uses_of(Gaussian([1.0], scale=10.0)))
    >>> Spent({"all": uses}, {"all": 0.31}, gaussian=True).mu("all") >= 0.1
    True
    """

    uses: Mapping[str, tuple[Use, ...]] = field(default_factory=dict)
    epsilon: Mapping[str, float] = field(default_factory=dict)
    gaussian: bool = False
    sensitive: bool = False

    def __post_init__(self) -> None:
        if set(self.uses) != set(self.epsilon):
            raise ValueError("what was used and what it cost are about different groups")
        if self.sensitive and self.uses:
            raise ValueError("what was spent is sensitive here: none of it may leave the account")

    def mu(self, group: str) -> float | None:
        """Compute μ of all that a member was exposed to; None if other accounts are sharper than μ."""
        uses = self.uses[group]
        if any(isinstance(use.event, PoissonGaussian) for use in uses):
            return None
        return mu_of(uses)


def mu_of(uses: Sequence[Use]) -> float:
    """μ of all uses together, rounded up."""
    squared = math.fsum(use.count * float(use.event.mu_squared[0]) for use in uses)
    return math.nextafter(math.sqrt(squared) * (1 + 2.0**-50), math.inf) if squared else 0.0
