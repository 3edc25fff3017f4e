"""A method that nobody here knows: from a file to its page, and no file of the package is touched."""

import json
import os
import signal
from dataclasses import dataclass
from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pytest
from test_every_method import write
from typer.testing import CliRunner

from collegium import Ledger
from collegium.accounting import Gaussian, gdp_mu
from collegium.cli.main import app
from collegium.ledger.event_spending import EventSpending
from collegium.mechanisms import SecureNoise
from collegium.noise.sums import Noise
from collegium.parameters import Settings, setting
from collegium.report.sections import Banner, Page
from collegium.study.config import read_config
from collegium.study.event_plan import EventPlan
from collegium.study.event_terms import EventTerms
from collegium.study.kept_draws import NumberedDraws
from collegium.study.methods.kinds import KINDS, SECTIONS, register
from collegium.study.methods.protocol import Method
from collegium.study.runner import run_study
from collegium.study.study_settings import Kind

GRID = 2**20


@dataclass(frozen=True)
class CountingSection(Settings):
    """Noisy counts of the classes, again and again."""

    times: int = setting(4, "How often classes are counted.")
    section: ClassVar[str] = "counting"


class CountingKind(Kind):
    name, meaning = "counting", "the classes are counted, with noise."
    method_at, terms_at = f"{__name__}:Counting", f"{__name__}:CountingTerms"
    sections = (CountingSection,)


class CountingTerms(EventTerms):
    method, drawn = CountingKind.name, "counts"

    def mechanism(self):
        return {"name": self.method, "in_words": "Gaussian noise on weighted counts"}


class Counting(Method):
    spending = type("CountingSpending", (EventSpending,), {"method": CountingKind.name})

    def plan(self, study, spending, promised):
        data = study.records if spending is None else study.records.allowed(spending)
        return CountingPlan(study, data)


class CountingPlan(EventPlan):
    """Everybody's weight is what their μ allows for one of the counts, in whole steps of a grid."""

    def events(self):
        times = self.config.of(CountingSection).times
        mu = np.array([gdp_mu(one.epsilon, one.delta) for one in self.groups.values()])
        self.weights = (mu / np.sqrt(times) * GRID * (1 - 1e-9)).astype(np.int64)
        return [[Gaussian(self.weights / GRID, scale=1.0)]] * times

    def draw(self, number, before):
        owners = self.records.budgets.record_owner
        mine = self.weights[self.records.budgets.owner_group][owners]
        total = np.zeros(len(self.records.classes), np.int64)
        np.add.at(total, self.records.codes, mine // np.bincount(owners)[owners])
        noise, about = Noise("gaussian", float(GRID)), {"query": number, "purpose": "count"}
        return {"noisy": (SecureNoise().noised(total, noise, **about) / GRID).tolist()}

    def write(self, folder, drawn):
        found, path = [one["noisy"] for one in drawn.values()], folder.release / "answers.json"
        folder.write_json(path, found)
        return {"classes": self.records.classes.tolist()}

    def page(self, privacy, drawn):
        return Page(
            title=self.config.title(),
            subject="counts with individual privacy budgets",
            what="Noisy counts.",
            privacy=privacy,
            verdict=Banner("plain", "Classes are counted", f"{len(drawn)} times."),
            stopped="All is counted.",
            results=(),
            leaves="In the release: the counts.",
            not_covered=[("Budgets", "are public.")],
            **{"checks": ["Count."], "references": ["Nobody."]},
        )


@pytest.fixture
def study(tmp_path):
    write(tmp_path)
    Ledger.create(tmp_path / "private.ledger")
    (file := tmp_path / "study.toml").write_text(
        '[data]\nprivate = "private.csv"\npublic = "public.csv"\nowner = "who"\ntarget = "y"\n'
        '[privacy]\ncolumn = "level"\nlevels = { high = 1.0, low = 3.0 }\n'
        'spend = 1.0\n[counting]\ntimes = 5\n[ledger]\nurl = "private.ledger"\n'
    )
    with patch.dict(KINDS), patch.dict(SECTIONS):
        register(CountingKind())
        yield file


def said(*words):
    run = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert run.exit_code == 0, run.output
    return json.loads(run.stdout) if "--json" in words else run.stdout


def test_a_method_of_ones_own_from_its_file_to_its_page(study, monkeypatch):
    out, keep = study.with_suffix(""), NumberedDraws.keep
    assert "counting" in said("plan", study, "--json")["method"] and not out.exists()

    def kill(self, number, found):  # between the third charge and what came of it
        return os.kill(os.getpid(), signal.SIGKILL) if number == 3 else keep(self, number, found)

    if not (child := os.fork()):
        try:
            monkeypatch.setattr(NumberedDraws, "keep", kill)
            run_study(read_config(study), out)
        finally:  # whatever fails: the child must not go on with the other tests
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = said("account", "--remaining", out, "--json")
    assert (left["counts_charged"], left["counts_planned"]) == (3, 5)
    before = json.loads((out / "vault" / "answers.json").read_text())["answers"]
    result = said("run", study, "--json")
    counts = json.loads((out / "release" / "answers.json").read_text())
    assert counts[:2] == [one["noisy"] for one in before] and len(counts) == 4
    spent = {row["group"]: row["epsilon_spent"] for row in result["groups"]}
    assert 0.98 < spent["high"] < 1 and 2.94 < spent["low"] < 3
    told = said("statement", out, "--json")
    for one in told["groups"]:
        assert one["spent"]["epsilon"] == pytest.approx(spent[one["group"]], rel=1e-12)
    assert told["released"] == {"what": "counts", "student": False, "counts": 5, "counts_lost": 1}
    assert "counting.times" in (out / "release" / "report.html").read_text(encoding="utf-8")
    assert "Predicting y" in said(
        "receipt", "private0", "--ledger", study.parent / "private.ledger"
    )
    assert said("run", study, "--json") == result and "spent" in said("run", study)
