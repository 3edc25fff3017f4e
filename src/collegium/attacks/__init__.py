"""Attacks on the house's own mechanisms: empirical lower bounds to hold against what is claimed.

:mod:`~collegium.attacks.game` plays the distinguishing game against the mechanism, on two neighbouring
vote tables; :mod:`~collegium.attacks.one_run` inserts canaries into a whole study and runs it once. A
lower bound above a claim is a proof, at the stated confidence, that something is broken; a lower bound
below it proves nothing but that these attacks failed.
"""
