"""The laws of columns, for those who write a kind of their own.

Every proof of privacy begins with rows: two tables that differ in one of them. It holds for the tables that people have
only if *what a row becomes depends on that row alone*, and if nothing that can be seen (an error, a warning) tells of a
cell. `check_column` tries a column with hostile cells of every type, in all kinds of company, and raises an
AssertionError that says which law is broken and what was seen. In a test:

    from privmeasure.testing import check_column

    def test_my_column():
        check_column(MyColumn(...), cells=["texts that are special", "for this column"])

It is a search for counterexamples with a fixed seed, not a proof.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privmeasure.domains import Points
from privmeasure.testing.hostile import TEXTS, hostile_arrays

if TYPE_CHECKING:
    import pyarrow as pa

COMPANIES = 60
"""Random sets of rows that the texts are tried in."""
MOST_BESIDE = 12
"""Of such a set; the rest of the time a text stands beside one other."""


def check_column(column: Any, *, cells: Iterable[str | None] = (), seed: int = 0) -> None:
    """Check the laws of a column, or raise an AssertionError that names the broken one.

    Laws (for cells of every Arrow type, texts above all):
        quiet    encode and tally take every cell, and no rows at all, without exception or warning
        points   encode gives a point of the domain a row; it is not infinite, and NaN only where the column is nullable
        alone    encode gives a row the same point alone, in any company, in any order, in slices and dictionaries
        types    refuses looks at a type alone; what it accepts is decoded back in that type

    `cells` are texts that are tried beside the hostile ones; `seed` seeds the companies.

    Examples:
        >>> from privmeasure.tables import Time
        >>> check_column(Time(resolution="1h", nullable=True), cells=["07", "7:30"])
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    texts = pa.array([None, *TEXTS, *cells], pa.string())
    alone = np.concatenate([_points(column, texts[i : i + 1]) for i in range(len(texts))])
    for rows in _companies(len(texts), rng):
        company = texts.take(pa.array(rows))
        for form in (company, company.cast(pa.large_string()), company.dictionary_encode()):
            _same(alone[rows], _points(column, form), company)
    for array in hostile_arrays():
        points = _points(column, array)
        single = [_points(column, array[i : i + 1]) for i in range(min(len(array), 64))]
        _same(np.concatenate([points[:0], *single]), points[:64], array[:64])
        middle = len(array) // 2
        halves = [_points(column, part) for part in (array[:middle], array[middle:])]
        _same(points, np.concatenate(halves), array)
        _check_types(column, array, points)


def _companies(count: int, rng: np.random.Generator) -> Iterable[np.ndarray[Any, np.dtype[np.int64]]]:
    """Yield sets of rows: all of them, each beside its neighbour in a random order, and random ones of a few."""
    yield np.arange(count)
    yield rng.permutation(count)
    order = rng.permutation(count)
    yield from (order[i : i + 2] for i in range(count - 1))
    yield from (rng.integers(0, count, int(rng.integers(2, MOST_BESIDE + 1))) for _ in range(COMPANIES))


def _points(column: Any, array: "pa.Array") -> Points:
    """Return the points of an array as every source of a column, or say which law is broken."""
    arrays = [array] * len(column.sources("x"))
    try:
        with warnings.catch_warnings(), np.errstate(divide="warn", over="warn", invalid="warn"):
            warnings.simplefilter("error")
            points: Points = column.encode(arrays)
            tally = column.count_changes(arrays)
    except Exception as error:
        raise AssertionError(
            f"encode and tally must take every cell without exception or warning, which would reveal it; seen: "
            f"{type(error).__name__}: {error} for {array.type} {_shown(array)}."
        ) from error
    shape = (len(array), column.domain.width)
    _law(
        points.shape == shape and points.dtype == np.float64,
        f"encode must give one point per row, {shape}",
        points.shape,
    )
    _law(not np.isinf(points).any(), "encode must not give infinities", _shown(array))
    _law(column.nullable or not np.isnan(points).any(), "only a nullable column has missing points", _shown(array))
    counts = (tally.missing, tally.unparsed, tally.clamped, tally.unknown)
    _law(all(0 <= count <= len(array) for count in counts), "tally must count cells", counts)
    for level in (0, 1, min(6, column.domain.deepest)):
        located = column.domain.locate(points, level)
        _law(column.domain.exists(located, level).all(), "points must lie in cells that exist", _shown(array))
    return points


def _same(expected: Points, found: Points, array: "pa.Array") -> None:
    differ = np.flatnonzero(~((expected == found) | (np.isnan(expected) & np.isnan(found))).all(axis=1))
    if len(differ):
        row = int(differ[0])
        seen = f"{_shown(array[row : row + 1])} is {expected[row]} alone and {found[row]} beside {_shown(array)}"
        raise AssertionError(f"what a row becomes must depend on that row alone; seen: {seen}.")


def _check_types(column: Any, array: "pa.Array", points: Points) -> None:
    import pyarrow as pa

    refused = column.refuses(array.type)
    _law(refused is None or isinstance(refused, str), "refuses must return None or words", refused)
    if refused is not None or pa.types.is_null(array.type):
        return
    kinds = [array.type] * len(column.sources("x"))
    for cells in column.decode(points, kinds):
        wider = pa.types.is_dictionary(array.type) and pa.types.is_dictionary(cells.type)  # an index may be widened
        _law(wider or cells.type == array.type, f"decode must give the type that came in, {array.type}", cells.type)
        _law(column.nullable or cells.null_count == 0, "only a nullable column writes missing cells", cells.null_count)


def _law(holds: bool | np.bool_, law: str, seen: object) -> None:
    if not holds:
        raise AssertionError(f"{law}; seen: {seen}.")


def _shown(array: "pa.Array | Sequence[Any]") -> str:
    try:
        return repr(array.to_pylist()[:12])[:300]  # type: ignore[union-attr]
    except Exception:  # not UTF-8, or beyond the calendar
        return f"an array of {len(array)}"
