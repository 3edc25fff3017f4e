"""One fit of PATE-GAN, round by round: what sees what.

::

    private rows ─► teachers (each its own, for the whole fit) ─► noisy votes ─► student ─► generator
                        ▲                                             ▲                        │
                        └────────────────── generated rows ───────────┴────────────────────────┘

Only noisy votes leave the teachers. Student, teachers and generator share no parameter. Needs PyTorch.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from numpy.typing import NDArray

from collegium.accounting.accountant import Accountant
from collegium.accounting.neighbours import Arrangement
from collegium.budgets import Budgets
from collegium.data.cells import Cells
from collegium.generative.adversary_student import StudentDiscriminator
from collegium.generative.adversary_teachers import TeacherDiscriminators
from collegium.generative.adversary_votes import NoisyVotes
from collegium.generative.table_networks import TableGenerator
from collegium.personalisation.plan import Plan

Codes = NDArray[np.int64]
_MOST_KEPT = 64


@dataclass(frozen=True)
class Steps:
    """How often who learns: nothing here can affect privacy.

    ``rounds``: into how many rounds the queries are divided.
    ``teacher``, ``student``, ``generator``: steps of each in every round.
    ``batch``: generated rows of one step.
    ``targets``: what the student learns, see :class:`StudentDiscriminator`.
    """

    rounds: int
    teacher: int
    student: int
    generator: int
    batch: int = 64
    targets: str = "unbiased"


@dataclass(eq=False)
class PATEGANRun:
    """All parts of a fit, before its first step. Whoever audits it replaces a part by one that listens.

    ``cells``: public columns. ``plan``: who teaches, public. ``budgets``: who granted what.
    ``teachers``: the only part that holds private rows.
    ``votes``: the only door from them.
    ``account``: what was charged. ``arrangement``: which neighbours that is about.
    ``public``: public rows, which nothing learns from.
    """

    cells: Cells
    plan: Plan
    budgets: Budgets
    teachers: TeacherDiscriminators
    votes: NoisyVotes
    student: StudentDiscriminator
    generator: TableGenerator
    account: Accountant
    arrangement: Arrangement
    public: Codes | None
    steps: Steps
    coins: torch.Generator

    def __post_init__(self) -> None:
        self._kept: list[TableGenerator] = []
        self._optimizer = torch.optim.Adam(self.generator.parameters(), lr=5e-4, betas=(0.5, 0.9))

    def train(self) -> None:
        """Take all rounds."""
        for number in range(self.steps.rounds):
            self.round(number)

    def round(self, number: int) -> None:
        """Let teachers learn, ask them about new rows once, and let student and generator learn of it."""
        for _ in range(self.steps.teacher):
            self.teachers.learn(self.generator.codes(self.steps.batch, self.coins))
        if asked := self.n_asked(number):
            generated = self.generator.codes(asked, self.coins)
            shares = self.votes.shares(self.teachers.votes(generated))
            self.student.learn(generated, shares, self.steps.student)
        for _ in range(self.steps.generator):
            self._improve()
        self._keep(number)

    def codes(self, n: int, coins: torch.Generator) -> Codes:
        """Draw cells of rows of what has been learnt, shape (n, n_columns).

        Of the generators of many rounds, equally many of each: a game in which both sides learn goes in
        circles, and its average comes nearer to where it aims (Freund & Schapire, "Adaptive game playing
        using multiplicative weights", Games and Economic Behavior 29, 1999; of private generators:
        Neunhoeffer, Wu & Dwork, "Private post-GAN boosting", ICLR 2021, arXiv 2007.11934). All of them
        follow from what was released.
        """
        makers = self._kept or [self.generator]
        shares = [n * (i + 1) // len(makers) - n * i // len(makers) for i in range(len(makers))]
        parts = [
            one.codes(share, coins) for one, share in zip(makers, shares, strict=True) if share
        ]
        order = torch.randperm(n, generator=coins).numpy()
        return np.asarray(np.concatenate(parts)[order])

    def n_asked(self, number: int) -> int:
        """How many rows a round asks about: all of them together are the queries, evenly divided."""
        queries, rounds = self.votes.n_queries, self.steps.rounds
        return queries * (number + 1) // rounds - queries * number // rounds

    def _keep(self, number: int) -> None:
        """Keep the generator of some rounds, from the last two thirds of them."""
        first = self.steps.rounds // 3
        every = -(-(self.steps.rounds - first) // _MOST_KEPT)
        if number >= first and (self.steps.rounds - 1 - number) % every == 0:
            self._kept.append(copy.deepcopy(self.generator))

    def _improve(self) -> None:
        rows = self.generator.rows(self.steps.batch, self.coins)
        loss = F.softplus(-self.student.logits(rows)).mean()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()


def coins_for(seed: int, role: str) -> torch.Generator:
    """Public randomness of one part, which no other part's draws can move.

    Examples
    --------
    >>> [int(torch.randint(100, (1,), generator=coins_for(1, r))) for r in ("student", "teachers", "student")]
    [63, 10, 63]
    """
    digits = np.random.SeedSequence([seed, *role.encode()]).generate_state(2)
    return torch.Generator().manual_seed(int(digits[0]) << 31 ^ int(digits[1]))
