"""Memory of direct training: predicted as it is measured, said in a plan, refused before it is taken."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import collegium as cg
from collegium.dpsgd.by_rule import with_components
from collegium.dpsgd.estimator_base import usual_preprocessing
from collegium.dpsgd.footprint import GIGABYTE, VARIABLE, bytes_of, free_bytes, working_bytes
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError
from collegium.models.preprocessing import BinnedTable, CrossedTable

N, N_PUBLIC = 600, 300


def records(n_columns, kind="table", n_texts=0):
    random = np.random.default_rng(0)
    X = random.normal(size=(N + N_PUBLIC, n_columns))
    y = (X[:, :5].sum(axis=1) > 0).astype(int)
    if kind == "table":
        X = pd.DataFrame(X).rename(columns="c{}".format)
        X = X.assign(**{f"t{i}": random.integers(0, 9, len(X)).astype(str) for i in range(n_texts)})
        return X.iloc[:N], y[:N], X.iloc[N:]
    return X[:N], y[:N], X[N:]


@pytest.mark.parametrize(
    ("n_columns", "kind", "n_texts"),
    [
        (30, "table", 0), (60, "table", 0), (6, "table", 4), (60, "table", 90),
        (300, "table", 0), (1000, "table", 0), (3000, "rows", 0),
    ],
)  # fmt: skip
def test_what_is_predicted_is_measured(n_columns, kind, n_texts):
    """3,000 columns ended after minutes at 218 GiB: 57 bins each, and all pairs of them."""
    X, y, X_public = records(n_columns, kind, n_texts)
    model = cg.DPSGDClassifier(classes=[0, 1], steps=2, noise_seed=1)
    tracemalloc.start()
    try:
        model.fit(X, y, budgets=1.0, X_public=X_public)
        measured = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    usual = usual_preprocessing(X_public)
    seen = with_components(usual, DPSGDSettings(steps=2), model.plan_, N_PUBLIC)
    predicted = bytes_of(X) + bytes_of(X_public) + working_bytes(seen, X_public, N)
    assert measured / 1.6 < predicted < 2.2 * measured


def test_of_crossed_tables_all_pairs_with_anchors_count_and_what_records_are_seen_by():
    """A fit of 25,000 private and 5,000 public records of 30 numbers took 372 MB, 7 of them the records."""
    public = pd.DataFrame(np.zeros((5000, 30))).rename(columns="c{}".format)
    predicted = [working_bytes(CrossedTable(116), public, n) / 2**20 for n in (25_000, 100)]
    assert 372 / 2 < predicted[0] < 372 * 2
    # Few private records: the kernel decides. It took 288 MB.
    assert 288 / 1.3 < predicted[1] < 288 * 1.3
    less = working_bytes(CrossedTable(116), public.iloc[:500], 100) / 2**20
    assert less < predicted[1] / 4
    assert predicted[0] > working_bytes(BinnedTable(116), public, 25_000) / 2**20


def test_a_plan_says_the_memory_of_a_fit():
    _, _, X_public = records(2500)
    plan = cg.DPSGDClassifier().plan(1.0, n_records=4000, X_public=X_public)
    assert 0.3 < plan.gigabytes < 1
    assert str(plan).endswith(f"A fit takes about {plan.gigabytes:.1f} GB of memory")
    alone = cg.DPSGDClassifier().plan(1.0, n_records=4000)
    assert alone.gigabytes is None
    assert "memory" not in str(alone)


def test_what_does_not_fit_is_refused_before_anything_is_looked_at(monkeypatch):
    X, y, X_public = records(300)
    monkeypatch.setenv(VARIABLE, "0.01")
    model = cg.DPSGDClassifier(classes=[0, 1])
    given = {"X_public": X_public, "classes": [0, 1], "n_records": N}
    message = r"takes about 0\.\d GB of memory.*0\.0 GB are free.*set COLLEGIUM_MEMORY=1"
    for work in (
        lambda: model.fit(X, y, budgets=1.0, X_public=X_public),
        lambda: model.plan(1.0, n_records=N, X_public=X_public),
        lambda: cg.recommend(1.0, **given),
    ):
        with pytest.raises(InputError, match=message) as told:
            work()
        assert "\n" not in str(told.value)
    assert not hasattr(model, "model_")


def test_a_refused_study_is_refused_before_any_rehearsal(monkeypatch):
    from collegium.planner import recommend

    monkeypatch.setattr(recommend, "DPSGDRehearsal", lambda *_: pytest.fail("rehearsed"))
    monkeypatch.setenv(VARIABLE, "0.01")
    with pytest.raises(InputError, match="GB of memory"):
        cg.recommend(1.0, n_records=N, X_public=records(300)[2], classes=[0, 1])


def test_more_memory_than_seems_free_may_be_allowed(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1000")
    assert free_bytes() == 1000 * GIGABYTE
    for strange in ("much", "-1", "nan"):
        monkeypatch.setenv(VARIABLE, strange)
        with pytest.raises(InputError, match="positive number of gigabytes"):
            free_bytes()
