"""Through files: private records given as public or test records, and people whom nobody named."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from collegium import PrivacyWarning
from collegium.errors import InputError
from collegium.study.config import read_config
from collegium.study.runner import plan_study, run_study

TOML = """
[study]
seed = 3
[data]
private = "private.{kind}"
public = "public.{kind}"
test = "test.{kind}"
target = "sick"
classes = [0, 1]
{more}
[privacy]
levels = {{ low = 8.0 }}
column = "level"
[teachers]
n_teachers = 12
[aggregation]
aggregator = "gnmax"
sigma = 3
max_queries = 20
[run]
n_jobs = 1
{streaming}
"""


def table(n, seed):
    generator = np.random.default_rng(seed)
    sick = generator.integers(0, 2, n)
    return pd.DataFrame(
        {
            "age": generator.integers(18, 90, n),
            "weight": (sick * 20 + generator.normal(60, 6, n)).round(2),
            "sick": sick,
            "level": "low",
        }
    )


def write(folder, streamed=False, more="", **tables):
    kind = "parquet" if streamed else "csv"
    files = {
        "private": table(600, 0),
        "public": table(100, 1).drop(columns="level"),
        "test": table(50, 2).drop(columns="level"),
    } | tables
    for name, content in files.items():
        if streamed:
            content.to_parquet(folder / f"{name}.parquet", row_group_size=250, index=False)
        else:
            content.to_csv(folder / f"{name}.csv", index=False)
    path = folder / "study.toml"
    streaming = "streaming = true" if streamed else ""
    path.write_text(TOML.format(kind=kind, more=more, streaming=streaming), encoding="utf-8")
    return path


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("role", ["public", "test"])
def test_private_records_given_once_more_are_refused(tmp_path, streamed, role):
    private = table(600, 0)
    plan_study(read_config(write(tmp_path, streamed)), on_ledger=False)
    for given, words in (
        (private, "are the private ones|600 of 600"),
        (
            pd.concat([table(100, 1), private.iloc[300:306]]),
            f"6 of 106 {role} records",
        ),
    ):
        path = write(tmp_path, streamed, **{role: given.drop(columns="level")})
        with pytest.raises(InputError, match=words) as refusal:
            plan_study(read_config(path), on_ledger=False)
        assert "data.public_may_overlap = true" in str(refusal.value)
        plan_study(
            read_config(write(tmp_path, streamed, "public_may_overlap = true")), on_ledger=False
        )


@pytest.mark.parametrize("streamed", [False, True])
def test_other_records_of_private_people_are_refused_or_told(tmp_path, streamed):
    def of(records, first):
        names = [f"p-{first + number}" for number in range(len(records))]
        return records.assign(patient=names)

    def planned(more="", first=10_000, first_test=20_000):
        path = write(
            tmp_path,
            streamed,
            'owner = "patient"\n' + more,
            private=of(table(600, 0), 0),
            public=of(table(100, 1).drop(columns="level"), first),
            test=of(table(50, 2).drop(columns="level"), first_test),
        )
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            plan_study(read_config(path), on_ledger=False)
        return [str(one.message) for one in told if "also have private ones" in str(one.message)]

    assert not planned() and not planned(first=595, first_test=595)  # a handful
    (line,) = planned(first_test=594)
    assert line.startswith("6 of 50 test records are about people who also have private ones")
    with pytest.raises(InputError, match="6 of 100 public records are about people") as refusal:
        planned(first=594)
    assert "data.public_may_overlap = true" in str(refusal.value)
    assert "p-59" not in line + str(refusal.value)
    assert not planned("public_may_overlap = true", 0, 0)


def test_what_was_allowed_is_said_in_the_statement(tmp_path):
    private = table(600, 0)
    path = write(
        tmp_path, more="public_may_overlap = true", public=private.drop(columns="level").iloc[:100]
    )
    result = run_study(read_config(path), tmp_path / "out")
    released = json.loads((tmp_path / "out/release/privacy.json").read_text(encoding="utf-8"))
    for sentences in (result.privacy.sentences(), released["statement"]):
        assert sum("may equal private ones" in sentence for sentence in sentences) == 1
    assert "may equal private ones" in (tmp_path / "out/release/report.html").read_text("utf-8")
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [path for path in kept if b"also among the private ones, more" in path.read_bytes()]


def test_private_records_in_another_unit_are_refused(tmp_path):
    private = table(600, 0)
    private["weight"] *= 1000  # grams
    with pytest.raises(
        InputError, match=r"1 of 2 numeric .*column weight.*scales_may_differ = true"
    ):
        plan_study(read_config(write(tmp_path, private=private)), on_ledger=False)
    plan_study(
        read_config(write(tmp_path, more="scales_may_differ = true", private=private)),
        on_ledger=False,
    )


def warned(path):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plan_study(read_config(path), on_ledger=False)
    return [
        str(w.message) for w in told if w.category is PrivacyWarning and "person" in str(w.message)
    ]


@pytest.mark.parametrize(
    "spelt", [lambda n: n, lambda n: f"client-{n:04d}"], ids=["numbers", "text"]
)
def test_a_repeated_id_that_is_not_the_owner_is_asked_about(tmp_path, spelt):
    private = table(3000, 0)
    private["client"] = [spelt(number % 1000) for number in range(3000)]
    (question,) = warned(write(tmp_path, more='exclude = ["client"]', private=private))
    assert question.startswith(
        "3,000 records, 1,000 different values of 'client': does it say whose record it is?"
    )
    assert "data.owner = 'client'" in question and "data.not_identifiers = ['client']" in question
    assert not warned(write(tmp_path, more='owner = "client"', private=private))
    silent = 'exclude = ["client"]\nnot_identifiers = ["client"]'
    assert not warned(write(tmp_path, more=silent, private=private))
    # Who said whose records they are need not be asked: about no other column, either.
    private["doctor"] = [f"doctor {number // 7}" for number in range(3000)]
    more = 'owner = "client"\nexclude = ["doctor"]'
    assert not warned(write(tmp_path, more=more, private=private))
