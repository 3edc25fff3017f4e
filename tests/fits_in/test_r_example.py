"""The page for R runs where R, and reticulate, are."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["tests.fits_in.workspaces"]
EXAMPLE = Path(__file__).parents[2] / "examples/r/study.R"


def test_r_learns_and_asks_a_released_student(finished):
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("R is not here (Debian: r-base-core, r-cran-reticulate)")
    asked = [rscript, "-e", 'quit(status = !requireNamespace("reticulate", quietly = TRUE))']
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("R has no reticulate (Debian: r-cran-reticulate)")
    script = finished.folder.parent / "study.R"
    shutil.copy(EXAMPLE, script)
    environment = {
        **finished.environment,
        "COLLEGIUM_PYTHON": sys.executable,
        "COLLEGIUM_LEDGER": "none",
    }
    done = subprocess.run(
        [rscript, str(script), "study", "new.csv"],
        cwd=finished.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.split()
    for word in ("strict", "usual", "generous", "worst-case", "yes", "no", "TRUE", "FALSE"):
        assert word in said, done.stdout
    assert sum(map(int, done.stdout.strip().splitlines()[-1].split())) == 50
