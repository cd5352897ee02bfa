"""Which page an address has, and what is said where one fails. Nothing is logged."""

import re

from privmeasure.app.declaring import Declaring
from privmeasure.app.desk import Desk
from privmeasure.app.door import Door
from privmeasure.app.frame import PAGE_STEPS, Frame
from privmeasure.app.releasing import Releasing
from privmeasure.app.server import PageReply, PageRequest


class Site:
    """The pages of a visit, by address."""

    def __init__(self, door: Door, desk: Desk, upload_limit: int) -> None:
        """Serve a desk behind a door."""
        self.desk, self.frame = desk, Frame(door, desk)
        declaring, releasing = Declaring(self.frame, desk, upload_limit), Releasing(self.frame, desk)
        self.upload = declaring.upload
        self._routes = [*declaring.routes, *releasing.routes, ("GET", r"static/([\w.-]{1,40})", self.frame.static)]

    def respond(self, request: PageRequest) -> PageReply:
        """Return the page of an address, or say what is wrong."""
        page = self.frame.page
        try:
            for method, pattern, view in self._routes:
                if method == request.method and (found := re.fullmatch(pattern, request.path)):
                    return view(request, *found.groups())
            return page("error.html", "Not found", text="There is no such page.", back="", status=404)
        except Exception as error:
            back = request.path if request.method == "GET" and request.path in dict(PAGE_STEPS) else ""
            told = self.desk.explain(error)
            return page("error.html", "This could not be done", text=told, back=back, status=400)
