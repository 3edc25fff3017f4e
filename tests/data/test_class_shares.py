import numpy as np
import pytest

from collegium.data.class_shares import as_class_shares
from collegium.errors import InputError


def test_mappings_follow_the_class_list_whatever_their_order():
    for given in ({"b": 0.75, "a": 0.25}, {"a": 0.25, "b": 0.75}, [0.25, 0.75]):
        assert as_class_shares(given, ["a", "b"]).tolist() == [0.25, 0.75]
    assert as_class_shares({"0": 0.5, "1": 0.5}, np.array([0, 1])).tolist() == [0.5, 0.5]


def test_rounded_shares_are_scaled_to_one():
    assert as_class_shares([0.333, 0.333, 0.333], range(3)).sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": 1.0}, "must give each class one share"),
        ({"a": 0.5, "b": 0.3, "c": 0.2}, "must give each class one share"),
        ({0: 0.2, "0": 0.3, "a": 0.5}, "must give each class one share"),
        ([0.5, 0.3, 0.2], "one number for each of 2 classes"),
        ("even", "one number for each of 2 classes"),
        (["x", "y"], "one number for each of 2 classes"),
        ([1.0, 0.0], "greater than 0 and add up to 1"),
        ([0.8, 0.8], "greater than 0 and add up to 1"),
        ([np.nan, 0.5], "greater than 0 and add up to 1"),
        ([-0.5, 1.5], "greater than 0 and add up to 1"),
    ],
)
def test_shares_that_cannot_be_used_are_refused_in_one_line(given, message):
    with pytest.raises(InputError, match=message) as caught:
        as_class_shares(given, ["a", "b"], "student.class_shares")
    assert str(caught.value).startswith("student.class_shares") and "\n" not in str(caught.value)
