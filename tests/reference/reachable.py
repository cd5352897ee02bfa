"""Everything that an object refers to, directly or not: what someone who holds it can get at."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def reachable(root: Any) -> Iterator[Any]:
    """Yield the object and all that its fields, items and array bases lead to; plain values are left out."""
    seen, stack = set(), [root]
    while stack:
        value = stack.pop()
        if id(value) in seen or isinstance(value, type | str | int | float | bytes):
            continue
        seen.add(id(value))
        yield value
        stack += value.values() if isinstance(value, dict) else []
        stack += value if isinstance(value, list | tuple) else []
        stack += vars(value).values() if hasattr(value, "__dict__") else []
        stack += [value.base] if isinstance(value, np.ndarray) and value.base is not None else []
