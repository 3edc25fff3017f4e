"""What the page about synthetic tables shows is what comes out."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "synthesis.md"


@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
def test_examples_of_the_page_run_as_they_are_shown():
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.attempted > 10 and not found.failed
