"""Exit codes mean what docs/fits-in.md says, and the example for Airflow tries again what it says."""

import ast
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest_plugins = ["tests.fits_in.workspaces"]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/fits-in.md").read_text("utf-8")
PROGRAMS = Path(sys.executable).parent
DAG = ROOT / "examples/airflow/study_dag.py"
CODES = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}


def test_the_page_lists_all_codes():
    assert {0, 1, 2, 130, 137, 143} == CODES


def test_what_ends_well_is_0_and_what_is_refused_is_2(finished):
    assert finished.call(["collegium", "verify", "study"]).returncode == 0
    for refused in (["run", "no.toml"], ["nothing"]):
        done = finished.call(["collegium", *refused])
        assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_what_is_found_wrong_is_1(changeable):
    card = changeable.folder / "study/release/README.md"
    card.write_text("better than it is", "utf-8")
    assert changeable.call(["collegium", "verify", "study"]).returncode == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_what_was_cut_off_goes_on_and_charges_once(new_workspace, how):
    workspace = new_workspace()
    settings = workspace.folder / "study.toml"
    settings.write_text(settings.read_text("utf-8").replace("steps = 20", "steps = 400"), "utf-8")
    journal = workspace.folder / "study/vault/journal.jsonl"
    with subprocess.Popen(
        ["collegium", "run", "study.toml", "--quiet"],
        cwd=workspace.folder,
        env=workspace.environment,
        stderr=subprocess.PIPE,
    ) as process:
        while process.poll() is None and not (journal.exists() and journal.stat().st_size):
            time.sleep(0.01)
        process.send_signal(how)
        code = process.wait()
    assert code == (130 if how == signal.SIGINT else -how)  # a shell says 128 more than the signal
    done = workspace.call(["collegium", "run", "study.toml", "--quiet"])
    assert done.returncode == 0, done.stderr
    assert len(json.loads(workspace.booked())["releases"]) == 1


@pytest.fixture(scope="module")
def call():
    """The function of the DAG that maps codes, without Airflow."""

    class AgainError(Exception):
        pass

    class NeverError(Exception):
        pass

    tree = ast.parse(DAG.read_text("utf-8"))
    wanted = [
        node
        for node in tree.body
        if (isinstance(node, ast.FunctionDef) and node.name == "call")
        or (isinstance(node, ast.Assign) and node.targets[0].id == "INTERRUPTED")
    ]
    found = {
        "subprocess": subprocess,
        "AirflowException": AgainError,
        "AirflowFailException": NeverError,
    }

    def after(program: str) -> str:
        found["COLLEGIUM"] = program
        exec(compile(ast.Module(wanted, []), DAG.name, "exec"), found)
        try:
            found["call"]("run", "study.toml")
        except AgainError:
            return "again"
        except NeverError:
            return "never"
        return "done"

    return after


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_dag_tries_again_what_the_page_says(call, tmp_path, code):
    program = tmp_path / "collegium"
    program.write_text(f"#!/bin/sh\nexit {code}\n", "utf-8")
    program.chmod(0o755)
    (row,) = re.findall(rf"^\| {code} \|.*\| (\S+) \|$", PAGE, re.MULTILINE)
    assert call(str(program)) == {"–": "done", "no": "never", "yes": "again"}[row]


@pytest.mark.parametrize("how", ["KILL", "TERM"])
def test_the_dag_tries_again_what_a_signal_ended(call, tmp_path, how):
    program = tmp_path / "collegium"
    program.write_text(f"#!/bin/sh\nkill -{how} $$\n", "utf-8")
    program.chmod(0o755)
    assert call(str(program)) == "again"


def test_airflow_runs_the_dag(new_workspace, tmp_path):
    if shutil.which("airflow") is None:
        pytest.skip("Airflow is not here: pip install apache-airflow, in an environment of its own")
    workspace, home = new_workspace(), tmp_path / "airflow"
    shutil.copytree(DAG.parent, home / "dags")
    environment = {
        **workspace.environment,
        "COLLEGIUM": str(PROGRAMS / "collegium"),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    given = {name: str(workspace.folder / name) for name in ("study.toml", "new.csv")}
    conf = json.dumps({"study": given["study.toml"], "table": given["new.csv"]})
    for command in (["db", "migrate"], ["dags", "test", "collegium_study", "--conf", conf]):
        done = subprocess.run(
            ["airflow", *command], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (workspace.folder / "new.predictions.csv").is_file()
    assert workspace.call(["collegium", "verify", "study"]).returncode == 0
