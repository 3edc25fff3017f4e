"""One bit flipped in every file of a study, in seven states: noticed, harmless, or believed?

A small study is stopped where its states begin. In a copy of each, one bit of one file is flipped, and
the study is gone on with to its end. The flip was *noticed* if that is refused, *harmless* if the end is the
same as without it (every file of the release, votes, questions, answers), and *silent* otherwise. A teacher
that is not asked any more is harmless, but ``verify`` says to the end that it is damaged.

``verify`` counts how often ``collegium verify`` saw it beforehand.

    python benchmarks/flipped_bytes.py [--places 5] [--states fresh released] [--files journal.jsonl]
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from collegium.errors import CollegiumError
from collegium.pate.voting.vote_blocks import blocks_of
from collegium.study.config import StudyConfig, config_from
from collegium.study.folder import StudyFolder
from collegium.study.runner import run_study
from collegium.study.verifying import examine

SETTINGS: dict[str, Any] = {
    "study": {"seed": 1},
    "data": {"public": "public.csv", "target": "digit", "classes": list(range(10))},
    "privacy": {"levels": {"high": 80.0, "low": 100.0}, "column": "level"},
    "teachers": {"model": "nearest-neighbours", "n_teachers": 6},
    "aggregation": {
        "aggregator": "confident",
        "threshold": 2.0,
        "sigma_threshold": 2.0,
        "sigma": 1.0,
        "release": "histogram",
        "noise": "seeded",
        "noise_seed": 3,
    },
    "student": {"model": "nearest-neighbours", "params": {"n_neighbors": 1}},
    "run": {"n_jobs": 1},
}


class Stopped(BaseException):
    """Ends a study where a state begins: nothing catches it."""


def write_records(folder: Path) -> None:
    """Write 200 private records of digits and 60 public ones."""
    X, y = load_digits(return_X_y=True)
    table = pd.DataFrame(X[:260, 10:30], columns=[f"x{n}" for n in range(20)]).assign(digit=y[:260])
    levels = np.where(np.arange(200) % 3, "high", "low")
    for ending in ("csv", "parquet"):
        for name, rows in {
            "private": table[:200].assign(level=levels),
            "public": table[200:],
        }.items():
            path = folder / f"{name}.{ending}"
            rows.to_csv(path, index=False) if ending == "csv" else rows.to_parquet(path)


def config(folder: Path, streaming: bool) -> StudyConfig:
    """Make the study's settings."""
    ending = "parquet" if streaming else "csv"
    data = {**SETTINGS["data"], "private": f"private.{ending}", "public": f"public.{ending}"}
    run = {**SETTINGS["run"], "streaming": streaming}
    return config_from({**SETTINGS, "data": data, "run": run}, folder)


def run(settings: StudyConfig, out: Path) -> None:
    """Run the study to its end; streamed records vote in blocks of 15."""
    in_blocks = partial(blocks_of, bytes_at_once=15 * 8 * SETTINGS["teachers"]["n_teachers"])
    small = mock.patch("collegium.study.streaming.blocks_of", in_blocks)
    with warnings.catch_warnings(), small:
        warnings.simplefilter("ignore")
        run_study(settings, out)


@contextlib.contextmanager
def stopped_at(owner: Any, name: str, call: int = 1) -> Iterator[None]:
    """Stop when something is called for the so manieth time."""
    real, calls = getattr(owner, name), []

    def stop(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        if len(calls) == call:
            raise Stopped
        return real(*args, **kwargs)

    with mock.patch.object(owner, name, stop), contextlib.suppress(Stopped):
        yield


#: What is stopped at its so manieth call, and whether the private records are streamed.
STATES: dict[str, tuple[str, int, bool]] = {
    "fresh": ("collegium.study.methods.votes.checkpoint.FolderMemory.votes", 1, False),
    "half trained": ("collegium.study.stored_teachers.store_teacher", 4, False),
    "trained": ("collegium.study.methods.votes.checkpoint.FolderMemory.keep_votes", 1, False),
    "half voted": ("collegium.pate.voting.vote_blocks._Rows.append", 3, True),
    "half asked": ("collegium.study.journal.FileJournal.settle", 2, False),
    "released": ("collegium.study.student.StudentStage.publish", 1, False),
    "finished": ("", 0, False),
}


def make(state: str, settings: StudyConfig, out: Path) -> None:
    """Make a folder that is in a state."""
    stop, call, _ = STATES[state]
    if not stop:
        run(settings, out)
        return
    owner, name = _found(stop)
    with stopped_at(owner, name, call):
        run(settings, out)
        raise AssertionError(f"{state} was never reached")


def _found(path: str) -> tuple[Any, str]:
    import importlib

    *owner, name = path.split(".")
    for cut in range(len(owner), 0, -1):
        with contextlib.suppress(ImportError):
            found: Any = importlib.import_module(".".join(owner[:cut]))
            for part in owner[cut:]:
                found = getattr(found, part)
            return found, name
    raise ImportError(path)


def outcome(out: Path) -> dict[str, Any]:
    """Take what a finished study released and voted, whatever its journal went through."""
    kept: dict[str, Any] = {}
    for path in sorted((out / "release").iterdir()):
        if path.name != "digests.json":  # names a point of the journal, which remembers repairs
            kept[path.name] = path.read_bytes()
    kept["votes"] = np.load(out / "vault/votes.npy").tobytes()
    kept["asked"] = StudyFolder(out).open_journal().settled()
    return kept


def verified(out: Path) -> bool:
    """Tell whether ``collegium verify`` finds nothing."""
    return not any(one.trouble for one in examine(StudyFolder(out)))


def flips(content: bytes, places: int, seed: int) -> Iterator[bytes]:
    """Flip one bit at the first byte, the last, and some between."""
    generator = np.random.default_rng([seed, len(content)])
    between = generator.integers(0, len(content), max(0, places - 2)).tolist()
    for place in [len(content) - 1, 0, *between][:places]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(generator.integers(8))
        yield bytes(damaged)


def attack(
    state: str,
    folder: Path,
    places: int,
    wanted: Callable[[str], bool] = lambda name: True,
    tell: Callable[[str], None] = lambda line: None,
) -> Counter[str]:
    """Flip bits in every file of a state.

    ``folder``: holds the records.
    ``wanted``: told a file's path, whether it is attacked.
    ``tell``: told every silent flip.
    Returns: how many flips were noticed, harmless, silent, and seen by ``verify``.
    """
    settings = config(folder, STATES[state][2])
    begun, whole, attacked = (folder / name for name in ("begun", "whole", "attacked"))
    make(state, settings, begun)
    assert verified(begun), "an undamaged folder is said to be damaged"
    shutil.copytree(begun, whole)
    run(settings, whole)
    expected, found = outcome(whole), Counter[str]()
    for path in sorted(path for path in begun.rglob("*") if path.is_file()):
        name = path.relative_to(begun).as_posix()
        content = path.read_bytes()
        if not (content and wanted(name)):
            continue
        for number, damaged in enumerate(flips(content, places, len(name))):
            shutil.rmtree(attacked, ignore_errors=True)
            shutil.copytree(begun, attacked)
            (attacked / name).chmod(0o600)
            (attacked / name).write_bytes(damaged)
            seen = not verified(attacked)
            try:
                run(settings, attacked)
                what = "harmless" if outcome(attacked) == expected else "silent"
                if what == "harmless" and not verified(attacked):
                    what = "harmless, but told by verify to the end"
            except CollegiumError as error:
                assert "\n" not in str(error)
                what = "noticed"
            found.update([what, *["verify"] * seen])
            if what == "silent":
                tell(f"{state}: {name}, flip {number}")
    for place in (begun, whole, attacked):
        shutil.rmtree(place, ignore_errors=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--places", type=int, default=5, help="flips per file")
    parser.add_argument("--states", nargs="*", default=list(STATES), choices=list(STATES))
    parser.add_argument("--files", default="", help="only files whose path contains this")
    options = parser.parse_args()
    logging.disable()
    silent = 0
    with tempfile.TemporaryDirectory() as place:
        write_records(Path(place))
        for state in options.states:
            begin = time.perf_counter()
            found = attack(
                state, Path(place), options.places, lambda name: options.files in name, print
            )
            silent += found["silent"]
            print(f"{state}: {dict(found)} ({time.perf_counter() - begin:.0f} s)", flush=True)
    raise SystemExit(bool(silent))


if __name__ == "__main__":
    main()
