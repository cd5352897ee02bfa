"""`privmeasure inspect`: what a release says about itself. This file cannot reach data, counts or sources."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privmeasure.cli import options, terminal
from privmeasure.cli.preparing import NOT_PRIVATE, open_release
from privmeasure.errors import ArgumentError

if TYPE_CHECKING:
    from privmeasure.tables.advice import ColumnResolution


def inspect(
    *,
    release: options.ReleaseFile,
    certificate: Annotated[
        bool | None,
        typer.Option(
            "--certificate/--no-certificate",
            help="Certificates by exact transport, which may take a minute, or none; without it quick ones.",
            show_default=False,
        ),
    ] = None,
    voice: terminal.Voice,
) -> None:
    """Show what a release says about itself: its promise and budgets, its columns, its pairs and facts, its id.

    The guarantee bounds the expected distance of a column to its data, and was known before anything was measured. A
    certificate bounds the distance of this very release, from the released noisy counts, with high probability. Where
    it is above the guarantee it says less: use the guarantee. Everything shown is public: it was paid for when the
    release was made.

    Examples:

      privmeasure inspect people.release
      privmeasure inspect people.release --json --no-certificate
    """
    from privmeasure.ledger import schema_digest
    from privmeasure.tables.advice import ASSUMED, resolutions, standing_alone_advice

    loaded = open_release(release)
    schema = getattr(loaded, "schema", None)  # releases of points, made in Python, have none
    columns = [] if schema is None else resolutions(schema, loaded.plan)
    pairs = [] if schema is None else loaded.pair_information()
    alone = [] if schema is None else loaded.standing_alone
    certified = None if certificate is False else _certificate(loaded, quick=not certificate, shown=voice.in_words)
    rows, tables = _row_distances(loaded)
    digest = None if schema is None else schema_digest(schema.to_json())
    if voice.json:
        terminal.emit(
            {
                "private": loaded.private,
                "id": None if loaded.origin is None else loaded.origin.id,
                "version": None if loaded.origin is None else loaded.origin.version,
                "recorded": None if loaded.origin is None else loaded.origin.recorded,
                "schema_digest": digest,
                "plan": loaded.plan.to_json(),
                "guarantee": loaded.plan.guarantee,
                "certificate": None if certified is None else certified.to_json(),
                "columns": [
                    column.to_json() | _use(column, certified, rows) | _moved(column, rows) for column in columns
                ],
                "values": {} if schema is None else _values(loaded),
                "pairs": [{"columns": [one, two], "bits": bits} | _apart(one, two, tables) for one, two, bits in pairs],
                "standing_alone": alone,
                "schema": None if schema is None else schema.to_json(),
            }
        )
        return
    if not loaded.private:
        voice.warn(NOT_PRIVATE)
    facts = () if schema is None else schema.never
    aims = () if schema is None else schema.target
    said = [*(f"never      {fact}" for fact in facts), *([f"           {ASSUMED}"] if facts else [])]
    said += [f"target     {name}" for name in aims]
    voice.tell("\n".join([str(loaded.plan), _identity(loaded.origin, digest), *said]))
    if schema is None and certified is not None:
        voice.tell(str(certified))
    if columns and voice.in_words:
        _show_columns(columns, certified, rows, joint=loaded.plan.joint)
        _show_values(_values(loaded))
        _show_pairs(pairs, tables)
        for sentence in [] if schema is None else standing_alone_advice(schema, loaded.plan, alone):
            print(sentence)


NOTHING_SHARED = (
    "0.000: noise hides whether the two depend on each other. This pair adds no dependence to the rows; others may."
)
"""What a pair without a bit means."""


def _row_distances(release: Any) -> tuple[list[float] | None, dict[tuple[str, str], float]]:
    """Return how far the default rows are from each tree, and from each noisy table; none without an order."""
    columns, pairs = getattr(release, "row_distances", None), getattr(release, "row_pair_distances", None)
    return None if columns is None else list(columns.values()), {(one, two): far for one, two, far in pairs or ()}


def _moved(column: "ColumnResolution", rows: list[float] | None) -> dict[str, float]:
    """Return how far rows are from a released column, as a share of its range."""
    return {} if rows is None else {"row_distance": rows[column.node] / column.range if column.range > 0 else 0.0}


def _apart(one: str, two: str, tables: dict[tuple[str, str], float]) -> dict[str, float]:
    """Return how far rows are from the noisy table of a pair."""
    return {"row_distance": tables[one, two]} if (one, two) in tables else {}


def _values(release: Any) -> dict[str, dict[str, Any]]:
    """Return the mean and the quantiles that a release states of each column, in the type of the column."""
    from privmeasure.tables.variables import QUANTILES

    means, found = release.mean(), {}
    for name, kind in release.schema.data.items():
        said = {}
        if name in means:
            said["mean"] = means[name] if math.isfinite(means[name]) else None
        if kind.has_quantiles and kind.domain.width == 1:
            quantiles = {f"{q:g}": release.quantile(q, column=name) for q in QUANTILES}
            said |= {q: v if v is None or isinstance(v, int | float | str) else str(v) for q, v in quantiles.items()}
        if said:
            found[name] = said
    return found


def _show_values(values: dict[str, dict[str, Any]]) -> None:
    """Print what the release states of its columns, if it states anything."""
    from privmeasure.tables.variables import QUANTILES, plain_number

    def shown(value: Any) -> str:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return plain_number(value) if number else "" if value is None else str(value)

    if values:
        names = ["mean", *(f"{q:g}" for q in QUANTILES)]
        heads = ["column", "mean", *("median" if q == 0.5 else f"{100 * q:g}%" for q in QUANTILES)]
        lines = [[column, *(shown(said.get(name)) for name in names)] for column, said in values.items()]
        terminal.table("What the release states of its columns; `privmeasure report` adds bands.", heads, lines)


def _show_pairs(pairs: Sequence[tuple[str, str, float]], tables: dict[tuple[str, str], float] | None = None) -> None:
    """Print the pairs that were measured together, if there are any: the bits that they share, and how far rows are."""
    if not pairs:
        return
    heads = ["column", "column", "bits that one tells of the other"] + ["rows from noisy table"] * bool(tables)
    shared = [f"{bits:.3f}" for _, _, bits in pairs]
    lines = [[one, two, bits] for (one, two, _), bits in zip(pairs, shared, strict=True)]
    if tables:
        lines = [[*line, f"{tables[line[0], line[1]]:.3g}"] for line in lines]
    terminal.table("Pairs that were measured together", heads, lines)
    if "0.000" in shared:
        print(NOTHING_SHARED)
    if tables:
        print(
            "rows from noisy table: total variation distance between the default rows and the noisy counts of the "
            "pair, its noise included."
        )


def _show_columns(columns: "list[ColumnResolution]", certified: Any, rows: list[float] | None, *, joint: bool) -> None:
    """Print resolution, guarantee and certificate of each column, in its own units, and which of the two to use."""
    heads, lines = ["column", "cuts", "told apart to", "guarantee"] + ["rows"] * (rows is not None), []
    for column in columns:
        lines.append([column.name, f"{column.cuts}", column.text, column.in_units(column.guarantee)])
        if rows is not None:
            lines[-1].append(column.in_units(rows[column.node]))
        if certified is not None:
            bound = _bound(column, certified)
            lines[-1] += [column.in_units(bound), _use(column, certified, rows)["use"] or "neither"]
    if certified is not None:
        heads += ["certificate", "use"]
    terminal.table("\nColumns: how far the released values are from the data, on average over the rows", heads, lines)
    print("guarantee: the expected W1 distance at most, known before anything was measured.")
    if rows is not None:
        print(
            "rows: distance (W1) between the default rows and the released column, moved by constraints that compare "
            "columns.\nAdd it to the guarantee for the error of the rows; certificates include it."
        )
    if certified is not None:
        print(
            f"certificate: the distance of this release at most, with probability {1 - certified.beta:g} for all "
            "columns at once.\nWhere it is above the guarantee it is no news: use the guarantee."
        )
    if joint:
        print("One bound for all columns together: each is what it says of one of them.")
    print()


def _bound(column: "ColumnResolution", certified: Any) -> float:
    """Return the certified distance of a column, as its tree measures it."""
    own = certified if hasattr(certified, "value") else certified.certificates[column.node]
    return 0.0 if own is None else float(own.value)


def _use(column: "ColumnResolution", certified: Any, rows: list[float] | None) -> dict[str, Any]:
    """Say which of the two bounds says more of a column, if any says something, and what is certified.

    The certificate is about the rows, so how far these were moved is added to the guarantee first.
    """
    if certified is None:
        return {}
    bound, guarantee = _bound(column, certified), column.guarantee + (rows[column.node] if rows else 0.0)
    best = "guarantee" if guarantee <= bound else "certificate"
    says = column.range <= 0 or min(guarantee, bound) < column.range
    share = min(bound / column.range, 1.0) if column.range > 0 else 0.0
    return {"certificate": share, "use": best if says else None}


def _identity(origin: Any, digest: str | None) -> str:
    """Say which release it is, what made it, and which schema it was made with: what a ledger's entry says of it."""
    id_, version = ("unknown: an older version made it",) * 2 if origin is None else (origin.id, origin.version)
    return f"id         {id_}\nversion    {version}" + ("" if digest is None else f"\nschema     {digest}")


def _certificate(release: Any, *, quick: bool, shown: bool) -> Any:
    """Return the certificate, or None for a release that does not hold what it needs.

    Many columns share the chance beta, and each needs a thousandth of it: beyond 49 columns it grows with them.
    """
    measured = sum(1 for column in getattr(release.plan, "columns", ()) if column.levels)
    beta = 0.05 if measured < 50 else (measured // 10 + 1) / 100
    with terminal.progress("certifying", shown=shown):
        try:
            return release.certificate(beta, quick=quick)
        except ArgumentError:
            return None
