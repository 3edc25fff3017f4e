"""How the package is addressed: files of a study, command lines, and what its answers are called.

Records keep the names of the day on which they were made. Where the package renames a key, an option or a
value since, one line in :data:`KEYS`, :data:`OPTIONS` or :data:`VALUES` says so, and no record changes.
"""

from __future__ import annotations

import calendar
import contextlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from unittest import mock

from drivers import Entry, call

from collegium import Sampling

#: Sections and keys of files, keywords of Python and keys of JSON: as recorded, and as they are called now.
#: ``section.key`` where a name means something else elsewhere; the section may be another one, too.
KEYS: dict[str, str] = {
    "descent": "dpsgd",
    "descent.filter": "dpsgd.individual_filter",
    "filter": "individual_filter",
    "data.not_people": "data.not_identifiers",
    "ledger.newcomers": "ledger.allow_new_people",
    "vault/descent.npz": "vault/dpsgd.npz",
    "vault/descent.json": "vault/dpsgd.json",
}
#: Commands and their options.
OPTIONS: dict[str, str] = {"--left": "--remaining", "--newcomers": "--allow-new-people"}
#: Values that are one word, such as the kind of a method.
VALUES: dict[str, str] = {"sgd": "dpsgd", "blanked": "zero-out", "replaced": "replace-one"}


_SAMPLING = ("rate", "individual_filter", "accountant")


def of_today(content: Any) -> Any:
    """Say in today's names what a record says in those of its day."""
    return _renamed(content, KEYS, VALUES)


def as_recorded(content: Any) -> Any:
    """Say in a record's names what the package says in those of today."""
    return _renamed(content, _back(KEYS), _back(VALUES))


def _back(names: Mapping[str, str]) -> dict[str, str]:
    return {now: before for before, now in names.items()}


def _renamed(
    content: Any, keys: Mapping[str, str], values: Mapping[str, str], within: str = ""
) -> Any:
    if isinstance(content, Mapping):
        named = {}
        for key, one in content.items():
            own = keys.get(f"{within}.{key}")
            name = keys.get(key, key) if own is None else own.rpartition(".")[2]
            named[name] = _renamed(one, keys, values, key)
        return named
    if isinstance(content, (list, tuple)):
        return [_renamed(one, keys, values, within) for one in content]
    return values.get(content, content) if isinstance(content, str) else content


def key_of_today(key: str) -> str:
    """Name a key of a file, ``section.key``, as it is called now."""
    if key in KEYS:
        return KEYS[key]
    section, _, name = key.partition(".")
    return f"{KEYS.get(section, section)}.{KEYS.get(name, name)}"


def parameters_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Name the parameters of an estimator that is trained directly: who takes part is one of them."""
    given = of_today(settings)
    how = {name: given.pop(name) for name in list(given) if name in _SAMPLING}
    return (
        {**given, "sampling": Sampling(given.get("sampling", "full-batch"), **how)}
        if how
        else given
    )


def toml_of(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the file of a study."""
    lines: dict[str, list[str]] = {}
    for before, keys in sections.items():
        for key, value in keys.items():
            section, _, name = key_of_today(f"{before}.{key}").partition(".")
            lines.setdefault(section, []).append(f"{name} = {_toml(of_today(value))}")
    return (
        "\n".join(line for section, own in lines.items() for line in (f"[{section}]", *own)) + "\n"
    )


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return "nan" if value != value else json.dumps(value)


def command(*arguments: object) -> tuple[int, str, str]:
    """Run the command line: exit code, output, errors."""
    return call(tuple(OPTIONS.get(str(one), str(one)) for one in arguments))


def json_of(*arguments: object, codes: Sequence[int] = (0,)) -> Any:
    """Run a command that must succeed, and read the JSON that it prints."""
    code, printed, errors = command(*arguments)
    assert code in codes, f"{arguments}: {code}: {errors}"
    return as_recorded(json.loads(printed))


@contextlib.contextmanager
def ledgers_in(folder: Path) -> Iterator[None]:
    """Let ledgers, and what is remembered about them, lie in a folder."""
    names = {"COLLEGIUM_LEDGER": None, "XDG_STATE_HOME": str(folder / "state")}
    before = {name: os.environ.get(name) for name in names}
    try:
        _set(names)
        yield
    finally:
        _set(before)


def _set(names: Mapping[str, str | None]) -> None:
    for name, value in names.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class _Killed(BaseException):
    """A power failure: nothing after it is run, nothing before it is undone."""


def cut_off(toml: Path, outcome: Callable[[Path], Entry], every: int = 1) -> Entry:
    """End a run where its journal has grown, before that is durable, and let it go on: every outcome.

    Moments are not counted, which is nobody's business: only what may come of them is recorded.

    ``every``: so many times that it grows.
    """
    seen: list[Entry] = []
    for moment in itertools.count(1, every):
        out = toml.parent / f"study-{moment}"
        grown: set[int] = set()

        def wait(
            descriptor: int, out: Path = out, grown: set[int] = grown, moment: int = moment
        ) -> None:
            grown.add(sum(path.stat().st_size for path in out.rglob("*.jsonl")))
            if len(grown) > moment:
                raise _Killed

        with mock.patch("os.fsync", wait), contextlib.suppress(_Killed):
            json_of("run", toml, "--json", "--out", out)
        json_of("run", toml, "--json", "--out", out)
        found = plain(outcome(out))
        if found not in seen:
            seen.append(found)
        shutil.rmtree(out)
        if len(grown) <= moment:
            return {"outcomes": sorted(seen, key=json.dumps)}
    raise AssertionError


# --- what changes from day to day -------------------------------------------------------------------------

_SOFTWARE = {one.metadata["Name"].lower() for one in distributions() if one.metadata["Name"]}
_SOFTWARE |= {"python", "cuda"}


def steady(text: str, folder: Path) -> str:
    """Take from a text what changes from day to day and from machine to machine, and nothing else.

    - the temporary folder, whichever way it is written: FOLDER;
    - dates and times of day: DATE; how long something took: DURATION;
    - numbers of versions beside the name of a software: VERSION;
    - keys, identifiers and checksums, 12 hexadecimal digits or more: HEX.
    """
    for name in sorted({str(folder), str(folder.resolve())}, key=len, reverse=True):
        text = text.replace(name, "FOLDER")
    text = re.sub(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d| UTC)?)?", "DATE",
                  text)  # fmt: skip
    text = re.sub(rf"\b\d\d? (?:{'|'.join(calendar.month_name[1:])}) \d{{4}}\b", "DATE", text)
    text = re.sub(r"\b\d+(?:\.\d+)?\s?(?:ms|s|seconds|minutes)\b", "DURATION", text)
    text = re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b", "HEX", text)
    names = "|".join(sorted(map(re.escape, _SOFTWARE), key=len, reverse=True))
    between = r'(?:</th><td>|": ?"| )'
    return re.sub(rf"(?i)\b({names})({between})v?\d+(?:\.\w+)+(?:\+\w+)?", r"\1\2VERSION", text)


def parted(content: Any, folder: Path) -> tuple[Any, dict[str, str]]:
    """Part a JSON document: numbers, structure and single words; and sentences, by where they stand."""
    sentences: dict[str, str] = {}

    def walk(one: Any, place: str) -> Any:
        if isinstance(one, Mapping):
            return {key: walk(value, f"{place}.{key}".lstrip(".")) for key, value in one.items()}
        if isinstance(one, (list, tuple)):
            return [walk(value, f"{place}[{number}]") for number, value in enumerate(one)]
        name = place.rpartition(".")[2]
        if name == "seconds":
            return "DURATION"
        if not isinstance(one, str):
            return one
        text = "VERSION" if name.lower() in _SOFTWARE else steady(one, folder)
        if re.search(r"\s", text.strip()):
            sentences[place] = text
            return "…"
        return text

    return walk(json.loads(json.dumps(content)), ""), sentences


# --- plain values -----------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Make of numbers and arrays what JSON holds; every float keeps all its bits."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value.item() if hasattr(value, "item") else value
