"""What is durable of DP-SGD: charged before it is drawn, and never drawn twice, wherever it is cut off."""

import contextlib
import errno
import os
import random
import shutil
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from collegium import Budget, Budgets
from collegium.dpsgd import grid
from collegium.dpsgd import run as sgd_run
from collegium.dpsgd.optimiser import State
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import StudyMismatchError
from collegium.runs.records import Records
from collegium.study import folder as folders
from collegium.study.folder import StudyFolder
from collegium.study.journal import FileJournal, chained
from collegium.study.manifest_check import JOURNAL_FILE, STATE
from collegium.study.methods.dpsgd.checkpoint import FolderDPSGDMemory
from collegium.study.sealing import read_key

STEPS = 100  # two of them are charged together
POINTS = ("charged", "summed", "drawn", "vouched", "written")
pytestmark = pytest.mark.filterwarnings("ignore:δ is large")


class Killed(BaseException):
    """A power failure: nothing after it is run, nothing before it is undone."""


def records():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(60, 3))
    budgets = Budgets({"a": Budget(1.0), "b": Budget(3.0)}, np.arange(60) % 2)
    return Records(X, (X[:, 0] > 0).astype(int), budgets, np.arange(2), None)


def durable_steps(folder):
    """What a new process would believe of the journal."""
    return FileJournal(folder.vault / JOURNAL_FILE, key=read_key(folder.vault)).steps


class World:
    """One study in one folder, run by one process after another."""

    def __init__(self, path, monkeypatch):
        self.folder, self.drawn, self.keys = StudyFolder(path), [], []
        self.memory, self.learnt, self.point, self.countdown = None, None, "", 0
        self.records = records()
        its = DPSGDSettings(steps=STEPS, sampling="sample", rate=0.5, accountant="rdp")
        self.run = DPSGDRun(DPSGDRecipe(its, noise_seed=3), self.records)
        self.summands = self.run.summands()
        noisy, write = sgd_run.noisy, folders.write_durably

        def draws(total, sigma, noise, *, step):
            self.die("summed")
            assert step < durable_steps(self.folder), "drawn before it was charged"
            self.drawn.append(step)
            released = noisy(total, sigma, noise, step=step)
            self.die("drawn")
            return released

        def writes(target, content, **more):
            if target.name == STATE.rpartition("/")[2]:
                self.die("vouched")
            write(target, content, **more)
            if target.name == STATE.rpartition("/")[2]:
                self.die("written")

        monkeypatch.setattr(
            os, "fsync", lambda descriptor: None
        )  # what is written is read again anyway
        monkeypatch.setattr(sgd_run, "noisy", draws)
        monkeypatch.setattr(folders, "write_durably", writes)

    def die(self, point):
        if point == self.point:
            self.countdown -= 1
            if self.countdown < 0:
                raise Killed

    def process(self, point="", after=0):
        """Run until the end, or until it is killed at this point, after it was there so often."""
        self.point, self.countdown = point, after
        self.folder = StudyFolder(self.folder.path)
        self.folder.open()
        with contextlib.suppress(Killed), self.folder.locked():
            self.folder.claim({}, {})
            self.run.memory = self.memory = FolderDPSGDMemory(self.folder, STEPS)
            charge, sums = self.memory.charge, self.summands.clipped_sum

            def charged(steps):
                charge(steps)
                self.die("charged")

            def summed(parameters, sample):
                assert sample.key not in self.keys, "a sample was drawn twice"
                self.keys.append(sample.key)
                return sums(parameters, sample)

            self.memory.charge = charged
            self.learnt = self.run.descend(SimpleNamespace(clipped_sum=summed), 4)
            self.lost = self.memory.lost
        return self.learnt


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path / "study", monkeypatch)


def test_killed_anywhere_no_step_is_drawn_twice_and_none_before_it_is_charged(world):
    moments, kills = random.Random(5), 0
    while world.learnt is None:
        world.process(moments.choice(POINTS), moments.randint(0, 9))
        kills += world.learnt is None
    assert kills > 10
    assert world.drawn == sorted(set(world.drawn)), "a step was taken twice"
    assert world.learnt.account.steps == STEPS == durable_steps(world.folder)
    # A stride that was cut off is lost as a whole, with what had been drawn of it.
    lost = world.lost
    assert len(world.drawn) >= STEPS - lost > 0
    assert 0 < lost <= 2 * kills
    assert world.learnt.privacy.groups[0].epsilon_spent <= 1.0


def test_a_step_that_was_lost_changes_nothing_else(world):
    """What was kept is gone on from, exactly: the same steps, without those that were lost."""
    world.process("vouched", 20)
    kept = FolderDPSGDMemory(world.folder, STEPS).state()
    charged = durable_steps(world.folder)
    assert kept.step == charged - 2
    world.process()
    run = DPSGDRun(world.run.recipe, world.records)
    state = State(charged, kept.parameters, kept.velocity)
    for step in range(charged, STEPS):
        total = run.summands().clipped_sum(state.parameters, run.recipe.sample(step))
        released = grid.noisy(total, run.plan.noise, run.recipe.noise(), step=step)
        gradient = released * (run.recipe.dpsgd.clip_norm / run.plan.divisor)
        state = sgd_run.stepped(state, gradient, run.recipe.dpsgd, run.learning_rate)
    assert np.array_equal(state.parameters, world.learnt.state.parameters)


def test_all_that_a_state_holds_is_recalled(world):
    world.process("vouched", 20)
    world.point = ""  # nobody is killed any more
    state = FolderDPSGDMemory(world.folder, STEPS).state()
    looks = np.random.default_rng(0).normal(size=(2, 2, 3))
    state = replace(state, looks=looks, counts=np.array([6, 2]))
    folder = StudyFolder(world.folder.path)
    folder.open()
    with folder.locked():
        folder.claim({}, {})
        memory = FolderDPSGDMemory(folder, STEPS)
        with memory.descending():
            memory.charge(memory.charged() + 1)
            memory.keep(state)
    again = FolderDPSGDMemory(world.folder, STEPS).state()
    for one in fields(State):
        assert np.array_equal(getattr(again, one.name), getattr(state, one.name)), one.name


def test_nobody_disturbed_it_gives_the_bits_of_a_run_in_memory(world, monkeypatch):
    learnt = world.process()
    in_memory = DPSGDRun(world.run.recipe, world.records)
    monkeypatch.setattr(sgd_run, "noisy", grid.noisy)
    again = in_memory.descend(in_memory.summands(), 4)
    assert np.array_equal(learnt.state.parameters, again.state.parameters)
    assert world.lost == 0


def test_the_state_is_bound_to_the_journal(world, tmp_path):
    world.process("charged", 10)
    early = tmp_path / "early"
    shutil.copytree(world.folder.path, early)
    world.process("charged", 10)
    late, state = tmp_path / "late", world.folder.path / STATE
    shutil.copytree(world.folder.path, late)
    journal = world.folder.vault / JOURNAL_FILE
    drawn = list(world.drawn)

    def refused(reason):
        with pytest.raises(StudyMismatchError, match=reason):
            world.process()
        assert world.drawn == drawn, "something was drawn"
        for name in (STATE, f"vault/{JOURNAL_FILE}"):
            shutil.copy(late / name, world.folder.path / name)

    shutil.copy(early / STATE, state)
    refused("is not what this study wrote there last")
    content = bytearray(state.read_bytes())
    content[-40] ^= 1
    state.write_bytes(content)
    refused("is not what this study wrote there last")
    state.unlink()
    refused("is gone")
    shutil.copy(early / "vault" / JOURNAL_FILE, journal)
    refused("is not what this study wrote there last")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b'"steps":4}' not in line))
    refused("damaged in line")
    assert world.process().account.steps == STEPS


def test_a_full_disk_charges_nothing_and_one_that_fills_up_meanwhile_loses_nothing(
    world, monkeypatch
):
    world.process("charged", 10)
    before = durable_steps(world.folder)
    room = f".{JOURNAL_FILE}.room"
    opens = os.open

    def full(path, *more, **also):
        if str(path).endswith(room):
            raise OSError(errno.ENOSPC, "full")
        return opens(path, *more, **also)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(OSError, match="full"):
            world.process()
    assert durable_steps(world.folder) == before
    writes, failed = folders.write_durably, []

    def fills_up(path, content, **more):
        if path.name == STATE.rpartition("/")[2] and len(failed) < 3:
            there = (world.folder.vault / room).exists()
            failed.append(there)
            if there:
                raise OSError(errno.ENOSPC, "full")
        writes(path, content, **more)

    monkeypatch.setattr(folders, "write_durably", fills_up)
    lost = 2  # by the kill above
    assert world.process().account.steps == STEPS
    assert world.lost == lost and failed[0]


def test_the_number_of_charged_steps_only_grows(tmp_path):
    path, key = tmp_path / JOURNAL_FILE, b"k" * 32
    journal = FileJournal(path, key=key)
    journal.charge_steps(4, 100)
    for fewer in (4, 3):
        with pytest.raises(ValueError, match="charged before"):
            journal.charge_steps(fewer, 100)
    assert FileJournal(path, key=key).steps == 4 and journal.asked
    for wrong in (3, True, "5", None):
        _, line = chained(key, journal.head, {"steps": wrong})
        with path.open("ab") as file:
            file.write(line)
        with pytest.raises(StudyMismatchError, match="damaged in line 2"):
            FileJournal(path, key=key)
        path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
