"""Print pip constraints that pin what pyproject.toml declares to the oldest versions: `numpy>=2.1` as `numpy==2.1`."""

import re
import sys
import tomllib
from pathlib import Path


def oldest(requirements: list[str]) -> list[str]:
    """Return a pin for every requirement; one without a floor is an error, for it would not be tested."""
    pins = []
    for requirement in requirements:
        found = re.fullmatch(r"([\w.-]+)>=([\w.]+)", requirement)
        if not found:
            sys.exit(f"pyproject.toml: {requirement!r} should be written as name>=version")
        pins.append("{}=={}".format(*found.groups()))
    return pins


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    print("\n".join(oldest(project["project"]["dependencies"] + project["dependency-groups"]["test"])))
