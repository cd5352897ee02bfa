"""Keeps results as files with machine, versions and commit, so that pages can read numbers instead of retyping them."""

import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("privmeasure", "numpy", "cryptography", "pyarrow", "scipy", "ortools")


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


def commit() -> str:
    """Return the commit that was measured, marked where files other than results and pages differ from it."""

    def git(*words: str) -> str:
        run = subprocess.run(["git", *words], capture_output=True, text=True, cwd=RESULTS.parents[1], check=False)
        return run.stdout.strip()

    changed = git(
        "status",
        "--porcelain",
        "--",
        ".",
        ":!benchmarks/results",
        ":!README.md",
        ":!docs/peers.md",
        ":!docs/persons.md",
        ":!docs/cli.md",
        ":!docs/wide-tables.md",
        ":!docs/reports.md",
        ":!docs/scale.md",
    )
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("-dirty" if changed else "")


def save(name: str, **results: Any) -> None:
    """Write benchmarks/results/<name>.json."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {"machine": machine(), "versions": versions(), "commit": commit(), **results}
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(content, indent=1) + "\n")
    beside.replace(path)  # whoever reads meanwhile finds the old file or the new one
    print(f"wrote benchmarks/results/{path.name}", file=sys.stderr)


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as an aligned text table."""
    names = list(rows[0])
    cells = [[f"{row[name]:.4g}" if isinstance(row[name], float) else str(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(names)]
    lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join(lines)
