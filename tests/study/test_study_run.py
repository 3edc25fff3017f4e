"""A study on disk, end to end: what it writes, that it resumes, and that it is never paid twice."""

import hashlib
import json
import random
import re
import shutil
import stat
import warnings

import numpy as np
import pandas as pd
import pytest

from benchmarks.kills import Killer, kill_and_go_on
from collegium import CollegiumError, PrivacyWarning, load_student
from collegium.accounting import rdp_to_epsilon
from collegium.accounting.arg_max import gaussian_arg_max_rdp
from collegium.errors import InputError, NothingReleasedError, StudyMismatchError
from collegium.noise.grid import GRID
from collegium.pate.teachers.teacher import Teacher
from collegium.pate.voting.aggregators import AGGREGATORS
from collegium.pate.voting.pricing import LabelPricing
from collegium.personalisation import PERSONALISATIONS
from collegium.runs.observer import Observer
from collegium.study.config import read_config
from collegium.study.folder import StudyFolder
from collegium.study.runner import plan_study, run_study

CLASSES = np.array(["cat", "dog", "owl"])
SETTINGS = {
    "study": {"name": "Animals"},
    "data": {"private": "private.csv", "public": "public.csv", "test": "test.csv",
             "target": "kind", "owner": "person", "classes": CLASSES.tolist()},
    "privacy": {"levels": {"high": 4.0, "average": 8.0, "low": 12.0}, "column": "privacy"},
    "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 12},
    "aggregation": {"aggregator": "gnmax", "sigma": 6},
    "student": {"model": "sklearn.naive_bayes.GaussianNB"},
    "run": {"n_jobs": 1},
}  # fmt: skip


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


def animals(n, seed, private=False):
    """Three kinds by height; a private person has one to four records and one privacy level."""
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 3, n)
    table = pd.DataFrame(
        {"height": kind + generator.normal(0, 0.2, n), "weight": generator.normal(0, 1, n)}
    )
    table["kind"] = CLASSES[kind]
    if private:
        person = np.sort(generator.integers(0, n // 2, n))
        table["person"] = [f"person {number}" for number in person]
        table["privacy"] = np.array(["high", "average", "low"])[person % 3]
    return table


def write_study(folder, name="study", n_public=80, **sections):
    """Write tables and a TOML file; sections replace single keys."""
    if not (folder / "private.csv").exists():
        animals(240, 1, private=True).to_csv(folder / "private.csv", index=False)
        animals(n_public, 2).to_csv(folder / "public.csv", index=False)
        animals(60, 3).to_csv(folder / "test.csv", index=False)
    settings = {section: dict(keys) for section, keys in SETTINGS.items()}
    for section, keys in sections.items():
        settings.setdefault(section, {}).update(keys)
    lines = []
    for section, keys in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {toml(value)}" for key, value in keys.items() if value is not None]
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(path, observer=None, out=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return run_study(read_config(path), out or path.with_suffix(""), observer)


def contents(folder, without=()):
    """Hash of every file, but of those whose name is given."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (".lock", *without)
    }


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "vault/teachers").iterdir()}


class Story(Observer):
    """Writes down the stages and what was skipped."""

    def __init__(self):
        self.stages, self.skips = [], []

    def stage(self, name, total=None):
        self.stages.append((name, total))

    def skipped(self, name):
        self.skips.append(name)


class EndsAt(Observer):
    """Cuts a run off where a stage begins."""

    def __init__(self, name):
        self.name = name

    def stage(self, name, total=None):
        if name == self.name:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished study, which no test may change."""
    folder = tmp_path_factory.mktemp("finished")
    path = write_study(folder)
    return path, run(path)


@pytest.fixture
def begun(finished, tmp_path):
    """A copy of it for a test that does something to it: its file of settings, and its folder."""
    shutil.copytree(finished[0].parent, tmp_path, dirs_exist_ok=True)
    path = tmp_path / finished[0].name
    return path, StudyFolder(path.with_suffix(""))


def published(folder):
    return pd.read_csv(folder / "release" / "labels.csv")


def statement_of(folder):
    return json.loads((folder / "release" / "privacy.json").read_text(encoding="utf-8"))


# What is written


def test_the_vault_is_for_its_owner_only_and_so_is_every_file_in_it(finished):
    vault = finished[1].folder.vault
    assert stat.S_IMODE(vault.stat().st_mode) == 0o700
    files = [path for path in vault.rglob("*") if path.is_file()]
    assert len(files) > 12
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in files)


def test_the_release_holds_labels_student_statement_and_report_and_nothing_else(finished):
    names = {path.name for path in finished[1].folder.release.iterdir()}
    assert names == {
        "labels.csv", "student.skops", "privacy.json", "effects.json", "report.html", "digests.json",
        "README.md", "quality.json",
    }  # fmt: skip


def test_labels_name_different_rows_of_the_public_file_and_classes(finished):
    path, result = finished
    table = published(result.folder.path)
    assert list(table.columns) == ["row", "label"] and len(table) == len(result.labels.labels) > 10
    assert table["row"].is_unique and set(table["label"]) <= set(CLASSES)
    truth = pd.read_csv(path.parent / "public.csv")["kind"]
    right = float(np.mean(truth[table["row"]].to_numpy() == table["label"].to_numpy()))
    assert right == result.label_accuracy > 0.5  # 0.816 ± 0.045, as noise is not seeded


def test_the_published_student_predicts_from_raw_features(finished):
    path, result = finished
    test = pd.read_csv(path.parent / "test.csv")
    student = load_student(result.folder.release / "student.skops")
    predicted = student.predict(test[["height", "weight"]])
    assert float(np.mean(predicted == test["kind"])) == result.student_accuracy > 0.2


def test_preprocessing_goes_out_with_the_student(tmp_path):
    path = write_study(tmp_path, preprocessing={"kind": "tabular"})
    result = run(path)
    student = load_student(result.folder.release / "student.skops")
    features = pd.read_csv(tmp_path / "test.csv")[["height", "weight"]]
    assert set(student.predict(features)) <= set(CLASSES)
    assert student.steps[0][0] == "preprocessing"


def test_the_statement_says_what_everybody_granted_and_spent(finished):
    result = finished[1]
    said = statement_of(result.folder.path)
    assert said["guarantee"] == "worst-case" and said["private_noise"] is True
    assert said["labels_released"] == len(result.labels.labels)
    for row in said["groups"]:
        granted = SETTINGS["privacy"]["levels"][row["group"]]
        assert row["epsilon"] == granted and 0.9 * granted <= row["epsilon_spent"] <= granted
    page = result.report.read_text(encoding="utf-8")
    assert "Animals" in page and all(name in page for name in ("high", "average", "low"))


def test_the_manifest_holds_settings_versions_and_fingerprints(finished):
    path, result = finished
    manifest = json.loads((result.folder.vault / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["config"]["teachers"]["n_teachers"] == 12 and "run" not in manifest["config"]
    assert {"python", "collegium", "numpy", "scikit-learn"} <= set(manifest["versions"])
    for role in ("private", "public", "test"):
        digest = hashlib.sha256((path.parent / f"{role}.csv").read_bytes()).hexdigest()
        assert manifest["inputs"][role] == digest


# Running it again


def test_a_second_run_trains_nothing_draws_nothing_and_changes_nothing(begun, finished):
    (path, folder), (_, first) = begun, finished
    before, trained = contents(folder.path), times(folder.path)
    story = Story()
    second = run(path, story)
    assert contents(folder.path) == before and times(folder.path) == trained
    assert story.skips == ["teachers", "student"]
    assert second.labels.labels.tolist() == first.labels.labels.tolist()
    assert second.privacy == first.privacy and second.student_accuracy == first.student_accuracy


def test_two_studies_of_the_same_records_draw_different_noise(tmp_path):
    path = write_study(tmp_path, aggregation={"sigma": 25})
    one, other = run(path, out=tmp_path / "one"), run(path, out=tmp_path / "other")
    votes = [np.load(result.folder.vault / "votes.npy") for result in (one, other)]
    assert np.array_equal(*votes)
    assert one.labels.labels.tolist() != other.labels.labels.tolist()


@pytest.mark.parametrize(
    ("sections", "difference"),
    [
        ({"aggregation": {"sigma": 7}}, "aggregation.sigma was 6, now 7"),
        ({"study": {"seed": 3}}, "study.seed was 0, now 3"),
        ({"privacy": {"levels": {"high": 4.0, "average": 8.0, "low": 13.0}}}, "levels.low"),
        ({"teachers": {"params": {"var_smoothing": 0.1}}}, "teachers.params.var_smoothing"),
    ],
)
def test_another_configuration_in_the_same_folder_is_refused_and_nothing_changes(
    finished, sections, difference
):
    path, result = finished
    before = contents(result.folder.path)
    other = write_study(path.parent, name="other", **sections)
    with pytest.raises(StudyMismatchError, match=re.escape(difference)):
        run(other, out=result.folder.path)
    assert contents(result.folder.path) == before


def test_a_change_of_speed_only_is_the_same_study(finished):
    path, result = finished
    before = contents(result.folder.path)
    run(write_study(path.parent, name="faster", run={"n_jobs": 2}), out=result.folder.path)
    assert contents(result.folder.path) == before


def written_as_by_the_study(folder, path, content):
    folder.journal = folder.open_journal()
    folder.write_json(path, content)
    folder.journal = None


@pytest.mark.parametrize("role", ["private", "public"])
def test_other_content_of_a_file_in_the_same_folder_is_refused_and_nothing_changes(begun, role):
    path, folder = begun
    before = contents(folder.path)
    table = pd.read_csv(path.parent / f"{role}.csv")
    table.loc[0, "weight"] += 0.5
    table.to_csv(path.parent / f"{role}.csv", index=False)
    with pytest.raises(StudyMismatchError, match=f"the {role} records are not the same as before"):
        run(path)
    assert contents(folder.path) == before


def test_only_the_teachers_that_are_missing_are_trained_again(begun):
    path, folder = begun
    before, trained = contents(folder.path), times(folder.path)
    votes = (folder.vault / "votes.npy").read_bytes()
    (folder.vault / "votes.npy").unlink()
    for number in (2, 7, 11):
        (folder.vault / "teachers" / f"{number:06d}.joblib").unlink()
    story = Story()
    run(path, story)
    assert ("teachers", 3) in story.stages
    after = times(folder.path)
    changed = {name for name in after if after[name] != trained[name]}
    assert changed == {"000002.joblib", "000007.joblib", "000011.joblib"}
    assert (folder.vault / "votes.npy").read_bytes() == votes
    assert contents(folder.path) == before


@pytest.mark.parametrize(
    "lost", ["report.html", "student.skops", "labels.csv", "privacy.json", "README.md"]
)
def test_what_is_lost_from_the_release_is_made_again_without_paying(begun, lost):
    path, folder = begun
    # A student that is trained again is written down as such.
    other = ("student.skops", "journal.jsonl", "digests.json") if lost == "student.skops" else ()
    before, asked = contents(folder.path, other), settled(folder.path)
    (folder.release / lost).unlink()
    run(path)
    assert contents(folder.path, other) == before and settled(folder.path) == asked


@pytest.mark.parametrize("lost", ["journal.jsonl", "manifest.json"])
def test_a_study_without_its_journal_or_manifest_is_refused_and_left_alone(begun, lost):
    path, folder = begun
    (folder.vault / lost).unlink()
    before = contents(folder.path)
    with pytest.raises(StudyMismatchError):
        run(path)
    assert contents(folder.path) == before


def test_a_journal_that_is_gone_after_labels_were_released_is_never_begun_anew(begun):
    path, folder = begun
    (folder.vault / "journal.jsonl").unlink()
    (folder.vault / "aggregation.json").unlink()
    before = contents(folder.path)
    with pytest.raises(StudyMismatchError, match="journal"):
        run(path)
    assert contents(folder.path) == before


@pytest.mark.parametrize("broken", ["votes.npy", "teachers/000003.joblib"])
def test_a_damaged_file_of_the_vault_is_named_in_one_line(begun, broken):
    path, folder = begun
    if broken != "votes.npy":
        (folder.vault / "votes.npy").unlink()
    (folder.vault / broken).write_bytes(b"")
    with pytest.raises(
        CollegiumError, match=rf"{broken} is not what this study wrote there"
    ) as error:
        run(path)
    assert "\n" not in str(error.value)
    (folder.vault / broken).unlink()
    run(path)


@pytest.mark.parametrize("change", ["a record less", "a class too many", "no numbers"])
def test_stored_votes_that_nobody_can_have_cast_are_refused(begun, change):
    path, folder = begun
    vault = folder.vault
    votes = np.load(vault / "votes.npy")
    if change == "a record less":
        votes = votes[:-1]
    elif change == "a class too many":
        votes[7, 3] = 3
    else:
        votes = votes.astype(float)
    np.save(vault / "votes.npy", votes)
    with pytest.raises(
        StudyMismatchError, match=r"votes\.npy is not what this study wrote"
    ) as error:
        run(path)
    assert "\n" not in str(error.value)


def test_votes_that_are_made_again_must_be_those_that_were_asked_about(begun, monkeypatch):
    path, folder = begun
    (folder.vault / "votes.npy").unlink()
    before = contents(folder.path)
    monkeypatch.setattr(
        Teacher, "vote", lambda self, X: np.zeros(len(X), np.int32)
    )  # other software
    with pytest.raises(StudyMismatchError, match="not those that were asked about"):
        run(path)
    assert contents(folder.path) == before


# Crashes and interruptions


@pytest.fixture(scope="module")
def killer(tmp_path_factory):
    """A command line that is killed at a stage of its study; forked with its imports, it starts at once."""
    with Killer(tmp_path_factory.mktemp("killer")) as made:
        yield made


def recomputed_spending(path, outcomes):
    """ε by group from the journal and the plan alone: labels, charged as labels at each group's order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        planned = plan_study(read_config(path), on_ledger=False).plan.run
        plan, aggregator = planned.plan, planned.aggregator
    ballot = plan.electorate(0).ballot(0)
    moved = {name: group.sensitivity / ballot.scale for name, group in plan.groups.items()}
    paid = sum(outcome.verdict in ("answered", "lost") for outcome in outcomes)
    assert planned.price.name == "labels"
    account = LabelPricing(aggregator, plan.electorate(0)).accountant
    order = dict(zip(account.names, account.fixed_order[:, None], strict=True))
    cost = {
        name: paid * gaussian_arg_max_rdp(delta, aggregator.sigma, order[name], GRID / ballot.scale)
        for name, delta in moved.items()
    }
    return {name: float(rdp_to_epsilon(cost[name], order[name], 1e-5)[0]) for name in cost}


def settled(folder):
    return StudyFolder(folder).open_journal().settled()


def test_killed_at_every_stage_it_finishes_and_never_charges_less_than_it_released(
    tmp_path, killer
):
    """More of it, and what must hold after every kill: ``python benchmarks/kills.py``."""
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    code, output, usual = killer.run(
        write_study(undisturbed, n_public=120, aggregation={"sigma": 9})
    )
    assert code == 0, output
    path = write_study(tmp_path, n_public=120, aggregation={"sigma": 9})
    folder = tmp_path / "study"
    aims = ("teaching", "drawing", "asking", "report")
    met = list(kill_and_go_on(killer, path, usual, random.Random(5), aims))
    assert len(met) >= 3 and {"teaching", "drawing"} <= set(met)
    outcomes = settled(folder)
    answered = [(o.query, CLASSES[o.label]) for o in outcomes if o.verdict == "answered"]
    released = published(folder)
    assert list(zip(released["row"], released["label"], strict=True)) == answered
    said = {row["group"]: row["epsilon_spent"] for row in statement_of(folder)["groups"]}
    for name, charged in recomputed_spending(path, outcomes).items():
        assert charged * (1 - 1e-9) <= said[name] <= SETTINGS["privacy"]["levels"][name]
    before = contents(folder)
    assert killer.run(path)[0] == 0
    assert contents(folder) == before


# What must not be said, and what must


def digits_of(number):
    return f"{number:.12f}"[:7], repr(float(number))[:7]


def without_drawings(page):
    """Coordinates are thousands of numbers: one of them has the digits of any other now and then."""
    return re.sub(b"<svg.*?</svg>", b"", page, flags=re.DOTALL)


@pytest.mark.parametrize("name", ["lnmax", "gnmax", "confident"])
def test_under_a_data_dependent_guarantee_no_sensitive_number_leaves_the_vault(
    tmp_path, name, capsys
):
    sizes = {"lnmax": {"gamma": 0.3}, "gnmax": {"sigma": 4}}
    noise = sizes.get(name, {"sigma": 4, "sigma_threshold": 6, "threshold": 8})
    path = write_study(
        tmp_path,
        privacy={"guarantee": "data-dependent"},
        aggregation={"aggregator": name, "sigma": None, **noise},
    )
    from collegium.cli.studies import run as command

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        command(path)
        command(path, as_json=True)
    printed = capsys.readouterr().out
    folder = tmp_path / "study"
    spent = json.loads((folder / "vault" / "sensitive-spending.json").read_text())
    assert set(spent) == {"high", "average", "low"} and min(spent.values()) > 0
    released = {p.name: without_drawings(p.read_bytes()) for p in (folder / "release").iterdir()}
    released["terminal"] = printed.encode()
    for number in spent.values():
        for digits in digits_of(number):
            for place, content in released.items():
                assert digits.encode() not in content, place
    said = statement_of(folder)
    assert "data-dependent" in said["statement"][0] and "number of labels" in said["statement"][0]
    assert not any("epsilon_spent" in row for row in said["groups"])
    assert "in the vault" in printed
    assert "number of labels" in (folder / "release" / "report.html").read_text(encoding="utf-8")


def test_seeded_noise_is_called_not_private_wherever_a_guarantee_stands(tmp_path, capsys):
    from collegium.cli.studies import run as command

    path = write_study(tmp_path, aggregation={"noise": "seeded", "noise_seed": 5})
    command(path)
    terminal = capsys.readouterr().out
    command(path, as_json=True)
    as_json = json.loads(capsys.readouterr().out)
    said = statement_of(tmp_path / "study")
    page = (tmp_path / "study" / "release" / "report.html").read_text(encoding="utf-8")
    assert terminal.startswith("NOT PRIVATE") and "seeded" in terminal
    for statement in (as_json, said):
        assert statement["private_noise"] is False
        assert statement["statement"][0].startswith("NOT PRIVATE")
    assert "not private" in page.lower() and "seed" in page


def test_seeded_noise_gives_the_same_labels_in_another_folder(tmp_path):
    path = write_study(tmp_path, aggregation={"noise": "seeded", "noise_seed": 5, "sigma": 20})
    one, other = (run(path, out=tmp_path / name) for name in ("one", "other"))
    assert one.labels.labels.tolist() == other.labels.labels.tolist()
    assert one.labels.queries.tolist() == other.labels.queries.tolist()


def test_the_student_and_a_wrong_setting_of_it_are_tried_before_anything_is_spent(tmp_path):
    path = write_study(tmp_path, student={"model": "logistic-regression", "params": {"C": -1.0}})
    with pytest.raises(InputError, match="student") as error:
        run(path)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "study" / "vault" / "journal.jsonl").exists()


def test_preprocessing_that_does_not_fit_the_records_is_refused_in_one_line(tmp_path):
    path = write_study(tmp_path, preprocessing={"kind": "pca", "components": 50})
    with pytest.raises(InputError) as error:
        run(path)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "study" / "vault" / "journal.jsonl").exists()


def test_if_nothing_is_released_that_is_said_and_the_account_is_kept(tmp_path):
    path = write_study(
        tmp_path,
        aggregation={"aggregator": "confident", "sigma": 6, "threshold": 1e6, "sigma_threshold": 9},
    )
    with pytest.raises(NothingReleasedError, match="no label was released"):
        run(path)
    said = statement_of(tmp_path / "study")
    assert said["labels_released"] == 0 and said["groups"][0]["epsilon_spent"] > 0


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_read_or_spent(tmp_path):
    path = write_study(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written .*--out") as error:
        run(path, out=tmp_path / "file" / "study")
    assert "\n" not in str(error.value)


# Every combination


#: Every aggregator with two personalisations, and every personalisation with two aggregators, whatever comes
#: to be among them; all pairs are run, and compared, in the golden record.
PAIRS = [
    (aggregator, list(PERSONALISATIONS)[(number + more) % len(PERSONALISATIONS)])
    for number, aggregator in enumerate(AGGREGATORS)
    for more in (0, 1)
]


def test_the_pairs_leave_nothing_out():
    assert {aggregator for aggregator, _ in PAIRS} == set(AGGREGATORS)
    assert {method for _, method in PAIRS} == set(PERSONALISATIONS)


@pytest.mark.parametrize(("aggregator", "method"), PAIRS)
def test_every_aggregator_runs_with_every_personalisation(tmp_path, aggregator, method):
    noise = {
        "gnmax": {"sigma": 6},
        "confident": {"sigma": 7, "sigma_threshold": 9, "threshold": 6},
        "interactive": {"sigma": 7, "sigma_threshold": 9, "threshold": 1, "refit_every": 5},
    }.get(aggregator, {"gamma": 0.4})
    path = write_study(
        tmp_path,
        personalisation={"method": method},
        aggregation={"sigma": None, "aggregator": aggregator, **noise},
    )
    result = run(path)
    assert len(published(tmp_path / "study")) == len(result.labels.labels) > 0
    assert result.plan.personalisation == method
    for row in statement_of(tmp_path / "study")["groups"]:
        assert 0 < row["epsilon_spent"] <= row["epsilon"]
    assert result.report.stat().st_size > 5000


@pytest.mark.parametrize(
    ("method", "assignment"),
    [*((method, "hash") for method in PERSONALISATIONS), ("upsampling", "balanced")],
)
def test_all_records_of_a_patient_go_to_the_same_teachers_and_to_no_other(
    tmp_path, method, assignment
):
    path = write_study(
        tmp_path,
        personalisation={"method": method},
        teachers={"assignment": assignment},
    )
    with pytest.raises(KeyboardInterrupt):  # who teaches whom stands before anybody is taught
        run(path, EndsAt("teachers"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        planned = plan_study(read_config(path), on_ledger=False).plan.run
        plan, data = planned.plan, planned.records
    partition = np.load(tmp_path / "study" / "vault" / "partition.npy")
    assert len(partition) == data.budgets.n_owners < len(data.X)
    names = np.asarray(data.budgets.group_names, dtype=object)[data.budgets.owner_group]
    for name, group in plan.groups.items():
        rows = partition[names == name]
        chosen = [set(row[row >= 0].tolist()) for row in rows]
        assert all(len(teachers) == group.duplicates for teachers in chosen)
    if method not in ("upsampling", "bagging"):
        assert partition.shape[1] == 1
    assigned = plan.assign(data.budgets, b"0", assignment)
    assert np.array_equal(assigned.owner_teachers, partition)
    record_teachers = [set() for _ in range(len(data.X))]
    for teacher in range(plan.n_teachers):
        for record in assigned.records_of(teacher).tolist():
            record_teachers[record].add(teacher)
    for record, teachers in enumerate(record_teachers):
        row = partition[data.budgets.record_owner[record]]
        assert teachers == set(row[row >= 0].tolist())
