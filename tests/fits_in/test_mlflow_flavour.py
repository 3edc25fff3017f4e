"""A release in MLflow: only what was released, nothing pickled, and the answers of the student itself."""

import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import collegium
from collegium.errors import InputError
from collegium.study import mlflow_flavour as flavour

pytest_plugins = ["tests.fits_in.workspaces"]
RELEASED = {
    "README.md", "digests.json", "effects.json", "privacy.json", "quality.json", "report.html",
    "student.skops",
}  # fmt: skip


@pytest.fixture
def release(changeable):
    """A release that may be changed."""
    return changeable.folder / "study/release"


def told(release):
    return json.loads((release / "privacy.json").read_text("utf-8"))


# What needs no MLflow


def test_what_is_copied_is_what_was_released(release):
    (release / "notes-on-patients.txt").write_text("P00001", "utf-8")
    with flavour._copied(flavour._release_in(release.parent)) as copied:
        files = {path.name: path.read_bytes() for path in copied.iterdir()}
    assert files.keys() == RELEASED
    assert all((release / name).read_bytes() == content for name, content in files.items())


@pytest.mark.parametrize("name", ["../vault/key", "/etc/hostname", "vault/key"])
def test_a_file_outside_of_the_release_is_never_copied(release, name):
    digests = json.loads((release / "digests.json").read_text("utf-8"))
    content = (release / "../vault/key").read_bytes()
    digests["files"][name] = hashlib.sha256(content).hexdigest()
    (release / "digests.json").write_text(json.dumps(digests), "utf-8")
    with pytest.raises(InputError, match="names files outside"), flavour._copied(release):
        pass


def test_a_changed_file_is_refused(release):
    (release / "README.md").write_text("better than it is", "utf-8")
    with pytest.raises(InputError, match="not what was released"), flavour._copied(release):
        pass


def test_what_is_no_whole_release_is_refused(release, tmp_path):
    shutil.copy(release / "student.skops", tmp_path)
    with pytest.raises(InputError, match=r"no whole release \(digests.json"):
        flavour._release_in(tmp_path)


def test_numbers_are_those_of_the_release(release):
    promised, came = flavour._params(told(release)), flavour._metrics(told(release), release)
    assert promised["study"] == "Who comes back" and promised["method"] == "dpsgd"
    assert promised["guarantee"] == "worst-case" and promised["private_noise"] is True
    assert came["steps"] == 20
    for group in told(release)["groups"]:
        assert promised[f"epsilon.{group['group']}"] == group["epsilon"]
        assert came[f"epsilon_spent.{group['group']}"] == group["epsilon_spent"]
    quality = json.loads((release / "quality.json").read_text("utf-8"))
    assert came["accuracy"] == quality["accuracy"] and came["auc"] == quality["auc"]


def test_budgets_as_numbers_are_told_by_their_ends(release):
    groups = [
        {"group": str(number), "epsilon": number / 10, "delta": 1e-5} for number in range(1, 31)
    ]
    groups.append({"group": "all", "epsilon": "inf", "delta": 1e-5})  # as JSON has it
    promised = flavour._params({**told(release), "groups": groups})
    assert (promised["groups"], promised["epsilon.least"], promised["epsilon.most"]) == (
        31,
        0.1,
        float("inf"),
    )
    assert not any(key.startswith("epsilon.1") for key in promised)


def test_amounts_that_are_not_told_are_not_logged(release):
    """Under the data-dependent guarantee what was spent is sensitive, and in no release."""
    groups = [{**group, "epsilon_spent": None} for group in told(release)["groups"]]
    assert not any(
        "spent" in key for key in flavour._metrics({**told(release), "groups": groups}, release)
    )


def test_without_mlflow_it_says_what_is_missing(release, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(flavour, "import_module", missing)
    with pytest.raises(InputError, match="extra 'mlflow'"):
        flavour.log_release(release)


# What MLflow does with it


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow, with its runs in a folder of the test."""
    found = pytest.importorskip("mlflow", reason="MLflow is not here (extra 'mlflow')")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)
    found.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    found.create_experiment("test", artifact_location=(tmp_path / "files").as_uri())
    found.set_experiment("test")
    yield found
    while found.active_run():
        found.end_run()


@pytest.mark.filterwarnings("ignore")  # of MLflow's own
def test_a_logged_student_answers_as_the_student_does(mlflow, finished):
    table, study = finished.folder / "new.csv", finished.folder / "study"
    flavour_face = importlib.import_module("collegium.mlflow")
    with mlflow.start_run():
        flavour_face.log_release(study)
        logged = flavour_face.log_model(study, registered_model_name="readmissions")
    records, student = collegium.read_records(table, study), collegium.load_student(study)
    expected = student.predict(records)
    model = mlflow.pyfunc.load_model("models:/readmissions/1")
    assert np.array_equal(model.predict(records), expected)
    beliefs = model.predict(records, params={"proba": True})
    assert np.array_equal(beliefs.to_numpy(), student.predict_proba(records))
    assert beliefs.columns.tolist() == student.classes_.tolist()
    again = flavour_face.load_model("models:/readmissions/1")
    assert np.array_equal(again.predict(records), expected)
    kinds = {column.name: column.type.name for column in logged.signature.inputs}
    assert kinds == {"age": "double", "sex": "string", "days": "double"}


@pytest.mark.filterwarnings("ignore")
def test_nothing_but_the_release_is_logged_and_nothing_is_pickled(mlflow, finished, tmp_path):
    flavour_face = importlib.import_module("collegium.mlflow")
    with mlflow.start_run():
        flavour_face.log_release(finished.folder / "study")
        flavour_face.log_model(finished.folder / "study")
    logged = [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
    own = {"MLmodel", "conda.yaml", "python_env.yaml", "requirements.txt", "registered_model_meta"}
    assert {path.name for path in logged} <= RELEASED | own
    assert not [path for path in logged if path.suffix in (".pkl", ".pickle", ".cloudpickle")]
    assert not [path for path in logged if b"P00001" in path.read_bytes()]


@pytest.mark.filterwarnings("ignore")
def test_loading_imports_nothing_that_a_model_names(mlflow, finished, tmp_path):
    """MLflow's own way in imports what MLmodel says; this one reads the release."""
    flavour_face = importlib.import_module("collegium.mlflow")
    folder, trap = tmp_path / "model", tmp_path / "trap"
    flavour_face.save_model(finished.folder / "study", folder)
    described = (folder / "MLmodel").read_text("utf-8")
    (folder / "MLmodel").write_text(
        described.replace("loader_module: collegium.mlflow", "loader_module: a_trap"), "utf-8"
    )
    (folder / "a_trap.py").write_text(f"open({str(trap)!r}, 'w')", "utf-8")
    records = collegium.read_records(finished.folder / "new.csv", finished.folder / "study")
    assert len(flavour_face.load_model(str(folder)).predict(records)) == 50
    assert not trap.exists()
    student = folder / "data/release/student.skops"
    student.write_bytes(student.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="not what was released"):
        flavour_face.load_model(str(folder))


def test_the_example_logs_registers_and_asks(mlflow, finished, tmp_path):
    script = Path(__file__).parents[2] / "examples/mlflow/log_student.py"
    study, table = finished.folder / "study", finished.folder / "new.csv"
    environment = {**os.environ, "MLFLOW_TRACKING_URI": mlflow.get_tracking_uri()}
    command = [sys.executable, str(script), str(study), str(table)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    label = collegium.load_student(study).predict(collegium.read_records(table, study))[0]
    assert done.stdout.startswith(f"[{label} ")
