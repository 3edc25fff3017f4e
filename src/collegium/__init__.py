"""Machine learning with individual privacy budgets.

A collegium of teachers, each trained on some of the sensitive records, votes on labels for public data;
the votes are noised, every person's loss is accounted individually, voting stops before anybody's budget
is exceeded, and only a student trained on the released labels leaves the house.
"""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

__version__ = "0.1.0"

_HOMES = {
    "collegium.accounting.statement": ["PrivacyStatement"],
    "collegium.budgets": ["Budget", "Budgets", "Policy"],
    "collegium.data.datasets": ["load_dataset"],
    "collegium.data.schema": ["Schema"],
    "collegium.errors": ["CollegiumError", "PrivacyWarning"],
    "collegium.evaluation.synthetic": ["evaluate_synthetic"],
    "collegium.generative.dp_gan": ["DPGAN"],
    "collegium.generative.pate_gan": ["PATEGAN"],
    "collegium.ledger.ledger": ["Ledger"],
    "collegium.pate.classifier": ["PATEClassifier"],
    "collegium.pate.settings": ["Account", "Queries"],
    "collegium.pate.voting.aggregators": [
        "ConfidentGNMax",
        "ExponentialMax",
        "GNMax",
        "InteractiveGNMax",
        "LNMax",
        "PermuteAndFlip",
    ],
    "collegium.pate.voting.vote_table": ["VoteTable"],
    "collegium.parties.collective": ["Collective", "Party"],
    "collegium.parties.members": ["IdentityKey"],
    "collegium.parties.secure_sum": ["secure_sum"],
    "collegium.personalisation.rates": ["plan_dpsgd"],
    "collegium.personalisation": [
        "Bagging",
        "Hybrid",
        "Uniform",
        "Upsampling",
        "Vanishing",
        "Weighting",
    ],
    "collegium.dpsgd.classifier": ["DPSGDClassifier"],
    "collegium.dpsgd.regressor": ["DPSGDRegressor"],
    "collegium.dpsgd.settings": ["Sampling"],
    "collegium.dpsgd.torch_entry": ["individual_dpsgd"],
    "collegium.dpsgd.opacus_terms": ["opacus_terms"],
    "collegium.planner.recommend": ["recommend"],
    "collegium.statistics.answers": ["Answer"],
    "collegium.statistics.session": ["Statistics"],
    "collegium.synthesis.synthesizer": ["Synthesizer"],
    "collegium.study.planned_settings": ["plan"],
    "collegium.study.others_records": ["read_records"],
    "collegium.study.student_file": ["load_student"],
}
_ROOMS = [
    "accounting",
    "attacks",
    "datasets",
    "features",
    "ledger",
    "mechanisms",
    "students",
    "teachers",
]

if TYPE_CHECKING:
    from collegium.accounting.statement import PrivacyStatement
    from collegium.budgets import Budget, Budgets, Policy
    from collegium.data.datasets import load_dataset
    from collegium.data.schema import Schema
    from collegium.dpsgd.classifier import DPSGDClassifier
    from collegium.dpsgd.opacus_terms import opacus_terms
    from collegium.dpsgd.regressor import DPSGDRegressor
    from collegium.dpsgd.settings import Sampling
    from collegium.dpsgd.torch_entry import individual_dpsgd
    from collegium.errors import CollegiumError, PrivacyWarning
    from collegium.evaluation.synthetic import evaluate_synthetic
    from collegium.generative.dp_gan import DPGAN
    from collegium.generative.pate_gan import PATEGAN
    from collegium.ledger.ledger import Ledger
    from collegium.parties.collective import Collective, Party
    from collegium.parties.members import IdentityKey
    from collegium.parties.secure_sum import secure_sum
    from collegium.pate.classifier import PATEClassifier
    from collegium.pate.settings import Account, Queries
    from collegium.pate.voting.aggregators import (
        ConfidentGNMax,
        ExponentialMax,
        GNMax,
        InteractiveGNMax,
        LNMax,
        PermuteAndFlip,
    )
    from collegium.pate.voting.vote_table import VoteTable
    from collegium.personalisation import Bagging, Hybrid, Uniform, Upsampling, Vanishing, Weighting
    from collegium.personalisation.rates import plan_dpsgd
    from collegium.planner.recommend import recommend
    from collegium.statistics.answers import Answer
    from collegium.statistics.session import Statistics
    from collegium.study.others_records import read_records
    from collegium.study.planned_settings import plan
    from collegium.study.student_file import load_student
    from collegium.synthesis.synthesizer import Synthesizer
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES, _ROOMS)

__all__ = [
    "DPGAN",
    "PATEGAN",
    "Account",
    "Answer",
    "Bagging",
    "Budget",
    "Budgets",
    "Collective",
    "CollegiumError",
    "ConfidentGNMax",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "ExponentialMax",
    "GNMax",
    "Hybrid",
    "IdentityKey",
    "InteractiveGNMax",
    "LNMax",
    "Ledger",
    "PATEClassifier",
    "Party",
    "PermuteAndFlip",
    "Policy",
    "PrivacyStatement",
    "PrivacyWarning",
    "Queries",
    "Sampling",
    "Schema",
    "Statistics",
    "Synthesizer",
    "Uniform",
    "Upsampling",
    "Vanishing",
    "VoteTable",
    "Weighting",
    "__version__",
    "evaluate_synthetic",
    "individual_dpsgd",
    "load_dataset",
    "load_student",
    "opacus_terms",
    "plan",
    "plan_dpsgd",
    "read_records",
    "recommend",
    "secure_sum",
]
