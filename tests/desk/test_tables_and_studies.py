"""Tables, questions and studies at a desk: who may do what, what is refused, and what others try."""

import gzip
import html
import io
import re
import signal
import threading
import time
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collegium import Ledger, Policy
from collegium.desk.commands import Command
from collegium.desk.tables import MOST_BYTES
from collegium.errors import InputError
from collegium.ledger import Cost
from tests.desk.house import House
from tests.desk.visits import FIXED, visits

EVIL = "<script>alert(1)</script>"
SCHEMA = 'rows_per_owner = 2\n[columns.age]\nkind = "whole"\nbounds = [0, 100]\n'


@pytest.fixture
def house(tmp_path):
    return House(tmp_path, with_levels=False)


@pytest.fixture
def desk(house):
    return Desk(house)


class Desk:
    """A steward's browser."""

    def __init__(self, house, role="steward"):
        self.house, self.browser = house, house.steward(role)

    def text(self, page):
        return self.browser.get(page, follow_redirects=True).text

    def send(self, page, action, data=None, file=None):
        forms = re.findall(r'name="form" value="([^"]+)"', self.text(page))
        data = {"form": forms[-1], **(data or {})}
        files = None if file is None else {"file": file}
        return self.browser.post(action, data=data, files=files, follow_redirects=True)

    def bring(self, name, content, kind="private", **data):
        file = (name, io.BytesIO(content if isinstance(content, bytes) else content.encode()))
        return self.send("/tables", "/tables/new", {"kind": kind, **data}, file)

    def set_levels(self, **levels):
        data = {f"name-{n}": name for n, name in enumerate(levels)}
        data |= {f"epsilon-{n}": epsilon for n, epsilon in enumerate(levels.values())}
        return self.send("/levels", "/levels", {**data, "delta": "1e-5"})

    def with_visits(self, n_people=60, n_visits=150):
        """Three levels, a private and a public table, and everybody's level from paper."""
        folder = self.house.folder
        on_paper = visits(folder, n_people, n_visits)
        self.set_levels(high="1", average="2", low="3")
        self.bring("visits.csv", (folder / "visits.csv").read_bytes())
        self.bring("others.csv", (folder / "others.csv").read_bytes(), "public")
        self.send("/tables/visits", "/tables/visits/owner", {"owner": "patient"})
        self.enter_levels("visits", column="consent")
        return on_paper

    def enter_levels(self, table, column="", level=""):
        data = {"column": column, "level": level, "sure": "yes"}
        return self.send(f"/tables/{table}", f"/tables/{table}/levels", data)

    def ask(self, questions, table="visits", percent="10"):
        """Ask at the price that was shown."""
        data = {"table": table, "questions": questions, "percent": percent}
        shown = self.send("/questions", "/questions/prices", data)
        seen = re.search('name="seen" value="(.*?)"', shown.text)
        if seen is None:
            return shown
        return self.send("/questions", "/questions/answers", {**data, "seen": seen[1]})

    def study(self, title="Who comes back"):
        data = {"title": title, "private": "visits", "public": "others", "target": "readmitted"}
        return self.send("/studies", "/studies", data)

    def until_done(self, page):
        while "http-equiv" in (text := self.text(f"{page}?watching")):
            time.sleep(0.05)
        return said(text)


def said(answer):
    text = answer if isinstance(answer, str) else answer.text
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", text.partition("<main")[2])).split())


# Levels


def test_levels_are_set_added_and_never_changed_once_they_may_have_been_chosen(desk, house):
    assert "There are none yet" in said(desk.text("/"))
    assert desk.set_levels(high="1", low="3").status_code == 200
    assert desk.set_levels(high="0,5", low="3").status_code == 200  # nobody has chosen yet
    assert house.books.policy.levels["high"].epsilon == 0.5
    house.ledger.change(house.books.policy.assign(["high"], owners=["ann"]))
    refused = desk.set_levels(high="2", low="3")
    assert refused.status_code == 400 and "People may have chosen high" in said(refused)
    assert "People may have chosen high" in said(desk.set_levels(low="3"))  # left out
    assert desk.set_levels(high="0.5", low="3", open="8").status_code == 200
    house.books.close()
    house.again()
    assert list(house.books.levels) == ["high", "low", "open"]


def test_what_levels_mean_is_explained_in_five_languages(desk):
    desk.set_levels(high="1", low="3")
    said_in = [
        desk.text(f"/levels/explained?language={code}") for code in ("en", "de", "es", "fr", "pl")
    ]
    assert len(set(said_in)) == 5 and "You choose" in said_in[0]
    assert all(
        f'?language={code}"' in desk.text("/levels") for code in ("en", "de", "es", "fr", "pl")
    )


@pytest.mark.parametrize(
    "levels, why",
    [
        ({"high": "0"}, "at least one level with a budget"),
        ({"high": "inf"}, "above 0"),
        ({"high": "nan"}, "greater than 0"),
        ({"high": "-1"}, "greater than 0"),
        ({"high": "much"}, "must be a number"),
        ({"a=1,b": "1"}, "leave commas"),
        ({}, "no level was given"),
    ],
)
def test_levels_that_mean_nothing_are_refused(desk, house, levels, why):
    answer = desk.set_levels(**levels)
    assert answer.status_code == 400 and why in said(answer).casefold()
    assert house.books.stated is None


def test_without_levels_there_is_nothing_to_choose_and_nobody_is_entered(desk, house):
    desk.bring("t.csv", "who,age\nann,3\n")
    desk.send("/tables/t", "/tables/t/owner", {"owner": "who"})
    answers = [
        desk.send("/tables/t", "/people/links", {"table": "t", "days": "3"}),
        desk.send("/tables/t", "/tables/t/levels", {"column": "", "level": "high"}),
    ]
    assert all(one.status_code == 400 and "no levels yet" in said(one) for one in answers)
    assert house.ledger.standings() == []


# Tables


def _bomb():
    zeros = pa.array(np.zeros(7_000_000, np.int8))
    table = pa.table({f"c{number}": zeros for number in range(20)})
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def _zip():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.csv", b"0" * 50_000_000)
    return content.getvalue()


@pytest.mark.parametrize(
    "name, content, why",
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"who,age\n", "no row below its header"),
        ("t.csv", b"\x00\x01\xff" * 100, "t.csv"),
        ("t.csv", b"a,a\n1,2\n", "t.csv"),
        ("t.csv", b"who,age\nann,1,2\n", "t.csv"),
        ("t.csv", lambda: gzip.compress(b"who\n" + b"0" * 50_000_000), "t.csv"),
        ("t.csv.gz", lambda: gzip.compress(b"who\nann\n"), "no table that the desk reads"),
        ("t.zip", _zip, "no table that the desk reads"),
        ("t.csv", _zip, "t.csv"),
        ("t.parquet", _zip, "t.parquet"),
        ("t.parquet", _bomb, "far more than a file of its size"),
        ("t.xlsx", b"PK", "no table that the desk reads"),
        ("page.html", b"<html>", "no table that the desk reads"),
        ("../../t.csv", b"who\nann\n", ""),
        ("..csv", b"who\nann\n", "cannot be the name"),
        (f"{EVIL}.csv", b"who\nann\n", "cannot be the name"),
    ],
    ids=lambda one: one if isinstance(one, str) and len(one) < 20 else "",
)
def test_an_upload_that_is_no_table_leaves_nothing_behind(desk, house, name, content, why):
    answer = desk.bring(name, content() if callable(content) else content)
    files = sorted((house.folder / "desk" / "tables").rglob("*"))
    if not why:  # a path in a file's name is none: it is a table of its last part
        assert [path.name for path in files] == ["t.csv", "t.json"]
        return
    assert answer.status_code == 400 and why in said(answer) and EVIL not in answer.text
    assert str(house.folder) not in answer.text
    assert files == []


def test_a_table_takes_256_mb_and_nobody_else_fills_the_disk(house):
    desk = Desk(house)

    def endless():
        for _ in range(2 * 2**30 // 2**20):
            yield b"0" * 2**20

    large = {"content-type": "multipart/form-data; boundary=x"}
    for browser, length in ((house.browser(), 2 * 2**30), (desk.browser, 2 * 2**30)):
        headers = {**large, "content-length": str(length)}
        answer = browser.post("/tables/new", content=b"", headers=headers)
        assert answer.status_code == 413
    assert house.browser().post("/tables/new", content=endless(), headers=large).status_code == 303
    other = desk.browser.post("/people/links", content=b"0" * (5 * 2**20), headers=large)
    assert other.status_code == 413 and MOST_BYTES == 256 * 2**20
    assert not any((house.folder / "desk" / "tables").iterdir())


def test_a_name_is_taken_once_and_both_forms_of_tables_are_read(desk, house):
    assert desk.bring("t.csv", "who;age\nann;3\nbob;4\n").status_code == 200
    again = desk.bring("T.csv", "who,age\nann,3\n")
    assert again.status_code == 400 and "There is a table" in said(again)
    content = io.BytesIO()
    pd.DataFrame({"who": [1, 2], "age": [3, 4]}).to_parquet(content)
    assert "Private, 2 rows. Columns: who , age" in said(
        desk.bring("p.parquet", content.getvalue())
    )
    desk.set_levels(high="1")
    for name, column in (("t", "who"), ("p", "who")):
        desk.send(f"/tables/{name}", f"/tables/{name}/owner", {"owner": column})
        sent = desk.enter_levels(name, level="high")
        assert "2 people joined" in said(sent)
    out = house.folder / "granted.csv"
    house.books.tables.write_granted(house.books.tables["t"], house.ledger, out)
    assert out.read_text() == "who;age;privacy\nann;3;high\nbob;4;high\n"
    out = house.folder / "granted.parquet"
    house.books.tables.write_granted(house.books.tables["p"], house.ledger, out)
    assert pd.read_parquet(out).to_dict("list") == {
        "who": [1, 2], "age": [3, 4], "privacy": ["high", "high"],
    }  # fmt: skip


def test_only_rows_of_those_who_grant_something_are_ever_written(desk, house):
    desk.set_levels(high="1", low="3")
    desk.bring("t.csv", "who,privacy\nann,low\nbob,high\ncy,high\nann,low\n")
    desk.send("/tables/t", "/tables/t/owner", {"owner": "who"})
    policy = house.books.policy
    house.ledger.change(policy.assign(["high", "low"], owners=["ann", "bob"]))
    house.ledger.forget("bob")
    out = house.folder / "granted.csv"
    house.books.tables.write_granted(house.books.tables["t"], house.ledger, out)
    assert (
        out.read_text() == "who,privacy\nann,high\nann,high\n"
    )  # as the ledger says, not the table
    asked = desk.send("/tables/t", "/tables/t/levels", {"column": "privacy", "level": ""})
    assert "Would join: 1 with high." in said(asked)
    sent = desk.enter_levels("t", column="privacy")
    assert "1 people joined" in said(sent) and "2 had a level before" in said(sent)
    ann, bob, cy = house.ledger.accounts_of(["ann", "bob", "cy"])
    assert ann.standing.level == "high" and bob.standing.has_left and cy.standing.level == "high"


def test_levels_of_a_table_that_mean_nothing_enter_nobody(desk, house):
    desk.set_levels(high="1", low="3")
    desk.bring("t.csv", "who,a,b,c\nann,high,high,\nann,high,low,high\nbob,secret,low,low\n")
    sent = desk.send("/tables/t", "/tables/t/levels", {"column": "a", "level": ""})
    assert "Say first in which column" in said(sent)
    desk.send("/tables/t", "/tables/t/owner", {"owner": "who"})
    for data in (
        {"column": "a", "level": ""},  # an unknown level
        {"column": "b", "level": ""},  # one person, two levels
        {"column": "d", "level": ""},
        {"column": "", "level": ""},
        {"column": "b", "level": "high"},
    ):
        sent = desk.send("/tables/t", "/tables/t/levels", data)
        assert sent.status_code == 400, said(sent)
        assert "secret" not in sent.text  # what stands in private rows is not shown
    assert house.ledger.standings() == []
    desk.bring("u.csv", "who,age\nann,1\n,2\n")
    refused = desk.send("/tables/u", "/tables/u/owner", {"owner": "who"})
    assert "1 of 2 rows have no name" in said(refused)


def test_a_schema_is_made_of_public_rows_alone_and_stays_once_it_was_used(desk, house):
    desk.with_visits()
    for text in ("", "columns = 3", "[columns.weight]\nkind = 'whole'\nbounds = [0, 1]\n", EVIL):
        refused = desk.send("/tables/visits", "/tables/visits/schema", {"schema": text})
        assert refused.status_code == 400 and EVIL not in refused.text
    refused = desk.send("/tables/visits", "/tables/visits/draft", {"public": "visits", "rows": "1"})
    assert "is not public" in said(refused)
    drafted = desk.send("/tables/visits", "/tables/visits/draft", {"public": "others", "rows": "2"})
    assert "rows_per_owner = 2\n" in html.unescape(drafted.text)
    sent = desk.send("/tables/visits", "/tables/visits/schema", {"schema": SCHEMA})
    assert "questions can be asked" in said(sent)
    assert desk.ask("count").status_code == 200
    refused = desk.send("/tables/visits", "/tables/visits/schema", {"schema": SCHEMA + "\n"})
    assert "it stays" in said(refused)
    sent = desk.send("/tables/visits", "/tables/visits/remove")
    assert "Remove this table?" in sent.text and "visits" in desk.text("/tables")
    desk.send("/tables/visits", "/tables/visits/remove", {"sure": "yes"})
    assert "/tables/visits" not in desk.text("/tables")
    kept = [path.name for path in (house.folder / "desk" / "answers").iterdir()]
    assert "visits.1.removed" in kept  # what was paid for is not thrown away


def _content(path):
    return path.read_bytes() if path.is_file() else b""


def test_of_several_rows_of_a_person_all_join_once_and_nobody_who_chose_is_changed(desk, house):
    rng = np.random.default_rng(3)
    desk.set_levels(high="1", average="2", low="3")
    who = rng.permutation(np.repeat([f"p{n}" for n in range(50)], rng.integers(1, 7, 50)))
    consent = dict(
        zip([f"p{n}" for n in range(50)], rng.choice(["high", "low", ""], 50), strict=True)
    )
    rows = "\n".join(f"{one},{consent[one]},{n}" for n, one in enumerate(who))
    desk.bring("t.csv", f"who,consent,age\n{rows}\n")
    desk.send("/tables/t", "/tables/t/owner", {"owner": "who"})
    chose = ["p3", "p41", "p17"]
    house.ledger.change(house.books.policy.assign(["average"] * 3, owners=chose))
    silent = [one for one, level in consent.items() if not level]
    new = [one for one, level in consent.items() if level and one not in chose]
    asked = desk.send("/tables/t", "/tables/t/levels", {"column": "consent", "level": ""})
    assert f"{len(silent)} people have no level in this column" in said(asked)
    assert house.books.ledger.accounts_of(new) == [None] * len(new)  # nothing is entered before
    sent = desk.enter_levels("t", column="consent")
    assert f"{len(new)} people joined" in said(sent)
    for _ in range(2):  # also when it is entered again, and with one level for everybody
        granted = dict(zip(consent, house.ledger.levels_of(list(consent)), strict=True))
        assert granted == {
            one: "average" if one in chose else level or None for one, level in consent.items()
        }
        again = desk.send("/tables/t", "/tables/t/levels", {"column": "consent", "level": ""})
        assert "Nobody would join" in said(again)
        assert "0 people joined" in said(desk.enter_levels("t", column="consent"))
    still = [one for one in silent if one not in chose]
    sent = desk.enter_levels("t", level="low")
    assert f"{len(still)} people joined" in said(sent)
    assert house.ledger.levels_of(still) == ["low"] * len(still)
    assert house.ledger.levels_of(chose) == ["average"] * 3
    assert sum(one.owners for one in house.ledger.standings()) == 50


def test_a_table_that_a_study_needs_stays_and_private_rows_are_no_public_ones(desk, house):
    desk.with_visits(300, 800)
    desk.study()
    for name in ("visits", "others"):
        sent = desk.send(f"/tables/{name}", f"/tables/{name}/remove", {"sure": "yes"})
        assert sent.status_code == 400 and "Who comes back uses it" in said(sent)
    rows = (house.folder / "visits.csv").read_bytes()
    assert "are in it than chance" not in said(desk.text("/tables/others"))
    brought = desk.bring("mistaken.csv", rows, "public")
    assert "More rows of visits are in it than chance explains" in said(brought)
    sent = desk.send("/tables/visits", "/tables/visits/draft", {"public": "mistaken", "rows": "1"})
    assert sent.status_code == 400 and "mistaken has rows of visits in it" in said(sent)


def test_new_links_replace_others_after_asking_and_who_left_comes_back(desk, house):
    desk.with_visits()
    sent = desk.send(
        "/people", "/people/links", {"names": "patient-0001\npatient-0002", "days": "3"}
    )
    first = dict(line.split(",") for line in sent.text.splitlines()[1:])
    asked = desk.send("/tables/visits", "/people/links", {"table": "visits", "days": "3"})
    assert "2 of these 60 people have a link" in said(asked)
    link = first["patient-0001"].removeprefix("http://127.0.0.1:8765")
    assert house.browser().get(link).status_code == 200
    form = re.findall(r'name="form" value="([^"]+)"', asked.text)[-1]
    data = {"form": form, "table": "visits", "days": "3", "sure": "yes"}
    again = desk.browser.post("/people/links", data=data)
    assert len(again.text.splitlines()) == 61 and house.browser().get(link).status_code == 404
    desk.send("/people", "/people/leaves", {"name": "patient-0001", "sure": "yes"})
    back = {"name": "patient-0001", "level": "low"}
    assert "They are back" in said(desk.send("/people", "/people/back", back))
    assert house.ledger.levels_of(["patient-0001"]) == ["low"]
    refused = desk.send("/people", "/people/back", back)
    assert "Nobody of this name has left" in said(refused)
    sent = desk.send("/people", "/people/revoke", {"names": "patient-0002\npatiemt-0003"})
    assert "1 link was ended. 1 of these names had none" in said(sent)


# Questions


def test_whoever_asks_has_seen_the_price(desk, house):
    desk.with_visits()
    desk.send("/tables/visits", "/tables/visits/schema", {"schema": SCHEMA})
    data = {"table": "visits", "questions": "mean age\nmedian age", "percent": "10"}
    shown = desk.send("/questions", "/questions/prices", data)
    assert "of all ranks" in said(shown)  # an error of a median is none in years
    seen = re.search('name="seen" value="(.*?)"', shown.text)[1]
    desk.ask("mean age")  # in another window
    later = desk.send("/questions", "/questions/answers", {**data, "seen": seen})
    assert "The price has changed since you saw it" in said(later)
    assert len(house.ledger.releases()) == 1
    seen = re.search('name="seen" value="(.*?)"', later.text)[1]
    assert "median age" in said(
        desk.send("/questions", "/questions/answers", {**data, "seen": seen})
    )
    assert len(house.ledger.releases()) == 2


def test_questions_that_cannot_be_asked_cost_nothing(desk, house):
    desk.with_visits()
    asked = {"table": "visits", "questions": "mean age", "percent": "10"}
    assert (
        "say first what is publicly known"
        in said(desk.send("/questions", "/questions/prices", asked)).casefold()
    )
    desk.send("/tables/visits", "/tables/visits/schema", {"schema": SCHEMA})
    for change, why in (
        ({"questions": ""}, "no question was given"),
        ({"questions": "mean of everything"}, ""),
        ({"questions": f"mean {EVIL}"}, ""),
        ({"questions": "--plan"}, ""),
        ({"questions": "\n".join(f"mean age where age > {n}" for n in range(51))}, "at most 50"),
        ({"percent": "0"}, "from 0.1 to 100"),
        ({"percent": "101"}, "from 0.1 to 100"),
        ({"percent": "nan"}, "from 0.1 to 100"),
        ({"percent": "all"}, "must be a number"),
        ({"table": "others"}, ""),
        ({"table": "../people"}, "cannot be the name"),
        ({"table": "nobody"}, "there is no table"),
    ):
        actions = ("/questions/prices", "/questions/answers")
        for action in actions if why else actions[:1]:  # what the command refuses, it refuses alike
            sent = desk.send("/questions", action, {**asked, **change})
            assert sent.status_code == 400 and why in said(sent).casefold(), (change, said(sent))
            assert EVIL not in sent.text
        if "questions" in change and not why:  # what was written is still there
            back = sent
            assert html.escape(change["questions"]).replace("&#x27;", "&#39;") in back.text
    assert house.ledger.releases() == []
    assert not (house.folder / "desk" / "asked" / "visits.csv").exists()


def test_of_two_who_ask_at_once_one_waits(desk, house):
    desk.with_visits()
    desk.send("/tables/visits", "/tables/visits/schema", {"schema": SCHEMA})
    asked = {"table": "visits", "questions": "mean age", "percent": "10"}
    others, answers = [Desk(house) for _ in range(3)], []
    threads = [
        threading.Thread(
            target=lambda one=one: answers.append(
                one.send("/questions", "/questions/answers", asked)
            )
        )
        for one in others
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(one.status_code for one in answers)[0] == 200
    assert all(one.status_code == 200 or "wait for their answers" in said(one) for one in answers)
    assert len(house.ledger.releases()) <= 1  # and whoever came later got the same answer, for free


# Studies


def test_a_study_asks_once_and_is_stopped_resumed_and_never_run_twice(desk, house):
    desk.with_visits()
    made = desk.study()
    page = "/studies/who-comes-back"
    assert made.url.path == page and "not planned yet" in said(made)
    assert "There is a study" in said(desk.study("Who comes BACK"))
    text = (house.folder / "desk" / "studies" / "who-comes-back" / "study.toml").read_text()
    assert desk.send(page, f"{page}/settings", {"text": text + FIXED}).status_code == 200
    desk.send(page, f"{page}/plan")
    assert "planned" in desk.until_done(page)
    plan = desk.browser.get(f"{page}/plan")
    assert (
        "What everybody pays" in plan.text and "sandbox" in plan.headers["content-security-policy"]
    )
    assert "spent for good" in said(desk.send(page, f"{page}/run"))
    assert house.ledger.releases() == []
    desk.send(page, f"{page}/run", {"sure": "yes"})
    refused = desk.send(page, f"{page}/run", {"sure": "yes"})
    assert "still running" in said(refused) or "finished" in said(refused)
    assert "finished" in desk.until_done(page)
    assert len(house.ledger.releases()) == 1
    for action in ("run", "settings"):
        sent = desk.send(page, f"{page}/{action}", {"sure": "yes", "text": text})
        assert sent.status_code == 400
    for name in ("report.html", "privacy.json", "student.skops"):
        assert desk.browser.get(f"{page}/release/{name}").status_code == 200
    for name in ("key", "..%2Fvault%2Fkey", "%2e%2e/vault/key", "journal.jsonl", EVIL):
        sent = desk.browser.get(f"{page}/release/{name}")
        assert sent.status_code in (400, 404) and EVIL not in sent.text
    report = house.folder / "desk/studies/who-comes-back/study/release/report.html"
    report.write_text("forged")
    assert "is not what was released" in said(desk.browser.get(f"{page}/release/report.html"))
    assert "visits" in said(desk.send("/tables/visits", "/tables/visits/remove"))
    desk.send("/tables/visits", "/tables/visits/remove", {"sure": "yes"})
    desk.send(page, f"{page}/remove", {"sure": "yes"})
    left = [path for path in (house.folder / "desk").rglob("*") if b"patient-" in _content(path)]
    assert (
        left == [] and len(house.ledger.releases()) == 1
    )  # no row of anybody is left, and the account is


def test_a_studys_settings_lead_to_no_other_file_people_or_place(desk, house):
    desk.with_visits()
    desk.study()
    page = "/studies/who-comes-back"
    text = (house.folder / "desk" / "studies" / "who-comes-back" / "study.toml").read_text()
    elsewhere = house.folder / "secret.csv"
    elsewhere.write_text("patient,age\nann,1\n")
    for changed in (
        text.replace("../../tables/others.csv", str(elsewhere)),
        text.replace('owner = "patient"', 'owner = "age"'),
        text.replace("high = 1.0", "high = 9.0"),
        f"{text}\n[ledger]\nurl = 'none'\n",
        f"{text}\n[run]\nengine = 'ray'\n",
        f"{text}\n[parties]\nroom = 'x'\n",
        f"{text}\n[features]\nweights = '{elsewhere}'\n",
        text.replace("[privacy]", "[pricavy]"),
        "not toml",
        f"data = 3\n{text.replace('[data]', '[other]')}",
    ):
        sent = desk.send(page, f"{page}/settings", {"text": changed})
        assert sent.status_code == 400, changed
    folder = house.folder / "desk" / "studies" / "who-comes-back"
    assert (folder / "study.toml").read_text() == text
    assert not (folder / ".new.toml").exists()
    assert "Remove this study?" in desk.send(page, f"{page}/remove").text and folder.exists()
    desk.send(page, f"{page}/remove", {"sure": "yes"})
    assert not folder.exists()


def test_a_study_that_cannot_be_made_leaves_nothing_behind(desk, house):
    desk.with_visits()
    for data, why in (
        ({"title": ""}, "title"),
        ({"title": "???"}, "is no title"),
        ({"private": "others"}, "private table"),
        ({"public": "visits"}, "public one"),
        ({"target": "weight"}, "“column to predict”"),
        ({"private": "nobody"}, "there is no table"),
    ):
        given = {"title": "T", "private": "visits", "public": "others", "target": "readmitted"}
        sent = desk.send("/studies", "/studies", {**given, **data})
        assert sent.status_code == 400 and why in said(sent).casefold(), (data, said(sent))
    assert list((house.folder / "desk" / "studies").iterdir()) == []


def test_names_that_others_wrote_are_shown_and_never_obeyed(desk, house):
    desk.set_levels(**{"<b>high": "1"})
    table = f"who,{EVIL},age\nann,1,2\n"
    shown = desk.bring("t.csv", table)
    assert EVIL not in shown.text and html.escape(EVIL) in shown.text
    desk.send("/tables/t", "/tables/t/owner", {"owner": "who"})
    for page in ("/", "/levels", "/tables", "/tables/t", "/questions", "/studies", "/history"):
        assert EVIL not in desk.text(page) and "<b>high" not in desk.text(page)
    desk.with_visits()
    title = f"T {EVIL}"[:60]
    made = desk.study(title)
    assert made.status_code == 200 and EVIL not in made.text and EVIL not in desk.text("/studies")


def test_a_table_that_changes_under_a_study_is_noticed(desk, house):
    desk.with_visits()
    desk.study()
    page, folder = "/studies/who-comes-back", house.folder / "desk" / "studies" / "who-comes-back"
    text = (folder / "study.toml").read_text()
    desk.send(page, f"{page}/settings", {"text": text + FIXED})
    public = house.folder / "desk" / "tables" / "others.csv"
    public.write_text("age,sex\n")
    desk.send(page, f"{page}/plan")
    told = desk.until_done(page)
    assert "It was not planned" in told and "others.csv" in told
    assert house.ledger.releases() == []


# Roles


def test_a_reader_looks_and_does_nothing(desk, house):
    desk.with_visits()
    desk.study()
    reader = Desk(house, "reader")
    pages = ("/", "/levels", "/tables", "/tables/visits", "/questions", "/studies")
    for page in (*pages, "/studies/who-comes-back", "/people", "/history"):
        text = reader.text(page)
        assert text.count("<form") == 1, page  # that signs out
    before = list((house.folder / "desk").rglob("*"))
    study = "/studies/who-comes-back"
    for action in (
        "/levels", "/tables/new", "/tables/visits/owner", "/tables/visits/levels", "/tables/visits/draft",
        "/tables/visits/schema", "/tables/visits/remove", "/questions/prices", "/questions/answers",
        "/studies", f"{study}/plan", f"{study}/run", f"{study}/stop", f"{study}/settings",
        f"{study}/remove", "/releases/settle", "/people/links",
    ):  # fmt: skip
        assert reader.send("/", action, {"sure": "yes"}).status_code == 403, action
        stranger = house.browser().post(action, data={"sure": "yes"})
        assert stranger.status_code == 303 and stranger.headers["location"] == "/in"
        forged = desk.browser.post(action, data={"form": "forged", "sure": "yes"})
        assert forged.status_code == 409
    assert list((house.folder / "desk").rglob("*")) == before


# Commands


def test_a_command_goes_on_without_its_desk_is_stopped_and_says_why_it_failed(tmp_path):
    command = Command(tmp_path / "command", {})
    assert command.state() is None
    command.start(["ledger", "init", "a.ledger"], tmp_path)
    again = Command(tmp_path / "command", {})  # as another desk finds it
    while again.state().is_running:
        time.sleep(0.02)
    state = again.state()
    assert state.has_worked and state.said.startswith("Made ") and not state.error
    with pytest.raises(InputError, match="already"):
        command.done(["ledger", "init", "a.ledger"], tmp_path)
    before = signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # as of what a script starts in the background
    command.start(["demo", "--out", "demo"], tmp_path)
    signal.signal(signal.SIGINT, before)
    with pytest.raises(InputError, match="still running"):
        again.start(["ledger", "init", "b.ledger"], tmp_path)
    again.stop()
    while command.state().is_running:
        time.sleep(0.05)
    state = command.state()
    assert state.code in (130, -2) and state.error and "Interrupt" not in state.error


def test_a_reservation_whose_program_is_gone_is_ended_at_the_desk(desk, house):
    desk.with_visits()
    people = Policy({"high": 1.0}).assign(["high"], owners=["ann"])
    house.ledger.change(people)
    cost = Cost(mu_squared=0.001)
    house.ledger.reserve(
        "lost", "A count", people, {"high": cost}, neighbours=house.ledger.neighbours
    )
    assert "A count (lost)" in said(desk.text("/"))
    refused = desk.send("/", "/releases/settle", {"name": "lost", "reason": ""})
    assert "say how it is known" in said(refused).casefold()
    desk.send(
        "/", "/releases/settle", {"name": "lost", "reason": "its machine burnt, says the steward"}
    )
    ledger = Ledger(house.folder / "people.ledger")
    ((release, least, _),) = ledger.releases()
    assert release.is_settled and release.costs == release.reserved and least > 0
