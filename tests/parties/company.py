"""Parties in one process: files that come late, twice or by halves, parties that crash or stay away."""

import math

import numpy as np

from collegium.noise.sources import SeededNoise
from collegium.noise.sums import Noise
from collegium.parties.mailbox import MemoryMailbox
from collegium.parties.members import Agreement, IdentityKey
from collegium.parties.noise_shares import share_of
from collegium.parties.party_sum import PartySum
from collegium.parties.quorum import Quorum

NOISE = Noise("gaussian", 400.0)
PURPOSE = "count"


class View:
    """What one party sees of a mailbox: files come when they are delivered, some of them by halves first."""

    def __init__(self, shared, own):
        self.shared, self.own = shared, own
        self.seen, self.halves = set(), {}

    def post(self, name, content):
        self.shared.post(name, content)
        self.seen.add(name)

    def read(self, name, most_bytes):
        if name in self.halves:
            return self.shared.read(name, most_bytes)[: self.halves[name]]
        return self.shared.read(name, most_bytes) if name in self.seen else None

    def names(self, folder):
        return [name for name in self.shared.names(folder) if name in self.seen]

    def folders(self):
        return {name.partition("/")[0] for name in self.seen}

    def missing(self):
        return [name for name in self.shared.files if name not in self.seen]

    def deliver(self, name):
        self.seen.add(name)
        self.halves.pop(name, None)


class Company:
    """N parties with keys, memories and vectors; their shares of noise are seeded, so that they are known."""

    def __init__(self, quorum=None, seed=0, size=3, noise=NOISE, plan=b"a plan"):
        self.quorum, self.noise = quorum or Quorum(3), noise
        self.rng = np.random.default_rng(seed)
        self.numbers = range(1, self.quorum.parties + 1)
        self.keys = {number: IdentityKey.fresh() for number in self.numbers}
        self.agreement = Agreement(
            plan, [self.keys[n].member(f"Hospital {n}") for n in self.numbers], self.quorum
        )
        self.mailbox = MemoryMailbox()
        self.views = {number: View(self.mailbox, number) for number in self.numbers}
        self.memories = {number: MemoryMailbox() for number in self.numbers}
        self.vectors = {number: self.rng.integers(-(2**40), 2**40, size) for number in self.numbers}

    def party(self, number, mailbox=None, **given):
        """A party as it is after a start, or after a crash."""
        return PartySum(
            self.agreement,
            self.keys[number],
            mailbox or self.mailbox,
            self.memories[number],
            source=SeededNoise(number),
            **given,
        )

    def steps(self, number, query=0, mailbox=None, vector=None):
        vector = self.vectors[number] if vector is None else vector
        party = self.party(number, mailbox)
        return party.steps(vector, self.noise, query=query, purpose=PURPOSE)

    def expected(self, present, query=0):
        """Vectors and shares of noise of some parties, added in whole numbers without end."""
        share = share_of(self.noise, self.quorum)
        terms = [
            SeededNoise(n).noised(self.vectors[n], share, query=query, purpose=PURPOSE)
            for n in present
        ]
        return [sum(int(term[place]) for term in terms) for place in range(len(terms[0]))]

    def play_at_random(self, query, rng, leaving, crash=0.03, moves=100_000):
        """Let chance decide who goes on, which file comes when, and who starts anew.

        ``leaving``: by party, after how many of its moves it is gone.
        Returns what each party opened; raises what any of them raises.
        """
        steps = {number: self.steps(number, query, self.views[number]) for number in self.numbers}
        begun, opened, waiting = set(), {}, {}
        moved = dict.fromkeys(self.numbers, 0)
        idle = set()
        for _ in range(moves):
            alive = [n for n in steps if n not in opened]
            if not alive:
                return opened
            missing = [(n, name) for n in alive for name in self.views[n].missing()]
            if missing and rng.random() < 0.6:
                for place in rng.integers(
                    len(missing), size=min(len(missing), 1 + len(alive) // 2)
                ):
                    self._deliver(*missing[place], rng)
                    idle.discard(missing[place][0])
                continue
            if rng.random() < 0.02 and self.mailbox.files:
                name = rng.choice(list(self.mailbox.files))
                self.mailbox.post(name, self.mailbox.files[name])  # repeated
            late = not missing and idle >= set(alive)
            if late:
                number = min(alive, key=lambda n: waiting[n].turns or math.inf)
            else:
                number = int(rng.choice([n for n in alive if n not in idle] or alive))
            moved[number] += 1
            if moved[number] > leaving.get(number, math.inf):
                del steps[number]
                continue
            if rng.random() < crash:
                steps[number] = self.steps(number, query, self.views[number])
                begun.discard(number)
            before = len(self.mailbox.files)
            try:
                waiting[number] = (
                    steps[number].send(late) if number in begun else next(steps[number])
                )
                begun.add(number)
                idle.add(number)
            except StopIteration as ended:
                opened[number] = ended.value
            if len(self.mailbox.files) > before:
                idle.clear()
        raise AssertionError("the parties go round in circles")

    def _deliver(self, number, name, rng):
        view = self.views[number]
        if name in view.seen:
            return
        if name not in view.halves and rng.random() < 0.2:
            view.halves[name] = int(rng.integers(len(self.mailbox.files[name])))
        else:
            view.deliver(name)


def run(steps):
    """Let parties take turns, without time passing; whoever has to wait for ever is left waiting.

    Returns by party what it opened, or whom it waits for.
    """
    results = {number: next(one) for number, one in steps.items()}
    going = dict(steps)
    for _ in range(20):
        for number, one in list(going.items()):
            try:
                results[number] = one.send(False)
            except StopIteration as ended:
                results[number] = ended.value
                del going[number]
    return results
