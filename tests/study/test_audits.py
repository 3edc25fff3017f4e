"""Studies of every method are audited by one command, which leaves nothing but figures."""

import json

import pytest
from test_every_method import OWN
from test_shown import file_of, said

from collegium import Ledger

SIZES = {
    "dpsgd": ["--canaries", "200"],
    "statistics": ["--canaries", "200"],
    "synthesis": ["--runs", "8"],
}


@pytest.mark.filterwarnings("ignore:")
@pytest.mark.parametrize("kind", sorted(OWN.keys() - {"pate"}))
def test_every_other_method_is_audited(tmp_path, kind):
    """At 1 - 1e-6; votes: tests/attacks/test_one_run.py and tests/cli/test_audit_command.py."""
    file = file_of(tmp_path, kind)
    shown = said("audit", file, *SIZES[kind], "--confidence", "0.999999")
    assert "every lower bound is below its claim" in shown
    for column in ("lower ε", "claimed μ", "canaries"):
        assert column in shown
    folder = tmp_path / "study-audit"
    assert folder.stat().st_mode & 0o077 == 0
    assert {path.suffix for path in folder.iterdir()} >= {".json", ".png", ".svg"}
    told = json.loads((folder / "audit.json").read_text())
    assert told["holds"] and set(told["groups"]) == {"high", "low"}
    for group in told["groups"].values():
        assert group["lower_epsilon"] <= group["claim_epsilon"] <= group["budget_epsilon"] * 1.001
        assert group["bounds"]["n_in"] >= 10 and group["fit_applies"] == (kind == "dpsgd")
    kept = (folder / "DO-NOT-RELEASE.txt").exists()
    assert kept == (
        kind != "statistics"
    )  # where no real record is looked at, nothing is said of one
    assert not (tmp_path / "study").exists()


@pytest.mark.filterwarnings("ignore:")
def test_answers_are_audited_with_the_noise_and_the_share_of_the_study(tmp_path):
    """On a ledger noise is Gaussian, and a study takes half: an audit of Laplace noise told nothing of it."""
    file = file_of(tmp_path, "statistics")
    before = file.read_text()
    file.write_text(before.replace('url = "none"', 'url = "people.ledger"'))
    assert file.read_text() != before
    Ledger.create(tmp_path / "people.ledger")
    said("audit", file, *SIZES["statistics"], "--confidence", "0.999999")
    told = json.loads((tmp_path / "study-audit" / "audit.json").read_text())
    assert all(group["fit_applies"] for group in told["groups"].values())
    budgets = {name: group["budget_epsilon"] for name, group in told["groups"].items()}
    assert {name: round(one, 1) for name, one in budgets.items()} == {"high": 0.7, "low": 2.0}
