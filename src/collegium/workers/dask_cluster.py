"""Teachers on Dask: an existing scheduler, or workers on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask
from distributed import CancelledError, Client, LocalCluster, Security, default_client
from distributed.comm import CommClosedError, connect, get_address_host
from distributed.scheduler import KilledWorker
from joblib import cpu_count

from collegium.errors import InputError, WorkerWarning
from collegium.workers.cluster_backend import Callback, ClusterBackend
from collegium.workers.encryption import warn_if_unencrypted
from collegium.workers.opaque_payload import (
    Parcel,
    cannot_travel,
    packed,
    raised_on_the_way,
    run_parcel,
    surroundings,
)

_LOST = (KilledWorker, CancelledError, CommClosedError)
_FORGOTTEN_S = 20.0
_TRIES, _PAUSE_S = 10, 1.0
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class DaskBackend(ClusterBackend):
    """Sends joblib's tasks to the workers of a Dask client."""

    def __init__(self, client: Client, cores: int, patience: float) -> None:
        super().__init__(cores)
        self._client = client
        self._patience = patience
        self._unknown_since: dict[str, float] = {}

    def _share(self, records: Any, everywhere: bool = True) -> Any:
        """Copy records to every worker that is there, or to one; workers that come later get them there.

        Dask refuses, or gives up, where all workers are being replaced at that moment.
        """
        for tries_left in reversed(range(_TRIES)):
            self._wait_for_a_worker()
            try:
                return self._client.scatter(records, broadcast=everywhere, hash=False)
            except (ValueError, KeyError, TimeoutError, OSError):  # KeyError: a worker just left
                if not tries_left or self._client.status != "running":
                    raise
                time.sleep(_PAUSE_S)

    def _wait_for_a_worker(self) -> None:
        while True:
            try:
                self._client.wait_for_workers(1, timeout=self._patience)
                return
            except TimeoutError:
                self._tell_that_nobody_is_there()

    def _tell_that_nobody_is_there(self) -> None:
        warnings.warn(
            f"the Dask cluster has had no worker for {self._patience:g} s: waiting for a new one (Ctrl-C "
            "stops; the same command goes on from there)",
            WorkerWarning,
            stacklevel=2,
        )

    def _look(self, stopped: threading.Event) -> None:
        """Look whether any worker is left, and every task known: Dask would wait without a word."""
        last_seen, told = time.monotonic(), False
        while not stopped.wait(min(2.0, self._patience)) and self._client.status == "running":
            with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                if self._client.nthreads():
                    last_seen, told = time.monotonic(), False
                if forgotten := self._forgotten():
                    self._give_up(forgotten)
            if not told and time.monotonic() - last_seen > self._patience:
                told = True
                self._tell_that_nobody_is_there()

    def _forgotten(self) -> list[Any]:
        """Find tasks that the scheduler has not known for a while.

        A worker that is lost while its result is on the way, and public records with it, makes the
        scheduler forget the task; a client that just then asks for the result again may miss that news, and
        wait for ever (Dask 2026.8). Who cancels such a task here learns that it was lost, and sends it again.
        """
        with self._guard:
            waiting = {future.key: future for future in self._pending}
        status = self._client.scheduler.get_task_status
        known = self._client.sync(status, keys=list(waiting)) if waiting else {}
        now = time.monotonic()
        self._unknown_since = {
            key: self._unknown_since.get(key, now) for key in waiting if known.get(key) is None
        }
        return [
            waiting[key] for key, since in self._unknown_since.items() if now - since > _FORGOTTEN_S
        ]

    def _is_there(self, shared: Any) -> bool:
        return bool(shared.status == "finished")

    def _send(self, parcel: Parcel, expected: dict[str, str], numbers: list[int]) -> Any:
        lent = [self._lent[number] for number in numbers]
        key = f"teachers-{uuid4().hex}"
        return self._client.submit(
            run_parcel, parcel, expected, numbers, *lent, key=key, pure=False
        )

    def _watch(self, future: Any, done: Callback) -> None:
        future.add_done_callback(done)

    def _result(self, future: Any) -> Parcel | None:
        try:
            parcel: Parcel = future.result()
        except _LOST:
            if self._client.status != "running":
                raise InputError(
                    "the connection to the Dask scheduler was lost: run again to go on from here"
                ) from None
            return None
        except Exception as error:
            raise cannot_travel(error) from None
        return parcel

    def _give_up(self, futures: list[Any]) -> None:
        if self._client.status == "running":
            self._client.cancel(futures, force=True)


@contextlib.contextmanager
def connected(address: str | None, workers: int | None, timeout: float) -> Iterator[DaskBackend]:
    """Connect to a scheduler; without an address, to this process's client or a cluster started for it.

    ``address``: ``tcp://host:8786``, ``tls://host:8786``, or the path of a scheduler file
        (``.json``).
    ``workers``: workers to start where there is no cluster, or tasks at once on one that is there;
        None: as many as there are cores.
    ``timeout``: seconds after which a scheduler without answer, or without a worker, is given up.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        address = address or dask.config.get("scheduler-address", None)
        client = None if address else _client_of_this_process()
        if client is None:
            client = _client(address, timeout) if address else _started(stack, workers)
            stack.callback(client.close)
        _check_a_worker(client, timeout)
        places = [client.scheduler.address, *client.nthreads()]
        hosts = [get_address_host(place) for place in places]
        warn_if_unencrypted("Dask", hosts, all(place.startswith("tls://") for place in places))
        cores = workers or sum(client.nthreads().values())
        backend = DaskBackend(client, cores, timeout)
        stack.callback(backend.close)
        yield backend


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Show neither the log of a cluster that comes and goes, nor advice about the size of tasks."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _client_of_this_process() -> Client | None:
    try:
        return default_client()
    except ValueError:
        return None


def _client(address: str, timeout: float) -> Client:
    """Connect to a scheduler, once it has answered: a client that fails to start blocks this process."""
    try:
        if address.endswith(".json"):
            place = str(json.loads(Path(address).read_text("utf-8"))["address"])
        else:
            place = address
        asyncio.run(_knock(place, timeout))
        return Client(place, timeout=timeout, set_as_default=False)
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} within {timeout:g} s ({type(error).__name__}): check "
            "the address (tcp://host:8786, tls://host:8786 or a scheduler file), the network and the "
            "certificates"
        ) from None


async def _knock(place: str, timeout: float) -> None:
    comm = await connect(place, timeout=timeout, **Security().get_connection_args("client"))
    await comm.close()


def _started(stack: contextlib.ExitStack, workers: int | None) -> Client:
    """Start a cluster on this machine for this process alone: encrypted, scratch files for its owner."""
    workers = workers or cpu_count()
    scratch = tempfile.mkdtemp(prefix="collegium-dask-")
    stack.callback(shutil.rmtree, scratch, ignore_errors=True)
    threads = str(max(1, cpu_count() // workers))
    settings: dict[str, Any] = {
        f"distributed.nanny.pre-spawn-environ.{name}": threads for name in _THREADS
    }
    settings |= {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}
    with dask.config.set(settings), _deaf_to_ctrl_c():
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            protocol="tls://",
            security=Security.temporary(),
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address=None,
            local_directory=scratch,
            silence_logs=logging.CRITICAL,
        )
    stack.callback(cluster.close)
    return Client(cluster, set_as_default=False)


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Let the workers that start here ignore Ctrl-C: this process stops them, without their outcries."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _check_a_worker(client: Client, timeout: float) -> None:
    """Run an empty task: are there workers, do they know Collegium, and the same one?"""
    future = client.submit(run_parcel, packed(list), surroundings(), pure=False)
    try:
        answer = future.result(timeout=timeout)
    except TimeoutError:
        raise InputError(
            f"the Dask scheduler has no worker that answers within {timeout:g} s: start workers (`dask "
            "worker ADDRESS`), or wait until the cluster has some"
        ) from None
    except Exception as error:
        raise cannot_travel(error) from None
    raised_on_the_way(answer)
