"""What is public: three tiers, one page that lists them, and how little importing them costs."""

import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import collegium

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "public-names.md").read_text(encoding="utf-8")
TIERS = {
    module: re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    for module, section in re.findall(r"^## `([\w.]+)`\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
}
NAMES = [(module, name) for module, names in TIERS.items() for name in names]
HEAVY = {
    "numpy", "pandas", "scipy", "sklearn", "torch", "pyarrow", "matplotlib", "joblib", "sqlalchemy",
    "alembic",
}  # fmt: skip
INSIDE = (
    "accounting",
    "attacks",
    "datasets",
    "features",
    "ledger",
    "mechanisms",
    "students",
    "teachers",
)


def test_the_page_names_the_three_tiers():
    assert list(TIERS) == [
        "collegium", "collegium.teachers", "collegium.students", "collegium.features",
        "collegium.datasets", "collegium.ledger", "collegium.mechanisms", "collegium.attacks",
        "collegium.accounting", "collegium.mlflow",
    ]  # fmt: skip


@pytest.mark.parametrize("module", TIERS)
def test_the_page_lists_what_a_module_offers(module):
    offered = import_module(module).__all__
    assert sorted(TIERS[module]) == sorted(offered)
    assert len(set(offered)) == len(offered)
    star: dict[str, object] = {}
    exec(f"from {module} import *", star)
    assert set(offered) <= set(star)


@pytest.mark.parametrize("module", TIERS)
def test_every_public_name_is_listed_for_tab_completion_and_nothing_else(module):
    listed = dir(import_module(module))
    assert listed == sorted(listed)
    plain = {name for name in listed if not name.startswith("__")}
    rooms = INSIDE if module == "collegium" else ()
    assert plain == {*TIERS[module], *rooms} - {"__version__"}
    assert set(TIERS[module]) <= set(listed)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_public_name_says_what_it_is_and_has_an_example_that_runs(module, name):
    found = getattr(import_module(module), name)
    if not callable(found):
        assert name in ("__version__", "DEFAULT_ORDERS")
        return
    about = inspect.getdoc(found) or ""
    assert re.match(r"[A-Z*].*\S", about), "a docstring"
    examples = " ".join(example.source for example in doctest.DocTestParser().get_examples(PAGE))
    assert ">>>" in about or re.search(rf"\b{name}\b", examples)


def test_the_examples_of_the_page_run():
    results = doctest.testfile(str(ROOT / "docs" / "public-names.md"), module_relative=False)
    assert results.attempted > 15
    assert not results.failed


def test_readme_and_guides_use_public_names_only():
    guides = [
        "README.md",
        "docs/ways-in.md",
        "docs/teachers.md",
        "docs/large-data.md",
        "docs/composition.md",
        "docs/ledger.md",
    ]
    for guide in guides:
        text = (ROOT / guide).read_text(encoding="utf-8").partition("\n## The parts, in Python")[0]
        assert set(re.findall(r"\bcg\.(\w+)", text)) <= {*TIERS["collegium"], *INSIDE}, guide
        for module, names in re.findall(r"^ *from (collegium[\w.]*) import (.+)$", text, re.M):
            assert set(re.findall(r"\w+", names)) <= set(TIERS[module]), guide


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'PateClassifier'"):
        _ = collegium.PateClassifier


def loaded_after(code: str) -> set[str]:
    """Run code in a process of its own; return the modules that it imported."""
    code = f"import sys\n{code}\nprint('\\nMODULES', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("MODULES")[2].split())


def test_importing_and_listing_public_modules_imports_nothing_heavy():
    """All in one process: what one of them imported would be seen, whichever it was."""
    loaded = loaded_after("\n".join(f"import {module}\ndir({module})" for module in TIERS))
    assert set(TIERS) <= loaded
    assert not loaded & HEAVY


COMMANDS = (
    "demo",
    "init",
    "plan",
    "run",
    "report",
    "label",
    "account",
    "audit",
    "ledger",
    "ask",
    "schema",
)


def test_help_and_version_import_nothing_heavy():
    asked = [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)]
    loaded = loaded_after(
        "from collegium.cli.main import main\n"
        f"for arguments in {asked}:\n"
        "    sys.argv = ['collegium', *arguments]\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert not end.code\n"
        f"    heavy = {HEAVY} & set(sys.modules)\n"
        "    assert not heavy, (arguments, heavy)"
    )
    assert "collegium.cli.main" in loaded


def test_classifier_students_and_export_need_no_extra_nor_arrow_nor_matplotlib():
    """Beyond what pandas imports for itself, which may be the core of Arrow."""
    modules = {"pate.classifier", "distillation.neural_student", "accounting.export"}
    modules = {f"collegium.{name}" for name in modules}
    loaded = loaded_after(
        f"import pandas\nof_pandas = set(sys.modules)\nimport {', '.join(modules)}\n"
        "for name in of_pandas:\n    del sys.modules[name]"
    )
    assert modules <= loaded
    heavy = {"torch", "pyarrow", "matplotlib", "dp_accounting"}
    assert not {name.partition(".")[0] for name in loaded} & heavy
