"""The README's table beside rivals, where we lose, and the page of evidence: all of it from results files."""

from collections.abc import Mapping
from math import exp, log
from typing import Any

import wide_page
from peers_page import NEAR, lines
from wide_page import MEAN, bold

Row = dict[str, Any]
"""The ratio of errors at which one tree is clearly better than a tree for each column."""
SHOWN = {"tv1": "1-way", "tv2": "2-way", "column_w1": "W1 of a column", "sliced": "sliced W1", "w1_excess": "excess W1"}
RIVALS = {
    ("opendp", "MST"): "MST (OpenDP)",
    ("opendp", "AIM"): "AIM (OpenDP)",
    ("dpmm", "MST"): "MST (dpmm)",
    ("dpmm", "AIM"): "AIM (dpmm)",
    ("privpgd", "all 2-way"): "PrivPGD (on a GPU)",
}


def average(runs: list[Row], metric: str) -> float:
    """Return the mean over runs; of an excess its standard error where the mean is less."""
    value = sum(row[metric] for row in runs) / len(runs)
    least = sum(row["w1_excess_error"] for row in runs) / len(runs) if metric == "w1_excess" else 0.0
    return max(value, least)


def beside(ours: list[Row], theirs: list[Row]) -> dict[str, tuple[float, int]]:
    """Return the geometric mean of ours over theirs at epsilon 1, by metric, and over how many tables it is."""
    found: dict[str, tuple[float, int]] = {}
    for metric in [*SHOWN, "cpu_seconds"]:
        logs = []
        for name in dict.fromkeys(row["table"] for row in theirs if metric in row):
            own, other = ([row for row in rows if row["table"] == name] for rows in (ours, theirs))
            logs.append(log(average(own, metric) / average(other, metric)))
        if logs:
            found[metric] = exp(sum(logs) / len(logs)), len(logs)
    return found


def table(wide: Row, rivals: Row, privpgd: Row, held_out: Row | None, with_delta: Row | None) -> str:
    """Return one table: ours over each rival at epsilon 1, and over the best of MST and AIM at every epsilon."""
    ours = [row for row in wide["rows"] if row["epsilon"] == 1 and row["neighbours"] == "add-remove"]
    runs = [row for row in rivals["rows"] if row["status"] == "complete"] + privpgd["rows"]
    rows = []
    for (rival, method), name in RIVALS.items():
        theirs = [r for r in runs if (r["rival"], r["method"]) == (rival, method) and r["epsilon"] == 1]
        if theirs:
            found = beside(ours, theirs)
            tables = next(iter(found.values()))[1]
            rows.append([name, "1", str(tables), *shown({metric: value for metric, (value, _) in found.items()})])
    where = ", held-out tables" if held_out else ""
    for best, what in ((held_out or wide, where), (with_delta, where + ", ours with their delta")):
        for mean in wide_page.by_epsilon(best["ratios"], of_means=True) if best else []:
            tables = sum(row["table"] != MEAN and row["epsilon"] == mean["epsilon"] for row in best["ratios"])
            rows.append([f"best of MST and AIM{what}", f"{mean['epsilon']:g}", str(tables), *shown(mean)])
    return lines(["ours over that of", "epsilon", "tables", *SHOWN.values(), "CPU seconds"], rows)


def shown(ratios: Row) -> list[str]:
    cpu = ratios.get("cpu_seconds")
    return [*(bold(ratios[metric], 1) for metric in SHOWN), f"1/{1 / cpu:.0f}" if cpu else ""]


def losses(wide: Row, peers: Row, first_hour: Row, held_out: Row | None) -> str:
    """Return where another method is ahead, and what comes out poorly, in a few lines."""
    whole = [row for row in peers["rows"] if row["whole"]]
    lost = [row for row in whole if row["ratio"]["default"] > NEAR]
    worst = max(lost, key=lambda row: row["ratio"]["default"])
    pgd = [
        f"{r['table']} at {r['epsilon']:g} ({r['ratio']:.2f})"
        for r in wide["privpgd"]
        if r["ratio"] > 1 and r["table"] != MEAN
    ]
    poor = max(first_hour["tables"], key=lambda row: row["two_way"])
    return "\n".join(
        [
            "- **Wide tables at small epsilon.** A delta buys less noise, and the rivals have one. "
            f"{counted(held_out or wide)} PrivPGD is ahead in excess W1 on {', '.join(pgd) or 'no table'}. "
            "[Table by table](docs/wide-tables.md).",
            f"- **One to three numbers.** Another method is more than 5 % nearer in {len(lost)} of {len(whole)} cases, "
            f"above all where rows lie in one place ({worst['lowest']} on {worst['table']} at epsilon "
            f"{worst['epsilon']:g} by a factor of {worst['ratio']['default']:.0f}). [Every case](docs/peers.md).",
            f"- **Few rows, many columns.** Of the table {poor['table']} ({poor['columns']} columns, few rows of each "
            f"person kept) {poor['two_way']:.0%} of the rows are in a wrong cell of a pair of columns, in the mean. "
            "[The first hour](docs/cli.md#the-first-hour-in-numbers).",
        ]
    )


def counted(result: Row) -> str:
    """Say in how many ratios the best rival is ahead, by epsilon."""
    parts = []
    for mean in wide_page.by_epsilon(result["ratios"], of_means=True):
        rows = [
            row for row in wide_page.by_epsilon(result["ratios"], of_means=False) if row["epsilon"] == mean["epsilon"]
        ]
        lost = sum(row[metric] > 1 for row in rows for metric in SHOWN)
        parts.append(f"{lost} of {len(rows) * len(SHOWN)} at epsilon {mean['epsilon']:g}")
    return f"The best rival of each metric is ahead in {', '.join(parts)}."


def copies(speed: Row) -> str:
    """Return how long a fit and a sample take, as a multiple of the time that a copy of the points takes."""
    one, two = (next(r for r in speed["main"] if r["threads"] == t and r["order"] == "random") for t in (1, 2))
    return (
        f"**Time.** A fit and a sample of 10^7 points in the square take {one['times copy']:.0f} times as long as "
        f"`numpy.copy` of the points on one thread, and {two['times copy']:.0f} times on two."
    )


def readme(load: Any) -> str:
    """Return the part of the README that is made of numbers."""
    wide, rivals, privpgd, peers, first_hour, speed = (
        load(name) for name in ("wide", "wide-rivals", "privpgd", "peers", "first-hour", "speed")
    )
    held_out = load("held-out")
    with_delta = load("held-out-delta" if held_out else "wide-delta")
    scorings = 1 + sum(load(f"held-out-{which}") is not None for which in ("first", "second", "third"))
    own, theirs, settings = wide["machine"], rivals["machine"], rivals["settings"]
    sizes = {row["columns"] for row in rivals["rows"]}
    tables = len({row["table"] for row in wide["rows"]})
    otherwise = ", unless a row says otherwise" if with_delta else ""
    chosen = (
        "Constants of ours were chosen with these tables in view, except for the rows of tables that were held out. "
        f"Those were scored {scorings} times, and ours was changed between the scorings ([each of "
        "them](docs/wide-tables.md#earlier-scorings))."
        if held_out
        else "Constants of ours were chosen with these tables in view."
    )
    held = " and `make bench-held-out`" if held_out else ""
    return "\n".join(
        [
            copies(speed),
            "",
            f"Errors on {tables} real tables of {min(sizes)} to {max(sizes)} columns, ours over the rival's, geometric "
            "means: **below 1 ours is smaller**, bold where we lose. The rivals have a delta of "
            f"{settings['delta']:g}, ours is 0{otherwise}. 1-way and 2-way are total variation of columns and pairs; "
            "W1 is a distance in which near values are near ([what each is](docs/wide-tables.md)). "
            f"{chosen} AIM was stopped after {settings['cpu_limit_seconds'] / 60:.0f} CPU minutes; its rows are of the "
            "tables that it finished.",
            "",
            table(wide, rivals, privpgd, held_out, with_delta),
            "",
            f"Measured by `make bench-wide`{held} on {own['cores']} cores ({own['cpu']}; rivals {theirs['cpu']}): [all "
            "evidence](docs/evidence.md), [curves](benchmarks/results/wide.png). None of these rivals promises how far "
            "its rows are from the data.",
            "",
            "## Where we lose",
            losses(wide, peers, first_hour, held_out),
        ]
    )


INDEX = [
    ("[Beside its peers](peers.md)", "W1 of points and narrow tables beside six methods", "bench-peers", "peers"),
    ("[Wide tables](wide-tables.md)", "wide tables beside MST, AIM and PrivPGD; held-out halves", "bench-wide", "wide"),
    (
        "[Wide tables](wide-tables.md)",
        "errors as epsilon grows: noise, and what the model lacks",
        "bench-open",
        "curve",
    ),
    ("[Numbers](#numbers): speed", "time of a fit and a sample beside a copy", "bench", "speed"),
    ("[Numbers](#numbers): noise", "an exact draw beside OpenDP's", "bench", "noise"),
    ("[Numbers](#numbers): accuracy", "W1 beside the paper's mechanism, 4 shapes", "bench", "accuracy"),
    ("[Numbers](#numbers): PSMM", "the closest measure, and when to choose it", "bench-flat", "flat"),
    ("[Numbers](#numbers): tables", "files in, files out, beside duckdb and polars", "bench-tables", "tables"),
    ("[Numbers](#numbers): size", "10^8 points in memory", "bench-large", "large"),
    ("[Rates](#rates)", "the rates of the theorems, as slopes", "bench-rates", "rates"),
    ("[One tree or many](#one-tree-or-many)", "at how many columns one tree ends", "bench-wide", "crossover"),
    ("[Many columns](#many-columns)", "time and memory of very wide tables", "bench-wide", "many-columns"),
    ("[A declared target](#a-declared-target)", "what `target` brings to a survival model", "bench-target", "target"),
    (
        "[Columns made of others](#columns-made-of-others)",
        "places in states, loans and long lists, simulated",
        "bench-simulated",
        "simulated",
    ),
    ("[Orders between columns](#orders-between-columns)", "what an order costs and moves", "bench-stays", "stays"),
    ("[Persons](persons.md#numbers)", "k rows of each person, on a table of visits", "bench-visits", "visits"),
    ("[The first hour](cli.md#the-first-hour-in-numbers)", "a stranger's steps", "bench-first-hour", "first-hour"),
    ("[Typical errors](reports.md#how-wrong-is-it-here)", "how often bands hold", "bench-typical", "typical"),
    ("[Scale](scale.md)", "databases, files and writing beside engines", "bench-scale", "scale"),
    ("[Scale](scale.md)", "Spark: counting and drawing by executors", "bench-scale", "scale-spark"),
    ("[Scale](scale.md)", "cores: 10^7 points and tables on 1 to 16 threads", "bench-cores", "cores-16"),
    ("[Scale](scale.md)", "cores: 10^8 points", "bench-cores", "cores-16-large"),
    ("[Scale](scale.md)", "cores: the same on two", "bench-cores", "cores-2"),
    ("[Scale](scale.md)", "peak memory from file to file", "bench-cores", "cores-memory-2"),
    ("[Planted faults](#planted-faults)", "small mistakes, and the tests that catch them", "test-faults", "faults"),
    ("[Random changes](#random-changes)", "random changes of the numeric kernels", "mutants", "mutants"),
]
"""Pages with numbers: what each shows, the target of `make` that measures it, the results file that it is made of."""


def index(load: Any) -> str:
    """Return the index of the pages with numbers; what was not measured yet is not in it."""
    rows = []
    for page, what, target, name in INDEX:
        if result := load(name):
            rows.append([page, what, f"`make {target}`", f"`{name}.json`", result["machine"]["cpu"], result["commit"]])
    return lines(["page", "what it shows", "measured by", "from", "on", "commit"], rows)


def rates(result: Row) -> str:
    """Return the slopes of W1 against epsilon n."""
    rows = [
        [row["shape"], row["method"], str(row["d"]), f"{row['slope']:.2f}", f"{row['theorem, logs aside']:.2f}"]
        for row in result["slopes"]
    ]
    return lines(["shape", "method", "dimension", "slope of log W1", "theorem, logarithms aside"], rows)


def joint_columns(means: Mapping[int, float]) -> int:
    """Return the largest number of columns up to which one tree has the smaller error; 1 if it never has.

    `means` has the error of one tree over that of a tree for each column.

    Examples:
        >>> joint_columns({2: 0.92, 3: 0.80, 4: 1.02, 6: 0.5}), joint_columns({2: 1.0})
        (3, 1)
    """
    best = 1
    for columns, ratio in sorted(means.items()):
        if ratio >= 1:
            break
        best = columns
    return best


def faults(result: Row) -> str:
    """Return how many planted faults the tests caught, and in how many seconds."""
    rows = [
        [room, str(one["planted"]), str(one["caught"]), f"{one['median_seconds']:g}", f"{one['most_seconds']:g}"]
        for room, one in result["rooms"].items()
    ]
    rows.append(["all", *(f"{result[key]:g}" for key in ("planted", "caught", "median_seconds", "most_seconds"))])
    table = lines(["list of faults", "planted", "caught", "median seconds", "most seconds"], rows)
    unseen = result.get("unseen")
    if unseen is None:
        return table
    return table + (
        f"\n\nA reviewer who had not seen the tests planted {unseen['planted']} further faults; the tests caught "
        f"{unseen['caught']} of them."
    )


def mutants(result: Row) -> str:
    """Return how many random changes of the numeric kernels no unit test noticed."""
    keys = ("drawn", "survived_before", "survived_after")
    rows = [[room, *(str(one[key]) for key in keys)] for room, one in result["rooms"].items()]
    rows.append(["all", *(str(result[key]) for key in keys)])
    return lines(["kernels", "random changes", "unnoticed before", "unnoticed after"], rows)


def costs_of_tests(result: Row) -> str:
    """Return what the tests cost, before they were split into two sets and after."""
    kinds = [("before", result["before"])] if result.get("before") else []
    kinds.append(("after", result["after"]))
    rows = []
    for what in ("collecting", "make test", "make test-deep"):
        rows.append([what, *(f"{one[what]['wall_seconds']:g} ({one[what]['cpu_seconds']:g})" for _, one in kinds)])
    for change, seconds in result["after"]["make quick"].items():
        blank = ["-"] * (len(kinds) - 1)
        rows.append([f"make quick, {change}", *blank, f"{seconds['wall_seconds']:g} ({seconds['cpu_seconds']:g})"])
    for what, key in (("test functions", "test_functions"), ("cases of make test", "cases_of_make_test")):
        rows.append([what, *(f"{one[key]:,}" for _, one in kinds)])
    rows.append(["lines that make test runs, %", *(f"{one['coverage_percent']:g}" for _, one in kinds)])
    return lines(["seconds (CPU seconds)", *(name for name, _ in kinds)], rows)


def crossover(result: Row) -> str:
    """Return where one tree ends."""
    best = joint_columns({int(columns): ratio for columns, ratio in result["means"].items()})
    rows = [[columns, f"{ratio:.2f}"] for columns, ratio in result["means"].items()]
    return (
        lines(["columns", "error of one tree over that of a tree for each column"], rows)
        + f"\n\nOne tree has the smaller error up to {best} columns. So up to {best} columns get one tree, unless "
        "`mechanism=` says otherwise."
    )


def many_columns(result: Row) -> str:
    """Return what very wide tables cost."""
    rows = [
        [
            f"{row['rows']:,}",
            str(row["columns"]),
            f"{row['categories']:,}",
            f"{row['CPU seconds']:.1f}",
            f"{row['peak MB']:.0f}",
        ]
        for row in result["rows"]
    ]
    return lines(["rows", "columns", "values of a category", "CPU seconds", "peak MB"], rows)


def target(result: Row) -> str:
    """Return what a declared target brings."""
    rows = []
    for line in result["lines"]:
        epsilon = "" if line["epsilon"] is None else f"{line['epsilon']:g}"
        rows.append(
            [line["rows"], epsilon, line["target"] or "", *(f"{line[k]:.3f}" for k in ("age", "age and flc.grp"))]
        )
    return lines(["rows", "epsilon", "target", "with age", "with age and group"], rows)


def simulated(result: Row) -> str:
    """Return what is left of columns that are made of others."""
    what = {"places": "degrees from the middle of its state", "loans": "R2 of a rate, predicted from three others"}
    ways = [
        [row["table"], what[row["table"]], row["declared"], str(row["epsilon"]), f"{row['score']:.2f}"]
        for row in result["declared"]
    ]
    finer = [
        [row["table"], str(row["epsilon"]), f"{row['usual']:.3f}", f"{row['finer']:.3f}", f"{row['ratio']:.2f}"]
        for row in result["finer"]
    ]
    learnt = [
        [row["rows"], str(row["epsilon"]), f"{row['boosting']:.2f}", f"{row['linear']:.2f}"] for row in result["aimed"]
    ]
    return (
        lines(["table", "measure", "declared as", "epsilon", "mean"], ways)
        + "\n\nTotal variation of pairs, where finer tables of long lists may be chosen and where not:\n\n"
        + lines(["table", "epsilon", "usual tables", "finer ones too", "ratio"], finer)
        + "\n\nAUC of models that predict a column of two values, mean over six tables that a few factors decide, "
        "where the column is declared as the target and where not:\n\n"
        + lines(["trained on", "epsilon", "boosting", "linear"], learnt)
    )


def stays(result: Row) -> str:
    """Return what orders between columns cost, and what they move."""
    rows = [
        [
            f"`{line['never']}`",
            f"{line['broken without it']:.2%}",
            f"{line['broken']:.0%}",
            f"{line['times slower']:.1f}",
        ]
        for line in result["lines"]
    ]
    biases = [
        [
            line["table"],
            str(line["epsilon"]),
            f"{line['bias with it']:.4f}",
            f"{line['bias without it']:.4f}",
            f"{line['bias left out']:.4f}",
            f"{line['broken']:.0%}",
        ]
        for line in result["biases"]
    ]
    heads = ["table", "epsilon", "with it", "without it", "rows that break it left out", "rows that break it"]
    return (
        lines(["never", "rows that break it, if it is not declared", "if it is", "sampling, times slower"], rows)
        + f"\n\nPatients with two dates, {result['patients']:,} of them, simulated and real (Aids2 of the R package "
        "MASS): the largest bias of a column that the constraint does not compare, in shares of rows or of the range, "
        f"over {result['seeds']} releases. With the constraint columns stay as they were released; leaving out the "
        "rows that break it would move them.\n\n" + lines(heads, biases)
    )


PARTS = {
    "Rates": (
        "rates",
        rates,
        "W1 against epsilon n, both on logarithmic scales ([picture](../benchmarks/results/rates.png)).",
    ),
    "One tree or many": (
        "crossover",
        crossover,
        "Geometric means of three distances over simulated shapes; above 1 one tree is worse.",
    ),
    "Many columns": ("many-columns", many_columns, "Fit and sample of simulated tables."),
    "A declared target": (
        "target",
        target,
        "Cox's coefficient of men beside women on a survival table, from real and from synthetic rows, with and "
        "without `target`.",
    ),
    "Columns made of others": (
        "simulated",
        simulated,
        "Simulated tables, as they are and as one who knows them would declare them; pure epsilon, and a tree for each "
        "column, as wider tables have it.",
    ),
    "Orders between columns": ("stays", stays, "Stays in a hospital, simulated."),
    "Planted faults": (
        "faults",
        faults,
        "Each fault is a small mistake in one file, planted alone; the tests that it names run first, then all others.",
    ),
    "Random changes": (
        "mutants",
        mutants,
        "Changes that mutmut makes of random statements, before and after tests were added for those that went "
        "unnoticed; [the file](../benchmarks/results/mutants.json) gives a reason for each that is left.",
    ),
    "What the tests cost": (
        "test-costs",
        costs_of_tests,
        "On two cores, installation excluded; `make test-deep` was `make test-slow` before.",
    ),
}
"""Results that have no page of their own: title, file, table, and what it is about."""


def evidence(load: Any, numbers: str) -> str:
    """Return the whole page of evidence below its introduction."""
    parts = [index(load), "## Numbers", numbers]
    for title, (name, made, about) in PARTS.items():
        if result := load(name):
            parts += [f"## {title}", about, made(result)]
    return "\n\n".join(parts)
