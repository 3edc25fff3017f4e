"""Size of the package: lines, lines of code, files, public names, parameters, keys, raises.

    python benchmarks/size.py [FOLDER]        # default: src/collegium

Beside it, of each way of learning: its own room, its folder in study/methods, and how many places elsewhere
ask which method a study has (by name, or by a property that stands for one), or import from its folder.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path


def lines_of_code(text: str) -> int:
    """Count lines with code: without blank lines, comments and docstrings."""
    used: set[int] = set()
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    skip |= {tokenize.ENCODING, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skip:
            used |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                used -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(used)


#: Rooms of the methods themselves, which may name them.
METHODS = ("dpsgd", "pate", "statistics", "synthesis")
_ASKS = {"is_direct", "only_asks", "OF_OTHER_METHODS", "DPSGD", "PATE", "STATISTICS", "SYNTHESIS"}
_ASKS |= {"VotesKind", "DPSGDKind", "StatisticsKind", "SynthesisKind"}
SHELLS = {"dpsgd": "dpsgd", "pate": "votes", "statistics": "statistics", "synthesis": "synthesis"}


def places_that_name_a_method(folder: Path) -> list[str]:
    """List where the shell asks for a method: names, attributes and comparisons; and imports, marked."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        inner = path.relative_to(folder).parts
        if inner[0] in METHODS or inner[:2] == ("study", "methods"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                parts = str(node.module).split(".")
                named = parts[1:3] == ["study", "methods"]
                named = named and bool(set(parts[3:4]) & set(SHELLS.values()))
            elif isinstance(node, ast.Attribute):
                named = node.attr in _ASKS
            elif isinstance(node, ast.Name):
                named = node.id in _ASKS and isinstance(node.ctx, ast.Load)
            else:
                named = isinstance(node, ast.Compare) and any(
                    isinstance(one, ast.Constant) and one.value in METHODS
                    for one in (node.left, *node.comparators)
                )
            if named:
                how = " (imports)" if isinstance(node, ast.ImportFrom) else ""
                found.append(f"{'/'.join(inner)}:{node.lineno}{how}")
    return found


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "src/collegium")
    files = sorted(folder.rglob("*.py"))
    lines = code = raises = parameters = names = 0
    for path in files:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines += len(text.splitlines())
        code += lines_of_code(text)
        raises += sum(isinstance(node, ast.Raise) for node in ast.walk(tree))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        for node in ast.walk(tree):
            if isinstance(node, functions):
                given = node.args
                parameters += len([*given.posonlyargs, *given.args, *given.kwonlyargs])
        names += sum(
            isinstance(node, (*functions, ast.ClassDef)) and not node.name.startswith("_")
            for node in tree.body
        )
    print(f"files {len(files):,}; lines {lines:,}; lines of code {code:,}")
    print(f"functions and classes without an underscore {names:,}; parameters {parameters:,}")
    print(f"raise statements {raises:,}")
    for name in METHODS:
        room = [path for path in files if path.relative_to(folder).parts[0] == name]
        shell = [
            path
            for path in files
            if path.relative_to(folder).parts[:3] == ("study", "methods", SHELLS[name])
        ]
        code_of_room, code_of_shell = (
            sum(lines_of_code(path.read_text(encoding="utf-8")) for path in paths)
            for paths in (room, shell)
        )
        print(f"{name}: lines of code {code_of_room:,} in its room, {code_of_shell:,} in its shell")
    places = places_that_name_a_method(folder)
    imports = sum(place.endswith("(imports)") for place in places)
    asks = len(places) - imports
    print(
        f"places that name a method outside study/methods: {asks}; imports of one's folder: {imports}"
    )
    for place in places:
        print(f"  {place}")


if __name__ == "__main__":
    main()
