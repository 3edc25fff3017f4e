"""A synthetic table with individual budgets, in Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.accounting.statement import PrivacyStatement, statement
from collegium.budgets import DEFAULT_DELTA, Budget, Budgets, Policy
from collegium.checks import check_whole, shown
from collegium.conditions.conditions import name_text
from collegium.data.cells import Cells
from collegium.data.schema import Schema
from collegium.errors import InputError
from collegium.noise.sources import noise_from
from collegium.noise.sums import NoisySum
from collegium.runs.estimator_base import share_to_spend, tell_of_fits_before
from collegium.synthesis.model import TableModel
from collegium.synthesis.public_records import refuse_names_of_people, refuse_private_as_public
from collegium.synthesis.rows_in_files import write_rows
from collegium.synthesis.rules import where_of
from collegium.synthesis.run import Synthesis
from collegium.synthesis.settings import SynthesisSettings
from collegium.synthesis.tables_of_marginals import marginals_table
from collegium.weighted_sums.whose import whose

if TYPE_CHECKING:
    from collegium.ledger.ledger import Ledger
    from collegium.parties.collective import Party
    from collegium.synthesis.ledgered import SynthesisSpending

MOST_IN_MEMORY = 20_000_000
"""Rows that are returned as one table."""


class Synthesizer:
    """Make a synthetic table of people, each of whom has a budget of their own.

    Noisy counts of single columns and pairs of columns are measured, in which everybody weighs as their
    budget allows; rows are drawn from the distribution of largest entropy that fits them. Each owner of
    group g pays at most (ε_g, δ_g), whatever the data are; what is drawn from the fitted distribution costs
    nothing more, however many rows that are.

    Parameters
    ----------
    schema : Schema
        Public types, bounds and categories of the columns (:class:`~collegium.Schema`); nothing else is
        synthesised. Values out of bounds count as the nearest bound, unknown categories as missing.
    target : str, optional
        Column that the others are to predict.
    goal : {"auto", "target", "fidelity", "both"}, default="auto"
        What rows are to be good for: learning to predict the target; any question; both. "auto": both, or
        "target" where few people or small budgets leave too little for more; without a target "fidelity".
    structure : sequence of sequences of str, optional
        Columns that are measured together: ``[("age", "income")]``. Default: pairs that noisy scores choose.
    constraints : sequence of str, default=()
        What is publicly known to hold for every row: ``"age >= 18 or not married"``, ``"admitted <=
        discharged"``.
    weights : {"saturating", "proportional", "uniform"}, default="saturating"
        How budgets become weights: see :func:`~collegium.weighted_sums.weights.weights_of`.
    calibrated : bool, default=False
        Measure, too, in what people of each budget differ from all, and correct for it (``bias_``).
    neighbours : {"zero-out", "replace-one"}, optional
        What is hidden: "zero-out" hides whether all rows of a person are there or blank; "replace-one" hides
        their contents, too, and costs up to twice as much. Default: what the ledger promises, or else
        "zero-out".
    noise_seed : int, optional
        For experiments: the noise is then not private.
    random_state : int, optional
        Of the rows that are drawn, which is public: default, others each time.

    Attributes
    ----------
    privacy_ : PrivacyStatement
        What was promised, and what everybody has paid.
    marginals_ : DataFrame
        Each cell of each column: its share, and the 95 % interval of what noise leaves open.
    measured_ : list of tuple of str
        Columns that were measured together.
    goal_ : str
        As it was chosen.
    heard_ : DataFrame
        Of each group: its share of the people, and of the weight with which they were heard.
    bias_ : DataFrame or None
        With ``calibrated``: how far each group's distribution of each column is from that of all.
    notes_ : tuple of str
        What the table is not good for, in sentences.
    n_rows_ : int
        People, which is public: what ``sample()`` draws.

    Raises
    ------
    InputError
        If something cannot be used. Nothing was drawn or charged then.

    Notes
    -----
    Group sizes, budgets, schema, constraints and public records are public. Three Gaussian events at most,
    whose costs are exact (:mod:`collegium.synthesis.stages` has the derivation; ``docs/synthesis.md``).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from collegium import Schema, Synthesizer
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 90, 4000)
    >>> people = pd.DataFrame({"age": age, "retired": age + rng.normal(0, 5, 4000) > 66})
    >>> schema = Schema({"age": {"kind": "whole", "bounds": [18, 90]}, "retired": {"kind": "flag"}})
    >>> table = Synthesizer(schema, target="retired", noise_seed=1, random_state=0)
    >>> rows = table.fit(people, budgets=[1.0, 2.0] * 2000).sample(4000)
    >>> bool(rows[rows.age > 75].retired.mean() > 0.8), bool(rows[rows.age < 50].retired.mean() < 0.2)
    (True, True)
    """

    def __init__(
        self,
        schema: Schema,
        target: str | None = None,
        goal: str = SynthesisSettings.goal,
        structure: Sequence[Sequence[str]] | None = None,
        *,
        constraints: Sequence[str] = (),
        weights: str = SynthesisSettings.weights,
        calibrated: bool = SynthesisSettings.calibrated,
        neighbours: str | None = SynthesisSettings.neighbours,
        noise_seed: int | None = SynthesisSettings.noise_seed,
        random_state: int | None = None,
    ) -> None:
        if not isinstance(schema, Schema):
            raise InputError(
                f"schema must be a collegium.Schema, got {shown(schema)}: bounds and categories must be "
                "public; read one with Schema.read(path), or draft it from public records with "
                "Schema.from_public(frame)"
            )
        self.schema, self.target = schema, target
        self.random_state = _checked_seed(random_state)
        self._structure = _as_list("structure", structure or ())
        self._settings = SynthesisSettings(
            goal,
            [
                one
                if isinstance(one, str)
                else ", ".join(name_text(str(name)) for name in _as_list("structure", one))
                for one in self._structure
            ],
            list(_as_list("constraints", constraints)),
            weights,
            calibrated,
            neighbours,
            noise_seed,
        )
        self._draws = 0

    def fit(
        self,
        frame: Any,
        budgets: Policy | Budgets | Budget | ArrayLike,
        *,
        privacy: str | None = None,
        owner: str | None = None,
        public: Any = None,
        public_may_overlap: bool = False,
        ledger: Ledger | None = None,
        spend: float | None = None,
        delta: float = DEFAULT_DELTA,
        name: str = "synthetic table",
        parties: Party | None = None,
    ) -> Self:
        """Measure a table, and fit.

        Parameters
        ----------
        frame : DataFrame, Table, str, Path or list of these
            One row per record: of pandas, polars or pyarrow, in memory; Parquet files, which are read in
            batches; or a table in a database, ``"duckdb:///FILE#TABLE"``,
            ``"postgresql://HOST/DATABASE#TABLE"`` or a table of Ibis in DuckDB, PostgreSQL or Spark, which is
            counted where it lies.
        budgets : Policy, Budgets, array-like of float of shape (n_rows,), float or Budget
            What each row's owner grants: a policy, where the table says each one's level (``privacy``);
            otherwise as for :class:`~collegium.DPSGDClassifier`.
        privacy, owner : str, optional
            With a policy: the columns of the table with each row's level, and the name of whom it is about
            (default: each row is about somebody else).
        public : table, optional
            Public records of the same columns: bins follow their quantiles, and what they say counts beside
            the noisy counts, each as much as its error allows.
        public_may_overlap : bool, default=False
            Whether public records may equal private ones; the statement says so.
        ledger : Ledger, optional
            Charge everybody's account there.
        spend : float, optional
            On a ledger: share of what people have left; default: half.
        delta : float, default=1e-5
            δ of budgets that are numbers.
        name : str
            Of the release, in the ledger, and for other parties.
        parties : Party, optional
            Make one table of the rows of several parties, which show one another none of them.

        Returns
        -------
        Synthesizer

        Raises
        ------
        InputError, BudgetExceededError
            Nothing was drawn or charged then.
        """
        self._fitted: TableModel | None = None
        refuse_names_of_people(Cells(self.schema).names, owner)
        share = share_to_spend(ledger, spend)
        Budget(1.0, delta)  # which checks it
        cells = Cells(self.schema, public)
        known = None if public is None else cells.codes(public)
        noise: NoisySum = noise_from(self._settings.noise_seed)
        everybody, release = None, None if parties is None else parties.release(name)
        if release is not None:

            def everybody(granted: Budgets, relation: Neighbours) -> Budgets:
                plan = {
                    "method": "synthesis",
                    "schema": self.schema.digest,
                    "target": self.target,
                    "settings": replace(self._settings, neighbours=None, noise_seed=None),
                    "neighbours": relation.name,
                    "people are named": granted.named,
                    "public records": None
                    if known is None
                    else sha256(known.tobytes()).hexdigest(),
                }
                return release.everybody(granted, plan, noise_from(self._settings.noise_seed))

        with release or nullcontext():
            its = whose(
                frame,
                budgets,
                self.schema,
                privacy=privacy,
                owner=owner,
                delta=delta,
                neighbours=self._settings.neighbours,
                ledger=ledger,
                spending=_spending,
                noise_seed=self._settings.noise_seed,
                spend=share,
                everybody=everybody,
            )
        spending, arrangement = its.spending, its.arrangement
        with closing(its.table) as table:
            if spending is not None:
                from collegium.synthesis.ledgered import require_gaussian

                require_gaussian(spending.allowance.lifetime)
            if release is not None:
                noise, arrangement = release.noise, release.arranged(arrangement)
            if public is not None:
                if public_may_overlap:
                    arrangement = replace(arrangement, public_may_overlap=True)
                else:
                    refuse_private_as_public(table, cells, public)
            # A column that is not there, or of another kind, is refused before anybody pays.
            some = next(iter(table.batches(cells.names)))
            run = Synthesis(table, cells, self.target, self._settings, its.relation, known)
            account = GaussianAccountant(
                [one.epsilon for one in table.groups.values()],
                [one.delta for one in table.groups.values()],
                list(table.groups),
                its.relation,
                arrangement.promise,
            )
            if noise.is_private:
                # They are enough to know them again.
                tell_of_fits_before(pd.DataFrame(dict(some.arrays)), ledger is None)
            charged: list[Any] = []
            remembered: AbstractContextManager[Any] = nullcontext()
            if spending is not None and ledger is not None:
                most = np.sum([one.mu_squared for one in run.events], axis=0)
                costs = spending.at_most(dict(zip(table.groups, most.tolist(), strict=True)))
                remembered = spending.reserved(
                    ledger,
                    name,
                    costs,
                    arrangement,
                    allow_new_people=True,  # all who are offered were asked about when they were looked up
                    drawn=lambda: (account, charged),
                )
            drawn: dict[int, dict[str, Any]] = {}
            with remembered as entry:
                for number, event in enumerate(run.events, 1):
                    account.charge(event)
                    charged.append(event)
                    if entry is not None:
                        entry.draws()
                    drawn[number] = run.draw(number, drawn, noise)
                if entry is not None:
                    entry.settle(account, charged)
            self._take(run.model(drawn))
            self._describe(run, drawn, account, arrangement, noise.is_private)
        return self

    def _take(self, model: TableModel) -> None:
        """Draw rows from this one, from now on."""
        self._fitted = model
        self.measured_ = [
            tuple(model.cells.names[one] for one in m.columns) for m in model.marginals
        ]
        self.n_rows_ = model.n_rows
        self.marginals_ = marginals_table(model)

    def _describe(
        self,
        run: Synthesis,
        drawn: dict[int, dict[str, Any]],
        account: GaussianAccountant,
        arrangement: Arrangement,
        secure: bool,
    ) -> None:
        model, table = self._model, run.table
        self.privacy_: PrivacyStatement = statement(
            account,
            dict(zip(table.groups, table.sizes.tolist(), strict=True)),
            dict(table.groups),
            arrangement,
            secure,
            f"{len(model.marginals):,} noisy marginals, and rows drawn from a distribution that fits them",
        )
        self.goal_ = run.stages.goal
        self.heard_ = run.heard()
        self.bias_ = run.bias(drawn)
        self.notes_ = run.notes(drawn)

    @property
    def _model(self) -> TableModel:
        model: TableModel | None = getattr(self, "_fitted", None)
        if model is None:
            raise InputError("nothing is fitted yet: call fit(frame, budgets=...) first")
        return model

    def sample(
        self,
        n: int | None = None,
        where: str | None = None,
        *,
        random_state: int | None = None,
        to: str | os.PathLike[str] | None = None,
    ) -> pd.DataFrame | None:
        """Draw rows. Costs nobody anything, however many they are.

        Parameters
        ----------
        n : int, optional
            How many; default: as many as there are people.
        where : str, optional
            A condition that all of them satisfy, in the language of questions: ``"age >= 40 and sex ==
            'F'"``.
        random_state : int, optional
            Default: the constructor's; without either, others each time.
        to : path, optional
            Write them there instead (.parquet, .csv), a million at a time.

        Returns
        -------
        DataFrame, or None with ``to``

        Raises
        ------
        InputError
            If no row satisfies the condition, or there are too many rows for a table in memory.
        """
        model = self._model
        n = model.n_rows if n is None else n
        check_whole("n", n, least=1, most=10**12)
        rules = () if where is None else where_of(where, model.cells)
        seed = self.random_state if random_state is None else _checked_seed(random_state)
        rng = np.random.default_rng(seed)
        if to is not None:
            write_rows(model, n, rng, rules, to)
            return None
        if n > MOST_IN_MEMORY:
            raise InputError(
                f"{n:,} rows are too many for a table in memory (at most {MOST_IN_MEMORY:,}): give a file to "
                "write them to, such as to='synthetic.parquet'"
            )
        return model.sample(n, rng, rules)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted distribution as JSON: no program is in it, and nothing private.

        Raises InputError if the file cannot be written.
        """
        from collegium.synthesis.model_file import write_model

        try:
            write_model(self._model, path, self.target)
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror})") from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Synthesizer:
        """Read a distribution that was saved: rows can be drawn from it, and nothing of it is run.

        Raises InputError if the file is none, or is damaged.
        """
        from collegium.synthesis.model_file import read_model

        model, target = read_model(path)
        made = cls(model.cells.schema, target)
        made._take(model)
        return made

    def __repr__(self) -> str:
        target = "" if self.target is None else f", target={self.target!r}"
        return f"Synthesizer({len(self.schema)} columns{target}, goal={self._settings.goal!r})"


def _as_list(name: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        what = "text" if isinstance(given, str) else "no list"
        raise InputError(f"{name} must be a list, got {what}, {shown(given)}: put it in brackets")
    return tuple(given)


def _checked_seed(seed: int | None) -> int | None:
    if seed is not None:
        check_whole("random_state", seed, least=0)
    return seed


def _spending() -> type[SynthesisSpending]:
    from collegium.synthesis.ledgered import SynthesisSpending  # a database comes with it

    return SynthesisSpending
