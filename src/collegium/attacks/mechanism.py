"""What a game is played against: exactly the objects that a study would use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collegium.noise.sources import SecureNoise
from collegium.noise.sums import NoisySum
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.pricing import Pricing, WorstCasePricing
from collegium.pate.voting.release import LABELS
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan


@dataclass(frozen=True, eq=False)
class AuditedMechanism:
    """What is audited: exactly the objects that a study would use.

    ``pricing``: worst-case prices with an account that has charged nothing; every run gets a copy.
    ``owner_teachers``: for each group, the teachers of one owner.
    ``noise``: cryptographic noise, unless a test breaks it.
    ``release``: what its jobs show of each answered query.
    """

    electorate: Electorate
    aggregator: Aggregator
    pricing: Pricing
    owner_teachers: Mapping[str, NDArray[np.intp]]
    noise: NoisySum = field(default_factory=SecureNoise)
    release: str = LABELS

    def cohort(self, group: str) -> int:
        """Position of the owner's cohort."""
        if self.electorate.is_static:
            return self.electorate.cohort_groups.index(group)
        return int(self.owner_teachers[group][0])


def mechanism_from(
    plan: Plan, aggregator: Aggregator, queries: int, release: str = LABELS
) -> AuditedMechanism:
    """Make the mechanism of a plan, with an owner of each group to attack.

    ``plan``: who teaches and who weighs how much.
    ``queries``: queries of one run: where teachers vanish, the owner's is the one that takes part
        most.
    ``release``: what is shown of each answered query.
    """
    electorate = plan.electorate(0)
    present = np.array([electorate.ballot(p).weights > 0 for p in range(queries)])
    owners = {}
    for name, (first, end) in plan.teacher_ranges().items():
        start = first
        if not electorate.is_static:
            start = first + int(present[:, first:end].sum(axis=0).argmax())
        owners[name] = np.arange(start, start + plan.groups[name].duplicates)
    pricing = WorstCasePricing(aggregator, electorate)
    return AuditedMechanism(electorate, aggregator, pricing, owners, release=release)
