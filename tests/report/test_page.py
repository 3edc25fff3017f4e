import math
import re
from dataclasses import replace

import numpy as np
import pytest
from html_checks import check

from collegium import Budget, Uniform, Upsampling, Vanishing
from collegium.accounting.statement import percent_spent
from collegium.errors import InputError
from collegium.pate.voting.aggregators import AGGREGATORS
from collegium.study.methods.votes import words
from examples import (
    DISTINCTIVE,
    EXAMPLES,
    data_dependent,
    histograms,
    make,
    no_better,
    no_truth,
    nothing_released,
    render_report,
    seeded,
    unlimited,
)

INFLUENCE, PROMISES, PLAN, RISK = range(4)  # tables with a row for each group, in their order


def row_of(page, group, nth=PROMISES):
    """Cells of a group's row, by label, in the nth table of groups."""
    cells, inside, found = {}, False, -1
    for element in page.elements:
        if element.tag == "th" and element.attributes.get("role") == "rowheader":
            inside = element.text.strip() == group
            found += inside
        elif "data-label" in element.attributes and inside and found == nth:
            cells[element.attributes["data-label"]] = " ".join(element.text.split())
    return cells


@pytest.mark.parametrize("name", EXAMPLES)
def test_pages_are_self_contained_balanced_and_deterministic(name):
    html = render_report(EXAMPLES[name]())
    check(html)
    assert html == render_report(EXAMPLES[name]())


def test_groups_are_shown_with_budgets_rounded_down_and_spending_rounded_up():
    data = make({"a": Budget(0.69314718), "b": Budget(2.77258872)})
    groups = tuple(
        replace(row, epsilon_spent=spent)
        for row, spent in zip(data.privacy.groups, (0.50001, 2.770011), strict=True)
    )
    page = check(render_report(replace(data, privacy=replace(data.privacy, groups=groups))))
    first, second = row_of(page, "a"), row_of(page, "b")
    assert first["Budget ε per person"] == "0.6931"
    assert first["Spent ε per person"] == "0.5001 (72.2 %)"
    assert first["δ"] == "1e-5"
    assert second["Budget ε per person"] == "2.7725"
    assert second["Spent ε per person"].startswith("2.7701")
    # e^ε/(1 + e^ε) at ε = ln 2 is 2/3, rounded up
    assert first["Right at most"] == "67 times in 100"
    assert "by guessing alone, 50 times" in page.text


def test_plan_is_shown_per_group():
    page = check(render_report(make(personalisation=Upsampling())))
    row = row_of(page, "low", nth=PLAN)
    assert row["Teachers per person"] == row["Individual sensitivity Δ"]
    assert row["Participation"] == "100.0 %"
    assert "upsampling" in page.text


@pytest.mark.parametrize("personalisation", [Uniform(), Upsampling(), Vanishing()])
def test_personalisations_are_explained_in_two_sentences(personalisation):
    page = check(render_report(make(personalisation=personalisation)))
    sentences = words.PERSONALISATIONS[personalisation.name]
    assert len(sentences) == 2
    assert all(sentence in page.text for sentence in sentences)


def test_worst_case_verdict():
    page = check(render_report(make()))
    assert "Worst-case guarantee" in page.text
    assert "NOT PRIVATE" not in page.text
    assert "NO PRIVACY" not in page.text
    assert "all records of one owner are added, removed or replaced" in page.text


def test_seeded_noise_is_shouted():
    page = check(render_report(seeded()))
    assert "NOT PRIVATE: seeded noise" in page.all("title")[0].text
    alerts = [e for e in page.elements if e.attributes.get("role") == "alert"]
    assert "NOT PRIVATE: seeded noise" in alerts[0].text
    assert "None of this holds" in page.text
    assert not [e for e in page.elements if "good" in e.attributes.get("class", "").split()]


def test_unlimited_budgets_are_shouted():
    page = check(render_report(unlimited()))
    alerts = [e for e in page.elements if e.attributes.get("role") == "alert"]
    assert "NO PRIVACY for level volunteers" in alerts[0].text
    assert "1,000 people granted" in alerts[0].text
    assert row_of(page, "volunteers")["Budget ε per person"] == "∞"
    assert not [e for e in page.elements if "good" in e.attributes.get("class", "").split()]


def test_overspending_is_shouted():
    data = make()
    groups = tuple(
        replace(row, epsilon_spent=row.budget.epsilon * 1.001) for row in data.privacy.groups
    )
    page = check(render_report(replace(data, privacy=replace(data.privacy, groups=groups))))
    assert "GUARANTEE BROKEN" in page.text
    assert page.text.count("OVERSPENT") == 3


def test_large_delta_is_noticed():
    assert "δ is large for group a" in check(render_report(make({"a": Budget(1.0, 0.01)}))).text
    assert "δ is large" not in check(render_report(make())).text


@pytest.mark.parametrize("reason", ["budget", "queries", "labels", "interrupted", "another reason"])
def test_no_spent_number_leaves_under_a_data_dependent_guarantee(reason):
    spent = DISTINCTIVE
    html = render_report(replace(data_dependent(spent), stop_reason=reason))
    page = check(html)
    html = re.sub(r' d="[^"]*"', "", html)  # curves have many digits, of what follows from budgets
    shares = [spent / row.budget.epsilon for row in data_dependent().privacy.groups]
    for hidden in (spent, *shares):
        assert f"{hidden:.3f}" not in html
        assert f"{100 * hidden:.1f} %" not in html
    assert str(spent)[:5] not in html
    assert "kept in the vault" in page.text
    # Labels by class, what follows from budgets alone, and what each of three budgets means.
    assert len(page.all("svg")) == 2 + 3


def test_data_dependent_pages_do_not_depend_on_what_was_spent():
    pages = {render_report(data_dependent(spent)) for spent in (0.0, 0.3, 1e9, math.inf, math.nan)}
    assert len(pages) == 1


def test_stop_by_budget_names_the_group_nearest_to_its_limit():
    data = make()
    groups = tuple(
        replace(row, epsilon_spent=row.budget.epsilon * share)
        for row, share in zip(data.privacy.groups, (0.5, 0.999, 0.7), strict=True)
    )
    page = check(render_report(replace(data, privacy=replace(data.privacy, groups=groups))))
    assert "Closest to its limit is level average" in page.text


def test_headline_numbers():
    text = check(render_report(make(labels=(1200, 34)))).text
    assert "Labels released 1,234" in text
    assert "95.7 %" in text
    assert "93.1 %" in text
    assert "n = 569" in text
    empty = check(render_report(nothing_released())).text
    assert "Labels released 0" in empty
    assert "No label was released" in empty
    assert "no history was recorded" in empty


def test_every_aggregator_is_explained_and_scaled():
    for name, cls in AGGREGATORS.items():
        settings = cls().resolved(250).settings()
        page = check(render_report(replace(make(), aggregator=settings, scale=1.5)))
        assert words.AGGREGATORS[name][1] in page.text
        rows = {}
        for element in page.elements:
            if element.tag == "code" and element.text in settings:
                rows[element.text] = words.PARAMETERS[element.text]
        assert set(rows) == set(settings) - {"name"}


def test_gamma_is_divided_and_confidence_is_left_alone():
    def scaled(name, parameter, value):
        settings = {"name": name, parameter: value}
        page = check(render_report(replace(make(), aggregator=settings, scale=2.0)))
        cells = [e for e in page.elements if e.attributes.get("data-label") == "As scaled"]
        return [cell.text for cell in cells]

    assert scaled("lnmax", "gamma", 0.05) == ["0.025"]
    assert scaled("gnmax", "sigma", np.float64(40.0)) == ["80"]
    assert scaled("interactive", "confidence", 0.9) == ["0.9"]
    assert scaled("my own", "tie break", "<first>") == ["not scaled"]


def test_statement_settings_and_references_are_complete():
    data = make()
    page = check(render_report(data))
    for sentence in data.privacy.sentences():
        assert sentence in page.text
    for key, value in (*data.settings.items(), *data.versions.items()):
        assert key in page.text
        assert value in page.text
    for number in ("1610.05755", "1802.08908", "2210.17520", "2209.15596", "PoPETs 2023", "Dong"):
        assert number in page.text
    assert "collegium account" in page.text


EVIL = "<script>alert(1)</script>\" onload='x' &amp; {{ 7 * 7 }} $\\frac{a$ \u202eevil\x00 ]]>"


def test_everything_that_users_supply_is_escaped():
    data = make({EVIL: Budget(1.0), "b": Budget(2.0)}, classes=(EVIL, "b"))
    data = replace(
        data,
        title=EVIL,
        teacher=EVIL,
        student=EVIL,
        stop_reason=EVIL,
        aggregator={"name": EVIL, EVIL: EVIL},
        settings={EVIL: EVIL},
        versions={EVIL: EVIL},
        plan=replace(data.plan, personalisation=EVIL, rule=EVIL),
        privacy=replace(data.privacy, adjacency=EVIL),
    )
    html = render_report(data)
    page = check(html)
    assert "<script" not in html
    assert "{{ 7 * 7 }}" in page.text
    assert "\x00" not in html
    assert "\u202e" not in html
    shown = page.all("h1")[0].text
    assert "<script>alert(1)</script>" in shown


def test_groups_are_matched_by_name_not_by_position():
    data = make()
    turned = replace(data.privacy, groups=data.privacy.groups[::-1])
    one = check(render_report(data))
    other = check(render_report(replace(data, privacy=turned)))
    for name in data.plan.groups:
        for table in (INFLUENCE, PROMISES, PLAN, RISK):
            assert row_of(one, name, table) == row_of(other, name, table)


def test_data_that_do_not_fit_are_refused():
    data = make()
    with pytest.raises(InputError, match="not in the plan"):
        render_report(replace(data, plan=make({"x": Budget(1.0)}).plan))


def test_classes_and_groups_show_who_shaped_the_votes_and_whom_the_student_serves():
    data = make()
    page = check(render_report(data))
    for row in data.effects.groups:
        shown = " ".join(row_of(page, row.name, INFLUENCE).values())
        assert f"{100 * row.influence_share:.1f} %" in shown
        assert f"{100 * row.student_accuracy:.1f} %" in shown
    for row in data.effects.classes:
        assert f"{100 * row.label_accuracy:.1f} %" in page.text
        assert f"{100 * row.student_accuracy:.1f} % of {row.test_records}" in page.text


def test_effects_without_truth_have_no_column_of_dashes():
    text = check(render_report(nothing_released())).text
    assert "Named by the student" not in text and "no public test record carries a level" in text


def test_notes_about_the_student_are_on_the_page():
    note = "SVC cannot take soft targets (its fit has no sample_weight): it learns labels only"
    page = check(render_report(replace(make(), student_notes=(note,))))
    assert f"About the student: {note}." in page.text


def tones(page):
    return [
        element.attributes["class"].split()[1]
        for element in page.elements
        if element.attributes.get("class", "").startswith("banner ")
    ]


def tiles(page):
    """Names of the headline figures, in their order."""
    return [element.text.strip() for element in page.all("dt")]


def test_a_good_student_under_a_good_guarantee_makes_the_page_green():
    page = check(render_report(make()))
    assert tones(page) == ["good", "good"]
    assert "The student is better than always answering “benign”" in page.text


def test_a_student_that_names_one_class_makes_no_green_page():
    page = check(render_report(no_better()))
    verdict = "The student is no better than always answering “no”"
    assert tones(page) == ["caution", "plain"]
    assert verdict in page.all("title")[0].text and page.text.index(verdict) < page.text.index(
        "Worst-case guarantee"
    )
    assert "It answers “no” for all 1,000 records." in page.text
    assert not [e for e in page.elements if "good" in e.attributes.get("class", "").split()]


def test_every_accuracy_stands_beside_what_guessing_gives():
    page = check(render_report(no_better()))
    first = ["Student accuracy", "Always answering “no”", "Balanced accuracy", "ROC AUC"]
    assert tiles(page)[:5] == [*first, "Calibration error"]
    assert "88.0 %" in page.text and "guessing gives 50.0 %" in page.text and "0.500" in page.text


def test_without_public_truth_nothing_is_called_right():
    page = check(render_report(no_truth()))
    assert tones(page) == ["plain", "plain"]
    assert "How often the student is right is unknown" in page.text
    assert tiles(page)[0] == "Student and released answers agree"
    assert not {"Student accuracy", "Labels right"} & set(tiles(page))


def test_faint_histograms_are_not_called_labels_that_are_seldom_right():
    page = check(render_report(histograms()))
    assert {"Histograms released", "Largest noisy count right"} <= set(tiles(page))
    assert not {"Labels released", "Labels right"} & set(tiles(page))
    assert "not how right the student is" in page.text
    assert "One histogram says little by itself" in page.text
    assert "they can be wrong" not in page.text
    assert "Histograms released, by class of the largest noisy count" in page.text


def test_only_an_aggregator_that_checks_is_said_to_pass_over_classes():
    caption = "Classes on which teachers disagree get fewer answers"
    assert caption in check(render_report(make())).text
    other = replace(make(), aggregator={"name": "gnmax", "sigma": 40.0})
    assert caption not in check(render_report(other)).text


def test_efficiency_is_no_headline():
    page = check(render_report(make()))
    assert not [name for name in tiles(page) if "fficiency" in name]
    assert words.EFFICIENCY in page.text


@pytest.mark.parametrize("part", [0.99701, 0.9985, 0.9989, 0.9991, 0.6667, 1.0])
def test_terminal_and_page_write_the_same_share_of_a_budget(part):
    data = make({"a": Budget(2.0)})
    rows = tuple(replace(row, epsilon_spent=2.0 * part) for row in data.privacy.groups)
    data = replace(data, privacy=replace(data.privacy, groups=rows))
    told = percent_spent(rows[0].share)
    assert f"({told})" in row_of(check(render_report(data)), "a")["Spent ε per person"]
    assert 100 * part - 1e-6 <= float(told.split()[0]) < 100 * part + 0.1
