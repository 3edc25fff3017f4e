"""Teachers on Ray: an existing cluster, or workers on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from joblib import cpu_count

from collegium.errors import InputError, PrivacyWarning
from collegium.scratch import scratch_folder
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

_RETRIES = 1  # Ray's own: a task goes to another worker at once, without waiting for a round to end
_POLL_S = 0.05
_LONGEST_BASE, _SHORTEST_BASE = 12, Path("/tmp")


class RayBackend(ClusterBackend):
    """Sends joblib's tasks to the Ray cluster to which this process is connected."""

    def __init__(self, ray: Any, cores: int) -> None:
        super().__init__(cores)
        self._ray = ray
        self._task = ray.remote(run_parcel).options(max_retries=_RETRIES)
        self._watched: dict[Any, Callback] = {}
        self._more = threading.Event()

    def _share(self, records: Any, everywhere: bool = True) -> Any:
        """Put records into Ray's object store, from which workers on one machine read without copying."""
        return self._ray.put(records)

    def stop_call(self) -> None:
        """Stop looking."""
        super().stop_call()
        self._more.set()

    def _look(self, stopped: threading.Event) -> None:
        """Look for tasks that ended, in a thread of our own: Ray's callbacks must not start tasks."""
        while not stopped.is_set():
            with self._guard:
                watched = list(self._watched)
            if not watched:
                self._more.wait(_POLL_S)
                self._more.clear()
                continue
            ended, _ = self._ray.wait(watched, num_returns=1, timeout=_POLL_S, fetch_local=False)
            for future in ended:
                with self._guard:
                    done = self._watched.pop(future, None)
                if done is not None:
                    done(future)

    def _is_there(self, shared: Any) -> bool:
        return True  # in this machine's part of the store, as long as this process lives

    def _send(self, parcel: Parcel, expected: dict[str, str], numbers: list[int]) -> Any:
        lent = [self._lent[number] for number in numbers]
        return self._task.remote(parcel, expected, numbers, *lent)

    def _watch(self, future: Any, done: Callback) -> None:
        with self._guard:
            self._watched[future] = done
        self._more.set()

    def _result(self, future: Any) -> Parcel | None:
        errors = self._ray.exceptions
        try:
            parcel: Parcel = self._ray.get(future)
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            raise cannot_travel(getattr(error, "cause", error)) from None
        except errors.RayError:
            if not self._ray.is_initialized():
                raise InputError(
                    "the connection to the Ray cluster was lost: run again to go on from here"
                ) from None
            return None
        return parcel

    def _give_up(self, futures: list[Any]) -> None:
        """Forget tasks, and let them run: no more than a few for each worker.

        Ray (2.60) aborts the whole process where a task ends while it is cancelled ("Tried to complete
        task that was not pending", ray-project/ray#54798).
        """
        with self._guard:
            self._watched.clear()

    def close(self) -> None:
        """Wait for the threads, too: Ray ends the whole process if one calls it after the end."""
        super().close()
        for thread in self._looking:
            thread.join()


@contextlib.contextmanager
def connected(address: str | None, workers: int | None, timeout: float) -> Iterator[RayBackend]:
    """Connect to a cluster; without an address, to this process's or one that is started for it.

    ``address``: ``head:6379`` or ``auto`` (on a machine of the cluster), or ``ray://host:10001``
        (from anywhere).
    ``workers``: workers to start where there is no cluster, or tasks at once on one that is there;
        None: as many as there are cores.
    ``timeout``: seconds after which a cluster without answer, or without a free core, is given up.
    """
    address = address or os.environ.get("RAY_ADDRESS")
    with contextlib.ExitStack() as stack:
        if not address:
            stack.enter_context(_private_settings(workers))
        import ray  # reads its settings when it is imported

        if ray.is_initialized():
            if address not in (None, "auto", ray.get_runtime_context().gcs_address):
                raise InputError(
                    f"this process is connected to another Ray cluster than {address}: call "
                    "ray.shutdown() first, or give no address"
                )
        elif address:
            _join(ray, address, timeout)
            stack.callback(ray.shutdown)
        else:
            _start(ray, stack, workers)
        _check_a_worker(ray, timeout)
        hosts = [node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]]
        warn_if_unencrypted(
            "Ray", hosts, os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")
        )
        cores = workers or int(ray.cluster_resources().get("CPU", 1))
        backend = RayBackend(ray, cores)
        stack.callback(backend.close)
        yield backend


@contextlib.contextmanager
def _private_settings(workers: int | None) -> Iterator[None]:
    """Settings that processes of a cluster of our own inherit: threads, no telemetry.

    That it asks for a secret token is Ray's default for clusters on one machine (2.60).
    """
    wanted = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": str(max(1, cpu_count() // (workers or cpu_count()))),
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _start(ray: Any, stack: contextlib.ExitStack, workers: int | None) -> None:
    scratch = _scratch()
    stack.callback(shutil.rmtree, scratch, ignore_errors=True)
    ray.init(
        address="local",
        num_cpus=workers or cpu_count(),
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _temp_dir=scratch,
        _node_ip_address="127.0.0.1",
    )
    stack.callback(ray.shutdown)
    if (
        os.environ.get("RAY_AUTH_MODE") != "token"
    ):  # which Ray sets by itself, unless told otherwise
        warnings.warn(
            "the Ray cluster that was started listens on the network and asks for no token: whoever reaches "
            "this machine could read private records; set RAY_AUTH_MODE=token, or take --engine local",
            PrivacyWarning,
            stacklevel=2,
        )


def _scratch() -> Path:
    """Make a folder for Ray inside one of our own: Ray lets everybody into the one that it is given.

    Its name is short, since those of sockets inside have a limit; where that of the system's folder for
    temporary files is too long, the shortest there is takes its place.
    """
    base = Path(tempfile.gettempdir())
    if len(str(base)) > _LONGEST_BASE and os.access(_SHORTEST_BASE, os.W_OK):
        base = _SHORTEST_BASE
    inside = scratch_folder(base) / "r"
    inside.mkdir(mode=0o700, exist_ok=True)
    return inside


def _join(ray: Any, address: str, timeout: float) -> None:
    failure = _silent(address, timeout)
    if not failure:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except Exception as error:
            failure = type(error).__name__
    if failure:
        raise InputError(
            f"no Ray cluster answers at {address} within {timeout:g} s ({failure}): on a machine of the "
            "cluster (`ray start`) give its head:6379, from elsewhere ray://host:10001; check its token "
            "(RAY_AUTH_TOKEN) and certificates, too"
        )


def _silent(address: str, timeout: float) -> str:
    """Try the port first: Ray itself would try for minutes."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        return ""
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=timeout).close()
    except (OSError, ValueError) as error:
        return type(error).__name__
    return ""


def _check_a_worker(ray: Any, timeout: float) -> None:
    """Run an empty task: are there workers, do they know Collegium, and the same one?"""
    future = ray.remote(run_parcel).remote(packed(list), surroundings())
    try:
        answer = ray.get(future, timeout=timeout)
    except ray.exceptions.GetTimeoutError:
        raise InputError(
            f"the Ray cluster has no free core within {timeout:g} s: add machines (`ray start "
            "--address=HEAD:6379`), or wait until it has some"
        ) from None
    except Exception as error:
        raise cannot_travel(getattr(error, "cause", None) or error) from None
    raised_on_the_way(answer)
