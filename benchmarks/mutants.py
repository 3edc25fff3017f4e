"""Change what guards privacy, one place at a time, and see whether a test notices.

    python benchmarks/mutants.py --count 120 --jobs 2

Mutants are drawn by a seed from the files below, evenly over the subjects, and each runs the tests of its
subject, the nearest first, until one fails. Beside them stand the mutants that once lived. A survivor is
either a hole in the tests or the same programme in other words: those are listed in ``EQUIVALENT``, with
the reason.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "collegium"

#: Subject: files (of the package), and the tests that guard them, the nearest first.
SUBJECTS: dict[str, tuple[list[str], list[str]]] = {
    "price": (
        [
            "pate/voting/noisy_maxima.py",
            "pate/voting/aggregators.py",
            "pate/voting/pricing.py",
            "pate/voting/charging.py",
            "accounting/gaussian.py",
            "accounting/events.py",
            "accounting/renyi.py",
        ],
        ["tests/pate/voting", "tests/accounting", "tests/soundness", "tests/attacks"],
    ),
    "filter": (
        ["accounting/accountant.py", "accounting/accountants.py", "accounting/bookkeeping.py"],
        ["tests/accounting", "tests/pate/voting", "tests/soundness"],
    ),
    "noise": (
        ["noise/grid.py", "noise/exact_sampling.py", "noise/sources.py"],
        ["tests/noise", "tests/pate/voting", "tests/soundness"],
    ),
    "plan": (
        [
            "personalisation/base.py",
            "personalisation/plan.py",
            "personalisation/electorate.py",
            "personalisation/assignment.py",
            "personalisation/partition.py",
            "personalisation/vanishing.py",
            "personalisation/upsampling.py",
            "personalisation/weighting.py",
        ],
        [
            "tests/personalisation",
            "tests/soundness",
            "tests/pate/voting",
            "tests/pate/test_pate.py",
        ],
    ),
    "journal": (
        ["study/journal.py", "durable.py"],
        ["tests/study/test_journal.py", "tests/test_durable.py", "tests/study", "tests/cli"],
    ),
    "release": (
        ["pate/voting/labelling.py", "pate/pipeline.py", "study/published.py"],
        ["tests/pate/voting", "tests/pate/test_pipeline.py", "tests/soundness", "tests/study"],
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One change: in a file, these characters become others."""

    subject: str
    file: str
    line: int
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is, wherever its line moves to."""
        return self.file, self.before, self.after


#: Survivors that change nothing: (file, before, after) -> why no test can fail.
EQUIVALENT: dict[tuple[str, str, str], str] = {}

_SWAPS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}


class _Sites(ast.NodeVisitor):
    """Collects changes of arithmetic, comparisons, conditions, numbers and statements."""

    def __init__(self) -> None:
        self.changes: list[tuple[ast.expr | ast.stmt, ast.AST]] = []

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave words alone."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in ("__repr__", "__str__"):
            for statement in node.body:
                self.visit(statement)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave words alone."""

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.generic_visit(node)
        words = (ast.Constant, ast.JoinedStr)
        if any(isinstance(side, words) and not _number(side) for side in (node.left, node.right)):
            return
        for other in _SWAPS.get(type(node.op), ()):
            self.changes.append((node, ast.BinOp(node.left, other(), node.right)))  # type: ignore[arg-type]
        for side in (node.left, node.right):
            self.changes.append((node, side))

    def visit_Compare(self, node: ast.Compare) -> None:
        self.generic_visit(node)
        for other in _SWAPS.get(type(node.ops[0]), ()):
            changed = ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators)  # type: ignore[list-item]
            self.changes.append((node, changed))

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.generic_visit(node)
        self.changes.append((node, ast.BoolOp(_SWAPS[type(node.op)][0](), node.values)))  # type: ignore[arg-type]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.generic_visit(node)
        if isinstance(node.op, (ast.Not, ast.USub)):
            self.changes.append((node, node.operand))

    def visit_Constant(self, node: ast.Constant) -> None:
        if _number(node):
            self.changes.append((node, ast.Constant(node.value + 1)))  # type: ignore[operator]

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.generic_visit(node)
            self.changes.append((node, ast.Pass()))


def _number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, (int, float))
        and not isinstance(node.value, bool)
    )


def mutants_of(subject: str, file: str) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    text = (PACKAGE / file).read_text("utf-8")
    lines = text.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    sites = _Sites()
    sites.visit(ast.parse(text))
    for node, change in sites.changes:
        assert node.end_lineno is not None and node.end_col_offset is not None
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        before = text.encode()[first:last].decode()
        after = ast.unparse(change)
        inner = after if isinstance(change, ast.stmt) else f"({after})"
        source = text.encode()[:first].decode() + inner + text.encode()[last:].decode()
        yield Mutant(subject, file, node.lineno, " ".join(before.split()), after, source)


def known(subject: str, file: str, before: str, after: str) -> Mutant:
    """Return a mutant that once lived; an error if the place is not there any more."""
    text = (PACKAGE / file).read_text("utf-8")
    if text.count(before) != 1:
        raise SystemExit(f"{file}: {before!r} is there {text.count(before)} times: update the list")
    line = text[: text.index(before)].count("\n") + 1
    return Mutant(subject, file, line, before, after, text.replace(before, after))


#: Mutants that lived once: scales that are forgotten, a price of another mechanism, a seed from a vote.
_MAXIMA, _LABELLING = "pate/voting/noisy_maxima.py", "pate/voting/labelling.py"
KNOWN: list[tuple[str, str, str, str]] = [
    ("price", _MAXIMA, "self.noise_scale * ballot.scale", "self.noise_scale"),
    ("price", _MAXIMA, "gnmax_log_q(counts, sigma * scale)", "gnmax_log_q(counts, sigma)"),
    (
        "price",
        _MAXIMA,
        "gnmax_log_q_exact(counts, sigma * scale,",
        "gnmax_log_q_exact(counts, sigma,",
    ),
    ("price", _MAXIMA, "sensitivity, sigma * scale, orders)", "sensitivity, sigma, orders)"),
    ("price", _MAXIMA, "self.check_scale * ballot.scale", "self.check_scale"),
    (
        "price",
        _MAXIMA,
        "counts.max(axis=1), self.check_scale * scale",
        "counts.max(axis=1), self.check_scale",
    ),
    (
        "price",
        _MAXIMA,
        "threshold = self.check_threshold * scale",
        "threshold = self.check_threshold",
    ),
    ("price", _MAXIMA, "independent[None] / (scale * scale)", "independent[None]"),
    (
        "price",
        "pate/voting/aggregators.py",
        'self._number("gamma") / ballot_scale',
        'self._number("gamma")',
    ),
    (
        "price",
        "pate/voting/aggregators.py",
        "return self._check_rdp_of_any_votes(scale, sensitivity, orders)",
        "return super().sensitive_check_rdp(counts, scale, sensitivity, orders, bounds)",
    ),
    (
        "release",
        _LABELLING,
        "self._aggregator.check_scale * ballot.scale",
        "self._aggregator.check_scale",
    ),
    (
        "release",
        _LABELLING,
        "self._aggregator.noise_scale * ballot.scale",
        "self._aggregator.noise_scale",
    ),
    (
        "release",
        _LABELLING,
        "self._aggregator.check_threshold * ballot.scale",
        "self._aggregator.check_threshold",
    ),
    (
        "release",
        "pate/pipeline.py",
        "self.plan.electorate(recipe.seed)",
        "self.plan.electorate(recipe.seed + int(getattr(records, 'codes', [0])[0]))",
    ),
]


def survives(mutant: Mutant, python: str) -> str | None:
    """Run the tests of its subject; return None if it is noticed, else how it lived."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = Path(folder, "src")
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        (source / "collegium" / mutant.file).write_text(mutant.source, "utf-8")
        environment = os.environ | {
            "PYTHONPATH": str(source),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
        }
        for tests in SUBJECTS[mutant.subject][1]:
            command = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", tests]
            try:
                done = subprocess.run(
                    command, cwd=ROOT, env=environment, capture_output=True, timeout=1800
                )
            except subprocess.TimeoutExpired:
                return None  # it hangs: noticed
            if done.returncode not in (0, 5):
                return None
    return "survived"


def main() -> None:
    """Draw mutants, run them, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--subject", choices=SUBJECTS, help="of one subject alone")
    parser.add_argument("--list", action="store_true", help="how many there are, and stop")
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    chosen = [known(*one) for one in KNOWN]
    subjects = [arguments.subject] if arguments.subject else list(SUBJECTS)
    for subject in subjects:
        every = [mutant for file in SUBJECTS[subject][0] for mutant in mutants_of(subject, file)]
        print(f"{subject:8}  {len(every):5} possible mutants", flush=True)
        generator.shuffle(every)
        chosen += every[: -(-arguments.count // len(subjects))]
    if arguments.list:
        return
    killed, lived = 0, []
    began = time.monotonic()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, outcome in zip(
            chosen, pool.map(lambda one: survives(one, sys.executable), chosen), strict=True
        ):
            killed += outcome is None
            if outcome is not None:
                why = EQUIVALENT.get(mutant.key)
                lived.append((mutant, why))
                print(f"LIVES {mutant.file}:{mutant.line}  {mutant.before}  ->  {mutant.after}")
                print(f"      {why or 'not shown to be equivalent'}", flush=True)
    unexplained = sum(why is None for _, why in lived)
    print(
        f"{len(chosen)} mutants: {killed} noticed, {len(lived)} lived, of which {unexplained} are not "
        f"shown to be equivalent ({time.monotonic() - began:.0f} s)"
    )
    raise SystemExit(unexplained > 0)


if __name__ == "__main__":
    main()
