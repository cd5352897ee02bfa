"""The page of a comparison: real rows beside synthetic ones. PRIVATE: what it shows depends on the real rows.

Every sheet that is printed, the metadata and the name of the file say so.
"""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from privmeasure.domains import Floats, Points
from privmeasure.metrics.answers import correlations, linear_scores
from privmeasure.metrics.fidelity import NO_DIFFERENCE, REAL_TABLE_STAMP, Fidelity
from privmeasure.metrics.nearness import joined, rows_apart, share_of_range
from privmeasure.metrics.values import Difference
from privmeasure.releases.bands import TypicalError
from privmeasure.report import distributions, heat, promises
from privmeasure.report.canvas import FAINT, INK, percent, styled
from privmeasure.report.pages import NONE, Album, render
from privmeasure.report.public import quick_certificate
from privmeasure.report.sections import MOST_PICTURED
from privmeasure.report.words import describe_shares
from privmeasure.tables.schema import Schema
from privmeasure.tables.variables import Variable, variables

MARK = "CONFIDENTIAL"
MOST_PAIRS_LOOKED_AT = 120
"""Pairs of columns whose W1 is computed, those that differ most by total variation."""
MOST_SIDE_BY_SIDE = 6
JOINT_SAMPLE = 1000
"""Rows of a sample whose distance is computed exactly where there are many columns."""


def confidential_name(path: Path) -> Path:
    """Return a path whose name says that the file is confidential.

    Examples:
        >>> confidential_name(Path("out.html")).name, confidential_name(Path("Confidential-7.html")).name
        ('out.CONFIDENTIAL.html', 'Confidential-7.html')
    """
    return path if MARK.lower() in path.name.lower() else path.with_name(f"{path.stem}.{MARK}{path.suffix or '.html'}")


def comparison_page(
    real: Points,
    synthetic: Points,
    schema: Schema,
    found: Fidelity,
    *,
    release: Any = None,
    typical: TypicalError | None = None,
    seed: int = 0,
) -> str:
    """Return the page of a comparison as HTML. CONFIDENTIAL.

    `found` is what `fidelity` says of the two; a `release` brings guarantees and certificates of its rows.
    """
    album, seen = Album(), variables(schema)
    order = np.random.default_rng(seed).permutation(len(real))
    halves = real[order[: len(real) // 2]], real[order[len(real) // 2 :]]
    moved = [_moved(v.space, real[:, v.places], synthetic[:, v.places]) for v in seen]
    floors = [_moved(v.space, *(half[:, v.places] for half in halves)) for v in seen]
    promised = _promised(release, schema, typical)
    pairs = _pairs(seen, real, synthetic, halves, found)
    numeric = [v for v in seen if v.numbers(np.empty((0, v.present.width))) is not None]
    return render(
        "comparison.html",
        title=f"{MARK}: real and synthetic rows compared, {len(seen)} columns",
        stamp=REAL_TABLE_STAMP,
        lead="For the owner of the data alone. The figures and pictures were computed from the real rows, without any "
        "noise: whoever sees them may learn of single people.",
        contents=_contents(has_pairs=bool(pairs), has_correlations=len(numeric) > 1),
        largest=[[str(one), *one.shown[2:]] for one in found.largest],
        no_difference=NO_DIFFERENCE,
        value_rows=[[one.column, one.name, *one.shown] for one in _by_column(seen, found)],
        whole_rows=_whole(real, synthetic, halves, schema, found, release, seed=seed),
        errors=album.add(
            _errors_picture([v.name for v in seen], moved, floors, promised),
            "W1 between real and synthetic, column by column, as a share of its range, with its baseline and what was "
            "promised or estimated without the data.",
            "; ".join(f"{v.name}: {percent(w)} of its range" for v, w in list(zip(seen, moved, strict=True))[:12]),
        ),
        column_heads=["column", "found", "baseline: two halves", "guaranteed", "certified", "typical"],
        column_rows=[_column_row(*line) for line in zip(seen, moved, floors, promised, strict=True)],
        columns=[_column(album, v, real, synthetic) for v in seen[:MOST_PICTURED]],
        columns_left=f"And {len(seen) - MOST_PICTURED} more columns, in the tables."
        if len(seen) > MOST_PICTURED
        else "",
        pairs=[_side_by_side(album, one, two, real, synthetic) for one, two, *_ in pairs[:MOST_SIDE_BY_SIDE]],
        pairs_words="Those that differ most, in the same colours: real rows, then synthetic ones.",
        pair_rows=[[f"{a.name} and {b.name}", *(f"{x:.4f}" for x in figures)] for a, b, *figures in pairs[:40]],
        **_correlated(album, numeric, real, synthetic),
        score_rows=[
            [s.name, s.kind, f"{s.real:.3f}", f"{s.synthetic:.3f}", f"{s.nothing:.3f}"]
            for s in linear_scores(real, synthetic, seen, seed=seed)
        ],
    )


def _contents(*, has_pairs: bool, has_correlations: bool) -> list[tuple[str, str]]:
    contents = [("values", "Values"), ("whole", "Whole table"), ("distances", "Distances"), ("columns", "Columns")]
    contents += [("pairs", "Pairs")] * has_pairs + [("correlations", "Correlations")] * has_correlations
    return [*contents, ("scores", "Scores"), ("figures", "All figures")]


def _by_column(seen: Sequence[Variable], found: Fidelity) -> list[Difference]:
    """Return all figures in the order of the columns, those of whole columns before those within categories."""
    order = {v.name: i for i, v in enumerate(seen)}
    return sorted(found.differences, key=lambda one: (order[one.column], one.within is not None, one.within or ()))


def _moved(space: Any, x: Points, y: Points) -> float:
    return share_of_range(x, y, space) if len(x) and len(y) else float("nan")


def _promised(release: Any, schema: Schema, typical: TypicalError | None) -> Sequence[promises.ColumnPromise | None]:
    """Return what is known without the data of each column, where the rows are those of a release."""
    if release is None:
        return [None] * len(schema.data)
    known = {p.name: p for p in promises.column_promises(release, quick_certificate(release), typical)}
    return [known.get(name) for name in schema.data]


def _whole(
    real: Points,
    synthetic: Points,
    halves: tuple[Points, Points],
    schema: Schema,
    found: Fidelity,
    release: Any,
    *,
    seed: int,
) -> list[list[str]]:
    rows = [[name, f"{f.value:.4f}", f"{f.floor:.4f}", "a resample of the real rows"] for name, f in found.figures]
    domain = schema.domain
    if domain.width <= 3 and len(halves[0]):
        value, floor = share_of_range(real, synthetic, domain), share_of_range(*halves, domain)
        rows.append(
            ["W1 of whole rows, of the diameter", f"{value:.4f}", f"{floor:.4f}", "two halves of the real rows"]
        )
    elif len(real) >= 4:
        value, floor = rows_apart(real, synthetic, domain, rows=JOINT_SAMPLE, seed=seed)
        told = "two samples of the real rows"
        rows.append([f"W1 of {JOINT_SAMPLE:,} whole rows, of the diameter", f"{value:.4f}", f"{floor:.4f}", told])
    if release is not None and release.plan.joint:
        plan, certified = release.plan, quick_certificate(release)
        rows.append(["guarantee of whole rows, of the diameter", f"{plan.guarantee / plan.diameter:.4f}", NONE, NONE])
        if certified is not None:
            rows.append(["certificate, of the diameter", f"{certified.value / plan.diameter:.4f}", NONE, NONE])
    elif release is not None:
        rows.append(["guarantee of whole rows", "none", NONE, NONE])
    return rows


def _column_row(v: Variable, moved: float, floor: float, promised: promises.ColumnPromise | None) -> list[str]:
    told = promised or promises.ColumnPromise(v.name, "", 1.0, None, None, v.column)
    rest = [NONE] * 3 if promised is None else [told.words(x) for x in (told.guarantee, told.certificate, told.typical)]
    return [v.name, told.words(moved), told.words(floor), *rest]


def _errors_picture(
    names: Sequence[str],
    moved: Sequence[float],
    floors: Sequence[float],
    promised: Sequence[promises.ColumnPromise | None],
    *,
    ax: Any = None,
) -> Any:
    """Draw the distances that were found, with baselines and with what was promised."""
    known = [
        promises.ColumnPromise(name, "", 1.0, None, None, None) if p is None else p
        for name, p in zip(names, promised, strict=True)
    ]
    ax = promises.errors(known, ax=ax)
    with styled():
        at = np.arange(min(len(names), promises.MOST_LINES))
        shares = [100 * np.maximum(np.nan_to_num(own[: len(at)]), 1e-6) for own in (np.array(moved), np.array(floors))]
        ax.scatter(shares[0], at, color=INK, marker="X", s=26, zorder=4, label="found")
        ax.scatter(shares[1], at, facecolor="none", edgecolor=FAINT, marker="s", s=26, label="baseline")
        least = min([s for own in shares for s in own if s > 1e-3] or [0.1])
        ax.set_xlim(min(ax.get_xlim()[0], least / 2), 100)
        ticks = [t for t in (0.001, 0.01, 0.1, 1, 10, 100) if t >= ax.get_xlim()[0]]
        ax.set_xticks(ticks, [f"{t:g} %" for t in ticks])
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    return ax


def _column(album: Album, v: Variable, real: Points, synthetic: Points) -> dict[str, Any]:
    ours, theirs = (v.shares(points[:, v.places]) for points in (synthetic, real))
    told = describe_shares(v, theirs, real[:, v.places]), describe_shares(v, ours, synthetic[:, v.places])
    words = f"Real: {told[0]} Synthetic: {told[1]}"
    if v.scale == "place":
        shown = [("real", theirs), ("synthetic", ours)]
        return {
            "name": v.name,
            "pictures": [album.add(heat.place_map(v, s), f"{v.name}, {told} rows.", words) for told, s in shown],
        }
    ax = distributions.distribution(v, ours, other=theirs, names=("synthetic", "real"))
    return {"name": v.name, "pictures": [album.add(ax, f"{v.name}: synthetic rows, and real ones over them.", words)]}


PairFigures = tuple[Variable, Variable, float, float, float, float]
"""Two variables, their W1 and its baseline, their total variation and its baseline."""


def _pairs(
    seen: Sequence[Variable], real: Points, synthetic: Points, halves: tuple[Points, Points], found: Fidelity
) -> list[PairFigures]:
    """Return the pairs with their distances, those that differ most first; places have maps of their own."""
    flat = [v for v in seen if v.scale != "place"]
    known = {frozenset((p.first, p.second)): p.variation for p in found.pairs}
    told = [(a, b, known[frozenset((a.name, b.name))]) for a, b in combinations(flat, 2)]
    told.sort(key=lambda pair: -pair[2].value)
    figures = []
    for a, b, variation in told[:MOST_PAIRS_LOOKED_AT]:
        at, space = np.r_[a.places, b.places], joined([a.space, b.space])
        moved, floor = _moved(space, real[:, at], synthetic[:, at]), _moved(space, *(half[:, at] for half in halves))
        figures.append((a, b, moved, floor, variation.value, variation.floor))
    return sorted(figures, key=lambda pair: -pair[2])


def _side_by_side(album: Album, one: Variable, two: Variable, real: Points, synthetic: Points) -> dict[str, Any]:
    tables = [heat.pair_shares(one, two, points, like=real)[0] for points in (real, synthetic)]
    most = max(float(table.max()) for table in tables)
    pictures = [
        album.add(
            heat.heat_map(one, two, points, most=most, like=real, title=told),
            f"{told.capitalize()} rows.",
            f"Heat map of {one.name} and {two.name}, {told} rows; the fullest cell has {100 * table.max():.2g} %.",
        )
        for told, points, table in zip(("real", "synthetic"), (real, synthetic), tables, strict=True)
    ]
    return {"name": f"{one.name} and {two.name}", "pictures": pictures}


def _correlated(album: Album, numeric: Sequence[Variable], real: Points, synthetic: Points) -> dict[str, Any]:
    if len(numeric) < 2:
        return {"correlations": None, "correlation_rows": []}
    pairs = [f"{a.name} and {b.name}" for a, b in combinations(numeric, 2)]
    values: list[Floats] = []
    for points in (real, synthetic):
        columns = [own for v in numeric if (own := v.numbers(points[:, v.places])) is not None]
        values.append(correlations(np.column_stack(columns)))
    worst = np.argsort(-np.abs(values[0] - values[1]), kind="stable")[:12]
    rows = [
        [pairs[i], f"{values[0][i]:.3f}", f"{values[1][i]:.3f}", f"{values[1][i] - values[0][i]:+.3f}"] for i in worst
    ]
    picture = album.add(
        distributions.agreement(values[0], values[1]),
        "A point for each pair of numeric columns. On the dashed line, the synthetic correlation is the real one.",
        f"{len(pairs)} correlations; the largest difference is {float(np.abs(values[0] - values[1]).max()):.2f}.",
    )
    return {"correlations": picture, "correlation_rows": rows}
