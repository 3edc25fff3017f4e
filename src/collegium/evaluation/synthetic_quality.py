"""What a synthetic table is worth, beside real records, public rows alone, and a constant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from collegium.evaluation.synthetic_learning import Estimate
from collegium.evaluation.synthetic_marginals import Distance

SYNTHETIC, REAL, PUBLIC, CONSTANT = "synthetic", "real", "public rows alone", "constant"
AREA, EXPLAINED = "AUC", "R²"
_LEAST_GAIN = {AREA: 0.025, EXPLAINED: 0.05}
"""Above what a constant has: what is smaller is taken for nothing, however sure."""
_LEAST_SAVED = 0.05
_LEAST_WAY = 0.1
NOTHING = {AREA: 0.5, EXPLAINED: 0.0}
"""What a constant has."""


@dataclass(frozen=True)
class Learnt:
    """What one model, trained on one table, is worth on held-out records.

    ``score``: AUC, or R² of a number, with 95 % interval; ``accuracy``: of classes.
    ``loss_saved``: of classes, the share of a constant's log loss that its probabilities save: an AUC can be
    large where probabilities mislead, and these cannot.
    ``beyond_public``: how much larger the score is than that of the same model trained on the public rows
    alone, on the same records; None where there are none, or for these rows themselves.
    """

    model: str
    score: Estimate
    accuracy: Estimate | None
    loss_saved: Estimate | None = None
    beyond_public: Estimate | None = None


@dataclass(frozen=True)
class TableQuality:
    """What one table is worth.

    ``name``: "synthetic", "real", "public rows alone" or "constant". ``n``: rows.
    ``learnt``: one for each model; empty without a target.
    ``distances``: of 1-way, 2-way and 3-way marginals from those of the held-out records.
    ``association_mean``, ``association_largest``: absolute difference of the association of two columns
    (Cramér's V, from 0 to 1) from that in the held-out records; None where no pair has one.
    """

    name: str
    n: int
    learnt: tuple[Learnt, ...]
    distances: tuple[Distance, ...]
    association_mean: float | None
    association_largest: float | None

    def learnt_by(self, model: str) -> Learnt | None:
        """Take what one model learnt."""
        return next((one for one in self.learnt if one.model == model), None)


@dataclass(frozen=True)
class GroupTable:
    """What a table is worth for one group of people.

    ``scores``: of the models trained on the whole table, on the group's held-out records; None where too
    few records of a class are there. ``calibration_gaps``: mean probability of the positive class, less how
    often it occurs in the group. ``distances``: between the group's own rows, where the table says who is of
    it, or else the whole table, and the group's held-out records; empty where there are too few rows.
    """

    name: str
    scores: tuple[Estimate | None, ...]
    calibration_gaps: tuple[float | None, ...]
    distances: tuple[Distance, ...]


@dataclass(frozen=True)
class GroupQuality:
    """One group: what share of the table it has, and how well the table serves it.

    ``share``: of the held-out records, with 95 % interval; ``synthetic_share``: of the synthetic rows, None
    where these do not say who is of it. ``tables``: the synthetic one first.
    """

    name: str
    n: int
    share: Estimate
    synthetic_share: float | None
    tables: tuple[GroupTable, ...]


@dataclass(frozen=True)
class ColumnShares:
    """Shares of the cells of one column; ``is_ordered``: whether they are intervals of numbers or dates."""

    name: str
    labels: tuple[str, ...]
    is_ordered: bool
    held_out: tuple[float, ...]
    synthetic: tuple[float, ...]


@dataclass(frozen=True)
class Associations:
    """How strongly each two columns go together, from 0 to 1; None where that is not known."""

    names: tuple[str, ...]
    held_out: tuple[tuple[float | None, ...], ...]
    synthetic: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class SyntheticQuality:
    """What a synthetic table is worth. Made by :func:`evaluate_synthetic`.

    Attributes
    ----------
    target : str or None
        What was learnt; ``positive``: its class that probabilities are of, for two classes.
    measure : str
        "AUC", "R²", or empty without a target.
    chance : float or None
        Score that a model which learnt nothing stays below but once in 40 times, from the synthetic table
        with its target shuffled: well above 0.5 where columns go together, since a random direction has
        an AUC of its own.
    n_held_out : int
        Real records that everything is compared with.
    models : tuple of str
        By name.
    tables : tuple of TableQuality
        Synthetic; real and public rows alone where they were given; a constant, which gives one answer, and
        whose marginals are those of as many rows of the held-out records' columns, drawn each by itself.
    by : str or None
        The column of ``groups``.
    columns : tuple of ColumnShares
        Of every column, held out and synthetic.
    associations : Associations
        Of every pair.
    measured : tuple of (int, int)
        Of marginals of one, two and three columns: how many were measured, and how many there are.
    notes : tuple of str
        What else is to be known, in sentences.
    used_real : bool
        Whether training records themselves were looked at, without noise.
    """

    target: str | None
    positive: str | None
    measure: str
    chance: float | None
    n_held_out: int
    models: tuple[str, ...]
    tables: tuple[TableQuality, ...]
    by: str | None
    groups: tuple[GroupQuality, ...]
    columns: tuple[ColumnShares, ...]
    associations: Associations
    measured: tuple[tuple[int, int], ...]
    notes: tuple[str, ...]
    used_real: bool

    def table(self, name: str) -> TableQuality | None:
        """Take one of the tables, by name."""
        return next((one for one in self.tables if one.name == name), None)

    @property
    def synthetic(self) -> TableQuality:
        """The table that is judged."""
        return self.tables[0]

    @property
    def better_than_constant(self) -> bool | None:
        """Whether a model that learnt from it is better than always giving one answer; None: not known.

        True, if with one of the models the 95 % interval is above ``chance``, or it saves a twentieth of a
        constant's log loss, surely. False, if with none the score is a twentieth of the way from a constant's
        to 1, surely. Between, what looks learnt may be luck.
        """
        learnt = self.synthetic.learnt
        if any(self._beats_chance(one) for one in learnt):
            return True
        return None if any(self._beats_constant(one) for one in learnt) or not learnt else False

    @property
    def better_than_public(self) -> bool | None:
        """Whether every model learns more from it than from the public rows alone; None: not known.

        By the 95 % interval of the difference on the same records. False where that cannot be told.
        """
        gains = [one.beyond_public for one in self.synthetic.learnt]
        if not gains or None in gains:
            return None
        return all(one is not None and one.low > 0 for one in gains)

    @property
    def keeps_relations(self) -> bool | None:
        """Whether pairs of columns are nearer to held-out ones than as many rows without any relation.

        By a tenth of the way to what sampling alone explains, at least. None with a single column.
        """
        found, without = self._pairs(SYNTHETIC), self._pairs(CONSTANT)
        if found is None or without is None:
            return None
        way = max(0.0, without.mean - (found.sampling_mean or 0.0))
        return found.mean < without.mean - _LEAST_WAY * way

    @property
    def tone(self) -> str:
        """How to show the verdict: "good", "caution" or "plain"."""
        if False in (self.better_than_constant, self.better_than_public, self.keeps_relations):
            return "caution"
        if self.target and self.better_than_constant is None:
            return "caution"
        return "good" if self.better_than_public else "plain"

    @property
    def verdict(self) -> str:
        """Say in a line what the table is worth."""
        if self.better_than_constant is False:
            return f"No better than always giving one answer about {self.target}"
        if self.target and self.better_than_constant is None:
            return f"What it teaches about {self.target} may be luck"
        if not self.target:
            if self.keeps_relations is None:
                return "A single column: there is no relation to keep"
            kept = "nearer to real ones than without any relation"
            return f"Pairs of columns are {self._pairs_beside() or kept}"
        said = f"Better than always giving one answer about {self.target}"
        if self.better_than_public is not None:
            said = self._beside_public()
        beside = self._pairs_beside()
        return f"{said}; pairs of columns are {beside}" if beside else said

    @property
    def reason(self) -> str:
        """Give the grounds of the verdict, in a few sentences."""
        return " ".join([*self._on_learning(), *self._on_pairs()])

    @property
    def looked_at(self) -> str:
        """Say whose records were looked at, and what that means for this result."""
        said = (
            f"Everything is compared with {self.n_held_out:,} held-out records, as they are, without noise: "
            "if these are public, that costs nobody anything; if they are private, no budget protects the "
            "people in them from this result."
        )
        if self.used_real:
            said += (
                " The row “real” was made from the training records themselves, without noise: no guarantee "
                "covers it, so that this result is for benchmarks on public data only."
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Make a dictionary for JSON."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "better_than_constant": self.better_than_constant,
            "better_than_public": self.better_than_public,
            "keeps_relations": self.keeps_relations,
            **asdict(self),
            "looked_at": self.looked_at,
        }

    def __str__(self) -> str:
        parts = [f"{self.verdict}.", self.reason, "", *_aligned(self._rows()), ""]
        if self.groups:
            parts += [f"By {self.by}:", *_aligned(self._group_rows()), ""]
        parts += [f"Note: {note}" for note in self.notes]
        return "\n".join([*parts, self.looked_at])

    def _repr_html_(self) -> str:
        # The report lies above what is reported, so that it is looked up by name when it is asked.
        written: str = import_module("collegium.report.synthetic_quality").html_of(self)
        return written

    def _beats_constant(self, one: Learnt) -> bool:
        nothing = NOTHING[self.measure]
        return one.score.value >= nothing + _LEAST_GAIN[self.measure] and one.score.low > nothing

    def _beats_chance(self, one: Learnt) -> bool:
        assert self.chance is not None
        saved = one.loss_saved
        surely = saved is not None and saved.value >= _LEAST_SAVED and saved.low > 0
        return self._beats_constant(one) and (one.score.low > self.chance or surely)

    def _beside_public(self) -> str:
        better, worse = [], []
        for one in self.synthetic.learnt:
            assert one.beyond_public is not None
            if one.beyond_public.low > 0:
                better.append(one.model)
            elif one.beyond_public.high < 0:
                worse.append(one.model)
        if len(better) == len(self.models):
            return f"Better than the public rows alone for learning {self.target}"
        if len(worse) == len(self.models):
            return f"Worse than the public rows alone for learning {self.target}"
        if better or worse:
            said = [f"better with {one}" for one in better] + [f"worse with {one}" for one in worse]
            rest = [one for one in self.models if one not in (*better, *worse)]
            said += [f"no better with {one}" for one in rest]
            return f"Compared with the public rows alone: {', '.join(said)}"
        return f"No better than the public rows alone for learning {self.target}"

    def _pairs_beside(self) -> str:
        """Say of pairs of columns what is against them; empty: nothing."""
        found, public = self._pairs(SYNTHETIC), self._pairs(PUBLIC)
        if self.keeps_relations is False:
            return "hardly nearer to real ones than without any relation"
        if found and public and found.mean >= public.mean:
            return "further off than in the public rows alone"
        return ""

    def _on_learning(self) -> Iterator[str]:
        for one in self.synthetic.learnt:
            beside = [
                f"{name} {other.score.value:.3f}"
                for name in (REAL, PUBLIC, CONSTANT)
                if (table := self.table(name)) and (other := table.learnt_by(one.model))
            ]
            yield (
                f"{self.measure} with {one.model}: {_with_interval(one.score)}; {', '.join(beside)}."
            )
        if self.chance is not None:
            yield (
                "Models that learnt nothing (the target was shuffled) stay below "
                f"{self.chance:.3f} 39 times in 40."
            )
        if self.target and self.table(PUBLIC) is None:
            yield "Whether public rows alone would do is unknown: none were given."

    def _on_pairs(self) -> Iterator[str]:
        found = self._pairs(SYNTHETIC)
        if found is None:
            return
        beside = [
            f"{name} {other.mean:.3f}"
            for name in (REAL, PUBLIC, CONSTANT)
            if (other := self._pairs(name)) is not None
        ]
        if found.sampling_mean is not None:
            beside.insert(0, f"sampling alone {found.sampling_mean:.3f}")
        yield f"Total variation of pairs, on average: {found.mean:.3f}; {', '.join(beside)}."

    def _pairs(self, name: str) -> Distance | None:
        table = self.table(name)
        return table.distances[1] if table and len(table.distances) > 1 else None

    def _rows(self) -> list[list[str]]:
        head = ["", "rows"]
        head += [name for model in self.models for name in (f"{self.measure}, {model}", "accuracy")]
        if self.measure != AREA:
            head = [one for one in head if one != "accuracy"]
        ways = self.synthetic.distances
        head += [f"{one.ways}-way TV" for one in ways]
        rows = [head]
        for table in self.tables:
            row = [table.name, f"{table.n:,}"]
            for learnt in table.learnt:
                row.append(_with_interval(learnt.score))
                if learnt.accuracy is not None:
                    row.append(f"{learnt.accuracy.value:.3f}")
            row += [_mean_and_largest(one) for one in table.distances]
            rows.append(row)
        floor = [
            ""
            if one.sampling_mean is None
            else f"{one.sampling_mean:.3f}, {one.sampling_largest:.3f}"
            for one in ways
        ]
        if any(floor):
            rows.append(["sampling alone", "", *[""] * (len(head) - 2 - len(ways)), *floor])
        return rows

    def _group_rows(self) -> list[list[str]]:
        pair = min(2, len(self.synthetic.distances))
        head = ["", "held out", "share", "synthetic"]
        head += [f"{self.measure}, {model}" for model in self.models]
        head += [f"{pair}-way TV", "sampling alone"]
        rows = [head]
        for group in self.groups:
            own = group.tables[0]
            far = own.distances[pair - 1] if own.distances else None
            rows.append(
                [
                    group.name,
                    f"{group.n:,}",
                    f"{100 * group.share.value:.1f} %",
                    "" if group.synthetic_share is None else f"{100 * group.synthetic_share:.1f} %",
                    *["-" if one is None else _with_interval(one) for one in own.scores],
                    "-" if far is None else f"{far.mean:.3f}",
                    "-" if far is None or far.sampling_mean is None else f"{far.sampling_mean:.3f}",
                ]
            )
        return rows


def _with_interval(one: Estimate) -> str:
    return f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def _mean_and_largest(one: Distance) -> str:
    return f"{one.mean:.3f}, {one.largest:.3f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
