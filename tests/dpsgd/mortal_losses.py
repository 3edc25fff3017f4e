"""Losses that kill their worker, or talk, for tests of sums on engines; workers unpickle them."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from collegium.dpsgd.losses import CrossEntropy


@dataclass(frozen=True)
class Mortal(CrossEntropy):
    """SIGKILLs its worker so many times, in the middle of a sum; files in ``folder`` count."""

    folder: str = ""
    deaths: int = 0

    def errors(self, scores, targets):
        for death in range(self.deaths):
            try:
                Path(self.folder, f"death {death}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
        return super().errors(scores, targets)


@dataclass(frozen=True)
class Talkative(CrossEntropy):
    """Quotes its records when it fails."""

    def errors(self, scores, targets):
        raise RuntimeError(f"cannot take {targets.tolist()} of Ann Secret")
