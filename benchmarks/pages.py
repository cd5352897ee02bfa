"""Writes the numbers of benchmarks/results into the pages, so that none is typed by hand. `--check` compares."""

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import front_page
import peers_page
import record
import wide_page

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
BEGIN, END = "<!-- numbers: begin (written by `make pages` from benchmarks/results) -->", "<!-- numbers: end -->"


load = record.read


def numbers() -> str:
    """Return the list of numbers of the page of evidence; a result that is not there yet has no line."""
    lines = []
    if speed := load("speed"):
        one, two = (next(r for r in speed["main"] if r["threads"] == t and r["order"] == "random") for t in (1, 2))
        lines.append(
            f"- **Speed.** 10^7 points in the square, epsilon = 1, depth {one['depth']}, random order: fit + sample in "
            f"{one['times copy']:.0f} times a copy on one thread ({one['ns a row'] / 100:.2f} s), "
            f"{two['times copy']:.0f} times on two. From 10^5 to 10^7 points the time a row grows "
            f"{speed['growth_factor']:.2f} times."
        )
    if noise := load("noise"):
        rows = [row for row in noise["rows"] if row["scale"] <= 100]
        slowest, ratio = max(row["ns a draw"] for row in rows), min(row["ratio"] for row in rows)
        lines.append(
            f"- **Noise.** An exact draw takes at most {slowest:.0f} ns at scales 1 to 100: at least {ratio:.0f} times "
            f"faster than the exact sampler of OpenDP {noise['opendp']}."
        )
    if accuracy := load("accuracy"):
        for neighbours, summary in accuracy["summaries"].items():
            lines.append(
                f"- **Accuracy** (`{neighbours}`, n = {accuracy['rows']:,}, d = 1 to 3, epsilon 0.1 and 1, 4 shapes): "
                f"W1 is {summary['ratio']:.2f} of the paper's mechanism's in geometric mean, "
                f"{summary['largest ratio']:.2f} at worst; {summary['ratio at our depth']:.2f} of the paper's "
                "levels and rule at our depth."
            )
    if flat := load("flat"):
        most = flat["projection"][-1]
        lines.append(
            f"- **PSMM.** The closest measure to a noisy histogram of {most['cells']:,} cells takes "
            f"{most['CPU seconds']:.1f} s and {most['peak GB']:.2f} GB; an exact W1 of two sets of 10^5 points on a "
            f"128 x 128 grid {flat['distance']['seconds']:.1f} s. On 10^4 rows it is the better choice in "
            f"{sum(row['choose'] == 'PSMM' for row in flat['choice'])} of {len(flat['choice'])} cases."
        )
    if tables := load("tables"):
        ours = {row["table"]: row for row in tables["rows"] if row["tool"] == "privmeasure"}
        lines.append(
            f"- **Tables.** `privmeasure synthesize` takes {ours['flights']['ratio']:.1f} times the CPU seconds that "
            "the faster of duckdb and polars needs to read the same columns and write them as CSV (336,776 flights x "
            f"6, {ours['flights']['CPU seconds']:.2f} s with the start), {ours['ten million']['ratio']:.1f} times on "
            "10^7 x 4."
        )
    if held_out := load("held-out"):
        lines.append(wide_page.line(held_out))
    elif wide := load("wide"):
        means = {row["epsilon"]: row for row in wide["ratios"] if row["table"] == "geometric mean"}
        mean, names = means[1], {"tv2": "2-way total variation", "tv1": "1-way", "column_w1": "W1 of a column"}
        names |= {"sliced": "sliced W1", "w1_excess": "excess W1"}
        values = ", ".join(
            f"{name} {mean[key]:.2f} ({', '.join(f'{means[e][key]:.2f} at {e}' for e in (0.1, 4))})"
            for key, name in names.items()
        )
        lines.append(
            "- **Wide tables** (4 real tables of 9 to 14 columns, epsilon = 1, geometric means of ratios to the best "
            "of MST and AIM in two implementations each, which have a delta of 1e-6 where ours is 0): "
            f"{values}, CPU seconds 1/{1 / mean['cpu_seconds']:.0f}. Lower is better: above 1 we lose "
            "([curves](../benchmarks/results/wide.png))."
        )
    if large := load("large"):
        lines.append(
            f"- **Size.** 10^8 points: {large['fit seconds'] + large['sample seconds']:.0f} s, peak memory "
            f"{large['peak GB']:.1f} GB, of which {large['input + output GB']:.1f} GB are input and output."
        )
    if lines:
        lines.append(
            "\nMeasured by `make bench`, `bench-flat`, `bench-tables`, `bench-wide`, `bench-held-out` and "
            "`bench-large`, on the machines of the table above."
        )
    return "\n".join(lines)


def peers() -> str | None:
    """Return the numbers of the page about peers; none where no run was reported yet."""
    result = load("peers")
    return peers_page.numbers(result) if result and "rows" in result else None


def visits() -> str | None:
    """Return the numbers of the page about persons."""
    result = load("visits")
    if not result:
        return None
    about, columns = result["about"], result["columns"]
    each = about["visits"] / about["planes"]
    heads = ["table", "k", "kept rows", "release to kept rows", "kept to all rows", "release to all rows", *columns]
    lines = [
        f"The {about['visits']:,} visits of {about['planes']:,} planes to the airports of New York in 2013, at epsilon "
        f"= {result['epsilon']} for a *plane*, by its tail number: {each:.0f} visits on average and "
        f"{about['most visits']} at most; {about['without a tail number']:,} flights have no tail number. The smaller "
        f"table has every tenth plane: {about['planes in the smaller table']}, with "
        f"{about['visits in the smaller table']:,} visits. Total variation of a column (32 bins, or categories), mean "
        f"of {result['runs']} runs; 0 is perfect, 1 the worst. *trusted* is a release without `person` that keeps all "
        "rows and relies on nobody having more. *epsilon for a visit* is the default without `person`: it looks best, "
        "and promises a plane next to nothing.",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    for row in result["rows"]:
        means = " | ".join(f"{row[what]:.3f}" for what in ("to kept", "kept to all", "to all"))
        own = " | ".join(f"{row[name]:.3f}" for name in columns)
        lines.append(f"| {row['table']} | {row['k']} | {row['kept rows']:,} | {means} | {own} |")
    lines += [
        "",
        "The three figures after the kept rows are means over the columns, the last ones are the release to all rows, "
        "column by column. The first of them is what guarantees are about: rows and noise grow together with k. The "
        "second is what keeping k rows does by itself: planes with few visits have other carriers and routes than "
        "planes with many, and count for more of the kept rows.",
        "",
        "| rows x 4 columns | file | k | CPU seconds of the fit | times the fit without `person` | peak memory |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['rows']:,} | {row['file']} | {row['k']} | {row['CPU seconds']:.2f} | {row['ratio']:.1f} | "
        f"{row['peak GB']:.2f} GB |"
        for row in result["seconds"]
    ]
    cpu = result["machine"]
    lines += ["", f"Measured by `make bench-visits` on {cpu['cores']} cores ({cpu['cpu']})."]
    return "\n".join(lines)


def first_hour() -> str | None:
    """Return the numbers of the page about the command line."""
    result = load("first-hour")
    if not result:
        return None
    lines = [
        "| table | rows | columns | steps | lines by hand | CPU seconds | total variation, columns | pairs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['table']} (`{row['source']}`) | {row['rows']:,} | {row['columns']} | {row['steps']} | "
        f"{row['lines']} | {row['CPU seconds']:.1f} | {row['one_way']:.3f} (floor {row['floor']:.3f}) | "
        f"{row['two_way']:.3f} |"
        for row in result["tables"]
    ]
    for row in result["tables"]:
        lines += ["", f"What was done for {row['table']}:"]
        lines += [
            f"{i}. `{step['step']}`: "
            + (f"{step['lines']} lines" if "lines" in step else f"{step['CPU seconds']:.1f} s")
            for i, step in enumerate(row["done"], 1)
        ]
    cpu = result["machine"]
    lines += ["", f"Measured by `make bench-first-hour` on {cpu['cores']} cores ({cpu['cpu']}), all in CPU seconds."]
    return "\n".join(lines)


def wide_tables() -> str:
    """Return the numbers of the page about wide tables."""
    earlier = [(load(f"held-out-{time}"), load(f"held-out-delta-{time}")) for time in ("first", "second", "third")]
    held_out = load("held-out"), load("held-out-delta")
    targets = [found for name in ("held-out-aimed", "held-out-aimed-first") if (found := load(name))]
    return wide_page.numbers(
        held_out[0], load("wide"), load("wide-delta"), held_out[1], earlier, load("curve"), targets
    )


STATISTICS = ["5 %", "25 %", "50 %", "75 %", "95 %", "mean"]
POOLED, LEAST, MEDIAN_RATIO, MOST_RATIO = 0.85, 0.75, 2.0, 6.0
"""The share of bands that hold, of a statistic over all cases and of one case; how many times wider than needed they
are in the median, and at most."""


def typical() -> str | None:
    """Return how often the bands of the typical error hold, column by column, the worst first."""
    result = load("typical")
    if not result or not any("statistics" in case for case in result["cases"].values()):
        return None
    columns: dict[str, dict[str, list[dict]]] = {}
    others: dict[str, list[dict]] = {}
    for case in result["cases"].values():
        for name, score in case["statistics"].items():
            column, *what = name.split(" | ")
            if what[-1] in STATISTICS:
                shown = column if case["rows"] and case["table"].startswith(("tree", "wide")) else case["table"]
                columns.setdefault(shown, {}).setdefault(what[-1], []).append(score)
            else:
                others.setdefault("shares" if what[0] == "share" else "correlations", []).append(score)
    rows = sorted(columns.items(), key=lambda row: min(map(_pooled, row[1].values())))
    lines = [f"| {' | '.join(['column', *STATISTICS, 'fits of each', 'times wider than needed'])} |"]
    lines.append("|---" * (len(STATISTICS) + 3) + "|")
    for name, own in rows:
        cells = [_held(own[what]) if what in own else "" for what in STATISTICS]
        fits = max(sum(score["fits"] for score in scores) for scores in own.values())
        lines.append(f"| {' | '.join([name, *cells, f'{fits:,}', _widths(own.values())])} |")
    for name, scores in sorted(others.items(), key=lambda row: _pooled(row[1])):
        lines.append(f"| {name} | {_held(scores)} |" + " |" * (len(STATISTICS) - 1) + " " + f"| {_widths([scores])} |")
    return "\n".join([*lines, "", _bars(result, columns)])


def _pooled(scores: list[dict]) -> float:
    return sum(score["held"] for score in scores) / sum(score["fits"] for score in scores)


def _held(scores: list[dict]) -> str:
    share = _pooled(scores)
    return f"{share:.0%}" if share >= POOLED else f"**{share:.0%}**"


def _ratios(groups: Iterable[list[dict]]) -> list[float]:
    return sorted(score["ratio"] for scores in groups for score in scores if score["ratio"] is not None)


def _widths(groups: Iterable[list[dict]]) -> str:
    ratios = _ratios(groups)
    return f"{ratios[len(ratios) // 2]:.1f}, at most {ratios[-1]:.1f}" if ratios else ""


def _bars(result: dict, columns: dict[str, dict[str, list[dict]]]) -> str:
    """Say what the table is about, and which bars it meets."""
    cases = [case for case in result["cases"].values() if case["table"].startswith(("tree", "wide"))]
    sizes = " and ".join(f"{rows:,}" for rows in sorted({case["rows"] for case in cases}))
    epsilons = ", ".join(f"{epsilon:g}" for epsilon in sorted({case["epsilon"] for case in cases}))
    scores = [score for own in columns.values() for group in own.values() for score in group]
    fits = [score["fits"] for score in scores]
    seldom = sum(score["held"] < LEAST * score["fits"] for score in scores)
    groups = [group for own in columns.values() for group in own.values()]
    below = sum(_pooled(group) < POOLED for group in groups)
    ratios = _ratios(groups)
    wide = sum(ratio > MOST_RATIO for ratio in ratios)
    return (
        f"Shares of bands of {result['level']:.0%} that hold, each of {result['runs']} runs; bold below {POOLED:.0%}. "
        f"Shapes of {sizes} rows, in one tree and wide, at epsilon {epsilons}, and real tables at epsilon 1. Of "
        f"{len(groups)} statistics {below} are below {POOLED:.0%} over all cases; of {len(scores)} single cases, "
        f"which have {min(fits)} to {max(fits)} fits each, {seldom} are below {LEAST:.0%}. The last column has the "
        "median width over the larger of two others: the smallest symmetric one that holds 90% of the errors of the "
        "released values, and that of a released cell, or one step of the type. Its median over all cases is "
        f"{ratios[len(ratios) // 2]:.1f} (bar: {MEDIAN_RATIO:g}), and {wide} cases are above {MOST_RATIO:g}."
    )


def scale() -> str | None:
    """Return the numbers of the page about scale."""
    result = load("scale")
    if not result:
        return None
    lines = ["| what | case | seconds | beside | its seconds | ratio | bar |", "|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        bar = "" if row["bar"] is None else f"{row['bar']:g}"
        own = f"{row['seconds']:.2f} | {row['beside']} | {row['its seconds']:.2f} | {row['ratio']:.2f} | {bar}"
        lines.append(f"| {row['what']} | {row['case']} | {own} |")
    cpu, tools = result["machine"], ", ".join(f"{name} {version}" for name, version in result["tools"].items())
    lines += [
        "",
        f"Measured by `make bench-scale` on {cpu['cores']} cores ({cpu['cpu']}), {tools}. Wall seconds, medians of "
        "runs by turns: the ratio is what stays when a machine is slower or busy.",
        *cores(),
        *on_spark(),
    ]
    return "\n".join(lines)


def readme() -> str | None:
    """Return the README's table beside rivals, and where we lose."""
    return front_page.readme(load)


def evidence() -> str:
    """Return the numbers of the page of evidence."""
    return front_page.evidence(load, numbers())


def cores() -> list[str]:
    """Return what more threads bring, machine by machine, and the peak memory from file to file."""
    lines: list[str] = []
    found = [(int(path.stem.split("-")[1]), path.stem) for path in RESULTS.glob("cores-[0-9]*.json")]
    for count, name in sorted(found):
        result = load(name) or {}
        work = {"plain": "points, NumPy alone", "compiled": "points, with the extra `fast`"}
        rows = [row | {"work": work[row["path"]]} for row in result.get("arrays", []) if row["stage"] == "fit + sample"]
        rows += result.get("tables", [])
        threads = sorted({row["threads"] for row in rows})
        heads = [f"{t} thread" + ("s" if t > 1 else "") for t in threads]
        lines += ["", f"| {result['rows']:,} rows on {count} cores | {' | '.join(heads)} |"]
        lines.append("|---" * (len(threads) + 1) + "|")
        for what in dict.fromkeys(row["work"] for row in rows):
            by = {
                r["threads"]: f"{r['seconds']:.2f} s ({r['times one thread']:.1f} x)" for r in rows if r["work"] == what
            }
            lines.append(f"| {what} | {' | '.join(by.get(t, '') for t in threads)} |")
        cpu, numpy = result["machine"]["cpu"], result["versions"]["numpy"]
        lines += ["", f"Measured by `make bench-cores` on {count} cores ({cpu}), NumPy {numpy}. Wall seconds, medians."]
    for count, name in sorted((p.stem.split("-")[2], p.stem) for p in RESULTS.glob("cores-memory-*.json")):
        result = load(name) or {}
        sizes = sorted({row["rows"] for row in result["rows"]})
        lines += ["", "| peak memory from file to file | " + " | ".join(f"{size:,} rows" for size in sizes) + " |"]
        lines.append("|---" * (len(sizes) + 1) + "|")
        for what in dict.fromkeys(row["work"] for row in result["rows"]):
            by = {row["rows"]: f"{row['peak GB']:.2f} GB" for row in result["rows"] if row["work"] == what}
            lines.append(f"| {what} | {' | '.join(by.get(size, '') for size in sizes)} |")
        lines += ["", f"Measured by `python benchmarks/cores.py --memory` on {count} cores, one thread for each."]
    return lines


def on_spark() -> list[str]:
    """Return the lines about a cluster: measured here, and on paper."""
    result = load("scale-spark")
    if not result:
        return []
    heads = "| on Spark | processor seconds | of these once | ns for each further row | beside one machine | bar |"
    lines = ["", heads, "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.1f}"
        bar = f"{result['bar']:g}" if ratio and row["what"] != "one machine" else ""
        own = f"{row['seconds']:.1f} | {row['once']:.1f} | {row['ns per row']:.0f} | {ratio} | {bar}"
        lines.append(f"| {row['what']} | {own} |")
    paper, tools = result["paper"], ", ".join(f"{name} {version}" for name, version in result["tools"].items())
    lines += [
        "",
        f"A whole fit of {result['size']:,} rows of a Parquet file on `{result['master']}`, {tools}, in a session that "
        f"is there already (to start one, and its Python, took {result['start']:.0f} s on a busy machine). The bar is "
        "about rows: what is paid once is left out. A frame's rows pass through the JVM, which is most of its time.",
        "",
        f"**On paper**, from these costs: {paper['rows']:.0e} rows in Parquet files, on {paper['executors']} executors "
        f"of {paper['cores']} such cores, {paper['cells']:,} cells, all of them occupied. Reading and counting, twice: "
        f"{paper['seconds']:.0f} s. Shuffled: {paper['tasks']:,} tasks send at most {paper['cells']:,} counts each, of "
        f"{paper['bytes per count']:.0f} bytes: {paper['bytes shuffled'] / 1e9:.0f} GB in all. The driver holds "
        f"{paper['driver bytes'] / 1e6:.0f} MB for the answer, beside the tree, and would for any number of rows. "
        "Disks and networks that are slower than the cores are not in this.",
    ]
    return lines


PAGES = {
    "README.md": readme,
    "docs/evidence.md": evidence,
    "docs/peers.md": peers,
    "docs/persons.md": visits,
    "docs/cli.md": first_hour,
    "docs/wide-tables.md": wide_tables,
    "docs/reports.md": typical,
    "docs/scale.md": scale,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where a page differs, write nothing")
    check, differ = parser.parse_args().check, []
    for name, made in PAGES.items():
        page, new = ROOT / name, made()
        if new is None:
            continue
        text = page.read_text(encoding="utf-8")
        between = re.escape(BEGIN) + ".*?" + re.escape(END)
        wanted = re.sub(between, lambda _, new=new: f"{BEGIN}\n{new}\n{END}", text, flags=re.DOTALL)
        if text != wanted:
            differ.append(name)
        if not check:
            page.write_text(wanted, encoding="utf-8")
    if check:
        said = f"{', '.join(differ)} differs from benchmarks/results: run `make pages`"
        print(said if differ else "the numbers agree")
        return int(bool(differ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
