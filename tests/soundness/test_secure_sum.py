"""Trap 44: what colluders and readers of the files see could come of any numbers with that noisy sum.

The view is compared bit for bit: where streams of unopened seeds are dealt anew, other numbers with the same
noisy sum lead to the same files. Since each dealing is as likely as any other, the files say nothing else.
Every check here is also run on a protocol with one fault, and has to notice it.
"""

import inspect
import itertools
import json
import math
import random
import secrets

import numpy as np
import pytest
from scipy import stats

from collegium.errors import InputError
from collegium.noise.sums import Noise
from collegium.parties import ciphers, messages, party_sum, session, summing
from collegium.parties.ciphers import encoded, stream
from collegium.parties.messages import _SIGNED, as_text
from collegium.parties.noise_shares import share_of
from collegium.parties.quorum import Quorum
from collegium.parties.rosters import Rosters
from collegium.parties.secret_sharing import PRIME, from_shares, shares_of
from collegium.parties.secure_sum import secure_sum
from collegium.parties.session import Masking, Session
from collegium.parties.waiting import SumNotOpenedError
from tests.parties.company import NOISE, Company, View, run

FALSE_ALARM = 1e-8
QUORUM = Quorum(6, drop_outs=2, colluders=1)
LATE = 6


def messages_of(files, what):
    return {
        name: json.loads(content)["message"]
        for name, content in files.items()
        if f"/{what}-" in name
    }


def with_one_late(company):
    """A sum whose last party posts its vector when the roster is signed: it is not in the sum."""
    steps = {number: company.steps(number) for number in [LATE, *range(1, LATE)]}
    for one in steps.values():
        next(one)
    for number in range(1, LATE):
        steps[number].send(False)
    steps[1].send(True)
    opened = run_on(steps)
    assert all(one.present == tuple(range(1, LATE)) for one in opened.values())
    assert all(one.total.tolist() == company.expected(range(1, LATE)) for one in opened.values())
    return opened


def run_on(steps):
    results = {}
    for _ in range(10):
        for number, one in list(steps.items()):
            if number not in results:
                try:
                    one.send(False)
                except StopIteration as ended:
                    results[number] = ended.value
    return results


# The game: a view, and what else could have led to it


@pytest.fixture
def dealt(monkeypatch):
    """The same randomness in every run but for streams, which are dealt anew where a test says so."""
    moved = {}

    def begin():
        rng = random.Random(27)
        monkeypatch.setattr(secrets, "token_bytes", lambda n=32: rng.randbytes(n))
        monkeypatch.setattr(secrets, "randbelow", rng.randrange)

    def dealing(seed, size):
        return stream(seed, size) + moved.get(seed, np.uint64(0))

    monkeypatch.setattr(session, "stream", dealing)
    return begin, moved


def seeds_of(company):
    """All seeds of the sum, by party: what only the parties themselves know."""
    found = {}
    whole = Masking.fresh.__func__

    def fresh(cls, a_session, label):
        masking = whole(cls, a_session, label)
        found[masking.number] = masking.seeds
        return masking

    return found, classmethod(fresh)


@pytest.mark.parametrize("colluder", [1, 3, 5])
def test_other_numbers_with_the_same_sum_lead_to_the_same_files(dealt, monkeypatch, colluder):
    begin, moved = dealt
    begin()
    first = Company(QUORUM)
    seeds, fresh = seeds_of(first)
    monkeypatch.setattr(Masking, "fresh", fresh)
    opened = with_one_late(first)

    honest = [number for number in range(1, LATE) if number != colluder]
    rng = np.random.default_rng(1)
    shifts = {number: rng.integers(-(2**40), 2**40, 3) for number in [*honest, LATE]}
    shifts[honest[-1]] = -sum(shifts[number] for number in honest[:-1])
    carried = np.zeros(3, np.uint64)
    for here, there in itertools.pairwise(honest):
        carried = carried - shifts[here].astype(np.uint64)
        moved[seeds[here][there]] = carried
    moved[seeds[LATE][LATE]] = -shifts[LATE].astype(np.uint64)

    begin()
    second = Company(QUORUM)
    for number, shift in shifts.items():
        second.vectors[number] = second.vectors[number] + shift
    again = with_one_late(second)

    assert first.mailbox.files == second.mailbox.files
    assert first.memories[colluder].files == second.memories[colluder].files
    assert any((first.vectors[n] != second.vectors[n]).any() for n in honest)
    assert [one.total.tolist() for one in opened.values()] == [
        one.total.tolist() for one in again.values()
    ]
    check_what_is_revealed(first.mailbox.files, forbidden=moved, seeds=seeds)


def check_what_is_revealed(files, forbidden=(), seeds=None):
    """Shares of own seeds of those in the sum, and of pairs of which one is not: never both of one party."""
    for message in messages_of(files, "unmask").values():
        present = set(message["seeds"])
        pairs = [pair.split("-") for pair in message["pairs"]]
        assert all(here in present and away not in present for here, away in pairs)
    if seeds is not None:
        threshold = QUORUM.threshold
        helpers = list(messages_of(files, "unmask").values())[:threshold]
        open_now = {
            from_shares({one["sender"]: bytes.fromhex(one[part][key]) for one in helpers})
            for part in ("seeds", "pairs")
            for key in helpers[0][part]
        }
        assert open_now == {seeds[n][n] for n in range(1, LATE)} | {
            seeds[n][LATE] for n in range(1, LATE)
        }
        assert not open_now & set(forbidden)


def test_fewer_shares_than_the_threshold_fit_every_secret():
    """Of any secret and any threshold - 1 shares there is exactly one polynomial: here it is found."""
    rng = random.Random(3)
    shares = shares_of(rng.randbytes(32), 4, 7)
    three = {place: int.from_bytes(shares[place - 1], "big") for place in (2, 5, 7)}
    for other in (bytes(32), rng.randbytes(32)):
        points = {0: int.from_bytes(other, "big"), **three}
        fourth = 0
        for place, value in points.items():
            above, below = 1, 1
            for another in points:
                if another != place:
                    above = above * (4 - another) % PRIME
                    below = below * (place - another) % PRIME
            fourth += value * above * pow(below, -1, PRIME)
        given = {place: value.to_bytes(33, "big") for place, value in three.items()}
        given[4] = (fourth % PRIME).to_bytes(33, "big")
        assert from_shares(given) == other


def test_the_prime_is_one():
    """Miller and Rabin, 40 random bases: a composite number passes with probability below 4**-40."""
    odd, twos = PRIME - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    rng = random.Random(5)
    for _ in range(40):
        power = pow(rng.randrange(2, PRIME - 1), odd, PRIME)
        powers = [power]
        for _ in range(twos - 1):
            powers.append(pow(powers[-1], 2, PRIME))
        assert power == 1 or PRIME - 1 in powers


# Checks, each with the fault that it has to notice


def check_words_are_uniform():
    """Chi-square of each of the 8 bytes of every word of a masked vector of zeros, at 1e-8 in all."""
    company = Company(Quorum(3), size=20_000)
    company.vectors = {number: np.zeros(20_000, np.int64) for number in company.numbers}
    run({number: company.steps(number) for number in company.numbers})
    for message in messages_of(company.mailbox.files, "masked").values():
        words = np.frombuffer(messages.from_text(message["sum"]), np.uint8).reshape(-1, 8)
        for place in range(8):
            counts = np.bincount(words[:, place], minlength=256)
            assert stats.chisquare(counts).pvalue > FALSE_ALARM / 24


def check_seeds(monkeypatch):
    """Each stream is of a seed of 32 bytes, all of which vary, and hides one vector of one sum only."""
    seen = []
    whole = Masking.hidden

    def hidden(masking, vector):
        seen.append(masking)
        return whole(masking, vector)

    monkeypatch.setattr(Masking, "hidden", hidden)
    company = Company(Quorum(3), size=1)
    parties = {number: company.party(number) for number in company.numbers}
    for query in range(20):
        steps = {
            number: party.steps(company.vectors[number], NOISE, query=query, purpose="count")
            for number, party in parties.items()
        }
        run(steps)
    seeds = [
        seed for masking in seen for other, seed in masking.seeds.items() if masking.number <= other
    ]
    assert len(set(seeds)) == len(seeds) == 20 * 6
    assert all(len(seed) == 32 for seed in seeds)
    table = np.frombuffer(b"".join(seeds), np.uint8).reshape(-1, 32)
    assert all(len(set(column)) > 20 for column in table.T)


def check_noise_is_whole():
    """Variance of the noise of 16,000 numbers beside sigma**2 (N / (N - d - c)): false alarms 1e-8.

    Noise that lacks one of six shares is 10 of its standard deviations away from passing.
    """
    size, quorum, sigma = 16_000, Quorum(6, drop_outs=1, colluders=2), 300.0
    result = secure_sum(
        [np.zeros(size, np.int64)] * 6, Noise("gaussian", sigma), drop_outs=1, colluders=2
    )
    variance = 6 * (share_sigma(sigma, quorum) ** 2 + 1 / 12)
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], size) / size
    measured = np.mean(result.total.astype(float) ** 2) / variance
    assert low < measured < high


def share_sigma(sigma, quorum):
    return sigma / math.sqrt(quorum.parties - quorum.drop_outs - quorum.colluders)


def check_a_forged_file_is_refused():
    """A vector that its party did not sign."""
    company = Company(Quorum(3))
    steps = {number: company.steps(number) for number in company.numbers}
    for one in steps.values():
        next(one)
    steps[2].send(False)
    name = "000000-count-6c35493a-1/masked-p03.json"
    file = json.loads(company.mailbox.files[name])
    file["message"]["sum"] = as_text(bytes(24))
    company.mailbox.files[name] = encoded(file)
    with pytest.raises(InputError, match="is not signed with the key that is listed"):
        steps[1].send(False)


class Equivocated(View):
    """What a party sees where a dishonest one shows each party files of its choice."""

    def __init__(self, shared, own, shown):
        super().__init__(shared, own)
        self.shown = shown

    def read(self, name, most_bytes):
        return self.shown.get(name) or self.shared.read(name, most_bytes)

    def names(self, folder):
        return [*self.shared.names(folder), *self.shown]


def check_one_roster_is_opened(assignment):
    """A first party that signs a roster for each other one, and confirms all of them.

    ``assignment``: by honest party, whose vectors its roster has.
    Returns the rosters for which anybody revealed shares.
    """
    company = Company(QUORUM)
    steps = {number: company.steps(number) for number in company.numbers}
    for one in steps.values():
        next(one)
    for number in company.numbers[1:]:
        steps[number].send(False)
    next(company.steps(1))
    masked = {
        message["sender"]: ciphers.digest(company.mailbox.files[name])
        for name, message in messages_of(company.mailbox.files, "masked").items()
    }
    for name in [one for one in company.mailbox.files if "/roster" in one or "/confirm" in one]:
        del company.mailbox.files[name]
    about = {
        key: value
        for key, value in next(iter(messages_of(company.mailbox.files, "masked").values())).items()
        if key in ("format", "session", "query", "purpose", "attempt")
    }

    def signed(what, **content):
        message = {**about, "round": what, "sender": 1, **content}
        signature = as_text(company.keys[1].sign(_SIGNED + encoded(message)))
        return encoded({"message": message, "signature": signature})

    folder = "000000-count-6c35493a-1"
    going = {}
    for number, present in assignment.items():
        roster = summing.Roster({one: masked[one] for one in present})
        shown = {
            f"{folder}/roster-p01.json": signed(
                "roster",
                present=sorted(present),
                digests=[masked[one] for one in sorted(present)],
                opens=True,
            ),
            f"{folder}/confirm-p01.json": signed("confirm", roster=roster.digest),
        }
        going[number] = company.steps(number, mailbox=Equivocated(company.mailbox, number, shown))
    for _ in range(6):
        for number, one in list(going.items()):
            try:
                one.send(None if inspect.getgeneratorstate(one) == inspect.GEN_CREATED else False)
            except (StopIteration, InputError, SumNotOpenedError):
                del going[number]
    return {message["roster"] for message in messages_of(company.mailbox.files, "unmask").values()}


TWO = {2: {1, 2, 3, 4}, 3: {1, 2, 3, 4}, 4: {1, 2, 3, 4}, 5: {1, 2, 5, 6}, 6: {1, 2, 5, 6}}
EACH_ITS_OWN = {
    2: {1, 2, 5, 6},
    3: {1, 2, 3, 6},
    4: {1, 2, 3, 4},
    5: {1, 2, 4, 5},
    6: {1, 2, 3, 5},
}


def check_rosters():
    assert len(check_one_roster_is_opened(TWO)) == 1
    assert not check_one_roster_is_opened(EACH_ITS_OWN)


def check_reveals():
    company = Company(QUORUM)
    with_one_late(company)
    check_what_is_revealed(company.mailbox.files)


def test_words_are_uniform():
    check_words_are_uniform()


def test_seeds(monkeypatch):
    check_seeds(monkeypatch)


def test_noise_is_whole():
    check_noise_is_whole()


def test_a_forged_file_is_refused():
    check_a_forged_file_is_refused()


def test_one_roster_is_opened():
    check_rosters()


def test_what_is_revealed():
    check_reveals()


def noticed(check):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check()


def test_mutant_a_mask_that_is_used_again(monkeypatch):
    whole = Session.pair_seed
    monkeypatch.setattr(
        Session,
        "pair_seed",
        lambda self, label, other: whole(self, messages.Label(label.session, 0, "", 1), other),
    )
    noticed(lambda: check_seeds(monkeypatch))


def test_mutant_a_seed_of_32_bits(monkeypatch):
    whole = Masking.fresh.__func__

    def fresh(cls, a_session, label):
        made = whole(cls, a_session, label)
        seeds = {**made.seeds, made.number: made.seeds[made.number][:4] + bytes(28)}
        return cls(made.number, {n: seed[:4] + bytes(28) for n, seed in seeds.items()})

    monkeypatch.setattr(Masking, "fresh", classmethod(fresh))
    noticed(lambda: check_seeds(monkeypatch))


def test_mutant_words_of_32_bits(monkeypatch):
    monkeypatch.setattr(
        session, "stream", lambda seed, size: stream(seed, size) & np.uint64(2**32 - 1)
    )
    noticed(check_words_are_uniform)


def test_mutant_one_mask_for_all_numbers_of_a_vector(monkeypatch):
    monkeypatch.setattr(session, "stream", lambda seed, size: np.repeat(stream(seed, 1), size))
    noticed(check_words_are_uniform)


def test_mutant_a_share_of_noise_is_missing(monkeypatch):
    lacking = iter([True])

    def some(noise, quorum):
        share = share_of(noise, quorum)
        return Noise("gaussian", 1e-9) if next(lacking, False) else share

    monkeypatch.setattr(party_sum, "share_of", some)
    noticed(check_noise_is_whole)


def test_mutant_shares_of_noise_forget_who_may_be_missing(monkeypatch):
    monkeypatch.setattr(
        party_sum,
        "share_of",
        lambda noise, quorum: Noise("gaussian", noise.scale / math.sqrt(quorum.parties)),
    )
    noticed(check_noise_is_whole)


def test_mutant_signatures_are_not_checked(monkeypatch):
    monkeypatch.setattr(messages, "is_signed", lambda *_: True)
    noticed(check_a_forged_file_is_refused)


def test_mutant_both_kinds_of_seeds_are_revealed(monkeypatch):
    monkeypatch.setattr(
        summing.Roster,
        "half_there",
        lambda self, everybody: [(a, b) for a in self.masked for b in everybody if a != b],
    )
    noticed(check_reveals)


@pytest.mark.parametrize("threshold", [2, 3])
def test_mutant_a_threshold_that_is_too_low(monkeypatch, threshold):
    monkeypatch.setattr(Quorum, "threshold", property(lambda _: threshold))
    noticed(check_rosters)


def test_mutant_shares_are_revealed_before_others_have_confirmed(monkeypatch):
    """Each would answer its own roster: enough of them omit a party to open its masks with the rest."""

    def at_once(self):
        return self._proposed(self.mine())
        yield

    monkeypatch.setattr(Rosters, "chosen", at_once)
    noticed(check_rosters)
