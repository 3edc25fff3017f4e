"""The command: quick forms of every kind, what it says of missing data, and going on after a kill."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from reproduction import laboratory as module
from reproduction.laboratory import Laboratory, Options
from reproduction.readings import PUBLISHED, SOUND
from reproduction.records import SCENES, load_split
from reproduction.society import everybody
from reproduction.tables import TABLES, run_table
from reproduction.targets import titles


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """One work folder for all: stages are shared between tables and figures."""
    return tmp_path_factory.mktemp("work")


def test_list(reproduction):
    code, text, _ = reproduction("--list", "--json")
    assert code == 0
    names = json.loads(text)
    figures = [f"thesis-fig-6.{i}" for i in (2, 3, 4, 5)]
    figures += [f"paper-fig-{i}" for i in (1, 2, 3, 5, 6)]
    tables = [f"thesis-6.{i}" for i in (4, 5, 6, 7)]
    tables += [f"paper-{i}" for i in ("1", 5, 6, 7, 8, 9, "10a", "10b", 11)]
    assert set(names) == {*figures, *tables, "lecture-pate"} == set(titles())


def test_quick_table(reproduction, work, tmp_path):
    code, text, _ = reproduction(
        "thesis-6.6", "--quick", "--jobs", 1, "--work-dir", work, "--out", tmp_path
    )
    assert code == 0
    assert "QUICK" in text
    assert "MET" not in text
    for reading in ("published", "sound"):
        path = tmp_path / f"thesis-6.6-{reading}-quick.csv"
        heading = path.read_text(encoding="utf-8").splitlines()[0]
        wanted = "# python -m reproduction thesis-6.6 --quick --jobs 1 --work-dir WORK --out OUT"
        assert heading == wanted
        cells = pd.read_csv(path, comment="#")
        assert len(cells) == 10
        assert set(cells["reading"]) == {reading}
        assert cells["published"].tolist()[0] == 90.64
        baseline = cells[cells["variant"] == "none"]
        assert (baseline["ours"] > 5).all()


def test_quick_table_as_json(reproduction, work):
    code, text, _ = reproduction(
        *("thesis-6.4", "--quick", "--jobs", 1, "--reading", "published"),
        *("--work-dir", work, "--json"),
    )
    assert code == 0
    (result,) = json.loads(text)
    assert result["aim"]["met"] is False
    assert {cell["metric"] for cell in result["cells"]} == {"labels"}
    labels = {(c["ratio"], c["variant"]): c["ours"] for c in result["cells"]}
    assert labels["75%", "weighting"] > labels["", "none"]
    assert {cell["verdict"] for cell in result["cells"]} <= {"met", "not met", ""}


@pytest.mark.parametrize(
    "name",
    [
        *(f"thesis-fig-6.{number}" for number in (2, 3, 4, 5)),
        *(f"paper-fig-{number}" for number in (1, 2, 3, 5)),
    ],
)
def test_quick_figure(reproduction, work, tmp_path, name):
    code, _, errors = reproduction(
        *(name, "--quick", "--jobs", 1),
        *("--work-dir", work, "--out", tmp_path),
    )
    assert code == 0, errors
    readings = ["published"] if name == "thesis-fig-6.3" else ["published", "sound"]
    assert len(list(tmp_path.iterdir())) == 2 * len(readings)
    for reading in readings:
        points = pd.read_csv(tmp_path / f"{name}-{reading}-quick.csv", comment="#")
        assert len(points) >= 12
        image = imread(tmp_path / f"{name}-{reading}-quick.png")
        assert (image[..., :3].std(axis=2) > 0.05).mean() > 3e-4  # coloured lines or points


def test_results_of_other_models_have_names_of_their_own(reproduction, work, tmp_path):
    models = ("--teacher", "components-svm", "--student", "pixel-ridge")
    code, text, _ = reproduction(
        *("thesis-6.6", "--quick", "--jobs", 1, "--reading", "published", *models),
        *("--variants", "none", "--work-dir", work, "--out", tmp_path),
    )
    assert code == 0
    (path,) = tmp_path.iterdir()
    assert path.name == "thesis-6.6-published-components-svm-pixel-ridge-quick.csv"
    assert path.name in text


def test_fast_teachers_of_mnist_are_as_accurate_as_the_sources_network(data_folder):
    """90.2 % in the thesis; 240 images for each of 12 teachers, 1,000 public and 1,000 test images."""
    scene = replace(SCENES["mnist"], sizes=(12 * 240, 1000, 1000), n_teachers=12)
    split = load_split(scene, data_folder, 0)
    split.X = split.X[np.concatenate(split.rows)]
    split.rows = tuple(np.split(np.arange(len(split.X)), np.cumsum(scene.sizes)[:2]))
    lab = Laboratory(Options(n_jobs=1))
    plan = lab.plan(split, everybody(1.0), PUBLISHED, "none")
    teachers = lab.ensemble(split, everybody(1.0), plan, "kernel-ridge")
    right = (teachers.test_votes == split.codes_test[:, None]).mean()
    assert 0.892 < right < 0.912


def test_table_1_leaves_out_what_is_not_there(reproduction, work):
    code, text, errors = reproduction(
        "paper-1", "--quick", "--jobs", 1, "--reading", "sound", "--work-dir", work
    )
    assert code == 0
    assert "svhn: not there" in errors
    assert "54%-37%-9%" in text.replace("…", "9%") or "upsampling" in text


def test_explain(reproduction, work, tmp_path):
    code, text, _ = reproduction(
        *("paper-1", "--explain", "--quick", "--jobs", 1),
        *("--work-dir", work, "--out", tmp_path),
    )
    assert code == 0
    rows = pd.read_csv(tmp_path / "paper-1-explained-quick.csv", comment="#")
    assert rows["variant"].tolist() == ["upsampling", "weighting", "algorithm2"] * 2
    assert rows["published"].tolist() == [1333, 1312, 1312, 949, 1894, 1894]
    assert "Algorithm 2 as printed" in text
    assert "costs and budgets sorted" in text


@pytest.mark.parametrize("reading", ["published", "sound"])
def test_quick_lecture(reproduction, work, reading):
    code, text, errors = reproduction(
        *("lecture-pate", "--quick", "--jobs", 1, "--reading", reading),
        *("--work-dir", work, "--json"),
    )
    assert code == 0, errors
    (result,) = json.loads(text)
    spent = {c["setup"]: c["ours"] for c in result["cells"] if c["metric"] == "epsilon"}
    right = [c["ours"] for c in result["cells"] if c["metric"] == "student_accuracy"]
    assert len(spent) == len(right) >= 3
    assert all(value > 0 for value in spent.values())
    assert all(10 < value <= 100 for value in right)


def test_orders_are_nothing_in_the_worst_case(reproduction, work):
    code, _, errors = reproduction(
        "thesis-fig-6.3", "--quick", "--reading", "sound", "--work-dir", work
    )
    assert code == 0
    assert "thesis-fig-6.3: skipped, not there:" in errors and "orders" in errors


def test_missing_data_are_named_and_skipped(reproduction, tmp_path):
    for name in ("thesis-6.5", "paper-fig-6", "lecture-pate"):
        code, _, errors = reproduction(name, "--reading", "published", "--data-dir", tmp_path)
        assert code == 0
        assert f"{name}: skipped, not there:" in errors


def test_svhn_is_read_where_it_is_there(tmp_path):
    from scipy.io import savemat

    from reproduction.records import _records

    (tmp_path / "svhn").mkdir()
    for part, n in (("train", 5), ("test", 3)):
        images = np.arange(32 * 32 * 3 * n).reshape(32, 32, 3, n) % 256
        content = {"X": images.astype(np.uint8), "y": np.array([[10]] + [[i] for i in range(1, n)])}
        savemat(tmp_path / "svhn" / f"{part}_32x32.mat", content)
    images, codes, n_classes = _records("svhn", tmp_path)
    assert images.shape == (8, 32, 32, 3)
    assert codes.tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert n_classes == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a table or figure"),
        (("thesis-9.9",), "there is no table or figure 'thesis-9.9'"),
        (("thesis-6.4", "--reading", "other"), "there is no reading 'other'"),
        (("thesis-6.4", "--quick", "--teacher", "parrot"), "unknown teachers 'parrot'"),
        (("thesis-6.6", "--quick", "--student", "parrot"), "unknown students 'parrot'"),
        (("thesis-6.4", "--explain"), "--explain is about paper-1"),
        (("thesis-6.4", "--variants", "weighting,all"), "there is no variant 'all'"),
        (
            ("paper-fig-1", "--quick", "--reading", "sound", "--variants", "vanishing"),
            "paper-fig-1 shows nothing for the variants vanishing",
        ),
    ],
)
def test_bad_input_is_one_line(reproduction, arguments, message):
    code, _, errors = reproduction(*arguments)
    assert code == 2
    assert message in errors
    assert len([line for line in errors.splitlines() if line.startswith("error:")]) == 1


def test_quick_bias_table(work, data_folder):
    lab = Laboratory(Options(quick=True, n_jobs=1, data_dir=data_folder, work_dir=work))
    for name in ("paper-6", "paper-10a", "paper-10b", "paper-11"):
        cells = run_table(lab, TABLES[name], PUBLISHED)
        assert {cell.metric for cell in cells} == {row.metric for row in TABLES[name].rows}
        assert all(cell.variant in ("upsampling", "none") for cell in cells)
        if name == "paper-10a":
            minority = {c.ratio: c.ours for c in cells if c.metric.endswith("minority")}
            assert (
                minority["100%"] > minority[""]
            )  # more influence of a class: it is predicted more


class Killed(BaseException):
    """Stands for a signal."""


def test_a_killed_run_goes_on(tmp_path, monkeypatch):
    """Killed at each of the first trainings, a run ends as an undisturbed one, training each once."""
    options = Options(quick=True, student="pixel-ridge", n_jobs=1, work_dir=tmp_path)  # a fast one
    train = module.Laboratory._train_and_ask
    trained: list[tuple[object, ...]] = []

    def counted(self, split, society, plan, teacher):
        if len(trained) in stops:
            stops.discard(len(trained))
            raise Killed
        trained.append((society.shares, plan.personalisation, plan.n_teachers))
        return train(self, split, society, plan, teacher)

    monkeypatch.setattr(module.Laboratory, "_train_and_ask", counted)
    stops: set[int] = set()
    undisturbed = run_table(Laboratory(options), TABLES["thesis-6.6"], SOUND)
    expected = list(trained)
    shutil.rmtree(tmp_path)
    trained.clear()
    stops = {0, 1, 3}
    kills = 0
    while True:
        try:
            cells = run_table(Laboratory(options), TABLES["thesis-6.6"], SOUND)
            break
        except Killed:
            kills += 1
    assert kills == 3
    assert trained == expected
    assert cells == undisturbed
