"""The frame of a rival's run, inside the rival's own environment: cells in, cells out, CPU seconds and memory told.

The parent gives one file with the real table's cells (a small whole number for each value) and the number of cells of
each column, and a JSON word with the settings. Bins are decoded by the parent, the same way for every rival.
"""

import json
import resource
import sys
from collections.abc import Callable
from importlib import metadata
from math import exp, inf, log1p
from pathlib import Path
from typing import Any

import numpy as np

Fit = Callable[[np.ndarray, list[int], dict[str, Any]], np.ndarray]


def delta_of(rho: float, epsilon: float) -> float:
    """Return the least delta known for rho-zCDP at epsilon (Canonne, Kamath and Steinke 2020, corollary 13)."""
    best = inf
    for a in 1 + np.exp(np.linspace(-6, 9, 20_000)):
        power = (a - 1) * (a * rho - epsilon) + a * log1p(-1 / a)
        if power < 0:
            best = min(best, exp(power) / (a - 1))
    return min(best, 1.0)


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho with rho-zCDP within (epsilon, delta): the best that a rival can be given."""
    low, high = 0.0, epsilon + 1
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low


def cpu() -> float:
    """Return the CPU seconds of this process and its children, user and system."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak() -> float:
    """Return the peak resident memory of this program in MB; getrusage would count the parent that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def run(fit: Fit, packages: tuple[str, ...]) -> None:
    """Read the settings and the cells, fit and sample, and write the cells and what they cost."""
    settings = json.loads(sys.argv[1])
    with np.load(settings["input"]) as stored:
        cells, sizes = stored["cells"], stored["sizes"].tolist()
    settings["rho"] = rho_of(settings["epsilon"], settings["delta"])
    np.random.seed(settings["seed"])  # noqa: NPY002 (the rivals' samplers read this state)
    start = cpu()
    synthetic = fit(cells, sizes, settings)
    spent = cpu() - start
    np.savez_compressed(settings["output"], cells=synthetic.astype(np.int64))
    report = {
        "cpu_seconds": round(spent, 2),
        "peak_mb": round(peak()),
        "rho": settings["rho"],
        "versions": {"python": sys.version.split()[0], **{name: metadata.version(name) for name in packages}},
    }
    Path(settings["report"]).write_text(json.dumps(report))
