"""What `reproduce` refuses, it refuses before anything is read or computed."""

import os

import pytest

from reproduction import laboratory as module
from reproduction.fitting import check_models
from reproduction.kinds import STUDENTS, TEACHERS, check_student, check_teacher
from reproduction.laboratory import Options
from reproduction.readings import READINGS
from reproduction.records import QUICK_SCENES, SCENES, VIEWS, load_split, shows
from reproduction.targets import titles


@pytest.fixture
def refused(reproduction, monkeypatch, tmp_path):
    """Run a command that must end with one line before any record is read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("here")

    def read(*arguments):
        raise AssertionError("records were read")

    monkeypatch.setattr(module, "load_split", read)

    def call(*arguments):
        code, text, errors = reproduction(*arguments)
        (line,) = errors.splitlines()
        assert code == 2 and not text and line.startswith("error: ")
        return line

    return call


@pytest.mark.parametrize("option", ["--out", "--work-dir"])
@pytest.mark.parametrize(
    ("folder", "reason"), [("file", "it is a file"), ("file/below", "Not a directory")]
)
def test_folders_that_are_files(refused, option, folder, reason):
    line = refused("thesis-6.6", "--quick", option, folder)
    assert line.startswith(
        f"error: {option} {folder} is no folder that can be written into ({reason})"
    )


@pytest.mark.parametrize("option", ["--out", "--work-dir"])
def test_folders_that_nobody_may_write_into(refused, option, tmp_path):
    (tmp_path / "mine").mkdir(mode=0o500)
    if os.access(tmp_path / "mine", os.W_OK):
        pytest.skip("this user may write everywhere")
    assert "Permission denied" in refused("thesis-6.6", "--quick", option, "mine")


@pytest.mark.parametrize("option", ["--out", "--work-dir"])
def test_folders_on_a_full_disk(refused, option, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.touch", full)
    assert "No space left on device" in refused("thesis-6.6", "--quick", option, "new")


def test_a_folder_that_can_be_written_into_is_left_empty(reproduction, tmp_path):
    for option in ("--out", "--work-dir"):
        folder = tmp_path / option / "deep"
        empty = tmp_path / "no data"
        empty.mkdir(exist_ok=True)
        code, _, errors = reproduction("thesis-6.5", "--data-dir", empty, option, folder)
        assert code == 0 and "thesis-6.5: skipped, not there:" in errors
        assert list(folder.iterdir()) == []


def test_a_data_folder_that_is_not_there(refused):
    for folder in ("none", "file"):
        line = refused("thesis-6.5", "--data-dir", folder)
        assert line == f"error: --data-dir {folder} is no folder: name the one with the data sets"


@pytest.mark.parametrize("variants", ["", " ", ",", "weighting,"])
def test_no_variant_is_not_all_of_them(refused, variants):
    assert "there is no variant ''" in refused("thesis-6.6", "--quick", "--variants", variants)


@pytest.mark.parametrize("jobs", [0, -2, 10_001, 10**30])
def test_numbers_of_jobs(refused, jobs):
    assert "--jobs must lie between 1 and 10,000, or be -1" in refused("thesis-6.6", "--jobs", jobs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("thesis-6.6", "--quick", "--reading", "sound", "--student", "evidence-regression"),
            "--student evidence-regression learns from tables, but digits holds images: kinds that fit",
        ),
        (
            ("thesis-6.7", "--quick", "--student", "self-training"),
            "--student self-training learns from images, but adult-quick holds tables: kinds that fit",
        ),
        (
            ("thesis-6.6", "--quick", "--teacher", "small-cnn"),
            "--teacher small-cnn learns from images of at least 11 pixels a side, but digits holds "
            "images of 8",
        ),
        (("thesis-6.6", "thesis-6.5", "--teacher", "seed-cnn"), "but adult holds tables"),
        (("paper-fig-6", "--teacher", "pixel-ridge"), "but adult holds tables"),
        (("paper-fig-2", "--teacher", "tabular"), "but mnist holds images"),
        (("thesis-fig-6.2", "--student", "forest"), "but mnist holds images"),
        (("lecture-pate", "--student", "forest"), "but mnist-pate holds images"),
        (("lecture-pate", "--quick", "--student", "forest"), "but digits-standard holds images"),
    ],
)
def test_models_of_other_records(refused, arguments, message):
    line = refused(*arguments)
    assert message in line
    option, name = arguments[-2:]
    fitting = line.split("kinds that fit are ")[1].split(", ")
    assert fitting and name not in fitting
    assert set(fitting) < set(TEACHERS if option == "--teacher" else STUDENTS)


def test_students_matter_only_where_there_are_any():
    check_models(["thesis-6.4", "thesis-6.5", "thesis-fig-6.5"], Options(student="self-training"))


@pytest.mark.parametrize("reading", READINGS.values(), ids=lambda reading: reading.name)
def test_the_models_of_each_reading_fit(reading):
    for scene in (*SCENES.values(), *QUICK_SCENES.values()):
        check_teacher(scene.model or reading.teachers[scene.dataset], scene)
        student = scene.model and scene.model + reading.stand_in
        check_student(student or reading.students[scene.dataset], scene)


def test_every_target_is_checked():
    for name in titles():
        for quick in (False, True):
            wrong = {"teacher": "forest", "student": "forest"}
            check = [Options(quick=quick, **{who: kind}) for who, kind in wrong.items()]
            fits = name in ("thesis-6.5", "thesis-6.7", "paper-fig-6") or name.startswith(
                ("paper-6", "paper-7", "paper-9", "paper-10", "paper-11")
            )
            if fits:
                check_models([name], check[0])
                continue
            with pytest.raises(ValueError, match="--teacher forest learns from tables"):
                check_models([name], check[0])


@pytest.mark.parametrize("scene", ["mnist", "adult"])
def test_views_show_what_they_say(scene, request):
    """A view can be made of a small stand-in's records exactly where it is said to."""
    data = None if scene == "mnist" else request.getfixturevalue("data_folder")
    split = load_split(QUICK_SCENES[scene], data, 0)
    for view in VIEWS:
        try:
            split.view(view)
            made = True
        except ValueError:
            made = False
        assert made == shows(view, split.scene), view
