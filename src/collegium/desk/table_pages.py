"""Pages of tables: bringing one, whose rows it has, what is publicly known of it, and what people granted."""

from __future__ import annotations

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from collegium.checks import listed
from collegium.desk.books import Books
from collegium.desk.doorkeeper import Session
from collegium.desk.pages import form, message, number_of, page, rendered, sentence, sure, text_of
from collegium.desk.tables import Table
from collegium.errors import InputError
from collegium.study.level_column import names_in


@page
def tables_page(request: Request, books: Books, session: Session) -> Response:
    """List the tables, with the form that brings one."""
    return rendered(session, "tables.html.j2", tables=books.tables.all())


@form
def add_table(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Take a table in."""
    given, kind = sent.get("file"), text_of(sent, "kind")
    if not isinstance(given, UploadFile) or not given.filename:
        raise InputError("no file was given: choose one")
    if kind not in ("private", "public"):
        raise InputError("say whether the table is private or public")
    added = books.tables.add(
        text_of(sent, "name"), given.filename, given.file, is_public=kind == "public"
    )
    return _to(added)


@page
def table_page(request: Request, books: Books, session: Session) -> Response:
    """Show one table: its columns, whose rows it has, and what is known of it."""
    table = _table(request, books)
    schema = books.tables.schema_file(table)
    takes_part = people = most = 0
    if table.owner:
        names = books.tables.people(table)
        people, most = len(names), books.tables.most_rows(table)
        takes_part = sum(one is not None for one in books.ledger.levels_of(names))
    return rendered(
        session,
        "table.html.j2",
        table=table,
        people=people,
        most=most,
        takes_part=takes_part,
        levels=list(books.levels),
        schema=schema.read_text(encoding="utf-8") if schema.is_file() else "",
        publics=[one for one in books.tables.all() if one.is_public],
    )


@form
def set_owner(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Say whose each row is."""
    table = _table(request, books)
    return _to(books.tables.set_owner(table, text_of(sent, "owner")))


@form
def enter_levels(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Enter the levels of those people of a table who have not chosen yet."""
    table, column, one = _table(request, books), text_of(sent, "column"), text_of(sent, "level")
    if bool(column) == bool(one):
        raise InputError("say where the levels stand: in a column, or one level for everybody")
    rows = books.tables.rows(table)
    names = names_in(rows, table.whose)
    if one:
        levels = [one] * len(names)
    elif column in rows.columns:
        says = rows[column].notna().to_numpy()
        levels = [str(level) for level in rows[column][says]]
        names = [name for name, is_said in zip(names, says, strict=True) if is_said]
    else:
        raise InputError(f"{table.name} has no column {column!r}")
    if text_of(sent, "sure") != "yes":
        counts = books.levels_to_enter(names, levels)
        told = ", ".join(f"{count:,} with {level}" for level, count in counts.items() if count)
        if not told:
            return message(
                session,
                "Nobody would join: whoever has a level in this column has one in the ledger, or has left.",
                back=_address(table),
            )
        silent = len(books.tables.people(table)) - len(set(names))
        return sure(
            session,
            "Enter these levels?",
            table.name,
            [
                f"Would join: {told}. Whoever has a level, or has left, stays as they are.",
                *[f"{silent:,} people have no level in this column, and do not join."]
                * bool(silent),
                "Entered is entered: a level can be changed, by the person or by you, and not be taken back.",
            ],
            action=f"{_address(table)}/levels",
            yes="Yes, enter them",
            back=_address(table),
            fields={"column": column, "level": one},
        )
    joined, before = books.enter_levels(names, levels)
    return message(
        session,
        f"{joined:,} people joined with the level that was entered. {before:,} had a level before, or have "
        "left, and stay as they are.",
        back=_address(table),
    )


@form
def draft_schema(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Draft what is publicly known from a public table, for the steward to check."""
    table = _table(request, books)
    rows = number_of(sent, "rows", "the number of rows per person")
    if rows != int(rows) or not rows >= 1:
        raise InputError("the number of rows per person must be a whole number from 1")
    public = books.tables[text_of(sent, "public")]
    text = books.tables.drafted(public, table, int(rows))
    return rendered(session, "schema.html.j2", table=table, schema=text, told="")


@form
def set_schema(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Keep what is publicly known of a table's columns."""
    table = _table(request, books)
    text = text_of(sent, "schema")
    try:
        books.tables.set_schema(table, text)
    except InputError as error:  # what was written stays on the page
        return rendered(
            session, "schema.html.j2", 400, table=table, schema=text, told=sentence(error)
        )
    return message(
        session, "It is kept: questions can be asked of this table now.", back=_address(table)
    )


@form
def remove_table(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Remove a table, after asking once."""
    table = _table(request, books)
    if using := [
        one.title for one in books.studies.all() if one.uses(table) and not one.is_finished
    ]:
        raise InputError(
            f"{listed(using)} uses it, and is not finished: run it to its end, or remove it first"
        )
    if text_of(sent, "sure") != "yes":
        return sure(
            session,
            "Remove this table?",
            table.name,
            [
                "Its rows, and what is said of its columns, are removed from the tables. A study that has "
                "run keeps the rows that it learnt from, until it is removed itself. Nothing that was "
                "released changes, and what people spent stays in the ledger.",
            ],
            action=f"{_address(table)}/remove",
            yes="Yes, remove it",
            back=_address(table),
        )
    books.tables.remove(table)
    return message(session, f"{table.name} was removed.", back="/tables")


def _table(request: Request, books: Books) -> Table:
    return books.tables[request.path_params["name"]]


def _address(table: Table) -> str:
    return f"/tables/{table.name}"


def _to(table: Table) -> Response:
    return RedirectResponse(_address(table), 303)
