"""Change what guards privacy, one place at a time, and see whether a test notices.

    python benchmarks/mutants.py --count 120

Mutants are drawn by a seed from the files below, evenly over the subjects, and each is put before the
tests of its subject that run its line, the nearest and quickest first, until one fails (``mutant_tests.py``).
Beside them stand the mutants that once lived. A survivor is either a hole in the tests or the same programme
in other words: those are listed in ``EQUIVALENT``, with the reason. ``--far tests/`` asks all other tests
before a mutant counts as living: finding out which of them run its line takes several minutes.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import mutant_tests

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "collegium"

#: Subject: files (of the package), and the tests that are asked first.
SUBJECTS: dict[str, tuple[list[str], list[str]]] = {
    "price": (
        [
            "pate/voting/noisy_maxima.py",
            "pate/voting/aggregators.py",
            "pate/voting/pricing.py",
            "pate/voting/charging.py",
            "accounting/gaussian.py",
            "accounting/arg_max.py",
            "accounting/events.py",
            "accounting/renyi.py",
        ],
        ["tests/pate/voting", "tests/accounting"],
    ),
    "filter": (
        ["accounting/accountant.py", "accounting/accountants.py", "accounting/bookkeeping.py"],
        ["tests/accounting", "tests/pate/voting"],
    ),
    "noise": (
        ["noise/grid.py", "noise/exact_sampling.py", "noise/sources.py", "noise/sums.py"],
        ["tests/noise"],
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
            "personalisation/uniform.py",
            "personalisation/weighting.py",
        ],
        ["tests/personalisation"],
    ),
    "dpsgd": (
        [
            "dpsgd/account.py",
            "dpsgd/filtered.py",
            "dpsgd/grid.py",
            "dpsgd/linear_sums.py",
            "dpsgd/run.py",
            "dpsgd/sampling.py",
            "personalisation/rates.py",
            "personalisation/dpsgd_plan.py",
        ],
        ["tests/dpsgd", "tests/soundness/test_direct_training.py", "tests/personalisation"],
    ),
    "journal": (
        ["study/journal.py", "durable.py"],
        ["tests/study/test_journal", "tests/test_durable.py", "tests/study/test_chain.py"],
    ),
    "release": (
        [
            "pate/voting/labelling.py",
            "pate/voting/release.py",
            "pate/pipeline.py",
            "study/frozen.py",
            "study/published.py",
        ],
        [
            "tests/pate/voting",
            "tests/pate/test_pipeline.py",
            "tests/study/test_student_is_free.py",
        ],
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One change: in a file, these characters become others.

    ``lines``: who does not run one of these cannot notice it; None if it is run on import.
    """

    subject: str
    file: str
    line: int
    before: str
    after: str
    source: str
    code: str
    lines: tuple[int, ...] | None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is, wherever its line moves to."""
        return self.file, self.code, self.before, self.after

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place}  {self.code}\n      {self.before}  ->  {self.after}"


#: Survivors that change nothing: (file, line of code, before, after) -> why no test can fail.
_SAMPLING, _ACCOUNTANT = "noise/exact_sampling.py", "accounting/accountant.py"
_WHOLE = "return self._path.stat().st_size == self._size + self._torn"
_NOTHING_TORN = (
    "where this is asked, a line has just been tried to append, and what was torn is cut off"
)
EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    (
        "accounting/gaussian.py",
        "error = _units(1 + (1 + abs(x)) * (epsilon / mu + mu / 2)) * scale if scale else 0.0",
        "mu / 2",
        "mu",
    ): "a bound of rounding errors that is larger: δ is above the true value still, by less than 1e-12",
    (
        _SAMPLING,
        'rate = libmp.mpf_exp(magnitude, 2 * working, "n")',
        "2",
        "3",
    ): "more digits than the bound of its error needs: a draw is exact with either",
    (
        _SAMPLING,
        'boundary = libmp.mpf_div(odd, doubled_scale, precision + 16, "n")',
        "precision + 16",
        "precision",
    ): "moves a tail by 0.6 of 2**-precision at most (t times its density is below 0.6), where less than all "
    "of it is allowed, and the tail's own error is far smaller: a draw is exact with either",
    (
        _SAMPLING,
        'return libmp.mpf_exp(libmp.mpf_neg(magnitude), precision + 16, "n")',
        "precision + 16",
        "precision",
    ): "off by half of 2**-precision at most, where less than all of it is allowed: exact with either",
    (
        _SAMPLING,
        "working = precision + 16",
        "16",
        "17",
    ): "more digits than the bound of its error needs: a draw is exact with either",
    (
        _SAMPLING,
        "if _is_negligible(magnitude, precision + 2):",
        "precision + 2",
        "precision",
    ): "2 exp(-t) < 2**-precision for every t > precision >= 2 already",
    (
        _ACCOUNTANT,
        "if len(self._priced) == _KEPT:",
        "len(self._priced) == _KEPT",
        "len(self._priced) != _KEPT",
    ): "prices are kept for fewer events, and worked out anew: the same ones",
    (
        _ACCOUNTANT,
        "if not ((self.delta > 0) & (self.delta < 1)).all():",
        "(self.delta > 0) & (self.delta < 1)",
        "self.delta > 0",
    ): "what it lets pass is refused, in other words, where the limits are worked out",
    (
        "accounting/bookkeeping.py",
        "skipped = np.clip(np.where(going, skipped, 0), 0, np.maximum(left - 1, 0)).astype(np.int64)",
        "1",
        "2",
    ): "skips one less at once, and adds it in the next step: the same sum",
    (
        _ACCOUNTANT,
        "Cost = Event | SensitiveCurve",
        "Event | SensitiveCurve",
        "SensitiveCurve",
    ): "a name for annotations, which nobody evaluates",
    ("study/journal.py", _WHOLE, "self._size + self._torn", "self._size"): _NOTHING_TORN,
    (
        "study/journal.py",
        _WHOLE,
        "self._size + self._torn",
        "self._size - self._torn",
    ): _NOTHING_TORN,
    (
        _SAMPLING,
        "beyond = int(scale_steps) + 1",
        "int(scale_steps) + 1",
        "1",
    ): "where a search by doubling begins: it ends at the same integer",
}

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
        self.changes: list[tuple[ast.expr | ast.stmt, ast.AST, bool]] = []
        self._in_function = False

    def _change(self, node: ast.expr | ast.stmt, other: ast.AST) -> None:
        self.changes.append((node, other, self._in_function))

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave words alone."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in ("__repr__", "__str__"):
            around, self._in_function = self._in_function, True
            for statement in node.body:
                self.visit(statement)
            self._in_function = around

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave words alone."""

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.generic_visit(node)
        words = (ast.Constant, ast.JoinedStr)
        if any(isinstance(side, words) and not _number(side) for side in (node.left, node.right)):
            return
        for other in _SWAPS.get(type(node.op), ()):
            self._change(node, ast.BinOp(node.left, other(), node.right))  # type: ignore[arg-type]
        for side in (node.left, node.right):
            self._change(node, side)

    def visit_Compare(self, node: ast.Compare) -> None:
        self.generic_visit(node)
        for other in _SWAPS.get(type(node.ops[0]), ()):
            changed = ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators)  # type: ignore[list-item]
            self._change(node, changed)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.generic_visit(node)
        self._change(node, ast.BoolOp(_SWAPS[type(node.op)][0](), node.values))  # type: ignore[arg-type]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.generic_visit(node)
        if isinstance(node.op, (ast.Not, ast.USub)):
            self._change(node, node.operand)

    def visit_Constant(self, node: ast.Constant) -> None:
        if _number(node):
            self._change(node, ast.Constant(node.value + 1))  # type: ignore[operator]

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.generic_visit(node)
            self._change(node, ast.Pass())


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
    for node, change, in_function in sites.changes:
        assert node.end_lineno is not None and node.end_col_offset is not None
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        before = text.encode()[first:last].decode()
        after = ast.unparse(change)
        inner = after if isinstance(change, ast.stmt) else f"({after})"
        source = text.encode()[:first].decode() + inner + text.encode()[last:].decode()
        lines_run = tuple(range(node.lineno, node.end_lineno + 1)) if in_function else None
        code = lines[node.lineno - 1].decode().strip()
        before = " ".join(before.split())
        yield Mutant(subject, file, node.lineno, before, after, source, code, lines_run)


def known(subject: str, file: str, before: str, after: str) -> Iterator[Mutant]:
    """Yield a mutant that once lived, for each place; an error if there is none any more."""
    text = (PACKAGE / file).read_text("utf-8")
    if before not in text:
        raise SystemExit(f"{file}: {before!r} is not there any more: update the list")
    place = -1
    while (place := text.find(before, place + 1)) >= 0:
        line = text[:place].count("\n") + 1
        source = text[:place] + after + text[place + len(before) :]
        code = text.splitlines()[line - 1].strip()
        yield Mutant(subject, file, line, before, after, source, code, (line,))


def refuse_stale_reasons() -> None:
    """Refuse reasons for survivors that are not in the source any more."""
    files = [(subject, file) for subject, (its, _) in SUBJECTS.items() for file in its]
    present = {mutant.key for one in files for mutant in mutants_of(*one)}
    for key in EQUIVALENT:
        if key not in present:
            raise SystemExit(f"{key[0]}: {key[1]!r} is not there any more: update EQUIVALENT")


#: Mutants that lived once: scales that are forgotten, a price of another mechanism, a seed from a vote, coins
#: that are 2 % too likely, an owner who stays beyond the bound and is not left out.
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
    (
        "dpsgd",
        "dpsgd/sampling.py",
        "np.minimum(rates, np.nextafter(1.0, 0.0))",
        "np.minimum(1.02 * rates, np.nextafter(1.0, 0.0))",
    ),
    ("dpsgd", "dpsgd/linear_sums.py", "rounded[np.repeat(beyond, per_owner)] = 0.0", "pass"),
]


def main() -> None:
    """Draw mutants, judge them, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=120, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--subject", nargs="*", choices=SUBJECTS, help="of these subjects alone")
    parser.add_argument(
        "--only", nargs="*", default=[""], help="those whose file:line is one of these"
    )
    parser.add_argument(
        "--far", nargs="*", default=[], help="tests that are asked when the near ones pass"
    )
    parser.add_argument("--map", type=Path, help="keeps which test runs which lines for next time")
    parser.add_argument("--noticed", type=Path, help="keeps who noticed what: not judged next time")
    parser.add_argument("--list", action="store_true", help="how many there are, and stop")
    arguments = parser.parse_args()
    subjects = arguments.subject or list(SUBJECTS)
    refuse_stale_reasons()
    chosen = [mutant for one in KNOWN for mutant in known(*one) if mutant.subject in subjects]
    for subject in subjects:
        every = [mutant for file in SUBJECTS[subject][0] for mutant in mutants_of(subject, file)]
        print(f"{subject:8}  {len(every):5} possible mutants", flush=True)
        random.Random(f"{arguments.seed} {subject}").shuffle(every)
        chosen += every[: -(-arguments.count // len(SUBJECTS))]
    if arguments.list:
        return
    mutant_tests.start()
    files = sorted(file for files, _ in SUBJECTS.values() for file in files)
    tests = mutant_tests.TestMap(files, arguments.map)
    kept = arguments.noticed
    noticed: dict[str, str] = json.loads(kept.read_text("utf-8")) if kept and kept.exists() else {}
    table: dict[str, Counter[str]] = {subject: Counter() for subject in subjects}
    began = time.monotonic()
    chosen = [
        mutant
        for mutant in chosen
        if any(f"{mutant.file}:{mutant.line}".endswith(one) for one in arguments.only)
    ]

    def judged(mutant: Mutant) -> str | None:
        near = SUBJECTS[mutant.subject][1]
        return noticed.get(str(mutant.key)) or mutant_tests.first_to_notice(
            mutant.file, mutant.source, mutant.lines, tests, near, arguments.far
        )

    pool = ThreadPoolExecutor(os.cpu_count())
    for mutant, test in zip(chosen, pool.map(judged, chosen), strict=True):
        if test and kept:
            noticed[str(mutant.key)] = test
            kept.write_text(json.dumps(noticed, indent=0), "utf-8")
        why = EQUIVALENT.get(mutant.key)
        outcome = "noticed" if test else "the same" if why else "lives"
        table[mutant.subject].update(["judged", outcome])
        print(f"{outcome:8}  {mutant}\n      {test or why or ''}", flush=True)
    total = sum(table.values(), Counter())
    columns = ("judged", "noticed", "the same", "lives")
    print(" " * 8, *(f"{column:>9}" for column in columns))
    for name, counts in [*table.items(), ("all", total)]:
        print(f"{name:8}", *(f"{counts[column]:9}" for column in columns))
    print(f"{time.monotonic() - began:.0f} s")
    raise SystemExit(total["lives"] > 0)


if __name__ == "__main__":
    main()
