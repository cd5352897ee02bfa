"""Keeps results as files with machine, versions and commit, so that pages can read numbers instead of retyping them."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("privmeasure", "numpy", "cryptography", "pyarrow", "scipy", "ortools")
PAGES = (
    "README.md",
    "docs/evidence.md",
    "docs/peers.md",
    "docs/persons.md",
    "docs/cli.md",
    "docs/wide-tables.md",
    "docs/reports.md",
    "docs/scale.md",
)
"""The pages that `make pages` writes."""
DIRTY, UNKNOWN = "-dirty", "unknown"
"""Marks a commit from which files differed; stands for the commit where there is no repository."""
MEASURED_DIRTY = {
    "accuracy": "3dc121c-dirty",
    "against": "885247d-dirty",
    "crossover": "47a4413-dirty",
    "held-out-aimed-first": "0c5e865-dirty",
    "held-out-aimed": "ce90e68-dirty",
    "held-out-delta-first": "f522b7b-dirty",
    "held-out-delta-second": "88ca3b1-dirty",
    "held-out-delta-third": "096b2f3-dirty",
    "held-out-first": "f522b7b-dirty",
    "held-out-second": "88ca3b1-dirty",
    "held-out-third": "096b2f3-dirty",
    "many-columns": "47a4413-dirty",
    "no-worse": "3dc121c-dirty",
    "peers": "3dc121c-dirty",
    "scale-spark": "f3d71c7-dirty",
    "simulated": "3495d1d-dirty",
    "target": "52e74ba-dirty",
}
"""The commits of results that were written before `save` refused them. They are measured again or go; none is added."""


def machine() -> dict[str, Any]:
    """Return what the numbers depend on."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    return {"cpu": model, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def versions() -> dict[str, str]:
    """Return the versions of everything that was measured."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit(measured: str = "HEAD") -> str:
    """Return a commit in short, marked "-dirty" if files other than results and pages differ from it."""

    def git(*words: str) -> str:
        run = subprocess.run(["git", *words], capture_output=True, text=True, cwd=RESULTS.parents[1], check=False)
        return run.stdout.strip()

    rest = ("--", ".", ":!benchmarks/results", *(f":!{page}" for page in PAGES))
    differs = git("diff", "--name-only", measured, *rest) or git("ls-files", "--others", "--exclude-standard", *rest)
    return (git("rev-parse", "--short", measured) or UNKNOWN) + (DIRTY if differs else "")


def is_dirty(measured: str) -> bool:
    """Say whether no commit alone gives a result."""
    return measured.endswith((DIRTY, UNKNOWN))


@dataclass
class Run:
    """What a script measures, and where it writes instead of into benchmarks/results."""

    commit: str = "HEAD"
    scratch: Path | None = None


_run = Run()


def begin() -> None:
    """Take `--scratch PATH` out of the arguments; without it, refuse a checkout that differs from its commit.

    A script calls it before it measures anything, and before it reads its other arguments.
    """
    if {"-h", "--help"}.intersection(sys.argv):
        return
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--scratch", type=Path)
    found, sys.argv[1:] = parser.parse_known_args()
    measured = commit()
    if found.scratch is None and is_dirty(measured):
        raise SystemExit(
            f"The checkout is {measured}: its figures could not be measured again. Commit first, or write them "
            "elsewhere with --scratch PATH; no page reads them there."
        )
    if found.scratch is not None and found.scratch.resolve().is_relative_to(RESULTS):
        raise SystemExit(f"--scratch must be a folder outside {RESULTS}, which pages read, got {found.scratch}.")
    _run.commit, _run.scratch = measured.removesuffix(DIRTY), found.scratch


def save(name: str, **results: Any) -> Path:
    """Write <name>.json into benchmarks/results, or where `--scratch` says, and return the folder."""
    measured = commit(_run.commit)
    refused = _run.scratch is None and is_dirty(measured)
    folder = Path(tempfile.mkdtemp()) if refused else _run.scratch or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    content = {"machine": machine(), "versions": versions(), "commit": measured, **results}
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(content, indent=1) + "\n")
    beside.replace(path)  # a reader meanwhile finds the old file or the new one
    if refused:
        raise SystemExit(f"The checkout is {measured}, so that benchmarks/results stays as it is: see {path}.")
    print(f"wrote {path}", file=sys.stderr)
    return folder


def kept(name: str) -> dict[str, Any] | None:
    """Return the result that a script goes on with: from the scratch folder, else from benchmarks/results."""
    places = [folder / f"{name}.json" for folder in (_run.scratch, RESULTS) if folder is not None]
    return next((json.loads(path.read_text()) for path in places if path.exists()), None)


def read(name: str) -> dict[str, Any] | None:
    """Return a result for the pages, None if there is none; one that no commit alone gives is refused."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    result: dict[str, Any] = json.loads(path.read_text())
    measured = result.get("commit", "")  # what other machines measured has none
    if is_dirty(measured) and MEASURED_DIRTY.get(name) != measured:
        raise SystemExit(f"{path.name} was measured at {measured}, which cannot be repeated. Measure it again.")
    return result


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as an aligned text table; "-" stands for what a row does not have."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    found = [[row.get(name, "-") for name in names] for row in rows]
    cells = [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row] for row in found]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(names)]
    lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join(lines)
