"""Commands that a desk runs: those of the command line, so that what holds there holds here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from collegium.desk.process import ASKED, CODE, LOCK, NOTES, SAID, STOP
from collegium.durable import private_folder, write_durably
from collegium.errors import InputError

PROGRESS = "progress.json"
_NOTE, _ERROR = "Note: ", "error: "
_FIELDS = {  # what a command calls what a steward fills in
    "--target": "“Column to predict”",
    "--classes": "“The classes”",
    "--exclude": "“Columns that it must not use”",
    "--anyway": "the tick on the page before it",
    "--record": "another table",
}
_PASSING = "rehearsing "  # of a note that is of interest as long as the command runs


@dataclass(frozen=True)
class State:
    """How a command stands.

    ``name``: which it is. ``code``: with which it ended; None: it is running, or was cut off.
    ``said``: on its standard output. ``notes``: what it says beside that. ``error``: why it failed.
    ``progress``: where it is, in words; empty where it does not say.
    """

    name: str
    is_running: bool
    code: int | None
    said: str
    notes: tuple[str, ...]
    error: str
    progress: str

    @property
    def has_worked(self) -> bool:
        """Whether it did what it was asked to do."""
        return self.code == 0


class Command:
    """The last command that was run about something; it goes on when the desk ends.

    Parameters
    ----------
    folder : Path
        Of what is kept about it; made, for its owner's eyes only.
    environment : mapping of str to str
        Variables that it gets beside the desk's own.
    """

    _one_at_a_time = threading.Lock()

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, environment

    @property
    def progress_file(self) -> Path:
        """Where a command may keep how far it has come."""
        return self._folder / PROGRESS

    def start(self, arguments: Sequence[str | Path], within: Path) -> None:
        """Start a command, which reads relative names ``within`` a folder.

        Raises InputError if the last one is still running.
        """
        private_folder(self._folder)
        with self._one_at_a_time:
            self.refuse_running()
            for name in (CODE, SAID, NOTES, STOP, PROGRESS):
                (self._folder / name).unlink(missing_ok=True)
            asked = {"arguments": [str(one) for one in arguments], "folder": str(within)}
            write_durably(self._folder / ASKED, json.dumps(asked).encode(), private=True)
            plain = {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"}
            process = subprocess.Popen(
                [sys.executable, "-m", "collegium.desk.process", str(self._folder)],
                env={**os.environ, **plain, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C at the desk does not end it
            )
            assert process.stdout is not None
            process.stdout.readline()
            process.stdout.close()

    def state(self) -> State | None:
        """How it stands; None if there was none."""
        try:
            asked = json.loads((self._folder / ASKED).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        is_running = (
            self._is_running()
        )  # before its code is read, which it writes before it lets go
        code = self._read(CODE)
        notes = [line for line in self._read(NOTES).splitlines() if line.strip()]
        told = [line.removeprefix(_NOTE) for line in notes if line.startswith(_NOTE)]
        ended = int(code) if code else None
        return State(
            asked["arguments"][0],
            is_running,
            None if is_running else ended,
            self._read(SAID),
            tuple(line for line in told if not line.startswith(_PASSING)),
            "" if is_running or ended == 0 else _without(asked["folder"], _why(ended, notes)),
            (self._progress() or (told or [""])[-1]) if is_running else "",
        )

    def refuse_running(self) -> None:
        """Raise InputError if it is running."""
        if self._is_running():
            raise InputError("this is still running: wait for it to end, or stop it")

    def stop(self) -> None:
        """Interrupt it, as Ctrl-C does: it ends in order, and can go on later."""
        if self._is_running():
            (self._folder / STOP).touch()

    def done(self, arguments: Sequence[str | Path], within: Path) -> State:
        """Start a command, and wait for its end. Raises InputError with its own words if it fails."""
        self.start(arguments, within)
        while (state := self.state()) is not None and state.is_running:
            time.sleep(0.05)
        assert state is not None
        if not state.has_worked:
            raise InputError(state.error)
        return state

    def _is_running(self) -> bool:
        lock = FileLock(self._folder / LOCK, timeout=0, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            return True
        lock.release()
        return False

    def _read(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def _progress(self) -> str:
        text = self._read(PROGRESS)
        if not text:
            return ""
        now = json.loads(text)
        told = now["stage"] + (f": {now['done']:,} of {now['total']:,}" if now["total"] else "")
        if now["seconds_left"] is not None:
            told += f", about {timedelta(seconds=now['seconds_left'])} left"
        return str(told)


def _without(folder: str, text: str) -> str:
    """Say which file, and not in which folder of the desk; which field, and not which option."""
    text = text.replace(f"{folder}/", "").replace("../../tables/", "")
    for option, field in _FIELDS.items():
        text = re.sub(rf"{option}\b(?: [A-Z]+)?", field, text)
    return text


def _why(code: int | None, notes: Sequence[str]) -> str:
    """Say in a line why a command did not do what it was asked to do."""
    if code is None:
        return "it was cut off before its end"
    if code == -signal.SIGINT:
        return "it was stopped before it had begun"
    if code < 0:
        return f"it was ended by the system (signal {-code}): perhaps there was too little memory"
    errors = [line.removeprefix(_ERROR) for line in notes if line.startswith(_ERROR)]
    if errors:
        return errors[-1].removesuffix(".")
    return notes[-1].removesuffix(".") if notes else f"it ended with code {code}, and said nothing"
