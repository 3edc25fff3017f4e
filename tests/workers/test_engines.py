"""The same teachers on every engine, and none lost when a worker is."""

import contextlib
import os
import socket
import threading
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import cloudpickle
import engine_models
import joblib
import light_tasks
import numpy as np
import pytest
from engine_models import CountedRecords, Mortal, Talkative, Together, fingerprint

from collegium import Budgets, PrivacyWarning
from collegium.errors import InputError, ModelError, WorkerWarning
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.teachers.no_warnings import NO_WARNINGS
from collegium.personalisation import Assignment
from collegium.workers import cluster_backend, encryption, engines
from collegium.workers.engines import Engine, running
from collegium.workers.opaque_payload import Parcel, run_parcel, surroundings, unpacked
from collegium.workers.rounds import run_in_rounds

N_TEACHERS, SEED = 24, 7
HANGS = 1200  # seconds: only to stop what would never end
# Dask goes on asking a worker that was killed for a result that it had: its scheduler waits so long.
CONNECTS = 60
cloudpickle.register_pickle_by_value(engine_models)
cloudpickle.register_pickle_by_value(light_tasks)

CLUSTERS = ["dask", "ray"]
PROCESSES = ["local", *CLUSTERS]


@pytest.fixture(scope="module")
def dask_cluster(tmp_path_factory):
    """A cluster of two worker processes that belongs to somebody else.

    A nanny whose worker is killed while it starts gives up: the cluster then starts another one.
    """
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    import dask

    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.deploy.lost-worker-timeout": "1s",
        "distributed.comm.timeouts.connect": CONNECTS,
        "distributed.comm.timeouts.tcp": HANGS,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=":0",
            worker_dashboard_address=None,
            local_directory=tmp_path_factory.mktemp("dask"),
            silence_logs=50,
        ) as cluster,
    ):
        # Where a nanny was only slow, there are three for a while: none is retired in the middle of a task.
        cluster.adapt(minimum=2, maximum=2, interval="0.5s", wait_count=10**6)
        yield cluster


@pytest.fixture(scope="module")
def ray_cluster():
    """Two worker processes of Ray, to which this process is connected."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    for module in (engine_models, light_tasks):
        ray.cloudpickle.register_pickle_by_value(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES", "100000000")
        with Engine("ray", workers=2, timeout=HANGS).running():
            yield


@pytest.fixture
def engine(request):
    """Make an engine by name, on the module's cluster if it has one."""

    def make(name, **options):
        if name == "dask":
            cluster = request.getfixturevalue("dask_cluster")
            return Engine("dask", cluster.scheduler_address, **{"timeout": HANGS, **options})
        if name == "ray":
            request.getfixturevalue("ray_cluster")
            return Engine("ray", **{"timeout": HANGS, **options})
        return Engine(name, **{"workers": 2, **options})

    return make


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(5)
    X = generator.normal(size=(240, 3))
    y = generator.integers(0, 3, 240)
    teachers = (np.arange(240) % N_TEACHERS).astype(np.int32)
    budgets = Budgets.from_epsilons(np.ones(240), delta=1e-9)
    assignment = Assignment(budgets, teachers[:, None], N_TEACHERS)
    return X, y, assignment, generator.normal(size=(50, 3))


@pytest.fixture(scope="module")
def expected(data, tmp_path_factory):
    """Fingerprints of the shards, and the votes of teachers trained one by one in this process."""
    X, y, assignment, public = data
    folder = str(tmp_path_factory.mktemp("alone"))
    ensemble = TeacherEnsemble(Mortal(folder=folder), SEED, n_jobs=1)
    votes = ensemble.ask(ensemble.train(X, y, assignment), public)
    return [fingerprint(X[shard], y[shard]) for shard in assignment.shards()], votes.tolist()


def trained(folder):
    """Fingerprints of all trainings, finished or not, in order."""
    return [line.split()[0] for line in Path(folder, "trained.txt").read_text().splitlines()]


def workers_of(folder):
    return {int(line.split()[1]) for line in Path(folder, "trained.txt").read_text().splitlines()}


@pytest.mark.parametrize("name", ["sequential", "threading", "multiprocessing", *PROCESSES])
def test_every_engine_makes_the_same_teachers(name, engine, data, expected, tmp_path):
    X, y, assignment, public = data
    told = []
    with engine(name).running() as workers:
        ensemble = TeacherEnsemble(
            Mortal(folder=str(tmp_path)),
            SEED,
            workers=workers,
            progress=lambda done, total: told.append((done, total)),
        )
        teachers = ensemble.train(X, y, assignment)
        assert told == [(done, N_TEACHERS) for done in range(1, N_TEACHERS + 1)]
        votes = ensemble.ask(teachers, public)
    assert [teacher.sensitive_model.saw_ for teacher in teachers] == expected[0]
    assert votes.tolist() == expected[1]
    assert sorted(trained(tmp_path)) == sorted(expected[0])
    if name in ("multiprocessing", "local", "dask", "ray"):
        assert os.getpid() not in workers_of(tmp_path)
        assert len(workers_of(tmp_path)) <= 2


@pytest.mark.parametrize("name", PROCESSES)
def test_batched_estimators_work_on_every_engine(name, engine, data, expected):
    X, y, assignment, public = data
    here = TeacherEnsemble(Together(), SEED, n_classes=8)
    alone = here.ask(here.train(X, y, assignment), public)
    with engine(name).running() as workers:
        ensemble = TeacherEnsemble(Together(), SEED, n_classes=8, workers=workers)
        teachers = ensemble.train(X, y, assignment)
        assert ensemble.ask(teachers, public).tolist() == alone.tolist()
    assert [teacher.sensitive_model.saw_ for teacher in teachers] == expected[0]


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("local", "fit"),
        ("dask", "fit"),
        ("dask", "predict"),
        ("ray", "fit"),
    ],
)
def test_a_worker_killed_in_the_middle_costs_nothing(
    name, moment, engine, data, expected, tmp_path
):
    X, y, assignment, public = data
    victim = Mortal(X[assignment.records_of(5)[0], 0], 1, str(tmp_path), moment)
    kept = {}

    def keep(number, teacher):
        kept.setdefault(number, []).append(teacher)
        return number

    with engine(name).running() as workers:
        ensemble = TeacherEnsemble(
            victim,
            SEED,
            workers=workers,
            **({} if workers.share_files else {"keep": keep, "fetch": lambda n: kept[n][0]}),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WorkerWarning)
            teachers = ensemble.train(X, y, assignment)
            assert ensemble.ask(teachers, public).tolist() == expected[1]
    assert (tmp_path / "death 0").exists()
    assert not (tmp_path / "death 1").exists()
    if not workers.share_files:
        assert {len(copies) for copies in kept.values()} == {1}
        teachers = [kept[number][0] for number in range(N_TEACHERS)]
    assert [teacher.sensitive_model.saw_ for teacher in teachers] == expected[0]
    assert set(trained(tmp_path)) == set(expected[0])


@pytest.mark.parametrize("name", PROCESSES)
def test_a_teacher_that_always_kills_its_worker_ends_in_one_line_and_the_others_are_kept(
    name, engine, tmp_path
):
    received = {}

    def begin():
        return lambda batch: joblib.delayed(light_tasks.noted)(str(tmp_path), 5, batch)

    with (
        engine(name).running() as workers,
        pytest.warns(WorkerWarning, match="tried again"),
        pytest.raises(ModelError, match=r"[12] teacher\(s\) could not be trained") as error,
    ):
        batches = [[number, number + 1] for number in range(0, N_TEACHERS, 2)]
        run_in_rounds(batches, begin, workers, received.__setitem__, "trained")
    assert "\n" not in str(error.value)
    lost = int(str(error.value).split()[0])  # a cluster may blame the one that was next to it
    assert 5 not in received
    assert len(received) == N_TEACHERS - lost
    assert all(result == -number for number, result in received.items())
    done = (tmp_path / "done.txt").read_text().split()
    assert set(map(int, done)) == set(range(N_TEACHERS))
    # A busy machine loses workers of its own accord.
    assert 2 <= len(list(tmp_path.glob("death *"))) <= 24


@pytest.mark.parametrize("name", CLUSTERS)
def test_teachers_are_kept_and_fetched_by_this_process_where_files_are_not_shared(
    name, engine, data, expected
):
    X, y, assignment, public = data
    here, cupboard = os.getpid(), {}

    def keep(number, teacher):
        assert os.getpid() == here
        cupboard[f"teacher {number}"] = teacher
        return f"teacher {number}"

    def fetch(kept):
        assert os.getpid() == here
        return cupboard[kept]

    with engine(name).running() as workers:
        ensemble = TeacherEnsemble(Mortal(), SEED, workers=workers, keep=keep, fetch=fetch)
        kept = ensemble.train(X, y, assignment)
        assert kept == [f"teacher {number}" for number in range(N_TEACHERS)]
        assert ensemble.ask(kept, public).tolist() == expected[1]


@pytest.mark.parametrize("name", CLUSTERS)
def test_public_records_travel_once_not_with_every_task(name, engine, data, expected):
    X, y, assignment, public = data
    with engine(name).running() as workers:
        ensemble = TeacherEnsemble(Mortal(), SEED, workers=workers)
        teachers = ensemble.train(X, y, assignment)
        before = CountedRecords.packings
        assert ensemble.ask(teachers, CountedRecords(public)).tolist() == expected[1]
    assert 1 <= CountedRecords.packings - before <= 2  # Dask tries pickle before cloudpickle


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_failing_teacher_is_reported_in_one_line_and_no_log_quotes_it(
    name, engine, data, capfd, request
):
    X, y, assignment, _ = data
    with (
        engine(name).running() as workers,
        pytest.raises(InputError, match="could not be trained: RuntimeError") as error,
    ):
        TeacherEnsemble(Talkative(), SEED, workers=workers).train(X, y, assignment)
    assert "\n" not in str(error.value)
    printed = "".join(capfd.readouterr())
    if name == "dask":
        printed += str(request.getfixturevalue("dask_cluster").get_logs())
        assert len(printed) > 100
    assert "Secret" not in printed
    assert str(X[0, 0])[:6] not in printed
    assert "Secret" not in repr(error.value.__cause__)


@pytest.mark.parametrize("name", CLUSTERS)
def test_workers_with_other_versions_are_refused_before_anything_is_sent(name, engine, monkeypatch):
    other = {**surroundings(), "scikit-learn": "0.1"}
    module = pytest.importorskip(f"collegium.workers.{name}_cluster")
    prepared = engine(name)
    monkeypatch.setattr(module, "surroundings", lambda: other)
    with pytest.raises(InputError, match=r"scikit-learn .*here it is 0\.1"), prepared.running():
        raise AssertionError("must not come so far")


@pytest.mark.parametrize("name", CLUSTERS)
def test_workers_that_come_later_with_other_versions_are_refused_as_well(
    name, engine, data, monkeypatch
):
    X, y, assignment, _ = data
    other = {**surroundings(), "numpy": "0.1"}
    with engine(name).running() as workers:
        monkeypatch.setattr(cluster_backend, "surroundings", lambda: other)
        with pytest.raises(InputError, match="install the same versions"):
            TeacherEnsemble(Mortal(), SEED, workers=workers).train(X, y, assignment)


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_model_that_cannot_travel_is_named_not_waited_for(name, engine, data):
    class Rooted(Mortal):
        def __reduce__(self):
            raise TypeError(f"cannot pickle {self.folder} of Ann Secret")

    X, y, assignment, _ = data
    with (
        engine(name).running() as workers,
        pytest.raises(InputError, match=r"cannot travel.*TypeError") as error,
    ):
        TeacherEnsemble(Rooted(), SEED, workers=workers).train(X, y, assignment)
    assert "Secret" not in str(error.value)


def test_a_cluster_of_somebody_else_is_left_as_it_was(engine, data, dask_cluster):
    from distributed import Client

    X, y, assignment, public = data
    with engine("dask").running() as workers:
        ensemble = TeacherEnsemble(Mortal(), SEED, workers=workers)
        ensemble.ask(ensemble.train(X, y, assignment), public)
    with Client(dask_cluster.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=HANGS)  # one was killed, which its nanny restarts
        began = time.monotonic()
        while any(client.has_what().values()):
            assert time.monotonic() - began < HANGS, "records or teachers stay on the workers"
            time.sleep(0.05)


def test_who_waits_for_workers_is_told_so(data, expected, monkeypatch, tmp_path):
    """The worker comes when the warning has."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    from collegium.workers import dask_cluster

    X, y, assignment, _ = data
    told = []

    def tell(message, category, stacklevel):
        told.append((category, message))
        cluster.scale(1)

    with (
        distributed.LocalCluster(
            n_workers=1,
            processes=False,
            dashboard_address=":0",
            local_directory=tmp_path,
            silence_logs=50,
        ) as cluster,
        Engine("dask", cluster.scheduler_address).running() as workers,
    ):
        cluster.scale(0)
        while cluster.scheduler.workers:
            time.sleep(0.01)
        workers._backend._patience = 0.2
        monkeypatch.setattr(dask_cluster, "warnings", SimpleNamespace(warn=tell))
        teachers = TeacherEnsemble(Mortal(), SEED, workers=workers).train(X, y, assignment)
    assert told[0][0] is WorkerWarning
    assert "no worker for 0.2 s: waiting" in told[0][1]
    assert [teacher.sensitive_model.saw_ for teacher in teachers] == expected[0]


def test_a_task_that_the_scheduler_forgot_is_sent_again(dask_cluster, monkeypatch, tmp_path):
    """Also where its client has missed the news, as it may while a worker is lost."""
    from distributed import Client, Future

    from collegium.workers import dask_cluster as module

    monkeypatch.setattr(module, "_FORGOTTEN_S", 0.5)
    address, waits = dask_cluster.scheduler_address, tmp_path / "waits"
    waits.touch()
    with Engine("dask", address, timeout=1.0).running() as workers:
        backend = workers._backend
        backend._client._stream_handlers["cancelled-keys"] = lambda **_: None
        backend.start_call()
        ended = threading.Event()
        future = backend.submit(partial(light_tasks.wait_while, str(waits)), lambda _: ended.set())
        with Client(address, set_as_default=False) as other:
            other.cancel([Future(future.key, other)], force=True)
        assert ended.wait(HANGS)
        (lost,) = backend.retrieve_result_callback(future)
        assert isinstance(lost, cluster_backend.WorkerLost)
        waits.unlink()


def test_records_are_lent_again_where_all_workers_were_just_replaced(dask_cluster, monkeypatch):
    from collegium.workers import dask_cluster as module

    monkeypatch.setattr(module, "_PAUSE_S", 0.01)
    with Engine("dask", dask_cluster.scheduler_address, timeout=1.0).running() as workers:
        backend, asked = workers._backend, []
        scatter = backend._client.scatter

        def refuses_twice(*records, **options):
            asked.append(records)
            if len(asked) < 3:
                raise ValueError("Can not use replicate to delete data")
            return scatter(*records, **options)

        monkeypatch.setattr(backend._client, "scatter", refuses_twice)
        assert backend._share([1, 2]) is not None
        assert len(asked) == 3


def test_a_client_of_this_process_is_used_and_stays_open(data, dask_cluster, expected):
    from distributed import Client

    X, y, assignment, public = data
    with Client(dask_cluster.scheduler_address) as client:
        with running("dask") as workers:
            ensemble = TeacherEnsemble(Mortal(), SEED, workers=workers)
            assert ensemble.ask(ensemble.train(X, y, assignment), public).tolist() == expected[1]
        assert client.status == "running"


def test_a_dask_cluster_of_our_own_is_encrypted_and_leaves_nothing(tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Engine("dask", workers=2).running() as workers:
        assert workers.count == 2
        client = workers._backend._client
        places = [client.scheduler.address, *client.nthreads()]
        assert len(places) == 3
        assert all(place.startswith("tls://127.0.0.1:") for place in places)
        (scratch,) = tmp_path.glob("collegium-dask-*")
        assert scratch.stat().st_mode & 0o777 == 0o700
        processes = client.run(os.getpid)
        tasks = (joblib.delayed(light_tasks.surroundings)() for _ in range(8))
        assert {process for process, _ in workers.results(tasks)} <= set(processes.values())
    assert not scratch.exists()
    for process in processes.values():
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_ray_cluster_of_our_own_asks_for_a_token_and_is_not_stopped_by_others(ray_cluster):
    import ray

    with Engine("ray").running() as workers:
        assert workers.count == 2
    assert ray.is_initialized()
    mode = ray.get(ray.remote(lambda: os.environ.get("RAY_AUTH_MODE")).remote())
    assert mode == "token"


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("dask", "tcp://127.0.0.1:9"),
        ("ray", "127.0.0.1:9"),
        ("dask", "no.json"),
        ("dask", "tls://127.0.0.1:9"),
    ],
)
def test_an_unreachable_cluster_is_one_line_within_the_timeout(name, address, monkeypatch):
    """The cluster's own patience is far longer."""
    pytest.importorskip({"dask": "distributed"}.get(name, name))
    if name == "ray":
        import ray

        monkeypatch.setattr(ray, "is_initialized", lambda: False)
        patience = contextlib.nullcontext()
    else:
        import dask

        patience = dask.config.set({"distributed.comm.timeouts.connect": HANGS})
    with (
        patience,
        pytest.raises(InputError, match=rf"answers at {address} within 0\.2 s") as error,
        Engine(name, address, timeout=0.2).running(),
    ):
        raise AssertionError("must not come so far")
    assert "\n" not in str(error.value)


def test_a_scheduler_without_workers_is_given_up(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    from collegium.workers import dask_cluster

    # The scheduler itself may be slow to answer on a busy machine.
    client = dask_cluster._client
    monkeypatch.setattr(dask_cluster, "_client", lambda address, timeout: client(address, HANGS))
    with (
        distributed.LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address=":0", silence_logs=50
        ) as cluster,
        pytest.raises(InputError, match=r"no worker that answers within 0\.5 s"),
        Engine("dask", cluster.scheduler_address, timeout=0.5).running(),
    ):
        raise AssertionError("must not come so far")


def test_unknown_engines_name_the_known_ones():
    joblib.register_parallel_backend("warehouse", joblib.parallel.ThreadingBackend)
    try:
        with pytest.raises(InputError, match="unknown engine 'spark'") as error:
            Engine("spark")
        for name in ("local", "dask", "ray", "threading", "loky", "warehouse"):
            assert name in str(error.value)
        with Engine("warehouse", workers=2).running() as workers:
            assert workers.count == 2
    finally:
        del joblib.parallel.BACKENDS["warehouse"]


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_an_engine_that_is_not_installed_names_the_extra(name, monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda module: None)
    with (
        pytest.raises(InputError, match=rf'pip install "collegium\[{name}\]"'),
        Engine(name).running(),
    ):
        raise AssertionError("must not come so far")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "local", "address": "tcp://x:1"}, "would have no effect on engine 'local'"),
        ({"workers": 0}, "at least 1"),
        ({"workers": -3}, "at least 1"),
    ],
)
def test_engines_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Engine(**options)


def test_what_is_no_engine_is_refused():
    with pytest.raises(InputError, match="must be a name"), running(3):
        raise AssertionError("must not come so far")


def test_the_active_joblib_backend_is_used_where_no_engine_is_given(data, expected, tmp_path):
    X, y, assignment, public = data
    with joblib.parallel_config("threading", n_jobs=2):
        ensemble = TeacherEnsemble(Mortal(folder=str(tmp_path)), SEED)
        assert ensemble.ask(ensemble.train(X, y, assignment), public).tolist() == expected[1]
    assert workers_of(tmp_path) == {os.getpid()}


def test_parcels_show_nothing():
    parcel = Parcel(b"Ann Secret")
    assert repr(parcel) == str(parcel) == "<10 bytes>"
    failed = unpacked(run_parcel(Parcel(b"no pickle: Ann Secret"), {}))
    assert "Secret" not in str(failed.error)
    assert isinstance(failed.error, InputError)


def test_traffic_in_clear_to_other_machines_is_warned_of():
    assert encryption.is_here("localhost") and encryption.is_here(socket.gethostbyname("localhost"))
    with pytest.warns(
        PrivacyWarning, match=r"unencrypted to the Dask cluster \(192\.0\.2\.1 and 1 more\)"
    ):
        encryption.warn_if_unencrypted("Dask", ["192.0.2.1", "127.0.0.1", "192.0.2.7"], False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encryption.warn_if_unencrypted("Dask", ["192.0.2.1"], True)


def test_silence_holds_while_any_thread_is_inside():
    inside, leave = threading.Event(), threading.Event()

    def first():
        with NO_WARNINGS:
            inside.set()
            leave.wait(HANGS)

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        other = threading.Thread(target=first)
        other.start()
        assert inside.wait(HANGS)
        with NO_WARNINGS:
            leave.set()
            other.join()
            warnings.warn("about a shard", stacklevel=1)
        assert heard == []
        with contextlib.suppress(ZeroDivisionError), NO_WARNINGS:
            raise ZeroDivisionError
        warnings.warn("about something else", stacklevel=1)
    assert len(heard) == 1


def test_threads_inside_a_worker_share_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with Engine("local", workers=2).running() as workers:
        tasks = (joblib.delayed(light_tasks.surroundings)() for _ in range(8))
        threads = {int(number) for _, number in workers.results(tasks)}
    cores = joblib.cpu_count()
    assert threads <= {max(1, cores // 2), cores}


class RayWithoutCluster:
    """Stands for Ray: nothing ever ends, and there is nothing to cancel with."""

    def __init__(self):
        self.asked = threading.Event()
        self.is_over = False
        self.asked_after_the_end = False

    def remote(self, function):
        return self

    def options(self, **options):
        return self

    def wait(self, futures, **options):
        self.asked_after_the_end |= self.is_over
        self.asked.set()
        time.sleep(0.05)
        return [], futures


def test_nobody_asks_ray_after_the_end_even_if_tasks_were_given_up():
    """Ray ends the whole process if anybody does, and may do so if a task that ends is cancelled."""
    pytest.importorskip("ray", reason="Ray is not installed")
    from collegium.workers.ray_cluster import RayBackend

    ray = RayWithoutCluster()
    for give_up in (False, True):
        backend = RayBackend(ray, 2)
        for _ in range(2):  # two calls, one after the other
            backend.start_call()
            backend._watch("a task", lambda future: None)
            assert ray.asked.wait(HANGS)
            ray.asked.clear()
            if give_up:
                backend.abort_everything()
        backend.close()
        ray.is_over = True
        time.sleep(0.2)
        assert not ray.asked_after_the_end
        ray.is_over = False
