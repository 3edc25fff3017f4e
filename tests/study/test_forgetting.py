"""Somebody leaves: only this person's teachers are trained again, records go, what was spent stays."""

import json
import os
import shutil
import signal
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from collegium import Budget, Budgets, CollegiumError, Ledger, PrivacyWarning, durable
from collegium.accounting import Neighbours
from collegium.errors import InputError
from collegium.ledger import Cost
from collegium.pate.teachers import ensemble
from collegium.study import runner
from collegium.study.config import config_from
from collegium.study.folder import StudyFolder
from collegium.study.forgetting import forget
from collegium.study.runner import run_study
from collegium.study.sealing import sealed_content
from collegium.study.verifying import examine
from collegium.study.withdrawals import Leavers
from tests.study.test_on_ledger import table

N, PUBLIC, TEACHERS = 120, 40, 8
PLANTED = 7771234.5  # in the records of the one who leaves
ANN, BOB = "p10", "p11"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    people = np.arange(N) // 2
    private = table(N, 1).assign(
        who=[f"p{number}" for number in people], level=np.where(people % 3, "low", "high")
    )
    private.loc[20, "a"] = PLANTED  # of ANN, as the next
    private.loc[21, ["a", "b", "y"]] = [0.2, 0.2, "yes"]  # who has a say about many public records
    private.to_csv(folder / "private.csv", index=False)
    private.to_csv(folder / "private.csv.gz", index=False)
    private.to_parquet(folder / "private.parquet", index=False)
    table(PUBLIC, 2).drop(columns="y").to_csv(folder / "public.csv", index=False)
    table(PUBLIC, 2).to_csv(folder / "judged.csv", index=False)
    return folder


@pytest.fixture
def folder(tables, tmp_path, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER")
    for path in tables.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def study(folder, **sections):
    settings = {
        "data": {"private": "private.csv", "public": "public.csv", "target": "y", "owner": "who",
                 "classes": ["no", "yes"], "public_may_overlap": True, "scales_may_differ": True},
        "privacy": {"column": "level", "levels": {"high": 1.0, "low": 3.0}},
        "teachers": {"model": "nearest-neighbours", "params": {"n_neighbors": 1},
                     "n_teachers": TEACHERS},
        "aggregation": {"aggregator": "gnmax", "sigma": 25, "max_labels": 24},
        "run": {"n_jobs": 1},
    }  # fmt: skip
    for section, keys in sections.items():
        settings[section] = {**settings.get(section, {}), **keys}
    return config_from(settings, folder)


def quietly(work, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return work(*arguments, **options)


def run(config, out):
    return quietly(run_study, config, out)


def leave(name, config, out, **options):
    (done,) = quietly(forget, name, [(config, out)], **{"remove_records": True, **options})
    return done


def files(folder, place="vault/teachers"):
    return {path.name: path.read_bytes() for path in (folder / place).iterdir() if path.is_file()}


def votes(out):
    return np.load(out / "vault/votes.npy")


def is_sound(out):
    folder = StudyFolder(out)
    with folder.locked():
        return not any(one.trouble for one in examine(folder))


class CutOff(Exception):  # noqa: N818
    pass


def stop_at(monkeypatch, owner, name, call=1):
    """Stop at one call of something, as a crash does."""
    real, calls = getattr(owner, name), []

    def stop(*arguments, **options):
        calls.append(name)
        if len(calls) == call:
            raise CutOff
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, stop)
    return lambda: monkeypatch.setattr(owner, name, real)


def half_asked(monkeypatch, config, out):
    from collegium.study.journal import FileJournal

    restore = stop_at(monkeypatch, FileJournal, "reserve", call=2)
    with pytest.raises(CutOff):
        run(config, out)
    restore()


def trained(monkeypatch, config, out):
    from collegium.pate.pipeline import PateRun

    restore = stop_at(monkeypatch, PateRun, "release")
    with pytest.raises(CutOff):
        run(config, out)
    restore()


def half_trained(monkeypatch, config, out):
    restore = stop_at(monkeypatch, ensemble.TeacherEnsemble, "ask")
    with pytest.raises(CutOff):
        run(config, out)
    restore()


def to_the_end(monkeypatch, config, out):
    run(config, out)


STATES = [half_trained, trained, half_asked, to_the_end]


@pytest.fixture(scope="module")
def begun(tables, tmp_path_factory):
    """Folders with a study in a certain state, each made once; no test may change them."""
    made = {}

    def of(state):
        if state not in made:
            place = tmp_path_factory.mktemp(state.__name__)
            shutil.copytree(tables, place, dirs_exist_ok=True)
            with pytest.MonkeyPatch.context() as patch:
                patch.delenv("COLLEGIUM_LEDGER", raising=False)
                state(patch, study(place), place / "out")
            for path in place.glob("private.ledger*"):  # a copy beside its original is refused
                path.rename(place / f"put-away-{path.name}")
            made[state] = place
        return made[state]

    return of


@pytest.fixture
def at(begun, folder):
    """Make a copy of a study in a certain state."""

    def copied(state, place=folder):
        shutil.copytree(begun(state), place, dirs_exist_ok=True)
        for path in place.glob("put-away-*"):
            path.rename(place / path.name.removeprefix("put-away-"))
        return study(place), place / "out"

    return copied


def planted_in(vault):
    """Search stored models and arrays for the bytes of the planted number, and tables for its digits."""
    found = [np.float64(PLANTED).tobytes(), np.float32(PLANTED).tobytes(), str(PLANTED).encode()]
    return [
        path.relative_to(vault).as_posix()
        for path in vault.rglob("*")
        if path.is_file() and any(one in path.read_bytes() for one in found)
    ]


def spent_on(out):
    groups = json.loads((out / "release/privacy.json").read_text())["groups"]
    return {row["group"]: row["epsilon_spent"] for row in groups}


def kinds(folder):
    return [entry.kind for entry in Ledger(folder / "private.ledger").history()]


@pytest.mark.parametrize("state", STATES)
def test_only_the_persons_teachers_are_trained_again_and_all_else_goes_on(begun, at, folder, state):
    (config, out), is_entered = at(state), state is not half_trained
    before, release, voted = files(out), files(out, "release"), is_entered and votes(out)
    assert planted_in(out / "vault")
    ledger = Ledger(folder / "private.ledger") if is_entered else None
    spent = ledger and ledger.account_of(ANN).standing.spent
    done = leave(ANN, config, out)
    assert (done.records, done.teachers, done.voted_again) == (2, 1, is_entered)
    assert done.has_asked == (state in (half_asked, to_the_end))
    after = files(out)
    (changed,) = {name for name in before if after.get(name) != before[name]}
    assert not planted_in(out / "vault") and files(out, "release") == release
    assert is_sound(out)
    if ledger:
        standing = ledger.account_of(ANN).standing
        assert standing.has_left and standing.spent == spent and done.is_known
        others = np.delete(np.arange(TEACHERS), int(changed[:6]))
        assert (votes(out)[:, others] == voted[:, others]).all()
        assert (votes(out) != voted).any()
    result = run(config, out)
    assert len(result.labels.labels) == 24 and is_sound(out)
    assert kinds(folder).count("reserve") == kinds(folder).count("settle") == 1
    assert spent_on(out) == spent_on(begun(to_the_end) / "out")
    if state is to_the_end:
        now = files(out, "release")
        now.pop("digests.json"), release.pop("digests.json")  # which name a line of the journal
        assert now == release


def test_teachers_and_votes_are_those_of_a_study_that_never_had_the_person(at, folder):
    config, out = at(trained)
    leave(ANN, config, out)
    sizes = {name: size for name, (_, size) in Leavers.of(StudyFolder(out)).groups.items()}
    assert sum(sizes.values()) == N / 2
    run(study(folder, privacy={"sizes": sizes}, ledger={"url": "none"}), folder / "never")
    assert (votes(out) == votes(folder / "never")).all()
    for path in (out / "vault/teachers").iterdir():
        one, other = (sealed_content(place / "vault", place / "vault/teachers" / path.name)
                      for place in (out, folder / "never"))  # fmt: skip
        assert one == other is not None


def test_cut_off_before_any_write_the_same_command_ends_it(at, folder, monkeypatch):
    whole = at(half_asked, folder / "whole")
    leave(ANN, *whole)
    reached = 0
    for call in range(1, 30):
        place = folder / f"{call}"
        again = at(half_asked, place)
        restore = stop_at(monkeypatch, durable, "writing_durably", call)
        try:
            leave(ANN, *again)
            break
        except CutOff:
            reached = call
        finally:
            restore()
        if call > 1:
            with pytest.raises(InputError, match="forget` was cut off"):
                run(*again)
            with pytest.raises(InputError, match="somebody else was cut off"):
                leave(BOB, *again)
        done = leave(ANN, *again)
        assert (done.records, done.teachers) == (2, 1)
        assert not planted_in(place / "out/vault") and is_sound(place / "out")
        assert (place / "private.csv").read_bytes() == (folder / "whole/private.csv").read_bytes()
        assert (votes(place / "out") == votes(whole[1])).all()
        assert kinds(place) == kinds(folder / "whole")
    assert reached == 10  # what is going to happen, the ledger's anchor, records, manifest, …
    assert len(run(*again).labels.labels) == 24


def killed_before_its_rename(name, config, out):
    """Forget in a process of its own, killed when the records' new file is about to take its name."""
    child = os.fork()
    if not child:
        real = Path.replace

        def replace(path, target):
            if target.name == "private.csv":
                os.kill(os.getpid(), signal.SIGKILL)
            return real(path, target)

        Path.replace = replace
        try:
            leave(name, config, out)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_copy_outlives_a_kill_and_keeps_who_leaves_later(at, folder):
    """A whole copy of the private file, without the one who left, lay beside it and kept the next one's."""
    config, out = at(half_asked)
    killed_before_its_rename(ANN, config, out)
    (copy,) = folder.glob(".private.csv.*")
    assert BOB.encode() in copy.read_bytes() and ANN.encode() not in copy.read_bytes()
    leave(ANN, config, out)
    assert not copy.exists()
    left = folder / ".private.csv.0123456789abcdef.partial"
    left.write_bytes((folder / "private.csv").read_bytes())  # of a writer that is gone
    leave(ANN, config, out)  # who has left before: nothing is written
    assert not left.exists()
    killed_before_its_rename(BOB, config, out)
    leave(BOB, config, out)
    tables = {folder / name for name in ("private.csv.gz", "private.parquet")}  # never given
    for path in folder.rglob("*"):
        if path.is_file() and path not in tables:
            content = path.read_bytes()
            assert not any(
                name in content for name in (b",p10,", b",p11,", str(PLANTED).encode())
            ), path


def test_a_copy_that_somebody_writes_now_is_not_said_to_be_gone(at, folder):
    config, out = at(half_asked)
    with durable.writing_durably(folder / "private.csv") as file:
        with pytest.raises(InputError, match="another process is writing"):
            leave(ANN, config, out)
        file.write((folder / "private.csv").read_bytes())
    assert leave(ANN, config, out).records == 2


def test_what_was_trained_again_before_a_crash_is_not_trained_once_more(at, monkeypatch):
    config, out = at(trained)
    restore = stop_at(monkeypatch, StudyFolder, "replace_votes")
    with pytest.raises(CutOff):
        leave(ANN, config, out)
    restore()
    stop_at(monkeypatch, ensemble, "train_batch")
    assert leave(ANN, config, out).voted_again


def test_a_run_that_read_the_records_before_somebody_left_is_refused(at, monkeypatch):
    config, out = at(trained)
    real = runner.plan_study

    def slow(*arguments, **options):
        planned = real(*arguments, **options)
        restore = stop_at(monkeypatch, durable, "writing_durably", call=2)
        with pytest.raises(CutOff):
            leave(ANN, config, out)
        restore()
        return planned

    monkeypatch.setattr(runner, "plan_study", slow)
    with pytest.raises(InputError, match="forget` was cut off"):
        run(config, out)


def test_one_after_the_other_and_nobody_twice(at, folder):
    config, out = at(half_asked)
    leave(ANN, config, out)
    before = files(out), (out / "vault/journal.jsonl").read_bytes()
    assert leave(ANN, config, out).records == 0
    assert (files(out), (out / "vault/journal.jsonl").read_bytes()) == before
    Ledger(folder / "private.ledger").forget(BOB)
    with pytest.raises(CollegiumError, match="`collegium forget` does that"):
        run(config, out)
    assert leave(BOB, config, out).records == 2
    assert leave(ANN, config, out).records == 0
    kept = Leavers.of(StudyFolder(out))
    assert len(kept.people) == 2 and sum(size for _, size in kept.groups.values()) == N / 2
    assert len(run(config, out).labels.labels) == 24
    assert not any(name.encode() in path.read_bytes() for name in (ANN, BOB)
                   for path in (out / "vault").iterdir() if path.is_file())  # fmt: skip


def verified(out, piece):
    folder = StudyFolder(out)
    with folder.locked():
        return next((one for one in examine(folder) if one.piece == piece), None)


def test_what_nobody_needs_once_teachers_have_voted_is_not_promised_again(at, monkeypatch):
    """`verify` said that the next run makes these again, which none did."""
    config, out = at(to_the_end)
    partition, teacher = "vault/partition.npy", "vault/teachers/000001.joblib"
    for piece in (partition, teacher):
        (out / piece).write_bytes(b"damaged")
        found = verified(out, piece)
        assert found.trouble and found.is_spare and not found.made_again
        (out / piece).unlink()
    assert is_sound(out) and verified(out, partition).is_spare
    run(config, out)
    assert not (out / partition).exists() and not (out / teacher).exists() and is_sound(out)


def test_before_they_have_voted_they_are_made_again(at):
    config, out = at(half_trained)
    (out / "vault/partition.npy").unlink()
    assert verified(out, "vault/partition.npy").made_again
    run(config, out)
    assert (out / "vault/partition.npy").exists() and is_sound(out)


def test_what_runs_keep_beside_teachers_goes_as_well(at):
    config, out = at(to_the_end)
    vault = out / "vault"
    kept = [
        vault / name for name in ("features/a.features", "checkpoints/b", "teachers/.c.partial")
    ]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"of a record")
    leave(ANN, config, out)
    assert not any(path.exists() for path in kept)


@pytest.mark.parametrize("source", ["private.csv.gz", "private.parquet"])
def test_packed_and_parquet_files(folder, source):
    config, out = study(folder, data={"private": source, "public": "judged.csv"}), folder / "out"
    run(config, out)
    before, effects = files(out), out / "vault/sensitive-teachers-by-class.csv"
    assert effects.exists()
    leave(ANN, config, out)
    assert not effects.exists()
    assert sum(files(out)[name] != content for name, content in before.items()) == 1
    assert not planted_in(out / "vault") and is_sound(out)
    assert len(run(config, out).labels.labels) == 24 and effects.exists()


def test_other_peoples_bytes_mode_and_place_of_a_file_stay(at, folder):
    config, out = at(trained)
    (folder / "private.csv").rename(folder / "elsewhere.csv")
    (folder / "private.csv").symlink_to("elsewhere.csv")
    (folder / "elsewhere.csv").chmod(0o640)
    lines = (folder / "elsewhere.csv").read_bytes().splitlines(keepends=True)
    leave(ANN, config, out)
    assert (folder / "private.csv").is_symlink()
    assert (folder / "elsewhere.csv").stat().st_mode & 0o777 == 0o640
    kept = [line for line in lines if f",{ANN},".encode() not in line]
    assert (folder / "elsewhere.csv").read_bytes() == b"".join(kept)


def test_the_last_of_a_group_leaves_and_the_plan_stays(folder):
    rows = pd.read_csv(folder / "private.csv").drop(columns="level")
    rows.assign(level=np.where(rows["who"] == ANN, 0.5, 2.0)).to_csv(
        folder / "private.csv", index=False
    )
    config = study(
        folder,
        privacy={"levels": None},
        personalisation={"method": "upsampling"},
        ledger={"url": "none"},
    )
    out = folder / "out"
    first = run(config, out)
    assert leave(ANN, config, out).teachers == first.plan.groups["ε=0.5"].duplicates == 1
    before = files(out)
    done = leave(BOB, config, out)
    assert done.teachers == first.plan.groups["ε=2"].duplicates > 1
    assert sum(files(out)[name] != content for name, content in before.items()) == done.teachers
    assert run(config, out).plan == first.plan


def test_what_people_had_left_stays_theirs(folder, monkeypatch):
    counted = {"privacy": {"price": "histogram"}, "aggregation": {"sigma": 40, "max_labels": 20}}
    run(study(folder, **counted, study={"seed": 7}), folder / "first")
    (folder / "first").rename(folder / "gone")
    config, out = study(folder, **counted), folder / "out"
    half_asked(monkeypatch, config, out)
    codes, standing = np.load(out / "vault/left.npy"), Ledger(folder / "private.ledger").account_of
    before = [standing(name).standing.spent for name in (ANN, BOB)]
    plan = json.loads((out / "vault/terms.json").read_text())
    leave(ANN, config, out)
    assert (np.load(out / "vault/left.npy") == np.delete(codes, 10)).all()
    result = run(config, out)
    assert json.loads((out / "vault/terms.json").read_text()) == plan
    assert sum(group.owners for group in result.plan.groups.values()) == N / 2
    after = [standing(name).standing.spent for name in (ANN, BOB)]
    assert after[0].mu_squared < before[0].mu_squared  # both settled at what it did cost
    assert after[1].mu_squared < before[1].mu_squared and is_sound(out)


def test_who_granted_nothing_leaves_a_file_and_no_teacher(folder):
    rows = pd.read_csv(folder / "private.csv")
    rows.loc[rows["who"] == ANN, "level"] = "none"
    rows.to_csv(folder / "private.csv", index=False)
    config = study(folder, privacy={"levels": {"none": 0, "high": 1.0, "low": 3.0}})
    run(config, folder / "out")
    before = files(folder / "out")
    done = leave(ANN, config, folder / "out")
    assert (done.records, done.teachers, done.is_known) == (2, 0, False)
    assert ANN not in set(pd.read_csv(folder / "private.csv")["who"])
    assert files(folder / "out") == before
    run(config, folder / "out")


def test_who_had_nothing_left_leaves_a_file_and_no_teacher(folder):
    ledger = Ledger.create(folder / "private.ledger")
    used = Budgets({"low": Budget(3.0)}, [0], [ANN])
    mu_squared = ledger.lifetime.limit(Budget(3.0)).mu_squared
    ledger.reserve("1", "other", used, {"low": Cost(mu_squared)}, neighbours=Neighbours.ANY_CHANGE)
    counted = {"privacy": {"price": "histogram"}, "ledger": {"allow_new_people": True}}
    config, out = study(folder, **counted), folder / "out"
    run(config, out)
    before, codes = files(out), np.load(out / "vault/left.npy")
    assert codes[10] == -1 and (np.delete(codes, 10) >= 0).all()
    done = leave(ANN, config, out)
    assert (done.records, done.teachers, done.is_known) == (2, 0, True)
    assert files(out) == before and len(np.load(out / "vault/left.npy")) == len(codes) - 1
    run(config, out)


def test_a_reservation_that_the_folder_does_not_know_yet_is_kept(folder, monkeypatch):
    config, out = study(folder), folder / "out"
    real = Ledger.reserve

    def cut_off_after(*given, **more):
        real(*given, **more)
        raise CutOff

    monkeypatch.setattr(Ledger, "reserve", cut_off_after)
    with pytest.raises(CutOff):
        run(config, out)
    monkeypatch.setattr(Ledger, "reserve", real)
    assert kinds(folder).count("reserve") == 1
    leave(ANN, config, out)
    run(config, out)
    assert kinds(folder).count("reserve") == kinds(folder).count("settle") == 1


def test_who_left_is_not_forgotten_by_the_folder(at):
    config, out = at(trained)
    leave(ANN, config, out)
    (out / "vault/leavers.json").unlink()
    with pytest.raises(CollegiumError, match=r"leavers\.json is gone"):
        run(config, out)


def test_the_only_one_is_refused(folder):
    rows = pd.read_csv(folder / "private.csv")
    rows[rows["who"] == ANN].to_csv(folder / "private.csv", index=False)
    config = study(folder, teachers={"n_teachers": 1}, ledger={"url": "none"})
    run(config, folder / "out")
    refused(ANN, config, folder / "out", "nobody else has records")


def test_a_class_that_only_the_person_had_is_refused(folder):
    rows = pd.read_csv(folder / "private.csv")
    rows.loc[rows["who"] == ANN, "y"] = "perhaps"
    rows.to_csv(folder / "private.csv", index=False)
    config = study(folder, data={"classes": None})
    run(config, folder / "out")
    refused(ANN, config, folder / "out", "only this person has one of them")
    assert leave(BOB, config, folder / "out").records == 2


def test_other_votes_than_those_that_were_asked_about_are_refused_as_before(at):
    config, out = at(half_asked)
    leave(ANN, config, out)
    (out / "vault/votes.npy").unlink()
    for path in (out / "vault/teachers").iterdir():
        path.unlink()
    run(config, out)  # the same teachers, and so the same votes
    folder = StudyFolder(out)
    with folder.locked():
        folder.take_up()
        with pytest.raises(CollegiumError, match="not those that were asked about"):
            folder.write_array(out / "vault/votes.npy", np.zeros((2, 2)))


def test_several_studies_of_one_file_belong_together(folder):
    configs = [study(folder, study={"seed": seed}, ledger={"url": "none"}) for seed in (1, 2)]
    outs = [folder / "one", folder / "two"]
    for config, out in zip(configs, outs, strict=True):
        run(config, out)
    shutil.copy(folder / "private.csv", folder / "before.csv")
    leave(ANN, configs[0], outs[0])
    with pytest.raises(InputError, match=r"no record of anybody of this name"):
        leave(ANN, configs[1], outs[1])
    shutil.copy(folder / "before.csv", folder / "private.csv")
    both = list(zip(configs, outs, strict=True))
    done = quietly(forget, ANN, both, remove_records=True)
    assert [one.records for one in done] == [2, 2]  # the first study's came back
    done = quietly(forget, BOB, both, remove_records=True)
    assert [one.records for one in done] == [2, 2]
    for config, out in both:
        assert not planted_in(out / "vault")
        run(config, out)


def refused(name, config, out, words, **options):
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(CollegiumError, match=words) as caught:
        leave(name, config, out, **options)
    assert "\n" not in str(caught.value)
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        (
            {"data": {"public": None, "private_records": 60, "public_records": 40}},
            "split off",
        ),
        ({"data": {"owner": None}}, "do not say whose"),
        ({"data": {"private_labels": "y.npy", "target": None}}, "position alone"),
        ({"privacy": {"file": "levels.csv", "column": None}}, "position alone"),
        ({"data": {"private": "private.npy"}}, "no CSV or Parquet table"),
    ],
)
def test_records_that_nobody_can_be_taken_out_of_alone(folder, sections, reason):
    refused(ANN, study(folder, **sections), folder / "out", reason)


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"privacy": {"shares": {"high": 0.5, "low": 0.5}, "column": None}}, "by lot"),
        ({"teachers": {"assignment": "balanced"}}, "balanced assignment"),
        ({"privacy": {"guarantee": "data-dependent", "delta": 1e-3}}, "data-dependent account"),
    ],
)
def test_what_cannot_be_planned_without_somebody_ends_first_and_is_only_shown(
    folder, monkeypatch, collegium, sections, reason
):
    """It was refused for ever, with the advice to begin another study; nobody has a budget for that."""
    if "shares" in sections.get("privacy", {}):
        rows = pd.read_csv(folder / "private.csv").drop(columns="level")
        rows.to_csv(folder / "private.csv", index=False)
    config, out = study(folder, ledger={"url": "none"}, **sections), folder / "out"
    half_asked(monkeypatch, config, out)
    refused(ANN, config, out, f"cannot go on without one person: .*{reason}.*let it end")
    run(config, out)
    release = files(out, "release")
    assert leave(ANN, config, out).records == 2
    assert ANN not in set(pd.read_csv(folder / "private.csv")["who"])
    assert (
        not planted_in(out / "vault")
        and is_sound(out)
        and not list((out / "vault/teachers").iterdir())
    )
    assert files(out, "release") == release
    with pytest.raises(InputError, match="is finished, and somebody has left since"):
        run(config, out)
    assert collegium("report", out)[0] == 0
    assert leave(BOB, config, out).records == 2
    assert leave(ANN, config, out).records == 0


def test_what_is_refused_changes_nothing(at, folder):
    config, out = at(half_asked)
    refused("p1 ", config, out, "no record of anybody of this name")
    refused(ANN, config, out, r"holds 2 record\(s\).*--remove-records", remove_records=False)
    refused(ANN, study(folder, study={"seed": 5}), out, "holds another study")
    refused(ANN, study(folder, ledger={"url": "none"}), out, "begun on another ledger")
    rows = (folder / "private.csv").read_bytes()
    (folder / "private.csv").write_bytes(rows + rows.splitlines(keepends=True)[-1])
    refused(ANN, config, out, "is not the file that")
    assert kinds(folder).count("leave") == 0


def test_the_command_says_what_it_did(at, folder, collegium):
    at(half_asked)
    (folder / "out.toml").write_text(
        """
        [data]
        private = "private.csv"
        public = "public.csv"
        target = "y"
        owner = "who"
        classes = ["no", "yes"]
        public_may_overlap = true
        scales_may_differ = true
        [privacy]
        column = "level"
        levels = { high = 1.0, low = 3.0 }
        [teachers]
        model = "nearest-neighbours"
        params = { n_neighbors = 1 }
        n_teachers = 8
        [aggregation]
        aggregator = "gnmax"
        sigma = 25
        max_labels = 24
        [run]
        n_jobs = 1
        """
    )
    code, _, wrong = collegium("forget", ANN, folder / "out.toml")
    assert code == 2 and "--remove-records" in wrong
    code, said, wrong = collegium("forget", ANN, folder / "out.toml", "--remove-records")
    assert code == 0, wrong
    for words in ("removed 2 records from", "voted again", "stays released", "What was spent stays",
                  "backups"):  # fmt: skip
        assert words in said
    code, said, _ = collegium("forget", ANN, folder / "out.toml")
    assert code == 0 and "nothing to do" in said
    _, said, _ = collegium("forget", BOB, folder / "out.toml", "--remove-records", "--json")
    assert json.loads(said)[0]["records"] == 2


def test_where_budgets_are_as_fine_as_people_the_plan_stays_and_few_shards_change(folder):
    """Groups are made of what everybody granted, those who left among them."""
    private = pd.read_csv(folder / "private.csv")
    many = pd.concat([private.assign(who=private["who"] + f"-{i}") for i in range(5)])
    many["level"] = many["who"].factorize()[0] / 100 + 0.5  # 300 different budgets
    many.to_csv(folder / "private.csv", index=False)
    config = study(
        folder,
        privacy={"column": "level", "levels": None},
        personalisation={"method": "hybrid"},
        aggregation={"sigma": 100},
        ledger={"url": "none"},
    )
    out = folder / "out"
    plan = run(config, out).plan
    assert len(plan.groups) <= 200
    before = files(out)
    done = leave("p10-2", config, out)
    assert done.records == 2
    assert done.voted_again
    after = files(out)
    assert before.keys() == after.keys()
    assert sum(before[name] != after[name] for name in before) <= done.teachers <= 6
    assert run(config, out).plan == plan
