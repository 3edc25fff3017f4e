"""A failure is called one, in files and on the terminal: tables whose larger class is 88 % of the records."""

import json
import re

import numpy as np
import pandas as pd
import pytest

VERDICT = "The student is no better than always answering “no”"
STUDY = """
[data]
private = "private.csv"
public = "public.csv"
{test}
target = "sick"
classes = ["no", "yes"]
[privacy]
column = "privacy"
levels = {{ high = 1.0, low = 3.0 }}
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 50
[aggregation]
aggregator = "gnmax"
{answers}
noise = "seeded"
noise_seed = 1
[student]
model = "logistic-regression"
[run]
n_jobs = 1
"""
LABELS = "sigma = 20"
HISTOGRAMS = 'answers = 500\nrelease = "histogram"'


def patients(n, seed, signal):
    """One patient in eight or so is sick; of those with a signal, it shows in their blood."""
    generator = np.random.default_rng(seed)
    sick = np.zeros(n, dtype=bool)
    sick[generator.permutation(n)[: round(0.12 * n)]] = True
    table = pd.DataFrame({"age": generator.normal(50, 10, n), "blood": generator.normal(0, 1, n)})
    table["blood"] += signal * sick
    table["sick"] = np.where(sick, "yes", "no")
    table["privacy"] = np.where(np.arange(n) % 2 == 0, "high", "low")
    return table


def write(folder, signal, truth="test", answers=LABELS):
    """Write a study whose truth is known of test records, of public records or of none."""
    patients(3000, 0, signal).to_csv(folder / "private.csv", index=False)
    public = patients(500, 1, signal).drop(columns="privacy")
    (public.drop(columns="sick") if truth == "none" else public).to_csv(
        folder / "public.csv", index=False
    )
    patients(1000, 2, signal).to_csv(folder / "test.csv", index=False)
    test = 'test = "test.csv"' if truth == "test" else ""
    path = folder / "study.toml"
    path.write_text(STUDY.format(test=test, answers=answers), encoding="utf-8")
    return path


def run(collegium, *arguments):
    code, output, errors = collegium(*arguments)
    assert code == 0, errors
    return output


def page_of(path):
    return (path.with_suffix("") / "release" / "report.html").read_text("utf-8")


def test_88_percent_right_on_a_table_of_88_percent_is_called_no_better(tmp_path, collegium):
    path = write(tmp_path, signal=0.5)
    path.write_text(path.read_text("utf-8").replace("[run]", "params = { C = 0.001 }\n[run]"))
    shown = run(collegium, "run", path)
    lines = shown.splitlines()
    assert lines[0].startswith("NOT PRIVATE") and lines[1] == f"{VERDICT}."
    assert "It is right on 88.0 % of 1,000 public test records" in shown
    assert "always answering “no” would be right on 88.0 %" in shown
    assert "Balanced accuracy 50.0 % (chance: 50.0 %), ROC AUC 0." in shown
    told = json.loads(run(collegium, "run", path, "--json"))
    assert (
        next(iter(told)) == "verdict" and told["verdict"] == told["quality"]["verdict"] == VERDICT
    )
    assert told["quality"]["accuracy"] == told["student_accuracy"] == 0.88
    assert told["quality"]["better"] is False and 0 < told["quality"]["calibration_error"] < 1
    kept = json.loads((tmp_path / "study/release/quality.json").read_text("utf-8"))
    assert kept == told["quality"]
    assert run(collegium, "report", tmp_path / "study").startswith(f"• {VERDICT}. It answers")
    assert json.loads(run(collegium, "report", tmp_path / "study", "--json"))["quality"] == kept
    page = page_of(path)
    assert VERDICT in page and 'class="banner good"' not in page


@pytest.mark.parametrize("answers", [LABELS, HISTOGRAMS], ids=["labels", "histograms"])
def test_a_good_student_is_called_good(tmp_path, collegium, answers):
    path = write(tmp_path, signal=5.0, answers=answers)
    told = json.loads(run(collegium, "run", path, "--json"))
    assert told["verdict"] == "The student is better than always answering “no”"
    assert told["quality"]["balanced_accuracy"] > 0.7 and told["quality"]["auc"] > 0.9


@pytest.mark.parametrize("truth", ["public", "none"])
def test_without_a_test_set_a_constant_student_is_seen_in_public_records(
    tmp_path, collegium, truth
):
    path = write(tmp_path, signal=0.5, truth=truth)
    told = json.loads(run(collegium, "run", path, "--json"))
    assert told["student_accuracy"] is None
    if truth == "public":
        assert told["verdict"] == VERDICT and told["quality"]["measured_on"] == "public records"
        assert "not their true classes" in told["quality"]["reason"]
    else:
        assert re.match("The student answers “no” for (all|4.. of) 500 public", told["verdict"])
        assert told["quality"]["measured_on"] == "released answers"
        assert told["quality"]["better"] is None
    assert told["verdict"] in page_of(path) and 'class="banner good"' not in page_of(path)


def test_faint_histograms_are_not_said_to_be_seldom_right(tmp_path, collegium):
    path = write(tmp_path, signal=5.0, answers=HISTOGRAMS)
    shown = run(collegium, "run", path)
    assert "500 noisy histograms released after 500 queries" in shown
    assert "of them right" not in shown and "Labels right" not in page_of(path)


def test_a_report_without_a_name_is_called_by_what_is_predicted(tmp_path, collegium):
    path = write(tmp_path, signal=5.0)
    run(collegium, "run", path)
    assert "<h1>Predicting sick (private.csv)</h1>" in page_of(path)


def test_a_damaged_verdict_is_one_line(tmp_path, collegium):
    path = write(tmp_path, signal=5.0)
    run(collegium, "run", path)
    (tmp_path / "study/release/digests.json").unlink()
    for damaged in ("[]", "null", "{}", '{"verdict": 1', ""):
        (tmp_path / "study/release/quality.json").write_text(damaged)
        code, output, errors = collegium("report", tmp_path / "study")
        assert code == 2 and not output and errors.count("\n") == 1, errors
        assert "quality.json is damaged and cannot be read" in errors.replace("\n", " ")
