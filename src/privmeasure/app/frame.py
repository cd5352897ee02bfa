"""What all pages have in common: their template, the steps, the files that they load."""

from functools import cache
from importlib.resources import files
from typing import Any

from privmeasure.app.desk import Desk
from privmeasure.app.door import Door
from privmeasure.app.server import PageReply, PageRequest, see
from privmeasure.version import __version__

PAGE_STEPS = (("", "Table"), ("schema", "Schema"), ("plan", "Plan"), ("ledger", "Ledger"), ("releases", "Release"))
STATIC = {"app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("privmeasure.app"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


class Frame:
    """The frame of the pages of a visit."""

    def __init__(self, door: Door, desk: Desk) -> None:
        """Stand behind a door, around a desk."""
        self.base, self.form_token, self.desk = door.path, door.form_token, desk

    def page(
        self, template: str, title: str, *, step: str | None = None, status: int = 200, **values: Any
    ) -> PageReply:
        """Return a page of a template."""
        common = {
            "base": self.base,
            "form_token": self.form_token,
            "steps": [(name, label, self._reached(name), name == step) for name, label in PAGE_STEPS],
            "version": __version__,
            "title": title,
            "step": step,
            "errors": [],
        }
        text: str = _environment().get_template(template).render(common | values)
        return PageReply(text, status=status)

    def _reached(self, step: str) -> bool:
        desk = self.desk
        reached = {"schema": desk.table is not None, "plan": desk.ready, "releases": bool(desk.made)}
        return reached.get(step, desk.ready and desk.terms is not None) if step else True

    def to(self, place: str) -> PageReply:
        """Send the browser to another page."""
        return see(f"{self.base}{place}")

    def static(self, request: PageRequest, name: str) -> PageReply:
        """Return a file that pages load."""
        if name == "style.css":  # one look for pages and reports
            return PageReply(_text("privmeasure.report", "templates/style.css"), type=STATIC["app.css"])
        if name not in STATIC:
            return PageReply("", status=404)
        return PageReply(_text("privmeasure.app", f"static/{name}"), type=STATIC[name])


def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
