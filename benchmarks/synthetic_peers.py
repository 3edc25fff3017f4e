"""Synthetic tables of Collegium and of its peers, on the same rows, cells and budget, in one run.

    python -m benchmarks.synthetic_peers --install FOLDER [--source dpsynth=PATH] [--source private-pgm=PATH]
    python -m benchmarks.synthetic_peers --environments FOLDER --data adult --seeds 1 2 3 --out FILE.jsonl
    python -m benchmarks.synthetic_peers --summary FILE.jsonl
    python -m benchmarks.synthetic_peers --list

The first command makes an environment for each peer from PyPI; those that are not there need the path of a
checkout. The second runs one peer after the other, each in a process of its own with ten minutes, and adds
a line of JSON for each run to the file; a peer that is not installed is skipped, and said so. The third
prints means over seeds as a table, the last one what each peer guarantees.

**Same for all.** The cells of the public schema, so that nobody reads a domain off private rows; (ε, δ),
add or remove one row; where people have several rows, peers get one row of each, chosen at random, so that
their guarantee is one of people. Settings are each peer's defaults, except where a second entry says
another. ρ of zero-concentrated DP follows from (ε, δ) by Canonne, Kamath and Steinke (arXiv 2004.00010v4,
Proposition 12), μ of Gaussian DP exactly. **Seconds** are of fitting and sampling, without imports, and
with whatever a peer compiles; ``cpu_seconds``, of all threads, depend less on what else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.synthetic_data import LOADERS, Tables, found_data_dir, tables
from benchmarks.synthetic_peer_list import ENVIRONMENTS, HERE, PEERS, Peer
from benchmarks.synthetic_scores import Scores, scores
from collegium.accounting import zcdp_epsilon
from collegium.accounting.gaussian import gdp_mu
from collegium.data.cells import Cells
from collegium.errors import InputError

LIMIT = 600
FIGURES = {
    **dict.fromkeys(("logistic", "boosting", "tv1", "tv2", "tv3", "overall"), 4),
    "seconds": 1,
    "cpu_seconds": 1,
    "gigabytes": 2,
}
"""What a summary shows, with digits after the point."""
CALLS = Path(__file__).with_name("synthetic_peer_calls.py")


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Find the largest ρ whose zero-concentrated DP is within (ε, δ)."""
    low, high = 0.0, epsilon + 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)
    return low


@dataclass(frozen=True)
class Outcome:
    """How a run ended: ``made`` holds its table and figures where ``ended`` is "finished"."""

    ended: str
    wall: float
    made: Mapping[str, Any] | None = None


def run(
    python: str, peer: Peer, codes: np.ndarray, sizes: Sequence[int], given: Any, limit: float
) -> Outcome:
    """Run a peer in a process of its own, which is ended with all it started after ``limit`` seconds."""
    root = str(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory() as folder:
        source, into = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, codes=codes, sizes=np.array(sizes), settings=json.dumps(given))
        began = time.perf_counter()
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}
        if peer.environment == HERE:
            environment["PYTHONPATH"] = root
        with (Path(folder) / "said").open("w+b") as said:
            process = subprocess.Popen(
                [python, str(CALLS), peer.call, str(source), str(into)],
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return Outcome(f"not finished in {limit:.0f} seconds", time.perf_counter() - began)
            wall = time.perf_counter() - began
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
        if status != 0:
            return Outcome(f"failed: {_reason(lines, status)}", wall)
        with np.load(into) as read:
            return Outcome("finished", wall, {name: read[name] for name in read.files})


def _reason(lines: Sequence[str], status: int) -> str:
    """Find the line of a traceback that says what was wrong."""
    if status == -signal.SIGKILL:
        return "killed, perhaps for lack of memory"
    told = [
        one.strip()
        for one in lines
        if re.match(r"\s*[\w.]*(Error|Exception|FailedFunction)\b", one)
    ]
    return (told[-1] if told else f"exit status {status}")[:300]


def python_of(folder: Path | None, environment: str) -> str | None:
    """Find the interpreter of an environment; None where it is not installed."""
    if environment == HERE:
        return sys.executable
    found = None if folder is None else folder / environment / "bin" / "python"
    return str(found) if found is not None and found.exists() else None


def version_of(python: str, environment: str) -> str:
    """Ask an environment, or the checkout on its path, for the version of its main package."""
    main = "collegium" if environment == HERE else ENVIRONMENTS[environment].main
    described = Path(python).parents[1] / "source" / "pyproject.toml"
    if environment != HERE and described.exists():
        return f"{main} {tomllib.loads(described.read_text('utf-8'))['project']['version']}, from source"
    code = f"import importlib.metadata as m; print(m.version({main!r}))"
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return f"{main} {asked.stdout.strip()}" if asked.returncode == 0 else main


def install(folder: Path, names: Sequence[str], sources: Mapping[str, str], python: str) -> None:
    """Make the environments of some peers in a folder; what is there already is left as it is."""
    said = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    )
    version = tuple(map(int, said.stdout.split()))
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        wanted, place = ENVIRONMENTS[name], folder / name
        if (place / "bin" / "python").exists():
            print(f"{name}: is there")
        elif wanted.source and name not in sources:
            print(f"{name}: needs --source {name}=PATH of a checkout")
        elif version < wanted.python:
            print(f"{name}: needs --python of version {'.'.join(map(str, wanted.python))} or later")
        else:
            subprocess.run([python, "-m", "venv", str(place)], check=True)
            pip = [str(place / "bin" / "pip"), "install", "--quiet"]
            subprocess.run([*pip, *wanted.packages], check=True)
            if wanted.source and wanted.installed:
                subprocess.run([*pip, "--no-deps", sources[name]], check=True)
            elif wanted.source:
                (place / "source").symlink_to(Path(sources[name]).resolve())
            print(f"{name}: installed")


def line(
    name: str, peer: Peer, table: Tables, seed: int, outcome: Outcome, found: Scores | None
) -> dict[str, Any]:
    """Collect what is kept of a run."""
    kept: dict[str, Any] = {"peer": name, "data": table.name, "seed": seed, "ended": outcome.ended}
    kept["wall"] = round(outcome.wall, 1)
    if outcome.made is not None and found is not None:
        kept["rows"] = len(outcome.made["codes"])
        kept |= {
            name: round(float(outcome.made[name]), 2)
            for name in ("seconds", "cpu_seconds", "gigabytes")
        }
        kept |= found.as_dict()
    return kept | {"guarantee": peer.guarantee}


def compare(given: argparse.Namespace) -> None:
    """Run peers on data sets, and add a line for each run to a file."""
    data_dir = found_data_dir(given.data_dir)
    rho, mu = zcdp_rho(given.epsilon, given.delta), gdp_mu(given.epsilon, given.delta)
    for data in given.data:
        table = tables(data, data_dir)
        cells = Cells(table.schema)
        train, test = cells.codes(table.train), cells.codes(table.test)
        rows = cells.codes(table.one_row_each())
        for seed in given.seeds:
            for name in given.peers:
                peer = PEERS[name]
                python = python_of(given.environments, peer.environment)
                if python is None:
                    print(f"{name}: skipped, {peer.environment} is not in --environments")
                    continue
                settings = {
                    **peer.settings,
                    "epsilon": given.epsilon,
                    "delta": given.delta,
                    "rho": rho,
                    "mu": mu,
                    "seed": seed,
                    "data": data,
                    "data_dir": str(data_dir),
                }
                if peer.environment == "private-pgm":
                    settings["source"] = str(
                        (given.environments / "private-pgm" / "source").resolve()
                    )
                outcome = run(python, peer, rows, cells.sizes, settings, given.limit)
                found = None
                if outcome.made is not None:
                    made = outcome.made["codes"]
                    found = scores(made, train, test, cells, table.target, table.weights)
                kept = line(name, peer, table, seed, outcome, found)
                kept |= {"epsilon": given.epsilon, "delta": given.delta, "note": given.note}
                kept["version"] = version_of(python, peer.environment)
                print(shown(kept), flush=True)
                if given.out is not None:
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(kept, ensure_ascii=False) + "\n")


def shown(kept: Mapping[str, Any]) -> str:
    """Write a run in one line, for people."""
    head = f"{kept['data']:11} seed {kept['seed']} {kept['peer']:22}"
    if "logistic" not in kept:
        return f"{head} {kept['ended']} ({kept['wall']} s)"
    return (
        f"{head} logistic {kept['logistic']:.4f}  boosting {kept['boosting']:.4f}  "
        f"tv1 {kept['tv1']:.4f}  tv2 {kept['tv2']:.4f}  tv3 {kept['tv3']:.4f}  "
        f"overall {kept['overall']:.4f}  {kept['seconds']} s  {kept['gigabytes']} GB"
    )


def summary(file: Path) -> str:
    """Write means over seeds as a table in Markdown, the best overall first; of runs made twice, the last."""
    runs = pd.read_json(file, lines=True).drop_duplicates(["data", "peer", "seed"], keep="last")
    runs = runs.reindex(columns=[*dict.fromkeys([*runs.columns, *FIGURES])])
    written = []
    for data, of_data in runs.groupby("data", sort=False):
        written += [
            f"**{data}**",
            "",
            "| " + " | ".join(["peer", "version", "finished", *FIGURES]) + " |",
        ]
        written.append("|---" * (3 + len(FIGURES)) + "|")
        means = (
            of_data.groupby("peer")[list(FIGURES)].mean().sort_values("overall", ascending=False)
        )
        for peer, figures in means.iterrows():
            those = of_data[of_data["peer"] == peer]
            finished = int((those["ended"] == "finished").sum())
            how = f"{finished} of {len(those)}" if finished else str(those["ended"].iloc[-1])
            told = [
                "–" if np.isnan(one) else f"{one:.{FIGURES[name]}f}"
                for name, one in figures.items()
            ]
            written.append(
                "| " + " | ".join([str(peer), those["version"].iloc[-1], how, *told]) + " |"
            )
        written.append("")
    return "\n".join(written)


def main(arguments: Sequence[str] | None = None) -> None:
    """Install, list or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", type=Path, metavar="FOLDER", help="make environments there")
    parser.add_argument("--list", action="store_true", help="say what each peer guarantees")
    parser.add_argument(
        "--summary", type=Path, metavar="FILE", help="print means of what --out kept"
    )
    parser.add_argument("--source", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--python", default=sys.executable, help="interpreter of what is installed")
    parser.add_argument("--environments", type=Path, metavar="FOLDER", help="what --install made")
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS, metavar="PEER")
    parser.add_argument("--data", nargs="+", default=["adult"], choices=LOADERS)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each run")
    parser.add_argument("--out", type=Path, help="file that gets a line of JSON for each run")
    parser.add_argument("--note", default="", help="kept with each run, such as 'idle machine'")
    given = parser.parse_args(arguments)
    if given.install is not None:
        sources = dict(one.split("=", 1) for one in given.source)
        names = dict.fromkeys(PEERS[peer].environment for peer in given.peers)
        install(given.install, [one for one in names if one != HERE], sources, given.python)
    elif given.summary is not None:
        print(summary(given.summary))
    elif given.list:
        for name, peer in PEERS.items():
            print(f"{name}\n    guarantee: {peer.guarantee}\n    domain: {peer.domain}")
    else:
        compare(given)


if __name__ == "__main__":
    try:
        main()
    except InputError as problem:
        sys.exit(str(problem))
