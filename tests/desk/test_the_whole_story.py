"""The whole story of a desk in a real browser: tables, levels, links, a question, two studies, receipts."""

import math
import re

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from collegium import Ledger
from collegium.ledger.export import as_json
from tests.desk.chromium import CHROMIUM, Browser
from tests.desk.house import Served
from tests.desk.visits import FIXED, LEVELS, N_PEOPLE, name_of, visits

N_CHOOSE, N_CHANGE = 40, 3
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")


class Steward:
    """Whoever sits at the desk: goes from page to page, and looks at each in three widths."""

    def __init__(self, house, folder):
        self.house, self.browser, self.wide = house, Browser(folder), []

    def at(self, page):
        self.browser.open(self.house.address + page)
        self.look()

    def look(self):
        self.wide += [
            (self.browser.tell("location.pathname"), width)
            for width in (400, 800, 1200)
            if self.browser.is_wider_than(width)
        ]

    def press(self, text):
        self.browser.press(text)
        self.look()
        return self.browser.text()

    def until_done(self):
        """Wait as a person does: the page looks again by itself."""
        while self.browser.tell("!!document.querySelector('meta[http-equiv]')"):
            self.browser.until_loaded()
        self.look()
        return self.browser.text()


def test_from_a_table_to_two_studies(tmp_path):
    on_paper = visits(tmp_path)
    house = Served(tmp_path, with_levels=False)
    steward = Steward(house, tmp_path)
    try:
        _story(steward, house, tmp_path, on_paper)
    finally:
        steward.browser.close()
        house.close()


def _story(steward, house, folder, on_paper):
    browser = steward.browser
    browser.open(house.address)
    browser.type("#secret", house.secrets["steward"])
    browser.enter()
    assert "How to begin" in browser.text()
    links = _prepare(steward, house, folder)
    _people_choose(steward, links)
    chosen = {name_of(n): list(LEVELS)[(n + (n < N_CHANGE)) % 3] for n in range(N_CHOOSE)}
    gone = name_of(N_CHANGE)

    steward.at("/tables/visits")
    browser.select("#column", "consent")
    assert "Whoever has a level" in steward.press("Enter levels")
    said = steward.press("Yes, enter them")
    assert f"{N_PEOPLE - N_CHOOSE} people joined" in said and f"{N_CHOOSE} had a level" in said
    ledger = Ledger(folder / "people.ledger")
    accounts = dict(zip(on_paper, ledger.accounts_of(list(on_paper)), strict=True))
    for name, account in accounts.items():
        assert account.standing.level == chosen.get(name, on_paper[name])
        assert account.standing.has_left == (name == gone)

    _ask(steward)
    _first_study(steward)
    _second_study(steward)
    _receipts_agree(steward, links, [name_of(n) for n in (0, 5, 39, 200, 999)], gone)

    for page in ("/", "/people", "/history"):
        steward.at(page)
    assert "a person left" in browser.text()
    assert "Secret" in steward.press("Sign out (steward)")
    ours = re.compile(re.escape(house.address) + r"(/.*)?$")
    assert all(ours.match(request) for request in browser.requests)
    assert browser.complaints == [] and steward.wide == []
    released = [one for one, _, _ in ledger.releases()]
    assert [one.n_owners for one in released] == [N_PEOPLE - 1] * 3
    assert all(one.is_settled for one in released)
    ledger.verify()


def _prepare(steward, house, folder):
    """Levels, tables, links."""
    browser = steward.browser
    steward.at("/levels")
    assert steward.press("Set the levels").count("The levels are set") == 1
    steward.at("/levels")
    assert all(f"{name}: ε = {epsilon:g}" in browser.text() for name, epsilon in LEVELS.items())
    for file, kind in (("visits.csv", "private"), ("others.csv", "public")):
        steward.at("/tables")
        browser.give("#file", folder / file)
        browser.select(f"input[value={kind}]", True)
        steward.press("Bring it")
        assert kind.capitalize() in browser.text()
    steward.at("/tables/visits")
    browser.select("#owner", "patient")
    assert "1,000 people, of whom 0 have a level" in steward.press("Say so")
    browser.press("Make links for everybody here", loads=False)
    rows = [line.split(",") for line in browser.downloaded("links*.csv").splitlines()[1:]]
    assert len(rows) == N_PEOPLE
    return dict(rows)


def _people_choose(steward, links):
    browser = steward.browser
    for number in range(N_CHOOSE):
        browser.open(links[name_of(number)])
        browser.tell(f"document.querySelectorAll('section.level button')[{number % 3}].focus()")
        browser.enter()
        assert "Your choice has been entered." in browser.text()
        if number < N_CHANGE:
            at = (number + 1) % 3
            browser.tell(f"document.querySelector('button[value=\"{at}\"]').focus()")
            browser.enter()
            assert "Your choice has been entered." in browser.text()
        if number == N_CHANGE:
            browser.press("I want to leave")
            browser.press("Yes, I leave")
            assert "You have left." in browser.text()


def _ask(steward):
    browser = steward.browser
    steward.at("/tables/visits")
    browser.fill("#rows", "4")
    steward.press("Draft it")
    assert "[columns.stay]" in browser.tell("document.querySelector('#schema').value")
    assert "questions can be asked" in steward.press("Keep it")
    steward.at("/questions")
    browser.type("#questions", "mean stay by sex\ncount")
    assert "5 % of each person's budget" in steward.press("What would it cost?")
    assert "Nothing is spent yet" in browser.text()
    said = steward.press("Ask, at this price")
    assert re.search(r"F: [\d.]+ ± [\d.]+ \(", said) and "5 % of each person's budget" in said
    steward.at("/questions")  # what is asked again is free, and the same
    browser.type("#questions", "mean stay by sex\ncount")
    assert steward.press("What would it cost?").count("answered before, so it is free") == 2
    again = steward.press("Ask, at this price")
    values = re.compile(r"[FM]: [^\n]*|count: [^\n]*")
    assert values.findall(again) == values.findall(said)


def _first_study(steward):
    browser = steward.browser
    steward.at("/studies")
    browser.type("#title", "Who comes back?")
    browser.type("#target", "readmitted")
    assert "not planned yet" in steward.press("Make it")
    steward.press("Plan it")
    assert "About visits: planned." in steward.until_done()
    steward.at("/studies/who-comes-back/plan")
    assert "What everybody pays" in browser.text()
    steward.at("/studies/who-comes-back")
    asked = steward.press("Run it")
    assert "spent for good" in asked and "Expected: " in asked and "It takes at most" in asked
    steward.press("Yes, run it")
    assert "About visits: finished." in steward.until_done()
    steward.at("/studies/who-comes-back/release/report.html")
    assert "Who comes back?" in browser.text() and "What is published" in browser.text()


def _second_study(steward):
    browser = steward.browser
    steward.at("/studies")
    browser.type("#title", "Who comes back, again")
    browser.type("#target", "readmitted")
    steward.press("Make it")
    browser.press("Its settings", loads=False)
    text = browser.tell("document.querySelector('#text').value")
    assert 'owner = "patient"' in text
    browser.fill("#text", text + FIXED)
    assert "The settings are changed" in steward.press("Change it")
    steward.press("Back")
    steward.press("Plan it")
    assert "About visits: planned." in steward.until_done()
    steward.press("Run it")
    steward.press("Yes, run it")
    assert "About visits: finished." in steward.until_done()


def _receipts_agree(steward, links, names, gone):
    """What people read about each release, and about all of them, is what the ledger has, to the digit.

    Computed again from what `collegium ledger export` prints, by the formulas of docs/ledger.md.
    """
    browser = steward.browser
    ledger = Ledger(steward.house.folder / "people.ledger")
    releases = as_json(ledger)["releases"]
    for name in [*names, gone]:
        if name == gone:  # whose link opens nothing any more
            steward.at("/people")
            browser.type("#name", gone)
            shown = steward.press("Show the receipt")
            assert "(up to " not in shown and "No release" in shown
            continue
        browser.open(links[name])
        rows = browser.tell("[...document.querySelectorAll('tbody tr')].map(one => one.innerText)")
        account = ledger.account_of(name)
        limit = _limit(account.standing.budget.epsilon, 1e-5)
        parts = [
            100 * releases[charge.release.id]["parts"][charge.part][0] / limit**2
            for charge in account.charges
        ]
        assert len(parts) == len(rows) == 3
        for row, part in zip(rows, parts, strict=True):
            assert float(re.search(r"([\d.]+) %", row)[1]) == _up(part)
        used = re.search(r"So far, ([\d.]+) % of your budget was used", browser.text())[1]
        assert float(used) == _up(sum(parts))


def _limit(epsilon, delta, share=0.01):
    """The largest mu for which delta_0 + (1 - delta_0) delta_mu(epsilon) is at most delta."""

    def at(mu):
        a, b = (norm.cdf(sign * mu / 2 - epsilon / mu) for sign in (1, -1))
        return share * delta + (1 - share * delta) * (a - math.exp(epsilon) * b) - delta

    return brentq(at, 1e-3, 10, xtol=1e-15)


def _up(percent):
    """Rounded up to a tenth, but for what the last bits of a sum do."""
    return math.ceil(10 * percent - 1e-6) / 10
