"""Small stand-ins to reproduce with, and the folder of published files."""

import os
from functools import partial
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from reproduction.__main__ import main


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small matrices gain nothing from threads, and on a busy machine threads wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def reproduction(command_line):
    """Run ``python -m reproduction``."""
    return partial(command_line, "reproduction", main)


@pytest.fixture
def shared_folder():
    """Return the folder with published tables and data beside the repository, or skip."""
    folder = Path(__file__).resolve().parents[2].parent / "shared"
    if not (folder / "reference" / "tables.csv").is_file():
        pytest.skip("the shared table of published numbers is not there")
    return folder


@pytest.fixture
def data_folder():
    """Return the folder with Adult and MNIST, or skip."""
    folders = [Path(__file__).resolve().parents[2].parent / "shared" / "data"]
    if given := os.environ.get("COLLEGIUM_DATA"):
        folders.insert(0, Path(given))
    for folder in folders:
        if all((folder / name).is_dir() for name in ("adult", "mnist", "pate_votes")):
            return folder
    pytest.skip("the published data files are missing: set COLLEGIUM_DATA to their folder")
