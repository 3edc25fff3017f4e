"""Writes kymatio_reference.npz: ``python tests/models/features/make_kymatio_reference.py``, where kymatio
installs.

Made with kymatio 0.3.0 and torch. Newer versions of SciPy lack a function that kymatio imports for its
three-dimensional transform and that the two-dimensional one never calls; a stand-in lets it import.
"""

from pathlib import Path

import numpy as np

#: Height and width, J, L, largest order, and the seed of two random images.
CASES = [
    ((28, 28), 2, 8, 2, 0),
    ((28, 28), 1, 8, 2, 1),
    ((16, 21), 2, 4, 2, 2),
    ((33, 26), 3, 3, 2, 3),
    ((8, 8), 2, 5, 1, 4),
    ((9, 8), 3, 2, 1, 5),
]
REFERENCE = Path(__file__).with_name("kymatio_reference.npz")


def images(case):
    return np.random.default_rng(case[4]).random((2, *case[0]), dtype=np.float32)


def kymatio_values(case):
    import scipy.special

    if not hasattr(scipy.special, "sph_harm"):
        scipy.special.sph_harm = None
    import torch
    from kymatio.torch import Scattering2D

    shape, J, L, max_order, _ = case
    scattering = Scattering2D(J, shape, L=L, max_order=max_order)
    return scattering(torch.from_numpy(images(case))).numpy()


if __name__ == "__main__":
    np.savez_compressed(
        REFERENCE, **{f"case{i}": kymatio_values(case) for i, case in enumerate(CASES)}
    )
