"""The tables of docs/wide-tables.md, from results/held-out.json and wide.json: bars, where we lose, every case."""

import math
from collections.abc import Collection, Sequence
from typing import Any

from held_out_tables import HELD_OUT, LARGE
from peers_page import lines

Row = dict[str, Any]
NAMES = {
    "tv1": "1-way",
    "tv2": "2-way",
    "tv3": "3-way",
    "column_w1": "W1 of a column",
    "sliced": "sliced W1",
    "w1_excess": "excess W1",
    "cpu_seconds": "CPU seconds",
}
ERRORS = [name for name in NAMES if name != "cpu_seconds"]
MEAN = "geometric mean"


def bold(value: float, bar: float) -> str:
    """Return a ratio, bold where it is above its bar.

    Examples:
        >>> bold(0.987, 1), bold(1.234, 1)
        ('0.99', '**1.23**')
    """
    return f"{value:.2f}" if value <= bar else f"**{value:.2f}**"


def by_epsilon(ratios: list[Row], *, of_means: bool) -> list[Row]:
    return sorted((row for row in ratios if (row["table"] == MEAN) == of_means), key=lambda row: row["epsilon"])


def bars(result: Row) -> str:
    """Return the geometric means beside the bars."""
    rows = []
    for mean in by_epsilon(result["ratios"], of_means=True):
        own = result["bars"][str(mean["epsilon"])]
        shown = [f"{bold(mean[name], own[name])} ({own[name]:g})" for name in ERRORS]
        rows.append([f"{mean['epsilon']:g}", *shown, f"1/{1 / mean['cpu_seconds']:.0f}"])
    return lines(["epsilon", *NAMES.values()], rows)


def each(result: Row) -> str:
    """Return the ratios of every table."""
    rows = [
        [
            row["table"],
            f"{row['epsilon']:g}",
            *(bold(row[name], 1) for name in ERRORS),
            f"1/{1 / row['cpu_seconds']:.0f}",
        ]
        for row in by_epsilon(result["ratios"], of_means=False)
    ]
    return lines(["table", "epsilon", *NAMES.values()], rows)


def models(result: Row) -> str:
    """Return what models learn."""
    rows = [
        [row["table"], f"{row['epsilon']:g}", row["model"], row["score"]]
        + [bold(row["ours"], row["ours"] if row["difference"] >= -0.02 else -1)]
        + [f"{row[who]:.2f}" for who in ("best rival", "real")]
        for row in sorted(result["differences"], key=lambda row: (row["epsilon"], row["model"]))
    ]
    return lines(["table", "epsilon", "model", "score", "ours", "best rival", "real rows"], rows)


def differences(result: Row) -> str:
    """Return ours less the best rival's, in the mean over the tables."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in result["differences"]:
        groups.setdefault((row["epsilon"], row["score"], row["model"]), []).append(row["difference"])
    rows = []
    for (epsilon, score, model), found in sorted(groups.items()):
        value = sum(found) / len(found)
        shown = f"{value:+.3f}" if value >= -0.02 else f"**{value:+.3f}**"
        rows.append([f"{epsilon:g}", score, model, str(len(found)), shown])
    return lines(["epsilon", "score", "model", "tables", "ours less the best rival's"], rows)


def aimed(results: Sequence[Row]) -> str:
    """Return what models learn where the column that they predict is declared: the last scoring, and those before."""
    said = [
        "### With a declared target",
        "The same where the schema names the column that is predicted as its [target](schema.md), as one who will "
        "train models would. MST and AIM know of no target.",
    ]
    for i, result in enumerate(results):
        said += [f"Scored before, at commit {result['commit'].removesuffix('-dirty')}:"] if i else []
        said += [differences(result), "With the rivals' delta:", differences({"differences": result["with_delta"]})]
        said += [] if i else [models(result)]
    return "\n\n".join(said)


def losses(result: Row) -> str:
    """Return where the best rival is ahead, as a sentence for each epsilon."""
    said = []
    for mean in by_epsilon(result["ratios"], of_means=True):
        rows = [row for row in by_epsilon(result["ratios"], of_means=False) if row["epsilon"] == mean["epsilon"]]
        lost = [(row[name], row["table"], NAMES[name]) for row in rows for name in ERRORS if row[name] > 1]
        worst = "; ".join(f"{table} {name} {value:.2f}" for value, table, name in sorted(lost, reverse=True)[:3])
        said.append(
            f"- epsilon {mean['epsilon']:g}: in {len(lost)} of {len(rows) * len(ERRORS)} ratios"
            + (f", the largest being {worst}." if lost else ".")
        )
    return "\n".join(said)


def stopped(result: Row) -> str:
    """Return the runs of rivals that have no rows."""
    rows = [
        [row["rival"], row["method"], row["table"], f"{row['epsilon']:g}", str(row["seed"]), row["status"]]
        for row in result["not complete"]
    ]
    rows += [
        [row["rival"], row["method"], row["table"], f"{row['epsilon']:g}", str(row["seed"]), "not run"]
        for row in result.get("not run", [])
    ]
    return lines(["rival", "method", "table", "epsilon", "seed", "what happened"], rows) if rows else "None."


def privpgd(wide: Row) -> str:
    """Return the excess W1 beside the rival that needs a GPU."""
    rows = [
        [row["table"], f"{row['epsilon']:g}", f"{row['ours']:.4f}", f"{row['PrivPGD']:.4f}", bold(row["ratio"], 1)]
        for row in sorted(wide["privpgd"], key=lambda row: row["epsilon"])
    ]
    return lines(["table", "epsilon", "ours", "PrivPGD", "ratio"], rows)


def with_delta(result: Row) -> str:
    """Return the older tables with the delta of the rivals: means, then every table."""
    rows = [
        [
            row["table"],
            f"{row['epsilon']:g}",
            *(bold(row[name], 1) for name in ERRORS if name in row),
            f"1/{1 / row['cpu_seconds']:.0f}",
        ]
        for of_means in (True, False)
        for row in by_epsilon(result["ratios"], of_means=of_means)
    ]
    shown = [NAMES[name] for name in NAMES if name in result["ratios"][0]]
    return lines(["table", "epsilon", *shown], rows)


def limits(curve: Row) -> str:
    """Return how errors fall as epsilon grows, over those of a resample of the real rows: means, then every table."""
    shown = ("tv1", "tv2", "tv3", "sliced")
    rows = []
    for delta, promise in (("0", "pure"), ("1e-6", "with a delta of 1e-6")):
        own = [row for row in curve["rows"] if row["delta"] == delta]
        names = sorted({row["table"] for row in own})
        for epsilon in sorted({row["epsilon"] for row in own}):
            at = {row["table"]: row for row in own if row["epsilon"] == epsilon}
            means = [math.exp(sum(math.log(at[name][metric]) for name in names) / len(names)) for metric in shown]
            pairs = [f"{at[name]['tv2']:.1f}" for name in names]
            rows.append([promise, f"{epsilon:g}", *(f"{value:.2f}" for value in means), *pairs])
    heads = [NAMES[metric] for metric in shown]
    return "\n\n".join(
        [
            "## What is left as epsilon grows",
            "Errors on the open tables over those of a resample of the real rows, which nobody needs to beat: "
            "geometric means, and 2-way of each table. What falls further is noise; what stays is what the model of "
            "chosen pairs cannot say.",
            lines(["promise", "epsilon", *heads, *names], rows),
            f"Measured by `make bench-open`, commit {curve['commit']}.",
        ]
    )


EARLIER = (
    "without agreements",
    "with agreements of few pairs, which were chosen, and noise on each by itself",
    "without finer tables, with the three larger tables",
)
"""What was scored before, in order."""


def part(result: Row, names: Collection[str]) -> Row:
    """Return a result of some of its tables: their ratios, and geometric means of these."""
    ratios = [row for row in result["ratios"] if row["table"] in names]
    means = []
    for epsilon in sorted({row["epsilon"] for row in ratios}):
        own = [row for row in ratios if row["epsilon"] == epsilon]
        means.append(
            {"table": MEAN, "epsilon": epsilon}
            | {name: math.exp(sum(math.log(row[name]) for row in own) / len(own)) for name in NAMES}
        )
    return result | {"ratios": ratios + means}


def groups(result: Row) -> str:
    """Return the means of smaller and of larger tables by themselves, where both were scored."""
    found = {row["table"] for row in result["ratios"]}
    kinds = {"smaller": found.intersection(HELD_OUT), "larger": found.intersection(LARGE)}
    if not all(kinds.values()):
        return ""
    return "\n\n".join(
        f"The {len(names)} {kind} tables ({', '.join(sorted(names))}):\n\n{bars(part(result, names))}"
        for kind, names in kinds.items()
    )


def earlier(scorings: Sequence[tuple[Row | None, Row | None]]) -> str:
    """Return what earlier scorings found, of the tables that there were: nothing is forgotten."""
    said = [
        "## Earlier scorings",
        "The eight smaller tables were scored three times before, the three larger once. Noise and draws are fresh "
        "each time, so that part of what differs is chance.",
    ]
    for (pure, with_delta), what in zip(scorings, EARLIER, strict=True):
        if pure:
            said += [f"At commit {pure['commit'].removesuffix('-dirty')}, {what}:", bars(pure)]
            said += ["With the rivals' delta:", bars(with_delta)] if with_delta else []
    return "\n\n".join(said)


def numbers(
    result: Row | None,
    wide: Row | None,
    wide_delta: Row | None = None,
    delta: Row | None = None,
    scorings: Sequence[tuple[Row | None, Row | None]] = (),
    curve: Row | None = None,
    targets: Sequence[Row] = (),
) -> str:
    """Return the part of the page that is made of numbers."""
    parts = ["The held-out half has not been scored yet." if not result else scored(result, targets)]
    if delta:
        parts += [
            "## Held-out tables, with the rivals' delta",
            "The same tables and rivals, ours with their delta of 1e-6 where it pays; bars in brackets.",
            bars(delta),
            groups(delta),
            losses(delta),
            each(delta),
            differences(delta),
        ]
    if scorings:
        parts.append(earlier(scorings))
    if curve:
        parts.append(limits(curve))
    if wide and "privpgd" in wide:
        parts += [
            "## Beside PrivPGD",
            "PrivPGD measures every pair with Gaussian noise (delta 1e-6) and moves rows until they fit them all; it "
            "needs a GPU, and was run once, on all rows of the four older tables. Excess W1:",
            privpgd(wide),
        ]
    if wide_delta:
        cpu = wide_delta["machine"]
        parts += [
            "## With the rivals' delta",
            "The four older tables, ours with the delta of 1e-6 that MST, AIM and PrivPGD have; constants were chosen "
            "with these tables in view. Ratios to the best of MST and AIM, metric by metric:",
            with_delta(wide_delta),
            "Excess W1 beside PrivPGD:",
            privpgd(wide_delta),
            f"Measured by `make bench-wide` on {cpu['cores']} cores ({cpu['cpu']}), commit {wide_delta['commit']}.",
        ]
    return "\n\n".join(filter(None, parts))


def scored(result: Row, targets: Sequence[Row] = ()) -> str:
    cpu = result["machine"]
    counts: dict[str, int] = {}
    for row in result["rivals"]:
        counts[f"{row['method']} of {row['rival']}"] = counts.get(f"{row['method']} of {row['rival']}", 0) + row["runs"]
    parts = [
        "## Held-out tables",
        "Geometric means over the tables of ratios to the best of MST and AIM, metric by metric; in brackets what "
        "we set out to reach, bold where it is missed.",
        bars(result),
        groups(result),
        f"Peak memory of ours: {result['peak_mb']:.0f} MB. Complete runs of rivals: "
        + ", ".join(f"{name} {count}" for name, count in counts.items())
        + ".",
        "## Where we lose",
        losses(result),
        "Every table; bold where the best rival is ahead:",
        each(result),
        "## What models learn",
        "Bold where ours is more than .02 below the best rival's; R2 below 0 counts as 0.",
        differences(result),
        models(result),
        aimed(targets) if targets else "",
        "## Runs of rivals without a result",
        stopped(result),
        f"Measured by `make bench-held-out` on {cpu['cores']} cores ({cpu['cpu']}), commit {result['commit']}.",
    ]
    return "\n\n".join(filter(None, parts))


def line(result: Row) -> str:
    """Return the line of the page of evidence."""
    means = {row["epsilon"]: row for row in by_epsilon(result["ratios"], of_means=True)}
    names = {"tv1": "1-way total variation", "tv2": "2-way", "tv3": "3-way"} | {n: NAMES[n] for n in ERRORS[3:]}
    values = ", ".join(
        f"{name} {means[1][key]:.2f} ({', '.join(f'{means[e][key]:.2f} at {e}' for e in (0.1, 4))})"
        for key, name in names.items()
    )
    tables = {row["table"] for row in by_epsilon(result["ratios"], of_means=False)}
    return (
        f"- **Wide tables** ({len(tables)} real tables on which nothing was chosen, epsilon = 1, geometric means of "
        "ratios to the best of MST and AIM, metric by metric, which have a delta of 1e-6 where ours is 0): "
        f"{values}, CPU seconds 1/{1 / means[1]['cpu_seconds']:.0f}. Lower is better: above 1 we lose "
        "([every table](wide-tables.md), [curves on four older ones](../benchmarks/results/wide.png))."
    )
