"""Connections to what can add up by itself: DuckDB, PostgreSQL, and Spark.

One snapshot for as long as a connection is open; expressions of Ibis, which it writes in each engine's SQL;
and of an engine's errors never the text, which quotes values of rows. Nothing that is sent is private but
names of people that a ledger knows, and these go another way than statements do, so that no log has them.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, cast

from collegium.checks import nearest, shown
from collegium.data.engines.places import Place
from collegium.errors import InputError

ROWS = 1 << 17
"""Rows that leave an engine together."""
_PEOPLE = "collegium_people"
_ZONE = "spark.sql.session.timeZone"
_NO_CONNECTION = "there is no connection to the server"
_ENGINES = "DuckDB, PostgreSQL and Spark"


class EngineError(InputError):
    """An engine stopped with an error. What it said is not told: it may quote somebody's row."""


class StatementError(InputError):
    """An engine does not take a statement, before it looked at any row."""


class Connection(Protocol):
    """One snapshot of an engine's tables.

    ``name``: of the engine. ``about``: which database, without secrets.
    ``frozen``: whether what is read stays as it was when the connection was opened, whoever writes.
    ``forbidden``: columns of the table that this role may not read.
    """

    name: str
    about: str
    frozen: bool
    forbidden: Sequence[str]

    @property
    def table(self) -> Any:
        """The table that was named, as an expression of Ibis."""
        ...

    def other(self, name: str) -> Any:
        """Another table of the same database, as an expression."""
        ...

    def fetch(self, expression: Any) -> list[tuple[Any, ...]]:
        """Rows of a small result, in Python's types.

        Raises StatementError where the engine refuses before it looks at rows, and otherwise EngineError.
        """
        ...

    def stream(self, expression: Any) -> Iterator[Any]:
        """A large result as pyarrow's record batches."""
        ...

    def people(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """A table that only this connection has, as an expression: not sent in a statement."""
        ...

    def close(self) -> None:
        """End the snapshot."""
        ...


def opened(given: Any) -> Connection:
    """Open a connection.

    ``given``: a :class:`~collegium.data.engines.places.Place` in an engine, or an expression of Ibis on one,
    whose connection is used.

    Raises InputError where an engine, its driver or the table is not there, or may not be read.
    """
    if isinstance(given, Place):
        with _without_its_words(given.engine, f"{given} cannot be opened"):
            return _DuckDB.at(given) if given.engine == "duckdb" else _PostgreSQL.at(given)
    from ibis.common.exceptions import IbisError

    try:
        backend = given.get_backend()
        columns = given.columns
    except (AttributeError, IbisError):
        raise InputError(
            "an expression of Ibis must be a table with a connection, such as "
            "ibis.duckdb.connect(FILE).table(NAME)"
        ) from None
    if not columns:
        raise InputError("the table has no columns: give those to ask about")
    kinds = {"duckdb": _DuckDB, "postgres": _PostgreSQL, "pyspark": _Spark}
    if backend.name not in kinds:
        raise InputError(
            f"tables of {backend.name} cannot be asked where they lie: allowed are {_ENGINES}; read the "
            "table into memory, or export it to Parquet"
        )
    with _without_its_words(backend.name, "the table cannot be read"):
        return cast(Connection, kinds[backend.name](backend, given))


def is_expression(given: Any) -> bool:
    """Whether something is a table of Ibis; nothing is imported for it."""
    return type(given).__module__.startswith("ibis.") and hasattr(given, "get_backend")


class _Engine:
    """What all have in common."""

    name: str
    frozen = True
    forbidden: Sequence[str] = ()
    _owned = False
    _schema: str | None = None
    """In which other tables are."""
    _by_bytes: str
    """In SQL: a column's text, in which no collation takes different ones for the same."""

    def __init__(self, backend: Any, table: Any, about: str = "") -> None:
        self._backend, self._table, self.about = backend, table, about or f"a table of {self.name}"
        self._begin()
        if table is not None:
            self.frozen = False  # an expression may read files, or somebody's frame
            self._table = self._told_apart(self._table)

    @classmethod
    def _of_ours(cls, own: Any, kind: Any, place: Place) -> Self:
        """Take a connection that was made for this, which ends with it."""
        try:
            made = cls(kind.from_connection(own), None, str(place).partition("#")[0])
            made._owned, made._schema = True, place.schema
            made._table, made.forbidden = made._named(place.table, place.schema)
        except BaseException:
            own.close()
            raise
        return made

    def _begin(self) -> None: ...

    @property
    def table(self) -> Any:
        return self._table

    def other(self, name: str) -> Any:
        with _without_its_words(self.name, f"table {shown(name)} of {self.about} cannot be read"):
            return self._named(name, self._schema)[0]

    def _named(self, name: str, schema: str | None = None) -> tuple[Any, Sequence[str]]:
        """Find a table, and which of its columns this role may not read."""
        from ibis.common.exceptions import TableNotFound

        try:
            self.frozen = self.frozen and self._is_stored(name, schema)
            import sqlglot as sg

            where = sg.table(name, db=schema, quoted=True).sql(self._backend.dialect)
            table, may = self._backend.table(name, database=schema), self._may_be_read(where)
        except TableNotFound:
            raise self._no_table(name, schema) from None
        forbidden = () if may is None else tuple(one for one in table.columns if one not in may)
        if forbidden and not may:
            raise InputError(
                f"table {shown(name)} of {self.about}: this role may not read it: GRANT SELECT to it, or use "
                "another one"
            )
        return self._told_apart(table, where, may or ()), forbidden

    def _no_table(self, name: str, schema: str | None) -> InputError:
        there = self._tables(schema)
        if schema is not None and not there:
            others = nearest(schema, self._schemas())
            return InputError(f"{self.about} has no table in a schema {shown(schema)}: {others}")
        whole = name if schema is None else f"{schema}.{name}"
        return InputError(
            f"{self.about} has no table {shown(whole)} that may be read: {nearest(name, there)}"
        )

    def _schemas(self) -> list[str]:
        of_its_own = ("pg_", "information_schema")
        there = self._backend.list_databases()
        return [name for name in there if not name.startswith(of_its_own)]

    def _tables(self, schema: str | None) -> list[str]:
        return list(self._backend.list_tables(database=schema))

    def _may_be_read(self, where: str) -> list[str] | None:
        """Columns that this role may read; None: nobody says."""
        return None

    def _told_apart(self, table: Any, where: str = "", these: Sequence[str] = ()) -> Any:
        """Have text told apart by its bytes, as it is here: collations may say that "A" is "a".

        ``where``: name of the table in SQL, if it has one. ``these``: which to take of it; none: all.
        """
        import sqlglot as sg

        kinds = {
            name: kind for name, kind in table.schema().items() if name in (these or table.columns)
        }
        where = where or f"({self._backend.compile(table)}) AS as_it_lies"
        columns = []
        for name, kind in kinds.items():
            column = sg.to_identifier(name, quoted=True).sql(self._backend.dialect)
            shown = self._by_bytes.format(column) if kind.is_string() else column
            columns.append(f"{shown} AS {column}")
        return self._backend.sql(f"SELECT {', '.join(columns)} FROM {where}", schema=kinds)

    def _sql(self, expression: Any) -> str:
        """Write an expression in SQL, if the engine takes it: asked before a row is looked at."""
        try:
            with self._words():
                sql = str(self._backend.compile(expression))
                self._explain(sql)
        except EngineError as error:
            if self._looks_first:
                raise
            raise StatementError(str(error)) from None
        return sql

    def fetch(self, expression: Any) -> list[tuple[Any, ...]]:
        sql = self._sql(expression)
        with self._words():
            return list(self._backend.con.execute(sql).fetchall())

    @property
    def _looks_first(self) -> bool:
        """Whether rows may be looked at to find out what a statement means."""
        return False

    def _explain(self, sql: str) -> None:
        raise NotImplementedError

    def _is_stored(self, name: str, schema: str | None) -> bool:
        """Whether it is a table of the snapshot: a view may read files, other servers, or the time."""
        return False

    def _words(self) -> contextlib.AbstractContextManager[None]:
        return _without_its_words(self.name)


class _DuckDB(_Engine):
    name = "DuckDB"
    _by_bytes = "CAST({} AS VARCHAR) COLLATE POSIX"

    @classmethod
    def at(cls, place: Place) -> _DuckDB:
        duckdb, ibis = _modules("duckdb", "duckdb", "ibis")
        never = {"autoinstall_known_extensions": "false", "python_enable_replacements": "false"}
        own = duckdb.connect(place.where, read_only=True, config=never)
        return cls._of_ours(own, ibis.duckdb, place)

    def _begin(self) -> None:
        con = self._backend.con
        # In a transaction of the caller's both are the same.
        numbers = {con.execute("SELECT txid_current()").fetchall()[0] for _ in range(2)}
        self._ours = len(numbers) == 2
        if self._ours:
            con.execute("BEGIN TRANSACTION").fetchall()
            con.execute("SELECT txid_current()").fetchall()
        self._people: list[str] = []
        ((self._zone,),) = con.execute("SELECT current_setting('TimeZone')").fetchall()
        con.execute("SET TimeZone = 'UTC'")

    def _explain(self, sql: str) -> None:
        self._backend.con.execute(f"EXPLAIN {sql}").fetchall()

    @property
    def _looks_first(self) -> bool:
        return not self.frozen  # at rows of a text file, to find out what its columns hold

    def _tables(self, schema: str | None) -> list[str]:
        asked = "SELECT table_name FROM information_schema.tables WHERE table_schema = ?"
        found = self._backend.con.execute(asked, [schema or "main"]).fetchall()
        return [name for (name,) in found]

    def _is_stored(self, name: str, schema: str | None) -> bool:
        con = self._backend.con
        schema = schema or con.execute("SELECT current_schema()").fetchall()[0][0]
        asked = "SELECT 1 FROM duckdb_tables() WHERE table_name = ? AND schema_name = ?"
        return bool(con.execute(asked, [name, schema]).fetchall())

    def stream(self, expression: Any) -> Iterator[Any]:
        sql = self._sql(expression)
        with self._words():
            yield from self._backend.con.sql(sql).to_arrow_reader(ROWS)

    def people(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        import pyarrow as pa

        name = _PEOPLE + uuid.uuid4().hex
        with self._words():
            self._backend.con.register(name, pa.table(dict(columns)))
            self._people.append(name)
            return self._told_apart(self._backend.table(name))

    def close(self) -> None:
        with contextlib.suppress(Exception):
            for name in self._people:
                self._backend.con.unregister(name)
            if self._ours:
                self._backend.con.execute("ROLLBACK").fetchall()
            self._backend.con.execute(f"SET TimeZone = '{self._zone}'")
        if self._owned:
            self._backend.con.close()


class _PostgreSQL(_Engine):
    name = "PostgreSQL"
    _by_bytes = 'CAST({} AS TEXT) COLLATE "C"'

    @classmethod
    def at(cls, place: Place) -> _PostgreSQL:
        psycopg, ibis = _modules("postgres", "psycopg", "ibis")
        try:
            own = psycopg.connect(place.where, application_name="collegium", client_encoding="utf8")
        except psycopg.OperationalError as error:
            reason = _why_not_connected(str(error))
            raise EngineError(f"{place} cannot be opened ({reason})") from None
        return cls._of_ours(own, ibis.postgres, place)

    def _begin(self) -> None:
        import psycopg
        from psycopg.pq import TransactionStatus

        con = self._backend.con
        self._ours = con.info.transaction_status == TransactionStatus.IDLE
        self._as_before = con.autocommit, con.isolation_level
        if self._ours:
            con.autocommit = False
            con.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        level = con.execute("SHOW transaction_isolation").fetchone()[0]
        if level not in ("repeatable read", "serializable"):
            raise InputError(
                f"the connection is within a transaction ({level}) in which tables change between questions: "
                "commit it, and open the session again"
            )
        con.execute("SET LOCAL statement_timeout = 0")
        con.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        con.execute("SET LOCAL extra_float_digits = 1")
        con.execute("SET LOCAL TimeZone = 'UTC'")
        con.execute("SELECT count(*) FROM pg_class")  # from here on the snapshot stands

    def _explain(self, sql: str) -> None:
        with self._backend.con.transaction():
            self._backend.con.execute(f"EXPLAIN {sql}")

    def _may_be_read(self, where: str) -> list[str] | None:
        asked = (
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 "
            "AND NOT attisdropped AND has_column_privilege(attrelid, attnum, 'SELECT')"
        )
        return [name for (name,) in self._backend.con.execute(asked, [where]).fetchall()]

    def _is_stored(self, name: str, schema: str | None) -> bool:
        asked = (
            "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = %s "
            "AND n.nspname = coalesce(%s, current_schema()) AND c.relkind IN ('r', 'm') "
            "AND NOT c.relhassubclass"  # of which one may be on another server
        )
        return self._backend.con.execute(asked, [name, schema]).fetchone() is not None

    def stream(self, expression: Any) -> Iterator[Any]:
        sql, con = self._sql(expression), self._backend.con
        with self._words():
            # Hundreds of sums take longer to compile than to add up.
            con.execute("SET LOCAL jit = off")
            with con.cursor(name="collegium_rows") as cursor:
                cursor.itersize = ROWS
                cursor.execute(sql)
                while rows := cursor.fetchmany(ROWS):
                    yield _batch(expression, rows)
            con.execute("SET LOCAL jit TO DEFAULT")

    def people(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        from psycopg import sql

        name = _PEOPLE + uuid.uuid4().hex
        kinds = {True: "bigint", False: "text"}
        types = [kinds[all(isinstance(one, int) for one in values)] for values in columns.values()]
        fields = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(field), sql.SQL(kind))
            for field, kind in zip(columns, types, strict=True)
        )
        table = sql.Identifier(name)
        con = self._backend.con
        with self._words():
            may, no_writes = con.execute(
                "SELECT has_database_privilege(current_database(), 'TEMPORARY'), "
                "current_setting('transaction_read_only') = 'on'"
            ).fetchone()
        if not may or no_writes:
            allow = (
                "set PGOPTIONS='-c default_transaction_read_only=off', and ask the primary server"
                if no_writes
                else "GRANT TEMPORARY ON DATABASE to it"
            )
            raise InputError(
                "names of people go to PostgreSQL in a temporary table, which this "
                f"{'connection' if no_writes else 'role'} may not make: {allow}; or read the table into "
                "memory"
            )
        with self._words(), con.transaction(), con.cursor() as cursor:
            cursor.execute(
                sql.SQL("CREATE TEMPORARY TABLE {} ({}) ON COMMIT DROP").format(table, fields)
            )
            with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
                for row in zip(*columns.values(), strict=True):
                    copy.write_row(row)
            cursor.execute(sql.SQL("ANALYZE {}").format(table))
        with self._words():
            return self._told_apart(self._backend.table(name))

    def close(self) -> None:
        with contextlib.suppress(Exception):
            if self._ours:
                self._backend.con.rollback()
                self._backend.con.autocommit, self._backend.con.isolation_level = self._as_before
        if self._owned:
            self._backend.con.close()


class _Spark(_Engine):
    name = "Spark"
    _by_bytes = "CAST({} AS STRING) COLLATE UTF8_BINARY"
    frozen = False  # what is evicted from its memory is read again

    def _begin(self) -> None:
        self._session = self._backend._session
        self._views: list[str] = []
        self._frames: list[Any] = []
        with self._words():
            self._table = self._kept(self._table)

    def _named(self, name: str, schema: str | None = None) -> tuple[Any, Sequence[str]]:
        table, forbidden = super()._named(name, schema)
        return self._kept(table), forbidden

    def _kept(self, table: Any) -> Any:
        """Have a table as it is now."""
        frame = self._session.sql(str(self._backend.compile(table))).persist()
        self._frames.append(frame)
        frame.count()  # now, and not when the first question is asked
        return self._view(frame)

    def _explain(self, sql: str) -> None:
        self._session.sql(sql)

    def _view(self, frame: Any) -> Any:
        name = "collegium_" + uuid.uuid4().hex
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return self._backend.table(name)

    @contextlib.contextmanager
    def _words(self) -> Iterator[None]:
        with super()._words():
            before = self._session.conf.get(_ZONE)
            self._session.conf.set(_ZONE, "UTC")
            try:
                yield
            finally:
                self._session.conf.set(_ZONE, before)

    def fetch(self, expression: Any) -> list[tuple[Any, ...]]:
        sql = self._sql(expression)
        with self._words():
            return [tuple(row) for row in self._session.sql(sql).collect()]

    def stream(self, expression: Any) -> Iterator[Any]:
        sql = self._sql(expression)
        with self._words():
            rows = self._session.sql(sql).toLocalIterator()
        while some := self._some(rows):
            yield _batch(expression, some)

    def _some(self, rows: Iterator[Any]) -> list[Any]:
        with self._words():
            return list(itertools.islice(rows, ROWS))

    def people(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        import pyarrow as pa

        with self._words():
            view = self._view(self._session.createDataFrame(pa.table(dict(columns))))
            return self._told_apart(view)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            for name in self._views:
                self._session.catalog.dropTempView(name)
            for frame in self._frames:
                frame.unpersist()


def _batch(expression: Any, rows: Sequence[Sequence[Any]]) -> Any:
    """Make a record batch of rows, of the types of an expression."""
    import pyarrow as pa

    kinds = expression.schema().to_pyarrow()
    cells = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [_as_arrow(list(column), field.type) for column, field in zip(cells, kinds, strict=True)],
        names=kinds.names,
    )


def _as_arrow(cells: list[Any], kind: Any) -> Any:
    """Make a column of cells; as text where Arrow has no room for what an engine allows."""
    import pyarrow as pa

    with contextlib.suppress(pa.ArrowException, OverflowError, ValueError, TypeError):
        return pa.array(cells, type=None if pa.types.is_decimal(kind) else kind)
    return pa.array([None if cell is None else str(cell) for cell in cells], type=pa.string())


def _modules(extra: str, *names: str) -> list[Any]:
    import importlib

    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as error:
        raise InputError(
            f"{error.name} is needed to ask a table where it lies: run `pip install 'collegium[{extra}]'`"
        ) from None


@contextlib.contextmanager
def _without_its_words(engine: str, what: str = "") -> Iterator[None]:
    """Turn whatever an engine raises into one line without its words, and keep these out of logs."""
    logger = logging.getLogger("SQLQueryContextLogger")  # in which PySpark writes errors down
    before, logger.disabled = logger.disabled, True
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # also of Python itself, of a row that a driver has no room for
        reason = (
            _public_reason(error) or "what it said is not shown, since it may quote somebody's row"
        )
        raise EngineError(f"{what or f'{engine} stopped with an error'} ({reason})") from None
    finally:
        logger.disabled = before


def _why_not_connected(said: str) -> str:
    """Tell why no connection was made, by what a server says before it knows of any row."""
    if re.search(r'database ".*" does not exist', said):
        return "there is no such database"
    if re.search(r'role ".*" does not exist|password|authentication failed', said):
        return "the server refused role or password: set PGPASSWORD, or PGPASSFILE"
    return _NO_CONNECTION


def _public_reason(error: Exception) -> str:
    """What has nothing to do with any row: a connection, or a right."""
    state = getattr(error, "sqlstate", None) or ""
    kinds = {type(one).__name__ for one in (error, error.__cause__) if one is not None}
    if state == "42501":
        return "this role may not read it: GRANT SELECT to it, or use another one"
    if state.startswith(("08", "57P")) or (
        kinds & {"OperationalError", "AdminShutdown"} and not state
    ):
        return _NO_CONNECTION
    if kinds & {"Py4JNetworkError", "ConnectionRefusedError"}:
        return "Spark has ended"
    if "IOException" in kinds:
        return "the file cannot be read, or another program has opened it for writing"
    return ""
