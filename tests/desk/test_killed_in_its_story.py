"""A desk is killed at any moment of its story: nothing is lost, and nothing is charged twice."""

import contextlib
import multiprocessing
import os
import re
import signal
import threading
import time

import httpx2
import numpy as np
import psutil

from collegium import Ledger
from tests.desk.house import ADDRESS, House, free_port, serve_again, wait_for
from tests.desk.visits import FIXED, LEVELS, name_of, visits

N_PEOPLE, N_VISITS, N_CHOOSE, KILLS = 1_000, 3_000, 4, 20
QUESTION = "mean stay by sex"


class Killer:
    """A desk that ends now and then, and whoever sits before it and goes on."""

    def __init__(self, folder):
        house = House(folder, with_levels=False)
        self.secret, self.folder = house.secrets["steward"], folder
        house.books.close()
        self.rng, self.kills, self.cut_off = np.random.default_rng(2028), 0, 0
        self.links = {}
        self.desk = None
        self.open()

    def open(self):
        self.port = free_port()
        self.desk = multiprocessing.get_context("fork").Process(
            target=serve_again, args=(self.folder, self.port)
        )
        self.desk.start()
        wait_for(self.port)
        self.client = httpx2.Client(
            base_url=f"http://127.0.0.1:{self.port}", follow_redirects=True, timeout=300
        )
        assert self.client.post("/in", data={"secret": self.secret}).status_code == 200

    def close(self):
        self.client.close()
        os.kill(self.desk.pid, signal.SIGKILL)
        self.desk.join()

    def text(self, page):
        return self.client.get(page).text

    def send(self, page, action, data, files=None):
        """Press a button, as often as it takes until the desk lives through it; the last answer's text."""
        form = re.findall(r'name="form" value="([^"]+)"', self.text(page))[-1]
        return self.client.post(action, data={"form": form, **data}, files=files).text

    def pressed(self, does, is_done, kill_after=None, jobs_too=False):
        """Do it, perhaps with a kill in the middle; then look whether it was done, and do it again if not."""
        if kill_after is not None:
            timer = threading.Timer(kill_after, self._kill, (jobs_too,))
            timer.start()
        with contextlib.suppress(httpx2.HTTPError):
            does()
        if kill_after is not None:
            timer.join()
            self.desk.join()
            self.client.close()
            self.open()
        for _ in range(600):
            if is_done():
                return
            said = does()
            time.sleep(0.1)
        raise AssertionError(re.sub(r"<[^>]+>|\s+", " ", said.partition("<main")[2]))

    def _kill(self, jobs_too):
        if jobs_too:
            for one in psutil.process_iter(["cmdline"]):
                if str(self.folder) in " ".join(one.info["cmdline"] or ()):
                    with contextlib.suppress(psutil.Error):  # it may end by itself meanwhile
                        for child in [*one.children(recursive=True), one]:
                            child.kill()
                            self.cut_off += 1
        os.kill(self.desk.pid, signal.SIGKILL)
        self.kills += 1


def test_a_desk_that_is_killed_in_the_middle_of_its_story(tmp_path):
    on_paper = visits(tmp_path, N_PEOPLE, N_VISITS)
    killer = Killer(tmp_path)
    try:
        _story(killer, tmp_path)
    finally:
        killer.close()
    assert killer.kills >= KILLS and killer.cut_off
    ledger = Ledger(tmp_path / "people.ledger")
    ledger.verify()
    released = [one for one, _, _ in ledger.releases()]
    assert sorted(one.name for one in released) == ["Once", "Twice", f"visits.csv: {QUESTION}"]
    assert all(one.is_settled and one.n_owners == N_PEOPLE for one in released)
    kinds = [entry.kind for entry in ledger.history()]
    assert kinds.count("change") == 1 and kinds.count("leave") == 0
    for name, account in zip(on_paper, ledger.accounts_of(list(on_paper)), strict=True):
        number = int(name[-4:])
        chosen = list(LEVELS)[(number + (number == 0)) % 3] if number < N_CHOOSE else on_paper[name]
        assert account.standing.level == chosen
        assert len(account.grants) == 1 + (number == 0)
        assert len(account.charges) == 3


def _story(killer, folder):
    def press(page, action, data, is_done, longest=0.1, files=None, least=0.0, **how):
        def does():
            opened = {name: (path.name, path.read_bytes()) for name, path in (files or {}).items()}
            return killer.send(page, action, data, opened or None)

        delay = float(killer.rng.uniform(least, longest))
        killer.pressed(does, is_done, delay, **how)

    text = killer.text
    levels = {f"name-{n}": name for n, name in enumerate(LEVELS)}
    levels |= {f"epsilon-{n}": str(epsilon) for n, epsilon in enumerate(LEVELS.values())}
    press("/levels", "/levels", {**levels, "delta": "1e-5"}, lambda: "high: ε = 1" in text("/"))
    for name, kind in (("visits", "private"), ("others", "public")):
        file = {"file": folder / f"{name}.csv"}
        there = f'<a href="/tables/{name}">'
        press(
            "/tables",
            "/tables/new",
            {"kind": kind},
            lambda t=there: t in text("/tables"),
            files=file,
        )
    table = "/tables/visits"
    press(table, f"{table}/owner", {"owner": "patient"}, lambda: "1,000 people" in text(table))
    _links(killer)
    for number in (*range(N_CHOOSE), 0):
        _choose(killer, number)
    entered = {"column": "consent", "level": "", "sure": "yes"}
    press(
        table,
        f"{table}/levels",
        entered,
        lambda: "1,000 have a level" in text(table),
    )
    schema = 'rows_per_owner = 4\n[columns.sex]\nkind = "category"\ncategories = ["F", "M"]\n'
    schema += '[columns.stay]\nkind = "number"\nbounds = [0, 30]\nstep = 0.1\n'
    press(table, f"{table}/schema", {"schema": schema}, lambda: "can be asked of" in text(table))
    asked = {"table": "visits", "questions": QUESTION, "percent": "10"}
    shown = killer.send("/questions", "/questions/prices", asked)
    asked["seen"] = re.search('name="seen" value="(.*?)"', shown)[1]
    answered = "Answered about visits"
    press(
        "/questions", "/questions/answers", asked, lambda: answered in text("/questions"), longest=3
    )
    for title in ("Once", "Twice"):
        _study(killer, press, title)
    while killer.kills < KILLS:  # the rest while nothing is asked for
        killer.pressed(lambda: text("/"), lambda: "Twice" in text("/"), 0.01)


def _links(killer):
    data = {"table": "visits", "days": "30"}

    def does():
        sent = killer.send("/tables/visits", "/people/links", data)
        rows = [line.split(",") for line in sent.splitlines()[1:]]
        if len(rows) == N_PEOPLE:
            killer.links = {name: link.removeprefix(ADDRESS) for name, link in rows}

    killer.pressed(does, lambda: False if not killer.links else _opens(killer), 0.03)


def _opens(killer):
    """The links that came open pages, also after a desk that was killed when it made others."""
    return killer.client.get(killer.links[name_of(0)]).status_code == 200


def _choose(killer, number):
    link = killer.links[name_of(number)]
    before = len(_grants(killer, number))
    wanted = (number + (before == 1)) % 3

    def does():
        page = killer.text(link)
        version = re.search(r'name="version" value="(\d+)"', page)[1]
        if int(version) == before:  # as a person does who looks at the page first
            killer.client.post(f"{link}choice", data={"level": str(wanted), "version": version})

    killer.pressed(
        does,
        lambda: len(_grants(killer, number)) == before + 1,
        float(killer.rng.uniform(0, 0.03)),
    )


def _grants(killer, number):
    account = Ledger(killer.folder / "people.ledger").account_of(name_of(number))
    return [] if account is None else account.grants


def _study(killer, press, title):
    page, text = f"/studies/{title.casefold()}", killer.text
    made = {"title": title, "private": "visits", "public": "others", "target": "readmitted"}
    press("/studies", "/studies", made, lambda: f'href="{page}"' in text("/studies"), longest=3)
    written = (killer.folder / "desk" / "studies" / title.casefold() / "study.toml").read_text()
    press(page, f"{page}/settings", {"text": written + FIXED}, lambda: "steps = 20" in text(page))

    def is_at(stage):
        while "it is being planned" in text(page) or "it is running" in text(page):
            time.sleep(0.1)
        return stage in text(page)

    press(
        page,
        f"{page}/plan",
        {},
        lambda: is_at("<strong>planned"),
        least=0.3,
        longest=1.5,
        jobs_too=True,
    )
    press(
        page,
        f"{page}/run",
        {"sure": "yes"},
        lambda: is_at("<strong>finished"),
        least=0.3,
        longest=1.5,
        jobs_too=True,
    )
