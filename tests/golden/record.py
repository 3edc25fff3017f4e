"""Write the golden record: ``python tests/golden/record.py`` (with ``--check``: only compare with it).

The record is what the package did before its inner structure was changed. It is written anew only where a
result is meant to change; a change of structure must leave it alone.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from cases import CASES, COMMANDS, Case, CommandCase, Society, society
from drivers import DRIVERS, Entry
from remembered import remembered
from threadpoolctl import threadpool_limits

RECORD = Path(__file__).with_name("record.json")


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


@contextmanager
def quickly() -> Iterator[None]:
    """Use one thread, do not wait for the disk, compute once: results depend on none of it."""
    with threadpool_limits(1), mock.patch("os.fsync", lambda descriptor: None), remembered():
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


def main() -> None:
    """Write the record, or compare with it."""
    records, began, made = society(), time.perf_counter(), {}
    for name, driver, case in entries():
        start = time.perf_counter()
        made[name] = plain(run(driver, case, records))
        print(f"{time.perf_counter() - start:6.2f} s  {name}", flush=True)
    print(f"{len(made)} entries in {time.perf_counter() - began:.0f} s")
    if "--check" not in sys.argv:
        write(RECORD, {"versions": versions(), **made})
        return
    known = json.loads(RECORD.read_text("utf-8"))
    del known["versions"]
    found = differences(known, made)
    print("\n".join(found) or "the same to the last bit")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
