"""A study that leaves open how it is learnt: the planner chooses, once, and the folder remembers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.promises import Promise
from collegium.budgets import Budget
from collegium.data.class_shares import as_class_shares
from collegium.dpsgd.ledgered import DPSGDSpending, allow
from collegium.durable import write_durably
from collegium.errors import InputError, StudyMismatchError
from collegium.ledger.allowance import Allowance
from collegium.ledger.ledger import Balance, Ledger
from collegium.ledger.places import Place
from collegium.planner.candidates import direct
from collegium.planner.expected import MEASURES, Expected
from collegium.planner.facts import Facts
from collegium.planner.recommend import Recommendation, recommend_from
from collegium.planner.share import AUTO
from collegium.planner.votes import votes
from collegium.runs.observer import Observer
from collegium.runs.views import fitted_view
from collegium.study.config import StudyConfig, config_from, read_config
from collegium.study.folder import StudyFolder
from collegium.study.from_settings import network_of
from collegium.study.kept_rehearsals import KeptRehearsal, KeptRehearsals
from collegium.study.on_ledger import PeopleOnLedger, begin, place_of, why_not
from collegium.study.predicted_quality import keep_foretold
from collegium.study.runner import require_ready
from collegium.study.spend import refuse_to_spend
from collegium.study.streaming import load_streamed_data
from collegium.study.study_data import StudyData, load_study_data
from collegium.toml_files import toml_text

CHOSEN = "chosen.toml"
_HEAD = """\
# What was left open in {name}, and was chosen for this study from public facts alone.
# Copy a section into the study's own file, under another name, to choose otherwise in a new study.
"""


def plan(study: str | Path) -> Recommendation:
    """Choose how a study that leaves it open is learnt, and predict what comes of it. Spends nothing.

    Budgets, group sizes, the class list and public records are looked at, and no value of a private record.

    Parameters
    ----------
    study : str or Path
        Its TOML file, without sections that say how it is learnt.

    Returns
    -------
    Recommendation
        Settings with a reason each, an interval for the score, and what more consent would be worth.

    Raises
    ------
    InputError
        If the file says how it is learnt: then there is nothing to choose.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> folder = Path(tempfile.mkdtemp())
    >>> size = np.random.default_rng(0).normal(size=300)
    >>> table = pd.DataFrame({"size": size, "large": np.where(size > 0.2, "yes", "no")})
    >>> table[:200].assign(epsilon=1.0).to_csv(folder / "private.csv", index=False)
    >>> table[200:].to_csv(folder / "public.csv", index=False)
    >>> text = '[data]\\nprivate = "private.csv"\\npublic = "public.csv"\\ntarget = "large"'
    >>> _ = (folder / "study.toml").write_text(text + '\\n[privacy]\\ncolumn = "epsilon"\\n')
    >>> found = plan(folder / "study.toml")
    >>> found.method, found.expected.measure
    ('direct training', 'accuracy')
    """
    config = read_config(study)
    if not config.is_open:
        raise InputError(
            f"{study} says how it is learnt (method.kind is {config.method.kind!r}), so nothing is left to "
            "choose: `collegium plan` shows what its budgets buy"
        )
    return recommended(config, Observer())


@dataclass(frozen=True)
class Choice:
    """How a study that left it open is learnt: what a run needs of a recommendation.

    ``method``, ``sections``, ``reasons``, ``expected``, ``notes``, ``verdict``: as of
        :class:`~collegium.planner.recommend.Recommendation`.
    """

    method: str
    sections: Mapping[str, Mapping[str, Any]]
    reasons: Mapping[str, str]
    expected: Expected
    notes: tuple[str, ...]
    verdict: str

    @classmethod
    def of(cls, found: Recommendation) -> Choice:
        """Take it from a recommendation."""
        return cls(**{one.name: getattr(found, one.name) for one in fields(cls)})

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Choice:
        """Read what ``asdict`` wrote."""
        expected = Expected(**kept["expected"])
        return cls(**{**kept, "expected": expected, "notes": tuple(kept["notes"])})


class _PublicSide:
    """All that the planner sees of a study: facts, as a ledger leaves them, and public test records.

    ``goal``: instead of the file's.
    ``levels``: ε of levels, instead of the file's.

    Attributes: ``facts``; ``X_test``; ``spend``: as the planner takes it; ``notes``: what a ledger leaves.
    """

    def __init__(
        self,
        config: StudyConfig,
        goal: str | None = None,
        levels: Mapping[str, float] | None = None,
    ) -> None:
        if goal is not None and goal not in MEASURES:
            raise InputError(f"--optimise must be one of {', '.join(MEASURES)}, got {goal!r}")
        levels = levels or {}
        wanted = _with_levels(config, levels) if levels else config
        if place_of(config) is None:
            refuse_to_spend(config)
        data = _read(config)
        people = PeopleOnLedger.of_study(config, data)
        remembered = people.place is not None and not people.why_not
        found = people.found(data.people) if remembered else None
        if levels and (
            found is None or found[1] is None
        ):  # no ledger knows what was granted until now
            data = _read(wanted)
        facts = _instead(facts_of(config, data, goal), levels)
        through = fitted_view(network_of(config), data.X_public, "[features]")
        facts = replace(facts, X_public=through.of(facts.X_public))
        self.X_test = None if data.X_test is None else through.of(data.X_test)
        self.facts = facts if found is None else _on_ledger(people, found, data, facts, levels)
        self.spend = _to_spend(config, data)
        self.notes: tuple[str, ...] = ()
        if self.facts is not facts:
            self.notes = (
                f"chosen and predicted with what the ledger leaves: {self.facts.n_people:,} of "
                f"{facts.n_people:,} people take part, with "
                f"{100 * self.facts.signal / facts.signal:.0f} % of the "
                "signal that all of them granted",
            )
        _require_fit(config, self.facts)

    def kept_in(self, rehearsals: KeptRehearsals) -> KeptRehearsal:
        """Say where the choice is kept."""
        return rehearsals.on("choice", self.facts, self.X_test, self.spend)

    def rehearsed(self, observer: Observer) -> Recommendation:
        """Let the planner choose."""
        return recommend_from(self.facts, self.X_test, observer.note, self.spend)


def recommended(
    config: StudyConfig,
    observer: Observer,
    goal: str | None = None,
    levels: Mapping[str, float] | None = None,
    rehearsals: KeptRehearsals | None = None,
) -> Recommendation:
    """Let the planner choose for a study.

    ``goal``: instead of the file's.
    ``levels``: ε of levels, instead of the file's.
    ``rehearsals``: keeps what was chosen, for a run.
    """
    seen = _PublicSide(config, goal, levels)
    found = seen.rehearsed(observer)
    if rehearsals is not None:
        seen.kept_in(rehearsals).keep(asdict(Choice.of(found)))
    return replace(found, notes=(*seen.notes, *found.notes))


def _chosen(config: StudyConfig, observer: Observer, rehearsals: KeptRehearsals) -> Choice:
    """Take what a plan has chosen of the same facts, or choose."""
    seen = _PublicSide(config)
    found = seen.kept_in(rehearsals).taken(Choice.from_json)
    found = Choice.of(seen.rehearsed(observer)) if found is None else found
    return replace(found, notes=(*seen.notes, *found.notes))


def _read(config: StudyConfig) -> StudyData:
    return load_streamed_data(config) if config.run.streaming else load_study_data(config)


def _instead(facts: Facts, levels: Mapping[str, float]) -> Facts:
    """Let levels mean another ε; those that nobody has change nothing."""
    groups = {
        name: Budget(levels.get(name, budget.epsilon), budget.delta)
        for name, budget in facts.groups.items()
    }
    return replace(facts, groups=groups)


def require_gaussian(ledger: Ledger) -> None:
    """Refuse a ledger of pure ε, where noise is Gaussian, and say which keys go with it."""
    if ledger.lifetime.promise is Promise.PURE:
        raise InputError(
            f"the ledger {ledger} promises pure ε, and direct training has Gaussian noise, which has none: "
            'set method.kind = "pate" and aggregation.aggregator = "lnmax", whose noise is Laplace, or name '
            "another ledger (ledger.url)"
        )


def _on_ledger(
    people: PeopleOnLedger,
    found: tuple[Place, Ledger | None],
    data: StudyData,
    facts: Facts,
    levels: Mapping[str, float],
) -> Facts:
    """Take what people have left, where a ledger knows of other releases: as a run will.

    ``levels``: what if they meant this ε? What was used stays used.
    ``found``: where the ledger is; None: there is none yet.
    """
    place, opened = found
    if opened is None:  # everybody has everything, unless another ledger knows them
        people.looked_up(place, data.people, None)
        return facts

    require_gaussian(opened)

    def decide(left: Balance, _: Ledger | None) -> Allowance:
        return allow(left, None, data.people)

    ledger = begin(people, decide, None, Observer(), DPSGDSpending, found)
    if ledger is None or ledger.left is None or ledger.left.untouched.all():
        return facts
    budgets = data.allowed(ledger.spending).budgets
    raised = ledger.spending.allowance.if_raised(data.people, levels)
    return replace(facts, groups={**budgets.groups, **raised}, sizes=budgets.public_sizes())


def _to_spend(config: StudyConfig, data: StudyData) -> float | str:
    """Say which share of what people have left may be spent: without a ledger, all that they grant."""
    if place_of(config) is None or why_not(config, data):
        refuse_to_spend(config)
        return 1.0
    return AUTO if config.privacy.spend is None else config.privacy.spend


def _require_fit(config: StudyConfig, facts: Facts) -> None:
    """Refuse keys of the file that do not go with a way to learn that may be chosen."""
    for candidate in (direct(facts), votes(facts)):
        if candidate is not None:
            with_sections(config, candidate.sections)


def facts_of(config: StudyConfig, data: StudyData, goal: str | None = None) -> Facts:
    """Take the public side of a study's records."""
    shares = config.student.class_shares
    return Facts.of(
        data.budgets,
        classes=data.classes,
        X_public=data.X_public,
        known=data.known_codes,
        n_records=len(data.X),
        goal=config.student.goal if goal is None else goal,
        neighbours=Neighbours.ADD_OR_REMOVE,
        class_shares=None if shares is None else as_class_shares(shares, data.classes),
        seed=config.study.seed,
    )


def settled_method(
    config: StudyConfig,
    folder: StudyFolder,
    observer: Observer,
    *,
    keep: bool = False,
    refuse_useless: bool = False,
    rehearsals: KeptRehearsals | None = None,
) -> StudyConfig:
    """Fill in what a study leaves open: as its folder remembers, or as the planner chooses now.

    ``folder``: where the study is, or will be, kept.
    ``keep``: whether to write down there what is chosen now.
    ``refuse_useless``: whether to stop where the model would be no better than always giving one answer.
    ``rehearsals``: keeps what a plan has chosen; default: it is chosen now.
    """
    if not config.is_open:
        return config
    if keep:
        require_ready(config, folder)
    if folder.is_begun():
        return _as_remembered(config, folder)
    found = _chosen(config, observer, KeptRehearsals() if rehearsals is None else rehearsals)
    said = [line for line in found.notes if not (refuse_useless and line == found.verdict)]
    for line in (f"chosen: {found.method}. Expected: {found.expected.in_words()}", *said):
        observer.note(line)
    if refuse_useless and found.verdict:
        raise InputError(f"{found.verdict}. Nothing was spent: change that, or run with --anyway")
    if keep:
        folder.open()
        text = _HEAD.format(name=config.title()) + sections_text(found.sections, found.reasons)
        keep_foretold(folder, found.expected)
        write_durably(folder.path / CHOSEN, text.encode())
    return with_sections(config, found.sections)


def _as_remembered(config: StudyConfig, folder: StudyFolder) -> StudyConfig:
    """Fill in what was chosen when a study was begun; another choice would make it another study."""
    path = folder.path / CHOSEN
    way_out = "restore it from a backup, or choose another folder with --out (a release of its own)"
    if not path.exists():
        raise StudyMismatchError(
            f"{path} is missing, which says how the study in {folder.path} is learnt: {way_out}"
        )
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # of TOML, or of UTF-8
        raise StudyMismatchError(f"{path} cannot be read ({error}): {way_out}") from None
    if "method" not in sections or not all(isinstance(keys, dict) for keys in sections.values()):
        raise StudyMismatchError(f"{path} holds no sections, or not [method]: {way_out}")
    try:
        return with_sections(config, sections)
    except InputError as error:
        raise StudyMismatchError(f"{path} was changed ({error}): {way_out}") from None


def with_sections(config: StudyConfig, sections: Mapping[str, Mapping[str, Any]]) -> StudyConfig:
    """Put chosen sections beside those that were given, and check them together."""
    names = config.given.keys() | sections.keys()
    merged = {
        name: {**sections.get(name, {}), **config.given.get(name, {})} for name in sorted(names)
    }
    merged["method"] = dict(sections["method"])
    if "model" not in merged.get("student", {}):  # no student: shares have told what they can
        merged.get("student", {}).pop("class_shares", None)
    made = config_from(merged, config.folder)
    privacy = replace(config.privacy, spend=made.privacy.spend)
    return replace(made, run=config.run, ledger=config.ledger, privacy=privacy)


def sections_text(sections: Mapping[str, Mapping[str, Any]], reasons: Mapping[str, str]) -> str:
    """Write sections as TOML, each key below its reason."""
    lines = []
    for section, keys in sections.items():
        lines.append(f"\n[{section}]")
        for key, value in keys.items():
            if why := reasons.get(f"{section}.{key}"):
                lines.append(f"# {why}")
            lines.append(f"{key} = {toml_text(value)}")
    return "\n".join(lines) + "\n"


def _with_levels(config: StudyConfig, levels: Mapping[str, float]) -> StudyConfig:
    known = config.privacy.levels
    if known is None:
        raise InputError(
            "--what-if names levels, and this study has none (people gave ε as numbers): leave it out"
        )
    unknown = sorted(set(levels) - set(known))
    if unknown:
        raise InputError(
            f"--what-if: there is no level {unknown[0]!r}: allowed are {', '.join(known)}"
        )
    return replace(config, privacy=replace(config.privacy, levels={**known, **levels}))
