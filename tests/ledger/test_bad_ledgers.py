"""What can be wrong with a ledger: one line each, and nothing is released or lost."""

import datetime as dt
import functools
import json
import math
import shutil
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from collegium import Budget, Budgets, CollegiumError, Ledger
from collegium.errors import InputError, LedgerError, LedgerWarning
from collegium.ledger import Cost, transaction
from collegium.ledger.chain import Key
from collegium.ledger.places import find_place
from tests.ledger.conftest import ask, people

TWO = people({"ann": "high", "bob": "low"})
COSTS = [Cost(0.001), Cost(0.002)]


def sql(ledger: Ledger, *statements: str) -> None:
    connection = sqlite3.connect(str(ledger))
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.fixture
def used(ledger: Ledger) -> Ledger:
    for number in range(3):
        ask(ledger, str(number), TWO, COSTS)
    return ledger


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE entry SET body = replace(body, '0.001', '0.0001') WHERE number = 4",
        "UPDATE entry SET kind = 'leave' WHERE number = 4",
        "UPDATE entry SET at = '2020-01-01T00:00:00+00:00' WHERE number = 4",
        "UPDATE entry SET number = number + 100 WHERE number = 4",
        "DELETE FROM entry WHERE number = 4",
        "UPDATE owner SET cohort = 2 WHERE cohort = 1",
        "UPDATE owner SET cohort = 3 - cohort",
        "DELETE FROM owner WHERE cohort = 1",
        "INSERT INTO owner VALUES (x'00112233445566778899aabbccddeeff', 1)",
        "INSERT INTO owner VALUES (x'00112233445566778899aabbccddeeff', 77)",
        "UPDATE head SET entries = 4",
        "UPDATE head SET ledger = 'another'",
    ],
)
def test_whatever_is_edited_is_noticed(used, edit):
    sql(used, "PRAGMA foreign_keys = OFF", edit)
    with pytest.raises(LedgerError):
        used.verify()


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM owner WHERE cohort = 1",
        "UPDATE owner SET cohort = 1",
        "UPDATE owner SET id = x'00112233445566778899aabbccddeeff' WHERE cohort = 1",
    ],
)
def test_a_release_proves_its_owners_first(used, edit):
    """An owner who is taken out would join again, with a whole budget."""
    sql(used, edit)
    with pytest.raises(LedgerError, match="another program changed who is in the ledger"):
        ask(used, "new", TWO, COSTS)


def test_yesterdays_copy_is_noticed(used, tmp_path):
    copy = tmp_path / "yesterday"
    sql(used, "PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(str(used), copy)
    made = ask(used, "today", TWO, COSTS)
    sql(used, "PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(copy, str(used))
    for act in (
        lambda: ask(used, "today", TWO, COSTS, again=True),
        lambda: used.left(TWO),
        used.standings,
        used.verify,
        lambda: Ledger(str(used)),
        lambda: made.settle(COSTS),
    ):
        with pytest.raises(LedgerError, match="older copy"):
            act()
    # Who puts the anchor back, too, still has releases that the ledger does not know.
    Path(f"{used}.key.anchor").unlink()
    with pytest.raises(LedgerError, match="that of this release"):
        made.settle(COSTS)


def test_another_branch_is_noticed(used, tmp_path):
    sql(used, "PRAGMA wal_checkpoint(TRUNCATE)")
    branch = tmp_path / "branch.ledger"
    for ending in ("", ".key", ".key.anchor"):
        shutil.copy(f"{used}{ending}", f"{branch}{ending}")
    Path(f"{branch}.key.anchor").unlink()  # as on another machine
    ask(Ledger(branch), "there", TWO, COSTS)
    ask(used, "here", TWO, COSTS)
    sql(used, "PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(branch, str(used))
    with pytest.raises(LedgerError, match="went another way"):
        used.standings()


def test_a_copy_beside_the_ledger_does_not_go_on(used, tmp_path):
    """With its key and its anchor, a copy is a whole ledger: with it, everybody could spend again."""
    sql(used, "PRAGMA wal_checkpoint(TRUNCATE)")
    copy = tmp_path / "elsewhere" / "copy.ledger"
    copy.parent.mkdir()
    for ending in ("", ".key", ".key.anchor"):
        shutil.copy(f"{used}{ending}", f"{copy}{ending}")
    copied = Ledger(copy)
    assert copied.verify() == 5
    for act in (lambda: ask(copied, "new", TWO, COSTS), lambda: copied.forget("ann")):
        with pytest.raises(LedgerError, match=r"copy\.ledger is a copy of "):
            act()
    ask(used, "new", TWO, COSTS)
    Path(str(used)).rename(tmp_path / "put-away")
    ask(copied, "new", TWO, COSTS)
    sql(copied, "PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(copy, str(used))  # from now on, the copy's place is the known one
    ask(copied, "newer", TWO, COSTS)


def test_a_second_ledger_beside_another(used, tmp_path):
    with pytest.warns(LedgerWarning, match=r"people\.ledger is a ledger, too: .* use that one"):
        Ledger.create(tmp_path / "more.ledger")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"neighbours": "replace-one"},
            r"neighbours must be Neighbours.ADD_OR_REMOVE, .*got 'replace-one'",
        ),
        ({"neighbours": None}, "neighbours must be Neighbours"),
        ({"place": 3}, "place must be the name of a file"),
        ({"key": 3}, "key must be the name of a file"),
        ({"delta_0_share": "much"}, "delta_0_share must be a number"),
    ],
)
def test_what_is_of_another_type_makes_no_ledger(given, said, tmp_path):
    with pytest.raises(InputError, match=said):
        Ledger.create(**{"place": tmp_path / "people.ledger", **given})
    assert not list(tmp_path.iterdir())


def test_keys(used, tmp_path):
    key = Path(f"{used}.key")
    other = Ledger.create(tmp_path / "other.ledger")
    with pytest.raises(LedgerError, match="not written with this key"):
        Ledger(str(used), f"{other}.key")
    key.chmod(0o640)
    with pytest.raises(LedgerError, match="can be read by others"):
        Ledger(str(used))
    key.chmod(0o600)
    content = key.read_bytes()
    key.write_bytes(content[:-1])
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(str(used))
    key.unlink()
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger(str(used))
    key.write_bytes(content)
    key.chmod(0o600)
    assert Ledger(str(used)).verify() == 5
    with pytest.raises(LedgerError, match="the key of another ledger"):
        Ledger.create(tmp_path / "new.ledger", key)
    assert key.read_bytes() == content and not (tmp_path / "new.ledger").exists()


def test_another_ledger_in_the_same_place(used, tmp_path):
    other = Ledger.create(tmp_path / "other.ledger", tmp_path / "other.key")
    with pytest.raises(LedgerError, match=r"there is a ledger at .* already"):
        Ledger.create(str(used), tmp_path / "new.key")
    shutil.copy(tmp_path / "other.key", f"{used}.key")
    for path in (Path(str(used)), Path(f"{used}-wal"), Path(f"{used}-shm")):
        path.unlink(missing_ok=True)
    sql(other, "PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(str(other), str(used))
    with pytest.raises(LedgerError, match="not the ledger that this key belongs to"):
        Ledger(str(used))


def test_only_its_owner_may_read_it(used):
    for ending in ("", ".key", ".key.anchor"):
        assert Path(f"{used}{ending}").stat().st_mode & 0o077 == 0


def test_no_name_is_in_it(used):
    sql(used, "PRAGMA wal_checkpoint(TRUNCATE)")
    for path in Path(str(used)).parent.iterdir():
        content = path.read_bytes()
        assert b"ann" not in content and b"bob" not in content


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("", "place of the ledger is empty"),
        ("  ", "place of the ledger is empty"),
        ("sqlite://", "ledger in memory"),
        ("sqlite:///:memory:", "ledger in memory"),
        ("mysql://host/people", "cannot be kept in mysql|no driver"),
        ("what://host/people", "no driver|cannot be kept in"),
        ("://", "cannot be the place of a ledger"),
        ("postgresql://host/people", "give key=FILE"),
    ],
)
def test_places(place, message):
    with pytest.raises(InputError, match=message) as raised:
        Ledger(place)
    assert "\n" not in str(raised.value)


def test_a_url_without_its_driver(monkeypatch, tmp_path):
    def missing(*_args: object, **_kwargs: object) -> None:
        raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

    monkeypatch.setattr(sa, "create_engine", missing)
    with pytest.raises(InputError, match=r"no driver .*pip install 'collegium\[postgres\]'"):
        Ledger("postgresql://host/people", tmp_path / "key")


def test_what_is_no_ledger(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger(tmp_path / "missing")
    text, key = tmp_path / "text", tmp_path / "key"
    text.write_text("a,b\n1,2\n" * 100)
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger(text, key)
    database = sqlite3.connect(tmp_path / "other.db")
    database.execute("CREATE TABLE things (a)")
    database.commit()
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger(tmp_path / "other.db", key)


@pytest.mark.parametrize("version", [1, 3])
def test_another_version(used, version):
    sql(used, f"UPDATE alembic_version SET version_num = '{version}'")
    said = f"has version {version}, and this program knows version 2"
    with pytest.raises(LedgerError, match=said):
        Ledger(str(used))


def test_a_clock_that_runs_backwards(used, monkeypatch):
    class Yesterday(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> "Yesterday":
            return cls(2020, 1, 1, tzinfo=tz)

    monkeypatch.setattr(transaction, "datetime", Yesterday)
    with pytest.warns(LedgerWarning, match="the clock shows 2020"):
        ask(used, "new", TWO, COSTS)
    times = [entry.at for entry in used.history()]
    assert times == sorted(times) and times[-1] > "2026"


def test_a_full_disk_changes_nothing(used):
    before = [entry.mac for entry in used.history()]
    sa.event.listen(
        used._storage.database.engine,
        "connect",
        lambda connection, _: connection.execute("PRAGMA max_page_count = 1"),
    )
    many = people({f"p{number}": "high" for number in range(20_000)})
    with pytest.raises(LedgerError, match="disk is full"):
        ask(used, "new", many, COSTS, allow_new_people=True)
    assert [entry.mac for entry in Ledger(str(used)).history()] == before


def test_a_locked_ledger_is_waited_for(used, monkeypatch):
    sa.event.listen(
        used._storage.database.engine,
        "connect",
        lambda connection, _: connection.execute("PRAGMA busy_timeout = 1"),
    )
    other = sqlite3.connect(str(used), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked"):
        ask(used, "new", TWO, COSTS)
    other.execute("ROLLBACK")
    ask(used, "new", TWO, COSTS)


def test_read_only(used):
    engine = used._storage.database.engine
    sa.event.listen(
        engine, "connect", lambda connection, _: connection.execute("PRAGMA query_only = ON")
    )
    with pytest.raises(LedgerError, match=r"cannot be used .*readonly"):
        ask(used, "new", TWO, COSTS)


def test_an_anchor_that_cannot_be_locked(used):
    reservation = ask(used, "new", TWO, COSTS)
    lock = Path(f"{used}.key.anchor.lock")
    lock.unlink(missing_ok=True)
    lock.mkdir()
    settle = functools.partial(reservation.settle, reservation.costs)
    for use in (used.standings, settle, functools.partial(Ledger.is_to_be_made, str(used))):
        with pytest.raises(LedgerError, match=r"anchor\.lock cannot be used .*without an entry"):
            use()
    lock.rmdir()
    settle()


def test_a_server_that_stops_in_the_middle(server, tmp_path):
    url, key = server.new_database(), tmp_path / "key"
    ledger = Ledger.create(url, key)
    made = ask(ledger, "a", TWO, COSTS)
    server.stop()
    try:
        for act in (
            lambda: made.settle(COSTS),
            lambda: ask(ledger, "b", TWO, COSTS),
            lambda: Ledger(url, key),
        ):
            with pytest.raises(LedgerError, match="cannot be used") as raised:
                act()
            assert "\n" not in str(raised.value)
    finally:
        server.start()
    ledger.verify()
    assert [entry.kind for entry in ledger.history()] == ["begin", "join", "reserve"]
    made.settle(COSTS)
    assert ledger.standings()[0].spent == COSTS[0]


def test_a_role_with_bad_defaults(server, tmp_path):
    """What a transaction needs is said in each of them, and not taken from a role's defaults."""
    url, key = server.new_database(), tmp_path / "key"
    steward = sa.create_engine(url.replace("://", "+psycopg://"), isolation_level="AUTOCOMMIT")
    with steward.connect() as connection:
        for setting in (
            "default_transaction_isolation = 'serializable'",
            "default_transaction_read_only = on",
            "synchronous_commit = off",
            "statement_timeout = '5s'",
            "lock_timeout = 1",
            "idle_in_transaction_session_timeout = '5s'",
        ):
            connection.exec_driver_sql(f"ALTER ROLE steward SET {setting}")
    try:
        ledger = Ledger.create(url, key)
        ask(ledger, "a", TWO, COSTS).settle(COSTS)
        database = ledger._storage.database
        for connected, isolation, read_only in (
            (database.reading, "repeatable read", "on"),
            (database.writing, "read committed", "off"),
        ):
            with connected() as connection:
                for name, value in {
                    "transaction_isolation": isolation,
                    "transaction_read_only": read_only,
                    "synchronous_commit": "on",
                    "statement_timeout": "0",
                    "lock_timeout": "10min",
                    "idle_in_transaction_session_timeout": "10min",
                }.items():
                    assert connection.scalar(sa.text(f"SHOW {name}")) == value, name
    finally:
        with steward.connect() as connection:
            connection.exec_driver_sql("SET default_transaction_read_only = off")
            connection.exec_driver_sql("ALTER ROLE steward RESET ALL")


def test_a_connection_that_breaks_before_it_commits(server, tmp_path, monkeypatch):
    url, key = server.new_database(), tmp_path / "key"
    ledger = Ledger.create(url, key)
    made = ask(ledger, "a", TWO, COSTS)
    before = [entry.mac for entry in ledger.history()]
    steward = sa.create_engine(url.replace("://", "+psycopg://"), isolation_level="AUTOCOMMIT")
    written = transaction.Transaction._require_written

    def broken(self: transaction.Transaction, number: int, mac: str) -> None:
        written(self, number, mac)
        its = self._connection.scalar(sa.text("SELECT pg_backend_pid()"))
        with steward.connect() as connection:
            connection.execute(sa.text("SELECT pg_terminate_backend(:its, 60000)"), {"its": its})

    monkeypatch.setattr(transaction.Transaction, "_require_written", broken)
    for act in (lambda: made.settle(COSTS), lambda: ask(ledger, "b", TWO, COSTS)):
        with pytest.raises(LedgerError, match="cannot be used") as raised:
            act()
        assert "\n" not in str(raised.value)
    monkeypatch.undo()
    assert [entry.mac for entry in ledger.history()] == before
    made.settle(COSTS)
    ask(ledger, "b", TWO, COSTS)
    assert Ledger(url, key).verify() == len(before) + 2


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://steward:secret@/people?host=/tmp",
        "postgresql+psycopg://steward:secret@host/people",
        "postgresql://host/people?user=steward&p%61ssword=secret",
        "steward:secret@host/people",
        "host=there password=secret dbname=people",
    ],
)
def test_a_password_is_refused_and_not_shown(tmp_path, monkeypatch, place):
    key = tmp_path / "key"
    key.write_bytes(bytes(32))
    monkeypatch.setenv("COLLEGIUM_LEDGER", place)
    for use in (lambda: Ledger(place, key), lambda: find_place(None, None, None).opened()):
        with pytest.raises(InputError, match="set PGPASSWORD, or PGPASSFILE") as raised:
            use()
        assert "secret" not in str(raised.value)


def lower(ledger: Ledger) -> None:
    """ann and bob now grants ε = .* less than than was spent, and then are asked for more."""
    less = {"high": 0.1, "low": 0.1}
    ledger.change(people({"ann": "high", "bob": "low"}, less))
    ask(ledger, "new", people({"ann": "high", "bob": "low"}, less), COSTS)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        pytest.param(
            lambda used: ask(used, "new", people(dict.fromkeys("cdef", "high")), COSTS),
            "only 0 of these 4: if they are the same",
            id="strangers",
        ),
        pytest.param(
            lambda used: ask(
                used, "new", people({"ann": "high"}, {"high": 2.0, "low": 3.0}), COSTS
            ),
            r"for 1 person, ε = 2 .*, but ε = 1 .* one budget for all releases",
            id="the same words in two policies",
        ),
        pytest.param(
            lambda used: used.left(Budgets({"high": Budget(1.0, 1e-6)}, [0], ["ann"])),
            r"ε = 1 \(δ = 1e-06\) is granted here, but ε = 1 \(δ = 1e-05\) in the ledger",
            id="another delta",
        ),
        pytest.param(
            lambda used: used.left(Budgets(TWO.groups, [0, 1], ["ann", "ann"])),
            "two budgets, .* all records of one owner need the same level",
            id="two levels at once",
        ),
        pytest.param(
            lower, r"'high' \(1 person, ε = 0\.1 .* has μ = 0 left", id="less than was spent"
        ),
        pytest.param(
            lambda used: Ledger(str(used), f"{Ledger.create(f'{used}-2')}.key"),
            "entry 1 .* was not written with this key",
            id="the key of another",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_bad_input_is_one_line_and_loses_nothing(used, act, message):
    before = [entry.mac for entry in used.history()]
    with pytest.raises(CollegiumError, match=message) as raised:
        act(used)
    assert "\n" not in str(raised.value)
    after = used.history()
    assert [entry.mac for entry in after[: len(before)]] == before
    assert {entry.kind for entry in after[len(before) :]} <= {"change"}
    used.verify()


@pytest.mark.parametrize("parts", [[0], [0, 2], [0, -1], [[0, 1]]])
def test_parts(ledger, parts):
    with pytest.raises(InputError, match="parts"):
        ask(ledger, "a", TWO, COSTS, parts)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, "x"])
def test_the_share_of_delta(tmp_path, share):
    with pytest.raises(CollegiumError, match="delta_0_share"):
        Ledger.create(tmp_path / "people.ledger", delta_0_share=share)
    assert not list(tmp_path.iterdir())


def test_the_tables_are_those_of_the_migrations(anywhere):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from collegium.ledger.tables import metadata

    place, key = anywhere
    ledger = Ledger.create(place, key)
    with ledger._storage.database.reading() as connection:
        assert not compare_metadata(MigrationContext.configure(connection), metadata)
        if place.endswith("ledger"):
            for table in metadata.tables:
                made = connection.scalar(
                    sa.text("SELECT sql FROM sqlite_master WHERE name = :name"), {"name": table}
                )
                assert made.rstrip().endswith("STRICT")
            assert connection.scalar(sa.text("PRAGMA journal_mode")) == "wal"
            assert connection.scalar(sa.text("PRAGMA foreign_keys")) == 1
            assert connection.scalar(sa.text("PRAGMA synchronous")) == 2  # FULL
            assert connection.scalar(sa.text("PRAGMA busy_timeout")) == 600_000


def test_entries_are_json_that_anybody_can_read(used):
    kinds = [entry.kind for entry in used.history()]
    assert kinds == ["begin", "join", "reserve", "reserve", "reserve"]
    assert json.loads(json.dumps(used.history()[2].body))["name"] == "study"


def test_one_statement_is_looked_up_and_proved(used):
    """An index that says something else than its table, made behind the database's back."""
    before = used.account_of("ann").charges
    connection = sqlite3.connect(str(used))
    connection.execute("CREATE INDEX ix ON owner (cohort)")
    connection.execute("PRAGMA writable_schema = ON")
    row = connection.execute("SELECT * FROM sqlite_master WHERE name = 'ix'").fetchone()
    connection.execute("DELETE FROM sqlite_master WHERE name = 'ix'")
    connection.commit()
    connection.close()
    sql(used, "UPDATE owner SET cohort = 3 - cohort")
    connection = sqlite3.connect(str(used))
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    assert [charge.cost for charge in before] == [COSTS[0]] * 3
    try:  # either place may answer, but the same one for both
        after = used.account_of("ann").charges
    except LedgerError:
        return
    assert [charge.cost for charge in after] == [COSTS[0]] * 3


@pytest.mark.parametrize("table", ["entry", "head", "owner"])
def test_a_trigger_that_swallows_writes(used, table):
    for event in ("INSERT", "UPDATE"):
        sql(
            used,
            f"CREATE TRIGGER t{event} BEFORE {event} ON {table} BEGIN SELECT RAISE(IGNORE); END",
        )
    with pytest.raises(LedgerError, match="has triggers or views"):
        ask(used, "new", TWO, COSTS)


def test_a_write_is_read_again(used, monkeypatch):
    monkeypatch.setattr(type(used._storage.database), "require_plain", lambda *_: None)
    sql(used, "CREATE TRIGGER t BEFORE INSERT ON entry BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(LedgerError, match=r"did not keep what was written|cannot be used"):
        ask(used, "new", TWO, COSTS)


@pytest.mark.parametrize(
    "edit",
    ["DELETE FROM head", "UPDATE head SET entries = NULL; DELETE FROM owner; DELETE FROM entry"],
)
def test_an_emptied_ledger(used, edit):
    Path(f"{used}.key.anchor").unlink()
    sql(used, "PRAGMA foreign_keys = OFF", *edit.split(";"))
    with pytest.raises(LedgerError):
        used.standings()


def test_making_one_is_all_or_nothing(tmp_path, monkeypatch):
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transaction.Transaction, "write", crash)
    with pytest.raises(KeyboardInterrupt):
        Ledger.create(tmp_path / "people.ledger", delta_0_share=0.5)
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger(tmp_path / "people.ledger")


def test_a_relative_place_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Ledger.create("people.ledger")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ask(made, "a", TWO, COSTS)
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} >= {
        "people.ledger", "people.ledger.key", "people.ledger.key.anchor",
    }  # fmt: skip
    assert not list((tmp_path / "elsewhere").iterdir())


def test_who_reads_while_somebody_writes_sees_no_older_copy(used, monkeypatch):
    """Between the reader's look at the anchor and its look at the entries, an entry is added."""
    look = used._storage.database.reading

    def later():
        monkeypatch.setattr(used._storage.database, "reading", look)
        ask(Ledger(str(used)), "meanwhile", TWO, COSTS)
        return look()

    monkeypatch.setattr(used._storage.database, "reading", later)
    assert used.standings()[0].n_releases == 4


def test_no_entry_tells_the_number_of_a_person(ledger):
    """What proves a cohort's members is masked: its changes do not add up to what proves one of them."""
    for number in range(4):
        ledger.change(people({f"p{number}": "high"}))
    proofs = [one["proof"] for entry in ledger.history() for one in entry.body["cohorts"]]
    key = ledger._storage.key
    tags = {f"{key.members([key.owner(f'p{number}')]):032x}" for number in range(4)}
    assert len(set(proofs)) == 4 and not set(proofs) & tags


def test_a_program_proves_each_entry_once_and_takes_in_those_of_others(used, monkeypatch):
    other = Ledger(str(used))
    ask(other, "new", TWO, COSTS)
    prove, proven = Key.entry, []
    monkeypatch.setattr(
        Key, "entry", lambda key, *line: proven.append(line[1]) or prove(key, *line)
    )
    assert used.standings() == other.standings()
    assert proven == [6]
    assert used.verify() == 6
    assert proven == [6, 1, 2, 3, 4, 5, 6]


def test_many_people_are_looked_up_as_few_are(used, monkeypatch):
    ask(used, "one", people({"ann": "high"}), COSTS)
    some = people({"ann": "high", "bob": "low"})
    few = used.left(some)
    for limit in ("_FEW_OWNERS", "_FEW_COHORTS"):
        monkeypatch.setattr(transaction, limit, 1)
        many = used.left(some)
        assert many.cohort.tolist() == few.cohort.tolist()
        assert many.share.tolist() == few.share.tolist()
        sql(used, "UPDATE owner SET cohort = 3 - cohort")
        with pytest.raises(LedgerError, match="another program changed who is in the ledger"):
            used.left(some)
        sql(used, "UPDATE owner SET cohort = 3 - cohort")
        monkeypatch.undo()
