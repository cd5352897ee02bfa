"""Places on the Earth: two columns that belong together."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from privmeasure.domains import Box, Domain, Floats, Points, Sphere
from privmeasure.domains.scales import Clamped, Filled, Reading, Together, Turned
from privmeasure.errors import ArgumentError
from privmeasure.tables.arrow import describe_type, is_double, is_number, number_cells, numbers, plain_type
from privmeasure.tables.columns.base import Changes, DataColumn, Types
from privmeasure.tables.columns.fields import ColumnError, decimals_field, plural

if TYPE_CHECKING:
    import pyarrow as pa

HALF_EARTH = 20015
"""Kilometres from pole to pole."""


class Place(DataColumn, frozen=True, tag="place"):
    """A place, from a column with its latitude and one with its longitude, in degrees.

    With `low` and `high`, each (latitude, longitude), places lie in that box; the distance is the larger of the two
    differences, each over the side of the box. Without them they lie anywhere on the Earth, with the distance along
    great circles over half the circumference. A box across the date line ends beyond 180: low (-50, 165), high
    (-30, 190). A place is missing if either of its cells is.

    Examples:
        >>> import pyarrow as pa
        >>> town = Place("lat", "lon", low=(45, 5), high=(48, 11))
        >>> town.sources("home"), town.encode([pa.array([46.9, 50.0]), pa.array([7.4, 8.0])])
        (('lat', 'lon'), array([[ 7.4, 46.9], [ 8. , 48. ]]))
    """

    guide = ("latitude, longitude", "the names of two columns, in one table [columns.ANY_NAME]")
    needs = (
        ("latitude", "the name of the file's column with the latitude"),
        ("longitude", "the name of the file's column with the longitude"),
    )

    latitude: Annotated[str, Meta(description="The name of the file's column with the latitude.")]
    longitude: Annotated[str, Meta(description="The name of the file's column with the longitude.")]
    low: Annotated[
        tuple[float, float] | None,
        Meta(description="The south-western corner: [latitude, longitude]; none for all the Earth."),
    ] = None
    high: Annotated[
        tuple[float, float] | None, Meta(description="The north-eastern corner: [latitude, longitude].")
    ] = None
    decimals: Annotated[int | None, Meta(description="Digits after the decimal point in the output.")] = None

    def __post_init__(self) -> None:
        """Check everything that is declared, before any data are touched."""
        self._check_common()
        for field in ("latitude", "longitude"):
            if not isinstance(getattr(self, field), str):
                raise ColumnError(
                    f"has {field} = {getattr(self, field)!r}; write the name of a column of the file.", field
                )
        if self.latitude == self.longitude:
            raise ColumnError(f"has {self.latitude!r} as both latitude and longitude. Name two columns.", "longitude")
        decimals_field(self)
        if (self.low is None) != (self.high is None):
            field = "low" if self.high is None else "high"
            raise ColumnError("has only one corner. Give low and high, or neither for all the Earth.", field)
        if self.low is not None:
            self._check_box()

    def _check_box(self) -> None:
        for field in ("low", "high"):
            try:
                latitude, longitude = (float(x) for x in getattr(self, field))
            except (TypeError, ValueError, OverflowError):
                raise ColumnError(
                    f"has {field} = {getattr(self, field)!r}; write [latitude, longitude].", field
                ) from None
            if not (-90 <= latitude <= 90 and -360 <= longitude <= 360):
                raise ColumnError(
                    f"has {field} = {[latitude, longitude]}, which is no [latitude, longitude] in degrees.", field
                )
            msgspec.structs.force_setattr(self, field, (latitude, longitude))
        (south, west), (north, east) = self.low or (0, 0), self.high or (0, 0)
        if south >= north:
            raise ColumnError(f"has its low latitude {south:g} not below its high one {north:g}. Swap them.", "low")
        if west >= east:
            raise ColumnError(
                f"has its low longitude {west:g} not below its high one {east:g}. Swap them; a box across the date "
                f"line ends at {east + 360:g}.",
                "low",
            )
        if east - west > 360:
            raise ColumnError(f"has longitudes from {west:g} to {east:g}, more than once around the Earth.", "high")
        try:
            self.domain  # noqa: B018
        except ArgumentError as error:
            raise ColumnError(f"has a box that is too small: {error}", "low") from None

    def sources(self, name: str) -> tuple[str, ...]:
        """Return the two file columns."""
        return (self.latitude, self.longitude)

    @property
    def _bounds(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return (south, north) and (west, east)."""
        if self.low is None or self.high is None:
            return (-90.0, 90.0), (-180.0, 180.0)
        return (self.low[0], self.high[0]), (self.low[1], self.high[1])

    @cached_property
    def domain(self) -> Domain:
        """The sphere or a box; points are (longitude, latitude)."""
        latitudes, longitudes = self._bounds
        return self._or_missing(Sphere() if self.low is None else Box([longitudes, latitudes]))

    @property
    def natural(self) -> "tuple[pa.DataType, ...]":
        """Doubles."""
        import pyarrow as pa

        return (pa.float64(), pa.float64())

    def refuses(self, type: "pa.DataType") -> str | None:
        """Refuse whatever is no number."""
        import pyarrow.types as pt

        plain = plain_type(type)
        if is_number(plain) or pt.is_null(plain):
            return None
        return f"must be degrees as numbers, got {describe_type(plain)}. Cast it, or drop it."

    def read(self, array: "pa.Array", source: int) -> Floats:
        """Return degrees; a longitude is turned into the range of the box where that is possible."""
        values = numbers(array)
        if source == 0:
            return values
        west, east = self._bounds[1]
        with np.errstate(all="ignore"):
            turned = np.mod(values - west, 360.0) + west
            outside = (values < west) | (values > east)
            turned = np.where(outside & (turned <= east), turned, values)
            return np.where(np.isinf(values), np.nan, turned)  # no direction

    def settle(self, readings: Sequence[Floats]) -> Points:
        """Clamp both, and let a place miss both or none."""
        points = np.empty((len(readings[0]), 2))
        for column, values, (low, high) in zip((1, 0), readings, self._bounds, strict=True):
            np.clip(values, low, high, out=points[:, column])
        nowhere = np.isnan(points).any(axis=1)
        first = (self._bounds[1][0], self._bounds[0][0])
        points[nowhere] = np.nan if self.nullable else first
        return points

    def readings(self, types: Types, first: int = 0) -> tuple[Reading, ...] | None:
        """Return longitude and latitude, clamped; a longitude is turned into the range of the box first."""
        if not all(map(is_double, types)):
            return None
        latitudes, (west, east) = self._bounds
        longitude = Reading(first + 1, (Turned(west, east, 360.0, east), Clamped(west, east)))
        latitude = Reading(first, (Clamped(*latitudes),))
        if self.nullable:
            return longitude, latitude
        # a place that misses one of the two is the first one
        return longitude.then(Together(latitude), Filled(west)), latitude.then(
            Together(longitude), Filled(latitudes[0])
        )

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        """Count the cells outside the box."""
        low, high = self._bounds[source]
        return int(np.count_nonzero((reading < low) | (reading > high))), 0

    def count_changes(self, arrays: "Sequence[pa.Array]") -> Changes:
        """Count places, not cells: one whose two cells are both changed counts once. CONFIDENTIAL."""
        readings = [self._reading(array, source) for source, array in enumerate(arrays)]
        missing = np.any([self.empty(*pair) for pair in zip(arrays, readings, strict=True)], axis=0)
        unparsed = np.isnan(readings).any(axis=0) & ~missing
        beyond = [(r < low) | (r > high) for r, (low, high) in zip(readings, self._bounds, strict=True)]
        clamped = np.any(beyond, axis=0) & ~missing & ~unparsed
        return Changes(*(int(np.count_nonzero(rows)) for rows in (missing, unparsed, clamped)))

    def restore(self, points: Points, types: Types) -> "list[pa.Array]":
        """Round and keep within the bounds; longitudes come back between -180 and 180."""
        cells: list[Any] = []
        for column, kind, (low, high) in zip((1, 0), types, self._bounds, strict=True):
            values = np.clip(points[:, column], low, high)
            if self.decimals is not None:
                scale = 10.0**self.decimals
                first, last = math.ceil(low * scale) / scale, math.floor(high * scale) / scale
                rounded = np.rint(values * scale) / scale + 0.0
                values = np.clip(rounded, first, last) if first <= last else values
            if column == 0 and (low < -180 or high > 180):
                values = np.where(values > 180, values - 360, np.where(values < -180, values + 360, values))
            cells.append(number_cells(values, None if kind is None else plain_type(kind)))
        return cells

    @property
    def decimal_marks(self) -> bool:
        """Texts are degrees."""
        return True

    def in_units(self, share: float) -> str:
        """Say how many kilometres, on the whole Earth."""
        if self.low is not None:
            return super().in_units(share)
        return plural(share * HALF_EARTH, "km").removesuffix("s")

    def cell_size(self, cuts: int) -> str:
        """Say the size of a cell."""
        if self.low is None:
            return f"about {plural(min(Sphere().diameter(cuts), 1.0) * HALF_EARTH, 'km').removesuffix('s')}"
        (south, north), (west, east) = self._bounds
        across, up = Box([(west, east), (south, north)]).cuts(cuts)
        return f"about {plural((north - south) * 2.0**-up, '')} by {plural((east - west) * 2.0**-across, 'degree')}"

    @classmethod
    def joined(cls, relation: str, roles: Mapping[str, str]) -> dict[str, str] | None:
        """Take a latitude and a longitude that are said to belong together."""
        if relation != "sdv gps" or not {"latitude", "longitude"} <= set(roles):
            return None
        return {role: roles[role] for role in ("latitude", "longitude")}
