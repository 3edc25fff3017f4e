"""Run three hospitals in one terminal: `python examples/hospitals/run.py [FOLDER]`, in less than a minute.

Each hospital is a process of its own, in a folder of its own; they have nothing in common but the folder
`shared`. They ask three questions, then make a synthetic table, then train a model (`--only answers` asks
alone). What they get is printed, and beside it what a table of everybody says, which nobody has outside an
example.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from make_tables import SIZES
from prepare import NAMES, prepare

STUDIES = {
    "answers": "release/answers.json",
    "table": "release/synthetic.csv",
    "model": "release/student.skops",
}
SAID = {
    "answers": "the same answers",
    "table": "the same synthetic table",
    "model": "the same model",
}


def run_all(folder: Path, study: str) -> bool:
    """Run one study at all hospitals, at the same time; tells whether they released the same."""
    command = [sys.executable, "-m", "collegium", "run", f"{study}.toml", "--quiet"]
    begun = time.monotonic()
    processes = {name: subprocess.Popen(command, cwd=folder / name) for name in SIZES}
    codes = {name: process.wait() for name, process in processes.items()}
    if any(codes.values()):
        return False
    files = {(folder / name / study / STUDIES[study]).read_bytes() for name in SIZES}
    said = SAID[study] if len(files) == 1 else "DIFFERENT files"
    print(f"{study}: all three have {said} ({time.monotonic() - begun:.0f} s)")
    return len(files) == 1


def main() -> int:
    """Prepare, run, and print."""
    parser = argparse.ArgumentParser(description="Three hospitals that show one another no record.")
    parser.add_argument(
        "folder", nargs="?", type=Path, help="a new folder; default: a temporary one"
    )
    parser.add_argument("--only", choices=STUDIES, help="run one of the studies")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="hospitals-"))
    people = prepare(folder)
    print(
        f"{', '.join(NAMES.values())} have {', '.join(f'{n:,}' for n in SIZES.values())} patients: {folder}"
    )
    for study in [asked.only] if asked.only else STUDIES:
        if not run_all(folder, study):
            return 1
        if study == "answers":
            for name in SIZES:
                told = json.loads((folder / name / study / STUDIES[study]).read_text())["answers"]
                print("\n".join([f"{NAMES[name]}:", *(f"  {one['text']}" for one in told)]))
            back = people.groupby("readmitted").days.mean()
            print(
                f"A table of all {len(people):,} says: {people.readmitted.sum():,} came back, age "
                f"{people.age.mean():.2f}, days {back[False]:.2f} and {back[True]:.2f} (who came back)"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
