"""The package's description: the README, with links that a package index can follow.

All else stands in pyproject.toml. An index shows the README alone, so a link to another file of the project
leads nowhere there. With addresses in ``[tool.collegium.readme]`` such links and pictures are looked up below
them; without, links become their words, and pictures their descriptions. Links within the page become words.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
_LINK = re.compile(
    r"(?P<picture>!?)\[(?P<said>[^\[\]]*)\]\((?!https?://|mailto:)(?P<target>[^()\s]+)\)"
)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def for_index(text: str, links: str = "", pictures: str = "") -> str:
    """Make a README for an index: none of its links is relative.

    ``links``, ``pictures``: addresses below which files of the repository are found, or "".
    """

    def absolute(link: re.Match[str]) -> str:
        base = pictures if link["picture"] else links
        if base and not link["target"].startswith("#"):
            return f"{link['picture']}[{link['said']}]({base.rstrip('/')}/{link['target']})"
        return f"*{link['said']}*" if link["picture"] else link["said"]

    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(absolute, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(absolute, text[end:])])


def description() -> str:
    """Give the README, with the addresses that pyproject.toml names."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return for_index(
        (ROOT / "README.md").read_text("utf-8"), **settings["tool"]["collegium"]["readme"]
    )


if __name__ == "__main__":
    from setuptools import setup

    setup(long_description=description(), long_description_content_type="text/markdown")
