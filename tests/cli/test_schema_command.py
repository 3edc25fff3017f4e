"""A schema is drafted from public records by a command, and shown by another."""

import json

import pytest

from collegium import Schema
from collegium.data.schema_column import MOST_STEPS
from collegium.statistics.language import parse_question
from collegium.statistics.quantiles import candidates_of

PUBLIC = "age,sex,pay\n17,F,7.5\n38,M,8.25\n90,F,\n"


@pytest.fixture
def public(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text(PUBLIC)
    return path


def test_a_draft_is_written_shown_and_never_written_over(collegium, public, tmp_path):
    file = tmp_path / "schema.toml"
    code, printed, errors = collegium("schema", "init", public, "--out", file)
    assert code == 0, errors
    assert f"Wrote {file}" in printed.replace("\n", "") and "17 to 90" in printed
    assert "none of these records were private" in errors.replace("\n", " ")
    assert Schema.read(file)["sex"].categories == ("F", "M")
    before = file.read_bytes()
    code, _, errors = collegium("schema", "init", public, "--out", file)
    assert code == 2 and "exists already" in errors
    assert file.read_bytes() == before
    code, printed, _ = collegium("schema", "show", file)
    assert code == 0 and "7.5 to 8.25" in printed
    assert "Counts are of people: each counts once" in " ".join(printed.split())
    code, printed, _ = collegium("schema", "show", file, "--json")
    shown = json.loads(printed)
    assert shown["digest"] == Schema.read(file).digest
    assert "missing" not in shown["columns"]["pay"]  # readable values are counted along by default


def test_drafted_steps_are_so_coarse_that_quantiles_can_be_asked(collegium, tmp_path):
    prices = [0.01, 999.99, 20_981.29]
    rows = ["price,pay,age"] + [f"{p},{round(p * 100)},{40 + i}" for i, p in enumerate(prices)]
    (tmp_path / "public.csv").write_text("\n".join(rows))
    file = tmp_path / "schema.toml"
    assert collegium("schema", "init", tmp_path / "public.csv", "--out", file)[0] == 0
    schema = Schema.read(file)
    assert (schema["price"].step, schema["pay"].step, schema["age"].step) == (0.5, 50, None)
    for name in schema:
        parse_question(f"median {name}", schema)  # refuses too many
        found = candidates_of(schema[name])
        assert found[0] == schema[name].lower and found[-1] == schema[name].upper
    text = file.read_text()
    for own in ("0.01", "1"):
        assert f"# step: coarser than the {own} of public records, because a quantile" in text
    assert text.count("coarser") == 2 and f"at most {MOST_STEPS:,} values" in text


def test_what_is_wrong_is_one_line(collegium, tmp_path):
    def refused(*arguments):
        code, printed, errors = collegium(*arguments)
        assert code == 2 and not printed and len(errors.splitlines()) == 1
        return errors

    assert "schema init PUBLIC.csv --out" in refused("schema", "show", tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text('[columns.age]\nkind = "whole"\nbound = [0, 1]\n')
    said = refused("schema", "show", tmp_path / "bad.toml")
    assert "bad.toml: unknown key columns.age.bound: did you mean 'bounds'?" in said
    assert "does not exist" in refused(
        "schema", "init", tmp_path / "none.csv", "--out", tmp_path / "a.toml"
    )
    assert not (tmp_path / "a.toml").exists()


def test_a_draft_says_what_counts_count(collegium, public, tmp_path):
    """People, or rows: asked for by an option, said in the draft and on the screen."""
    for rows, said in (
        (1, "Counts are of people"),
        (4, "Counts are of rows, at most 4 of each person"),
    ):
        file = tmp_path / f"{rows}.toml"
        how = ("--rows-per-person", rows) * (rows > 1)
        code, printed, errors = collegium("schema", "init", public, "--out", file, *how)
        assert code == 0, errors
        assert said in printed and f"# {said}" in file.read_text()
        assert Schema.read(file).rows_per_owner == rows
