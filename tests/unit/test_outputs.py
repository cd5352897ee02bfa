"""One check of the place of a file, and no half file beside it."""

import errno
import os
import threading
from pathlib import Path

import pytest

from privmeasure.outputs import check_place, part_beside, part_folder, put, put_folder


def test_a_place_is_refused_for_one_reason_each(tmp_path, monkeypatch):
    (tmp_path / "there").write_text("old")
    check_place(tmp_path / "new", overwrite=False)
    check_place(tmp_path / "there", overwrite=True)
    with pytest.raises(FileExistsError, match="not overwritten"):
        check_place(tmp_path / "there", overwrite=False)
    with pytest.raises(FileExistsError, match=r"there\. Really\?"):
        check_place(tmp_path / "there", overwrite=False, taken="{path}. Really?")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_place(tmp_path, overwrite=True)
    with pytest.raises(FileNotFoundError, match="does not exist: create it"):
        check_place(tmp_path / "no" / "new", overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(PermissionError, match="no permission to write into the folder"):
        check_place(tmp_path / "new", overwrite=False)
    with pytest.raises(PermissionError, match=rf"^{tmp_path}: no\.$"):
        check_place(tmp_path / "{odd}", overwrite=False, closed="{path.parent}: no.")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (PermissionError(errno.EACCES, "x"), PermissionError, "no permission to write into the folder"),
        (OSError(errno.EROFS, "x"), OSError, "there"),
    ],
)
def test_a_place_is_tried_and_not_only_asked_about(tmp_path, monkeypatch, error, kind, words):
    """Of a folder that is mounted to be read, or by rules of its own, the mode says too little."""

    def refuse(*arguments, **options):
        raise error

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(kind, match=words):
        check_place(tmp_path / "there", overwrite=False)


@pytest.mark.parametrize("fault", [None, OSError, KeyboardInterrupt])
def test_what_is_beside_is_renamed_or_goes(tmp_path: Path, fault):
    try:
        with part_beside(tmp_path / "file") as part:
            part.write_text("new")
            if fault is not None:
                raise fault
            put(part, tmp_path / "file")
    except (OSError, KeyboardInterrupt):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ([] if fault else ["file"])


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    for old in (None, "old"):  # a link may lead to what is not there yet
        link.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
        if old is not None:
            target.write_text(old)
        link.symlink_to(target)
        check_place(link, overwrite=old is not None)
        with part_beside(link) as part:
            assert part.parent == target.parent  # the same disk: a rename
            part.write_text("new")
            put(part, link)
        assert link.is_symlink()
        assert target.read_text() == "new"
        assert [path.name for path in target.parent.iterdir()] == ["file"]
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(OSError, match="leads nowhere"):
        check_place(circle, overwrite=False)


def test_a_pipe_gets_the_whole_file(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    check_place(pipe, overwrite=False)
    with part_beside(pipe) as part:
        assert part.parent != tmp_path
        assert part.parent.stat().st_mode & 0o077 == 0
        part.write_text("new")
        put(part, pipe)
    reader.join(10)
    assert got == [b"new"]
    assert not part.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_two_processes_write_parts_of_their_own(tmp_path, monkeypatch):
    """Each renames a whole file; with one part between them, one could rename what the other has half written."""
    parts = []
    for process in (101, 102):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        with part_beside(tmp_path / "file") as part:
            parts.append(part)
    assert parts[0] != parts[1]


def test_a_folder_that_others_fill_meanwhile_is_not_replaced(tmp_path):
    place = tmp_path / "rows"
    place.mkdir()
    (place / "part-0.parquet").write_text("old")
    with part_folder(place) as part:
        (part / "part-0.parquet").write_text("new")
        (place / "thesis.txt").write_text("theirs")
        with pytest.raises(FileExistsError, match="holds other files"):
            put_folder(part, place, "part-*.parquet")
    assert (place / "part-0.parquet").read_text() == "old"
    assert (place / "thesis.txt").read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
