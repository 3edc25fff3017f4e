"""Size of the package: lines, lines of code, files, public names, parameters, keys, raises.

python benchmarks/size.py [FOLDER]        # default: src/collegium
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


if __name__ == "__main__":
    main()
