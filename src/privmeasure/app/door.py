"""Who may come in. Everything is refused that does not come from the one browser that brought the token, on our page.

The address that the terminal shows has a random token. It is exchanged once, for a cookie that no script can read and
that goes with no request from elsewhere (HttpOnly, SameSite=Strict). Cookies know no ports: another server on this
machine would be sent ours too. So ours belongs to a path with a random name, which no other server is asked for.

Host       a name of somebody else's that leads to this machine (DNS rebinding) is not ours
Sec-Fetch-Site, Origin
           a page from elsewhere, another port of this machine included, may send nothing here. Under "no-referrer"
           a form of ours has the origin "null": then the browser must say that it is of the same origin
form token a form must have been ours: beside the cookie, which the browser adds by itself
"""

import hmac
import secrets
import threading
from email.message import Message

LOOPBACK = "127.0.0.1"
COOKIE = "privmeasure"
OTHER_HOST = "This page answers only under the address that the terminal shows."
OTHER_SITE = "Another page sent this request, and it was refused. Open the address from the terminal yourself."
NOT_ADMITTED = (
    "Open the address that the terminal shows, with its token. It works once, in one browser. If it was refused though "
    "you never used it, somebody else may have: stop the page with Ctrl-C and start it again."
)


class Door:
    """The secrets of one run, and what is asked of every request."""

    def __init__(self, port: int) -> None:
        """Draw all secrets anew; they live in memory alone."""
        self.host = f"{LOOPBACK}:{port}"
        self.origin = f"http://{self.host}"
        self.path = f"/{secrets.token_urlsafe(16)}/"
        """Where the pages are, and where the cookie belongs to."""
        self.form_token = secrets.token_urlsafe(32)
        self._token: str | None = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """The address with the token, for the terminal; empty once it was used."""
        return f"{self.origin}/?token={self._token}" if self._token else ""

    def refusal(self, method: str, headers: Message) -> str:
        """Say why a request is refused, by where it comes from; empty if it may be ours."""
        if headers.get_all("Host", []) != [self.host]:
            return OTHER_HOST
        origins, sites = headers.get_all("Origin", []), headers.get_all("Sec-Fetch-Site", [])
        if sites not in ([], ["same-origin"], ["none"]):
            return OTHER_SITE
        same_site = sites == ["same-origin"]
        if method == "POST":
            ours = origins == [self.origin] or (same_site and origins in ([], ["null"]))
        else:
            ours = origins in ([], [self.origin])
        return "" if ours else OTHER_SITE

    def exchange(self, token: str) -> str | None:
        """Return the cookie for the token, once; None for any other."""
        with self._lock:
            if self._token is None or not same(token, self._token):
                return None
            self._token = None
        return f"{COOKIE}={self._cookie}; Path={self.path}; HttpOnly; SameSite=Strict"

    def admits(self, headers: Message) -> bool:
        """Say whether a request brings the cookie, among those of other servers here, which may look like anything."""
        parts = [part.strip().partition("=") for line in headers.get_all("Cookie", []) for part in line.split(";")]
        return any(name == COOKIE and same(value, self._cookie) for name, _, value in parts)

    def knows(self, form_token: str) -> bool:
        """Say whether a form is one of ours."""
        return same(form_token, self.form_token)


def same(given: str, secret: str) -> bool:
    """Compare with a secret, in a time that tells nothing of it.

    Examples:
        >>> same("a", "a"), same("é", "a")
        (True, False)
    """
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())
