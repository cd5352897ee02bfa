"""Damaged files: what the readers make of thousands of them, and that a process that dies is noticed."""

import hashlib
import subprocess
import sys
from pathlib import Path

import fuzz_files
import pytest
from fuzz_files import KINDS, fuzz, mutation, read, whole_files

TOOLS = Path(fuzz_files.__file__).parent

DYING = """
import os, sys
for number in range(int(sys.argv[3]), int(sys.argv[4])):
    print(f"at {number}", flush=True)
    if number == 3:
        os.abort()
    print("raised ValueError: odd" if number == 5 else "said ''", flush=True)
"""


def test_a_process_that_dies_is_noticed_and_the_next_file_is_read():
    found = fuzz("feather", 7, 1, [sys.executable, "-c", DYING])
    assert found.faults == ["feather 1 3: ended with -6, a signal if it is below 0", "feather 1 5: ValueError: odd"]
    assert sum(found.said.values()) == 5


MUTATIONS = """
import hashlib
from fuzz_files import KINDS, mutation, whole_files
made = (mutation(kind, whole_files(kind), 1, number) for kind in KINDS for number in range(9))
print(hashlib.sha256(b"".join(made)).hexdigest())
"""


@pytest.mark.parametrize("kind", KINDS)
def test_whole_files_are_read(tmp_path, kind):
    pytest.importorskip("openpyxl")
    path = tmp_path / f"t.{kind}"
    for content in whole_files(kind):
        path.write_bytes(content)
        assert read(path) == ""


@pytest.mark.deep
def test_a_mutation_can_be_made_again():
    pytest.importorskip("openpyxl")
    made = (mutation(kind, whole_files(kind), 1, number) for kind in KINDS for number in range(9))
    again = subprocess.run([sys.executable, "-c", MUTATIONS], capture_output=True, text=True, cwd=TOOLS, check=True)
    assert again.stdout.strip() == hashlib.sha256(b"".join(made)).hexdigest()


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_read_or_refused_and_never_ends_the_process(kind):
    pytest.importorskip("openpyxl")
    found = fuzz(kind, 1000, seed=1)
    assert found.faults == []
    assert found.said["''"] > 100
    assert sum(count for words, count in found.said.items() if "is not a complete" in words) > 100
