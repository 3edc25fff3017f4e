"""What a terminal shows beside results: panels of help, completion, quiet, and how a run gets on."""

import io
import re
import sys
import warnings

import numpy as np
import pytest
from rich.console import Console

from collegium.cli import progress
from collegium.cli.console import hush, show_warnings

PANELS = (
    "Start",
    "A study, from its TOML file to its release",
    "Questions to a table",
    "Synthetic tables",
    "Votes and numbers of your own",
    "People, and what they were promised",
    "Check and attack",
    "Together with others",
)
STUDY = """
[study]
name = "Digits"
[data]
dataset = "digits"
private_records = 400
public_records = 40
test_records = 20
[privacy]
levels = { high = 4.0, low = 8.0 }
shares = { high = 0.5, low = 0.5 }
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 8
[aggregation]
aggregator = "gnmax"
sigma = 4
[student]
model = "sklearn.naive_bayes.GaussianNB"
[run]
n_jobs = 1
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def ballots(tmp_path, house):
    np.save(tmp_path / "votes.npy", house.predictions(30, 20))
    (tmp_path / "budgets.csv").write_text("epsilon\n8\n")
    files = ["--votes", tmp_path / "votes.npy", "--budgets", tmp_path / "budgets.csv"]
    return [*files, "--classes", 4, "--aggregator", "gnmax", "--out", tmp_path / "labels"]


# Help


@pytest.mark.parametrize("width", [80, 120])
def test_help_has_panels_and_every_command_is_in_one(collegium, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    code, said, _ = collegium("--help")
    titles = re.findall(r"╭─ (.*?) ─+╮", said)
    assert code == 0 and titles == ["Options", *PANELS]
    assert max(map(len, said.splitlines())) <= width


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_studies(collegium, monkeypatch, tmp_path, shell):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys.modules["__main__"], "__package__", None
    )  # also where `python -m pytest` runs
    (tmp_path / "mine").mkdir()
    for name in ("mine.toml", "other.toml", "mine/other.toml", "mine.csv"):
        (tmp_path / name).write_text("")

    def completed(*words):
        line = " ".join(("collegium", *words))
        for name, value in {
            "_COLLEGIUM_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words)),
            "_TYPER_COMPLETE_ARGS": line + (" " if not words[-1] else ""),
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }.items():
            monkeypatch.setenv(name, value)
        code, said, _ = collegium()
        assert code == 0
        return re.findall(r"[\w./-]+\.toml|\brun\b|\breport\b", said)

    assert completed("re") == ["report"]
    assert completed("plan", "mi") == ["mine.toml"]
    assert completed("run", "mine/") == ["mine/other.toml"]
    assert completed("label", "--settings", "mi") == ["mine.toml"]
    assert completed("run", "mine/o") == ["mine/other.toml"]
    assert completed("run", "none/x") == []  # the shell itself completes any file


# Quiet


def test_a_quiet_plan_and_run_print_one_line(collegium, study):
    code, said, errors = collegium("plan", study, "--quiet")
    assert (code, errors) == (0, "")
    assert re.fullmatch(r"The budgets pay for \d+ answers if every query is answered\.\n", said)
    code, said, errors = collegium("run", study, "-q")
    assert (code, errors) == (0, "")
    assert said.count("\n") == 1 and said.endswith(
        f"; published: {study.parent / 'study/release'}.\n"
    )
    # The next command is not quiet.
    for command in (["report", study.parent / "study"], ["run", study]):
        code, said, _ = collegium(*command)
        assert code == 0 and said.count("\n") > 3


def test_a_quiet_label_prints_one_line_and_never_hides_that_nothing_is_private(collegium, ballots):
    code, said, errors = collegium("label", *ballots, "--quiet", "--noise-seed", 1)
    assert (code, errors) == (0, "")
    (line,) = said.splitlines()
    assert line.startswith("NOT PRIVATE") and "labels released after" in line


def test_quiet_hides_warnings_and_no_error(collegium, study):
    study.write_text(STUDY.replace("[teachers]", "delta = 0.1\n[teachers]"))
    _, _, loud = collegium("plan", study)
    assert "warning:" in loud
    _, _, errors = collegium("plan", study, "--quiet")
    assert errors == ""
    code, said, errors = collegium("run", study.with_name("none.toml"), "--quiet")
    assert code == 2 and not said and errors.startswith("error: there is no file")


# How a run gets on


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def lines(monkeypatch):
    """A clock, an observer that goes by it, and what it wrote."""
    written = io.StringIO()
    monkeypatch.setattr(progress, "err", Console(file=written, width=200))
    clock = Clock()
    return clock, progress.LineObserver(clock), lambda: written.getvalue().splitlines()


def test_without_a_terminal_a_stage_is_a_line_and_one_every_half_minute(lines):
    clock, observer, written = lines
    observer.stage("teachers", 800)
    for done in range(1, 801):  # an eighth of a second each
        clock.now += 0.125
        observer.advanced(done, 800)
    observer.stage("student")
    for _ in range(100):
        clock.now += 0.5
        observer.tell_if_due()
    assert written() == [
        "[0:00:05] teachers: 40 of 800, about 0:01:35 left",
        "[0:00:35] teachers: 280 of 800, about 0:01:05 left",
        "[0:01:05] teachers: 520 of 800, about 0:00:35 left",
        "[0:01:35] teachers: 760 of 800, about 0:00:05 left",
        "[0:01:40] student",
        "[0:02:10] student",
    ]


def test_time_left_does_not_count_what_an_earlier_run_did(lines):
    clock, observer, written = lines
    observer.stage("labels", 1000)
    observer.advanced(900, 1000)
    clock.now += 10
    observer.advanced(910, 1000)
    assert written() == ["[0:00:10] labels: 910 of 1,000, about 0:01:30 left"]


def test_a_run_without_a_terminal_writes_a_line_for_each_stage(collegium, study, monkeypatch):
    _, _, errors = collegium("run", study, "--out", study.with_name("short"))
    assert "[" not in errors  # a few seconds need no lines
    monkeypatch.setattr(progress, "_SILENT_S", 0.0)
    _, said, errors = collegium("run", study)
    stages = re.findall(r"^\[0:\d\d:\d\d\] (\w+)", errors, re.MULTILINE)
    assert list(dict.fromkeys(stages)) == ["teachers", "votes", "labels", "student", "report"]
    assert len(stages) == 5 and "[0:" not in said


@pytest.mark.parametrize("options", [["--json"], ["--quiet"]])
def test_programs_are_told_nothing_of_how_it_gets_on(collegium, study, monkeypatch, options):
    monkeypatch.setattr(progress, "_SILENT_S", 0.0)
    code, said, errors = collegium("run", study, *options)
    assert code == 0 and "[" not in errors and said


def test_a_bar_shows_the_time_left_where_it_is_known(monkeypatch):
    written = io.StringIO()
    terminal = Console(
        file=written, width=120, force_terminal=True, force_interactive=True, color_system=None
    )
    monkeypatch.setattr(progress, "err", terminal)
    monkeypatch.setattr(progress._TimeLeft, "max_refresh", 0)
    clock = Clock()
    with progress.watching() as observer:
        assert isinstance(observer, progress.ProgressObserver)
        observer._progress.get_time = clock
        observer.stage("teachers", 100)
        observer._progress.refresh()
        assert "left" not in written.getvalue()  # nothing is known yet
        for done in (10, 20, 30):
            clock.now += 90  # batches: slower than the half minute that rich would look back
            observer.advanced(done)
        observer._progress.refresh()
        assert "about 0:10:30 left" in written.getvalue()
        observer.stage("student")
        written.truncate(0)
        observer._progress.refresh()
        assert "left" not in written.getvalue()


def test_a_terminal_that_cannot_draw_gets_lines(monkeypatch):
    monkeypatch.setattr(progress, "err", Console(force_terminal=True, force_interactive=False))
    assert isinstance(progress.watching(), progress.LineObserver)


# Warnings


def test_a_warning_is_shown_once_in_a_command(monkeypatch, capsys):
    monkeypatch.setattr(warnings, "showwarning", None)
    for _ in range(2):  # commands
        hush(False)
        show_warnings()
        for text in ("records are odd", "records are few", "records are odd"):
            warnings.showwarning(UserWarning(text), UserWarning, "file.py", 1)
    assert capsys.readouterr().err.split("\n")[:-1] == 2 * [
        "warning: records are odd",
        "warning: records are few",
    ]
