"""The blocks of a page, and how they are run as a reader would: in order, in one folder, in one session."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.docs import forked

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ROLES = [*sorted(DOCS.glob("roles/*.md")), DOCS / "choose.md"]
RECIPES = sorted(DOCS.glob("recipes/*.md"))
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S
)
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def is_session(self) -> bool:
        return self.language == "python" and ">>> " in self.text

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Find the fenced blocks of a page."""
    text, name = page.read_text("utf-8"), str(page.relative_to(ROOT))
    return [
        Block(name, text[: found.start()].count("\n") + 1, found["language"], found["text"])
        for found in _BLOCK.finditer(text)
    ]


@cache
def forked_command() -> Path:
    """Give the folder of a `collegium` that starts in a moment."""
    return forked.start()


def environment(**more: str) -> dict[str, str]:
    """Give what a shell of somebody who installed the package has."""
    kept = {name: value for name, value in os.environ.items() if name != "COLLEGIUM_LEDGER"}
    path = os.pathsep.join(
        [str(forked_command()), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    return {**kept, "PATH": path, "XDG_STATE_HOME": os.devnull, "COLUMNS": "100", **more}


def run_page(page: Path, folder: Path, **variables: str) -> None:
    """Run a page's blocks in a folder, which is the current one."""
    (folder / "examples").symlink_to(ROOT / "examples")
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.is_session:
            run_session(block, names)
        elif block.language == "python":
            exec(compile(block.text, str(block), "exec"), names)
        elif block.language == "bash":
            run_in_shell(block, folder, **variables)


def run_in_shell(block: Block, folder: Path, **variables: str) -> None:
    """Run a block's commands; the first that fails ends it."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        cwd=folder, env=environment(**variables), capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, f"{block}:\n{done.stdout}\n{done.stderr}"


def run_session(block: Block, names: dict[str, Any]) -> None:
    """Run a block with `>>>`, and compare what comes out with what is shown."""
    test = doctest.DocTestParser().get_doctest(
        block.text, names, str(block), block.page, block.line
    )
    runner = doctest.DocTestRunner(optionflags=_FLAGS)
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0, str(block)


def run_as_read(page: Path, folder: Path, **variables: str) -> None:
    """Run all blocks of a page that shows nothing else."""
    found = blocks(page)
    assert found and {block.language for block in found} <= {"bash", "python"}, (
        "no block that is not run"
    )
    run_page(page, folder, **variables)
