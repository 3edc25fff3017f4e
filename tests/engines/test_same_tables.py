"""Synthetic tables of tables in engines: the very marginals of the same table in memory, and the same model.

Somebody's rows are blanked where they lie, too, with all outcomes forced to be those of before: nothing that
is noised moves further than was charged, and mistakes that are planted in what engines do are noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from collegium import Ledger, Policy, Schema, Synthesizer
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budgets
from collegium.data.cells import Cells
from collegium.data.engines import connections
from collegium.data.engines.connections import EngineError
from collegium.data.engines.places import place_of
from collegium.data.schema_column import TEXT
from collegium.errors import InputError
from collegium.noise.sources import SeededNoise
from collegium.synthesis import synthesizer
from collegium.weighted_sums import marginals_in_engine
from collegium.weighted_sums.in_engine import InEngine
from collegium.weighted_sums.marginals import Marginals
from collegium.weighted_sums.marginals_in_engine import MarginalsInEngine
from collegium.weighted_sums.weighing import Weighing
from tests.engines.generated_tables import (
    Generated,
    generated,
    into_duckdb,
    into_postgresql,
    into_spark,
)
from tests.engines.test_same_sums import SHAPES, in_memory
from tests.soundness import test_synthetic_tables as replay

READ_HERE = "code in words"  # whole numbers as text are read row by row
FEW = 4  # columns, where an engine takes long to begin


pytestmark = pytest.mark.usefixtures("known_engine")


@pytest.fixture
def put(request: Any, tmp_path: Path) -> Callable[..., Any]:
    """Put a table into an engine, and say where it lies."""
    n_tables = 0

    def into(engine: str, table: pa.Table) -> Any:
        nonlocal n_tables
        n_tables += 1
        name = f"people_{tmp_path.name}_{n_tables}"
        if engine == "duckdb":
            into_duckdb(table, tmp_path / f"{name}.duckdb")
            return f"duckdb:///{tmp_path}/{name}.duckdb#people"
        if engine == "postgresql":
            url = request.getfixturevalue("server").new_database()
            into_postgresql(table, url, name)
            return f"{url}#{name}"
        import ibis

        session = request.getfixturevalue("spark")
        into_spark(table, session, tmp_path / name, name)
        return ibis.pyspark.connect(session).table(name)

    return into


def lying(place: Any, its: Generated) -> InEngine:
    given = place_of(place) if isinstance(place, str) else place
    return InEngine(given, its.policy, its.privacy, its.owner, its.schema)


def marginals_of(its: Generated, seed: int, coarse: bool, n_cliques: int) -> Marginals:
    """Every column, some pairs, two larger sets, and one of them twice; of cells, some counted as one."""
    rng = np.random.default_rng(seed)
    cells = Cells(its.schema)
    n = len(cells.columns)
    pairs = list(combinations(range(n), 2))
    some = [pairs[one] for one in rng.choice(len(pairs), min(n_cliques, len(pairs)), replace=False)]
    cliques = [*((one,) for one in range(n)), *some, (0, n // 2, n - 1), (n - 1, 1, 0), some[0]]
    together = [
        np.unique(rng.integers(0, size // 2 + 1, size), return_inverse=True)[1].astype(np.int64)
        for size in cells.sizes
    ]
    return Marginals(cells, cliques, together if coarse else None)


def weighings(its: Generated, groups: int, seed: int) -> list[Weighing]:
    rng = np.random.default_rng(seed)
    most = 1 if its.owner is None else its.schema.rows_per_owner
    return [Weighing.of(rng.uniform(0, 1, groups), False, most, 1.0) for _ in range(2)]


@pytest.mark.parametrize(
    ("engine", "seed"),
    [*(("duckdb", seed) for seed in SHAPES), *(("postgresql", seed) for seed in (1, 2)), ("spark", 2)],
)  # fmt: skip
def test_marginals_are_the_same_wherever_a_table_lies(engine, seed, put, monkeypatch):
    owner, rows_per_owner = SHAPES[seed]
    its = generated(seed, 120, owner=owner, rows_per_owner=rows_per_owner)
    names = [name for name, one in its.schema.items() if one.kind != TEXT and name != READ_HERE]
    some = np.random.default_rng(seed).permutation(names)[: FEW if engine == "spark" else 13]
    its = its.only(*some)
    here, there = in_memory(its), lying(put(engine, its.table), its)
    scans = []
    monkeypatch.setattr(
        MarginalsInEngine,
        "_statement",
        lambda self, *given, of=MarginalsInEngine._statement: scans.append(1) or of(self, *given),
    )
    ways = (True,) if engine == "spark" else (False, True)
    for coarse in ways:
        # Categories are told one by one, or grouped by their names.
        monkeypatch.setattr(marginals_in_engine, "MOST_TOLD", 3 if coarse else 32)
        of = marginals_of(its, seed, coarse, FEW if engine == "spark" else 16)
        weights = weighings(its, len(here.groups), seed)
        found, expected = there.marginals(of, weights), here.marginals(of, weights)
        for one, other in zip(found, expected, strict=True):
            wrong = [
                [of.cells.names[column] for column in clique]
                for clique, a, b in zip(of.cliques, one, other, strict=True)
                if not np.array_equal(a, b)
            ]
            assert not wrong
    assert len(scans) == len(ways), "each is one scan"
    assert sum(one.sum() for one in expected[0]) > 0
    there.close()


def test_marginals_that_one_statement_does_not_hold_are_the_same(put, monkeypatch):
    its = generated(5, 80, rows_per_owner=2).only(
        "score", "ward", "age", "insured", "visit", "code"
    )
    here, there = in_memory(its), lying(put("duckdb", its.table), its)
    of, weights = marginals_of(its, 5, False, 15), weighings(its, len(here.groups), 5)
    monkeypatch.setattr(marginals_in_engine, "_MOST_SETS", 4)
    monkeypatch.setattr(marginals_in_engine, "_MOST_COLUMNS", 3)
    for one, other in zip(
        there.marginals(of, weights)[0], here.marginals(of, weights)[0], strict=True
    ):
        assert np.array_equal(one, other)
    there.close()


def test_columns_that_are_read_here_have_the_same_marginals(put):
    its = generated(6, 80, rows_per_owner=2).only("score", "ward", READ_HERE, "insured")
    here, there = in_memory(its), lying(put("duckdb", its.table), its)
    assert there.why_here(Cells(its.schema).names)
    of, weights = marginals_of(its, 6, True, 6), weighings(its, len(here.groups), 6)
    for one, other in zip(
        there.marginals(of, weights)[1], here.marginals(of, weights)[1], strict=True
    ):
        assert np.array_equal(one, other)
    there.close()


# ------------------------------------------------------------------------------ whole tables

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [18, 90], "bins": [18, 30, 45, 65, 90]},
        "pay": {"kind": "number", "bounds": [0, 50], "mean": 12, "sd": 5},
        "ward": {"kind": "category", "categories": ["a", "b", "O'Neil", 'say "x"']},
        "sick": {"kind": "flag", "missing": False},
        "visit": {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"]},
    },
    rows_per_owner=2,
)
POLICY = Policy({"low": 3.0, "high": 9.0, "none": 0.0})


def patients(n: int = 3000) -> pd.DataFrame:
    """Rows of which some are blank, of people who have one to four."""
    rng = np.random.default_rng(1)
    owner = rng.integers(0, n // 2, n)
    age = rng.integers(15, 95, n)
    frame = pd.DataFrame(
        {
            "owner": [f"p{one}" for one in owner],
            "level": np.array(["low", "high", "none"])[owner % 7 % 3],
            "age": pd.array(age, dtype="Int64"),
            "pay": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(3, 4, n)),
            "ward": rng.choice(["a", "b", "O'Neil", 'say "x"', "c", None], n),
            "sick": pd.array(age + rng.normal(0, 9, n) > 60, dtype="boolean"),
            "visit": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
        }
    )
    frame.loc[rng.random(n) < 0.05, list(SCHEMA)] = None
    return frame


def as_arrow(frame: pd.DataFrame) -> pa.Table:
    kinds = {"visit": pa.date32(), "ward": pa.string(), "owner": pa.string(), "level": pa.string()}
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [(one.name, kinds.get(one.name, one.type)) for one in table.schema]
    return table.cast(pa.schema(fields))


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("engine", ["duckdb", "postgresql", "spark"])
def test_a_released_model_is_the_same_wherever_a_table_lies(engine, calibrated, put, tmp_path):
    if engine == "spark" and calibrated:
        pytest.skip("once is enough where it takes longest")
    table = as_arrow(patients())
    public = patients(300).drop(columns=["owner", "level"]).assign(pay=5.0)
    files = []
    for number, given in enumerate((table, put(engine, table))):
        made = Synthesizer(SCHEMA, "sick", "both", calibrated=calibrated, noise_seed=3)
        made.fit(given, POLICY, privacy="level", owner="owner", public=public)
        files.append(tmp_path / f"{number}.json")
        made.save(files[-1])
        assert len(made.measured_) > 4
    assert files[0].read_bytes() == files[1].read_bytes()


def test_private_records_given_as_public_are_found_in_an_engine(put):
    table = as_arrow(patients(600))
    public = table.to_pandas().drop(columns=["owner", "level"]).iloc[::2]
    public["visit"] = public["visit"].astype("datetime64[s]")
    with pytest.raises(InputError, match="also among the private ones"):
        Synthesizer(SCHEMA, noise_seed=1).fit(
            put("duckdb", table), POLICY, privacy="level", owner="owner", public=public
        )


def test_a_column_that_is_not_there_is_refused_before_anybody_pays(put):
    table = as_arrow(patients(300)).drop_columns(["pay"])
    with pytest.raises(InputError, match="has no column 'pay'"):
        Synthesizer(SCHEMA, noise_seed=1).fit(
            put("duckdb", table), POLICY, privacy="level", owner="owner"
        )


def test_a_table_that_changes_between_two_draws_is_refused(put):
    """Where an engine has no snapshot: rows are counted along with each draw."""
    place = put("duckdb", as_arrow(patients(200)))
    there = InEngine(place_of(place), POLICY, "level", "owner", SCHEMA)
    of = Marginals(Cells(SCHEMA), [(0,), (1, 2)])
    weights = [Weighing.of(np.ones(len(there.groups)), False, 2, 1.0)]
    there.marginals(of, weights)
    there._base = there._base.filter(there._base["owner"] != "p7")
    with pytest.raises(EngineError, match="changed since"):
        there.marginals(of, weights)
    there.close()


# ------------------------------------------------------------------------------ ledgers


@pytest.fixture
def same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the same noise each time, which no ledger allows."""
    monkeypatch.setattr(synthesizer, "noise_from", lambda seed: SeededNoise(3))


def charged(place: Any, path: Path) -> tuple[Synthesizer, list[Any]]:
    """Make a table on a ledger of its own; and what everybody has spent there."""
    ledger = Ledger.create(path, neighbours=Neighbours.ADD_OR_REMOVE)
    made = Synthesizer(SCHEMA, "sick", "both")
    made.fit(place, POLICY, privacy="level", owner="owner", ledger=ledger, spend=0.5)
    return made, accounts(ledger)


def accounts(ledger: Ledger) -> list[tuple[str, float]]:
    return sorted((one.level, float(one.spent.mu_squared)) for one in ledger.standings())


def test_on_a_ledger_the_model_and_the_accounts_are_the_same(put, same_noise, tmp_path):
    table = as_arrow(patients(800))
    here, spent = charged(table, tmp_path / "here.ledger")
    there, also_spent = charged(put("duckdb", table), tmp_path / "there.ledger")
    assert spent == also_spent and max(mu for _, mu in spent) > 0
    for number, made in enumerate((here, there)):
        made.save(tmp_path / f"{number}.json")
    assert (tmp_path / "0.json").read_bytes() == (tmp_path / "1.json").read_bytes()


def test_an_engine_that_stops_in_the_middle_leaves_what_was_drawn_charged(
    put, same_noise, tmp_path, monkeypatch
):
    table = as_arrow(patients(800))
    _, whole = charged(put("duckdb", table), tmp_path / "whole.ledger")
    asked, stream = [], connections._DuckDB.stream

    def stopping(self: Any, expression: Any) -> Iterator[Any]:
        if "n" in expression.columns:  # counts, not rows
            asked.append(1)
            if len(asked) == 2:
                raise EngineError("DuckDB stopped with an error")
        yield from stream(self, expression)

    monkeypatch.setattr(connections._DuckDB, "stream", stopping)
    with pytest.raises(EngineError, match="stopped with an error; this draw and those before stay"):
        charged(put("duckdb", table), tmp_path / "part.ledger")
    spent = accounts(Ledger(tmp_path / "part.ledger"))
    assert [level for level, _ in spent] == [level for level, _ in whole]
    assert all(0 < one <= other for (_, one), (_, other) in zip(spent, whole, strict=True))


# ------------------------------------------------------------------------------ neighbours


SOME = ("o9", "o13", "o14")
"""One of each level; the first has as many rows as count, the others more."""


@pytest.fixture
def replayed(put, monkeypatch) -> Iterator[Callable[[str, str], dict[str, float]]]:
    """Blank or replace the rows of some people in DuckDB, one after the other."""
    opened: list[InEngine] = []

    def in_duckdb(frame: pd.DataFrame, budgets: Budgets, schema: Schema) -> InEngine:
        names = np.array(budgets.group_names)[budgets.owner_group[budgets.record_owner]]
        typed = {name: pd.to_numeric(frame[name]).astype("Int64") for name in replay.NAMES[:5]}
        owners = np.asarray(budgets.owners)[budgets.record_owner].astype(str)
        place = put("duckdb", as_arrow(frame.assign(**typed, owner=owners, level=names)))
        opened.append(InEngine(place_of(place), replay.POLICY, "level", "owner", schema))
        assert not opened[-1].why_here(Cells(schema).names)
        return opened[-1]

    def run(face: str, relation: str) -> dict[str, float]:
        return replay.replayed(face, relation)

    neighbours_of = replay.neighbours_of

    def some_neighbours(*given: Any) -> Iterator[Any]:
        yield from (one for one in neighbours_of(*given) if one[0] in SOME)

    monkeypatch.setattr(replay, "neighbours_of", some_neighbours)
    monkeypatch.setattr(replay, "InMemory", in_duckdb)
    yield run
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    ("face", "relation"), [("target", "zero-out"), ("calibrated", "replace-one")]
)
def test_nobody_moves_what_an_engine_counts_further_than_is_charged(face, relation, replayed):
    for name, share in replayed(face, relation).items():
        assert share > 0.9, f"{name} reaches {share:.3f} only: the check could not fail"


def rows_do_not_matter(patch):
    patch.setattr(InEngine, "_rows_matter", lambda self, most: False)


def blank_rows_are_heard(patch):
    read = MarginalsInEngine._counts

    def all_heard(self, cliques, n_seen):
        self.__dict__["_read_in_sql"] = (
            self._read_in_sql[0].replace("THEN NULL", "THEN everybody"),
            self._read_in_sql[1],
        )
        return read(self, cliques, n_seen)

    patch.setattr(MarginalsInEngine, "_counts", all_heard)


@pytest.mark.parametrize("mutant", [rows_do_not_matter, blank_rows_are_heard])
def test_planted_mistakes_of_engines_are_noticed(mutant, replayed, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match="moved it by"):
        replayed("only the target", "zero-out")
