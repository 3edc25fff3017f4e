"""Study folders that were made before the inner structure changed: today's command goes on with them."""

import hashlib
import json
from pathlib import Path

import pytest
from cases import society
from drivers import go_on, unpack
from make_folders import smaller
from record import differences, plain, quickly

from collegium.durable import SEAL_BYTES

FOLDERS = Path(__file__).with_name("folders")
STUDENT = "release/student.joblib"
EXPECTED = json.loads((FOLDERS / "expected.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def records():
    return smaller(society())


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.filterwarnings("ignore")
def test_a_folder_of_before_gives_what_it_gave(name, records, tmp_path):
    unpack(FOLDERS / f"{name}.tar.gz", tmp_path)
    before = models(tmp_path / "study")
    if before.pop(STUDENT, None):  # never read: made again of what was released, in today's form
        (tmp_path / "study" / STUDENT).write_bytes(b"whatever may be in it")
    with quickly():
        found = differences(EXPECTED[name], plain(go_on(tmp_path, records)))
    assert not found, "\n".join([f"{name} does not end as it did; fields that differ:", *found])
    after = models(tmp_path / "study")
    assert {path: after[path] for path in before} == before, "teachers were trained again"
    assert STUDENT not in after


def models(study):
    """Digest every model on disk, without the seal that a teacher gets when its folder is adopted."""
    return {
        str(path.relative_to(study)): hashlib.sha256(without_seal(path, study)).hexdigest()
        for path in study.rglob("*.joblib")
    }


def without_seal(path, study):
    sealed = (study / "vault/key").exists() and "teachers" in path.parts
    return path.read_bytes()[SEAL_BYTES if sealed else 0 :]
