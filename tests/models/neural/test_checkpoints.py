"""Training that is cut off anywhere ends as if it had not been."""

import stat

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.ensemble import RandomForestClassifier  # noqa: E402

from collegium.errors import InputError  # noqa: E402
from collegium.models.catalogue import keep_checkpoints  # noqa: E402
from collegium.models.neural import checkpoints as module  # noqa: E402
from collegium.models.neural.checkpoints import Checkpoints  # noqa: E402
from collegium.models.neural.neural_classifier import NeuralClassifier  # noqa: E402


def shards(n_shards=4, seed=0):
    generator = np.random.default_rng(seed)
    made = []
    for number in range(n_shards):
        y = generator.integers(0, 3, 25 + 5 * number)
        X = (generator.normal(size=(3, 6))[y] + generator.normal(size=(len(y), 6))).astype("f")
        made.append((X, y))
    return made


def classifier(folder=None, **options):
    settings = {"epochs": 6, "network_params": {"hidden": (8,), "dropout": 0.2}, "patience": 50}
    return NeuralClassifier(
        "mlp",
        **{**settings, **options},
        checkpoint_folder=folder,
    )


@pytest.fixture(autouse=True)
def after_every_epoch(monkeypatch):
    """Write each teacher after each epoch, and train one after the other."""
    monkeypatch.setattr(module, "SECONDS", 0)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class CutOff(BaseException):
    """A power cut."""


def cut_after(monkeypatch, writes):
    """Let so many checkpoints be written, and then cut the power."""
    original = Checkpoints.save
    left = [writes]

    def save(self, key, state):
        if left[0] == 0:
            raise CutOff
        left[0] -= 1
        original(self, key, state)

    monkeypatch.setattr(Checkpoints, "save", save)


@pytest.mark.parametrize("group_size", [1, 4])
@pytest.mark.parametrize("writes", [0, 1, 5, 15, 26])
def test_resumed_training_ends_the_same(tmp_path, monkeypatch, writes, group_size):
    whole = classifier().fit_shards(shards(), range(4), 3)
    model = classifier(tmp_path, group_size=group_size)
    with monkeypatch.context() as patch:
        cut_after(patch, writes)
        with pytest.raises(CutOff):
            model.fit_shards(shards(), range(4), 3)
    assert len(list(tmp_path.iterdir())) == min(-(-writes // 7) if group_size == 1 else writes, 4)
    resumed = model.set_params(group_size=1).fit_shards(shards(), range(4), 3)
    for one, other in zip(whole, resumed, strict=True):
        np.testing.assert_allclose(one.sensitive_weights, other.sensitive_weights, atol=1e-3)
        np.testing.assert_allclose(one.sensitive_averages, other.sensitive_averages, atol=1e-3)
    assert not list(tmp_path.iterdir()), "teachers that are handed over leave nothing behind"


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    model = classifier(tmp_path, group_size=1)
    with monkeypatch.context() as patch:
        cut_after(
            patch, 15
        )  # two teachers are done (6 epochs and a result), the third has one epoch
        with pytest.raises(CutOff):
            model.fit_shards(shards(), range(4), 3)
    written = []
    original = Checkpoints.save

    def save(self, key, state):
        written.append(state.get("epoch", "result"))
        original(self, key, state)

    monkeypatch.setattr(Checkpoints, "save", save)
    model.fit_shards(shards(), range(4), 3)
    assert written == [2, 3, 4, 5, 6, "result", 1, 2, 3, 4, 5, 6, "result"]


def test_the_clock_decides_what_is_written(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        Checkpoints, "save", lambda self, key, state: written.append("result" in state)
    )
    monkeypatch.setattr(module, "SECONDS", 1e6)
    model = classifier(tmp_path, group_size=2)
    model.fit_shards(shards(), range(4), 3)
    assert written == [True] * 4


@pytest.mark.parametrize("change", ["records", "labels", "seed", "epochs", "network"])
def test_nothing_is_resumed_with_anything_else(tmp_path, monkeypatch, change):
    def run(model, given, seeds):
        loaded = []
        original = Checkpoints.load

        def load(self, key):
            loaded.append(original(self, key))
            return loaded[-1]

        with monkeypatch.context() as patch:
            patch.setattr(Checkpoints, "load", load)
            cut_after(patch, 3)
            with pytest.raises(CutOff):
                model.fit_shards(given, seeds, 3)
        return [state is not None for state in loaded]

    given = shards(1)
    assert run(classifier(tmp_path, epochs=20), given, [0]) == [False]
    assert run(classifier(tmp_path, epochs=20), given, [0]) == [True]
    X, y = (array.copy() for array in given[0])
    seed, options = 0, {"epochs": 20}
    if change == "records":
        X[3, 2] += 1e-3
    elif change == "labels":
        y[3] = (y[3] + 1) % 3
    elif change == "seed":
        seed = 1
    elif change == "epochs":
        options = {"epochs": 21}
    else:
        options |= {"network_params": {"hidden": (8,), "dropout": 0.3}}
    assert run(classifier(tmp_path, **options), [(X, y)], [seed]) == [False]


def test_files_are_their_owners_only(tmp_path):
    kept = Checkpoints(tmp_path / "new" / "folder")
    kept.save("key", {"epoch": 1, "row": torch.ones(3)})
    (path,) = (tmp_path / "new" / "folder").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("failing", ["torch.save", "os.fsync", "replace"])
def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch, failing):
    kept = Checkpoints(tmp_path)
    kept.save("key", {"epoch": 1})

    def fail(*args, **kwargs):
        if failing == "torch.save":
            args[1].write(b"half of a file")
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        if failing == "torch.save":
            patch.setattr(module.torch, "save", fail)
        elif failing == "os.fsync":
            patch.setattr("os.fsync", fail)
        else:
            patch.setattr("pathlib.Path.replace", fail)
        with pytest.raises(OSError, match="no space"):
            kept.save("key", {"epoch": 2})
    assert kept.load("key") == {"epoch": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_cannot_be_read_starts_its_teacher_again(tmp_path, monkeypatch, caplog):
    whole = classifier().fit_shards(shards(1), [0], 3)
    model = classifier(tmp_path)
    with monkeypatch.context() as patch:
        cut_after(patch, 3)
        with pytest.raises(CutOff):
            model.fit_shards(shards(1), [0], 3)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    (again,) = model.fit_shards(shards(1), [0], 3)
    assert "cannot be read" in caplog.text
    np.testing.assert_array_equal(whole[0].sensitive_weights, again.sensitive_weights)


def half_trained(tmp_path, monkeypatch):
    """Cut training off after three epochs; return the only checkpoint's path."""
    with monkeypatch.context() as patch:
        cut_after(patch, 3)
        with pytest.raises(CutOff):
            classifier(tmp_path).fit_shards(shards(1), [0], 3)
    (path,) = tmp_path.iterdir()
    return path


@pytest.mark.parametrize("place", [0.0, 0.01, 0.2, 0.4, 0.5, 0.6, 0.8, 0.99, 1.0])
def test_a_flipped_bit_starts_the_teacher_again(tmp_path, monkeypatch, caplog, place):
    path = half_trained(tmp_path, monkeypatch)
    key = path.name.removesuffix(".checkpoint")
    kept = Checkpoints(tmp_path)
    assert kept.load(key)["epoch"] == 3
    content = bytearray(path.read_bytes())
    for bit in range(8):
        position = round(place * (len(content) - 1))
        content[position] ^= 1 << bit
        path.write_bytes(content)
        content[position] ^= 1 << bit
        caplog.clear()
        assert kept.load(key) is None
        assert "cannot be read (damaged" in caplog.text and "starts again" in caplog.text
    (again,) = classifier(tmp_path).fit_shards(shards(1), [0], 3)
    (whole,) = classifier().fit_shards(shards(1), [0], 3)
    np.testing.assert_array_equal(whole.sensitive_weights, again.sensitive_weights)


def test_files_of_versions_without_a_digest_start_their_teachers_again(
    tmp_path, monkeypatch, caplog
):
    path = half_trained(tmp_path, monkeypatch)
    key = path.name.removesuffix(".checkpoint")
    torch.save(Checkpoints(tmp_path).load(key), path)
    assert Checkpoints(tmp_path).load(key) is None
    assert "written by another version" in caplog.text
    (again,) = classifier(tmp_path).fit_shards(shards(1), [0], 3)
    (whole,) = classifier().fit_shards(shards(1), [0], 3)
    np.testing.assert_array_equal(whole.sensitive_weights, again.sensitive_weights)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        Checkpoints(tmp_path / "file" / "folder")


def test_a_study_keeps_them_in_its_vault(tmp_path):
    model = keep_checkpoints(NeuralClassifier("mlp"), tmp_path)
    assert model.checkpoint_folder == tmp_path
    own = NeuralClassifier("mlp", checkpoint_folder="elsewhere")
    assert keep_checkpoints(own, tmp_path).checkpoint_folder == "elsewhere"
    forest = RandomForestClassifier()
    assert keep_checkpoints(forest, tmp_path) is forest
