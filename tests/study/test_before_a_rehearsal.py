"""What needs no rehearsal is refused before one; and a run takes the one that a plan has made."""

import json

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock

from collegium import Ledger, Policy
from collegium.accounting import Neighbours
from collegium.ledger import Cost
from collegium.planner import rehearsal
from collegium.study import kept_rehearsals
from collegium.study.kept_rehearsals import digest_of

N, PUBLIC = 150, 120
TEXT = """\
[data]
private = "private.csv"
public = "public.csv"
target = "y"
owner = "who"
classes = ["no", "yes"]
[privacy]
column = "level"
levels = { high = 1.0, low = 3.0 }
"""
DIRECT = "[dpsgd]\nsteps = 5\n"
either = pytest.mark.parametrize("more", ["", DIRECT], ids=["open", "direct"])
pytestmark = pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")


def write(folder, n=N, seed=4):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n + PUBLIC, 2))
    answer = np.where(x @ [1.0, 0.4] + 0.3 * random.normal(size=len(x)) > 0, "yes", "no")
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": answer})
    owners = {"who": [f"p{i}" for i in range(n)], "level": np.resize(["high", "low"], n)}
    table[:n].assign(**owners).to_csv(folder / "private.csv", index=False)
    table[n:].to_csv(folder / "public.csv", index=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write(tmp_path)
    return tmp_path


def people(n=N, names="p", **levels):
    named = [f"{names}{i}" for i in range(n)]
    return Policy({"high": 1.0, "low": 3.0, **levels}).assign(
        np.resize(["high", "low"], n), owners=named
    )


def use_up(ledger, budgets):
    """Leave nobody anything."""
    most = {name: ledger.lifetime.limit(one) for name, one in budgets.groups.items()}
    costs = {name: Cost(one.mu_squared) for name, one in most.items()}
    ledger.reserve("1", "before", budgets, costs, neighbours=Neighbours.ANY_CHANGE).settle(costs)


def unwritable(folder):
    (folder / "study").write_text("a file")
    return "cannot be written (Not a directory)"


def without_its_vault(folder):
    (folder / "study/release").mkdir(parents=True)
    (folder / "study/release/labels.csv").touch()
    return "the vault beside it holds no study"


def no_ledger_there(folder):
    return "there is no ledger"


def of_others(folder):
    ledger = Ledger.create(folder / "people.ledger")
    ledger.change(people(names="q"))
    return f"but only 0 of these {N}"


def in_another_ledger(folder):
    (folder / "elsewhere").mkdir()
    Ledger.create(folder / "elsewhere/other.ledger").change(people())
    return "another ledger"


def with_other_budgets(folder):
    Ledger.create(folder / "people.ledger").change(people(low=2.0))
    return "a person has one budget for all releases"


def with_nothing_left(folder):
    use_up(Ledger.create(folder / "people.ledger"), people())
    return "no budget is left"


def about_other_neighbours(folder):
    Ledger.create(folder / "people.ledger", neighbours=Neighbours.ANY_CHANGE)
    return "neighbours = 'zero-out' less"


def broken_ledger(folder):
    Ledger.create(folder / "people.ledger")
    (folder / "people.ledger.key").unlink()
    return "people.ledger.key"


def no_public_records(folder):
    (folder / "public.csv").unlink()
    return "does not exist"


def unknown_level(folder):
    table = pd.read_csv(folder / "private.csv")
    table.assign(level="middle").to_csv(folder / "private.csv", index=False)
    return "a privacy level that the policy does not know"


ALL = (unwritable, without_its_vault, no_ledger_there, of_others, in_another_ledger, with_other_budgets,
       with_nothing_left, broken_ledger, no_public_records, unknown_level)  # fmt: skip
OF_A_RUN_ALONE = (unwritable, without_its_vault)


@pytest.fixture
def no_rehearsal(monkeypatch):
    def begun(*given):
        raise AssertionError("a rehearsal was begun")

    monkeypatch.setattr(rehearsal.DPSGDRehearsal, "__init__", begun)


@either
@pytest.mark.parametrize("trouble", ALL, ids=lambda one: one.__name__)
def test_what_needs_no_rehearsal_is_told_before_one(folder, collegium, no_rehearsal, trouble, more):
    reason = trouble(folder)
    if trouble is no_ledger_there:
        more += f'[ledger]\nurl = "{folder}/nowhere.ledger"\n'
    (folder / "study.toml").write_text(TEXT + more)
    for command in ("run",) if trouble in OF_A_RUN_ALONE else ("plan", "run"):
        code, _, said = collegium(command, folder / "study.toml")
        assert (code, said.count("\n")) == (2, 1) and reason in said, said


@either
@pytest.mark.parametrize(
    ("option", "key", "reason"),
    [
        (("--spend", "0.3"), '[ledger]\nurl = "none"\n', "none remembers this study"),
        (("--spend", "3"), "", "greater than 0 and at most 1"),
        ((), '[run]\nengine = "dask"\naddress = "tcp://localhost:1"\n', "run.engine means nothing"),
        ((), "[student]\ngoal = 3\n", "student.goal"),
    ],
)
def test_settings_that_cannot_be_are_told_before_one(
    folder, collegium, no_rehearsal, option, key, reason, more
):
    (folder / "study.toml").write_text(TEXT + more + key)
    for command in ("plan", "run"):
        code, _, said = collegium(command, folder / "study.toml", *option)
        assert code == 2 and reason in said, said


def test_a_ledger_that_promises_more_is_told_before_one(folder, collegium, no_rehearsal):
    reason = about_other_neighbours(folder)
    (folder / "study.toml").write_text(TEXT + DIRECT + 'neighbours = "zero-out"\n')
    for command in ("plan", "run"):
        code, _, said = collegium(command, folder / "study.toml")
        assert code == 2 and reason in said


@either
def test_a_study_that_another_process_runs_is_told_before_one(
    folder, collegium, no_rehearsal, more
):
    (folder / "study.toml").write_text(TEXT + more)
    (folder / "study/vault").mkdir(parents=True)
    with FileLock(folder / "study/vault/.lock"):
        code, _, said = collegium("run", folder / "study.toml")
    assert code == 2 and "another process is running" in said


def count(monkeypatch):
    """Count rehearsals from now on."""
    begun, real = [], rehearsal.DPSGDRehearsal.__init__

    def counted(self, *given):
        begun.append(self)
        real(self, *given)

    monkeypatch.setattr(rehearsal.DPSGDRehearsal, "__init__", counted)
    return begun


USING = "using the rehearsal of `collegium plan`"


@either
def test_a_run_takes_the_rehearsal_of_its_plan_and_a_finished_study_says_so(
    folder, collegium, monkeypatch, more
):
    study, begun = folder / "study.toml", count(monkeypatch)
    study.write_text(TEXT + more)
    code, said, _ = collegium("plan", study, "--json")
    assert code == 0 and len(begun) == 1
    planned = json.loads(said)
    kept = folder / "study.plan.json"
    assert kept.stat().st_mode & 0o077 == 0 and not (folder / "study").exists()
    code, said, notes = collegium("run", study, "--json")
    assert code == 0 and len(begun) == 1 and notes.count(USING) == 1
    granted = {one["group"]: one["epsilon"] for one in json.loads(said)["groups"]}
    assert granted == {name: one["epsilon"] for name, one in planned["groups"].items()}
    if not more:
        chosen = (folder / "study/chosen.toml").read_text()
        assert f"spend = {planned['chosen']['settings']['privacy']['spend']}" in chosen
    assert collegium("verify", folder / "study")[0] == 0
    # What is finished is shown again, and options that come too late are refused.
    code, _, notes = collegium("run", study)
    assert code == 0 and "is finished, so nothing more is drawn or spent" in notes
    for arguments in (
        ("plan", study),
        ("plan", study, "--spend", "0.2"),
        ("run", study, "--spend", "0.2"),
        ("run", study, "--anyway"),
    ):
        code, said, notes = collegium(*arguments)
        assert (code, said) == (2, "") and notes.count("\n") == 1
        assert ("a file of another name" in notes) == ("--anyway" not in arguments)
    assert len(begun) == 1


def other_setting(folder, study, monkeypatch):
    study.write_text(study.read_text().replace("[privacy]", "[study]\nseed = 7\n[privacy]"))


def other_budgets(folder, study, monkeypatch):
    study.write_text(study.read_text().replace("low = 3.0", "low = 2.5"))


def other_public_records(folder, study, monkeypatch):
    table = pd.read_csv(folder / "public.csv")
    table.loc[0, "a"] += 0.5
    table.to_csv(folder / "public.csv", index=False)


def somebody_more(folder, study, monkeypatch):
    table = pd.read_csv(folder / "private.csv")
    table = pd.concat([table, table[:1].assign(who="new")])
    table.to_csv(folder / "private.csv", index=False)


def another_release(folder, study, monkeypatch):
    ledger = Ledger.create(folder / "people.ledger")
    costs = {"high": Cost(0.02), "low": Cost(0.2)}
    ledger.reserve("1", "before", people(), costs, neighbours=Neighbours.ANY_CHANGE).settle(costs)


def other_software(folder, study, monkeypatch):
    monkeypatch.setattr(kept_rehearsals, "versions", lambda: {"collegium": "99"})


def damaged(folder, study, monkeypatch):
    path = folder / "study.plan.json"
    path.write_text(
        path.read_text().replace('"value": 0.', '"value": 5.').replace("method", "mthd")
    )


def somebody_elses(folder, study, monkeypatch):
    monkeypatch.setattr(kept_rehearsals, "is_foreign", lambda path: True)


CHANGES = (other_setting, other_budgets, other_public_records, somebody_more, another_release,
           other_software, damaged, somebody_elses)  # fmt: skip


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """What a plan has kept of either study, made once."""
    return {}


@either
@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_what_has_changed_is_rehearsed_anew(folder, collegium, monkeypatch, planned, change, more):
    study, kept = folder / "study.toml", folder / "study.plan.json"
    study.write_text(TEXT + more)
    if more not in planned:
        assert collegium("plan", study)[0] == 0
        planned[more] = kept.read_text()
    kept.write_text(planned[more])

    class BegunError(Exception):
        pass

    def begun(*given):
        raise BegunError

    change(folder, study, monkeypatch)
    monkeypatch.setattr(rehearsal.DPSGDRehearsal, "__init__", begun)
    with pytest.raises(BegunError):
        collegium("run", study)


def test_private_values_decide_nothing_that_is_kept(folder, collegium, monkeypatch):
    """Another value in each private record but levels: the same rehearsal is taken."""
    study = folder / "study.toml"
    study.write_text(TEXT + DIRECT)
    assert collegium("plan", study)[0] == 0
    table = pd.read_csv(folder / "private.csv")
    table["a"], table["b"] = table["b"] * 1.01, table["a"]
    table["y"] = table["y"].to_numpy()[::-1]
    table.to_csv(folder / "private.csv", index=False)
    begun = count(monkeypatch)
    code, _, notes = collegium("run", study)
    assert code == 0 and USING in notes and not begun


def test_equal_values_have_one_digest_and_others_have_another():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})
    assert digest_of(table) == digest_of(table.copy())
    values = [
        1, 1.0, True, "1", b"1", None, [1], {"a": 1}, {"a": 2}, [[1], 2], [1, [2]],
        np.arange(3), np.arange(3.0), np.arange(3)[::-1], np.array(["a", None], dtype=object),
        table, table[::-1], table.rename(columns={"a": "c"}), table.astype({"a": "float32"}),
    ]  # fmt: skip
    assert len({digest_of(one) for one in values}) == len(values)
