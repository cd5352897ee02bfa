"""Which rows are kept: those that break no fact and satisfy what is asked for. Public values only."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from privmeasure.conditions.orders import AnyFact, broken
from privmeasure.conditions.sets import Condition
from privmeasure.domains import Bools, Points, Product
from privmeasure.errors import ArgumentError, NoRowsError
from privmeasure.releases.base import Measure, Order

MOST_TRIES = 100
"""Rows that are tried for each row that is asked for."""
FEWEST_TRIED = 1024
"""Rows that are tried at least."""
MOST_TRIED_TOGETHER = 1 << 22
"""Rows that are tried at most before those that were found are counted."""
NEXT_TIME = "For the next release, correct the facts or declare fewer facts, or take more rows or a larger epsilon."
NO_ROWS = (
    f"The release leaves almost no row that keeps the facts of its schema (never): fewer than one in {MOST_TRIES}. "
    "There are so few rows that noise decides which values are left, or the data contradict the facts. "
    f"{NEXT_TIME}"
)
Redraw = Callable[[Points, np.random.Generator], Points]
"""Draws points again that break an order between columns, in their cells or near them."""


def hopeless(tried: int, found: int, wanted: int) -> bool:
    """Say whether so few of the rows that were tried are fine that no more should be tried.

    After `MOST_TRIES` for each wanted row, or as soon as the share is clearly below one in `MOST_TRIES`.

    Examples:
        >>> hopeless(5000, 0, 100_000), hopeless(200_000, 0, 100_000), hopeless(200_000, 1900, 100_000)
        (False, True, False)
    """
    if tried > MOST_TRIES * max(wanted, FEWEST_TRIED):
        return True
    return tried >= MOST_TRIES * FEWEST_TRIED and 2 * MOST_TRIES * found < tried


def satisfy(points: Points, where: Sequence[Condition], factors: Product) -> Bools:
    """Say which rows satisfy all conditions, each on a factor of a product."""
    fine = np.ones(len(points), bool)
    for condition in where:
        fine &= condition.holds(points[:, factors.columns[condition.column]])
    return fine


def keep_rows(points: Points, facts: Sequence[AnyFact], where: Sequence[Condition], factors: Product) -> Bools:
    """Say which rows break no fact and satisfy all conditions."""
    return ~broken(facts, points, factors) & satisfy(points, where, factors)


def enough(
    rows: Callable[[int, int, Callable[[Points], Any]], Iterator[Any]],
    met: Callable[[Points], Any],
    n: int,
    seed: int | None,
) -> Iterator[Any]:
    """Yield n rows of those that `met` leaves of tables that `rows` draws, as often as it takes.

    What is asked of derived columns is told by rows alone: the law is that of all rows given the condition.
    """
    streams, left, tried, found = np.random.SeedSequence(seed), n, 0, 0
    while left > 0:
        if tried > MOST_TRIES * max(n, FEWEST_TRIED):
            raise ArgumentError(
                f"Fewer than one in {MOST_TRIES} rows satisfy where. Ask for something more likely, or sample without "
                "it and choose."
            )
        share = max(1 / MOST_TRIES, found / tried if tried else 1.0)
        count = min(max(FEWEST_TRIED, int(1.1 * left / share)), MOST_TRIED_TOGETHER)
        for table in rows(count, int(streams.spawn(1)[0].generate_state(1)[0]), met):
            found += table.num_rows
            if left > 0:
                yield table.slice(0, left)
            left = max(0, left - table.num_rows)
        tried += count


def choose_rows(
    measure: Measure,
    n: int | None,
    *,
    seed: int | None,
    order: Order,
    threads: int | None,
    where: Sequence[Condition],
    facts: Sequence[AnyFact],
    factors: Product,
    redraw: Redraw | None = None,
) -> Iterator[Points]:
    """Yield rows of a measure that satisfy the conditions and break no fact; others are left out.

    Points that break an order are drawn again first, by `redraw`, so that few rows are left out. Without `n` and
    conditions, as many rows as were released; without `n`, those of one sample.
    """
    streams, rng = np.random.SeedSequence(seed), np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    left = measure.total if n is None and not where else n
    if left is not None:
        order = "random"  # the first rows that are fine must not all come from the first cells
    tried = 0
    while left is None or left > 0:
        if left is not None and hopeless(tried, (n or measure.total) - left, n or measure.total):
            if not where:
                raise NoRowsError(NO_ROWS)
            raise ArgumentError(
                f"Fewer than one in {MOST_TRIES} rows satisfy where together with what can never occur. Ask for "
                "something more likely, or sample without it and choose."
            )
        again = int(streams.spawn(1)[0].generate_state(1)[0]) if tried or seed is None else seed
        wanted = None if left is None else max(left, FEWEST_TRIED)
        for points in measure.blocks(wanted, seed=again, order=order, threads=threads):
            points = points if redraw is None else redraw(points, rng)
            fine = points[keep_rows(points, facts, where, factors)][:left]
            tried += len(points)
            yield fine
            left = None if left is None else left - len(fine)
        if left is None:
            return


def replace_rows(
    own: Measure,
    whole: Callable[[int, np.random.Generator], Points],
    *,
    seed: int,
    facts: Sequence[AnyFact],
    factors: Product,
    redraw: Redraw | None = None,
) -> Iterator[Points]:
    """Yield as many rows as one measure has, those of its own that break no fact, and for the others rows of the whole.

    Points that break an order are drawn again first, by `redraw`. So all parts of a whole together have the law of its
    rows given the facts, as one sample has. Rows of the whole are drawn by a random choice of cells: parts that lack as
    many rows do not all get the same ones.
    """
    left, once_more = own.total, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    for points in own.blocks(seed=seed, order="random", threads=1):
        points = points if redraw is None else redraw(points, once_more)
        fine = points[keep_rows(points, facts, (), factors)]
        left -= len(fine)
        yield fine
    rng, tried = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,))), own.total
    while left > 0:
        if hopeless(tried, own.total - left, own.total):
            raise NoRowsError(NO_ROWS)
        more = whole(min(max(2 * left, FEWEST_TRIED), MOST_TRIED_TOGETHER), rng)
        more = more if redraw is None else redraw(more, rng)
        fine = more[keep_rows(more, facts, (), factors)][:left]
        tried, left = tried + len(more), left - len(fine)
        yield fine
