"""Attacks on the house's own mechanisms and releases: lower bounds to hold against what is claimed.

:mod:`~collegium.attacks.game` and :mod:`~collegium.attacks.dpsgd_game` play the distinguishing game on two
neighbouring tables; :mod:`~collegium.attacks.one_run`, :mod:`~collegium.attacks.dpsgd_canaries` and
:mod:`~collegium.attacks.counted_canaries` run a study once with canaries;
:mod:`~collegium.attacks.marginal_releases` draws a synthetic table's counts again and again; and
:mod:`~collegium.attacks.shadow_runs` infers membership from whatever is published. A lower bound above a
claim is a proof, at the stated confidence, that something is broken; one below it proves nothing but
that these attacks failed.
"""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOMES = {
    "collegium.attacks.conjugate": ["scores_by_shadows"],
    "collegium.attacks.counted_canaries": ["audit_statistics"],
    "collegium.attacks.membership": ["judge_membership"],
    "collegium.attacks.one_run_gdp": ["one_run_mu"],
    "collegium.attacks.score_bounds": ["bounds_of_scores"],
    "collegium.attacks.shadow_runs": ["infer_membership", "model_signal"],
}

if TYPE_CHECKING:
    from collegium.attacks.conjugate import scores_by_shadows
    from collegium.attacks.counted_canaries import audit_statistics
    from collegium.attacks.membership import judge_membership
    from collegium.attacks.one_run_gdp import one_run_mu
    from collegium.attacks.score_bounds import bounds_of_scores
    from collegium.attacks.shadow_runs import infer_membership, model_signal
else:
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "audit_statistics",
    "bounds_of_scores",
    "infer_membership",
    "judge_membership",
    "model_signal",
    "one_run_mu",
    "scores_by_shadows",
]
