"""Rows on disk: whose they are, and that nothing of them stays."""

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


def test_a_disk_that_refuses_gives_one_error_that_tells_no_size(aside, monkeypatch):
    scratch = Scratch()
    scratch._file.close()
    monkeypatch.setattr(scratch, "_file", open("/dev/full", "r+b", buffering=0))  # noqa: SIM115
    with pytest.raises(DataError, match="TMPDIR") as error:
        scratch.put(np.zeros(12345))
    assert "12345" not in str(error.value)
    assert "98760" not in str(error.value)
    scratch.close()


def test_a_folder_that_is_not_there(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    with pytest.raises(DataError, match="TMPDIR"):
        Scratch()
