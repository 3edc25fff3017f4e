"""A small house to test in: groups, plans, votes, noise that keeps a record, and labelling jobs."""

import gc
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:
    # One process of the suite per core: threads of their own would wait for each other, and NumPy and
    # torch read these when they are imported.
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

# Tests make studies about the same people again and again: those of ledgers name theirs.
os.environ["COLLEGIUM_LEDGER"] = "none"
os.environ["XDG_STATE_HOME"] = os.devnull

if sys.dont_write_bytecode:
    # Dozens of processes import the package or the tests: the first one compiles for all.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray
from xdist.scheduler import LoadScopeScheduling

from collegium.budgets import Budget
from collegium.cli import progress
from collegium.cli.main import main
from collegium.noise.grid import GRID
from collegium.noise.sources import SeededNoise
from collegium.noise.sums import Integers, Noise
from collegium.pate.voting.aggregators import (
    Aggregator,
    ConfidentGNMax,
    ExponentialMax,
    GNMax,
    InteractiveGNMax,
    LNMax,
    PermuteAndFlip,
)
from collegium.pate.voting.labelling import LabellingJob, Outcome
from collegium.pate.voting.pricing import Pricing, pricing_for
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation import PERSONALISATIONS, Plan
from collegium.personalisation.electorate import Electorate
from tests.postgresql_server import server  # noqa: F401

Floats = NDArray[np.float64]
collect_ignore = [] if find_spec("flwr") else ["src/collegium/parties/flower.py"]

# The same examples on every machine, and no clock: a failure repeats, and a busy machine causes none
# (the health check "too slow" measures seconds as well). Tests that say max_examples need more because
# they are cheap, or fewer because they are not.
_STEADY = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("suite", derandomize=True, database=None, max_examples=30, **_STEADY)
# New examples every time: pytest --hypothesis-profile=search
settings.register_profile("search", derandomize=False, max_examples=500, **_STEADY)
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """Let temporary folders be in memory, where there is room.

    The suite writes and removes some 100,000 small files: on a disk that alone can take minutes.
    """
    memory = Path("/dev/shm")
    if "PYTEST_DEBUG_TEMPROOT" not in os.environ and memory.is_dir():
        about = os.statvfs(memory)
        if about.f_bavail * about.f_frsize > 4 * 2**30 and not about.f_flag & os.ST_NOEXEC:
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(memory)
            folder = tempfile.mkdtemp(prefix="t-", dir=memory)  # names of sockets have a limit
            os.environ["TMPDIR"] = tempfile.tempdir = folder  # of all processes that are begun, too
            config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))


CLUSTERS = ("tests/workers/test_engines.py", "tests/cli/test_run_on_engines.py")


class FilesInOneProcess(LoadScopeScheduling):
    """A file's tests go to one process, so that what they share is made once; the largest files first.

    Tests that start clusters are all one process's, and so are those that ask Spark. The golden record's
    share nothing: they go one by one, and last (a scope of one test is the smallest), so that no process
    waits long for the other.

    (xdist's own "loadgroup" does nothing under pytest 9.2: pytest-dev/pytest-xdist#1386.)
    """

    def _split_scope(self, nodeid: str) -> str:
        path, _, _ = nodeid.partition("::")
        if path.endswith("test_golden.py"):
            return nodeid
        if "spark" in nodeid:  # which takes half a minute to start
            return "spark"
        return "clusters" if path in CLUSTERS else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesInOneProcess:
    return FilesInOneProcess(config, log)


def pytest_collection_finish() -> None:
    """Let the garbage collector look less often, and never at what was imported: that is no garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 50, 50)


@pytest.fixture(scope="session", autouse=True)
def real_fsync() -> Iterator[Callable[[int], None]]:
    """Spare this process the wait for the disk, since no power fails here; yields what does wait."""
    with pytest.MonkeyPatch.context() as patch:
        real = os.fsync

        def no_wait(descriptor: int) -> None:
            os.fstat(descriptor)  # what is no file fails here, too

        patch.setattr(os, "fsync", no_wait)
        yield real


class NoNoise:
    """Zeros: what is noised can be read off the outcome."""

    is_private = False
    description = "no noise"
    excess = 1.0

    def noised(self, total: Integers, noise: Noise, *, query: int, purpose: str) -> Integers:
        return total


@dataclass
class RecordingNoise:
    """Passes every request on, and writes it down first: ("noise", purpose, query, scale, size)."""

    source: Any
    events: list[Any] = field(default_factory=list)
    is_private: bool = False
    description: str = "recorded noise"

    def noised(self, total: Integers, noise: Noise, *, query: int, purpose: str) -> Integers:
        self.events.append(("noise", purpose, query, noise.scale * GRID, total.size))
        return self.source.noised(total, noise, query=query, purpose=purpose)


class RecordingJournal:
    """A journal in memory that shares its list of events with the noise."""

    def __init__(self, events: list[Any], settled: Sequence[Outcome] = ()) -> None:
        self.events = events
        self._settled = list(settled)

    def settled(self) -> list[Outcome]:
        return list(self._settled)

    def reserve(self, first: int, queries: list[int]) -> None:
        self.events.append(("reserve", first, tuple(queries)))

    def settle(self, outcomes: list[Outcome]) -> None:
        self.events.append(("settle", tuple(outcomes)))
        self._settled += outcomes


class SteadyStudent:
    """Believes in the last label that it learnt, a little more with each refit."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.lessons: list[tuple[list[int], list[int]]] = []

    def refit(self, queries: list[int], labels: list[int]) -> None:
        self.lessons.append((list(queries), list(labels)))

    def probabilities(self, query: int) -> Floats | None:
        if not self.lessons:
            return None
        sure = 1 - 1 / (2 + len(self.lessons) + query % 2)
        believed = np.full(self.n_classes, (1 - sure) / (self.n_classes - 1))
        believed[self.lessons[-1][1][-1]] = sure
        return believed


class House:
    """What most tests need. Groups of 54, 37 and 9 % with ε = 1, 2, 3, unless others are given."""

    NoNoise = NoNoise
    RecordingNoise = RecordingNoise
    RecordingJournal = RecordingJournal
    SteadyStudent = SteadyStudent
    personalisations = ("uniform", "upsampling", "weighting", "vanishing")
    aggregators = ("lnmax", "gnmax", "confident", "interactive")
    groups: ClassVar = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
    shares: ClassVar = {"high": 54, "average": 37, "low": 9}

    @staticmethod
    def aggregator(name: str, n_teachers: int) -> Aggregator:
        """Make an aggregator that suits the number of teachers."""
        noise = {
            "threshold": 0.7 * n_teachers,
            "sigma_threshold": 0.5 * n_teachers,
            "sigma": 0.4 * n_teachers,
        }
        made: dict[str, Callable[[], Aggregator]] = {
            "lnmax": lambda: LNMax(gamma=2 / n_teachers),
            "pfmax": lambda: PermuteAndFlip(gamma=2 / n_teachers),
            "expmax": lambda: ExponentialMax(gamma=2 / n_teachers),
            "gnmax": lambda: GNMax(sigma=noise["sigma"]),
            "confident": lambda: ConfidentGNMax(**noise),
            "interactive": lambda: InteractiveGNMax(
                **{**noise, "threshold": 0.2 * n_teachers}, confidence=0.7, refit_every=3
            ),
        }
        return made[name]()

    @classmethod
    def plan(
        cls,
        personalisation: str,
        n_teachers: int = 100,
        groups: dict[str, Budget] | None = None,
        sizes: dict[str, int] | None = None,
        **options: Any,
    ) -> Plan:
        groups = groups or cls.groups
        sizes = sizes or {name: 100 * cls.shares.get(name, 50) for name in groups}
        return PERSONALISATIONS[personalisation](**options).plan(groups, sizes, n_teachers)

    @staticmethod
    def unlimited(n_teachers: int) -> Electorate:
        """Teachers of equal weight, whose owners allow everything: for looking at distributions."""
        return Electorate(
            n_nominal=n_teachers,
            weights=np.ones(n_teachers),
            groups={"everybody": Budget(np.inf)},
            cohort_groups=("everybody",),
            sensitivity=np.ones(1),
        )

    @staticmethod
    def predictions(
        n_queries: int, n_teachers: int, n_classes: int = 4, agreement: float = 0.8, seed: int = 0
    ) -> NDArray[np.int32]:
        """Each teacher votes for the query's class (query mod n_classes), or at random."""
        generator = np.random.default_rng(seed)
        truth = np.arange(n_queries)[:, None] % n_classes
        other = generator.integers(0, n_classes, (n_queries, n_teachers))
        agrees = generator.random((n_queries, n_teachers)) < agreement
        return np.where(agrees, truth, other).astype(np.int32)

    @classmethod
    def job(
        cls,
        predictions: NDArray[np.int32],
        electorate: Electorate,
        aggregator: Aggregator,
        *,
        n_classes: int = 4,
        guarantee: str = "worst-case",
        noise: Any = None,
        order: NDArray[np.intp] | None = None,
        kind: type[LabellingJob] = LabellingJob,
        **options: Any,
    ) -> tuple[LabellingJob, Pricing]:
        """Make a job and the prices that it charges; seeded noise unless another source is given."""
        pricing = pricing_for(guarantee, aggregator, electorate)
        if isinstance(aggregator, InteractiveGNMax):
            options.setdefault("student", SteadyStudent(n_classes))
        made = kind(
            VoteTable.from_predictions(predictions, n_classes, allow_abstention=True),
            electorate,
            aggregator,
            pricing,
            SeededNoise(1) if noise is None else noise,
            np.arange(len(predictions)) if order is None else order,
            **options,
        )
        return made, pricing

    @staticmethod
    def spent(
        outcomes: Sequence[Outcome], aggregator: Aggregator, electorate: Electorate
    ) -> Floats:
        """Add up Σ μ² from outcomes, ballots and noise alone (Gaussian aggregators)."""
        total = np.zeros(len(electorate.cohort_groups))
        for outcome in outcomes:
            ballot = electorate.ballot(outcome.position)
            moved = ballot.sensitivity / ballot.scale
            sigma_threshold = getattr(aggregator, "sigma_threshold", np.inf)
            total += moved**2 / sigma_threshold**2
            if outcome.verdict in ("answered", "lost"):
                total += 2 * moved**2 / aggregator.sigma**2  # type: ignore[attr-defined]
        return total


@pytest.fixture(scope="session")
def house() -> type[House]:
    return House


@pytest.fixture
def command_line(monkeypatch, capsys):
    """Run a command's main function as its script does: exit code, standard output, standard error."""

    def call(name: str, main: Callable[[], None], *arguments: Any) -> tuple[int | str, str, str]:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        if progress._SILENT_S:  # on a slow machine it would tell how it gets on
            monkeypatch.setattr(progress, "_SILENT_S", math.inf)
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return ended.value.code or 0, printed.out, printed.err

    return call


@pytest.fixture
def collegium(command_line):
    """Run the command line of the package."""
    return partial(command_line, "collegium", main)


_DRAWS_NOTHING = ("study", "cli", "planner", "ledger", "pate", "soundness", "attacks")
"""Tests of studies: they run hundreds, and pages' figures are looked at in tests/report and tests/golden."""


@pytest.fixture(autouse=True, scope="module")
def _frames_for_figures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the figures of reports empty, which take half of a small study's time."""
    room = request.path.relative_to(request.config.rootpath).parts
    if room[0] != "tests" or room[1] not in _DRAWS_NOTHING:
        yield
        return
    from markupsafe import Markup

    from collegium.report.sections import Figure

    def frame(figure: Figure) -> Markup:
        return Markup(
            '<svg role="img" aria-labelledby="{0}-title {0}-desc"><title id="{0}-title">{1}</title>'
            '<desc id="{0}-desc">{2}</desc></svg>'
        ).format(figure.name, figure.title, figure.description)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "svg", frame)
        yield
