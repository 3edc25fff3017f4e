"""Settings of direct training that every face shares: study files, the estimators, the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from collegium.errors import InputError
from collegium.parameters import Settings, same_as, setting

MOST_SIZE = 1e6
"""Of steps and norms: what is larger is a slip of the pen."""
FULL_BATCH, SAMPLE, SCALE = "full-batch", "sample", "scale"
COMBINE, JUDGE = "combine", "judge"
PUBLIC, MOMENTUM = "public", "momentum"
MOST_COMPONENTS, WHITENING = 800, 0.75
"""Principal components of public records, where nothing else is said: how many at most, how far whitened."""


@dataclass(frozen=True)
class DPSGDSettings(Settings):
    """How a model is trained with DP-SGD: noisy, clipped steps.

    Examples
    --------
    >>> DPSGDSettings(steps=30).sampling
    'full-batch'
    """

    sampling: str = setting(
        FULL_BATCH,
        "Who takes part in a step. full-batch: everybody, with a say in proportion to what they grant; the "
        "account is exact. sample: a random sample, in which generous people are more often. scale: a random "
        "sample, in which generous people have more say.",
        choices=(FULL_BATCH, SAMPLE, SCALE),
    )
    steps: int = setting(60, "How many steps; fixed beforehand, and paid for.", most=1_000_000)
    individual_filter: float | None = setting(
        None,
        "full-batch: take so many times the steps, with the noise of the planned ones. Everybody pays for "
        "the norm that was really used, and gives nothing more once the planned steps' worth is used up; who "
        "has how much left is secret.",
        kind="number",
        least=1,
        most=100,
        example="1.5",
    )
    rate: float | None = setting(
        None,
        "Mean probability with which somebody takes part in a step, of sample and scale.",
        kind="number",
        least=1e-4,
        below=1,
        advice="with everybody in every step, sampling is full-batch",
        example="0.1",
    )
    clip_norm: float = setting(
        0.5,
        "Norm to which the gradient of all of a person's records together is clipped.",
        above=0,
        most=MOST_SIZE,
    )
    learning_rate: float | None = setting(
        None,
        "Size of the steps. Left out: as large as the noise allows, from public numbers alone.",
        kind="number",
        above=0,
        most=MOST_SIZE,
        example="4.0",
    )
    components: int | None = setting(
        None,
        "How many principal components of the public records the model looks at, where its preprocessing "
        "makes some. Left out: as many as there is signal for, and at most those that it makes.",
        kind="whole number",
        example="200",
    )
    momentum: float = setting(0.9, "Share of a step that the next one repeats.", least=0, below=1)
    solver: str | None = setting(
        None,
        "How released gradients become a model, which costs nobody anything. public: at each tenth of the "
        "steps, the model whose gradients over unlabelled public records would be those that were released. "
        "momentum: each step goes along its gradient. Left out: public, for two classes, at least 500 "
        "public records, and budgets that are not tiny, where learning_rate is left out; else momentum.",
        kind="text",
        choices=(PUBLIC, MOMENTUM),
        example='"momentum"',
    )
    neighbours: str | None = setting(
        None,
        "Which data sets the guarantee compares. zero-out: all records of a person are there or blank. "
        "replace-one: or "
        "are others, which takes twice the noise, and full-batch. Left out: as the ledger promises, or else "
        "zero-out.",
        kind="text",
        choices=("zero-out", "replace-one"),
        example='"replace-one"',
    )
    public_labels: str = setting(
        COMBINE,
        "What public records with known classes are for; it costs nobody anything. combine: a model of them "
        "is combined with that of the private records, weighted by how right each is, if that is better; 200 "
        "and more of a table also teach trees, whose answer is a column for the model of the private "
        "records. judge: they only tell how good the model is.",
        choices=(COMBINE, JUDGE),
    )
    accountant: str = setting(
        "pld",
        "Of sample and scale: pld, from loss distributions; rdp, the moments accountant (looser).",
        choices=("pld", "rdp"),
    )
    section: ClassVar[str] = "dpsgd"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.rate is None) != (self.sampling == FULL_BATCH):
            raise InputError(
                f"rate goes with sampling = {SAMPLE!r} or {SCALE!r}, got rate = {self.rate!r} with "
                f"{self.sampling!r}: give both, or neither"
            )
        if self.solver == PUBLIC and self.learning_rate is not None:
            raise InputError(
                f"learning_rate = {self.learning_rate:g} was given with solver = {PUBLIC!r}, which takes no "
                f"steps along gradients: leave one of both out, or use solver {MOMENTUM!r}"
            )
        if self.solver == PUBLIC and self.individual_filter is not None:
            raise InputError(
                f"individual_filter = {self.individual_filter:g} was given with solver = {PUBLIC!r}, and "
                f"with a filter people leave from step to step: leave one of both out, or use solver "
                f"{MOMENTUM!r}"
            )
        if self.neighbours == "replace-one" and self.sampling != FULL_BATCH:
            raise InputError(
                f"neighbours = 'replace-one' was given with sampling = {self.sampling!r}, which is accounted "
                f"for where records are there or blank: use sampling {FULL_BATCH!r}, or leave neighbours out"
            )
        if self.individual_filter is not None and self.sampling != FULL_BATCH:
            raise InputError(
                f"individual_filter = {self.individual_filter:g} was given with sampling = "
                f"{self.sampling!r}, for whose samples no such account is valid: use sampling "
                f"{FULL_BATCH!r}, or leave individual_filter out"
            )

    @property
    def n_steps_taken(self) -> int:
        """How many steps are taken: those that are planned, or with a filter more."""
        return (
            self.steps
            if self.individual_filter is None
            else math.ceil(self.steps * self.individual_filter)
        )


@dataclass(frozen=True)
class Sampling(Settings):
    """Who takes part in a step of direct training, and how that is accounted for.

    Parameters
    ----------
    kind : {"full-batch", "sample", "scale"}
        Everybody, with a say in proportion to what they grant; or a random sample, in which generous people
        are more often (``sample``), or have more say (``scale``).
    rate : float, optional
        Mean probability with which somebody takes part in a step, of ``sample`` and ``scale``.
    individual_filter : float, optional
        Of ``full-batch``: take so many times the steps, at the same price and noise. Everybody pays for the
        norm that was really used, and gives nothing more once that is used up. Default: no filter.
    accountant : {"pld", "rdp"}
        Of ``sample`` and ``scale``: from loss distributions, or the moments accountant (looser).

    Examples
    --------
    >>> Sampling("sample", rate=0.1)
    Sampling(kind='sample', rate=0.1, individual_filter=None, accountant='pld')
    """

    kind: str = same_as(DPSGDSettings, "sampling")
    rate: float | None = same_as(DPSGDSettings, "rate")
    individual_filter: float | None = same_as(DPSGDSettings, "individual_filter")
    accountant: str = same_as(DPSGDSettings, "accountant")
    section: ClassVar[str] = "sampling"

    def settings(self) -> dict[str, Any]:
        """Say it as the settings of :class:`DPSGDSettings`."""
        given = self.get_params()
        return {"sampling": given.pop("kind"), **given}
