"""A session of questions about a table of people, each of whom has a budget of their own."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Composition, Event, Nothing
from collegium.accounting.neighbours import OWNER, ROW, Arrangement, Neighbours
from collegium.accounting.statement import PrivacyStatement, statement
from collegium.budgets import DEFAULT_DELTA, PUBLIC, Budget, Budgets, Policy, as_budgets
from collegium.checks import check_number, check_whole, shown
from collegium.data.schema import Schema
from collegium.data.schema_arrays import n_rows, series_of
from collegium.data.schema_column import FLAG
from collegium.errors import BudgetExceededError, InputError, PrivacyWarning
from collegium.extremes import granting, part_of
from collegium.noise.grid import GRID
from collegium.noise.sources import SecureNoise, SeededNoise
from collegium.personalisation.bins import few_budgets
from collegium.statistics import estimates, quantiles
from collegium.statistics.answers import Answer, table_of
from collegium.statistics.calibrated import PerPerson, by_group
from collegium.statistics.estimates import Estimate, Heard
from collegium.statistics.facts import beside_facts, in_words, known_of
from collegium.statistics.features import Features, features_of
from collegium.statistics.language import Asked, checked_question, parse_question, parse_where
from collegium.statistics.planned import Plan, Trade, trade_of, wasted
from collegium.statistics.settings import NEIGHBOURS, NOISES, Asking
from collegium.statistics.sums import Sums, Weighing
from collegium.statistics.tables import InMemory, Table, paths_of, read_all
from collegium.statistics.weights import RULES, effective_people, staircase

if TYPE_CHECKING:
    from collegium.ledger.ledger import Ledger
    from collegium.statistics.ledgered import StatisticsSpending

Floats = NDArray[np.float64]
_UNLIMITED = 1024.0  # μ or ε that an answer takes of people who all grant anything
_CALIBRATED = ("count", "sum", "mean", "histogram", "crosstab")


@dataclass(frozen=True)
class _Question:
    """What is asked, and how: equal where an answer can be given again."""

    asked: Asked
    weights: str
    calibrated: bool = False
    penalty: float = 1.0


class Statistics:
    """Ask a table of people, and keep everybody's own budget.

    Everybody weighs as much as helps the answer and as their budget allows; noise is the same for all. Each
    owner of group g pays at most the share of (ε_g, δ_g) that the session may use, whatever is asked and in
    the light of whatever came out before (a filter is asked before every draw).

    Parameters
    ----------
    frame : DataFrame, Table, str, Path or list of these
        One row per record: of pandas, polars or pyarrow, in memory; or Parquet files, which are read in
        batches.
    budgets : Policy, Budgets, array-like of float of shape (n_rows,), float or Budget
        What each row's owner grants: a policy, where the table says each one's level (``privacy``); otherwise
        as for :class:`~collegium.DPSGDClassifier`.
    schema : Schema
        Public types, bounds and categories of the columns (:class:`~collegium.Schema`). Values out of bounds
        count as the nearest bound; missing ones and unknown categories in none of the answers but counts.
    privacy, owner : str, optional
        With a policy: the columns of the table with each row's level, and the name of whom it is about
        (default: each row is about somebody else).
    spend : float, default=1.0
        Share of what people have left that the session may use altogether: of μ² (Gaussian noise) or of ε
        (Laplace noise); without a ledger, of their budgets.
    questions : int, default=10
        Among how many questions that is shared out evenly; a question may take another share (``spend``).
    ledger : Ledger, optional
        Reserve what the session may use there; :meth:`close` gives back what was not used.
    noise : {"auto", "gaussian", "laplace"}, default="auto"
        "auto": Laplace noise where so few questions are asked that it is smaller, otherwise Gaussian noise.
    weights : {"saturating", "proportional", "uniform"}, default="saturating"
        How budgets become weights: see :func:`~collegium.statistics.weights.weights_of`, and :meth:`plan`.
    neighbours : {"blanked", "replaced"}, optional
        What is hidden: whether all rows of an owner are there or blank (the default), or also which they are
        of all that could be. The latter costs up to twice as much. Default: what the ledger promises.
    confidence : float, default=0.95
        Of intervals.
    delta : float, default=1e-5
        δ of budgets that are numbers.
    noise_seed : int, optional
        For experiments: the noise is then not private.
    name : str, default="statistics"
        Of the release, in the ledger.

    Attributes
    ----------
    answers : list of Answer
        All that were given.
    privacy_ : PrivacyStatement
        What was promised, and what everybody has paid.

    Raises
    ------
    InputError
        If something cannot be used. Nothing was drawn or charged then, nor with BudgetExceededError.

    Notes
    -----
    Group sizes, budgets and the schema are public (``docs/neighbours.md``). Derivations, and what answers say
    where budgets go with the data: ``docs/statistics.md``.

    Examples
    --------
    >>> import pandas as pd
    >>> from collegium import Schema, Statistics
    >>> people = pd.DataFrame({"age": [30, 40, 50, 60] * 500, "smokes": [True, False] * 1000})
    >>> schema = Schema({"age": {"kind": "whole", "bounds": [18, 90]}, "smokes": {"kind": "flag"}})
    >>> ask = Statistics(people, [1.0, 1.0, 2.0, 3.0] * 500, schema=schema, noise_seed=1)
    >>> answer = ask.mean("age", where="smokes")
    >>> abs(answer.value - 40) < 6 * answer.standard_error < 10
    True
    """

    def __init__(
        self,
        frame: Any,
        budgets: Policy | Budgets | Budget | ArrayLike,
        *,
        schema: Schema | None = None,
        privacy: str | None = None,
        owner: str | None = None,
        spend: float = Asking.spend,
        questions: int = 10,
        ledger: Ledger | None = None,
        noise: str = Asking.noise,
        weights: str = Asking.weights,
        neighbours: str | None = Asking.neighbours,
        confidence: float = Asking.confidence,
        delta: float = DEFAULT_DELTA,
        noise_seed: int | None = Asking.noise_seed,
        name: str = "statistics",
    ) -> None:
        if schema is None:
            raise InputError(
                "a schema is missing: bounds and categories must be public, and never read off private rows; "
                "draft one from public records with Schema.from_public(frame) or `collegium schema init "
                "public.csv`"
            )
        if not isinstance(schema, Schema):
            raise InputError(
                f"schema must be a collegium.Schema, got {shown(schema)}: read one with Schema.read(path)"
            )
        check_number("spend", spend, above=0, most=1)
        check_whole("questions", questions, least=1)
        check_number("confidence", confidence, above=0, below=1)
        for key, value, allowed in (
            ("noise", noise, NOISES),
            ("weights", weights, RULES),
            ("neighbours", neighbours, (*NEIGHBOURS, None)),
        ):
            if value not in allowed:
                names = ", ".join(repr(one) for one in allowed if one is not None)
                raise InputError(f"{key} must be one of {names}, got {shown(value)}")
        self.schema, self.confidence, self.weights = schema, float(confidence), weights
        self.answers: list[Answer] = []
        self._record: dict[_Question, Answer] = {}
        self._spend, self._questions, self._left = float(spend), questions, 1.0
        self._noise: SecureNoise | SeededNoise = (
            SecureNoise() if noise_seed is None else SeededNoise(noise_seed)
        )
        self._spending: StatisticsSpending | None = None
        self._charged: list[Event] = []
        self._closed = False
        self._queries = 0
        self._neighbours = (
            Neighbours.ADD_OR_REMOVE if neighbours in (None, "blanked") else Neighbours.ANY_CHANGE
        )
        files = paths_of(frame)
        if files and ledger is None:
            self._table = _streamed(files, budgets, privacy, owner, schema)
            self._kept = 1.0
        else:
            if files:
                frame = read_all(files)
            granted, frame = _who(frame, budgets, privacy, owner, delta)
            if ledger is not None:
                from collegium.statistics.ledgered import begin  # a database comes with it

                self._neighbours, self._spending = begin(ledger, granted, neighbours, noise_seed)
                ledger.refuse_published(granted.owners[granted.owner_group == PUBLIC])
                frame, granted = _taken(frame, self._spending.records), self._spending.budgets
            few = few_budgets(granted)
            self._table, self._kept = InMemory(frame, few, schema), few.kept
        groups = self._table.groups
        self._account = GaussianAccountant(
            [one.epsilon for one in groups.values()],
            [one.delta for one in groups.values()],
            list(groups),
            self._neighbours,
        )
        self.noise = self._which_noise(noise)
        if self._spending is not None and ledger is not None:
            most = dict(zip(groups, self._most().tolist(), strict=True))
            self._spending.reserve_share(ledger, name, most, self._laplace, self._arrangement)

    # ------------------------------------------------------------------------------- questions

    def count(self, where: str | None = None, **how: Any) -> Answer:
        """How many rows there are (where a condition holds); each owner's at most ``rows_per_owner``.

        Parameters
        ----------
        where : str, optional
            A condition on columns of the schema: ``"age >= 40 and sex == 'F'"``.
        by : str or list of str, optional
            Columns with public categories (:meth:`groupby`).
        spend : float, optional
            Share of what the session has left for this question; default: its equal part.
        weights : str, optional
            Another rule than the session's.
        calibrated : bool, default=False
            Hear everybody alike, whatever their budget, and show each group's own answer.

        Returns
        -------
        Answer

        Raises
        ------
        InputError
            If the schema does not allow the question.
        BudgetExceededError
            If the session has too little left. Nothing is drawn or charged then.
        """
        return self._about("count", (), where, how)

    def sum(self, column: str, where: str | None = None, **how: Any) -> Answer:
        """Sum of a column. Parameters, returned value and errors as for :meth:`count`."""
        return self._about("sum", (column,), where, how)

    def mean(self, column: str, where: str | None = None, **how: Any) -> Answer:
        """Mean of a column. Parameters, returned value and errors as for :meth:`count`."""
        return self._about("mean", (column,), where, how)

    def var(self, column: str, where: str | None = None, **how: Any) -> Answer:
        """Variance of a column (without Bessel's correction); otherwise as :meth:`count`."""
        return self._about("var", (column,), where, how)

    def std(self, column: str, where: str | None = None, **how: Any) -> Answer:
        """Standard deviation of a column; otherwise as :meth:`count`."""
        return self._about("std", (column,), where, how)

    def quantile(self, column: str, level: float, where: str | None = None, **how: Any) -> Answer:
        """Quantile of a column, one of the public steps between its bounds; otherwise as :meth:`count`."""
        return self._about("quantile", (column,), where, how, level)

    def median(self, column: str, where: str | None = None, **how: Any) -> Answer:
        """Median of a column: the quantile at ½."""
        return self.quantile(column, 0.5, where, **how)

    def histogram(self, column: str, where: str | None = None, **how: Any) -> Answer:
        """Count the rows of each public category or bin of a column; otherwise as :meth:`count`."""
        return self._about("histogram", (column,), where, how)

    def crosstab(self, *columns: str, where: str | None = None, **how: Any) -> Answer:
        """Count the rows of each combination of public categories; otherwise as :meth:`count`."""
        return self._about("crosstab", columns, where, how)

    def cov(self, columns: Sequence[str], where: str | None = None, **how: Any) -> Answer:
        """Covariances of columns; otherwise as :meth:`count`."""
        return self._about("cov", tuple(columns), where, how)

    def corr(self, columns: Sequence[str], where: str | None = None, **how: Any) -> Answer:
        """Correlations of columns; otherwise as :meth:`count`."""
        return self._about("corr", tuple(columns), where, how)

    def ridge(
        self, target: str, columns: Sequence[str], where: str | None = None, **how: Any
    ) -> Answer:
        """Regress a column linearly on others, with a ridge penalty (``penalty``, in rows; default 1).

        Otherwise as :meth:`count`. Logistic regression is :class:`~collegium.DPSGDClassifier`'s.
        """
        return self._about("ridge", (target, *columns), where, how)

    def groupby(self, *by: str) -> Grouped:
        """Ask by public categories: ``ask.groupby("sex").mean("income")``. Costs no more than one answer."""
        return Grouped(self, by)

    def ask(self, question: str, **how: Any) -> Answer:
        """Ask in words: ``"mean income by sex where age >= 40"``; otherwise as :meth:`count`."""
        return self._answer(parse_question(question, self.schema), how)

    def plan(self, question: str, **how: Any) -> Plan:
        """Say what a question would cost, and how far off it would be under each rule of weights.

        From public numbers only; nothing is drawn, charged or recorded. ``print`` shows it.
        """
        asked = parse_question(question, self.schema)
        rule, share, _ = self._how(asked, how)
        features = self._features(asked)
        prices = self._prices(share)
        trade = self._trade(asked, features)
        sizes = self._table.sizes
        predicted, heard = {}, {}
        for one in RULES:
            weights = trade.weights(one, prices, sizes)
            predicted[one] = trade.errors(weights, sizes).table
            heard[one] = effective_people(weights, sizes)
        weights = trade.weights(rule, prices, sizes)
        diameter = features.diameter(self._neighbours, self._laplace)
        weighing = self._weighing(weights, diameter)
        event = weighing.event(diameter, self._neighbours)
        return Plan(
            str(asked),
            rule,
            predicted,
            heard,
            self._epsilon_of(event),
            int(sizes.sum()),
            self.noise,
        )

    # --------------------------------------------------------------------------------- accounts

    def left(self) -> pd.DataFrame:
        """What the session may still use, by group: ε (by itself, at the group's δ) and the share left."""
        prices = self._prices(self._left)
        epsilon = prices if self._laplace else self._from_mu(prices)
        return pd.DataFrame(
            {"epsilon_left": epsilon, "share_left": self._left},
            index=pd.Index(list(self._table.groups), name="group"),
        )

    @property
    def privacy_(self) -> PrivacyStatement:
        """What was promised, and what everybody has paid for all answers so far."""
        groups = self._table.groups
        arrangement = self._arrangement
        return statement(
            self._account,
            dict(zip(groups, self._table.sizes.tolist(), strict=True)),
            dict(groups),
            arrangement.sentence,
            self._noise.is_private,
            f"the noisy answers to {self._queries:,} question(s)",
            arrangement.counts_in,
            arrangement.provisos,
        )

    def close(self) -> None:
        """End the session: what was not used is given back to the ledger. Answers stay."""
        if self._spending is not None and not self._closed:
            self._spending.settle(self._account, self._charged)
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"Statistics({int(self._table.sizes.sum()):,} people, {len(self._table.groups)} groups, "
            f"{self.noise} noise, {len(self._record)} answers, {self._left:.0%} left)"
        )

    # --------------------------------------------------------------------------------- the inside

    @property
    def _laplace(self) -> bool:
        return self.noise == "laplace"

    @property
    def _arrangement(self) -> Arrangement:
        return Arrangement(
            unit=OWNER if self._table.named else ROW,
            blanked_only=self._neighbours is Neighbours.ADD_OR_REMOVE,
            direct=True,
            on_ledger=self._spending is not None,
            what_is_left=self._spending is not None,
            regrouped=self._kept < 1,
        )

    def _which_noise(self, asked_for: str) -> str:
        if asked_for != "auto":
            return asked_for
        if self._spending is not None:
            return "gaussian"  # it leaves the most for what follows
        # What a mean of everybody with uniform weights has: noise at the strictest budget.
        mu, epsilon = self._limits(False), self._limits(True)
        gaussian = 1 / (mu.min() * math.sqrt(self._spend / self._questions))
        laplace = math.sqrt(2) / (epsilon.min() * self._spend / self._questions)
        return "laplace" if laplace < gaussian else "gaussian"

    def _limits(self, laplace: bool) -> Floats:
        """What each group grants: ε, or μ."""
        groups = self._table.groups.values()
        if laplace:
            found = np.array([one.epsilon for one in groups])
        else:
            fresh = GaussianAccountant(
                [one.epsilon for one in groups], [one.delta for one in groups]
            )
            found = np.asarray(fresh.remaining().mu)
        finite = found[np.isfinite(found)]
        return np.where(np.isfinite(found), found, finite.max() if finite.size else _UNLIMITED)

    def _prices(self, share: float) -> Floats:
        """What each group may pay for a share of the session: ε, or μ."""
        part = self._spend * share
        return self._limits(self._laplace) * (part if self._laplace else math.sqrt(part))

    def _most(self) -> Floats:
        """What the session may cost at most: Σμ² or Σε of each group."""
        limits = self._limits(self._laplace)
        return self._spend * (limits if self._laplace else limits**2)

    def _from_mu(self, mu: Floats) -> Floats:
        from collegium.accounting.gaussian import gdp_epsilon

        pairs = zip(mu.tolist(), self._account.delta.tolist(), strict=True)
        return np.array([float(gdp_epsilon(one, delta)) for one, delta in pairs])

    def _epsilon_of(self, event: Event) -> dict[str, float]:
        own = GaussianAccountant(
            np.full(len(event), np.inf), self._account.delta, self._account.names, self._neighbours
        )
        return dict(zip(self._account.names, own.preview(event).tolist(), strict=True))

    def _features(self, asked: Asked) -> Features:
        once = self._most_rows == 1
        return features_of(asked, self.schema, self._laplace, self._unequal(asked), once)

    @property
    def _most_rows(self) -> int:
        """How many rows an owner counts for: said in public, and never read off the rows."""
        return self.schema.rows_per_owner if self._table.named else 1

    def _unequal(self, asked: Asked) -> bool:
        """Whether it is worth measuring how much values spread: not of a flag, whose mean says it."""
        limits = self._limits(self._laplace)
        columns = [self.schema[name] for name in asked.columns]
        known = bool(columns) and (columns[0].sd is not None or columns[0].kind == FLAG)
        return bool(np.ptp(limits) > 0) and not known

    def _trade(self, asked: Asked, features: Features) -> Trade:
        return trade_of(
            asked,
            self.schema,
            features,
            int(self._table.sizes.sum()),
            features.diameter(self._neighbours, self._laplace),
            self._laplace,
        )

    def _weighing(self, weights: Floats, diameter: float) -> Weighing:
        return Weighing.of(weights, self._laplace, self._most_rows, diameter)

    def _about(
        self,
        kind: str,
        columns: tuple[str, ...],
        where: str | None,
        how: Mapping[str, Any],
        level: float | None = None,
    ) -> Answer:
        how = dict(how)
        by = how.pop("by", ())
        by = (by,) if isinstance(by, str) else tuple(by)
        asked = checked_question(
            kind, columns, level, by, parse_where(where, self.schema), schema=self.schema
        )
        return self._answer(asked, how)

    def _how(self, asked: Asked, how: Mapping[str, Any]) -> tuple[str, float, _Question]:
        """Check options; returns the rule, the share of the session, and the question for the record."""
        known = {"spend", "weights", "calibrated", "penalty"}
        for name in how:
            if name not in known:
                raise InputError(
                    f"{name!r} is no option of a question; allowed are {', '.join(sorted(known))}"
                )
        rule = how.get("weights", self.weights)
        if rule not in RULES:
            raise InputError(f"weights must be one of {', '.join(RULES)}, got {shown(rule)}")
        calibrated = bool(how.get("calibrated", False))
        if calibrated and asked.kind not in _CALIBRATED:
            raise InputError(
                f"calibrated answers are for {', '.join(_CALIBRATED)}, not for {asked.kind!r}"
            )
        penalty = how.get("penalty", 1.0)
        check_number("penalty", penalty, above=0, below=math.inf)
        spend = how.get("spend")
        share = 1 / self._questions
        if spend is not None:
            check_number("spend", spend, above=0, most=1)
            share = spend * self._left
        return rule, share, _Question(asked, rule, calibrated, float(penalty))

    def _answer(self, asked: Asked, how: Mapping[str, Any]) -> Answer:
        _, share, question = self._how(asked, how)
        if question in self._record:
            return self._record[question]
        if asked.kind == "count" and self._is_public(asked):
            return self._known_number(question)
        if self._closed:
            raise InputError("this session is closed: open another one to ask more")
        if share > self._left * (1 + 1e-9) or share <= 0:
            raise BudgetExceededError(
                f"the session has {self._left:.1%} of its share left, and {asked} would take {share:.1%}: "
                "nothing was asked or spent; ask with spend=1.0 for the rest, or plan more questions at the "
                "start (questions=…)"
            )
        share = min(share, self._left)
        query = self._queries
        if asked.kind == "quantile":
            answer = self._quantile(question, share, query)
        else:
            answer = self._sums(question, share, query)
        self._record[question] = answer
        self._queries += 1
        self.answers.append(answer)
        return answer

    def _is_public(self, asked: Asked) -> bool:
        """Whether it asks for the number of people, which is public."""
        return asked.where.is_everybody and not asked.by and self._most_rows == 1

    def _known_number(self, question: _Question) -> Answer:
        n = float(self._table.sizes.sum())
        ones = Weighing.of(np.ones(len(self._table.sizes)), self._laplace, 1, 1.0)
        nothing = Nothing(len(self._table.sizes), neighbours=self._neighbours)
        cells = table_of([Estimate(n, 0.0, 0.0, 0.0, n, n)], None)
        said = ("how many people there are in each group is public: nothing was drawn or spent",)
        return self._finished(question, cells, ones, nothing, said)

    def _events(self, question: _Question, share: float) -> list[Event]:
        """What a question will cost, by public numbers alone."""
        if question.asked.kind == "quantile":
            return self._quantile_weighed(question, share)[-1]
        return self._sums_weighed(question, share)[-1]

    def _charge(self, events: Sequence[Event], share: float) -> Event:
        event = events[0] if len(events) == 1 else Composition(tuple(events))
        self._account.charge(event)
        self._charged.append(event)
        self._left = max(0.0, self._left - share)
        return event

    def _sums_weighed(
        self, question: _Question, share: float
    ) -> tuple[list[Weighing], list[Event]]:
        """Weigh everybody, by public numbers alone, and say what the sums will cost."""
        features = self._features(question.asked)
        prices, sizes = self._prices(share), self._table.sizes
        diameter = features.diameter(self._neighbours, self._laplace)
        if question.calibrated:
            steps = staircase(prices) if not self._laplace else _differences(prices)
        else:
            trade = self._trade(question.asked, features)
            steps = [trade.weights(question.weights, prices, sizes)]
        weighings = [self._weighing(step, diameter) for step in steps]
        return weighings, [one.event(diameter, self._neighbours) for one in weighings]

    def _sums(self, question: _Question, share: float, query: int) -> Answer:
        asked = question.asked
        features = self._features(asked)
        prices, sizes = self._prices(share), self._table.sizes
        trade = self._trade(asked, features)
        weighings, events = self._sums_weighed(question, share)
        all_sums = [Sums(features, weighing) for weighing in weighings]
        for batch in self._table.batches(asked.needs):
            read = features.read(batch.arrays)
            for sums in all_sums:
                sums.add(batch, read)
        event = self._charge(events, share)
        noisy = [
            sums.noisy(self._noise, query, f"sums {step}") for step, sums in enumerate(all_sums)
        ]
        heard = Heard.of(weighings[0], sizes, self.confidence)
        matrix = None
        if asked.kind in ("cov", "corr", "ridge"):
            cells, matrix = self._matrix(question, noisy[0], heard, features)
        else:
            found = [self._estimate(asked, cell, heard, features) for cell in noisy[0]]
            cells = table_of(found, self._index(asked, features))
        groups = None
        if question.calibrated and len(features.keys) == 1:
            one_cell = [one[0] for one in noisy]
            groups = self._by_group(asked, prices, weighings, one_cell, features, cells)
        notes = self._notes(question, trade, prices)
        return self._finished(question, cells, weighings[0], event, notes, matrix, groups)

    def _estimate(self, asked: Asked, sums: Floats, heard: Heard, features: Features) -> Estimate:
        if asked.kind in ("count", "histogram", "crosstab"):
            return estimates.count(sums, heard)
        column = self.schema[asked.columns[0]]
        if asked.kind == "mean":
            return estimates.mean(sums, heard, features, column, self._laplace)
        if asked.kind == "sum":
            return estimates.total(sums, heard, features, column, self._laplace)
        return estimates.variance(sums, heard, features, column, self._laplace, asked.kind == "std")

    def _matrix(
        self, question: _Question, sums: Floats, heard: Heard, features: Features
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        asked, names = question.asked, list(question.asked.columns)
        columns = [self.schema[name] for name in names]

        def of(moments: Floats) -> Floats:
            if asked.kind == "ridge":
                return estimates.ridge(moments, columns, question.penalty, heard.n)
            if asked.kind == "corr":
                return estimates.correlations(moments, columns)
            return estimates.covariances(moments, columns)

        value, error = estimates.matrices(sums[0], heard, features, columns, self._laplace, of)
        margin = heard.margin(0.0, 1.0) * error
        if asked.kind == "ridge":
            index = pd.Index(["(intercept)", *names[1:]], name="coefficient")
            matrix = pd.DataFrame({"value": value, "standard_error": error}, index=index)
        else:
            index = pd.MultiIndex.from_product([names, names], names=["column", "with"])
            matrix = pd.DataFrame(value, index=names, columns=names)
        cells = pd.DataFrame(
            {
                "value": value.ravel(),
                "standard_error": error.ravel(),
                "lower": (value - margin).ravel(),
                "upper": (value + margin).ravel(),
                "population_error": math.nan,
            },
            index=index,
        )
        return cells, matrix

    def _by_group(
        self,
        asked: Asked,
        prices: Floats,
        weighings: list[Weighing],
        noisy: list[Floats],
        features: Features,
        cells: pd.DataFrame,
    ) -> pd.DataFrame:
        """Each level's own value per person, from differences of the staircase's sums."""
        sizes, one = self._table.sizes, cells.iloc[0]
        n = int(sizes.sum())
        column = self.schema[asked.columns[0]] if asked.kind in ("mean", "sum") else None
        first, _ = estimates.scales(features, self._laplace)
        ratio = asked.kind == "mean" and not features.everybody
        value = PerPerson(column, first, ratio, features.everybody)
        per_person = 1.0 if asked.kind == "mean" else 1 / n
        sample = float(one["population_error"] ** 2 - one["standard_error"] ** 2)
        heaviest = [float(weighing.weights.max()) for weighing in weighings]
        return by_group(
            list(self._table.groups),
            sizes,
            prices,
            [sums / w for sums, w in zip(noisy, heaviest, strict=True)],
            [
                weighing.noise_variance / w**2
                for weighing, w in zip(weighings, heaviest, strict=True)
            ],
            value,
            max(0.0, sample) * per_person**2 * n,
        )

    def _quantile_weighed(
        self, question: _Question, share: float
    ) -> tuple[Weighing, quantiles.Levels, Weighing | None, list[Event]]:
        """Weigh everybody, by public numbers alone: for the ranks, and for the counts beside them."""
        asked = question.asked
        features = self._features(asked)
        sizes, laplace = self._table.sizes, self._laplace
        prices = self._prices(share)
        trade = self._trade(asked, features)
        counted = quantiles.COUNTED if not features.everybody else 0.0
        rest, end = 1 - counted, quantiles.AT_ENDS
        parts = [rest * (1 - 2 * end), rest * end]
        middle, side = (
            quantiles.range_for(prices * (part if laplace else math.sqrt(part)), laplace)
            for part in parts
        )
        # In proportion to the range of each end, whose groups pay the least for it.
        weights = trade.weights(question.weights, prices, sizes)
        relative = np.maximum(weights / weights.max(), 1e-12)
        heaviest = float((middle / relative).min()), float((side / relative).min())
        steps = np.floor(relative / GRID).astype(np.int64)
        weighing = Weighing(steps, 1.0, laplace, self._most_rows)
        levels = quantiles.Levels(
            float(asked.level or 0.5), heaviest[0], heaviest[1], weighing, self._neighbours
        )
        events = list(levels.events)
        counting = None
        if counted:
            part = prices * (counted if laplace else math.sqrt(counted))
            own = float((part / relative).min())
            diameter = self._plain_counts(asked).diameter(self._neighbours, laplace)
            counting = self._weighing(relative * own, diameter)
            events.append(counting.event(diameter, self._neighbours))
        return weighing, levels, counting, events

    def _quantile(self, question: _Question, share: float, query: int) -> Answer:
        asked = question.asked
        features = self._features(asked)
        column, name = self.schema[asked.columns[0]], asked.columns[0]
        prices = self._prices(share)
        trade = self._trade(asked, features)
        weighing, levels, counting, events = self._quantile_weighed(question, share)
        ranks = quantiles.Ranks.of(
            self._table.batches(asked.needs), features, name, column, weighing
        )
        sums = None
        if counting is not None:
            sums = Sums(self._plain_counts(asked), counting)
            sums.add_all(self._table.batches(asked.needs))
        event = self._charge(events, share)
        heard = Heard.of(weighing, self._table.sizes, self.confidence)
        rows = np.array([heard.total])
        known = np.array([True])
        if counting is not None and sums is not None:
            rows = sums.noisy(self._noise, query, "rows")[:, 0]
            known = rows > 3 * math.sqrt(counting.noise_variance)
            rows = np.maximum(rows, 1.0)
        shares = np.clip(rows / heard.total, 1 / heard.n, 1.0)
        found = quantiles.estimate(
            ranks,
            levels,
            rows,
            heard.unequal / shares,
            known,
            column,
            self.confidence,
            self._noise,
            query,
        )
        cells = table_of(found, self._index(asked, features))
        notes = self._notes(question, trade, prices)
        return self._finished(question, cells, weighing, event, notes)

    def _plain_counts(self, asked: Asked) -> Features:
        """Count the rows in each cell that a quantile is asked of."""
        return features_of(asked, self.schema, self._laplace, False, True, counts=True)

    def _index(self, asked: Asked, features: Features) -> pd.Index | None:
        names = list(asked.by)
        if asked.kind in ("histogram", "crosstab"):
            names += list(asked.columns)
        if not names:
            return None
        if len(names) == 1:
            return pd.Index([key[0] for key in features.keys], name=names[0])
        return pd.MultiIndex.from_tuples(features.keys, names=names)

    def _notes(self, question: _Question, trade: Trade, prices: Floats) -> tuple[str, ...]:
        notes = []
        sizes = self._table.sizes
        if question.weights == "proportional" and not question.calibrated:
            ratio = wasted(trade, "proportional", prices, sizes)
            if ratio > 1:
                notes.append(
                    f"weights in proportion to budgets are predicted to err {ratio:.2f} times as much as "
                    "uniform ones here: leave weights out"
                )
                warnings.warn(notes[-1], PrivacyWarning, stacklevel=5)
        if self._table.named:
            most = self._most_rows
            notes.append(
                f"an owner with more than {most} row(s) counts as {most}, shared among all of them"
            )
        return tuple(notes)

    def _finished(
        self,
        question: _Question,
        cells: pd.DataFrame,
        weighing: Weighing,
        event: Event,
        notes: tuple[str, ...],
        matrix: pd.DataFrame | None = None,
        groups: pd.DataFrame | None = None,
    ) -> Answer:
        sizes, weights = self._table.sizes, weighing.weights
        index = pd.Index(list(self._table.groups), name="group")
        represented = pd.DataFrame(
            {
                "people": sizes,
                "share": sizes / sizes.sum(),
                "weight": sizes * weights / float(sizes @ weights),
            },
            index=index,
        )
        epsilon = self._epsilon_of(event)
        limits = self._limits(self._laplace)
        cost = event.pure_epsilon if self._laplace else event.mu_squared
        paid = pd.DataFrame(
            {
                "budget": self._account.epsilon,
                "epsilon": list(epsilon.values()),
                "share": cost / (limits if self._laplace else limits**2),
            },
            index=index,
        )
        heard = weights > 0
        effective = effective_people(weights[heard], sizes[heard])
        rule = "everybody alike, then level by level" if question.calibrated else question.weights
        known = known_of(question.asked, self.schema, int(sizes.sum()))
        facts = beside_facts(cells, known) if known else None
        if facts is not None:
            notes = (*notes, in_words(facts, question.calibrated))
        return Answer(
            str(question.asked),
            cells,
            self.confidence,
            effective,
            int(sizes.sum()),
            represented,
            paid,
            f"{rule} weights, {self.noise} noise, {self._noise.description}; neighbours: "
            f"{self._arrangement.sentence}",
            groups,
            matrix,
            notes,
            facts,
        )


class Grouped:
    """Questions by public categories: the methods of :class:`Statistics`, with ``by`` given."""

    def __init__(self, session: Statistics, by: tuple[str, ...]) -> None:
        self._session, self._by = session, by

    def __getattr__(self, name: str) -> Any:
        if name not in (
            "count",
            "sum",
            "mean",
            "var",
            "std",
            "quantile",
            "median",
            "histogram",
            "crosstab",
        ):
            raise AttributeError(
                f"by groups one can ask for count, sum, mean, var, std, quantile, median, histogram and "
                f"crosstab, not for {name!r}"
            )

        def asked(*arguments: Any, **how: Any) -> Answer:
            answer: Answer = getattr(self._session, name)(*arguments, by=self._by, **how)
            return answer

        return asked


def _differences(prices: Floats) -> list[Floats]:
    """The staircase for pure ε, which adds up: b_j - b_{j-1} in step j."""
    steps, before = [], 0.0
    for level in np.unique(prices):
        steps.append(np.where(prices >= level, (level - before) * (1 - 2**-50), 0.0))
        before = float(level)
    return steps


def _streamed(
    files: Sequence[Path], budgets: Any, privacy: str | None, owner: str | None, schema: Schema
) -> Table:
    from collegium.statistics.streamed import InParquet  # pyarrow's readers come with it

    if not isinstance(budgets, Policy) or privacy is None:
        raise InputError(
            "files are read in batches, and say themselves what each row's owner granted: give a Policy as "
            "budgets, and the column with the levels as privacy"
        )
    return InParquet(files, budgets, privacy, owner, schema)


def _who(
    frame: Any, budgets: Any, privacy: str | None, owner: str | None, delta: float
) -> tuple[Budgets, Any]:
    """Who granted what, and the rows of those who granted anything."""
    count = n_rows(frame)
    if isinstance(budgets, Policy):
        if privacy is None:
            raise InputError(
                "a policy says what levels mean, and privacy which column has each row's level: give "
                "privacy='…', or policy.assign(levels) as budgets"
            )
        owners = None if owner is None else series_of(frame, owner)
        budgets = budgets.assign(series_of(frame, privacy), owners)
    elif privacy is not None or owner is not None:
        raise InputError(
            "privacy and owner name columns where budgets is a Policy: give a Policy, or leave them out"
        )
    granted = as_budgets(budgets, delta, count)
    if len(granted) != count:
        raise InputError(f"{count:,} rows, but {len(granted):,} budgets: give one per row")
    rows = granting(granted)
    if len(rows) < count:
        return part_of(granted, rows), _taken(frame, rows)
    return granted, frame


def _taken(frame: Any, rows: NDArray[np.intp]) -> Any:
    """Rows of a frame of pandas, or of one that pyarrow understands."""
    if len(rows) == n_rows(frame):
        return frame
    if hasattr(frame, "iloc"):
        return frame.iloc[rows]
    import pyarrow as pa

    return pa.table(frame).take(pa.array(rows))
