"""Make the study folders of before: ``python tests/golden/make_folders.py``, with the package of before.

Each archive holds a study's TOML file, its data and its folder; ``expected.json`` holds what the package
that made them gives when it goes on with them. They are made once: a later package must go on with them.
"""

from __future__ import annotations

import gzip
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from cases import AGGREGATORS, FEATURES, LEVELS, Case, Society, society
from drivers import begin_label, call, go_on, study_toml, unpack, write_tables
from record import write

HERE = Path(__file__).with_name("folders")

SOFT = AGGREGATORS["worst-case"]["confident"]
SHARP = AGGREGATORS["data-dependent"]["confident"]
TABULAR = {
    "teacher": "tabular",
    "teacher_params": {"widths": [0.5, 1.0]},
    "preprocessing": {"kind": "principal", "components": 4},
}


def leave_finished(out: Path) -> None:
    """Leave everything but the report, which is large and made anew by every run."""
    (out / "release/report.html").unlink()


def cut_after_a_settled_line(out: Path) -> None:
    """Leave what a crash between two blocks of questions leaves."""
    _cut(out, lines=4)


def cut_in_a_block(out: Path) -> None:
    """Leave what a crash between a reservation and its outcomes leaves, with a torn line."""
    _cut(out, lines=3, torn=20)


def cut_in_training(out: Path) -> None:
    """Leave what a crash in the middle of training leaves."""
    _forget_voting(out)
    (out / "vault/journal.jsonl").unlink()
    for name in ("votes.npy", "terms.json", "sensitive-teachers-by-class.csv"):
        (out / "vault" / name).unlink()
    teachers = sorted((out / "vault/teachers").iterdir())
    for path in teachers[1::2]:
        path.unlink()


def _cut(out: Path, lines: int, torn: int = 0) -> None:
    _forget_voting(out)
    journal = out / "vault/journal.jsonl"
    every = journal.read_bytes().splitlines(keepends=True)
    assert len(every) > lines
    journal.write_bytes(b"".join(every[:lines]) + every[lines][:torn])


def _forget_voting(out: Path) -> None:
    for name in ("aggregation.json", "student.json", "sensitive-spending.json"):
        (out / "vault" / name).unlink(missing_ok=True)
    for path in (out / "release").iterdir():
        path.unlink()


#: The studies, and what happens to their folders.
STUDIES: list[tuple[Case, Callable[[Path], None]]] = [
    (
        Case("finished", aggregator="confident", numbers=SOFT, release="histogram",
             student="evidence-regression", student_params={"n_landmarks": 10}, **TABULAR),
        leave_finished,
    ),
    (
        Case("finished-bayes", personalisation="upsampling", numbers={"sigma": 7.0},
             teacher_shares=dict.fromkeys(range(10), 0.1),
             student_shares=dict.fromkeys(range(10), 0.1)),
        leave_finished,
    ),
    (
        Case("interrupted-in-voting", personalisation="vanishing", extras={"shuffle_every": 8},
             aggregator="confident", numbers=SOFT, query_order="coverage", release="histogram",
             levels={name: 2 * epsilon for name, epsilon in LEVELS.items()}),
        cut_after_a_settled_line,
    ),
    (
        Case("crashed-in-voting", aggregator="confident", numbers=SHARP, guarantee="data-dependent"),
        cut_in_a_block,
    ),
    (
        Case("half-taught", aggregator="interactive", numbers=AGGREGATORS["worst-case"]["interactive"],
             student="gaussian-process", student_params={}, **TABULAR),
        cut_in_training,
    ),
]  # fmt: skip


def smaller(records: Society) -> Society:
    """Take fewer records, so that an archive is small."""
    kept = [*FEATURES[:10], "digit"]
    private = records.private[[*kept, "person", "privacy"]].iloc[:330]
    return Society(private, records.public[kept].iloc[:80], records.test[kept].iloc[:50])


def pack(folder: Path, archive: Path) -> None:
    """Pack a folder; nothing in the archive says when or by whom."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    with (
        gzip.GzipFile(archive.name, "wb", 9, archive.open("wb"), mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as content,
    ):
        for path in sorted(folder.iterdir()):
            content.add(path, arcname=path.name, filter=plain)


def make(
    case: Case | None, happens: Callable[[Path], None], records: Society, folder: Path
) -> None:
    """Make a study, or a label job where there is no case, and let happen to it what happens."""
    if case is None:
        begin_label(folder)
    else:
        write_tables(records, folder, "csv")
        (folder / "study.toml").write_text(study_toml(case), encoding="utf-8")
        code, _, errors = call(("run", str(folder / "study.toml")))
        assert code == 0, errors
    happens(folder / "study")
    (folder / "study/vault/.lock").unlink()


def main() -> None:
    """Make the archives, go on with each, and write down what came of it."""
    records, expected = smaller(society()), {}
    for case, happens in [*STUDIES, (None, cut_in_a_block)]:
        name = "label-crashed" if case is None else case.id
        archive = HERE / f"{name}.tar.gz"
        with tempfile.TemporaryDirectory() as place:
            make(case, happens, records, Path(place))
            pack(Path(place), archive)
        with tempfile.TemporaryDirectory() as place:
            unpack(archive, Path(place))
            expected[name] = go_on(Path(place), records)
        print(name, archive.stat().st_size)
    write(HERE / "expected.json", expected)


if __name__ == "__main__":
    main()
