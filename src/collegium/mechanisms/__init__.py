"""The classic private mechanisms, each with its theorem, its neighbours, its price and its warnings.

A mechanism takes numbers and public settings, and returns a value that may be shown beside the event that
says what it cost an owner of each cohort. Noise is exactly rounded, choices are drawn exactly.
"""
