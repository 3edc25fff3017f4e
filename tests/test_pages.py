"""Pages say what is so: links lead somewhere, commands exist, pictures and tables show what was measured."""

import csv
import importlib.util
import re
import shlex
import statistics
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from benchmarks.pictures import DRAWN, PICTURES, RESULTS, gains
from collegium import __version__
from collegium.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "reproduction").rglob("*.md")]
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\[\]]*\]\(([^()\s]+)\)")


def prose(path):
    """A page without its blocks of code."""
    return _FENCE.sub("", path.read_text("utf-8"))


def anchors(path):
    """The places in a page that a link can name, as GitHub calls them."""
    heads = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).lower() for head in heads]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for link in _LINK.findall(prose(page)):
        if re.match(r"https?://|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link}: there is no such file"
        assert target.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert not anchor or anchor in anchors(target), f"{link}: there is no such heading"


def test_the_index_of_pages_names_every_page_by_its_title():
    index = ROOT / "docs/README.md"
    named = dict(re.findall(r"^- \[(.*)\]\((.*)\)$", index.read_text("utf-8"), re.MULTILINE))
    pages = [path for path in index.parent.rglob("*.md") if path != index]
    pages += sorted(index.parent.glob("notebooks/*.py"))
    titles = {
        re.search(r"^(?:# )?# (?!%%)(.+)$", path.read_text("utf-8"), re.MULTILINE)[1]: path
        for path in pages
    }
    assert len(titles) == len(pages)
    assert {title: index.parent / name for title, name in named.items()} == titles


def test_the_first_screen_sells_and_tells():
    first = README.read_text("utf-8").partition("## Ask")[0]
    for said in (
        "**For**",
        "**Not for**",
        "## Install",
        "## Begin",
        "collegium run",
        "import collegium",
        "collegium desk",
        "## For whom",
        "## Beside other software",
    ):
        assert said in first
    assert len(re.findall(r"^!\[", first, re.MULTILINE)) == 2


def shown_commands():
    for page in PAGES:
        text = page.read_text("utf-8")
        indented = re.findall(r"^    collegium .*$", text, re.MULTILINE)
        for block in [*_FENCE.findall(text), *indented]:
            for line in block.replace("\\\n", " ").splitlines():
                if found := re.match(r" *(?:\$ )?(collegium [a-z-].*)", line):
                    yield shlex.split(found[1], comments=True)[1:]


def test_commands_and_options_that_pages_show_exist():
    top = get_command(app)
    seen = set()
    for words in shown_commands():
        command = top
        while hasattr(command, "commands") and words and words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        known = {name for option in command.params for name in option.opts}
        if command.name == "init" and "--from" not in known:
            continue
        unknown = {word for word in words if word.startswith("--")} - known
        assert not unknown, f"collegium {command.name} knows no {unknown}"
        assert command is not top or words == ["--install-completion"], words
        seen.add(command.name)
    assert {"plan", "run", "demo", "predict", "onnx", "label", "account"} <= seen


def test_the_readme_names_every_extra():
    (line,) = re.findall(r"extras, as in .*: (.*)$", README.read_text("utf-8"), re.MULTILINE)
    extras = PROJECT["project"]["optional-dependencies"].keys() - {
        "dev",
        "docs",
    }  # for contributors
    assert set(line.split(", ")) == extras


# The description on a package index


@pytest.fixture(scope="module")
def for_index():
    spec = importlib.util.spec_from_file_location("setup_of_collegium", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.for_index


def test_no_link_on_an_index_is_relative(for_index):
    text = README.read_text("utf-8")
    bare = for_index(text)
    links = _LINK.findall(bare)
    assert links and all(link.startswith("https://") for link in links)
    assert _FENCE.findall(bare) == _FENCE.findall(text)
    full = for_index(text, "https://host/blob/main/", "https://host/raw/main")
    assert "![" in full and "](https://host/raw/main/docs/pictures/how-it-works.svg)" in full
    for link in _LINK.findall(full):
        assert link.startswith("https://")
        if link.startswith("https://host/"):
            name, _, anchor = link.split("/main/")[1].partition("#")
            assert (ROOT / name).exists()
            assert not anchor or anchor in anchors(ROOT / name)


# Who made it, and what it rests on


def test_the_citation_is_complete():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["cff-version"] == "1.2.0" and cited["type"] == "software"
    assert cited["message"] and cited["title"].startswith("Collegium")
    assert cited["version"] == __version__ and cited["license"] == PROJECT["project"]["license"]
    assert cited["authors"] == PROJECT["project"]["authors"]
    text = README.read_text("utf-8")
    for reference in cited["references"]:
        assert reference["type"] and reference["year"] and reference["title"].split(":")[0] in text
        assert all(person["family-names"] in text for person in reference["authors"][:1])
        assert reference.get("doi", reference.get("url", "")) in text


# What was measured


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_are_drawn_from_the_results_as_they_are(name):
    drawn = (PICTURES / name).read_text("utf-8")
    assert drawn == DRAWN[name](), "run python benchmarks/pictures.py"


def test_the_picture_says_what_the_page_of_results_says():
    page = (ROOT / "docs/results/dpsgd.md").read_text("utf-8")
    rows = re.findall(
        r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| \**([+\d.]+)\** \|", page, re.MULTILINE
    )
    found = gains()
    assert len(rows) == len(found) == 5
    for epsilon, strictest, individual, gain in rows:
        of = {method: mean for method, (mean, _) in found[float(epsilon)].items()}
        assert f"{of['strictest']:.1f}" == strictest
        assert f"{of['individual']:.1f}" == individual
        assert of["individual"] - of["strictest"] == pytest.approx(float(gain), abs=0.05 + 1e-9)


def test_the_readmes_table_says_what_was_measured():
    rows = list(csv.DictReader(RESULTS.open(encoding="utf-8", newline="")))
    votes = RESULTS.with_name("pate-recipe.csv").open(encoding="utf-8", newline="")
    rows += [
        {**row, "method": "votes"} for row in csv.DictReader(votes) if row["method"] == "chosen"
    ]

    def shown(dataset, epsilon, method):
        of = [
            row
            for row in rows
            if (row["dataset"], row["epsilon"], row["method"]) == (dataset, epsilon, method)
            and row["neighbours"] != "replace-one"
            and int(row["seed"]) <= 3
        ]
        assert len(of) == 3
        right = f"{statistics.mean(float(row['test']) for row in of):.1f} %"
        areas = [float(row["auc"]) for row in of if row["auc"]]
        return f"{right}, {statistics.mean(areas):.2f}" if areas else right

    def of_images(name):
        rows = csv.DictReader(RESULTS.with_name("images.csv").open(encoding="utf-8", newline=""))
        right = [float(row["test %"]) for row in rows if (row["data"], row["ε"]) == (name, "1-2-3")]
        assert len(right) == 3
        return f"{statistics.mean(right):.1f} %"

    images, tables = ("images", "votes"), ("direct", "PATE", "logistic")
    for name, dataset, epsilon, methods in (
        ("MNIST", "mnist", "0", images),
        ("Fashion-MNIST", "fashion_mnist", "0", images),
        ("Adult", "adult", "1", tables),
        ("credit default", "credit", "1", tables),
    ):
        cells = [
            of_images(name)
            if method == "images"
            else shown(dataset, "inf" if method == "logistic" else epsilon, method)
            for method in methods
        ]
        (line,) = re.findall(rf"^\| {name} \|(.*)\|$", README.read_text("utf-8"), re.MULTILINE)
        assert [cell.strip() for cell in line.split("|") if cell.strip()] == cells
