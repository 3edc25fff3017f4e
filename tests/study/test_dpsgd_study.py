"""Studies that train directly, from the file to what is published."""

import json
import math
import re
import shutil
import signal
import tomllib
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import collegium as cg
from collegium import Ledger, PrivacyWarning
from collegium.distillation.where_in_doubt import WhereInDoubt
from collegium.dpsgd import ensemble_choice
from collegium.dpsgd import run as sgd_run
from collegium.dpsgd.ensemble_choice import Choice
from collegium.dpsgd.run import DPSGDRun
from collegium.errors import BudgetExceededError, InputError, LedgerError, StudyMismatchError
from collegium.study.checkpoint import StudyInterrupted
from collegium.study.config import config_from, read_config
from collegium.study.example import example_config
from collegium.study.json_schema import study_schema
from collegium.study.on_ledger import StudyLedger
from collegium.study.registry import record_of
from collegium.study.runner import plan_study, run_study
from collegium.study.statement_json import statement_and_terms
from collegium.study.terms import read_terms

CLASSES, LEVELS = ["cat", "dog", "owl"], {"high": 2.0, "low": 6.0}
N = 400
ROOT = Path(__file__).parents[2]


def table(n, seed):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, n)
    X = generator.normal(size=(n, 3))
    X[:, 0] += 2 * y
    return pd.DataFrame(X, columns=list("abc")).assign(kind=np.array(CLASSES)[y])


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    who = np.arange(N) // 2
    private = table(N, 1).assign(who=[f"p{one}" for one in who])
    private["level"] = np.where(who % 4 == 0, "high", "low")
    private.to_csv(folder / "private.csv", index=False)
    table(90, 2).to_csv(folder / "public.csv", index=False)
    table(60, 3).assign(level=["high", "low"] * 30).to_csv(folder / "test.csv", index=False)
    return folder


@pytest.fixture
def folder(tables, tmp_path, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for path in tables.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def settings(**sections):
    given = {
        "data": {"private": "private.csv", "public": "public.csv", "test": "test.csv",
                 "target": "kind", "owner": "who", "classes": CLASSES},
        "privacy": {"column": "level", "levels": LEVELS},
        "method": {"kind": "dpsgd"},
        "dpsgd": {"steps": 8},
        "run": {"n_jobs": 1},
        "ledger": {"url": "none"},
    }  # fmt: skip
    for section, keys in sections.items():
        given[section] = {**given.get(section, {}), **keys}
    return given


def study(folder, **sections):
    return config_from(settings(**sections), folder)


PRINCIPAL = {"kind": "principal"}
RDP = {"accountant": "rdp"}  # plans faster
SEEDED = {"noise": "seeded", "noise_seed": 7}


def weights(path):
    model = cg.load_student(path)[-1]
    return np.vstack([model[-1].coef_.T, model[-1].intercept_])


def test_the_same_bits_come_from_a_file_a_run_and_the_estimator(folder):
    config = study(folder, dpsgd=SEEDED)
    run_study(config, folder / "out")
    published = weights(folder / "out")
    planned = plan_study(config).plan
    assert planned.run.recipe.public_targets is not None
    run = DPSGDRun(planned.run.recipe, planned.data)
    learnt = run.learn()
    by_hand = run.model(learnt)[-1]
    assert np.array_equal(published, np.vstack([by_hand.coef_.T, by_hand.intercept_]))
    private, public = (pd.read_csv(folder / f"{name}.csv") for name in ("private", "public"))
    model = cg.DPSGDClassifier(steps=8, noise_seed=7, classes=CLASSES, random_state=0)
    features = list("abc")
    budgets = cg.Policy(LEVELS).assign(private["level"], owners=private["who"])
    model.fit(private[features], private["kind"], budgets=budgets, X_public=public[features],
              y_public=public["kind"])  # fmt: skip
    linear = model.model_[-1][-1]
    assert np.array_equal(published, np.vstack([linear.coef_.T, linear.intercept_]))


def test_what_is_published_says_what_was_done(folder, collegium):
    result = run_study(study(folder), folder / "out")
    assert result.quality.better and result.accuracy > 0.6 and result.lost == 0
    spent = {row.group: row.epsilon_spent for row in result.privacy.groups}
    assert spent == pytest.approx(LEVELS) and all(spent[name] <= LEVELS[name] for name in spent)
    release = folder / "out" / "release"
    names = {path.name for path in release.iterdir()}
    assert names == {"README.md", "digests.json", "effects.json", "privacy.json", "quality.json",
                     "report.html", "student.skops"}  # fmt: skip
    page = (release / "report.html").read_text("utf-8")
    card = (release / "README.md").read_text("utf-8")
    for text in (page, card):
        assert "the noisy sum of clipped gradients of each of 8 steps" in text
        assert "there or blanked" in text and "records were used" in text
        assert "with others in their place" not in text and "teacher" not in text
        assert (
            "The model is better than always answering" in text and "student accuracy" not in text
        )
    predicted = cg.load_student(folder / "out").predict(
        pd.read_csv(folder / "test.csv")[list("abc")]
    )
    assert (predicted == pd.read_csv(folder / "test.csv")["kind"]).mean() == result.accuracy
    statement, terms = statement_and_terms(folder / "out")
    schema = json.loads((ROOT / "docs" / "statement.schema.json").read_text("utf-8"))
    jsonschema.validate(statement, schema)
    assert [event["count"] for event in statement["groups"][0]["events"]] == [8]
    record = record_of(statement, terms)["deployment"]
    assert "noisy sums of clipped gradients" in record["basic"]["description"]
    assert "votes" not in json.dumps(record["implementation"])
    for command, said in (
        (["verify", folder / "out"], "files are as the study wrote them"),
        (["report", folder / "out"], "8 steps were taken, 0 of them lost"),
        (["statement", folder / "out"], "8 steps were taken"),
        (["account", "--remaining", folder / "out"], "8 of 8 steps are charged"),
    ):
        code, output, errors = collegium(*command)
        assert not code and said in output, errors
    code, output, _ = collegium("account", "--export", folder / "out")
    exported = json.loads(output)["groups"]["low"][0]
    assert not code and exported["count"] == 8 and exported["kind"] == "gaussian"


def test_a_model_becomes_an_onnx_file(folder, collegium):
    run_study(study(folder, preprocessing={"kind": "none"}), folder / "out")
    table = folder / "records.csv"
    pd.read_csv(folder / "test.csv")[list("abc")].to_csv(table, index=False)
    code, output, errors = collegium("onnx", folder / "out", table, "--out", folder / "m.onnx")
    assert not code, errors
    assert (folder / "m.onnx").stat().st_size and "60" in output


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"teachers": {"n_teachers": 20}}, "[teachers] means nothing to method.kind = 'dpsgd'"),
        (
            {
                "aggregation": {"sigma": 20},
                "teachers": {"n_teachers": 20},
                "personalisation": {"method": "uniform"},
                "student": {"targets": "noise"},
                "privacy": {"price": "labels"},
            },
            "[aggregation], [teachers], [personalisation], privacy.price and student.targets mean nothing to "
            "method.kind = 'dpsgd': remove them",
        ),
        ({"privacy": {"price": "labels"}}, "privacy.price means nothing to method.kind = 'dpsgd'"),
        ({"privacy": {"guarantee": "data-dependent"}}, "would promise less: remove it"),
        ({"student": {"targets": "noise"}}, "student.targets means nothing"),
        (
            {"method": {"kind": "pate"}},
            "[dpsgd] means nothing to method.kind = 'pate': remove it",
        ),
        (
            {"method": {"kind": "DPSGD"}},
            "method.kind must be one of auto, pate, dpsgd, statistics, synthesis, got 'DPSGD'",
        ),
        ({"dpsgd": {"steps": 0}}, "dpsgd.steps must be at least 1, got 0"),
        ({"dpsgd": {"rate": 0.5}}, "rate goes with sampling"),
        ({"dpsgd": {"rate": 1.5, "sampling": "sample"}}, "dpsgd.rate"),
        ({"dpsgd": {"clip_norm": 0}}, "dpsgd.clip_norm must be greater than 0"),
        ({"dpsgd": {"momentum": 1}}, "dpsgd.momentum must be"),
        (
            {"dpsgd": {"public_labels": "warm"}},
            "dpsgd.public_labels must be one of combine, judge",
        ),
        ({"dpsgd": {"epochs": 3}}, "unknown key dpsgd.epochs"),
        ({"run": {"engine": "dask"}}, "run.engine means nothing to direct training"),
    ],
)
def test_bad_settings_are_refused_in_a_line(folder, changed, said):
    with pytest.raises(InputError) as error:
        study(folder, **changed)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_the_example_names_every_key_and_teachers_need_none_of_them(folder):
    example = example_config()
    assert "[method]" in example and "[dpsgd]" in example and "clip_norm" in example
    config = study(folder)
    assert "teachers" not in config.public() and "student" not in config.public()
    rest = {key: value for key, value in settings().items() if key not in ("method", "dpsgd")}
    pate = config_from({**rest, "teachers": {"n_teachers": 9}}, folder)
    assert pate.public()["method"] == {"kind": "pate"} and "dpsgd" not in pate.public()


def test_an_example_becomes_one_of_direct_training_by_what_one_message_says(folder):
    example = tomllib.loads(example_config())
    example["method"] = {"kind": "dpsgd"}
    with pytest.raises(InputError, match="mean nothing to method") as refusal:
        config_from(example, folder)
    for section in re.findall(r"\[(\w+)\]", str(refusal.value)):
        del example[section]
    assert config_from(example, folder).kind.name == "dpsgd"


@pytest.mark.parametrize("kind", ["dpsgd", "pate"])
@pytest.mark.parametrize(
    ("student", "said"),
    [
        ({"model": "logistc-regression"}, "student.model: unknown model"),
        ({"params": {"Cc": 1}}, "student"),
        ({"class_shares": {"emu": 1.0}}, "student.class_shares must give each class one share"),
        ({"model": "svm", "class_shares": {"emu": 1.0}}, "student.*class.shares"),
    ],
)
def test_a_student_that_cannot_be_made_is_told_by_the_plan(folder, student, said, kind):
    given = settings(student=student)
    if kind == "pate":
        given = {**given, "teachers": {"n_teachers": 10}, "method": {"kind": "pate"}}
        del given["dpsgd"]
    with pytest.raises(InputError, match=said) as refusal:
        plan_study(config_from(given, folder))
    assert "\n" not in str(refusal.value)


def test_numbers_are_no_classes(folder):
    """Whatever the private target is: the public one shows it."""
    for name in ("private", "public", "test"):
        table = pd.read_csv(folder / f"{name}.csv").assign(amount=lambda t: t["a"] * 3)
        table.to_csv(folder / f"{name}.csv", index=False)
    given = settings(data={"target": "amount", "exclude": ["kind"]})
    del given["data"]["classes"]
    with pytest.raises(InputError, match=r"public labels are continuous numbers.*DPSGDRegressor"):
        plan_study(config_from(given, folder))


def test_records_given_to_everybody_are_the_models_where_there_is_no_student(folder, collegium):
    levels = {"high": math.inf, "low": 6.0}
    config = study(folder, privacy={"levels": levels, "public": ["high"]})
    with pytest.warns(PrivacyWarning, match=r"the model learns from these \d+ record.s. as they"):
        result = run_study(config, folder / "out")
    (proviso,) = result.privacy.provisos
    assert "no noisy step is taken over them" in proviso
    for path in (folder / "out" / "release").iterdir():
        content = path.read_bytes().replace(b"student.skops", b"").replace(b"load_student", b"")
        assert path.suffix == ".skops" or b"teacher" not in content
        assert path.suffix == ".skops" or b"the student" not in content, path


def test_budgets_that_buy_noise_are_told_before_anything_is_spent(folder, collegium):
    lines = ["[method]", 'kind = "dpsgd"', "[data]", 'private = "private.csv"', 'target = "kind"',
             'public = "public.csv"', 'owner = "who"', "[privacy]", 'column = "level"',
             "levels = { high = 0.002, low = 0.004 }", "[ledger]", 'url = "none"']  # fmt: skip
    (folder / "s.toml").write_text("\n".join(lines))
    code, output, errors = collegium("plan", folder / "s.toml")
    assert not code and "these budgets buy mostly noise: all 200 people" in " ".join(errors.split())
    code, output, errors = collegium("run", folder / "s.toml", "--json")
    assert not code and "these budgets buy mostly noise" in json.loads(output)["notes"][0]


def test_no_steps_are_affordable(folder):
    config = study(folder, privacy={"levels": {"high": 1e-7, "low": 1e-7}}, dpsgd={"steps": 10_000})
    with pytest.raises(InputError, match="lower steps"):
        plan_study(config)


def test_what_was_begun_cannot_be_changed_but_the_student_may(folder, monkeypatch):
    run_study(study(folder), folder / "out")
    first = (folder / "out" / "release" / "student.skops").read_bytes()
    monkeypatch.setattr(sgd_run, "noisy", None)  # nothing may be drawn any more
    for changed in ({"steps": 9}, {"clip_norm": 0.4}, {"sampling": "sample", "rate": 0.5, **RDP}):
        with pytest.raises(StudyMismatchError, match="holds another study"):
            run_study(study(folder, dpsgd=changed), folder / "out")
    own = {"student": {"model": "sklearn.naive_bayes.GaussianNB"}}
    monkeypatch.setattr(ensemble_choice, "choose", lambda *_: Choice(differ=0.0, by_noise=1.0))
    result = run_study(study(folder, **own), folder / "out")
    assert type(cg.load_student(folder / "out")[-1]).__name__ != "Pipeline"
    assert result.quality.verdict.startswith("The student") and result.accuracy > 0.5
    assert "The published model is a student" in result.report.read_text("utf-8")
    published = json.loads((folder / "out/release/privacy.json").read_text("utf-8"))
    assert published["config"]["student"]["model"] == own["student"]["model"]
    run_study(study(folder), folder / "out")
    assert (folder / "out" / "release" / "student.skops").read_bytes() == first
    published = json.loads((folder / "out/release/privacy.json").read_text("utf-8"))
    assert "student" not in published["config"]
    monkeypatch.setattr(ensemble_choice, "choose", lambda *_: Choice(differ=0.1, by_noise=0.1))
    result = run_study(study(folder, **own), folder / "out")
    assert result.is_student and result.in_doubt
    assert isinstance(cg.load_student(folder / "out")[-1], WhereInDoubt)
    page = result.report.read_text("utf-8")
    assert (
        "The student answers where the two disagree and noise leaves doubt about the model" in page
    )
    run_study(study(folder), folder / "out")
    monkeypatch.setattr(ensemble_choice, "choose", lambda *_: Choice(differ=1.0, by_noise=0.0))
    result = run_study(study(folder, **own), folder / "out")
    assert (folder / "out" / "release" / "student.skops").read_bytes() == first
    assert result.quality.verdict.startswith("The model")
    assert "The published model is a student" not in result.report.read_text("utf-8")
    assert "is a linear classifier" in (folder / "out/release/README.md").read_text("utf-8")


def test_another_plan_than_the_one_it_was_begun_with_is_refused(folder, monkeypatch):
    kill_after(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        run_study(study(folder), folder / "out")
    monkeypatch.undo()
    real = sgd_run.plan_dpsgd

    def other(*given, **more):
        plan = real(*given, **more)
        object.__setattr__(plan, "noise", plan.noise * 0.99)
        return plan

    monkeypatch.setattr(sgd_run, "plan_dpsgd", other)
    with pytest.raises(StudyMismatchError, match="begun with another plan"):
        run_study(study(folder), folder / "out")
    assert read_terms(folder / "out")[1].steps == 3


def kill_after(monkeypatch, steps):
    """Be interrupted at once, as by a second Ctrl-C, in the middle of this step."""
    real = sgd_run.noisy

    def noisy(*given, step, **more):
        if step + 1 == steps:
            raise KeyboardInterrupt
        return real(*given, step=step, **more)

    monkeypatch.setattr(sgd_run, "noisy", noisy)


def test_interrupted_and_killed_it_goes_on_and_says_what_was_lost(folder, monkeypatch, collegium):
    real = sgd_run.noisy

    def press(*given, step, **more):
        if step == 2:
            signal.raise_signal(signal.SIGINT)
        return real(*given, step=step, **more)

    with monkeypatch.context() as patch, pytest.raises(StudyInterrupted):
        patch.setattr(sgd_run, "noisy", press)
        run_study(study(folder), folder / "out")
    assert read_terms(folder / "out")[1].steps == 3
    _, output, _ = collegium("account", "--remaining", folder / "out")
    assert "3 of 8 steps are charged" in output and "takes 5 more steps" in output
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        kill_after(patch, 6)
        run_study(study(folder), folder / "out")
    assert not list((folder / "out" / "release").iterdir())
    result = run_study(study(folder), folder / "out")
    assert (result.steps, result.lost) == (8, 1)
    page = (folder / "out" / "release" / "report.html").read_text("utf-8")
    assert "1 of them" in page and "not taken again" in page


def test_with_a_filter_the_accounts_stay_in_the_vault(folder, monkeypatch):
    config = study(folder, dpsgd={"individual_filter": 1.5})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        kill_after(patch, 7)
        run_study(config, folder / "out")
    result = run_study(config, folder / "out")
    assert (result.steps, result.lost) == (12, 1)
    assert all(row.epsilon_spent <= LEVELS[row.group] for row in result.privacy.groups)
    assert (folder / "out" / "vault" / "sensitive-accounts.npz").stat().st_mode & 0o077 == 0
    again = run_study(config, folder / "out")
    assert again.accuracy == result.accuracy


def on_ledger(folder, **sections):
    """A study whose ledger is the one beside the records, and that takes everything."""
    given = settings(**sections)
    given.pop("ledger")
    given["privacy"] = {**given["privacy"], "spend": 1.0}
    return config_from(given, folder)


def left(folder):
    return {one.level: one.epsilon_spent for one in Ledger(folder / "private.ledger").standings()}


def test_a_ledger_is_charged_before_the_first_step_and_for_what_was_drawn(folder, monkeypatch):
    """All is reserved before; nothing is published unless it is settled; nothing is left for another."""
    real = sgd_run.noisy

    def reserved(*given, **more):
        standing = left(folder)
        assert all(0.99 * LEVELS[name] < standing[name] <= LEVELS[name] for name in LEVELS)
        return real(*given, **more)

    monkeypatch.setattr(sgd_run, "noisy", reserved)
    stop = StudyLedger.settle

    def unreachable(*_):
        raise LedgerError("gone")

    monkeypatch.setattr(StudyLedger, "settle", unreachable)
    with pytest.raises(LedgerError, match="gone"):
        run_study(on_ledger(folder), folder / "out")
    assert not list((folder / "out" / "release").iterdir())
    monkeypatch.setattr(StudyLedger, "settle", stop)
    monkeypatch.setattr(sgd_run, "noisy", None)
    result = run_study(on_ledger(folder), folder / "out")
    assert result.ledger and result.accuracy > 0.5
    entries = len(Ledger(folder / "private.ledger").history())
    assert left(folder) == pytest.approx(
        {row.group: row.epsilon_spent for row in result.privacy.groups}
    )
    run_study(on_ledger(folder), folder / "out")
    assert len(Ledger(folder / "private.ledger").history()) == entries
    with pytest.raises(BudgetExceededError, match="no budget is left in the ledger for 200 people"):
        run_study(on_ledger(folder), folder / "again")


def test_a_ledger_of_replacement_gets_twice_the_noise(folder):
    from collegium.accounting.neighbours import Neighbours

    blanked = plan_study(on_ledger(folder)).plan.run.plan
    Ledger.create(folder / "private.ledger", neighbours=Neighbours.REPLACE)
    replaced = plan_study(on_ledger(folder)).plan.run
    assert replaced.plan.neighbours is Neighbours.ANY_CHANGE
    assert replaced.plan.noise == pytest.approx(2 * blanked.noise, rel=1e-9)
    with pytest.raises(InputError, match="neighbours"):
        plan_study(on_ledger(folder, dpsgd={"neighbours": "zero-out"}))
    with pytest.raises(InputError, match="seeded"):
        plan_study(study(folder, dpsgd=SEEDED, ledger={"url": "private.ledger"}))


def write(path, sections):
    """Write settings as TOML."""
    text = ""
    for section, keys in sections.items():
        text += f"[{section}]\n"
        for key, value in keys.items():
            shown = json.dumps(value)
            if isinstance(value, dict):
                shown = "{ " + ", ".join(f"{k} = {v}" for k, v in value.items()) + " }"
            text += f"{key} = {shown}\n"
    path.write_text(text, "utf-8")


def test_a_plan_says_who_pays_what_and_spends_nothing(folder, collegium):
    path = folder / "study.toml"
    write(path, settings(dpsgd={"sampling": "scale", "rate": 0.2, **RDP}))
    code, output, errors = collegium("plan", path)
    assert not code, errors
    for said in ("8 steps", "Signal to noise", "one person's records", "pays", "rate"):
        assert said in output
    code, output, _ = collegium("plan", path, "--json")
    plan = json.loads(output)
    assert plan["groups"]["high"]["epsilon_spent"] <= 2.0 and plan["seconds"] > 0
    assert plan["groups"]["low"]["clip"] > plan["groups"]["high"]["clip"]
    assert not (folder / "study").exists()
    code, output, _ = collegium("audit", path, "--runs", 400, "--json", "--out", folder / "audit")
    found = json.loads(output)
    assert not code and found["holds"] and found["groups"]["low"]["claim_epsilon"] <= 6.0
    assert read_config(path).kind.name == "dpsgd"


@pytest.mark.filterwarnings("ignore:δ is large")
def test_the_audit_finds_most_of_a_large_claim_and_notices_half_of_the_noise(folder):
    from collegium.attacks.dpsgd_game import play_dpsgd
    from collegium.noise.sources import SeededNoise

    class Half(SeededNoise):
        def noised(self, total, noise, **more):
            return super().noised(total, replace(noise, scale=noise.scale / 2), **more)

    run = plan_study(study(folder, dpsgd={"steps": 2}, privacy={"delta": 1e-2})).plan.run
    for finding in play_dpsgd(run, runs=6000, confidence=1 - 1e-6, noise=SeededNoise(1)):
        assert finding.holds
        assert finding.lower_mu > 0.6 * finding.claim_mu and finding.lower_epsilon > 0.3
    assert not any(one.holds for one in play_dpsgd(run, runs=6000, confidence=0.95, noise=Half(1)))


def test_who_leaves_a_finished_model_has_no_records_any_more_and_the_model_stays(folder, collegium):
    path = folder / "study.toml"
    write(path, settings(data={"public_may_overlap": True}))
    code, _, errors = collegium("run", path)
    assert not code, errors
    published = (folder / "study/release/student.skops").read_bytes()
    code, said, errors = collegium("forget", "p3", path, "--remove-records")
    assert not code, errors
    assert "stays released" in said and "copy the settings to a file of another name" in said
    assert "p3" not in (folder / "private.csv").read_text().replace("\n", ",").split(",")
    assert (folder / "study/release/student.skops").read_bytes() == published


def test_an_editor_marks_what_means_nothing_to_the_method():
    schema = study_schema()
    jsonschema.validate(settings(teachers={}), schema)
    pate = {key: value for key, value in settings().items() if key not in ("method", "dpsgd")}
    jsonschema.validate({**pate, "teachers": {"n_teachers": 9}}, schema)
    for wrong in (
        settings(teachers={"n_teachers": 9}),
        settings(privacy={"price": "labels"}),
        {**pate, "method": {"kind": "pate"}, "dpsgd": {"steps": 9}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
