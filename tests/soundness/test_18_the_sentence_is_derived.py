"""What a statement says of neighbours is true of the files that a study reads, case by case.

Owners from the first to the last change in every way that a sentence allows: nobody else's teacher, side or
level may change. And in the ways that it does not allow somebody's does, or the sentence would be weaker than
needed.
"""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from collegium import Budget, GNMax, Policy, PrivacyWarning, Upsampling, Vanishing, Weighting
from collegium.accounting import Neighbours
from collegium.accounting.neighbours import Arrangement
from collegium.errors import ConfigError, InputError
from collegium.models.catalogue import build_model
from collegium.pate.pipeline import PateRun
from collegium.pate.recipe import Recipe
from collegium.study.config import config_from
from collegium.study.runner import plan_study
from collegium.study.streaming import load_streamed_data

LEVELS = {"high": 40.0, "low": 80.0}
SIZES = {"high": 43, "low": 24}
N_OWNERS, TRIED = 60, 3


def table(seed=5) -> pd.DataFrame:
    """One to three records of each of some people; `who` tells whose a record is, wherever it goes."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(N_OWNERS), rng.integers(1, 4, N_OWNERS))
    rng.shuffle(owner)
    return pd.DataFrame(
        {
            "who": owner * 100.0,
            "age": rng.integers(18, 90, len(owner)),
            "city": rng.choice(["a", "b"], len(owner)),
            "sick": rng.choice(["no", "yes"], len(owner)),
            "privacy": np.where(owner % 3 == 0, "low", "high"),
            "patient": [f"p{number}" for number in owner],
        }
    )


#: Names of what may be done with one owner's rows; each returns another table.
CHANGES = {
    "removed": lambda frame, rows: frame.drop(index=np.flatnonzero(rows)),
    "replaced": lambda frame, rows: frame.assign(age=frame["age"].where(~rows, 17)),
    "fewer": lambda frame, rows: frame.drop(index=np.flatnonzero(rows)[1:]),
    "more": lambda frame, rows: pd.concat([frame, frame[rows]], ignore_index=True),
    "blanked": lambda frame, rows: frame.assign(city=frame["city"].where(~rows, "?")),
}

OWNERS = {"data": {"owner": "patient"}}
SPLIT = {"data": {"public_records": 20, "test_records": 10, "private_records": 60}}
REST = {"data": {"public_records": 20, "test_records": 10, "private_records": 85}}
BALANCED = {"teachers": {"assignment": "balanced"}}
LOT = {"privacy": {"column": None, "shares": {"high": 0.6, "low": 0.4}}}
DECLARED = {"privacy": {"sizes": SIZES}}

#: Settings, and which changes the sentence allows. A plan is fixed where sizes are not declared.
CASES = {
    "owners, sizes declared": (OWNERS, DECLARED, {"removed", "replaced", "fewer", "more", "blanked"}),
    "owners": (OWNERS, {"removed", "replaced", "fewer", "more", "blanked"}),
    "rows": ({"replaced", "blanked"},),
    "rows, sizes declared": (DECLARED, {"replaced", "blanked"}),
    "balanced": (OWNERS, BALANCED, {"replaced", "fewer", "more"}),
    "balanced rows": (BALANCED, {"replaced"}),
    "split with spare records": (OWNERS, SPLIT, {"replaced"}),
    "split": (OWNERS, REST, {"replaced"}),
    "split of rows": (SPLIT, {"replaced"}),
    "levels by lot": (OWNERS, LOT, {"replaced"}),
    "levels by lot, rows": (LOT, {"replaced"}),
    "all of it": (OWNERS, BALANCED, SPLIT, LOT, {"replaced"}),
}  # fmt: skip


def settings(*parts):
    given = {
        "study": {"seed": 3},
        "data": {
            "private": "private.csv",
            "target": "sick",
            "classes": ["no", "yes"],
            "missing": "?",
        },
        "privacy": {"column": "privacy", "levels": LEVELS, "delta": 1e-6},
        "teachers": {"n_teachers": 6},
        "aggregation": {"aggregator": "gnmax", "sigma": 40.0},
        "run": {"n_jobs": 1},
    }
    for part in parts:
        for section, keys in part.items():
            given[section] = {**given.get(section, {}), **keys}
    if "public_records" not in given["data"]:
        given["data"]["public"] = "public.csv"
    named, levelled = "owner" in given["data"], given["privacy"]["column"] is not None
    given["data"]["exclude"] = ["patient"] * (not named) + ["privacy"] * (not levelled)
    return {
        section: {k: v for k, v in keys.items() if v is not None} for section, keys in given.items()
    }


def planned(folder, frame: pd.DataFrame, *parts) -> PateRun:
    frame.to_csv(folder / "private.csv", index=False)
    given = settings(*parts)
    table(9).drop(columns=["sick", "patient", "privacy"]).to_csv(folder / "public.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return plan_study(config_from(given, folder), on_ledger=False).plan.run


def places(run: PateRun, plan) -> dict[int, list]:
    """What each teacher sees, by whose records: the rows themselves, in order, with level."""
    data = run.records
    assignment = plan.assign(data.budgets, run.recipe.key, run.recipe.assignment)
    rows = np.column_stack([data.X["who"], data.X["age"].astype(float), data.codes])
    levels = data.budgets.record_groups()
    return {
        teacher: [(*rows[row].tolist(), levels[row]) for row in shard]
        for teacher, shard in enumerate(assignment.shards())
    }


def others_stay(before: PateRun, after: PateRun, whose: float) -> bool:
    """Whether nobody else's records are with another teacher, in another order or on another side."""
    one, other = places(before, before.plan), places(after, before.plan)
    for teacher in range(before.plan.n_teachers):
        theirs = [[row for row in side[teacher] if row[0] != whose] for side in (one, other)]
        if theirs[0] != theirs[1]:
            return False
        untouched = all(row[0] != whose for side in (one, other) for row in side[teacher])
        if untouched and one[teacher] != other[teacher]:
            return False
    sides = zip(
        (before.records.X_public, before.records.X_test),
        (after.records.X_public, after.records.X_test),
        strict=True,
    )
    return all(
        a is b is None or a.reset_index(drop=True).equals(b.reset_index(drop=True))
        for a, b in sides
    )


def attempts(folder, frame, run, parts, change):
    """For some owners on the private side, whether everybody else stays where they are."""
    private = np.unique(run.records.X["who"].to_numpy())
    for whose in private[np.linspace(0, len(private) - 1, TRIED).astype(int)]:
        rows = frame["who"].to_numpy() == whose
        try:
            yield others_stay(run, planned(folder, CHANGES[change](frame, rows), *parts), whose)
        except InputError:  # a split that asks for more than there is: refused, nothing comes out
            yield False


@pytest.mark.parametrize("name", CASES)
def test_everybody_else_stays_where_they_are_in_just_the_ways_that_the_sentence_allows(
    name, tmp_path
):
    *parts, allowed = CASES[name]
    frame = table()
    if OWNERS not in parts:
        frame["who"] = np.arange(len(frame)) * 100.0  # each row is an owner
    run = planned(tmp_path, frame, *parts)
    sentence = run.arrangement.sentence
    for change in allowed:
        assert all(attempts(tmp_path, frame, run, parts, change)), (name, change)
    never = set(CHANGES) - allowed
    moves = (not all(attempts(tmp_path, frame, run, parts, change)) for change in sorted(never))
    assert not never or any(moves), (name, "the sentence could say more", never)
    assert ("blanked" in sentence or "left blank" in sentence or "removed" in sentence) == (
        "blanked" in allowed
    )
    assert ("removed" in sentence) == (name == "owners, sizes declared")
    assert (run.arrangement.neighbours is Neighbours.REPLACE) == ("blanked" not in allowed)


def test_a_first_row_that_is_taken_out_moves_nearly_every_teacher_without_owners(tmp_path):
    frame = table()
    run = planned(tmp_path, frame)
    before = places(run, run.plan)
    after = places(planned(tmp_path, frame.iloc[1:]), run.plan)
    assert sum(before[t] != after[t] for t in before) == run.plan.n_teachers
    assert "none moves up" in run.arrangement.sentence


def test_plans_from_counted_sizes_change_when_somebody_leaves_and_declared_ones_do_not():
    rng, replanned = np.random.default_rng(0), 0
    for _ in range(60):
        sizes = {name: int(rng.integers(100, 400)) for name in ("a", "b", "c")}
        policy = Policy({"a": 1.0, "b": 2.0, "c": 3.0}, delta=1e-6)
        way = [Weighting(), Upsampling(), Vanishing()][int(rng.integers(3))]
        levels = np.repeat(list(sizes), list(sizes.values()))
        declared = {name: size + 5 for name, size in sizes.items()}
        teachers = int(rng.integers(10, 25))
        plans = [
            [way.plan_for(policy.assign(part, sizes=given), teachers) for part in (levels, levels[1:])]
            for given in (None, declared)
        ]  # fmt: skip
        (before, after), (one, other) = plans
        shape = [
            {g: (p.teachers, p.duplicates, p.weight) for g, p in plan.groups.items()}
            for plan in (before, after)
        ]
        replanned += shape[0] != shape[1]
        assert one == other
        assert {name: group.owners for name, group in one.groups.items()} == declared
    assert replanned > 0


def neighbours_in(sentence):
    """Which change a reader takes the sentence to be about."""
    if "replaced" not in sentence:
        return Neighbours.ADD_OR_REMOVE
    may_go = "removed" in sentence or "blank" in sentence
    return Neighbours.ANY_CHANGE if may_go else Neighbours.REPLACE


def test_every_part_of_the_description_shows_in_the_sentence():
    """No two descriptions that differ in what holds share a sentence."""
    said = {}
    for unit, declared, assignment, split, lot, classes, together in itertools.product(
        ("owner", "row", "teacher"), (False, True), ("hash", "balanced", "elsewhere"),
        *[(False, True)] * 4,
    ):  # fmt: skip
        done = Arrangement(unit, declared, assignment, split, lot, classes, together)
        said.setdefault(done.sentence, []).append(done)
        assert ("Not covered" in done.sentence) == classes
        assert ("rounding" in done.sentence) == together
        assert neighbours_in(done.sentence) is done.neighbours
    for sharing in said.values():
        assert len({(d.neighbours, d.private_classes, d.together, d.split) for d in sharing}) == 1


# ------------------------------------------------------------------------------- declared sizes


def test_declared_sizes_are_planned_with_and_published_whoever_is_there(tmp_path):
    frame = table()
    tabular = {"preprocessing": {"kind": "tabular"}}
    run = planned(tmp_path, frame, OWNERS, DECLARED, tabular)
    assert {name: group.owners for name, group in run.plan.groups.items()} == SIZES
    assert run.records.budgets.group_sizes() != SIZES
    smaller = planned(tmp_path, frame[frame["who"] > 1000], OWNERS, DECLARED, tabular)
    assert smaller.plan == run.plan
    said = run.release(run.votes()).privacy.to_dict()
    assert {row["group"]: row["owners"] for row in said["groups"]} == SIZES
    assert "added, removed or replaced" in said["adjacency"]
    words = json.dumps(said["statement"])
    assert "the 43 people" in words and "the 40 people" not in words


def test_streamed_studies_plan_with_declared_sizes_too(tmp_path):
    frame = table()
    frame["age"] = frame["age"].astype(float)
    frame.to_parquet(tmp_path / "private.parquet")
    public = frame[["who", "age", "city"]].assign(age=frame["age"] + 0.25)  # other people
    public.to_parquet(tmp_path / "public.parquet")
    given = settings(OWNERS, DECLARED, {"data": {"private": "private.parquet"}})
    given["data"] |= {"public": "public.parquet"}
    given["run"]["streaming"] = True
    given["privacy"]["sizes"] = {"high": 40, "low": 2}
    with pytest.warns(PrivacyWarning, match="group 'low' was declared to have 2 owner"):
        data = load_streamed_data(config_from(given, tmp_path))
    assert data.budgets.public_sizes() == {"high": 40, "low": 2}
    assert data.arrangement.sentence == "all records of one owner are added, removed or replaced"


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"high": 3}, "each of the groups high, low"),
        ({"high": 3, "low": 2, "more": 1}, "each of the groups high, low"),
        ({"high": 3, "low": -1}, "must be a whole number of at least 0"),
        ({"high": 3, "low": 1.5}, "must be a whole number"),
        ({"high": 3, "low": 0}, "declared to have no owner, but somebody is in it"),
        ("3, 2", "must be a mapping"),
    ],
)
def test_declared_sizes_that_mean_nothing_are_refused(sizes, words):
    with pytest.raises(InputError, match=words):
        Policy(LEVELS).assign(["high", "high", "high", "low"], sizes=sizes)


def test_sizes_of_other_levels_are_refused_in_a_file(tmp_path):
    with pytest.raises(ConfigError, match=r"privacy\.sizes must name the same levels"):
        config_from(settings({"privacy": {"sizes": {"high": 3}}}), tmp_path)


def test_a_group_declared_without_owners_takes_no_part():
    budgets = Policy({**LEVELS, "none": 1.0}, delta=1e-6).assign(
        ["high"] * 43 + ["low"] * 24, sizes={**SIZES, "none": 0}
    )
    assert list(Weighting().plan_for(budgets, 6).groups) == ["high", "low"]
    assert budgets[:10].declared_sizes is None
    assert budgets.groups["none"] == Budget(1.0, 1e-6)


# ---------------------------------------------------------------------- teachers of one call


class Batched:
    """An estimator of somebody else's, which says nothing about rounding."""

    teachers_at_once = 4

    def fit(self, X, y): ...
    def predict(self, X): ...
    def fit_shards(self, shards, seeds, n_classes): ...
    def predict_shards(self, models, X_public): ...


def networks(**settings):
    pytest.importorskip("torch")
    return build_model("teachers.model", "mlp", settings)


@pytest.mark.parametrize(
    ("teacher", "together"),
    [
        (lambda: build_model("teachers.model", "random-forest", {}), False),
        (lambda: build_model("teachers.model", "ridge", {}), False),
        (lambda: build_model("teachers.model", "tabular", {}), False),
        (Batched, True),
        (networks, True),
        (lambda: networks(device="cpu"), False),
        (lambda: networks(device="cpu", group_size=1), False),
        (lambda: networks(device="cpu", group_size=8), True),
        (lambda: networks(group_size=1), True),
    ],
)
def test_teachers_that_may_round_one_another_get_a_proviso(teacher, together):
    recipe = Recipe(teacher(), build_model("m", "logistic-regression", {}), 6, GNMax(sigma=1.0))
    assert recipe.together is together
