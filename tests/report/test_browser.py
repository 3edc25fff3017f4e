"""The page in a real browser, where there is one."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

from collegium import Budget
from collegium.accounting.statement import Answers
from examples import EXAMPLES, make, render_report

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
            millions, privacy=replace(millions.privacy, released=Answers.HISTOGRAM), title="x" * 200
        ),
        "no better": EXAMPLES["no-better"](),
        "no truth": EXAMPLES["no-truth"](),
    }


@pytest.mark.parametrize(("name", "width"), [("worst-case", 1200), ("no better", 400)])
def test_page_is_drawn(tmp_path, name, width):
    page = tmp_path / "report.html"
    page.write_text(render_report(pages()[name]), encoding="utf-8")
    picture = tmp_path / "page.png"
    chromium(tmp_path, f"--screenshot={picture}", f"--window-size={width},1600", page.as_uri())
    pixels = imread(picture)[..., :3]
    assert pixels.shape[1] == width
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20


def test_a_report_fits_on_about_two_screens(tmp_path):
    """What is shown before anything is unfolded, 1200 pixels wide."""
    page = tmp_path / "report.html"
    page.write_text(render_report(make()), encoding="utf-8")
    script = "<script>document.title = document.documentElement.scrollHeight</script></body>"
    policy = re.compile('<meta http-equiv="Content-Security-Policy"[^>]*>')
    html = policy.sub("", page.read_text(encoding="utf-8")).replace("</body>", script)
    page.write_text(html, encoding="utf-8")
    dom = chromium(tmp_path, "--dump-dom", "--window-size=1200,1000", page.as_uri())
    assert int(re.search(r"<title>(\d+)</title>", dom)[1]) <= 2300


def test_a_link_to_what_is_folded_opens_it(tmp_path):
    page = tmp_path / "report.html"
    page.write_text(render_report(make()), encoding="utf-8")
    dom = chromium(tmp_path, "--dump-dom", f"{page.as_uri()}#statement")
    opened = re.findall(r'<details class="section" open="">\s*<summary><h3>(.*?)</h3>', dom)
    assert opened == ["The statement in full"]


def test_no_page_overflows(tmp_path):
    """Frames of exactly these widths ask each page how wide its content is."""
    widths, made = (320, 400, 880, 900, 1160), pages()
    frames = ""
    for name, data in made.items():
        quoted = "".join(f"%{byte:02x}" for byte in render_report(data).encode())
        frames += f"<div title='{name}' data-page='{quoted}'>" + "".join(
            f"<iframe style='width:{width}px;height:900px;border:0'></iframe>" for width in widths
        )
        frames += "</div>"
    script = (
        "<output></output><script>"
        "for (const d of document.querySelectorAll('div')) {"
        "const page = decodeURIComponent(d.dataset.page); d.removeAttribute('data-page');"
        "for (const f of d.querySelectorAll('iframe')) { f.onload = () => {"
        "const e = f.contentDocument.documentElement;"
        "document.querySelector('output').textContent += "
        "`${d.title}: ${e.clientWidth} of ${e.scrollWidth};` };"
        "f.srcdoc = page } }</script>"
    )
    frame = tmp_path / "frame.html"
    frame.write_text(f"<!DOCTYPE html>{frames}{script}", encoding="utf-8")
    dom = chromium(
        tmp_path,
        "--dump-dom",
        "--virtual-time-budget=5000",
        "--window-size=1400,1000",
        frame.as_uri(),
    )
    found = re.search(r"<output>([^<]*)</output>", dom)
    assert found is not None
    measured = sorted(part for part in found[1].split(";") if part)
    assert measured == sorted(f"{name}: {width} of {width}" for name in made for width in widths)
