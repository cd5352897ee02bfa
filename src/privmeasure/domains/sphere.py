"""The sphere: longitude and latitude in degrees, great-circle distance, cells of equal area.

Area is uniform in longitude and in the sine of latitude, so halving either halves the area. If every cell of a level
were cut the same way, the cells at the poles would become needles: there the sine hardly changes with the latitude. So
each cell is cut along its own longer side, which comes out as a simple rule. Three cuts (longitude, equator, longitude)
give the 8 octants. In an octant let s = 1 - |sin latitude|, which is 0 at the pole and 1 at the equator. The cell at
the pole is always cut in s; the ring 2^-(m+1) <= s < 2^-m, which leaves it after m + 1 such cuts, is three to five
times as long as it is high, and is cut twice in longitude and then in s and longitude by turns. In binary digits: a
code is the octant, then the digits of s up to its first 1, then its further digits dealt among those of the longitude.

**The same on every machine.** A sine is rounded differently by different processors, and must not decide a cell. So s
is *defined* by knots (see knots.py): the colatitudes at which s = 2^-(m+1) (1 + j/256), in degrees, computed once from
IEEE sums, products and square roots; between two of them s grows evenly with the colatitude, 90 - |latitude|. A cell
that is a 256th of its ring or more is bounded by knots, and has exactly its share of the area. Smaller ones have it to
within 2^-9 of itself: their areas are as the sines of their colatitudes, sin^2 = s (2 - s), which between two knots
differ by a factor of at most sqrt(1 + 2^-8).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from privmeasure.domains.base import DEEPEST_LEVEL, Bools, Cells, Floats, Points
from privmeasure.domains.bits import Interleaving, Words
from privmeasure.domains.knots import NEAR_ONE, Knots
from privmeasure.domains.line import describe_wrap, wrap
from privmeasure.domains.scales import (
    MOST_EDGES,
    Clamped,
    Dealt,
    Edges,
    Even,
    Missing,
    Reading,
    Rings,
    Scale,
    deal,
    find_edges,
)

OCTANTS = 3
"""The level of the 8 octants."""
RINGS = DEEPEST_LEVEL - OCTANTS
"""Rings of an octant at the deepest level; inside them lies the cell at the pole."""
STEPS = 256
"""Knots of a ring."""


class Sphere:
    """The sphere, with great-circle distance divided by pi: antipodes are at distance 1.

    Points are (longitude, latitude) in degrees. Longitudes are taken modulo 360 into [-180, 180), latitudes are clamped
    to [-90, 90]; NaN, and a longitude that is infinite, go to the first cell.

    Notation:   theta colatitude from the nearer pole    s = 1 - cos theta    w width of a cell in longitude
    Guarantee:  cells of a level have equal area, to within 2^-9 of it; diameter(j) <= 2.61 * 2^(-j/2), a proved upper
                bound (the area allows no less than 1.27)

    Examples:
        >>> sphere = Sphere()
        >>> london, wellington = np.array([[-0.13, 51.5]]), np.array([[174.8, -41.3]])
        >>> (sphere.distance(london, wellington) * 20015).round(-2)      # half of the Earth's circumference, in km
        array([18800.])
        >>> sphere.diameter(0), round(sphere.diameter(3), 12)
        (1.0, 0.5)
    """

    @property
    def width(self) -> int:
        """Two columns, longitude and latitude."""
        return 2

    @property
    def deepest(self) -> int:
        """The limit of the codes: cells of level 62 are about a centimetre wide on the Earth, far above rounding."""
        return DEEPEST_LEVEL

    def diameter(self, level: int) -> float:
        """Return an upper bound of the diameter of every cell."""
        return _bounds(level)[0]

    def radius(self, level: int) -> float:
        """Return an upper bound of the distance of any point from the centre of its cell."""
        return _bounds(level)[1]

    def total_diameter(self, level: int) -> float:
        """Return the sum of the upper bounds, ring by ring."""
        return _bounds(level)[2]

    def size(self, level: int) -> int:
        """Return 2^level: every cell exists."""
        return 1 << level

    def exists(self, cells: Cells, level: int) -> Bools:
        """Return all True."""
        return np.ones(len(cells), bool)

    def locate(self, points: Points, level: int) -> Cells:
        """Return the cell of every point."""
        if level < OCTANTS:
            return self.locate(points, OCTANTS) >> np.uint64(OCTANTS - level)
        longitude, latitude = _standard(points)
        turn = (longitude + 180) / 90
        quadrant = np.minimum(turn.astype(np.int64), 3)
        octant = (quadrant >> 1) << 2 | (latitude >= 0).astype(np.int64) << 1 | quadrant & 1
        if level == OCTANTS:
            return octant.view(np.uint64)
        ring, height = _ring(90 - np.abs(latitude))
        np.minimum(ring, level - OCTANTS, out=ring)
        deal = _order(level)
        across, along = deal.cuts
        inner = deal.join(
            [
                (np.minimum(turn - quadrant, np.nextafter(1, 0)) * 2.0**across).astype(np.int64),
                (height * 2.0**along).astype(np.int64),
            ]
        )
        # The digits of ring 0; another ring starts that many digits later. At the pole nothing but zeros remains.
        rest = (1 << deal.level | inner) >> ring
        return (octant << (level - OCTANTS) | rest).view(np.uint64)

    def scale(self, level: int, readings: Sequence[Reading]) -> Scale | None:
        """Return equal parts of the longitude, and breakpoints of the latitude: what `locate` does, ring by ring."""
        longitude = readings[0].then(describe_wrap(-180.0, 360.0))
        latitude = readings[1].then(Clamped(-90.0, 90.0))

        def turn(bits: int) -> Scale:
            return Even(longitude, -180.0, 1.0, 360 * 2.0**-bits, bits)

        if level <= OCTANTS:
            hemisphere = Edges(latitude, np.zeros(1))
            places = (
                tuple(level - 1 - i for i in (0, 2)[: (level + 1) // 2]),
                tuple(range(level - 2, level - 1))[: level - 1],
            )
            octants = deal([turn(len(places[0])), hemisphere], places)
            return None if octants is None else Missing((longitude, latitude), 0, octants)
        count = 2 * _classes(level)[1][-1]
        if count > MOST_EDGES:
            return None
        edges = find_edges(lambda latitudes: _class(latitudes, level), count, -90.0, 90.0)
        starts = np.append(-90.0, edges)
        codes = self.locate(np.column_stack([np.full(count, -180.0), starts]), level)
        order = _order(level)
        return Missing(
            (longitude, latitude),
            0,
            Rings(
                ring=Edges(latitude, edges),
                codes=codes.view(np.int64),
                shares=2.0 ** -np.minimum(_ring(90 - np.abs(starts))[0], level - OCTANTS),
                outer=Dealt((turn(2),), ((level - 1, level - 3),)),
                turn=Dealt((turn(2 + order.cuts[0]),), ((-1, -1, *order.positions[0]),)),
            ),
        )

    def extent(self, cells: Cells, level: int) -> tuple[Points, Points]:
        """Return the south-western and the north-eastern corners."""
        if level < OCTANTS:
            first = cells << np.uint64(OCTANTS - level)
            last = first | np.uint64((1 << (OCTANTS - level)) - 1)
            return self.extent(first, OCTANTS)[0], self.extent(last, OCTANTS)[1]
        one, other = self._place(cells, level, 0.0, 0.0), self._place(cells, level, 1.0, 1.0)
        return np.minimum(one, other), np.maximum(one, other)

    def centre(self, cells: Cells, level: int) -> Points:
        """Return the points that halve the cells in longitude and in s."""
        if level >= OCTANTS:
            return self._place(cells, level, 0.5, 0.5)
        low, high = self.extent(cells, level)
        points = (low + high) / 2
        points[:, 1] = np.degrees(np.arcsin((np.sin(np.radians(low[:, 1])) + np.sin(np.radians(high[:, 1]))) / 2))
        return points

    def draw(self, cells: Cells, level: int, rng: np.random.Generator) -> Points:
        """Draw uniformly by area from each cell, on a fine lattice that keeps clear of the cell's sides.

        Rounding moves a point by less than 2^-49 in longitude (in quadrants) and in s (relative to its root), and the
        sides of a cell are at least 2^-(level/2 + 1): a lattice of 2^b points per side with b = 46 - level/2 is safe.
        """
        if level < OCTANTS:
            missing = OCTANTS - level
            octants = cells << np.uint64(missing) | rng.integers(0, 1 << missing, len(cells), np.uint64)
            return self.draw(octants, OCTANTS, rng)
        steps = 2.0 ** min(32, 46 - (level + 1) // 2)
        u, v = (np.floor(rng.random((2, len(cells))) * steps) + 0.5) / steps
        return self._place(cells, level, u, v)

    def distance(self, x: Points, y: Points) -> Floats:
        """Return the great-circle distance over pi."""
        (a, b), (c, d) = (np.radians(_standard(points)) for points in (x, y))
        # Half-angle formulas for the distance to y and to its antipode: accurate at both ends.
        breadth = np.cos(b) * np.cos(d)
        near = np.sin((b - d) / 2) ** 2 + breadth * np.sin((a - c) / 2) ** 2
        far = np.sin((b + d) / 2) ** 2 + breadth * np.cos((a - c) / 2) ** 2
        return np.asarray(2 / np.pi * np.arctan2(np.sqrt(near), np.sqrt(far)), np.float64)

    def to_json(self) -> dict[str, Any]:
        """Return the kind: nothing else is to be known."""
        return {"kind": "sphere"}

    def _place(self, cells: Cells, level: int, u: float | Floats, v: float | Floats) -> Points:
        """Return the points at the fractions u of the longitudes and v of the s of each cell."""
        codes, below, deal = cells.view(np.int64), level - OCTANTS, _order(level)
        octant, rest = codes >> below, codes & ((1 << below) - 1)
        length = _bit_length(rest)  # 0 at the pole
        ring = below - length
        inner = (rest << ring) & ((1 << deal.level) - 1)
        across, along = deal.cuts
        own_across, own_along = (table[np.maximum(length - 1, 0)] for table in _CUTS)
        turns, heights = deal.split(inner)
        fraction = turns * 2.0**-across + u * 2.0**-own_across
        digits = heights * 2.0**-along + v * 2.0**-own_along
        s = np.where(length > 0, (1 + digits) / 2, v) * 2.0**-ring
        latitude = 90 - _colatitude_at(s)
        points = np.empty((len(cells), 2))
        points[:, 0] = ((octant >> 2 << 1 | octant & 1) + fraction) * 90 - 180
        points[:, 1] = np.where(octant & 2, latitude, -latitude)
        return points

    def __repr__(self) -> str:
        """Show the constructor."""
        return "Sphere()"


_ORDER = (0, 0) + (1, 0) * (DEEPEST_LEVEL // 2)
"""The cuts of a ring: 0 in longitude, 1 in s."""
_CUTS = tuple(np.array([_ORDER[:length].count(axis) for length in range(DEEPEST_LEVEL)], np.float64) for axis in (0, 1))


@lru_cache(maxsize=128)
def _order(level: int) -> Interleaving:
    return Interleaving(_ORDER[: max(level - OCTANTS - 1, 0)], 2)


def _standard(points: Points) -> tuple[Floats, Floats]:
    """Return longitudes in [-180, 180) and latitudes in [-90, 90]; what is no point becomes the first corner."""
    with np.errstate(all="ignore"):  # a warning would tell that an odd value is there
        longitude = wrap(points[..., 0], -180.0, 360.0)
        latitude = np.minimum(np.maximum(points[..., 1], -90.0), 90.0)
        nowhere = np.isnan(longitude) | np.isnan(latitude)
        return np.where(nowhere, -180.0, longitude), np.where(nowhere, -90.0, latitude)


def _bit_length(words: Words) -> Words:
    length = np.frexp(words.astype(np.float64))[1].astype(np.int64)
    rounded_up = (length > 0) & (words >> np.maximum(length - 1, 0) == 0)  # 2^60 - 1 is 2^60 in floating point
    return np.asarray(length - rounded_up)


@lru_cache(maxsize=1)
def _knots() -> Knots:
    """Return the colatitudes of the pole, of the knots of all rings from the innermost outwards, and of the equator.

    theta = 2 arcsin(sqrt(s / 2)), and arcsin(t) = t (1 + t^2/6 + 3 t^4/40 + ...) with t^2 = s/2 <= 1/2: after 56 terms
    the rest is below 2^-60. Sums, products and roots of doubles are the same on every machine.
    """
    step = np.arange(RINGS * STEPS)
    s = np.ldexp(1 + step % STEPS / STEPS, step // STEPS - RINGS)
    series = np.zeros(len(s))
    for n in range(56, -1, -1):
        series = series * (s / 2) + math.comb(2 * n, n) / (4**n * (2 * n + 1))
    degrees = np.sqrt(s / 2) * series * (360 / math.pi)
    return Knots(np.concatenate([[0.0], degrees, [90.0]]))


def _ring(colatitude: Floats) -> tuple[Words, Floats]:
    """Return the ring m of each colatitude (RINGS inside all of them), and how far it is from the ring's inner edge."""
    knots = _knots()
    place = np.minimum(knots.place(colatitude), knots.count - 1 + NEAR_ONE)  # the equator lies in the last cell
    np.subtract(place, 1, out=place)
    np.multiply(place, 1 / STEPS, out=place)
    ring = np.floor(place)
    np.subtract(place, ring, out=place)
    return (RINGS - 1 - ring).astype(np.int64), place


def _classes(level: int) -> tuple[Words, Words]:
    """Return for the rings of a level, from the pole outwards, how many digits of s they keep, and where they begin.

    A ring begins at the number of classes of s inside it; the last number is that of all classes of an octant.
    """
    kept = np.append(0, _CUTS[1][: level - OCTANTS].astype(np.int64))  # the pole, then rings of 0, 1, ... further cuts
    return kept, np.append(0, np.cumsum(1 << kept))


def _class(latitudes: Floats, level: int) -> Words:
    """Return the rank from south to north of each latitude among those that the cells of a level tell apart."""
    ring, height = _ring(90 - np.abs(latitudes))
    outwards = level - OCTANTS - np.minimum(ring, level - OCTANTS)
    kept, begin = _classes(level)
    rank = begin[outwards] + (height * 2.0 ** kept[outwards]).astype(np.int64) * (outwards > 0)
    return np.asarray(np.where(latitudes >= 0, 2 * begin[-1] - 1 - rank, rank), np.int64)


def _colatitude_at(s: Floats) -> Floats:
    """Return the colatitude of s in degrees: what `_ring` undoes."""
    mantissa, exponent = np.frexp(s)  # s = 2^-(m+1) (1 + h), with 1 + h twice the mantissa and m minus the exponent
    place = (RINGS - 1 + exponent + (2 * mantissa - 1)) * STEPS + 1
    knots = _knots()
    pole = np.sqrt(s * 2.0**RINGS) * knots.knots[1]  # inside all rings s grows as the square
    return np.where(s < 2.0**-RINGS, pole, knots.values(place))


@lru_cache(maxsize=128)
def _bounds(level: int) -> tuple[float, float, float]:
    """Return upper bounds of the diameter, the radius and the sum of the diameters of a level.

    Two points of an octant at colatitudes t1, t2 <= pi/2 whose longitudes differ by p are at the angle d with
        sin^2(d/2) = sin^2((t1 - t2)/2) + sin t1 sin t2 sin^2(p/2).
    Cell at the pole, s < 2^-k with k = level - 3: there p <= pi/2, so cos d >= cos t1 cos t2 >= cos^2 theta(2^-k), with
        equality at the two outer corners. This is exact.
    Ring m, cut a times in longitude and b times in s: theta(s) = arccos(1 - s) is concave on [0, 1], so that of all
        intervals of s of one length the innermost spans the widest angle; sin theta grows with s, so the outermost
        parallel is the longest, p <= (pi/2) 2^-a. Putting both extremes into the formula bounds every cell of the ring.
    Centres halve the interval of s, and by concavity their angle to its inner end is the larger one; p is halved.
    Knots change nothing: they lie on the curve theta(s), and a cell between two knots has its even share of the angle
        between them. By concavity that is at most the angle of an interval of s of its length at the inner knot, and
        so at the inner edge of the ring; its centre is half its angle from its ends, at most half of that.
    A cell lies inside its ancestors, so the least bound of all levels above holds too: the diameter never grows.
    """
    if level < OCTANTS:  # a half, and a quarter with a half turn of the equator, hold (nearly) antipodes
        return 1.0, (1.0, 0.5, 0.5)[level], float(1 << level)
    depth = level - OCTANTS
    outer = 2.0**-depth
    parts = [(1, _angle(0.0, outer, math.pi / 2, polar=True), _angle(0.0, outer, math.pi / 4, centred=True))]
    for ring in range(depth):
        own = depth - ring - 1
        across, along = (int(table[own]) for table in _CUTS)
        outer, side, turn = 2.0**-ring, 2.0 ** -(ring + 1 + along), math.pi / 2 * 2.0**-across
        inner = outer / 2
        diameter = _angle(inner, side, turn, outer=outer)
        parts.append((1 << own, diameter, _angle(inner, side, turn / 2, outer=outer, centred=True)))
    diameter = min(_bounds(level - 1)[0], max(part[1] for part in parts))
    total = sum(8 * count * min(bound, diameter) for count, bound, _ in parts)
    return diameter, min(diameter, max(part[2] for part in parts)), total


def _angle(
    inner: float, side: float, turn: float, *, outer: float | None = None, polar: bool = False, centred: bool = False
) -> float:
    """Return the bound of `_bounds` over pi for s in [inner, inner + side], with sin theta as at s = outer."""
    outer = inner + side if outer is None else outer
    span = 0.0 if polar else _colatitude(inner + (side / 2 if centred else side)) - _colatitude(inner)
    square = math.sin(span / 2) ** 2 + outer * (2 - outer) * math.sin(turn / 2) ** 2
    return 2 / math.pi * math.asin(math.sqrt(min(square, 1.0)))


def _colatitude(s: float) -> float:
    return 2 * math.asin(math.sqrt(s / 2))
