"""What is left of a page that was killed goes with the next start, and nothing of a page that lives."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from privmeasure.app.leftovers import LOCK_FILE, PREFIX, delete_left, visit_folder

PAGE = """
import sys
from privmeasure.app.leftovers import visit_folder
with visit_folder() as folder:
    (folder / "1").mkdir()
    (folder / "1" / "table.csv").write_text("private")
    (folder / "2").mkdir()
    (folder / "2" / sys.argv[1]).write_text("made")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def started(temporary, made="report.html"):
    """Return the process of a page, and its folder."""
    environment = os.environ | {"TMPDIR": str(temporary)}
    command = [sys.executable, "-c", PAGE, made]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, Path(process.stdout.readline().strip())


def ended(process, kill):
    if kill:
        process.kill()
    process.communicate()


@pytest.mark.parametrize("kill", [True, False])
def test_an_upload_goes_when_its_page_is_gone_and_not_before(temporary, kill):
    process, folder = started(temporary)
    assert delete_left() == []
    assert (folder / "1" / "table.csv").read_text() == "private"
    ended(process, kill)
    assert folder.exists() == kill
    assert delete_left() == []
    assert list(temporary.iterdir()) == []


def test_a_release_stays_for_epsilon_was_spent_for_it(temporary):
    process, folder = started(temporary, "the.release")
    ended(process, kill=True)
    for _ in range(2):
        assert delete_left() == [folder / "2" / "the.release"]
        assert [path.name for path in folder.glob("*/*")] == ["the.release"]
    (folder / "2" / "the.release").rename(temporary / "kept.release")
    assert delete_left() == []
    assert [path.name for path in temporary.iterdir()] == ["kept.release"]


def test_a_folder_of_a_visit_is_locked_from_when_it_has_a_lock(temporary, monkeypatch):
    """Another page that is started at any moment leaves it alone."""
    seen, rename = [], Path.rename

    def renamed(path, to):
        assert delete_left() == []
        seen.append(rename(path, to))
        assert delete_left() == []
        return seen[-1]

    monkeypatch.setattr(Path, "rename", renamed)
    with visit_folder() as folder:
        assert seen == [folder / LOCK_FILE]
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert delete_left() == []
        assert folder.is_dir()
    assert list(temporary.iterdir()) == []


def test_what_is_not_of_a_page_stays(temporary, monkeypatch):
    """Folders without a lock, files, links, and the folders of other users."""
    elsewhere = temporary / "elsewhere"
    for folder in (elsewhere, temporary / f"{PREFIX}locked", temporary / "privmeasure-rows"):
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "table.csv").write_text("private")
        (folder / LOCK_FILE).touch()
    (temporary / f"{PREFIX}empty").mkdir()
    (temporary / f"{PREFIX}file").touch()
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    (temporary / f"{PREFIX}another").mkdir()
    (temporary / f"{PREFIX}another" / LOCK_FILE).symlink_to(elsewhere / LOCK_FILE)
    real = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: real + 1)
    before = sorted(temporary.rglob("*"))
    assert delete_left() == []
    assert sorted(temporary.rglob("*")) == before
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert delete_left() == []
    gone = temporary / f"{PREFIX}locked"
    assert sorted(temporary.rglob("*")) == [path for path in before if not path.is_relative_to(gone)]
