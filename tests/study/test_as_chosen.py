"""A study that leaves its method open goes on as it was begun, or says in one line why it cannot."""

import numpy as np
import pandas as pd
import pytest

from collegium.planner import recommend
from collegium.planner.rehearsal import Rehearsed
from collegium.study.planned_settings import CHOSEN

STUDY = """
[data]
private = "private.csv"
public = "public.csv"
target = "large"
owner = "who"
classes = ["no", "yes"]
[privacy]
column = "level"
levels = { high = 1.0, low = 3.0 }
spend = 1.0
"""
UNTOUCHED = "(a release of its own"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """An empty folder, with ledgers allowed; votes are not rehearsed, since that takes seconds."""
    folder = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLLEGIUM_LEDGER", raising=False)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setattr(recommend, "rehearse_votes", lambda *given: Rehearsed(0.0, 0.1, 0.0, 100))
        yield folder


@pytest.fixture
def study(world, collegium):
    """The file of a finished study, with a ledger beside its records: nobody has anything left."""
    path = world / "study.toml"
    if path.exists():
        return path
    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.normal(size=(900, 2)), columns=["size", "other"])
    table["large"] = np.where(table["size"] + 0.3 * table["other"] > 0.2, "yes", "no")
    private = table[:600].assign(who=np.arange(600), level=["high", "low"] * 300)
    private.to_csv(world / "private.csv", index=False)
    table[600:].to_csv(world / "public.csv", index=False)
    path.write_text(STUDY)
    code, output, errors = collegium("run", path)
    assert code == 0 and "Published: " in output, errors
    return path


def last_line(errors):
    assert errors.count("error: ") == 1
    return errors.splitlines()[-1]


def test_another_study_is_told_before_its_ledger_is_asked(study, collegium):
    assert (study.parent / "private.ledger").exists()
    private = study.parent / "private.csv"
    records, kept = private.read_text(), (study.parent / "study" / CHOSEN).read_bytes()
    changes = [
        (study, STUDY + '[method]\nkind = "pate"\n', "was not set, now"),
        (study, STUDY.replace("high = 1.0", "high = 0.5"), "privacy.levels"),
        (
            private,
            records.replace("yes", "no", 1),
            "the private records are not the same as before",
        ),
    ]
    for path, text, told in changes:
        before = path.read_text()
        path.write_text(text)
        code, output, errors = collegium("run", study)
        path.write_text(before)
        said = last_line(errors)
        assert code == 2 and output == "" and said.startswith("error: ")
        assert "holds another study" in said and told in said and UNTOUCHED in said
    assert (study.parent / "study" / CHOSEN).read_bytes() == kept
    assert "Published: " in collegium("run", study)[1]


LOST = {
    None: "is missing, which says how the study in",
    "broken [[": "cannot be read (Expected '='",
    '[preprocessing]\nkind = "binned"\n': "holds no sections, or not [method]",
    "method = 3\n": "holds no sections, or not [method]",
    "preprocessing = 3\n[method]\nkind = 'dpsgd'\n": "holds no sections, or not [method]",
    "[method]\nkind = 'magic'\n": "was changed (method.kind must be",
}


def test_a_choice_that_was_lost_or_changed_is_told(study, collegium):
    path = study.parent / "study" / CHOSEN
    kept = path.read_text("utf-8")
    for text, told in LOST.items():
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
        code, output, errors = collegium("run", study)
        path.write_text(kept, "utf-8")
        said = last_line(errors)
        assert code == 2 and output == "" and "chosen.toml " in said
        assert told in said and UNTOUCHED in said


def test_what_is_expected_is_shown_only_of_a_plan_that_can_be_run(study, collegium):
    second = study.with_name("second.toml")
    second.write_text(study.read_text(encoding="utf-8"), encoding="utf-8")
    code, output, errors = collegium("plan", second)
    assert code == 2 and output == ""
    assert "no budget is left in the ledger" in errors and "nothing was spent now" in last_line(
        errors
    )
    other = study.with_name("other.toml")
    other.write_text(STUDY.replace("spend = 1.0\n", '[ledger]\nurl = "none"\n'))
    code, output, errors = collegium("plan", other)
    assert code == 0 and output.startswith("Chosen from public facts alone: ")


def test_a_report_is_found_by_the_studys_file_too(study, collegium):
    by_folder, by_file = (collegium("report", path) for path in (study.with_suffix(""), study))
    assert by_folder == by_file and by_file[0] == 0
