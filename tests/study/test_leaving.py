"""Somebody leaves a study of any method, before, during or after its run, with budgets left or none."""

import json

import numpy as np
import pandas as pd
import pytest

from collegium import CollegiumError, Ledger, durable
from collegium.cli.forget import _in_words
from collegium.errors import BudgetExceededError, InputError
from collegium.mechanisms import SecureNoise
from collegium.study.config import config_from
from collegium.study.folder import StudyFolder
from collegium.study.forgetting import forget
from collegium.study.methods.kinds import KINDS
from collegium.study.runner import plan_study, run_study
from collegium.study.verifying import examine

N, WHO = 120, "p7"
PLANTED = 77.125  # in the records of the one who leaves
SCHEMA = """
rows_per_owner = 1
[columns.age]
kind = "number"
bounds = [0, 99]
[columns.y]
kind = "category"
categories = ["a", "b"]
[columns.level]
kind = "category"
categories = ["hi", "lo"]
"""
OWN = {
    "pate": {
        "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 6},
        "aggregation": {"aggregator": "gnmax", "sigma": 40.0, "max_queries": 20},
        "student": {"model": "sklearn.naive_bayes.GaussianNB"},
        "run": {"n_jobs": 1},
    },
    "dpsgd": {"dpsgd": {"steps": 4}},
    "statistics": {
        "statistics": {"schema": "schema.toml", "questions": ["mean age", "median age"]}
    },
    "synthesis": {"synthesis": {"schema": "schema.toml", "goal": "fidelity"}},
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore:δ is large"),
]
each_method = pytest.mark.parametrize("kind", KINDS)
on_a_ledger_or_none = pytest.mark.parametrize("url", [None, "none"], ids=["ledger", "no ledger"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    random = np.random.default_rng(3)
    for name, n in (("private", N), ("public", 60)):
        age = random.integers(18, 90, n).astype(float)
        table = pd.DataFrame({"age": age, "y": np.where(age > 50, "a", "b")})
        if name == "private":
            table.loc[7, "age"] = PLANTED
            table = table.assign(who=[f"p{i}" for i in range(n)], level=np.resize(["hi", "lo"], n))
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def study(folder, kind, url=None, spend=None, seed=0):
    data = {"private": "private.csv", "owner": "who"}
    if kind not in ("statistics", "synthesis"):  # which learn nothing
        data |= {"public": "public.csv", "target": "y", "classes": ["a", "b"]}
    given = {
        "study": {"seed": seed},
        "data": data,
        "privacy": {"column": "level", "levels": {"hi": 1.0, "lo": 3.0}},
        "method": {"kind": kind},
        **({} if url is None else {"ledger": {"url": url}}),
        **OWN[kind],
    }
    if spend is not None and url is None:
        section = "statistics" if kind == "statistics" else "privacy"
        given[section] = {**given[section], "spend": spend}
    if kind == "statistics":
        given.pop("study")
    return config_from(given, folder)


def leave(config, out, name=WHO):
    (done,) = forget(name, [(config, out)], remove_records=True)
    return done


class KilledError(BaseException):
    pass


def killed_after_the_first_draw(monkeypatch, config, out):
    """Stop before the second draw, as a crash does."""
    words, drawn = SecureNoise._words, []

    def draw(noise, stream, query, purpose):
        if drawn and drawn[0] != query:
            raise KilledError
        drawn.append(query)
        return words(noise, stream, query, purpose)

    monkeypatch.setattr(SecureNoise, "_words", draw)
    with pytest.raises(KilledError):
        run_study(config, out)
    monkeypatch.setattr(SecureNoise, "_words", words)


def require_gone(folder, out):
    """Nothing of the records is left, but in what was released with noise."""
    assert WHO not in set(pd.read_csv(folder / "private.csv")["who"])
    assert len(pd.read_csv(folder / "private.csv")) == N - 1
    wanted = (np.float64(PLANTED).tobytes(), str(PLANTED).encode(), f",{WHO},".encode())
    for path in folder.rglob("*"):
        if path.is_file():
            assert not any(one in path.read_bytes() for one in wanted), path
    if out.exists():
        at = StudyFolder(out)
        with at.locked():
            assert not [one for one in examine(at) if one.trouble]


def standing(folder, name=WHO):
    return Ledger(folder / "private.ledger").account_of(name).standing


def spent_by(out):
    said = json.loads((out / "release/privacy.json").read_text("utf-8"))
    return {row["group"]: row["epsilon_spent"] for row in said["groups"]}


@each_method
@on_a_ledger_or_none
def test_before_a_run_the_records_go_and_the_run_is_of_the_others(folder, kind, url):
    config, out = study(folder, kind, url), folder / "out"
    done = leave(config, out)
    assert (done.records, done.state, done.has_asked) == (1, "not begun", False)
    assert not out.exists()
    run_study(config, out)
    require_gone(folder, out)


@each_method
@on_a_ledger_or_none
def test_during_a_run_it_goes_on_without_the_person(folder, monkeypatch, kind, url):
    config, out = study(folder, kind, url, 1.0), folder / "out"
    killed_after_the_first_draw(monkeypatch, config, out)
    done = leave(config, out)
    assert (done.records, done.state, done.has_asked) == (1, "begun", True)
    assert bool(done.teachers) == (kind == "pate")
    require_gone(folder, out)
    result = run_study(config, out)
    require_gone(folder, out)
    assert sum(row.owners for row in result.privacy.groups) == N  # as it was planned
    if url is None:
        its, other = standing(folder), standing(folder, "p9")  # of one level
        assert its.has_left and its.spent == other.spent and its.spent.mu_squared > 0
        assert not Ledger(folder / "private.ledger").reservations()
    before = spent_by(out)
    run_study(config, out)  # shown again
    assert spent_by(out) == before


@each_method
@on_a_ledger_or_none
def test_after_a_run_what_was_released_stays_and_is_shown_again(folder, kind, url, monkeypatch):
    config, out = study(folder, kind, url), folder / "out"
    run_study(config, out)
    released = {
        path.name: path.read_bytes()
        for path in (out / "release").iterdir()
        if path.name != "digests.json"
    }
    done = leave(config, out)
    assert (done.records, done.state, done.has_asked) == (1, "finished", True)
    assert done.may_release is (None if url else True)
    require_gone(folder, out)
    monkeypatch.setattr(SecureNoise, "_words", None)
    run_study(config, out)
    assert released == {
        path.name: path.read_bytes()
        for path in (out / "release").iterdir()
        if path.name != "digests.json"
    }
    assert leave(config, out).records == 0
    # However the name comes back, nothing is released about it.
    table = pd.read_csv(folder / "private.csv")
    again = pd.concat(
        [table, pd.DataFrame([{"age": PLANTED, "y": "a", "who": WHO, "level": "lo"}])]
    )
    again[table.columns].to_csv(folder / "private.csv", index=False)
    assert leave(config, out).records == 1
    require_gone(folder, out)


@each_method
def test_nothing_more_is_released_about_who_has_left_and_came_back(folder, kind):
    config = study(folder, kind)
    run_study(config, folder / "out")
    leave(config, folder / "out")
    spent = standing(folder).spent
    table = pd.read_csv(folder / "private.csv")
    back = pd.concat([table, pd.DataFrame([{"age": 1.5, "y": "a", "who": WHO, "level": "lo"}])])
    back.to_csv(folder / "private.csv", index=False)
    with pytest.warns(UserWarning, match="1 of 120 people take no part: 1 has left"):
        run_study(study(folder, kind, seed=1), folder / "second")
    assert standing(folder).spent == spent and standing(folder).has_left
    assert standing(folder, "p9").spent.mu_squared > spent.mu_squared


@pytest.mark.parametrize("kind", ["dpsgd", "statistics"])  # votes give back what they did not use
def test_where_nobody_has_a_budget_left_no_advice_leads_nowhere(folder, kind):
    config = study(folder, kind, spend=1.0)
    out = folder / "study"
    run_study(config, out)
    assert all(one.share_left < 0.1 for one in Ledger(folder / "private.ledger").standings())
    done = leave(config, out)
    assert done.may_release is False
    said = " ".join(_in_words(done))
    assert "stays released" in said and "Nothing can be learnt anew" in said
    assert "collegium ledger change" in said and "another study" not in said
    with pytest.raises(BudgetExceededError, match="collegium ledger change"):
        plan_study(study(folder, kind, seed=1))
    run_study(config, out)


@pytest.mark.parametrize("kind", ["dpsgd", "statistics"])
def test_cut_off_at_any_write_the_same_command_ends_it(folder, monkeypatch, kind):
    config, out = study(folder, kind, spend=1.0), folder / "out"
    killed_after_the_first_draw(monkeypatch, config, out)
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    real, reached = durable.writing_durably, 0
    for call in range(1, 30):
        for path in folder.rglob("*"):
            if path.is_file() and path not in kept:
                path.unlink()
        for path, content in kept.items():
            path.write_bytes(content)
        calls = []

        def stop(*given, calls=calls, call=call, **more):
            calls.append(1)
            if len(calls) == call:
                raise KilledError
            return real(*given, **more)

        monkeypatch.setattr(durable, "writing_durably", stop)
        try:
            leave(config, out)
            break
        except KilledError:
            reached = call
        finally:
            monkeypatch.setattr(durable, "writing_durably", real)
        if call > 1:
            with pytest.raises(InputError, match="forget` was cut off"):
                run_study(config, out)
        assert leave(config, out).records in (0, 1)
        require_gone(folder, out)
    assert reached >= 5
    run_study(config, out)


def test_everybody_with_an_account_of_their_own_lets_a_run_end_first(folder, monkeypatch):
    given = {**study(folder, "dpsgd").given, "dpsgd": {"steps": 4, "individual_filter": 2}}
    config, out = config_from(given, folder), folder / "out"
    killed_after_the_first_draw(monkeypatch, config, out)
    with pytest.raises(CollegiumError, match="let it end"):
        leave(config, out)
    run_study(config, out)
    assert leave(config, out).records == 1
    require_gone(folder, out)


def test_an_open_study_that_was_only_planned_loses_the_records_and_rehearses_nothing(
    folder, collegium, monkeypatch
):
    (folder / "study.toml").write_text(
        '[data]\nprivate = "private.csv"\npublic = "public.csv"\ntarget = "y"\nowner = "who"\n'
        '[privacy]\ncolumn = "level"\nlevels = { hi = 1.0, lo = 3.0 }\n'
    )
    (folder / "study.plan.json").write_text("{}")
    monkeypatch.setattr("collegium.study.planned_settings.recommend_from", None)
    code, said, _ = collegium("forget", WHO, folder / "study.toml", "--remove-records")
    assert code == 0 and "Nothing was learnt from them in this study" in said
    assert not (folder / "study.plan.json").exists()
    require_gone(folder, folder / "study")


def test_another_study_of_the_same_file_is_named_before_anything_goes(folder, collegium):
    """It would have been refused from then on, since its file was another one."""
    (folder / "schema.toml").write_text(SCHEMA)
    ask = (
        '[data]\nprivate = "private.csv"\nowner = "who"\n[privacy]\ncolumn = "level"\n'
        'levels = { hi = 1.0, lo = 3.0 }\n[statistics]\nschema = "schema.toml"\nspend = 0.2\n'
    )
    for name, question in (("one", "mean age"), ("two", "median age")):
        (folder / f"{name}.toml").write_text(f'{ask}questions = ["{question}"]\n')
        assert collegium("run", folder / f"{name}.toml")[0] == 0
    before = (folder / "private.csv").read_bytes()
    code, _, wrong = collegium("forget", WHO, folder / "one.toml", "--remove-records")
    assert code == 2 and "two.toml is a study of the same file" in wrong
    assert (folder / "private.csv").read_bytes() == before
    both = (folder / "one.toml", folder / "two.toml")
    code, said, wrong = collegium("forget", WHO, *both, "--remove-records")
    assert code == 0 and said.count("removed 1 record") == 2, wrong
    for study_file in both:
        assert collegium("run", study_file)[0] == 0
