"""The audit command: tables, figures, JSON, exit codes, and clear refusals."""

import json

import pytest
from typer.testing import CliRunner

from collegium.accounting.events import Nothing
from collegium.attacks import mechanism
from collegium.cli.main import app
from collegium.errors import InputError

QUICK = ["audit", "mechanism", "--runs", "200", "--queries", "2", "--teachers", "20"]
QUICK += ["--aggregator", "gnmax", "--sigma", "3", "--level", "high=20:60", "--level", "low=40:40"]
STUDY = """
[study]
seed = 1
[data]
dataset = "digits"
private_records = 1200
public_records = 597
[privacy]
levels = { high = 3.0, low = 6.0 }
shares = { high = 0.5, low = 0.5 }
[teachers]
model = "nearest-neighbours"
params = { n_neighbors = 1 }
n_teachers = 40
[aggregation]
aggregator = "gnmax"
sigma = 12
[run]
n_jobs = 1
"""


def call(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_a_mechanism_is_audited_in_a_table_and_figures(tmp_path):
    said = call(*QUICK, "--confidence", "0.999999", "--out", tmp_path / "figures")
    for text in ("high", "low", "lower", "every lower bound is below its claim"):
        assert text in said
    written = {path.name for path in (tmp_path / "figures").iterdir()}
    assert written == {"audit.png", "audit.svg", "audit.json"}


def test_json_tells_bound_claim_and_budget_of_each_group():
    said = json.loads(call(*QUICK, "--json", "--confidence", "0.999999"))
    assert said["holds"] is True and said["confidence"] == 0.999999
    for group in said["groups"].values():
        assert group["lower_epsilon"] <= group["claim_epsilon"] <= group["budget_epsilon"]
        assert group["lower_mu"] <= group["claim_mu"] <= group["budget_mu"]


def test_a_refuted_claim_exits_with_1(monkeypatch):
    class Free(mechanism.WorstCasePricing):
        def answer(self, ballot):
            return Nothing(len(ballot.sensitivity))

    monkeypatch.setattr(mechanism, "WorstCasePricing", Free)
    assert "REFUTED" in call(*QUICK, "--sigma", "1", code=1)


def test_a_study_is_audited_into_a_folder_that_says_not_to_release_it(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    said = call("audit", study, "--confidence", "0.999999")
    assert "ceiling" in said and "every lower bound is below its claim" in said
    folder = tmp_path / "study-audit"
    assert "may be published" in (folder / "DO-NOT-RELEASE.txt").read_text()
    assert folder.stat().st_mode & 0o077 == 0
    assert not (folder / "release").exists() and not (tmp_path / "study").exists()
    saved = json.loads((folder / "audit.json").read_text())
    assert set(saved["groups"]) == {"high", "low"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "nowhere.toml"], "there is no file"),
        (["audit", "--runs", "3"], "at least 100 runs"),
        (["audit", "--sigma", "3"], "cannot afford a single"),
        (["audit", "--confidence", "2"], "confidence"),
        (["audit", "--level", "high"], "NAME=EPSILON:PEOPLE"),
        (["audit", "--observe", "everything"], "observe"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message):
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception) and "\n" not in str(result.exception)


def test_help_has_an_example():
    assert "collegium audit study.toml" in call("audit", "--help")
