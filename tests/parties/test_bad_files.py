"""What parties may find in a mailbox or be given: one line, nothing opened, nothing lost."""

import json
import os
import time
from types import SimpleNamespace

import numpy as np
import pytest

from collegium.errors import CollegiumError, InputError
from collegium.noise.sums import MOST_TOTAL, Noise
from collegium.parties.ciphers import encoded
from collegium.parties.mailbox import FolderMailbox, FolderMemory, MemoryMailbox
from collegium.parties.members import Agreement, IdentityKey, Member
from collegium.parties.messages import _SIGNED, as_text
from collegium.parties.party_sum import PartySum
from collegium.parties.quorum import Quorum
from collegium.parties.secure_sum import secure_sum
from collegium.parties.summing import Opened
from collegium.parties.waiting import Patience, StillWaitingError, WaitingWarning
from tests.parties.company import NOISE, PURPOSE, Company, run

MASKED = "000000-count-6c35493a-1/masked-p03.json"


@pytest.fixture
def company():
    return Company(Quorum(3))


def halfway(company):
    """Everybody has posted keys, and all but the first a vector."""
    steps = {number: company.steps(number) for number in company.numbers}
    for one in steps.values():
        next(one)
    for number in (2, 3):
        steps[number].send(False)
    return steps[1]


def signed(key, message):
    return encoded({"message": message, "signature": as_text(key.sign(_SIGNED + encoded(message)))})


def changed(company, key=None, **changes):
    """The third party's vector, changed and signed anew."""
    message = json.loads(company.mailbox.files[MASKED])["message"]
    return signed(key or company.keys[3], {**message, **changes})


def refused(company, steps, content, match, name=MASKED):
    """Give the first party another file: it is refused in one line, and with the right one all goes on."""
    kept = company.mailbox.files.pop(name, None)
    company.mailbox.files[name] = content
    with pytest.raises(InputError, match=match) as error:
        steps.send(False)
    assert "\n" not in str(error.value)
    assert not any("/unmask" in name for name in company.mailbox.files)
    del company.mailbox.files[name]
    if kept is not None:
        company.mailbox.files[name] = kept
    again = run({number: company.steps(number) for number in company.numbers})
    assert all(one.total.tolist() == company.expected([1, 2, 3]) for one in again.values())


def test_a_file_signed_with_another_key(company):
    steps = halfway(company)
    content = changed(company, key=IdentityKey.fresh())
    refused(
        company, steps, content, f"{MASKED} of Hospital 3 is not signed with the key that is listed"
    )


def test_an_unsigned_file(company):
    steps = halfway(company)
    message = json.loads(company.mailbox.files[MASKED])["message"]
    refused(company, steps, encoded({"message": message}), "is no message of a party")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"sum": as_text(bytes(16))}, "is no vector of 3 numbers"),
        ({"sum": "no base64"}, "is no vector of 3 numbers"),
        ({"shape": [4]}, "sums something else, or with other noise"),
        ({"noise": (399.0).hex()}, "sums something else, or with other noise"),
        ({"shares": []}, "holds 0 shares, not 3"),
        ({"commitments": 3}, "does not hold what it should"),
        ({"more": 1}, "does not hold what it should"),
        ({"session": "0" * 64}, "is about another plan, session or sum"),
        ({"query": 1}, "is about another plan, session or sum"),
        ({"sender": 2}, "is about another plan, session or sum"),
        ({"attempt": 2}, "is about another plan, session or sum"),
        ({"round": "unmask"}, "is about another plan, session or sum"),
    ],
)
def test_a_file_that_says_something_else(company, changes, match):
    steps = halfway(company)
    refused(company, steps, changed(company, **changes), match)


def test_shares_that_are_not_for_this_party_open_nothing(company):
    steps = halfway(company)
    shares = json.loads(company.mailbox.files[MASKED])["message"]["shares"]
    swapped = changed(company, shares=shares[::-1])
    company.mailbox.files[MASKED] = company.memories[3].files[MASKED] = swapped
    with pytest.raises(InputError, match=f"{MASKED} of Hospital 3 holds no shares for this party"):
        run({2: company.steps(2), 3: company.steps(3)} | {1: company.steps(1)})
    assert not any("/opened" in name for name in company.mailbox.files)
    steps.close()


def test_a_file_that_is_too_large(company):
    steps = halfway(company)
    refused(company, steps, b"x" * 100_000, "is larger than the 65,569 bytes that it may have")


def test_two_versions_of_one_file(company):
    steps = halfway(company)
    copy = MASKED.replace(".json", ".sync-conflict-20260101.json")
    refused(
        company,
        steps,
        changed(company, sum=as_text(bytes(24))),
        f"{MASKED} of Hospital 3 is there in two versions",
        name=copy,
    )


def test_a_copy_and_somebody_elses_file_do_no_harm(company):
    steps = halfway(company)
    files = company.mailbox.files
    files[MASKED.replace(".json", " (copy).json")] = files[MASKED]
    files[MASKED.replace(".json", "-2.json")] = changed(company, key=IdentityKey.fresh())
    files["notes.txt"] = b"bring cake"
    files["000000-count-6c35493a-1/masked-p04.json"] = files[MASKED]
    opened = run({1: steps, 2: company.steps(2), 3: company.steps(3)})
    assert all(one.total.tolist() == company.expected([1, 2, 3]) for one in opened.values())


def test_half_a_file_is_not_there_yet(company):
    steps = halfway(company)
    whole = company.mailbox.files[MASKED]
    for length in range(0, len(whole), 97):
        company.mailbox.files[MASKED] = whole[:length]
        assert steps.send(False).parties == ("Hospital 3",)
    company.mailbox.files[MASKED] = whole
    opened = run({1: steps, 2: company.steps(2), 3: company.steps(3)})
    assert all(isinstance(one, Opened) for one in opened.values())


def test_a_party_with_another_plan(company):
    other = Company(plan=b"another plan")
    other.keys, other.mailbox = company.keys, company.mailbox
    other.agreement = Agreement(b"another plan", company.agreement.members, company.quorum)
    next(company.steps(1))
    with pytest.raises(InputError, match="is about another plan, session or sum"):
        next(other.steps(2))


def test_a_memory_of_another_plan(company):
    next(company.steps(1))
    other = Agreement(b"another plan", company.agreement.members, company.quorum)
    party = PartySum(other, company.keys[1], MemoryMailbox(), company.memories[1])
    with pytest.raises(InputError, match="belongs to another plan"):
        party.noised(company.vectors[1], NOISE, query=0, purpose=PURPOSE)


def test_a_memory_that_has_forgotten_posts_nothing_again(company):
    halfway(company)
    before = dict(company.mailbox.files)
    company.memories[3] = MemoryMailbox()
    with pytest.raises(InputError, match="whose memory does not know it"):
        next(company.steps(3))
    assert company.mailbox.files == before


def test_after_a_crash_the_same_bytes_are_posted_whatever_is_given(company):
    halfway(company)
    content = company.mailbox.files.pop(MASKED)
    steps = company.steps(3, vector=company.vectors[3] + 1)
    next(steps)
    assert company.mailbox.files[MASKED] == content


def test_a_first_party_that_signs_two_rosters_is_named(company):
    steps = halfway(company)
    steps.send(False)
    name = "000000-count-6c35493a-1/roster-p01.json"
    message = json.loads(company.mailbox.files[name])["message"]
    two = signed(company.keys[1], {**message, "opens": False})
    company.mailbox.files[name.replace(".json", "-1.json")] = two
    other = company.steps(2)
    with pytest.raises(InputError, match=f"{name} of Hospital 1 is there in two versions"):
        next(other)


@pytest.mark.parametrize(
    "changes",
    [
        {"present": [1, 2]},
        {"present": [1, 2], "digests": ["a", "b"]},
        {"present": [1, 2, 4]},
        {"present": [1, 1, 2]},
        {"present": [3, 2, 1]},
        {"digests": [1, 2, 3]},
    ],
)
def test_a_roster_that_is_none(company, changes):
    steps = halfway(company)
    steps.send(False)
    name = "000000-count-6c35493a-1/roster-p01.json"
    message = json.loads(company.mailbox.files[name])["message"]
    company.mailbox.files[name] = signed(company.keys[1], {**message, **changes})
    with pytest.raises(InputError, match="is no list of at least 3 parties"):
        next(company.steps(2))


def test_a_roster_of_another_file_is_not_confirmed(company):
    steps = halfway(company)
    steps.send(False)
    name = "000000-count-6c35493a-1/roster-p01.json"
    message = json.loads(company.mailbox.files[name])["message"]
    digests = [*message["digests"][:2], "0" * 64]
    company.mailbox.files[name] = signed(company.keys[1], {**message, "digests": digests})
    with pytest.raises(InputError, match="is another one than the roster says"):
        next(company.steps(2))
    assert "000000-count-6c35493a-1/confirm-p02.json" not in company.mailbox.files


def test_false_shares_are_noticed(company):
    run({number: company.steps(number) for number in company.numbers})
    name = "000000-count-6c35493a-1/unmask-p03.json"
    message = json.loads(company.mailbox.files[name])["message"]
    seeds = {**message["seeds"], "1": "00" * 33}
    company.mailbox.files[name] = signed(company.keys[3], {**message, "seeds": seeds})
    with pytest.raises(InputError, match="shares of Hospital 1's seeds do not fit together"):
        next(company.steps(2))
    del seeds["1"]
    company.mailbox.files[name] = signed(company.keys[3], {**message, "seeds": seeds})
    with pytest.raises(InputError, match="of Hospital 3 lacks a share for Hospital 1"):
        next(company.steps(2))


def test_another_sum_is_named(company):
    assert len(run({number: company.steps(number) for number in company.numbers})) == 3
    name = "000000-count-6c35493a-1/opened-p03.json"
    message = json.loads(company.mailbox.files[name])["message"]
    company.mailbox.files[name] = signed(company.keys[3], {**message, "sum": "0" * 64})
    with pytest.raises(InputError, match="of Hospital 3 says that it got another sum"):
        next(company.steps(1))


def test_numbers_out_of_range_open_nothing(company):
    company.vectors[1][0] = company.vectors[2][0] = 2**61
    company.vectors[3][0] = 2**61
    steps = {number: company.steps(number) for number in company.numbers}
    with pytest.raises(InputError, match="beyond what the plan allows"):
        run(steps)


# What is given to a party


@pytest.mark.parametrize(
    ("vector", "match"),
    [
        (np.array([1.0]), "arrays of whole numbers of type int64"),
        (np.array([1], dtype=np.int32), "arrays of whole numbers of type int64"),
        ([1], "arrays of whole numbers of type int64"),
        (np.array([], dtype=np.int64), "a vector of 0 numbers cannot be summed"),
    ],
)
def test_vectors_that_are_none(company, vector, match):
    with pytest.raises(InputError, match=match):
        next(company.steps(1, vector=vector))
    assert not company.mailbox.files


@pytest.mark.parametrize(
    ("query", "purpose", "match"),
    [
        (-1, "count", "query must be"),
        (10**6, "count", "query must be"),
        (1.5, "count", "query"),
        (0, "a\nb", "no line"),
    ],
)
def test_names_of_sums_that_are_none(company, query, purpose, match):
    steps = company.party(1).steps(company.vectors[1], NOISE, query=query, purpose=purpose)
    with pytest.raises(InputError, match=match):
        next(steps)


def test_noise_that_has_no_shares_posts_nothing(company):
    company.noise = Noise("laplace", 40.0)
    with pytest.raises(InputError, match="'laplace' noise has no shares"):
        next(company.steps(1))
    assert not company.mailbox.files


def test_a_name_is_used_once(company):
    parties = {number: company.party(number) for number in company.numbers}

    def steps(number):
        return parties[number].steps(company.vectors[number], NOISE, query=0, purpose=PURPOSE)

    run({number: steps(number) for number in company.numbers})
    with pytest.raises(InputError, match=r"sum 0 \(count\) was opened already"):
        next(steps(1))


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ((2, 0, 1), "parties must be a whole number from 3 to 20, got 2"),
        ((21, 0, 1), "parties must be a whole number from 3 to 20, got 21"),
        (
            (3, 1, 1),
            "drop_outs = 1 is more than 3 parties with 1 colluder can do without: at most 0",
        ),
        ((5, 2, 1), "can do without: at most 1"),
        ((5, 1, 0), "colluders must be a whole number of at least 1"),
        ((5, 0, 5), "leave nobody to protect: at most 4"),
        ((5, 1.0, 1), "drop_outs must be a whole number"),
    ],
)
def test_numbers_of_parties_that_contradict_each_other(given, match):
    with pytest.raises(InputError, match=match):
        Quorum(*given)


def test_lists_of_parties_that_are_none():
    keys = [IdentityKey.fresh() for _ in range(3)]
    members = [key.member(f"Hospital {place}") for place, key in enumerate(keys)]
    with pytest.raises(InputError, match="2 parties are listed, and the quorum is one of 3"):
        Agreement(b"", members[:2], Quorum(3))
    with pytest.raises(InputError, match="two parties have the key"):
        Agreement(b"", [*members[:2], Member("Hospital 9", members[0].key)], Quorum(3))
    with pytest.raises(InputError, match="two parties have the name Hospital 0"):
        Agreement(b"", [*members[:2], Member("Hospital 0", members[2].key)], Quorum(3))
    with pytest.raises(InputError, match="must be 64 hexadecimal digits"):
        Member("Hospital", "00")
    with pytest.raises(InputError, match="is none of the 3 parties'"):
        Agreement(b"", members, Quorum(3)).number_of(IdentityKey.fresh())


@pytest.mark.parametrize(
    ("vectors", "match"),
    [
        ([[1.0], [1], [1]], r"party 1 holds no integers \(float64\)"),
        ([[1], [1, 2], [1]], r"party 2 has shape \(2,\), not \(1,\)"),
        ([[MOST_TOTAL], [1], [1]], "beyond 2\\*\\*62"),
        ([[1], [2**64 - 1], [1]], "beyond 2\\*\\*62"),
        ([[2**70], [1], [1]], "holds no integers"),
        ([[True], [1], [1]], "holds no integers"),
        ([None, None, None], "no party gave a vector"),
        ([[1], [1]], "parties must be a whole number from 3"),
    ],
)
def test_vectors_of_secure_sum_that_are_none(vectors, match):
    with pytest.raises(InputError, match=match):
        secure_sum(vectors, NOISE)


# Folders, files and waiting


def test_a_folder_brings_everything(tmp_path):
    company = Company(Quorum(3))
    shared = tmp_path / "shared"
    shared.mkdir()
    company.memories = {n: FolderMemory(tmp_path / f"memory {n}") for n in company.numbers}
    boxes = {number: FolderMailbox(shared) for number in company.numbers}
    opened = run({n: company.steps(n, mailbox=boxes[n]) for n in company.numbers})
    assert all(one.total.tolist() == company.expected([1, 2, 3]) for one in opened.values())
    for path in shared.rglob("*.json"):
        assert json.loads(path.read_bytes()).keys() == {"message", "signature"}
    if os.name != "nt":
        assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "memory 1").rglob("*"))
    with pytest.raises(InputError, match="is in use by another process"):
        FolderMemory(tmp_path / "memory 1")
    company.memories[1].close()
    FolderMemory(tmp_path / "memory 1").close()


def test_folders_that_cannot_be_used(tmp_path):
    with pytest.raises(InputError, match="is no folder"):
        FolderMailbox(tmp_path / "none")
    box = FolderMailbox(tmp_path)
    with pytest.raises(InputError, match="cannot be the name of a file of parties"):
        box.post("../elsewhere.json", b"")
    box.post("a.json", b"1")
    box.post("a.json", b"1")
    with pytest.raises(InputError, match="nothing is posted twice"):
        box.post("a.json", b"2")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    assert box.read("b.json", 10) is None
    assert box.read("a.json", 10) == b"1"


def test_keys_are_for_their_owners_eyes(tmp_path):
    path = tmp_path / "key"
    key = IdentityKey.make(path)
    assert IdentityKey.read(path).public == key.public
    with pytest.raises(InputError, match="no key is replaced"):
        IdentityKey.make(path)
    if os.name != "nt":
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o640)
        with pytest.raises(InputError, match="can be read by others"):
            IdentityKey.read(path)
    path.write_bytes(b"short")
    path.chmod(0o600)
    with pytest.raises(InputError, match="is damaged"):
        IdentityKey.read(path)
    with pytest.raises(InputError, match="cannot be read"):
        IdentityKey.read(tmp_path / "none")


def test_who_is_missing_is_told_and_waiting_ends_by_a_monotonic_clock(company, monkeypatch):
    now, told = [0.0], []
    clock = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s), time=None
    )
    monkeypatch.setattr("collegium.parties.waiting.time", clock)
    patience = Patience(give_up_s=100.0, poll_s=7.0, told=told.append)
    party = company.party(1, patience=patience)
    with pytest.raises(StillWaitingError, match="Hospital 2, Hospital 3 posted no keys in time"):
        party.noised(company.vectors[1], NOISE, query=0, purpose=PURPOSE)
    assert now[0] == 100.0
    assert [one.parties for one in told] == [("Hospital 2", "Hospital 3")]


def test_after_a_minute_of_silence_there_is_one_warning(company, monkeypatch):
    now = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s), time=None
    )
    monkeypatch.setattr("collegium.parties.waiting.time", clock)
    party = company.party(1, patience=Patience(give_up_s=1000.0))
    with (
        pytest.warns(
            WaitingWarning, match="^waiting for Hospital 2, Hospital 3: no keys yet$"
        ) as told,
        pytest.raises(StillWaitingError),
    ):
        party.noised(company.vectors[1], NOISE, query=0, purpose=PURPOSE)
    assert len(told) == 1 and told[0].filename == __file__


def test_who_sums_something_else_is_named_at_once(company):
    steps = {
        number: company.party(number).steps(vector, NOISE, query=0, purpose=f"sum {number == 3}")
        for number, vector in company.vectors.items()
    }
    for one in steps.values():
        next(one)
    for number, other in ((2, 3), (1, 3), (3, 1)):
        said = f"Hospital {other} sums “sum {other == 3}”, and not “sum {number == 3}”: all parties ask"
        with pytest.raises(InputError, match=f"^{said}"):
            next(steps[number])


def test_a_party_that_is_behind_or_a_stranger_is_not_taken_for_one_that_sums_something_else(
    company,
):
    numbers = company.numbers
    run({n: company.steps(n) for n in numbers})
    steps = {n: company.party(n) for n in numbers}
    ahead = {n: steps[n].steps(company.vectors[n], NOISE, query=0, purpose="check") for n in (1, 2)}
    for _ in range(3):
        for one in ahead.values():
            assert next(one).what == "masked sum"
    real = company.mailbox.files[
        next(n for n in company.mailbox.files if "count" in n and "masked-p03" in n)
    ]
    for name, content in {
        "000000-other-01234567-1/masked-p03.json": b'{"message": {}}\n}\n',
        "000000-other-01234567-2/masked-p03.json": real.replace(b"count", b"other"),
        "000001-other-01234567-1/masked-p03.json": real,
    }.items():
        company.mailbox.post(name, content)
    assert next(ahead[1]).what == "masked sum"


def test_ctrl_c_loses_nothing(company, monkeypatch):
    def press(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", press)
    party = company.party(1)
    with pytest.raises(KeyboardInterrupt):
        party.noised(company.vectors[1], NOISE, query=0, purpose=PURPOSE)
    opened = run(
        {1: party.steps(company.vectors[1], NOISE, query=0, purpose=PURPOSE)}
        | {number: company.steps(number) for number in (2, 3)}
    )
    assert all(one.total.tolist() == company.expected([1, 2, 3]) for one in opened.values())


def test_without_the_package_one_line_names_the_extra(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("collegium.parties.ciphers.import_module", absent)
    with pytest.raises(CollegiumError, match="install collegium with its extra 'parties'"):
        IdentityKey.fresh()
