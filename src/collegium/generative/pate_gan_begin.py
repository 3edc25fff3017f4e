"""From private rows and budgets to all parts of a fit of PATE-GAN, before its first step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.neighbours import OWNER, ROW, Arrangement
from collegium.budgets import Budget, Budgets, Policy
from collegium.data.cells import Cells
from collegium.data.overlap_checks import refuse_overlap
from collegium.data.schema import Schema
from collegium.data.schema_arrays import take_frame_rows
from collegium.errors import InputError
from collegium.models.neural.machine import require_torch
from collegium.noise.sources import noise_from
from collegium.noise.sums import NoisySum
from collegium.personalisation import Personalisation
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan
from collegium.runs.estimator_base import seed_of
from collegium.weighted_sums.tables import refuse_empty
from collegium.weighted_sums.whose import who_granted
from collegium.zero_and_public_budgets import split_by_level

_USUAL_SHARD = 30
_OVERLAP = "public_may_overlap=True in fit"


class Beginning:
    """How a fit begins: each part is made once, of what it may see; what decides on privacy is public."""

    schema: Schema
    personalisation: Personalisation
    n_teachers: int | None
    n_queries: int
    rounds: int
    teacher_steps: int
    student_steps: int
    generator_steps: int
    votes: str
    targets: str
    delta: float
    random_state: int | None
    noise_seed: int | None

    def begin(
        self,
        frame: Any,
        *,
        budgets: Policy | Budgets | Budget | ArrayLike,
        privacy: str | None = None,
        owner: str | None = None,
        public: Any = None,
        public_may_overlap: bool = False,
        noise: NoisySum | None = None,
    ) -> Any:
        """Make all parts of a fit without taking a step; for audits, which put ears on them.

        ``noise``: where noise comes from, instead of the system or the seed.

        Returns a :class:`~collegium.generative.pate_gan_run.PATEGANRun`. Otherwise as :meth:`fit`.
        """
        require_torch()
        refuse_empty(frame)
        granted, frame = who_granted(frame, budgets, privacy, owner, self.delta)
        apart = split_by_level(granted, learner="what is told of a collapse")
        cells = self._cells(frame, public)
        shown = [cells.codes(public)] if public is not None else []
        if apart.public.size:
            shown.append(cells.codes(take_frame_rows(frame, apart.public)))
            frame = take_frame_rows(frame, apart.private)
        few = self.personalisation.few_budgets(apart.budgets, self.n_teachers or 1)
        if public is not None and not public_may_overlap:
            refuse_overlap(_table(cells, frame), _table(cells, public), key=_OVERLAP)
        seed = seed_of(self.random_state)
        plan = self._plan(few)
        arrangement = Arrangement(
            unit=OWNER if few.named else ROW,
            sizes_declared=few.declared_sizes is not None,
            assignment=self.personalisation.assignment,
            public_may_overlap=public_may_overlap,
            public_levels=few.public_levels,
            regrouped=few.kept < 1,
        )
        return self._parts(cells, frame, few, plan, arrangement, seed, noise, shown)

    def _plan(self, budgets: Budgets) -> Plan:
        people = sum(budgets.public_sizes().values())
        n = self.n_teachers or max(1, people // _USUAL_SHARD, len(budgets.groups))
        return self.personalisation.plan_for(budgets, n)

    def _cells(self, frame: Any, public: Any) -> Cells:
        """Columns and edges, of what is public alone: ``frame`` is not looked at."""
        return Cells(self.schema, public)

    def _shards(
        self, codes: NDArray[np.int64], budgets: Budgets, plan: Plan, seed: int
    ) -> list[NDArray[np.int64]]:
        """Deal each owner's rows to that owner's teachers, once."""
        dealt = plan.assign(budgets, str(seed).encode(), self.personalisation.assignment)
        return [codes[rows] for rows in dealt.shards()]

    def _sigma(self, electorate: Electorate) -> float:
        from collegium.generative.adversary_votes import sigma_for

        return sigma_for(electorate, self.n_queries)

    def _account_of(self, electorate: Electorate, arrangement: Arrangement) -> GaussianAccountant:
        budgets = electorate.cohort_budgets
        return GaussianAccountant(
            [one.epsilon for one in budgets],
            [one.delta for one in budgets],
            electorate.cohort_groups,
            arrangement.neighbours,
        )

    def _parts(
        self,
        cells: Cells,
        frame: Any,
        budgets: Budgets,
        plan: Plan,
        arrangement: Arrangement,
        seed: int,
        noise: NoisySum | None,
        shown: list[NDArray[np.int64]],
    ) -> Any:
        from collegium.generative.adversary_student import StudentDiscriminator
        from collegium.generative.adversary_teachers import TeacherDiscriminators
        from collegium.generative.adversary_votes import NoisyVotes
        from collegium.generative.pate_gan_run import PATEGANRun, Steps, coins_for
        from collegium.generative.table_networks import TableGenerator

        electorate = plan.electorate(seed)
        if not electorate.is_static:
            raise InputError(
                f"personalisation {self.personalisation.name!r} lets teachers come and go, and here each "
                "is kept for the whole fit: use 'weighting', 'uniform' or 'upsampling'"
            )
        account = self._account_of(electorate, arrangement)
        source = noise_from(self.noise_seed) if noise is None else noise
        votes = NoisyVotes(electorate, self._sigma(electorate), self.n_queries, account, source)
        shards = self._shards(cells.codes(frame), budgets, plan, seed)
        return PATEGANRun(
            cells=cells,
            plan=plan,
            budgets=budgets,
            teachers=TeacherDiscriminators(
                shards, cells.sizes, coins_for(seed, "teachers"), votes=self.votes
            ),
            votes=votes,
            student=StudentDiscriminator(
                cells.sizes, coins_for(seed, "student"), targets=self.targets
            ),
            generator=TableGenerator(cells.sizes, coins_for(seed, "generator")),
            account=account,
            arrangement=arrangement,
            public=np.concatenate(shown) if shown else None,
            steps=Steps(self.rounds, self.teacher_steps, self.student_steps, self.generator_steps),
            coins=coins_for(seed, "rows"),
        )


def _table(cells: Cells, frame: Any) -> pd.DataFrame:
    return pd.DataFrame(cells.schema.arrays(frame, list(cells.names)))
