"""Many small tasks at once: one thread for each, instead of BLAS splitting every small product."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def _allowed(controller: ThreadpoolController) -> int:
    """Tell what BLAS would use: all cores, or a share in a worker of joblib or under ``OMP_NUM_THREADS``."""
    pools = [pool["num_threads"] for pool in controller.info() if pool["user_api"] == "blas"]
    return int(max(pools, default=1))


def in_threads(
    task: Callable[[_Item], _Result], items: Iterable[_Item], n_threads: int | None = None
) -> list[_Result]:
    """Run a task for each item, several at once, each with a single-threaded BLAS.

    ``task``: spends its time in NumPy or LAPACK, which let other threads run.
    ``n_threads``: default: as many as BLAS would use here.
    Returns: results in the order of the items; they do not depend on the number of threads.

    Examples
    --------
    >>> in_threads(abs, [-2, 1])
    [2, 1]
    """
    controller = _libraries(len(sys.modules))
    threads = _allowed(controller) if n_threads is None else n_threads
    with controller.limit(limits=1, user_api="blas"):
        if threads <= 1:
            return [task(item) for item in items]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(task, items))


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """Look for libraries, which takes milliseconds: again only after something was imported."""
    return ThreadpoolController()
