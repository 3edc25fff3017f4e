"""The classic private mechanisms, each with its theorem, its neighbours, its price and its warnings.

A mechanism takes numbers and public settings, and returns a value that may be shown beside the event that
says what it cost an owner of each cohort. Noise is exactly rounded, choices are drawn exactly.
"""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOMES = {
    "collegium.mechanisms.basics": [
        "above_threshold",
        "gaussian",
        "gaussian_sigma",
        "laplace",
        "randomised_response",
        "response_shares",
    ],
    "collegium.mechanisms.partitioning": [
        "Partition",
        "in_parts",
        "privacy_aware",
        "utility_based",
        "wasted",
    ],
    "collegium.mechanisms.personalised": [
        "count_distances",
        "median_distances",
        "personalised_exponential",
        "stretching",
        "utility_aware",
    ],
    "collegium.mechanisms.quantiles": ["weighted_quantile"],
    "collegium.mechanisms.released": ["Released"],
    "collegium.mechanisms.sampling": ["Sampled", "sample", "sampled_count"],
    "collegium.mechanisms.selection": [
        "choose",
        "exponential",
        "permute_and_flip",
        "report_noisy_max",
    ],
    "collegium.noise.sources": ["SecureNoise", "SeededNoise"],
}

if TYPE_CHECKING:
    from collegium.mechanisms.basics import (
        above_threshold,
        gaussian,
        gaussian_sigma,
        laplace,
        randomised_response,
        response_shares,
    )
    from collegium.mechanisms.partitioning import (
        Partition,
        in_parts,
        privacy_aware,
        utility_based,
        wasted,
    )
    from collegium.mechanisms.personalised import (
        count_distances,
        median_distances,
        personalised_exponential,
        stretching,
        utility_aware,
    )
    from collegium.mechanisms.quantiles import weighted_quantile
    from collegium.mechanisms.released import Released
    from collegium.mechanisms.sampling import Sampled, sample, sampled_count
    from collegium.mechanisms.selection import (
        choose,
        exponential,
        permute_and_flip,
        report_noisy_max,
    )
    from collegium.noise.sources import SecureNoise, SeededNoise
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "Partition",
    "Released",
    "Sampled",
    "SecureNoise",
    "SeededNoise",
    "above_threshold",
    "choose",
    "count_distances",
    "exponential",
    "gaussian",
    "gaussian_sigma",
    "in_parts",
    "laplace",
    "median_distances",
    "permute_and_flip",
    "personalised_exponential",
    "privacy_aware",
    "randomised_response",
    "report_noisy_max",
    "response_shares",
    "sample",
    "sampled_count",
    "stretching",
    "utility_aware",
    "utility_based",
    "wasted",
    "weighted_quantile",
]
