"""What costs a new worker no import: half of a real task's time is scikit-learn's."""

import os
import signal
import time
from pathlib import Path


def noted(folder, victim, batch):
    """Note each number; kill this worker at the victim's, every time."""
    for number in batch:
        with Path(folder, "done.txt").open("a") as log:
            log.write(f"{number}\n")
        if number == victim:
            Path(folder, f"death {time.monotonic_ns()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return [(number, -number) for number in batch]


def surroundings():
    """Tell which process does this, and how many threads it may have."""
    return os.getpid(), os.environ.get("OMP_NUM_THREADS")


def wait_while(path):
    """Wait as long as a file is there."""
    while Path(path).exists():
        time.sleep(0.01)
    return [None]
