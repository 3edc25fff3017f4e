"""The first commands of somebody new: as a module, the example file, and the README's own commands."""

import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from collegium.cli import init
from collegium.cli.console import _HarmlessConsole
from collegium.cli.main import main
from collegium.study.config import read_config

ROOT = Path(__file__).resolve().parents[2]
README, WAYS_IN = ROOT / "README.md", ROOT / "docs/ways-in.md"


def test_the_package_is_a_command():
    command = [sys.executable, "-m", "collegium"]
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("collegium ")
    wrong = subprocess.run([*command, "plan"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: Missing argument")


@pytest.mark.parametrize("name", ["study.toml", "a study of people with a long name.toml"])
def test_no_command_of_the_hint_is_broken(collegium, tmp_path, monkeypatch, name):
    for width in (20, 40, 80):
        monkeypatch.setattr(init, "out", Console(width=width, highlight=False, markup=False))
        path = tmp_path / str(width) / name
        path.parent.mkdir()
        code, said, _ = collegium("init", path)
        assert code == 0
        commands = [shlex.split(line) for line in said.splitlines()[1:]]
        assert commands == [["collegium", "plan", str(path)], ["collegium", "run", str(path)]]


# Guessing: 0.1; the noise is secure: scores are 0.98 ± 0.007 and 0.79 ± 0.04, more than 9 deviations off.
@pytest.mark.parametrize(("page", "least"), [(README, 0.7), (WAYS_IN, 0.4)])
def test_the_scikit_learn_way_runs_as_shown(capsys, page, least):
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    exec(code, {})
    *table, score = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table] == ["owners", "group", "high", "average", "low"]
    assert float(score) > least


def test_the_file_that_the_readme_shows_is_a_study(tmp_path):
    (shown,) = re.findall(r"```toml\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (tmp_path / "study.toml").write_text(shown, encoding="utf-8")
    config = read_config(tmp_path / "study.toml")
    assert config.privacy.levels == {"high": 1.0, "average": 2.0, "low": 3.0}
    assert config.data.owner == "person"


def test_the_guide_shows_an_account_within_the_budgets(collegium):
    (command,) = re.findall(r"^collegium (account --level .*)$", WAYS_IN.read_text("utf-8"), re.M)
    code, said, _ = collegium(*shlex.split(command))
    assert code == 0
    assert "cost each person" in said and "more than the budget" not in said


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("asked", [["--json"], [], ["--help"]])
def test_what_a_terminal_has_no_letter_for_is_spelt_out(monkeypatch, encoding, asked):
    level = ["--level", "härter=1:500", "--level", "λ=2:500"]
    monkeypatch.setattr(sys, "argv", ["collegium", "account", *level, *asked])
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    with pytest.raises(SystemExit) as ended:
        main()
    sys.stdout.flush()
    said = sys.stdout.buffer.getvalue().decode(encoding)
    assert not ended.value.code and said
    if asked == ["--json"]:
        assert list(json.loads(said)["groups"]) == ["härter", "λ"]
    elif encoding != "utf-8":
        assert "delta" in said


def test_no_number_is_cut_on_a_narrow_terminal():
    cells = ("average, 8/10 left", "54,000", "2.25", "237", "13.2 to 13.9 %", "100.0 %")
    for width in range(20, 90):
        console = _HarmlessConsole(width=width, file=io.StringIO())
        table = Table("level", title="Plan")
        for name in ("people", "budget", "teachers", "weight", "of budget"):
            table.add_column(name, justify="right")
        table.add_row(*cells)
        console.print(table)
        said = console.file.getvalue()
        assert all(cell in said for cell in cells[1:]) and "of budget" in said


def test_help_shows_what_is_in_brackets(collegium):
    _, said, _ = collegium("onnx", "--help")
    assert "collegium[onnx]" in said
