"""Teachers in a vault: what is there is known, and checkpoints lie where workers can leave them."""

from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from collegium import Budgets, Uniform
from collegium.errors import InputError, StudyMismatchError
from collegium.pate.teachers.ensemble import Teacher, TeacherEnsemble
from collegium.study.folder import StudyFolder
from collegium.study.stored_teachers import StoredTeachers, fetch_teacher, store_teacher
from collegium.workers.engines import Workers


class CutOff(ClassifierMixin, BaseEstimator):
    """A model that could go on where it was cut off, and predicts where it would write that."""

    def __init__(self, checkpoint_folder=None):
        self.checkpoint_folder = checkpoint_folder

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.folder_ = self.checkpoint_folder
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


@pytest.fixture
def folder(tmp_path):
    opened = StudyFolder(tmp_path / "study")
    opened.open()
    opened.claim({}, {})
    return opened


@pytest.fixture
def records():
    X, y = np.arange(40.0).reshape(-1, 1), np.arange(40) % 2
    budgets = Budgets.from_epsilons(np.ones(40), 1e-5)
    return X, y, Uniform().plan_for(budgets, 4).assign(budgets, b"key")


def test_teachers_are_stored_and_found_and_asked_from_there(folder, records):
    stored = StoredTeachers(folder, 4)
    assert stored.missing() == [0, 1, 2, 3]
    ensemble = stored.ensemble(TeacherEnsemble, CutOff(), 0, Workers(), n_classes=2)
    X, y, assignment = records
    assert ensemble.train(X, y, assignment, [1, 3]) == [stored.kept[1], stored.kept[3]]
    again = StoredTeachers(folder, 4)
    assert again.missing() == [0, 2] and again.kept == stored.kept
    assert ensemble.ask([again.kept[1], again.kept[3]], X[:5]).shape == (5, 2)
    assert {path.parent for path in stored.kept} == {folder.vault / "teachers"}


class Runs:
    """What a poisoned file holds: it runs a command as it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return Path.touch, (self.place,)


@pytest.mark.parametrize("how", ["poisoned", "flipped", "another teacher's", "another study's"])
def test_a_teacher_that_this_study_did_not_write_there_is_not_unpickled(folder, tmp_path, how):
    StoredTeachers(folder, 4)
    teacher = Teacher(Runs(tmp_path / "ran"))
    path = store_teacher(folder.vault, 1, teacher)
    if how == "poisoned":
        joblib.dump(Runs(tmp_path / "ran"), path)
    elif how == "flipped":
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    elif how == "another teacher's":
        path = path.rename(path.with_name("000002.joblib"))
    else:
        other = StudyFolder(tmp_path / "other")
        other.open()
        other.claim({}, {})
        StoredTeachers(other, 4)
        path.write_bytes(store_teacher(other.vault, 1, teacher).read_bytes())
    with pytest.raises(InputError, match="is not what this study wrote there") as refusal:
        fetch_teacher(folder.vault, path)
    assert "\n" not in str(refusal.value) and not (tmp_path / "ran").exists()


def test_a_key_that_others_may_read_proves_nothing(folder):
    StoredTeachers(folder, 1)
    path = store_teacher(folder.vault, 0, Teacher(None))
    (folder.vault / "key").chmod(0o644)
    with pytest.raises(StudyMismatchError, match="may be read by others"):
        fetch_teacher(folder.vault, path)


@pytest.mark.parametrize("share_files", [True, False])
def test_checkpoints_lie_in_the_vault_where_workers_see_it_and_nowhere_else(folder, share_files):
    seen = {}

    def ensemble(teacher, seed, **settings):
        seen.update(settings, teacher=teacher, seed=seed)

    workers = SimpleNamespace(share_files=share_files)
    model = CutOff()
    StoredTeachers(folder, 4).ensemble(ensemble, model, 7, workers, n_classes=2)
    expected = folder.vault / "checkpoints" if share_files else None
    assert seen["teacher"].checkpoint_folder == expected
    assert model.checkpoint_folder is None, "the model that was given is not changed"
    assert (seen["seed"], seen["n_classes"], seen["workers"]) == (7, 2, workers)
