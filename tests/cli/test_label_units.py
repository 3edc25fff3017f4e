"""The unit of a label job: a person where budgets tell of owners, else one teacher's data."""

import json

import numpy as np
import pytest

from tests.settings_file import settings

NOISE = ("--aggregator", "gnmax", "--sigma", "50", "--votes-are", "predictions", "--classes", "3")


@pytest.fixture
def labelled(tmp_path, collegium):
    """Label with some budgets: what is printed, and the released statement."""
    np.save(tmp_path / "votes.npy", np.arange(60).reshape(12, 5) % 3)

    def call(budgets, *options):
        (tmp_path / "budgets.csv").write_text(budgets)
        out = tmp_path / "out"
        files = ("--votes", tmp_path / "votes.npy", "--budgets", tmp_path / "budgets.csv")
        code, printed, errors = collegium("label", *files, "--out", out, *NOISE, *options)
        assert code == 0 and not [line for line in errors.splitlines() if "δ is large" not in line]
        said = json.loads((out / "release/privacy.json").read_text())
        left = "".join(collegium("account", "--remaining", out)[1:])
        return " ".join((errors + printed).split()), said, " ".join(left.split())

    return call


@pytest.mark.parametrize("budgets", ["epsilon\n5\n", "epsilon\n5\n5\n5\n5\n6\n"])
def test_without_owners_nothing_is_said_of_people(labelled, budgets):
    printed, said, left = labelled(budgets)
    assert said["unit"] == "teacher"
    assert said["adjacency"].startswith(
        "all that one teacher has learnt from is replaced or blanked"
    )
    assert all(sentence in printed for sentence in said["statement"])
    assert "owners" not in said["groups"][0] and said["groups"][0]["teachers"] >= 1
    assert any("teachers of level" in line for line in said["statement"])
    assert not any("owners of level" in line for line in said["statement"])
    assert "per teacher's data" in printed and "per teacher's data" in left
    for word in ("people", "person", "somebody", "student"):
        assert word not in printed and word not in left and word not in str(said["statement"]), word
    assert "student" not in said["meaning"]


def test_with_owners_it_is_a_person(labelled):
    printed, said, left = labelled("epsilon,owners\n5,40\n5,30\n5,20\n5,40\n5,40\n")
    assert said["unit"] == "owner"
    assert said["groups"][0]["owners"] == 170
    assert "provided that only that owner's teachers change" in said["adjacency"]
    assert "per person" in printed and "per person" in left


@pytest.mark.parametrize("told", ["", ",owners"])
def test_a_large_delta_is_said_wherever_a_budget_is(labelled, told, collegium):
    budgets = f"epsilon,delta{told}\n" + f"5,0.25{',40' * bool(told)}\n" * 5
    large = f"(0.25): it is more than 1 / number of {'people (200)' if told else 'teachers (5)'}"
    printed, said, left = labelled(budgets)
    assert large in printed and large in left
    assert any("δ is large" in line for line in said["statement"])
    code, _, errors = collegium("account", "--level", "a=3:626", "--delta", "0.5")
    assert code == 0 and "1 / number of people (626)" in errors


def test_upsampled_teachers_have_owners(labelled, tmp_path):
    upsampled = "group,epsilon,owners,teachers_per_owner\na,5,100,1\n"
    assert (
        labelled(upsampled, *settings(tmp_path, "personalisation.method = 'upsampling'"))[1]["unit"]
        == "owner"
    )
