"""Every block of the other pages is run here, run by another test, or listed with the reason why not."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from collegium.data.schema import Schema
from collegium.study.json_schema import study_schema
from tests.docs import stages
from tests.docs.blocks import DOCS, RECIPES, ROLES, ROOT, Block, blocks, run_in_shell, run_session

GUIDE = [ROOT / "README.md", *sorted(set(DOCS.rglob("*.md")) - {*ROLES, *RECIPES})]
BLOCKS = [block for page in GUIDE for block in blocks(page)]
KEYS = {name: set(about["properties"]) for name, about in study_schema()["properties"].items()}


@dataclass(frozen=True)
class Story:
    """Blocks that follow one another in one folder, what stands ready before, and what stands for what."""

    blocks: tuple[tuple[str, str], ...]
    stage: Callable[[Path], stages.Names] = stages.tables
    words: dict[str, str] = field(default_factory=dict)
    needs: str = ""

    def __str__(self) -> str:
        return " then ".join(f"{page}: {start[:30]}" for page, start in self.blocks)


STORIES = [
    Story((("README.md", "collegium init --from"), ("README.md", "collegium predict")), needs="skl2onnx"),
    Story((("README.md", "collegium schema init"),)),
    Story(
        (("docs/databases.md", "import duckdb"), ("docs/databases.md", "collegium schema init")),
        needs="duckdb",
    ),
    Story(
        (("docs/synthesis.md", "collegium schema init"),),
        words={"--where \"age >= 65\"": "--where 'age >= 65'"},
    ),
    Story(
        (
            ("docs/ways-in.md", "collegium plan study.toml"),
            ("docs/releases.md", "collegium predict STUDY"),
            ("docs/releases.md", "student = collegium.load_student"),
            ("docs/releases.md", "collegium statement STUDY"),
            ("docs/releases.md", "collegium verify study/"),
            ("docs/releases.md", "collegium forget patient-17"),
        ),
        stages.study,
        words={
            "OWNER study.toml": "p3 study.toml --remove-records",
            "STUDY": "study",
            # without --remove-records it says what would go, and fails
            "collegium forget patient-17 study.toml   ": "collegium forget patient-17 study.toml || true ",
        },
    ),
    Story((("docs/composition.md", "collegium account --compare"),), words={
        "collegium account --compare composition.json": "true",  # what a study wrote
    }),
    Story((("docs/first-steps.md", "collegium init study.toml"),), words={
        "high=1,average=2,low=3": "high=1,average=2,low=3 --target income --owner person --privacy consent",
    }),
    Story((("docs/dpsgd.md", "student, choice = model.teach("),), stages.digits),
    Story((("docs/quality.md", "model.quality("), ("docs/quality.md", "effects = model")), stages.voters),
    Story((("docs/dpsgd.md", "import torch"),), stages.network, {"steps=2000": "steps=20"}, "torch"),
    Story((("docs/dpsgd.md", "terms = cg.opacus_terms"),), stages.opacus, needs="opacus"),
    Story((("docs/ledger.md", "import collegium as cg"),)),
    Story((("docs/tables.md", "policy = Policy("),), stages.levels_in_words),
    Story(
        (("docs/ways-in.md", "collegium label --votes"),),
        stages.votes,
        {"--settings label.toml": "", "--out labels/ \n": "--out more/\n",
         "collegium account --remaining study/": "true", "collegium statement study/": "true"},
    ),
]  # fmt: skip

ELSEWHERE = [
    ("README.md", "import collegium as cg", "tests/cli/test_how_to_start.py"),
    ("README.md", "[study]", "tests/cli/test_how_to_start.py"),
    ("README.md", "python examples/hospitals/run.py", "tests/docs/test_recipes_run.py"),
    ("docs/ways-in.md", "import collegium as cg", "tests/cli/test_how_to_start.py"),
    ("docs/public-names.md", ">>>", "tests/test_public_names.py"),
    ("docs/dpsgd.md", ">>>", "tests/dpsgd/test_dpsgd_estimators.py"),
    ("docs/dpsgd-proofs.md", ">>>", "tests/dpsgd/test_dpsgd_estimators.py"),
    ("docs/statistics.md", ">>>", "tests/statistics/test_the_page.py"),
    ("docs/mechanisms.md", ">>>", "tests/mechanisms/test_mechanisms_page.py"),
    ("docs/synthesis.md", ">>>", "tests/synthesis/test_the_page_of_synthesis.py"),
    ("docs/fits-in.md", "", "tests/fits_in/test_exit_codes.py"),
]

NOT_RUN = [
    ("README.md", "python -m pip install", "installs packages"),
    ("README.md", "collegium desk", "a server that runs until it is stopped: tests/desk runs it"),
    ("docs/architecture.md", "", "folders and a drawing, nothing to run"),
    ("docs/databases.md", "$ collegium ask", "an error: tests/cli/test_tables_in_databases.py has it"),
    ("docs/audit.md", "collegium audit mechanism --aggregator", "minutes; a role page runs a small one"),
    ("docs/audit.md", "collegium audit mechanism --queries", "minutes, and P stands for a name"),
    ("docs/desk.md", "collegium desk", "a server that runs until it is stopped: tests/desk runs it"),
    ("docs/large-data.md", "$ ", "a cluster of several programs: tests of *_engines.py start theirs"),
    ("docs/large-data.md", "from collegium.teachers import Engine", "names a cluster"),
    ("docs/large-data.md", "import ibis", "a Spark session: tests/engines ask one"),
    ("docs/parties.md", "collective = ", "several programs at once: tests/parties"),
    ("docs/parties.md", "cg.PATEClassifier(", "several programs at once: tests/parties"),
    ("docs/quality.md", "The student is no better", "what a command prints"),
    ("docs/release-checklist.md", "git tag", "changes the repository"),
    ("docs/releases.md", "individual_budgets:", "a proposal for a file of others"),
    ("docs/results/", "", "hours, on data that are not in the repository; or what came out"),
    ("docs/statistics.md", "mean income", "questions: tests/statistics parses every kind"),
    ("docs/statistics.md", "question   = ", "a grammar"),
    ("docs/statistics.md", "$ collegium ask", "an error: tests/statistics compares it"),
    ("docs/statistics.md", "collegium ask", "the analyst's page runs the same command"),
    ("docs/students.md", "python benchmarks/", "hours, on data that are not in the repository"),
    ("docs/synthesis.md", "from collegium.synthesis.pgm", "brings JAX (extra pgm)"),
    ("docs/teachers.md", "import numpy as np", "downloads a network"),
]  # fmt: skip


def belongs(block: Block, page: str, start: str) -> bool:
    """Tell whether an entry of a list means this block."""
    first = block.text.lstrip()
    return (
        block.page == page or (page.endswith("/") and block.page.startswith(page))
    ) and first.startswith(start)


def run_here() -> list[tuple[str, str]]:
    return [one for story in STORIES for one in story.blocks]


def lists_with(block: Block) -> list[str]:
    """Name the ways in which a block is seen to."""
    ways = ["run in a story"] * any(belongs(block, *one) for one in run_here())
    ways += ["run elsewhere"] * any(belongs(block, *one[:2]) for one in ELSEWHERE)
    ways += ["not run"] * any(belongs(block, *one[:2]) for one in NOT_RUN)
    if not ways and block.is_session:
        ways.append("a session")
    if not ways and block.language == "toml":
        ways.append("keys are compared")
    return ways


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_is_seen_to_in_one_way(block: Block) -> None:
    ways = lists_with(block)
    said = "run it in a story, or say in NOT_RUN why not" if not ways else f"{ways}: choose one"
    assert len(ways) == 1, f"{block}: {said}"


@pytest.mark.parametrize(
    "entry", [*run_here(), *ELSEWHERE, *NOT_RUN], ids=lambda entry: f"{entry[0]}: {entry[1][:30]}"
)
def test_no_entry_is_left_of_a_block_that_is_gone(entry: tuple[str, ...]) -> None:
    page, start, *_ = entry
    assert any(belongs(block, page, start) for block in BLOCKS), (
        "remove the entry, or mend its first words"
    )


@pytest.mark.parametrize(("page", "start", "test"), ELSEWHERE)
def test_the_other_test_names_the_page(page: str, start: str, test: str) -> None:
    if test != "tests/docs/test_recipes_run.py":
        assert Path(page).name in (ROOT / test).read_text("utf-8")


@pytest.mark.parametrize("story", STORIES, ids=str)
@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
@pytest.mark.filterwarnings("ignore::collegium.errors.StudentWarning")
def test_the_story_runs(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if story.needs:
        pytest.importorskip(story.needs)
    monkeypatch.chdir(tmp_path)
    import collegium

    names = {"__name__": "__main__", "collegium": collegium, **story.stage(tmp_path)}
    for page, start in story.blocks:
        for block in (one for one in BLOCKS if belongs(one, page, start)):
            text = block.text
            for word, other in story.words.items():
                text = text.replace(word, other)
            if block.language == "python":
                exec(compile(text, str(block), "exec"), names)
            else:
                run_in_shell(Block(block.page, block.line, block.language, text), tmp_path)


@pytest.mark.parametrize(
    "block", [one for one in BLOCKS if "a session" in lists_with(one)], ids=str
)
def test_the_session_runs(block: Block) -> None:
    run_session(block, {})


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "toml"], ids=str)
def test_keys_of_settings_exist(block: Block) -> None:
    settings = tomllib.loads(block.text)
    if "columns" in settings:  # a schema
        assert set(settings) <= {"columns", "rows_per_owner", "tables"}
        Schema(**settings)
        return
    if "levels" in settings:  # a policy
        assert set(settings) == {"levels", "delta"}
        return
    for section, keys in settings.items():
        assert set(keys) <= KEYS[section], section
