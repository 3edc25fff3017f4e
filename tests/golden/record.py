"""Write the golden records: ``python tests/golden/record.py PART...`` (with ``--check``: only compare).

``votes``: ``record.json``, of teachers who vote. ``numbers``: ``record_numbers.json``, of direct training, of
questions, and of what every command prints as JSON. ``words``: the folder ``record_words``, of all that is
written for people, one file for each text. ``refusals``: ``record_refusals.json``. Without a part: all of
them.

Records are what the package did before its inner structure was changed. They are written anew only where a
result is meant to change; a change of structure must leave them alone.

What is no longer as it was, and why; new names of old things stand in ``faces.py`` and change no number:

- ``descent.bound``, ``schedule`` and ``averaging`` are gone. Four cases that set them are recorded without,
  under names that say what they still set (``classifier-full-batch-replaced``, ``classifier-few-components``,
  ``classifier-scale``, ``study-public-labels``): the same to the last bit as when these settings were there,
  and not set. They are gone from every configuration that is shown, and are refused as keywords
  (``TypeError``) and keys that nobody knows.
- What is shown of a configuration has ``student.goal``, ``method.kind`` and the release of a label job
  also where they are the defaults: files that do not have them are of no version that was released.
- ``init`` leaves out classes that it can read off the public records, and its refusals name the option that
  is missing (``--public FILE``) or to be added (``--from FILE``), not always the one that was given.
- Votes' ``--remaining`` and ``--export`` name their ``method``, and an export of DP-SGD has
  ``epsilon_planned``, as ``--remaining`` had it: both are written once for all methods now.
- Four refusals of estimators name the setting as it is called now (``sampling.individual_filter``,
  ``sampling.accountant``, ``class_shares``); they are refused as before.
- A plan's JSON is written once for all methods: votes have their ``method`` and ``neighbours`` in it, too,
  and questions ``columns`` and ``takes_whole_budgets``. On the terminal a plan of votes says what is
  protected; a label job's JSON says where its release is, as those of studies do.
- Statements, cards, pages, terminal texts and the notes of drafted schemas are in plain words, and pages
  and cards of one form.
- How votes from elsewhere are counted and accounted stands in a file with a study's sections and keys
  (``label --settings``), and so in what a label job tells of itself (``config`` instead of ``settings``,
  whose digests are of the new form); recorded commands still have options (``label_options.py``). Ten
  refusals name the key that is wrong, which they did not before.
- A ledger promises one number for all its life: a consent page and a receipt say the same (60 at ε = 2), and
  the first release on a ledger is charged as all others, in μ: votes at the price of all noisy counts, which
  buys fewer answers than labels by themselves; DP-SGD on samples with a little more noise. Its budgets have
  the ε that was granted, at the δ that is left beside what the ledger keeps back (9.9e-6 of 1e-5; before,
  ε = 0.9993 of 1), and what is booked is said at that δ, too. ``takes_whole_budgets`` is gone.
- A schema's numbers and flags count along how many values can be read, unless ``missing = false`` says that
  all can, as the recorded schema does now; a schema that is shown says so.
- What a budget means is said in the one sentence of consent pages and receipts (``right_of_100``), and no
  more by 5 wrong accusations in 100; the table of error rates is as it was.
- Journals of votes have blocks of a tenth of what the budgets buy, at most 16 questions, and say that they
  have a mark: their digests are new, and every answer in them is the same.
- Pages and cards say what was learnt first; what a budget means is one sentence ("Anybody who tries to find
  out …") and one picture on statements, pages, consent pages and receipts; these two are in plainer English,
  with days as people write them. Statements' JSON has ``right_of_100``, and they have one sentence more.
- ``init`` names a study by what is predicted and from which file, and says that this stands on receipts.
- Kept terms of votes say what a ledger promises, if there is one, and a quality has precision and recall at
  thresholds (none, where there are more than two classes). Studies on a ledger say how much they spend.
- The commented example of every key has the sections of synthetic tables, which it names among the methods,
  and of a network that is brought along.
- Pages of studies in memory are recorded without their figures, those of streamed ones with them.
- Halves are rounded up wherever numbers become steps of the grid, since engines have no other rule in
  common (``weighted_sums/reading.py``): covariances with Laplace noise differ in the ninth digit.
- Direct training sees tables in fine bins beside kernel components (``crossed``), where it saw ``binned``,
  and takes smaller steps where features are more than there is signal for, of whatever records.
- Components of public records point the same way on every processor (``models/features/orientation.py``):
  before, a sign was chance, and with it how noise fell on them.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from cases import CASES, COMMANDS, Case, CommandCase, Society, society
from drivers import DRIVERS, Entry, without_figures
from questions import ASKED
from record_forms import differences as differences_of_numbers
from record_forms import words_differ
from refusals import refused
from remembered import remembered
from stories import STORIES, Told
from threadpoolctl import threadpool_limits
from training import TRAINED

RECORD = Path(__file__).with_name("record.json")
NUMBERS = RECORD.with_name("record_numbers.json")
WORDS = RECORD.with_name("record_words")
REFUSALS = RECORD.with_name("record_refusals.json")


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
    with (
        tempfile.TemporaryDirectory() as folder,
        quickly(),
        without_figures(),
        warnings.catch_warnings(),
    ):
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

    NumPy computes with the widest registers that the processor has, and OpenBLAS in blocks that fit its
    caches: on another processor a few amounts (``spent`` and what is written of them) and ``targets`` differ
    in the last bit, but no draw, label, vote or prediction.
    """
    names = ("numpy", "scipy", "scikit-learn", "pandas")
    found = np.show_config(mode="dicts")["SIMD Extensions"]
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in names},
        "processor": " ".join(
            [_processor(), *sorted([*found["baseline"], *found.get("found", [])])]
        ),
    }


def _processor() -> str:
    """Name the processor by who made it, family and model, where the system says so."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    said = dict([part.strip() for part in line.split(":", 1)] for line in lines if ":" in line)
    return " ".join(said.get(key, "") for key in ("vendor_id", "cpu family", "model"))


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


def run_story(name: str) -> tuple[Entry, dict[str, str]]:
    """Run the commands of a story: numbers, and the words of each text."""
    with (
        tempfile.TemporaryDirectory() as folder,
        quickly(),
        without_figures(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        told = Told(Path(folder))
        STORIES[name](told)
    return plain(told.numbers), {f"{name}/{key}": text for key, text in told.words.items() if text}


def make_refusals() -> dict[str, Entry]:
    """Try all that is refused."""
    with (
        tempfile.TemporaryDirectory() as folder,
        quickly(),
        without_figures(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        return refused(Path(folder))


def read_words() -> dict[str, str]:
    """Read the record of words."""
    paths = sorted(path for path in WORDS.rglob("*") if path.is_file())
    return {path.relative_to(WORDS).as_posix(): path.read_text("utf-8") for path in paths}


def make_votes() -> dict[str, Entry]:
    """Run all cases of votes."""
    records = society()
    return _all(
        {name: partial(run, driver, case, records) for name, driver, case in entries()}, plain
    )


def make_numbers() -> dict[str, Entry]:
    """Run all cases of direct training and of questions, and all stories."""
    cases = _all({name: partial(run_numbers, name) for name in (*TRAINED, *ASKED)}, plain)
    return {**cases, **{f"commands/{name}": entry for name, (entry, _) in stories().items()}}


def make_words() -> dict[str, str]:
    """Run all stories."""
    return {key: text for _, words in stories().values() for key, text in words.items()}


@cache
def stories() -> dict[str, tuple[Entry, dict[str, str]]]:
    """Run all stories once."""
    return _all({name: partial(run_story, name) for name in STORIES}, tuple)


def _all(cases: dict[str, Callable[[], Any]], form: Callable[[Any], Any]) -> dict[str, Any]:
    made = {}
    for name, case in cases.items():
        start = time.perf_counter()
        made[name] = form(case())
        print(f"{time.perf_counter() - start:6.2f} s  {name}", flush=True)
    return made


def write_words(content: dict[str, str]) -> None:
    """Write texts, each to a file of its own, and no other."""
    shutil.rmtree(WORDS, ignore_errors=True)
    for name, text in content.items():
        path = WORDS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def compare_words(known: dict[str, str], made: dict[str, str], closely: bool = True) -> list[str]:
    """Show every line that differs, and name every text that is new or gone."""
    found = []
    for name in sorted({*known, *made}):
        if name not in known or name not in made:
            found.append(f"{name} is {'new' if name in made else 'gone'}")
            continue
        lines = words_differ(known[name].rstrip("\n"), made[name].rstrip("\n"), closely)
        found += [f"{name}:", *lines] if lines else []
    return found


def _known(path: Path) -> dict[str, Entry]:
    known: dict[str, Entry] = json.loads(path.read_text("utf-8"))
    del known["versions"]
    return known


@dataclass(frozen=True)
class Part:
    """A record: how it is made, written, read and compared."""

    make: Callable[[], dict[str, Any]]
    write: Callable[[dict[str, Any]], None]
    read: Callable[[], dict[str, Any]]
    compare: Callable[[Any, Any], list[str]]


def _in_one_file(
    path: Path, make: Callable[[], dict[str, Any]], compare: Callable[[Any, Any], list[str]]
) -> Part:
    return Part(
        make,
        lambda made: write(path, {"versions": versions(), **made}),
        lambda: _known(path),
        compare,
    )


PARTS = {
    "votes": _in_one_file(RECORD, make_votes, differences),
    "numbers": _in_one_file(NUMBERS, make_numbers, differences_of_numbers),
    "words": Part(make_words, write_words, read_words, compare_words),
    "refusals": _in_one_file(REFUSALS, make_refusals, differences_of_numbers),
}


def main() -> None:
    """Write records, or compare with them."""
    only_compare = "--check" in sys.argv
    found: list[str] = []
    for name in [one for one in sys.argv[1:] if one != "--check"] or list(PARTS):
        part, began = PARTS[name], time.perf_counter()
        made = part.make()
        print(f"{name}: {len(made)} entries in {time.perf_counter() - began:.0f} s")
        if only_compare:
            found += part.compare(part.read(), made)
        else:
            part.write(made)
    if only_compare:
        print("\n".join(found) or "the same to the last bit")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
