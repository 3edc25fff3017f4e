"""The page in a real browser, where there is one."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from matplotlib.image import imread

from collegium.budgets import Budget
from collegium.report.page import render_report
from examples import EXAMPLES, make

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium(folder, *arguments):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def long_names():
    name = "averylonglevelname" * 8
    return make({name: Budget(1.0), "日本語のとても長い名前" * 4: Budget(2.0)}, classes=(name, "b"))


@pytest.mark.parametrize("name", ["worst-case", "eight-groups", "long names"])
@pytest.mark.parametrize("width", [1200, 400])
def test_page_is_drawn_and_does_not_overflow(tmp_path, name, width):
    html = render_report(long_names() if name == "long names" else EXAMPLES[name]())
    page = tmp_path / "report.html"
    page.write_text(html, encoding="utf-8")
    picture = tmp_path / "page.png"
    chromium(tmp_path, f"--screenshot={picture}", f"--window-size={width},1600", page.as_uri())
    pixels = imread(picture)[..., :3]
    assert pixels.shape[1] == width
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20

    # A frame of exactly this width asks the page how wide its content is.
    probe = (
        f"<iframe id=f style='width:{width}px;height:900px;border:0'></iframe><output></output><script>"
        "f.onload = () => { const e = f.contentDocument.documentElement;"
        "document.querySelector('output').textContent = e.scrollWidth + ' of ' + e.clientWidth };"
        "f.srcdoc = decodeURIComponent(document.querySelector('template').dataset.page)</script>"
    )
    quoted = "".join(f"%{byte:02x}" for byte in html.encode())
    frame = tmp_path / "frame.html"
    frame.write_text(
        f"<!DOCTYPE html><template data-page='{quoted}'></template>{probe}", encoding="utf-8"
    )
    dom = chromium(
        tmp_path,
        "--dump-dom",
        "--virtual-time-budget=3000",
        "--window-size=1400,1000",
        frame.as_uri(),
    )
    found = re.search(r"<output>(\d+) of (\d+)</output>", dom)
    assert found is not None
    assert int(found[2]) == width
    assert int(found[1]) <= width
