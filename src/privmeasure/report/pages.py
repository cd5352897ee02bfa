"""From values to a page: one HTML file without scripts, addresses or anything to load. Every text is escaped."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from privmeasure.errors import ArgumentError
from privmeasure.report.canvas import NEEDS, forget, svg
from privmeasure.version import __version__

NONE = "\N{EN DASH}"
"""In a table where there is nothing."""


@dataclass(frozen=True)
class Picture:
    """A figure of a page: the drawing, what stands below it, and what it shows in words for who does not see it."""

    svg: Any
    caption: str
    alt: str


class Album:
    """The pictures of one page, each with parts of its own name."""

    def __init__(self) -> None:
        """Begin with none."""
        self._count = 0

    def add(self, ax: Any, caption: str, alt: str) -> Picture:
        """Return axes as a picture of the page."""
        from markupsafe import Markup

        self._count += 1
        drawing = svg(ax, name=f"f{self._count}").replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
        forget(ax)
        return Picture(Markup(drawing), caption, alt)  # matplotlib escaped its texts


@cache
def _environment() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ModuleNotFoundError:
        raise ArgumentError(NEEDS) from None
    return Environment(
        loader=PackageLoader("privmeasure.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> str:
    """Return a page."""
    text: str = _environment().get_template(template).render(version=__version__, **values)
    return text
