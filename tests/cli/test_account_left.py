"""collegium account --remaining and --export: read a job's folder, change nothing."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from collegium import CollegiumError, ConfidentGNMax
from collegium.accounting import GaussianAccountant, Neighbours, RenyiAccountant
from collegium.accounting.neighbours import Arrangement
from collegium.cli.main import app
from collegium.study.folder import StudyFolder
from collegium.study.methods.votes.terms import JobTerms
from collegium.study.terms import read_terms
from tests.settings_file import settings

ROWS = ["1"] * 54 + ["2"] * 37 + ["3"] * 9


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def label(folder, house, *lines):
    votes = folder / "votes.npy"
    if not votes.exists():
        np.save(votes, house.predictions(400, 100))
        (folder / "budgets.csv").write_text("epsilon\n" + "\n".join(ROWS) + "\n", encoding="utf-8")
    out = folder / "job"
    arguments = [
        "--votes",
        votes,
        "--budgets",
        folder / "budgets.csv",
        "--classes",
        4,
        "--out",
        out,
    ]
    arguments += ["--votes-are", "predictions", "--sigma", 30, *settings(folder, *lines)]
    result = command("label", *arguments)
    assert result.exit_code == 0, result.output
    return out


def everything(folder):
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.is_file() and path.read_bytes())
        for path in sorted(folder.rglob("*"))
    }


def as_json(*arguments):
    result = command("account", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.parametrize("personalisation", ["weighting", "vanishing", "uniform"])
def test_what_is_left_of_a_finished_job_is_what_it_stated(tmp_path, house, personalisation):
    job = label(
        tmp_path,
        house,
        f"personalisation.method = '{personalisation}'",
        "aggregation.max_labels = 12",
    )
    before = everything(job)
    left = as_json("--remaining", job, "--json")
    assert everything(job) == before
    stated = json.loads((job / "release" / "privacy.json").read_text(encoding="utf-8"))
    assert left["labels"] == stated["labels_released"] > 0
    assert left["queries_asked"] == left["checks"] == stated["queries_asked"]
    for group in stated["groups"]:
        now = left["groups"][group["group"]]
        assert now["epsilon_spent"] == group["epsilon_spent"]
        assert 0 <= now["epsilon_left"] <= now["epsilon"] - now["epsilon_spent"]
        assert now["mu_left"] > 0


@pytest.mark.parametrize("price", ["histogram", "labels"])
def test_the_answers_left_are_the_answers_that_still_come(tmp_path, house, price):
    every_query_passes = (
        "aggregation.threshold = -10000", "aggregation.sigma_threshold = 40", f"privacy.price = '{price}'"
    )  # fmt: skip
    job = label(tmp_path, house, *every_query_passes, "aggregation.max_labels = 5")
    left = as_json("--remaining", job, "--json")
    terms, journal = read_terms(job)
    outcomes = journal.settled()
    kind = {"histogram": GaussianAccountant, "labels": RenyiAccountant}[price]
    assert isinstance(terms.replayed(outcomes).account, kind)
    whole = tmp_path / "whole"
    whole.mkdir()
    done = as_json("--remaining", label(whole, house, *every_query_passes), "--json")
    rejected = done["checks"] - done["labels"]
    assert done["answers_left"] == 0
    assert rejected == 0
    assert left["answers_left"] == done["labels"] - left["labels"] > 0


def test_in_words_it_says_the_same(tmp_path, house):
    job = label(tmp_path, house, "aggregation.max_labels = 3")
    result = command("account", "--remaining", job)
    assert result.exit_code == 0
    words = " ".join(result.output.split())
    assert "3 labels so far" in words
    assert "ended: the wanted number of labels was reached. Nothing more will be asked" in words
    assert as_json("--remaining", job, "--json")["stopped_by"] == "labels"
    assert "more answers if every query is answered" in words
    assert "ε per teacher's data, worst case. Protected: everything that one teacher" in words


def test_a_running_job_counts_what_may_have_been_drawn(tmp_path, house):
    job = label(tmp_path, house, "aggregation.max_labels = 3")
    before = as_json("--remaining", job, "--json")
    journal = StudyFolder(job).open_journal()
    first = before["queries_asked"]
    journal.reserve(first, [390, 391])
    (job / "vault" / "journal.jsonl").open("ab").write(b"0000 torn")
    files = everything(job)
    during = as_json("--remaining", job, "--json")
    assert everything(job) == files
    assert during["queries_asked"] == first + 2
    for name, group in during["groups"].items():
        assert group["epsilon_spent"] > before["groups"][name]["epsilon_spent"]
    (job / "vault/aggregation.json").unlink()
    words = " ".join(command("account", "--remaining", job).output.split())
    assert f"the next run asks at most {400 - first - 2} more questions" in words


def test_the_export_is_the_composition(tmp_path, house):
    job = label(tmp_path, house, "aggregation.max_labels = 6")
    before = everything(job)
    content = as_json("--export", job)
    assert everything(job) == before
    terms, journal = read_terms(job)
    outcomes = journal.settled()
    assert content["guarantee"] == "worst-case"
    assert content["adjacency"] == terms.adjacency
    assert set(content["groups"]) == set(terms.electorate.groups)
    for mechanisms in content["groups"].values():
        counts = {one["purpose"]: one["count"] for one in mechanisms}
        assert counts == {"check": len(outcomes), "answer": 6}


@pytest.mark.parametrize("personalisation", ["weighting", "vanishing", "uniform", "upsampling"])
def test_terms_survive_json_exactly(house, personalisation):
    electorate = house.plan(personalisation, 100).electorate(5)
    aggregator = ConfidentGNMax().resolved(100)
    terms = JobTerms(
        groups=dict(electorate.groups),
        people=dict.fromkeys(electorate.groups, 3),
        aggregator=aggregator,
        electorate=electorate,
        arrangement=Arrangement(assignment="balanced", public_levels=("open",)),
        guarantee="worst-case",
        private_noise=True,
        n_queries=400,
    )
    back = JobTerms.from_json(json.loads(json.dumps(terms.to_json(), allow_nan=False)))
    assert back.to_json() == terms.to_json()
    assert (back.aggregator, back.neighbours) == (aggregator, Neighbours.REPLACE)
    assert back.arrangement == terms.arrangement
    for position in (0, 7, 99, 100, 250):
        one, other = electorate.ballot(position), back.electorate.ballot(position)
        assert one.weights.tobytes() == other.weights.tobytes()
        assert one.sensitivity.tobytes() == other.sensitivity.tobytes()


def refused(*arguments, words):
    with pytest.raises(CollegiumError, match=words) as refusal:
        CliRunner().invoke(app, ["account", *map(str, arguments)], catch_exceptions=False)
    assert "\n" not in str(refusal.value)


def test_data_dependent_jobs_are_not_shown(tmp_path, house):
    job = label(
        tmp_path, house, "aggregation.max_labels = 3", "privacy.guarantee = 'data-dependent'"
    )
    for option in ("--remaining", "--export"):
        refused(option, job, words="sensitive")


def test_folders_without_a_job_are_refused(tmp_path, house):
    refused("--remaining", tmp_path, words="the folder of a study or label job")
    refused("--export", tmp_path / "nowhere", words="the folder of a study or label job")
    job = label(tmp_path, house, "aggregation.max_labels = 3")
    (job / "vault" / "terms.json").write_text("{}", encoding="utf-8")
    refused("--remaining", job, words="is not what the journal beside it says")


def test_one_question_at_a_time(tmp_path):
    refused(words="give one of")
    refused("--remaining", tmp_path, "--export", tmp_path, words="give one of")
    refused("--remaining", tmp_path, "--level", "a=1:500", words="give one of")
