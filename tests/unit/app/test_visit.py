"""A visit over HTTP: from a table to a release and its files; what is spent, how often, and what is said of it."""

import html
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet
import pytest

import privmeasure as pm
from depth import some
from privmeasure.app import jobs
from privmeasure.cli import terminal
from privmeasure.cli.serving import LocalCommands
from privmeasure.ledger import Ledger
from unit.app.visitors import ROWS, SCHEMA, SECRET, QuickCommands, errors_of, visiting

# ------------------------------------------------------------------------------------------------- the whole way


def test_from_a_table_to_its_release_and_its_files(people, tmp_path):
    with visiting(commands=LocalCommands()) as page:
        page.enter()
        go_all_the_way(page, people, tmp_path)


def go_all_the_way(page, people, tmp_path):
    book = tmp_path / "book.sqlite"
    page.bring(people)
    page.promise()
    assert "This opens <b>people.csv</b>" in page.get(f"confirm/{page.confirm(book, cap='2')}").text
    assert Ledger(book).history("people") == []  # a confirmation spends nothing
    shown = page.release(book)
    assert "epsilon = 1: entry 1 of &#39;people&#39;" in shown.text
    (entry,) = Ledger(book).history("people")
    assert (entry.epsilon, entry.state, len(entry.files)) == (1, "spent", 1)
    made = page.finish(page.post("release/1/table", {"ending": ".parquet", "number": "50", "where": "sex = 'F'"}))
    assert "synthetic.parquet" in made.text
    rows = page.get("release/1/table/1/download")
    assert rows.headers["Content-Disposition"] == "attachment; filename*=UTF-8''synthetic.parquet"
    table = pyarrow.parquet.read_table(io.BytesIO(rows.body))
    assert table.num_rows == 50
    assert table.column_names == ["age", "sex"]
    assert set(table["sex"].to_pylist()) == {"F"}
    saved = tmp_path / "the.release"
    saved.write_bytes(page.get("release/1/release/download").body)
    assert pm.load(saved).private
    assert entry.files == Ledger(book).close(saved).files  # the very file that the ledger knows
    deadline = time.monotonic() + 60
    while page.desk.made[0].report is None and time.monotonic() < deadline:
        time.sleep(0.05)
    report = page.get("release/1/report")
    assert report.status == 200
    assert "epsilon is 1." in report.text
    assert report.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'; style-src")
    assert "script" not in report.headers["Content-Security-Policy"]
    assert page.get("release/1/report/download").body == report.body


def test_a_table_with_another_delimiter_is_refused_with_a_question(page, tmp_path):
    (tmp_path / "people.csv").write_text(f"age;sex;name\n20;F;{SECRET}\n")
    shown = page.post("table", {"path": str(tmp_path / "people.csv")})
    assert shown.status == 422
    assert "Is the delimiter &#39;;&#39;?" in shown.text
    assert page.desk.table is None
    again = page.post("table", {"path": str(tmp_path / "people.csv"), "delimiter": ";"})
    assert again.place == f"{page.door.path}schema"


def test_a_release_can_be_kept_where_its_owner_says(page, people, tmp_path):
    book, place = tmp_path / "book.sqlite", tmp_path / "people.release"
    page.bring(people)
    page.promise()
    assert f"kept at {place}" in page.release(book, cap="2", out=str(place)).text
    assert pm.load(place).private
    assert page.desk.lost == []
    place.rename(tmp_path / "elsewhere.release")
    gone = page.get("release/1/release/download")
    assert (gone.status, "is not there any more" in gone.text) == (400, True)
    place.write_bytes(b"")
    (fault,) = errors_of(page.post("ledger", {"ledger": str(book), "dataset": "people", "out": str(place)}))
    assert "exists already" in fault


def test_the_form_of_a_schema_says_what_is_open_and_what_is_wrong(page, people):
    page.upload("people.csv", people.read_bytes())
    first = page.get("schema")
    assert "Guessed from the name alone" in first.text
    typed = {"c0-type": "integer", "c0-low": "0", "c0-high": "120", "c1-type": "category", "c1-values": "F\nM",
             "c2-type": "drop"}  # fmt: skip
    left = page.declare(place="schema", form=typed)
    assert left.status == 422
    assert errors_of(left) == [f"{name}: may cells be missing? Choose yes or no." for name in ("age", "sex")]
    assert not page.desk.ready
    wrong = page.declare(place="schema", form=typed | {"c0-low": "130", "c0-nullable": "yes", "c1-nullable": "no"})
    assert [html.unescape(text) for text in errors_of(wrong)] == [
        "age has low = 130 and high = 120; low must be below high. Swap them."
    ]
    assert 'value="130"' in wrong.text  # what was typed is still there
    assert 'aria-invalid="true"' in wrong.text
    done = page.declare(
        place="schema", form=typed | {"c0-nullable": "yes", "c1-nullable": "no", "c0-more": 'unit = "year"'}
    )
    assert done.place.endswith("schema#done")
    assert page.desk.ready
    assert pm.Schema.from_toml(page.desk.schema_file()).columns["age"] == pm.Integer(0, 120, unit="year", nullable=True)


def test_cells_may_be_missing_wherever_it_is_open(page, people):
    page.upload("people.csv", people.read_bytes())
    typed = {"c0-type": "integer", "c0-low": "0", "c0-high": "120", "c0-nullable": "no", "c1-type": "category"}
    page.declare(typed | {"c1-values": "F, M", "c2-type": "drop", "then": "missing"}, place="schema")
    assert "nullable = false" in page.desk.text
    assert 'values = ["F", "M"]\nnullable = true' in page.desk.text


def test_a_schema_that_does_not_fit_the_header_is_told(page, people):
    page.post("table", {"path": str(people)})
    before = page.desk.text
    reply = page.declare({"text": SCHEMA.replace("columns.age", "columns.height")})
    assert "height" in errors_of(reply)[0]
    assert page.desk.text == before  # nothing was saved
    assert not page.desk.ready
    assert errors_of(page.declare({"text": "no toml ["}))
    dictionary = "name,type,low,high,values\nage,integer,0,120,\nsex,factor,,,F;M\nname,id,,,\n"
    assert page.declare({"text": dictionary, "name": "dictionary.csv"}).status == 303
    assert page.desk.ready


def test_the_plan_moves_with_epsilon(page, people):
    page.bring(people)
    terms = "neighbours=add-remove&rows=900&rows_per_person=1"
    live = [page.get(f"plan/live?epsilon={epsilon}&{terms}").text for epsilon in ("0.5", "1", "4")]
    said = [re.search(r'id="headline">(.*?)<', text)[1] for text in live]
    assert len(set(said)) == 3
    assert page.desk.terms is None  # looking changes nothing
    assert "What another epsilon would guarantee" in page.get(f"plan?epsilon=1&{terms}").text
    for query in ("epsilon=one", "epsilon=1&rows=0", "epsilon=1&neighbours="):
        field = query.split("&")[-1].partition("=")[0]
        found = page.get(f"plan?{terms}&{query}")
        assert found.status == 422
        assert f'href="#{field}' in found.text
    assert "--" not in errors_of(page.get(f"plan?epsilon=one&{terms}"))[0]  # fields, not options


def test_the_counts_are_stamped_and_made_only_when_asked(page, people):
    page.bring(people)
    assert page.get("counts").place.endswith("schema")
    shown = page.finish(page.post("count"))
    assert shown.text.count("CONFIDENTIAL") == 2
    assert f"{ROWS:,} rows" in shown.text
    assert SECRET not in shown.text


def test_persons_are_protected_as_the_schema_says(page, people, tmp_path):
    page.bring(people, SCHEMA.replace("format = 1", 'format = 2\nperson = "name"'))
    book, terms = tmp_path / "book.sqlite", {"epsilon": "1", "neighbours": "add-remove", "rows": "900"}
    assert "No more are kept of each name" in page.get("plan").text
    page.post("plan", terms | {"rows_per_person": "3"})
    key = page.confirm(book, cap="2")
    assert "up to 3 rows of each person, by &#39;name&#39;; no more are kept" in page.get(f"confirm/{key}").text
    assert page.finish(page.post("spend", {"key": key})).status == 200
    (entry,) = Ledger(book).history("people")
    assert (entry.person, entry.rows_per_person) == ("name", 3)
    refused = page.get("plan?epsilon=1&neighbours=replace&rows=9&rows_per_person=1")
    assert "needs neighbours=&#39;add-remove&#39;" in refused.text


def test_the_form_of_another_table_is_refused(page, people, tmp_path):
    """Two tabs: what was typed for the columns of one table must not declare those of another."""
    page.post("table", {"path": str(people)})
    first = {"c0-type": "integer", "c0-low": "0", "c0-high": "9", "opened": str(page.desk.opened)}
    other = tmp_path / "other.csv"
    other.write_text("height\n1\n")
    page.post("table", {"path": str(other)})
    before = page.desk.text
    for reply in (page.post("schema", first), page.post("text", {"text": SCHEMA, "opened": first["opened"]})):
        assert reply.status == 400
        assert "Another table was opened meanwhile" in reply.text
    assert page.desk.text == before


@pytest.mark.parametrize("path", ["~nobody-of-this-name/x.csv", "x\0.csv", "/no/such.csv", "x.exe", "x" * 5000])
def test_a_path_that_leads_nowhere_is_explained(page, path):
    (fault,) = errors_of(page.post("table", {"path": path}))
    assert "should not" not in fault


# ------------------------------------------------------------------------------------------------ spent once


def test_a_reload_never_spends_twice(page, people, tmp_path):
    book = tmp_path / "book.sqlite"
    page.bring(people)
    page.promise()
    key = page.confirm(book, cap="5")
    first = page.finish(page.post("spend", {"key": key}))
    for _ in range(3):
        assert page.post("spend", {"key": key}).place == f"{page.door.path}release/1"
        assert page.get(f"confirm/{key}").place == f"{page.door.path}release/1"  # back, and forth
    assert first.status == 200
    assert len(Ledger(book).history("people")) == 1
    assert page.post("spend", {"key": "unknown"}).status == 400
    assert len(Ledger(book).history("people")) == 1


class SlowCommands(QuickCommands):
    """Wait, as a large table would make us."""

    def __init__(self):
        self.go, self.begun = threading.Event(), 0

    def spend(self, order):
        self.begun += 1
        assert self.go.wait(60)
        return super().spend(order)


def test_many_who_send_the_same_confirmation_at_once_spend_once(people, tmp_path):
    commands, book = SlowCommands(), tmp_path / "book.sqlite"
    with visiting(commands=commands) as page:
        page.enter()
        page.bring(people)
        page.promise()
        key, other = page.confirm(book, cap="5"), page.confirm(book)
        ready, found = threading.Barrier(12), []

        def send():
            ready.wait()
            found.append(page.post("spend", {"key": key}).place)

        threads = [threading.Thread(target=send) for _ in range(12)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(set(found)) == 1
        refused = page.post("spend", {"key": other})  # one at a time
        assert refused.status == 400
        assert "Another release is being made" in refused.text
        assert "nothing was spent" in refused.text
        assert "would be lost" in page.post("stop").text
        commands.go.set()
        page.finish(page.post("spend", {"key": key}))
        assert commands.begun == 1
        assert len(Ledger(book).history("people")) == 1
        page.finish(page.post("spend", {"key": other}))  # it was confirmed, too: now it may
        assert len(Ledger(book).history("people")) == 2


class LongReport(LocalCommands):
    """A report that goes on until a table was drawn."""

    drawn = False

    def report(self, release, page):
        deadline = time.monotonic() + 60
        with terminal.progress("typical error", shown=False) as advance:
            while not self.drawn and time.monotonic() < deadline:
                advance("typical error", 0.5)
                time.sleep(0.01)
        return ["late"]

    def sample(self, *arguments):
        self.drawn = True
        return super().sample(*arguments)


def test_a_page_that_is_stopped_does_not_wait_for_a_report(people, tmp_path):
    with visiting(commands=LongReport()) as page:
        page.enter()
        page.bring(people)
        page.promise()
        page.release(tmp_path / "book.sqlite", cap="2")
        begin = time.monotonic()
        page.post("stop")
        while not page.desk.made[0].drawing.done and time.monotonic() - begin < 30:
            time.sleep(0.01)
        assert time.monotonic() - begin < 20


def test_a_report_gives_way_to_a_table(people, tmp_path):
    with visiting(commands=LongReport()) as page:
        page.enter()
        page.bring(people)
        page.promise()
        assert "estimating" in page.release(tmp_path / "book.sqlite", cap="2").text
        made = page.finish(page.post("release/1/table", {"ending": ".csv"}))
        assert "Download synthetic.csv" in made.text
        assert page.get("release/1/table/1/download").status == 200


def test_what_was_confirmed_is_what_is_spent(page, people, tmp_path):
    """Changes in another tab come too late: the order is fixed."""
    book = tmp_path / "book.sqlite"
    page.bring(people)
    page.promise("1/2")
    key = page.confirm(book, cap="5")
    page.promise("3")
    page.declare({"text": SCHEMA.replace("high = 90", "high = 99")})
    page.finish(page.post("spend", {"key": key}))
    (entry,) = Ledger(book).history("people")
    assert entry.epsilon == Fraction(1, 2)
    assert "high = 99" in page.desk.text
    assert pm.load(page.desk.made[0].path).schema.columns["age"].high == 90


def test_nothing_is_spent_without_a_ledger_or_beyond_its_cap(page, people, tmp_path):
    book = tmp_path / "book.sqlite"
    page.bring(people)
    page.promise("2")
    assert len(errors_of(page.post("ledger", {}))) == 2
    assert "Give a cap to open one" in errors_of(page.post("ledger", {"ledger": str(book), "dataset": "people"}))[0]
    assert not book.exists()
    for wrong in ({"cap": "much"}, {"cap": "1", "dataset": "a/b"}, {"cap": "1", "ledger": "/no/such/folder/book"}):
        reply = page.post("ledger", {"ledger": str(book), "dataset": "people"} | wrong)
        field = list(wrong)[-1]
        assert f'<a href="#{field}">' in reply.text
    for _ in range(2):  # the same form twice opens one account
        (fault,) = errors_of(page.post("ledger", {"ledger": str(book), "dataset": "people", "cap": "1"}))
        assert "would pass the cap" in fault
    page.promise("1/2")
    key, late = page.confirm(book), page.confirm(book)
    assert "Left afterwards</dt><dd>0.5<" in page.get(f"confirm/{key}").text
    assert (
        "its cap is set" in errors_of(page.post("ledger", {"ledger": str(book), "dataset": " People", "cap": "9"}))[0]
    )
    page.finish(page.post("spend", {"key": key}))
    shown = page.get(f"confirm/{page.confirm(book, note='a second one')}").text
    assert "What was booked on these data before: 1" in shown
    page.release(book)
    refused = page.finish(page.post("spend", {"key": late}))  # it was confirmed when there was enough
    assert "would pass the cap" in refused.text
    assert Ledger(book).spent("people") == 1
    assert len(Ledger(book).history("people")) == 2
    page.promise("1/2", "replace")
    assert "do not add up" in errors_of(page.post("ledger", {"ledger": str(book), "dataset": "people"}))[0]


# ------------------------------------------------------------------------------------- nothing of the data is said


def test_no_page_says_a_value_or_the_number_of_rows(page, people, tmp_path, capfd):
    page.upload("people.csv", people.read_bytes())
    before = [page.get("schema").text, page.get("text").text]
    page.bring(people)
    page.promise()
    before.append(page.get("plan").text)
    key = page.confirm(tmp_path / "book.sqlite", cap="2")
    before.append(page.get(f"confirm/{key}").text)
    reply = page.post("spend", {"key": key})
    after = [page.get(reply.place.removeprefix(page.door.path)).text, page.finish(reply).text]
    assert not any(re.search(rf"\b{ROWS}\b", text) for text in before)  # after it, there is one with noise
    assert not any(SECRET in text for text in before + after)
    out, err = capfd.readouterr()
    assert out + err == ""


def test_progress_says_the_same_whatever_the_number_of_rows(tmp_path, monkeypatch):
    """The page shows stages and fractions, and nothing else: the fit tells them at fixed places."""
    advance, told = jobs.Job.advance, []

    def note(job, *now):
        if job.title == "Making the release":
            told.append(now)
        advance(job, *now)

    monkeypatch.setattr(jobs.Job, "advance", note)
    seen = []
    for rows in (10, 1000, 200_000):
        table = tmp_path / f"{rows}.csv"
        table.write_text("age,sex,name\n" + "40,F,x\n" * rows)
        told.clear()
        with visiting() as page:
            page.enter()
            page.bring(table)
            page.promise()
            reply = page.post("spend", {"key": page.confirm(tmp_path / f"{rows}.sqlite", cap="2")})
            shown = json.loads(page.get(f"{reply.place.removeprefix(page.door.path)}.json").text)
            assert set(shown) == {"stage", "fraction", "done"}
            page.finish(reply)
        seen.append(list(told))
    assert ("read", 0.5) in seen[0]
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("x.csv", b"", "x.csv is empty"),
        ("x.parquet", f"PAR1{SECRET}".encode(), "x.parquet"),
        ("x.exe", b"a", "ending"),
        ("x", b"a", "no ending"),
        ("x.csv", b"a,a\n1,2\n", "x.csv"),
        ("x.csv", b'"open\n' + SECRET.encode(), "cannot be read"),
    ],
)
def test_an_upload_that_cannot_be_used_is_explained_by_its_own_name(page, name, body, words):
    reply = page.upload(name, body)
    assert reply.status == 422
    told = json.loads(reply.text)["error"]
    assert words in told
    assert SECRET not in told
    assert str(page.desk.folder) not in told
    assert not [path for path in page.desk.folder.rglob("*") if path.is_file()]


def test_names_of_columns_and_files_are_text(page):
    """What a header says stays text in the page."""
    evil = "<script>alert(1)</script>"
    page.upload("<script>alert(2).csv", f"age,{evil}\n1,2\n".encode())
    assert "&lt;script&gt;alert(2)" in page.get("").text
    assert "&lt;script&gt;alert(1)" in page.get("schema").text
    for path in ("", "schema", "text"):
        assert "<script>alert" not in page.get(path).text


def test_an_error_that_nobody_foresaw_shows_none_of_its_text(page, people, monkeypatch):
    def fail(*arguments):
        raise ZeroDivisionError(SECRET)

    page.bring(people)
    monkeypatch.setattr(page.desk.commands, "plan", fail)
    reply = page.get("plan?epsilon=1&neighbours=replace&rows=5&rows_per_person=1")
    assert "ZeroDivisionError" in reply.text
    assert SECRET not in reply.text


# ----------------------------------------------------------------------------------------------------- the end


RUN = """
import os, signal, sys
from privmeasure.cli import main
from privmeasure.mechanisms import {module}
original = {module}.{name}
def interrupted(*arguments, **options):
    {first}
    found = original(*arguments, **options)
    {then}
    return found
{module}.{name} = interrupted
sys.argv = ["privmeasure", "app"]
main()
"""


class Process:
    """`privmeasure app` in a process of its own, with a visitor who is in."""

    def __init__(self, tmp_path, code):
        self.temporary = tmp_path / "tmp"
        self.temporary.mkdir(exist_ok=True)
        environment = os.environ | {"TMPDIR": str(self.temporary)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.process.stdout.readline()
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.process.communicate()
        self.origin, _, token = self.address.partition("/?")
        from unit.app.visitors import Visitor

        class Door:
            host, origin, path, form_token, address = self.origin.removeprefix("http://"), self.origin, "", "", ""

        class Server:
            door, server_port = Door, int(self.origin.rpartition(":")[2])

        self.visitor = Visitor(Server, None, None)
        reply = self.visitor.send("GET", f"/?{token}", {"Host": Door.host})
        self.visitor.cookie, Door.path = reply.headers["Set-Cookie"].split(";")[0], reply.place
        Door.form_token = re.search(r'name="form_token" value="([^"]+)"', self.visitor.get("").text)[1]

    def ends(self):
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    @property
    def left(self):
        return list(self.temporary.rglob("*"))


PLAIN = "import sys; from privmeasure.cli import main; sys.argv = ['privmeasure', 'app']; main()"


@some("number", 1, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_kept_after_it_was_stopped(number, tmp_path, people):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("this signal is ignored here, and so in every process that is started")
    running = Process(tmp_path, PLAIN)
    assert running.visitor.upload("people.csv", people.read_bytes()).status == 200
    assert [path for path in running.left if path.name == "table.csv"]
    running.process.send_signal(number)
    code, out, err = running.ends()
    assert (code, err) == (0, "")
    assert "stopped; everything" in out
    assert running.left == []


def test_the_next_page_deletes_the_upload_of_one_that_was_killed(tmp_path, people):
    killed = Process(tmp_path, PLAIN)
    assert killed.visitor.upload("people.csv", people.read_bytes()).status == 200
    killed.process.kill()
    killed.ends()
    assert [path for path in killed.left if path.name == "table.csv"]
    following = Process(tmp_path, PLAIN)
    assert not [path for path in following.left if path.name == "table.csv"]
    following.process.terminate()
    assert (following.ends()[0], following.left) == (0, [])


def test_the_page_stops_itself_and_warns_of_what_was_not_downloaded(tmp_path, people):
    running = Process(tmp_path, PLAIN)
    running.visitor.bring(people)
    running.visitor.promise()
    running.visitor.release(tmp_path / "book.sqlite", cap="2")
    assert "was not downloaded" in running.visitor.get("stop").text
    assert "deleted" in running.visitor.post("stop").text
    code, out, err = running.ends()
    assert code == 0
    assert "stopped; everything" in out
    (saved,) = re.findall(r"^warning: release 1 was not downloaded\. It is saved at (\S+)\.\n$", err)
    assert stat.S_IMODE(Path(saved).stat().st_mode) == 0o600
    (entry,) = Ledger(tmp_path / "book.sqlite").history("people")
    assert pm.load(saved).origin.id == entry.release
    assert running.left == []
    assert Ledger(tmp_path / "book.sqlite").spent("people") == 1


@pytest.mark.parametrize("after", [False, True])
def test_an_interruption_counts_as_spent_if_noise_was_drawn(after, tmp_path, people):
    """The same as in the command line: the fit runs on the thread that Ctrl-C reaches."""
    stop = "os.kill(os.getpid(), signal.SIGINT)"
    first, then = ("pass", stop) if after else (stop, "pass")
    running = Process(tmp_path, RUN.format(module="pmm", name="public_total", first=first, then=then))
    book = tmp_path / "book.sqlite"
    running.visitor.bring(people)
    running.visitor.promise()
    running.visitor.post("spend", {"key": running.visitor.confirm(book, cap="2")})
    code, _, err = running.ends()
    assert code == 130
    (entry,) = Ledger(book).history("people")
    assert entry.state == ("spent" if after else "freed")
    spent = "epsilon 1 is spent; there is no release, and entry 1 counts it"
    assert err.endswith(f"Cost: {spent if after else 'nothing was spent, and entry 1 was freed'}.\n")
    assert running.left == []


def test_a_port_that_is_taken_is_told(page):
    code = f"import sys; from privmeasure.cli import run; sys.exit(run(['app', '--port', '{page.server.server_port}']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "is taken" in done.stderr
