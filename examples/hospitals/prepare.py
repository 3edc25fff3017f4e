"""Make all that the hospitals need: `python prepare.py FOLDER`; each of them would do its part itself.

Each hospital makes a key (`collegium party key`), tells the others its public half, and keeps the list of all
(`collegium party collective`) beside its own table. All have the same study files.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd
from make_tables import SIZES, write_tables

from collegium import Collective, IdentityKey

NAMES = {"hospital-a": "Hospital A", "hospital-b": "Hospital B", "hospital-c": "Hospital C"}


def prepare(folder: Path) -> pd.DataFrame:
    """Make tables, keys, the list of parties and the shared folder; returns all tables as one."""
    everybody = write_tables(folder)
    keys = {name: IdentityKey.make(folder / name / "own.key") for name in SIZES}
    collective = Collective([keys[name].member(NAMES[name]) for name in SIZES])
    (folder / "shared").mkdir()
    for name in SIZES:
        (folder / name / "collective.toml").write_text(collective.toml())
        for file in (Path(__file__).parent / "files").iterdir():
            shutil.copy(file, folder / name)
    return everybody


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
