"""A session of questions about a table of people, each of whom has a budget of their own."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Composition, Event
from collegium.accounting.neighbours import Neighbours
from collegium.accounting.statement import PrivacyStatement, statement
from collegium.budgets import DEFAULT_DELTA, Budget, Budgets, Policy
from collegium.checks import check_number, check_whole, shown
from collegium.conditions.parser import parse_where
from collegium.data.schema import Schema
from collegium.errors import BudgetExceededError, InputError
from collegium.ledger.limits import HALF
from collegium.noise.sources import noise_from
from collegium.parameters import MOST_WHOLE
from collegium.statistics.answering import Answering, Question
from collegium.statistics.answers import Answer
from collegium.statistics.language import Query, checked_question, parse_question
from collegium.statistics.planned import Plan, unit_of
from collegium.statistics.settings import QuerySettings
from collegium.weighted_sums.weights import RULES, effective_people
from collegium.weighted_sums.whose import whose

if TYPE_CHECKING:
    from collegium.ledger.ledger import Ledger
    from collegium.parties.collective import Party
    from collegium.statistics.ledgered import StatisticsSpending

Floats = NDArray[np.float64]
CALIBRATED = ("count", "sum", "mean", "histogram", "crosstab")
"""Questions whose answers can count everybody equally, whatever they granted."""


class Statistics(Answering):
    """Ask a table of people, and keep everybody's own budget.

    Everybody weighs as much as helps the answer and as their budget allows; noise is the same for all. Each
    owner of group g pays at most the share of (ε_g, δ_g) that the session may use, whatever is asked and in
    the light of whatever came out before (a filter is asked before every draw).

    Parameters
    ----------
    frame : DataFrame, Table, str, Path or list of these
        One row per record: of pandas, polars or pyarrow, in memory; or Parquet files, which are read in
        batches; or a table in a database, ``"duckdb:///FILE#TABLE"``, ``"postgresql://HOST/DATABASE#TABLE"``
        or a table of Ibis in DuckDB, PostgreSQL or Spark: that is added up where it lies, in one snapshot
        until the session is closed. ``"sqlite:///FILE#TABLE"`` and ``"FILE.xlsx#SHEET"`` are read into
        memory.
    budgets : Policy, Budgets, array-like of float of shape (n_rows,), float or Budget
        What each row's owner grants: a policy, where the table says each one's level (``privacy``); otherwise
        as for :class:`~collegium.DPSGDClassifier`.
    schema : Schema
        Public types, bounds and categories of the columns (:class:`~collegium.Schema`). Values out of bounds
        count as the nearest bound; missing ones and unknown categories in none of the answers but counts.
    privacy, owner : str, optional
        With a policy: the columns of the table with each row's level, and the name of whom it is about
        (default: each row is about somebody else).
    spend : float, optional
        Share of what people have left that the session may use altogether: of what the ledger promises (μ²,
        or ε); without a ledger, of their budgets: of μ² (Gaussian noise) or of ε (Laplace noise). Default:
        half on a ledger, where other releases are to follow; otherwise all.
    questions : int, default=10
        Among how many questions that is shared out evenly; a question may take another share (``spend``).
    ledger : Ledger, optional
        Reserve what the session may use there; :meth:`close` gives back what was not used.
    noise : {"auto", "gaussian", "laplace"}, default="auto"
        "auto": Laplace noise where so few questions are asked that it is smaller, otherwise Gaussian noise;
        on a ledger, what its promise is made for.
    weights : {"saturating", "proportional", "uniform"}, default="saturating"
        How budgets become weights: see :func:`~collegium.weighted_sums.weights.weights_of`, and :meth:`plan`.
    neighbours : {"zero-out", "replace-one"}, optional
        What is hidden: "zero-out" hides whether all rows of a person are there or blank; "replace-one" hides
        their contents, too, and costs up to twice as much. Default: what the ledger promises, or else
        "zero-out".
    confidence : float, default=0.95
        Of intervals.
    delta : float, default=1e-5
        δ of budgets that are numbers.
    noise_seed : int, optional
        For experiments: the noise is then not private.
    name : str, default="statistics"
        Of the release, in the ledger, and for other parties.
    parties : Party, optional
        Answer together with other parties, which show one another no rows: all ask the same, in the same
        order, and get the same answers. Noise is Gaussian, and quantiles cannot be asked.

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
    Group sizes, budgets and the schema are public (``docs/guarantees.md``). Derivations, and what answers say
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
        spend: float | None = None,
        questions: int = 10,
        ledger: Ledger | None = None,
        noise: str = QuerySettings.noise,
        weights: str = QuerySettings.weights,
        neighbours: str | None = QuerySettings.neighbours,
        confidence: float = QuerySettings.confidence,
        delta: float = DEFAULT_DELTA,
        noise_seed: int | None = QuerySettings.noise_seed,
        name: str = "statistics",
        parties: Party | None = None,
    ) -> None:
        if schema is None:
            raise InputError(
                "schema is missing: bounds and categories must be public, never read off private "
                "rows; draft one from public records with Schema.from_public(frame) or `collegium "
                "schema init public.csv`"
            )
        if not isinstance(schema, Schema):
            raise InputError(
                f"schema must be a collegium.Schema, got {shown(schema)}: read one with Schema.read(path)"
            )
        if spend is None:
            spend = 1.0 if ledger is None else HALF
        QuerySettings(
            spend, noise, weights, neighbours, confidence, noise_seed
        )  # which checks them
        check_whole("questions", questions, least=1, most=MOST_WHOLE)
        Budget(1.0, delta)  # which checks it
        self.schema, self.confidence, self.weights = schema, float(confidence), weights
        self.answers: list[Answer] = []
        self._record: dict[Question, Answer] = {}
        self._spend, self._questions, self._left = float(spend), questions, 1.0
        self._noise = self._local = noise_from(noise_seed)
        self._spending: StatisticsSpending | None = None
        self._granted_in_all, self._silent = {}, {}
        self._charged: list[Event] = []
        self._granted: dict[bool, Floats] = {}
        self._closed, self._cut_off = False, ""
        self._queries = 0
        self._one_at_a_time, self._process = threading.RLock(), os.getpid()
        everybody = None
        if parties is not None:
            if noise == "laplace":
                raise InputError(
                    "laplace noise has no shares that parties could add: leave noise out"
                )
            noise, release = "gaussian", parties.release(name)
            self._release = release

            def everybody(granted: Budgets, relation: Neighbours) -> Budgets:
                plan = {
                    "method": "statistics",
                    "schema": schema.digest,
                    "neighbours": relation.name,
                    "people are named": granted.named,
                    "spend": spend,
                    "questions": questions,
                    "weights": weights,
                }
                return release.everybody(granted, plan, self._local)

        with self._release or contextlib.nullcontext():
            its = whose(
                frame,
                budgets,
                schema,
                privacy=privacy,
                owner=owner,
                delta=delta,
                neighbours=neighbours,
                ledger=ledger,
                spending=_spending,
                noise_seed=noise_seed,
                as_granted=self._is_on_ledger,
                everybody=everybody,
            )
            if self._release is not None:
                self._noise = self._release.noise
        self._table, self._neighbours, self._kept = its.table, its.relation, its.kept
        try:
            self._begin(its.spending, noise, ledger, name)
        except BaseException:
            self._table.close()
            raise

    def _begin(
        self,
        spending: StatisticsSpending | None,
        noise: str,
        ledger: Ledger | None,
        name: str,
    ) -> None:
        """Open the account, and set aside on a ledger what may be used."""
        if spending is not None:
            self._spending = spending
            self._remember(spending)
        groups = self._table.groups
        self._account = GaussianAccountant(
            [one.epsilon for one in groups.values()],
            [one.delta for one in groups.values()],
            list(groups),
            self._neighbours,
            self._promise,
        )
        self.noise = self._which_noise(noise)
        if self._spending is not None and ledger is not None:
            most = dict(zip(groups, self._most().tolist(), strict=True))
            self._spending.reserve_share(ledger, name, most, self._arrangement)

    def _remember(self, spending: StatisticsSpending) -> None:
        """Keep what answers say of a ledger: what people granted in all, and who has nothing left."""
        self._granted_in_all, self._silent = spending.granted_in_all, spending.silent

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
        expected : float, optional
            About which share of all rows a condition holds for, from public knowledge: what is rare is better
            heard with weights nearer to the budgets. Wrong, it costs accuracy and never privacy.

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
        """Quantile of a column, one of the public steps between its bounds; otherwise as :meth:`count`.

        ``interval=False``: no interval, which takes three tenths of the price; all of it is the value's.
        """
        return self._about("quantile", (column,), where, how, level)

    def quantiles(
        self, column: str, levels: Sequence[float], where: str | None = None, **how: Any
    ) -> Answer:
        """Several quantiles of a column, which share the price and never fall; as :meth:`quantile`."""
        return self._about("quantiles", (column,), where, how, levels=tuple(levels))

    def people(self, where: str | None = None, **how: Any) -> Answer:
        """How many people have at least one row (for which a condition holds); otherwise as :meth:`count`.

        By groups, each person counts in every group where they have a row, so that noise is as much larger as
        the root of the number of groups (with Laplace noise, as their number).
        """
        return self._about("people", (), where, how)

    def share(self, holds: str, among: str | None = None, **how: Any) -> Answer:
        """For which share of all rows, or of those for which ``among`` holds, a condition holds.

        Otherwise as :meth:`count`. A missing value satisfies no condition.
        """
        return self._about("share", (), among, how, holds=parse_where(holds, self.schema))

    def median(self, column: str, where: str | None = None, **how: Any) -> Answer:
        """Median of a column: the quantile at ½, and as :meth:`quantile`."""
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

    def ask(self, question: str | Query, **how: Any) -> Answer:
        """Ask in words: ``"mean income by sex where age >= 40"``; otherwise as :meth:`count`."""
        return self._answer(self._read(question), how)

    def _read(self, question: str | Query) -> Query:
        return question if isinstance(question, Query) else parse_question(question, self.schema)

    def plan(self, question: str | Query, **how: Any) -> Plan:
        """Say what a question would cost, and how far off it would be under each rule of weights.

        From public numbers only; nothing is drawn, charged or recorded. ``print`` shows it.
        """
        asked = self._read(question)
        rule, share, one_question = self._how(asked, how)
        if free := self._why_free(one_question):
            return self._plan_of_nothing(one_question, free)
        features = self._features(asked)
        prices = self._prices(share / max(1, len(asked.levels)))
        trade = self._trade(asked, features, one_question.expected, one_question.interval)
        times = math.sqrt(2) if asked.apart else 1.0  # of the difference of two
        sizes = self._table.sizes
        predicted, heard = {}, {}
        for one in RULES:
            weights = trade.weights(one, prices, sizes)
            predicted[one] = times * trade.errors(weights, sizes).table
            heard[one] = effective_people(weights, sizes)
        event = Composition(tuple(self._events(one_question, share)))
        return Plan(
            str(asked),
            "uniform" if one_question.calibrated else rule,
            predicted,
            heard,
            self._epsilon_of(event),
            int(sizes.sum()),
            self.noise,
            unit=unit_of(asked),
            share=dict(zip(self._table.groups, self._shares_of(event), strict=True)),
        )

    # --------------------------------------------------------------------------------- accounts

    def left(self) -> pd.DataFrame:
        """What the session may still use, by group: ε (by itself, at the group's δ) and the share left."""
        parts = self._parts(self._left)
        epsilon = parts if self._in_epsilon else self._from_mu(parts)
        return pd.DataFrame(
            {"epsilon_left": epsilon, "share_left": self._left},
            index=pd.Index(list(self._table.groups), name="group"),
        )

    @property
    def privacy_(self) -> PrivacyStatement:
        """What was promised, and what everybody has paid for all answers so far."""
        groups = self._table.groups
        return statement(
            self._account,
            dict(zip(groups, self._table.sizes.tolist(), strict=True)),
            dict(groups),
            self._arrangement,
            self._noise.is_private,
            f"the noisy answers to {self._queries:,} question{'s' * (self._queries != 1)}",
        )

    def close(self) -> None:
        """End the session: what was not used is given back to the ledger. Answers stay."""
        with self._one_at_a_time:
            try:
                if self._spending is not None and not self._closed:
                    self._spending.settle(self._account, self._charged)
            finally:
                self._table.close()
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
            f"{self.noise} noise, {len(self._record)} answers, {100 * self._left:.0f} % left)"
        )

    # --------------------------------------------------------------------------------- the order

    def _about(
        self,
        kind: str,
        columns: tuple[str, ...],
        where: str | None,
        how: Mapping[str, Any],
        level: float | None = None,
        **more: Any,
    ) -> Answer:
        how = dict(how)
        by = how.pop("by", ())
        by = (by,) if isinstance(by, str) else tuple(by)
        asked = checked_question(
            kind, columns, level, by, parse_where(where, self.schema), schema=self.schema, **more
        )
        return self._answer(asked, how)

    def _how(self, asked: Query, how: Mapping[str, Any]) -> tuple[str, float, Question]:
        """Check options; returns the rule, the share of the session, and the question for the record."""
        known = {"spend", "weights", "calibrated", "penalty", "expected", "interval"}
        for name in how:
            if name not in known:
                raise InputError(
                    f"{name!r} is no option of a question; allowed are {', '.join(sorted(known))}"
                )
        rule = how.get("weights", self.weights)
        if rule not in RULES:
            raise InputError(f"weights must be one of {', '.join(RULES)}, got {shown(rule)}")
        calibrated = bool(how.get("calibrated", False))
        if calibrated and asked.kind not in CALIBRATED:
            raise InputError(
                f"calibrated goes with {', '.join(CALIBRATED)}, not with {asked.kind!r}: leave it out"
            )
        interval = how.get("interval", True)
        if not isinstance(interval, bool):
            raise InputError(f"interval must be True or False, got {shown(interval)}")
        if not interval and asked.kind != "quantile":
            raise InputError(
                f"only intervals of quantiles cost anything: leave interval out with {asked.kind!r}"
            )
        penalty = how.get("penalty", 1.0)
        check_number("penalty", penalty, above=0, below=math.inf)
        expected = how.get("expected")
        if expected is not None:
            check_number("expected", expected, above=0, most=1)
        spend = how.get("spend")
        share = 1 / self._questions
        if spend is not None:
            check_number("spend", spend, above=0, most=1)
            share = spend * self._left
        return rule, share, Question(asked, rule, calibrated, float(penalty), expected, interval)

    def __getstate__(self) -> NoReturn:
        """Refuse to be copied: each copy would spend what the session may use only once."""
        raise InputError(
            "a session cannot be copied or sent elsewhere, since its budget would be spent twice: ask "
            "it here"
        )

    def _answer(self, asked: Query, how: Mapping[str, Any]) -> Answer:
        if os.getpid() != self._process:
            raise InputError(
                "this session belongs to the process that opened it, since in another one its budget "
                "would be spent twice: ask there"
            )
        with self._one_at_a_time:  # what is left is looked at and charged by one question at a time
            return self._answered(asked, how)

    def _answered(self, asked: Query, how: Mapping[str, Any]) -> Answer:
        _, share, question = self._how(asked, how)
        if question in self._record:
            return self._record[question]
        if self._is_public(asked):
            return self._known_number(question)
        if self._closed:
            raise InputError("this session is closed: open another one to ask more")
        if self._cut_off:
            raise InputError(
                f"the question {self._cut_off} was charged and cut off, and other parties may have its "
                "answer: close this session, and begin a release of another name, all together"
            )
        if share > self._left * (1 + 1e-9) or share <= 0:
            rest = "ask with spend=1.0 for the rest, or " if self._left > 1e-6 else ""
            raise BudgetExceededError(
                f"the session has {100 * self._left:.1f} % of its share left, but {asked} would take "
                f"{100 * share:.1f} %: {rest}plan for more questions when opening a session "
                "(questions=…); nothing was asked or spent"
            )
        share = min(share, self._left)
        query, charged = self._queries, len(self._charged)
        try:
            self._ask_about(
                question.in_full
            )  # so that no answer adds up what was asked differently
            if asked.kind == "quantile":
                answer = self._quantile(question, share, query)
            else:
                answer = self._sums(question, share, query)
        except BaseException:
            if self._release is not None and len(self._charged) > charged:
                self._cut_off = str(asked)
            raise
        finally:  # noise that was drawn before an interruption is never that of another question
            self._queries += len(self._charged) > charged
        self._record[question] = answer
        self.answers.append(answer)
        return answer

    def _why_free(self, question: Question) -> str:
        """Why a question costs nothing; empty where it costs something."""
        if question in self._record:
            return "answered before"
        return "public" if self._is_public(question.asked) else ""

    def _plan_of_nothing(self, question: Question, why: str) -> Plan:
        people = int(self._table.sizes.sum())
        return Plan(
            str(question.asked),
            "uniform" if question.calibrated else question.weights,
            dict.fromkeys(RULES, 0.0),
            dict.fromkeys(RULES, float(people)),
            dict.fromkeys(self._table.groups, 0.0),
            people,
            self.noise,
            why,
            share=dict.fromkeys(self._table.groups, 0.0),
        )

    def _is_public(self, asked: Query) -> bool:
        """Whether it asks for the number of people, which is public."""
        return asked.is_public(self._most_rows == 1)


class Grouped:
    """Questions by public categories: the methods of :class:`Statistics`, with ``by`` given."""

    def __init__(self, session: Statistics, by: tuple[str, ...]) -> None:
        self._session, self._by = session, by

    def __getattr__(self, name: str) -> Any:
        if name not in (
            "count",
            "people",
            "share",
            "sum",
            "mean",
            "var",
            "std",
            "quantile",
            "quantiles",
            "median",
            "histogram",
            "crosstab",
        ):
            raise AttributeError(
                "questions by groups are count, people, share, sum, mean, var, std, quantile, quantiles, "
                f"median, histogram and crosstab, not {name!r}"
            )

        def asked(*arguments: Any, **how: Any) -> Answer:
            answer: Answer = getattr(self._session, name)(*arguments, by=self._by, **how)
            return answer

        return asked


def _spending() -> type[StatisticsSpending]:
    from collegium.statistics.ledgered import StatisticsSpending  # a database comes with it

    return StatisticsSpending
