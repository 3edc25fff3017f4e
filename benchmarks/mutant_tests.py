"""Which tests run which lines, and whether they notice a change of one: for ``mutants.py``.

Tests run in forks of a server that has imported everything except the package, so a mutant costs what its
tests cost. A test can only notice a change of a line that it runs: every test file runs once on the
unchanged package, in a process of its own, and says which lines each of its tests ran. Lines that run in
other processes are not seen, so a mutant may seem to live; never the other way round.
"""

from __future__ import annotations

import atexit
import compileall
import contextlib
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from py_compile import PycInvalidationMode
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = (
    *("hypothesis", "joblib", "matplotlib.figure", "mpmath", "numpy", "onnxruntime", "pandas"),
    *("pyarrow.parquet", "pytest", "scipy.optimize", "scipy.special", "scipy.stats", "skl2onnx"),
    *("sklearn.ensemble", "sklearn.linear_model", "sklearn.naive_bayes", "sklearn.pipeline"),
    *("skops.io", "torch", "typer.testing", "xdist.scheduler"),
)
#: Tests that are not asked: of what needs none of this, and those that start clusters.
APART = ("tests/models/", "tests/data/", "tests/report/", "tests/workers/test_engines.py")
_context = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Test:
    """A test, how long it takes, and which lines it runs, by file of the package."""

    name: str
    seconds: float
    lines: dict[str, frozenset[int]]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


# ----------------------------------------------------------------------------------- in the forks


class _Lines:
    """Notes lines of some files as they run."""

    def __init__(self, package: Path, files: Collection[str]) -> None:
        self._names = {str(package / file): file for file in files}
        self._of: dict[int, tuple[CodeType, str | None]] = {}  # by id: a code's own hash is slow
        self.begin()

    def begin(self) -> None:
        """Forget what ran."""
        self._left: dict[int, set[int]] = {}
        self.ran: defaultdict[str, set[int]] = defaultdict(set)

    def __enter__(self) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        known = self._of.get(id(code))
        if known is None:
            known = self._of[id(code)] = code, self._names.get(code.co_filename)
        file = known[1]
        if file is None:
            return None
        left = self._left.get(id(code))
        if left is None:
            left = {line for _, _, line in code.co_lines() if line is not None}
            self._left[id(code)] = left
        if not left:
            return None
        lines = self.ran[file]

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            lines.add(frame.f_lineno)
            left.discard(frame.f_lineno)
            return line

        return line(frame, event, argument)


class _Mapping:
    """A plugin of pytest: which lines every test ran, and how long it took."""

    def __init__(self, package: Path, files: Collection[str]) -> None:
        import pytest

        self.tests: dict[str, tuple[float, dict[str, list[int]]]] = {}
        self.failed: list[str] = []
        plugin = self

        class Hooks:
            def __init__(self) -> None:
                self._shared: defaultdict[str, set[int]] = defaultdict(set)
                self._lines = _Lines(package, files)

            @pytest.hookimpl(hookwrapper=True)
            def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
                before = {file: set(lines) for file, lines in self._lines.ran.items()}
                yield
                if fixturedef.scope != "function":  # what it ran, the next tests stand on
                    for file, lines in self._lines.ran.items():
                        self._shared[file] |= lines - before.get(file, set())

            @pytest.hookimpl(hookwrapper=True)
            def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
                self._lines.begin()
                began = time.perf_counter()
                with self._lines:
                    yield
                ran = {
                    file: sorted(self._lines.ran[file] | self._shared[file])
                    for file in {*self._lines.ran, *self._shared}
                }
                plugin.tests[item.nodeid] = (time.perf_counter() - began, ran)

            def pytest_runtest_logreport(self, report: Any) -> None:
                if report.failed:
                    plugin.failed.append(report.nodeid)

        self.hooks = Hooks()


class _Chosen:
    """A plugin of pytest: these tests alone, the quick ones of a file first; the first that fails."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds
        self.failed: str | None = None

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        order = {item.nodeid.partition("::")[0]: 0 for item in items}
        order = {file: place for place, file in enumerate(order)}
        items[:] = [item for item in items if item.nodeid in self._seconds]
        items.sort(
            key=lambda item: (order[item.nodeid.partition("::")[0]], self._seconds[item.nodeid])
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = f"{report.nodeid} (is not even imported)"


def _begin(source: Path) -> None:
    os.setpgid(0, 0)
    os.chdir(ROOT)
    said = os.open(os.devnull, os.O_WRONLY)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.path[:0] = [str(source), str(ROOT)]
    os.environ["PYTHONPATH"] = str(source)


def _pytest(plugin: Any, files: list[str]) -> int:
    import pytest

    quiet = ["-q", "-p", "no:cacheprovider"]
    return int(pytest.main([*quiet, *files], plugins=[plugin]))


def _map_file(said: Connection, source: Path, test_file: str, files: list[str]) -> None:
    _begin(source)
    plugin = _Mapping(source / "collegium", files)
    code = _pytest(plugin.hooks, [test_file])
    said.send((code, plugin.failed, plugin.tests))


def _judge(said: Connection, source: Path, files: list[str], seconds: dict[str, float]) -> None:
    _begin(source)
    try:
        import collegium

        assert Path(collegium.__file__).is_relative_to(source)
        import conftest  # noqa: F401
    except BaseException:
        said.send((1, traceback.format_exc().splitlines()[-1]))
        return
    plugin = _Chosen(seconds)
    said.send((_pytest(plugin, ["-x", *files]), plugin.failed))


# ---------------------------------------------------------------------------------- in the server


def start() -> None:
    """Import what every fork needs; nothing of the package."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # forks get on with one thread only
    _context.set_forkserver_preload(list(IMPORTED))
    _compiled()


def _in_fork(target: Callable[..., None], *arguments: Any, limit: float) -> Any:
    """Return what a fork says; None if it ends without a word or takes longer than the limit."""
    heard, said = _context.Pipe(duplex=False)
    process = _context.Process(target=target, args=(said, *arguments))
    process.start()
    said.close()
    answer = None
    with contextlib.suppress(EOFError):
        if heard.poll(limit):
            answer = heard.recv()
    if answer is None or process.join(10) or process.is_alive():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    heard.close()
    return answer


@contextlib.contextmanager
def copied_package() -> Iterator[Path]:
    """Copy the package, compiled, into a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = Path(folder, "src")
        shutil.copytree(_compiled(), source)
        yield source


@cache
def _compiled() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="package-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(ROOT / "src", folder / "src")
    compileall.compile_dir(folder, quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    return folder / "src"


class TestMap:
    """Which lines of some files of the package each test runs; found out when it is asked for.

    ``stored``: where it is kept for next time: a file of tests that has not changed is not run again.
    """

    def __init__(self, files: list[str], stored: Path | None = None) -> None:
        self._files, self._stored = files, stored
        package = hashlib.sha256()
        for path in sorted([*(ROOT / "src").rglob("*.py"), ROOT / "conftest.py"]):
            package.update(path.read_bytes())
        self._package = package.digest()
        self._kept = json.loads(stored.read_text()) if stored and stored.exists() else {}
        self._found: dict[str, list[Test]] = {}
        self._asked = threading.Lock()

    def of(self, folders: Iterable[str]) -> list[Test]:
        """Tests of these folders and files."""
        names = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
        wanted = sorted(name for name in names if name.startswith(tuple(folders)))
        wanted = [name for name in wanted if not name.startswith(APART)]
        with self._asked:  # by one at a time, who has the others' files mapped as well
            self._map([name for name in wanted if name not in self._found])
        return [test for name in wanted for test in self._found[name]]

    def _map(self, names: list[str]) -> None:
        digests = {
            name: hashlib.sha256(self._package + (ROOT / name).read_bytes()).hexdigest()
            for name in names
        }
        new = [name for name in names if self._kept.get(name, {}).get("digest") != digests[name]]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, tests in zip(new, pool.map(self._run, new), strict=True):
                self._kept[name] = {"digest": digests[name], "tests": tests}
                if self._stored:
                    self._stored.write_text(json.dumps(self._kept))
        for name in names:
            self._found[name] = [
                Test(test, seconds, {file: frozenset(ran) for file, ran in lines.items()})
                for test, (seconds, lines) in self._kept[name]["tests"].items()
            ]

    def _run(self, name: str) -> Any:
        with copied_package() as source:
            answer = _in_fork(_map_file, source, name, self._files, limit=1800)
        if answer is None or answer[0] not in (0, 5):
            raise SystemExit(f"{name} fails without any mutant: {answer and answer[:2]}")
        return answer[2]


def first_to_notice(
    file: str,
    source: str,
    lines: Iterable[int] | None,
    tests: TestMap,
    near: list[str],
    far: list[str],
) -> str | None:
    """Return the test that fails when a file of the package is replaced, or None if none does.

    ``lines``: tests that run one of these are asked; None: all that run anything of the file.
    ``near``: folders and files of tests that are asked first.
    ``far``: those that are asked when all of the former pass.
    """
    noticed = _first(file, source, lines, tests.of(near), near)
    if noticed is None and far:
        others = [test for test in tests.of(far) if not test.name.startswith(tuple(near))]
        noticed = _first(file, source, lines, others, near)
    return noticed


def _first(
    file: str, source: str, lines: Iterable[int] | None, tests: list[Test], near: list[str]
) -> str | None:
    wanted = None if lines is None else frozenset(lines)
    asked = [
        test
        for test in tests
        if file in test.lines and (wanted is None or wanted & test.lines[file])
    ]
    if not asked:
        return None
    total: defaultdict[str, float] = defaultdict(float)
    for test in asked:
        total[test.file] += test.seconds

    def distance(name: str) -> tuple[int, float]:
        close = [place for place, folder in enumerate(near) if name.startswith(folder)]
        return min(close, default=len(near)), total[name]

    with copied_package() as copy:
        changed = copy / "collegium" / file
        changed.write_text(source, "utf-8")
        for compiled in (changed.parent / "__pycache__").glob(f"{changed.stem}.*"):
            compiled.unlink()  # its time stamp is in seconds
        seconds = {test.name: test.seconds for test in asked}
        limit = 60 + 3 * sum(seconds.values())
        answer = _in_fork(_judge, copy, sorted(total, key=distance), seconds, limit=limit)
    if answer is None:
        return f"none of {len(asked)} tests ends, or one ends the process"
    code, failed = answer
    if code in (0, 5):
        return None
    if failed is None:
        raise RuntimeError(f"{file}: pytest ended with {code}, and no test failed")
    return str(failed)
