"""Studies of every method are audited by one command, which leaves nothing but figures."""

import json

import pytest
from test_every_method import OWN
from test_shown import file_of, said

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
