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


def run_all(folder: Path, studies: list[str]) -> bool:
    """Run studies at all hospitals, which begin at the same time; tells whether all ended well."""
    command = [sys.executable, str(Path(__file__).with_name("run_one.py").resolve()), *studies]
    begun = time.monotonic()
    processes = [subprocess.Popen(command, cwd=folder / name) for name in SIZES]
    codes = [process.wait() for process in processes]
    print(f"All three have ended ({time.monotonic() - begun:.0f} s).")
    return not any(codes)


def compared(folder: Path, study: str) -> bool:
    """Tell whether all have released the same."""
    files = {(folder / name / study / STUDIES[study]).read_bytes() for name in SIZES}
    print(f"{study}: all three have {SAID[study] if len(files) == 1 else 'DIFFERENT files'}")
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
    studies = [asked.only] if asked.only else list(STUDIES)
    if not run_all(folder, studies):
        return 1
    for study in studies:
        if not compared(folder, study):
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
