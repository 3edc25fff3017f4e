"""Studies through a network that was trained elsewhere: what is published and said of it, and refused."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from collegium import DPSGDClassifier, PATEClassifier, Policy, PrivacyWarning, load_student
from collegium.errors import ConfigError, InputError, StudyMismatchError
from collegium.features import NetworkFeatures
from collegium.runs.observer import Observer
from collegium.study.config import read_config
from collegium.study.folder import MANIFEST, StudyFolder
from collegium.study.json_schema import study_schema
from collegium.study.onnx_file import onnx_bytes
from collegium.study.planned_settings import settled_method
from collegium.study.runner import plan_study, run_study
from collegium.study.student_file import published_student

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from collegium.models.neural.networks import mlp, small_cnn  # noqa: E402

SIDE = 12
TOML = """
[data]
private = "private.npy"
private_labels = "private-labels.npy"
public = "public.npy"
public_labels = "public-labels.npy"
test = "test.npy"
test_labels = "test-labels.npy"
classes = ["down", "across"]
[privacy]
levels = {{ high = 8.0, low = 16.0 }}
file = "privacy.csv"
[ledger]
url = "none"
[run]
n_jobs = 1
[features]
weights = "{weights}"
network = "small-cnn"
{more}
"""
DIRECT = '[method]\nkind = "dpsgd"'
VOTES = """[teachers]
model = "ridge"
n_teachers = 20
[aggregation]
aggregator = "gnmax"
sigma = 8
max_labels = 60
[student]
model = "svm"
"""


def stripes(n, seed):
    """Images of stripes that run down or across, at any place, in noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    waves = np.sin(np.arange(SIDE)[None] * 1.6 + rng.uniform(0, 6, (n, 1)))
    images = np.where(y[:, None, None], waves[:, :, None], waves[:, None, :])
    images = images + rng.normal(0, 0.7, (n, SIDE, SIDE))
    return images.astype(np.float32), np.array(["down", "across"])[y]


@pytest.fixture(scope="module")
def state():
    """Train a small network on stripes of nobody."""
    X, y = stripes(600, 9)
    torch.manual_seed(0)
    network = small_cnn(2, (1, SIDE, SIDE))
    optimiser = torch.optim.Adam(network.parameters(), 0.01)
    images, codes = torch.from_numpy(X[:, None]), torch.from_numpy((y == "across").astype(int))
    for rows in torch.arange(600).repeat(4).split(60):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(images[rows]), codes[rows]).backward()
        optimiser.step()
    return network.state_dict()


@pytest.fixture
def folder(tmp_path, state):
    for name, n in {"private": 500, "public": 200, "test": 200}.items():
        X, y = stripes(n, len(name) + n)
        np.save(tmp_path / f"{name}.npy", X)
        np.save(tmp_path / f"{name}-labels.npy", y)
    levels = pd.DataFrame({"level": ["high", "low"] * 250})
    levels.to_csv(tmp_path / "privacy.csv", index=False)
    torch.save(state, tmp_path / "net.pt")
    return tmp_path


def config_of(folder, how=DIRECT, *, weights="net.pt", more=""):
    text = TOML.format(weights=weights, more=more) + how
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return read_config(folder / "study.toml")


class Notes(Observer):
    def __init__(self):
        self.lines = []

    def note(self, line):
        self.lines.append(line)


def run(config, out):
    notes = Notes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        config = settled_method(config, StudyFolder(out), notes, keep=True)
        return run_study(config, out, notes), notes.lines


@pytest.mark.parametrize("how", [DIRECT, VOTES, ""], ids=["dpsgd", "pate", "auto"])
def test_every_way_to_learn_sees_records_through_it(folder, how):
    result, notes = run(config_of(folder, how), folder / "out")
    assert result.quality.accuracy > 0.8  # 0.95 and more; components of pixels: about 0.5
    digest = NetworkFeatures("small-cnn", folder / "net.pt").brought
    said = f"brought along: {digest}. What it was trained on is not covered by this guarantee"
    release = folder / "out" / "release"
    for name in ("README.md", "report.html"):
        assert said in (release / name).read_text(encoding="utf-8")
    told = json.loads((release / "privacy.json").read_text(encoding="utf-8"))
    assert any(said in line for line in told["statement"])
    assert told["config"]["features"]["weights"] == "net.pt"
    assert said in str(result.privacy)
    assert any(f"seen through {digest}" in line for line in notes)
    manifest = json.loads((folder / "out" / MANIFEST).read_text(encoding="utf-8"))
    assert manifest["inputs"]["features.weights"] in digest


def test_the_published_model_needs_no_other_file_and_tells_no_folder(folder):
    run(config_of(folder), folder / "out")
    (folder / "net.pt").unlink()
    release = folder / "out" / "release"
    student = load_student(release)
    X, y = np.load(folder / "test.npy"), np.load(folder / "test-labels.npy")
    assert (student.predict(X) == y).mean() > 0.8
    for path in release.rglob("*"):
        assert path.is_dir() or str(folder).encode() not in path.read_bytes()
    stored = published_student(release)
    with pytest.raises(
        InputError, match=r"cannot be converted to ONNX .*: use `collegium predict`"
    ):
        onnx_bytes(stored, X)


def test_the_model_sees_whitened_components_of_what_the_network_makes(folder):
    config = config_of(folder)
    run(config, folder / "out")
    network, components, *_ = load_student(folder / "out").steps[0][1].steps
    assert isinstance(network[1], NetworkFeatures)
    assert (
        components[1].whiten == 0.5 and components[1].n_features_in_ == network[1].n_features_out_
    )


@pytest.mark.parametrize(("size", "proviso"), [(1, False), (16, True)])
def test_rounding_is_in_the_statement_only_where_records_are_together(folder, size, proviso):
    config = config_of(folder, more=f'batch_size = {size}\ndevice = "cpu"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        planned = plan_study(config)
    assert ("shown to the model together" in planned.plan.arrangement.sentence) is proviso


def test_other_weights_are_refused_before_anything_goes_on(folder, state):
    config = config_of(folder)
    run(config, folder / "out")
    state = {name: array + 0.5 if name == "0.weight" else array for name, array in state.items()}
    torch.save(state, folder / "net.pt")
    with pytest.raises(StudyMismatchError, match=r"features\.weights is another file than before"):
        run(config, folder / "out")
    (folder / "net.pt").rename(folder / "other.pt")
    with pytest.raises(
        StudyMismatchError, match=r"features\.weights was 'net\.pt', now 'other\.pt'"
    ):
        run(config_of(folder, weights="other.pt"), folder / "out")


def test_weights_that_change_while_a_study_is_planned_are_noticed(folder, monkeypatch):
    config, fitted = config_of(folder), NetworkFeatures.fit

    def changed_behind(self, X, y=None):
        done = fitted(self, X)
        torch.save({}, folder / "net.pt")
        return done

    monkeypatch.setattr(NetworkFeatures, "fit", changed_behind)
    with pytest.raises(InputError, match=r"net\.pt was changed while it was read: nothing was"):
        run(config, folder / "out")
    assert not (folder / "out" / "release").exists()


def test_a_study_without_it_is_as_it_was(folder):
    config = config_of(folder)
    plain = replace(config, features=type(config.features)())
    assert "features" not in plain.public() and "features.weights" not in plain.files()
    assert "features.weights" in config.files()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'network = "small-cnn"',
            "",
            r"\[features\] needs features\.network \(Which network that is\)",
        ),
        (
            'weights = "net.pt"',
            "",
            r"\[features\] needs features\.weights \(File with the network's",
        ),
        ('"net.pt"', '"no.pt"', r"^\[features\] weights names \S*no\.pt, which cannot be read"),
        (
            '"net.pt"',
            '"privacy.csv"',
            r"^\[features\] weights names privacy\.csv; allowed are files",
        ),
        (
            '"small-cnn"',
            '"seed-cnn"',
            r"^\[features\] weights holds a state of another network than",
        ),
        ('"small-cnn"', '"os.system"', r"^\[features\] network: 'os\.system' is no network"),
        (
            "[run]",
            '[preprocessing]\nkind = "kernel"\n[run]',
            "choose one of components, embeddings, none",
        ),
        (
            "[run]",
            '[student]\nmodel = "svm"\npreprocessing = "pixels"\n[run]',
            r"student\.preprocessing = 'pixels' does not go with \[features\]",
        ),
        ('kind = "dpsgd"', 'kind = "statistics"', r"\[features\]"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(folder, old, new, said):
    config_of(folder)
    text = (folder / "study.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "study.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=said.removeprefix("^")) as refused:
        plan_study(read_config(folder / "study.toml"))
    assert "\n" not in str(refused.value) and isinstance(refused.value, ConfigError)


def test_a_text_column_is_named_before_anything_is_spent(folder):
    rng = np.random.default_rng(0)
    for name, n in {"private": 60, "public": 40}.items():
        table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
        table = table.assign(town=rng.choice(["x", "y"], n), y=rng.choice(["down", "across"], n))
        table.assign(level="high").to_csv(folder / f"{name}.csv", index=False)
    (folder / "study.toml").write_text(
        '[data]\nprivate = "private.csv"\npublic = "public.csv"\ntarget = "y"\n'
        '[privacy]\nlevels = { high = 2.0 }\ncolumn = "level"\n'
        '[features]\nweights = "net.pt"\nnetwork = "mlp"\n' + DIRECT,
        encoding="utf-8",
    )
    config = read_config(folder / "study.toml")
    with pytest.raises(ConfigError, match=r"\[features\] the records have columns .*\(town\)"):
        plan_study(config)


def test_rows_of_a_parquet_file_are_streamed_through_it(tmp_path):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    torch.save(mlp(2, (3,), hidden=(8,)).state_dict(), tmp_path / "net.pt")
    for name, n in {"private": 300, "public": 100}.items():
        table = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
        table["y"] = np.where(table["a"] > 0, "yes", "no")
        table["person"] = [f"{name} {i}" for i in range(n)]
        table["level"] = "high"
        private = table if name == "private" else table.drop(columns=["person", "level"])
        private.to_parquet(tmp_path / f"{name}.parquet", index=False)
    (tmp_path / "study.toml").write_text(
        '[data]\nprivate = "private.parquet"\npublic = "public.parquet"\ntarget = "y"\n'
        'owner = "person"\n[privacy]\nlevels = { high = 5.0 }\ncolumn = "level"\n'
        '[features]\nweights = "net.pt"\nnetwork = "mlp"\nparams = { hidden = [8] }\n'
        '[ledger]\nurl = "none"\n[run]\nn_jobs = 1\nstreaming = true\n' + DIRECT,
        encoding="utf-8",
    )
    result, _ = run(read_config(tmp_path / "study.toml"), tmp_path / "out")
    assert result.quality.accuracy > 0.8


def test_estimators_in_python_say_it_too(folder):
    X, y = np.load(folder / "private.npy"), np.load(folder / "private-labels.npy")
    public = np.load(folder / "public.npy")
    features = NetworkFeatures("small-cnn", folder / "net.pt")
    budgets = Policy({"high": 5.0}, delta=1e-5).assign(["high"] * 500)
    shared = {"classes": ["down", "across"], "preprocessing": features}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        direct = DPSGDClassifier(**shared).fit(X, y, budgets=budgets, X_public=public)
        votes = PATEClassifier(n_teachers=20, **shared)
        votes.fit(X, y, budgets=budgets, X_public=public)
    for model in (direct, votes):
        assert f"brought along: {features.brought}" in str(model.privacy_)


def test_the_schema_knows_its_keys():
    keys = study_schema()["properties"]["features"]["properties"]
    assert {"weights", "network", "layer", "batch_size"} <= keys.keys()
