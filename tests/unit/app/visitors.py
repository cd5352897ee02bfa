"""A page with a visitor who speaks HTTP by hand: every header can be changed, left out or sent twice."""

import http.client
import json
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from privmeasure.app.desk import Desk
from privmeasure.app.server import PageServer
from privmeasure.app.views import Site
from privmeasure.cli.serving import LocalCommands

SECRET = "Secret73819"
ROWS = 937
PATIENCE = 60.0
SCHEMA = """format = 1
[columns.age]
type = "integer"
low = 17
high = 90
nullable = true
[columns.sex]
type = "category"
values = ["F", "M"]
nullable = true
[columns.name]
type = "drop"
"""


def write_people(path: Path) -> Path:
    rows = (f"{17 + i % 70},{'FM'[i % 2]},{SECRET}{i}" for i in range(ROWS))
    path.write_text("age,sex,name\n" + "\n".join(rows) + "\n")
    return path


class QuickCommands(LocalCommands):
    """The commands, without the pictures of a report, which take seconds."""

    def report(self, release: Path, page: Path) -> list[str]:
        return []


class Reply(NamedTuple):
    status: int
    headers: Any
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def place(self) -> str:
        return self.headers.get("Location", "")


class Visitor:
    """Sends what a browser would send, but for what is told otherwise."""

    def __init__(self, server: PageServer, desk: Desk, site: Site) -> None:
        self.server, self.desk, self.site, self.door = server, desk, site, server.door
        self.cookie = ""

    @property
    def usual(self) -> dict[str, str]:
        return {"Host": self.door.host, "Cookie": self.cookie, "Sec-Fetch-Site": "same-origin"}

    def send(self, method: str, path: str, headers: Any, body: bytes = b"", *, length: bool = True) -> Reply:
        """Send a request as it is told: headers as pairs or a dict, None leaves one out."""
        link = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=PATIENCE)
        try:
            link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items() if isinstance(headers, dict) else headers:
                if value is not None:
                    link.putheader(name, value)
            if method == "POST" and length:
                link.putheader("Content-Length", str(len(body)))
            link.endheaders(body or None)
            reply = link.getresponse()
            return Reply(reply.status, reply.headers, reply.read())
        finally:
            link.close()

    def enter(self) -> Reply:
        """Bring the token, and keep the cookie."""
        target = self.door.address.removeprefix(self.door.origin)
        reply = self.send("GET", target, {"Host": self.door.host, "Sec-Fetch-Site": "none"})
        if "Set-Cookie" in reply.headers:
            self.cookie = reply.headers["Set-Cookie"].split(";")[0]
        return reply

    def get(self, path: str, **changed: str | None) -> Reply:
        return self.send("GET", self.door.path + path, self.usual | _headers(changed))

    def post(self, path: str, form: dict[str, str] | None = None, token: str | None = None, **changed: Any) -> Reply:
        typed = {"form_token": self.door.form_token if token is None else token} | (form or {})
        about = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
        headers = self.usual | about | _headers(changed)
        return self.send("POST", self.door.path + path, headers, urlencode(typed).encode())

    def upload(self, name: str, body: bytes, **changed: Any) -> Reply:
        about = {"Content-Type": "application/octet-stream", "Origin": self.door.origin}
        headers = self.usual | about | {"X-Form-Token": self.door.form_token} | _headers(changed)
        return self.send("POST", f"{self.door.path}upload?{urlencode({'name': name})}", headers, body)

    # -------------------------------------------------------------------------------------- the way of a visit

    def bring(self, table: Path, schema: str = SCHEMA) -> None:
        """Open a table and declare it."""
        assert self.post("table", {"path": str(table)}).place == f"{self.door.path}schema"
        assert self.declare({"text": schema}).place == f"{self.door.path}schema#done"

    def declare(self, form: dict[str, str], place: str = "text") -> Reply:
        """Send the form of a schema, as the page had it."""
        opened = re.search(r'name="opened" value="(\d+)"', self.get(place).text)
        return self.post(place, form | {"opened": opened[1] if opened else ""})

    def promise(self, epsilon: str = "1", neighbours: str = "add-remove") -> None:
        """Choose what is promised."""
        terms = {"epsilon": epsilon, "neighbours": neighbours, "rows": "900", "rows_per_person": "1"}
        assert self.post("plan", terms).place == f"{self.door.path}ledger"

    def confirm(self, ledger: Path, **form: str) -> str:
        """Name a ledger, and return the key of the confirmation."""
        reply = self.post("ledger", {"ledger": str(ledger), "dataset": "people"} | form)
        assert reply.status == 303, reply.text
        return reply.place.rpartition("/")[2]

    def finish(self, reply: Reply) -> Reply:
        """Wait for the work that a reply leads to, and return the page after it."""
        assert reply.status == 303, reply.text
        place = reply.place.removeprefix(self.door.path)
        deadline = time.monotonic() + PATIENCE
        while place.startswith("work/") and time.monotonic() < deadline:
            if json.loads(self.get(f"{place}.json").text)["done"]:
                reply = self.get(place)
                if reply.status != 303:
                    return reply
                place = reply.place.removeprefix(self.door.path).partition("#")[0]
            time.sleep(0.02)
        return self.get(place)

    def release(self, ledger: Path, **form: str) -> Reply:
        """Spend, and return the page of the release."""
        return self.finish(self.post("spend", {"key": self.confirm(ledger, **form)}))


def _headers(changed: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in changed.items()}


@contextmanager
def visiting(*, upload_limit: int = 1 << 20, commands: Any = None) -> Iterator[Visitor]:
    """Serve a page, with its work on a thread of its own, to a visitor who has not come in yet."""
    with tempfile.TemporaryDirectory(prefix="pm-page-") as folder:
        desk = Desk(QuickCommands() if commands is None else commands, Path(folder))
        server = PageServer(0, upload_limit=upload_limit)
        site = Site(server.door, desk, upload_limit)
        server.respond, server.upload = site.respond, site.upload
        works = (lambda: server.serve_forever(poll_interval=0.02), desk.jobs.run)
        threads = [threading.Thread(target=run, daemon=True) for run in works]
        for thread in threads:
            thread.start()
        try:
            yield Visitor(server, desk, site)
        finally:
            desk.jobs.stop()
            threads[1].join(PATIENCE)
            server.shutdown()
            server.server_close()


def errors_of(reply: Reply) -> list[str]:
    """Return what a page lists as wrong: each leads to a field that is there."""
    found = re.findall(r'<li><a href="#([\w-]+)">(.*?)</a></li>', reply.text, re.S)
    for field, _ in found:
        assert f'id="{field}"' in reply.text
    return [text for _, text in found]
