"""Features by a network that is brought along: what it makes of records, and what is refused."""

import os
import pickle
import re

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from collegium import load_student
from collegium.errors import InputError
from collegium.features import CachedTransform, Embeddings, NetworkFeatures
from collegium.models.features.network_features import WeightsFile, brought_by
from collegium.study.student_file import student_bytes

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from collegium.models.neural.networks import mlp, small_cnn  # noqa: E402

HERE = __name__


class Odd(nn.Module):
    """Draws at random, or looks at other records, whether it is trained or not."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.last = how, nn.Linear(3, 2)

    def forward(self, x):
        x = x + torch.randn(()) if self.how == "random" else x - x.mean(dim=0)
        return self.last(x)


class NoLinear(nn.Module):
    """Two layers, and none of them linear."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.pool = nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        return self.pool(self.first(x))


def annotated(width: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 2))


def without_annotation():
    raise AssertionError("it must not be called")


@pytest.fixture
def images():
    return np.random.default_rng(0).random((70, 12, 12)).astype(np.float32)


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    network = small_cnn(5, (1, 12, 12))
    for layer in network:
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_()
    torch.save(network.state_dict(), tmp_path / "net.pt")
    return network.eval(), tmp_path / "net.pt"


def state_in(path, network):
    torch.save(network.state_dict(), path)
    return path


def test_features_are_what_enters_the_last_linear_layer(images, saved):
    network, path = saved
    made = NetworkFeatures("small-cnn", path).fit(images).transform(images)
    with torch.no_grad():
        expected = network[:-1](torch.from_numpy(images[:, None])).numpy()
    assert made.dtype == np.float32 and made.shape == (70, expected.shape[1])
    np.testing.assert_allclose(made, expected, atol=1e-5)


def test_a_layer_is_taken_by_its_name(images, saved):
    network, path = saved
    features = NetworkFeatures("small-cnn", path, layer="2").fit(images)
    with torch.no_grad():
        expected = network[:3](torch.from_numpy(images[:2, None])).flatten(1).numpy()
    np.testing.assert_allclose(features.transform(images[:2]), expected, atol=1e-5)
    assert len(features.get_feature_names_out()) == features.n_features_out_ == expected.shape[1]


def test_records_are_brought_to_the_networks_scale(images, saved):
    plain = NetworkFeatures("small-cnn", saved[1]).fit(images).transform(images)
    scaled = NetworkFeatures("small-cnn", saved[1], mean=[5.0], deviation=10.0).fit(images)
    np.testing.assert_allclose(scaled.transform(images * 10 + 5), plain, atol=1e-4)


def test_images_in_colour_have_channels_first_or_last(tmp_path):
    path = state_in(tmp_path / "c.pth", small_cnn(5, (3, 12, 12)))
    X = np.random.default_rng(1).integers(0, 256, (4, 12, 12, 3)).astype(np.uint8)
    first = NetworkFeatures("small-cnn", path, mean=[1, 2, 3], deviation=255).fit(X)
    np.testing.assert_array_equal(first.transform(X), first.transform(np.moveaxis(X, 3, 1)))


def test_no_bit_of_a_records_features_depends_on_the_others(images, saved):
    features = NetworkFeatures("small-cnn", saved[1], device="cpu").fit(images)
    assert features.exact_by_record
    made = features.transform(images)
    for rows in (slice(1, None), slice(None, None, -1), [3], [5, 3, 69]):
        np.testing.assert_array_equal(features.transform(images[rows]), made[rows])


def test_blocks_are_nearly_the_same_and_claim_no_more(images, saved):
    single = NetworkFeatures("small-cnn", saved[1]).fit(images)
    blocks = NetworkFeatures("small-cnn", saved[1], batch_size=32).fit(images)
    np.testing.assert_allclose(blocks.transform(images), single.transform(images), atol=1e-5)
    assert not blocks.exact_by_record


def test_tables_of_numbers_and_other_networks(tmp_path):
    path = state_in(tmp_path / "m.pt", annotated(6))
    table = pd.DataFrame(np.eye(3), columns=list("abc"))
    features = NetworkFeatures(f"{HERE}.annotated", path, params={"width": 6}).fit(table)
    assert features.transform(table).shape == (3, 6)
    with pytest.raises(InputError, match=r"no numbers \(d\), which a network does not take"):
        features.transform(table.assign(d="x"))


def test_a_fitted_one_needs_no_file_and_tells_no_folder(images, saved, tmp_path):
    features = NetworkFeatures("small-cnn", saved[1]).fit(images)
    content = pickle.dumps(features)
    assert os.fsencode(tmp_path) not in content
    saved[1].unlink()
    again = pickle.loads(content)
    assert again.brought == features.brought and again.weights == "net.pt"
    np.testing.assert_array_equal(again.transform(images), features.transform(images))
    assert joblib.hash(again) == joblib.hash(pickle.loads(content))
    assert again.cache_key() == pickle.loads(content).cache_key()


def test_other_weights_have_another_key_in_a_cache(images, saved, tmp_path):
    cache = CachedTransform(NetworkFeatures("small-cnn", saved[1]), tmp_path / "cache")
    before = cache.fit(images).transform(images)
    state_in(saved[1], small_cnn(5, (1, 12, 12)))
    assert not np.array_equal(cache.fit(images).transform(images), before)


def test_a_file_that_changed_since_it_was_looked_at_is_refused(images, saved):
    features = NetworkFeatures("small-cnn", WeightsFile.of(saved[1]))
    state_in(saved[1], small_cnn(5, (1, 12, 12)))
    with pytest.raises(InputError, match=r"net\.pt, which was changed since it was looked at"):
        features.fit(images)


def test_what_parties_compare_names_the_content_and_no_folder(saved, tmp_path):
    features = NetworkFeatures("small-cnn", WeightsFile.of(saved[1]))
    assert WeightsFile.of(saved[1]).sha256 in repr(features)
    assert str(tmp_path) not in repr(features)


def test_statements_name_the_networks_wherever_they_are(saved):
    features = NetworkFeatures("small-cnn", saved[1])
    assert brought_by(None, "same", Embeddings()) == ()
    assert brought_by(CachedTransform(features), features) == (features.brought,)
    assert features.brought.startswith("net.pt (network small-cnn, sha256 ")


class Trap:
    """Would leave a file behind if a pickle of it were run."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def bad_files(folder):
    (folder / "text.pt").write_text("no state")
    (folder / "code.pt").write_bytes(pickle.dumps(Trap(folder / "ran")))
    torch.save(Trap(folder / "ran"), folder / "zipped-code.pt")
    torch.save(annotated(), folder / "whole.pt")
    torch.save([1, 2], folder / "list.pt")
    torch.save({}, folder / "empty.pt")
    torch.save({"a": "b"}, folder / "words.pt")
    torch.save({"model": annotated().state_dict(), "epoch": 3}, folder / "checkpoint.pt")
    broken = annotated().state_dict()
    broken["0.weight"][1, 1] = float("nan")
    torch.save(broken, folder / "nan.pt")
    state_in(folder / "other.pt", mlp(2, (3,)))
    state_in(folder / "wider.pt", annotated(9))
    (folder / "state.npz").write_bytes(b"")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "missing.pt",
            r"cannot be read \(No such file or directory\): give a file that torch\.save",
        ),
        (".", r"cannot be read \(Is a directory\)"),
        ("text.pt", r"text\.pt, which holds no state that can be read without running code"),
        (
            "code.pt",
            r"without running code .*nothing of it was run.*torch\.save\(network\.state_dict",
        ),
        ("zipped-code.pt", "without running code"),
        ("whole.pt", "without running code"),
        ("list.pt", "holds a list and no state"),
        ("empty.pt", "holds a dict and no state"),
        ("words.pt", "holds a dict and no state"),
        ("checkpoint.pt", r"more stands than a state \(under model\): save the state alone, as in"),
        ("nan.pt", r"nan\.pt, which holds NaN or infinity in 0\.weight"),
        (
            "other.pt",
            r"another network than .*missing: 0\.bias, 2\.weight, 2\.bias; not of it: 1\.w",
        ),
        (
            "wider.pt",
            r"of another shape: 0\.weight \(9, 3\) for \(4, 3\), .*name the network that it",
        ),
        ("state.npz", r"allowed are files that end in \.pt, \.pth, \.safetensors: write one"),
    ],
)
def test_what_is_no_state_of_the_network_is_refused_in_one_line(tmp_path, name, said):
    bad_files(tmp_path)
    with pytest.raises(InputError, match=said) as refused:
        NetworkFeatures(f"{HERE}.annotated", tmp_path / name).fit(np.eye(3))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"network": "small-cn"}, "network: 'small-cn' is not known: did you mean 'small-cnn'"),
        ({"network": "os.system"}, "'os.system' is no network, but a part of Python itself"),
        ({"network": "no.such.thing"}, "there is no class or function 'no.such.thing'"),
        ({"network": "sklearn.svm.SVC"}, "'sklearn.svm.SVC' is not called, since it is neither"),
        ({"network": f"{HERE}.without_annotation"}, "is not called, since it is neither"),
        ({"layer": "3"}, r"layer='3' is not in the network .*: allowed are 0, 1, 2"),
        ({"layer": ""}, "layer='' is not in the network"),
        (
            {"params": {"depth": 3}},
            r"cannot be made with these params \(TypeError: .*correct params",
        ),
        ({"params": {"pretrained": True}}, "params names pretrained, .* file of weights alone"),
        ({"mean": [1, 2]}, r"mean=\[1, 2\] was given; allowed are one number, or 3 of them"),
        ({"deviation": 0.0}, "deviation=0.0 was given; .*all above 0"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"device": "tpu"}, "device='tpu' was given; allowed are auto, cpu, cuda"),
        ({"input_shape": (2, 2)}, "the two must hold equally many values"),
    ],
)
def test_what_does_not_fit_the_network_is_refused_in_one_line(tmp_path, changed, said):
    path = state_in(tmp_path / "own.pt", annotated())
    given = {"network": f"{HERE}.annotated", "weights": path, **changed}
    with pytest.raises(InputError, match=said) as refused:
        NetworkFeatures(**given).fit(np.eye(3))
    assert "\n" not in str(refused.value)


def test_records_that_the_network_does_not_take_are_refused(tmp_path, saved):
    path = state_in(tmp_path / "own.pt", annotated())
    with pytest.raises(InputError, match=r"does not take records of shape \(5,\) \(RuntimeError: "):
        NetworkFeatures(f"{HERE}.annotated", path).fit(np.eye(5))
    features = NetworkFeatures(f"{HERE}.annotated", path).fit(np.eye(3))
    with pytest.raises(InputError, match=r"records of shape \(5,\) were given to a network for"):
        features.transform(np.eye(5))
    with pytest.raises(InputError, match="NaN or infinity"):
        features.transform([[np.nan, 0.0, 0.0]])


def test_a_network_without_linear_layers_needs_a_layer(tmp_path, images):
    path = state_in(tmp_path / "own.pt", NoLinear())
    with pytest.raises(InputError, match=r"no linear layer .*: name one of first, pool"):
        NetworkFeatures(f"{HERE}.NoLinear", path).fit(images)
    assert NetworkFeatures(f"{HERE}.NoLinear", path, "pool").fit(images).n_features_out_ == 2


@pytest.mark.parametrize(
    ("how", "size", "said"),
    [("random", 1, "of the same record each time"), ("mixing", 8, "where others are beside it")],
)
def test_networks_that_draw_or_look_at_other_records_are_refused(tmp_path, how, size, said):
    path = state_in(tmp_path / "odd.pt", Odd(how))
    features = NetworkFeatures(f"{HERE}.Odd", path, params={"how": how}, batch_size=size)
    with pytest.raises(InputError, match=said):
        features.fit(np.random.default_rng(0).random((9, 3)))


def test_without_torch_one_line_names_the_extra(monkeypatch, saved, images):
    monkeypatch.setattr("collegium.models.neural.machine.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'pip install "collegium\[torch\]"'):
        NetworkFeatures("small-cnn", saved[1]).fit(images)


def test_files_of_safetensors(tmp_path, images, saved, monkeypatch):
    found = pytest.importorskip("safetensors.torch")
    path = tmp_path / "net.safetensors"
    found.save_file(saved[0].state_dict(), path)
    made = NetworkFeatures("small-cnn", path).fit(images).transform(images)
    pt = NetworkFeatures("small-cnn", saved[1]).fit(images).transform(images)
    np.testing.assert_array_equal(made, pt)
    path.write_bytes(b"no such thing")
    with pytest.raises(InputError, match="which is no file of safetensors"):
        NetworkFeatures("small-cnn", path).fit(images)


def test_without_safetensors_one_line_says_what_to_install(tmp_path, images, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "safetensors.torch", None)
    (tmp_path / "net.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="pip install safetensors, or give a file"):
        NetworkFeatures("small-cnn", tmp_path / "net.safetensors").fit(images)


def test_a_network_of_ones_own_is_trusted_by_name_before_it_is_loaded(tmp_path):
    path = state_in(tmp_path / "own.pt", annotated())
    X = np.random.default_rng(0).normal(size=(40, 3))
    features = NetworkFeatures(f"{HERE}.annotated", path)
    student = make_pipeline(features, GaussianNB()).fit(X, X[:, 0] > 0)
    (tmp_path / "student.skops").write_bytes(student_bytes(student, {}))
    name = f"{HERE}.annotated"
    with pytest.raises(InputError, match=re.escape(f"{name}, which no student of Collegium")):
        load_student(tmp_path)
    loaded = load_student(tmp_path, trust=[name])
    assert (loaded.predict(X) == student.predict(X)).all()


def test_what_a_file_names_is_looked_at_again_before_it_is_called(images, saved):
    features = NetworkFeatures("small-cnn", saved[1]).fit(images)
    features.factory_ = without_annotation
    made_up = pickle.loads(pickle.dumps(features))
    with pytest.raises(InputError, match="is not called"):
        made_up.transform(images)


def test_with_a_gpu_by_itself_nothing_is_claimed_of_bits(saved, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert not NetworkFeatures("small-cnn", saved[1]).exact_by_record
    assert NetworkFeatures("small-cnn", saved[1], device="cpu").exact_by_record


def test_a_block_too_large_for_a_gpu_is_refused_in_one_line(images, saved, monkeypatch):
    features = NetworkFeatures("small-cnn", saved[1], batch_size=64).fit(images)

    def full(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(nn.Linear, "forward", full)
    with pytest.raises(
        InputError, match=r"a block of 64 records does not fit .*: lower batch_size"
    ):
        features.transform(images)
