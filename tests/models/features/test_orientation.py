"""Components are the same on every processor, but for rounding."""

import os
import subprocess
import sys

import numpy as np
import pytest

from collegium.models.features.orientation import oriented

MADE = """
import sys
import numpy as np
import pandas as pd
from collegium.models.features.kernel_components import KernelComponents
from collegium.models.preprocessing import CrossedTable
from collegium.models.preprocessing.principal_table import PrincipalTable

random = np.random.default_rng(0)
table = pd.DataFrame({name: random.normal(size=400).round(1) for name in "abcd"})
table["kind"] = random.choice(["one", "two", "three"], 400)
made = [
    KernelComponents(40).fit_transform(table[list("abcd")].to_numpy()),
    CrossedTable(40).fit_transform(table),
    PrincipalTable(components=7).fit_transform(table),
]
np.save(sys.argv[1], np.hstack(made))
"""


def test_a_sign_that_was_chance_is_chosen():
    directions = np.random.default_rng(0).normal(size=(9, 5))
    turned = directions * [1, -1, 1, -1, -1]
    assert np.array_equal(oriented(turned), oriented(directions))
    assert np.array_equal(np.abs(oriented(directions)), np.abs(directions))


def test_equal_entries_of_different_sign_do_not_decide():
    """As two columns of 0 and 1 have that exclude each other: rounding decides which is larger."""
    one = np.array([[0.5], [-0.5], [0.1]])
    nudged = one + np.array([[0.0], [-1e-15], [0.0]])
    assert np.allclose(oriented(one), oriented(nudged))
    assert np.allclose(oriented(-one), oriented(nudged))


@pytest.mark.parametrize("kernels", ["Nehalem", "Prescott"])
def test_features_are_the_same_with_another_processors_linear_algebra(kernels, tmp_path):
    """OpenBLAS takes other routines by name; other libraries do not look, and agree with themselves."""
    found = []
    for number, chosen in enumerate(({}, {"OPENBLAS_CORETYPE": kernels})):
        path = tmp_path / f"{number}.npy"
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", MADE, path], check=True, env=os.environ | chosen
        )
        found.append(np.load(path))
    assert np.abs(found[0] - found[1]).max() < 1e-3
