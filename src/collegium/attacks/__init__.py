"""Attacks on the house's own mechanisms and releases: lower bounds to hold against what is claimed.

:mod:`~collegium.attacks.game` and :mod:`~collegium.attacks.dpsgd_game` play the distinguishing game on two
neighbouring tables; :mod:`~collegium.attacks.one_run`, :mod:`~collegium.attacks.dpsgd_canaries` and
:mod:`~collegium.attacks.counted_canaries` run a study once with canaries;
:mod:`~collegium.attacks.marginal_releases` draws a synthetic table's counts again and again; and
:mod:`~collegium.attacks.shadow_runs` infers membership from whatever is published. A lower bound above a
claim is a proof, at the stated confidence, that something is broken; one below it proves nothing but
that these attacks failed.
"""
