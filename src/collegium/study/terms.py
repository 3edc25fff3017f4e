"""The public terms of a labelling job, kept in its vault: enough to read its account without any data.

Budgets, weights, participation and noise are public; so is every outcome under the worst-case guarantee.
Terms and journal together say what was spent and what is left, also while the job is running.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from collegium.accounting.bookkeeping import as_json, from_json
from collegium.accounting.neighbours import OWNER, Neighbours
from collegium.budgets import Budget
from collegium.errors import CollegiumError, InputError, StudyMismatchError
from collegium.json_files import parse_json, read_json
from collegium.pate.voting.aggregators import Aggregator, aggregator_from
from collegium.pate.voting.composition import Replay, replay
from collegium.pate.voting.labelling import Outcome
from collegium.pate.voting.pricing import PRICES, WorstCasePricing, worst_case_pricing
from collegium.pate.voting.release import HISTOGRAM
from collegium.personalisation.electorate import Electorate, Participation
from collegium.study.folder import StudyFolder
from collegium.study.journal import FileJournal
from collegium.study.manifest_check import refuse_links, released_digests

FORMAT = 1
TERMS = "terms.json"
_ADVICE = "restore it from a backup"


@dataclass(frozen=True, eq=False)
class JobTerms:
    """What a labelling job was agreed on, before its first query.

    ``neighbours``: what it hides about an owner.
    ``adjacency``: the same in words, with all that it depends on.
    ``unit``: what a group's members are: owners, or teachers where nothing is known of owners.
    ``private_noise``: whether noise comes from the operating system.
    ``owners``: number of owners of each group.
    ``n_queries``: public records that may be asked about.
    ``price``: what an answer is charged in the worst case.
    """

    aggregator: Aggregator
    electorate: Electorate
    guarantee: str
    neighbours: Neighbours
    adjacency: str
    private_noise: bool
    owners: dict[str, int]
    n_queries: int
    unit: str = OWNER
    price: str = HISTOGRAM

    def pricing(self) -> WorstCasePricing:
        """Make the job's prices anew; worst case only."""
        return worst_case_pricing(self.price, self.aggregator, self.electorate, self.neighbours)

    def replayed(self, outcomes: Sequence[Outcome]) -> Replay:
        """Charge released outcomes again; worst case only."""
        return replay(self.aggregator, self.electorate, outcomes, self.neighbours, self.price)

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON, exact to the last bit."""
        electorate = self.electorate
        schedule = electorate.participation
        return {
            "format": FORMAT,
            "guarantee": self.guarantee,
            "neighbours": self.neighbours.value,
            "adjacency": self.adjacency,
            "unit": self.unit,
            "private_noise": self.private_noise,
            "owners": self.owners,
            "n_queries": self.n_queries,
            "price": self.price,
            "aggregator": self.aggregator.settings(),
            "n_nominal": electorate.n_nominal,
            "groups": {
                name: [as_json(np.asarray(budget.epsilon)), budget.delta]
                for name, budget in electorate.groups.items()
            },
            "cohort_groups": list(electorate.cohort_groups),
            "weights": as_json(electorate.weights),
            "sensitivity": as_json(electorate.sensitivity),
            "participation": None
            if schedule is None
            else {
                "groups": [group.tolist() for group in schedule.groups],
                "frequencies": list(schedule.frequencies),
                "seed": schedule.seed,
                "shuffle_every": schedule.shuffle_every,
            },
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> JobTerms:
        """Read what :meth:`to_json` made."""
        if content["format"] != FORMAT:
            raise InputError(f"unknown format {content['format']!r} of a job's terms")
        mechanism = dict(content["aggregator"])
        weights = from_json(content["weights"], "weights", (len(content["weights"]),))
        cohorts = tuple(content["cohort_groups"])
        schedule = content["participation"]
        participation = None
        if schedule is not None:
            groups = [np.asarray(group, dtype=np.intp) for group in schedule["groups"]]
            participation = Participation(
                groups, schedule["frequencies"], schedule["seed"], schedule["shuffle_every"]
            )
        electorate = Electorate(
            n_nominal=content["n_nominal"],
            weights=weights,
            groups={
                name: Budget(float(epsilon), delta)
                for name, (epsilon, delta) in content["groups"].items()
            },
            cohort_groups=cohorts,
            sensitivity=from_json(content["sensitivity"], "sensitivity", (len(cohorts),)),
            participation=participation,
        )
        return cls(
            aggregator_from(mechanism.pop("name"), **mechanism),
            electorate,
            content["guarantee"],
            Neighbours(content["neighbours"]),
            content["adjacency"],
            content["private_noise"],
            content["owners"],
            content["n_queries"],
            content["unit"],
            _price_in(content),
        )


def _price_in(content: dict[str, Any]) -> str:
    price = content["price"]
    if price not in PRICES:
        raise InputError(
            f"unknown price {price!r} in a job's terms: allowed are {', '.join(PRICES)}"
        )
    return str(price)


def kept_price(folder: StudyFolder) -> str | None:
    """Read what a job of this folder charges an answer; None if it was not begun."""
    path = folder.vault / TERMS
    return _price_in(read_json(path, {"price": str}, _ADVICE)) if path.exists() else None


def keep_terms(folder: StudyFolder, terms: JobTerms) -> None:
    """Write a job's terms into its vault, unless they are there already."""
    path = folder.vault / TERMS
    if not path.exists():
        folder.write_json(path, terms.to_json())


def keep_or_match(folder: StudyFolder, now: dict[str, Any], what: str, nothing: str) -> None:
    """Write terms into a vault, or check that they are those that stand there.

    ``what``, ``nothing``: what differs then, and what was not done, for the message.
    Raises StudyMismatchError if it was begun with others: an account of two would be of neither.
    """
    path = folder.vault / TERMS
    if not path.exists():
        folder.write_json(path, now)
    elif read_json(path, dict) != now:
        raise StudyMismatchError(
            f"{folder.path} was begun with {what} than these settings and people give now (another version "
            f"of the software?): {nothing}; go on with what it was begun with, or choose another folder "
            "with --out"
        )


def method_of(path: Path, method: str) -> bool:
    """Tell whether a folder is one of this method; what it says is not believed yet.

    ``method``: of studies whose terms name it: they learn directly, or ask.
    """
    terms = path / "vault" / TERMS
    return terms.exists() and read_json(terms, dict).get("method") == method


def why_it_ended(path: Path) -> str | None:
    """Tell why a job's voting has ended; None if it goes on with the next run.

    Raises StudyMismatchError if the journal does not vouch for that.
    """
    folder = StudyFolder(path)
    source = folder.voting_ended
    if not source.exists():
        return None
    content = source.read_bytes()
    name = source.relative_to(path).as_posix()
    _require_vouched(path, {name: hashlib.sha256(content).hexdigest()}, folder.open_journal())
    reason: str = parse_json(content, source, {"stop_reason": str})["stop_reason"]
    return reason


def _require_vouched(path: Path, digests: dict[str, str], journal: FileJournal) -> None:
    for name, digest in digests.items():
        if digest not in journal.files.get(name, ()):
            raise StudyMismatchError(
                f"{path / name} is not what the journal beside it says: one of them is damaged, or older "
                "than the other, so what was spent is not known; restore the whole folder from one "
                "backup (`collegium verify` tells all that is wrong)"
            )


def read_job(path: Path) -> tuple[JobTerms, list[Outcome]]:
    """Read a job's terms and what is durable of it; nothing is changed, also while it is running.

    Queries that may have been drawn, but whose outcome is not durable yet, count as lost.

    Raises StudyMismatchError if the journal does not vouch for the terms, and for what was released.
    """
    with reading_terms(path):
        terms, journal = begun_job(path)
        return JobTerms.from_json(terms), journal.settled()


def begun_job(path: Path) -> tuple[dict[str, Any], FileJournal]:
    """Read the terms of a study or label job that was begun, and its journal, which vouches for them."""
    folder = StudyFolder(path)
    source = folder.vault / TERMS
    if not source.exists():
        raise InputError(
            f"{path} holds no labelling job that was begun: there is no {source}; `collegium run` and "
            "`collegium label` make one"
        )
    refuse_links(folder.vault)
    digests = released_digests(path)  # before the journal: a job that is running is ahead of it
    content = source.read_bytes()
    digests[f"vault/{TERMS}"] = hashlib.sha256(content).hexdigest()
    journal = folder.open_journal()
    _require_vouched(path, digests, journal)
    terms: dict[str, Any] = parse_json(content, source, dict, _ADVICE, InputError)
    return terms, journal


@contextlib.contextmanager
def reading_terms(path: Path) -> Iterator[None]:
    """Say in one line what is wrong with a folder whose terms are read."""
    try:
        yield
    except CollegiumError:
        raise
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): it is for its owner only"
        ) from None
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        OverflowError,
        MemoryError,
    ):
        raise InputError(f"{path / 'vault' / TERMS} is damaged: {_ADVICE}") from None
