"""The page about answers: whole, within its width, and with every answer, weight and price."""

import re

import pytest
from html_checks import check
from test_browser import CHROMIUM, chromium

from collegium import Budget
from collegium.accounting import Gaussian, GaussianAccountant
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.statement import statement
from collegium.report.page import render_page
from collegium.study.methods.statistics.page import StatisticsReport, statistics_page

GROUPS = {"high": Budget(1.0, 1e-5), "low <b>": Budget(3.0, 1e-5)}


def answer(question, cells, keys=(), notes=()):
    numbers = ("value", "standard_error", "lower", "upper")
    return {
        "question": question,
        "keys": list(keys),
        "cells": [
            {**dict(zip(keys, names, strict=True)), **dict(zip(numbers, values, strict=True))}
            for names, values in cells
        ],
        "confidence": 0.95,
        "effective": 81.2,
        "people": 90,
        "represented": [
            {"group": name, "people": 45, "share": 0.5, "weight": weight}
            for name, weight in zip(GROUPS, (0.25, 0.75), strict=True)
        ],
        "paid": [
            {"group": name, "budget": one.epsilon, "epsilon": 0.3, "share": 0.1}
            for name, one in GROUPS.items()
        ],
        "how": "saturating weights",
        "notes": list(notes),
    }


def page(private=True, lost=()):
    account = GaussianAccountant([1.0, 3.0], 1e-5, list(GROUPS))
    account.charge(Gaussian([1.0, 2.0], scale=20.0))
    long = "x" * 90
    answers = (
        answer("mean age", [((), (41.23, 0.51, 40.2, 42.2))], notes=["values <i>lean</i>"]),
        answer(
            "count by sex, job",
            [(("F", long), (12.0, 1.0, 10.0, 14.0)), (("M", "none"), (None, None, None, None))],
            ("sex", "job"),
        ),
    )
    report = StatisticsReport(
        title="People & others",
        privacy=statement(
            account, dict.fromkeys(GROUPS, 45), GROUPS, Arrangement(), private, "answers"
        ),
        answers=answers,
        lost=lost,
        noise="gaussian",
        settings={"statistics.spend": "1.0"},
        versions={"python": "3"},
    )
    return render_page(statistics_page(report))


@pytest.mark.parametrize("private", [True, False])
def test_a_page_is_whole_and_says_everything(private):
    html = page(private, lost=("median age",))
    check(html)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    assert "standard error 0.51; 95 % interval 40.20 to 42.20" in text
    assert "12.0" in text and "too few people to say" in text
    assert "81 of 90" in text and "25.0 %" in text and "0.5" in text and "1.5" in text
    assert "median age. It is not drawn again" in text and "2 of 3 are answered" in text
    assert "built-in method" not in text and "&lt;i&gt;lean" in html and "low &lt;b&gt;" in html
    assert ("NOT PRIVATE" in text) == (not private)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")
def test_no_page_is_wider_than_its_window(tmp_path):
    path, frame = tmp_path / "page.html", tmp_path / "frame.html"
    path.write_text(page(), encoding="utf-8")
    quoted = "".join(f"%{byte:02x}" for byte in page().encode())
    widths = (320, 880, 1160)
    frame.write_text(
        "<output></output>"
        + "".join(f"<iframe style='width:{w}px;height:900px;border:0'></iframe>" for w in widths)
        + f"<script>const page = decodeURIComponent('{quoted}');"
        "for (const f of document.querySelectorAll('iframe')) { f.onload = () => {"
        "const e = f.contentDocument.documentElement;"
        "document.querySelector('output').textContent += `${e.clientWidth} of ${e.scrollWidth};` };"
        "f.srcdoc = page; }</script>",
        encoding="utf-8",
    )
    dom = chromium(tmp_path, "--virtual-time-budget=20000", "--dump-dom", frame.as_uri())
    found = re.search(r"<output>(.*?)</output>", dom).group(1)
    sizes = {tuple(map(int, one.split(" of "))) for one in found.strip(";").split(";")}
    assert sizes == {(w, w) for w in widths}
