"""One page of reference for each public module, made of `docs/public-names.md` and the docstrings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

NAMES = Path(__file__).resolve().parents[1] / "public-names.md"


def tiers() -> dict[str, dict[str, str]]:
    """Public modules, their names, and what each is: tests compare the page with the modules."""
    page = NAMES.read_text("utf-8")
    sections = re.findall(r"^## `([\w.]+)`\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return {
        module: dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
        for module, section in sections
    }


def on_config(config: Any) -> Any:
    """List these pages in the navigation."""
    (api,) = (entry["API"] for entry in config.nav if "API" in entry)
    api += [{module: f"api/{module}.md"} for module in tiers()]
    return config


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Show names as code where docstrings mark them for Sphinx."""
    if not page.file.src_uri.startswith("api/"):
        return html
    html = re.sub(r":[a-z]+:<code>~(?:\w+\.)*(\w+)</code>", r"<code>\1</code>", html)
    return re.sub(r":[a-z]+:(<code>)", r"\1", html)


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each public module."""
    for module, names in tiers().items():
        own = [name for name in names if not name.startswith("__")]
        parts = [
            f"# `{module}`",
            f"What each name is, in a line: [public names](../public-names.md#{anchor(module)}).",
        ]
        parts += [f"::: {module}.{name}" for name in own]
        files.append(File.generated(config, f"api/{module}.md", content="\n\n".join(parts)))
    return files


def anchor(module: str) -> str:
    """Name the place of a module in the list of public names, as GitHub does."""
    return module.replace(".", "")
