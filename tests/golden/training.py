"""Direct training as it is recorded: plans, models, accounts and what was spent, to the last bit.

Noise and samples are seeded, but for what stands on a ledger, which takes none from a seed: of it, amounts
are recorded and no model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from cases import NOISE_SEED, SEED
from drivers import Entry
from faces import (
    as_recorded,
    command,
    cut_off,
    json_of,
    ledgers_in,
    of_today,
    parameters_of,
    parted,
    plain,
    toml_of,
)
from few_people import (
    KINDS,
    LEVELS,
    MEASURED,
    private_animals,
    public_animals,
    test_animals,
    write_animals,
)
from record_forms import array_of

import collegium as cg

FAST = {"accountant": "rdp"}
SAMPLED = {"sampling": "sample", "rate": 0.2, **FAST}

#: Settings of the estimators, and of a study's section on direct training.
SETTINGS: dict[str, dict[str, Any]] = {
    "full-batch": {},
    "full-batch-replaced": {"neighbours": "replaced"},
    "few-components": {"components": 2, "momentum": 0.5},
    "sample": SAMPLED,
    "scale": {**SAMPLED, "sampling": "scale", "learning_rate": 1.5},
    "filter": {"filter": 1.5},
}
ALL_LEVELS = {**LEVELS, "nothing": 0.0, "all": float("inf")}


def classifier(name: str, folder: Path) -> Entry:
    """Fit a classifier on public and private records."""
    return _fitted_classifier(SETTINGS[name], y_public=False)


def public_start(name: str, folder: Path) -> Entry:
    """Start at a model of public records, with levels that grant nothing and everything."""
    return _fitted_classifier({}, y_public=True, levels=ALL_LEVELS)


def without_public(name: str, folder: Path) -> Entry:
    """Take features as they are."""
    return _fitted_classifier({"preprocessing": None}, public=False)


def balanced(name: str, folder: Path) -> Entry:
    """Be right about each class alike."""
    return _fitted_classifier({"goal": "balanced"})


def _budgets(levels: Mapping[str, float] = LEVELS) -> tuple[Any, Any]:
    private = private_animals()
    level = private["level"].to_numpy()
    if len(levels) > 2:  # some of those who granted something grant nothing, or everything
        level = np.where(np.arange(len(level)) % 12 < 2, "nothing", level)
        level = np.where(np.arange(len(level)) % 12 > 9, "all", level)
    return private, cg.Policy(dict(levels)).assign(level, owners=private["who"])


def _fitted_classifier(
    settings: Mapping[str, Any],
    public: bool = True,
    y_public: bool = False,
    levels: Mapping[str, float] = LEVELS,
) -> Entry:
    private, budgets = _budgets(levels)
    model = cg.DPSGDClassifier(
        **parameters_of({"steps": 8, "noise_seed": NOISE_SEED, "classes": KINDS, **settings}),
        random_state=SEED,
        n_jobs=1,
    )
    records = public_animals()
    model.fit(
        private[MEASURED],
        private["kind"],
        budgets=budgets,
        **({"X_public": records[MEASURED]} if public else {}),
        **({"y_public": records["kind"]} if y_public else {}),
    )
    return {
        **_learnt(model),
        "probabilities": array_of(model.predict_proba(test_animals()[MEASURED])),
        "predicted": array_of(np.searchsorted(KINDS, model.predict(test_animals()[MEASURED]))),
    }


def regressor(name: str, folder: Path) -> Entry:
    """Fit a regression between public bounds."""
    private, budgets = _budgets()
    model = cg.DPSGDRegressor(bounds=(-3, 8), steps=8, noise_seed=NOISE_SEED, random_state=SEED)
    model.fit(
        private[["b", "c"]], private["a"], budgets=budgets, X_public=public_animals()[["b", "c"]]
    )
    return {**_learnt(model), "predicted": array_of(model.predict(test_animals()[["b", "c"]]))}


def _learnt(model: Any) -> Entry:
    linear = model.model_[-1]
    linear = linear[-1] if hasattr(linear, "steps") else linear
    linear = getattr(linear, "model_", linear)
    learnt = {
        name: array_of(getattr(linear, name))
        for name in ("coef_", "intercept_")
        if hasattr(linear, name)
    }
    said = as_recorded(model.privacy_.to_dict())
    return plain(
        {
            **learnt,
            "noise": model.noise_,
            "steps_taken": model.steps_taken_,
            "plan": plan_of(model.plan_),
            "spent": spent_of(model.privacy_),
            "private_noise": said["private_noise"],
        }
    )  # fmt: skip


def loss_distributions(name: str, folder: Path) -> Entry:
    """Plan by loss distributions, which takes seconds for more than one level."""
    budgets = cg.Policy({"high": 2.0}).assign(["high"] * 120)
    how = of_today({"kind": "sample", "rate": 0.1, "accountant": "pld"})
    return plain(plan_of(cg.plan_dpsgd(budgets.groups, budgets.public_sizes(), steps=1, **how)))


def plan_of(plan: Any) -> Entry:
    """Write the numbers of a plan."""
    return {
        "steps": plan.steps,
        "noise": plan.noise,
        "divisor": plan.divisor,
        "groups": {
            name: [group.owners, group.rate, group.clip, group.utilisation]
            for name, group in plan.groups.items()
        },
    }


def spent_of(privacy: Any) -> Entry:
    """Write what each group granted and paid."""
    table = privacy.by_group()
    return {
        str(name): [one for one in row if isinstance(one, float)]
        for name, *row in table.itertuples()
    }


def released_student(name: str, folder: Path) -> Entry:
    """Let a student learn from what the model believes."""
    private, budgets = _budgets()
    model = cg.DPSGDClassifier(
        steps=8, noise_seed=NOISE_SEED, classes=KINDS, random_state=SEED, n_jobs=1
    )
    model.fit(
        private[MEASURED], private["kind"], budgets=budgets, X_public=public_animals()[MEASURED]
    )
    student = cg.students.GaussianProcessStudent()
    taught, choice = model.teach(student, public_animals()[MEASURED])
    return {
        "better": bool(choice.student),
        "probabilities": array_of(taught.predict_proba(test_animals()[MEASURED])),
    }


# --- networks ---------------------------------------------------------------------------------------------


def network(name: str, folder: Path) -> Entry:
    """Train a small network of PyTorch for a few steps."""
    import torch
    from torch import nn

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(3)
        made: dict[str, Callable[[], nn.Module]] = {
            "rows": lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)),
            "images": lambda: nn.Sequential(
                nn.Conv2d(1, 4, 3, padding=1), nn.Tanh(), nn.GroupNorm(2, 4), nn.AvgPool2d(2),
                nn.Flatten(), nn.Linear(16, 3),
            ),
            "augmented": lambda: nn.Sequential(nn.Linear(6, 3)),
        }  # fmt: skip
        shape = (1, 4, 4) if name == "images" else (6,)
        module, generator = made[name](), torch.Generator().manual_seed(5)
        n = 120
        X = torch.randn((n, *shape), generator=generator)
        y = torch.randint(3, (n,), generator=generator)
        policy = cg.Policy(dict(LEVELS))
        budgets = policy.assign(
            np.where(np.arange(n) % 4 < 2, "high", "low"),
            owners=[f"p{one // 2}" for one in range(n)],
        )
        kind = {"rows": {"kind": "scale", "rate": 0.2, **FAST}}
        how = kind.get(name, {})
        plan = cg.plan_dpsgd(budgets.groups, budgets.public_sizes(), steps=6, **of_today(how))
        optimiser = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.5)
        augment = {"augment": _turned, "augmentations": 2} if name == "augmented" else {}
        charged: list[int] = []
        steps = cg.individual_dpsgd(
            module, optimiser, (X, y), plan, budgets=budgets, max_grad_norm=1.0, charge=charged.append,
            noise_seed=NOISE_SEED, **augment,
        )  # fmt: skip
        taken = list(steps)
        return plain(
            {
                "parameters": array_of(
                    np.concatenate([one.detach().numpy().ravel() for one in module.parameters()])
                ),
                "plan": plan_of(plan),
                "charged": charged,
                "taken": taken,
                "spent": dict(steps.epsilon_spent()),
            }
        )
    finally:
        torch.set_num_threads(threads)


def _turned(record: Any) -> Any:
    return record.flip(-1)


# --- studies ----------------------------------------------------------------------------------------------

SECTIONS: dict[str, dict[str, Any]] = {
    "study": {"name": "animals", "seed": SEED},
    "data": {
        "private": "private.csv",
        "public": "public.csv",
        "test": "test.csv",
        "target": "kind",
        "owner": "who",
        "classes": KINDS,
    },
    "privacy": {"column": "level", "levels": LEVELS},
    "method": {"kind": "sgd"},
    "descent": {"steps": 8, "noise": "seeded", "noise_seed": NOISE_SEED},
    "run": {"n_jobs": 1},
    "ledger": {"url": "none"},
}
STUDIES: dict[str, dict[str, dict[str, Any]]] = {
    "full-batch": {},
    "public-labels": {"descent": {"public_labels": "judge"}},
    "sample": {"descent": SAMPLED},
    "scale": {"descent": {**SAMPLED, "sampling": "scale"}},
    "filter": {"descent": {"filter": 1.5}},
    "student": {"student": {"model": "gaussian-process"}},
    "streamed": {"data": {"private": "private.parquet"}, "run": {"n_jobs": 1, "streaming": True}},
    "streamed-scale": {
        "data": {"private": "private.parquet"},
        "run": {"n_jobs": 1, "streaming": True},
        "descent": {**SAMPLED, "sampling": "scale"},
    },
}


def sections_of(more: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Put together a study's sections."""
    return {name: {**SECTIONS.get(name, {}), **more.get(name, {})} for name in {**SECTIONS, **more}}


def study(name: str, folder: Path) -> Entry:
    """Run a study, and ask all that may be asked about it afterwards."""
    write_animals(folder)
    toml = folder / "study.toml"
    toml.write_text(toml_of(sections_of(STUDIES[name])), encoding="utf-8")
    out = folder / "study"
    planned = json_of("plan", toml, "--json")
    ran = json_of("run", toml, "--json")
    model = cg.load_student(out)
    entry = {
        "planned": planned,
        "ran": ran,
        "privacy": as_recorded(json.loads((out / "release/privacy.json").read_text("utf-8"))),
        "left": json_of("account", "--left", out, "--json"),
        "exported": json_of("account", "--export", out),
    }
    return {
        **parted(entry, folder)[0],
        "probabilities": array_of(model.predict_proba(test_animals()[MEASURED])),
        "released_files": sorted(path.name for path in (out / "release").iterdir()),
    }


def killed(name: str, folder: Path) -> Entry:
    """End a run wherever it waits for the disk, and let each go on: what comes of it, and how it stands."""
    write_animals(folder)
    toml = folder / "study.toml"
    toml.write_text(toml_of(sections_of({"descent": {"steps": 3}})), encoding="utf-8")
    return cut_off(toml, _outcome, every=6)


def _outcome(out: Path) -> Entry:
    probabilities = cg.load_student(out).predict_proba(test_animals()[MEASURED])
    return {
        "left": parted(json_of("account", "--left", out, "--json"), out.parent)[0],
        "probabilities": array_of(probabilities),
    }


def ledger(name: str, folder: Path) -> Entry:
    """Fit twice on a ledger, whose amounts do not depend on noise: each takes part of what is left."""
    private, _ = _budgets()
    place, told = cg.Ledger.create(folder / "people.ledger"), []
    plans = []
    for number, share in enumerate((0.5, 1.0)):
        some = private["who"].isin([f"p{one}" for one in range(int(60 * (1 + number)))])
        few = private[some]
        budgets = cg.Policy(
            {key: share * value for key, value in LEVELS.items()} if not number else LEVELS
        )
        model = cg.DPSGDClassifier(
            **parameters_of({"steps": 4, "classes": KINDS, **({"filter": 2.0} if number else {})}),
            n_jobs=1,
        )
        model.fit(
            few[MEASURED], few["kind"], budgets=budgets.assign(few["level"], owners=few["who"]),
            X_public=public_animals()[MEASURED], ledger=place, spend=1.0,
        )  # fmt: skip
        plans.append(plan_of(model.plan_))
        told.append(spent_of(model.privacy_))
        if not number:
            place.change(cg.Policy(LEVELS).assign(few["level"], owners=few["who"]))
    return plain(
        {
            "plans": plans,
            "spent": told,
            "standings": [
                [one.level, one.budget.epsilon, one.owners, one.epsilon_spent, one.n_releases]
                for one in place.standings()
            ],
            "entries": [entry.kind for entry in place.history()],
            "verified": place.verify(),
        }
    )


ON_A_LEDGER = {
    "ledger": {"url": "people.ledger"},
    "descent": {"noise": "secure"},
    "privacy": {"spend": 1.0},
}


def ledger_study(name: str, folder: Path) -> Entry:
    """Run a study on a ledger."""
    write_animals(folder)
    sections = sections_of(ON_A_LEDGER)
    del sections["descent"]["noise_seed"]
    toml = folder / "study.toml"
    toml.write_text(toml_of(sections), encoding="utf-8")
    with ledgers_in(folder):
        assert command("ledger", "init", folder / "people.ledger")[0] == 0
        json_of("run", toml, "--json")
        said = {
            "left": json_of("account", "--left", folder / "study", "--json"),
            "shown": json_of("ledger", "show", folder / "people.ledger", "--json"),
        }
    return parted(said, folder)[0]


Driver = Callable[[str, Path], Entry]
TRAINED: dict[str, tuple[Driver, str]] = {
    **{f"training/classifier-{name}": (classifier, name) for name in SETTINGS},
    "training/classifier-public-start": (public_start, ""),
    "training/classifier-without-public": (without_public, ""),
    "training/classifier-balanced": (balanced, ""),
    "training/plan-by-loss-distributions": (loss_distributions, ""),
    "training/regressor": (regressor, ""),
    "training/student": (released_student, ""),
    **{f"training/network-{name}": (network, name) for name in ("rows", "images", "augmented")},
    **{f"training/study-{name}": (study, name) for name in STUDIES},
    "training/study-killed": (killed, ""),
    "training/ledger": (ledger, ""),
    "training/study-ledger": (ledger_study, ""),
}
