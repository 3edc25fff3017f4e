"""The init command: what it reads, infers, asks and writes; and what init or plan refuses, in one line."""

import io
import json
import tomllib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import typer
from PIL import Image

from collegium import PrivacyWarning
from collegium.cli import init as command
from collegium.data.datasets.array_files import idx_bytes
from collegium.study.config import check_names, read_config
from collegium.study.json_schema import study_schema
from collegium.study.methods.kinds import SECTIONS
from collegium.study.study_data import load_study_data
from tests.engines.generated_tables import into_postgresql

LEVELS = "high=1,average=2,low=3"
SAID = ("--owner", "person_id", "--levels", LEVELS, "--classes", "no,yes")


def people(n, seed, *, private=False, labels=False):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "work": rng.choice(["sea", "field", "office"], n),
            "height": rng.normal(170, 10, n).round(1),
        }
    )
    if private or labels:
        table["sick"] = rng.choice(["no", "yes"], n)
    if private:
        table["person_id"] = [f"p{row // 2}" for row in range(n)]
        table["privacy"] = np.array(["high", "average", "low"])[np.arange(n) // 2 % 3]
    return table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(120, 1, private=True).to_csv("private.csv", index=False)
    people(60, 2).to_csv("public.csv", index=False)
    people(60, 3, labels=True).to_csv("test.csv", index=False)
    return tmp_path


@pytest.fixture
def init(collegium, folder):
    """Begin a study; return what it says, and what was printed."""

    def call(*arguments, private="private.csv", public="public.csv"):
        path = folder / "study.toml"
        path.unlink(missing_ok=True)
        code, said, errors = collegium(
            "init", path, "--from", private, "--public", public, *arguments
        )
        assert code == 0, errors
        text = path.read_text(encoding="utf-8")
        study = tomllib.loads(text)
        assert list(study) == ["study", "data", "privacy"]
        for section, keys in study.items():
            check_names(section, keys)
            SECTIONS[section](**keys)
        assert len([line for line in text.splitlines() if "=" in line]) < 15
        return study, said

    return call


@pytest.fixture
def refused(collegium, folder):
    def call(*arguments):
        code, said, errors = collegium("init", *arguments)
        lines = [line for line in errors.splitlines() if not line.startswith("warning: ")]
        assert (code, said, len(lines)) == (2, "", 1), (said, errors)
        assert lines[0].startswith("error: ") and not (folder / "a.toml").exists()
        return lines[0]

    return call


@pytest.fixture
def plan_refuses(collegium, folder):
    """Begin a study that init takes as it is; return the line by which plan refuses it, and its warnings."""

    def call(*arguments):
        code, _, errors = collegium("init", "a.toml", *arguments)
        assert code == 0, errors
        code, said, errors = collegium("plan", "a.toml")
        lines = errors.splitlines()
        assert (code, said) == (2, "") and lines[-1].startswith("error: "), (said, errors)
        assert all(line.startswith("warning: ") for line in lines[:-1]), errors
        (folder / "a.toml").unlink()
        return lines[-1]

    return call


@pytest.fixture
def answering(monkeypatch):
    """Sit down at a terminal with answers; returns the questions, which grow as they are asked."""

    def call(*answers):
        asked, prompt = [], typer.prompt
        monkeypatch.setattr(command, "somebody_is_there", lambda: True)
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{one}\n" for one in answers)))
        monkeypatch.setattr(
            typer, "prompt", lambda text, **options: asked.append(text) or prompt(text, **options)
        )
        return asked

    return call


def inferred(said):
    return {
        key: rest
        for line in said.splitlines()
        if line.startswith("• ")
        for key, _, rest in [line.removeprefix("• ").partition(": ")]
    }


def test_a_rare_class_gets_a_goal_that_counts_it(collegium, folder):
    """Proposed above 80 % of one class among forty labels or more, and said."""
    for rare, says in ((6, True), (13, False)):
        public = people(60, 2)
        public["status"] = np.where(np.arange(60) < rare, "ill", "well")
        public.to_csv("rare.csv", index=False)
        private = people(120, 1, private=True)
        private["status"] = np.where(np.arange(120) < 12, "ill", "well")
        private.to_csv("private.csv", index=False)
        code, said, errors = collegium(
            "init", f"{rare}.toml", "--from", "private.csv", "--public", "rare.csv", "--target", "status",
            "--owner", "person_id", "--levels", "high=1,average=2,low=3"
        )  # fmt: skip
        assert code == 0, errors
        study = tomllib.loads((folder / f"{rare}.toml").read_text(encoding="utf-8"))
        assert study.get("student") == ({"goal": "balanced"} if says else None)
        assert ("90 % of the public labels are one class" in said) == says


def test_beside_a_server_there_is_no_ledger_unless_somebody_names_one(
    collegium, folder, server, monkeypatch
):
    monkeypatch.delenv("COLLEGIUM_LEDGER", raising=False)
    url = server.new_database()
    for name, table in (
        ("people", people(120, 1, private=True)),
        ("others", people(60, 2, labels=True)),
    ):
        into_postgresql(pa.table(table.to_dict("list")), url, name)
    options = ["--from", f"{url}#people", "--public", f"{url}#others", "--target", "sick"]
    options += ["--owner", "person_id", "--levels", "high=1,average=2,low=3"]
    code, said, errors = collegium("init", "a.toml", *options)
    assert code == 0, errors
    assert "ledger.url: 'none'; beside" in said
    assert tomllib.loads((folder / "a.toml").read_text())["ledger"] == {"url": "none"}
    code, _, errors = collegium("plan", "a.toml")
    assert code == 0, errors
    monkeypatch.setenv("COLLEGIUM_LEDGER", str(folder / "people.ledger"))
    assert collegium("init", "b.toml", *options)[0] == 0
    assert "[ledger]" not in (folder / "b.toml").read_text()


# A template, and every key


def test_without_files_a_template_is_written_and_never_over_anything(collegium, refused, folder):
    path = folder / "mine.toml"
    code, said, _ = collegium("init", path)
    assert code == 0 and said.startswith(f"wrote {path}")
    given = tomllib.loads(path.read_text(encoding="utf-8"))
    assert list(given) == ["study", "data", "privacy"]
    for section, keys in given.items():
        check_names(section, keys)
    path.write_text("my own work", encoding="utf-8")
    for arguments in (
        (),
        ("--all-keys",),
        ("--from", "private.csv", "--public", "public.csv", *SAID),
    ):
        code, _, errors = collegium("init", path, *arguments)
        assert code == 2 and "exists already and is left as it is" in errors
    assert path.read_text(encoding="utf-8") == "my own work"
    path.unlink()
    assert "cannot be written" in refused(folder / "no" / "folder.toml")


def test_all_keys_writes_the_example_of_every_key(collegium, folder):
    path = folder / "mine.toml"
    assert collegium("init", path, "--all-keys")[0] == 0
    assert read_config(path)["study.name"] == "mine"
    assert set(tomllib.loads(path.read_text(encoding="utf-8"))) == set(SECTIONS)


@pytest.mark.parametrize("all_keys", [[], ["--all-keys"]])
def test_a_schema_for_editors_is_written_and_never_over_other_files(collegium, folder, all_keys):
    path, schema = folder / "mine.toml", folder / "mine.schema.json"
    assert collegium("init", path, "--schema", *all_keys)[0] == 0
    assert path.read_text(encoding="utf-8").startswith("#:schema mine.schema.json\n")
    assert json.loads(schema.read_text(encoding="utf-8")) == study_schema()
    path.write_text("my own work", encoding="utf-8")
    schema.unlink()
    for _ in range(2):  # the second time ours is there, and written anew
        _, said, _ = collegium("init", path, "--schema", *all_keys)
        assert "#:schema mine.schema.json" in said.splitlines()
    assert path.read_text(encoding="utf-8") == "my own work" and schema.exists()
    schema.write_text("my own schema", encoding="utf-8")
    code, _, errors = collegium("init", path, "--schema", *all_keys)
    assert code == 2 and "exists already and is left as it is" in errors
    assert schema.read_text(encoding="utf-8") == "my own schema"


# What is written


def test_a_study_of_ten_lines_shows_what_was_inferred_and_from_what(init, folder):
    study, said = init(*SAID)
    assert study == {
        "study": {"name": "Predicting sick (private.csv)"},
        "data": {
            "private": "private.csv",
            "public": "public.csv",
            "target": "sick",
            "owner": "person_id",
            "classes": ["no", "yes"],
        },
        "privacy": {
            "column": "privacy",
            "levels": {"high": 1.0, "average": 2.0, "low": 3.0},
            "delta": 1e-5,
        },
    }
    assert inferred(said) == {
        "privacy.column": "'privacy'; by its name",
        "data.target": "'sick'; private.csv has it and public.csv lacks it",
        "features": "age, work, height",
        "study.name": "'Predicting sick (private.csv)'; it stands on the report and on people's receipts "
        "(--title overrules it)",
    }
    assert said.splitlines()[-3:] == [
        f"wrote {folder / 'study.toml'}; next:",
        f"collegium plan {folder / 'study.toml'}",
        f"collegium run {folder / 'study.toml'}",
    ]


def test_what_is_said_stands_in_the_file(init):
    study, _ = init(
        "--target=work", "--owner=none", "--levels=high=1,average=inf,low=0", "--delta=1e-7",
        "--exclude=age,sick", "--classes=sea,field,office", "--privacy=privacy",
    )  # fmt: skip
    assert study["data"]["target"] == "work" and "owner" not in study["data"]
    assert study["data"]["exclude"] == ["age", "sick", "person_id"]
    assert study["privacy"]["levels"] == {"high": 1.0, "average": np.inf, "low": 0.0}
    assert study["privacy"]["delta"] == 1e-7


def test_public_labels_give_the_classes_in_whatever_order_columns_stand(init):
    public = people(60, 4, labels=True)
    public[["sick", "height", "age", "work"]].to_csv("labelled.csv", index=False)
    _, said = init(
        "--owner=person_id", f"--levels={LEVELS}", "--target=sick", public="labelled.csv"
    )
    assert inferred(said)["data.classes"] == "left out; read off column 'sick' of labelled.csv"
    study, said = init("--owner=person_id", f"--levels={LEVELS}", "--test=test.csv")
    assert "classes" not in study["data"] and study["data"]["test"] == "test.csv"
    assert inferred(said)["data.classes"] == "left out; read off column 'sick' of test.csv"
    assert list(load_study_data(read_config("study.toml")).classes) == ["no", "yes"]


def test_the_target_may_be_what_test_records_have_too(init):
    people(120, 1, private=True).assign(note=1, extra=2).to_csv("more.csv", index=False)
    study, _ = init(*SAID, "--test=test.csv", private="more.csv")
    assert study["data"]["target"] == "sick" and study["data"]["exclude"] == ["note", "extra"]


def test_numbers_of_many_values_are_hardly_classes(init):
    for name, private in (("p.csv", True), ("q.csv", False)):
        people(120, 1, private=private).assign(sick=range(120)).to_csv(name, index=False)
    _, said = init(*SAID[:4], "--target=sick", private="p.csv", public="q.csv")
    assert "'sick' has 120 different values in q.csv" in inferred(said)["data.target"]


def test_without_public_labels_the_list_of_classes_is_left_out_and_both_warn(init, folder):
    study, said = init("--owner=person_id", f"--levels={LEVELS}")
    assert "classes" not in study["data"]
    assert "which the guarantee does not cover" in inferred(said)["data.classes"]
    assert "# classes = " in (folder / "study.toml").read_text(encoding="utf-8")
    with pytest.warns(PrivacyWarning, match="taken from the private labels, which no budget"):
        load_study_data(read_config("study.toml"))


def test_a_german_table_is_read_as_it_is(init):
    rng = np.random.default_rng(0)
    private, public = (
        pd.DataFrame({"Alter": rng.integers(18, 90, 90), "Größe": rng.normal(1.7, 0.1, 90)})
        for _ in range(2)
    )
    public.to_csv("offen.csv", index=False, sep=";", decimal=",")
    private["krank"] = rng.choice(["ja", "nein"], 90)
    private["Datenschutzstufe"], private["Kundennummer"] = "hoch", range(90)
    private.to_csv("privat.csv", index=False, sep=";", decimal=",")
    study, _ = init(
        "--owner=Kundennummer", "--levels=hoch=1,niedrig=3", "--classes=ja,nein",
        private="privat.csv", public="offen.csv",
    )  # fmt: skip
    assert study["data"]["target"] == "krank" and study["privacy"]["column"] == "Datenschutzstufe"
    assert not {"decimal", "separator", "types", "exclude"} & set(study["data"])
    records = load_study_data(read_config("study.toml"))
    assert (
        records.X.dtypes.map(pd.api.types.is_numeric_dtype).all() and records.X["Größe"].max() < 3
    )


def test_a_column_of_numbers_is_epsilon_itself(init):
    table = people(120, 1, private=True).drop(columns=["privacy", "person_id"]).assign(epsilon=0.5)
    table.to_parquet("private.parquet")
    people(60, 2).to_parquet("public.parquet")
    study, said = init(private="private.parquet", public="public.parquet")
    assert study["privacy"] == {"column": "epsilon", "delta": 1e-5}
    assert "as a different person's" in inferred(said)["data.owner"]
    study, _ = init("--owner=person_id", "--privacy=privacy", "--levels=numbers")
    assert study["privacy"] == {"column": "privacy", "delta": 1e-5}


def test_classes_are_text_where_private_labels_are(init):
    for kind, classes in ((str, ["0", "1"]), (int, [0, 1])):
        table = people(120, 1, private=True).assign(sick=np.arange(120) % 2)
        table.astype({"sick": kind}).to_parquet("private.parquet")
        study, _ = init(*SAID[:4], "--classes=0,1", private="private.parquet")
        assert study["data"]["classes"] == classes


def test_images_and_their_files_beside_them(init, folder):
    images = np.zeros((30, 28, 28), np.uint8)
    np.save("X_private.npy", images)
    np.save("y_private.npy", np.arange(30) % 10)
    (folder / "public-images-idx3-ubyte").write_bytes(idx_bytes(images[:20]))
    (folder / "public-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(20, dtype=np.uint8) % 10))
    pd.DataFrame({"level": ["a", "b"] * 15}).to_csv("privacy.csv", index=False)
    study, said = init(
        "--levels=a=1,b=2", private="X_private.npy", public="public-images-idx3-ubyte"
    )
    assert study["data"] == {
        "private": "X_private.npy",
        "private_labels": "y_private.npy",
        "public": "public-images-idx3-ubyte",
        "public_labels": "public-labels-idx1-ubyte",
    }
    assert study["privacy"] == {
        "file": "privacy.csv",
        "levels": {"a": 1.0, "b": 2.0},
        "delta": 1e-5,
    }
    assert "images of 28 × 28: 30 in X_private.npy" in said


@pytest.mark.parametrize("form", ["folder", "npz"])
def test_images_that_come_with_their_classes_need_no_file_of_labels(init, folder, form):
    images = np.zeros((30, 28, 28, 3), np.uint8)
    names = np.array(["meadow", "sea"] * 15)
    for role, n in (("private", 30), ("public", 20), ("test", 10)):
        if form == "npz":
            arrays = {"X": images[:n]} if role == "public" else {"X": images[:n], "y": names[:n]}
            np.savez(f"{role}-images.npz", **arrays)
            continue
        for place in range(n):
            into = folder / f"{role}-images" / ("" if role == "public" else names[place])
            into.mkdir(parents=True, exist_ok=True)
            Image.fromarray(images[place]).save(into / f"{place}.png")
    pd.DataFrame({"level": ["a", "b"] * 15}).to_csv("privacy.csv", index=False)
    end = ".npz" if form == "npz" else ""
    files = {role: f"{role}-images{end}" for role in ("private", "public", "test")}
    said_too = ("--levels=a=1,b=2", "--test", files["test"])
    study, said = init(*said_too, private=files["private"], public=files["public"])
    assert study["data"] == files
    where = "as y" if form == "npz" else "in the names of its folders"
    assert f"classes of the private records: in private-images{end}, {where}" in said
    assert f"data.classes: left out; read off test-images{end}" in said


def test_features_that_teach_nothing_or_are_nowhere_else_are_left_out(init):
    def with_more(table, seed):
        rows = np.arange(len(table))
        table.insert(0, "", rows)
        return table.assign(
            encounter_id=1000 * seed + rows,
            remark=[f"seen on day {row}" for row in rows],
            income=np.where(rows % 9, rows, "?"),
        )

    with_more(people(120, 1, private=True), 1).assign(mine=1).to_csv("more.csv", index=False)
    with_more(people(60, 2), 2).assign(theirs=1).to_csv("open.csv", index=False)
    study, said = init(*SAID, "--target=sick", private="more.csv", public="open.csv")
    assert study["data"]["exclude"] == ["Unnamed: 0", "mine", "theirs", "encounter_id", "remark"]
    assert study["data"]["types"] == {"income": "number"}
    assert "'?' marks missing ones" in inferred(said)["data.types"]


def test_a_separator_that_headers_leave_open_is_the_one_that_fits_all_records(init, folder):
    for name, table in (("a", people(40, 1, private=True)), ("b", people(20, 2))):
        table.rename(columns={"height": "height, cm"}).to_csv(f"{name}.csv", index=False, sep=";")
    study, _ = init(*SAID, private="a.csv", public="b.csv")
    assert study["data"]["separator"] == ";" and study["data"]["target"] == "sick"


def test_paths_are_those_from_the_studys_folder(collegium, folder):
    (folder / "studies").mkdir()
    collegium(
        "init", "studies/a.toml", "--from", "private.csv", "--public", folder / "public.csv", *SAID
    )
    data = tomllib.loads((folder / "studies/a.toml").read_text(encoding="utf-8"))["data"]
    assert (
        data["private"] == "../private.csv" and data["public"] == (folder / "public.csv").as_posix()
    )


# What is looked at


@pytest.mark.parametrize("form", ["csv", "parquet", "npy"])
def test_no_private_value_decides_on_anything(init, folder, form):
    outcomes = []
    for seed in (1, 2):
        private = people(120, seed, private=True)
        if form == "parquet":
            private.assign(privacy=f"other {seed}").to_parquet("private.parquet")
            outcomes.append(init(*SAID, private="private.parquet"))
        elif form == "csv":
            header = (folder / "private.csv").read_bytes().splitlines()[0]
            (folder / "p.csv").write_bytes(header + b"\n" + seed * b'\xff;"\0,,\r')
            outcomes.append(init(*SAID, private="p.csv"))
        else:
            np.save("p.npy", np.full((30, 8), seed))
            np.save("p-labels.npy", np.full(30, seed))
            np.save("public.npy", np.zeros((20, 8)))
            (folder / "privacy.csv").write_bytes(b"level\n" + b"\xff\n" * seed)
            said = ("--levels=a=1,b=2", "--classes=0,1")
            outcomes.append(init(*said, private="p.npy", public="public.npy"))
    assert outcomes[0] == outcomes[1]


# What is asked


def test_a_terminal_asks_only_what_nobody_could_infer(collegium, folder, answering):
    asked = answering("", LEVELS, "no,yes", "Sick leave of  2026")
    code, _, _ = collegium("init", "--from", "private.csv", "--public", "public.csv")
    study = tomllib.loads((folder / "study.toml").read_text(encoding="utf-8"))
    assert code == 0
    assert [question.split(" (")[0] for question in asked] == [
        "? Which column says whose record it is",
        "? Which epsilon does each privacy level in 'privacy' stand for",
        "? What are the classes? For instance no,yes. If you just press Enter, they are read off the labels "
        "of private.csv, which the guarantee does not cover",
        "? What is the study called? The title stands on the report and on people's receipts "
        "[Predicting sick",
    ]
    assert study["study"]["name"] == "Sick leave of 2026"
    assert study["data"]["owner"] == "person_id" and study["data"]["classes"] == ["no", "yes"]
    assert study["privacy"]["levels"] == {"high": 1.0, "average": 2.0, "low": 3.0}


def test_what_was_said_is_not_asked(init, answering):
    asked = answering()
    init(*SAID)
    assert not asked


def test_an_answer_that_means_nothing_is_asked_for_again(collegium, folder, answering):
    answering("nobody", "none", "high", "high=-1", LEVELS, "", "x" * 101, "")
    code, _, asked = collegium("init", "--from", "private.csv", "--public", "public.csv")
    study = tomllib.loads((folder / "study.toml").read_text(encoding="utf-8"))
    assert code == 0 and asked.count("error: ") == 4
    assert study["study"]["name"] == "Predicting sick (private.csv)"
    assert "owner" not in study["data"] and "levels" in study["privacy"]
    assert study["data"]["exclude"] == ["person_id"] and "classes" not in study["data"]


def test_nothing_is_asked_for_a_file_that_is_there_already(collegium, folder, answering):
    (folder / "study.toml").write_text("my own work", encoding="utf-8")
    asked = answering("", LEVELS, "no,yes")
    code, said, errors = collegium("init", "--from", "private.csv", "--public", "public.csv")
    assert (code, said, asked) == (2, "", []) and "exists already" in errors


def test_no_name_of_a_column_gives_orders_to_a_terminal(collegium, folder, answering):
    table = people(60, 1, private=True).rename(
        columns={"sick": "a\x1b[31m\nb", "height": "c\x1b[2J"}
    )
    table.to_csv("p.csv", index=False)
    people(60, 2).to_csv("q.csv", index=False)
    asked = answering("c\x1b[2J", "none", "no,yes", "")
    _, said, errors = collegium("init", "--from", "p.csv", "--public", "q.csv", "--levels", LEVELS)
    assert len(asked) == 4 and "[31m" in asked[0]
    assert "\x1b[31m" not in said + errors and "\x1b[2J" not in said + errors
    assert all("\n" not in question for question in asked)


def test_the_title_that_is_given_stands_on_receipts(init, refused, collegium, folder):
    study, said = init(*SAID, "--title", "Sick leave, \u202e2026\n")
    assert study["study"]["name"] == "Sick leave, 2026" and "study.name" not in inferred(said)
    assert 'name = "Sick leave, 2026"  # stands on the report and on people\'s receipts' in (
        folder / "study.toml"
    ).read_text(encoding="utf-8")
    assert read_config("study.toml").title() == "Sick leave, 2026"
    files = ("--from", "private.csv", "--public", "public.csv")
    for title in ("", " \n", "x" * 101):
        said = refused("a.toml", *files, *SAID, "--title", title)
        assert "--title: a title has 1 to 100 letters" in said
    assert "add --from FILE" in refused("a.toml", "--title", "Sick leave")


def test_who_ends_the_questions_gets_no_file(collegium, folder, answering):
    answering()
    code, _, _ = collegium("init", "--from", "private.csv", "--public", "public.csv")
    assert code == 130 and not (folder / "study.toml").exists()


def test_without_a_terminal_one_line_names_every_option_that_is_missing(refused):
    people(60, 1, private=True).rename(columns={"privacy": "stufe"}).to_csv("p.csv", index=False)
    said = refused("a.toml", "--from", "p.csv", "--public", "public.csv")
    assert said.startswith("error: Four options are missing: --privacy COLUMN (")
    assert all(flag in said for flag in ("--target COLUMN", "--owner COLUMN", "--levels NAME"))
    np.save("p.npy", np.zeros((9, 4)))
    np.save("q.npy", np.zeros((8, 4)))
    said = refused("a.toml", "--from", "p.npy", "--public", "q.npy", "--test", "q.npy")
    assert said.startswith("error: Four options are missing: --labels FILE (")
    assert all(flag in said for flag in ("--test-labels", "--privacy-file", "--levels"))


@pytest.mark.parametrize(
    ("column", "proposal"),
    [("patient_nbr", "patient_nbr"), ("CustomerID", "CustomerID"), ("hospital", "hospital")],
)
def test_a_column_that_may_name_people_is_never_decided_on(refused, column, proposal):
    table = people(120, 1, private=True).rename(columns={"person_id": column})
    table.to_csv("p.csv", index=False)
    said = refused(
        "a.toml",
        "--from",
        "p.csv",
        "--public",
        "public.csv",
        "--target",
        "sick",
        "--levels",
        LEVELS,
    )
    assert f"--owner COLUMN (whose record it is; perhaps '{proposal}'; none: " in said


def hospital(n, seed, **more):
    """Stays in hospitals, as registries publish them: with numbers of stay and patient, and labels last."""
    rng = np.random.default_rng(seed)
    return people(n, seed).assign(
        encounter_id=rng.permutation(10 * n)[:n],
        patient_nbr=rng.permutation(10 * n)[:n],
        admission_type_id=rng.integers(1, 5, n),
        seen=rng.integers(0, 2, n),
        readmitted=rng.choice(["<30", ">30", "NO"], n),
        **more,
    )


def test_of_labelled_public_records_the_last_column_of_classes_is_proposed(init, answering):
    hospital(400, 1, privacy="high").to_csv("stays.csv", index=False)
    hospital(300, 2).to_csv("open.csv", index=False)
    asked = answering("", "", "")
    study, _ = init("--levels=high=1", private="stays.csv", public="open.csv")
    assert "(readmitted, seen, work)" in asked[0]
    assert "('patient_nbr', 'encounter_id')" in asked[1] and len(asked) == 3
    assert study["data"]["target"] == "readmitted" and study["data"]["owner"] == "patient_nbr"
    assert study["data"]["exclude"] == ["encounter_id"]


def test_a_column_that_only_private_records_have_is_not_taken_for_the_one_called_target(refused):
    for name, private in (("p.csv", True), ("q.csv", False)):
        table = people(60, 1, private=private, labels=True).rename(columns={"sick": "target"})
        (table.assign(ward=1) if private else table).to_csv(name, index=False)
    said = refused("a.toml", "--from", "p.csv", "--public", "q.csv", *SAID[:4])
    assert "--target COLUMN (the column to predict; perhaps ward, target, work)" in said
    said = refused("a.toml", "--from", "p.csv", "--public", "q.csv", "--target=target", *SAID[2:4])
    assert "whose record it is; perhaps 'person_id', 'ward'; none:" in said


def test_labels_and_levels_of_a_table_may_be_in_files_of_their_own(init, refused):
    table = people(120, 1, private=True)
    for name in ("sick", "privacy"):
        table[[name]].to_csv(f"{name}.csv", index=False)
    table.drop(columns=["sick", "privacy"]).to_csv("bare.csv", index=False)
    files = ("--labels=sick.csv", "--privacy-file=privacy.csv")
    study, _ = init(*SAID, *files, private="bare.csv")
    assert study["data"]["private_labels"] == "sick.csv" and "target" not in study["data"]
    assert study["privacy"]["file"] == "privacy.csv" and study["data"]["owner"] == "person_id"
    given = ("a.toml", "--from", "bare.csv", "--public", "public.csv", *files)
    assert "perhaps 'person_id'; none:" in refused(*given, *SAID[2:])
    assert "data.target names the labels' column" in refused(*given, *SAID, "--target", "age")
    assert "exactly one of privacy.column, privacy.file" in refused(*given, *SAID, "--privacy=age")


def test_of_private_values_that_repeat_as_names_do_plan_asks(init):
    for seed, name in ((1, "private.csv"), (2, "public.csv")):
        town = 100 * seed + np.random.default_rng(seed).integers(0, 150, 300)
        people(300, seed, private=name == "private.csv").assign(town=town).to_csv(name, index=False)
    table = pd.read_csv("private.csv").drop(columns="person_id")
    table.to_csv("private.csv", index=False)
    study, _ = init(*SAID[2:])
    assert "owner" not in study["data"] and "exclude" not in study["data"]
    with pytest.warns(
        PrivacyWarning, match="different values of 'town': does it say whose record it is?"
    ):
        load_study_data(read_config("study.toml"))


# What is wrong

FILES = {
    "empty.csv": b"",
    "header.csv": b"age,work,height\n",
    "other.csv": b"a,b\n1,2\n",
    "values.csv": b"39,sea,170.2\n40,field,168\n",
    "twice.csv": b"age,age,work\n1,2,3\n",
    "latin.csv": "Größe,age\n1,2\n".encode("latin1"),
    "text.txt": b"hello",
    "Age.csv": b"Age,work,height\n1,sea,3\n",
    "one.csv": b"age,work,height,sick\n1,sea,3,no\n2,sea,3,no\n",
    "amounts.csv": b"age,work,height,sick\n1,sea,3,1.5\n2,sea,3,2.5\n",
    "thousand.csv": b'age,work,height\n"1,234",sea,3\n"2,345",sea,3\n',
}


@pytest.fixture
def options(folder):
    """Write the files that are wrong, and complete options by right ones."""
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    for name, shape in {"p": (9, 4), "q": (8, 4), "r": (8, 5), "l": (7,), "m": (6,)}.items():
        np.save(f"{name}.npy", np.zeros(shape))

    def complete(arguments):
        said = dict(zip(SAID[::2], SAID[1::2], strict=True))
        if {"one.csv", "amounts.csv"} & set(arguments):
            said.pop("--classes")
        given = {"--from": "private.csv", "--public": "public.csv", **said}
        missing = {flag: value for flag, value in given.items() if flag not in arguments}
        return [*sum(missing.items(), ()), *arguments]

    return complete


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--from", "none.csv"], "none.csv' does not exist"),
        (["--public", "none.csv"], "none.csv' does not exist"),
        (["--public", "empty.csv"], "is empty"),
        (["--from", "empty.csv"], "is empty"),
        (["--public", "other.csv"], "no column in common"),
        (["--public", "q.npy"], "no column in common"),
        (["--public", "values.csv"], "first line of values.csv seems to be a record"),
        (["--from", "values.csv"], "first line of values.csv seems to be a record"),
        (["--public", "twice.csv"], "has the same name for columns"),
        (["--from", "twice.csv"], "has the same name for columns"),
        (["--public", "latin.csv"], "is not UTF-8 text"),
        (["--public", "text.txt"], "unknown format"),
        (["--public", "private.csv"], "given as private and as public"),
        (["--test", "private.csv"], "given as private and as test"),
        (["--target", "none"], "--target: private.csv has no column 'none'"),
        (["--target", "sick", "--exclude", "sick"], "'sick' is also in --exclude"),
        (["--target", "privacy", "--privacy", "privacy"], "'privacy' holds the privacy levels"),
        (["--owner", "sick", "--target", "sick"], "'sick' is to be predicted"),
        (["--owner", "none at all"], "has no column 'none at all'"),
        (["--exclude", "age,work,height"], "no column is left to learn from"),
        (["--levels", "high=1,average"], "'average' is not NAME=EPSILON"),
        (["--levels", "high=-1"], "'high'"),
        (["--levels", "high=1,high=2"], "'high' twice"),
        (["--levels", "high=1e400"], "larger than any number"),
        (["--levels", ""], "--levels '' is not NAME=EPSILON"),
        (["--delta", "2"], "delta must lie strictly between 0 and 1"),
        (["--classes", "no"], "at least two different classes"),
        (["--separator", "ab"], "--separator must be one character"),
        (["--labels", "none.npy"], "none.npy' does not exist"),
        (["--test-labels", "test.csv"], "data.test_labels would have no effect"),
        (["--all-keys"], "reads no file"),
    ],
)
def test_what_init_refuses_is_one_line(refused, options, arguments, says):
    assert says in refused("a.toml", *options(arguments))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--public", "header.csv"], "header.csv holds no public records"),
        (["--public", "Age.csv"], "they lack age and also have Age"),
        (["--public", "copy.csv", "--target", "sick"], "the public records are the private ones"),
        (["--public", "one.csv", "--target", "sick"], "at least 2 classes, got 1 class"),
        (["--public", "amounts.csv", "--target", "sick"], "continuous"),
        (["--public", "thousand.csv"], "set data.decimal = ','"),
        (["--exclude", "shoes"], "data.exclude names column 'shoes', which is not there"),
        (["--levels", "hihg=1,average=2,low=3"], "did you mean 'hihg'?"),
        (["--levels", "numbers"], "name the levels in privacy.levels"),
        (
            ["--public", "test.csv", "--target", "sick", "--classes", "0,1"],
            "write both in the same way",
        ),
        (["--test", "public.csv", "--target", "sick"], "data.target in the test records"),
        (["--test", "small.csv", "--target", "sick"], "test records have other columns"),
        (["--privacy-file", "none.csv", "--target", "sick"], "none.csv' cannot be read"),
        (["--labels", "sick.npy", "--public-labels", "none.csv"], "none.csv' does not exist"),
        (["--labels", "l.npy"], "120 private records, but 7 labels"),
    ],
)
def test_what_init_leaves_to_plan_is_refused_by_it(plan_refuses, options, folder, arguments, says):
    np.save("sick.npy", pd.read_csv("private.csv")["sick"].to_numpy(str))
    (folder / "copy.csv").write_bytes((folder / "private.csv").read_bytes())
    (folder / "small.csv").write_bytes(b"age,work,sick\n1,sea,no\n2,sea,yes\n")
    assert says in plan_refuses(*options(arguments))


def test_a_first_line_that_is_a_record_is_not_shown(refused, folder):
    (folder / "values.csv").write_bytes(b"39,Oslo,170.2\n40,Rome,168\n")
    assert "Oslo" not in refused("a.toml", "--from", "values.csv", "--public", "public.csv")
    (folder / "names.csv").write_bytes(b"Ada,Oslo\nBo,Rome\n")
    assert "Oslo" not in refused("a.toml", "--from", "names.csv", "--public", "public.csv")


def test_public_records_are_needed_and_options_need_files(refused):
    assert "--public FILE is missing" in refused("a.toml", "--from", "private.csv")
    assert "add --from" in refused("a.toml", "--target", "sick")


def test_arrays_of_other_shapes_and_columns_of_arrays_are_refused(refused, plan_refuses, options):
    options([])
    pd.DataFrame({"level": ["a", "b", "a"] * 3}).to_csv("privacy.csv", index=False)
    np.save("labels.npy", np.arange(9) % 2)
    given = ("--from", "p.npy", "--levels=a=1,b=2", "--classes=0,1", "--public")
    labelled = ("--labels", "labels.npy")
    assert "is an array without column names" in refused(*given, "q.npy", "--owner", "x")
    assert "is an array without column names" in refused(*given, "q.npy", "--target", "x")
    assert "shape (5,) each, private ones (4,)" in plan_refuses(*given, "r.npy", *labelled)
    assert "give both in the same form" in plan_refuses(*given, "public.csv", *labelled)
    assert "9 private records, but 7 labels" in plan_refuses(*given, "q.npy", "--labels", "l.npy")
    wide = ("--privacy-file", "private.csv")
    assert "privacy.file must be one column" in plan_refuses(*given, "q.npy", *labelled, *wide)
    assert "must be one column" in plan_refuses(*given, "q.npy", "--labels", "q.npy")
    flat = ("--from", "labels.npy", "--public", "m.npy", *given[2:4])
    assert "records × features" in plan_refuses(*flat, *labelled)


def test_a_table_where_the_studys_file_belongs_names_the_option(collegium, tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("age\n7\n", encoding="utf-8")
    code, _, errors = collegium("init", table)
    assert code == 2 and f"collegium init --from {table} --public FILE" in errors
    assert table.read_text("utf-8") == "age\n7\n"
