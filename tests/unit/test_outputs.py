"""One check of the place of a file, and no half file beside it."""

import errno
import os
import re
import threading
from pathlib import Path

import pytest

from privmeasure.outputs import PartialFile, check_place, part_beside, part_folder, put, put_folder


def write(part, content):
    with part.open() as file:
        file.write(content)


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
            write(part, b"new")
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
            assert part.path.parent == target.parent  # the same disk: a rename
            write(part, b"new")
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
        assert part.path.parent != tmp_path
        assert part.path.parent.stat().st_mode & 0o077 == 0
        write(part, b"new")
        put(part, pipe)
    reader.join(10)
    assert got == [b"new"]
    assert not part.path.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_parts_have_names_that_cannot_be_guessed(tmp_path):
    """Two processes each rename a whole file, and no other user can put a link in the place of a part."""
    names = []
    for _ in range(20):
        with part_beside(tmp_path / "file") as part, part_folder(tmp_path / "file") as folder:
            names += [part.path.name, folder.name]
    secret = [set(name.removeprefix("file.").removesuffix(".part")) for name in names]
    assert len(set(names)) == 40
    assert all(len(name) == len("file..part") + 16 for name in names)
    assert set().union(*secret) == set("0123456789abcdef")
    assert not any(str(os.getpid()) in name for name in names[:3])


@pytest.mark.parametrize("there", ["file", "link", "link to nothing"])
def test_a_part_is_a_new_file_and_no_link_is_followed(tmp_path, there):
    victim, place = tmp_path / "victim", tmp_path / "place.part"
    if there == "file":
        place.write_text("theirs")
    else:
        if there == "link":
            victim.write_text("theirs")
        place.symlink_to(victim)
    with pytest.raises(FileExistsError):
        PartialFile(place)
    assert place.is_symlink() == (there != "file")
    assert victim.exists() == (there == "link")
    if there != "link to nothing":
        assert place.read_text() == "theirs"


def test_what_is_written_reaches_the_file_that_was_opened(tmp_path):
    """A link that another user puts in the place of a part meanwhile is not followed."""
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    with part_beside(tmp_path / "file") as part:
        part.path.unlink()
        part.path.symlink_to(victim)
        write(part, b"new")
    assert victim.read_text() == "theirs"


@pytest.fixture
def steps(monkeypatch):
    """What reaches the disk, and what is renamed, in order: names of files and folders, without what is secret."""
    found, sync, replace, rename = [], os.fsync, Path.replace, Path.rename

    def name(path):
        return re.sub(r"\.[0-9a-f]{16}\.", ".", os.path.basename(path))

    def synced(descriptor):
        found.append(("sync", name(os.readlink(f"/proc/self/fd/{descriptor}"))))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    for method, real in (("replace", replace), ("rename", rename)):
        monkeypatch.setattr(
            Path, method, lambda path, to, real=real: found.append(("to", name(path), name(to))) or real(path, to)
        )
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the names of open files are not to be had")
def test_a_file_is_on_the_disk_before_it_is_renamed_and_its_new_name_after_that(tmp_path, steps):
    folder = tmp_path / "out"
    folder.mkdir()
    with part_beside(folder / "file") as part:
        write(part, b"new")
        put(part, folder / "file")
    assert steps == [("sync", "file.part"), ("to", "file.part", "file"), ("sync", "out")]
    steps.clear()
    with part_folder(folder / "rows") as part:
        (part / "part-0").write_text("new")
        put_folder(part, folder / "rows", "part-*")
    assert steps == [("sync", "part-0"), ("sync", "rows.part"), ("to", "rows.part", "rows"), ("sync", "out")]


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
