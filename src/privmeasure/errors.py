"""Everything that privmeasure raises on purpose.

    PrivmeasureError
    ├── ArgumentError    (also a ValueError)   an argument of a call: which one, what was expected, what to do
    ├── DataError        (also a ValueError)   the structure of the data: shape or type, never a value
    ├── ReleaseFileError (also a ValueError)   a release file that is truncated, edited or of another format
    ├── ReleaseError     (also a RuntimeError) a release that could not be finished; why cannot be shown
    └── SpentError       (also a RuntimeError) something that may be used once was used again, or before its time

Every message says what, where, what was expected and what to do. None shows, or depends on, a private value: types,
shapes and names are public; values, row numbers and (under "add-remove") the number of rows are not.
"""


class PrivmeasureError(Exception):
    """Base of every error that privmeasure raises on purpose."""


class ArgumentError(PrivmeasureError, ValueError):
    """An argument that cannot be used; raised before any data are touched."""


class DataError(PrivmeasureError, ValueError):
    """Data whose structure (shape, type) does not fit what was declared."""


class ReleaseFileError(PrivmeasureError, ValueError):
    """A release file that cannot be read safely."""


class SpentError(PrivmeasureError, RuntimeError):
    """A key or a synthesizer that was used already, which would spend epsilon twice, or that is not fitted yet."""


class ReleaseError(PrivmeasureError, RuntimeError):
    """A release that could not be finished. Its cause may depend on the data, so only its type is shown."""
