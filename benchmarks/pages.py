"""Writes the numbers of benchmarks/results into the pages, so that none is typed by hand. `--check` compares."""

import argparse
import json
import re
import sys
from pathlib import Path

import peers_page

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
BEGIN, END = "<!-- numbers: begin (written by `make pages` from benchmarks/results) -->", "<!-- numbers: end -->"


def load(name: str) -> dict | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def numbers() -> str:
    """Return the README's list of numbers; a result that is not there yet has no line."""
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
    if wide := load("wide"):
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
            "([curves](benchmarks/results/wide.png))."
        )
    if large := load("large"):
        lines.append(
            f"- **Size.** 10^8 points: {large['fit seconds'] + large['sample seconds']:.0f} s, peak memory "
            f"{large['peak GB']:.1f} GB, of which {large['input + output GB']:.1f} GB are input and output."
        )
    if lines:
        source = load("speed") or load("noise") or load("accuracy") or load("large") or {}
        cpu = source["machine"]
        lines.append(
            "\nMeasured by `make bench`, `bench-flat`, `bench-tables`, `bench-wide` and `bench-large` on "
            f"{cpu['cores']} cores ({cpu['cpu']})."
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
    ]
    return "\n".join(lines)


PAGES = {"README.md": numbers, "docs/peers.md": peers, "docs/persons.md": visits, "docs/scale.md": scale}


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
