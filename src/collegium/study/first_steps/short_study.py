"""A study's file in about ten lines: whose records, what to predict, and what people granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collegium.study.config import config_from
from collegium.toml_files import toml_text

_MEANINGS = {
    "study.name": "stands on the report and on people's receipts",
    "data.public": "the same features of others, whom nothing protects",
    "data.target": "what is predicted",
    "data.owner": "whose record it is: one budget for all records of a person",
    "privacy.levels": "the epsilon of each: smaller protects more",
    "privacy.column": "epsilon itself",
    "privacy.delta": "well below 1 / number of people",
}


@dataclass(frozen=True)
class ShortStudy:
    """What has to be said of a study; everything else is chosen.

    ``title``: of the report.
    ``data``, ``privacy``: keys of these sections.
    ``remarks``: lines below the section ``data``.
    ``goal``: what the model is to be good at, if not the default; and why, for who reads the file.
    ``ledger``: where it is, if nothing else says it; and what to say of it.
    """

    title: str
    data: Mapping[str, Any]
    privacy: Mapping[str, Any]
    remarks: tuple[str, ...] = field(default=())
    goal: tuple[str, str] | None = None
    ledger: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        keys = {"study": {"name": self.title}, "data": self.data, "privacy": self.privacy}
        for section, key, said in self._others():
            keys[section] = {key: said[0]}
        config_from(keys, Path())

    def as_toml(self, schema: str | None = None) -> str:
        """Write the file.

        ``schema``: name of a JSON Schema beside it.
        """
        return "\n".join(
            [
                *([f"#:schema {schema}"] if schema else []),
                "# A Collegium study: `collegium plan` shows what it would cost, `collegium run` runs it.",
                "# What is not said here is chosen. An example of every key: `collegium init --all-keys`.",
                "[study]",
                *self._lines("study", {"name": self.title}),
                "",
                "[data]",
                *self._lines("data", self.data),
                *self.remarks,
                "",
                "[privacy]",
                *self._lines("privacy", self.privacy),
                "",
                *(
                    line
                    for section, key, (value, why) in self._others()
                    for line in (f"[{section}]", f"{key} = {toml_text(value)}  # {why}", "")
                ),
            ]
        )

    def _others(self) -> list[tuple[str, str, tuple[str, str]]]:
        """List the sections of one key, with its value, and why it has that."""
        found = (("student", "goal", self.goal), ("ledger", "url", self.ledger))
        return [(section, key, said) for section, key, said in found if said is not None]

    def _lines(self, section: str, keys: Mapping[str, Any]) -> list[str]:
        lines = []
        for name, value in keys.items():
            meaning = _MEANINGS.get(f"{section}.{name}", "")
            if name == "column" and "levels" in self.privacy:
                meaning = ""
            lines.append(f"{name} = {toml_text(value)}" + (f"  # {meaning}" if meaning else ""))
        return lines


TEMPLATE = ShortStudy(
    title="Predicting income",
    data={
        "private": "private.csv",
        "public": "public.csv",
        "target": "income",
        "owner": "person_id",
        "classes": ["low", "high"],
    },
    privacy={
        "column": "privacy",
        "levels": {"high": 1.0, "average": 2.0, "low": 3.0},
        "delta": 1e-5,
    },
)
"""To be filled in by hand."""
