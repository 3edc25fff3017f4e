"""Records in a database, read again and again: the same ones each time, or none at all."""

import datetime

import pyarrow as pa
import pytest

from collegium.budgets import Policy
from collegium.data.engines.places import place_of
from collegium.data.engines.rows import RowsDigest, digest_at, table_at
from collegium.data.sharding import Granted, Roles, build_shards, scan
from collegium.data.sharding.database_source import DatabaseSource
from collegium.errors import InputError
from collegium.personalisation import Weighting
from tests.engines.generated_tables import into_duckdb, into_postgresql

PEOPLE = pa.table(
    {
        "age": pa.array(range(60), pa.int64()),
        "sick": [number % 3 == 0 for number in range(60)],
        "patient": [f"p{number // 2}" for number in range(60)],
        "level": ["high", "high", "low", "low"] * 15,
    }
)
ROLES = Roles(target="sick", level="level", owner="patient")
GRANTED = Granted(Policy({"high": 1.0, "low": 2.0}, delta=1e-6))


@pytest.fixture(params=["duckdb", "postgresql"])
def database(request, tmp_path):
    """A table in a database, and what runs a statement there."""
    if request.param == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        path = tmp_path / "house.duckdb"
        into_duckdb(PEOPLE, path)

        def run(statement):
            with duckdb.connect(str(path)) as connection:
                connection.execute(statement)

        return place_of(f"duckdb:///{path}#people"), run
    server = request.getfixturevalue("server")
    url = server.new_database()
    into_postgresql(PEOPLE, url)
    return place_of(f"{url}#people"), lambda statement: server.run(url, statement)


def shards_of(place, folder):
    source = DatabaseSource(place)
    found = scan(source, ROLES, GRANTED, b"key")
    plan = Weighting().plan_for(found.budgets, 4)
    return source, found, plan, lambda: build_shards(source, ROLES, found, plan, b"key", folder)


def test_shards_hold_who_belongs_there_whatever_the_order_of_rows(database, tmp_path):
    place, run = database
    source, found, plan, build = shards_of(place, tmp_path / "shards")
    assert source.n_rows == 60
    assert found.budgets.group_sizes() == {"high": 15, "low": 15}
    store = build()
    rows = [(int(age), bool(y)) for number in range(4) for age, y in zip(
        store.load(number)[0]["age"], store.load(number)[1], strict=True)]  # fmt: skip
    copies = [plan.groups[level].duplicates for level in ("high", "low")]
    assert copies == [1, 1]
    assert sorted(rows) == [(age, age % 3 == 0) for age in range(60)]
    run("CREATE TABLE others AS SELECT * FROM people ORDER BY age DESC")
    again = DatabaseSource(place_of(str(place).replace("#people", "#others")))
    assert again.fingerprint() == source.fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE people SET age = 41 WHERE age = 40",
        "UPDATE people SET age = NULL WHERE age = 0",
        "DELETE FROM people WHERE age = 7",
        "INSERT INTO people SELECT * FROM people WHERE age = 7",
        "UPDATE people SET age = 59 - age WHERE age IN (10, 49)",  # two people change ages
    ],
)
def test_a_table_that_changes_between_two_readings_is_refused(database, tmp_path, change):
    place, run = database
    *_, build = shards_of(place, tmp_path / "shards")
    run(change)
    with pytest.raises(InputError, match="was changed while it was read: nothing was learnt"):
        build()
    assert not list((tmp_path / "shards").glob("*.arrow"))
    assert not list((tmp_path / "shards").rglob("piece-*.json"))


def test_what_is_refused(database):
    place, run = database
    run("CREATE TABLE nobody AS SELECT * FROM people WHERE age < 0")
    with pytest.raises(InputError, match="holds no record"):
        DatabaseSource(place_of(str(place).replace("#people", "#nobody")))
    kind = "BLOB" if place.engine == "duckdb" else "BYTEA"
    run(f"ALTER TABLE people ADD COLUMN photo {kind}")
    with pytest.raises(InputError, match=r"column photo of .* holds lists, records, bytes"):
        DatabaseSource(place)
    assert DatabaseSource(place, ["photo", "age"]).unread == ("photo",)


def test_rows_in_memory_are_in_an_order_of_their_own(database):
    place, run = database
    before = table_at(place, ["age", "level"])
    run("CREATE TABLE others AS SELECT * FROM people ORDER BY age DESC")
    assert table_at(place_of(str(place).replace("#people", "#others")), ["age", "level"]) == before
    assert sorted(before["age"].to_pylist()) == list(range(60))
    assert table_at(place, []).num_rows == 60


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE people SET age = 41 WHERE age = 40",
        "UPDATE people SET age = NULL WHERE age = 0",
        "UPDATE people SET level = '' WHERE age = 0",
        "UPDATE people SET level = NULL WHERE age = 0",
        "DELETE FROM people WHERE age = 7",
        "INSERT INTO people SELECT * FROM people WHERE age = 7",
        "UPDATE people SET age = 59 - age WHERE age IN (10, 49)",  # of other levels
        "ALTER TABLE people ALTER COLUMN age TYPE DOUBLE PRECISION",
    ],
)
def test_a_digest_of_a_table_where_it_lies_tells_rows_apart(database, change):
    place, run = database
    known = digest_at(place, ["age", "level"])
    run("CREATE TABLE copy AS SELECT * FROM people ORDER BY age DESC")
    run("DROP TABLE people")
    run("ALTER TABLE copy RENAME TO people")
    assert digest_at(place, ["age", "level"]) == known
    assert digest_at(place, ["level", "age"]) != known
    run("UPDATE people SET patient = 'somebody'")  # of whom nothing is asked
    assert digest_at(place, ["age", "level"]) == known
    run(change)
    assert digest_at(place, ["age", "level"]) != known


def test_every_type_is_read_by_itself(database):
    """What Arrow or Python has no room for is missing, and ends no reading."""
    place, run = database
    run(
        "CREATE TABLE odd AS SELECT DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 10:11:12.5' AS at, "
        "CAST(1.25 AS NUMERIC(20, 2)) AS cost, true AS sick, CAST('NaN' AS DOUBLE PRECISION) AS x"
    )
    run("INSERT INTO odd VALUES ('infinity', 'infinity', NULL, NULL, NULL)")
    run("INSERT INTO odd VALUES (DATE '0044-03-15 (BC)', NULL, 0, false, 'Infinity')"
        if place.engine == "duckdb"
        else "INSERT INTO odd VALUES ('0044-03-15 BC', NULL, 0, false, 'Infinity')")  # fmt: skip
    table = table_at(place_of(str(place).replace("#people", "#odd")))
    found = sorted(table.to_pylist(), key=lambda row: (row["sick"] is None, not row["sick"]))
    assert found[0]["day"] == datetime.date(2024, 2, 29)
    assert found[0]["at"] == datetime.datetime(2024, 2, 29, 10, 11, 12)
    assert found[0]["cost"] == 1.25 and found[0]["x"] != found[0]["x"]
    assert [row["day"] for row in found[1:]] == [None, None]
    assert found[1]["x"] == float("inf") and found[2]["at"] is None


def test_a_digest_tells_cells_apart():
    def digest(**columns):
        return RowsDigest.of(pa.table(columns))

    text = pa.string()
    different = [
        digest(a=pa.array(["x", None], text)),
        digest(a=pa.array(["x", ""], text)),
        digest(b=pa.array(["x", ""], text)),
        digest(a=pa.array([None, None], text)),
        digest(a=pa.array([0, None], pa.int64())),
        digest(a=pa.array([0, 0], pa.int64())),
        digest(a=pa.array([0.0, None], pa.float64())),
        digest(a=pa.array([False, None], pa.bool_())),
        digest(a=pa.array([1, 2], pa.int64()), b=pa.array([2, 1], pa.int64())),
        digest(a=pa.array([1, 2], pa.int64()), b=pa.array([1, 2], pa.int64())),
        digest(a=pa.array([1, 1], pa.int64()), b=pa.array([1, 1], pa.int64())),
    ]
    assert len(set(different)) == len(different)
    half = RowsDigest()
    half.add(pa.table({"a": pa.array([3], pa.int64())}))
    half.add(pa.table({"a": pa.array([4], pa.int64())}))
    assert half.value == digest(a=pa.array([4, 3], pa.int64()))
