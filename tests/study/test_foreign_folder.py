"""A folder that holds another study is not written into, not even with features of public records."""

import pytest

from collegium.errors import StudyMismatchError
from collegium.study.config import config_from
from collegium.study.folder import StudyFolder
from collegium.study.from_settings import settled
from collegium.study.identity import identity_of
from collegium.study.runner import plan_study

SETTINGS = {
    "data": {"dataset": "digits", "private_records": 400, "public_records": 100},
    "privacy": {"levels": {"all": 8.0}, "shares": {"all": 1.0}},
    "teachers": {"model": "nearest-neighbours", "n_teachers": 20},
    "aggregation": {"aggregator": "gnmax", "sigma": 8.0},
    "run": {"n_jobs": 1},
}


def test_only_a_folder_of_this_very_study_is_lent_to_its_memory(tmp_path):
    config = config_from({"study": {"seed": 1}, **SETTINGS}, tmp_path)
    other = config_from({"study": {"seed": 2}, **SETTINGS}, tmp_path)
    folder = StudyFolder(tmp_path / "study")
    data = plan_study(config, folder, on_ledger=False).plan.run.records
    assert not folder.path.exists()
    folder.open()
    assert (
        plan_study(config, folder, on_ledger=False).plan.run.memory.folder is None
    )  # nobody's yet
    identity_of(settled(config, data.X_public), data.fingerprints).claim(folder)
    assert plan_study(config, folder, on_ledger=False).plan.run.memory.folder == folder.vault
    with pytest.raises(StudyMismatchError, match="now 2"):
        plan_study(other, folder, on_ledger=False)
