"""The page about a release: one HTML file that needs nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from collegium.plain_text import harmless
from collegium.report.numbers import clean, count, plain
from collegium.report.promise import promises, risk
from collegium.report.sections import (
    Block,
    Link,
    Page,
    Pairs,
    Paragraph,
    Points,
    Section,
    Strong,
    Text,
)
from collegium.report.verdict import banners

_MOST_ROWS = 12  # of a table that is not folded


def render_page(page: Page) -> str:
    """Write a page as one HTML file, without scripts and without anything from outside.

    ``page``: only what may be published. What was spent is shown under the worst-case guarantee
        alone; under a data-dependent one it is not even read.
    Returns: the same for the same page.
    """
    return (
        environment()
        .get_template("page.html.j2")
        .render(page=page, banners=banners(page.privacy, page.verdict), sections=_sections(page))
    )


def _sections(page: Page) -> list[Section]:
    """All sections, in their order: what was learnt, what was promised, and folded whatever is behind it."""
    use = [Section("use", "How to use it", page.use, is_folded=True)] if page.use else []
    return [
        Section("results", "Results", [Paragraph(page.stopped), *page.results]),
        *(section for section in page.sections if not section.is_folded),
        promises(page),
        *use,
        *(section for section in page.sections if section.is_folded),
        risk(page),
        limits(page),
        statement(page),
        _settings(page),
        Section("check", "How to check", [Points(page.checks)], is_folded=True),
        Section("references", "References", [Points(page.references)], is_folded=True),
    ]


def limits(page: Page) -> Section:
    """Say what is in the release, and what no guarantee covers."""
    blocks: list[Block] = [
        Paragraph(
            f"{page.leaves} What anybody computes from the release, at any later time, has the same "
            "guarantee."
        ),
        Paragraph("The guarantee does not cover:"),
        Points([(Strong(heading), f" {text}") for heading, text in page.not_covered]),
    ]
    if page.result_limits:
        blocks += [Paragraph("What was released has its own limits:"), Points(page.result_limits)]
    return Section("limits", "What is published, and what is not covered", blocks, is_folded=True)


def statement(page: Page) -> Section:
    """Repeat the privacy statement."""
    return Section(
        "statement",
        "The statement in full",
        [Points(page.privacy.sentences())],
        is_folded=True,
    )


def _settings(page: Page) -> Section:
    tables = {
        "The run": list(page.run),
        "Further public settings": list(page.settings.items()),
        "Software versions": list(page.versions.items()),
    }
    blocks = [Pairs(caption, rows) for caption, rows in tables.items() if rows]
    return Section("settings", "Settings and versions", blocks, is_folded=True)


@cache
def environment() -> Environment:
    """Make the templates' environment."""
    environment = Environment(
        loader=PackageLoader("collegium", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.globals.update(most_rows=_MOST_ROWS)
    environment.filters.update(count=count, plain=plain, inline=_inline, listing=_listing)
    return environment


def _finalize(value: Any) -> Any:
    """Clean every text that a template writes."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _inline(text: Text) -> Markup:
    """Write a text with what stands out in it; names that users chose show as they are."""
    if isinstance(text, str):
        return escape(clean(text))
    written = Markup()
    for part in text:
        if isinstance(part, str):
            before, after = " " * part.startswith(" "), " " * part.endswith(" ")
            written += f"{before}{clean(part)}{after}"
        elif isinstance(part, Link):
            written += Markup('<a href="#{}">{}</a>').format(part.section, clean(part.text))
        else:
            written += Markup(f"<{part.kind}>{{}}</{part.kind}>").format(clean(part.text))
    return written


def _listing(code: str) -> Markup:
    """Write code, line by line as it stands."""
    return escape("\n".join(harmless(line) for line in code.splitlines()))
