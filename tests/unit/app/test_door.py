"""Who may come in. Every refused request differs from one that is answered in a single thing."""

import itertools
import threading

import pytest

from unit.app.visitors import visiting

OTHERS = ["localhost:{port}", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", "[::1]:{port}", ""]


def test_the_page_is_on_the_loopback_address_alone(page):
    assert page.server.socket.getsockname()[0] == "127.0.0.1"


def test_the_token_is_exchanged_once_for_a_cookie_that_scripts_and_others_cannot_have():
    with visiting() as visitor:
        target = visitor.door.address.removeprefix(visitor.door.origin)
        assert visitor.get("").status == 403
        reply = visitor.enter()
        assert (reply.status, reply.place) == (303, visitor.door.path)
        value, *marks = reply.headers["Set-Cookie"].split("; ")
        assert len(value) > 40
        assert set(marks) == {f"Path={visitor.door.path}", "HttpOnly", "SameSite=Strict"}
        assert len(visitor.door.path) > 20
        assert visitor.get("").status == 200
        again = visitor.send("GET", target, {"Host": visitor.door.host})
        assert again.status == 403
        assert "Set-Cookie" not in again.headers
        assert visitor.door.address == ""


@pytest.mark.parametrize("token", ["", "x", "é"])
def test_another_token_opens_nothing_and_the_right_one_still_does(token):
    with visiting() as visitor:
        reply = visitor.send("GET", f"/?token={token.encode().hex()}", {"Host": visitor.door.host})
        assert reply.status == 403
        assert visitor.enter().status == 303


def test_one_of_many_who_bring_the_token_at_once_gets_in():
    with visiting() as visitor:
        target, ready, found = visitor.door.address.removeprefix(visitor.door.origin), threading.Barrier(8), []

        def bring():
            ready.wait()
            found.append(visitor.send("GET", target, {"Host": visitor.door.host}).status)

        threads = [threading.Thread(target=bring) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert sorted(found) == [303, *[403] * 7]


def test_without_the_cookie_there_is_nothing(page):
    for cookie in (None, "", "privmeasure=", page.cookie[:-1], f"{page.cookie}x", page.cookie.replace("=", "2=")):
        for path in ("", "schema", "static/app.js", "static/app.css", "nothing"):
            reply = page.get(path, Cookie=cookie)
            assert reply.status == 403
            assert "Open the address that the terminal shows" in reply.text
        assert page.post("table", {"path": "x"}, Cookie=cookie).status == 403
        assert page.upload("a.csv", b"a\n1\n", Cookie=cookie).status == 403
    for others in ("other=1; {}; more=2", 'a[b]={{"x": 1}}; {}', "{}; =; ;;", "privmeasure=x; {}"):
        assert page.get("", Cookie=others.format(page.cookie)).status == 200


def test_the_cookie_is_of_a_path_that_nobody_else_knows(page):
    """Cookies are sent to every port of a host: another server here is never asked for this path."""
    for path in ("/", "/schema", "/static/app.js"):
        assert page.send("GET", path, page.usual).status == 403


@pytest.mark.parametrize("host", OTHERS)
def test_another_host_is_refused(page, host):
    """A name of somebody else's that leads here: DNS rebinding."""
    name = host.format(port=page.server.server_port)
    assert page.get("").status == 200
    assert page.get("", Host=name).status == 403
    assert page.post("stop", Host=name).status == 403


def test_no_host_and_two_hosts_are_refused(page):
    pairs = list(page.usual.items())
    assert page.send("GET", page.door.path, pairs).status == 200
    assert page.send("GET", page.door.path, [pair for pair in pairs if pair[0] != "Host"]).status == 403
    assert page.send("GET", page.door.path, [*pairs, ("Host", page.door.host)]).status == 403


def test_the_token_is_refused_under_another_host_and_stays_good():
    with visiting() as visitor:
        target = visitor.door.address.removeprefix(visitor.door.origin)
        assert visitor.send("GET", target, {"Host": f"evil.example:{visitor.server.server_port}"}).status == 403
        assert visitor.send("GET", target, {"Host": visitor.door.host, "Sec-Fetch-Site": "cross-site"}).status == 403
        assert visitor.enter().status == 303


@pytest.mark.parametrize("site", ["cross-site", "same-site", "other"])
def test_requests_from_other_sites_are_refused(page, site):
    """Another port of this machine is of the same site: the cookie would come along."""
    assert page.get("", Sec_Fetch_Site="same-origin").status == 200
    assert page.get("", Sec_Fetch_Site="none").status == 200
    assert page.get("", Sec_Fetch_Site=None).status == 200
    assert page.get("", Sec_Fetch_Site=site).status == 403
    assert page.get("static/app.js", Sec_Fetch_Site=site).status == 403
    assert page.post("table", {"path": ""}, Sec_Fetch_Site=site, Origin=page.door.origin).status == 403


def test_posts_must_come_from_our_own_pages(page):
    """Without a referrer the origin of a form is null: then the browser must vouch that it is ours."""
    ours = page.door.origin
    answered = [(ours, "same-origin"), (ours, None), ("null", "same-origin"), (None, "same-origin")]
    refused = [("null", None), (None, None), (None, "none"), ("null", "none"), ("http://evil.example", "same-origin")]
    refused += [("http://127.0.0.1:1", "same-origin"), (ours.replace("http", "https"), None), (ours + ".evil", None)]
    for origin, site in answered:
        assert page.post("table", {"path": ""}, Origin=origin, Sec_Fetch_Site=site).status == 422, (origin, site)
    for origin, site in refused:
        assert page.post("table", {"path": ""}, Origin=origin, Sec_Fetch_Site=site).status == 403, (origin, site)
        assert page.upload("a.csv", b"a\n1\n", Origin=origin, Sec_Fetch_Site=site).status == 403
    assert page.get("", Origin="http://evil.example").status == 403
    assert page.get("", Origin="null").status == 403


def test_a_form_must_be_ours(page):
    assert page.post("table", {"path": ""}).status == 422
    for token in ("", "x", page.door.form_token[:-1], page.door.form_token.swapcase()):
        assert page.post("table", {"path": ""}, token=token).status == 403
        assert page.upload("a.csv", b"a\n1\n", X_Form_Token=token).status == 403
    assert page.upload("a.csv", b"a\n1\n").status == 200


def test_all_secrets_are_long_different_and_new_each_time():
    found = []
    for _ in range(2):
        with visiting() as visitor:
            token = visitor.door.address.partition("=")[2]
            visitor.enter()
            found += [token, visitor.cookie.partition("=")[2], visitor.door.form_token, visitor.door.path.strip("/")]
    assert all(len(secret) >= 22 for secret in found)
    assert all(one != other for one, other in itertools.combinations(found, 2))


def test_secrets_are_compared_in_constant_time(monkeypatch, page):
    """Every comparison with a secret goes through hmac."""
    from privmeasure.app import door

    seen = []

    def compare(one, other):
        seen.append(other)
        return one == other

    monkeypatch.setattr(door.hmac, "compare_digest", compare)
    page.post("table", {"path": ""})
    assert page.cookie.partition("=")[2].encode() in seen
    assert page.door.form_token.encode() in seen
