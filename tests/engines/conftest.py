"""Databases to ask: a DuckDB file, a database on a real PostgreSQL server, and a local Spark cluster."""

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import make_url

from collegium.weighted_sums import in_engine
from tests.engines.generated_tables import into_duckdb
from tests.engines.houses import House
from tests.postgresql_server import Server

_ZONE = "America/New_York"
"""In which servers show times: what is asked of a time with a zone must not depend on it."""
_QUIET = """\
rootLogger.level = off
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
"""


@pytest.fixture
def known_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what each session asks of its engine, which is asked elsewhere."""
    monkeypatch.setattr(in_engine, "refuse_other_answers", lambda engine: None)


@pytest.fixture(params=["duckdb", "postgresql"])
def house(request: Any, tmp_path: Path) -> House:
    """Make a database of an engine, with tables to be put into it."""
    return House.at(request.param, request.getfixturevalue, tmp_path)


@pytest.fixture
def duckdb_file(tmp_path: Path) -> Callable[..., Path]:
    """Make a DuckDB file of Arrow tables, given by name: ``duckdb_file(people=table)``."""
    pytest.importorskip("duckdb", reason="DuckDB is not installed (PyPI: duckdb)")

    def made(file: str = "house.duckdb", **tables: pa.Table) -> Path:
        path = tmp_path / file
        for name, table in tables.items():
            into_duckdb(table, path, name)
        return path

    return made


@pytest.fixture
def database(server: Server) -> str:
    """URL of a new database on a PostgreSQL server far from Greenwich, which logs every statement."""
    url = server.new_database()
    server.run(url, f"ALTER DATABASE {make_url(url).database} SET timezone = '{_ZONE}'")
    server.log_statements(url)
    return url


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Start a Spark session of two cores, as Spark 4 is by default, which writes into a temporary folder."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark is not installed (PyPI: pyspark)")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java, which Spark needs (Debian: default-jre-headless)")
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    (folder / "log4j2.properties").write_text(_QUIET, "utf-8")
    java = (
        f"-Dderby.system.home={folder} -Dlog4j2.configurationFile=file:{folder}/log4j2.properties"
    )
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": _ZONE,
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": java,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = builder.getOrCreate()
    yield session
    session.stop()
    gateway = SparkContext._gateway
    gateway.shutdown()
    # It would end when nobody can tell it anything any more, but processes that were forked since can.
    gateway.proc.terminate()
    gateway.proc.wait()
    gateway.proc.stdin.close()
    SparkContext._gateway = SparkContext._jvm = (
        None  # whoever wants Spark afterwards starts it anew
    )
