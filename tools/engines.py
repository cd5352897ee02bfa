"""Install the engines that some tests need, as far as that is possible here: `python tools/engines.py spark`.

PySpark comes from the package registry of Python. The other programs come from the packages of Debian or Ubuntu, which
only root can install. An engine that is still missing afterwards is reported in one line that begins "NOT RUN", and the
exit status is 0 all the same: the tests skip what needs that engine.
"""

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import why_no_browser  # noqa: E402
from servers import NOT_RUN, why_no_postgres, why_no_spark  # noqa: E402

SECONDS = 300
"""The most that one command of an installation may take."""


@dataclass(frozen=True)
class Engine:
    """An engine, the question why it is missing (None if it is there), and what has to be installed for it."""

    why_missing: Callable[[], str | None]
    package: str
    group: str | None = None


ENGINES = {
    "postgres": Engine(why_no_postgres, "postgresql"),
    "browser": Engine(why_no_browser, "chromium"),
    "spark": Engine(why_no_spark, "default-jre-headless", group="spark"),
}


def run(*command: str) -> str | None:
    """Run a command; say why it failed, or return None."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {type(error).__name__}"
    said = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else f"{' '.join(command)}: {said[-1] if said else done.returncode}"


def install(engine: Engine) -> str | None:
    """Install what is missing; say why the engine cannot be used, or return None."""
    failed = run(sys.executable, "-m", "pip", "install", "--quiet", "--group", engine.group) if engine.group else None
    importlib.invalidate_caches()
    if failed is None and engine.why_missing():
        failed = install_package(engine.package)
    missing = engine.why_missing()
    return f"{missing} ({failed})" if missing and failed else missing


def install_package(name: str) -> str | None:
    """Install a package of Debian or Ubuntu; say why that failed, or return None."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get to install it with"
    if os.getuid() != 0:
        return "only root can install it"
    return run("apt-get", "update") or run("apt-get", "install", "--yes", "--no-install-recommends", name)


if __name__ == "__main__":
    for engine in sys.argv[1:]:
        if reason := install(ENGINES[engine]):
            print(f"{NOT_RUN}: {reason}", flush=True)
