"""Folders of a version that had no key: refused until their owner adopts them, and then they go on."""

import json
import shutil
import zlib

import numpy as np
import pytest
from typer.testing import CliRunner

from collegium.cli.main import app
from collegium.durable import SEAL_BYTES
from collegium.errors import CollegiumError
from collegium.pate.teachers.teacher import Teacher
from collegium.study import adoption
from collegium.study.folder import StudyFolder
from collegium.study.stored_teachers import StoredTeachers, fetch_teacher, store_teacher
from collegium.study.terms import read_job


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(result, words):
    assert isinstance(result.exception, CollegiumError), result.output
    message = str(result.exception)
    assert "\n" not in message and words in message, message


def everything(folder):
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


@pytest.fixture
def label(tmp_path, house):
    np.save(tmp_path / "votes.npy", house.predictions(400, 100))
    (tmp_path / "budgets.csv").write_text("epsilon\n" + "4\n" * 100, encoding="utf-8")
    return lambda: command(
        "label", "--votes", tmp_path / "votes.npy", "--budgets", tmp_path / "budgets.csv", "--classes", 4,
        "--votes-are", "predictions", "--sigma", 30, "--out", tmp_path / "job",
    )  # fmt: skip


@pytest.fixture
def former(tmp_path, label):
    """A finished job with a teacher, as an earlier version would have left it."""
    assert label().exit_code == 0
    job = tmp_path / "job"
    folder = StudyFolder(job)
    StoredTeachers(folder, 1)
    teacher = store_teacher(folder.vault, 0, Teacher(None, 3))
    teacher.write_bytes(teacher.read_bytes()[SEAL_BYTES:])
    journal = folder.vault / "journal.jsonl"
    texts = [line.split(b" ", 1)[1] for line in journal.read_bytes().splitlines()]
    lines = [b"%08x %s\n" % (zlib.crc32(text), text) for text in texts if b'"file"' not in text]
    journal.write_bytes(b"".join(lines))
    (folder.vault / "key").unlink()
    (job / "release/digests.json").unlink()
    return job


def test_it_is_refused_unchanged_until_it_is_adopted_and_then_goes_on(former, label):
    before = everything(former)
    refused(label(), "collegium verify --adopt")
    refused(command("account", "--remaining", former), "collegium verify --adopt")
    assert command("verify", former).exit_code == 1
    assert everything(former) == before
    labels = (former / "release/labels.csv").read_bytes()
    assert command("verify", "--adopt", former).exit_code == 0
    assert fetch_teacher(former / "vault", former / "vault/teachers/000000.joblib").constant == 3
    _, asked = read_job(former)
    assert label().exit_code == 0
    assert read_job(former)[1] == asked and (former / "release/labels.csv").read_bytes() == labels
    assert command("verify", former).exit_code == 0


def test_what_is_adopted_is_not_adopted_again(former, tmp_path):
    assert command("verify", "--adopt", former).exit_code == 0
    before = everything(former)
    refused(command("verify", "--adopt", former), "has a key already")
    assert everything(former) == before
    (tmp_path / "empty/vault").mkdir(parents=True)
    refused(command("verify", "--adopt", tmp_path / "empty"), "holds no study or label job")


@pytest.mark.parametrize("forgotten", [(), ("aggregation.json",)])
@pytest.mark.parametrize("lines", [0, 2, 7, -2])
def test_a_journal_that_is_older_than_the_release_is_not_adopted(former, label, lines, forgotten):
    journal = former / "vault/journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:lines]))
    for name in forgotten:
        (former / "vault" / name).unlink()
    refused(command("verify", "--adopt", former), "do not belong together")
    refused(label(), "has no key")


def test_a_damaged_former_journal_is_not_adopted_and_a_torn_line_is_forgotten(former):
    journal = former / "vault/journal.jsonl"
    whole = journal.read_bytes()
    damaged = bytearray(whole)
    damaged[20] ^= 1
    journal.write_bytes(damaged)
    refused(command("verify", "--adopt", former), "damaged in line 1")
    journal.write_bytes(whole + b"0000 torn")
    assert command("verify", "--adopt", former).exit_code == 0


def test_an_adoption_that_is_cut_off_is_gone_on_with(former, tmp_path, monkeypatch, label):
    real = {
        name: getattr(adoption, name) for name in ("write_durably", "seal_as_it_is", "make_key")
    }
    for name, call in [
        ("make_key", 1),
        ("write_durably", 1),
        ("seal_as_it_is", 1),
        ("write_durably", 2),
    ]:
        shutil.copytree(former, tmp_path / "copy")
        shutil.rmtree(former)
        shutil.copytree(tmp_path / "copy", former)
        calls = []

        def cut_off(*arguments, name=name, call=call, calls=calls, **options):
            calls.append(None)
            if len(calls) == call:
                raise CollegiumError("cut off")
            return real[name](*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(adoption, name, cut_off)
            refused(command("verify", "--adopt", former), "cut off")
        refused(label(), "has no key")
        assert command("verify", "--adopt", former).exit_code == 0
        assert label().exit_code == 0
        assert json.loads(command("verify", former, "--json").output)["fine"]
        shutil.rmtree(former)
        shutil.copytree(tmp_path / "copy", former)
        shutil.rmtree(tmp_path / "copy")
