"""The command line in a process of its own: what the system does to it, and what it leaves behind."""

import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time

import pytest
from cli_shelf import BOOKED, COMMAND, PROMISE, check_message

import privmeasure as pm
from privmeasure.ledger import Ledger


def start(*arguments, **options):
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def test_help_comes_at_once():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = start("--help")
    out, _ = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0
    assert "synthesize" in out
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5
    code = (
        "import sys, privmeasure.cli; print([m for m in ('numpy', 'pyarrow', 'scipy', 'pydantic') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_full_disk(folder):
    """A limit on the size of files stands for it: the write fails half way."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    process = start("sample", "people.release", "-n", "100000", "-o", "out.csv", preexec_fn=limit)
    printed, err = process.communicate()
    assert process.returncode == 3
    check_message(err, "out.csv", "disk")
    assert printed == ""
    assert not list(folder.glob("out.csv*"))


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("booked", [False, True])
def test_a_disk_that_is_full_after_the_fit(folder, booked, kept):
    """What epsilon bought is kept in a release, asked for or not: the error says where it is, and who counts it."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    rows = ["-s", "people.toml", *PROMISE, "-n", "100000", "-o", "new.csv"]
    rows += (["--release", "s.release"] if kept else ["--no-release"]) + [
        "--ledger",
        "book.sqlite",
        "--dataset",
        "people",
    ] * booked
    process = start("synthesize", "people.csv", *rows, preexec_fn=limit)
    printed, err = process.communicate()
    assert process.returncode == 3, err
    check_message(err, "new.csv was not written: the disk is full.")
    (saved,) = re.findall(r"Cost: epsilon 1 is spent; the release is saved at (\S+), and ", err)
    assert err.endswith("entry 1 counts it.\n" if booked else "it is not recorded in a ledger.\n")
    assert (saved == "s.release") == kept
    assert (folder / "s.release").exists() == kept
    assert pm.load(saved).origin.recorded is booked
    assert printed == ""
    assert not list(folder.glob("new.csv*"))
    assert Ledger(folder / "book.sqlite").spent("people") == booked


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize("arguments", [["--json"], []])
def test_an_output_that_takes_nothing(folder, arguments):
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "plan", "--schema", "people.toml", *PROMISE, "--rows", "9", *arguments],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=folder, env=buffered,
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.startswith("error: No space left")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_leaves_no_half_file(folder, number):
    if signal.getsignal(number) is signal.SIG_IGN:  # as under nohup: then a command goes on, as it should
        pytest.skip("this signal is ignored here, and so in every process that is started")
    process = start("sample", "people.release", "-n", "20000000", "-o", "out.csv")
    deadline = time.monotonic() + 20
    while not list(folder.glob("out.csv*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(folder.glob("out.csv*.part"))
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    check_message(err, "interrupted", "Cost: nothing was spent.")
    assert out == ""
    assert not list(folder.glob("out.csv*"))


@pytest.mark.parametrize("arguments", [["inspect", "people.release"], ["schema", "export-json-schema"]])
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_fault(folder, arguments, buffered):
    process = start(*arguments, cwd=folder, env=os.environ | {"PYTHONUNBUFFERED": buffered})
    process.stdout.close()
    assert process.wait(timeout=20) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_killed_run_counts_as_spent(folder):
    """The table is a pipe without an end in spirit: large enough to be killed while it is read."""
    with (folder / "people.csv").open("ab") as file:
        line = b"20,F,5,x\n" * 100_000
        for _ in range(60):
            file.write(line)
    process = start(*BOOKED)
    ledger = Ledger(folder / "book.sqlite")
    deadline = time.monotonic() + 20
    while not ledger.history("people") and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    (entry,) = ledger.history("people")
    assert entry.state in ("pending", "spent")
    assert ledger.spent("people") == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell):
    words = {"_PRIVMEASURE_COMPLETE": f"complete_{shell}", "COMP_WORDS": "privmeasure sam", "COMP_CWORD": "1"}
    words |= {"_TYPER_COMPLETE_ARGS": "privmeasure sam", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    run = subprocess.run(COMMAND, capture_output=True, text=True, env=os.environ | words, check=False)
    assert "sample" in run.stdout, run.stderr
    told = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # not the shell that runs the tests
    asked = subprocess.run(
        [*COMMAND, "--show-completion", shell], capture_output=True, text=True, env=told, check=False
    )
    assert "_PRIVMEASURE_COMPLETE" in asked.stdout, asked.stderr


@pytest.mark.parametrize(
    ("redirect", "code", "told"),
    [
        ("schema edit gaps.toml < /dev/null", 0, "has 1 more to fill in"),
        ("schema edit gaps.toml <&-", 0, "has 1 more to fill in"),
        ("printf '\\377' | {} schema edit gaps.toml", 0, "No: a cannot have what is no text"),
        ("schema check people.toml --data - <&-", 3, "There is no stdin"),
    ],
)
def test_a_terminal_that_is_none(folder, redirect, code, told):
    (folder / "gaps.toml").write_text('format = 1\n[columns.a]\ntype = "?"\n')
    command = shlex.join(COMMAND)
    line = redirect.format(command) if "{}" in redirect else f"{command} {redirect}"
    run = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert run.returncode == code, run.stderr
    assert told in run.stdout + run.stderr
    assert (folder / "gaps.toml").read_text() == 'format = 1\n[columns.a]\ntype = "?"\n'
