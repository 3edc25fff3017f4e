"""A joblib backend for clusters: what Dask and Ray have in common.

joblib's own backend for Dask (1.6) waits for ever once a task has killed its workers, and Ray's (2.60)
neither restarts a killed worker nor hands out results as they come. These do both, and send tasks as
:mod:`parcels <collegium.workers.opaque_payload>`, which no cluster can log.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from joblib.parallel import ParallelBackendBase

from collegium.workers.opaque_payload import (
    Failed,
    LentPayload,
    Parcel,
    cannot_travel,
    packed_with_lent,
    raised_on_the_way,
    surroundings,
)

Callback = Callable[[Any], None]


class WorkerLost:
    """Stands for the result of a task whose worker ended."""


class ClusterBackend(ParallelBackendBase):  # type: ignore[misc]
    """Sends joblib's tasks to a cluster.

    ``cores``: tasks that the cluster runs at once.
    """

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, cores: int) -> None:
        super().__init__(nesting_level=0)
        self._cores = cores
        self._pending: set[Any] = set()
        self._guard = threading.Lock()
        self._lent: dict[int, Any] = {}
        self._n_lent = 0
        self._stopped = threading.Event()
        self._looking: list[threading.Thread] = []

    @abstractmethod
    def _share(self, records: Any, everywhere: bool = True) -> Any:
        """Bring records to all workers, or to one of them; return what a task takes in their place."""

    @abstractmethod
    def _is_there(self, shared: Any) -> bool:
        """Tell whether what was shared is not known to be lost."""

    @abstractmethod
    def _look(self, stopped: threading.Event) -> None:
        """Look after tasks or workers until the event is set; runs in a thread."""

    @abstractmethod
    def _send(self, parcel: Parcel, expected: dict[str, str], numbers: list[int]) -> Any:
        """Start a task that reads what was lent under some numbers, and return its future."""

    @abstractmethod
    def _watch(self, future: Any, done: Callback) -> None:
        """Call ``done(future)`` when it has ended in any way."""

    @abstractmethod
    def _result(self, future: Any) -> Parcel | None:
        """Return what a task that ended returned; None if its worker was lost."""

    @abstractmethod
    def _give_up(self, futures: list[Any]) -> None:
        """Let nobody wait for tasks, and stop them where that is safe."""

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Tasks at once; at least two, since joblib would run a single one in this process."""
        return max(2, self._cores if n_jobs is None or n_jobs < 0 else n_jobs)

    def lend(self, records: Any) -> LentPayload:
        """Give public records to every worker, in place of those that were lent before."""
        self.take_back()
        return self.deposit(records, everywhere=True)

    def deposit(self, records: Any, everywhere: bool = False) -> LentPayload:
        """Give records to a worker, beside those that were lent before."""
        shared = self._share(records, everywhere)
        self._n_lent += 1
        self._lent[self._n_lent] = shared
        return LentPayload(number=self._n_lent)

    def still_has(self, lent: LentPayload) -> bool:
        """Tell whether what was lent is not known to be lost; if it is, forget it."""
        shared = self._lent.get(lent.number or 0)
        if shared is not None and self._is_there(shared):
            return True
        self._lent.pop(lent.number or 0, None)
        return False

    def take_back(self) -> None:
        """Let the cluster forget what was lent."""
        self._lent = {}

    def close(self) -> None:
        """Stop looking and forget what was lent, before the connection ends."""
        self.stop_call()
        self.take_back()

    def start_call(self) -> None:
        """Begin to look after tasks or workers, in place of a call that was left before its end."""
        self._stopped.set()
        self._stopped = threading.Event()
        looking = threading.Thread(target=self._look, args=(self._stopped,), daemon=True)
        self._looking = [*(thread for thread in self._looking if thread.is_alive()), looking]
        looking.start()

    def stop_call(self) -> None:
        """Stop looking."""
        self._stopped.set()

    def submit(self, func: Callable[[], list[Any]], callback: Callback | None = None) -> Any:
        """Send a batch of joblib's tasks."""
        try:
            parcel, numbers = packed_with_lent(func)
            future = self._send(parcel, surroundings(), numbers)
        except Exception as error:
            # This may run in a thread of the cluster's client, where an exception would get lost.
            future = Failed(cannot_travel(error))
            if callback is not None:
                callback(future)
            return future
        with self._guard:
            self._pending.add(future)
        if callback is not None:
            self._watch(future, callback)
        return future

    apply_async = submit  # its name before joblib 1.5

    def retrieve_result_callback(self, out: Any) -> Any:
        """Return a task's result; raise what it raised."""
        if isinstance(out, Failed):
            raise out.error
        try:
            parcel = self._result(out)
        finally:
            with self._guard:
                self._pending.discard(out)
        return [WorkerLost()] if parcel is None else raised_on_the_way(parcel)

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Give up all tasks that have not ended."""
        with self._guard:
            futures, self._pending = list(self._pending), set()
        self._give_up(futures)
