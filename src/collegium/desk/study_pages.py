"""Pages of studies: making one, its plan, its run with progress, and what it published."""

from __future__ import annotations

from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from collegium.desk.books import Books
from collegium.desk.doorkeeper import Session
from collegium.desk.pages import WATCHING, document, form, message, page, rendered, sure, text_of
from collegium.desk.studies import REPORT, Study, Wanted
from collegium.errors import InputError


@page
def studies_page(request: Request, books: Books, session: Session) -> Response:
    """List the studies, with the form that makes one."""
    tables = books.tables.all()
    return rendered(
        session,
        "studies.html.j2",
        studies=[(one.name, one.title, _stage(one)) for one in books.studies.all()],
        private=[one.name for one in tables if not one.is_public and one.owner],
        public=[one.name for one in tables if one.is_public],
        without_owner=[one.name for one in tables if not one.is_public and not one.owner],
    )


@form
def make_study(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Make a study's file."""
    title, test = text_of(sent, "title"), text_of(sent, "test")
    if not title:
        raise InputError("give the study a title: people read it on their receipts")
    wanted = Wanted(
        title,
        books.tables[text_of(sent, "private")],
        books.tables[text_of(sent, "public")],
        books.tables[test] if test else None,
        *(text_of(sent, name) for name in ("target", "classes", "exclude")),
    )
    made = books.studies.make(wanted, books.policy, books.tables, books.ledger)
    return _to(made)


@page
def study_page(request: Request, books: Books, session: Session) -> Response:
    """Show one study: where it is, and what comes next."""
    study = _study(request, books)
    state = study.state
    return rendered(
        session,
        "study.html.j2",
        study=study,
        address=_address(study),
        stage=_stage(study),
        state=state,
        is_running=state is not None and state.is_running,
        again=f"{_address(study)}?{WATCHING}",
    )


@form
def plan_study(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Begin to plan."""
    study = _study(request, books)
    study.start_plan(books.tables, books.ledger)
    return _to(study)


@form
def run_study(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Begin to run, or go on, after asking once before anything is spent."""
    study = _study(request, books)
    if text_of(sent, "sure") != "yes" and not study.is_begun:
        return sure(
            session,
            "Run this study?",
            study.title,
            [
                "It learns from the records of everybody who has a level, within what they granted. What it "
                "spends of their budgets is spent for good.",
                *study.expected,
            ],
            action=f"{_address(study)}/run",
            yes="Yes, run it",
            back=_address(study),
            choice="Also if the model is expected to be no better than always giving one answer",
        )
    study.start_run(books.tables, books.ledger, anyway=text_of(sent, "choice") == "yes")
    return _to(study)


@form
def stop_study(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Stop what is running; it can go on later."""
    study = _study(request, books)
    study.command.stop()
    return message(session, "It is told to stop, and can go on later.", back=_address(study))


@form
def change_study(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Change a study's file."""
    study = _study(request, books)
    study.write(text_of(sent, "text") + "\n")
    return message(session, "The settings are changed: plan again.", back=_address(study))


@form
def remove_study(request: Request, books: Books, session: Session, sent: FormData) -> Response:
    """Remove a study that has not begun, or is finished, after asking once."""
    study = _study(request, books)
    if text_of(sent, "sure") != "yes":
        return sure(
            session,
            "Remove this study?",
            study.title,
            [
                "Its files are removed from the desk: its settings, the rows that it learns from, and, if it "
                "is finished, what it published. Keep a copy of that. What was spent stays in the ledger.",
            ],
            action=f"{_address(study)}/remove",
            yes="Yes, remove it",
            back=_address(study),
        )
    study.remove()
    return message(session, "The study was removed.", back="/studies")


@page
def plan_page(request: Request, books: Books, session: Session) -> Response:
    """Show a study's plan."""
    study = _study(request, books)
    if not study.plan:
        raise InputError("there is no plan of this study yet: make one")
    return document(study.plan)


@page
def released_file(request: Request, books: Books, session: Session) -> Response:
    """Show a study's report, or send another file that it published."""
    name = request.path_params["file"]
    content = _study(request, books).released_file(name)
    if name == REPORT:
        return document(content.decode())
    return Response(
        content,
        media_type="application/octet-stream",
        headers={"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"},
    )


def _stage(study: Study) -> str:
    """Say where a study is."""
    state = study.state
    if state is not None and state.is_running:
        return "it is being planned" if state.name == "plan" else "it is running"
    if study.is_finished:
        return "finished"
    if study.is_begun:
        return "begun, and not finished"
    return "planned" if study.plan else "not planned yet"


def _study(request: Request, books: Books) -> Study:
    return books.studies[request.path_params["name"]]


def _address(study: Study) -> str:
    return f"/studies/{study.name}"


def _to(study: Study) -> Response:
    return RedirectResponse(quote(_address(study)), 303)
