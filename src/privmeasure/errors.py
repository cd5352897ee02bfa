"""Everything that privmeasure raises on purpose.

    PrivmeasureError
    ├── ArgumentError    (also a ValueError)   an argument of a call: which one, what was expected, what to do
    ├── SchemaError      (also a ValueError)   a schema that cannot be used: which line or column, what to write
    ├── DataError        (also a ValueError)   the structure of the data: shape or type, never a value
    ├── ReleaseFileError (also a ValueError)   a release file that is truncated, edited or of another format
    ├── LedgerFileError  (also a ValueError)   a ledger that is missing, damaged, locked or of another format
    ├── NoRowsError      (also a RuntimeError) a release that leaves no row which keeps the facts of its schema
    ├── BudgetError      (also a RuntimeError) a release that a ledger refuses; the data were not opened
    ├── ReleaseError     (also a RuntimeError) a release that could not be finished; why cannot be shown
    └── SpentError       (also a RuntimeError) something that may be used once was used again, or before its time

Every message says what, where, what was expected and what to do. None shows, or depends on, a private value: types,
shapes and names are public; values, row numbers and (under "add-remove") the number of rows are not.
"""

from numbers import Integral


class PrivmeasureError(Exception):
    """Base of every error that privmeasure raises on purpose."""


class ArgumentError(PrivmeasureError, ValueError):
    """An argument that cannot be used; raised before any data are touched."""


class SchemaError(PrivmeasureError, ValueError):
    """A schema that cannot be used, or that a table contradicts; `problems` lists everything that is wrong."""

    def __init__(self, *problems: str) -> None:
        """Take one sentence or more, each about one thing."""
        super().__init__("\n".join(problems))
        self.problems = problems


class DataError(PrivmeasureError, ValueError):
    """Data whose structure (shape, type) does not fit what was declared."""


class ReleaseFileError(PrivmeasureError, ValueError):
    """A release file that cannot be read safely."""


class LedgerFileError(PrivmeasureError, ValueError):
    """A ledger file that cannot be read or written."""


class NoRowsError(PrivmeasureError, RuntimeError):
    """A release of which rows cannot be sampled: what it leaves, the facts of its schema forbid. Epsilon is spent."""


class BudgetError(PrivmeasureError, RuntimeError):
    """A release that would pass the cap of a data set, or that does not fit its account; nothing was spent."""


class SpentError(PrivmeasureError, RuntimeError):
    """A key or a synthesizer that was used already, which would spend epsilon twice, or that is not fitted yet."""


class ReleaseError(PrivmeasureError, RuntimeError):
    """A release that could not be finished. Its cause may depend on the data, so only its type is shown."""


def is_whole(value: object) -> bool:
    """Say whether a value is a whole number, of Python or of NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)
