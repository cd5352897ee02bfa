"""The laws that a domain must pass, for those who write one of their own.

A mechanism trusts its domain: with a wrong diameter the accuracy that it promises is wrong, and where `locate` raises
or warns for some values it tells something about private data. `check_domain` tries every law of
`privmeasure.domains.Domain` and raises an AssertionError that says which one is broken and what was seen. In a test:

    from privmeasure.testing import check_domain

    def test_my_domain():
        check_domain(MyDomain(), points=some_points_of_it)

It is a search for counterexamples with a fixed seed, not a proof: give points that are special in your domain (corners,
poles, ends of intervals), and try several instances of it.
"""

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from privmeasure import domains
from privmeasure.domains import Cells, Domain, Floats, Points
from privmeasure.rounding import LAST_DIGITS

ENUMERATED = 8
"""Up to this level all codes are tried; below it, those of drawn points."""
MOST_TRIED = 256
DRAWS = 6
SLACK = 1e-6
"""Relative room for rounding in comparisons of distances."""


def check_domain(
    domain: Domain, *, points: Points | None = None, levels: Iterable[int] | None = None, seed: int = 0
) -> None:
    """Check every law of a Domain, or raise an AssertionError that names the broken one.

    Laws (x a point, c a cell that exists, j a level up to `deepest`):
        values     locate takes every float (NaN, infinities, huge ones), and no rows at all, without exception or
                   warning, and leaves its input alone
        cells      locate gives uint64 codes below 2^j of cells that exist; the first cell, 0, always exists
        prefixes   locate(x, k) == locate(x, j) >> (j - k)
        zeros      the parent of an existing cell exists, an existing cell has a child that exists; size(j) counts them
        diameters  are plain floats, finite, never grow, and bound the distances inside each cell; total_diameter bounds
                   their sum, and is at most size times diameter
        points     draw(c) and centre(c) lie in c, and in its extent; radius bounds the distance between them
        distance   is symmetric, 0 from a point to itself, and obeys the triangle inequality
        JSON       to_json gives plain JSON with a "kind", the same each time, which `load(path, domain=...)` compares;
                   `domains.from_json` reads the built-in kinds back

    `points` are tried beside drawn ones; `levels` are those at which points are located and cells tried (by default 0
    to 8 and a few down to the deepest); `seed` seeds the draws.

    Examples:
        >>> check_domain(domains.Integers(0, 120))
    """
    rng = np.random.default_rng(seed)
    tried = sorted({j for j in _default_levels(domain) if j <= domain.deepest} if levels is None else set(levels))
    _law(0 <= domain.deepest <= 62, "deepest must be between 0 and 62", domain.deepest)
    _law(domain.width >= 1, "width must be at least 1", domain.width)
    _check_zeros(domain, [j for j in range(ENUMERATED + 1) if j <= domain.deepest])
    _check_diameters(domain)
    sample = _sample(domain, rng)
    odd = _odd_points(domain.width, sample)
    given = np.empty((0, domain.width)) if points is None else np.asarray(points, np.float64)
    _check_values(domain, np.concatenate([odd, given]), tried)
    _check_prefixes(domain, np.concatenate([sample, odd, given]), tried)
    for level in tried:
        _check_cells(domain, _cells(domain, np.concatenate([sample, given]), level), level, rng)
    _check_distance(domain, np.concatenate([sample, given]), rng)
    _check_json(domain, np.concatenate([sample, odd, given]), tried)


def _law(holds: bool | np.bool_, law: str, seen: object) -> None:
    if not holds:
        raise AssertionError(f"{law}; seen: {seen}.")


@contextmanager
def _quiet(law: str) -> Iterator[None]:
    """Turn any exception or warning into a broken law."""
    try:
        with warnings.catch_warnings(), np.errstate(divide="warn", over="warn", invalid="warn"):
            warnings.simplefilter("error")
            yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{law}; seen: {type(error).__name__}: {error}.") from error


def _default_levels(domain: Domain) -> Iterable[int]:
    deep = domain.deepest
    return {*range(ENUMERATED + 1), 11, 12, 23, 33, deep // 2, deep - 1, deep} - {-1}


def _sample(domain: Domain, rng: np.random.Generator) -> Points:
    """Return points from all over the domain."""
    level = min(ENUMERATED, domain.deepest)
    codes = np.arange(1 << level, dtype=np.uint64)
    codes = codes[domain.exists(codes, level)]
    drawn = domain.draw(np.repeat(codes, max(2, 64 // len(codes))), level, rng)
    shape = (len(codes) * max(2, 64 // len(codes)), domain.width)
    _law(drawn.shape == shape, f"draw must return a row of {domain.width} columns per cell", drawn.shape)
    return np.asarray(drawn, np.float64)


def _odd_points(width: int, sample: Points) -> Points:
    tiny, huge = 5e-324, float(np.finfo(np.float64).max)
    signalling = np.array([0x7FF0000000000001], np.uint64).view(np.float64)  # a NaN on which arithmetic raises a flag
    signed = np.array([np.inf, huge, 1e300, 1e18, 2.0**63, 1e9, 0.5, tiny, 0.0])
    values = np.concatenate([[np.nan], signalling, signed, -signed])
    uniform = np.repeat(values[:, None], width, axis=1)
    mixed = np.repeat(sample[:1], len(values) * width, axis=0)
    for column in range(width):
        mixed[column * len(values) : (column + 1) * len(values), column] = values
    with np.errstate(all="ignore"):
        return np.concatenate([uniform, mixed[:2048], np.roll(sample, 1, axis=1), sample * 3, -sample])


def _cells(domain: Domain, points: Points, level: int) -> Cells:
    cells = np.unique(domain.locate(points, level))
    return cells[:: len(cells) // MOST_TRIED + 1].copy()


def _check_values(domain: Domain, points: Points, levels: Sequence[int]) -> None:
    for level in levels:
        before = points.copy()
        with _quiet("locate must take every value without exception or warning, which would reveal it"):
            cells = domain.locate(points, level)
            none = domain.locate(points[:0], level)
        _law(np.array_equal(points, before, equal_nan=True), "locate must not change its input", "changed points")
        _law(len(none) == 0, "locate of no points must be no cells", none)
        _law(
            cells.dtype == np.uint64 and cells.shape == (len(points),),
            "locate must return one uint64 per point",
            (cells.dtype, cells.shape),
        )


def _check_prefixes(domain: Domain, points: Points, levels: Sequence[int]) -> None:
    last = levels[-1]
    deepest = domain.locate(points, last)
    for level in levels:
        cells = domain.locate(points, level)
        worst = int(cells.max())
        _law(worst < 1 << level, f"locate must give codes below 2^level at level {level}", worst)
        astray = cells[~domain.exists(cells, level)]
        _law(len(astray) == 0, f"locate must only give cells that exist at level {level}", astray[:3].tolist())
        differ = np.flatnonzero(cells != deepest >> np.uint64(last - level))
        seen = "" if not len(differ) else f"cells {cells[differ[0]]} and {deepest[differ[0]]} for {points[differ[0]]}"
        _law(not len(differ), f"prefix law: locate(x, {level}) must be locate(x, {last}) >> {last - level}", seen)


def _check_zeros(domain: Domain, levels: Sequence[int]) -> None:
    above = np.ones(1, bool)
    for level in levels:
        exist = domain.exists(np.arange(1 << level, dtype=np.uint64), level)
        _law(exist[0], f"the first cell, 0, must exist at level {level}", exist[:4].tolist())
        if level:
            orphans = np.flatnonzero(exist & ~np.repeat(above, 2))
            _law(not len(orphans), f"the parent of an existing cell must exist (level {level})", orphans[:3].tolist())
            barren = np.flatnonzero(above & ~exist.reshape(-1, 2).any(axis=1))
            _law(
                not len(barren),
                f"a cell that exists must have a child that exists (level {level - 1})",
                barren[:3].tolist(),
            )
        size, count = domain.size(level), int(exist.sum())
        _law(size == count, f"size({level}) must be the number of cells that exist, {count}", size)
        above = exist


def _check_diameters(domain: Domain) -> None:
    above = np.inf
    for level in range(domain.deepest + 1):
        diameter, total, radius = domain.diameter(level), domain.total_diameter(level), domain.radius(level)
        plain = all(isinstance(number, int | float) for number in (diameter, total, radius))
        _law(
            plain and isinstance(domain.size(level), int),
            f"size({level}) must be an int of Python, diameters and radius floats: a file takes no others",
            [type(number).__name__ for number in (domain.size(level), diameter, total, radius)],
        )
        _law(0 <= diameter < np.inf, f"diameter({level}) must be finite and at least 0", diameter)
        _law(diameter <= above, f"diameter must never grow, but does at level {level}", (above, diameter))
        most = domain.size(level) * diameter
        _law(
            0 <= total <= most * (1 + SLACK),
            f"total_diameter({level}) must be at most size times diameter, {most}",
            total,
        )
        _law(radius >= 0, f"radius({level}) must be at least 0", radius)
        above = diameter


def _check_cells(domain: Domain, cells: Cells, level: int, rng: np.random.Generator) -> None:
    rounding = LAST_DIGITS * domain.diameter(0)
    draws = [np.asarray(domain.draw(cells, level, rng), np.float64) for _ in range(DRAWS)]
    centre = np.asarray(domain.centre(cells, level), np.float64)
    low, high = domain.extent(cells, level)
    observed = np.zeros(len(cells))
    for i, drawn in enumerate(draws):
        _in_cell(domain, drawn, cells, level, "draw")
        between = ((low <= drawn) & (drawn <= high)) | (np.isnan(low) & np.isnan(high) & np.isnan(drawn))
        outside = np.asarray(~between.all(axis=1))
        _law(not outside.any(), f"extent must contain the draws of a cell (level {level})", _first(cells, outside))
        to_centre = domain.distance(centre, drawn)
        radius = domain.radius(level) * (1 + SLACK) + rounding
        _law(to_centre.max() <= radius, f"radius({level}) must bound distances from the centre", to_centre.max())
        for other in [*draws[:i], centre]:
            np.maximum(observed, domain.distance(drawn, other), out=observed)
    _in_cell(domain, centre, cells, level, "centre")
    diameter, total = domain.diameter(level), domain.total_diameter(level)
    _law(
        observed.max() <= diameter * (1 + SLACK) + rounding,
        f"diameter({level}), {diameter}, must bound the distance of two points of a cell",
        observed.max(),
    )
    _law(
        observed.sum() <= total * (1 + SLACK) + rounding * len(cells),
        f"total_diameter({level}), {total}, must bound the sum of the diameters of the cells",
        observed.sum(),
    )
    if level:
        orphans = ~domain.exists(cells >> np.uint64(1), level - 1)
        _law(not orphans.any(), f"the parent of an existing cell must exist (level {level})", _first(cells, orphans))
    if level < domain.deepest:
        first = cells << np.uint64(1)
        barren = ~domain.exists(first, level + 1) & ~domain.exists(first | np.uint64(1), level + 1)
        _law(
            not barren.any(), f"a cell that exists must have a child that exists (level {level})", _first(cells, barren)
        )


def _in_cell(domain: Domain, points: Points, cells: Cells, level: int, name: str) -> None:
    found = domain.locate(points, level)
    astray = found != cells
    pair = (_first(cells, astray), _first(found, astray))
    _law(not astray.any(), f"{name} of a cell must be located in it (level {level})", "cells {} and {}".format(*pair))


def _first(values: Cells, where: domains.Bools) -> int | None:
    return int(values[where][0]) if where.any() else None


def _check_distance(domain: Domain, points: Points, rng: np.random.Generator) -> None:
    x, y, z = (points[rng.integers(0, len(points), 1000)] for _ in range(3))
    with _quiet("distance must not raise or warn between points of the domain"):
        itself, there, back, via = (domain.distance(*pair) for pair in ((x, x), (x, y), (y, x), (y, z)))
        direct: Floats = domain.distance(x, z)
    _law(there.shape == (len(x),), "distance must return one number per pair of rows", there.shape)
    _law(bool(np.isfinite(there).all() and (there >= 0).all()), "distance must be finite and at least 0", there.min())
    rounding = SLACK * domain.diameter(0)
    _law(itself.max() <= rounding, "distance from a point to itself must be 0", itself.max())
    _law(np.allclose(there, back, atol=rounding), "distance must be symmetric", np.abs(there - back).max())
    excess = (direct - there - via).max()
    _law(excess <= rounding, "distance must obey the triangle inequality", f"a way round shorter by {excess}")


def _check_json(domain: Domain, points: Points, levels: Sequence[int]) -> None:
    with _quiet("to_json must return plain JSON"):
        value = json.loads(json.dumps(domain.to_json(), allow_nan=False))
    kind = value.get("kind") if isinstance(value, dict) else None
    _law(isinstance(kind, str), 'to_json must return an object with a "kind"', value)
    if kind in domains.DOMAIN_KINDS and not domains.own_kinds(value):  # nothing of one's own inside
        with _quiet("from_json must read what to_json wrote"):
            read = domains.from_json(value)
        _law(read.to_json() == domain.to_json(), "from_json must read back the same domain", read)
        for level in levels:
            same = np.array_equal(read.locate(points, level), domain.locate(points, level))
            _law(
                same, "the domain that from_json reads must locate points in the same cells", f"a difference at {level}"
            )
    _law(domains.write_domain(domain) == value, "to_json must say the same each time", domain.to_json())
