"""What a hostile or unlucky visitor found: each of these once went wrong."""

import os
import socketserver
import threading
import time

import pytest

from privmeasure.app.jobs import Jobs
from privmeasure.cli import terminal
from privmeasure.cli.serving import LocalCommands
from privmeasure.errors import SchemaError
from privmeasure.ledger import Ledger
from privmeasure.tables.toml import parse_schema
from unit.app.test_server import raw
from unit.app.visitors import SCHEMA, QuickCommands, errors_of, visiting


class WaitingCommands(QuickCommands):
    """Count, and wait before it is told."""

    def __init__(self):
        self.go = threading.Event()

    def count(self, *arguments):
        counts = super().count(*arguments)
        assert self.go.wait(60)
        return counts


@pytest.mark.parametrize("change", ["table", "schema"])
def test_counts_of_a_table_are_not_shown_for_another(change, people, tmp_path):
    """They came late, and stood beside the name of the table that was opened meanwhile."""
    commands, other = WaitingCommands(), tmp_path / "other.csv"
    other.write_text("age,sex,name\n1,F,x\n")
    with visiting(commands=commands) as page:
        page.enter()
        page.bring(people)
        reply = page.post("count")
        if change == "table":
            page.bring(other)
        else:
            page.declare({"text": SCHEMA.replace("high = 90", "high = 99")})
        commands.go.set()
        assert "count again" in page.finish(reply).text
        assert page.desk.counts is None
        assert "count again" not in page.finish(page.post("count")).text
        assert page.desk.counts is not None


def test_a_sign_to_stop_that_was_taken_by_other_work_still_stops():
    """Work that gives way looks into the queue: there it may find the sign that `run` waits for."""
    jobs = Jobs(terminal.watched, str)
    jobs.stop()
    jobs._queue.get()
    thread = threading.Thread(target=jobs.run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_nothing_is_begun_between_the_last_look_and_the_stop(page, people, tmp_path, monkeypatch):
    """A release that began just then was made, lost and paid for."""
    page.bring(people)
    page.promise()
    key, looked = page.confirm(tmp_path / "book.sqlite", cap="2"), threading.Event()
    stop = page.desk.jobs.stop
    found = []

    def late():
        assert looked.wait(60)
        found.append(page.post("spend", {"key": key}))

    def slow_stop():
        looked.set()
        time.sleep(1)
        stop()

    monkeypatch.setattr(page.desk.jobs, "stop", slow_stop)
    thread = threading.Thread(target=late)
    thread.start()
    assert page.post("stop").status == 200
    thread.join()
    assert len(found) == 1
    time.sleep(0.2)
    assert Ledger(tmp_path / "book.sqlite").history("people") == []


def test_an_upload_that_was_replaced_is_told_before_anything_is_booked(page, people, tmp_path):
    book = tmp_path / "book.sqlite"
    page.upload("first.csv", people.read_bytes())
    page.declare({"text": SCHEMA})
    page.promise()
    key = page.confirm(book, cap="2")
    page.upload("second.csv", people.read_bytes())
    reply = page.post("spend", {"key": key})
    assert reply.status == 400
    assert "first.csv was deleted" in reply.text
    assert Ledger(book).history("people") == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_release_goes_into_a_file_that_keeps_it(page, people, tmp_path):
    """A device forgets it, and a pipe without a reader waits for ever: after epsilon was spent."""
    book, pipe = tmp_path / "book.sqlite", tmp_path / "pipe.release"
    os.mkfifo(pipe)
    page.bring(people)
    page.promise()
    page.confirm(book, cap="2")
    for place in (pipe, os.devnull):
        (fault,) = errors_of(page.post("ledger", {"ledger": str(book), "dataset": "people", "out": str(place)}))
        assert "would not keep the release" in fault
    key = page.confirm(book, out=str(tmp_path / "late.release"))
    pipe.rename(tmp_path / "late.release")
    assert "would not keep the release" in page.finish(page.post("spend", {"key": key})).text
    assert Ledger(book).history("people") == []


def test_a_release_that_could_not_be_downloaded_is_not_counted_as_downloaded(page, people, tmp_path):
    page.bring(people)
    page.promise()
    page.release(tmp_path / "book.sqlite", cap="2")
    place = page.desk.made[0].path
    hidden = place.rename(place.with_suffix(".hidden"))
    assert page.get("release/1/release/download").status == 400
    assert len(page.desk.lost) == 1
    hidden.rename(place)
    assert page.get("release/1/release/download").status == 200
    assert page.desk.lost == []


def test_a_line_that_is_no_header_hides_none_behind_it(page):
    """The library stops reading headers there: where a request comes from would not be seen."""
    head = f"GET {page.door.path} HTTP/1.1\r\nHost: {page.door.host}\r\nCookie: {page.cookie}\r\n"
    assert b" 200 " in raw(page, f"{head}\r\n".encode()).split(b"\r\n")[0]
    for line in ("nonsense", "Transfer-Encoding : chunked", "Sec-Fetch-Site : cross-site"):
        reply = raw(page, f"{head}{line}\r\nSec-Fetch-Site: cross-site\r\n\r\n".encode())
        assert b" 400 " in reply.split(b"\r\n")[0]


def test_a_connection_for_which_there_is_no_thread_takes_no_room_for_ever(monkeypatch):
    with visiting() as visitor:

        def fail(*arguments):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(socketserver.ThreadingMixIn, "process_request", fail)
        for _ in range(100):
            with pytest.raises(RuntimeError):
                visitor.server.process_request(None, None)


@pytest.mark.parametrize("stated", ['"x"', "[1]", "1979-05-27", '"1"'])
def test_a_format_that_is_no_number_is_told(page, people, stated):
    page.post("table", {"path": str(people)})
    text = SCHEMA.replace("format = 1", f"format = {stated}")
    (fault,) = errors_of(page.declare({"text": text}))
    assert "format = 1" in fault
    assert "should not" not in fault
    with pytest.raises(SchemaError, match="format"):
        parse_schema(text, "people.toml")


def test_a_report_gives_way_on_the_thread_that_an_interruption_reaches(page, people, tmp_path, monkeypatch):
    """A release that is made in the middle of a report must not run on a helper of that report."""
    from privmeasure.app import jobs

    seen, advance = set(), jobs.Job.advance

    def note(job, *now):
        seen.add(threading.current_thread().name)
        advance(job, *now)

    monkeypatch.setattr(jobs.Job, "advance", note)
    monkeypatch.setattr(type(page.desk.commands), "report", LocalCommands.report)
    page.bring(people)
    page.promise()
    page.release(tmp_path / "book.sqlite", cap="2")
    drawing = page.desk.made[0].drawing
    deadline = time.monotonic() + 120
    while not drawing.done and time.monotonic() < deadline:
        time.sleep(0.05)
    assert page.desk.made[0].report is not None
    assert len(seen) == 1


def test_an_order_has_the_schema_of_its_own_table(page, people, tmp_path, monkeypatch):
    """Another tab that opens a table while the ledger is asked came between a table and its schema."""
    book, other = tmp_path / "book.sqlite", tmp_path / "other.csv"
    other.write_bytes(people.read_bytes())
    page.bring(people)
    page.promise()
    opening = page.desk.commands.open_account

    def meanwhile(*arguments):
        page.bring(other, SCHEMA.replace("high = 90", "high = 99"))
        return opening(*arguments)

    monkeypatch.setattr(page.desk.commands, "open_account", meanwhile)
    key = page.confirm(book, cap="2")
    order = page.desk.confirmation(key).order
    assert order.table == people
    assert "high = 90" in order.schema.read_text()


def test_a_text_that_is_refused_takes_back_nothing_of_another_tab(page, people, monkeypatch):
    page.bring(people)
    check, better = page.desk.commands.check, SCHEMA.replace("high = 90", "high = 99")

    def meanwhile(*arguments):
        monkeypatch.setattr(page.desk.commands, "check", check)
        page.declare({"text": better})
        return check(*arguments)

    monkeypatch.setattr(page.desk.commands, "check", meanwhile)
    reply = page.declare({"text": SCHEMA.replace("columns.sex", "columns.nothing")})
    assert reply.status == 422
    assert page.desk.text == better
    assert page.desk.ready
