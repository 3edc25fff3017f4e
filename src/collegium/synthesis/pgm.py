"""Released marginals fitted by mbi, an optional extra, instead of by us.

For comparison, and for marginals that a tree of cliques has no room for. It sees what was released, and
nothing else: noisy marginals with their standard deviations, weights and public records included. So it is
post-processing: whatever it does, nobody pays for it, and the guarantee is that of the release.

References
----------
mbi 2.0.0 (github.com/ryan112358/mbi). McKenna, Sheldon & Miklau 2019, *Graphical-model based estimation and
inference for differential privacy*, arXiv 1901.09136, Algorithm 1 (mirror descent). Mixtures of products:
Aydore et al. 2021, arXiv 2103.06641; Liu, Vietri & Wu 2021, arXiv 2106.07153.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks import check_is, check_whole
from collegium.errors import InputError
from collegium.synthesis.junction_tree import Clique, cells_needed
from collegium.synthesis.model import TableModel
from collegium.synthesis.selection import MOST_GIVEN_CELLS
from collegium.synthesis.synthesizer import Synthesizer

Floats = NDArray[np.float64]
MIXED = 100
"""Products that are mixed, where it is not said: as many as mbi takes."""
_STEP = 0.1
_LEAST_SD = 1e-9  # as in our own fit, where there is no noise at all


def refit(
    synthesizer: Synthesizer, *, components: int | None = None, iterations: int = 1000
) -> Synthesizer:
    """Fit the marginals that were released with mbi instead. Costs nobody anything.

    Not the default: it takes ten times as long, or more. A graphical model meets the noisy marginals as
    closely as any table can, noise included, where our fit stays nearer to independence. It is there to
    compare, and for a ``structure`` of which ``notes_`` say that some was measured and not fitted.

    Parameters
    ----------
    synthesizer : Synthesizer
        Fitted, or loaded.
    components : int, optional
        Fit a mixture of so many products of independent columns, which can follow any set of marginals.
        Default: a graphical model, by mirror descent, where one with all marginals has at most 10,000,000
        cells; a mixture of 100 beyond.
    iterations : int, default=1000
        Steps of the descent, in fifties.

    Returns
    -------
    Synthesizer
        Another one, which draws rows and is saved as any other; constraints hold in it. The given one stays
        as it is. What it says about the release (``privacy_``, ``heard_``, ``notes_``) is the same.

    Raises
    ------
    InputError
        If mbi 2 is not installed, or nothing is fitted yet.

    Examples
    --------
    >>> from collegium.synthesis.pgm import refit
    >>> refit(made, components=50).sample(1000)  # doctest: +SKIP
    """
    check_is("synthesizer", synthesizer, Synthesizer, "fit one, or load one that was saved")
    check_whole("iterations", iterations, least=1)
    if components is not None:
        check_whole("components", components, least=1, most=10_000)
    model = synthesizer._model
    jax, mbi = _installed()
    if components is None and not _has_room(model):
        components = MIXED
    with jax.enable_x64(True):
        if components is None or not model.marginals:
            found = _graphical(mbi, model, iterations)
        else:
            found = _mixed(mbi, model, components, iterations)
    made = copy.copy(synthesizer)
    made._take(found)
    return made


def _installed() -> tuple[Any, Any]:
    try:
        if int(version("mbi").partition(".")[0]) < 2:
            raise ImportError
        jax = import_module("jax")
        with jax.enable_x64(True), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of settings of JAX, which are the user's
            return jax, import_module("mbi")
    except ImportError:
        raise InputError(
            "mbi, version 2 or later, is not installed: pip install 'collegium[pgm]'"
        ) from None


def _has_room(model: TableModel) -> bool:
    factors = [one.columns for one in model.marginals] + [one.columns for one in model.rules]
    sizes = [one.size for one in model.coarse]
    return cells_needed(sizes, factors) <= MOST_GIVEN_CELLS


def _graphical(mbi: Any, model: TableModel, iterations: int) -> TableModel:
    sizes = [one.size for one in model.coarse]
    domain, zeros = _domain(mbi, model), _zeros(model)
    constraints = [
        mbi.Constraint(
            mbi.Domain(columns, [sizes[one] for one in columns]), invalid=np.argwhere(zero)
        )
        for columns, zero in zeros
        if zero.any()
    ]
    found = mbi.estimation.MirrorDescent().estimate(
        domain, list(_measured(mbi, model)), 1.0, constraints, iters=iterations
    )
    factors = [tuple(one) for one in found.potentials.cliques]
    thetas = [np.asarray(found.potentials[one].values, dtype=np.float64) for one in factors]
    return _model_of(model, factors, thetas)


def _mixed(mbi: Any, model: TableModel, components: int, iterations: int) -> TableModel:
    """Fit a mixture: columns that are independent given a hidden one, of so many cells."""
    mixtures, optax = import_module("mbi.extensions.mixture_of_products"), import_module("optax")
    estimator = mixtures.MixtureOfProductsEstimator(
        optimizer=optax.adam(_STEP), num_components=components
    )
    found = estimator.estimate(
        _domain(mbi, model), list(_measured(mbi, model)), 1.0, iters=iterations
    )
    hidden = len(model.coarse)
    factors: list[Clique] = []
    thetas: list[Floats] = []
    for column, shares in found.products.items():
        factors.append((column, hidden))
        thetas.append(np.log(np.maximum(np.asarray(shares, dtype=np.float64).T, 1e-300)))
    return replace(_model_of(model, factors, thetas), hidden=components)


def _domain(mbi: Any, model: TableModel) -> Any:
    """Columns that are in some marginal, by number: a crash may have taken others."""
    columns = sorted({one for marginal in model.marginals for one in marginal.columns})
    return mbi.Domain(columns, [model.coarse[one].size for one in columns])


def _measured(mbi: Any, model: TableModel) -> Iterator[Any]:
    for one in model.marginals:
        shares = one.shares.ravel()
        sd = np.maximum(np.broadcast_to(one.sd, one.shares.shape), _LEAST_SD).ravel()
        if np.ptp(sd) == 0:
            yield mbi.LinearMeasurement(shares, one.columns, float(sd[0]))
        else:  # mbi knows one standard deviation for all cells: in units of each cell's own it is 1
            query = mbi.WeightedQuery(1 / sd)
            yield mbi.LinearMeasurement(shares / sd, one.columns, 1.0, query)


def _zeros(model: TableModel) -> list[tuple[Clique, NDArray[np.bool_]]]:
    return [(one.columns, np.isneginf(one.log_weights(model.coarse))) for one in model.rules]


def _model_of(model: TableModel, factors: list[Clique], thetas: list[Floats]) -> TableModel:
    for columns, zero in _zeros(model):
        factors.append(columns)
        thetas.append(np.where(zero, -np.inf, 0.0))
    return replace(model, factors=tuple(factors), thetas=tuple(thetas), hidden=0)
