"""Membership inference on what `cg.Synthesizer` releases, by people of three levels: ε = 1, 2 and 3.

Adult, its levels dealt at random to 54, 37 and 9 %. In each release some people of each level are asked
about; a coin decides whether their row is there or blank, which is what the account's neighbours are: who
takes part, and so every public number, is the same. Of each release every noisy number is seen, in the order
in which it was drawn. Three attackers (:mod:`collegium.attacks.marginals`):

- *knows all others*: the best test there is. What is noised, without the person, is known: marginals less
  their weight where they are in, and as they are where not; the same for the scores of pairs, of which each
  moves by |h + w - e| - |h - e| in the person's cell of h people and e expected. What earlier draws decide
  (coarse cells, expected counts, which pairs are measured) is the same with and without the person, so that
  the likelihood ratios of the draws multiply.
- *knows the population*: the noisy marginals, beside Adult's test rows.
- *sees rows*: as many synthetic rows as people, beside Adult's test rows, of fewer releases.

People of one release share its noise, so intervals (95 %) are of releases drawn with replacement. Bounds are
those of μ that was charged: Φ(μ/√2) for the area under the curve and Φ(Φ⁻¹(α) + μ) for what is found at α.
By default those of ε = 3 weigh no more than those of ε = 2 where there are many people, and pay no more.

    python -m benchmarks.synthetic_membership            # 22,400 people of each level in each case; minutes
    python -m benchmarks.synthetic_membership --quick    # 1,600
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from benchmarks.synthesis import granted
from benchmarks.synthetic_data import tables
from collegium import Budgets, Schema
from collegium.accounting.neighbours import Neighbours
from collegium.attacks.marginal_releases import SomeBlank
from collegium.attacks.marginals import (
    Cliques,
    scores_knowing_others,
    scores_knowing_population,
    scores_of_rows,
)
from collegium.data.cells import Cells
from collegium.noise.grid import GRID
from collegium.noise.sources import noise_from
from collegium.synthesis.run import Synthesis
from collegium.synthesis.settings import SynthesisSettings
from collegium.synthesis.stages import SCORES
from collegium.weighted_sums.tables import InMemory

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

RATES = (0.001, 0.01)
ATTACKERS = ("knows all others", "knows the population", "sees rows")
_RESAMPLED = 400
_LEAST_ALARMS = 8
"""A share of false alarms is judged where so many are expected among those who are out."""


@dataclass(frozen=True)
class Case:
    """What is released.

    ``n``: so many people; default: all. ``asked``: people of each level in each release. ``with_rows``:
    releases whose rows are looked at, too.
    """

    name: str
    n: int | None = None
    epsilons: tuple[float, ...] = (1.0, 2.0, 3.0)
    goal: str = "auto"
    weights: str = "saturating"
    asked: int = 128
    with_rows: int = 12


CASES = (
    Case("32,561 people, goal auto"),
    Case("32,561 people, goal auto, weights proportional", weights="proportional", with_rows=0),
    Case("2,000 people, goal target", n=2_000, goal="target", asked=8, with_rows=150),
)
CONTROLS = (
    replace(CASES[0], name="control: 32,561 people, ε = 1,000,000", epsilons=(1e6,), with_rows=4),
    replace(CASES[2], name="control: 2,000 people, ε = 1,000,000", epsilons=(1e6,)),
)


class Attacked:
    """A table, and what attackers know of it: ``reference``, cells of other people's records.

    ``charged`` (n_groups,): μ of all draws.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        budgets: Budgets,
        schema: Schema,
        target: str,
        settings: SynthesisSettings,
        reference: pd.DataFrame,
    ) -> None:
        self.cells = Cells(schema)
        self.table = SomeBlank(InMemory(frame, budgets, schema), self.cells.names)
        self.codes = self.cells.codes_of(self.table.arrays())
        self.reference = self.cells.codes(reference)
        self._about = (self.cells, target, settings, Neighbours.ADD_OR_REMOVE)
        self.charged = np.sqrt(np.sum([one.mu_squared for one in self.planned().events], axis=0))

    def planned(self) -> Synthesis:
        """Plan a release of the table as it is now."""
        return Synthesis(self.table, *self._about)

    def released(self, blank: Flags, seed: int) -> tuple[Synthesis, dict[int, dict[str, Any]]]:
        """Draw everything, with some rows blank."""
        self.table.blank = blank
        run, noise = self.planned(), noise_from(seed)
        drawn: dict[int, dict[str, Any]] = {}
        for number in range(1, len(run.events) + 1):
            drawn[number] = run.draw(number, drawn, noise)
        return run, drawn

    def scores(
        self, run: Synthesis, drawn: Mapping[int, Mapping[str, Any]], asked: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """Score people by the noisy numbers: knowing all others, and knowing the population."""
        present, names = ~self.table.blank, list(self.cells.names)
        is_in = present[asked]
        known = run._known(drawn)  # what anybody makes of the first draw
        own_cells = [np.arange(size) for size in self.cells.sizes]
        coarse_cells = [one.place for one in known.coarse]
        best, good = np.zeros(len(asked)), np.zeros(len(asked))
        for number, one in drawn.items():
            stage = run.stages.drawn[number - 1]
            steps = stage.weighing.steps[self.table.group].astype(np.float64)
            places = own_cells if number == 1 else coarse_cells
            coded, reference = (
                np.stack([place[of] for place, of in zip(places, codes.T, strict=True)], axis=1)
                for codes in (self.codes, self.reference)
            )
            sizes = [int(place.max()) + 1 for place in places]
            values, sd = np.asarray(one["steps"], dtype=np.float64), one["sd"] / GRID
            if one["stage"] == SCORES:
                cliques = Cliques(run.candidates, sizes)
                total = known.fraction * run._most_weight(stage.weighing.weights) / GRID
                expected = [
                    np.rint(table * total).ravel() for table in run._expected(known, run.candidates)
                ]
                exact = cliques.tables(coded[present], steps[present])
                best += _of_pair_scores(
                    cliques, coded[asked], steps[asked], values, exact, expected, is_in, sd
                )
                continue
            cliques = Cliques(
                [tuple(names.index(name) for name in columns) for columns in one["columns"]], sizes
            )
            noisy = np.split(values, np.cumsum(cliques.n_cells)[:-1])
            exact = cliques.tables(coded[present], steps[present])
            sds = [sd] * len(noisy)
            best += scores_knowing_others(
                cliques, coded[asked], steps[asked], noisy, exact, is_in, sds
            )
            good += scores_knowing_population(
                cliques, coded[asked], steps[asked], noisy, reference, steps[present], sds
            )
        return best, good

    def scores_by_rows(
        self,
        run: Synthesis,
        drawn: Mapping[int, Mapping[str, Any]],
        asked: NDArray[np.intp],
        rng: np.random.Generator,
    ) -> Floats:
        """Score people by synthetic rows, as many as there are people."""
        model = run.model(drawn)
        rows = self.cells.codes_of(model.arrays(model.n_rows, rng))
        measured = dict.fromkeys(one.columns for one in model.marginals)
        cliques = Cliques(list(measured), self.cells.sizes)
        return scores_of_rows(cliques, self.codes[asked], rows, self.reference)


def _of_pair_scores(
    cliques: Cliques,
    codes: Codes,
    weights: Floats,
    values: Floats,
    exact: Sequence[Floats],
    expected: Sequence[Floats],
    is_in: Flags,
    sd: float,
) -> Floats:
    """Logarithms of likelihood ratios of the noisy L1 errors of pairs, all others being known."""
    own = weights[:, None]
    others = cliques.read(exact, codes) - own * is_in[:, None]
    gap = others - cliques.read(expected, codes)
    moved = np.abs(gap + own) - np.abs(gap)
    sums = np.array([np.abs(a - b).sum() for a, b in zip(exact, expected, strict=True)])
    without = sums - moved * is_in[:, None]
    return np.asarray(((moved * (values - without) - moved**2 / 2) / sd**2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of people in many releases; one entry for each. ``release``: number of each one's."""

    scores: Floats
    is_in: Flags
    group: NDArray[np.intp]
    release: NDArray[np.intp]

    def of_group(self, group: int) -> Scored:
        """Those of one level."""
        own = self.group == group
        return Scored(self.scores[own], self.is_in[own], self.group[own], self.release[own])


def attacked(known: Attacked, case: Case, releases: int) -> dict[str, Scored]:
    """Release a table many times, and attack it each time."""
    parts: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ATTACKERS}
    members = [np.flatnonzero(known.table.group == one) for one in range(len(known.charged))]
    for number in range(releases):
        rng = np.random.default_rng([7, number])
        asked = np.concatenate([rng.choice(one, case.asked, replace=False) for one in members])
        blank = np.zeros(len(known.codes), dtype=bool)
        blank[asked] = rng.random(len(asked)) < 0.5
        run, drawn = known.released(blank, number)
        found = dict(zip(ATTACKERS, known.scores(run, drawn, asked), strict=False))
        if number < case.with_rows:
            found["sees rows"] = known.scores_by_rows(run, drawn, asked, rng)
        about = (~blank[asked], known.table.group[asked], np.full(len(asked), number))
        for name, scores in found.items():
            parts[name].append((scores, *about))
    return {
        name: Scored(*(np.concatenate(one) for one in zip(*of, strict=True)))
        for name, of in parts.items()
        if of
    }


def curve(inside: Floats, outside: Floats, rates: Sequence[float]) -> list[float]:
    """Area under the curve, and what is found at some shares of false alarms.

    ``inside``, ``outside`` (n,): how often each person counts as in, or as out, highest score first.
    """
    found, alarms = np.cumsum(inside), np.cumsum(outside)
    area = float((inside * (alarms[-1] - alarms)).sum() / (found[-1] * alarms[-1]))
    places = [int(np.searchsorted(alarms, rate * alarms[-1], side="right")) for rate in rates]
    return [area, *(float(found[at - 1] / found[-1]) if at else 0.0 for at in places)]


def judged(one: Scored, rates: Sequence[float] = RATES, seed: int = 0) -> list[Floats]:
    """Value and 95 % interval of the area and of what is found at each rate, by releases drawn anew."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(one.scores))  # so that equal scores are in random order
    order = order[np.argsort(-one.scores[order], kind="stable")]
    is_in, release = one.is_in[order].astype(np.float64), one.release[order]
    n = int(release.max()) + 1
    resampled = []
    for _ in range(_RESAMPLED):
        times = rng.multinomial(n, np.full(n, 1 / n))[release]
        inside, outside = is_in * times, (1 - is_in) * times
        if inside.any() and outside.any():
            resampled.append(curve(inside, outside, rates))
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return list(np.stack([curve(is_in, 1 - is_in, rates), low, high], axis=1))


def lines_of(known: Attacked, found: Mapping[str, Scored]) -> Iterator[str]:
    """Write a line for each attacker and level, what was found beside what the account allows."""
    for attacker, all_levels in found.items():
        for group, name in enumerate(known.table.groups):
            one, mu = all_levels.of_group(group), float(known.charged[group])
            n_out = int((~one.is_in).sum())
            rates = [rate for rate in RATES if rate * n_out >= _LEAST_ALARMS]
            area, *at = judged(one, rates)
            told = ["{:.3f} [{:.3f}, {:.3f}]".format(*area) + f" ≤ {ndtr(mu / math.sqrt(2)):.3f}"]
            for rate in RATES:
                if rate in rates:
                    share = [100 * value for value in at[rates.index(rate)]]
                    most = 100 * ndtr(ndtri(rate) + mu)
                    told.append("{:.2f} [{:.2f}, {:.2f}]".format(*share) + f" ≤ {most:.2f}")
                else:
                    told.append("–")
            people = f"{int(one.is_in.sum()):,} / {n_out:,}"
            yield f"| {attacker} | {name} | {mu:.3f} | {people} | {' | '.join(told)} |"


def prepared(case: Case) -> Attacked:
    """Load Adult, and deal out levels."""
    data = tables("adult")
    order = np.random.default_rng(5).permutation(len(data.train))
    frame = data.train.iloc[order[: case.n]]
    each = granted(case.epsilons, None, len(frame), 0)
    settings = SynthesisSettings(goal=case.goal, weights=case.weights)
    budgets = Budgets.from_epsilons(each, 1e-5)
    return Attacked(frame, budgets, data.schema, data.target, settings, data.test)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=22_400, help="people of each level")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    given = parser.parse_args(arguments)
    trials = 1_600 if given.quick else given.trials
    for case in (*CASES, *CONTROLS):
        if given.only not in case.name:
            continue
        known = prepared(case)
        few = min(trials, 3_200) if case in CONTROLS else trials
        found = attacked(known, case, max(2, math.ceil(few / case.asked)))
        names = ("attacker", "level", "μ", "in / out", "AUC ≤ bound")
        names += tuple(f"% found at {100 * rate:g} % ≤ bound" for rate in RATES)
        print(f"\n{case.name}\n\n| {' | '.join(names)} |\n" + "|---" * len(names) + "|")
        print("\n".join(lines_of(known, found)), flush=True)


if __name__ == "__main__":
    main()
