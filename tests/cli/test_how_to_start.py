"""The first commands of somebody new: as a module, the example file, and the README's own commands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from collegium.cli import studies

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_package_is_a_command(tmp_path):
    command = [sys.executable, "-m", "collegium"]
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("collegium ")
    asked = [*command, "plan", tmp_path / "none.toml"]
    wrong = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: there is no file")


@pytest.mark.parametrize("name", ["study.toml", "a study of people with a long name.toml"])
def test_no_command_of_the_hint_is_broken(collegium, tmp_path, monkeypatch, name):
    for width in (20, 40, 80):
        monkeypatch.setattr(studies, "out", Console(width=width, highlight=False, markup=False))
        path = tmp_path / str(width) / name
        path.parent.mkdir()
        code, said, _ = collegium("init", path)
        assert code == 0
        commands = [shlex.split(line) for line in said.splitlines()[1:]]
        assert commands == [["collegium", "plan", str(path)], ["collegium", "run", str(path)]]


def test_the_scikit_learn_way_of_the_readme_runs_as_shown(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    exec(code, {})
    *table, score = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table] == ["owners", "group", "high", "average", "low"]
    assert float(score) > 0.4  # guessing: 0.1; the noise is secure, so the score varies around 0.74


def test_the_readme_shows_an_account_within_the_budgets(collegium):
    (command,) = re.findall(r"^collegium (account --level .*)$", README.read_text("utf-8"), re.M)
    code, said, _ = collegium(*shlex.split(command))
    assert code == 0
    assert "cost each person" in said and "more than the budget" not in said
