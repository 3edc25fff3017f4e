"""A method that nobody here knows says what it has to say in sections, and gets a page and a card."""

import re
from dataclasses import replace

import pytest
from html_checks import check

from collegium import Budget
from collegium.accounting import Gaussian, GaussianAccountant
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.statement import statement
from collegium.report.card import render_card
from collegium.report.page import render_page
from collegium.report.promise import promise_rows, spending_table
from collegium.report.sections import (
    Banner,
    Code,
    Column,
    Figure,
    Figures,
    Headline,
    Headlines,
    Listing,
    Page,
    Pairs,
    Paragraph,
    Points,
    Section,
    Table,
)

LEVELS = {"high": Budget(1.0, 1e-5), "low | <b>": Budget(3.0, 1e-5)}
ALLOWED = {"high": Budget(1.0, 9.9e-6), "low | <b>": Budget(3.0, 9.9e-6)}


def drawn():
    from matplotlib.figure import Figure as Drawing

    return Drawing(figsize=(2, 1))


def made(budgets=LEVELS):
    account = GaussianAccountant([one.epsilon for one in budgets.values()], 1e-5, list(budgets))
    account.charge(Gaussian([1.0, 2.0], scale=20.0))
    people = dict.fromkeys(budgets, 19_067)
    promised = statement(account, people, budgets, Arrangement(), True, "a table")
    table = Table(
        [Column("Marginal", is_number=False), Column("Off by")],
        [("age, *work*", "3.1"), ((Code("sex"), " alone"), "0.4 (0.1 to 0.7)")],
        ("How far counts are off; see ", Code("synthetic.parquet"), "."),
    )
    figure = Figure("marginals", "Marginals", "How far counts are off", drawn, "Marginals.")
    return Page(
        title="A synthetic table",
        subject="synthetic tables with individual privacy budgets",
        what=(Code("synthetic.parquet"), " holds 1,000 rows that nobody gave."),
        privacy=promised,
        verdict=Banner("good", "The table is close to its marginals", "Off by 3.1 at most."),
        stopped="All 3 marginals were measured.",
        use=[Listing('import pandas\n\npandas.read_parquet("synthetic.parquet")', "python")],
        results=[Headlines([Headline("Marginals", "3", "of 3 that were asked for")]), table],
        result_limits=["What no marginal holds is made up."],
        sections=[
            Section(
                "fit",
                "How it was made",
                [Paragraph("By marginals."), Figures([figure])],
                is_folded=True,
            ),
            Section(
                "more", "More", [Points(["a | b"]), Pairs("Rounds", [("n", "3")])], on_card=True
            ),
        ],
        leaves="In the release: the table.",
        not_covered=[("Budgets are public.", "Levels are known.")],
        checks=["By hand."],
        run=[("Marginals", "3")],
        settings={"synthesis.rows": "1000"},
        versions={"python": "3"},
        references=["Somebody: Something."],
        chosen=LEVELS,
    )


def test_a_page_and_a_card_say_what_its_sections_say():
    page, card = made(), render_card(made())
    html = check(render_page(page))
    titles = ["Results", "More", "What was promised to whom", "More"]
    assert [one.text for one in html.all("h2")] == titles  # the first is the method's own
    folded = [one for one in html.all("h3") if "summary" in one.parents]
    assert [one.text for one in folded][:2] == ["How to use it", "How it was made"]
    assert html.text.count("3.1") >= 2 and "nobody" not in html.all("h1")[0].text
    assert len(html.all("svg")) == 2 + len(LEVELS) and "low | <b>" in html.text
    assert "synthetic tables with individual" in html.text
    for text in (
        "A synthetic table",
        "close to its marginals",
        "What no marginal holds",
        "Worst-case",
    ):
        assert text in html.text and text in card
    assert card.startswith("# A synthetic table\n\n`synthetic.parquet` holds 1,000 rows")
    assert "| `sex` alone | 0.4 (0.1 to 0.7) |" in card and "age, \\*work\\*" in card
    assert "## More" in card and "- a \\| b" in card and "How it was made" not in card
    assert '```python\nimport pandas\n\npandas.read_parquet("synthetic.parquet")\n```' in card
    assert "<svg" not in card and "low \\| \\<b\\>" in card


@pytest.mark.parametrize("budgets", [LEVELS, ALLOWED])
def test_terminal_card_and_page_show_the_same_rows_and_budgets_as_people_chose_them(budgets):
    page = made(budgets)
    rows = promise_rows(page.privacy, page.chosen)
    assert [row.budget for row in rows] == ["1", "3"] and rows[0].people == "19,067"
    html, card = check(render_page(page)), render_card(page)
    terminal = spending_table(page.privacy, page.chosen)
    labelled = [e for e in html.elements if "data-label" in e.attributes]
    first = [e.attributes["data-label"] for e in labelled].index("People")
    cells = [" ".join(e.text.split()) for e in labelled[first:]]
    for number, row in enumerate(rows):
        assert terminal.rows[number][:6] == (
            row.level, row.people, row.budget, row.delta, row.spent, row.share
        )  # fmt: skip
        shown = [row.people, row.budget, row.delta, row.spent_and_share, row.meaning]
        assert cells[5 * number : 5 * number + 5] == shown
        assert f"| {' | '.join(shown)} |" in re.sub(r"\\(.)", r"\1", card)
    told = "keeps a small share of each δ back"
    for text in (html.text, card, terminal.caption):
        assert (told in text) == (budgets == ALLOWED)


def test_what_was_spent_before_is_no_footnote():
    page = made({"high": Budget(0.7, 1e-5), "low | <b>": Budget(3.0, 1e-5)})
    assert [row.budget for row in promise_rows(page.privacy, page.chosen)] == ["0.7", "3"]
    assert "keeps a small share" not in render_card(page)


def test_sensitive_spending_is_in_no_form():
    page = made()
    private = replace(page.privacy, guarantee="data-dependent")
    other = replace(
        private, groups=tuple(replace(row, epsilon_spent=0.25) for row in private.groups)
    )
    first, second = replace(page, privacy=private), replace(page, privacy=other)
    assert render_page(first) == render_page(second) and render_card(first) == render_card(second)
    assert promise_rows(private, LEVELS)[0].spent_and_share == "in the vault"
