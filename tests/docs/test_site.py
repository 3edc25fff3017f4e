"""The site is built as `make docs` builds it, but for the notebooks' outputs; notebooks run by themselves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

from tests.docs.blocks import DOCS, ROOT, environment

ONE_CORE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
FETCHED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"?(https?://[^\" >]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it once, of pages that are as they are but for three links to nothing."""
    for module in ("material", "mkdocstrings_handlers.python"):
        pytest.importorskip(module, reason="the site's tools are not installed (extra docs)")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs")
    for path in ROOT.iterdir():
        if path.name not in ("docs", "build"):
            (folder / path.name).symlink_to(path)
    with (folder / "docs/choose.md").open("a", encoding="utf-8") as page:
        page.write("\n[x](nowhere.md) [y](others.md#nope) [z](../no/file.py)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--no-strict", "--site-dir", str(folder / "made")],
        cwd=folder, env={**os.environ, "DOCS_NOTEBOOKS": "unrun"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stderr, "utf-8")
    return folder / "made"


def test_every_page_is_there(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        place = page.relative_to(DOCS).with_suffix(".html")
        assert (
            site / (place.with_name("index.html") if page.name == "README.md" else place)
        ).exists()
    for script in DOCS.glob("notebooks/*.py"):
        assert (site / f"notebooks/{script.stem}.html").exists()


def test_every_public_name_has_its_place(site: Path) -> None:
    listed = (DOCS / "public-names.md").read_text("utf-8")
    for module, section in re.findall(r"^## `([\w.]+)`\n(.*?)(?=^## |\Z)", listed, re.M | re.S):
        page = (site / f"api/{module}.html").read_text("utf-8")
        for name in re.findall(r"^\| `(\w+)` \|", section, re.M):
            assert name.startswith("__") or f'id="{module}.{name}"' in page, f"{module}.{name}"


def test_lists_tables_and_blocks_are_those_that_the_repository_shows(site: Path) -> None:
    """The site's Markdown is another dialect than GitHub's: of a list without a line before it, say."""
    markdown = MarkdownIt("commonmark").enable("table")
    for page in DOCS.rglob("*.md"):
        place = page.relative_to(DOCS).with_suffix(".html")
        place = place.with_name("index.html") if page.name == "README.md" else place
        shown = (site / place).read_text("utf-8").partition("<article")[2].partition("</article")[0]
        meant = markdown.render(page.read_text("utf-8"))
        for tag in ("<li>", "<table>", "<pre>", "<strong>", "<code"):
            assert shown.count(tag) == meant.count(tag), f"{page.name}: {tag}"
        assert not re.search(r"<code>[^<]*\\_", shown), page.name


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not FETCHED.findall(page.read_text("utf-8")), page


def test_the_search_works_from_a_disk(site: Path) -> None:
    assert (site / "search/search_index.js").exists()
    assert "iframe-worker.js" in (site / "index.html").read_text("utf-8")


def test_what_is_wrong_fails_make_docs_and_nothing_is(site: Path) -> None:
    """A build that is strict fails for a warning: there is one for each link to nothing, and no other."""
    assert yaml.unsafe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["strict"] is True
    said = (site.parent / "said.txt").read_text("utf-8")
    warned = re.findall(r"^(?:WARNING|ERROR) .*$", said, re.MULTILINE)
    wrong = ["nowhere.md", "#nope", "no/file.py"]
    assert len(warned) == len(wrong)
    assert all(any(word in line for line in warned) for word in wrong)


@pytest.mark.parametrize("script", sorted(DOCS.glob("notebooks/*.py")), ids=lambda path: path.stem)
def test_the_notebook_runs_as_a_script(script: Path) -> None:
    beside = ROOT.parent / "shared/data"
    data = {"COLLEGIUM_DATA": os.environ.get("COLLEGIUM_DATA", str(beside))}
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment(**ONE_CORE, **data),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_notebook_on_incomes_runs_without_its_data(tmp_path: Path) -> None:
    script = DOCS / "notebooks/adult.py"
    nowhere = environment(**ONE_CORE, COLLEGIUM_DATA=str(tmp_path))
    done = subprocess.run(
        [sys.executable, str(script)], env=nowhere, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "these rows are invented" in done.stdout
