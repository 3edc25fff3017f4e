"""Run a notebook that is kept as a script: `python docs/hooks/run_cells.py docs/notebooks/digits.py`.

Cells begin with `# %%`, those of text with `# %% [markdown]`: the format of Spyder, VS Code, PyCharm and
Jupytext. Prints JSON: each cell's source, what it printed, its last value and its pictures.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

plt.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "collegium", "figure.dpi": 100})


def cells(script: str) -> list[tuple[str, str]]:
    """Split a script into cells: ("markdown" or "code", what stands in it)."""
    found = []
    for head, body in re.findall(r"^# %%([^\n]*)\n(.*?)(?=^# %%|\Z)", script, re.M | re.S):
        if "[markdown]" in head:
            found.append(("markdown", re.sub(r"^# ?", "", body, flags=re.M).strip()))
        else:
            found.append(("code", body.strip()))
    return found


def run(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a cell of code; tell what it printed, what its last line is worth, and what it drew."""
    tree, last = ast.parse(source), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(last, "<cell>", "eval"), names)
    pictures = []
    for number in plt.get_fignums():
        drawn = io.StringIO()
        plt.figure(number).savefig(
            drawn, format="svg", metadata={"Date": None}, bbox_inches="tight"
        )
        pictures.append(drawn.getvalue())
    plt.close("all")
    page = getattr(value, "_repr_html_", None)
    html = page() if page else None
    text = printed.getvalue() + (repr(value) if value is not None and not html else "")
    return {"text": text.rstrip(), "html": html, "pictures": pictures}


def main(path: Path, unrun: bool) -> None:
    """Run a script's cells one after the other, or only tell them apart."""
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    done = []
    for kind, source in cells(path.read_text("utf-8")):
        ran = run("" if unrun else source, names) if kind == "code" else {}
        done.append({"kind": kind, "source": source, **ran})
    json.dump(done, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--unrun" in sys.argv)
