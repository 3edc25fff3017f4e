"""`collegium account --compare`: every theorem's ε for a list of events, in words or as it was exported."""

import json

import pytest

from collegium.accounting import Gaussian, Neighbours, PureNoise
from collegium.accounting.export import Use, to_json

pytest.importorskip("dp_accounting")


@pytest.fixture
def works(collegium):
    def call(*arguments):
        code, output, errors = collegium("account", "--compare", *arguments)
        assert (code, errors) == (0, "")
        return output

    return call


def test_all_bounds_are_told_the_tightest_is_marked_and_what_is_relied_on(works):
    lines = works("100 x pure(0.1)").splitlines()
    told = {name: line for name in ("basic", "advanced, Dwork", "optimal", "Gaussian DP", "common")
            for line in lines if name in line}  # fmt: skip
    assert "10.000000" in told["basic"] and "5.850235" in told["advanced, Dwork"]
    assert "4.306791" in told["optimal"] and "*" in told["optimal"]
    assert "5.696124" in told["Gaussian DP"] and "5.696124" in told["common"]
    assert "→" in told["Gaussian DP"] and "→" not in told["common"]
    assert any(line.startswith("bounded range, fixed: does not apply") for line in lines)
    assert "ε per person at δ = 1e-05" in lines[-1]


def test_json_says_the_same(works):
    said = json.loads(works("100 x laplace(0.1)", "gaussian(40)", "--delta", "1e-6", "--json"))
    (owners,) = said["owners"].values()
    bounds = {one["name"]: one for one in owners["bounds"]}
    assert said["delta"] == 1e-6 and said["group"] == 1
    assert sum(one["tightest"] for one in bounds.values()) == 1
    assert [name for name, one in bounds.items() if one["relied_on"]] == ["Gaussian DP"]
    assert bounds["bounded range, fixed"]["epsilon"] is None
    assert "one range" in bounds["bounded range, fixed"]["why_not"]


def test_a_group_of_people_and_an_exported_composition(works, tmp_path):
    alone = json.loads(works("gaussian(40)", "--json"))["owners"]
    three = json.loads(works("gaussian(40)", "--group", "3", "--json"))["owners"]
    same = json.loads(works("gaussian(13.333333333333334)", "--json"))["owners"]
    epsilon = [
        next(b["epsilon"] for b in one["everybody"]["bounds"] if b["relied_on"])
        for one in (alone, three, same)
    ]
    assert epsilon[0] < epsilon[1] and epsilon[1] == pytest.approx(epsilon[2], rel=1e-12)

    uses = {
        "high": [Use("answer", Gaussian([1.0], 40.0), 50), Use("check", PureNoise([0.1]), 0)],
        "low": [Use("answer", Gaussian([2.0], 40.0), 50)],
    }
    path = tmp_path / "composition.json"
    path.write_text(json.dumps(to_json(uses, Neighbours.ANY_CHANGE, "any change of it")), "utf-8")
    shown = works(path)
    assert "high" in shown and "low" in shown and "any change of it" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--compare"], "--compare needs events"),
        (["--compare", "cauchy(1)"], "is no event"),
        (["--compare", "SELECT 1"], "is no event"),
        (["--compare", "pure(inf)"], "promises nothing"),
        (["--compare", "pure(1)", "--delta", "0"], "delta must lie strictly between"),
        (["--compare", "pure(1)", "--group", "0"], "group must be"),
        (["--compare", "none.json"], "cannot be read"),
        (["--compare", "pure(1)", "none.json"], "one JSON file"),
        (["--compare", "pure(1)", "--level", "a=1:500"], "give one of"),
        (["pure(1)", "--level", "a=1:500"], "are for --compare"),
        (["--group", "2", "--level", "a=1:500"], "are for --compare"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line(collegium, arguments, says):
    code, output, errors = collegium("account", *arguments)
    assert code == 2 and output == ""
    assert errors.startswith("error: ") and errors.count("\n") == 1 and says in errors


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 1, "groups": {}, "adjacency": "any"}'])
def test_files_that_hold_no_composition_are_refused(collegium, tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content, "utf-8")
    code, output, errors = collegium("account", "--compare", path)
    assert code == 2 and output == "" and errors.count("\n") == 1
