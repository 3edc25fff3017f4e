"""What was recorded before the inner structure changed is what comes out today, to the last bit."""

import json

import pytest
from cases import society
from drivers import ESTIMATOR_HAS_SEEDS_OF_A_STUDY, shared_with_study
from questions import ASKED
from record import NUMBERS, RECORD, differences, entries, plain, run, run_numbers, versions
from record_forms import differences as differences_of_numbers
from training import TRAINED

KNOWN = json.loads(RECORD.read_text("utf-8"))
KNOWN_NUMBERS = json.loads(NUMBERS.read_text("utf-8"))

#: What differs between here and where the record was made: other software, or another processor.
ELSEWHERE = differences(KNOWN["versions"], versions())
ELSEWHERE_FOR_NUMBERS = differences(KNOWN_NUMBERS["versions"], versions())
#: What is the same everywhere: amounts are not, in their last bits, nor is what they are written into.
STEADY = (
    *(
        "labels",
        "verdicts",
        "histograms",
        "asked",
        "stop",
        "votes",
        "assignment",
        "order",
        "student",
    ),
    *("plan", "journal", "terms", "exit"),
)


@pytest.fixture(scope="module")
def records():
    return society()


@pytest.mark.parametrize(
    ("name", "driver", "case"), [pytest.param(*entry, id=entry[0]) for entry in entries()]
)
@pytest.mark.filterwarnings("ignore")
def test_the_same_to_the_last_bit(name, driver, case, records):
    now, before = plain(run(driver, case, records)), KNOWN[name]
    if driver == "estimator" and ESTIMATOR_HAS_SEEDS_OF_A_STUDY:
        now = shared_with_study(now)
        before = {key: value for key, value in KNOWN[f"study/{case.id}"].items() if key in now}
    if ELSEWHERE:
        now, before = (
            {key: entry[key] for key in STEADY if key in entry} for entry in (now, before)
        )
    found = differences(before, now)
    assert not found, "\n".join(
        [f"{name} is not what it was; fields that differ:", *found, _other_machine()]
    )


@pytest.mark.parametrize("name", [name for name in KNOWN_NUMBERS if name != "versions"])
def test_direct_training_and_questions_give_the_same_numbers(name):
    found = differences_of_numbers(
        KNOWN_NUMBERS[name], run_numbers(name), closely=not ELSEWHERE_FOR_NUMBERS
    )
    assert not found, "\n".join(
        [f"{name} is not what it was; fields that differ:", *found, *ELSEWHERE_FOR_NUMBERS]
    )


def test_every_case_is_recorded_and_no_other():
    assert {name for name, _, _ in entries()} == set(KNOWN) - {"versions"}
    assert {*TRAINED, *ASKED} == set(KNOWN_NUMBERS) - {"versions"}


def _other_machine():
    if not ELSEWHERE:
        return ""
    return "recorded with other software or on another processor: " + "; ".join(ELSEWHERE)
