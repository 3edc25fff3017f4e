"""The verify command: is a folder what its study wrote, piece by piece."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collegium.cli.console import out, print_json
from collegium.cli.outputs import folder_of
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.study.manifest_check import Finding

_WRONG = 1


def verify(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a study or label job.", show_default=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Check that every file of a folder is what its study wrote there last. Changes and spends nothing.

    Exit code 0 if all is well, 1 if anything is wrong.

    Example: collegium verify study/
    """
    from collegium.study.folder import StudyFolder
    from collegium.study.manifest_check import refuse_links
    from collegium.study.verifying import examine

    study = StudyFolder(folder_of(folder))
    if not study.vault.is_dir():
        raise InputError(
            f"{folder} is not the folder of a study or label job: it has no {study.vault.name}"
        )
    refuse_links(study.vault)
    with study.locked():
        found = examine(study)
    wrong = sum(bool(one.trouble) for one in found)
    if as_json:
        print_json({"fine": not wrong, "pieces": {one.piece: _in_words(one) for one in found}})
    else:
        for one in found:
            out.print(f"{one.piece}: {_in_words(one)}", soft_wrap=True)
        out.print(
            f"{wrong} of {len(found)} files {'is' if wrong == 1 else 'are'} not as the study wrote "
            f"{'it' if wrong == 1 else 'them'}: {_what_to_do(found)}."
            if wrong
            else f"All {len(found)} files are as the study wrote them.",
            soft_wrap=True,
        )
    if wrong:
        raise typer.Exit(_WRONG)


def _what_to_do(found: list[Finding]) -> str:
    """Say what helps: of the remedies that the pieces need, the one that covers all."""
    from collegium.study.manifest_check import AS_IT_SAYS, DELETE_SPARE, MOVE, RESTORE

    damaged = [one for one in found if one.trouble and not one.made_again]
    for remedy in (AS_IT_SAYS, RESTORE, MOVE):
        if any(one.remedy == remedy for one in damaged):
            return remedy
    spare = [one.piece for one in damaged if one.remedy == DELETE_SPARE]
    needed = [one.piece for one in damaged if one.remedy != DELETE_SPARE]
    is_one = sum(bool(one.trouble) for one in found) - len(spare) == 1
    again = f"the next run makes {'it' if is_one else 'them'} again"
    advice = [f"delete {', '.join(needed)}, and {again}"] if needed else []
    if not needed and any(one.made_again for one in found if one.trouble):
        advice = [again]
    if spare:
        advice.append(
            f"delete {', '.join(spare)}: nothing needs {'it' if len(spare) == 1 else 'them'} any more"
        )
    return "; ".join(advice)


def _in_words(one: Finding) -> str:
    if one.trouble:
        again = "; the next run makes it again"
        return f"{one.trouble}{again if one.made_again else ''}"
    if one.is_spare:
        return "fine (it is gone, and nothing needs it any more)"
    if one.made_again:
        return "fine (a run was cut off before it was written; the next one goes on)"
    return "fine"
