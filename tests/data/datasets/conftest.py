"""The real data sets, for the tests that need them."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder with the published files, or skip."""
    repository = Path(__file__).resolve().parents[3]
    folders = [repository.parent / "shared" / "data"]
    if given := os.environ.get("COLLEGIUM_DATA"):
        folders.insert(0, Path(given))
    for folder in folders:
        if all((folder / name).is_dir() for name in ("adult", "diabetes130", "mnist")):
            return folder
    pytest.skip("the published data files are missing: set COLLEGIUM_DATA to their folder")
