"""A study as a DAG of Airflow: plan, run, verify, predict. Exit codes: docs/fits-in.md.

It is started by hand: each release spends people's budgets, and a schedule would do so unseen. A run of the
DAG that is started again, or tried again after a crash, goes on with the same release and charges nobody
twice. COLLEGIUM names the program where it is not on the PATH: it may have an environment of its own.
"""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

COLLEGIUM = os.environ.get("COLLEGIUM", "collegium")
INTERRUPTED = 130


def call(*arguments: str) -> None:
    """Run a command of Collegium; what was refused fails for good, what was cut off is tried again."""
    code = subprocess.run([COLLEGIUM, *arguments], check=False).returncode
    if code == INTERRUPTED or code < 0 or code > 128:  # a signal, or a shell that tells of one
        raise AirflowException(
            f"{arguments[0]} was cut off ({code}): the next try goes on from there"
        )
    if code:
        raise AirflowFailException(f"{arguments[0]} refused ({code}): its message stands above")


@dag(
    schedule=None,
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=1)},
    params={
        "study": Param("study.toml", type="string", description="The study's TOML file"),
        "table": Param("new.csv", type="string", description="Records to predict"),
    },
)
def collegium_study():
    """Release a study, and predict with what it released."""

    @task
    def plan(params: dict[str, str]) -> None:
        if not _release(params).exists():  # a finished study is not planned again
            call("plan", params["study"], "--quiet")

    @task
    def run(params: dict[str, str]) -> None:
        call("run", params["study"], "--quiet")

    @task
    def verify(params: dict[str, str]) -> None:
        call("verify", str(_folder(params)))

    @task
    def predict(params: dict[str, str]) -> None:
        out = Path(params["table"]).with_suffix(".predictions.csv")
        out.unlink(missing_ok=True)
        call("predict", str(_release(params).parent), params["table"], "--out", str(out))

    plan() >> run() >> verify() >> predict()


def _folder(params: dict[str, str]) -> Path:
    return Path(params["study"]).with_suffix("")


def _release(params: dict[str, str]) -> Path:
    return _folder(params) / "release" / "report.html"


collegium_study()
