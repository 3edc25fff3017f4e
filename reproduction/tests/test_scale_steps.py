"""The published noise of individual DP-SGD by clips is for about 3,495 steps, not for 9,375."""

import pytest

pytest.importorskip("dp_accounting")

from reproduction.benchmarks.scale_steps import multipliers, steps_that_fit


def test_all_three_groups_fit_the_same_number_of_steps_and_not_the_stated_one():
    fits = [steps_that_fit(claimed, sigma) for claimed, sigma in multipliers().items()]
    assert all(abs(steps - 3_495) <= 10 for steps in fits)
