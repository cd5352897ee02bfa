"""Private synthetic data that you can trust: pure epsilon-differential privacy, close in Wasserstein distance."""

from typing import TYPE_CHECKING, Any

from privmeasure.version import __version__ as __version__

if TYPE_CHECKING:
    from privmeasure.public import *

__all__ = [
    "PMM",
    "PSMM",
    "Boolean",
    "Box",
    "Categories",
    "Category",
    "CellMeasure",
    "Circle",
    "Constant",
    "Date",
    "Datetime",
    "Drop",
    "Finite",
    "Integer",
    "Integers",
    "Nullable",
    "Number",
    "Place",
    "Plan",
    "Privacy",
    "PrivmeasureError",
    "Product",
    "Recipe",
    "Schema",
    "Sphere",
    "Synthesizer",
    "TableRelease",
    "Time",
    "load",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    """Load the public names when the first is asked for, so that the command line starts at once."""
    if name not in __all__:
        raise AttributeError(f"module 'privmeasure' has no attribute {name!r}")
    import privmeasure.public

    return getattr(privmeasure.public, name)


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, "__version__"]
