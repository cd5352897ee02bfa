"""What goes with every reply, and what is read of a request: how much, and for how long."""

import http.client
import re
import socket
import time
from contextlib import suppress

import pytest

from privmeasure.app import server
from unit.app.visitors import visiting


def raw(page, data, *, wait=5.0):
    """Send bytes, and return what comes back until the connection ends."""
    with socket.create_connection(("127.0.0.1", page.server.server_port), timeout=wait) as link:
        link.sendall(data)
        found = b""
        while piece := link.recv(65536):
            found += piece
        return found


def test_every_reply_has_the_headers(page, people):
    replies = [page.get(""), page.get("nothing"), page.get("", Cookie=None), page.get("", Host="evil.example")]
    replies += [page.post("table", {"path": ""}), page.post("table", {"path": str(people)}), page.get("static/app.js")]
    replies += [page.send("PUT", page.door.path, page.usual), page.upload("a.exe", b"x")]
    assert [reply.status for reply in replies] == [200, 404, 403, 403, 422, 303, 200, 405, 422]
    for reply in replies:
        headers = reply.headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert set(policy.values()) == {"'none'", "'self'"}
        assert headers["Server"].strip() == "privmeasure"
        assert "Access-Control-Allow-Origin" not in headers


def test_pages_load_nothing_from_elsewhere_and_have_no_script_or_style_inside(page, people):
    page.post("table", {"path": str(people)})
    for path in ("", "schema", "text", "stop"):
        text = page.get(path).text
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
        assert all(" src=" in tag for tag in re.findall(r"<script[^>]*>", text))
        for address in re.findall(r'(?:src|href|action|data-upload)="([^"]*)"', text):
            assert address.startswith((page.door.path, "#")), address
    assert "://" not in page.get("static/app.js").text
    assert not re.search(r"url\(|@import", page.get("static/app.css").text + page.get("static/style.css").text)


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "BREW"])
def test_only_get_and_post_are_answered(page, method):
    assert page.send(method, page.door.path, page.usual).status == 405


def test_an_address_of_another_server_is_refused(page):
    for target in (f"http://evil.example{page.door.path}", f"http://{page.door.host}{page.door.path}", "*"):
        assert page.send("GET", target, page.usual).status in (400, 403)
    assert page.send("GET", f"//evil.example{page.door.path}", page.usual).status in (400, 403)


@pytest.mark.parametrize("path", ["../", "..%2f..%2fetc%2fpasswd", "static/../app.py", "static/..%2fviews.py", "%00"])
def test_no_file_of_the_machine_is_served(page, path):
    assert page.get(path).status == 404
    assert page.get("static/app.css").status == 200


def test_a_form_has_a_limit(page, monkeypatch):
    monkeypatch.setattr(server, "FORM_BYTES", 1000)
    assert page.post("table", {"path": "x" * 700}).status == 422
    assert page.post("table", {"path": "x" * 1000}).status == 413


def test_a_form_has_a_length_and_a_type(page):
    form = f"form_token={page.door.form_token}&path=".encode()
    headers = page.usual | {"Origin": page.door.origin, "Content-Type": "application/x-www-form-urlencoded"}
    target = f"{page.door.path}table"
    assert page.send("POST", target, headers, form).status == 422
    assert page.send("POST", target, headers | {"Content-Type": "text/plain"}, form).status == 415
    assert page.send("POST", target, headers | {"Content-Type": "multipart/form-data; boundary=x"}, form).status == 415
    for length in (None, "-1", "x", "1e3", "+5"):
        assert page.send("POST", target, headers | {"Content-Length": length}, form, length=False).status == 411
    twice = [*headers.items(), ("Content-Length", str(len(form))), ("Content-Length", str(len(form)))]
    assert page.send("POST", target, twice, form, length=False).status == 411
    assert page.send("POST", target, headers | {"Transfer-Encoding": "chunked"}, form).status == 411


def test_too_many_fields_are_refused(page, monkeypatch):
    monkeypatch.setattr(server, "MOST_FIELDS", 10)
    assert page.post("table", {"path": ""}).status == 422
    assert page.post("table", {"path": ""} | {f"f{i}": "" for i in range(20)}).status == 400


def test_uploads_have_a_limit_that_the_page_states():
    with visiting(upload_limit=2 << 20) as visitor:
        visitor.enter()
        assert "at most 2 MB" in visitor.get("").text
        head = b"age,sex\n"
        fits = head + b"1,F\n" * (((2 << 20) - len(head)) // 4)
        assert visitor.upload("a.csv", fits).status == 200
        before = list(visitor.desk.folder.rglob("*"))
        over = {"Content-Length": str((2 << 20) + 1), "Content-Type": "application/octet-stream"}
        headers = visitor.usual | over | {"Origin": visitor.door.origin, "X-Form-Token": visitor.door.form_token}
        target = f"{visitor.door.path}upload?name=a.csv"
        assert visitor.send("POST", target, headers, length=False).status == 413
        assert list(visitor.desk.folder.rglob("*")) == before


def test_an_upload_that_breaks_off_leaves_nothing(page):
    head = f"POST {page.door.path}upload?name=a.csv HTTP/1.1\r\n"
    about = page.usual | {"Origin": page.door.origin, "X-Form-Token": page.door.form_token, "Content-Length": "1000"}
    head += "".join(f"{name}: {value}\r\n" for name, value in about.items()) + "\r\n"
    with socket.create_connection(("127.0.0.1", page.server.server_port), timeout=5) as link:
        link.sendall(head.encode() + b"age,sex\n1,F\n")
        link.shutdown(socket.SHUT_WR)
        reply = link.recv(65536)
    assert b"422" in reply.split(b"\r\n")[0]
    assert not [path for path in page.desk.folder.rglob("*") if path.is_file()]
    assert page.desk.table is None


def test_uploads_lie_in_a_folder_that_nobody_else_may_enter(page):
    assert page.upload("a.csv", b"age,sex\n1,F\n").status == 200
    place = page.desk.table.place
    assert place.is_relative_to(page.desk.folder)
    assert page.desk.folder.stat().st_mode & 0o777 == 0o700
    assert place.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["../../evil.csv", "/etc/evil.csv", "..\\evil.csv", "a\0b.csv", "x.csv/../y.csv"])
def test_the_name_of_an_upload_decides_no_place(page, name):
    page.upload(name, b"age,sex\n1,F\n")
    files = [path for path in page.desk.folder.rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["table.csv"]


def test_a_second_upload_takes_the_place_of_the_first(page):
    page.upload("a.csv", b"age,sex\n1,F\n")
    first = page.desk.table.place
    page.upload("b.csv", b"age,sex\n1,F\n")
    assert page.desk.table.name == "b.csv"
    assert not first.exists()


def test_a_page_that_is_being_stopped_takes_no_more_files(page):
    """Its folder is about to be deleted: what came late would stay."""
    page.desk.close()
    reply = page.upload("a.csv", b"age,sex\n1,F\n")
    assert (reply.status, "being stopped" in reply.text) == (422, True)
    assert list(page.desk.folder.rglob("*")) == []


def test_who_is_slow_is_not_waited_for(monkeypatch):
    """A byte now and then does not keep a connection open: the head of a request has one deadline."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.6)
    with visiting() as visitor:
        visitor.enter()
        with socket.create_connection(("127.0.0.1", visitor.server.server_port), timeout=10) as link:
            link.sendall(b"GET / HTTP/1.1\r\nX: ")
            begin = time.monotonic()
            link.settimeout(0.1)
            ended = False
            while not ended and time.monotonic() - begin < 8:
                try:
                    link.sendall(b"a")
                    ended = link.recv(100) == b""
                except TimeoutError:
                    continue
                except OSError:
                    ended = True
            assert ended
            assert time.monotonic() - begin < 5


def test_only_so_many_connections_are_held(monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    with visiting() as visitor:
        links = [socket.create_connection(("127.0.0.1", visitor.server.server_port), timeout=5) for _ in range(3)]
        assert raw(visitor, b"GET / HTTP/1.0\r\n\r\n") == b""  # closed at once
        for link in links:
            link.close()
        deadline = time.monotonic() + 20
        while not visitor.cookie and time.monotonic() < deadline:  # there is room again
            with suppress(http.client.RemoteDisconnected, ConnectionError):
                visitor.enter()
        assert visitor.get("").status == 200


def test_what_cannot_be_read_is_not_repeated(page, capfd):
    for data in (b"\x16\x03\x01secret\r\n\r\n", b"GET secret\r\n\r\n", b"GET /secret HTTP/9.9\r\n\r\n", b"A" * 70000):
        assert b"ecret" not in raw(page, data)
    out, err = capfd.readouterr()
    assert out + err == ""
