"""What the page says of a synthetic table: every table, and pictures that can be drawn of anything."""

import math
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from html_checks import check
from test_browser import FLAGS
from test_sections import made

from collegium import Schema
from collegium.attacks.membership import judge_membership
from collegium.evaluation.synthetic import evaluate_synthetic
from collegium.evaluation.synthetic_quality import Associations, ColumnShares
from collegium.report.page import render_page
from collegium.report.synthetic_plots import (
    MOST_NAMED,
    associations_figure,
    drawn_columns,
    shares_figure,
)
from collegium.report.synthetic_quality import (
    MOST_DRAWN,
    html_of,
    synthetic_banner,
    synthetic_headlines,
    synthetic_sections,
)

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [18, 90]},
        "<b>city</b>": {"kind": "category", "categories": [f"city $_{n}$" for n in range(30)]},
        "smokes": {"kind": "flag"},
        "since": {"kind": "date", "bounds": ["2020-01-01", "2024-12-31"]},
        "ill": {"kind": "category", "categories": ["no", "yes"]},
    }
)


def people(n, seed):
    rng = np.random.default_rng(seed)
    age, smokes = rng.integers(18, 91, n), rng.random(n) < 0.3
    ill = rng.random(n) < 0.05 + 0.4 * smokes + 0.004 * (age - 18)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 1800, n), unit="D")
    return pd.DataFrame(
        {
            "age": age,
            "<b>city</b>": [f"city $_{n}$" for n in rng.geometric(0.2, n) % 30],
            "smokes": smokes,
            "since": days.strftime("%Y-%m-%d"),
            "ill": np.where(ill, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def quality():
    return evaluate_synthetic(
        people(2_000, 0),
        people(1_500, 1),
        schema=SCHEMA,
        target="ill",
        real=people(2_000, 2),
        public=people(60, 3),
        by="smokes",
    )


@pytest.fixture(scope="module")
def membership():
    rng = np.random.default_rng(0)
    is_in = rng.random(8_000) < 0.5
    names = np.where(rng.random(8_000) < 0.5, "strict", "free")
    scores = rng.normal(size=8_000) + 0.3 * is_in
    return {
        "Knows everybody else": judge_membership(
            scores, is_in, {"strict": 0.3, "free": 0.3}, names
        ),
        "Control without noise": judge_membership(1.0 * is_in, is_in, {"all": math.inf}),
    }


def page_of(quality, membership):
    return render_page(
        replace(
            made(),
            verdict=synthetic_banner(quality),
            sections=synthetic_sections(quality, membership),
        )
    )


def test_the_page_says_everything(quality, membership):
    html = page_of(quality, membership)
    page = check(html)
    for words in (
        quality.verdict,
        "Public rows alone",
        "Constant",
        "Sampling alone",
        "Whose distribution is this? By smokes",
        "Control without noise: all",
        "detected",
        quality.looked_at,
    ):
        assert words in page.text
    assert len(page.all("svg")) >= 3  # the columns, and both matrices
    assert "<b>city</b>" not in html


def test_tables_beside_one_another_have_rows_for_all(quality):
    [worth, pictures, groups] = synthetic_sections(quality)
    learnt, apart = (block for block in worth.blocks if block.kind == "table")
    names = [row[0] for row in learnt.rows]
    assert names == ["Synthetic table", "Real records", "Public rows alone", "Constant"]
    assert [row[0] for row in apart.rows] == [names[0], "Sampling alone", *names[1:]]
    for table in (learnt, apart, *groups.blocks):
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert len({column.name for column in table.columns}) == len(table.columns)
    assert pictures.blocks[0].kind == "figures"


def test_headlines_stand_beside_something(quality):
    headlines = synthetic_headlines(quality)
    assert [one.name for one in headlines] == [
        "AUC, logistic regression",
        "AUC, boosting",
        "Total variation of pairs",
    ]
    assert all("public rows alone" in one.note and "constant" in one.note for one in headlines)
    assert "sampling alone" in headlines[-1].note


@pytest.mark.parametrize("target", [None, "age"])
def test_without_classes_there_is_a_page_too(target):
    found = evaluate_synthetic(
        people(300, 0), people(200, 1), schema=SCHEMA, target=target, by="smokes"
    )
    page = check(page_of(found, None))
    assert ("R²" in page.text) == (target == "age")
    assert "AUC" not in page.text
    assert found.verdict in page.text


def test_a_notebook_shows_the_tables(quality):
    html = html_of(quality)
    assert html == quality._repr_html_()
    assert "<script" not in html
    assert html.count("<table") == 3
    assert quality.verdict in html


def test_a_group_that_is_too_small_has_dashes(quality):
    few = replace(quality.groups[0].tables[0], scores=(None, None), distances=())
    short = replace(quality, groups=(replace(quality.groups[0], tables=(few,)),))
    rows = synthetic_sections(short)[2].blocks[0].rows
    assert rows[0].count("—") == 4


# Pictures.


def columns(n):
    rng = np.random.default_rng(n)
    shares = [tuple(rng.dirichlet(np.ones(9))) for _ in range(2 * n)]
    return [
        ColumnShares(
            f"column {place} $x", tuple("abcdefgh$"), place % 2 == 0, *shares[2 * place :][:2]
        )
        for place in range(n)
    ]


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_panels_are_drawn_and_stay_inside(n):
    figure = shares_figure(columns(n))
    assert len(figure.axes) == n
    for axes in figure.axes:
        box = axes.get_position()
        assert 0 <= box.x0 < box.x1 <= 1
        assert 0 <= box.y0 < box.y1 <= 1


def test_odd_columns_are_drawn():
    empty = ColumnShares("empty", ("missing",), False, (1.0,), (1.0,))
    one = ColumnShares("one", ("1", "missing"), True, (1.0, 0.0), (0.0, 1.0))
    assert len(shares_figure([empty, one]).axes) == 2


def test_many_categories_are_counted_together():
    shares = tuple(np.arange(40, 0, -1) / 820)
    figure = shares_figure([ColumnShares("c", tuple(map(str, range(40))), False, shares, shares)])
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["0", "1", "2", "3", "4", "35 others"]
    widths = [patch.get_width() for patch in figure.axes[0].patches]
    assert sum(widths) == pytest.approx(1)


def test_matrices_show_what_is_known():
    values = [[1.0, None, 0.5], [None, 1.0, 0.2], [0.5, 0.2, 1.0]]
    figure = associations_figure(["a", "b", "c"], values, "title")
    squares = [patch for patch in figure.axes[0].patches if patch.get_width() == 0.94]
    assert [patch.get_alpha() for patch in squares] == [0.5, 0.2]
    assert associations_figure(["a"], [[1.0]], "title").axes


def test_of_many_columns_those_that_differ_most_are_drawn(quality):
    d = 30
    rng = np.random.default_rng(0)
    matrix = rng.random((d, d))
    other = matrix.copy()
    other[:5] += 0.5
    many = Associations(
        tuple(f"c{place}" for place in range(d)),
        tuple(map(tuple, matrix)),
        tuple(map(tuple, other)),
    )
    chosen = drawn_columns(many)
    assert len(chosen) == MOST_NAMED
    assert chosen == sorted(chosen)
    assert set(range(5)) <= set(chosen)
    wide = replace(quality, columns=tuple(columns(40)), associations=many)
    section = synthetic_sections(wide)[1]
    pictures = [
        figure for block in section.blocks if block.kind == "figures" for figure in block.shown
    ]
    assert f"the {MOST_DRAWN} that are furthest off" in section.blocks[0].text
    assert "The 20 columns that differ most, of 30." in pictures[-1].caption
    assert all(figure.svg() for figure in pictures)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on the PATH")
@pytest.mark.parametrize("width", [1200, 500])  # a window of chromium is never narrower
def test_nothing_is_wider_than_the_page(tmp_path, quality, membership, width):
    html = page_of(quality, membership)
    script = (
        "<script>document.title = document.documentElement.scrollWidth - innerWidth</script></body>"
    )
    html = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    page = tmp_path / "report.html"
    page.write_text(html.replace("</body>", script), encoding="utf-8")
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [
        shutil.which("chromium"),
        *FLAGS,
        profile,
        f"--window-size={width},900",
        "--dump-dom",
    ]
    done = subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    [title] = re.findall("<title>(.*?)</title>", done.stdout)
    assert int(title) <= 0
