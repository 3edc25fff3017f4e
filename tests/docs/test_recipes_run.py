"""Recipes are executed from their first line to their last."""

from pathlib import Path

import pytest

from tests.docs.blocks import RECIPES, run_as_read


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
def test_every_block_of_the_recipe_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    variables = {}
    if page.stem == "pytorch":
        pytest.importorskip("torch")
    if page.stem == "postgresql":
        variables["LEDGER_URL"] = request.getfixturevalue("server").new_database()
        monkeypatch.setenv("LEDGER_URL", variables["LEDGER_URL"])
    run_as_read(page, tmp_path, **variables)
