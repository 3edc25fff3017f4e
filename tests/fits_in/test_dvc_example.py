"""The stages for DVC: they run, track nothing private, and a repeated stage spends nothing."""

import csv
import shutil
import subprocess

import pytest
import yaml

pytest_plugins = ["tests.fits_in.workspaces"]
PRIVATE = ("patients.csv", "vault", ".ledger")


def names(stage, kind):
    """Files that a stage names, with what DVC is told of them."""
    for one in stage.get(kind, []):
        yield from one.items() if isinstance(one, dict) else [(one, {})]


def test_the_stages_run_as_they_stand(finished):
    assert list(finished.stages) == ["plan", "run", "predict"]
    with (finished.folder / "predictions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 50 and {row["label"] for row in rows} == {"False", "True"}


def test_each_stage_makes_what_it_says_and_takes_what_is_there(finished):
    pipeline = yaml.safe_load((finished.folder / "dvc.yaml").read_text("utf-8"))
    for stage in pipeline["stages"].values():
        for kind in ("deps", "outs"):
            assert all((finished.folder / name).exists() for name, _ in names(stage, kind))
    assert all((finished.folder / name).is_file() for name in pipeline["metrics"])


def test_nothing_private_is_tracked(finished):
    """A dependency's digest is published in dvc.lock; an output is removed, and copied to a cache."""
    ignored = (finished.folder / ".dvcignore").read_text("utf-8").splitlines()
    assert {"patients.csv", "*.ledger*", "study/vault"} <= set(ignored)
    for stage in finished.stages.values():
        tracked = {name for kind in ("deps", "outs") for name, _ in names(stage, kind)}
        assert not {name for name in tracked if any(part in name for part in PRIVATE)}
        assert "study" not in tracked and "." not in tracked
    assert dict(names(finished.stages["run"], "outs"))["study/release"]["persist"] is True


def test_a_stage_run_again_spends_nothing(changeable):
    booked = changeable.booked()
    assert changeable.stage("run").returncode == 0
    shutil.rmtree(changeable.folder / "study/release")
    assert changeable.stage("run").returncode == 0
    assert (changeable.folder / "study/release/student.skops").is_file()
    assert changeable.booked() == booked


def test_changed_settings_are_refused_and_the_old_plan_stays(changeable):
    booked, plan = changeable.booked(), changeable.folder / "plan.json"
    old = plan.read_bytes()
    settings = changeable.folder / "study.toml"
    settings.write_text(settings.read_text("utf-8").replace("steps = 20", "steps = 21"), "utf-8")
    for name in ("plan", "run"):
        done = changeable.stage(name)
        assert done.returncode == 2 and done.stderr.startswith("error: ")
    assert plan.read_bytes() == old and changeable.booked() == booked


@pytest.fixture
def repro(new_workspace):
    """A workspace of DVC, and its command."""
    if shutil.which("dvc") is None:
        pytest.skip("DVC is not here: pip install dvc, in an environment of its own")
    workspace = new_workspace()
    assert workspace.call(["dvc", "init", "--no-scm", "--quiet"]).returncode == 0

    def call() -> "subprocess.CompletedProcess[str]":
        return workspace.call(["dvc", "repro"])

    return workspace, call


def test_dvc_runs_the_stages_once(repro):
    workspace, call = repro
    done = call()
    assert done.returncode == 0, done.stderr
    booked = workspace.booked()
    for path in (workspace.folder / ".dvc/cache").rglob("*"):
        assert not path.is_file() or b"P00001" not in path.read_bytes()
    assert "patients" not in (workspace.folder / "dvc.lock").read_text("utf-8")
    assert "up to date" in call().stdout
    settings = workspace.folder / "study.toml"
    original = settings.read_text("utf-8")
    settings.write_text(original.replace("steps = 20", "steps = 21"), "utf-8")
    assert call().returncode != 0
    settings.write_text(original, "utf-8")
    shutil.rmtree(workspace.folder / "study/release")
    assert call().returncode == 0
    assert workspace.call(["collegium", "verify", "study"]).returncode == 0
    assert workspace.booked() == booked
