"""Whatever the numbers and names are, there is a page, and it says what it must."""

import math
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from html_checks import check
from hypothesis import given, settings
from hypothesis import strategies as st

import collegium.report
from collegium import Budget, Uniform
from collegium.accounting.statement import GroupSpending
from collegium.evaluation.quality import PUBLIC, RELEASED, TEST
from collegium.pate.voting.history import SpendingPoint
from collegium.report.numbers import clean, display_width, down, interval, shorten, up
from examples import make, render_report

names = st.text(min_size=1, max_size=30).filter(str.strip)
epsilons = st.one_of(st.floats(1e-6, 1e6), st.just(math.inf))
amounts = st.one_of(st.floats(0, 1e12), st.just(math.inf), st.just(math.nan))


def qualities(quality):
    shares, maybe = st.floats(0, 1), st.one_of(st.none(), st.floats(0, 1))
    return st.builds(
        replace,
        st.just(quality),
        verdict=names,
        reason=names,
        better=st.sampled_from([True, False, None]),
        tells_apart=st.sampled_from([True, False, None]),
        measured_on=st.sampled_from([TEST, PUBLIC, RELEASED]),
        n=st.integers(1, 10**7),
        accuracy=shares,
        majority=names,
        majority_share=shares,
        balanced_accuracy=shares,
        chance=st.sampled_from([1.0, 0.5, 0.01]),
        auc=maybe,
        calibration_error=maybe,
    )


@st.composite
def reports(draw):
    groups = draw(
        st.dictionaries(
            names, st.builds(Budget, epsilons, st.floats(1e-12, 0.5)), min_size=1, max_size=8
        )
    )
    n_classes = draw(st.sampled_from([2, 3, 24, 25, 100]))
    labels = tuple(draw(st.lists(st.integers(0, 10**6), min_size=n_classes, max_size=n_classes)))
    data = make(groups, personalisation=Uniform(), classes=("x",) * n_classes, labels=labels)
    history = draw(
        st.lists(
            st.builds(
                SpendingPoint,
                st.integers(0, 10**7),
                st.integers(0, 10**6),
                st.fixed_dictionaries(dict.fromkeys(groups, amounts)),
            ),
            max_size=3,
        )
    )
    rows = tuple(
        GroupSpending(name, draw(st.integers(0, 10**8)), budget, draw(amounts))
        for name, budget in groups.items()
    )
    privacy = replace(
        data.privacy,
        guarantee=draw(st.sampled_from(["worst-case", "data-dependent"])),
        noise_is_private=draw(st.booleans()),
        groups=rows,
    )
    return replace(
        data,
        title=draw(names),
        privacy=privacy,
        history=history,
        scale=draw(st.floats(0, 1e6)),
        stop_reason=draw(st.sampled_from(["budget", "queries", "labels", "interrupted"])),
        label_accuracy=draw(st.one_of(st.none(), st.floats(0, 1))),
        quality=draw(st.one_of(st.none(), qualities(data.quality))),
        n_test=draw(st.integers(0, 10**6)),
    )


@settings(max_examples=12)  # figures are drawn: a fifth of a second each time
@given(reports())
def test_every_report_is_a_sound_page(data):
    page = check(render_report(data))
    assert ("NOT PRIVATE: seeded noise" in page.text) is not data.privacy.noise_is_private
    for row in data.privacy.groups:
        if row.budget.is_unlimited and data.privacy.noise_is_private:
            assert "NO PRIVACY" in page.text
    drawn = data.privacy.may_publish_spending and bool(data.history)
    limited = any(not row.budget.is_unlimited for row in data.privacy.groups)
    meanings = len(data.privacy.shown)
    assert len(page.all("svg")) == drawn + bool(sum(data.labels_per_class)) + limited + meanings


@given(st.floats(1e-12, 1e15))
def test_budgets_are_rounded_down_and_costs_up(value):
    exact = Decimal(repr(value))
    below, above = Decimal(down(value)), Decimal(up(value))
    assert below <= exact <= above
    assert above - below <= exact / 900


@given(st.text(max_size=60), st.integers(2, 30))
def test_shortened_names_fit(text, width):
    assert display_width(shorten(text, width)) <= width
    assert shorten(text, width) == clean(text) or shorten(text, width).endswith("…")


@given(st.floats(0, 1), st.integers(1, 10**6))
def test_intervals_contain_the_rate(rate, n):
    low, high = interval(rate, n)
    assert 0 <= low <= rate + 1e-12
    assert rate - 1e-12 <= high <= 1


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_texts_and_lines_have_enough_contrast_in_both_schemes(scheme):
    """WCAG 2.2, AA: 4.5 for text (labels of lines are text)."""
    style = (Path(collegium.report.__file__).parent / "style.html.j2").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{([^}]*--page[^}]*)\}", style)
    assert len(blocks) == 2
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[scheme]))
    for name, colour in colours.items():
        if name.startswith("series") or name in ("ink", "muted", "accent", "danger"):
            assert _contrast(colour, colours["page"]) >= 4.5, name
        if name.endswith("-back"):
            assert _contrast(colours[name.removesuffix("-back")], colour) >= 4.5, name
            assert _contrast(colours["ink"], colour) >= 4.5, name
    assert _contrast(colours["ink"], colours["panel"]) >= 4.5
