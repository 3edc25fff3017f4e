"""How each peer is called, in its own environment: this file imports nothing of Collegium at its head.

    ENVIRONMENT/bin/python synthetic_peer_calls.py CALL IN.npz OUT.npz

``IN.npz`` holds ``codes`` (n, d), whole numbers from 0, ``sizes`` (d,), how many there may be in each
column, and ``settings``, JSON with epsilon, delta, rho and mu (which follow from them), seed and whatever
the call takes. ``OUT.npz`` gets ``codes`` of the synthetic table, ``seconds`` and ``cpu_seconds`` of
fitting and sampling without imports, and ``gigabytes``, the largest resident size of this process.
:mod:`benchmarks.synthetic_peers` runs it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Settings = dict[str, Any]
Call = Callable[[Codes, Sequence[int], Settings], Callable[[], Codes]]
"""Imports what is needed, and returns what is timed."""


def _names(sizes: Sequence[int]) -> list[str]:
    """Names whose alphabetical order is that of the columns."""
    return [f"c{place:03}" for place in range(len(sizes))]


def dpsynth(codes: Codes, sizes: Sequence[int], given: Settings) -> Callable[[], Codes]:
    """Call google/dpsynth's mechanisms for discrete tables.

    Its search for a budget divides by 0 where everything is Gaussian (0.3.0 with dp-accounting 0.6.0), so
    that AIM-GDP and SWIFT are given the budget that the search would find: that of a Gaussian with (ε, δ),
    exactly.
    """
    import mbi
    from dpsynth import discrete_mechanisms

    settings = {
        name: given[name] for name in ("max_model_size", "max_clique_size") if name in given
    }
    mechanism = getattr(discrete_mechanisms, given["mechanism"])(**settings)
    config = discrete_mechanisms.DiscreteConfig(mechanism=mechanism)

    def run() -> Codes:
        if given["gaussian"]:
            calibrated = config.configure(zcdp_rho=given["mu"] ** 2 / 2)
        else:
            calibrated = config.calibrate(epsilon=given["epsilon"], delta=given["delta"])
        names = _names(sizes)
        columns = {name: codes[:, place] for place, name in enumerate(names)}
        data = mbi.Dataset(columns, mbi.Domain(tuple(names), tuple(sizes)))
        made = calibrated(np.random.default_rng(given["seed"]), data).synthetic_data.to_dict()
        return np.stack([np.asarray(made[name]) for name in names], axis=1)

    return run


def private_pgm(codes: Codes, sizes: Sequence[int], given: Settings) -> Callable[[], Codes]:
    """Call the mechanisms that lie beside ``mbi`` in its source, with that source's ``mbi``.

    Workload of AIM: all pairs of at most 10,000 cells, as its command has it.
    """
    sys.path[:0] = [f"{given['source']}/src", f"{given['source']}/mechanisms"]
    import itertools

    import pandas as pd
    from mbi import Dataset, Domain

    np.random.seed(given["seed"])  # noqa: NPY002 (what the peer draws from)
    names = _names(sizes)
    data = Dataset(pd.DataFrame(codes, columns=names), Domain(names, list(sizes)))
    if given["mechanism"] == "MST":
        from mst import MST

        return lambda: MST(data, given["epsilon"], given["delta"]).df[names].to_numpy()
    from aim import AIM

    pairs = [pair for pair in itertools.combinations(names, 2) if data.domain.size(pair) <= 10_000]
    workload = [(pair, 1.0) for pair in pairs]

    def run() -> Codes:
        mechanism = AIM(given["epsilon"], given["delta"], max_model_size=given["max_model_size"])
        # The base class has moved a parameter, so that the generator's place is taken: said here by name.
        mechanism.prng = np.random
        return mechanism.run(data, workload)[1].df[names].to_numpy()

    return run


def dpmm(codes: Codes, sizes: Sequence[int], given: Settings) -> Callable[[], Codes]:
    """Call dpmm's pipelines without their own binning."""
    import dpmm.pipelines
    import pandas as pd

    names = _names(sizes)
    pipeline = getattr(dpmm.pipelines, given["mechanism"])(
        epsilon=given["epsilon"],
        delta=given["delta"],
        disable_processing=True,
        n_jobs=1,
        **given.get("pipeline", {}),
    )

    def run() -> Codes:
        frame = pd.DataFrame(codes, columns=names)
        pipeline.fit(frame, domain=dict(zip(names, sizes, strict=True)), random_state=given["seed"])
        return pipeline.generate(len(codes), random_state=given["seed"])[names].to_numpy()

    return run


def smartnoise(codes: Codes, sizes: Sequence[int], given: Settings) -> Callable[[], Codes]:
    """Call smartnoise-synth, with a transformer that learnt its categories from a table of all codes."""
    import pandas as pd
    from snsynth import Synthesizer
    from snsynth.transform.table import TableTransformer

    np.random.seed(given["seed"])  # noqa: NPY002 (what the peer draws from)
    if given["style"] == "gan":
        import torch

        torch.manual_seed(given["seed"])
    names = _names(sizes)
    every = pd.DataFrame(
        {name: np.arange(max(sizes)) % size for name, size in zip(names, sizes, strict=True)}
    )
    transformer = TableTransformer.create(
        every, style=given["style"], categorical_columns=names, nullable=False
    )
    transformer.fit(every)

    def run() -> Codes:
        made = Synthesizer.create(
            given["mechanism"], epsilon=given["epsilon"], delta=given["delta"], verbose=False
        )
        # Without an argument for categories, transformers are made again of what is fitted.
        made.fit(pd.DataFrame(codes, columns=names), transformer=transformer)
        return np.asarray(made.sample(len(codes)), dtype=np.int64)

    return run


def opendp(codes: Codes, sizes: Sequence[int], given: Settings) -> Callable[[], Codes]:
    """Call OpenDP's contingency tables, whose cuts between whole numbers tell them the domain."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib", "floating-point")
    names = _names(sizes)
    cuts = {
        name: [place + 0.5 for place in range(size - 1)]
        for name, size in zip(names, sizes, strict=True)
    }

    def release(rho: float) -> Codes:
        columns = {name: codes[:, place].astype(float) for place, name in enumerate(names)}
        context = dp.Context.compositor(
            data=pl.LazyFrame(columns),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(rho=rho),
        )
        settings = {name: given[name] for name in ("max_size",) if name in given}
        algorithm = getattr(dp.mbi, given["mechanism"])(**settings)
        query = context.query(rho=rho).select(*names)
        table = query.contingency_table(cuts=cuts, algorithm=algorithm).release()
        made = table.model.synthetic_data(len(codes), given.get("method", "round"))
        return made.df[names].to_numpy()

    def run() -> Codes:
        # In 0.16.0 shares of a budget can add up to more than it by rounding: then a little less is tried.
        for attempt in range(8):
            try:
                return release(given["rho"] * (1 - attempt * 1e-4))
            except dp.OpenDPException as problem:
                if "insufficient budget" not in str(problem):
                    raise
        raise RuntimeError("no budget near the one asked for adds up")

    return run


def collegium(codes: Codes, sizes: Sequence[int], given: Settings) -> Callable[[], Codes]:
    """Call Collegium, with the table and its schema instead of the codes, and all rows of everybody."""
    import collegium as cg
    from benchmarks.synthetic_data import tables
    from collegium.data.cells import Cells

    table = tables(given["data"], given["data_dir"])
    cells = Cells(table.schema)
    owners = None if table.owner is None else table.train[table.owner]
    epsilons = np.full(len(table.train), given["epsilon"])
    budgets = cg.Budgets.from_epsilons(epsilons, owners=owners, delta=given["delta"])
    settings = {name: given[name] for name in ("goal",) if name in given}

    def run() -> Codes:
        made = cg.Synthesizer(
            table.schema,
            target=table.target if given["with_target"] else None,
            noise_seed=given["seed"],
            random_state=given["seed"],
            **settings,
        )
        made.fit(table.train, budgets)
        return cells.codes(made.sample(len(codes)))

    return run


CALLS: dict[str, Call] = {
    one.__name__: one for one in (dpsynth, private_pgm, dpmm, smartnoise, opendp, collegium)
}


def _cpu_seconds() -> float:
    """Of all threads, and of processes that this one has started and collected."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main(arguments: Sequence[str]) -> None:
    """Run one call."""
    call, source, into = arguments
    with np.load(source) as read:
        codes, sizes = read["codes"], read["sizes"].tolist()
        given = json.loads(str(read["settings"]))
    run = CALLS[call](codes, sizes, given)
    began, worked = time.perf_counter(), _cpu_seconds()
    made = run()
    seconds, cpu_seconds = time.perf_counter() - began, _cpu_seconds() - worked
    own, below = (
        resource.getrusage(whose).ru_maxrss
        for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    np.savez(
        into,
        codes=np.asarray(made, dtype=np.int64),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        gigabytes=max(own, below) * 1024 / 1e9,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
