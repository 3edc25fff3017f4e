"""Explanations that hold however something was learnt, in plain language."""

from __future__ import annotations

MEMBERS = {
    "owner": ("person", "people", "person"),
    "teacher": ("teacher", "teachers", "teacher's data"),
    "party": ("party", "parties", "party"),
}
"""One and many of those whose budgets are shown, by the unit, and what every ε is about."""

BUDGETS = (
    "Every person chose a level, and each level has a budget: a limit (ε) on what anybody can learn about "
    "one person from everything that is published here, together. The smaller ε, the stronger the promise."
)
RISK = (
    "Think of somebody who sees everything that is published here, knows everybody else's records, and wants "
    "to find out about one person. Whatever they compute errs in two ways: it accuses people wrongly (false "
    "alarms), and it misses people. The fewer wrong accusations they accept, the fewer people they find; the "
    "budget says how few.",
    "δ bounds how much probability may escape the ε limit. It is not the chance that somebody is exposed. "
    "The privacy loss itself can exceed ε far more often than δ.",
)
RISK_FROM = {
    True: "The noise is Gaussian, so a budget (ε, δ) stands for the number μ that solves "
    "δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2). With a share α of false alarms, the best test finds at most the "
    "share Φ(Φ⁻¹(α) + μ) (Dong, Roth & Su 2022, Definition 2.6).",
    False: "With a share α of false alarms, the best test finds at most the share δ + e^ε·α, and, where the "
    "guarantee is worst-case, at most 1 − e^−ε·(1 − δ − α) (Dong, Roth & Su 2022, Proposition 2.5).",
}
"""How the risk follows from a budget, by whether the noise is Gaussian."""

GAUSSIAN_EPSILON = "ε then solves δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) (Dong, Roth & Su 2022)."

AUC = (
    "how often a record of a class gets a higher probability of it than a record of another class; guessing "
    "gives 0.5"
)

CALIBRATION = (
    "how far the {}'s probabilities are, on average, from how often it is right; 0 is best"
)

KEPT_IN_VAULT = (
    "kept in the vault: under a data-dependent guarantee the amount is computed from the raw votes and "
    "would itself reveal something about the people"
)


def not_covered(chosen: str, outside: str, learns: str) -> tuple[tuple[str, str], ...]:
    """Say what no guarantee covers.

    ``chosen``: what must not be chosen by looking at private data.
    ``outside``: what of the run must not be seen, in a sentence.
    ``learns``: what may find out a fact about people in general.
    """
    return (
        (
            "Budgets are public.",
            "Levels, how many people chose each, weights and all settings are treated as known to everybody. "
            "The guarantee does not hide which level a person chose.",
        ),
        (
            "Budgets may go together with the data.",
            "If, for instance, sick people choose stricter levels, knowing somebody's level tells something "
            "about that person, whatever noise is added here.",
        ),
        (
            "Choices made by looking at private data.",
            f"{chosen} must come from public data, simulation or experience. Tuning on the private records "
            "would cost budget, too, and is not in this account.",
        ),
        (
            "Side channels.",
            "Running times, memory, logs of the machine and access to the vault are outside the mathematics. "
            f"{outside}".strip(),
        ),
        (
            "Facts about people in general.",
            f"{learns} that smokers fall ill more often, and this then holds for a smoker who never took "
            "part. Differential privacy limits what taking part adds.",
        ),
    )


def repeated(what: str, is_private: bool) -> str:
    """Say what another run would give."""
    seeded = "" if is_private else " (not here: this noise was seeded)"
    return (
        f"To repeat the run, use the settings and versions above. The {what} will differ, because the noise "
        f"of a release is fresh each time{seeded}."
    )
