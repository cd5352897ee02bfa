"""Private synthetic data that you can trust: pure epsilon-differential privacy, close in Wasserstein distance."""

from typing import TYPE_CHECKING, Any

from privmeasure.version import __version__ as __version__

if TYPE_CHECKING:
    from privmeasure.public import *
    from privmeasure.public import __all__ as __all__


def __getattr__(name: str) -> Any:
    """Load the public names when the first is asked for, so that the command line starts at once."""
    from importlib.util import find_spec

    # Python asks for rooms before it imports them, and for its own names: neither needs the public ones
    if name == "__all__" or not (name.startswith("__") or find_spec(f"privmeasure.{name}")):
        import privmeasure.public

        if name == "__all__" or name in privmeasure.public.__all__:
            globals()[name] = found = getattr(privmeasure.public, name)  # not asked for again
            return found
    raise AttributeError(f"module 'privmeasure' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    from privmeasure.public import __all__ as names

    return [*names, "__version__"]
