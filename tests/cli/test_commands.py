"""The command line: what each command says, and one clear line for everything that is wrong."""

import contextlib
import hashlib
import io
import json
import math
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from collegium.cli import studies
from collegium.cli.main import main
from collegium.mechanisms import SecureNoise, SeededNoise
from collegium.study.methods.dpsgd import baselines
from collegium.study.terms import read_terms
from tests.settings_file import settings

COMMANDS = ("demo", "init", "plan", "run", "report", "label", "account", "ask", "statement")
CLASSES = ["cat", "dog", "owl"]
STUDY = """
[study]
name = "Animals"
[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
target = "kind"
owner = "person"
classes = ["cat", "dog", "owl"]
[privacy]
levels = { high = 4.0, average = 8.0, low = 12.0 }
column = "privacy"
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 12
[aggregation]
aggregator = "gnmax"
sigma = 6
[student]
model = "sklearn.naive_bayes.GaussianNB"
[run]
n_jobs = 1
"""


@pytest.fixture
def refused(collegium):
    """Run a command that must say in one line what is wrong, and nothing else."""

    def call(*arguments):
        code, output, errors = collegium(*arguments)
        lines = [line for line in errors.splitlines() if not line.startswith("warning: ")]
        assert code == 2, (output, errors)
        assert len(lines) == 1 and lines[0].startswith("error: "), errors
        assert "Traceback" not in errors and output == ""
        return lines[0]

    return call


@pytest.fixture
def works(collegium):
    def call(*arguments):
        code, output, errors = collegium(*arguments)
        assert code == 0, errors
        told = ("warning: ", "Note: ledger ")
        lines = [line for line in errors.splitlines() if not line.startswith(told)]
        assert not [line for line in lines if " is finished, so nothing more is drawn" not in line]
        return output

    return call


def animals(n, seed, private=False):
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 3, n)
    table = pd.DataFrame(
        {"height": kind + generator.normal(0, 0.2, n), "weight": generator.normal(0, 1, n)}
    )
    table["kind"] = np.array(CLASSES)[kind]
    if private:
        person = np.sort(generator.integers(0, n // 2, n))
        table["person"] = [f"person {number}" for number in person]
        table["privacy"] = np.array(["high", "average", "low"])[person % 3]
    return table


def write_study(folder, text=STUDY, **replaced):
    """Write tables and a TOML file; a replacement of a file's table may be a function."""
    made = {
        "private": animals(240, 1, private=True),
        "public": animals(80, 2),
        "test": animals(60, 3),
    }
    for role, table in made.items():
        table = replaced[role](table) if role in replaced else table
        table.to_csv(folder / f"{role}.csv", index=False)
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def contents(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished study, of which one file is named in full, and what was said of it."""
    folder = tmp_path_factory.mktemp("finished")
    text = STUDY.replace('"test.csv"', json.dumps(str(folder / "test.csv")))
    path = write_study(folder, text)
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as said,
        contextlib.redirect_stderr(io.StringIO()) as errors,
        pytest.raises(SystemExit) as ended,
    ):
        patch.setattr(sys, "argv", ["collegium", "run", str(path)])
        main()
    assert not ended.value.code, errors.getvalue()
    return path, said.getvalue(), errors.getvalue()


# Every command


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(collegium, command):
    code, output, errors = collegium(command, "--help")
    assert code == 0 and errors == ""
    assert re.search(rf"Example: collegium {command}", output)


def test_help_names_every_command_and_the_version_is_told(collegium, works):
    _, output, _ = collegium("--help")
    assert all(command in output for command in COMMANDS)
    from collegium import __version__

    assert works("--version") == f"collegium {__version__}\n"


def test_without_a_command_the_help_is_shown(collegium):
    code, output, errors = collegium()
    assert code == 2 and "account" in output and errors == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rnu", "x.toml"], "rnu"),
        (["run"], "Missing argument"),
        (["run", "x.toml", "--fast"], "--fast"),
        (["account"], "--level"),
        (["account", "--level", "a=1:9", "--checks", "many"], "--checks"),
        (["label", "--votes", "v.npy"], "Missing option"),
    ],
)
def test_wrong_use_is_one_line_too(refused, arguments, says):
    assert says in refused(*arguments)


# init, plan, run, report


def test_plan_shows_who_gets_what_and_writes_and_spends_nothing(tmp_path, works):
    path = write_study(tmp_path)
    before = contents(tmp_path)
    shown = works("plan", path)
    assert all(level in shown for level in ("high", "average", "low", "weighting", "12 teachers"))
    affordable = re.search(r"pay for (\d+) answers", shown.replace("\n", " "))
    as_json = json.loads(works("plan", path, "--json"))
    assert as_json["answers_affordable"] == int(affordable.group(1)) > 5
    assert set(as_json["groups"]) == {"high", "average", "low"}
    assert sum(group["teachers"] for group in as_json["groups"].values()) == 12
    assert contents(tmp_path) == before


def test_a_plan_of_answers_is_kept_by_the_run(finished, works):
    path, *_ = finished
    planned = json.loads(works("plan", path, "--json", "--out", path.parent / "other"))[
        "answers_affordable"
    ]
    said = json.loads((path.with_suffix("") / "release" / "privacy.json").read_text())
    assert said["stopped_by"] == "budget" and said["labels_released"] == planned


def test_run_shows_the_account_and_where_everything_is(finished):
    path, shown, errors = finished
    # After five seconds, on a slow machine, it tells how it gets on.
    assert not [line for line in errors.splitlines() if not re.match(r"\[\d+:\d\d:\d\d\] ", line)]
    for words in ("level", "people", "budget", "spent", "worst-case", "high", "average", "low"):
        assert words in shown
    assert re.search(r"labels released after \d+ queries, \d+\.\d % of them right", shown)
    assert "of 60 public test" in shown.replace("\n", " ")
    assert str(path.with_suffix("") / "release" / "report.html") in shown


def test_json_stands_alone_on_the_standard_output(finished, works):
    path, *_ = finished
    said = json.loads(works("run", path, "--json"))
    release = path.with_suffix("") / "release"
    assert said["report"] == str(release / "report.html")
    assert said["labels_released"] == len(pd.read_csv(release / "labels.csv"))
    # 57 labels, right with a chance of 0.83: half of them are wrong once in 10⁷. The student may be unlucky.
    assert 0 < said["student_accuracy"] <= 1 and 0.5 < said["label_accuracy"] <= 1
    assert json.loads(works("report", path.with_suffix(""), "--json"))["groups"] == said["groups"]
    stated = json.loads(works("statement", path.with_suffix(""), "--json"))
    assert (stated["name"], stated["released"]["student"]) == ("Animals", True)
    for group, its in zip(said["groups"], stated["groups"], strict=True):
        assert (its["group"], its["people"]) == (group["group"], group["owners"])
        assert its["spent"]["epsilon"] == group["epsilon_spent"]


def test_report_says_what_was_released_and_changes_nothing(finished, works):
    path, *_ = finished
    folder = path.with_suffix("")
    before = contents(folder)
    shown = works("report", folder)
    said = json.loads((folder / "release" / "privacy.json").read_text(encoding="utf-8"))
    assert all(sentence in shown for sentence in said["statement"])
    assert f"{said['labels_released']} labels were released" in shown
    assert f"Report: {folder / 'release' / 'report.html'}" in shown
    assert contents(folder) == before


def test_a_release_names_files_and_not_where_they_lie(finished):
    folder = finished[0].parent
    released = sorted((finished[0].with_suffix("") / "release").iterdir())
    assert len(released) >= 7
    assert not [file.name for file in released if str(folder).encode() in file.read_bytes()]
    assert '"test.csv"' in (released[0].parent / "privacy.json").read_text("utf-8")


@pytest.mark.parametrize("name", ["privacy.json", "quality.json", "report.html"])
def test_report_believes_a_release_only_as_it_was_released(name, finished, tmp_path, refused):
    release = shutil.copytree(finished[0].with_suffix("") / "release", tmp_path / "release")
    (release / name).write_text((release / name).read_text("utf-8") + "\n", encoding="utf-8")
    assert f"{name} is not what was released" in refused("report", tmp_path)
    (release / name).unlink()
    assert f"{name} is gone" in refused("report", tmp_path)


def test_names_with_brackets_are_shown_as_they_are(tmp_path, works):
    text = STUDY.replace("high = 4.0", '"[/high]" = 4.0')
    path = write_study(
        tmp_path, text, private=lambda t: t.replace({"privacy": {"high": "[/high]"}})
    )
    assert "[/high]" in works("plan", path)
    assert "[/high]" in works("run", path)
    assert "[/high]" in works("report", path.with_suffix(""))


@pytest.mark.slow
def test_demo_shows_budgets_baselines_and_the_report(tmp_path, collegium, monkeypatch):
    folder = tmp_path / "demo"
    monkeypatch.setattr(baselines, "_DRAWS", 1)  # each takes a quarter of a second
    seeded = SeededNoise(
        1
    )  # whatever is drawn is the same in every run of this test: it cannot fail by chance
    monkeypatch.setattr(SecureNoise, "_words", lambda self, *given: seeded._words(*given))
    run, results = studies._run, []

    def run_once(*given):
        results.append(run(*given))
        return results[-1]

    monkeypatch.setattr(studies, "_run", run_once)

    def works(*command):  # on the standard error it tells how it gets on
        code, said, _ = collegium(*command)
        assert code == 0
        return said

    said = json.loads(works("demo", "--out", folder, "--json"))
    assert {row["group"]: row["epsilon"] for row in said["groups"]} == pytest.approx(
        {"high": 0.1, "average": 0.2, "low": 0.3}, rel=2e-3
    )  # a ledger counts in tenths of μ²
    assert said["guarantee"] == "worst-case" and said["private_noise"] is True
    own, individual, uniform, tenfold, uniform_tenfold, clear = said["comparison"].values()
    assert own == said["accuracy"]
    # Single runs have 0.86 ± 0.05 and 0.66 ± 0.08 (eight draws of each); the rest 0.97, 0.97 and 0.98.
    assert individual > uniform and min(tenfold, uniform_tenfold, clear) > 0.9
    measured = baselines.Baselines(individual, uniform, tenfold, uniform_tenfold, clear)
    monkeypatch.setattr(baselines, "measure_baselines", lambda config: measured)
    shown = works("demo", "--out", folder)
    for words in ("Each person chose a privacy level", "people", "budget", "spent", "worst-case", "strictest",
                  "no privacy", "steps taken", "report.html"):  # fmt: skip
        assert words in shown
    monkeypatch.setattr(studies, "_run", lambda *given: results[-1])
    (line,) = works("demo", "--out", folder, "--quiet").splitlines()
    assert line.endswith(f"published: {folder / 'release'}.")
    assert Path(said["report"]).stat().st_size > 10_000


# account


def test_account_gives_the_published_numbers(works):
    asked = ("--level", "all=3:2500", "--personalisation", "uniform", "--checks", 640)
    said = json.loads(works("account", *asked, "--answers", 283, "--json"))
    assert said["aggregator"] == {
        "name": "confident", "threshold": 200, "sigma_threshold": 150, "sigma": 40
    }  # fmt: skip
    group = said["groups"]["all"]
    assert group["sensitivity"] == 1.0
    assert group["epsilon_spent"] == pytest.approx(2.53, abs=0.03)
    mu = math.sqrt(640 / 150**2 + 2 * 283 / 40**2)
    from collegium.accounting.gaussian import gdp_epsilon

    assert group["epsilon_spent"] == pytest.approx(float(gdp_epsilon(mu, 1e-5)), rel=1e-9)
    assert group["within_budget"] is True


def test_account_says_where_the_budget_does_not_suffice(works):
    asked = ("account", "--level", "all=2:2500", "--checks", 640, "--answers", 283)
    assert "more than the budget" in works(*asked)
    assert json.loads(works(*asked, "--json"))["groups"]["all"]["within_budget"] is False
    assert "more than the budget" not in works("account", "--level", "all=3:2500", *asked[3:])


def test_account_tells_how_much_can_be_afforded_and_not_one_answer_more(works):
    levels = ("--level", "high=1:540", "--level", "average=2:370", "--level", "low=3:90")
    base = ("account", *levels, "--teachers", 100, "--json")
    most = json.loads(works(*base))["answers_affordable"]
    enough = json.loads(works(*base, "--answers", most))["groups"].values()
    more = json.loads(works(*base, "--answers", most + 1))["groups"].values()
    assert most > 0 and all(group["within_budget"] for group in enough)
    assert not all(group["within_budget"] for group in more)


def test_account_of_people_without_privacy_ends_and_says_so(works):
    shown = works("account", "--level", "open=inf:500", "--checks", 5)
    assert "∞" in shown and "at least" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--level", "a"], "NAME=EPSILON:PEOPLE"),
        (["--level", "a=x:5"], "NAME=EPSILON:PEOPLE"),
        (["--level", "a=1:0"], "has 0 people"),
        (["--level", "a=0:5"], "epsilon must be greater than 0"),
        (["--level", "a=nan:5"], "epsilon must be greater than 0"),
        (["--level", "a=1:500", "--delta", "1"], "delta must lie strictly between 0 and 1"),
        (["--level", "a=1:500", "--level", "a=2:500"], "was given twice"),
        (["--level", "a=1:500", "--answers", "9", "--checks", "3"], "at least as many checks"),
        (["--level", "a=1:500", "--checks", "-1"], "give numbers of at least 0"),
        (["--level", "a=1:100"], "250 teachers, but only 100"),
        (["--level", "a=1:500", "--teachers", "0"], "number of teachers must be at least 1"),
        (["--level", "a=1:500", "--gamma", "1"], "has no parameter 'gamma'"),
        (["--level", "a=1:500", "--aggregator", "best"], "unknown aggregator 'best'"),
        (["--level", "a=1:500", "--personalisation", "best"], "best"),
        (["--level", "a=1:500", "--rule", "best"], "no weight rule 'best'"),
        (["--level", "a=1:500", "--sigma", "0"], "sigma must be greater than 0"),
        (["--level", "a=1:500", "--level", "b=2:1"], "group 'b' has 1 owner"),
    ],
)
def test_account_refuses_what_means_nothing(refused, arguments, says):
    assert says in refused("account", *arguments)


# label


def ballots(folder, n_queries=60, n_teachers=30, n_classes=4, kind="npy"):
    """Predictions of teachers who mostly agree on the query's number modulo the classes."""
    generator = np.random.default_rng(0)
    truth = np.arange(n_queries)[:, None] % n_classes
    noise = generator.integers(0, n_classes, (n_queries, n_teachers))
    votes = np.where(generator.random((n_queries, n_teachers)) < 0.9, truth, noise)
    counts = np.stack([(votes == label).sum(axis=1) for label in range(n_classes)], axis=1)
    for name, table in {"votes": votes, "counts": counts}.items():
        np.save(folder / f"{name}.npy", table)
        pd.DataFrame(table).to_csv(folder / f"{name}.csv", index=False, header=False)
    np.save(folder / "features.npy", truth + generator.normal(0, 0.1, (n_queries, 2)))
    epsilon = np.repeat([40.0, 80.0, 120.0], [18, 9, 3])
    pd.DataFrame({"epsilon": epsilon}).to_csv(folder / "teachers.csv", index=False)
    pd.DataFrame({"epsilon": [60.0]}).to_csv(folder / "one.csv", index=False)
    named = pd.DataFrame({"group": ["a", "b"], "epsilon": [40.0, 80.0], "owners": [200, 100]})
    named.to_csv(folder / "two.csv", index=False)
    named.assign(teachers_per_owner=[1, 2]).to_csv(folder / "upsampled.csv", index=False)


def label_options(folder, votes="votes.npy", budgets="teachers.csv", out="labels", classes=4):
    options = [
        "label",
        "--votes",
        folder / votes,
        "--budgets",
        folder / budgets,
        "--out",
        folder / out,
    ]
    return [*options, "--classes", classes] if classes else options


GNMAX = ("--aggregator", "gnmax", "--sigma", 8)
METHOD = "personalisation.method"


@pytest.mark.parametrize("votes", ["votes.npy", "votes.csv"])
@pytest.mark.parametrize("method", ["uniform", "weighting", "vanishing"])
def test_label_takes_predictions_and_budgets_of_teachers(tmp_path, works, votes, method):
    ballots(tmp_path)
    options = (
        *label_options(tmp_path, votes),
        *GNMAX,
        *settings(tmp_path, f"{METHOD} = '{method}'"),
    )
    said = json.loads(works(*options, "--json"))
    table = pd.read_csv(said["labels"])
    assert len(table) == said["labels_released"] > 10
    # 60 labels, of which 1.6 are wrong on average: more than 17 are once in 10¹¹.
    assert np.mean(table["label"] == table["row"] % 4) > 0.7
    assert {row["group"]: row["epsilon"] for row in said["groups"]} == {
        "ε=40": 40, "ε=80": 80, "ε=120": 120
    }  # fmt: skip
    assert all(0 < row["epsilon_spent"] <= row["epsilon"] for row in said["groups"])


@pytest.mark.parametrize("votes", ["counts.npy", "counts.csv"])
def test_label_takes_counts_with_one_budget(tmp_path, works, votes):
    ballots(tmp_path)
    options = label_options(tmp_path, votes, "one.csv", classes=None)
    shown = works(*options, *GNMAX, *settings(tmp_path, f"{METHOD} = 'uniform'"))
    table = pd.read_csv(tmp_path / "labels" / "release" / "labels.csv")
    assert f"{len(table)} labels released" in shown and len(table) > 10
    assert np.mean(table["label"] == table["row"] % 4) > 0.7


@pytest.mark.parametrize("name", ["lnmax", "gnmax", "confident"])
def test_label_runs_with_every_aggregator_that_needs_no_features(tmp_path, works, name):
    ballots(tmp_path)
    options = (*label_options(tmp_path), "--aggregator", name, "--json")
    assert json.loads(works(*options))["queries_asked"] > 5


def test_label_with_a_student_needs_features(tmp_path, works, refused):
    ballots(tmp_path)
    options = (*label_options(tmp_path), "--aggregator", "interactive")
    assert "interactive' needs --features" in refused(*options)
    features = ("--features", tmp_path / "features.npy")
    assert json.loads(works(*options, *features, "--json"))["queries_asked"] > 5
    np.save(tmp_path / "short.npy", np.zeros((3, 2)))
    short = refused(*options, "--features", tmp_path / "short.npy")
    assert "has 3 rows, but there are 60 queries" in short


def test_label_refuses_other_features_in_the_same_folder(tmp_path, works, refused):
    ballots(tmp_path)
    options = (*label_options(tmp_path), "--aggregator", "interactive", "--features")
    works(*options, tmp_path / "features.npy")
    np.save(tmp_path / "other.npy", np.ones((60, 2)))
    assert "holds another study" in refused(*options, tmp_path / "other.npy")


def test_label_takes_duplicates_as_they_were_made(tmp_path, works, refused):
    ballots(tmp_path)
    options = (*label_options(tmp_path, budgets="upsampled.csv"), *GNMAX)
    upsampling = settings(tmp_path, f"{METHOD} = 'upsampling'")
    said = json.loads(works(*options, *upsampling, "--json"))
    spent = {row["group"]: row["epsilon_spent"] for row in said["groups"]}
    assert 0 < spent["a"] < spent["b"] <= 80
    assert "only upsampling does" in refused(*options)
    other = (*label_options(tmp_path), *GNMAX, *upsampling)
    assert "needs a column teachers_per_owner" in refused(*other)


def test_label_again_gives_the_same_labels_and_is_not_paid_twice(tmp_path, works):
    ballots(tmp_path)
    options = (*label_options(tmp_path), "--aggregator", "gnmax", "--sigma", 30)
    first = works(*options, "--json")
    before = contents(tmp_path / "labels")
    assert works(*options, "--json") == first
    assert contents(tmp_path / "labels") == before
    elsewhere = label_options(tmp_path, out="others")
    works(*elsewhere, "--aggregator", "gnmax", "--sigma", 30)
    other = tmp_path / "others" / "release" / "labels.csv"
    assert other.read_text() != (tmp_path / "labels" / "release" / "labels.csv").read_text()


@pytest.mark.parametrize(
    "change",
    [
        "aggregation.aggregator = 'lnmax'",
        "aggregation.sigma = 9",
        "study.seed = 4",
        "aggregation.max_labels = 3",
        "personalisation.method = 'uniform'",
        "privacy.guarantee = 'data-dependent'",
        "aggregation.noise = 'seeded'",
    ],
)
def test_label_with_other_settings_in_the_same_folder_is_refused(tmp_path, works, refused, change):
    ballots(tmp_path)
    works(*label_options(tmp_path), "--aggregator", "gnmax")
    before = contents(tmp_path / "labels")
    named = ("--aggregator", "gnmax") if "aggregator" not in change else ()
    other = (*label_options(tmp_path), *named, *settings(tmp_path, change))
    assert "holds another study" in refused(*other)
    other = (*label_options(tmp_path, classes=5), "--aggregator", "gnmax")
    assert "holds another study" in refused(*other)
    assert contents(tmp_path / "labels") == before


def test_label_with_other_votes_or_budgets_in_the_same_folder_is_refused(tmp_path, works, refused):
    ballots(tmp_path)
    works(*label_options(tmp_path), *GNMAX)
    changed = np.load(tmp_path / "votes.npy")
    changed[0, 0] = (changed[0, 0] + 1) % 4
    np.save(tmp_path / "changed.npy", changed)
    assert "holds another study" in refused(*label_options(tmp_path, "changed.npy"), *GNMAX)
    assert "holds another study" in refused(*label_options(tmp_path, budgets="one.csv"), *GNMAX)


def test_label_with_seeded_noise_is_not_private_and_says_so(tmp_path, works):
    ballots(tmp_path)
    assert works(*label_options(tmp_path), *GNMAX, "--noise-seed", 1).startswith("NOT PRIVATE")


def write_label_input(folder, name):
    ballots(folder)
    votes = np.load(folder / "votes.npy").astype(float)
    wrong = votes.copy()
    wrong[3, 2] = {"nan": np.nan, "outside": 4, "negative": -1, "half": 0.5}.get(name, 0)
    np.save(folder / "wrong.npy", wrong)
    np.save(folder / "cube.npy", np.zeros((2, 2, 2)))
    np.save(folder / "uneven.npy", np.array([[3, 1], [2, 1]]))
    np.save(folder / "both.npy", np.ones((5, 3), dtype=int))
    pd.DataFrame(votes).to_csv(
        folder / "header.csv", index=False, header=[f"t{i}" for i in range(30)]
    )
    for file, table in {
        "few.csv": {"epsilon": [1.0, 2.0]},
        "none.csv": {"budget": [1.0]},
        "stray.csv": {"epsilon": [1.0], "colour": ["red"]},
        "zero.csv": {"epsilon": [0.0]},
        "nan.csv": {"epsilon": [float("nan")]},
        "text.csv": {"epsilon": ["much"]},
        "delta.csv": {"epsilon": [1.0], "delta": [1.5]},
        "torn.csv": {"epsilon": [1.0, 2.0], "group": ["a", "a"]},
        "half.csv": {"epsilon": [1.0], "owners": [1.5]},
        "tiny.csv": {"epsilon": [0.001]},
    }.items():
        pd.DataFrame(table).to_csv(folder / file, index=False)
    (folder / "empty.csv").write_text("epsilon\n")
    (folder / "file").write_text("")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("nan", {"votes": "wrong.npy"}, "whole numbers"),
        ("outside", {"votes": "wrong.npy"}, "outside the classes"),
        ("nan", {"votes": "wrong.npy", "are": "predictions"}, "whole numbers, but row 4, column 3"),
        (
            "half",
            {"votes": "wrong.npy", "are": "predictions"},
            "whole numbers, but row 4, column 3",
        ),
        (
            "outside",
            {"votes": "wrong.npy", "are": "predictions"},
            "1 vote(s) outside the classes 0",
        ),
        ("negative", {"votes": "wrong.npy", "are": "predictions"}, "1 vote(s) outside the classes"),
        ("", {"classes": None}, "fit neither"),
        ("", {"classes": None, "are": "predictions"}, "predictions need --classes"),
        ("", {"classes": 1, "are": "predictions"}, "at least 2 classes"),
        ("", {"votes": "both.npy", "budgets": "one.csv"}, "fit both"),
        ("", {"votes": "counts.npy"}, "counts do not say which group's teachers voted"),
        ("", {"votes": "counts.npy", "are": "counts"}, "no group's influence can be set"),
        (
            "",
            {"votes": "uneven.npy", "budgets": "one.csv", "are": "counts"},
            "same number of teach",
        ),
        ("", {"votes": "cube.npy"}, "must be a table"),
        ("", {"votes": "header.csv"}, "numbers only, without a header"),
        ("", {"votes": "absent.npy"}, "does not exist"),
        ("", {"votes": "absent.csv"}, "there is no file"),
        ("", {"budgets": "absent.csv"}, "does not exist"),
        ("", {"budgets": "few.csv", "are": "predictions"}, "30 teachers, but budgets of 2"),
        ("", {"budgets": "none.csv"}, "needs a column 'epsilon'"),
        ("", {"budgets": "stray.csv"}, "unknown column 'colour'"),
        ("", {"budgets": "zero.csv"}, "epsilon must be greater than 0"),
        ("", {"budgets": "nan.csv"}, "epsilon must be greater than 0"),
        ("", {"budgets": "text.csv"}, "column 'epsilon' must hold numbers, but record 1"),
        ("", {"budgets": "delta.csv"}, "delta must lie strictly between 0 and 1"),
        ("", {"budgets": "torn.csv"}, "group 'a' has two budgets"),
        ("", {"budgets": "half.csv"}, "column 'owners' must hold whole numbers"),
        ("", {"budgets": "empty.csv"}, "has no rows"),
        ("", {"budgets": "tiny.csv"}, "cannot afford a single answer"),
        ("", {"out": "file/labels"}, "cannot be written"),
        ("", {"are": "guesses"}, "--votes-are must be predictions, counts or auto"),
    ],
)
def test_label_refuses_bad_input_and_writes_nothing(tmp_path, refused, name, options, says):
    write_label_input(tmp_path, name)
    before = contents(tmp_path)
    given = {key: value for key, value in options.items() if key != "are"}
    extra = ("--votes-are", options["are"]) if "are" in options else ()
    assert says in refused(*label_options(tmp_path, **given), *extra)
    assert contents(tmp_path) == before


# Bad input of a study: the list of the issue


def swap(old, new):
    assert old in STUDY
    return STUDY.replace(old, new)


BAD = {
    "missing file": (swap('"public.csv"', '"absent.csv"'), {}, "absent.csv' does not exist"),
    "missing column": (swap('"kind"', '"species"'), {}, "names column 'species', which is not there"),
    "unknown level": (
        STUDY, {"private": lambda t: t.replace({"privacy": {"low": "lowest"}})},
        "privacy level that the policy does not know",
    ),
    "no level": (
        STUDY, {"private": lambda t: t.assign(privacy=t["privacy"].mask(t["person"] == t["person"][0]))},
        "has no privacy level",
    ),
    "ε = 0 for everybody": (
        swap("high = 4.0, average = 8.0, low = 12.0", "high = 0, average = 0, low = 0"), {},
        "a policy needs at least one level with a budget",
    ),
    "ε < 0": (swap("low = 12.0", "low = -1"), {}, "privacy.levels.low must be at least 0"),
    "ε NaN": (swap("low = 12.0", "low = nan"), {}, "privacy.levels.low must be a number, got nan"),
    "ε in a column is negative": (
        swap("levels = { high = 4.0, average = 8.0, low = 12.0 }", ""),
        {"private": lambda t: t.assign(privacy=np.where(t["person"] == t["person"][0], -1.0, 4.0))},
        "budget that is not a number of at least 0",
    ),
    "ε infinite for Algorithm 1": (
        swap("low = 12.0", "low = inf") + '[personalisation]\nmethod = "upsampling"\nrule = "algorithm1"\n',
        {}, "ε = ∞ does not allow",
    ),
    "δ = 0": (swap('column = "privacy"', 'column = "privacy"\ndelta = 0.0'), {}, "strictly between 0 and 1"),
    "δ = 1": (swap('column = "privacy"', 'column = "privacy"\ndelta = 1.0'), {}, "strictly between 0 and 1"),
    "group too small": (
        STUDY,
        {"private": lambda t: t.assign(
            privacy=np.where(t["person"] == t["person"][0], "low", "high"))},
        "group 'low' has 1 owner(s), too few",
    ),
    "more teachers than people": (swap("n_teachers = 12", "n_teachers = 200"), {}, "200 teachers, but only"),
    "public lacks a column": (STUDY, {"public": lambda t: t.drop(columns="weight")}, "they lack weight"),
    "public has another column": (STUDY, {"public": lambda t: t.assign(age=1)}, "also have age"),
    "public has another dtype": (
        STUDY, {"public": lambda t: t.assign(weight="heavy")}, "column 'weight' holds text in the public",
    ),
    "owner with two budgets": (
        STUDY, {"private": lambda t: t.assign(privacy=["high", "low"] * 120)}, "owner(s) with two budgets",
    ),
    "label outside the classes": (swap(', "owl"]', "]"), {}, "not among the classes"),
    "budget for no answer": (
        swap("high = 4.0, average = 8.0, low = 12.0", "high = 0.1, average = 0.2, low = 0.3"),
        {}, "cannot afford a single answer",
    ),
    "not TOML": ("[data", {}, "is not valid TOML"),
    "unknown key": (swap("sigma = 6", "sigmaa = 6"), {}, "did you mean 'sigma'"),
    "unknown model": (swap('"sklearn.naive_bayes.GaussianNB"', '"magic"'), {}, "unknown model 'magic'"),
    "parameter that is none": (
        swap("n_teachers = 12", "n_teachers = 12\nparams = { trees = 3 }"), {},
        "does not take these parameters",
    ),
    "records without numbers": (
        swap('["cat", "dog", "owl"]', '["cat", "dog", "owl"]\nmissing = "?"'),
        {"private": lambda t: t.assign(weight="?"), "public": lambda t: t.assign(weight="x")},
        "nothing is left",
    ),
    "text without preprocessing": (
        swap("[teachers]", '[preprocessing]\nkind = "none"\n[teachers]'),
        {role: lambda t: t.assign(weight="heavy") for role in ("private", "public", "test")},
        "could not convert",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_of_a_study_gets_one_clear_line_and_loses_nothing(tmp_path, refused, case):
    text, tables, says = BAD[case]
    path = write_study(tmp_path, text, **tables)
    before = contents(tmp_path)
    line = refused("run", path)
    assert says in line
    assert contents(tmp_path) == before
    assert refused("plan", path) == line


def test_a_missing_study_is_one_line_that_says_how_to_begin(tmp_path, refused):
    assert "collegium init" in refused("run", tmp_path / "none.toml")
    assert "holds no finished study" in refused("report", tmp_path)


def test_an_unwritable_folder_is_one_line(tmp_path, refused):
    path = write_study(tmp_path)
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused("run", path, "--out", tmp_path / "file" / "study")


def test_a_release_that_cannot_be_written_is_one_line_and_nothing_is_paid_twice(
    tmp_path, refused, works
):
    path = write_study(tmp_path)
    blocked = tmp_path / "study" / "release" / "report.html"
    blocked.mkdir(parents=True)
    (blocked / "something").write_text("")
    assert "report.html" in refused("run", path)
    asked = read_terms(tmp_path / "study")[1].settled()
    (blocked / "something").unlink()
    blocked.rmdir()
    works("run", path)
    assert read_terms(tmp_path / "study")[1].settled() == asked


def test_a_folder_from_other_inputs_is_refused_and_left_untouched(finished, tmp_path, refused):
    path, *_ = finished
    before = contents(path.with_suffix(""))
    other = write_study(tmp_path, private=lambda t: t.assign(weight=t["weight"] + 1))
    line = refused("run", other, "--out", path.with_suffix(""))
    assert "private records are not the same as before" in line
    assert contents(path.with_suffix("")) == before


@pytest.mark.parametrize(
    ("text", "tables", "says"),
    [
        (
            swap("low = 12.0", "low = inf"),
            {},
            "group 'low' has ε = ∞: NO PRIVACY",
        ),
        (
            swap('column = "privacy"', 'column = "privacy"\ndelta = 0.1'),
            {},
            "more than 1 / number of people",
        ),
        (
            STUDY,
            {"private": lambda t: t.replace({"kind": {"owl": "cat"}})},
            "no teacher has a record of class owl",
        ),
    ],
    ids=["ε = ∞", "δ too large", "a class that no teacher saw"],
)
def test_what_is_allowed_but_dubious_gets_a_warning_in_one_line(
    tmp_path, collegium, text, tables, says
):
    path = write_study(tmp_path, text, **tables)
    code, output, errors = collegium("run", path)
    assert code == 0 and "labels released" in output
    lines = [line for line in errors.splitlines() if says in line]
    assert lines and len(set(lines)) == len(lines)
    # Noise decides whether there is a note about the student besides.
    assert all(line.startswith(("warning: ", "Note: ")) for line in errors.splitlines())


def test_people_without_privacy_are_named_loudly_in_the_table(tmp_path, works):
    path = write_study(tmp_path, swap("low = 12.0", "low = inf"))
    assert "none: ε = ∞" in works("run", path)
    assert "NO PRIVACY" in works("report", path.with_suffix(""))
