"""Three hospitals with tables of their own, each in a thread instead of on a machine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from collegium import Collective, IdentityKey, Party
from collegium.parties.waiting import Patience

NAMES = ["Hospital A", "Hospital B", "Hospital C"]


class Hospitals:
    """Three parties and the folder that they share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "shared").mkdir()
        self.keys = [IdentityKey.fresh() for _ in NAMES]
        pairs = zip(self.keys, NAMES, strict=True)
        self.collective = Collective([key.member(name) for key, name in pairs])

    def party(self, number: int) -> Party:
        patience = Patience(poll_s=0.005, give_up_s=600.0)
        memory = self.folder / f"memory {number}"
        return Party(self.collective, self.keys[number], self.folder / "shared", memory, patience)

    def each(self, does: Callable[[int], Any]) -> list[Any]:
        """Let each do its part, in a thread of its own; the first error is raised when all have ended."""
        with ThreadPoolExecutor(3) as threads:
            return list(threads.map(does, range(3)))
