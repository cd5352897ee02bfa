"""The tables of docs/peers.md, from results/peers.json: what the bars say, where we lose, every case."""

from collections import Counter
from typing import Any

Row = dict[str, Any]
NEAR, SHARE, WORST = 1.05, 0.8, 1.15
PAPER = {"shapes": 0.38, "tables": 0.42}
"""Bars of W1(default) / W1(paper), by what a group of cases has in its name; all together have that of tables."""
PARTS = {
    "Real tables that were held out": ("held out", "add-remove"),
    "Real tables that were open": ("open", "add-remove"),
    "Shapes, one row added or removed": ("shape", "add-remove"),
    "Shapes, one row replaced": ("shape", "replace"),
}


def lines(header: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    body = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in body)


def mark(value: float, *, good: bool) -> str:
    return f"{value:.2f}" if good else f"**{value:.2f}**"


def paper_bar(group: str) -> float:
    """Return the bar of a group of cases.

    Examples:
        >>> paper_bar("shapes, replace"), paper_bar("held-out tables"), paper_bar("everything")
        (0.38, 0.42, 0.42)
    """
    return next((bar for name, bar in PAPER.items() if name in group), PAPER["tables"])


def standing(bar: Row) -> list[str]:
    """Return what is said of the ratios to the lowest; nothing where not all methods were run."""
    if "within 5 %" not in bar:
        return ["", "", "", "", ""]
    return [
        str(bar["with all methods"]),
        mark(bar["within 5 %"], good=bar["within 5 %"] >= SHARE),
        f"{bar['mean ratio to the lowest']:.2f}",
        mark(bar["largest ratio"], good=bar["largest ratio"] <= WORST),
        bar["where"],
    ]


def bars(result: Row) -> str:
    """Return what the bars say, group by group; what misses a bar is bold."""
    rows = [
        [
            name,
            str(bar["cases"]),
            mark(bar["default / paper"], good=bar["default / paper"] <= paper_bar(name)),
            *standing(bar),
        ]
        for name, bar in result["bars"].items()
    ]
    header = [
        "cases",
        "how many",
        f"default / paper (bar {PAPER['tables']}, shapes {PAPER['shapes']})",
        "with all methods",
    ]
    header += [f"share within 5 % of the lowest (bar {SHARE})", "mean ratio", f"largest ratio (bar {WORST})", "where"]
    return lines(header, rows)


def losses(result: Row) -> str:
    """Return the cases in which another method is more than 5 % lower, the worst first."""
    whole = [row for row in result["rows"] if row["whole"]]
    lost = [row for row in whole if row["ratio"]["default"] > NEAR]
    lost.sort(key=lambda row: -row["ratio"]["default"])
    winners = Counter(row["lowest"] for row in lost)
    by = ", ".join(f"{method} {count}" for method, count in winners.most_common())
    sure = sum(row["ratio"]["default"] - 2 * row["chance"] > 1 for row in lost)
    table = [
        [
            row["table"],
            f"{row['epsilon']:g}",
            row["relation"],
            f"{row['mean']['default']:.2g}",
            row["lowest"],
            f"{row['mean'][row['lowest']]:.2g}",
            f"{row['ratio']['default']:.2f} ± {row['chance']:.2f}",
        ]
        for row in lost
    ]
    said = (
        f"Another method is more than 5 % lower in {len(lost)} of {len(whole)} cases ({by}); in {sure} of "
        "them by more than two standard errors."
    )
    header = ["table", "epsilon", "relation", "W1, ours", "lowest", "its W1", "ratio and its standard error"]
    return f"{said}\n\n{lines(header, table)}"


def everything(result: Row) -> str:
    """Return the ratios of every method in every case."""
    found, methods = [], result["methods"]
    for title, (part, relation) in PARTS.items():
        chosen = [row for row in result["rows"] if (row["part"], row["relation"]) == (part, relation) and row["whole"]]
        if not chosen:
            continue
        body = []
        for row in chosen:
            ratios = [row["ratio"].get(method) for method in methods]
            shown = [
                "" if x is None else f"**{x:.2f}**" if m == row["lowest"] else f"{x:.2f}"
                for m, x in zip(methods, ratios, strict=True)
            ]
            body.append([row["table"], f"{row['epsilon']:g}", f"{row['mean'][row['lowest']]:.2g}", *shown])
        found.append(f"### {title}\n{lines(['table', 'epsilon', 'lowest W1', *methods], body)}")
    return "\n\n".join(found)


def numbers(result: Row) -> str:
    """Return the page's part that is made of numbers."""
    cpu = sum(run["CPU seconds"] for run in result["runs"].values())
    made = (
        f"Made by `make bench-peers` on {result['machine']['cores']} cores ({result['machine']['cpu']}), commit "
        f"{result['commit']}; {cpu / 60:.0f} CPU minutes for all runs of all methods."
    )
    return "\n\n".join(
        (
            f"## The bars\n{bars(result)}\n\nBold: the bar is missed. {made}",
            f"## Where we lose\n{losses(result)}",
            f"## Every case: W1 over the lowest\n{everything(result)}",
        )
    )
