"""Pages of notebooks: each script of `docs/notebooks/` is run, and shown with what it printed and drew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
RUN = Path(__file__).with_name("run_cells.py")


def on_files(files: Files, config: Any) -> Files:
    """Run all notebooks, two at a time, and add a page for each."""
    scripts = sorted(FOLDER.glob("*.py"))
    with ThreadPoolExecutor(2) as pool:
        for script, done in zip(scripts, pool.map(ran, scripts), strict=True):
            text, pictures = page(script.stem, done)
            files.append(File.generated(config, f"notebooks/{script.stem}.md", content=text))
            for name, drawn in pictures.items():
                files.append(File.generated(config, f"notebooks/{name}", content=drawn))
    return files


def ran(script: Path) -> list[dict[str, Any]]:
    """Run a script in a process of its own; return its cells, with DOCS_NOTEBOOKS=unrun without outputs."""
    how = ["--unrun"] if os.environ.get("DOCS_NOTEBOOKS") == "unrun" else []
    command = [sys.executable, str(RUN), str(script), *how]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise PluginError(f"{script.name} failed:\n{done.stderr}")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def environment() -> dict[str, str]:
    """Let notebooks find data where tests look for them, use one core each, and leave no ledgers behind."""
    beside = FOLDER.parents[2] / "shared/data"
    data = {"COLLEGIUM_DATA": str(beside)} if beside.is_dir() else {}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {
        **data,
        **threads,
        **os.environ,
        "XDG_STATE_HOME": os.devnull,
        "COLLEGIUM_LEDGER": "none",
    }


def page(name: str, cells: list[dict[str, Any]]) -> tuple[str, dict[str, str]]:
    """Write a notebook's page, and its pictures by their names."""
    parts: list[str] = []
    pictures: dict[str, str] = {}
    for cell in cells:
        if cell["kind"] == "markdown":
            parts.append(cell["source"])
            continue
        source = cell["source"].replace("  # fmt: skip", "")
        parts.append(f"```python\n{source}\n```")
        if cell["text"]:
            parts.append(f'```text {{ .output title="Output" }}\n{cell["text"]}\n```')
        if cell["html"]:
            parts.append(f'<div class="output">{cell["html"]}</div>')
        for drawn in cell["pictures"]:
            picture = f"{name}-{len(pictures) + 1}.svg"
            pictures[picture] = drawn
            parts.append(f"![A picture that the lines above draw]({picture})")
    own = (
        f"This page is the script `docs/notebooks/{name}.py`, run as the site was built. "
        "VS Code, PyCharm and Spyder open it as cells, and so does Jupyter with Jupytext."
    )
    return "\n\n".join([*parts, "---", own]), pictures
