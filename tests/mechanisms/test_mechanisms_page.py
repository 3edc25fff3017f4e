"""The page about mechanisms shows what really comes out."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "mechanisms.md"


def test_the_examples_of_the_page_run():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert results.attempted > 20
    assert not results.failed
