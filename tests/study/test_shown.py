"""Plans and results of every method are shown by the same commands, for people and for programs."""

import json

import pytest
from test_every_method import LEARNT, OF_DATA, OWN, write
from typer.testing import CliRunner

from collegium.cli.console import hush
from collegium.cli.main import app
from collegium.study.folder import PAGE
from collegium.study.methods.kinds import KINDS
from collegium.study.methods.statistics.method import StatisticsMethod, StatisticsPlan
from collegium.study.methods.statistics.settings import StatisticsKind
from collegium.study.result import PublishedResult
from collegium.study.shown import Shown

DATA = 'private = "private.csv"\nowner = "who"\n'


def file_of(folder, kind):
    write(folder)
    own = "".join(
        f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        for section, keys in OWN[kind].items()
    )
    file = folder / "study.toml"
    more = "".join(
        f"{key} = {json.dumps(value)}\n" for key, value in OF_DATA.get(kind, LEARNT).items()
    )
    file.write_text(
        f'[data]\n{DATA}{more}[privacy]\ncolumn = "level"\n'
        f'levels = {{ high = 1.0, low = 3.0 }}\n[method]\nkind = "{kind}"\n[ledger]\nurl = "none"\n{own}'
    )
    return file


def said(*words):
    run = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    hush(False)  # of this process
    assert run.exit_code == 0, run.output
    return run.stdout


@pytest.mark.parametrize("kind", sorted(OWN))
def test_every_method_is_planned_run_and_reported_in_both_forms(tmp_path, kind):
    assert sorted(OWN) == sorted(KINDS)
    file = file_of(tmp_path, kind)
    planned = json.loads(said("plan", file, "--json"))
    assert planned["method"] == kind
    assert planned.keys() >= {"neighbours", "columns", "ledger"}
    assert "Protected: everything in one person's records" in said("plan", file)
    assert len(said("plan", file, "--quiet").splitlines()) == 1
    result = json.loads(said("run", file, "--json"))
    release = tmp_path / "study" / "release"
    assert (result["release"], result["report"]) == (str(release), str(release / PAGE))
    shown = said("run", file)
    assert "What each person was promised, and spent" in shown and f"Published: {release}" in shown
    told = json.loads(said("report", tmp_path / "study", "--json"))
    assert {row["group"] for row in told["groups"]} == {"high", "low"}
    reported = said("report", tmp_path / "study")
    assert all(f"• {sentence}" in reported for sentence in told["statement"])
    assert f"published: {release}." in said("run", file, "--quiet")


class SilentPlan(StatisticsPlan):
    """Says nothing of itself, and publishes nothing but its statement."""

    numbers, blocks, in_short = Shown.numbers, Shown.blocks, Shown.in_short

    def publish(self, folder, drawn, notes):
        return PublishedResult(folder=folder, privacy=self.session.privacy_)


class Silent(StatisticsMethod):
    def plan(self, study, spending, promised):
        made = super().plan(study, spending, promised)
        return SilentPlan(made.config, made.data, made.session, made.by_whom, made.observer)


def test_a_method_that_says_nothing_of_its_own_is_shown_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(StatisticsKind, "method_at", f"{__name__}:Silent")
    file = file_of(tmp_path, "statistics")
    assert json.loads(said("plan", file, "--json")).keys() == {
        "method", "neighbours", "columns", "ledger"
    }  # fmt: skip
    assert said("plan", file).startswith("Protected: everything in one person's records")
    assert said("plan", file, "--quiet") == "planned, and nothing is spent.\n"
    result = json.loads(said("run", file, "--json"))
    assert result["guarantee"] == "worst-case" and result["statement"] and "report" not in result
    shown = said("run", file)
    assert "What each person was promised, and spent" in shown and "Report" not in shown
    release = tmp_path / "study" / "release"
    assert said("run", file, "--quiet") == f"published: {release}.\n"


def test_an_audit_plays_against_steps_if_it_is_told_how_often(tmp_path):
    said("audit", file_of(tmp_path, "dpsgd"), "--runs", "100", "--confidence", "0.999999")
    assert not (tmp_path / "study-audit" / "DO-NOT-RELEASE.txt").exists()
    told = json.loads((tmp_path / "study-audit" / "audit.json").read_text())
    assert told["runs"] == 100 and told["audited"].startswith("4 steps of study.toml")
