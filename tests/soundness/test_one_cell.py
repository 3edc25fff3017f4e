"""Trap 17: one cell, name, row or level of a *file* changes nobody else: in memory, streamed, in Python.

Each perturbation is written into a file as a person would write it. Every other teacher's shard and votes,
the split, the preprocessing and the public records as teachers see them must stay, bit for bit. What does
depend on others by design stands here as such.
"""

import csv
import warnings
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from collegium import GNMax, PATEClassifier, Policy, PrivacyWarning
from collegium.data.tables import encode_classes
from collegium.models.preprocessing import TabularEncoder
from collegium.pate.pipeline import PateRun
from collegium.personalisation.partition import owner_hashes
from collegium.runs.fit_inputs import given_records
from collegium.study.config import read_config
from collegium.study.folder import StudyFolder
from collegium.study.methods.votes.checkpoint import FolderMemory
from collegium.study.runner import plan_study
from collegium.study.streaming import PrivateStream, _Shown

FACES = ("memory", "streamed", "python")
LEVELS = {"1": 9.0, "2": 18.0, "high": 27.0}
SEED, N_TEACHERS, N_PRIVATE, N_PUBLIC = 3, 10, 240, 30
FEATURES = ("age", "weight", "smoker", "ward")
STUDY = """
[study]
seed = 3
[data]
private = "PRIVATE"
public = "public.csv"
target = "sick"
owner = "patient"
classes = ["no", "yes"]
[privacy]
column = "privacy"
levels = { 1 = 9.0, 2 = 18.0, high = 27.0 }
delta = 1e-6
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 10
[aggregation]
aggregator = "gnmax"
sigma = 6
[student]
model = "sklearn.naive_bayes.GaussianNB"
[run]
n_jobs = 1
"""


def people(n, seed):
    """Rows of text, as they stand in a file. A patient has one or two records and one level."""
    rng = np.random.default_rng(seed)
    return [
        {
            "patient": str(100 + 2 * number // 3),
            "age": str(rng.integers(18, 90)),
            "weight": f"{rng.normal(70, 9):.17g}",
            "smoker": str(bool(rng.integers(2))),
            "ward": str(rng.choice(["A", "B", "7"])),
            "sick": str(rng.choice(["no", "yes"])),
            "privacy": "12"[2 * number // 3 % 2],
        }
        for number in range(n)
    ]


@dataclass(frozen=True)
class Change:
    """One perturbation of the private file.

    ``who``: names of those whose records change.
    ``moves_plan``: by design: the plan follows from group sizes, which are public, and one of them
        changes. What the change does under one plan is compared.
    """

    make: object
    who: tuple[str, ...]
    moves_plan: bool = False
    faces: tuple[str, ...] = FACES


def cell(row, column, value):
    def make(rows):
        rows[row] = {**rows[row], column: value}

    return make


def every(patient, column, value):
    def make(rows):
        for row in rows:
            if row["patient"] == patient:
                row[column] = value

    return make


def newcomer(name):
    return lambda rows: rows.append({**rows[5], "patient": name, "privacy": "2"})


def leaves(rows):
    rows[:] = [row for row in rows if row["patient"] != FIRST]


FIRST, LAST = "100", str(100 + 2 * (N_PRIVATE - 1) // 3)
CHANGES = {
    **{
        f"cell: {column} {value!r} in row {row}": Change(cell(row, column, value), (who,))
        for row, who, values in (
            (0, FIRST, [
                ("age", "n/a"), ("age", "unknown"), ("age", ""), ("age", "40.5"), ("age", "1e400"),
                ("age", "True"), ("weight", "-"), ("weight", "71"), ("smoker", "n/a"),
                ("smoker", "1"), ("smoker", "perhaps"), ("ward", "8"), ("ward", ""),
            ]),
            (-1, LAST, [("age", "n/a"), ("weight", "-"), ("smoker", "1"), ("ward", "")]),
        )
        for column, value in values
    },
    **{
        f"name: a newcomer {name!r}": Change(newcomer(name), (name,), moves_plan=True, faces=faces)
        for names, faces in (
            (("x1", "5000", "7.5", "-3"), FACES),
            (("007", "None", "nan.", "1e5"), ("memory",)),  # pandas' own types know them no more
        )
        for name in names
    },
    "cell: age of 20 digits": Change(
        cell(0, "age", "9" * 20), (FIRST,), faces=("memory", "python")  # Parquet has no such numbers
    ),
    "name: first becomes 'x1'": Change(every(FIRST, "patient", "x1"), (FIRST, "x1")),
    "row: first removed": Change(lambda rows: rows.pop(0), (FIRST,)),
    "row: last removed": Change(lambda rows: rows.pop(), (LAST,), moves_plan=True),
    "row: all of the first owner": Change(leaves, (FIRST,), moves_plan=True),
    "level: '1' becomes '2'": Change(every(FIRST, "privacy", "2"), (FIRST,), moves_plan=True),
}  # fmt: skip


@dataclass
class Seen:
    """What a run makes of the files."""

    plan: object
    shards: list
    votes: np.ndarray
    asked: bytes
    split: list = field(default_factory=list)


def write(path, rows, columns=None):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns or list(rows[0]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def study_of(folder, rows, text=STUDY, private="private.csv"):
    write(folder / "private.csv", rows)
    write(folder / "public.csv", people(N_PUBLIC, 1), FEATURES)
    if private != "private.csv":
        pd.read_csv(folder / "private.csv").to_parquet(folder / private)
    (folder / "study.toml").write_text(text.replace("PRIVATE", private), encoding="utf-8")
    return read_config(folder / "study.toml")


def run_of(face, folder, rows):
    """Everything up to the plan, through a file."""
    if face == "memory":
        return plan_study(study_of(folder, rows), on_ledger=False).plan.run
    if face == "streamed":
        streamed = STUDY.replace("n_jobs = 1", "n_jobs = 1\nstreaming = true")
        run = plan_study(
            study_of(folder, rows, streamed, "private.parquet"), on_ledger=False
        ).plan.run
        out = StudyFolder(folder / "study")
        out.open()
        out.claim({}, {})
        run.memory = FolderMemory(out)
        return run
    study_of(folder, rows)
    private, public = (pd.read_csv(folder / f"{role}.csv") for role in ("private", "public"))
    budgets = Policy(LEVELS, delta=1e-6).assign(private["privacy"], private["patient"])
    model = PATEClassifier(
        GaussianNB(), n_teachers=N_TEACHERS, aggregator=GNMax(sigma=6), student=GaussianNB(),
        preprocessing=TabularEncoder(), classes=["no", "yes"], random_state=SEED,
    )  # fmt: skip
    features = private[list(FEATURES)]
    given = given_records(
        features,
        private["sick"],
        budgets,
        public[list(FEATURES)],
        encode=partial(encode_classes, classes=model.classes),
        delta=1e-6,
        private_classes=False,
        public_may_overlap=False,
        scales_may_differ=False,
    )
    return PateRun(model._recipe(), given.records)


def seen(run, folder, plan):
    """Shards, votes and public records of a run, under a given plan."""
    own, run.plan = run.plan, plan
    key = run.recipe.key
    if isinstance(run.records.X, PrivateStream):
        store = run.records.X.shards(run.plan, folder / "seen", 1)
        shown = _Shown(run.records.X.types, run.teachers_view.transformer)
        loaded = [store.prepared(number, shown) for number in range(run.plan.n_teachers)]
        shards = [(np.asarray(X).tobytes() if len(y) else b"", y.tolist()) for X, y in loaded]
    else:
        assignment = run.plan.assign(run.records.budgets, key, run.recipe.assignment)
        X = np.asarray(run.teachers_view.of_private(run.records.X))
        shards = [
            (X[rows].tobytes(), run.records.codes[rows].tolist()) for rows in assignment.shards()
        ]
    votes = np.array(run.votes().sensitive_table)
    rows = getattr(run.records, "public_rows", np.array([])).tolist()
    return Seen(own, shards, votes, np.asarray(run.X_asked).tobytes(), rows)


def moved(before, after):
    """Numbers of the teachers whose shard or votes differ."""
    return {
        number
        for number, (old, new) in enumerate(zip(before.shards, after.shards, strict=True))
        if old != new or (before.votes[:, number] != after.votes[:, number]).any()
    }


def teachers_of(plan, key, rows, names):
    """Teachers of some owners, by their names and levels alone."""
    pairs = [(row["patient"], row["privacy"]) for row in rows if row["patient"] in names]
    hashes = owner_hashes(np.array([name for name, _ in pairs], dtype=object), key)
    groups = np.array([list(LEVELS).index(level) for _, level in pairs], dtype=np.intp)
    chosen = plan.teachers_of(hashes, list(LEVELS), groups)
    return set(chosen[chosen >= 0].ravel().tolist())


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        yield


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """What each face makes of the files before any change, under a plan with a place for every level."""
    known = {}

    def of(face):
        if face not in known:
            rows = people(N_PRIVATE, 0)
            more = [{**row, "patient": "1" + row["patient"], "privacy": "high"} for row in rows]
            plan = run_of(face, tmp_path_factory.mktemp(face), [*rows, *more]).plan
            folder = tmp_path_factory.mktemp(face)
            run = run_of(face, folder, rows)
            known[face] = (seen(run, folder, plan), plan, run.recipe.key)
        return known[face]

    return of


@pytest.mark.parametrize(
    ("name", "face"), [(name, face) for name, change in CHANGES.items() for face in change.faces]
)
def test_one_change_of_a_file_changes_only_the_teachers_of_who_is_changed(
    tmp_path, before, face, name
):
    change = CHANGES[name]
    old, plan, key = before(face)
    rows = people(N_PRIVATE, 0)
    theirs = teachers_of(plan, key, rows, change.who)
    change.make(rows)
    theirs |= teachers_of(plan, key, rows, change.who)
    new = seen(run_of(face, tmp_path, rows), tmp_path, plan)
    assert moved(old, new) <= theirs, "somebody else's teachers changed"
    assert len(theirs) < 4 < N_TEACHERS / 2
    assert new.asked == old.asked
    assert new.split == old.split
    assert change.moves_plan or new.plan.groups == old.plan.groups


def test_the_three_faces_see_the_same(before):
    for face in FACES[1:]:
        assert before(face)[0].votes.tolist() == before(FACES[0])[0].votes.tolist()
        assert before(face)[0].asked == before(FACES[0])[0].asked


SPLIT = STUDY.replace(
    'public = "public.csv"', "private_records = 150\npublic_records = 40\ntest_records = 20"
)


def sides(folder, rows, text=SPLIT):
    """Owners on each side of a split, and the run."""
    folder.mkdir()
    run = plan_study(study_of(folder, rows, text), on_ledger=False).plan.run
    owner = {float(row["weight"]): row["patient"] for row in rows}
    parts = (run.records.X, run.records.X_public, run.records.X_test)
    return [{owner[weight] for weight in part["weight"]} for part in parts], run


def test_in_a_split_one_cell_of_a_private_record_changes_nobody_else(tmp_path):
    rows = people(N_PRIVATE, 0)
    split, run = sides(tmp_path / "before", rows)
    old = seen(run, tmp_path, run.plan)
    row = next(number for number, row in enumerate(rows) if row["patient"] in split[0])
    theirs = teachers_of(old.plan, run.recipe.key, rows, (rows[row]["patient"],))
    for column, value in (("age", "n/a"), ("smoker", "perhaps"), ("ward", "8")):
        changed = people(N_PRIVATE, 0)
        cell(row, column, value)(changed)
        after, run = sides(tmp_path / column, changed)
        new = seen(run, tmp_path, old.plan)
        assert after == split and new.split == old.split and new.asked == old.asked
        assert moved(old, new) <= theirs


@pytest.mark.parametrize("name", ["x1", "5000", "007"])
def test_in_a_split_a_newcomer_moves_only_who_stands_at_its_borders(tmp_path, name):
    """By design: the sides have the sizes that were asked for. The newcomer's type moves nobody."""
    rows = people(N_PRIVATE, 0)
    before, _ = sides(tmp_path / "before", rows)
    newcomer(name)(rows)
    after, _ = sides(tmp_path / "after", rows)
    changed = set().union(*(old ^ new for old, new in zip(before, after, strict=True))) - {name}
    assert len(changed) <= 6 < len(set.union(*before)) / 10


def shards_of(folder, rows, text, plan=None):
    """Who is in each teacher's shard, by the weights of their records."""
    folder.mkdir()
    run = plan_study(study_of(folder, rows, text), on_ledger=False).plan.run
    made = run.plan if plan is None else plan
    assignment = made.assign(run.records.budgets, run.recipe.key, run.recipe.assignment)
    weights = run.records.X["weight"].to_numpy()
    return [frozenset(weights[rows].tolist()) for rows in assignment.shards()], made


#: Settings under which others do change, by design: a statement about neighbours has to say so.
BY_DESIGN = {
    "no owner column, first row removed: a row's position names a person": (
        STUDY.replace('owner = "patient"', 'exclude = ["patient"]'), lambda rows: rows.pop(0), 8
    ),
    "levels dealt by lot: among all people who are there": (
        STUDY.replace('column = "privacy"', "shares = { 1 = 0.5, 2 = 0.5, high = 0 }").replace(
            'owner = "patient"', 'owner = "patient"\nexclude = ["privacy"]'
        ), leaves, 8,
    ),
    "balanced assignment: people are dealt out like cards": (
        STUDY.replace("n_teachers = 10", 'n_teachers = 10\nassignment = "balanced"'),
        newcomer("x1"), 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("setting", BY_DESIGN)
def test_where_others_change_by_design_they_do(tmp_path, setting):
    text, make, at_least = BY_DESIGN[setting]
    rows = people(N_PRIVATE, 0)
    before, plan = shards_of(tmp_path / "before", rows, text)
    make(rows)
    after, _ = shards_of(tmp_path / "after", rows, text, plan)
    assert sum(old != new for old, new in zip(before, after, strict=True)) >= at_least


def test_a_level_that_makes_text_of_the_column_renames_no_other_level(tmp_path):
    uniform = f"{STUDY}[personalisation]\nmethod = 'uniform'\n"
    rows = people(N_PRIVATE, 0)
    every(FIRST, "privacy", "high")(rows)
    after, plan = shards_of(tmp_path / "after", rows, uniform)
    before, _ = shards_of(tmp_path / "before", people(N_PRIVATE, 0), uniform, plan)
    assert after == before
    (tmp_path / "streamed").mkdir()
    streamed = uniform.replace("n_jobs = 1", "n_jobs = 1\nstreaming = true")
    run = plan_study(
        study_of(tmp_path / "streamed", rows, streamed, "private.parquet"), on_ledger=False
    ).plan.run
    assert run.records.budgets.group_sizes() == {"1": 79, "2": 80, "high": 1}


def test_without_an_owner_column_the_last_row_and_a_changed_row_are_one_persons_alone(tmp_path):
    text = STUDY.replace('owner = "patient"', 'exclude = ["patient"]')
    rows = people(N_PRIVATE, 0)
    before, plan = shards_of(tmp_path / "before", rows, text)
    for name, make in (("last", lambda rows: rows.pop()), ("one", cell(0, "weight", "1.5"))):
        changed = people(N_PRIVATE, 0)
        make(changed)
        after, _ = shards_of(tmp_path / name, changed, text, plan)
        assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
