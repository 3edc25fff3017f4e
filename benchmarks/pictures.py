"""Draw the pictures of the README: how Collegium works, and what individual budgets gain.

python benchmarks/pictures.py

Gains are drawn from docs/results/demo.csv (the mean of what `collegium demo --json` prints as its comparison)
and docs/results/direct-training.csv; a test holds all of them against this file.
"""

from __future__ import annotations

import csv
import math
import statistics
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs/pictures"
RESULTS = ROOT / "docs/results/direct-training.csv"
DEMO = ROOT / "docs/results/demo.csv"

LEVELS = {"high": "#1b4965", "average": "#3d8eb9", "low": "#9cc9e3"}
INK, QUIET, LINE, PAPER, WARM = "#1f2933", "#5b6770", "#c9d1d8", "#ffffff", "#c2571a"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


class Drawing:
    """An SVG picture, one element after the other."""

    def __init__(self, width: int, height: int, title: str, description: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-labelledby="title description" font-family="{_FONT}">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="description">{escape(description)}</desc>',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{QUIET}"/></marker></defs>',
        ]
        self.box(0, 0, width, height, fill=PAPER)

    def box(
        self, x: float, y: float, width: float, height: float, fill: str = "none",
        line: str = "none", dashes: str = "", corner: float = 6,
    ) -> None:  # fmt: skip
        """Draw a rectangle."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner:g}" '
            f'fill="{fill}" stroke="{line}"{dashed}/>'
        )

    def text(
        self, x: float, y: float, said: str, size: float = 14, color: str = INK,
        anchor: str = "start", weight: str = "normal",
    ) -> None:  # fmt: skip
        """Write a line."""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{color}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(said)}</text>'
        )

    def line(
        self, points: list[tuple[float, float]], color: str = QUIET, width: float = 1.5,
        tip: bool = False,
    ) -> None:  # fmt: skip
        """Draw a line through points, with an arrow's tip if wanted."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        ends = ' marker-end="url(#tip)"' if tip else ""
        self._parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"{ends}/>'
        )

    def dot(self, x: float, y: float, radius: float, color: str) -> None:
        """Draw a filled circle."""
        self._parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{color}"/>')

    def svg(self) -> str:
        """Give the whole file."""
        return "\n".join([*self._parts, "</svg>", ""])


def how_it_works() -> str:
    """Draw what goes into the vault, what leaves it, and who pays."""
    made = Drawing(
        960, 372, "How Collegium works",
        "Records and a privacy choice of each person stay in the vault. Either clipped gradients or votes of "
        "teachers, weighted by budget, are noised; each person's account is charged before noise is drawn; "
        "only a model, a statement, a card and a report are released.",
    )  # fmt: skip
    made.box(196, 12, 480, 296, fill="#f5f7f9", line=LINE, dashes="5 4", corner=10)
    made.text(436, 36, "vault: stays private", 13, QUIET, "middle")
    made.box(740, 12, 208, 296, fill="#f3faf3", line="#b5d3b5", corner=10)
    made.text(844, 36, "release: may be published", 13, QUIET, "middle")

    made.text(12, 92, "People’s records,", 14, weight="600")
    made.text(12, 112, "and their choices", 14, weight="600")
    for number, (level, color) in enumerate(LEVELS.items()):
        y = 146 + 32 * number
        for person in range(5 - number - (number == 2)):
            made.dot(18 + 14 * person, y, 5, color)
        made.text(100, y + 5, f"ε = {number + 1}", 13, QUIET)
        made.text(12, y + 19, level, 11, QUIET)

    ways = (
        (56, "trained with noise: DP-SGD", "clipped gradients", "noisy steps", "model"),
        (176, "learnt from noisy votes: PATE", "teachers’ votes", "noisy answers", "student"),
    )
    for y, name, first, second, result in ways:
        made.text(212, y + 12, name, 12, QUIET)
        made.box(212, y + 20, 176, 60, PAPER, LEVELS["average"])
        made.text(300, y + 46, first, 14, anchor="middle", weight="600")
        made.text(300, y + 65, "weighted by budget", 12, QUIET, "middle")
        made.box(484, y + 20, 176, 60, PAPER, WARM)
        made.text(572, y + 46, second, 14, anchor="middle", weight="600")
        made.text(572, y + 65, "exactly rounded noise", 12, QUIET, "middle")
        made.box(764, y + 20, 160, 60, PAPER, "#4f8a4f")
        made.text(844, y + 55, result, 14, anchor="middle", weight="600")
        made.line([(180, y + 50), (208, y + 50)], tip=True)
        made.line([(388, y + 50), (480, y + 50)], tip=True)
        made.line([(660, y + 50), (760, y + 50)], tip=True)
    made.line([(180, 106), (180, 226)])
    made.text(434, 216, "public", 11, QUIET, "middle")
    made.text(434, 245, "questions", 11, QUIET, "middle")
    made.text(844, 290, "statement, card, report", 12, QUIET, "middle")

    made.box(196, 322, 752, 40, "#fff6ef", "#e8b48f", corner=8)
    made.text(
        572, 347, "One account per person: charged before noise is drawn; nobody pays more than they granted",
        13, anchor="middle",
    )  # fmt: skip
    for start, end in ((322, 260), (196, 140)):
        made.line([(572, start), (572, end)], WARM, tip=True)
    return made.svg()


def gains(path: Path = RESULTS) -> dict[float, dict[str, tuple[float, float]]]:
    """Read what MNIST's students reach: lowest ε → method → mean and standard deviation over splits."""
    scores: dict[float, dict[str, list[float]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["dataset"] == "mnist" and row["method"] in ("strictest", "individual"):
                of_budget = scores.setdefault(float(row["epsilon"]), {})
                of_budget.setdefault(row["method"], []).append(float(row["test"]))
    return {
        epsilon: {
            method: (statistics.mean(values), statistics.stdev(values))
            for method, values in scores[epsilon].items()
        }
        for epsilon in sorted(scores)
    }


def what_is_gained() -> str:
    """Draw accuracy by budget, for everybody at the strictest budget and for everybody at their own."""
    found = gains()
    made = Drawing(
        960, 380, "What individual budgets gain on MNIST",
        "Accuracy of models with individual budgets and at the strictest budget for everybody: "
        + "; ".join(
            f"lowest ε {epsilon:g}: {of['individual'][0]:.1f} % and {of['strictest'][0]:.1f} %"
            for epsilon, of in found.items()
        ),
    )  # fmt: skip
    left, right, top, bottom, least = 70.0, 660.0, 84.0, 320.0, 70.0
    span = math.log(max(found) / min(found))

    def across(epsilon: float) -> float:
        return round(left + 24 + (right - left - 48) * math.log(epsilon / min(found)) / span, 1)

    def up(percent: float) -> float:
        return round(bottom - (bottom - top) * (percent - least) / (100 - least), 1)

    made.text(
        24,
        32,
        "The same people: each at their own budget, or all at the strictest",
        17,
        weight="600",
    )
    made.text(
        24,
        54,
        "MNIST: right on test images, %, mean ± standard deviation of three splits",
        13,
        QUIET,
    )
    for percent in range(int(least), 101, 10):
        made.line([(left, up(percent)), (right, up(percent))], LINE, 1)
        made.text(left - 10, up(percent) + 5, f"{percent}", 13, QUIET, "end")
    for method, color in (("strictest", QUIET), ("individual", WARM)):
        made.line([(across(e), up(of[method][0])) for e, of in found.items()], color, 2.5)
        for epsilon, of in found.items():
            mean, spread = of[method]
            made.line(
                [(across(epsilon), up(mean - spread)), (across(epsilon), up(mean + spread))],
                color,
                1.5,
            )
            made.dot(across(epsilon), up(mean), 5, color)
    for epsilon, of in found.items():
        gain = of["individual"][0] - of["strictest"][0]
        made.text(across(epsilon), bottom + 22, f"{epsilon:g}", 13, QUIET, "middle")
        shown = f"{gain:+.1f}" if abs(gain) >= 0.05 else "0.0"
        above = up(sum(of["individual"])) - 10
        made.text(across(epsilon), above, shown, 14, WARM, "middle", "600")
    made.text((left + right) / 2, bottom + 46, "lowest ε (logarithmic)", 13, QUIET, "middle")

    made.line([(684, 110), (712, 110)], WARM, 2.5)
    made.dot(698, 110, 5, WARM)
    made.text(720, 115, "everybody their own", 14, weight="600")
    for number, (share, level) in enumerate(zip((54, 37, 9), LEVELS, strict=True)):
        times = "lowest ε" if number == 0 else f"{number + 1} × lowest ε"
        made.dot(726, 133 + 20 * number, 5, LEVELS[level])
        made.text(738, 138 + 20 * number, f"{share} %: {times}", 13, QUIET)
    made.line([(684, 216), (712, 216)], QUIET, 2.5)
    made.dot(698, 216, 5, QUIET)
    made.text(720, 221, "all at the lowest ε", 14, weight="600")
    made.text(684, 262, "60,000 people, DP-SGD,", 12, QUIET)
    made.text(684, 279, "worst case, δ = 1e-5; a person’s", 12, QUIET)
    made.text(684, 296, "record is there, or blank", 12, QUIET)
    return made.svg()


def the_demo(path: Path = DEMO) -> str:
    """Draw what the demo's comparison says."""
    with path.open(encoding="utf-8", newline="") as file:
        found = {row["learnt with"]: 100 * float(row["accuracy"]) for row in csv.DictReader(file)}
    rows = [
        ("the strictest budget for everybody", "all at ε = 0.1", QUIET),
        ("individual budgets", "54, 37, 9 % of them at ε = 0.1, 0.2, 0.3", WARM),
        ("no privacy: the same model without noise", "the same model without noise", LINE),
    ]
    made = Drawing(
        960, 216, "What individual budgets gain in the demo",
        "; ".join(f"{name}: {found[name]:.0f} %" for name, _, _ in rows),
    )  # fmt: skip
    made.text(24, 34, "What the demo shows: 1,200 people, handwritten digits", 17, weight="600")
    made.text(24, 56, "Right on 200 test digits, %: mean of seven demos", 13, QUIET)
    left, wide = 330.0, 520.0
    for number, (name, about, color) in enumerate(rows):
        up = 76 + 44 * number
        said = name.partition(":")[0]
        made.text(left - 16, up + 14, said, 14, anchor="end", weight="600")
        made.text(left - 16, up + 31, about, 12, QUIET, "end")
        made.box(left, up, round(wide * found[name] / 100, 1), 32, color, corner=3)
        made.text(
            left + wide * found[name] / 100 + 10, up + 22, f"{found[name]:.0f}", 16, weight="600"
        )
    return made.svg()


DRAWN = {
    "demo.svg": the_demo,
    "how-it-works.svg": how_it_works,
    "individual-budgets.svg": what_is_gained,
}


def main() -> None:
    """Draw all of them."""
    PICTURES.mkdir(exist_ok=True)
    for name, draw in DRAWN.items():
        (PICTURES / name).write_text(draw(), encoding="utf-8", newline="\n")
        print(f"wrote {PICTURES / name}")


if __name__ == "__main__":
    main()
