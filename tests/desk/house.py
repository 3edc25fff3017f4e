"""A desk to knock at: a ledger, levels, a clock that is set by hand, and browsers that keep cookies."""

import re
import socket
import threading
import time
from datetime import UTC, datetime, timedelta

import uvicorn
from starlette.testclient import TestClient

from collegium import Ledger
from collegium.desk.application import application
from collegium.desk.books import Books
from collegium.desk.links import Links

ADDRESS = "http://127.0.0.1:8765"
LEVELS = 'levels = { high = 1.0, average = 2.0, "low <b>" = 3.0 }\ndelta = 1e-5\n'


class House:
    """A desk, and all that surrounds it."""

    def __init__(self, folder, with_levels=True):
        self.folder, self.levels = folder, None
        if with_levels:
            self.levels = folder / "policy.toml"
            self.levels.write_text(LEVELS)
        Ledger.create(folder / "people.ledger")
        self.again()

    def again(self):
        """Begin anew with what is there, as another process does."""
        self.ledger = Ledger(self.folder / "people.ledger")
        self.log, self.now = [], datetime(2026, 1, 1, tzinfo=UTC)
        self.seconds = [0.0]
        self.open()

    def open(self):
        """Open the desk, perhaps again."""
        self.books = Books(self.ledger, self.levels, self.folder / "desk")
        self.books.links = Links(self.folder / "desk" / "links.sqlite", lambda: self.now)
        self.books.doorkeeper._clock = lambda: self.seconds[0]
        self.secrets = self.books.new_secrets or self.secrets
        self.app = application(self.books, ADDRESS, self.log.append)

    def browser(self, **more):
        """A browser that has not been here."""
        return TestClient(self.app, base_url=ADDRESS, follow_redirects=False, **more)

    def steward(self, role="steward"):
        """A browser in which somebody has signed in."""
        browser = self.browser()
        answer = browser.post("/in", data={"secret": self.secrets[role]})
        assert answer.status_code == 303 and answer.headers["location"] == "/"
        return browser

    def links(self, names, days="30", browser=None):
        """Links of some people, as the steward gets them."""
        browser = browser or self.steward()
        given = {"form": form_of(browser, "/people/links"), "names": "\n".join(names), "days": days}
        given["sure"] = "yes"
        answer = browser.post("/people/links", data=given)
        assert answer.status_code == 200, answer.text
        rows = [line.split(",") for line in answer.text.splitlines()[1:]]
        return {name: link.removeprefix(ADDRESS) for name, link in rows}

    def later(self, **how):
        """Let time pass, for links."""
        self.now += timedelta(**how)


def serve_again(folder, port, levels=None):
    """A desk on what is there, for a process of its own."""
    house = House.__new__(House)
    house.folder, house.secrets, house.levels = folder, {}, levels
    house.again()
    app = application(house.books, ADDRESS, lambda line: None)
    uvicorn.run(app, port=port, log_level="critical")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def wait_for(port):
    """Wait until something listens there."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.001)


class Served(House):
    """A desk that real programs can call."""

    def __init__(self, folder, with_levels=True):
        super().__init__(folder, with_levels)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.app = application(self.books, self.address, self.log.append)
        self.server = uvicorn.Server(uvicorn.Config(self.app, log_level="critical"))
        self.thread = threading.Thread(target=lambda: self.server.run(sockets=[self.socket]))
        self.thread.start()

    def close(self):
        self.server.should_exit = True
        self.thread.join()


def form_of(browser, action):
    """Name of a form of the page of people, by where it goes."""
    text = browser.get("/people").text
    forms = re.findall(r"<form.*?</form>", text, re.DOTALL)
    (one,) = [form for form in forms if f'"{action}"' in form]
    return re.search(r'name="form" value="([^"]+)"', one)[1]


def choose(browser, link, level, version=None):
    """Choose a level on a person's page, by number."""
    page = browser.get(link)
    version = version or re.search(r'name="version" value="(\d+)"', page.text)[1]
    return browser.post(f"{link}choice", data={"level": level, "version": version})
