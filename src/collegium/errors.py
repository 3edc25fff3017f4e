"""What can go wrong, in one line each: what was given, what is allowed, what to do.

Every error that Collegium raises on purpose is a :class:`CollegiumError`; the command line prints its
message as one line and exits with 2. Messages never contain private records, votes or
data-dependent costs.
"""


class CollegiumError(ValueError):
    """Base of every error that Collegium raises on purpose."""


class InputError(CollegiumError):
    """Something that was given cannot be used: a value, a column, a file or a table."""


class ModelError(InputError):
    """A model cannot do its part. The message speaks of the model alone, never of records it saw."""


class ConfigError(InputError):
    """A study's TOML file names an unknown key, lacks one, or holds a value that is not allowed."""


class BudgetExceededError(CollegiumError):
    """A query was refused because it would overspend somebody's privacy budget."""


class NothingReleasedError(CollegiumError):
    """The budgets were spent (or the queries used up) before enough labels could be released."""


class StudentError(CollegiumError):
    """Labels were released and paid for, but the student cannot learn from them. The labels are kept."""


class StudyMismatchError(CollegiumError):
    """A study folder was made from other inputs or another configuration, and is left untouched."""


class PrivacyWarning(UserWarning):
    """A choice is allowed, but weakens or voids somebody's privacy, or may not mean what was meant."""


class StudentWarning(UserWarning):
    """A student is no better than one that always gives the same answer, or looks like one."""


class WorkerWarning(UserWarning):
    """A worker ended while it trained or asked teachers; what it was doing is done again."""
