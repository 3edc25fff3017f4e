"""The page about statistics says what is so."""

import doctest
from pathlib import Path

import pytest

import collegium
from collegium.weighted_sums.weights import errors_of, weights_of

PAGE = Path(collegium.__file__).parents[2] / "docs" / "statistics.md"


def test_its_examples_run() -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    done = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert done.attempted > 10 and not done.failed


@pytest.mark.parametrize("rule", ["uniform", "proportional", "saturating"])
def test_its_table_is_computed(rule: str) -> None:
    weights = weights_of(rule, [0.01, 0.2, 1.0], [540, 370, 90], 2.0, 0.25)
    error = errors_of(weights, [540, 370, 90], 2.0, 0.25).population
    assert f"{error:.6f}"[1:] in PAGE.read_text("utf-8")
