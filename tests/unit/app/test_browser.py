"""The page in a real browser: from a CSV to a report and a downloaded table, with a mouse, by keyboard, without script.

With PICTURES=folder, what it looks like is kept there: `make pictures-app`.
"""

import csv
import io
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from PIL import Image

from browser import browser, why_no_browser
from privmeasure.ledger import Ledger
from servers import need

need(why_no_browser())

PEOPLE = Path(__file__).parents[3] / "examples" / "people" / "people.csv"
PICTURES = os.environ.get("PICTURES")
WIDE, NARROW = 1400, 360
KEPT = ("schema-wide", "plan-wide", "confirm-wide", "release-wide", "plan-narrow-dark")
"""The pictures that docs/app.md shows."""
CONTRAST = 4.5
"""Of text and its ground: what the guidelines of the web ask for."""

AUDIT = """(() => {
  const wrong = [], seen = new Set();
  const shown = (e) => e.checkVisibility({ checkOpacity: false }) && !e.closest('.sr, .skip');
  for (const e of document.querySelectorAll('input:not([type=hidden]), select, textarea, button, progress, meter, a')) {
    const name = e.labels?.[0]?.innerText || e.getAttribute('aria-label') || e.innerText;
    if (shown(e) && !name?.trim()) wrong.push('no name: ' + e.outerHTML.slice(0, 80));
  }
  for (const e of document.querySelectorAll('[aria-describedby], [aria-labelledby], label[for]'))
    for (const name of ['aria-describedby', 'aria-labelledby', 'for'])
      for (const id of (e.getAttribute(name) || '').split(' '))
        if (id && !document.getElementById(id)) wrong.push('leads nowhere: ' + id);
  for (const { id } of document.querySelectorAll('[id]')) {
    if (seen.has(id)) wrong.push('twice: ' + id);
    seen.add(id);
  }
  let level = 0;
  for (const e of document.querySelectorAll('h1, h2, h3')) {
    if (shown(e) && Number(e.tagName[1]) > level + 1) wrong.push('heading skips: ' + e.innerText);
    level = Number(e.tagName[1]);
  }
  if (document.querySelectorAll('h1').length !== 1) wrong.push('headings of the page');
  if (document.documentElement.scrollWidth > innerWidth) wrong.push('wider than the window');
  const parts = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return parts(getComputedStyle(document.body).backgroundColor); };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !shown(e) || e.closest('option, script, noscript')) continue;
    const [a, b] = [light(parts(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < CONTRAST) wrong.push('hard to read: ' + walk.currentNode.data.trim().slice(0, 40));
  }
  return wrong;
})()""".replace("CONTRAST", str(CONTRAST))


class Visit:
    """A page in a process of its own, a browser, and what is looked at on the way."""

    def __init__(self, tab, address, folder, width, *, dark=False):
        self.tab, self.folder, self.width, self.dark = tab, folder, width, dark
        self.book = folder / "privacy.sqlite"
        tab.size(width, dark=dark)
        tab.open(address)
        tab.page("Choose the table")
        assert "token" not in tab.run("location.href")  # it is gone from the address
        assert tab.run("document.cookie") == ""  # no script can read it

    def look(self, name):
        """Check that the page can be used by everyone, and keep its picture."""
        self.tab.wait("document.readyState === 'complete'")
        assert self.tab.run(AUDIT) == []
        kind = f"{'narrow' if self.width == NARROW else 'wide'}{'-dark' * self.dark}"
        if PICTURES and f"{name}-{kind}" in KEPT:
            path = Path(PICTURES) / f"app-{name}-{kind}.png"
            self._rename(str(self.folder), "/home/you")  # the folder of a test is nobody's home
            self.tab.picture(path, height=1500)
            self._rename("/home/you", str(self.folder))
            Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)

    def _rename(self, old, new):
        self.tab.run(
            "(() => { const w = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); while (w.nextNode())"
            f"w.currentNode.data = w.currentNode.data.replaceAll({json.dumps(old)}, {json.dumps(new)}); }})()"
        )

    def type(self, selector, text):
        self.tab.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.tab.write(text)


@pytest.fixture
def visit(tmp_path):
    """Return a function that starts a page and opens it, in windows of any width."""
    started = []
    with browser() as tab:

        def start(width, **options):
            code = "import sys; from privmeasure.cli import main; sys.argv = ['privmeasure', 'app']; main()"
            process = subprocess.Popen(
                [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
            )
            started.append(process)
            process.stdout.readline()
            return Visit(tab, process.stdout.readline().strip(), tmp_path, width, **options)

        yield start
        foreign = [
            address for address in tab.addresses() if not address.startswith(("http://127.0.0.1:", "data:", "about:"))
        ]
        assert foreign == []
    for process in started:
        process.terminate()
        _, err = process.communicate(timeout=30)
        assert "Traceback" not in err


def check_rows(path):
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert 4500 < len(rows) < 5500
    assert set(rows[0]) == {"age", "sex", "income"}
    assert {row["sex"] for row in rows} <= {"F", "M", ""}


def unexpected(tab):
    """What the browser complained of, but for forms that were to be mended."""
    return [text for text in tab.complaints() if "422" not in text]


@pytest.mark.parametrize(("width", "dark"), [(WIDE, False), (NARROW, True)])
def test_with_a_mouse_from_a_file_to_a_report_and_a_table(visit, width, dark):
    here = visit(width, dark=dark)
    tab = here.tab
    base = tab.run("location.href")
    here.look("table")
    assert tab.run("document.querySelector('[aria-current]').innerText") == "Table"
    tab.click("#send")
    tab.wait("!document.querySelector('#file-fault').hidden")
    tab.choose_file("#file", PEOPLE)
    tab.click("#send")
    tab.page("Say what may occur")
    here.look("schema-begun")
    tab.click("button[value=check]")
    tab.wait("document.activeElement?.id === 'errors'")  # told at once to who does not see it
    assert tab.run(AUDIT) == []
    tab.click("#errors a")
    assert tab.run("document.activeElement.id") == "c0-nullable"
    tab.run("for (const s of document.querySelectorAll('select[id$=nullable]')) s.value = 'yes'")
    tab.click("button[value=check]")
    tab.wait("document.querySelector('#done')")
    here.look("schema")
    tab.click("#done .button")
    tab.page("See the plan")
    tab.click("#neighbours-add-remove")
    here.type("#rows", "5000")
    tab.wait("document.querySelector('#headline')")
    before = tab.run("document.querySelector('#headline').innerText")
    tab.run("document.querySelector('#slider').focus()")
    tab.press("ArrowRight", 3)
    tab.wait("document.querySelector('#plan-h').innerText === 'With epsilon = 3'")
    assert tab.run("document.querySelector('#headline').innerText") != before
    assert tab.run("document.querySelector('#epsilon').value") == "3"
    here.type("#epsilon", "1")
    tab.wait("document.querySelector('#plan-h').innerText === 'With epsilon = 1'")
    tab.click("#plan-form button")
    tab.wait("location.search && document.querySelector('#go-on')")
    here.look("plan")
    tab.click("#go-on")
    tab.page("Who counts")
    for field, text in {"#ledger": str(here.book), "#dataset": "people 2024", "#cap": "2"}.items():
        here.type(field, text)
    tab.click("main button")
    tab.page("Spend epsilon, once")
    here.look("confirm")
    assert Ledger(here.book).spent("people 2024") == 0
    tab.click("button.spend")
    tab.page("Release 1")
    tab.wait("document.querySelector('#look')")
    tab.click("section button")
    tab.wait("document.querySelector('.files a')")
    here.look("release")
    tab.click(".files a")
    check_rows(tab.downloaded("synthetic.csv"))
    tab.click("#take")
    assert tab.downloaded("the.release").stat().st_size > 1000
    tab.run("history.go(-3)")  # to the confirmation, and further
    for _ in range(2):
        tab.wait("document.readyState === 'complete'")
        tab.reload()
    tab.wait("document.readyState === 'complete'")
    assert len(Ledger(here.book).history("people 2024")) == 1  # neither back nor a reload spends
    tab.open(f"{base}release/1")
    tab.click("#look")
    tab.opened(f"{base}release/1/report", "A private release")
    tab.open(f"{base}release/1/report")
    tab.wait("document.querySelector('h1')?.innerText.includes('columns')")
    assert tab.run("document.querySelectorAll('svg').length") >= 3
    assert unexpected(tab) == []


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_by_keyboard_alone(visit, width):
    here = visit(width)
    tab = here.tab
    tab.press("Tab")
    assert tab.run("document.activeElement.className") == "skip"
    tab.tab_to("#path")
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"  # it can be seen where one is
    tab.write(str(PEOPLE))
    tab.press("Enter")
    tab.page("Say what may occur")
    for column in range(3):
        tab.tab_to(f"#c{column}-nullable")
        tab.press("ArrowDown")
    tab.tab_to("button[value=check]")
    tab.press("Enter")
    tab.wait("document.querySelector('#done')")
    tab.tab_to("#done .button")
    tab.press("Enter")
    tab.page("See the plan")
    tab.tab_to("#slider")
    tab.press("ArrowLeft", 2)
    assert tab.run("document.activeElement.getAttribute('aria-valuetext')") == "epsilon 0.5"
    tab.tab_to("#neighbours-add-remove")
    tab.press("Space")
    tab.tab_to("#rows")
    tab.write("5000")
    tab.tab_to("#plan-form button")
    tab.press("Enter")
    tab.wait("location.search && document.querySelector('#go-on')")
    tab.tab_to("#go-on")
    tab.press("Enter")
    tab.page("Who counts")
    for field, text in {"#ledger": str(here.book), "#dataset": "people", "#cap": "2"}.items():
        tab.tab_to(field)
        tab.write(text)
    tab.tab_to("main button")
    tab.press("Enter")
    tab.page("Spend epsilon, once")
    tab.tab_to("button.spend")
    tab.press("Enter")
    tab.page("Release 1")
    tab.wait("document.querySelector('#look')")
    tab.tab_to("section button")
    tab.press("Enter")
    tab.wait("document.querySelector('.files a')")
    tab.tab_to(".files a")
    tab.press("Enter")
    check_rows(tab.downloaded("synthetic.csv"))
    assert str(Ledger(here.book).spent("people")) == "1/2"
    assert unexpected(tab) == []


def test_the_audit_finds_what_is_wrong(visit):
    tab = visit(WIDE).tab
    assert tab.run(AUDIT) == []
    for spoil, told in [
        ("document.querySelector('.lead').style.color = '#999'", "hard to read"),
        ("document.querySelector('label[for=path]').remove()", "no name"),
        ("document.querySelector('#path-help').id = 'other'", "leads nowhere"),
        ("document.querySelector('#path').id = 'main'", "twice"),
        ("document.querySelector('h1').style.width = '3000px'", "wider"),
        ("document.querySelector('.lead').innerHTML = '<h3>deep</h3>'", "heading skips"),
        ("document.querySelector('h1').remove()", "headings of the page"),
    ]:
        tab.run(spoil)
        assert any(fault.startswith(told) for fault in tab.run(AUDIT)), told


def test_without_script(visit):
    here = visit(WIDE)
    tab = here.tab
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.reload()
    tab.page("Choose the table")
    assert tab.run("document.querySelector('#file').checkVisibility()") is False  # what needs it is not offered
    here.type("#path", str(PEOPLE))
    tab.press("Enter")
    tab.page("Say what may occur")
    tab.click("button[value=missing]")
    tab.wait("document.querySelector('#c0-nullable')?.value === 'yes'")
    tab.click("button[value=check]")
    tab.wait("document.querySelector('#done')")
    tab.click("#done .button")
    tab.page("See the plan")
    tab.click("#neighbours-replace")
    here.type("#rows", "5000")
    tab.press("Enter")
    tab.wait("location.search && document.querySelector('#go-on')")
    tab.click("#go-on")
    tab.page("Who counts")
    for field, text in {"#ledger": str(here.book), "#dataset": "people", "#cap": "2"}.items():
        here.type(field, text)
    tab.press("Enter")
    tab.page("Spend epsilon, once")
    tab.click("button.spend")
    tab.page("Release 1")  # by itself: the page of the work loads itself again
    tab.click("section button")
    tab.wait("document.querySelector('.files a')")
    tab.click(".files a")
    assert tab.downloaded("synthetic.csv").read_text().count("\n") == 5001  # "replace": the number of rows is public


class Stranger(BaseHTTPRequestHandler):
    """Another server of this machine, to which browsers send the cookies of all ports."""

    cookies: ClassVar[list[str]] = []
    text = ""

    def do_GET(self):
        self.cookies.append(self.headers.get("Cookie", ""))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *arguments):
        pass


def test_another_page_of_this_machine_can_do_nothing(visit):
    """It is of the same site, so that the cookie comes along; the browser says that it is not of the same origin."""
    here = visit(WIDE)
    tab = here.tab
    ours = tab.run("location.href")
    token = tab.run("document.querySelector('[name=form_token]').value")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        evil = f"http://127.0.0.1:{server.server_port}/"
        field = f'<input name="form_token" value="{token}"><input name="path" value="/etc/passwd">'
        Stranger.text = f'<form method="post" action="{ours}table">{field}</form><a href="{ours}">x</a>'
        tab.open(evil)
        tab.run("document.forms[0].submit()")
        tab.wait("document.body?.innerText.includes('Another page sent this request')")
        tab.open(evil)
        tab.run("document.querySelector('a').click()")
        tab.wait("document.body?.innerText.includes('Another page sent this request')")
        tab.open(evil)
        read = f"fetch({json.dumps(ours)}, {{credentials: 'include'}}).then((r) => r.text(), () => 'nothing')"
        assert tab.run(read) == "nothing"
        frame = (
            "new Promise((r) => { const f = document.createElement('iframe'); f.onload = () => r(!f.contentDocument);"
        )
        assert tab.run(f"{frame} f.src = {json.dumps(ours)}; document.body.append(f); }})")
        assert all("privmeasure" not in cookie for cookie in Stranger.cookies)  # nor is ours sent to it
        assert len(Stranger.cookies) >= 3
        tab.open(ours)
        tab.page("Choose the table")  # who types the address is still in, and nothing has happened
        assert not tab.run("document.body.innerText.includes('Open now')")
    finally:
        server.shutdown()
        server.server_close()
