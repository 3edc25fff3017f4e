"""What a notebook shows: the rows of terminal and page, as HTML that needs nothing and runs nothing."""

from __future__ import annotations

import copy
import math
import pickle
import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from html_checks import Page, read
from rich.console import Console

from collegium import Budgets, DPSGDClassifier, Policy, Weighting
from collegium.cli import recommended
from collegium.planner.candidates import Candidate
from collegium.planner.expected import Expected
from collegium.planner.recommend import Consent, Recommendation
from collegium.report.notebook import html_of
from collegium.report.plans import plan_table, steps_table
from collegium.report.promise import IN_VAULT, spending_table
from collegium.report.sections import Table
from examples import make

EVIL = "<script>alert('x')</script> & \"more\""
POLICY = Policy({EVIL: 1.0, "low": 3.0, "none": 0, "gift": math.inf}, public=["gift"])
BUDGETS = POLICY.assign([EVIL] * 40 + ["low"] * 20)
FOREIGN = ("script", "link", "img", "iframe", "object", "a", "form")


@cache
def shown() -> dict[str, Any]:
    candidate = Candidate(
        "direct training", {"dpsgd": {"steps": 3}}, {"dpsgd.steps": EVIL}, DPSGDClassifier, 7
    )
    return {
        "policy": POLICY,
        "budgets": BUDGETS,
        "statement": make(dict(POLICY.levels)).privacy,
        "steps": DPSGDClassifier(steps=3).plan(BUDGETS),
        "votes": Weighting().plan(dict(BUDGETS.groups), {EVIL: 40, "low": 20}, 10),
        "recommendation": Recommendation(
            candidate,
            candidate.sections,
            Expected("accuracy", 0.7, 0.8, 0.9, "rehearsed", 0.5),
            gigabytes=1000.0,  # more than this process takes, which a terminal counts as well
            consent=(Consent(EVIL, 40, 1.0, 2.0, 1.5, 0.02),),
            notes=("the model would be no better than one answer", "another note"),
        ),
    }


def page_of(thing: Any) -> Page:
    return read(f"<!DOCTYPE html><html><body>{thing._repr_html_()}</body></html>")


def cells(page: Page) -> list[str]:
    return [" ".join(one.text.split()) for one in page.elements if one.tag in ("th", "td")]


@pytest.mark.parametrize("name", shown())
def test_names_are_text_and_nothing_comes_from_outside(name: str) -> None:
    html, page = shown()[name]._repr_html_(), page_of(shown()[name])
    assert not [tag for tag in FOREIGN if page.all(tag)]
    assert not any(
        attribute.startswith("on") for one in page.elements for attribute in one.attributes
    )
    assert not re.search(r"https?:|url\(|@import|javascript:", html)
    assert EVIL in page.text and EVIL not in html and len(html) < 6_000
    assert len(page.all("table")) == len(page.all("caption")) == 1
    for style in page.all("style"):  # it changes nothing else on the page, and takes its colours
        rules = [rule.split("{") for rule in style.text.split("}") if rule.strip()]
        assert all(".collegium" in one for names, _ in rules for one in names.split(","))
        assert not re.search(r"#[0-9a-fA-F]{3,}|white|black", style.text.replace("white-space", ""))


@pytest.mark.parametrize("name", shown())
def test_the_rows_are_those_of_the_terminal(name: str) -> None:
    thing = shown()[name]
    tables: dict[str, Any] = {
        "statement": spending_table, "steps": steps_table, "votes": plan_table,
    }  # fmt: skip
    found = cells(page_of(thing))
    if name in tables:
        table: Table = tables[name](thing)
        written = [
            *(one.name for one in table.columns),
            *(str(x) for row in table.rows for x in row),
        ]
        assert found == written
    elif name == "recommendation":
        assert found == ["key", "value", "why", "dpsgd.steps", "3", EVIL]
    else:
        assert {EVIL, "low", "1", "3", "1e-5"} <= set(found)


def test_a_recommendation_says_on_a_page_what_it_says_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("out", "err"):
        monkeypatch.setattr(recommended, name, Console(width=1000, markup=False))
    recommended.show_choice(shown()["recommendation"])
    said = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    text = page_of(shown()["recommendation"]).text
    for line in said[2:]:
        assert line in text


def test_a_policy_says_how_often_somebody_can_be_right() -> None:
    page = page_of(
        Policy({"none": 0, "high": 1.0, "open": math.inf, "gift": math.inf}, public=["gift"])
    )
    found = cells(page)[4:]
    rows = {found[i]: found[i + 1 : i + 4] for i in range(0, len(found), 4)}
    assert rows == {
        "high": ["1", "1e-5", "56"], "open": ["∞", "1e-5", "100"],
        "none": ["0", "", "50"], "gift": ["∞", "", "100"],
    }  # fmt: skip
    assert "Records of gift are published as they are" in page.text


def test_of_many_budgets_a_few_are_shown() -> None:
    page = page_of(Budgets.from_epsilons(np.linspace(1, 3, 500)))
    assert len(page.all("tr")) == 11
    assert "10 of 500 groups are shown" in page.text and "group_sizes() has all" in page.text


def test_what_is_sensitive_or_not_private_is_said_and_not_shown() -> None:
    statement = shown()["statement"]
    spent = replace(statement, guarantee="data-dependent")
    text = page_of(spent).text
    assert IN_VAULT in text
    for row in statement.groups:
        assert f"{row.epsilon_spent:.3f}" not in text
    seeded = page_of(replace(statement, noise_is_private=False))
    assert "NOT PRIVATE: seeded noise" in seeded.text
    assert (
        "Not said otherwise." in page_of(replace(statement, provisos=("Not said otherwise",))).text
    )


def test_objects_are_copied_and_kept_as_before() -> None:
    for name in ("statement", "steps", "votes"):
        thing = shown()[name]
        assert copy.deepcopy(thing) == thing and pickle.loads(pickle.dumps(thing)) == thing
    with pytest.raises(TypeError, match="SimpleNamespace has no rows"):
        html_of(SimpleNamespace())
