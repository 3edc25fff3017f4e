"""What the site makes of pages that are written for the repository: links, lists, formulas, pages elsewhere.

A link to a page is followed on the site; a link to another file of the repository leads below the address
that pyproject.toml names for the package index, and becomes its words where there is none. A link to
nothing is a warning, which `mkdocs build --strict` takes for an error.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

log = logging.getLogger("mkdocs.hooks.repository")
ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/helping.md",
    "SECURITY.md": "project/weaknesses.md",
    "examples/hospitals/README.md": "project/hospitals.md",
    "reproduction/README.md": "project/reproduction.md",
    "reproduction/docs/personal-moments.md": "project/personal-moments.md",
    "reproduction/docs/secret-participation.md": "project/secret-participation.md",
    "reproduction/docs/smooth-sensitivity.md": "project/smooth-sensitivity.md",
}
"""Pages elsewhere in the repository, and where the site has them."""

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
_ADDRESS = _PROJECT["tool"]["collegium"]["readme"]["links"].rstrip("/")
_CODE = re.compile(
    r"(^( *)```.*?^\2```$|(?<=\n\n)(?: {4}.*?\n)+|`(?:[^`\n]|\n(?!\n))+`)", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"(!?\[[^\[\]]*\])\((?!https?://|mailto:|#)([^()\s#]+)(#[^()\s]*)?\)")
_LIST = re.compile(r"^(?![-*] |\d+\. | |\n|#|\|)(.+\n)(?=[-*] \S|1\. \S)", re.MULTILINE)
_UNDERSCORE = re.compile(r"(\]\([^()\s]*\)|^:::.*$|https?://\S+|<[^<>\n]*>)|_", re.MULTILINE)
_SHIM = "https://unpkg.com/iframe-worker/shim"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside `docs/`."""
    for source, place in OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make of a page's text what the site's Markdown takes as GitHub's takes the page."""
    place = page.file.src_uri
    source = {there: here for here, there in OUTSIDE.items()}.get(place, f"docs/{place}")
    code: list[str] = []

    def set_aside(found: re.Match[str]) -> str:
        code.append(found[0])
        return f"\x00{len(code) - 1}\x00"

    text = _LIST.sub(r"\1\n", _CODE.sub(set_aside, markdown))  # a list begins after an empty line
    text = _LINK.sub(lambda found: _led(*found.groups(""), source, place), text)
    # Formulas are full of underscores, and no page writes emphasis with them; ε* is a point, too.
    text = _UNDERSCORE.sub(lambda found: found[1] or r"\_", text)
    text = re.sub(r"(?<=[\s({]ε)\*(?=[ ,.)}])", r"\*", text)
    return re.sub("\x00(\\d+)\x00", lambda found: code[int(found[1])], text)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Take the script for a site on a disk from the site itself."""
    own = os.path.relpath("assets/iframe-worker.js", PurePosixPath(page.file.dest_uri).parent)
    return output.replace(_SHIM, own)


def on_post_template(output: str, **_: Any) -> str:
    """Do the same on the page for addresses that do not exist."""
    return output.replace(_SHIM, "/assets/iframe-worker.js")


def _led(words: str, name: str, anchor: str, source: str, place: str) -> str:
    """Make the link of the repository's page `source`, which the site has at `place`."""
    target = os.path.normpath(PurePosixPath(source).parent / name)
    there = target.removeprefix("docs/") if target.startswith("docs/") else OUTSIDE.get(target)
    if there:
        there = re.sub(r"^(notebooks/.*)\.py$", r"\1.md", there)  # the site has its page
        return f"{words}({os.path.relpath(there, PurePosixPath(place).parent)}{anchor})"
    if not (ROOT / target).exists():
        log.warning("%s: %s is no file of the repository", source, name)
    return f"{words}({_ADDRESS}/{target}{anchor})" if _ADDRESS else words[1:-1]
