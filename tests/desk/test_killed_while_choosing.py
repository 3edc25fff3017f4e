"""A desk that is killed at any moment, while a person chooses."""

import http.client
import multiprocessing
import os
import re
import signal
import threading
from urllib.parse import urlencode

import numpy as np

from collegium import Ledger
from tests.desk.house import House, choose, free_port, serve_again, wait_for

NAMES = [f"patient-{number}" for number in range(40)]


def test_a_desk_that_is_killed_loses_no_choice_and_enters_none_twice(tmp_path):
    house = House(tmp_path)
    links = house.links(["ann", *NAMES[:3]])
    choose(house.browser(), links["ann"], "0")
    house.books.close()
    rng = np.random.default_rng(28)
    port = free_port()
    said, level = [], "0"
    for _ in range(20):
        desk = multiprocessing.get_context("fork").Process(
            target=serve_again, args=(tmp_path, port, house.levels)
        )
        desk.start()
        wait_for(port)
        delay = float(rng.choice([0.0, rng.uniform(0, 0.01), rng.uniform(0, 0.06)]))
        page = _asked(port, "GET", links["ann"])
        version = re.search(r'name="version" value="(\d+)"', page)[1]
        level = str((int(level) + 1) % 3)
        timer = threading.Timer(delay, os.kill, (desk.pid, signal.SIGKILL))
        timer.start()
        answer = _asked(port, "POST", f"{links['ann']}choice", {"level": level, "version": version})
        timer.join()
        desk.join()
        ledger = Ledger(tmp_path / "people.ledger")
        grants = ledger.account_of("ann").grants
        entered = len(grants) == int(version) + 1
        assert entered or len(grants) == int(version)
        assert entered or answer is None  # what was confirmed is there
        said.append(answer is not None)
        if entered:
            assert grants[-1].level == list(house.books.levels)[int(level)]
        else:
            level = str((int(level) - 1) % 3)
        assert ledger.verify() == len(ledger.history())
    assert len(said) == 20 and not all(said)


def _asked(port, method, address, form=None):
    """The answer's text, or where it leads; None if there was none."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"host": "127.0.0.1", "content-type": "application/x-www-form-urlencoded"}
    try:
        connection.request(method, address, urlencode(form) if form else None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status in (200, 303), (answer.status, text)
        return answer.headers.get("location") or text
    except (http.client.HTTPException, OSError):
        return None
    finally:
        connection.close()
