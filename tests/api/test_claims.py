"""The package claims the versions of Python and the systems that it was run with, and untested files say so."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SYSTEMS = {"Linux": "POSIX :: Linux", "macOS": "MacOS", "Windows": "Microsoft :: Windows"}
"""Systems, and what classifiers call them."""


def test_the_classifiers_claim_what_was_run():
    said = re.search(r"`make test` was run with Python ([\d., and]+) on ([\w, ]+)\.", CONTRIBUTING)
    versions, systems = re.findall(r"\d+\.\d+", said[1]), re.findall(r"\b(?!and\b)\w+", said[2])
    claimed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    pythons = re.findall(r"Programming Language :: Python :: (\d+\.\d+)$", "\n".join(claimed), re.MULTILINE)
    assert pythons == versions
    assert [one for one in claimed if one.startswith("Operating System")] == [
        f"Operating System :: {SYSTEMS[system]}" for system in systems
    ]


@pytest.mark.skipif(not (ROOT / ".github").exists(), reason="the sdist has no workflows")
def test_files_that_never_ran_say_so_and_are_listed():
    listed = set(re.findall(r"^- `(\.[\w./-]+\.ya?ml)`:", CONTRIBUTING, re.MULTILINE))
    untested = {
        path.relative_to(ROOT).as_posix()
        for path in [*(ROOT / ".github" / "workflows").iterdir(), ROOT / ".pre-commit-config.yaml"]
        if path.read_text(encoding="utf-8").startswith("# Never run:")
    }
    assert listed == untested
