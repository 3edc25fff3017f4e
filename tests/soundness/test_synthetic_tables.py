"""Synthetic tables: record and replay on neighbours, planted mistakes, a distinguishing game, the account.

No noised vector moves further, between a table and one in which somebody's rows are blank (or other ones),
than its event charges that person; all earlier outputs are forced to be the same. That is shown for every
stage, group and number of rows, and that the bound is reached, so that the check can fail. Each mutant below
is a mistake that was made somewhere before, planted, and noticed by the same check.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from collegium import Budget, Policy, Schema, Synthesizer
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.neighbours import Neighbours
from collegium.attacks.bounds import binomial_bounds, mu_from_rates
from collegium.budgets import Budgets
from collegium.data.cells import Cells
from collegium.noise.sources import SeededNoise
from collegium.synthesis.run import Synthesis
from collegium.synthesis.settings import SynthesisSettings
from collegium.synthesis.stages import FIRST, PAIRS, SCORES, Stage
from collegium.weighted_sums import marginals
from collegium.weighted_sums.tables import InMemory
from collegium.weighted_sums.weighing import Weighing
from collegium.weighted_sums.weights import weights_of

LEVELS = {"strict": 4.0, "middle": 7.0, "open": 12.0}  # weights in another order than names
POLICY = Policy(LEVELS)
NAMES = list("abcdef")
SCHEMA = Schema(
    {
        **{name: {"kind": "category", "categories": list("012345")} for name in NAMES[:4]},
        "e": {"kind": "whole", "bounds": [0, 5], "missing": False},
        "f": {"kind": "category", "categories": ["no", "yes"], "missing": False},
    },
    rows_per_owner=3,
)
FACES: dict[str, dict[str, Any]] = {
    "target": {"target": "f", "goal": "both"},
    "only the target": {"target": "f", "goal": "target"},
    "fidelity": {"goal": "fidelity"},
    "structure": {"goal": "fidelity", "structure": [("a", "b"), ("c", "d", "e")]},
    "calibrated": {"target": "f", "goal": "both", "calibrated": True},
    "proportional": {"target": "f", "goal": "both", "weights": "proportional"},
    "uniform": {"target": "f", "goal": "both", "weights": "uniform"},
}


def row(kind: int, target: str = "yes") -> list[Any]:
    """One of six kinds of rows, in which all columns say the same."""
    return [str(kind)] * 4 + [kind, target]


MIXED: list[Any] = ["0", "1", "2", "4", 5, "yes"]  # no other row has two of these together
BLANK: list[Any] = [None] * 6
WATCHED = 15
RELATIONS = {"zero-out": Neighbours.ADD_OR_REMOVE, "replace-one": Neighbours.ANY_CHANGE}


def people(n: int = 500) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Rows, owners and levels: columns go together; owners o1 to o15 have 1 to 7 rows, of each level."""
    rng = np.random.default_rng(0)
    rows, owners, levels = [], [], []
    for number in range(1, n + 1):
        watched = number <= WATCHED
        for _ in range((1, 2, 3, 4, 7)[(number - 1) // 3] if watched else rng.integers(1, 4)):
            kind = 3 if watched else int(rng.integers(0, 6))
            rows.append(row(kind, "yes" if watched else str(rng.choice(["no", "yes"]))))
            owners.append(f"o{number}")
            levels.append(list(LEVELS)[number % 3])
    return pd.DataFrame(rows, columns=NAMES, dtype=object), owners, levels


@dataclass
class Tape:
    """Noise that keeps what it was added to; and, when it is replayed, returns what it returned before."""

    forced: list[Any] | None = None
    seen: list[tuple[str, Any, float]] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    is_private = False
    description = "recorded"
    excess = 1.0

    def noised(self, sensitive_sum: Any, noise: Any, *, query: int, purpose: str) -> Any:
        self.seen.append((purpose, np.array(sensitive_sum), noise.scale))
        its = SeededNoise(5).noised(sensitive_sum, noise, query=query, purpose=purpose)
        place = len(self.outcomes)
        self.outcomes.append(its if self.forced is None else self.forced[place])
        return self.outcomes[-1]


def drawn(frame, owners, levels, face, relation, noise):
    """All draws of a table, as the Python face makes them, and its plan."""
    settings = {key: value for key, value in FACES[face].items() if key != "target"}
    settings["structure"] = [", ".join(one) for one in settings.get("structure", ())]
    table = InMemory(frame, POLICY.assign(levels, owners=owners), SCHEMA)
    run = Synthesis(
        table,
        Cells(SCHEMA),
        FACES[face].get("target"),
        SynthesisSettings(**settings),
        RELATIONS[relation],
    )
    found: dict[int, dict[str, Any]] = {}
    for number in range(1, len(run.events) + 1):
        found[number] = run.draw(number, found, noise)
    return run, found


def with_rows(frame, owners, levels, owner, rows):
    """The same table, with other rows of one owner, another number of them, and first instead of last."""
    others = [place for place, name in enumerate(owners) if name != owner]
    level = levels[owners.index(owner)]
    new = pd.DataFrame(rows, columns=NAMES, dtype=object)
    return (
        pd.concat([new, frame.iloc[others]], ignore_index=True),
        [owner] * len(rows) + [owners[place] for place in others],
        [level] * len(rows) + [levels[place] for place in others],
    )


def neighbours_of(frame, owners, levels, relation):
    """Watched owners, and a table in which each one's rows are blank; or other ones, more or fewer."""
    for number in range(1, WATCHED + 1):
        owner = f"o{number}"
        mine = [place for place, name in enumerate(owners) if name == owner]
        if relation == "zero-out":
            changed = frame.copy()
            changed.iloc[mine] = BLANK
            yield owner, (changed, owners, levels)
            continue
        mixed = MIXED if number % 2 else [*MIXED[:5], "no"]
        for rows in ([mixed] * 3, [mixed] * 7, [row(0, "no")], [BLANK] * 2)[number % 3 :][:2]:
            yield owner, with_rows(frame, owners, levels, owner, rows)


def replayed(face: str, relation: str) -> dict[str, float]:
    """Hold every vector's movement against its event. Returns the largest share of it that was reached."""
    frame, owners, levels = people()
    first = Tape()
    run, found = drawn(frame, owners, levels, face, relation, first)
    groups, events = list(run.table.groups), run.events
    names = [one["stage"] for one in found.values()]
    reached = dict.fromkeys(names, 0.0)
    for owner, changed in neighbours_of(frame, owners, levels, relation):
        second = Tape(first.outcomes)
        other, again = drawn(*changed, face, relation, second)
        group = groups.index(levels[owners.index(owner)])
        # All that is not noised is the same: cells, charges, noise, what is measured next.
        assert other.events == events and other.cells.edges == run.cells.edges
        assert again == found and [one[2] for one in first.seen] == [one[2] for one in second.seen]
        for event, (name, value, scale), (_, moved, _) in zip(
            events, first.seen, second.seen, strict=True
        ):
            mu = float(np.sqrt(np.sum((value - moved).astype(float) ** 2)) / scale)
            charge = float(np.sqrt(event.mu_squared[group]))
            assert mu <= charge * (1 + 1e-9), f"{name}: {owner} moved it by {mu / charge:.3f}"
            reached[name] = max(reached[name], mu / charge)
    return reached


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_nobody_moves_what_is_noised_further_than_is_charged(face, relation):
    reached = replayed(face, relation)
    assert list(reached) == {"only the target": [FIRST], "structure": [FIRST, PAIRS]}.get(
        face, [FIRST, SCORES, PAIRS]
    )
    for name, share in reached.items():
        assert share > 0.95, f"{name} reaches {share:.3f} only: the check could not fail"


# ------------------------------------------------------------------- mistakes that must be noticed


def one_price_for_all_scores(patch):
    sd = Stage.sd
    patch.setattr(Stage, "sd", lambda self, count: sd(self, 1 if self.name == SCORES else count))


def no_root_of_the_number(patch):
    patch.setattr(Stage, "sd", lambda self, count: self.weighing.scale)


def charged_by_place(patch):
    event = Weighing.event

    def turned(self, diameter, neighbours):
        return event(self.weighed(self.steps[::-1].copy()), diameter, neighbours)

    patch.setattr(Weighing, "event", turned)


def rows_not_capped(patch):
    patch.setattr(Weighing, "caps", lambda self, batch, width: self.steps[batch.group])


def blank_rows_are_missing(patch):
    patch.setattr(
        marginals, "_blank", lambda arrays: np.zeros(len(next(iter(arrays.values()))), dtype=bool)
    )


def replaced_is_as_blanked(patch):
    event, of = Weighing.event, Weighing.of
    patch.setattr(
        Weighing, "of", lambda weights, laplace, most, far: of(weights, laplace, most, 1.0)
    )
    patch.setattr(Weighing, "event", lambda self, diameter, kind: event(self, 1.0, kind))


@pytest.mark.parametrize(
    ("mutant", "face", "relation"),
    [
        (one_price_for_all_scores, "target", "zero-out"),
        (one_price_for_all_scores, "fidelity", "replace-one"),
        (no_root_of_the_number, "only the target", "zero-out"),
        (no_root_of_the_number, "structure", "replace-one"),
        (charged_by_place, "only the target", "zero-out"),
        (rows_not_capped, "only the target", "zero-out"),
        (rows_not_capped, "fidelity", "replace-one"),
        (blank_rows_are_missing, "only the target", "zero-out"),
        (blank_rows_are_missing, "fidelity", "zero-out"),
        (replaced_is_as_blanked, "only the target", "replace-one"),
    ],
)
def test_planted_mistakes_are_noticed(mutant, face, relation, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match="moved it by"):
        replayed(face, relation)


# ------------------------------------------------------------------- random tables

KINDS = Schema(
    {
        "age": {"kind": "whole", "bounds": [-5, 90], "bins": [-5, 30, 60, 90]},
        "pay": {"kind": "number", "bounds": [-10, 50], "bins": [-10, 0, 50], "missing": False},
        "ward": {"kind": "category", "categories": ["a", "b", "c"], "missing": False},
        "sick": {"kind": "flag", "missing": False},
        "day": {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"]},
    },
    rows_per_owner=2,
)
VALUES = {
    "age": (-5, 90, -100, 200, None, 30, "n/a"),
    "pay": (-10, 50, 20, None, 1e9, "?"),
    "ward": ("a", "b", "c", None, "zz"),
    "sick": (True, False, None, "perhaps"),
    "day": ("2020-01-01", "2020-12-31", None, "1999-01-01", "soon"),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("face", [{}, {"calibrated": True}, {"goal": "both"}])
def test_one_of_six_people_moves_each_vector_by_no_more_than_is_charged(relation, face):
    """Tables so small that everybody matters; unreadable and missing cells in columns that promise none."""
    rng = np.random.default_rng([len(relation), len(face)])
    target = "sick" if face.get("goal") == "both" else None
    nearest = 0.0
    for _ in range(60):
        owners = [f"o{one}" for one in range(6) for _ in range(rng.integers(1, 5))]
        groups = [int(name[1:]) % 3 for name in owners]
        budgets = Budgets({"x": Budget(9.0), "y": Budget(1.5), "z": Budget(4.0)}, groups, owners)
        owner = int(rng.integers(6))

        def some_row(rng=rng):
            return [values[rng.integers(len(values))] for values in VALUES.values()]

        rows = [some_row() for _ in owners]
        unreadable = ["n/a", "?", "zz", "perhaps", "soon"]
        empty = [None] * 5
        others = [
            (some_row() if relation == "replace-one" else unreadable if rng.integers(2) else empty)
            if name == f"o{owner}"
            else one
            for name, one in zip(owners, rows, strict=True)
        ]
        tapes: list[Tape] = []
        for table in (rows, others):
            frame = pd.DataFrame(table, columns=list(KINDS), dtype=object)
            tape = Tape(tapes[0].outcomes if tapes else None)
            run = Synthesis(
                InMemory(frame, budgets, KINDS),
                Cells(KINDS),
                target,
                SynthesisSettings(**face),
                RELATIONS[relation],
            )
            found: dict[int, dict[str, Any]] = {}
            for number in range(1, len(run.events) + 1):
                found[number] = run.draw(number, found, tape)
            tapes.append(tape)
        group = list(run.table.groups).index("xyz"[owner % 3])
        for event, (_, one, scale), (_, other, _) in zip(
            run.events, tapes[0].seen, tapes[1].seen, strict=True
        ):
            mu = float(np.sqrt(np.sum((one - other).astype(float) ** 2)) / scale)
            charge = float(np.sqrt(event.mu_squared[group]))
            assert mu <= charge * (1 + 1e-9)
            nearest = max(nearest, mu / charge)
    assert nearest > 0.6  # rows at random: the test above shows that bounds are reached


# ------------------------------------------------------------------- the account


@pytest.mark.parametrize("rule", ["saturating", "proportional", "uniform"])
@pytest.mark.parametrize(
    "face", ["target", "only the target", "fidelity", "structure", "calibrated"]
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_draws_cost_what_weights_allow_and_nobody_more_than_their_budget(rule, face, relation):
    """Events add up to the square of each group's weight, rounded down by a millionth of the largest."""
    rng = np.random.default_rng(1)
    settings = {key: value for key, value in FACES[face].items() if key != "target"}
    settings["structure"] = [", ".join(one) for one in settings.get("structure", ())]
    for rows_per_owner, n_groups in product([1, 3, 50], [1, 2, 7]):
        epsilons = np.exp(rng.uniform(np.log(0.01), np.log(20), n_groups))
        deltas = 10.0 ** rng.integers(-9, -2, n_groups)
        granted = {
            f"g{place}": Budget(float(e), float(d))
            for place, (e, d) in enumerate(zip(epsilons, deltas, strict=True))
        }
        people = rng.integers(1, 40, n_groups)
        codes = np.repeat(np.arange(n_groups), people)
        owners = [f"p{number}" for number in range(len(codes))]
        budgets = Budgets(granted, codes, owners)
        frame = pd.DataFrame([row(1)] * len(codes), columns=NAMES)
        schema = Schema(dict(SCHEMA.columns), rows_per_owner)
        run = Synthesis(
            InMemory(frame, budgets, schema),
            Cells(schema),
            FACES[face].get("target"),
            SynthesisSettings(**{**settings, "weights": rule}),
            RELATIONS[relation],
        )
        most = np.array([gdp_mu(one.epsilon, one.delta) for one in run.table.groups.values()])
        spent = np.sum([event.mu_squared for event in run.events], axis=0)
        assert (spent <= most**2).all()
        # By another way: what the rule gives these budgets, of which nothing but rounding is lost.
        far = 1.0 if relation == "zero-out" else np.sqrt(2)
        cells = run._cells_each
        noise = (far * rows_per_owner) ** 2 * len(run.first) * 2
        weights = weights_of(rule, most, run.table.sizes, noise, (1 - 1 / cells) / cells)
        lost = weights.max() * 2.0**-19
        assert (np.sqrt(spent) <= weights * (1 + 1e-12)).all()
        assert (np.sqrt(spent) >= weights * (1 - 1e-9) - lost).all()
        if rule == "proportional":
            assert np.sqrt(spent) == pytest.approx(most, abs=lost + 1e-9)
        assert sum(stage.share for stage in run.stages.drawn) == pytest.approx(1, abs=1e-12)
        for stage in run.stages.drawn:
            share = stage.event.mu_squared / np.maximum(spent, 1e-300)
            heard = run.stages.weights > 1e-4
            assert share[heard] == pytest.approx(np.full(heard.sum(), stage.share), rel=0.02)


def test_groups_are_charged_by_name_whatever_their_order():
    """Trap 6: 54, 37 and 9 in a hundred, with budgets in another order than their names."""
    rng = np.random.default_rng(2)
    levels = rng.choice(["zebra", "apple", "middle"], 900, p=[0.54, 0.37, 0.09])
    granted = {"zebra": 1.0, "apple": 3.0, "middle": 2.0}
    frame = pd.DataFrame([row(int(one)) for one in rng.integers(0, 6, 900)], columns=NAMES)
    spent = {}
    for order in (["zebra", "apple", "middle"], ["middle", "zebra", "apple"]):
        policy = Policy({name: granted[name] for name in order})
        table = Synthesizer(SCHEMA, weights="proportional", noise_seed=0)
        table.fit(frame, policy.assign(levels))
        spent[tuple(order)] = {one.group: one.epsilon_spent for one in table.privacy_.groups}
    first, second = spent.values()
    for name, epsilon in granted.items():
        assert first[name] == pytest.approx(second[name], rel=1e-9)
        assert 0.999 * epsilon < first[name] <= epsilon


@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
def test_noise_is_fresh_and_seeded_noise_is_said_to_be_none():
    frame, _, levels = people(60)
    budgets = POLICY.assign(levels)

    def shares(**more):
        table = Synthesizer(SCHEMA, goal="fidelity", **more).fit(frame, budgets)
        return table.marginals_["share"].to_numpy(), table.privacy_

    (one, private), (other, _) = shares(), shares()
    assert (one != other).any()
    (seeded, told), (again, _) = shares(noise_seed=3), shares(noise_seed=3)
    assert (seeded == again).all()
    said = [" ".join(one.sentences()) for one in (private, told)]
    assert "not private" not in said[0].lower() and "not private" in said[1].lower()


# ------------------------------------------------------------------- a distinguishing game

RUNS, ERROR = 3_000, 1e-4


@pytest.mark.parametrize(
    ("face", "relation"), [("target", "zero-out"), ("fidelity", "replace-one")]
)
def test_the_best_attack_on_what_is_drawn_finds_something_and_less_than_is_claimed(face, relation):
    """The likelihood ratio of all draws, with real noise, earlier outputs being what they were.

    A threshold is learnt on half of the runs and judged on the others; each Clopper-Pearson limit fails with
    probability 1e-4. Group by group: the claim is what each one's member was charged.
    """
    frame, owners, levels = people(120)
    first = Tape()
    run, _ = drawn(frame, owners, levels, face, relation, first)
    for owner in ("o7", "o8", "o9"):  # three rows each, and one of each level
        mine = [place for place, name in enumerate(owners) if name == owner]
        changed = (frame.copy(), owners, levels)
        changed[0].iloc[mine] = BLANK if relation == "zero-out" else MIXED
        second = Tape(first.outcomes)
        drawn(*changed, face, relation, second)
        group = list(run.table.groups).index(levels[mine[0]])
        charged = sum(float(event.mu_squared[group]) for event in run.events)
        ratio = np.zeros((2, RUNS))
        for (name, one, scale), (_, other, _), stage in zip(
            first.seen, second.seen, run.stages.drawn, strict=True
        ):
            its = stage.noise({FIRST: len(run.first), SCORES: len(run.candidates)}.get(name, 1))
            its = type(its)(its.kind, scale)
            moved = np.flatnonzero(one != other)
            by = (one - other)[moved].astype(float)
            for side, sums in enumerate((other, one)):
                for number in range(RUNS):
                    noise = SeededNoise(2 * number + side)
                    noisy = noise.noised(sums[moved], its, query=1, purpose=name)
                    ratio[side, number] += float(by @ (noisy - other[moved] - by / 2)) / scale**2
        half = RUNS // 2
        edges = np.quantile(ratio, np.linspace(0.02, 0.98, 60))

        def bound(at: float, part: slice, ratio=ratio, half=half) -> float:
            hits, alarms = (int((ratio[side, part] >= at).sum()) for side in (1, 0))
            low = binomial_bounds(hits, half, ERROR)[0]
            return float(mu_from_rates(low, binomial_bounds(alarms, half, ERROR)[1]))

        best = max(edges, key=lambda at: bound(at, slice(half)))
        found, claim = bound(best, slice(half, None)), np.sqrt(charged)
        assert 0.3 * claim < found <= claim
