"""Imports go down only, inside functions and for types too, and never in a circle."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import collegium

ROOT = Path(collegium.__file__).parent
ORDER = [
    "cli", "desk", "study", "report", "attacks", "planner", "generative", "dpsgd", "pate", "statistics",
    "synthesis", "runs", "evaluation", "distillation", "models", "workers", "weighted_sums", "conditions",
    "data", "ledger", "mechanisms", "personalisation", "parties", "noise", "accounting",
]  # fmt: skip
METHODS = {"dpsgd", "pate", "statistics", "synthesis"}
FACES = {"collegium"} | {
    f"collegium.{name}"
    for name in (
        *("accounting", "attacks", "datasets", "features", "ledger", "mechanisms", "mlflow"),
        *("students", "teachers"),
    )
}
MODULES = {
    ".".join(("collegium", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
}
# To be mended, each to be taken off here with its cause: no other is allowed.
UPWARDS: set[tuple[str, str]] = set()
ROUND = {
    ("collegium.pate.voting.choosing", "collegium.pate.voting.labelling"),
}


def imports_of(module: str) -> Iterator[str]:
    """Modules of the package that one imports, wherever it does so."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: write imports in full"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found = inner if inner in MODULES else str(node.module)
                if found in MODULES and (found, alias.name) != ("collegium", "__version__"):
                    yield found


def floor(module: str) -> int:
    """How far down a module is; what is one file beside the rooms is below all of them."""
    name = module.split(".")[1]
    return ORDER.index(name) if name in ORDER else len(ORDER)


@pytest.fixture(scope="module")
def within() -> set[tuple[str, str]]:
    """Read which module imports which: here, so that no process does that has none of these tests."""
    return {
        (module, imported)
        for module in MODULES.keys() - FACES - {"collegium.__main__"}
        for imported in imports_of(module)
    }


def test_every_room_has_its_place_in_the_order():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms == set(ORDER)


def test_imports_go_down_only(within):
    assert {pair for pair in within if floor(pair[1]) < floor(pair[0])} == UPWARDS


def test_no_method_imports_another(within):
    rooms = [(module.split(".")[1], imported.split(".")[1]) for module, imported in within]
    assert not {pair for pair in rooms if set(pair) <= METHODS and len(set(pair)) == 2}


def test_the_public_faces_are_for_users_only_and_hold_nothing(within):
    assert not {pair for pair in within if pair[1] in FACES}
    for face in FACES:
        body = ast.parse(MODULES[face].read_text(encoding="utf-8")).body
        assert not any(isinstance(part, ast.FunctionDef | ast.ClassDef) for part in body), face


def test_no_module_imports_itself_in_a_circle(within):
    assert within >= ROUND
    graph: dict[str, set[str]] = {}
    for module, imported in within - ROUND - UPWARDS:
        graph.setdefault(module, set()).add(imported)
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
