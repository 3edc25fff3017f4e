"""What was recorded before the inner structure changed is what comes out today, to the last bit."""

import json

import pytest
from cases import society
from questions import ASKED
from record import (
    NUMBERS,
    RECORD,
    REFUSALS,
    compare_words,
    differences,
    entries,
    make_refusals,
    plain,
    read_words,
    run,
    run_numbers,
    run_story,
    versions,
)
from record_forms import differences as differences_of_numbers
from stories import STORIES
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
    *("plan", "journal", "exit"),
)


def nearly(entry):
    """Round every float, which is written in hexadecimal digits, to ten decimal ones."""
    if isinstance(entry, dict):
        return {key: nearly(one) for key, one in entry.items()}
    if isinstance(entry, list):
        return [nearly(one) for one in entry]
    is_float = isinstance(entry, str) and entry.lstrip("-").startswith("0x")
    return f"{float.fromhex(entry):.10g}" if is_float else entry


@pytest.fixture(scope="module")
def records():
    return society()


@pytest.mark.parametrize(
    ("name", "driver", "case"), [pytest.param(*entry, id=entry[0]) for entry in entries()]
)
@pytest.mark.filterwarnings("ignore")
def test_the_same_to_the_last_bit(name, driver, case, records):
    now, before = plain(run(driver, case, records)), KNOWN[name]
    if ELSEWHERE:
        now, before = (
            {key: nearly(entry[key]) for key in STEADY if key in entry} for entry in (now, before)
        )
    found = differences(before, now)
    assert not found, "\n".join(
        [f"{name} is not what it was; fields that differ:", *found, _other_machine()]
    )


@pytest.mark.parametrize("name", [*TRAINED, *ASKED])
def test_direct_training_and_questions_give_the_same_numbers(name):
    assert_same_numbers(name, run_numbers(name))


@pytest.mark.parametrize("name", STORIES)
def test_every_command_says_the_same(name):
    numbers, words = run_story(name)
    known = {key: text for key, text in read_words().items() if key.startswith(f"{name}/")}
    found = compare_words(known, words, closely=not ELSEWHERE_FOR_NUMBERS)
    assert not found, "\n".join(found)
    assert_same_numbers(f"commands/{name}", numbers)


def test_what_was_refused_is_refused_for_the_same_reason():
    known, now = json.loads(REFUSALS.read_text("utf-8")), make_refusals()
    del known["versions"]
    accepted = [
        name for name, entry in now.items() if not (entry.get("error") or entry.get("exit"))
    ]
    assert not accepted, f"accepted is now {accepted}"
    assert not any(entry.get("released") for entry in now.values())
    found = differences_of_numbers(known, now)
    assert not found, "\n".join(found)


def assert_same_numbers(name, now):
    found = differences_of_numbers(KNOWN_NUMBERS[name], now, closely=not ELSEWHERE_FOR_NUMBERS)
    assert not found, "\n".join(
        [f"{name} is not what it was; fields that differ:", *found, *ELSEWHERE_FOR_NUMBERS]
    )


def test_every_case_is_recorded_and_no_other():
    assert {name for name, _, _ in entries()} == set(KNOWN) - {"versions"}
    told = {f"commands/{name}" for name in STORIES}
    assert {*TRAINED, *ASKED, *told} == set(KNOWN_NUMBERS) - {"versions"}
    assert {name.partition("/")[0] for name in read_words()} == set(STORIES)


def _other_machine():
    if not ELSEWHERE:
        return ""
    return "recorded with other software or on another processor: " + "; ".join(ELSEWHERE)
