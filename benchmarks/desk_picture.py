"""Draw what a person and a steward see at the desk: pages of a desk that runs, looked at in Chromium.

python -m benchmarks.desk_picture
"""

from __future__ import annotations

import base64
import io
import tempfile
from pathlib import Path

from PIL import Image

from tests.desk.chromium import Browser
from tests.desk.house import Served
from tests.desk.visits import visits

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "desk.png"
WIDTH, HEIGHT, BETWEEN = 700, 820, 20
SCHEMA = """rows_per_owner = 4
[columns.age]
kind = "whole"
bounds = [18, 100]
[columns.sex]
kind = "category"
categories = ["F", "M"]
[columns.stay]
kind = "number"
bounds = [0, 30]
step = 0.1
"""


def main() -> None:
    """Draw it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        on_paper = visits(folder)
        house = Served(folder, with_levels=False)
        browser = Browser(folder)
        try:
            pictures = _pages(house, browser, folder, list(on_paper))
        finally:
            browser.close()
            house.close()
    made = Image.new("RGB", (2 * WIDTH + BETWEEN, HEIGHT), "white")
    for number, one in enumerate(pictures):
        made.paste(one, (number * (WIDTH + BETWEEN), 0))
    made.quantize(64).save(PICTURE, optimize=True)
    print(f"wrote {PICTURE}: {PICTURE.stat().st_size // 1024} kB")


def _pages(house: Served, browser: Browser, folder: Path, names: list[str]) -> list[Image.Image]:
    books = house.books
    books.set_levels({"high": 1.0, "average": 2.0, "low": 3.0}, 1e-5)
    with (folder / "visits.csv").open("rb") as file:
        table = books.tables.add("visits", "visits.csv", file, is_public=False)
    books.tables.set_schema(books.tables.set_owner(table, "patient"), SCHEMA)
    rows = books.tables.rows(table)
    books.enter_levels(list(rows["patient"]), list(rows["consent"]))
    (token,) = books.make_links(names[:1], 30)
    browser.open(house.address)
    browser.type("#secret", house.secrets["steward"])
    browser.enter()
    browser.open(f"{house.address}/questions")
    browser.type("#questions", "mean stay by sex\nmedian age\ncount where stay >= 7")
    browser.press("What would it cost?")
    browser.press("Ask, at this price")
    steward = _looked_at(browser)
    browser.open(f"{house.address}/me/{token}/")
    return [_looked_at(browser, 0.0), steward]


def _looked_at(browser: Browser, down: float = 0.0) -> Image.Image:
    browser.is_wider_than(WIDTH)
    clip = {"x": 0, "y": down, "width": WIDTH, "height": HEIGHT, "scale": 1}
    shot = browser.call(
        "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
    )
    return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")


if __name__ == "__main__":
    main()
