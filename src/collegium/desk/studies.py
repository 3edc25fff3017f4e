"""Studies that a steward makes at the desk: from two tables to a release, by commands that are run there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collegium.budgets import Policy
from collegium.checks import shown
from collegium.desk.commands import Command, State
from collegium.desk.tables import LEVELS, Table, Tables, file_name
from collegium.durable import private_folder, write_durably
from collegium.errors import InputError
from collegium.ledger.ledger import Ledger
from collegium.study.config import config_from
from collegium.study.folder import StudyFolder
from collegium.study.released_files import released_content
from collegium.toml_files import read_toml, toml_text

_FILE, _FOLDER, _PLAN, _FROM, _COMMAND = (
    "study.toml",
    "study",
    "plan.html",
    "from.txt",
    "command",
)
REPORT = "report.html"
_COSTS = "remembers this release, which takes "
_AS_MADE = {  # of a file that a steward changes at the desk; None: whole sections
    "data": ("private", "public", "test", "owner", "dataset"),
    "privacy": ("column", "levels", "delta", "file"),
    "run": None,
    "ledger": None,
    "parties": None,
}


@dataclass(frozen=True)
class Wanted:
    """What a steward says of a study that is to be made.

    ``target``: column to predict; empty: as it is inferred. ``classes``: the public list of them; empty: as
    in public records. ``exclude``: columns that are no features, with commas between them.
    """

    title: str
    private: Table
    public: Table
    test: Table | None = None
    target: str = ""
    classes: str = ""
    exclude: str = ""


class Study:
    """A study at the desk: its file, its folder, and the last command about it.

    ``name``: of its folder at the desk.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self.name = folder, folder.name
        self.file = folder / _FILE
        self.command = Command(folder / _COMMAND, environment)
        self._study = StudyFolder(folder / _FOLDER)

    @property
    def title(self) -> str:
        """What it is called, on its report and on people's receipts."""
        said = read_toml(self.file).get("study", {})
        return str(said.get("name", self.name)) if isinstance(said, Mapping) else self.name

    @property
    def text(self) -> str:
        """Its file."""
        return self.file.read_text(encoding="utf-8")

    @property
    def table(self) -> str:
        """Which private table it is about."""
        return (self.folder / _FROM).read_text(encoding="utf-8")

    def uses(self, table: Table) -> bool:
        """Whether it reads a table, or was made of it."""
        return self.table == table.name or f"tables/{table.file}" in self.text

    @property
    def expected(self) -> list[str]:
        """What its plan said of the model, and of people's budgets, where it was planned last."""
        state = self.state
        if state is None or state.name != "plan" or not state.has_worked:
            return []
        lines = state.said.splitlines()
        worth = [line for line in lines if line.startswith("Expected: ")]
        costs = [line.partition(_COSTS)[2] for line in lines if _COSTS in line]
        return worth[:1] + [f"It takes {line}" for line in costs[:1]]

    @property
    def state(self) -> State | None:
        """How the last command about it stands."""
        return self.command.state()

    @property
    def is_begun(self) -> bool:
        """Whether a run has begun: its settings and its people stay as they are from then on."""
        return self._study.is_begun()

    @property
    def is_finished(self) -> bool:
        """Whether everything was drawn and published."""
        return self._study.is_finished()

    @property
    def plan(self) -> str:
        """The page about its plan; empty where there is none."""
        page = self.folder / _PLAN
        return page.read_text(encoding="utf-8") if page.is_file() else ""

    @property
    def released(self) -> list[str]:
        """Names of the files that it published."""
        if not self.is_finished:
            return []
        return sorted(one.name for one in self._study.release.iterdir() if one.is_file())

    def released_file(self, name: str) -> bytes:
        """Read a file that it published. Raises InputError if there is none, or it was changed since."""
        content = released_content(self._study.release / name) if name in self.released else None
        if content is None:
            raise InputError(
                f"the study has published no {shown(name)}: take one that its page lists"
            )
        return content

    def write(self, text: str) -> None:
        """Change its file. Raises InputError if a run has begun, or the file would be refused."""
        self._refuse_begun()
        new = self.folder / ".new.toml"
        try:
            new.write_text(text.replace("\r\n", "\n"), encoding="utf-8")
            given = read_toml(new)
            _refuse_elsewhere(read_toml(self.file), given)
            config_from(given, self.folder)
            new.replace(self.file)
        except InputError as error:
            raise InputError(str(error).replace(f"{new}: ", "")) from None
        finally:
            new.unlink(missing_ok=True)

    def start_plan(self, tables: Tables, ledger: Ledger) -> None:
        """Plan it, with what people grant now."""
        self._take_people(tables, ledger)
        (self.folder / _PLAN).unlink(missing_ok=True)
        self.command.start(["plan", _FILE, "--html", _PLAN], self.folder)

    def start_run(self, tables: Tables, ledger: Ledger, *, anyway: bool) -> None:
        """Run it, or go on where it was cut off.

        ``anyway``: also if it is expected to be no better than always giving one answer.
        """
        if self.is_finished:
            raise InputError("this study is finished: for another release, make another one")
        is_new = not self.is_begun
        self._take_people(tables, ledger)
        progress = ["--progress", str(self.command.progress_file)]
        self.command.start(
            ["run", _FILE, *progress, *["--anyway"] * (anyway and is_new)], self.folder
        )

    def remove(self) -> None:
        """Remove a study that has not begun, or is finished: what was released and spent stays so."""
        if not self.is_finished:
            self._refuse_begun()
        self.command.refuse_running()
        shutil.rmtree(self.folder)

    def _refuse_begun(self) -> None:
        if self.is_begun:
            raise InputError(
                "a run of this study has begun, so it stays as it is: for other settings, make another one"
            )
        self.command.refuse_running()

    def _take_people(self, tables: Tables, ledger: Ledger) -> None:
        """Write the records of those who grant a budget now, unless a run has begun with others."""
        if self.is_begun:
            return
        self.command.refuse_running()
        table = tables[self.table]
        tables.write_granted(table, ledger, self.folder / table.file)


class Studies:
    """The studies of a desk.

    Parameters
    ----------
    folder : Path
        Of the desk.
    environment : mapping of str to str
        Variables that their commands get.
    key : Path or None
        Of the ledger's key file, where it is not beside the ledger.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], key: Path | None) -> None:
        self._folder, self._environment, self._key = folder / "studies", environment, key
        private_folder(self._folder)

    def all(self) -> list[Study]:
        """All of them, by name."""
        found = sorted(one.parent for one in self._folder.glob(f"*/{_FILE}"))
        return [Study(one, self._environment) for one in found]

    def __getitem__(self, name: str) -> Study:
        """Find one. Raises InputError if there is none."""
        for one in self.all():
            if one.name == name:
                return one
        raise InputError(f"there is no study {shown(name)} here: make it first")

    def make(self, wanted: Wanted, policy: Policy, tables: Tables, ledger: Ledger) -> Study:
        """Make a study's file, as ``collegium init`` does; what it cannot infer, it asks for in one line."""
        name = file_name(wanted.title)
        folder = self._folder / name
        if (folder / _FILE).exists():
            raise InputError(f"there is a study {shown(name)} already: give this one another title")
        if wanted.private.is_public or not wanted.public.is_public:
            raise InputError(
                "a study learns from a private table, and needs a public one beside it"
            )
        private_folder(folder)
        try:
            tables.write_granted(wanted.private, ledger, folder / wanted.private.file)
            write_durably(folder / _FROM, wanted.private.name.encode(), private=True)
            made = Command(folder / _COMMAND, self._environment)
            made.done(self._arguments(wanted, policy, tables), folder)
            if self._key is not None:
                self._name_key(folder / "new.toml")
            shutil.rmtree(folder / _COMMAND)  # its last command is none about the study
            (folder / "new.toml").rename(folder / _FILE)  # from here on it is there
        except BaseException:
            shutil.rmtree(folder)
            raise
        return Study(folder, self._environment)

    def _arguments(self, wanted: Wanted, policy: Policy, tables: Tables) -> list[str]:
        levels = ",".join(f"{level}={one.epsilon!r}" for level, one in policy.levels.items())
        delta = next(iter(policy.levels.values())).delta
        beside = Path("..", "..", tables.folder.name)
        given = {
            "--from": wanted.private.file,
            "--public": str(beside / wanted.public.file),
            "--test": "" if wanted.test is None else str(beside / wanted.test.file),
            "--title": wanted.title,
            "--owner": wanted.private.owner,
            "--privacy": LEVELS,
            "--levels": levels,
            "--delta": repr(delta),
            "--target": wanted.target,
            "--classes": wanted.classes,
            "--exclude": wanted.exclude,
        }
        said = [f"{option}={value}" for option, value in given.items() if value]
        return ["init", "new.toml", *said]

    def _name_key(self, file: Path) -> None:
        assert self._key is not None
        text = file.read_text(encoding="utf-8")
        line = f"[ledger]\nkey = {toml_text(str(self._key))}\n"
        write_durably(file, f"{text}\n{line}".encode(), private=True)


def _refuse_elsewhere(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Refuse changes by which a study would leave the desk's own tables, people and ledger."""
    for section, keys in _AS_MADE.items():
        old, new = (one.get(section, {}) for one in (before, after))
        if isinstance(new, Mapping) and keys is not None:
            old, new = ({key: one.get(key) for key in keys} for one in (old, new))
        if old != new:
            raise InputError(
                f"[{section}] says other files, people or levels than before, or where it is run: these stay "
                "as the desk has made them; for others, make another study"
            )
    paths = [one for one in _texts(after) if "/" in one or "\\" in one]
    if new_ones := set(paths) - set(_texts(before)):
        raise InputError(
            f"{shown(min(new_ones))} may be a file, and the desk reads those alone that were brought to it: "
            "take it out"
        )


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for one in value.values() for text in _texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) else []
