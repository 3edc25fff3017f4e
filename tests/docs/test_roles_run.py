"""Pages of roles, and the one on levels, are executed from their first line to their last."""

from pathlib import Path

import pytest

from tests.docs.blocks import ROLES, run_as_read


@pytest.mark.parametrize("page", ROLES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
def test_every_block_of_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_as_read(page, tmp_path)
