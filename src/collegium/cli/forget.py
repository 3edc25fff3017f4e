"""The forget command: somebody leaves, in a study and its ledger."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.console import out, print_json
from collegium.cli.options import PATH_OPTION
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.study.forgetting import Forgotten


def forget(
    owner: Annotated[
        str,
        typer.Argument(
            help="Name of the person, spelt as in the owners' column.", show_default=False
        ),
    ],
    studies: Annotated[
        list[Path],
        typer.Argument(
            help="The study's TOML file. If several studies use one file of records, give all of them.",
            metavar="STUDY",
            show_default=False,
        ),
    ],
    out_folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The study's folder. Default: beside the TOML file, without .toml.",
            **PATH_OPTION,
        ),
    ] = None,
    remove_records: Annotated[
        bool,
        typer.Option(
            "--remove-records",
            help="Write the file of private records anew, without this person's records. Without this "
            "option, only their number is shown.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Let a person leave: remove their records, train their teachers (if any) again, tell the ledger.

    Before, during or after a run of any method. What was released stays released, and what it cost stays
    spent. If interrupted, run the command again.

    Example: collegium forget patient-17 study.toml --remove-records
    """
    from collegium.cli.progress import NoteObserver, watching
    from collegium.study.config import read_config
    from collegium.study.folder import StudyFolder
    from collegium.study.forgetting import forget as forget_in
    from collegium.study.kept_rehearsals import kept_beside
    from collegium.study.planned_settings import settled_method

    if owner.endswith(".toml") and not any(study.suffix == ".toml" for study in studies):
        raise InputError(
            f"the person's name comes first, and then the studies: collegium forget {studies[0]} {owner}"
        )
    if out_folder is not None and len(studies) > 1:
        raise InputError("--out names one folder: with several studies, leave it out")
    if out_folder is not None and not StudyFolder(out_folder).is_begun():
        raise InputError(f"{out_folder} holds no study that was begun: nothing was changed")
    _refuse_without_siblings(studies)
    given = []
    for study in studies:
        folder, config = out_folder or study.with_suffix(""), read_config(study)
        if StudyFolder(folder).is_begun():
            config = settled_method(config, StudyFolder(folder), NoteObserver())
        given.append((config, folder))
    with watching(not as_json) as observer:
        done = forget_in(owner, given, remove_records=remove_records, observer=observer)
    for study in studies:
        kept_beside(study).unlink(missing_ok=True)  # a plan of other people
    if as_json:
        print_json([_as_json(one) for one in done])
        return
    for one in done:
        for line in _in_words(one):
            out.print(line, soft_wrap=True)


def _refuse_without_siblings(studies: list[Path]) -> None:
    """Refuse where another study beside these was made of the same file, which it would not know any more."""
    given = {study.resolve() for study in studies}
    files = {_private_of(study) for study in studies} - {None}
    for folder in dict.fromkeys(study.resolve().parent for study in studies):
        for other in sorted(folder.glob("*.toml")):
            was_run = (other.with_suffix("") / "vault/manifest.json").exists()
            if other not in given and was_run and _private_of(other) in files:
                named = " ".join(map(str, [*studies, other]))
                raise InputError(
                    f"{other} is a study of the same file of records: name it, too, so that it goes on "
                    f"without them (collegium forget OWNER {named}); nothing was changed"
                )


def _private_of(study: Path) -> Path | None:
    """Find the file of a study's private records; None where there is none, or the study cannot be read."""
    from collegium.study.config import read_config

    try:
        private = read_config(study).path("data.private")
    except InputError:
        return None
    return None if private is None else private.resolve()


def _as_json(done: Forgotten) -> dict[str, Any]:
    return {**asdict(done), "folder": str(done.folder), "private": str(done.private)}


def _in_words(done: Forgotten) -> list[str]:
    if not done.records:
        return [f"{done.folder}: this person had left before, so there was nothing to do."]
    many = f"{done.records:,} record{'s' * (done.records != 1)}"
    removed = f"{done.folder}: removed {many} from {done.private}."
    lines = [" ".join([removed, *_of_what_learnt(done)])]
    if done.has_asked:
        lines.append(
            "What was released about them with others stays released, under its guarantee, and what it cost "
            "stays spent. What was published stays as it is."
        )
    if done.ledger is not None:
        lines.append(
            f"Ledger {done.ledger}: no further release will use this person's records. What was spent "
            "stays in the ledger."
            if done.is_known
            else f"Ledger {done.ledger}: it does not know this person, so nothing was spent."
        )
    if done.has_asked and done.state == "finished":
        lines.append(_of_another_release(done))
    lines.append(
        "Not changed: backups, copies, other studies of these records, and public or test records."
    )
    return lines


def _of_what_learnt(done: Forgotten) -> list[str]:
    """Say what happens to what learnt from the person, in a study that was begun."""
    if done.state == "not begun":
        return ["Nothing was learnt from them in this study."]
    if done.teachers:
        again = (
            "was trained again without the person, and voted again"
            if done.voted_again
            else "will be trained without the person by the next `collegium run`"
        )
        return [
            f"Teachers trained on them: {done.teachers:,}. Each {again}; all others stay as they were."
        ]
    goes_on = ["`collegium run` goes on without them."] if done.state == "begun" else []
    return ["Nothing had to be trained again.", *goes_on]


def _of_another_release(done: Forgotten) -> str:
    """Say whether, and how, something can be learnt anew from those who stay."""
    another = "copy the settings to a file of another name, and plan and run that"
    if done.may_release is None:
        return (
            f"To learn anew from the others, {another}: that spends of their budgets again, and no ledger "
            "counts how much."
        )
    if done.may_release:
        return f"To learn anew from the others, {another}: the ledger leaves them a budget for it."
    return (
        "Nothing can be learnt anew from the others: the ledger leaves none of them a tenth of a budget, "
        "unless they grant more (`collegium ledger change`)."
    )
