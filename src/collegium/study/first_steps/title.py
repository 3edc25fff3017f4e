"""The title of a study: it stands on the report, and on the receipts of the people whose records are used."""

from __future__ import annotations

from collegium.errors import InputError
from collegium.report.numbers import clean
from collegium.study.first_steps.prompts import Draft, Question

_LONGEST = 100  # letters: it is a line of a receipt


def ask_title(draft: Draft, target: str | None) -> str:
    """Ask for the title; where there is nobody to ask, propose one and say how to change it."""
    if draft.given.title is not None:
        return _read(draft.given.title)
    private = draft.files.private.name
    proposal = f"Predicting {target} ({private})" if target else f"Study of {private}"
    proposal = clean(proposal)[:_LONGEST]
    title = draft.prompts.ask(
        Question(
            "What is the study called? The title stands on the report and on people's receipts",
            "--title TEXT",
            _read,
            proposal=proposal,
            is_needed=False,
            is_extra=True,
        )
    )
    if title is None:
        draft.prompts.tell(
            f"study.name: {proposal!r}; it stands on the report and on people's receipts (--title overrules "
            "it)"
        )
    return title or proposal


def _read(text: str) -> str:
    """Read a title.

    Raises
    ------
    InputError
        If it has no letters, or too many.
    """
    title = clean(text)
    if not 0 < len(title) <= _LONGEST:
        raise InputError(
            f"--title: a title has 1 to {_LONGEST} letters, got {len(title):,}: say in a few words what "
            "people's records are used for"
        )
    return title
