"""A configuration names a class: only what learns and predicts, as one sees by looking, is ever called."""

import subprocess
import sys
import textwrap

import pytest

from collegium.cli.main import main

#: What each would do, were it called with these parameters: leave a file called "marker".
LEAVES_A_FILE = {
    "subprocess.Popen": {"args": ["touch", "{marker}"]},
    "subprocess.run": {"args": ["touch", "{marker}"]},
    "subprocess.call": {"args": ["touch", "{marker}"]},
    "os.system": {"command": "touch {marker}"},
    "os.mkdir": {"path": "{marker}"},
    "builtins.open": {"file": "{marker}", "mode": "w"},
    "io.FileIO": {"file": "{marker}", "mode": "w"},
    "logging.FileHandler": {"filename": "{marker}"},
    "zipfile.ZipFile": {"file": "{marker}", "mode": "w"},
    "tarfile.TarFile": {"name": "{marker}", "mode": "w"},
    "gzip.GzipFile": {"filename": "{marker}", "mode": "w"},
    "bz2.BZ2File": {"filename": "{marker}", "mode": "w"},
    "sqlite3.Connection": {"database": "{marker}"},
    "tempfile.TemporaryDirectory": {"prefix": "marker", "dir": "{folder}"},
    "numpy.memmap": {"filename": "{marker}", "mode": "w+", "shape": [1]},
    "pyarrow.OSFile": {"path": "{marker}", "mode": "w"},
    "pyarrow.parquet.ParquetWriter": {"where": "{marker}", "schema": []},
    "pandas.ExcelWriter": {"path": "{marker}"},
    "joblib.Memory": {"location": "{marker}"},
    "harmless_looking.Program": {"path": "{marker}"},
    "harmless_looking.Claims": {"path": "{marker}"},
    "harmless_looking.learn": {"path": "{marker}"},
}
#: What nobody should import at all.
NOT_IMPORTED = ("this.s", "antigravity.webbrowser", "collegium.__main__.main", "idlelib.idle.main")
STUDY = """
[data]
private = "records.csv"
public = "public.csv"
target = "kind"
classes = ["cat", "dog"]

[privacy]
levels = {{ low = 3.0 }}
column = "privacy"

[teachers]
model = "{teacher}"
n_teachers = 6
params = {{ {teacher_params} }}

[aggregation]
aggregator = "gnmax"
answers = 5

[student]
model = "{student}"
params = {{ {student_params} }}
"""
GOOD = "sklearn.naive_bayes.GaussianNB"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "harmless_looking.py").write_text(
        textwrap.dedent("""
        class Program:
            def __init__(self, path):
                open(path, "w").close()

            def fit(self, X, y):
                return self

        class Lazy(type):
            def __getattr__(cls, name):  # it has whatever method it is asked for
                open("marker", "w").close()
                return lambda *args: None

        class Claims(metaclass=Lazy):
            def __init__(self, path):
                open(path, "w").close()

        def learn(path):
            open(path, "w").close()

        class Own:
            "Anything of one's own that has the two methods is welcome."

            def fit(self, X, y):
                return self

            def predict(self, X):
                return [0] * len(X)
        """),
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i},{'cat' if i % 2 else 'dog'},low" for i in range(60))
    (tmp_path / "records.csv").write_text(f"size,kind,privacy\n{rows}\n", encoding="utf-8")
    public = "\n".join(f"{i}.5,{'cat' if i % 2 else 'dog'}" for i in range(60))
    (tmp_path / "public.csv").write_text(f"size,kind\n{public}\n", encoding="utf-8")
    yield tmp_path
    sys.modules.pop("harmless_looking", None)


def planned(folder, role, name, params, monkeypatch, capfd):
    """Run `collegium plan` with a class in one of the two roles; its exit code and last words."""
    given = ", ".join(f"{key} = {toml(value, folder)}" for key, value in params.items())
    names = {"teacher": GOOD, "student": GOOD, "teacher_params": "", "student_params": ""}
    names |= {role: name, f"{role}_params": given}
    (folder / "study.toml").write_text(STUDY.format(**names), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["collegium", "plan", "study.toml"])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capfd.readouterr().err


def toml(value, folder):
    if isinstance(value, list):
        return f"[{', '.join(toml(one, folder) for one in value)}]"
    if isinstance(value, int):
        return str(value)
    return f"'{value.format(marker=folder / 'marker', folder=folder)}'"


@pytest.mark.parametrize("role", ["teacher", "student"])
@pytest.mark.parametrize("name", LEAVES_A_FILE)
def test_what_is_no_estimator_is_not_called(name, role, folder, monkeypatch, capfd):
    before, started = {path.name for path in folder.iterdir()}, []
    if name.startswith("subprocess."):  # what another process would leave comes a little later
        monkeypatch.setattr(
            subprocess.Popen, "_execute_child", lambda *given, **more: started.append(given)
        )
    code, said = planned(folder, role, name, LEAVES_A_FILE[name], monkeypatch, capfd)
    assert not started
    made = {path.name for path in folder.iterdir()} - before - {"study.toml", "__pycache__"}
    assert not made
    assert code == 2
    assert said.startswith(f"error: {role}s.model" if role == "teacher" else "error: student.model")
    assert said.count("\n") == 1
    assert name in said


@pytest.mark.parametrize("name", NOT_IMPORTED)
def test_programs_and_python_itself_are_not_even_imported(name, folder, monkeypatch, capfd):
    module = name.rpartition(".")[0]
    monkeypatch.delitem(sys.modules, module, raising=False)
    code, said = planned(folder, "teacher", name, {}, monkeypatch, capfd)
    assert code == 2
    assert said.count("\n") == 1
    assert module not in sys.modules


def test_a_module_that_ends_python_is_refused_in_one_line(folder, monkeypatch, capfd):
    (folder / "leaves.py").write_text("raise SystemExit(0)", encoding="utf-8")
    code, said = planned(folder, "teacher", "leaves.Model", {}, monkeypatch, capfd)
    assert code == 2
    assert said.count("\n") == 1
    assert "SystemExit" in said


def test_a_class_of_ones_own_is_built(folder, monkeypatch, capfd):
    code, said = planned(folder, "teacher", "harmless_looking.Own", {}, monkeypatch, capfd)
    assert code == 0, said
