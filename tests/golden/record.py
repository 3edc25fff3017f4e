"""Write the golden records: ``python tests/golden/record.py PART...`` (with ``--check``: only compare).

``votes``: ``record.json``, of teachers who vote. ``numbers``: ``record_numbers.json``, of direct training and
of questions. Without a part: all of them.

Records are what the package did before its inner structure was changed. They are written anew only where a
result is meant to change; a change of structure must leave them alone.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from cases import CASES, COMMANDS, Case, CommandCase, Society, society
from drivers import DRIVERS, Entry
from questions import ASKED
from record_forms import differences as differences_of_numbers
from remembered import remembered
from threadpoolctl import threadpool_limits
from training import TRAINED

RECORD = Path(__file__).with_name("record.json")
NUMBERS = RECORD.with_name("record_numbers.json")


def entries() -> Iterator[tuple[str, str, Case | CommandCase]]:
    """List what is recorded: name, driver, case."""
    for case in CASES:
        for driver in case.drivers:
            yield f"{driver}/{case.id}", driver, case
    for command in COMMANDS:
        yield f"command/{command.id}", "command", command


def run(driver: str, case: Any, records: Society) -> Entry:
    """Run a case in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder, quickly():
        return DRIVERS[driver](case, records, Path(folder))


def run_numbers(name: str) -> Entry:
    """Run a case of direct training or of questions, in a folder of its own."""
    driver, which = {**TRAINED, **ASKED}[name]
    with tempfile.TemporaryDirectory() as folder, quickly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(driver(which, Path(folder)))


@contextmanager
def quickly() -> Iterator[None]:
    """Use one thread, do not wait for the disk, compute once: results depend on none of it."""
    nowhere = {"COLLEGIUM_LEDGER": "none", "XDG_STATE_HOME": os.devnull}
    with (
        threadpool_limits(1),
        mock.patch("os.fsync", lambda descriptor: None),
        mock.patch.dict(os.environ, nowhere),
        remembered(),
    ):
        yield


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """Name every field that differs, with both values."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [*before, *(key for key in now if key not in before)]
        parts = (
            differences(
                before.get(key, "(nothing)"), now.get(key, "(nothing)"), f"{path}.{key}".lstrip(".")
            )
            for key in keys
        )
        return [line for part in parts for line in part]
    return [] if before == now else [f"{path}: was {before!r}, is {now!r}"]


def versions() -> dict[str, str]:
    """Tell what else the last bits depend on.

    NumPy computes with the widest registers that the processor has: without those of the record, a few
    amounts (``spent`` and what is written of them) and ``targets`` differ in the last bit, but no draw,
    label, vote or prediction.
    """
    names = ("numpy", "scipy", "scikit-learn", "pandas")
    found = np.show_config(mode="dicts")["SIMD Extensions"]
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in names},
        "processor": " ".join(sorted([*found["baseline"], *found.get("found", [])])),
    }


def plain(entry: Entry) -> Entry:
    """Make of an entry what JSON makes of it."""
    made: Entry = json.loads(json.dumps(entry))
    return made


def write(path: Path, content: dict[str, Any]) -> None:
    """Write entries, one a line."""
    lines = [
        f"  {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False, separators=(',', ':'))}"
        for name, entry in content.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def make_votes() -> dict[str, Entry]:
    """Run all cases of votes."""
    records = society()
    return _all(
        {name: partial(run, driver, case, records) for name, driver, case in entries()}, plain
    )


def make_numbers() -> dict[str, Entry]:
    """Run all cases of direct training and of questions."""
    return _all({name: partial(run_numbers, name) for name in (*TRAINED, *ASKED)}, plain)


def _all(cases: dict[str, Callable[[], Any]], form: Callable[[Any], Entry]) -> dict[str, Entry]:
    made = {}
    for name, case in cases.items():
        start = time.perf_counter()
        made[name] = form(case())
        print(f"{time.perf_counter() - start:6.2f} s  {name}", flush=True)
    return made


PARTS: dict[str, tuple[Path, Callable[[], dict[str, Entry]], Callable[..., list[str]]]] = {
    "votes": (RECORD, make_votes, differences),
    "numbers": (NUMBERS, make_numbers, differences_of_numbers),
}


def main() -> None:
    """Write records, or compare with them."""
    parts = [part for part in sys.argv[1:] if part != "--check"] or list(PARTS)
    found: list[str] = []
    for part in parts:
        path, make, compared = PARTS[part]
        began, made = time.perf_counter(), make()
        print(f"{part}: {len(made)} entries in {time.perf_counter() - began:.0f} s")
        if "--check" not in sys.argv:
            write(path, {"versions": versions(), **made})
            continue
        known = json.loads(path.read_text("utf-8"))
        del known["versions"]
        found += compared(known, made)
    if "--check" in sys.argv:
        print("\n".join(found) or "the same to the last bit")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
