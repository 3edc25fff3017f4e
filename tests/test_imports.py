"""Imports go down only, inside functions and for types too, and never in a circle."""

import ast
from collections.abc import Iterator
from pathlib import Path

import collegium

ROOT = Path(collegium.__file__).parent
ORDER = [
    "cli", "study", "report", "attacks", "pate", "models", "data", "personalisation", "noise", "accounting",
]  # fmt: skip
FACES = {"collegium", "collegium.accounting"} | {
    f"collegium.{name}" for name in ("datasets", "features", "students", "teachers")
}
MODULES = {
    ".".join(("collegium", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
}


def imports_of(module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found = inner if inner in MODULES else node.module
                if found in MODULES and (found, alias.name) != ("collegium", "__version__"):
                    yield found


def room(module: str) -> int:
    """Place of a module in the order; what is one file at the top comes last."""
    name = module.split(".")[1]
    return ORDER.index(name) if name in ORDER else len(ORDER)
