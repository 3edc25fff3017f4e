"""Accounts of DP-SGD with a filter in a study's folder: what a kill takes is paid in full."""

import contextlib
import os

import numpy as np
import pytest

from collegium import Budget, Budgets
from collegium.dpsgd import run as sgd_run
from collegium.dpsgd.filtered import Filtered
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.runs.records import Records
from collegium.study.folder import StudyFolder
from collegium.study.methods.dpsgd.checkpoint import FolderDPSGDMemory

pytestmark = pytest.mark.filterwarnings("ignore:δ is large")
SETTINGS = DPSGDSettings(steps=20, individual_filter=1.5, clip_norm=0.2)  # 60 steps are taken


class Killed(BaseException):
    """A power failure."""


def process(path, killed_at=None):
    """Descend until the end, or until killed: the folder, accounts before and after, steps drawn."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(60, 3))
    budgets = Budgets({"a": Budget(1.0), "b": Budget(3.0)}, np.arange(60) % 2)
    its = Records(
        X, (X[:, 0] + generator.normal(size=60) > 0).astype(int), budgets, np.arange(2), None
    )
    folder = StudyFolder(path)
    folder.open()
    with folder.locked():
        folder.claim({}, {})
        memory = FolderDPSGDMemory(folder, SETTINGS.n_steps_taken)
        run = DPSGDRun(DPSGDRecipe(SETTINGS, noise_seed=3), its, memory)
        summands = run.summands()
        assert isinstance(summands, Filtered)
        before = accounts(summands)
        drawn, noisy, learnt = [], sgd_run.noisy, None

        def draws(total, sigma, noise, *, step):
            drawn.append(step)
            if step == killed_at:
                raise Killed
            return noisy(total, sigma, noise, step=step)

        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr(os, "fsync", lambda descriptor: None)
            patch.setattr(sgd_run, "noisy", draws)
            learnt = run.descend(summands, 4)
    return folder, before, accounts(summands), drawn, learnt


def accounts(summands):
    """What everybody has left."""
    return np.concatenate(list(summands.sensitive_left.values()))


def test_nobody_has_more_left_after_kills_and_nothing_is_drawn_twice(tmp_path):
    _, full, whole, _, _ = process(tmp_path / "whole")
    seen, left = [], full
    for killed_at in (3, 17, 18, None):
        _, before, after, drawn, learnt = process(tmp_path / "killed", killed_at)
        assert (before <= left).all()  # which counts the sums that a kill took
        assert not set(drawn) & set(seen)
        seen, left = seen + drawn, after
    assert seen == list(range(30))
    assert learnt.account.steps == 30
    assert (left >= 0).all()
    assert (left < whole).any()


def test_accounts_are_in_the_vault_and_nowhere_else(tmp_path):
    folder, _, left, _, _ = process(tmp_path / "study")
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    holding = [path for path in files if left.tobytes() in path.read_bytes()]
    assert [path.parent for path in holding] == [folder.vault]
