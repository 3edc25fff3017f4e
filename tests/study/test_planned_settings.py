"""A study that leaves open how it is learnt: chosen from public facts, once, and remembered."""

import json
import shutil
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest

from collegium import Ledger, Policy, plan
from collegium.accounting.neighbours import Arrangement
from collegium.errors import BudgetExceededError, InputError, StudyMismatchError
from collegium.planner import recommend
from collegium.planner.recommend import recommend_from
from collegium.planner.rehearsal import Rehearsed
from collegium.runs.observer import Observer
from collegium.study.config import config_from, read_config
from collegium.study.folder import StudyFolder
from collegium.study.planned_settings import (
    CHOSEN,
    facts_of,
    recommended,
    settled_method,
    with_sections,
)
from collegium.study.runner import plan_study, run_study
from collegium.study.study_data import load_study_data

TEXT = """\
[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
target = "big"
owner = "person"
[privacy]
column = "level"
levels = { high = 2.0, low = 6.0 }
[ledger]
url = "none"
"""


@pytest.fixture(autouse=True)
def no_votes(monkeypatch):
    """Votes are rehearsed in tests of the planner."""
    monkeypatch.setattr(recommend, "rehearse_votes", lambda *given: Rehearsed(0.0, 0.1, 0.0, 100))


REMEMBERED = {}


@pytest.fixture(autouse=True)
def choices_are_remembered(monkeypatch):
    """The same facts give the same choice (tests of the planner): it is made once for all of these tests."""

    def choose(facts, X_test=None, tell=lambda line: None, spend=1.0):
        given = joblib.hash((facts, X_test, spend))
        if given not in REMEMBERED:
            REMEMBERED[given] = recommend_from(facts, X_test, tell, spend)
        return REMEMBERED[given]

    monkeypatch.setattr("collegium.study.planned_settings.recommend_from", choose)


def table(n, seed):
    random = np.random.default_rng(seed)
    size, age = random.normal(size=n), random.integers(20, 80, n)
    kind = random.choice(["a", "b", "c"], n)
    big = np.where(size + 0.02 * age + 0.3 * random.normal(size=n) > 1, "yes", "no")
    return pd.DataFrame({"size": size, "age": age, "kind": kind, "big": big})


@pytest.fixture
def folder(tmp_path):
    private = table(600, 0)
    private["person"], private["level"] = (
        np.arange(600),
        np.where(np.arange(600) % 3, "high", "low"),
    )
    private.to_csv(tmp_path / "private.csv", index=False)
    public = table(300, 1)
    public.loc[public.index[100:], "big"] = np.nan
    public.to_csv(tmp_path / "public.csv", index=False)
    table(200, 2).to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "study.toml").write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_what_is_no_better_than_one_answer_stops_unless_told(folder, collegium):
    private = pd.read_csv(folder / "private.csv")[:30]
    private.to_csv(folder / "private.csv", index=False)
    text = TEXT.replace("high = 2.0, low = 6.0", "high = 0.02, low = 0.05")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    code, said, _ = collegium("plan", folder / "study.toml")
    assert code == 0 and "`collegium run` stops unless told --anyway" in said.splitlines()[-1]
    code, _, said = collegium("run", folder / "study.toml")
    assert code == 2 and "would be no better than" in said and "Nothing was spent" in said
    assert not (folder / "study").exists()
    assert collegium("run", folder / "study.toml", "--anyway")[0] == 0


def told(folder):
    said = plan(folder / "study.toml").to_dict()
    del said["minutes"]  # of this machine
    return json.dumps(said)


def test_ten_lines_become_a_model_that_does_what_was_predicted(folder):
    config = read_config(folder / "study.toml")
    assert config.is_open
    found = plan(folder / "study.toml")
    kept = StudyFolder(folder / "study")
    made = settled_method(config, kept, Observer(), keep=True)
    assert made.kind.name == "dpsgd" and made.preprocessing.kind == "crossed"
    result = run_study(made, folder / "study")
    assert found.expected.low - 0.02 <= result.accuracy <= found.expected.high + 0.02
    assert result.quality.better
    low, high = (f"{100 * end:.1f}" for end in (found.expected.low, found.expected.high))
    came = f"measured {100 * result.accuracy:.1f} % on 200 test records"
    assert result.foretold.startswith(f"Predicted {low} to {high} % accuracy, {came}: ")
    assert result.foretold in result.report.read_text(encoding="utf-8")


def test_the_plan_is_the_same_whatever_private_records_hold(folder):
    """Every value but levels is another: not a byte of the plan changes."""
    before = told(folder)
    private = pd.read_csv(folder / "private.csv")
    random = np.random.default_rng(9)
    private["size"] = random.normal(size=600)
    private["age"] = random.integers(20, 80, 600)
    private["kind"] = random.choice(["b", "z"], 600)
    private["big"] = random.choice(["yes", "no"], 600)
    private["person"] = random.permutation(9000)[:600]
    private.to_csv(folder / "private.csv", index=False)
    assert told(folder) == before


def test_what_was_chosen_is_kept_and_not_chosen_again(folder, monkeypatch):
    config, kept = read_config(folder / "study.toml"), StudyFolder(folder / "study")
    made = settled_method(config, kept, Observer(), keep=True)
    run_study(made, kept.path)
    text = (kept.path / CHOSEN).read_text(encoding="utf-8")
    assert 'kind = "dpsgd"' in text and "# every record takes part" in text
    monkeypatch.setattr(
        "collegium.study.planned_settings.recommended", lambda *given: pytest.fail("again")
    )
    again = settled_method(config, kept, Observer(), keep=True)
    assert again.public() == made.public()
    assert run_study(again, kept.path).accuracy is not None  # goes on where it was


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind = = 3", "cannot be read"),
        ("", "holds no sections"),
        ('method = "dpsgd"', "holds no sections"),
        ('[method]\nkind = "dpsgd"\n[run]\nnoise_seed = 3', "unknown key run.noise_seed"),
    ],
)
def test_what_was_chosen_and_is_damaged_is_told_in_one_line(folder, text, why):
    config, kept = read_config(folder / "study.toml"), StudyFolder(folder / "study")
    kept.open()
    (kept.vault / "manifest.json").write_text("{}", encoding="utf-8")
    (kept.path / CHOSEN).write_text(text, encoding="utf-8")
    with pytest.raises(StudyMismatchError, match=f"{why}.*restore it from a backup"):
        settled_method(config, kept, Observer(), keep=True)


@pytest.mark.parametrize(
    "change", [('"crossed"', '"principal"'), ("[method]", "[dpsgd]\nsteps=9\n[method]")]
)
def test_what_was_chosen_and_is_changed_is_another_study(folder, change):
    config, kept = read_config(folder / "study.toml"), StudyFolder(folder / "study")
    run_study(settled_method(config, kept, Observer(), keep=True), kept.path)
    path = kept.path / CHOSEN
    path.write_text(path.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    with pytest.raises(StudyMismatchError):
        run_study(settled_method(config, kept, Observer(), keep=True), kept.path)


def test_what_was_chosen_before_anything_began_is_chosen_again(folder):
    """Public facts may have been mended since."""
    config, kept = read_config(folder / "study.toml"), StudyFolder(folder / "study")
    settled_method(config, kept, Observer(), keep=True)
    (kept.path / CHOSEN).write_text('[method]\nkind = "pate"\n', encoding="utf-8")
    assert settled_method(config, kept, Observer()).kind.name == "dpsgd"


def test_a_study_that_was_begun_with_a_method_and_names_none_now_is_refused(folder):
    config, kept = read_config(folder / "study.toml"), StudyFolder(folder / "study")
    made = with_sections(config, {"method": {"kind": "pate"}})
    kept.open()
    (kept.vault / "manifest.json").write_text(
        json.dumps({"config": made.public()}), encoding="utf-8"
    )
    with pytest.raises(StudyMismatchError, match="is missing, which says how the study in"):
        settled_method(config, kept, Observer())


def test_nothing_is_written_unless_it_is_to_be_kept(folder):
    kept = StudyFolder(folder / "study")
    settled_method(read_config(folder / "study.toml"), kept, Observer())
    assert not kept.path.exists()


@pytest.mark.parametrize(
    ("section", "kind"),
    [
        ("", "auto"),
        ("[student]\ngoal = 'balanced'", "auto"),
        ("[preprocessing]\nkind = 'tabular'", "pate"),
        ("[teachers]\nn_teachers = 5", "pate"),
        ("[aggregation]\nsigma = 5", "pate"),
        ("[student]\nmodel = 'svm'", "pate"),
        ("[dpsgd]\nsteps = 5", "dpsgd"),
        ("[method]\nkind = 'dpsgd'", "dpsgd"),
        ("[method]\nkind = 'auto'\n[dpsgd]\nsteps = 5", "dpsgd"),
    ],
)
def test_what_a_file_says_decides(folder, section, kind):
    path = folder / "study.toml"
    path.write_text(TEXT + section + "\n", encoding="utf-8")
    config = read_config(path)
    assert config.method.kind == kind and config.is_open == (kind == "auto")
    if kind != "auto":
        with pytest.raises(InputError, match="says how it is learnt"):
            plan(path)


def test_a_guarantee_of_votes_means_votes(folder):
    path = folder / "study.toml"
    path.write_text(
        TEXT.replace("[ledger]", 'guarantee = "data-dependent"\n[ledger]'), encoding="utf-8"
    )
    assert read_config(path).method.kind == "pate"


def test_the_goal_goes_into_the_choice(folder):
    path = folder / "study.toml"
    path.write_text(TEXT + "[student]\ngoal = 'balanced'\n", encoding="utf-8")
    found = plan(path)
    assert (
        found.sections["student"] == {"goal": "balanced"}
        and found.expected.measure == "balanced accuracy"
    )
    made = with_sections(read_config(path), found.sections)
    assert made.student.goal == "balanced" and not made.has_student


def test_other_levels_are_tried_on_request(folder):
    config = read_config(folder / "study.toml")
    assert recommended(config, Observer(), levels={"high": 0.001, "low": 0.001}).expected.middle < (
        recommended(config, Observer()).expected.middle
    )
    with pytest.raises(InputError, match="there is no level 'hihg': allowed are high, low"):
        recommended(config, Observer(), levels={"hihg": 1.0})


def test_labels_of_a_split_are_the_experimenters(tmp_path):
    """Of a named data set, public classes measure: neither a plan nor a model may know them."""
    settings = {
        "method": {"kind": "dpsgd"},
        "data": {
            "dataset": "digits",
            "private_records": 1000,
            "public_records": 400,
            "test_records": 397,
        },
        "privacy": {"levels": {"all": 1.0}, "shares": {"all": 1.0}},
        "ledger": {"url": "none"},
    }
    config = config_from(settings, tmp_path)
    data = load_study_data(config)
    assert data.y_public is not None
    assert not facts_of(config, data).labelled.size
    assert plan_study(config).plan.run.recipe.public_targets is None
    brought = replace(data, arrangement=Arrangement())
    np.testing.assert_array_equal(data.classes[brought.known_codes], data.y_public)


def test_the_command_shows_choice_reasons_prediction_and_consent(folder, collegium):
    code, said, _ = collegium("plan", folder / "study.toml", "--what-if", "high=4")
    assert code == 0
    for words in (
        "Chosen from public facts alone: direct training",
        'preprocessing.kind = "crossed"  (',
        "Expected: accuracy",
        "larger budgets of one level would not help",
        "With high = 4: accuracy",
        "A run takes about",
    ):
        assert words in said
    code, said, _ = collegium("plan", folder / "study.toml", "--json")
    assert json.loads(said)["chosen"]["method"] == "direct training"
    code, said, _ = collegium("run", folder / "study.toml", "--quiet")
    assert code == 0 and (folder / "study" / CHOSEN).exists()


@pytest.mark.parametrize("pair", ["high", "high=", "high=zero", "high=-1", "=3"])
def test_a_what_if_that_is_none_is_told(folder, collegium, pair):
    code, _, said = collegium("plan", folder / "study.toml", "--what-if", pair)
    assert code == 2 and "--what-if" in said and said.count("\n") == 1


def test_a_what_if_of_a_study_that_is_settled_is_refused(folder, collegium):
    path = folder / "study.toml"
    path.write_text(TEXT + "[method]\nkind = 'dpsgd'\n", encoding="utf-8")
    code, _, said = collegium("plan", path, "--what-if", "high=2")
    assert code == 2 and "leave them out" in said


def test_a_goal_that_is_none_is_refused(folder, collegium):
    code, _, said = collegium("plan", folder / "study.toml", "--optimise", "speed")
    assert code == 2 and "accuracy, balanced, auc" in said


def test_other_facts_after_the_beginning_are_another_study(folder):
    config, kept = read_config(folder / "study.toml"), StudyFolder(folder / "study")
    run_study(settled_method(config, kept, Observer(), keep=True), kept.path)
    shutil.copy(folder / "test.csv", folder / "public.csv")
    with pytest.raises(StudyMismatchError, match="public records are not the same"):
        run_study(settled_method(config, kept, Observer(), keep=True), kept.path)


def test_on_a_ledger_it_plans_with_what_people_have_left(folder):
    study = folder / "study.toml"
    text = TEXT.replace('[ledger]\nurl = "none"', 'spend = 1.0\n[ledger]\nurl = "private.ledger"')
    study.write_text(text, encoding="utf-8")
    config, kept = read_config(study), StudyFolder(folder / "study")
    ledger = Ledger.create(folder / "private.ledger")
    fresh = plan(study)
    run_study(settled_method(config, kept, Observer(), keep=True), kept.path)
    everybody = Policy({"high": 2.0, "low": 20.0}).assign(
        np.where(np.arange(600) % 3, "high", "low"), owners=np.arange(600)
    )
    with pytest.raises(BudgetExceededError):
        plan(study)
    ledger.change(everybody)
    study.write_text(study.read_text("utf-8").replace("low = 6.0", "low = 20.0"), encoding="utf-8")
    after = plan(study)
    assert "200 of 600 people take part" in after.notes[0]
    assert not any("ledger" in line for line in fresh.notes)


def test_a_private_file_without_records_is_named(folder):
    header = pd.read_csv(folder / "private.csv", nrows=0)
    header.to_csv(folder / "private.csv", index=False)
    with pytest.raises(InputError, match=r"private\.csv holds no private records"):
        plan(folder / "study.toml")
