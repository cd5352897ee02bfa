"""Write tests/times.json: the seconds of every test file, which `make quick` chooses by.

python tools/times.py          run the tests of `make test`, and read the times off their report
python tools/times.py LOG      read the report of such a run with --durations=0 --durations-min=0.01
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMES = ROOT / "tests" / "times.json"
COMMAND = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not deep", "--durations=0", "--durations-min=0.01"]


def times_of(report: str) -> dict[str, float]:
    """Return the seconds of every test file, from the lines that pytest prints of slow steps.

    Examples:
        >>> times_of("1.50s call     tests/a.py::test_x\\n0.25s setup    tests/a.py::test_y[1]\\n")
        {'tests/a.py': 1.75}
    """
    found: dict[str, float] = defaultdict(float)
    for seconds, file in re.findall(r"^([0-9.]+)s (?:call|setup|teardown) +(tests/\S+?)::", report, re.MULTILINE):
        found[file] += float(seconds)
    return {file: round(seconds, 2) for file, seconds in sorted(found.items())}


def main() -> int:
    """Write the file; fail if a test failed, because a run that ends early shows no times."""
    if len(sys.argv) > 1:
        report = Path(sys.argv[1]).read_text(encoding="utf-8")
    else:
        done = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, check=False)
        report = done.stdout
        if done.returncode:
            print(report[-4000:])
            return 1
    TIMES.write_text(json.dumps(times_of(report), indent=0) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
