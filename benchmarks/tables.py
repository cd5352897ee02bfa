"""Tables: a file in, a file out, beside the tools that only copy. CPU seconds of cold processes, median of 5, CSV out.

Each line is one command in a process of its own: `privmeasure synthesize`, and a read of the same columns of the same
Parquet file with a write as CSV by duckdb and by polars. All start cold, imports included.

Reading text, where every line must be a row of its own, stands beside Arrow's reader of the same cells as text, which
lets an open quote swallow the lines after it: in one process, by turns, median of 11.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from privmeasure.sources.files import open_table
from record import begin, save, table

ROOT = Path(__file__).parents[1]
COMMAND = str(Path(sys.executable).with_name("privmeasure"))
RUNS = 5
BARS = {"flights": 3.0, "ten million": 5.0}
HELP_BAR = 0.5
READ_BAR, READ_RUNS = 1.2, 11

TEN_MILLION = """
format = 1
[columns.east]
type = "number"
low = 0
high = 1
decimals = 4
[columns.north]
type = "number"
low = 0
high = 1
decimals = 4
[columns.age]
type = "integer"
low = 0
high = 120
[columns.kind]
type = "category"
values = ["a", "b", "c", "d", "e"]
"""


def cpu_seconds(command: list[str], cwd: str) -> tuple[float, float]:
    """Return the user and system seconds of one process and its peak memory in GB."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[:3]} failed: {errors.decode()[-500:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e9


def ten_million(folder: str) -> tuple[Path, Path]:
    rng, rows = np.random.default_rng(0), 10**7
    points = np.clip(rng.normal(0.5, 0.15, (rows, 2)), 0, 1).round(4)
    kinds = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 5, rows), pa.int8()), pa.array(list("abcde")))
    columns = {
        "east": points[:, 0],
        "north": points[:, 1],
        "age": rng.integers(0, 100, rows).astype(np.int16),
        "kind": kinds.cast(pa.string()),
    }
    path, schema = Path(folder) / "ten-million.parquet", Path(folder) / "ten-million.toml"
    pq.write_table(pa.table(columns), path)
    schema.write_text(TEN_MILLION)
    return path, schema


def commands(path: Path, schema: Path) -> dict[str, list[str]]:
    """Return what each tool is asked to do with a file."""
    names = pq.ParquetFile(path).schema_arrow.names
    quoted = ", ".join(f'"{name}"' for name in names)
    polars = f"import polars as pl; pl.read_parquet({str(path)!r}, columns={names}).write_csv('polars.csv')"
    duckdb = f"import duckdb; duckdb.sql('''COPY (SELECT {quoted} FROM '{path}') TO 'duckdb.csv' (HEADER)''')"
    promise = ["--epsilon", "1", "--neighbours", "add-remove"]
    ours = [
        COMMAND,
        "synthesize",
        str(path),
        "--schema",
        str(schema),
        *promise,
        "-o",
        "o.csv",
        "--no-release",
        "--overwrite",
    ]
    return {
        "privmeasure": ours,
        "privmeasure, one tree": [*ours, "--mechanism", "pmm"],
        "polars": [sys.executable, "-c", polars],
        "duckdb": [sys.executable, "-c", duckdb],
    }


def compare(name: str, path: Path, schema: Path, folder: str) -> list[dict[str, object]]:
    rows = []
    for tool, command in commands(path, schema).items():
        runs = [cpu_seconds(command, folder) for _ in range(RUNS)]
        rows.append({"table": name, "tool": tool, "CPU seconds": statistics.median(run[0] for run in runs),
                     "peak GB": max(run[1] for run in runs)})  # fmt: skip
    fastest = min(row["CPU seconds"] for row in rows if row["tool"] in ("polars", "duckdb"))
    for row in rows:
        row["ratio"] = row["CPU seconds"] / fastest
    return rows


def text_files(folder: str, *paths: Path) -> dict[str, Path]:
    """Write tables as text: strings quoted, as most programs write them; all cells quoted; nothing quoted."""
    files = {}
    for path in paths:
        rows = pq.read_table(path).slice(0, 3 * 10**6)
        plain = rows.cast(pa.schema([(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
                                     for f in rows.schema]))  # fmt: skip
        for style in ("needed", "all_valid", "none"):
            target = Path(folder) / f"{path.stem}-{style}.csv"
            pc.write_csv(plain, target, pc.WriteOptions(quoting_style=style))
            files[f"{path.stem}, quotes: {style}"] = target
    return files


def read_by_us(path: Path, names: tuple[str, ...]) -> int:
    return sum(batch.num_rows for batch in open_table(path).batches(names))


def read_by_arrow(path: Path, names: tuple[str, ...]) -> int:
    convert = pc.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True,
                                quoted_strings_can_be_null=False, null_values=[""])  # fmt: skip
    parse = pc.ParseOptions(newlines_in_values=True)
    return sum(b.num_rows for b in pc.open_csv(path, pc.ReadOptions(block_size=1 << 21), parse, convert))


def reading(files: dict[str, Path]) -> list[dict[str, object]]:
    rows = []
    for name, path in files.items():
        names, seconds = open_table(path).names, {"privmeasure": [], "pyarrow": []}
        for _ in range(READ_RUNS):
            counted = set()
            for tool, read in (("privmeasure", read_by_us), ("pyarrow", read_by_arrow)):
                before = time.process_time()
                counted.add(read(path, names))
                seconds[tool].append(time.process_time() - before)
            assert len(counted) == 1
        ours, arrow = (statistics.median(times) for times in seconds.values())
        rows.append({"text file": name, "rows": counted.pop(), "privmeasure s": ours, "pyarrow s": arrow,
                     "ratio": ours / arrow})  # fmt: skip
    return rows


def main() -> None:
    begin()
    flights = ROOT / "examples" / "flights" / "flights.parquet"
    with tempfile.TemporaryDirectory() as folder:
        rows = compare("flights", flights, flights.with_suffix(".toml"), folder)
        large = ten_million(folder)
        rows += compare("ten million", *large, folder)
        texts = reading(text_files(folder, flights, large[0]))
        help_seconds = statistics.median(cpu_seconds([COMMAND, "--help"], folder)[0] for _ in range(RUNS))
    print(table(rows))
    for (name, bar), tool in product(BARS.items(), ("privmeasure", "privmeasure, one tree")):
        ratio = next(row["ratio"] for row in rows if row["table"] == name and row["tool"] == tool)
        verdict = "met" if ratio <= bar else "MISSED"
        print(f"{name}, {tool}: {ratio:.2f} times the faster of duckdb and polars, bar {bar:g}: {verdict}")
    print(table(texts))
    worst = max(row["ratio"] for row in texts)
    print(f"reading text: at most {worst:.2f} times Arrow's own reader, bar {READ_BAR:g}: "
          f"{'met' if worst <= READ_BAR else 'MISSED'}")  # fmt: skip
    print(f"privmeasure --help: {help_seconds:.2f} CPU s, bar {HELP_BAR}: "
          f"{'met' if help_seconds <= HELP_BAR else 'MISSED'}")  # fmt: skip
    rivals = {name: metadata.version(name) for name in ("polars", "duckdb")}
    save("tables", rows=rows, reading=texts, help_seconds=help_seconds, rivals=rivals)


if __name__ == "__main__":
    main()
