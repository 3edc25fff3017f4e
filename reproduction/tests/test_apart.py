"""Research uses the package as any user does, and the package knows nothing of it."""

import ast
import importlib
import tomllib
from pathlib import Path

import pytest

import collegium

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(collegium.__file__).parent
RESEARCH = [file for file in ROOT.glob("reproduction/**/*.py") if "tests" not in file.parts]


def imported(file):
    """List what a file imports, each with the module that it comes from."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_package_never_imports_research():
    files = list(PACKAGE.rglob("*.py"))
    assert len(files) > 100
    found = {name for file in files for name in imported(file)}
    assert not {name for name in found if name.split(".")[0] in ("reproduction", "benchmarks")}


def test_research_uses_no_private_name_of_the_package():
    found = {(file.name, name) for file in RESEARCH for name in imported(file)}
    used = {(file, name) for file, name in found if name.startswith("collegium.")}
    assert used
    assert not {(f, name) for f, name in used if any(p.startswith("_") for p in name.split("."))}


def test_research_is_not_installed():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["packages"] == {"find": {"where": ["src"]}}
    assert {file.parent.name for file in ROOT.glob("src/*/__init__.py")} == {"collegium"}


@pytest.mark.parametrize(
    "name", sorted(file.stem for file in ROOT.glob("reproduction/benchmarks/[!_]*.py"))
)
def test_every_benchmark_explains_itself(name, command_line):
    if name == "secret_participation":
        pytest.importorskip("dp_accounting")
    module = importlib.import_module(f"reproduction.benchmarks.{name}")
    assert f"python -m reproduction.benchmarks.{name} " in module.__doc__
    code, text, _ = command_line(name, module.main, "--help")
    assert code == 0
    assert "--seeds" in text or name == "scale_steps"  # arithmetic: it draws nothing
