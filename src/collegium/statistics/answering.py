"""How one question is answered: features, weights, charge, noise, estimates. The session orders many."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.events import Composition, Event, Nothing
from collegium.accounting.gaussian import gdp_epsilon, gdp_to_pure
from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.accounting.promises import ONLY_PURE, Promise
from collegium.data.engines.connections import EngineError
from collegium.data.schema import Schema
from collegium.data.schema_column import DATE, FLAG, plain
from collegium.errors import InputError, PrivacyWarning
from collegium.ledger.limits import Cost, Limit
from collegium.noise.grid import GRID
from collegium.noise.sums import LocalSum, NoisySum
from collegium.statistics import comparisons, estimates, moments, quantiles
from collegium.statistics.answer_words import DATE as DAY
from collegium.statistics.answer_words import PEOPLE, SHARE, in_digits, rows_of
from collegium.statistics.answers import DROWNED, Answer, table_of
from collegium.statistics.calibrated import PerPerson, by_group
from collegium.statistics.estimates import Estimate, Heard
from collegium.statistics.facts import beside_facts, in_words, known_of
from collegium.statistics.features import SPREAD_SHARE, Features, features_of, scales
from collegium.statistics.moments import Found, Moments
from collegium.statistics.planned import Trade, trade_of, wasted
from collegium.statistics.quantile_intervals import diameter
from collegium.statistics.query import ONE_NUMBER, Query
from collegium.statistics.question_words import sentence
from collegium.statistics.rounds import SPREAD_IN_FIRST, Rounds
from collegium.weighted_sums.sums import Sums
from collegium.weighted_sums.tables import Table
from collegium.weighted_sums.weighing import Weighing
from collegium.weighted_sums.weights import effective_people, staircase
from collegium.weighted_sums.whose import arrangement_of

if TYPE_CHECKING:
    from collegium.parties.collective import PartyRelease
    from collegium.statistics.ledgered import StatisticsSpending

Floats = NDArray[np.float64]
_UNLIMITED = 1024.0  # μ or ε that an answer takes of people who all grant anything


@dataclass(frozen=True)
class Question:
    """What is asked, and how: equal where an answer can be given again."""

    asked: Query
    weights: str
    calibrated: bool = False
    penalty: float = 1.0
    expected: float | None = None
    interval: bool = True

    @property
    def in_full(self) -> str:
        """The question with all that is said about how it is answered."""
        usual = Question(self.asked, weights="")
        how = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != getattr(usual, one.name)
        }
        return ", ".join([str(self.asked), *(f"{name} = {value}" for name, value in how.items())])


@dataclass(frozen=True, eq=False)
class Learning:
    """An answer in two rounds: what people weigh in them, and how either reads rows."""

    rounds: Rounds
    features: tuple[Features, Features]


class Answering:
    """What a session needs to answer one question: a base of :class:`~collegium.Statistics`."""

    schema: Schema
    confidence: float
    noise: str
    _table: Table
    _account: GaussianAccountant
    _neighbours: Neighbours
    _noise: NoisySum
    _release: PartyRelease | None = None
    """What other parties answer together with this one."""
    _spend: float
    _questions: int
    _left: float
    _kept: float
    _charged: list[Event]
    _granted: dict[bool, Floats]
    _spending: StatisticsSpending | None
    _granted_in_all: Mapping[str, Limit]
    """What each group's people granted over all releases, where a ledger remembers it."""
    _silent: Mapping[str, int]
    """How many people of the table have nothing left, by level."""
    _kept_in = Promise.EITHER
    """What a ledger promises, where somebody else does what is to be done about it."""
    _charges_at_most = False
    """Whether an answer is charged as what it may cost, by public numbers alone."""

    @property
    def _is_on_ledger(self) -> bool:
        """Whether its groups are those for which a ledger reserves: then nobody is put into another one."""
        return self._promise is not Promise.EITHER

    @property
    def _laplace(self) -> bool:
        return self.noise == "laplace"

    @property
    def _promise(self) -> Promise:
        """What the ledger promises that remembers the session; of one that none remembers, either."""
        spending = self._spending
        return self._kept_in if spending is None else spending.allowance.lifetime.promise

    @property
    def _in_epsilon(self) -> bool:
        """Whether what the session may use is counted in Σε: otherwise in μ², whatever the noise is."""
        if self._promise is Promise.EITHER:
            return self._laplace
        return self._promise is Promise.PURE

    @property
    def _arrangement(self) -> Arrangement:
        made = arrangement_of(self._table, self._neighbours, self._promise, self._kept)
        return made if self._release is None else self._release.arranged(made)

    def _ask_about(self, question: str) -> None:
        """Say what the next sums are about, where other parties take part in them."""
        if self._release is not None:
            self._release.noise.about = question

    def _which_noise(self, asked_for: str) -> str:
        if self._promise is Promise.PURE:
            if asked_for == "gaussian":
                raise InputError(ONLY_PURE)
            return "laplace"
        if asked_for != "auto":
            return asked_for
        if self._promise is Promise.GAUSSIAN:
            return "gaussian"  # it leaves the most for what follows
        # What a mean of everybody with uniform weights has: noise at the strictest budget.
        mu, epsilon = self._limits(False), self._limits(True)
        gaussian = 1 / (mu.min() * math.sqrt(self._spend / self._questions))
        laplace = math.sqrt(2) / (epsilon.min() * self._spend / self._questions)
        return "laplace" if laplace < gaussian else "gaussian"

    def _limits(self, in_epsilon: bool) -> Floats:
        """What each group grants: ε, or μ; whoever grants all counts as the most generous of others."""
        if in_epsilon not in self._granted:
            groups = self._table.groups.values()
            epsilon = [one.epsilon for one in groups]
            fresh = GaussianAccountant(epsilon, [one.delta for one in groups])
            found = np.asarray(epsilon if in_epsilon else fresh.remaining().mu)
            finite = found[np.isfinite(found)]
            most = finite.max() if finite.size else _UNLIMITED
            self._granted[in_epsilon] = np.where(np.isfinite(found), found, most)
        return self._granted[in_epsilon]

    def _prices(self, share: float) -> Floats:
        """What each group may pay for a share of the session: ε of Laplace noise, or μ of Gaussian noise.

        An ε that is found for a μ may be split: its parts have no larger Σμ²
        (:func:`~collegium.accounting.gaussian.gdp_to_pure`).
        """
        parts = self._parts(share)
        if not self._laplace or self._in_epsilon:
            return parts
        return np.array([gdp_to_pure(mu) for mu in parts.tolist()])

    def _parts(self, share: float) -> Floats:
        """What each group may use for a share of the session: ε, or μ."""
        part = self._spend * share
        return self._limits(self._in_epsilon) * (part if self._in_epsilon else math.sqrt(part))

    def _most(self) -> Floats:
        """What the session may cost at most: Σμ² or Σε of each group."""
        limits = self._limits(self._in_epsilon)
        return self._spend * (limits if self._in_epsilon else limits**2)

    def _from_mu(self, mu: Floats) -> Floats:
        pairs = zip(mu.tolist(), self._account.delta.tolist(), strict=True)
        return np.array([float(gdp_epsilon(one, delta)) for one, delta in pairs])

    def _epsilon_of(self, event: Event) -> dict[str, float]:
        own = GaussianAccountant(
            np.full(len(event), np.inf),
            self._account.delta,
            self._account.names,
            self._neighbours,
            self._promise,
        )
        return dict(zip(self._account.names, own.preview(event).tolist(), strict=True))

    def _shares_of(self, event: Event) -> list[float]:
        """Which share of what each group's people granted an event takes: as their ledger counts it."""
        limits_here = self._limits(self._in_epsilon)
        cost = event.pure_epsilon if self._in_epsilon else event.mu_squared
        found: list[float] = (cost / (limits_here if self._in_epsilon else limits_here**2)).tolist()
        if self._granted_in_all:  # other parties' people are in ledgers of their own
            costs = Cost.of_event(event)
            for place, name in enumerate(self._table.groups):
                if name in self._granted_in_all:
                    found[place] = self._granted_in_all[name].share_of(costs[place])
        return found

    def _features(self, asked: Query, spread: float = SPREAD_SHARE) -> Features:
        """How a question reads rows. ``spread``: share of its price that measures how much values differ."""
        share = spread if self._unequal(asked) else 0.0
        once, named = self._most_rows == 1, self._table.named
        return features_of(asked, self.schema, self._laplace, share, once, named=named)

    @property
    def _most_rows(self) -> int:
        """How many rows an owner counts for: said in public, and never read off the rows."""
        return self.schema.rows_per_owner if self._table.named else 1

    def _unequal(self, asked: Query) -> bool:
        """Whether it is worth measuring how much values spread: not of a flag, whose mean says it."""
        limits = self._limits(self._in_epsilon)
        columns = asked.about(self.schema)
        whole = asked.is_mean or (asked.where.is_everybody and not asked.by)
        known = bool(columns) and (columns[0].kind == FLAG or (columns[0].sd is not None and whole))
        return bool(np.ptp(limits) > 0) and not known

    def _trade(
        self,
        asked: Query,
        features: Features,
        expected: float | None = None,
        interval: bool = True,
    ) -> Trade:
        return trade_of(
            asked,
            self.schema,
            features,
            int(self._table.sizes.sum()),
            features.diameter(self._neighbours, self._laplace),
            self._laplace,
            expected,
            1 - quantiles.FOR_INTERVAL if interval else 1.0,
        )

    def _weighing(self, weights: Floats, diameter: float) -> Weighing:
        return Weighing.of(weights, self._laplace, self._most_rows, diameter, self._noise.excess)

    def _known_number(self, question: Question) -> Answer:
        n = float(self._table.sizes.sum())
        nothing = Nothing(len(self._table.sizes), neighbours=self._neighbours)
        cells = table_of([Estimate(n, 0.0, 0.0, 0.0, n, n)], None)
        said = ("how many people each group has is public: nothing was spent",)
        return self._finished(question, cells, np.ones(len(self._table.sizes)), nothing, said)

    def _charge(self, events: Sequence[Event], share: float) -> Event:
        event = events[0] if len(events) == 1 else Composition(tuple(events))
        self._account.charge(event)
        self._charged.append(event)
        self._left = max(0.0, self._left - share)
        return event

    def _events(self, question: Question, share: float) -> list[Event]:
        """What an answer will be charged as: public."""
        if question.asked.kind == "quantile":
            features = self._features(question.asked)
            return [
                event
                for one, part in self._each_level(question, share)
                for event in self._priced(one, part, features)[1]
            ]
        return [event for _, event in self._steps(question, share, self._learning(question, share))]

    def _each_level(self, question: Question, share: float) -> list[tuple[Question, float]]:
        """The quantiles that are asked for, which take equal parts of the share."""
        each = question.asked.each_level
        return [(replace(question, asked=one), share / len(each)) for one in each]

    def _learning(self, question: Question, share: float) -> Learning | None:
        """Two rounds, where the spread that decides on weights is not public and can be learnt."""
        asked = question.asked
        learnt = asked.kind != "people" and (asked.counts or asked.kind in (*ONE_NUMBER, "share"))
        if self._laplace or not learnt or question.calibrated or question.weights != "saturating":
            return None
        features = self._features(asked, SPREAD_IN_FIRST), self._features(asked, 0.0)
        trade = self._trade(asked, features[1], question.expected)
        if trade.known:
            return None
        diameters = [one.diameter(self._neighbours, False) for one in features]
        rounds = Rounds.of(
            self._prices(share),
            self._table.sizes,
            trade.noise / diameters[1] ** 2,
            trade.spread,
            (diameters[0], diameters[1]),
            features[0].spread,
        )
        return None if rounds is None else Learning(rounds, features)

    def _step(self, features: Features, weights: Floats) -> tuple[Sums, Event]:
        """Sums in which people weigh what they pay, and what these are charged as."""
        diameter = features.diameter(self._neighbours, self._laplace)
        most = 1 if features.distinct else self._most_rows
        weighing = Weighing.of(weights, self._laplace, most, diameter, self._noise.excess)
        return Sums(features, weighing), weighing.event(diameter, self._neighbours)

    def _steps(
        self, question: Question, share: float, learning: Learning | None
    ) -> list[tuple[Sums, Event]]:
        """What is added up for an answer, and what it is charged as, by public numbers."""
        if learning is not None:
            paid = learning.rounds.paid_first, learning.rounds.paid_second
            return [
                self._step(one, weights)
                for one, weights in zip(learning.features, paid, strict=True)
            ]
        features, prices = self._features(question.asked), self._prices(share)
        if question.calibrated:
            stairs = staircase(prices) if not self._laplace else _differences(prices)
        else:
            trade = self._trade(question.asked, features, question.expected)
            stairs = [trade.weights(question.weights, prices, self._table.sizes)]
        return [self._step(features, weights) for weights in stairs]

    def _added(self, features: Features, all_sums: Sequence[Sums]) -> None:
        found = self._table.summed(features, [one.weighing for one in all_sums])
        for sums, steps in zip(all_sums, found, strict=True):
            sums.sensitive_steps += steps

    @contextlib.contextmanager
    def _charging_failures(self, events: Sequence[Event], share: float) -> Iterator[None]:
        """Whether an engine stops with an error may depend on a single row: that is an answer, too."""
        try:
            yield
        except EngineError as error:
            if events:
                self._charge(events, share)
            raise EngineError(
                f"{error}; the question stays charged, since an error may tell of somebody's row, and "
                "nothing was answered"
            ) from None

    def _sums(self, question: Question, share: float, query: int) -> Answer:
        asked, sizes = question.asked, self._table.sizes
        learning = self._learning(question, share)
        steps = self._steps(question, share, learning)
        weighings = [sums.weighing for sums, _ in steps]
        if learning is None:
            features = self._features(asked)
            events = [one for _, one in steps]
            with self._charging_failures(events, share):
                self._added(features, [sums for sums, _ in steps])
            event = self._charge(events, share)
            noisy = [
                sums.noisy(self._noise, query, f"sums {step}")
                for step, (sums, _) in enumerate(steps)
            ]
            weights = weighings[0].weights
            heard = Heard.of(weighings[0], sizes, self.confidence, features.spread)
        else:
            features = learning.features[1]
            heard, weights, both, event = self._learnt(question, share, query, learning, steps)
            noisy = [both]
        matrix = None
        if asked.kind in ("cov", "corr", "ridge"):
            cells, matrix = self._matrix(question, noisy[0], heard, features)
        else:
            found = self._estimates(asked, noisy[0], heard, features)
            cells = table_of(found, self._index(asked, features))
        read = None
        if matrix is not None:
            read = Moments.rows(noisy[0][0], heard, features, len(asked.columns))
        groups = None
        if question.calibrated and len(features.keys) == 1:
            one_cell = [one[0] for one in noisy]
            groups = self._by_group(
                asked, self._prices(share), weighings, one_cell, features, cells
            )
        notes = self._notes(question, share)
        if read is not None:
            digits = in_digits(read[1], read[0])
            notes = (
                f"{read[0]:,.{digits}f} rows (standard error {read[1]:,.{digits}f}) had all of these columns "
                "and could be read",
                *notes,
            )
        return self._finished(
            question,
            cells,
            weights,
            event,
            notes,
            matrix,
            groups,
            learning is not None,
            heard.unequal,
        )

    def _learnt(
        self,
        question: Question,
        share: float,
        query: int,
        learning: Learning,
        steps: list[tuple[Sums, Event]],
    ) -> tuple[Heard, Floats, Floats, Event]:
        """Draw two rounds (:mod:`~collegium.statistics.rounds`).

        Returns how people were counted, what each group weighs, the noisy sums, and what was charged.
        """
        asked, sizes, rounds = question.asked, self._table.sizes, learning.rounds
        first, events = steps[0][0], [event for _, event in steps]
        with self._charging_failures(events, share):
            self._added(learning.features[0], [first])
        event = self._charge(events if self._charges_at_most else events[:1], share)
        noisy = first.noisy(self._noise, query, "first round")
        heard = Heard.of(first.weighing, sizes, self.confidence, learning.features[0].spread)
        cells = list(noisy)
        if asked.is_mean:
            cells = [estimates.with_rows(cell, heard, learning.features[0]) for cell in cells]
        found = [self._estimate(asked, cell, heard, learning.features[0]) for cell in cells]
        most = math.inf
        if asked.counts:  # shares of cells add up to 1 at most
            most = heard.n * heard.most**2 * max(0.25, 1 - 1 / len(found))
        # Weights are whole steps of the largest: rounded down as those that are charged at most.
        limit = steps[1][0].weighing.weights * float(rounds.paid_second.max()) * (1 - 2.0**-50)
        paid = np.minimum(rounds.second(sizes, found, most), limit)
        second, own = self._step(learning.features[1], paid)
        with self._charging_failures([] if self._charges_at_most else [own], 0.0):
            self._added(learning.features[1], [second])
        if not self._charges_at_most:
            event = Composition((event, self._charge([own], 0.0)))
        again = second.noisy(self._noise, query, "second round")
        both = first.weighing.weights, second.weighing.weights
        whole = heard, Heard.of(second.weighing, sizes, self.confidence)
        return *rounds.together(sizes, whole, both, (noisy, again)), event

    def _estimates(
        self, asked: Query, noisy: Floats, heard: Heard, features: Features
    ) -> list[Estimate]:
        """Estimate each cell of an answer."""
        if asked.kind == "top":
            heard = comparisons.for_all_of(heard, len(noisy))
        if not asked.shares_out:
            return [self._estimate(asked, cell, heard, features) for cell in noisy]
        size = len(self.schema[asked.columns[0]].keys)
        everybody = asked.where.is_everybody and not asked.by and self._most_rows == 1
        everybody = everybody and not self.schema[asked.columns[0]].missing
        groups = noisy[:, 0].reshape(-1, size)
        return [one for sums in groups for one in comparisons.shares(sums, heard, everybody)]

    def _estimate(self, asked: Query, sums: Floats, heard: Heard, features: Features) -> Estimate:
        if asked.counts:
            return estimates.count(sums, heard)
        column = asked.about(self.schema)[0]
        if asked.is_mean:
            return estimates.mean(sums, heard, features, column)
        if asked.kind == "sum":
            return estimates.total(sums, heard, features, column)
        return estimates.variance(sums, heard, features, column, self._laplace, asked.kind == "std")

    def _matrix(
        self, question: Question, sums: Floats, heard: Heard, features: Features
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        asked, names = question.asked, list(question.asked.columns)
        columns = [self.schema[name] for name in names]

        read = Moments.of(sums[0], heard, features, len(columns))
        if read is None:
            shape = (len(names),) if asked.kind == "ridge" else (len(names), len(names))
            found = Found(*(np.full(shape, np.nan) for _ in range(4)))
        elif asked.kind == "ridge":
            found = moments.ridge(read, columns, question.penalty)
        elif asked.kind == "corr":
            found = moments.correlations(read)
        else:
            found = moments.covariances(read, columns)
        if asked.kind == "ridge":
            index = pd.Index(["(intercept)", *names[1:]], name="coefficient")
            matrix = pd.DataFrame(
                {"value": found.value, "standard_error": found.error}, index=index
            )
        else:
            index = pd.MultiIndex.from_product([names, names], names=["column", "with"])
            matrix = pd.DataFrame(found.value, index=names, columns=names)
        cells = pd.DataFrame(
            {
                "value": found.value.ravel(),
                "standard_error": found.error.ravel(),
                "lower": found.lower.ravel(),
                "upper": found.upper.ravel(),
                "population_error": math.nan,
            },
            index=index,
        )
        return cells, matrix

    def _by_group(
        self,
        asked: Query,
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
        first, _ = scales(features.spread, self._laplace)
        first *= scales(features.presence, self._laplace)[0]
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

    def _priced(
        self, question: Question, share: float, features: Features
    ) -> tuple[quantiles.Priced, list[Event]]:
        """Weights and prices of a quantile's draw, and of the noise that its interval is made with."""
        asked, laplace, prices = question.asked, self._laplace, self._prices(share)
        trade = self._trade(asked, features, question.expected, question.interval)
        weights = trade.weights(question.weights, prices, self._table.sizes)
        steps = np.floor(np.maximum(weights / weights.max(), 1e-12) / GRID).astype(np.int64)
        relative = np.maximum(steps * GRID, 1e-12)

        def heaviest(paid: Floats) -> float:
            return float((paid / relative).min())

        drawn = 1 - quantiles.FOR_INTERVAL if question.interval else 1.0
        eta = heaviest(quantiles.range_for(prices * (drawn if laplace else drawn**0.5), laplace))
        weighing = Weighing(steps, 1.0, laplace, self._most_rows)
        far, interval = diameter(laplace, self._neighbours), None
        if question.interval:
            rest = prices * (1 - drawn if laplace else (1 - drawn) ** 0.5)
            interval = self._weighing(relative * heaviest(rest), far).weighed(steps)
        cells = len(features.keys)
        priced = quantiles.Priced(
            float(asked.level or 0.5),
            eta,
            laplace,
            weighing,
            interval,
            far,
            self._neighbours,
            cells,
        )
        return priced, priced.events

    def _quantile(self, question: Question, share: float, query: int) -> Answer:
        asked, noise = question.asked, self._noise
        if not isinstance(noise, LocalSum):
            raise InputError(
                f"{asked} is chosen, and no sum that several parties could add: ask for a histogram"
            )
        features = self._features(asked)
        column = self.schema[asked.columns[0]]
        each = [
            self._priced(one, part, features) for one, part in self._each_level(question, share)
        ]
        charged = [one for _, events in each for one in events]
        with self._charging_failures(charged, share):
            weighings = [priced.weighing for priced, _ in each]
            ranks = quantiles.Ranks.of(self._table, features, column, weighings)
        event = self._charge(charged, share)
        by_level = []
        for place, (one, (priced, _)) in enumerate(zip(ranks, each, strict=True)):
            heard = Heard.of(priced.weighing, self._table.sizes, self.confidence)
            part = f" {place}" if asked.levels else ""
            by_level.append(quantiles.estimate(one, priced, column, heard, noise, query, part))
        # Of each cell, its quantiles in the order of their levels.
        found = [one for cell in zip(*by_level, strict=True) for one in comparisons.in_order(cell)]
        cells = table_of(found, self._index(asked, features))
        notes = self._notes(question, share)
        weights = np.mean([priced.weighing.weights for priced, _ in each], axis=0)
        return self._finished(question, cells, weights, event, notes)

    def _index(self, asked: Query, features: Features) -> pd.Index | None:
        names, keys = list(asked.by), list(features.keys)
        if asked.counts:
            names += list(asked.columns)
        if asked.levels:
            names.append("level")
            keys = [(*key, plain(level)) for key in keys for level in asked.levels]
        if not names:
            return None
        if len(names) == 1:
            return pd.Index([key[0] for key in keys], name=names[0])
        return pd.MultiIndex.from_tuples(keys, names=names)

    def _notes(self, question: Question, share: float) -> tuple[str, ...]:
        notes = []
        sizes, prices = self._table.sizes, self._prices(share)
        if question.weights == "proportional" and not question.calibrated:
            features = self._features(question.asked)
            trade = self._trade(question.asked, features, question.expected, question.interval)
            ratio = wasted(trade, "proportional", prices, sizes)
            if ratio > 1:
                notes.append(
                    f"proportional weights are predicted to give {ratio:.2f} times the error of "
                    "uniform ones here: leave weights out"
                )
                warnings.warn(notes[-1], PrivacyWarning, stacklevel=5)
        if why := self._table.why_here(question.asked.needs):
            notes.append(
                f"{why}, so rows were read here, which takes longer: a view in which it has the type of the "
                "schema is added up where it lies"
            )
        if question.asked.kind == "quantile" and not question.interval:
            notes.append(
                "without an interval nothing tells how far off a value is, or whether there is "
                "anybody at all: of nobody, the value is any step between the bounds, each equally "
                "likely"
            )
        if question.asked.holds:
            notes.append("rows without a value, of which nothing holds, count as a no")
        if question.asked.kind == "people" and question.asked.by and self._table.named:
            notes.append("a person counts in each group where they have a row, so groups overlap")
        elif question.asked.kind == "top":
            notes.append("the intervals hold for all categories at once, also for those not shown")
        if self._table.named and question.asked.kind != "people":
            rows = f"{self._most_rows:,} row{'s' * (self._most_rows != 1)}"
            notes.append(
                f"a person with more than {rows} counts as {rows}, shared equally among them"
            )
        return tuple(notes)

    def _says_nothing(self, asked: Query, cells: pd.DataFrame) -> tuple[str, ...]:
        """A note where errors are as large as all that is possible: noise must not be taken for an answer."""
        if asked.kind in ("sum", "cov"):
            return ()
        if asked.kind == "share":
            ends = 0.0, 1.0
        elif asked.counts:
            most = 1 if asked.kind == "people" else self._most_rows
            ends = 0.0, float(self._table.sizes.sum()) * most
        elif asked.kind in ("corr", "ridge"):
            ends = (-1.0, 1.0) if asked.kind == "corr" else (-math.inf, math.inf)
        else:
            column = self.schema[asked.columns[0]]
            highest = {"var": column.width**2 / 4, "std": column.width / 2}.get(asked.kind)
            ends = (column.lower, column.upper) if highest is None else (0.0, highest)
        whole = (cells["lower"] <= ends[0]) & (cells["upper"] >= ends[1])
        drowned = int((whole | (4 * cells["standard_error"] >= ends[1] - ends[0])).sum())
        if not drowned:
            return ()
        which = (
            "this value tells nothing"
            if len(cells) == 1
            else f"{drowned:,} of {len(cells):,} values tell nothing"
        )
        return (f"{which}: {DROWNED}",)

    def _finished(
        self,
        question: Question,
        cells: pd.DataFrame,
        weights: Floats,
        event: Event,
        notes: tuple[str, ...],
        matrix: pd.DataFrame | None = None,
        groups: pd.DataFrame | None = None,
        learnt: bool = False,
        unequal: float = 0.0,
    ) -> Answer:
        asked = question.asked
        if asked.kind == "top":
            cells = comparisons.largest(cells, asked.most)
        elif asked.apart:
            cells = cells.loc[list(asked.apart)]
        notes = (*self._says_nothing(asked, cells), *notes)
        if asked.apart:
            of_totals = unequal if asked.counts or asked.kind == "sum" else 0.0
            cells = comparisons.with_difference(cells, asked.apart, of_totals)
        sizes = self._table.sizes
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
        paid = pd.DataFrame(
            {
                "budget": self._account.epsilon,
                "epsilon": list(epsilon.values()),
                "share": self._shares_of(event),
            },
            index=index,
        )
        heard = weights > 0
        effective = effective_people(weights[heard], sizes[heard])
        rule = "equal (each level asked by itself)" if question.calibrated else question.weights
        found = " found in two rounds" if learnt else ""
        people = int(sizes.sum())
        known = known_of(question.asked, self.schema, people if self._most_rows == 1 else None)
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
            f"{rule} weights{found}, {self.noise} noise, {self._noise.description}; neighbouring data "
            f"sets: {self._arrangement.sentence}",
            groups,
            matrix,
            notes,
            facts,
            *self._unit_of(question.asked),
            self._silent,
            sentence(question.asked),
        )

    def _unit_of(self, asked: Query) -> tuple[str, str]:
        """In what values are, and what is counted."""
        if asked.kind == "share":
            return SHARE, ""
        if not asked.counts:
            is_date = bool(asked.columns) and self.schema[asked.columns[0]].kind == DATE
            return {"mean": DAY, "quantile": DAY, "std": "days"}.get(asked.kind, "") * is_date, ""
        if not self._table.named or asked.kind == "people" or asked.is_public(self._most_rows == 1):
            return PEOPLE, PEOPLE
        return PEOPLE if self._most_rows == 1 else "rows", rows_of(self._most_rows)


def _differences(prices: Floats) -> list[Floats]:
    """The staircase for pure ε, which adds up: b_j - b_{j-1} in step j."""
    steps, before = [], 0.0
    for level in np.unique(prices):
        steps.append(np.where(prices >= level, (level - before) * (1 - 2**-50), 0.0))
        before = float(level)
    return steps
