"""How long it takes to come up: processor time of help, version and import, each in a fresh process.

python benchmarks/start_up.py [--runs 7]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable

COMMANDS = {
    "collegium --help": ["-m", "collegium", "--help"],
    "collegium --version": ["-m", "collegium", "--version"],
    "collegium run --help": ["-m", "collegium", "run", "--help"],
    "collegium label --help": ["-m", "collegium", "label", "--help"],
    "collegium account --help": ["-m", "collegium", "account", "--help"],
    "collegium audit --help": ["-m", "collegium", "audit", "--help"],
    "import collegium": ["-c", "import collegium"],
    "import collegium.accounting": ["-c", "import collegium.accounting"],
    "collegium.Policy": ["-c", "import collegium; collegium.Policy"],
    "collegium.PATEClassifier": ["-c", "import collegium; collegium.PATEClassifier"],
    "python alone": ["-c", "pass"],
}


def processor_seconds(arguments: list[str]) -> float:
    """Run Python once, and tell the processor time (user and system) that it took."""
    before = children_seconds()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return children_seconds() - before


def children_seconds() -> float:
    """Processor time of all processes that were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


def main(show: Callable[[str], None] = print) -> None:
    """Print least and median time of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    show(f"{'processor time in seconds':<30}{'least':>8}{'median':>8}")
    for name, arguments in COMMANDS.items():
        taken = [processor_seconds(arguments) for _ in range(runs)]
        show(f"{name:<30}{min(taken):>8.2f}{statistics.median(taken):>8.2f}")


if __name__ == "__main__":
    main()
