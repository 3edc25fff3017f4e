"""Clipped sums over shards: the bits of those in memory, on every engine, whoever dies."""

import contextlib
import stat
import warnings
from dataclasses import replace

import cloudpickle
import mortal_losses
import numpy as np
import pandas as pd
import pytest
from mortal_losses import Mortal, Talkative
from sklearn.base import BaseEstimator, TransformerMixin

from collegium import Policy
from collegium.data.sharding import Granted, ParquetSource, Roles, scan
from collegium.dpsgd.linear_sums import InMemory, Terms
from collegium.dpsgd.memory import DPSGDMemory
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.sampling import Sample
from collegium.dpsgd.settings import DPSGDSettings
from collegium.dpsgd.shards import ShardSums, blocks_in
from collegium.dpsgd.streamed import Stream, feature_shards, summands_from_parquet
from collegium.errors import InputError, WorkerWarning
from collegium.runs.records import Records
from collegium.runs.views import View
from collegium.workers.engines import Engine
from collegium.workers.opaque_payload import OpaquePayload

cloudpickle.register_pickle_by_value(mortal_losses)
PARAMETERS = np.random.default_rng(3).normal(size=(5, 3))
POLICY = Policy({"none": 0.5, "some": 1.0, "much": 3.0}, delta=1e-6)
NUMBERS = ["a", "b", "c", "d"]


def people(n=3000, owners=1200, seed=0):
    random = np.random.default_rng(seed)
    owner = np.minimum(random.integers(owners, size=n), random.integers(owners * 3, size=n))
    frame = pd.DataFrame(random.normal(size=(n, 4)), columns=NUMBERS)
    frame["ill"] = random.integers(3, size=n)
    frame["patient"] = [f"patient {one}" for one in owner]
    frame["level"] = np.array(["none", "some", "much"])[owner % 3]
    frame.loc[owner == owner.max(), "a"] = np.inf
    frame.loc[5, "b"] = np.nan
    return frame


class Case:
    """A table in Parquet files, the run of it, and its sums in memory."""

    def __init__(self, folder, frame, **settings):
        (folder / "private").mkdir()
        for number, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
            frame.iloc[part].to_parquet(folder / "private" / f"{number}.parquet")
        budgets = POLICY.assign(frame["level"].to_numpy(), frame["patient"].to_numpy())
        records = Records(frame[NUMBERS], frame["ill"].to_numpy(), budgets, np.arange(3), None)
        self.recipe = DPSGDRecipe(DPSGDSettings(steps=4, **settings), noise_seed=0)
        self.run = DPSGDRun(self.recipe, records)
        source, roles = ParquetSource(folder / "private"), Roles("ill", "level", "patient")
        found = scan(source, roles, Granted(POLICY), b"key", classes=np.arange(3))
        self.stream = Stream(source, roles, found, self.run.view)
        self.folder = folder / "shards"

    def shards(self, n_shards=6):
        return feature_shards(self.stream, self.run.plan, 5, self.folder, n_shards=n_shards)

    def lent(self, **options):
        return summands_from_parquet(self.stream, self.run, self.folder, **options)

    def expected(self, sample=None):
        return self.run.summands().clipped_sum(PARAMETERS, Sample() if sample is None else sample)


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path, people())


@pytest.mark.parametrize("n_shards", [1, 4, 60])
def test_sums_over_shards_have_the_bits_of_those_in_memory(case, n_shards):
    expected = case.expected()
    assert np.abs(expected).max() > 2**30
    with case.lent(n_shards=n_shards) as summands:
        assert (summands.clipped_sum(PARAMETERS, Sample()) == expected).all()
        modes = {stat.S_IMODE(file.stat().st_mode) for file in case.folder.iterdir()}
        assert modes == {0o600}
        assert stat.S_IMODE(case.folder.stat().st_mode) == 0o700
    assert not case.folder.exists()  # they are a copy of the private records


def test_all_records_of_an_owner_are_in_one_shard_and_every_owner_has_coins_of_their_own(case):
    shards, frame = case.shards(), people()
    counts = frame.groupby("patient").size()
    found, names = [], []
    for number in range(6):
        for block in blocks_in(shards.records(number), 3, f"shard {number}"):
            found += [block.per_owner] * len(block.groups)
            names.append(block.name)
    assert sorted(found) == sorted(counts)
    assert len(set(names)) == len(names)


def test_a_sampled_sum_is_that_of_who_takes_part_and_the_same_for_who_asks_again(case):
    shards, loss = case.shards(), case.run.loss
    terms = replace(case.run.terms, rates=np.array([0.1, 0.3, 0.6]))
    blocks = [
        block
        for number in range(6)
        for block in blocks_in(shards.records(number), 3, f"shard {number}")
    ]
    sample = Sample.fresh()
    sums = ShardSums(shards, loss, terms)
    expected = InMemory(blocks, loss, terms).clipped_sum(PARAMETERS, sample)
    assert (sums.clipped_sum(PARAMETERS, sample) == expected).all()
    assert (sums.clipped_sum(PARAMETERS, Sample.fresh()) != expected).any()
    taken = sum(sample.takes_part(terms.rates[b.groups], b.name).sum() for b in blocks)
    rates = np.concatenate([terms.rates[block.groups] for block in blocks])
    # Beyond 6 standard deviations: once in 500 million.
    assert abs(taken - rates.sum()) < 6 * np.sqrt((rates * (1 - rates)).sum())


def test_the_key_of_a_sample_is_not_shown():
    assert repr(Sample(b"secret key")) == "Sample()"
    assert repr(OpaquePayload(np.full(3, 7.5))) == "<24 bytes>"


def test_a_dpsgd_over_shards_is_the_one_in_memory(case):
    expected = case.run.descend(case.run.summands(), 5).state.parameters
    with case.lent() as summands:
        found = case.run.descend(summands, 5).state.parameters
    assert (found == expected).all()


def test_shards_of_a_run_that_was_cut_off_are_used_again_and_those_of_another_are_not(case):
    with contextlib.suppress(KeyboardInterrupt), case.lent(n_shards=3):
        raise KeyboardInterrupt
    before = [file.stat().st_mtime_ns for file in sorted(case.folder.glob("*.records"))]
    assert len(before) == 3
    case.shards(3)
    assert [file.stat().st_mtime_ns for file in sorted(case.folder.glob("*.records"))] == before
    case.stream = replace(case.stream, view=View(Halved()))
    case.shards(3)
    assert [file.stat().st_mtime_ns for file in sorted(case.folder.glob("*.records"))] != before


class Halved(TransformerMixin, BaseEstimator):
    """Shows half of each number."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X / 2


class Narrower(Halved):
    """Shows no more columns than the records at hand seem to need."""

    def transform(self, X):
        return X.to_numpy()[:, :3]


class Quoting(Halved):
    """Fails, and says about whom."""

    def transform(self, X):
        raise ValueError(f"Ann Secret has {X.to_numpy()[0, 0]}")


@pytest.mark.parametrize(
    ("transformer", "message"),
    [(Narrower(), "makes 3 columns of some private records and 4"), (Quoting(), "ValueError")],
)
def test_what_cannot_be_seen_ends_in_one_line_that_quotes_nobody(case, transformer, message):
    case.stream = replace(case.stream, view=View(transformer))
    with pytest.raises(InputError, match=message) as error:
        case.shards()
    assert "Secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_owners_without_weight_and_empty_shards_add_nothing(case):
    shards, run = case.shards(), case.run
    nothing = np.zeros(3)
    terms = Terms(np.ones(3), nothing, nothing, run.terms.clip_norm)
    assert not ShardSums(shards, run.loss, terms).clipped_sum(PARAMETERS, Sample()).any()
    for number in range(6):
        shards.files[number].write_bytes(b"")
    sums = ShardSums(shards, run.loss, run.terms)
    assert not sums.clipped_sum(PARAMETERS, Sample()).any()
    shards.files[0].unlink()
    with pytest.raises(InputError, match="cannot be read"):
        sums.clipped_sum(PARAMETERS, Sample())


class Counting(DPSGDMemory):
    """Counts what is charged."""

    stride = 1

    def __init__(self):
        self.charges = []

    def charge(self, steps):
        self.charges.append(steps)


ENGINES = ["local", "dask", pytest.param("ray", marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", ENGINES)
def test_a_killed_worker_costs_neither_bits_nor_charges_and_shards_travel_once_unlogged(
    name, case, tmp_path, monkeypatch, capfd
):
    pytest.importorskip({"dask": "distributed"}.get(name, name) if name != "local" else "joblib")
    run = case.run
    expected = run.descend(run.summands(), 5).state.parameters
    packings = []
    monkeypatch.setattr(OpaquePayload, "__reduce_ex__", _counted(packings), raising=False)
    memory = Counting()
    run = DPSGDRun(case.recipe, run.records, memory)
    with Engine(name, workers=2, timeout=600).running() as workers:
        run.loss = Mortal(3, str(tmp_path), 1)
        with case.lent(n_shards=3, workers=workers) as summands:
            summands = replace(summands, loss=run.loss)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", WorkerWarning)
                learnt = run.descend(summands, 5)
            once = len(packings)
            summands = replace(summands, loss=Talkative(3))
            with pytest.raises(InputError, match="of a shard failed: RuntimeError") as error:
                summands.clipped_sum(PARAMETERS, Sample(b"key of a sample"))
            logs = ""
            if name == "dask":
                client = workers._backend._client
                logs = str(client.get_worker_logs()) + str(client.get_scheduler_logs())
                assert len(logs) > 100
    assert (tmp_path / "death 0").exists()
    assert (learnt.state.parameters == expected).all()
    assert memory.charges == [1, 2, 3, 4]
    assert learnt.account.steps == 4
    # In 4 steps: once, and again what a killed worker had; Dask tries pickle before cloudpickle.
    assert (once == 0) if name == "local" else (3 <= once <= 12)
    logs += "".join(capfd.readouterr()) + str(error.value)
    assert "Secret" not in logs
    assert "key of a sample" not in logs


def _counted(packings):
    def reduce(self, protocol):
        packings.append(None)
        return OpaquePayload, (self.content,)

    return reduce
