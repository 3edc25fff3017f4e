"""Explanations of how teachers vote, in plain language."""

from __future__ import annotations

AGGREGATORS = {
    "lnmax": (
        "Noisy maximum (LNMax)",
        "The teachers' votes for each class are added up, Laplace noise of scale 1/γ is added to every "
        "class, and the class with the largest noisy total becomes the label. Every query is answered "
        "and paid for.",
    ),
    "pfmax": (
        "Permute-and-flip (noisy maximum with exponential noise)",
        "The teachers' votes for each class are added up, exponential noise of mean 1/γ is added to every "
        "class, and the class with the largest noisy total becomes the label. Every query is answered "
        "and paid for.",
    ),
    "expmax": (
        "Exponential mechanism (noisy maximum with Gumbel noise)",
        "The teachers' votes for each class are added up, Gumbel noise of scale 1/γ is added to every "
        "class, and the class with the largest noisy total becomes the label. Every query is answered "
        "and paid for.",
    ),
    "gnmax": (
        "Gaussian noisy maximum (GNMax)",
        "The teachers' votes for each class are added up, Gaussian noise of standard deviation σ is "
        "added to every class, and the class with the largest noisy total becomes the label. Every "
        "query is answered and paid for.",
    ),
    "confident": (
        "Confident Gaussian noisy maximum (Confident-GNMax)",
        "First a check: the largest vote total plus Gaussian noise σ_T must reach the threshold T, so "
        "that only queries on which the teachers agree are answered. Then fresh Gaussian noise σ is "
        "added to every class and the largest noisy total becomes the label. The check is paid for at "
        "every query, the answer where there is one.",
    ),
    "interactive": (
        "Interactive Gaussian noisy maximum (Interactive-GNMax)",
        "First a check: the teachers' votes are compared with what the student already believes, and "
        "only where they differ by the threshold T, after Gaussian noise σ_T, do the teachers answer, "
        "with fresh Gaussian noise σ. Otherwise a student that is sure enough keeps its own label, at no "
        "further cost. The check is paid for at every query, the answer where there is one.",
    ),
}

PARAMETERS = {
    "threshold": ("T", "votes that the check asks for", "times"),
    "sigma_threshold": ("σ_T", "standard deviation of the check's noise", "times"),
    "sigma": ("σ", "standard deviation of the answer's noise", "times"),
    "gamma": ("γ", "inverse scale of the noise", "divided"),
    "confidence": ("", "how sure a student must be to keep its own label", "as it is"),
    "refit_every": ("", "labels between two refits of the student", "as it is"),
}

PERSONALISATIONS = {
    "uniform": (
        "Everybody is treated alike: each person is taught to one teacher, and all votes weigh the same.",
        "The strictest budget ends the voting for all, so more generous budgets are not used up.",
    ),
    "upsampling": (
        "The larger a person's budget, the more teachers see that person's records; all votes weigh the "
        "same.",
        "A person can move as many votes as there are teachers who saw the person, and pays for just "
        "that many.",
    ),
    "weighting": (
        "Each level has teachers of its own, and the larger its budget, the more their votes weigh.",
        "A person can move one vote of that weight, and pays for just that weight.",
    ),
    "vanishing": (
        "Each level has teachers of its own, and the smaller its budget, the more often they stay away from "
        "a vote; who votes when is public and does not depend on data.",
        "A person pays only for the queries in which that person's teacher takes part.",
    ),
    "bagging": (
        "Everybody is treated alike: all people are split among teachers several times over, each person is "
        "taught to one teacher of each split, and all votes weigh the same.",
        "A person can move one vote of each split, and pays for just that; the strictest budget ends the "
        "voting for all.",
    ),
    "hybrid": (
        "The larger a person's budget, the more teachers see that person's records and the more these "
        "teachers' votes weigh.",
        "A person can move the weights of all teachers who saw the person, and pays for just their sum.",
    ),
}

RULES = {
    "exact": (
        "in proportion to the Gaussian-DP parameter μ(ε, δ) that a budget allows, with which budgets "
        "run out together, up to rounding"
    ),
    "budget": "in proportion to ε",
    "sqrt": "in proportion to √ε",
    "algorithm1": "Algorithm 1 of Boenisch et al. (2023)",
    "algorithm2": "Algorithm 2 of Boenisch et al. (2023), as printed",
    "algorithm3": "Algorithm 3 of Boenisch et al. (2023), as printed",
    "thesis": "half the square of ε/ε_max, 1 for the most generous, as in Mühl's experiments (2021)",
    "footnote2": "the fourth power of ε/ε_max, as in the experiments of Boenisch et al. (2023)",
}

RISK_FROM_LABELS = (
    "Labels alone are charged. With a share α of false alarms, the best test finds at most what (ε, δ) says: "
    "the shares δ + e^ε·α and 1 − e^−ε·(1 − δ − α) (Dong, Roth & Su 2022, Proposition 2.5). The noise is "
    "Gaussian, and whatever the account allows is also within a μ of Gaussian differential privacy, a little "
    "above that of an account of all noisy counts: it finds at most the share Φ(Φ⁻¹(α) + μ), too "
    "(Definition 2.6). The smallest of these stands."
)

RELEASED = {
    "labels": "its label",
    "histogram": "the noisy counts of all classes, and the noisy value of each check",
}

LABEL_PRICE = {
    True: "its label alone, as set",
    False: "its label alone: these budgets pay for more answers that way, which was decided from public "
    "numbers before the first query",
}
"""What an answer is charged, by whether somebody set it so."""

ANSWERS = (
    {
        "released": "Labels released",
        "leave": "labels",
        "many": "Labels",
        "share": "Share of the labels",
        "right": "Labels right",
        "figure": "labels released, by class",
        "caption": "Labels are noisy: they can be wrong.",
        "note": "of the released labels that can be checked; the student learnt from them, and is judged on "
        "other records",
    },
    {
        "released": "Histograms released",
        "leave": "noisy histograms, with their labels,",
        "many": "Histograms",
        "share": "Share of the histograms",
        "right": "Largest noisy count right",
        "figure": "histograms released, by class of the largest noisy count",
        "caption": "Of each released histogram, the class whose noisy count is the largest. One histogram "
        "says little by itself; the student reads all counts of all of them together.",
        "note": "of single histograms, each of which is faint: not how right the student is, which reads all "
        "of them together",
    },
)
"""Names of what was released, by whether it is histograms."""

CONFIDENT = "Classes on which teachers disagree get fewer answers."

EFFICIENCY = (
    "This is the share of all budgets granted (in units of μ, which add up) that this plan can turn into "
    "votes; the rest is left over with levels whose budget is larger than their influence could use."
)

STOPS = {
    "queries": "Voting stopped because all queries had been asked: one for each public record, or as many as "
    "max_queries.",
    "labels": "Voting stopped because the wanted number of labels had been released.",
    "interrupted": "Voting was interrupted from outside; what had been charged until then is accounted for.",
}
"""Why voting stopped, but for budgets."""

REFERENCES = (
    "N. Papernot, M. Abadi, Ú. Erlingsson, I. Goodfellow, K. Talwar: Semi-supervised Knowledge Transfer "
    "for Deep Learning from Private Training Data. ICLR 2017. arXiv:1610.05755 (PATE, LNMax)",
    "N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar, Ú. Erlingsson: Scalable Private "
    "Learning with PATE. ICLR 2018. arXiv:1802.08908 (GNMax, Confident- and Interactive-GNMax)",
    "F. Boenisch, C. Mühl, R. Rinberg, J. Ihrig, A. Dziedzic: Individualized PATE: Differentially "
    "Private Machine Learning with Individual Privacy Guarantees. PoPETs 2023 (upsampling, weighting, "
    "vanishing)",
    "J. Dong, A. Roth, W. J. Su: Gaussian Differential Privacy. Journal of the Royal Statistical Society "
    "B 84, 2022 (μ, and its conversion to ε and δ)",
    "A. Smith, A. Thakurta: Fully Adaptive Composition for Gaussian Differential Privacy. 2022. "
    "arXiv:2210.17520 (stopping before a budget is exceeded)",
    "A. Koskela, M. Tobaben, A. Honkela: Individual Privacy Accounting with Gaussian Differential "
    "Privacy. ICLR 2023. arXiv:2209.15596 (individual accounts)",
)
