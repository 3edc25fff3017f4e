"""PATE-GAN: a generator of rows that learns from noisy votes of discriminators, with individual budgets."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from collegium.accounting.statement import PrivacyStatement, statement
from collegium.budgets import DEFAULT_DELTA, Budget, Budgets, Policy
from collegium.checks import check_choice, check_is, check_whole
from collegium.data.schema import Schema
from collegium.errors import InputError
from collegium.generative.adversary_collapse import Collapse, collapse_of
from collegium.generative.pate_gan_begin import Beginning
from collegium.personalisation import Personalisation, as_personalisation
from collegium.personalisation.plan import Plan
from collegium.runs.estimator_base import seed_of
from collegium.runs.user_warnings import Warner

_LOOKED_AT = 10_000
"""Generated rows of which it is told whether the model has collapsed."""
_MOST_SAMPLED = 10_000_000
_MOST_QUERIES = 10_000_000


class PATEGAN(Beginning):
    """A generator of synthetic rows, taught by noisy votes of discriminators on disjoint people's rows.

    Each teacher is a discriminator of some people's rows, dealt once by a keyed hash of the owner's name.
    Each generated row is voted on once, and one noisy weighted number of votes leaves. A student
    discriminator learns from these alone, and the generator from the student: nothing but the noisy votes
    depends on private rows. Groups that granted more have teachers that weigh more.

    It is here because it is well known, and to compare with: :class:`~collegium.Synthesizer` makes
    far better tables of the same budgets. :attr:`collapsed_` says whether it came to nothing.

    Parameters
    ----------
    schema : Schema
        Public columns, with their bounds and categories. Text is left out.
    n_teachers : int, optional
        Default: one for about 30 people.
    n_queries : int, default=2000
        Generated rows that are voted on. The noise grows with its square root.
    rounds : int, default=200
        In so many rounds they are asked; teachers, student and generator learn in each.
    personalisation : {"weighting", "uniform", "upsampling", "bagging"} or Personalisation,
    default="weighting"
        How budgets become influence. "hybrid" and "vanishing" are refused where teachers come and go.
    teacher_steps, student_steps, generator_steps : int
        Steps of each in every round.
    votes : {"relative", "absolute"}, default="relative"
        Which generated rows a teacher calls real: of those that are voted on together the half that look
        more real to it; or, as published, all that look real to it. That costs the same.
    targets : {"unbiased", "clipped"}, default="unbiased"
        What the student learns: noisy shares as they are, or moved into [0, 1].
    delta : float, default=1e-5
        δ of budgets that are numbers.
    random_state : int, optional
        Seed of all public randomness: who is taught by whom, first weights, generated rows.
    noise_seed : int, optional
        For experiments: the noise is then not private.

    Attributes
    ----------
    privacy_ : PrivacyStatement
        What was promised, and what everybody has paid.
    collapsed_ : Collapse
        How varied 10,000 generated rows are, and whether that is a collapse; from generated rows alone, and
        public ones where there are some.
    sigma_ : float
        Standard deviation of the noise on each number of votes, in votes.
    plan_ : Plan
        Who teaches and who weighs how much: public.

    Raises
    ------
    InputError
        If something cannot be used. Nothing was drawn or charged then.

    Notes
    -----
    *Neighbours.* All records of one owner are replaced, by as many, more or fewer, or blanked; how many
    owners each group has is public. An owner's rows decide how the d teachers vote that see them, and
    nothing else that is not noised, so that a weighted number of votes moves by at most Δ = d·w
    (weighting: d = 1, and w is the group's weight), and all Q of them are μ-Gaussian-DP with μ = Δ·√Q/σ.
    At ε = 1, δ = 1e-5 and w = 1 that takes σ = 37.306, 117.973, 422.073 for Q = 100, 1,000, 12,800. All Q
    are charged, whatever comes out.

    *Each fit is a release of its own*: it deals teachers and makes an account once, and cannot continue.
    What people pay for several fits adds up.

    *Six public implementations leak* (G. Ganev, M. S. M. S. Annamalai, E. De Cristofaro, "The elusive
    pursuit of reproducing PATE-GAN: benchmarking, auditing, debugging", arXiv 2406.13985): rows dealt
    anew in each iteration, teachers that learn from more than their share, accounts that are too small,
    bounds read off private rows, a student that sees them. ``collegium.attacks.generative_games`` has the
    games that notice each of them.

    References
    ----------
    .. [1] J. Jordon, J. Yoon, M. van der Schaar, "PATE-GAN: generating synthetic data with differential
       privacy guarantees", ICLR 2019.

    Examples
    --------
    >>> people = pd.DataFrame({"smokes": [True, False] * 200, "sex": ["F", "F", "M", "M"] * 100})
    >>> schema = Schema({
    ...     "smokes": {"kind": "flag", "missing": False},
    ...     "sex": {"kind": "category", "categories": ["F", "M"], "missing": False},
    ... })
    >>> model = PATEGAN(schema, n_teachers=20, n_queries=50, rounds=10, random_state=1, noise_seed=1)
    >>> synthetic = model.fit(people, budgets=[1.0, 3.0] * 200).sample(100)
    >>> synthetic.shape, round(model.sigma_, 1)
    ((100, 2), 14.3)
    """

    def __init__(
        self,
        schema: Schema,
        *,
        n_teachers: int | None = None,
        n_queries: int = 2_000,
        rounds: int = 200,
        personalisation: str | Personalisation = "weighting",
        teacher_steps: int = 2,
        student_steps: int = 20,
        generator_steps: int = 3,
        votes: str = "relative",
        targets: str = "unbiased",
        delta: float = DEFAULT_DELTA,
        random_state: int | None = None,
        noise_seed: int | None = None,
    ) -> None:
        check_is("schema", schema, Schema, "read one with Schema.read(path)")
        if n_teachers is not None:
            check_whole("n_teachers", n_teachers)
        check_whole("n_queries", n_queries, most=_MOST_QUERIES)
        check_whole("rounds", rounds, most=n_queries)
        for name, steps in (
            ("teacher_steps", teacher_steps),
            ("student_steps", student_steps),
            ("generator_steps", generator_steps),
        ):
            check_whole(name, steps)
        check_choice("votes", votes, ("relative", "absolute"))
        check_choice("targets", targets, ("unbiased", "clipped"))
        Budget(1.0, delta)  # which checks it
        if noise_seed is not None:
            check_whole("noise_seed", noise_seed, least=0)
        self.schema, self.n_teachers, self.n_queries, self.rounds = (
            schema,
            n_teachers,
            n_queries,
            rounds,
        )
        self.personalisation = as_personalisation(personalisation)
        self.teacher_steps, self.student_steps = teacher_steps, student_steps
        self.generator_steps, self.votes, self.targets = generator_steps, votes, targets
        self.delta, self.random_state, self.noise_seed = delta, random_state, noise_seed

    def fit(
        self,
        frame: Any,
        *,
        budgets: Policy | Budgets | Budget | ArrayLike,
        privacy: str | None = None,
        owner: str | None = None,
        public: Any = None,
        public_may_overlap: bool = False,
    ) -> Self:
        """Spend everybody's budget on one generator.

        Parameters
        ----------
        frame : table
            Private rows: pandas, Polars, Arrow, with the schema's columns.
        budgets : Policy, Budgets, Budget, float or array-like of float, shape (n_rows,)
            What each row's owner granted: ``policy.assign(levels, owners)``, ε of each row, or one for all.
            With a Policy, ``privacy`` is the column of levels, and ``owner`` that of people.
        public : table, optional
            Public rows: for the edges of numbers, and to see a collapse. Nothing learns from them.
        public_may_overlap : bool, default=False
            Allow public rows that are private ones, which the statement then mentions.

        Returns
        -------
        PATEGAN
            Itself.
        """
        if hasattr(self, "_run"):
            Warner().note(
                "this PATEGAN was fitted before: each fit is a release of its own, with an account of "
                "its own, and what people pay for several adds up"
            )
        run = self.begin(
            frame,
            budgets=budgets,
            privacy=privacy,
            owner=owner,
            public=public,
            public_may_overlap=public_may_overlap,
        )
        self._run = run  # what was spent is told even if the fit is interrupted
        self._looked: Collapse | None = None
        run.train()
        return self

    @property
    def collapsed_(self) -> Collapse:
        """How varied 10,000 generated rows are; beside public rows, where there are some."""
        from collegium.generative.pate_gan_run import coins_for

        run = self._fitted()
        if self._looked is None:
            generated = run.codes(_LOOKED_AT, coins_for(0, "collapse"))
            self._looked = collapse_of(generated, run.cells.sizes, run.cells.names, run.public)
        return self._looked

    @property
    def plan_(self) -> Plan:
        """Who teaches and who weighs how much: public."""
        plan: Plan = self._fitted().plan
        return plan

    @property
    def sigma_(self) -> float:
        """Standard deviation of the noise on each number of votes, in votes."""
        return float(self._fitted().votes.event.scale)

    def sample(self, n: int, random_state: int | None = None) -> pd.DataFrame:
        """Draw synthetic rows. Costs nothing, however many.

        Parameters
        ----------
        n : int
            From 1 to 10,000,000.
        random_state : int, optional
            Default: other rows at each call.

        Returns
        -------
        DataFrame
            With the schema's columns but text; numbers drawn evenly within their cells.
        """
        from collegium.generative.pate_gan_run import coins_for

        check_whole("n", n, most=_MOST_SAMPLED)
        run = self._fitted()
        seed = seed_of(random_state)
        codes = run.codes(n, coins_for(seed, "sample"))
        made: pd.DataFrame = run.cells.frame(run.cells.arrays(codes, np.random.default_rng(seed)))
        return made

    @property
    def privacy_(self) -> PrivacyStatement:
        """What was promised, and what everybody has paid."""
        run = self._fitted()
        return statement(
            run.account,
            run.budgets.group_sizes(),
            {name: group.budget for name, group in run.plan.groups.items()},
            run.arrangement,
            run.votes.noise.is_private,
            "the generator, every synthetic row and all noisy votes",
        )

    def _fitted(self) -> Any:
        if not hasattr(self, "_run"):
            raise InputError(
                "this PATEGAN has learnt nothing yet: call fit(frame, budgets=...) first"
            )
        return self._run

    def __repr__(self) -> str:
        if not hasattr(self, "_run"):
            return f"PATEGAN({len(self.schema)} columns, {self.n_queries:,} queries; not fitted)"
        return (
            f"PATEGAN({len(self._run.cells.names)} columns, {self.plan_.n_teachers:,} teachers, "
            f"{self._run.votes.n_asked:,} votes on rows, sigma {self.sigma_:.1f} votes; {self.collapsed_})"
        )
