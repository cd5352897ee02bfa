"""Rows on disk: whose they are, and that nothing of them stays."""

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from privmeasure.errors import DataError
from privmeasure.sources.scratch import FOLDER, Scratch


@pytest.fixture
def aside(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_arrays_come_back_whole_and_in_parts(aside):
    scratch = Scratch()
    rng = np.random.default_rng(0)
    arrays = [rng.random((7, 3)), rng.integers(0, 9, 5), np.empty(0, np.uint8), np.empty((0, 4)), rng.random(1)]
    stored = [scratch.put(array) for array in arrays]
    for array, found in zip(arrays, stored, strict=True):
        assert (len(found), found[:].dtype) == (len(array), array.dtype)
        assert np.array_equal(found[:], array)
        assert np.array_equal(found[1:4], array[1:4])
    assert stored[1][2] == arrays[1][2]
    assert repr(scratch) == "Scratch(private)"
    scratch.close()


def test_only_the_owner_may_look_and_nothing_stays(aside):
    scratch = Scratch()
    scratch.put(np.arange(1000.0))
    (folder,) = aside.iterdir()
    assert folder.name.startswith(FOLDER)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(os.fstat(scratch._file.fileno()).st_mode) == 0o600
    scratch.close()
    assert list(aside.iterdir()) == []
    scratch.close()


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open has a name there")
def test_the_file_has_no_name_while_it_exists(aside):
    scratch = Scratch()
    scratch.put(np.arange(1000.0))
    (folder,) = aside.iterdir()
    assert list(folder.iterdir()) == []
    scratch.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_process_that_is_killed_leaves_no_row(tmp_path):
    program = (
        "import numpy as np, time; from privmeasure.sources.scratch import Scratch; s = Scratch();"
        "s.put(np.full(10**5, 7.5)); print('ready', flush=True); time.sleep(60)"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    run = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE)
    assert run.stdout.readline() == b"ready\n"
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    time.sleep(0.05)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


class Refusing:
    """A file whose disk refuses, at the first thing that it is asked or the last, in words that tell of a size."""

    def __init__(self, inner, at, code):
        self.inner, self.at, self.code = inner, at, code

    def _ask(self, what, given):
        if what == self.at:
            raise OSError(self.code, f"no room for {given}")
        return 0

    def seek(self, *place):
        return self._ask("seek", place)

    def write(self, content):
        return self._ask("write", len(content))

    def flush(self):
        return self._ask("flush", "all")

    def close(self):
        self.inner.close()


SIZES = [1, 7, 12345, 1 << 18, 1 << 24, 1 << 27]
"""Up to a gibibyte, which nobody touches."""


def test_a_disk_that_refuses_gives_one_error_that_tells_no_size(aside, monkeypatch):
    """Whatever is written, wherever it is refused, and for whichever reason."""
    scratch, told = Scratch(), set()
    real = scratch._file
    for at in ("seek", "write", "flush"):
        for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            monkeypatch.setattr(scratch, "_file", Refusing(real, at, code))
            for rows in SIZES:
                for array in (np.zeros(rows), np.zeros((rows // 7 + 1, 7)), np.zeros(rows, np.uint8)):
                    with pytest.raises(DataError, match="TMPDIR") as error:
                        scratch.put(array)
                    assert error.value.__suppress_context__
                    told.add((str(error.value), repr(error.value.args)))
    assert len(told) == 1
    scratch.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such device")
def test_a_disk_that_is_full_refuses_before_anything_is_read_again(aside, monkeypatch):
    for rows in SIZES[:3]:
        scratch = Scratch()
        scratch._file.close()
        monkeypatch.setattr(scratch, "_file", open("/dev/full", "r+b"))  # noqa: SIM115
        with pytest.raises(DataError, match="TMPDIR"):
            scratch.put(np.zeros(rows))
        scratch.close()


def test_a_folder_that_is_not_there(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    with pytest.raises(DataError, match="TMPDIR"):
        Scratch()
