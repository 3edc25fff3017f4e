"""Whatever happens in whatever order, all get the sum of the vectors that count, bit for bit."""

import json

import numpy as np
import pytest

from collegium.noise.sources import SeededNoise
from collegium.noise.sums import Noise
from collegium.parties.noise_shares import share_of
from collegium.parties.quorum import Quorum
from collegium.parties.secure_sum import secure_sum
from collegium.parties.waiting import SumNotOpenedError
from tests.parties.company import NOISE, PURPOSE, Company, run

SESSIONS, SUMS = 100, 10  # 1,000 schedules


def some_quorum(rng, most=6):
    parties = int(rng.integers(3, most))
    colluders = int(rng.integers(1, parties))
    most_away = parties - Quorum(parties, 0, colluders).threshold
    return Quorum(parties, int(rng.integers(0, most_away + 1)), colluders)


@pytest.mark.parametrize("part", range(5))
def test_a_thousand_schedules(part):
    for session in range(part, SESSIONS, 5):
        rng = np.random.default_rng([27, session])
        company = Company(some_quorum(rng), seed=session)
        for query in range(SUMS):
            check_one(company, query, rng)


@pytest.mark.parametrize("parties", range(6, 21))
def test_schedules_of_many_parties(parties):
    rng = np.random.default_rng(parties)
    company = Company(Quorum(parties, (parties - 2) // 2, 1), seed=parties, size=2)
    check_one(company, 0, rng)


def check_one(company, query, rng):
    """One schedule, with as many parties that leave at any time as may."""
    away = int(rng.integers(0, company.quorum.drop_outs + 1))
    who = rng.choice(list(company.numbers), size=away, replace=False)
    first = 4 if query == 0 else 0  # everybody's keys are needed
    leaving = {int(number): int(rng.integers(first, 12)) for number in who}
    if query == 0:
        leaving = {}
    opened = company.play_at_random(query, rng, leaving)
    assert opened.keys() >= set(company.numbers) - leaving.keys()
    (present,) = {one.present for one in opened.values()}
    assert len(present) >= company.quorum.fewest
    assert set(present) >= set(company.numbers) - leaving.keys()
    for one in opened.values():
        assert one.total.tolist() == company.expected(present, query)


@pytest.mark.parametrize("seed", range(40))
def test_with_more_drop_outs_nothing_is_opened(seed):
    rng = np.random.default_rng([44, seed])
    company = Company(some_quorum(rng), seed=seed)
    company.play_at_random(0, rng, {})
    who = rng.choice(list(company.numbers), size=company.quorum.drop_outs + 1, replace=False)
    before = {name for name in company.mailbox.files if "/unmask" in name}
    with pytest.raises(
        SumNotOpenedError, match="nothing was opened, and what was charged stays charged"
    ):
        company.play_at_random(1, rng, {int(number): 0 for number in who})
    assert {name for name in company.mailbox.files if "/unmask" in name} == before


def test_after_too_few_came_a_new_attempt_has_new_masks_and_is_opened():
    company = Company(Quorum(5, drop_outs=1))
    parties = {number: company.party(number) for number in company.numbers}

    def steps(number):
        return parties[number].steps(company.vectors[number], NOISE, query=0, purpose=PURPOSE)

    first = {number: steps(number) for number in (5, 4, 3, 2, 1)}
    for one in first.values():
        next(one)
    for number in (2, 3):
        first[number].send(False)
    assert (
        first[1].send(True).what == "confirmation"
    )  # the four others may still open one of their own
    for number in (2, 3, 1, 4, 5):  # two of them come too late
        with pytest.raises(SumNotOpenedError, match="fewer than 4 parties took part in sum 0"):
            first[number].send(False)
    opened = run({number: steps(number) for number in company.numbers})
    assert all(one.total.tolist() == company.expected(range(1, 6)) for one in opened.values())
    vectors = {
        attempt: json.loads(
            company.mailbox.files[f"000000-count-6c35493a-{attempt}/masked-p01.json"]
        )["message"]["sum"]
        for attempt in (1, 2)
    }
    assert vectors[1] != vectors[2]


def test_who_saw_too_few_gets_the_sum_that_the_others_open():
    company = Company(Quorum(4, drop_outs=1))
    company.play_at_random(0, np.random.default_rng(1), {}, crash=0)
    steps = {n: company.steps(n, 1, company.views[n]) for n in company.numbers}
    cut_off = company.views[4]

    def deliver(numbers):
        for number in numbers:
            company.views[number].seen.update(
                name for name in company.mailbox.files if not name.endswith("-p04.json")
            )

    for number in company.numbers:
        next(steps[number])
    deliver([1, 2, 3])
    assert (
        steps[4].send(True).what == "confirmation"
    )  # it proposed that nothing is opened, and waits
    opened = {}
    steps[1].send(True)
    for _ in range(4):
        for number in {1, 2, 3} - opened.keys():
            deliver([1, 2, 3])
            try:
                steps[number].send(False)
            except StopIteration as ended:
                opened[number] = ended.value
    assert steps[4].send(False).what == "confirmation"
    cut_off.seen.update(company.mailbox.files)
    with pytest.raises(StopIteration) as ended:
        steps[4].send(False)
    assert {*opened} == {1, 2, 3}
    for one in (*opened.values(), ended.value.value):
        assert one.present == (1, 2, 3)
        assert one.total.tolist() == company.expected((1, 2, 3), 1)


def test_secure_sum_draws_nothing_for_too_few():
    with pytest.raises(
        SumNotOpenedError, match="2 of 4 parties gave a vector, and 3 have to: noth"
    ):
        secure_sum([[1], None, None, [2]], NOISE, drop_outs=1)


@pytest.mark.parametrize("parties", range(3, 21))
def test_secure_sum_is_the_sum_with_the_shares_of_noise(parties):
    away = max(0, (parties - 3) // 2)
    rng = np.random.default_rng(parties)
    vectors = [rng.integers(-(2**50), 2**50, (2, 2)) for _ in range(parties)]
    noise, quorum = Noise("gaussian", 1000.0), Quorum(parties, away, 1)
    given = [None if place < away else vector for place, vector in enumerate(vectors)]
    result = secure_sum(given, noise, drop_outs=away, seed=5)
    share = share_of(noise, quorum)
    expected = sum(
        SeededNoise(5 + place).noised(vectors[place], share, query=0, purpose="sum")
        for place in result.present
    )
    assert result.present == tuple(range(away, parties))
    assert result.total.tolist() == expected.tolist()
