"""Pages of steward and reader: who gets in, what a form may do, and what a browser is told."""

import pytest

from collegium.desk.application import application
from collegium.desk.books import Books
from collegium.desk.guard import MOST_BYTES
from collegium.errors import InputError
from collegium.ledger import Cost
from tests.desk.house import ADDRESS, House, choose, form_of
from tests.report.html_checks import read

PAGES = ["/", "/people", "/history"]
FORMS = ["/people/links", "/people/revoke", "/people/receipt", "/people/leaves"]


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


@pytest.mark.parametrize("address", PAGES)
def test_nothing_is_shown_to_whoever_has_not_signed_in(house, address):
    for browser in (house.browser(), house.browser(cookies={"collegium-desk": "x" * 43})):
        answer = browser.get(address)
        assert (answer.status_code, answer.headers["location"]) == (303, "/in")


@pytest.mark.parametrize("address", FORMS)
def test_nothing_is_done_for_whoever_has_not_signed_in_or_only_reads(house, address):
    shown = form_of(house.steward(), address)
    given = {"form": shown, "names": "ann", "name": "ann", "days": "3", "sure": "yes"}
    assert house.browser().post(address, data=given).headers["location"] == "/in"
    reader = house.steward("reader")
    assert reader.get("/").status_code == 200 and "<textarea" not in reader.get("/people").text
    answer = reader.post(address, data=given)
    assert answer.status_code == 403 and "Only the steward" in answer.text
    assert house.books.links.counts().good == 0


@pytest.mark.parametrize("address", FORMS)
def test_a_form_is_sent_once_by_whoever_was_shown_it(house, address):
    house.ledger.change(house.books.policy.assign(["high"], owners=["ann"]))
    steward, other = house.steward(), house.steward()
    given = {"names": "ann", "name": "ann", "days": "3"}
    for form in ("", "forged", form_of(other, address)):
        answer = steward.post(address, data={**given, "form": form})
        assert answer.status_code == 409 and "Nothing was done" in answer.text
    shown = form_of(steward, address)
    assert steward.post(address, data={**given, "form": shown}).status_code == 200
    assert steward.post(address, data={**given, "form": shown}).status_code == 409


def test_sessions_end_and_secrets_are_kept_as_hashes(house):
    steward = house.steward()
    house.seconds[0] += 29 * 60
    assert steward.get("/").status_code == 200
    house.seconds[0] += 31 * 60
    assert steward.get("/").status_code == 303
    steward = house.steward()
    for _ in range(17):
        house.seconds[0] += 29 * 60
        steward.get("/")
    assert steward.get("/").status_code == 303  # a day's work is over
    steward = house.steward()
    name = steward.cookies["collegium-desk"]
    steward.post("/out", data={"form": form_of(steward, "/out")})
    assert house.browser(cookies={"collegium-desk": name}).get("/").status_code == 303
    kept = (house.folder / "desk" / "secrets.json").read_text()
    assert not any(secret in kept for secret in house.secrets.values())
    house.books.close()
    house.open()  # the same secrets after a start
    assert house.books.new_secrets == {} and house.steward().get("/").status_code == 200


def test_guessing_a_secret_takes_ever_longer(house):
    browser = house.browser()
    for _ in range(5):
        assert browser.post("/in", data={"secret": "wrong"}).status_code == 403
    ends = [
        browser.post("/in", data={"secret": house.secrets["steward"]}).status_code
        for _ in range(100)
    ]
    assert set(ends) == {429}
    waited = 0.0
    for _ in range(10):
        house.seconds[0] += 30.0
        waited += 30.0
        assert browser.post("/in", data={"secret": "wrong"}).status_code == 403
        house.seconds[0] += 29.0 if waited > 180 else 0.0
    house.seconds[0] += 30.0
    assert house.steward().get("/").status_code == 200


def test_what_a_browser_is_told(house):
    steward = house.steward()
    (link,) = house.links(["ann"]).values()
    for address in (*PAGES, "/in", link, "/style.css", "/nothing"):
        answer = steward.get(address)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src" not in policy
        assert (
            "frame-ancestors 'none'" in policy
            and answer.headers["referrer-policy"] == "no-referrer"
        )
        assert answer.headers["x-content-type-options"] == "nosniff"
        if address != "/style.css":
            assert answer.headers["cache-control"] == "no-store"
            assert "http://" not in answer.text.replace(ADDRESS, "") and "//" not in answer.text
    cookie = (
        house.browser().post("/in", data={"secret": house.secrets["steward"]}).headers["set-cookie"]
    )
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    house.app = application(house.books, "https://privacy.example.org", house.log.append)
    signed_in = house.browser().post("/in", data={"secret": house.secrets["steward"]})
    assert "Secure" in signed_in.headers["set-cookie"]


def test_a_name_of_another_site_is_refused(house):
    for host in ("evil.example", "127.0.0.1.evil.example", "", "evil.example:8765"):
        assert house.browser().get("/in", headers={"host": host}).status_code == 421
    for host in ("localhost:8765", "127.0.0.1", "[::1]:8765", "LOCALHOST"):
        assert house.browser().get("/in", headers={"host": host}).status_code == 200


def test_too_much_is_refused_before_it_is_kept(house):
    steward = house.steward()
    shown = form_of(steward, "/people/links")

    def sends():
        for _ in range(MOST_BYTES // 2**16 + 2):
            yield b"x" * 2**16

    headers = {"content-type": "application/x-www-form-urlencoded"}
    for content in (b"x" * (MOST_BYTES + 1), sends()):
        assert steward.post("/people/links", content=content, headers=headers).status_code == 413
    answer = steward.post("/in", content=b"", headers={**headers, "content-length": str(2 * 2**30)})
    assert answer.status_code == 413
    given = {"form": shown, "days": "3"}
    bomb = {"file": ("names.csv", b"PK\x03\x04" + bytes(1000) + b"\xff", "text/csv")}
    answer = steward.post("/people/links", data=given, files=bomb)
    assert answer.status_code == 400 and "is no text" in answer.text


def test_a_line_is_one_name_whatever_is_in_it(house):
    names = ["Müller, Jörg", "Müller, Eva", '"Bob" Smith', '"Never closed', "a;b", "O'Neil"]
    steward = house.steward()
    given = {"form": form_of(steward, "/people/links"), "days": "3", "names": "\r\n".join(names)}
    answer = steward.post("/people/links", data=given)
    assert answer.status_code == 200 and house.books.links.counts().good == len(names)
    (other,) = house.links(["Never Seen"]).values()
    given = {"form": form_of(steward, "/people/revoke"), "names": "Never Seen, Ann\nMüller, Eva"}
    assert "1 link was ended." in steward.post("/people/revoke", data=given).text
    assert house.browser().get(other).status_code == 200
    for content, said in (
        (b'"never closed', "is no table"),
        (b"a\x00b", "cannot be printed"),
        (b"", "No name was given"),
    ):
        given = {"form": form_of(steward, "/people/links"), "days": "3"}
        files = {"file": ("names.csv", content, "text/csv")}
        answer = steward.post("/people/links", data=given, files=files)
        assert answer.status_code == 400 and said in answer.text


def test_names_come_from_a_file_too_and_formulas_are_harmless(house):
    steward = house.steward()
    given = {"form": form_of(steward, "/people/links"), "days": "3"}
    table = "=HYPERLINK(1),old\nann,x\nann,y\n\n  bob\n007\n".encode("utf-8-sig")
    answer = steward.post(
        "/people/links", data=given, files={"file": ("names.csv", table, "text/csv")}
    )
    assert [line.split(",")[0] for line in answer.text.splitlines()] == [
        "person", "'=HYPERLINK(1)", "ann", "bob", "007",
    ]  # fmt: skip
    assert house.books.links.counts().good == 4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"names": " \n"}, "No name was given"),
        ({"names": "ann", "days": "x"}, "for how many days"),
        ({"names": "ann", "days": "0"}, "1 to 366 days, got 0"),
        ({"names": "ann", "days": "9999999"}, "1 to 366 days"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(house, given, said):
    steward = house.steward()
    shown = form_of(steward, "/people/links")
    answer = steward.post("/people/links", data={"days": "3", **given, "form": shown})
    assert answer.status_code == 400 and said in answer.text
    assert house.books.links.counts().good == 0


def test_a_person_leaves_after_the_steward_was_asked_once(house):
    links = house.links(["ann"])
    choose(house.browser(), links["ann"], "0")
    steward = house.steward()
    given = {"form": form_of(steward, "/people/leaves"), "name": "ann"}
    asked = steward.post("/people/leaves", data=given)
    assert "Does this person leave?" in asked.text
    assert not house.ledger.account_of("ann").standing.has_left
    given["form"] = read(asked.text).all("input")[-2].attributes["value"]
    steward.post("/people/leaves", data={**given, "sure": "yes"})
    assert house.ledger.account_of("ann").standing.has_left
    assert house.browser().get(links["ann"]).status_code == 404
    given["form"] = form_of(steward, "/people/leaves")
    assert "has left already" in steward.post("/people/leaves", data=given).text
    given = {"form": form_of(steward, "/people/leaves"), "name": "nobody"}
    assert "knows nobody of this name" in steward.post("/people/leaves", data=given).text


def test_what_others_wrote_is_shown_and_never_obeyed(house):
    evil = "<script>alert(1)</script>\x1b[2J\u202e"
    house.ledger.change(house.books.policy.assign(["low <b>"], owners=[evil]))
    steward = house.steward()
    texts = [steward.get(address).text for address in PAGES]
    for address in ("/people/receipt", "/people/leaves"):
        given = {"form": form_of(steward, address), "name": evil}
        texts.append(steward.post(address, data=given).text)
    for text in texts:
        page = read(text)
        assert (
            not page.all("script")
            and not page.all("b")
            and "\x1b" not in text
            and "\u202e" not in text
        )
    assert any("&lt;script&gt;" in text for text in texts)


def test_the_overview_has_a_row_for_each_level_whatever_people_paid(house):
    names = [f"person {number}" for number in range(6)]
    budgets = house.books.policy.assign(["high"] * 3 + ["average"] * 3, owners=names)
    house.ledger.change(budgets)
    house.ledger.reserve(
        "1",
        "Some of them",
        budgets,
        [Cost(0.01), Cost(0.0)],
        [0, 1, 1, 1, 1, 1],
        neighbours=house.ledger.neighbours,
    )
    house.ledger.forget("person 5")
    rows = read(house.steward().get("/").text).all("tr")
    assert len(rows) == 4 and len(house.ledger.standings()) == 4
    text = house.steward().get("/").text
    assert "86.0 % to 100.0 %" in text and "have left" in text


def test_one_desk_has_a_folder(house):
    with pytest.raises(InputError, match="another desk uses"):
        Books(house.ledger, house.levels, house.folder / "desk")
