"""Checks of single values: what is allowed passes, and a refusal says in one line what is."""

import math

import numpy as np
import pytest

from collegium.checks import check_choice, check_number, check_share, check_truth, check_whole
from collegium.errors import InputError, ModelError


@pytest.mark.parametrize(
    ("check", "right", "wrong", "says"),
    [
        (lambda v: check_whole("x", v), [1, np.int64(7), 10**30], [0, 1.0, True, "1", None],
         "a whole number of at least 1"),
        (lambda v: check_whole("x", v, 0, 4096), [0, 4096], [-1, 4097, 2.0],
         "a whole number from 0 to 4,096"),
        (lambda v: check_number("x", v, above=0, below=math.inf), [1, 0.5, np.float32(2)],
         [0, -1, math.inf], "be finite and greater than 0"),
        (lambda v: check_number("x", v, least=0, below=1), [0, 0.99], [1, -0.1, math.inf],
         "be at least 0 and below 1"),
        (lambda v: check_number("x", v, above=0, below=1), [0.5], [0, 1],
         "lie strictly between 0 and 1"),
        (lambda v: check_number("x", v, above=0, most=1), [1], [0, 1.5],
         "be greater than 0 and at most 1"),
        (lambda v: check_number("x", v), [math.inf, -1], ["1", True, math.nan, None, [1], 1j],
         "be a number"),
        (lambda v: check_number("x", v), [1e308], [10**400, -(10**5000)], "x is larger than any number"),
        (lambda v: check_share("x", v), [0, 1, 0.5], [-0.1, 1.1], "lie between 0 and 1"),
        (lambda v: check_choice("x", v, ("a", "b")), ["a"], ["c", None, 1, ["a"]], "one of a, b"),
        (lambda v: check_truth("x", v), [True, np.bool_(False)], [1, "yes", None], "true or false"),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_refused_by_name(check, right, wrong, says):
    for value in right:
        check(value)
    for value in wrong:
        with pytest.raises(InputError) as error:
            check(value)
        told = str(error.value)
        assert told.startswith("x ") and says in told and "got " in told and "\n" not in told


def test_the_error_can_be_chosen():
    with pytest.raises(ModelError):
        check_whole("epochs", 0, error=ModelError)
