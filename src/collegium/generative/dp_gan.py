"""DP-GAN: a generator that learns from a discriminator, which learns from people by private steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget, Budgets, as_budgets
from collegium.checks import check_choice, check_number, check_positive, check_whole, shown
from collegium.data.cells import Cells
from collegium.data.frames import as_pandas
from collegium.data.schema import Schema
from collegium.data.tables import take_given
from collegium.errors import InputError
from collegium.index_alignment import refuse_other_order
from collegium.models.neural.machine import require_torch
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.personalisation.rates import plan_dpsgd
from collegium.runs.fit_inputs import count_records
from collegium.zero_and_public_budgets import has_budget, split_by_level, subset

if TYPE_CHECKING:
    from collegium.generative.dp_gan_fakes import ImageFakes, TableFakes

_NETWORKS = ("mlp", "convolutional")
_TOGETHER = 4096
_MOST_SAMPLED = 10**8
_PEOPLE = 300  # in a step, on average


class DPGAN:
    """A generative adversarial network whose discriminator learns by DP-SGD with a budget for every person.

    The discriminator tells real records from fakes; it alone meets real ones, by
    :func:`collegium.individual_dpsgd`. The generator learns from the discriminator, so that generator and
    samples are post-processing of its noisy steps: every owner of a group g is (ε_g, δ_g)-differentially
    private towards owners whose records are there or blank, whatever is sampled and however often.

    It is here because tutorials and papers have it. For tables,
    :class:`collegium.Synthesizer` is better by far at the same budgets.

    Parameters
    ----------
    records : Schema, or tuple of int
        What is public of a table: then each record is a row, and each column has the cells of
        :class:`~collegium.data.cells.Cells`. Or the shape of an image: (height, width) or
        (channels, height, width).
    classes : sequence, optional
        Of images, the public list of their classes: images are made class by class then, equally many of
        each. A table has its classes among its columns.
    bounds : tuple of float, default=(0, 1)
        Of images, the values of black and white, say (0, 255). Values outside are clipped.
    network : {"mlp", "convolutional"}
        For images, which may be up to some thousand pixels.
    hidden : int, default=64
        Units of each hidden layer. More parameters have more noise.
    noise_size : int, default=32
        Numbers that a record is made of.
    steps : int, default=1500
        Private steps of the discriminator, fixed beforehand.
    rate : float, optional
        Mean probability with which a person takes part in a step; 1 for everybody in every step. Default:
        such that 300 people are in a step on average, or all of fewer.
    discriminator_steps : int, default=1
        Private steps before the generator learns again.
    generator_steps : int, default=1
        Steps that it then takes.
    batch_size : int, default=256
        Fakes in a step.
    discriminator_rate, generator_rate : float
        Adam's learning rates.
    max_grad_norm : float, default=0.5
        Norm to which the gradient of all of a person's records is clipped, for a weight of 1.
    delta : float, default=1e-5
        Of budgets that are given as numbers.
    random_state : int, optional
        All public randomness: networks, fakes. Default: from the operating system.
    noise_seed : int, optional
        For experiments: repeats privacy noise and samples of people, and is **not private**.

    Attributes
    ----------
    plan_ : DPSGDPlan
        From public numbers alone.
    privacy_ : PrivacyStatement
        What is promised to each group, and was spent.
    generator_ : torch.nn.Module
        As trained; may be published.
    n_parameters_ : int
        Of the discriminator: coordinates of the noise.

    References
    ----------
    Goodfellow et al., *Generative adversarial networks*, NIPS 2014, arXiv:1406.2661v1. Xie, Lin, Wang, Wang &
    Zhou, *Differentially private generative adversarial network*, arXiv:1802.06739v1, Algorithm 1: noise in
    the discriminator's gradients. Bie, Kamath & Zhang, *Private GANs, revisited*, TMLR 2023,
    arXiv:2302.02936: why the discriminator needs more steps than the generator.

    Examples
    --------
    >>> import collegium as cg
    >>> import pandas as pd
    >>> sexes = {"kind": "category", "categories": ["F", "M"]}
    >>> schema = cg.Schema({"smokes": {"kind": "flag"}, "sex": sexes})
    >>> table = pd.DataFrame({"smokes": [True, False] * 100, "sex": ["F", "M"] * 100})
    >>> budgets = cg.Policy({"low": 1.0, "high": 3.0}).assign(["low", "high"] * 100)
    >>> model = DPGAN(schema, steps=20, rate=0.5, hidden=8).fit(table, budgets=budgets)
    >>> model.sample(3).columns.tolist(), {g.group: g.budget.epsilon for g in model.privacy_.groups}
    (['smokes', 'sex'], {'low': 1.0, 'high': 3.0})
    """

    plan_: DPSGDPlan
    privacy_: PrivacyStatement
    generator_: Any
    n_parameters_: int

    def __init__(
        self,
        records: Schema | Sequence[int],
        *,
        classes: Sequence[Any] | None = None,
        bounds: tuple[float, float] = (0.0, 1.0),
        network: str = "mlp",
        hidden: int = 64,
        noise_size: int = 32,
        steps: int = 1500,
        rate: float | None = None,
        discriminator_steps: int = 1,
        generator_steps: int = 1,
        batch_size: int = 256,
        discriminator_rate: float = 5e-3,
        generator_rate: float = 1e-3,
        max_grad_norm: float = 0.5,
        delta: float = 1e-5,
        random_state: int | None = None,
        noise_seed: int | None = None,
    ) -> None:
        self.records = records
        self.classes = classes
        self.bounds = bounds
        self.network = network
        self.hidden = hidden
        self.noise_size = noise_size
        self.steps = steps
        self.rate = rate
        self.discriminator_steps = discriminator_steps
        self.generator_steps = generator_steps
        self.batch_size = batch_size
        self.discriminator_rate = discriminator_rate
        self.generator_rate = generator_rate
        self.max_grad_norm = max_grad_norm
        self.delta = delta
        self.random_state = random_state
        self.noise_seed = noise_seed

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        budgets: Budgets | Budget | ArrayLike,
        X_public: Any = None,
        charge: Callable[[int], None] | None = None,
        tell: Callable[[int], None] | None = None,
    ) -> Self:
        """Train discriminator and generator.

        Parameters
        ----------
        X : table of n records, or array-like of shape (n, *shape)
            **Private.** A table is read as the schema says: nothing is said of a cell that does not fit.
        y : array-like of shape (n,), optional
            **Private.** Of images, their classes, where a list of them was given.
        budgets : Budgets, array-like of float of shape (n,), float or Budget
            Whose record is whose, and what each granted. Who granted nothing takes no part, nor do records
            of public levels.
        X_public : table, optional
            Public records: say where the edges of numbers are best placed.
        charge : callable, optional
            Called with the number of each step before anything of it is drawn, to make the charge durable.
        tell : callable, optional
            Called with the number of each step that was taken.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If a setting is not allowed, or records, classes and budgets do not fit together.
        ModelError
            If PyTorch is not installed.
        """
        require_torch()
        self._check()
        refuse_other_order(private_records=X, labels=y, budgets=budgets)
        granted = as_budgets(budgets, self.delta, count_records(X))
        if len(granted) != count_records(X):
            raise InputError(
                f"{count_records(X):,} records, but budgets of {len(granted):,}: give one for each record"
            )
        entropy = np.random.SeedSequence(self.random_state).generate_state(2)
        fakes = self._new_fakes(X_public, int(entropy[0]))
        rows = has_budget(granted)
        granted = subset(granted, rows)
        parts = split_by_level(granted)
        rows, granted = rows[parts.private], parts.budgets
        private = fakes.read(
            take_given(as_pandas(X), rows), None if y is None else np.asarray(y)[rows]
        )
        sizes = {name: size for name, size in granted.public_sizes().items() if size}
        rate = min(1.0, _PEOPLE / sum(sizes.values())) if self.rate is None else self.rate
        kind: dict[str, Any] = {} if rate == 1 else {"kind": "sample", "rate": rate}
        self.plan_ = plan_dpsgd(
            {name: granted.groups[name] for name in sizes}, sizes, steps=self.steps, **kind
        )
        from collegium.generative.dp_gan_training import Course, train

        course = Course(
            self.discriminator_rate, self.generator_rate, self.discriminator_steps, self.generator_steps,
            self.batch_size, self.max_grad_norm,
        )  # fmt: skip
        discriminator = fakes.new_discriminator(self.hidden)
        private_steps = train(
            discriminator, fakes, private, self.plan_, granted, course,
            seed=int(entropy[1]), noise_seed=self.noise_seed, charge=charge, tell=tell,
        )  # fmt: skip
        self.n_parameters_ = sum(p.numel() for p in discriminator.parameters())
        self.privacy_ = private_steps.privacy
        self.generator_ = fakes.generator.eval()
        self._fakes: TableFakes | ImageFakes = fakes
        return self

    def sample(self, n: int, *, random_state: int | None = None) -> Any:
        """Make records: post-processing, which costs nobody anything.

        Parameters
        ----------
        n : int
            How many, from 1 to 100,000,000; all are held in memory.
        random_state : int, optional
            Repeats them. Default: others each time.

        Returns
        -------
        DataFrame; or ndarray of shape (n, *shape); or both of it and the classes, shape (n,)
            For a table; for images; for images with classes.

        Raises
        ------
        InputError
            If nothing was fitted yet, or so many cannot be made.
        """
        if not hasattr(self, "_fakes"):
            raise InputError("nothing was fitted yet: call fit first")
        check_whole("n", n, most=_MOST_SAMPLED)
        rng = np.random.default_rng(random_state)
        made = [
            self._fakes.sampled(min(_TOGETHER, n - first), rng) for first in range(0, n, _TOGETHER)
        ]
        return self._fakes.written(
            [np.concatenate(parts) for parts in zip(*made, strict=True)], rng
        )

    def _new_fakes(self, X_public: Any, seed: int) -> TableFakes | ImageFakes:
        from collegium.generative.dp_gan_fakes import ImageFakes, TableFakes

        if isinstance(self.records, Schema):
            if self.classes is not None:
                raise InputError(
                    "classes were given with a schema: leave them out, a table has them in a column"
                )
            cells = Cells(self.records, X_public)
            return TableFakes(cells, noise_size=self.noise_size, hidden=self.hidden, seed=seed)
        return ImageFakes(
            _image_shape(self.records),
            self.classes,
            self.bounds,
            network=self.network,
            noise_size=self.noise_size,
            hidden=self.hidden,
            seed=seed,
        )

    def _check(self) -> None:
        check_choice("network", self.network, _NETWORKS)
        names = (
            "hidden",
            "noise_size",
            "steps",
            "discriminator_steps",
            "generator_steps",
            "batch_size",
        )
        for name in names:
            check_whole(name, getattr(self, name))
        for name in ("discriminator_rate", "generator_rate", "max_grad_norm"):
            check_positive(name, getattr(self, name))
        if self.rate is not None:
            check_number("rate", self.rate, above=0, most=1)
        if self.random_state is not None:
            check_whole("random_state", self.random_state, least=0)
        low, high = self.bounds
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError(
                f"bounds must be two finite numbers, the lower one first, got {shown(self.bounds)}: give the "
                "values of black and white, such as (0, 255)"
            )


def _image_shape(given: Any) -> tuple[int, ...]:
    sizes = tuple(given) if isinstance(given, tuple | list) else ()
    if len(sizes) not in (2, 3):
        raise InputError(
            f"records must be a Schema, or the shape of an image, got {shown(given)}: give (height, width) "
            "or (channels, height, width)"
        )
    for size in sizes:
        check_whole("each side of an image", size)
    return tuple(int(size) for size in sizes)
