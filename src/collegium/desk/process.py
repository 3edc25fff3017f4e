"""What runs a command for a desk: it keeps what the command says, how it ended, and that it is running.

A program of its own, so that a command goes on when the desk ends, and whoever opens the desk again finds it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from filelock import FileLock

from collegium.durable import write_durably

ASKED, SAID, NOTES, CODE, STOP, LOCK = (
    "command.json",
    "said.txt",
    "notes.txt",
    "code.txt",
    "stop",
    "running.lock",
)
_EVERY_S = 0.1


def main(folder: Path) -> None:
    """Run the command that a folder asks for; a file called ``stop`` there interrupts it, as Ctrl-C does."""
    asked = json.loads((folder / ASKED).read_text(encoding="utf-8"))
    # A desk that a script started in the background ignores Ctrl-C, and so would the command.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with FileLock(folder / LOCK, mode=0o600):
        print("running", flush=True)  # whoever asked for it waits for this
        with (folder / SAID).open("wb") as said, (folder / NOTES).open("wb") as notes:
            command = subprocess.Popen(
                [sys.executable, "-m", "collegium", *asked["arguments"]],
                cwd=asked["folder"],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=notes,
            )
            told = False
            while (code := command.poll()) is None:
                if not told and (folder / STOP).exists():
                    command.send_signal(signal.SIGINT)
                    told = True
                time.sleep(_EVERY_S)
        write_durably(folder / CODE, str(code).encode(), private=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
