"""What each level means for those who are to choose: the words of a receipt, on one page."""

import math
import re

import pytest
from html_checks import check

from collegium import Ledger, Policy
from collegium.accounting.neighbours import ROW, Arrangement
from collegium.errors import InputError
from collegium.report import in_plain_words as words
from collegium.report.policy_page import explain
from collegium.report.receipt import receipt_of
from collegium.study.policy_file import read_policy

POLICY = Policy({"high": 1.0, "low": 3.0, "<open>": math.inf})
STUDY = """
[data]
private = "a.csv"
public = "b.csv"
target = "y"
{data}
[privacy]
levels = {{ high = 1.0, low = 3.0 }}
column = "privacy"
{privacy}
[aggregation]
{aggregation}
"""


def in_one_line(page):
    return " ".join(page.as_text().split())


def test_a_level_is_promised_in_the_words_of_its_receipts(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger")
    ledger.change(Policy({"high": 1.0, "low": 3.0}).assign(["high", "low"], owners=["ann", "bob"]))
    page = explain(POLICY)
    for (name, promised, _), owner in zip(page.levels, ["ann", "bob"], strict=False):
        receipt = receipt_of(owner, ledger.account_of(owner), ledger.neighbours)
        assert promised == receipt.promise and page.game in receipt.meaning
        assert receipt.chosen[0].split("“")[1].split("”")[0] in name


def test_all_that_somebody_must_know_is_there():
    text = in_one_line(explain(POLICY))
    assert re.findall(r"at most (\d+) times", text) == ["56", "65"]
    for said in (words.BUDGET, words.NO_LIMIT, words.SAYING_NO, words.CHANGING, words.LEAVING):
        assert said in text
    assert all(said in text for said in words.SMALL_PRINT) and words.BY_RECORD not in text
    assert "ε = 1, δ = 1e-5" in text and "ε = 0" in text and "∞" not in text


def test_the_page_says_the_same():
    explained = explain(POLICY)
    page = check(explained.as_html())
    for said in (words.BUDGET, words.LEAVING, explained.game, *explained.small_print):
        assert said in page.text
    assert "If you choose “<open>”" in page.text


def test_records_that_have_no_owners_and_records_that_are_only_replaced():
    text = in_one_line(explain(POLICY, Arrangement(unit=ROW, assignment="balanced")))
    assert words.BY_RECORD in text and "or were there other records in their place?" in text


@pytest.mark.parametrize(
    ("content", "right"),
    [
        ("delta = 1e-5\n[levels]\nhigh = 1\nlow = 3.0", ["56", "65"]),
        ("levels = { high = 1.0 }", ["56"]),
        ("[privacy]\nlevels = { high = 1.0 }\ndelta = 0.3", ["77"]),
        (STUDY.format(data='owner = "p"', privacy="", aggregation=""), ["56", "65"]),
    ],
)
def test_a_policy_is_read_from_a_study_or_alone(collegium, tmp_path, content, right):
    file, page = tmp_path / "policy.toml", tmp_path / "levels.html"
    file.write_text(content)
    code, printed, _ = collegium("policy", "explain", file)
    assert code == 0 and re.findall(r"at\s+most\s+(\d+)\s+times", printed) == right
    assert "Here each record counts by itself" not in printed
    code, _, _ = collegium("policy", "explain", file, "--html", page)
    assert code == 0 and page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    code, printed, _ = collegium("policy", "explain", file, "--promise", "pure")
    pure = re.findall(r"at\s+most\s+(\d+)\s+times", printed)
    assert code == 0 and pure == ["74", "96"][: len(right)] and "δ =" not in printed
    code, _, error = collegium("policy", "explain", file, "--html", page)
    assert (code, error.count("\n")) == (2, 1) and "exists already" in error


def test_what_a_study_of_direct_training_promises(tmp_path):
    study, file = STUDY.format(data='owner = "p"', privacy="", aggregation=""), tmp_path / "s.toml"
    method = '[method]\nkind = "dpsgd"\n[dpsgd]\n'
    for dpsgd, neighbours in (("", "ADD_OR_REMOVE"), ('neighbours = "replace-one"', "ANY_CHANGE")):
        file.write_text(study.replace("[aggregation]", method + dpsgd))
        assert read_policy(file).arrangement.neighbours.name == neighbours
    file.write_text(study.replace("[aggregation]", method + 'noise = "seeded"'))
    with pytest.raises(InputError, match=r"nothing is promised .* dpsgd\.noise = 'secure'"):
        read_policy(file)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "Here each record counts by itself."),
        ({"data": "public_records = 5\nprivate_records = 5"}, None),
        ({"privacy": 'guarantee = "data-dependent"'}, None),
        ({"aggregation": 'aggregator = "gnmax"\nnoise = "seeded"\nnoise_seed = 1'}, None),
    ],
)
def test_what_a_study_says_of_its_records(collegium, tmp_path, settings, said):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(**{"data": "", "privacy": "", "aggregation": "", **settings}))
    code, printed, error = collegium("policy", "explain", file)
    if said is None:
        assert (code, printed, error.count("\n")) == (2, "", 1)
    else:
        assert said in printed


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("levels = { high = -1 }", "or 0 for people who grant nothing"),
        ("levels = {}", "at least one level"),
        ("levels = 3", "must be a table"),
        ("levle = { high = 1 }", "did you mean 'levels'?"),
        ("delta = 1e-5", "there are no levels to explain"),
        ("levels = { high = 1 }\ndelta = 2", "between 0 and 1"),
        ("privacy = 3", "must be a section"),
        ('[privacy]\ncolumn = "epsilon"', "there are no levels to explain"),
        ('levels = { high = 1 }\nguarantee = "data-dependent"', "no promise to people"),
        ("levels = ", "is not valid TOML"),
    ],
)
def test_bad_policies_are_refused_in_one_line(collegium, tmp_path, content, said):
    file = tmp_path / "policy.toml"
    file.write_text(content)
    code, printed, error = collegium("policy", "explain", file)
    assert (code, printed, error.count("\n")) == (2, "", 1) and said in error


def test_who_gives_the_records_away_is_told_so(collegium, tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text('levels = { high = 1, gift = inf }\npublic = ["gift"]\n')
    code, printed, error = collegium("policy", "explain", file)
    assert code == 0, error
    assert "If you choose “gift”" in printed and "published as they" in printed


def test_the_ledger_of_a_study_says_what_it_promises(collegium, tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text(STUDY.format(data='owner = "p"', privacy="", aggregation=""))
    text = file.read_text().replace("[data]", '[ledger]\nurl = "pure.ledger"\n[data]')
    file.write_text(text)
    Ledger.create(tmp_path / "pure.ledger", promise="pure")
    code, printed, _ = collegium("policy", "explain", file)
    assert code == 0 and re.findall(r"at\s+most\s+(\d+)\s+times", printed) == ["74", "96"]
    code, _, error = collegium("policy", "explain", file, "--promise", "gaussian")
    assert (code, error.count("\n")) == (2, 1) and "the study's ledger promises pure" in error
