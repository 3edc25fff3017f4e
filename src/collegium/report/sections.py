"""What a page and a card are made of, however something was learnt: sections of rows, words and figures.

A method says what it has to say in these forms, once; :func:`~collegium.report.page.render_page` and
:func:`~collegium.report.card.render_card` write them down, :func:`~collegium.cli.blocks.show` prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from markupsafe import Markup

from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget
from collegium.report.chances import Chances
from collegium.report.svg import inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Code:
    """A command, a key or the name of a file."""

    text: str
    kind: ClassVar[str] = "code"


@dataclass(frozen=True)
class Strong:
    """Words that stand out."""

    text: str
    kind: ClassVar[str] = "strong"


@dataclass(frozen=True)
class Link:
    """Words that lead to another place on the page: ``section`` is its id."""

    text: str
    section: str
    kind: ClassVar[str] = "link"


Text = str | tuple[str | Code | Strong | Link, ...]


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str
    kind: ClassVar[str] = "heading"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; ``tone`` is empty, "note" or "warning"."""

    text: Text
    tone: str = ""
    kind: ClassVar[str] = "paragraph"


@dataclass(frozen=True)
class Points:
    """Sentences, one below the other."""

    lines: Sequence[Text]
    kind: ClassVar[str] = "points"


@dataclass(frozen=True)
class Listing:
    """A few lines of code; ``language`` is empty for a terminal's."""

    code: str
    language: str = ""
    kind: ClassVar[str] = "listing"


@dataclass(frozen=True)
class Column:
    """A column of a table: of numbers, of names, or, if ``is_wide``, of sentences."""

    name: str
    is_number: bool = True
    is_wide: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of written values, the first of each its name.

    ``title``: stands above it on a terminal, which has no sections.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]
    caption: Text
    title: str = ""
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Pairs:
    """Names and values, one pair below the other."""

    caption: str
    rows: Sequence[tuple[str, str]]
    kind: ClassVar[str] = "pairs"


@dataclass(frozen=True)
class Headline:
    """One figure that matters: its name, its value, and what it is beside."""

    name: str
    value: str
    note: Text


@dataclass(frozen=True)
class Headlines:
    """Figures that matter, side by side."""

    figures: Sequence[Headline]
    kind: ClassVar[str] = "headlines"


@dataclass(frozen=True)
class Figure:
    """A picture, drawn when a page needs it.

    ``name``: goes before its ids. ``title``, ``description``: what assistive technology reads instead.
    ``table``: the same in numbers, directly below it; folded on the page where ``table_is_folded``.
    """

    name: str
    title: str
    description: str
    draw: Callable[[], Drawing]
    caption: Text
    table: Table | None = None
    table_is_folded: bool = False
    kind: ClassVar[str] = "figure"

    def svg(self) -> Markup:
        """Draw it."""
        return inline_svg(self.draw(), self.name, self.title, self.description)


@dataclass(frozen=True)
class Figures:
    """Pictures side by side, and what is said in the place of one; beside the page only their tables show."""

    shown: Sequence[Figure | Paragraph]
    kind: ClassVar[str] = "figures"

    @property
    def tables(self) -> list[Table]:
        """The tables below them."""
        return [one.table for one in self.shown if isinstance(one, Figure) and one.table]


@dataclass(frozen=True)
class Risks:
    """How often somebody is right who tries to find something out, in the one picture of it.

    ``shown``: a name, the sentence about it, and of 100 decisions how many are right at most.
    ``key``: what the marks mean.
    """

    shown: Sequence[tuple[str, str, Chances]]
    key: Mapping[str, str]
    kind: ClassVar[str] = "risks"


@dataclass(frozen=True)
class Folded:
    """What only some readers want: on the page it opens when asked, and when it is printed."""

    title: str
    blocks: Sequence[Block]
    kind: ClassVar[str] = "folded"


Block = (
    Heading | Paragraph | Points | Listing | Table | Pairs | Headlines | Figures | Risks | Folded
)


@dataclass(frozen=True)
class Section:
    """A part of the page.

    ``is_folded``: whether the page shows its title alone until it is opened, or printed.
    ``on_card``: whether the card has it, too.
    """

    id: str
    title: str
    blocks: Sequence[Block]
    is_folded: bool = False
    on_card: bool = False


@dataclass(frozen=True)
class Banner:
    """What is said first; ``tone``: good, plain, caution or danger."""

    tone: str
    heading: str
    text: str
    kind: ClassVar[str] = "banner"


@dataclass(frozen=True, kw_only=True)
class Page:
    """All that a release says of itself. Nothing in it depends on private records except through noise.

    What every release has stands here; what only one method has, its sections say.

    ``subject``: how it was learnt, in a few words.
    ``what``: what lies in the release, in a sentence or two.
    ``privacy``: what was promised and (worst case only) spent.
    ``chosen``: budgets as people chose them, by level, where a ledger kept a little of them back.
    ``verdict``: of what was released; the guarantee has a banner of its own.
    ``stopped``: why it ended.
    ``risk_follows``: how the risk follows from budgets, where that is not what it is for the mechanism.
    ``use``: how to use what was released: on the page and at the top of the card.
    ``results``: the figures that matter, and what belongs beside them; ``result_limits``: where they end.
    ``sections``: what the method has to say of itself; those that are not folded stand before the promises.
    ``leaves``: what the release holds, and what it does not.
    ``not_covered``: headings and texts; what the guarantee does not cover.
    ``checks``: how to check what is said.
    ``run``: how it went, in names and values; ``settings``: further public ones.
    """

    title: str
    subject: str
    what: Text
    privacy: PrivacyStatement
    verdict: Banner
    stopped: str
    results: Sequence[Block]
    leaves: str
    not_covered: Sequence[tuple[str, str]]
    checks: Sequence[Text]
    references: Sequence[str]
    sections: Sequence[Section] = ()
    run: Sequence[tuple[str, str]] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    chosen: Mapping[str, Budget] = field(default_factory=dict)
    risk_follows: str = ""
    use: Sequence[Block] = ()
    result_limits: Sequence[Text] = ()
