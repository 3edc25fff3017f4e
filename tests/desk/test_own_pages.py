"""A person's page: their choice lands in the ledger, once, and nothing of others is seen."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from collegium.ledger import Cost
from collegium.report.languages import LANGUAGES
from tests.desk.house import ADDRESS, House, choose
from tests.report.html_checks import read


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def level_of(house, name):
    account = house.ledger.account_of(name)
    return None if account is None else account.standing.level


def test_choices_changes_and_leaving_are_entered(house):
    links = house.links(["ann", "bob"])
    browser = house.browser()
    assert "No release has used your records yet." in browser.get(links["ann"]).text
    answer = choose(browser, links["ann"], "0")
    assert answer.status_code == 303 and answer.headers["location"].endswith("told=entered")
    assert "Your choice has been entered." in browser.get(answer.headers["location"]).text
    assert level_of(house, "ann") == "high" and level_of(house, "bob") is None
    choose(browser, links["ann"], "2")
    assert level_of(house, "ann") == "low <b>"
    page = browser.get(links["ann"]).text
    assert (
        page.count("This is your level now.") == 1 and "low &lt;b&gt;" in page and "<b>" not in page
    )
    sure = browser.get(f"{links['ann']}leave").text
    assert "Do you want to leave?" in sure
    version = re.search(r'name="version" value="(\d+)"', sure)[1]
    browser.post(f"{links['ann']}leave", data={"version": version})  # without being sure
    assert not house.ledger.account_of("ann").standing.has_left
    browser.post(f"{links['ann']}leave", data={"version": version, "sure": "yes"})
    assert house.ledger.account_of("ann").standing.has_left
    gone = browser.get(links["ann"]).text
    assert "You have left." in gone and "<form" not in gone
    answer = browser.post(f"{links['ann']}choice", data={"level": "0", "version": "3"})
    assert house.ledger.account_of("ann").standing.has_left
    kinds = [entry.kind for entry in house.ledger.history()]
    assert kinds == ["begin", "join", "change", "leave"]


def test_a_form_of_an_older_page_changes_nothing(house):
    (link,) = house.links(["ann"]).values()
    browser = house.browser()
    choose(browser, link, "0")
    old = {"level": "2", "version": "1"}
    assert browser.post(f"{link}choice", data=old).headers["location"].endswith("told=entered")
    choose(browser, link, "1")
    answer = browser.post(f"{link}choice", data=old)  # replayed
    assert "your account has changed since" in browser.get(answer.headers["location"]).text
    assert level_of(house, "ann") == "average"
    for level in ("3", "-1", "x", "", "9" * 50):
        answer = browser.post(f"{link}choice", data={"level": level, "version": "3"})
        assert "no level was chosen" in browser.get(answer.headers["location"]).text
    assert level_of(house, "ann") == "average"


def test_of_two_forms_of_one_page_one_is_entered(house):
    for number in range(10):
        (link,) = house.links([f"person {number}"]).values()
        choose(house.browser(), link, "0")
        forms = [
            ("choice", {"level": "1", "version": "1"}),
            ("choice", {"level": "2", "version": "1"}),
            ("leave", {"sure": "yes", "version": "1"}),
        ]
        with ThreadPoolExecutor(3) as threads:
            sent = [
                threads.submit(house.browser().post, link + to, data=data) for to, data in forms
            ]
        ends = [one.result() for one in sent]
        assert [one.status_code for one in ends] == [303] * 3
        assert sum(one.headers["location"].endswith("entered") for one in ends) == 1
        assert len(house.ledger.account_of(f"person {number}").grants) == 2


def test_a_page_shows_what_the_receipt_says(house):
    (link,) = house.links(["ann"]).values()
    browser = house.browser()
    choose(browser, link, "0")
    budgets = house.books.policy.assign(["high"], owners=["ann"])
    costs = {"high": Cost(0.01), "average": Cost(0.0), "low <b>": Cost(0.0)}
    release = house.ledger.reserve(
        "1", "Count of <i>beds</i>", budgets, costs, neighbours=house.ledger.neighbours
    )
    release.settle(costs)
    page = browser.get(link).text
    assert "1 release has used your records." in page
    assert "Count of &lt;i&gt;beds&lt;/i&gt;" in page and "<i>" not in page


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_language_is_a_sound_page(house, code):
    (link,) = house.links(["Zoë <script>"]).values()
    browser = house.browser()
    choose(browser, link, "0")
    for address in (link, f"{link}leave", "/me/nothing/"):
        answer = browser.get(f"{address}?language={code}")
        page = read(answer.text)
        assert len(page.all("h1")) == 1 and page.all("main") and not page.all("script")
        assert page.all("html")[0].attributes["lang"] == code
    assert browser.get(link, headers={"accept-language": f"nl, {code}-XX;q=0.5"}).text == (
        browser.get(f"{link}?language={code}").text
    )


def test_what_opens_nothing_says_the_same_whatever_the_reason(house):
    """A link that expired, was ended, replaced or never was; whoever holds it learns nothing else."""
    names = ["expired", "ended", "replaced"]
    first = house.links(names[:1], days="1")
    first |= house.links(names[1:])
    house.later(days=2)
    steward = house.steward()
    second = house.links(["replaced"], browser=steward)
    assert house.books.revoke(["ended", "nobody"]) == 1
    browser = house.browser()
    pages = {browser.get(link).text for link in first.values()}
    pages |= {browser.get(f"/me/{token}/").text for token in ("x", "ann", "A" * 43, "%00", "é")}
    assert len(pages) == 1
    assert {browser.get(link).status_code for link in first.values()} == {404}
    for link in first.values():
        assert browser.post(f"{link}choice", data={"level": "0", "version": "0"}).status_code == 404
        assert browser.post(f"{link}leave", data={"sure": "yes", "version": "0"}).status_code == 404
    assert browser.get(second["replaced"]).status_code == 200
    assert not house.ledger.standings()
    house.later(days=-3)  # the clock is put back
    assert browser.get(first["expired"]).status_code == 404


def test_10_000_guesses_open_nothing(house):
    (link,) = house.links(["ann"]).values()
    token = link.split("/")[2]
    found = [house.books.links.name_of(f"{token[:-1]}{letter}") for letter in "AEIMQUYcgkosw048"]
    assert found.count("ann") <= 1
    guesses = (f"{token[: n % 40]}{n}" for n in range(10_000))
    assert all(house.books.links.name_of(guess) is None for guess in guesses)


def test_neither_the_desks_files_nor_its_log_hold_a_name_or_a_link(house):
    links = house.links(["Ann Archer", "Bob Baker"])
    browser = house.browser()
    for link in links.values():
        choose(browser, link, "0")
    house.steward().get("/history")
    kept = b"".join(
        path.read_bytes() for path in (house.folder / "desk").rglob("*") if path.is_file()
    )
    kept += "\n".join(house.log).encode()
    for name, link in links.items():
        assert name.encode() not in kept and name.split()[0].encode() not in kept
        assert link.split("/")[2].encode() not in kept
    assert any(line.endswith("own_page 200 person") for line in house.log)
    assert all(
        (house.folder / "desk" / name).stat().st_mode & 0o077 == 0
        for name in ("links.sqlite", "secrets.json")
    )


def test_nobody_learns_who_else_is_there(house):
    """The page of somebody whom the ledger does not know is the same whoever else it knows."""
    (link,) = house.links(["ann"]).values()
    browser = house.browser()
    before = browser.get(link).text
    others = house.books.policy.assign(["high", "average"], owners=["bob", "cy"])
    house.ledger.change(others)
    assert browser.get(link).text == before and ADDRESS not in before
