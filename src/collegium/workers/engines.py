"""Where teachers are trained and asked: on this machine, on Dask, on Ray, or on any joblib backend."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pickle import PicklingError
from typing import Any

import joblib
from joblib.parallel import (
    BACKENDS,
    LokyBackend,
    MultiprocessingBackend,
    SequentialBackend,
    ThreadingBackend,
    get_active_backend,
)

from collegium.errors import InputError
from collegium.workers.cluster_backend import ClusterBackend
from collegium.workers.local_workers import LocalBackend
from collegium.workers.opaque_payload import LentPayload, cannot_travel

CLUSTERS = {"dask": "distributed", "ray": "ray"}
_SHARE_FILES = (
    LocalBackend,
    LokyBackend,
    MultiprocessingBackend,
    SequentialBackend,
    ThreadingBackend,
)
_TASKS_AHEAD = 2  # for each worker, so that none waits for its next task


class Workers:
    """Workers that run tasks now.

    ``backend``: default: the one that ``joblib.parallel_config`` set, else processes on this
        machine.
    ``n_jobs``: as in joblib: None means 1, -1 all cores.
    ``count``: tasks that run at once.
    ``share_files``: do workers see the files of this process? If not, only this process writes and
        reads them.
    ``tries_again``: does the cluster by itself give the task of a lost worker to another?
    """

    def __init__(self, backend: Any = None, n_jobs: int | None = None) -> None:
        self._backend = backend
        self._n_jobs = n_jobs
        self.tries_again = isinstance(backend, ClusterBackend)
        with self._chosen():
            self.count: int = joblib.effective_n_jobs(n_jobs)
            # Exactly these: other projects derive cluster backends from them.
            self.share_files = type(get_active_backend()[0]) in _SHARE_FILES

    def _chosen(self) -> contextlib.AbstractContextManager[Any]:
        if self._backend is None:
            return self._as_chosen_outside()
        return joblib.parallel_config(self._backend)  # type: ignore[no-any-return]

    def _as_chosen_outside(self) -> contextlib.AbstractContextManager[Any]:
        """Leave joblib's backend as it is, but for its own processes, unless they were set up."""
        backend = get_active_backend()[0]
        if type(backend) is LokyBackend and not getattr(backend, "backend_kwargs", True):
            return joblib.parallel_config(LocalBackend())  # type: ignore[no-any-return]
        return contextlib.nullcontext()

    def results(self, tasks: Iterator[Any], verbose: int = 0) -> Iterator[Any]:
        """Run tasks, and yield what they return as they end, in any order.

        ``tasks``: of ``joblib.delayed`` calls; read only a little ahead of the workers, so that the
            records of few tasks are in memory at once.
        """
        settings: dict[str, Any] = {"n_jobs": self._n_jobs, "verbose": verbose}
        if isinstance(self._backend, ClusterBackend) and self._n_jobs is not None:
            settings["pre_dispatch"] = "n_jobs"  # what was asked for, and no task ahead
        with self._chosen():
            try:
                parallel = joblib.Parallel(return_as="generator_unordered", **settings)
                in_waves = False
            except ValueError:  # a backend that returns everything at the end only
                parallel = joblib.Parallel(**settings)
                in_waves = True
        try:
            yield from self._in_waves(parallel, tasks) if in_waves else parallel(tasks)
        except PicklingError as error:
            raise cannot_travel(error) from None

    def _in_waves(self, parallel: Any, tasks: Iterator[Any]) -> Iterator[Any]:
        with parallel:  # one pool for all waves
            while wave := list(islice(tasks, _TASKS_AHEAD * max(2, self.count))):
                yield from parallel(wave)

    def lend(self, records: Any) -> LentPayload:
        """Give public records to all workers, once for all tasks of a round."""
        if isinstance(self._backend, ClusterBackend):
            return self._backend.lend(records)
        return LentPayload(records)

    def deposit(self, records: Any) -> LentPayload:
        """Give private records to a worker of a cluster, once for many rounds."""
        if isinstance(self._backend, ClusterBackend):
            return self._backend.deposit(records)
        return LentPayload(records)

    def still_has(self, lent: LentPayload) -> bool:
        """Tell whether what was deposited is not known to be lost."""
        return not isinstance(self._backend, ClusterBackend) or self._backend.still_has(lent)

    def take_back(self) -> None:
        """Let the workers forget what was lent."""
        if isinstance(self._backend, ClusterBackend):
            self._backend.take_back()


@contextlib.contextmanager
def running(engine: str | Engine | None, n_jobs: int | None = None) -> Iterator[Workers]:
    """Run an engine that is given in one of three ways.

    ``engine``: a name; all there is to say; or None for the joblib backend that is active.
    ``n_jobs``: as in joblib. With a name, None means all cores; an :class:`Engine` has its own
        number.
    """
    chosen = as_engine(engine, n_jobs)
    if chosen is None:
        yield Workers(n_jobs=n_jobs)
        return
    with chosen.running() as workers:
        yield workers


def as_engine(engine: str | Engine | None, n_jobs: int | None = None) -> Engine | None:
    """Check what :func:`running` is given, and that it is installed; nothing is started.

    Returns: None for the joblib backend that is active.
    """
    if engine is None:
        return None
    if not isinstance(engine, (str, Engine)):
        raise InputError(f'engine must be a name such as "dask", or an Engine, got {engine!r}')
    if isinstance(engine, str):
        engine = Engine(engine, workers=-1 if n_jobs is None else n_jobs)
    engine.check()
    return engine


@dataclass(frozen=True)
class Engine:
    """Where teachers are trained and asked; a matter of speed alone.

    Teachers are the same, bit for bit, on every engine and with any number of workers (batched estimators:
    up to floating-point rounding, since the number of workers decides which teachers share a call).

    Parameters
    ----------
    name : str
        ``local`` (processes on this machine), ``dask``, ``ray``, or a backend registered with joblib, such
        as ``threading``.
    address : str, optional
        Of an existing Dask scheduler (``tcp://host:8786``, ``tls://host:8786`` or a scheduler file) or Ray
        cluster (``head:6379`` on one of its machines, ``ray://host:10001`` from elsewhere). Default: what
        this process is connected to already; else what the cluster's own settings name
        (``DASK_SCHEDULER_ADDRESS``, ``RAY_ADDRESS``); else workers are started on this machine, and
        stopped afterwards.
    workers : int, optional
        Tasks at once, as joblib's ``n_jobs``: -1 (default) is as many as there are cores, here or in the
        cluster.
    timeout : float
        Seconds after which a cluster that does not answer is given up.

    Raises
    ------
    InputError
        If there is no such engine, or an address means nothing to it.

    Examples
    --------
    >>> Engine("dask", "tls://scheduler:8786")
    Engine(name='dask', address='tls://scheduler:8786', workers=-1, timeout=30.0)
    >>> with Engine("threading", workers=2).running() as workers:
    ...     workers.count
    2
    """

    name: str = "local"
    address: str | None = None
    workers: int | None = -1
    timeout: float = 30.0

    def __post_init__(self) -> None:
        allowed = ["local", *CLUSTERS, *sorted({*BACKENDS} - {*CLUSTERS})]
        if self.name not in allowed:
            raise InputError(
                f"unknown engine {self.name!r}: allowed are {', '.join(allowed)}, and what is registered "
                "with joblib.register_parallel_backend"
            )
        if self.address is not None and self.name not in CLUSTERS:
            raise InputError(
                f"the address {self.address} would have no effect on engine {self.name!r}: it belongs to "
                f"{' and '.join(CLUSTERS)}"
            )
        if self.workers == 0 or (self.workers is not None and self.workers < -1):
            raise InputError(f"workers must be at least 1, or -1 for all cores, got {self.workers}")

    def check(self) -> None:
        """Check that the engine is installed; nothing is connected or started.

        Raises
        ------
        InputError
            If it is not; the message names what to install.
        """
        if self.name in CLUSTERS and find_spec(CLUSTERS[self.name]) is None:
            raise InputError(
                f'engine {self.name} is not installed: pip install "collegium[{self.name}]", here and on the '
                "machines of the cluster"
            )

    @contextlib.contextmanager
    def running(self) -> Iterator[Workers]:
        """Connect to the workers, or start them; on leaving, stop what was started, and only that.

        Raises
        ------
        InputError
            If the engine is not installed, the cluster cannot be reached, or its workers cannot train
            teachers.
        """
        self.check()
        asked = None if self.workers == -1 else self.workers
        if self.name == "dask":
            from collegium.workers.dask_cluster import connected as dask_cluster

            with dask_cluster(self.address, asked, self.timeout) as backend:
                yield Workers(backend, asked)
        elif self.name == "ray":
            from collegium.workers.ray_cluster import connected as ray_cluster

            with ray_cluster(self.address, asked, self.timeout) as backend:
                yield Workers(backend, asked)
        else:
            yield Workers(LocalBackend() if self.name == "local" else self.name, self.workers)
