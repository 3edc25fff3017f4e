"""Role pages, recipes and the page on levels are executed from their first line to their last."""

from pathlib import Path

import pytest

from tests.docs.blocks import DOCS, blocks, run_page
from tests.ledger.conftest import server  # noqa: F401  (a PostgreSQL server, where one is installed)

PAGES = [*sorted(DOCS.glob("roles/*.md")), *sorted(DOCS.glob("recipes/*.md")), DOCS / "choose.md"]
SHOWN = {"bash", "python"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
def test_every_block_of_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    assert found and {block.language for block in found} <= SHOWN, "no block that is not run"
    variables = {}
    if page.name == "pytorch.md":
        pytest.importorskip("torch")
    if page.name == "postgresql.md":
        variables["LEDGER_URL"] = request.getfixturevalue("server").new_database()
        monkeypatch.setenv("LEDGER_URL", variables["LEDGER_URL"])
    run_page(page, tmp_path, **variables)
