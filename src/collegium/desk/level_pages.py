"""The page of levels: what people may choose, and what it means."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from collegium.accounting.promises import Promise
from collegium.budgets import Policy
from collegium.desk.books import Books
from collegium.desk.doorkeeper import Session
from collegium.desk.pages import document, form, message, number_of, page, rendered, text_of
from collegium.desk.steward import levels_in_words
from collegium.errors import InputError
from collegium.report.own_page import OWN_NAMES, language_among
from collegium.report.policy_page import explain

_PROPOSED = Policy({"high": 1.0, "average": 2.0, "low": 3.0})
_ROWS = 6


@page
def levels_page(request: Request, books: Books, session: Session) -> Response:
    """Show the levels, and the form that sets them."""
    policy = _PROPOSED if books.stated is None else books.policy
    rows = [(name, repr(one.epsilon).removesuffix(".0")) for name, one in policy.levels.items()]
    delta = next(iter(policy.levels.values())).delta
    promise = books.ledger.lifetime.promise
    meant = explain(policy, promise=promise)
    return rendered(
        session,
        "levels.html.j2",
        levels=levels_in_words(books),
        may_set=books.may_set_levels,
        is_pure=promise is Promise.PURE,
        meant=[
            (name, one.words) for name, (_, one, _) in zip(policy.levels, meant.levels, strict=True)
        ],
        rows=[*rows, *[("", "")] * (_ROWS - len(rows))],
        delta=repr(delta),
        languages=OWN_NAMES,
    )


@page
def explained(request: Request, books: Books, session: Session) -> Response:
    """Show what people read about the levels, for a consent form."""
    language = language_among(request.query_params.get("language"), "")
    return document(books.explained(language).as_html())


@form
def set_levels(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Set the levels."""
    levels: dict[str, float] = {}
    for row in range(_ROWS):
        name = text_of(sent, f"name-{row}")
        if not name and not text_of(sent, f"epsilon-{row}"):
            continue
        if not name or name in levels:
            raise InputError("give each level a name of its own")
        levels[name] = number_of(sent, f"epsilon-{row}", f"the ε of {name}")
    if not levels:
        raise InputError("no level was given: write at least one")
    books.set_levels(levels, number_of(sent, "delta", "δ"))
    return message(session, "The levels are set: people can choose them now.", back="/levels")
