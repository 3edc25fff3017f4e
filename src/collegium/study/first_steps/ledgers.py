"""Where a study's ledger is, if nothing beside the private records can be it."""

from __future__ import annotations

from collegium.data.engines.places import Place
from collegium.ledger.places import NONE, find_place, is_unwanted
from collegium.study.first_steps.prompts import Draft

_WHY = 'nobody remembers what is spent; a ledger does: "people.ledger", or postgresql://USER@HOST/DATABASE'


def propose_ledger(draft: Draft, owner: str | None) -> tuple[str, str] | None:
    """Propose that there is none, beside a server, unless the environment names one.

    Returns the ledger, and what to say of it in the file; None: it need not be said.
    """
    private = draft.files.private
    lies_on_a_server = isinstance(private, Place) and private.file is None
    if not lies_on_a_server or owner is None:
        return None
    if is_unwanted() or find_place(None, None, None, draft.folder) is not None:
        return None
    draft.prompts.tell(
        f"ledger.url: {NONE!r}; beside {private.name} on a server there is no folder for a ledger, so that "
        "nobody remembers what is spent: name one in the file"
    )
    return NONE, _WHY
