"""From a table of people to a model of it: the only place where a synthetic table is orchestrated.

Both faces use it, the Python one and studies: a :class:`Synthesis` is planned from public numbers, says
what its draws cost, draws them one by one once they are charged, and fits a model to what was drawn. What a
draw returns may be published, is all that later ones and the model know of private rows, and can be written
as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.events import Event
from collegium.accounting.neighbours import Neighbours
from collegium.checks import listed, nearest, shown
from collegium.data.cells import Cells
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.noise.sums import NoisySum
from collegium.synthesis.belief import Beliefs
from collegium.synthesis.coarsening import RARE, RARE_ALONE, Coarsening
from collegium.synthesis.counting import sensitive_counts, sensitive_errors
from collegium.synthesis.group_differences import Step, group_differences
from collegium.synthesis.junction_tree import Clique, JunctionTree
from collegium.synthesis.max_entropy import Marginal, fit
from collegium.synthesis.measurements import coarse_marginal, joined, public_marginal
from collegium.synthesis.model import TableModel
from collegium.synthesis.rules import Rule, names_of, rules_of
from collegium.synthesis.selection import MOST_GIVEN_CELLS, chosen_pairs, without_room
from collegium.synthesis.settings import SynthesisSettings
from collegium.synthesis.stages import FIRST, PAIRS, SCORES, WEAK, Stage, Stages
from collegium.weighted_sums.tables import Table
from collegium.weighted_sums.weighing import Weighing
from collegium.weighted_sums.weights import effective_people, staircase

Floats = NDArray[np.float64]
Drawn = Mapping[int, Mapping[str, Any]]
"""What was drawn, by number from 1 on; what a crash took is missing."""
USELESS = 0.05
"""A table of which each cell's share is off by so much says next to nothing."""
MOST_ENTRIES = 20_000_000
"""Numbers that are counted at once: cells of all candidate pairs."""
_TRIED = 100
"""Rows that are drawn beforehand, to see whether any can be."""


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known after some draws: coarse cells, marginals in them, and which part of the rows counts."""

    coarse: tuple[Coarsening, ...]
    marginals: tuple[Marginal, ...]
    fraction: float


class Synthesis:
    """A synthetic table, planned.

    Parameters
    ----------
    table : Table
        Rows of people who granted budgets.
    cells : Cells
        Of the columns that are synthesised.
    target : str or None
        Column that others are to predict.
    settings : SynthesisSettings
    neighbours : Neighbours
        What is hidden: ADD_OR_REMOVE or ANY_CHANGE.
    public : ndarray of int, shape (n, n_columns), optional
        Cells of public records.
    part : float, default=1.0
        Share of everybody's μ² that all draws take.

    Raises
    ------
    InputError
        If settings contradict themselves or the schema. Nothing was looked at then but people's budgets.
    """

    def __init__(
        self,
        table: Table,
        cells: Cells,
        target: str | None,
        settings: SynthesisSettings,
        neighbours: Neighbours,
        public: NDArray[np.int64] | None = None,
        part: float = 1.0,
    ) -> None:
        self.table, self.cells, self.settings, self.public = table, cells, settings, public
        self.target = _place_of_target(cells, target, settings.goal)
        self.neighbours = neighbours
        self.rules: tuple[Rule, ...] = rules_of(settings.constraints, cells)
        self.structure = _structure_of(settings.structure, cells, self.target)
        n = len(cells.columns)
        if self.target is None:
            self.first: list[Clique] = [(one,) for one in range(n)]
        else:
            self.first = [_pair(one, self.target) for one in range(n) if one != self.target]
        self.first = self.first or [(0,)]  # a target alone
        self.candidates = [pair for pair in combinations(range(n), 2) if pair not in self.first]
        self.n_rows = int(table.sizes.sum())
        self.stages = Stages.of(
            table.groups,
            table.sizes,
            goal=settings.goal,
            has_target=self.target is not None,
            n_first=len(self.first),
            n_candidates=len(self.candidates),
            cells_each=self._cells_each,
            is_structured=bool(self.structure),
            most_rows=self.most_rows,
            neighbours=neighbours,
            rule=settings.weights,
            part=part,
        )
        self._refuse_contradictions()
        self._read: tuple[Mapping[str, Any], _Known] | None = None
        self._expecting: tuple[_Known, Beliefs, list[Floats]] | None = None

    @property
    def most_rows(self) -> int:
        """How many rows an owner counts for: said in public, and never read off the rows."""
        return self.cells.schema.rows_per_owner if self.table.named else 1

    @property
    def _cells_each(self) -> float:
        sizes = self.cells.sizes
        return float(np.mean([math.prod(sizes[one] for one in clique) for clique in self.first]))

    @property
    def events(self) -> list[Event]:
        """What each draw costs, in order; a cohort is a group of the table."""
        return [one.event for one in self.stages.drawn]

    def draw(self, number: int, before: Drawn, noise: NoisySum) -> dict[str, Any]:
        """Draw, from 1 on. The caller has charged the event of this number, durably.

        ``before``: what was drawn earlier. Returns what may be kept and published.
        """
        stage = self.stages.drawn[number - 1]
        if stage.name == SCORES:
            return self._draw_scores(stage, number, before, noise)
        coarse = None
        if stage.name == FIRST:
            cliques = self.first
        else:
            known = self._known(before)
            cliques, coarse = self._pairs(known, before), known.coarse
        weighings = self._weighings(stage)
        counts = sensitive_counts(self.table, self.cells, weighings, cliques, coarse)
        steps = np.concatenate([one.ravel() for its in counts for one in its])
        drawn = noise.noised(steps, stage.noise(len(cliques)), query=number, purpose=stage.name)
        return {
            "stage": stage.name,
            "columns": [[self.cells.names[one] for one in clique] for clique in cliques],
            "sd": stage.sd(len(cliques)) * noise.excess,
            "weights": [one.weights.tolist() for one in weighings],
            **({} if coarse is None else {"coarse": [one.place.tolist() for one in coarse]}),
            "steps": drawn.tolist(),
        }

    def _weighings(self, stage: Stage) -> list[Weighing]:
        """With whom counts are made: once of all, or of all alike first, and of the more generous once more.

        The squares of somebody's weights in the latter add up to the square of their weight in the former,
        so both cost the same (:func:`~collegium.weighted_sums.weights.staircase`).
        """
        whole = stage.weighing
        if not self.settings.calibrated:
            return [whole]
        heard = whole.steps > 0
        return [
            whole.weighed(_among(heard, np.floor(one).astype(np.int64)))
            for one in staircase(whole.steps[heard].astype(np.float64))
        ]

    def _draw_scores(
        self, stage: Stage, number: int, before: Drawn, noise: NoisySum
    ) -> dict[str, Any]:
        known = self._known(before)
        sizes = [one.size for one in known.coarse]
        # Where rows lie in several places, each compares its own with what is expected of these.
        here = float(self.table.here @ stage.weighing.weights) * self.most_rows
        total = known.fraction * here / GRID
        cells = sum(sizes[a] * sizes[b] for a, b in self.candidates)
        errors: list[NDArray[np.int64]] = []
        for some in _in_portions(self.candidates, sizes, cells):
            expected = [
                np.rint(one * total).astype(np.int64) for one in self._expected(known, some)
            ]
            (counts,) = sensitive_counts(
                self.table, self.cells, [stage.weighing], some, known.coarse
            )
            errors.append(sensitive_errors(counts, expected))
        steps = np.concatenate(errors)
        drawn = noise.noised(steps, stage.noise(len(steps)), query=number, purpose=stage.name)
        return {
            "stage": stage.name,
            "sd": stage.sd(len(steps)) * noise.excess,
            "steps": drawn.tolist(),
        }

    def model(self, drawn: Drawn) -> TableModel:
        """Fit a model to everything that was drawn."""
        known = self._known(drawn)
        sizes = [one.size for one in known.coarse]
        zeros = self._zeros(known.coarse)
        marginals = list(known.marginals)
        found = self._of_stage(PAIRS, drawn)
        if found is not None:
            marginals += self._marginals(found, sizes)
        marginals = self._with_public(marginals, known.coarse)
        left = self._without_room(drawn)
        fitted = [one for one in marginals if one.columns not in left]
        alone = {one for marginal in fitted for one in marginal.columns}
        factors = [one.columns for one in fitted] + list(zeros)
        factors += [(one,) for one in range(len(sizes)) if one not in alone]
        tree = JunctionTree.of(sizes, factors)
        beliefs, thetas = fit(tree, fitted, zeros)
        return TableModel(
            self.cells,
            known.coarse,
            beliefs.factors,
            tuple(thetas),
            tuple(marginals),
            self.rules,
            self.n_rows,
        )

    def heard(self) -> pd.DataFrame:
        """Tell, of each group, its share of the people, and of the weight with which they are heard."""
        people, weights = self.table.sizes, self.stages.weights
        heard = people * weights
        return pd.DataFrame(
            {
                "people": people,
                "share_of_people": people / people.sum(),
                "share_of_weight": heard / heard.sum(),
            },
            index=pd.Index(list(self.table.groups), name="group"),
        )

    def bias(self, drawn: Drawn) -> pd.DataFrame | None:
        """Tell how far the people of each group are from all people, column by column.

        Returns a frame with columns ``group``, ``column``, ``apart`` (total variation of noisy shares),
        ``explained`` (what noise and chance make of it, on average) and ``p_same`` (how often these
        would make as much or more, by a χ² test); None where it was not measured.
        """
        found = self._of_stage(FIRST, drawn)
        if found is None or len(found["weights"]) < 2:
            return None
        return group_differences(
            self._steps_of(found, self.cells.sizes),
            self.table.sizes,
            list(self.table.groups),
            self.cells,
        )

    def notes(self, drawn: Drawn | None = None) -> tuple[str, ...]:
        """Say what the table is not good for: as planned, and, with what was drawn, as it came out."""
        told = []
        alone = (
            "how columns go together" if self.target is None else "how other columns go together"
        )
        name = "" if self.target is None else self.cells.names[self.target]
        follows = (
            "columns are independent in it"
            if self.target is None
            else f"among rows with one {name}, columns are independent in it"
        )
        if not self.stages.has(PAIRS):
            if self.candidates:
                told.append(f"Nothing is measured of {alone}: {follows}.")
        elif self.stages.signal < WEAK:
            told.append(
                f"So few people with such budgets tell little of {alone}: it may be that no pair is worth "
                f"its noise, and {follows}."
            )
        stage = self.stages.drawn[0]
        moved = stage.sd(len(self.first)) / self._most_weight(stage.weighing.weights)
        if moved > USELESS:
            told.append(
                f"Noise moves the share of a cell by about {100 * moved:.2g} percentage points: with so few "
                "people and such budgets, the table says next to nothing."
            )
        if drawn is None:
            return tuple(told)
        lost = [one.name for number, one in enumerate(self.stages.drawn, 1) if number not in drawn]
        if lost:
            told.append(
                f"Paid for, and lost in a crash: {listed(lost)}. The table was made without, and is the "
                "worse for it."
            )
        found = self._of_stage(PAIRS, drawn)
        if found is not None and not self.structure:
            names = list(self.cells.names)
            pairs = {tuple(names.index(one) for one in columns) for columns in found["columns"]}
            if pairs <= set(self.first):
                told.append(f"No other pair was worth its noise: {follows}.")
        left = self._without_room(drawn)
        if left:
            names = list(self.cells.names)
            sets = "; ".join(", ".join(names[one] for one in clique) for clique in left)
            told.append(
                f"Measured, and not fitted: {sets}. With it, the fit would need more than "
                f"{MOST_GIVEN_CELLS:,} cells (collegium.synthesis.pgm fits it otherwise)."
            )
        return tuple(told)

    # ------------------------------------------------------------------- what draws tell

    @property
    def _people_heard(self) -> float:
        """As how many people, heard alike, these are."""
        return effective_people(
            self.stages.weights[self.stages.weights > 0], self.table.sizes[self.stages.weights > 0]
        )

    def _most_weight(self, weights: Floats) -> float:
        """Sum of the weights of all rows: exactly where each person has one row, at most otherwise."""
        return float(self.table.sizes @ weights) * self.most_rows

    def _of_stage(self, name: str, drawn: Drawn) -> Mapping[str, Any] | None:
        return next((one for one in drawn.values() if one["stage"] == name), None)

    def _known(self, drawn: Drawn) -> _Known:
        """Read the first draw; where a crash took it, public records and uniform shares are all there is."""
        found = self._of_stage(FIRST, drawn)
        if found is not None and self._read is not None and self._read[0] is found:
            return self._read[1]
        if found is None:
            none = tuple(Coarsening.none(size) for size in self.cells.sizes)
            return _Known(none, (), 1.0)
        steps = self._steps_of(found, self.cells.sizes)
        marginals = self._marginals(found, self.cells.sizes)
        # As it was when later draws were made: on another processor, a cell may be a hair more rare.
        kept = next((one["coarse"] for one in drawn.values() if "coarse" in one), None)
        coarse = self._coarsened(marginals, kept)
        fraction = steps[0].total / self._most_weight(steps[0].weights)
        known = _Known(coarse, tuple(coarse_marginal(one, coarse) for one in marginals), fraction)
        self._read = (found, known)
        return known

    def _steps_of(self, drawn: Mapping[str, Any], sizes: Sequence[int]) -> list[Step]:
        """Noisy counts of each step of a staircase; without one, of all."""
        names, sd = list(self.cells.names), float(drawn["sd"])
        cliques = [tuple(names.index(name) for name in columns) for columns in drawn["columns"]]
        shapes = [tuple(sizes[one] for one in clique) for clique in cliques]
        weights = np.asarray(drawn["weights"], dtype=np.float64)
        values = np.asarray(drawn["steps"], dtype=np.int64).reshape(len(weights), -1) * GRID
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        found = []
        for its, row in zip(weights, values, strict=True):
            parts = [
                part.reshape(shape) for part, shape in zip(np.split(row, ends), shapes, strict=True)
            ]
            total = self._most_weight(its)
            if (
                self.most_rows > 1
            ):  # how many rows count is not public: it follows from the noisy counts
                cells = np.array([part.size for part in parts], dtype=np.float64)
                sums = np.array([part.sum() for part in parts])
                total = float(
                    np.clip((sums / cells).sum() / (1 / cells).sum(), min(sd, total), total)
                )
            found.append(Step(its, total, tuple(cliques), tuple(parts), sd))
        return found

    def _marginals(self, drawn: Mapping[str, Any], sizes: Sequence[int]) -> list[Marginal]:
        """Noisy shares; of a staircase, those of all alike, joined with those of the more generous."""
        first, *others = [one.marginals for one in self._steps_of(drawn, sizes)]
        for more in others:
            first = [joined(one, other).marginal for one, other in zip(first, more, strict=True)]
        return first

    def _coarsened(
        self, marginals: Sequence[Marginal], kept: Sequence[Sequence[int]] | None
    ) -> tuple[Coarsening, ...]:
        """Find the rare cells of each column from its own noisy marginal.

        ``kept``: how they were put together when a later draw was made.
        """
        found = [Coarsening.none(size) for size in self.cells.sizes]
        rare = RARE if self.stages.has(PAIRS) else RARE_ALONE
        ruled = {one for rule in self.rules for one in rule.columns}
        for marginal in self._with_public(list(marginals), found):
            for axis, column in enumerate(marginal.columns):
                if column == self.target or column in ruled:
                    continue
                others = tuple(a for a in range(len(marginal.columns)) if a != axis)
                shares = marginal.shares.sum(axis=others)
                variance = (np.broadcast_to(marginal.sd, marginal.shares.shape) ** 2).sum(
                    axis=others
                )
                one = self.cells.columns[column]
                is_ordered = one.column.kind not in ("category", "flag")
                sd = float(np.sqrt(variance.mean()))
                if kept is not None:
                    found[column] = Coarsening.at(np.asarray(kept[column]), shares, sd)
                else:
                    ordered = one.n_values if is_ordered else 0
                    found[column] = Coarsening.of(shares, sd, ordered, rare)
        return tuple(found)

    def _with_public(
        self, marginals: list[Marginal], coarse: Sequence[Coarsening]
    ) -> list[Marginal]:
        if self.public is None or not len(self.public):
            return marginals
        codes = np.stack(
            [one.place[self.public[:, column]] for column, one in enumerate(coarse)], axis=1
        )
        sizes = [one.size for one in coarse]
        return [
            joined(one, public_marginal(codes, one.columns, sizes, self._people_heard)).marginal
            for one in marginals
        ]

    # --------------------------------------------------------------------------- structure

    def _pairs(self, known: _Known, drawn: Drawn) -> list[Clique]:
        """Columns that are measured together in the last draw."""
        if self.structure:
            return list(self.structure)
        scores = self._of_stage(SCORES, drawn)
        if scores is None:  # a crash took them: what is measured again is known better
            return self.first
        sizes = [one.size for one in known.coarse]
        stage = self.stages[PAIRS]
        total = known.fraction * self._most_weight(stage.weighing.weights)
        expected = [one * total for one in self._expected(known, self.candidates)]
        fixed = [*self.first, *(rule.columns for rule in self.rules)]
        values: Floats = np.asarray(scores["steps"], dtype=np.float64) * GRID
        chosen = chosen_pairs(
            values, float(scores["sd"]), self.candidates, expected, stage.sd, sizes, fixed
        )
        return chosen or self.first

    def _without_room(self, drawn: Drawn) -> list[Clique]:
        """Columns of the given structure that are measured together, and not fitted."""
        if not self.structure or self._of_stage(PAIRS, drawn) is None:
            return []
        sizes = [one.size for one in self._known(drawn).coarse]
        fixed = [*self.first, *(rule.columns for rule in self.rules)]
        return without_room(sizes, fixed, self.structure, MOST_GIVEN_CELLS)

    def _expected(self, known: _Known, pairs: Sequence[Clique]) -> list[Floats]:
        """Shares of each pair's cells as the first draw lets expect them: independent, given the target."""
        sizes = [one.size for one in known.coarse]
        if self._expecting is None or self._expecting[0] is not known:
            marginals = self._with_public(list(known.marginals), known.coarse)
            tree = JunctionTree.of(sizes, [*self.first, *((one,) for one in range(len(sizes)))])
            beliefs, thetas = fit(tree, marginals)
            self._expecting = known, beliefs, beliefs.tables(thetas)[0]
        _, beliefs, tables = self._expecting
        if self.target is None or not known.marginals:
            own = [beliefs.marginal(tables, (one,)) for one in range(len(sizes))]
            return [np.outer(own[a], own[b]) for a, b in pairs]
        return self._given_target(beliefs, tables, pairs)

    def _given_target(
        self, beliefs: Beliefs, tables: list[Floats], pairs: Sequence[Clique]
    ) -> list[Floats]:
        assert self.target is not None
        target = self.target
        given: dict[int, Floats] = {}
        for clique in self.first:
            other = clique[0] if clique[1] == target else clique[1]
            found = beliefs.marginal(tables, clique)
            given[other] = found if clique[1] == target else found.T
        share = beliefs.marginal(tables, (target,))
        inverse = np.divide(1, share, out=np.zeros_like(share), where=share > 1e-12)
        return [(given[a] * inverse) @ given[b].T for a, b in pairs]

    # --------------------------------------------------------------------------- rules

    def _zeros(self, coarse: Sequence[Coarsening]) -> dict[Clique, NDArray[np.bool_]]:
        found: dict[Clique, NDArray[np.bool_]] = {}
        for rule in self.rules:
            impossible = rule.weights == 0
            found[rule.columns] = found.get(rule.columns, np.zeros_like(impossible)) | impossible
        return found

    def _refuse_contradictions(self) -> None:
        """Refuse rules that no row satisfies together, or only with a value missing: all of it is public."""
        said = listed([str(one) for one in self.rules])
        if self.rules and not self._can_be_drawn(()):
            raise InputError(f"no row can satisfy {said} together: change one of them")
        # A row with a missing value satisfies a rule, so that those which contradict each other leave that.
        for rule in self.rules:
            if not rule.tells_missing and not self._can_be_drawn(rule.columns):
                names = listed([shown(self.cells.names[one]) for one in rule.columns])
                raise InputError(f"{said} leave no value for {names}: change one of them")

    def _can_be_drawn(self, present: Clique) -> bool:
        """Try to draw rows that satisfy all rules, without a missing value in some columns.

        It is not enough that cells are possible: of one cell, some values may satisfy one rule, and others
        another.
        """
        none = tuple(Coarsening.none(size) for size in self.cells.sizes)
        impossible = self._zeros(none)
        for column in present:
            one = self.cells.columns[column]
            missing = np.arange(one.size) >= one.n_values
            impossible[column,] = impossible.get((column,), np.zeros_like(missing)) | missing
        thetas = tuple(np.where(one, -np.inf, 0.0) for one in impossible.values())
        factors = tuple(impossible)
        tree = JunctionTree.of(self.cells.sizes, factors)
        if not np.isfinite(Beliefs(tree, factors).tables(thetas)[1]):
            return False
        model = TableModel(self.cells, none, factors, thetas, (), self.rules)
        try:
            model.arrays(_TRIED, np.random.default_rng(0))
        except InputError:
            return False
        return True


def _among(places: NDArray[np.bool_], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Put values at these places, and 0 elsewhere."""
    found = np.zeros(len(places), dtype=np.int64)
    found[places] = values
    return found


def _pair(a: int, b: int) -> Clique:
    return (a, b) if a < b else (b, a)


def _place_of_target(cells: Cells, target: str | None, goal: str) -> int | None:
    if target is None:
        if goal in ("target", "both"):
            raise InputError(
                f"goal = {goal!r} needs a target, the column that others are to predict: name it, or take "
                "goal = 'fidelity'"
            )
        return None
    if target not in cells.names:
        raise InputError(
            f"target {shown(target)} is no column with cells: {nearest(str(target), list(cells.names))}"
        )
    place = cells.names.index(target)
    if cells.columns[place].n_values < 2:
        raise InputError(
            f"target {shown(target)} has one value only in the schema, so that nothing can be predicted: "
            "list all its categories, or leave the target out"
        )
    return place


def _structure_of(
    structure: Sequence[str | Sequence[str]], cells: Cells, target: int | None
) -> tuple[Clique, ...]:
    found: list[Clique] = []
    for given in structure:
        names = names_of(given) if isinstance(given, str) else list(given)
        for name in names:
            if name not in cells.names:
                raise InputError(
                    f"structure names {shown(name)}: {nearest(str(name), list(cells.names))}"
                )
        clique = tuple(sorted({cells.names.index(name) for name in names}))
        if len(clique) < 2 or len(clique) < len(names):
            raise InputError(
                f"structure must name at least two different columns each, got {shown(given)}"
            )
        size = math.prod(cells.sizes[one] for one in clique)
        if size > MOST_ENTRIES // 10:
            raise InputError(
                f"{listed(names)} have {size:,} cells together, and at most {MOST_ENTRIES // 10:,} can be "
                "measured: name fewer columns, or give them fewer bins"
            )
        if clique not in found:
            found.append(clique)
    return tuple(found)


def _in_portions(
    pairs: Sequence[Clique], sizes: Sequence[int], cells: int
) -> list[Sequence[Clique]]:
    """Split pairs so that the cells of a portion fit into memory."""
    if cells <= MOST_ENTRIES:
        return [pairs]
    portions: list[list[Clique]] = [[]]
    held = 0
    for pair in pairs:
        size = sizes[pair[0]] * sizes[pair[1]]
        if held + size > MOST_ENTRIES and portions[-1]:
            portions.append([])
            held = 0
        portions[-1].append(pair)
        held += size
    return list(portions)
