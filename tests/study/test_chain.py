"""One chain: what is older than the rest of a folder, edited, or another run's is refused, unchanged."""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from typer.testing import CliRunner

from collegium import CollegiumError
from collegium.cli.main import app
from collegium.errors import InputError, StudyMismatchError
from collegium.study.folder import StudyFolder
from collegium.study.terms import read_terms
from tests.settings_file import settings

posix = pytest.mark.skipif(os.name == "nt", reason="Windows knows no modes and no owners")


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def label(folder, house, *more, out="job"):
    if not (folder / "votes.npy").exists():
        np.save(folder / "votes.npy", house.predictions(160, 100))
        (folder / "budgets.csv").write_text("epsilon\n" + "4\n" * 100, encoding="utf-8")
    return command(
        "label", "--votes", folder / "votes.npy", "--budgets", folder / "budgets.csv", "--classes", 4,
        "--votes-are", "predictions", "--sigma", 30, "--out", folder / out, *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory, house):
    """A finished label job, which no test may change."""
    folder = tmp_path_factory.mktemp("finished")
    assert label(folder, house).exit_code == 0
    return folder


@pytest.fixture
def job(finished, tmp_path):
    """A copy of a finished label job."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path / "job"


def everything(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def refused(result, words=""):
    assert isinstance(result.exception, CollegiumError), result.output
    message = str(result.exception)
    assert "\n" not in message and words in message, message


def refused_unchanged(tmp_path, house, words="", account=True):
    """Neither label nor account --remaining goes on, verify says so, and no byte changes."""
    job = tmp_path / "job"
    before = everything(job)
    refused(label(tmp_path, house), words)
    for option in ("--remaining", "--export") if account else ():
        refused(command("account", option, job))
    assert command("verify", job).exit_code == 1
    assert everything(job) == before


# ------------------------------------------------------------------------------------------ rollback


def cut(job, lines):
    path = job / "vault/journal.jsonl"
    every = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(every[:lines]))
    return len(every)


@pytest.mark.parametrize("ended_is_forgotten", [True, False])
def test_a_journal_that_is_older_than_the_published_labels_is_refused(
    job, tmp_path, house, ended_is_forgotten
):
    if ended_is_forgotten:
        (job / "vault/aggregation.json").unlink()
    original = (job / "vault/journal.jsonl").read_bytes()
    every = range(original.count(b"\n"))
    for lines in {*every[:3], *every[3::13], *every[-3:]}:  # after questions and after answers
        (job / "vault/journal.jsonl").write_bytes(original)
        assert cut(job, lines) > lines
        refused_unchanged(tmp_path, house)


@pytest.mark.parametrize("forgotten", ["digests.json", "privacy.json", "labels.csv"])
def test_what_is_left_of_a_release_is_enough_to_refuse_an_older_journal(
    job, tmp_path, house, forgotten
):
    (job / "vault/aggregation.json").unlink()
    (job / "release" / forgotten).unlink()
    cut(job, 6)
    refused_unchanged(tmp_path, house)


def test_an_older_vault_beside_a_newer_release_is_refused(tmp_path, house, monkeypatch):
    from collegium.study.journal import FileJournal

    settle, job = FileJournal.settle, tmp_path / "job"

    def stop_after_two_blocks(journal, outcomes):
        settle(journal, outcomes)
        if outcomes[0].position >= 16:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileJournal, "settle", stop_after_two_blocks)
        assert label(tmp_path, house).exit_code != 0
    shutil.copytree(job / "vault", tmp_path / "older")
    assert label(tmp_path, house).exit_code == 0
    labels = (job / "release/labels.csv").read_bytes()
    shutil.rmtree(job / "vault")
    shutil.copytree(tmp_path / "older", job / "vault")
    refused_unchanged(tmp_path, house, "older than what was published")
    assert (job / "release/labels.csv").read_bytes() == labels


@pytest.mark.parametrize("with_key", [True, False])
def test_a_journal_of_another_run_with_the_same_settings_is_refused(job, tmp_path, house, with_key):
    assert label(tmp_path, house, out="other").exit_code == 0
    for name in ("journal.jsonl", "terms.json", "manifest.json", "aggregation.json"):
        shutil.copy(tmp_path / "other/vault" / name, job / "vault" / name)
    if with_key:
        shutil.copy(tmp_path / "other/vault/key", job / "vault/key")
    refused_unchanged(tmp_path, house)


def test_a_release_of_another_run_with_the_same_settings_is_refused(job, tmp_path, house):
    assert label(tmp_path, house, out="other").exit_code == 0
    shutil.rmtree(job / "release")
    shutil.copytree(tmp_path / "other/release", job / "release")
    refused_unchanged(tmp_path, house, "of another run")


@pytest.mark.parametrize("name", ["labels.csv", "privacy.json", "digests.json"])
def test_what_is_missing_of_a_release_is_made_again(job, tmp_path, house, name):
    before = everything(job)
    (job / "release" / name).unlink()
    # Digests are written last: without them, it is as if the job had been cut off before.
    assert command("verify", job).exit_code == (name != "digests.json")
    assert label(tmp_path, house).exit_code == 0
    assert command("verify", job).exit_code == 0
    after = everything(job)
    if name == "digests.json":  # being cut off is written down
        before.pop("vault/journal.jsonl"), after.pop("vault/journal.jsonl")
        before.pop("release/digests.json"), after.pop("release/digests.json")
    assert after == before


def test_a_release_without_a_vault_is_refused_and_no_key_is_made(job, tmp_path, house):
    shutil.rmtree(job / "vault")
    before = everything(job)
    refused(label(tmp_path, house), "holds no study")
    assert everything(job) == before


def test_a_job_with_other_settings_leaves_one_that_was_cut_off_untouched(job, tmp_path, house):
    (job / "release/digests.json").unlink()  # the last thing that is written
    before = everything(job)
    refused(
        label(tmp_path, house, *settings(tmp_path, "aggregation.max_labels = 3")),
        "holds another study",
    )
    assert everything(job) == before


def test_going_on_with_a_finished_job_changes_nothing(job, tmp_path, house):
    before = everything(job)
    assert label(tmp_path, house).exit_code == 0
    assert everything(job) == before


# ---------------------------------------------------------------------------------------- account --remaining


def test_no_flipped_bit_of_the_terms_is_believed(job):
    path = job / "vault/terms.json"
    whole, (terms, journal) = path.read_bytes(), read_terms(job)
    outcomes = journal.settled()
    for place in range(0, len(whole), 5):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(StudyMismatchError, match=r"terms\.json is not what the journal"):
            read_terms(job)
    path.write_bytes(whole)
    assert (
        read_terms(job)[0].to_json() == terms.to_json() and read_terms(job)[1].settled() == outcomes
    )


def test_terms_that_look_right_are_not_believed_either(job):
    path = job / "vault/terms.json"
    said = json.loads(path.read_text())
    said["own"]["n_nominal"] *= 2
    path.write_text(json.dumps(said))
    refused(command("account", "--remaining", job), "is not what the journal")


def test_a_block_whose_end_of_line_is_lost_is_counted(job):
    path = job / "vault/journal.jsonl"
    outcomes = read_terms(job)[1].settled()
    path.write_bytes(path.read_bytes()[:-1])
    assert read_terms(job)[1].settled() == outcomes
    assert command("verify", job).exit_code == 0


# ---------------------------------------------------------------------------------------------- flips


def flipping():
    path = Path(__file__).parents[2] / "benchmarks/flipped_bytes.py"
    spec = importlib.util.spec_from_file_location("flipped_bytes", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("state", ["half trained", "half asked", "finished"])
def test_one_flipped_bit_in_any_file_of_a_study_is_noticed_or_harmless(tmp_path, state):
    """Few states, places and teachers; ``python benchmarks/flipped_bytes.py`` takes all of them."""
    bench = flipping()
    bench.write_records(tmp_path)
    told = []
    found = bench.attack(
        state, tmp_path, 1, lambda name: "/0" not in name or "/000001" in name, told.append
    )
    assert not told and not found["silent"]
    assert found["noticed"] >= 2


@pytest.mark.parametrize(
    "name", ["key", "manifest.json", "terms.json", "journal.jsonl", "aggregation.json"]
)
def test_a_flipped_byte_in_the_vault_of_a_label_job_is_refused(job, tmp_path, house, name):
    path = job / "vault" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    needed = name not in ("manifest.json", "aggregation.json")  # to tell what was spent
    refused_unchanged(tmp_path, house, account=needed)


# --------------------------------------------------------------------------------------------- verify


def verified(folder, *more):
    result = command("verify", folder, "--json", *more)
    return result.exit_code, json.loads(result.output)


def test_verify_names_every_piece_and_changes_nothing(job):
    before = everything(job)
    code, said = verified(job)
    assert (code, said["fine"]) == (0, True)
    assert set(said["pieces"].values()) == {"fine"}
    expected = {
        f"vault/{n}" for n in ("journal.jsonl", "manifest.json", "terms.json", "aggregation.json")
    }
    expected |= {f"release/{name}" for name in ("labels.csv", "privacy.json", "digests.json")}
    assert set(said["pieces"]) == expected
    lines = command("verify", job).output.splitlines()
    assert (
        lines[-1] == f"All {len(expected)} files are as the study wrote them."
        and len(lines) == len(expected) + 1
    )
    assert everything(job) == before


def test_verify_tells_the_damaged_piece_from_the_others_and_reads_no_pickle(job, tmp_path):
    teachers = job / "vault/teachers"
    teachers.mkdir()

    class Runs:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    joblib.dump(Runs(), teachers / "000001.joblib")
    (job / "release/labels.csv").write_text("row,label\n")
    code, said = verified(job)
    wrong = {name for name, words in said["pieces"].items() if words != "fine"}
    assert code == 1 and not said["fine"]
    assert wrong == {"vault/teachers/000001.joblib", "release/labels.csv"}
    assert not (tmp_path / "ran").exists()
    assert command("verify", job).output.splitlines()[-1] == (
        "2 of 8 files are not as the study wrote them: delete release/labels.csv, "
        "vault/teachers/000001.joblib, and the next run makes them again."
    )


def test_verify_lists_what_no_run_wrote_and_what_a_killed_one_left(job):
    """A killed writer's copy, a second key and what is about to be published with a release were not seen."""
    hidden = "0123456789abcdef.partial"
    strange = {
        f".private.csv.{hidden}": "killed",
        f"vault/.key.{hidden}": "killed",
        "vault/teachers/notes/a.txt": "not written by this study",
        "vault/teachers/.hidden": "not written by this study",
        "vault/.notes": "not written by this study",
        "release/private.csv": "not released by this study",
        f"release/.labels.csv.{hidden}": "killed",
    }
    for name in strange:
        (job / name).parent.mkdir(parents=True, exist_ok=True)
        (job / name).write_bytes(b"records")
    (job / "release/link.csv").symlink_to("/etc/hostname")
    code, said = verified(job)
    wrong = {name: words for name, words in said["pieces"].items() if words != "fine"}
    assert code == 1 and set(wrong) == {*strange, "release/link.csv"}
    assert all(words in wrong[name] for name, words in strange.items())
    assert "move away what somebody else put there" in command("verify", job).output


def test_a_run_removes_what_a_killed_one_left(job, tmp_path, house):
    left = [job / place / ".any.0123456789abcdef.partial" for place in (".", "vault", "release")]
    other = job / "vault/.votes.npy.partial"  # of which a streamed run goes on
    for path in (*left, other):
        path.touch()
    assert label(tmp_path, house).exit_code == 0
    assert not any(path.exists() for path in left) and other.exists()


def test_a_release_that_is_a_link_is_not_followed(job, tmp_path, house):
    elsewhere = tmp_path / "elsewhere"
    (job / "release").rename(elsewhere)
    (job / "release").symlink_to(elsewhere)
    before = everything(elsewhere)
    (elsewhere / "labels.csv").unlink()
    refused(label(tmp_path, house), "is a link")
    assert everything(elsewhere) == {n: c for n, c in before.items() if n != "labels.csv"}


def test_a_study_may_be_a_link_itself(job, tmp_path, house):
    job.rename(tmp_path / "elsewhere")
    job.symlink_to("elsewhere")
    assert label(tmp_path, house).exit_code == 0


@pytest.mark.parametrize(
    ("piece", "is_gone", "advice"),
    [
        (
            "release/labels.csv",
            False,
            "delete release/labels.csv, and the next run makes it again",
        ),
        ("release/privacy.json", True, "the next run makes it again"),
        ("vault/notes.txt", False, "move away what somebody else put there"),
        ("vault/terms.json", False, "restore the whole folder from one backup"),
        ("vault/key", True, "restore {job}/vault/key from a backup"),
    ],
)
def test_what_verify_advises_helps(job, tmp_path, house, piece, is_gone, advice):
    path, before = job / piece, everything(job)
    path.unlink() if is_gone else path.write_text("{}")
    result = command("verify", job)
    assert result.exit_code == 1
    said = " ".join(result.output.splitlines()[-2 if "key" in piece else -1 :])
    assert advice.format(job=job) in said
    if "restore" in advice:
        refused(label(tmp_path, house))
        path.write_bytes(before[piece])
        path.chmod(0o600)
    elif not is_gone:
        path.unlink()
    assert label(tmp_path, house).exit_code == 0 and command("verify", job).exit_code == 0
    assert everything(job) == before


def test_a_folder_that_has_lost_its_key_wants_its_backup(job, tmp_path, house):
    (job / "vault/key").unlink()
    before = everything(job)
    for result in (label(tmp_path, house), command("account", "--remaining", job)):
        refused(result, f"restore {job}/vault/key from a backup")
    assert everything(job) == before


def test_a_folder_of_another_format_is_refused_in_a_line(job, tmp_path, house):
    """Also where the journal vouches for it: it is a later version's, and none of it is read."""
    folder = StudyFolder(job)
    manifest = json.loads((job / "vault/manifest.json").read_text())
    folder.take_up()
    folder.write_json(job / "vault/manifest.json", {**manifest, "format": 2})
    before = everything(job)
    refused(label(tmp_path, house), "(format 2 instead of 1): it is left untouched")
    assert everything(job) == before


def test_verify_of_no_study_is_refused_in_one_line(tmp_path):
    refused(command("verify", tmp_path), "is not the folder of a study or label job")
    assert not list(tmp_path.iterdir())


def test_the_digests_of_a_release_are_those_of_its_files(job):
    import hashlib

    said = json.loads((job / "release/digests.json").read_text())
    assert said["files"] == {
        name: hashlib.sha256((job / "release" / name).read_bytes()).hexdigest()
        for name in ("labels.csv", "privacy.json")
    }
    assert said["made_of"]["records"] == (job / "vault/journal.jsonl").read_bytes().count(b"\n") - 1


def test_the_point_of_the_journal_that_is_published_tells_nothing_without_the_key(job):
    """It must not be a digest that everybody could compute from guessed votes or records."""
    content = (job / "vault/journal.jsonl").read_bytes()
    texts = [line.split(b" ", 1)[1] for line in content.splitlines()]
    path = job / "guessed.jsonl"
    from collegium.study.journal import START, FileJournal, chained

    head, lines = START, []
    for text in texts:
        head, line = chained(b"", head, json.loads(text))
        lines.append(line)
    path.write_bytes(b"".join(lines))
    said = json.loads((job / "release/digests.json").read_text())["made_of"]
    assert not FileJournal(path).has_been_at(said["records"], said["head"])
    assert StudyFolder(job).open_journal().has_been_at(said["records"], said["head"])


# ------------------------------------------------------------------------------- folders, owners, links


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_folders_are_for_their_owner_whatever_the_mask(tmp_path, house, mask):
    before = os.umask(mask)
    try:
        assert label(tmp_path, house, out="new/job").exit_code == 0
        (tmp_path / "open").mkdir(mode=0o777)
        assert label(tmp_path, house, out="open").exit_code == 0
    finally:
        os.umask(before)
    for folder in (tmp_path / "new/job", *(tmp_path / "new/job").rglob("*")):
        if folder.is_dir():
            assert folder.stat().st_mode & 0o777 == 0o700, folder
    assert (tmp_path / "open").stat().st_mode & 0o022 == 0
    assert (tmp_path / "open/vault").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "new/job/vault").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


@posix
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives folders away"
)
@pytest.mark.parametrize("name", [".", "vault", "vault/terms.json"])
def test_a_folder_of_another_user_is_refused(job, tmp_path, house, name):
    before = everything(job)
    os.chown(job / name, 12345, 12345)
    refused(label(tmp_path, house), "belongs to another user")
    assert everything(job) == before


@posix
@pytest.mark.parametrize("name", ["terms.json", "journal.jsonl", "key", ".lock", "notes.json"])
def test_a_link_in_a_vault_is_not_followed(job, tmp_path, house, name):
    path, elsewhere = job / "vault" / name, tmp_path / "elsewhere"
    elsewhere.write_bytes(path.read_bytes() if path.exists() else b"[]")
    path.unlink(missing_ok=True)
    path.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    refused(label(tmp_path, house), "is a link")
    refused(command("account", "--remaining", job), "is a link")
    refused(command("verify", job), "is a link")
    assert elsewhere.read_bytes() == before


@posix
@pytest.mark.parametrize("name", ["vault", "vault/teachers"])
def test_a_vault_or_folder_in_it_that_is_a_link_is_not_followed(tmp_path, house, name):
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    path = tmp_path / "job" / name
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "elsewhere")
    refused(label(tmp_path, house), "is a link")
    assert not list((tmp_path / "elsewhere").iterdir())
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o755


def test_what_others_put_into_a_new_vault_is_not_taken_for_the_studys_own(tmp_path, house):
    (tmp_path / "job/vault/teachers").mkdir(parents=True)
    (tmp_path / "job/vault/teachers/000000.joblib").write_bytes(b"poison")
    refused(label(tmp_path, house), "has no key")


def test_a_claim_is_needed_before_anything_is_written(tmp_path):
    folder = StudyFolder(tmp_path / "study")
    folder.open()
    with pytest.raises(AssertionError):
        folder.write_json(folder.vault / "notes.json", [])
    with folder.locked():
        folder.claim({}, {})
        folder.write_json(folder.vault / "notes.json", [])
    with pytest.raises(AssertionError):
        folder.write_json(folder.vault / "notes.json", [])


def test_a_folder_cannot_be_cut_off_between_vouching_and_writing(tmp_path, monkeypatch):
    """Whichever write of a sequence fails, the next claim finds nothing wrong, and goes on."""
    from collegium.study import folder as module

    def claim():
        folder = StudyFolder(tmp_path / "study")
        folder.open()
        folder.claim({}, {})
        return folder

    def write(folder):
        for number in range(3):
            for path in (folder.vault / "notes.json", folder.release / "labels.csv"):
                folder.write_json(path, number)

    real = module.write_durably
    for failing in range(1, 8):
        shutil.rmtree(tmp_path / "study", ignore_errors=True)
        calls = []

        def cut_off(*arguments, calls=calls, failing=failing, **options):
            calls.append(None)
            if len(calls) == failing:
                raise InputError("cut off")
            real(*arguments, **options)

        monkeypatch.setattr(module, "write_durably", cut_off)
        with pytest.raises(InputError, match="cut off"):
            write(claim())
        monkeypatch.setattr(module, "write_durably", real)
        for _ in range(2):
            folder = claim()
        write(folder)
        claim()
        assert verified(tmp_path / "study")[0] == 0
