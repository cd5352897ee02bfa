"""HTTP on the loopback address: what is read of a request, for how long, and what goes with every reply.

One connection is one request: it is refused or answered, and closed. Whoever has no cookie is read a head of a request,
for a few seconds, and no body. Nothing is logged: an address has a token or a name in it.
"""

import io
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from privmeasure.app.door import LOOPBACK, NOT_ADMITTED, Door

HEAD_SECONDS = 10.0
"""For the head of a request, and the body of a form."""
UPLOAD_SECONDS = 3600.0
SEND_SECONDS = 60.0
"""Without a byte taken."""
MOST_CONNECTIONS = 32
FORM_BYTES = 4 << 20
"""The longest body of a form: a schema with thousands of columns."""
MOST_FIELDS = 100_000
PIECE = 1 << 20
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""For a report, whose pictures have styles of their own: it has no script, and may run none."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
HTML, TEXT, JSON = "text/html; charset=utf-8", "text/plain; charset=utf-8", "application/json"


@dataclass(frozen=True)
class PageRequest:
    """A request of the one who may come in: below the path of the pages, and with a form of ours if it has one."""

    method: str
    path: str
    query: Mapping[str, str]
    form: Mapping[str, str]


@dataclass
class PageReply:
    """A reply: a text, or a file."""

    body: str | Path
    status: int = 200
    type: str = HTML
    headers: dict[str, str] = field(default_factory=dict)
    policy: str = POLICY


Route = tuple[str, str, Callable[..., PageReply]]
"""A method, a pattern of addresses, and the view that answers."""
Upload = Callable[[Mapping[str, str], io.BufferedIOBase, int], PageReply]
"""Takes the query, the body and its length."""


def see(place: str) -> PageReply:
    """Send the browser to another page, to be looked at: a reload of that page repeats nothing."""
    return PageReply("", status=303, headers={"Location": place})


def download(path: Path, name: str) -> PageReply:
    """Return a file to be saved."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there any more.")
    named = f"attachment; filename*=UTF-8''{quote(name)}"
    return PageReply(path, type="application/octet-stream", headers={"Content-Disposition": named})


class PageServer(ThreadingHTTPServer):
    """A server on the loopback address, for one visitor."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, port: int, *, upload_limit: int) -> None:
        """Take a port, any free one for 0; `door` is there from then on."""
        super().__init__((LOOPBACK, port), _Handler)
        self.door = Door(self.server_address[1])
        self.upload_limit = upload_limit
        self.respond: Callable[[PageRequest], PageReply] = lambda request: PageReply("", status=404)
        self.upload: Upload = lambda query, body, length: PageReply("", status=404)
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def server_bind(self) -> None:
        """Bind without asking anybody for our name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """PageReply on a thread, of which there are only so many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # the system has no thread for it
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """PageReply, and make room for the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a connection that breaks is no news, and a traceback could hold what was typed."""


class _Timed(io.RawIOBase):
    """A connection that is read until a deadline, however slowly the bytes come."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.deadline = connection, time.monotonic() + HEAD_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(SEND_SECONDS)


class _Refused(Exception):  # noqa: N818 - a reply, not an error of ours
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "privmeasure", ""
    timeout = SEND_SECONDS

    def setup(self) -> None:
        super().setup()
        self._timed = _Timed(self.connection)
        self.rfile = io.BufferedReader(self._timed)

    def do_GET(self) -> None:
        self._reply(self._answered())

    def do_POST(self) -> None:
        self._reply(self._answered())

    def _answered(self) -> PageReply:
        door = self.server.door
        try:
            if refusal := door.refusal(self.command, self.headers):
                raise _Refused(403, refusal)
            if self.headers.get_payload():  # a line that is no header: the library reads no header after it
                raise _Refused(400, "The request cannot be read.")
            target = urlsplit(self.path)
            if target.scheme or target.netloc or not self.path.startswith("/"):
                raise _Refused(400, "The address of the request cannot be read.")
            query = dict(parse_qsl(target.query, keep_blank_values=True, max_num_fields=100))
            if self.command == "GET" and target.path == "/" and "token" in query:
                if (cookie := door.exchange(query["token"])) is None:
                    raise _Refused(403, NOT_ADMITTED)
                return PageReply("", status=303, headers={"Location": door.path, "Set-Cookie": cookie})
            if not target.path.startswith(door.path) or not door.admits(self.headers):
                raise _Refused(403, NOT_ADMITTED)
            path = unquote(target.path.removeprefix(door.path))
            if self.command == "GET":
                return self.server.respond(PageRequest("GET", path, query, {}))
            return self._posted(path, query)
        except _Refused as refused:
            return PageReply(refused.text, refused.status, TEXT)
        except ValueError:  # too many fields, or an address that is none
            return PageReply("The request cannot be read.", 400, TEXT)

    def _posted(self, path: str, query: Mapping[str, str]) -> PageReply:
        door = self.server.door
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or len(lengths) != 1 or not lengths[0].isdecimal():
            raise _Refused(411, "A request must say how long it is.")
        length, kind = int(lengths[0]), self.headers.get_content_type()
        if path == "upload":
            if not door.knows(self.headers.get("X-Form-Token", "")):
                raise _Refused(403, "The form is not one of this page. Load the page again.")
            if length > self.server.upload_limit:
                raise _Refused(413, "The file is larger than uploads may be. Give its path instead.")
            self._timed.deadline = time.monotonic() + UPLOAD_SECONDS
            return self.server.upload(query, self.rfile, length)
        if kind != "application/x-www-form-urlencoded":
            raise _Refused(415, "A form must be sent as application/x-www-form-urlencoded.")
        if length > FORM_BYTES:
            raise _Refused(413, "The form is too long.")
        body = self.rfile.read(length)
        if len(body) < length:
            raise _Refused(400, "The form did not arrive as a whole.")
        text = body.decode("ascii", errors="replace")
        form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
        if not door.knows(form.pop("form_token", "")):
            raise _Refused(403, "The form is not one of this page. Load the page again.")
        return self.server.respond(PageRequest("POST", path, query, form))

    def _reply(self, answer: PageReply) -> None:
        body = answer.body
        data = b"" if isinstance(body, Path) else body.encode("utf-8", errors="replace")
        file = body.open("rb") if isinstance(body, Path) else io.BytesIO(data)
        with file:
            length = file.seek(0, io.SEEK_END)
            file.seek(0)
            self.send_response(answer.status)
            about = {"Content-Type": answer.type, "Content-Length": str(length), "Connection": "close"}
            for name, value in (about | HEADERS | {"Content-Security-Policy": answer.policy} | answer.headers).items():
                self.send_header(name, value)
            self.end_headers()
            while piece := file.read(PIECE):
                self.wfile.write(piece)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what cannot be read, and other methods; the library's words would repeat what was sent."""
        told = "Only GET and POST are answered." if code == 501 else "The request cannot be read."
        self._reply(PageReply(told, 405 if code == 501 else code, TEXT))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
