"""The page in a real browser, where there is one."""

import re
import shutil
import subprocess
from dataclasses import replace

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
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return done.stdout


def long_names():
    name = "averylonglevelname" * 8
    return make({name: Budget(1.0), "日本語のとても長い名前" * 4: Budget(2.0)}, classes=(name, "b"))


def pages():
    """Pages whose words or numbers are as wide as they get."""
    millions = make(sizes={"high": 12_345_678, "average": 3_700_000, "low": 900_000})
    rows = [
        replace(row, test_records=1_234_567, true_among_labelled=1_234_567, labels=1_234_567)
        for row in millions.effects.classes
    ]
    millions = replace(millions, effects=replace(millions.effects, classes=tuple(rows)))
    return {
        "worst-case": make(),
        "eight-groups": EXAMPLES["eight-groups"](),
        "long names": long_names(),
        "histograms": replace(
            millions, privacy=replace(millions.privacy, released="histogram"), title="x" * 200
        ),
        "no better": EXAMPLES["no-better"](),
        "no truth": EXAMPLES["no-truth"](),
    }


@pytest.mark.parametrize("name", ["worst-case", "no better"])
@pytest.mark.parametrize("width", [1200, 400])
def test_page_is_drawn(tmp_path, name, width):
    page = tmp_path / "report.html"
    page.write_text(render_report(pages()[name]), encoding="utf-8")
    picture = tmp_path / "page.png"
    chromium(tmp_path, f"--screenshot={picture}", f"--window-size={width},1600", page.as_uri())
    pixels = imread(picture)[..., :3]
    assert pixels.shape[1] == width
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20


@pytest.mark.parametrize("name", pages())
def test_page_does_not_overflow(tmp_path, name):
    """Frames of exactly these widths ask the page how wide its content is."""
    widths = (320, 400, 880, 900, 1160)
    quoted = "".join(f"%{byte:02x}" for byte in render_report(pages()[name]).encode())
    frames = "".join(
        f"<iframe style='width:{width}px;height:900px;border:0'></iframe>" for width in widths
    )
    script = (
        "<output></output><script>"
        "const page = decodeURIComponent(document.querySelector('template').dataset.page);"
        "for (const f of document.querySelectorAll('iframe')) { f.onload = () => {"
        "const e = f.contentDocument.documentElement;"
        "document.querySelector('output').textContent += `${e.scrollWidth} of ${e.clientWidth};` };"
        "f.srcdoc = page }</script>"
    )
    frame = tmp_path / "frame.html"
    frame.write_text(
        f"<!DOCTYPE html><template data-page='{quoted}'></template>{frames}{script}",
        encoding="utf-8",
    )
    dom = chromium(
        tmp_path,
        "--dump-dom",
        "--virtual-time-budget=5000",
        "--window-size=1400,1000",
        frame.as_uri(),
    )
    found = re.search(r"<output>([^<]*)</output>", dom)
    assert found is not None
    measured = dict(
        reversed([int(number) for number in part.split(" of ")])
        for part in found[1].split(";")
        if part
    )
    assert measured == {width: width for width in widths}
