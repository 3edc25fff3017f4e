"""What lies in a release is read as data: whoever put it there, nothing of it is run."""

import hashlib
import io
import json
import operator
import os
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
import warnings
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from collegium import PrivacyWarning, load_student
from collegium.distillation.share_matching import match_shares
from collegium.distillation.supervised import fit_released
from collegium.errors import ConfigError, InputError
from collegium.models.catalogue import SHORT_NAMES, build_model, build_preprocessing
from collegium.runs.views import fitted_view
from collegium.study.config import read_config
from collegium.study.runner import run_study
from collegium.study.student_file import read_student, student_bytes

STUDY = """
[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
target = "y"
classes = ["down", "up"]
[privacy]
column = "privacy"
levels = {{ "high|<b>" = 3.0, low = 6.0 }}
delta = 1e-6
[preprocessing]
kind = "tabular"
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 30
[aggregation]
aggregator = "gnmax"
sigma = 6
[student]
model = "{model}"
[run]
n_jobs = 1
"""
OWN_MODULE = """
from sklearn.naive_bayes import GaussianNB

class Own(GaussianNB):
    pass

class Secretive(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        self.key = lambda: 0
        return super().fit(X, y, sample_weight)
"""


@pytest.fixture
def collegium(collegium):
    """Run the command line: exit code, standard output, and the words of standard error on one line."""

    def call(*arguments):
        code, output, errors = collegium(*arguments)
        return code, output, " ".join(errors.split())

    return call


def write_study(folder, model="sklearn.naive_bayes.GaussianNB"):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=400), "code": rng.choice(["1", "2", "x"], 400)})
    table["y"] = np.where(table["size"] > 0, "up", "down")
    table["privacy"] = rng.choice(["high|<b>", "low"], 400)
    table.iloc[:250].to_csv(folder / "private.csv", index=False)
    table.iloc[250:330].drop(columns="privacy").to_csv(folder / "public.csv", index=False)
    table.iloc[330:].drop(columns="privacy").to_csv(folder / "test.csv", index=False)
    (folder / "own_module.py").write_text(OWN_MODULE, encoding="utf-8")
    (folder / "study.toml").write_text(STUDY.format(model=model), encoding="utf-8")
    return folder / "study.toml"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished study, which no test may change."""
    folder = tmp_path_factory.mktemp("finished")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        run_study(read_config(write_study(folder)), folder / "study")
    return folder


@pytest.fixture
def study(finished, tmp_path, monkeypatch):
    """A copy of a finished study."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("own_module", None)


class Poison:
    """Leaves a file where it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (os.mkdir, (str(self.marker),))


def small():
    return GaussianNB().fit([[0.0, 0.0], [1.0, 1.0]], ["down", "up"])


def rewritten(content, change):
    """Change the text of a student's file that says which object holds what."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["schema.json"] = json.dumps(change(json.loads(parts["schema.json"]))).encode()
    return zipped(parts)


def zipped(parts, **how):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **how) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def poisoned(marker):
    """What makes files that would leave a mark, were anything in them called, now or when one asks."""
    text = str(marker)

    def as_object(module, name, loader, arguments):
        def change(schema):
            inner = json.loads(json.dumps(schema))
            arguments_node = {
                "__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "__id__": 991,
                "content": [
                    {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
                     "content": json.dumps(a), "is_json": True}
                    for a in arguments
                ],
            }  # fmt: skip
            node = {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 990,
                    "content": arguments_node}  # fmt: skip
            inner["content"]["content"]["extra"] = node
            return inner

        return rewritten(student_bytes(small(), {}), change)

    def steps(function):
        return skops.io.dumps(make_pipeline(FunctionTransformer(function), small()))

    def with_pickled_arrays():
        with zipfile.ZipFile(io.BytesIO(student_bytes(small(), {}))) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        array = np.array([Poison(marker)], dtype=object)
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=True)
        return zipped({n: buffer.getvalue() if n.endswith(".npy") else p for n, p in parts.items()})

    return {
        "pickle": lambda: pickle.dumps(Poison(marker)),
        "array": with_pickled_arrays,
        "function": lambda: steps(os.mkdir),
        "partial": lambda: steps(partial(os.mkdir, text)),
        "method": lambda: steps(Path(text).mkdir),
        "methodcaller": lambda: steps(operator.methodcaller("mkdir")),
        "path": lambda: steps(Path(text)),
        "constructor": lambda: as_object(
            "subprocess", "Popen", "ConstructorFromReduceNode", [["mkdir", text]]
        ),
        "object": lambda: as_object("subprocess", "Popen", "ObjectNode", []),
        "open file": lambda: as_object("builtins", "open", "ConstructorFromReduceNode", [text, "w"]),
        "file": lambda: as_object("io", "FileIO", "ConstructorFromReduceNode", [text, "w"]),
        "cache": lambda: as_object(
            "collegium.models.features.cache", "FeatureCache", "ConstructorFromReduceNode", [text]
        ),
        "moved": lambda: as_object(
            "collegium.features.cache", "FeatureCache", "ConstructorFromReduceNode", [text]
        ),
        "folder": lambda: as_object(
            "collegium.study.folder", "StudyFolder", "ConstructorFromReduceNode", [text]
        ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", poisoned(Path("mark")))
def test_a_poisoned_student_is_refused_by_all_that_read_it(kind, study, monkeypatch, collegium):
    marker = study / "mark"
    monkeypatch.chdir(study)
    release = study / "study/release"
    (release / "student.skops").write_bytes(poisoned(marker)[kind]())
    with pytest.raises(InputError, match=r"student\.skops is not what was released"):
        load_student(release)
    (release / "digests.json").unlink()  # then nothing but the reader is in its way
    for command in (("run", "study.toml"), ("predict", "study/release", "test.csv")):
        code, _, said = collegium(*command)
        assert code == 2
        _, _, error = said.partition("error: ")  # before it, warnings about the tables
        assert "student.skops" in error and "error: " not in error
    with pytest.raises(InputError):
        load_student(study / "study")
    assert not marker.exists()


def test_a_student_is_asked_only_as_it_was_released(tmp_path):
    released = tmp_path / "release"
    released.mkdir()
    content, path = student_bytes(small(), {}), released / "student.skops"
    known = {"files": {path.name: hashlib.sha256(content).hexdigest()}}
    (released / "digests.json").write_text(json.dumps(known), encoding="utf-8")
    path.write_bytes(content)
    assert load_student(tmp_path).predict([[1.0, 0.9]]).tolist() == ["up"]
    path.write_bytes(student_bytes(small().fit([[0.0, 0.0], [1.0, 1.0]], ["up", "down"]), {}))
    for folder in (tmp_path, released, path):
        with pytest.raises(InputError, match=r"student\.skops is not what was released"):
            load_student(folder)
    path.rename(tmp_path / "alone.skops")  # no digests beside it
    assert load_student(tmp_path / "alone.skops").predict([[1.0, 0.9]]).tolist() == ["down"]
    (released / "digests.json").write_text("[]", encoding="utf-8")
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"digests\.json is damaged"):
        load_student(tmp_path)


EQUAL_BYTES = textwrap.dedent("""
    import hashlib
    import numpy as np, pandas as pd
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from collegium.features import TabularEncoder
    from collegium.study.student_file import student_bytes
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["u", "v"], 90)})
    model = make_pipeline(TabularEncoder(), RandomForestClassifier(5, random_state=0))
    model.fit(table, table["a"] > 0)
    print(hashlib.sha256(student_bytes(model, {"columns": [["a", "numbers"]]})).hexdigest())
""")


def in_another_process(script):
    """Run it where texts have other hashes; return what it prints."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_another_process_equal_students_are_equal_bytes_and_no_pickle_is_opened(study, capsys):
    """What is heavy is not imported there either; one process, since each takes a second and more."""
    script = f"""
        import sys
        sys.argv = ["collegium", "predict", {str(study / "study")!r}, {str(study / "test.csv")!r}]
        found = []
        def hear(event, arguments):
            if event.startswith("pickle."):
                found.append(arguments)
        from collegium.cli.main import main
        for hooks in ([], [hear]):  # imports of others may unpickle what they like: they come first
            for hook in hooks:
                sys.addaudithook(hook)
            try:
                main()
            except SystemExit as ended:
                assert not ended.code and not found, found
        assert not {{"torch", "dask"}} & set(sys.modules)
    """
    done = in_another_process(EQUAL_BYTES + textwrap.dedent(script))
    digest, _, answers = done.partition("\n")
    assert answers.startswith("row,label\n0,")
    exec(EQUAL_BYTES, {})
    assert capsys.readouterr().out == f"{digest}\n", "equal students are equal bytes in any process"


def records():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 16))
    return X, (X[:, 0] > 0).astype(int)


def round_trip(student, tmp_path):
    content = student_bytes(student, {})
    (tmp_path / "student.skops").write_bytes(content)
    return load_student(tmp_path)


@pytest.mark.parametrize("name", sorted(set(SHORT_NAMES) - {"small-cnn", "mostly-balanced"}))
def test_every_named_student_can_be_published(name, tmp_path):
    if SHORT_NAMES[name].endswith(("NeuralStudent", "NeuralClassifier")):
        pytest.importorskip("torch")
    X, y = records()
    model = build_model("student.model", name, {})
    if "epochs" in model.get_params():
        model.set_params(epochs=2)
    believed = np.full((60, 2), 0.1)
    believed[np.arange(60), y[:60]] = 0.9
    names = np.array(["no", "yes"])
    student = fit_released(model, X, np.arange(60), y[:60], names, believed, tell=lambda line: None)
    if hasattr(student, "predict_proba"):
        student = match_shares(student, X, names, np.array([0.3, 0.7]))
    assert np.array_equal(round_trip(student, tmp_path).predict(X), student.predict(X))


def test_what_makes_teachers_alone_is_refused_as_a_student():
    assert build_model("teachers.model", "mostly-balanced", {}).estimator == "tabular"
    for name in ("mostly-balanced", SHORT_NAMES["mostly-balanced"]):
        with pytest.raises(ConfigError, match=r"student\.model: .* is of teachers"):
            build_model("student.model", name, {})


@pytest.mark.parametrize(
    "kind", ["tabular", "principal", "pixels", "pca", "scattering", "embeddings"]
)
def test_every_preprocessing_is_published_with_its_student(kind, tmp_path):
    X, y = records()
    if kind in ("tabular", "principal"):
        X = pd.DataFrame(
            {"a": X[:, 0], "b": np.where(y, "u", "v"), "c": np.where(X[:, 2] > 0, "x", None)}
        )
    elif kind != "embeddings":
        X = (
            (np.abs(np.random.default_rng(0).normal(size=(120, 12, 12))) * 60)
            .clip(0, 255)
            .astype(np.uint8)
        )
    made = build_preprocessing(kind, categorical="onehot", components=3, random_state=0)
    view = fitted_view(made, X, "preprocessing")
    student = view.published(GaussianNB().fit(view.of(X), y))
    assert np.array_equal(round_trip(student, tmp_path).predict(X), student.predict(X))


# --- trees that point outside -----------------------------------------------------------------------------


def pointing_outside(kind):
    X, y = records()
    if kind == "k-d tree":
        student = KNeighborsClassifier(algorithm="kd_tree").fit(X, y)
        rows = np.asarray(student._tree.get_arrays()[1])
        return student_bytes(student, {}), rows, rows + 10**9
    if kind.startswith("boosted"):
        student = HistGradientBoostingClassifier(max_iter=1).fit(X, y)
        nodes = student._predictors[0][0].nodes
        wrong = nodes.copy()
        wrong["left" if kind.endswith("child") else "feature_idx"][0] = 10**6
        return student_bytes(student, {}), nodes, wrong
    student = RandomForestClassifier(1, random_state=0).fit(X, y)
    nodes = student.estimators_[0].tree_.__getstate__()["nodes"]
    wrong = nodes.copy()
    field, value = {
        "child": ("left_child", 10**9), "circle": ("left_child", 0), "feature": ("feature", 10**9),
        "another feature": ("feature", 16), "before": ("feature", -5),
    }[kind]  # fmt: skip
    wrong[field][0] = value
    return student_bytes(student, {}), nodes, wrong


@pytest.mark.parametrize(
    "kind",
    ["child", "circle", "feature", "another feature", "before", "boosted child", "boosted feature",
     "k-d tree"],
)  # fmt: skip
def test_a_tree_that_points_outside_is_refused(kind, tmp_path):
    content, right, wrong = pointing_outside(kind)
    assert content.count(right.tobytes()) == 1
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {
            n: archive.read(n).replace(right.tobytes(), wrong.tobytes()) for n in archive.namelist()
        }
    (tmp_path / "student.skops").write_bytes(zipped(parts))
    with pytest.raises(InputError, match="points outside"):
        load_student(tmp_path)


@pytest.mark.parametrize("n_nodes", [-1, 0, 1])
def test_a_tree_that_hides_some_of_its_nodes_is_refused(n_nodes, tmp_path):
    student = RandomForestClassifier(1, random_state=0).fit(*records())

    def hiding(schema):
        text = json.dumps(schema)
        node = re.search(r'"node_count": \{[^}]*"content": "(\d+)"', text)
        return json.loads(f"{text[: node.start(1)]}{n_nodes}{text[node.end(1) :]}")

    (tmp_path / "student.skops").write_bytes(rewritten(student_bytes(student, {}), hiding))
    with pytest.raises(InputError, match="cannot be read"):
        load_student(tmp_path)


# --- damaged files ----------------------------------------------------------------------------------------


def test_a_damaged_file_is_harmless_or_named_in_one_line(tmp_path):
    content = student_bytes(small(), {})
    path = tmp_path / "student.skops"
    X = [[0.1, 0.2], [0.9, 0.7]]
    right = small().predict_proba(X)
    rng = np.random.default_rng(0)
    refused = 0
    for trial in range(300):
        damaged = bytearray(content)
        if trial % 3 == 0:
            damaged = damaged[: rng.integers(len(content))]
        else:
            damaged[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            student = load_student(path)
        except InputError as error:
            assert "\n" not in str(error)
            refused += 1
        else:
            assert np.array_equal(student.predict_proba(X), right)
    assert refused > 250


@pytest.mark.parametrize(
    "parts",
    [{}, {"schema.json": b"[]"}, {"schema.json": b"{}"}, {"schema.json": b"null"},
     {"schema.json": b"[" * 10**5}],
)  # fmt: skip
def test_made_up_files_are_refused_in_one_line(parts, tmp_path):
    (tmp_path / "student.skops").write_bytes(zipped(parts))
    with pytest.raises(InputError, match=r"cannot be read"):
        load_student(tmp_path)


def test_what_unpacks_to_more_than_it_is_is_refused(tmp_path):
    bomb = zipped({"schema.json": b" " * 10**8}, compression=zipfile.ZIP_DEFLATED)
    (tmp_path / "student.skops").write_bytes(bomb)
    with pytest.raises(InputError, match="compressed"):
        load_student(tmp_path)


# --- students of one's own --------------------------------------------------------------------------------


def test_a_class_of_ones_own_is_loaded_by_who_names_it(study, collegium):
    path = write_study(study, "own_module.Own")
    code, _, said = collegium("run", path)
    assert code == 0 and "own_module.Own" in said and "--trust" in said
    before = (study / "study/release/student.skops").stat().st_mtime_ns
    assert collegium("run", path)[0] == 0  # it is known, and read again
    assert (study / "study/release/student.skops").stat().st_mtime_ns == before
    assert "own\\_module.Own" in (study / "study/release/README.md").read_text("utf-8")
    asked = ("predict", study / "study", study / "test.csv")
    code, _, said = collegium(*asked)
    assert code == 2 and "holds own_module.Own" in said
    code, shown, _ = collegium(*asked, "--trust", "own_module.Own")
    assert code == 0 and shown.startswith("row,label\n")
    assert type(load_student(study / "study", trust=["own_module.Own"])[-1]).__name__ == "Own"


def test_where_a_student_cannot_be_written_labels_are_published_and_it_is_said(study, collegium):
    (study / "study").rename(study / "first")
    path = write_study(study, "own_module.Secretive")
    for _ in range(2):
        code, _, said = collegium("run", path)
        assert code == 0
        assert "cannot be written as student.skops" in said
        release = study / "study/release"
        assert (release / "labels.csv").exists() and not (release / "student.skops").exists()
        assert "There is no student in it" in (release / "README.md").read_text("utf-8")
    assert "labels will be published, and no student" not in said  # only before it is spent
    (study / "study.toml").write_text(STUDY.format(model="logistic-regression"), encoding="utf-8")
    assert collegium("run", path)[0] == 0
    assert load_student(study / "study") is not None


# --- asking it --------------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_student(study, collegium):
    test = pd.read_csv(study / "test.csv")
    student = load_student(study / "study/release")
    right = student.predict(test[["size", "code"]])
    digits = test[test["code"] != "x"]  # without an "x", its column looks like numbers
    digits[["y", "code", "size"]].to_csv(study / "other.csv", index=False)
    target = study / "answers.csv"
    code, _, said = collegium(
        "predict", study / "study", study / "other.csv", "--proba", "--out", target
    )  # fmt: skip
    assert code == 0, said
    answers = pd.read_csv(target)
    assert answers["row"].tolist() == list(range(len(digits)))
    assert answers["label"].tolist() == right[(test["code"] != "x").to_numpy()].tolist()
    names = [name for name in answers.columns if name.startswith("probability of ")]
    assert names == ["probability of down", "probability of up"]
    assert np.allclose(answers[names].sum(axis=1), 1)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("size\n1.0\n", "lacks code"),
        ("size,code\nbig,x\n", "'size' holds text"),
        ("", "empty"),
    ],
)
def test_tables_that_do_not_fit_are_refused_in_one_line(table, told, study, collegium):
    (study / "other.csv").write_text(table, encoding="utf-8")
    code, _, said = collegium("predict", study / "study", study / "other.csv")
    assert code == 2 and said.startswith("error: ") and told in said


def test_arrays_that_do_not_fit_are_refused_in_one_line(study, collegium):
    np.save(study / "other.npy", np.zeros((3, 2)))
    code, _, said = collegium("predict", study / "study", study / "other.npy")
    assert code == 2 and "the student takes a table with named columns" in said
    code, _, said = collegium("predict", study / "study", study / "test.csv")
    assert code == 0
    code, _, said = collegium("predict", study / "none", study / "test.csv")
    assert code == 2 and "holds no published model (student.skops)" in said


def test_an_array_is_asked_about(tmp_path, collegium):
    content = student_bytes(small(), {"shape": [2], "kind": "numbers"})
    (tmp_path / "student.skops").write_bytes(content)
    np.save(tmp_path / "records.npy", np.array([[0.0, 0.1], [1.0, 0.9]]))
    code, shown, _ = collegium("predict", tmp_path, tmp_path / "records.npy")
    assert (code, shown) == (0, "row,label\n0,down\n1,up\n")
    np.save(tmp_path / "records.npy", np.zeros((2, 3)))
    code, _, said = collegium("predict", tmp_path, tmp_path / "records.npy")
    assert code == 2 and "the student takes shape (2,)" in said


# --- the card ---------------------------------------------------------------------------------------------


def test_the_card_says_who_paid_what_and_quotes_the_statement(study):
    release = study / "study/release"
    card = (release / "README.md").read_text("utf-8")
    said = json.loads((release / "privacy.json").read_text("utf-8"))
    shown = card.replace("\\", "")
    for sentence in said["statement"]:
        assert sentence in shown
    for row in said["groups"]:
        assert f"| {row['group']} | {row['owners']} | {row['epsilon']:g} |" in shown
    assert "high\\|\\<b\\>" in card and "<b>" not in card.replace("\\<b\\>", "")
    assert "| size | numbers |" in card and "| code | text |" in card
    assert "Classes: down, up." in card
    assert "of 70 public test records; always answering" in card
    assert "collegium predict RELEASE table.csv" in card
    stored = read_student(release / "student.skops")
    assert stored.inputs == {"columns": [["size", "numbers"], ["code", "text"]]}
