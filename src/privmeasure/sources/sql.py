"""Questions in SQL: one GROUP BY in the place of reading rows. The words of `domains/scales.py`, one after another.

Every row gets the numbers that NumPy would give it, so every cell has the same count. Five rules make that so:

- **No error of the engine depends on a value.** Nothing is computed before it was compared: PostgreSQL raises where a
  product overflows or vanishes, so products are formed only where their floor lies strictly between the first number
  and the last. Casts are made of what was floored, within bounds.
- **Doubles are written so that the engine reads back the same double**, and each sum, product and quotient is rounded
  once. Rounding to the nearest integer is adding and subtracting 2^52, half to even everywhere.
- **NULL and NaN are one thing.** `x <= infinity` is true of all other numbers, in all three; where more is computed,
  NaN becomes NULL before anything else.
- **Texts are compared byte by byte**, whatever the collation of the column.
- **What has few answers is looked up** (`domains/answers.py`): a listed text has a code, a scale of groups has edges.

What leaves the engine is a count for each occupied cell. The cell comes as the numbers of its parts (which column lies
where), and its code is put together here: moving bits about is no work for a database.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privmeasure.counts import DENSE_CELLS, Axis, CellCounts, Counts, Partition
from privmeasure.domains import scales as words
from privmeasure.domains.answers import answer, deal_bits, follow, readings_of
from privmeasure.domains.base import Floats
from privmeasure.domains.bits import Words
from privmeasure.domains.knots import NEAR_ONE, from_ordered_bits, ordered_bits
from privmeasure.domains.scales import MOST_EDGES, Reading, Scale, describe, find_edges
from privmeasure.errors import DataError
from privmeasure.sources.dialects import POSTGRES, Dialect

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST = float(np.finfo(np.float64).max)
WHOLE = 2.0**52
"""From here on all doubles are integers."""
FEW_PIECES = 8
"""Up to so many numbers of a scale they are found by comparing, not by computing."""
FEW_EDGES = 16
"""Up to so many edges a tree of comparisons is faster than a search in an array."""
FEW_TEXTS = 16
"""Up to so many texts they are compared one by one; beyond, they are joined with."""
SETS = 64
"""Partitions that are asked for in one statement."""
LAYER, LAST_LAYER = "privmeasure_layer", "privmeasure_numbers"
"""What subqueries are called: like no table of a user, which SQLite would take them for."""


@dataclass(frozen=True)
class StoredColumn:
    """A column of a query's result: its name, its type in our words, and how its value is handed over.

    `value` is SQL with {} in the place of the column: a double, or a text. See `Reading.stored` for the units. `whole`
    says that all values are integers, by the type, and `nan` that they may be NaN. `word` is the engine's own name of
    the type.
    """

    name: str
    word: str
    type: "pa.DataType | None"
    value: str = "{}"
    whole: bool = False
    nan: bool = False


class Question:
    """The statements that count rows on the cells of some partitions, and the way from their answers to counts.

    `given` is the SQL of a table or of a query, `stored` are its columns, `readings` the coordinates of a point.

    Guarantee:  privacy  the text depends on public values alone: the schema, the partitions, names and types
    """

    def __init__(
        self,
        dialect: Dialect,
        given: str,
        stored: Sequence[StoredColumn],
        readings: Sequence[Reading],
        partitions: Sequence[Partition],
    ) -> None:
        """Translate the partitions."""
        scales: dict[Axis, Scale] = {}
        for axis in (axis for partition in partitions for axis in partition.axes):
            if axis not in scales:
                scales[axis] = _scale_of(axis, readings)
        most = SETS if dialect.grouping_sets else 1
        parts = [partitions[start : start + most] for start in range(0, len(partitions), most)]
        self.statements = [_Statement(dialect, given, stored, scales, part) for part in parts]

    def counts(self) -> list[CellCounts]:
        """Return the counts of the partitions, after all statements were answered."""
        return [asked.counts() for statement in self.statements for asked in statement.asked]


class _Statement:
    """One GROUP BY, for one partition or, with grouping sets, for several."""

    def __init__(
        self,
        dialect: Dialect,
        given: str,
        stored: Sequence[StoredColumn],
        scales: dict[Axis, Scale],
        partitions: Sequence[Partition],
    ) -> None:
        """Translate the partitions."""
        self._dialect, self._stored = dialect, stored
        self._lets: dict[str, str] = {}  # expression -> name
        self._depths: dict[str, int] = {}
        self._joins: dict[tuple[str, str], str] = {}  # a text column, and a table of texts and numbers -> name
        self._numbers: dict[str, str] = {}  # expression -> name of a column that is grouped by
        axes = {axis: self._split(scales[axis]) for partition in partitions for axis in partition.axes}
        self.asked = [_Asked(partition, [axes[axis] for axis in partition.axes]) for partition in partitions]
        sets = list(dict.fromkeys(tuple(sorted(set(asked.names))) for asked in self.asked))  # each once
        names = list(self._numbers.values())
        self.take = _Taker(names, sets, self.asked)
        """Takes the columns of the answer: numbers of parts, then counts."""
        self.text = self._text(given, names, sets)

    def _text(self, given: str, names: list[str], sets: list[tuple[str, ...]]) -> str:
        grouped = ", ".join(f"({', '.join(group)})" for group in sets)
        by = f" GROUP BY GROUPING SETS ({grouped})" if len(sets) > 1 else f" GROUP BY {', '.join(sets[0])}"
        inner = ", ".join(f"{expression} AS {name}" for expression, name in self._numbers.items()) or "1 AS one"
        layers = self._layers(given)
        numbers = f"{LAST_LAYER} AS (SELECT {inner} FROM {LAYER}{len(layers) - 1}{self._dialect.barrier})"
        shown = "".join(f"{name}, " for name in names)
        return (
            f"WITH {', '.join([*layers, numbers])} SELECT {shown}count(*) FROM {LAST_LAYER}{by if sets != [()] else ''}"
        )

    def _layers(self, given: str) -> list[str]:
        """Return the subqueries that have all values: stored ones first, then what follows from them, in layers."""
        barrier = self._dialect.barrier
        layers = [_values(self._dialect, given, self._stored)]
        if self._joins:
            shown = ", ".join(f"{name}.v AS {name}v" for name in self._joins.values())
            joins = " ".join(
                f"LEFT JOIN (WITH t(k, v) AS (VALUES {rows}) SELECT k, v FROM t) AS {name} "
                f"ON {name}.k = {LAYER}0.{x}{self._dialect.collate}"
                for (x, rows), name in self._joins.items()
            )
            layers.append(f"SELECT {LAYER}0.*, {shown} FROM {LAYER}0 {joins}")
        for depth in range(1, max(self._depths.values(), default=0) + 1):
            here = [f"{text} AS {name}" for text, name in self._lets.items() if self._depths[name] == depth]
            layers.append(f"SELECT *, {', '.join(here)} FROM {LAYER}{len(layers) - 1}")
        return [f"{LAYER}{i} AS ({layer}{barrier})" for i, layer in enumerate(layers)]

    def _let(self, expression: str) -> str:
        """Return a name for a value, so that it is written once."""
        if re.fullmatch(r"\w+", expression):  # a name already, or a number
            return expression
        if expression not in self._lets:
            name = f"v{len(self._lets)}"
            known = (self._depths.get(used, 0) for used in re.findall(r"\bv\d+\b", expression))
            self._depths[name] = 1 + max(known, default=0)
            self._lets[expression] = name
        return self._lets[expression]

    # ---------------------------------------------------------------------------------------------------------- numbers

    def _split(self, scale: Scale) -> "_Parts":
        """Return the numbers that a scale is made of, and how to put them together: bits are dealt here."""
        if isinstance(scale, words.Dealt) and all(place >= 0 for places in scale.places for place in places):
            parts = [self._split(part) for part in scale.parts]
            return _Parts(tuple(name for part in parts for name in part.names), _Deal(tuple(parts), scale.places))
        expression = self._number(scale)
        if expression.isdigit():
            return _Parts((), int(expression))
        return _Parts((self._numbers.setdefault(expression, f"n{len(self._numbers)}"),), None)

    def _number(self, scale: Scale) -> str:
        """Return the number of a scale, which is never NULL."""
        readings = list(readings_of(scale))
        if len({reading.column for reading in readings}) == 1:
            if all(reading.steps and isinstance(reading.steps[0], words.Listed) for reading in readings):
                return self._listed(scale, readings[0])
            cores = list(_cores(scale))
            if len(cores) == 1 and all(_is_rising(reading) for reading in readings):
                size = _core_size(cores[0])
                if size <= FEW_PIECES or (
                    size <= MOST_EDGES and (has_table(scale) or isinstance(cores[0], words.Edges))
                ):
                    return self._rising_pieces(scale, cores[0])
                if isinstance(scale, words.Even):
                    return self._even(f"x{scale.of.column}", scale, whole=self._stored[scale.of.column].whole)
        found: str = getattr(self, f"_of_{type(scale).__name__.lower()}")(scale)
        return found

    def _listed(self, scale: Scale, reading: Reading) -> str:
        """Return the number of a listed value, looked up."""
        listed = reading.steps[0]
        assert isinstance(listed, words.Listed)
        positions = np.array([*range(len(listed.values)), listed.other, listed.missing])
        found = answer(scale, lambda r: follow(r.steps[1:], positions, lambda _: positions))
        *codes, other, missing = np.broadcast_to(found, positions.shape).tolist()
        x = f"x{reading.column}"
        if reading.stored != "text":
            return self._listed_numbers(x, listed.values, codes, other, missing)
        texts = [(self._dialect.unicode(str(value)), code) for value, code in zip(listed.values, codes, strict=True)]
        known = [(text, code) for text, code in texts if text is not None and code != other]
        if len(known) <= FEW_TEXTS:
            cases = "".join(f" WHEN {x}{self._dialect.collate} = {text} THEN {code}" for text, code in known)
            return f"CASE WHEN {x} IS NULL THEN {missing}{cases} ELSE {other} END"
        rows = ", ".join(f"({text}, {code})" for text, code in known)
        joined = self._joins.setdefault((x, rows), f"t{len(self._joins)}")
        return f"CASE WHEN {x} IS NULL THEN {missing} ELSE coalesce({joined}v, {other}) END"

    def _listed_numbers(self, x: str, values: Sequence[Any], codes: list[int], other: int, missing: int) -> str:
        """Return the number of a listed double: a piece for each, and pieces between them."""
        edges, numbers = [], [other]
        for value, code in sorted(zip(map(float, values), codes, strict=True)):
            edges += [value + 0.0, math.nextafter(value, math.inf)]
            numbers += [code, other]
        return self._pieces(x, np.array(edges), np.array(numbers), missing)

    def _rising_pieces(self, scale: Scale, core: "_Core") -> str:
        """Return the number of a scale that rises with the stored value up to its core, by comparing alone."""
        rises = _place_in(core)
        first, last = rises(np.array([-np.inf, np.inf]))
        edges = find_edges(lambda x: rises(x) - first, int(last - first) + 1, -LARGEST, LARGEST)
        at = np.concatenate([[-np.inf], edges])
        numbers = answer(scale, lambda r: follow(r.steps, at, lambda _: at))
        none = np.array([np.nan])
        missing = answer(scale, lambda r: follow(r.steps, none, lambda _: none))
        return self._pieces(f"x{core.of.column}", edges, np.broadcast_to(numbers, at.shape), int(missing[0]))

    def _pieces(self, x: str, edges: Floats, numbers: Words, missing: int) -> str:
        """Return numbers[i], i being how many of the increasing edges are at or below x; `missing` for NULL."""
        last = np.append(edges[1:] > edges[:-1], True) if len(edges) else np.empty(0, bool)  # of equal edges the last
        edges, numbers = edges[last], np.append(numbers[:1], numbers[1:][last])
        changes = numbers[1:] != numbers[:-1]
        edges, numbers = edges[changes], np.append(numbers[:1], numbers[1:][changes])
        infinity = self._dialect.number(math.inf)
        if not len(edges) and int(numbers[0]) == missing:
            return str(missing)
        if self._dialect.buckets and self._dialect.array and len(edges) > FEW_PIECES:
            place = self._dialect.buckets.format(x, self._dialect.items(edges.tolist()))
            rising = bool((np.diff(numbers) == 1).all())
            found = f"{numbers[0]} + {place}" if rising else f"{self._dialect.items(numbers.tolist())}[{place} + 1]"
        else:
            found = self._place(x, edges, numbers)
        return f"CASE WHEN {x} <= {infinity} THEN {found} ELSE {missing} END"

    def _place(self, x: str, edges: Floats, numbers: Words) -> str:
        """Return numbers[i], i being how many of the edges are at or below x."""
        if self._dialect.array is None or len(edges) <= FEW_EDGES:
            return self._search(x, list(map(self._dialect.number, edges.tolist())), list(map(str, numbers.tolist())))
        items, place, step = self._let(self._dialect.items(edges.tolist())), "0", 1 << (len(edges).bit_length() - 1)
        while step:  # a binary search, one step in each layer
            there = f"{place} + {step}"
            place = self._let(
                f"CASE WHEN {there} <= {len(edges)} AND {items}[{there}] <= {x} THEN {there} ELSE {place} END"
            )
            step //= 2
        if (np.diff(numbers) == 1).all():
            return f"{numbers[0]} + {place}"
        return f"{self._let(self._dialect.items(numbers.tolist()))}[{place} + 1]"

    def _search(self, x: str, edges: list[str], values: list[str]) -> str:
        """Return values[i], i being how many of the edges are at or below x: a tree of comparisons."""
        if len(values) == 1:
            return values[0]
        step = -(-len(values) // min(self._dialect.branches, len(values)))
        starts = range(0, len(values), step)
        branches = [self._search(x, edges[at : at + step - 1], values[at : at + step]) for at in starts]
        cases = [f"WHEN {x} < {edges[at - 1]} THEN {branch}" for at, branch in zip(starts[1:], branches, strict=False)]
        return f"CASE {' '.join(cases)} ELSE {branches[-1]} END"

    def _even(self, x: str, scale: words.Even, *, whole: bool) -> str:
        """Return equal parts of a rising reading: computed between the first number and the last, where it is safe.

        Where a clamp changes a value, the number is the first or the last: so between them no value is clamped.
        """
        rises = _place_in(scale)
        first, last = rises(np.array([-np.inf, np.inf])).tolist()
        missing = int(rises(np.array([np.nan]))[0])
        number, infinity = self._dialect.number, self._dialect.number(math.inf)
        end = f"WHEN {x} <= {infinity} THEN {last} ELSE {missing} END"
        if first == last:
            return str(first) if first == missing else f"CASE {end}"
        second, top = (_first_double(rises, wanted) for wanted in (first + 1, last))
        begin = f"CASE WHEN {x} < {number(second)} THEN {first}"
        if first + 1 == last:
            return f"{begin} {end}"
        u = x
        for step in scale.of.steps:
            if isinstance(step, words.Rounded) and not whole:
                u, whole = _nearest(u, number), True
            elif isinstance(step, words.Counted):
                u = f"floor(({_minus(u, step.low, number)}) / {number(step.step)})"
                u, whole = (f"({u} + {number(step.offset)})" if step.offset else u), float(step.offset).is_integer()
        u = f"({_minus(u, scale.low, number)})"
        u = u if scale.factor == 1 else f"{u} * {number(scale.factor)}"
        u = u if scale.divisor == 1 else f"{u} / {number(scale.divisor)}"
        return f"{begin} WHEN {x} < {number(top)} THEN {self._dialect.floor(u, last)} {end}"

    # ---------------------------------------------------------------------------------------- scales of several columns

    def _of_even(self, scale: words.Even) -> str:
        plain = words.Even(Reading(scale.of.column), scale.low, scale.factor, scale.divisor, scale.bits)
        return self._let(self._even(self._reading(scale.of), plain, whole=False))

    def _of_edges(self, scale: words.Edges) -> str:
        x = self._reading(scale.of)
        return self._let(self._pieces(x, scale.edges, np.arange(len(scale.edges) + 1), 0))

    def _of_codes(self, scale: words.Codes) -> str:
        return self._table(
            self._dialect.floor(f"coalesce({self._reading(scale.of)}, 0.0)", len(scale.codes)), scale.codes.tolist()
        )

    def _of_dealt(self, scale: words.Dealt) -> str:
        moved = []
        for part, places in zip(scale.parts, scale.places, strict=True):
            number = self._let(f"CAST({self._number(part)} AS BIGINT)")  # bits that are moved need room
            i = 0
            while i < len(places):
                j = i + 1  # bits that stay side by side are moved together
                while j < len(places) and places[j] == places[j - 1] - 1 and places[j] >= 0:
                    j += 1
                if places[i] >= 0:
                    below, mask = len(places) - j, (1 << (j - i)) - 1
                    bits = number if j - i == len(places) else f"(({number} >> {below}) & {mask})"
                    moved.append(f"({bits} << {places[j - 1]})" if places[j - 1] else bits)
                i = j
        return self._let(" + ".join(moved) or "0")

    def _of_missing(self, scale: words.Missing) -> str:
        missing = " OR ".join(dict.fromkeys(f"{self._known(reading)} IS NULL" for reading in scale.of))
        return self._let(f"CASE WHEN {missing} THEN {scale.code} ELSE {self._number(scale.present)} END")

    def _known(self, reading: Reading) -> str:
        """Return something that is NULL where the reading is."""
        kept = all(
            isinstance(s, words.Clamped | words.Rounded | words.Counted | words.Stretched) for s in reading.steps
        )
        return self._stored_value(reading.column) if kept else self._reading(reading)

    def _of_rings(self, scale: words.Rings) -> str:
        ring = self._let(self._number(scale.ring))
        code = self._table(ring, scale.codes.tolist())
        halvings = self._table(ring, (-np.log2(scale.shares)).round().astype(np.int64).tolist())
        outer, turn = self._let(self._number(scale.outer)), self._let(self._number(scale.turn))
        return self._let(f"{code} + {outer} + ({turn} >> {self._int(halvings)})")

    def _int(self, expression: str) -> str:
        return expression if self._dialect is not POSTGRES else f"CAST({expression} AS integer)"

    def _of_grouped(self, scale: words.Grouped) -> str:
        return self._table(self._let(self._number(scale.of)), scale.groups.tolist())

    def _table(self, index: str, values: list[Any]) -> str:
        """Return the value at a position, from 0 on."""
        index = self._let(index)
        numbers, write = np.array(values), str if all(isinstance(v, int) for v in values) else self._dialect.number
        if self._dialect.array is not None and len(np.flatnonzero(np.diff(numbers))) > FEW_PIECES:
            return self._let(f"{self._dialect.items(values)}[{index} + 1]")
        starts = (np.flatnonzero(np.diff(numbers)) + 1).tolist()
        return self._let(self._search(index, list(map(str, starts)), [write(values[at]) for at in [0, *starts]]))

    # ----------------------------------------------------------------------------------------------------------- values

    def _reading(self, reading: Reading) -> str:
        """Return the value of a reading, NULL for NaN, step by step."""
        value = self._stored_value(reading.column)
        for step in reading.steps:
            value = self._let(getattr(self, f"_{type(step).__name__.lower()}")(value, step))
        return value

    def _stored_value(self, column: int) -> str:
        """Return a stored value, NULL for NaN."""
        if not self._stored[column].nan:
            return f"x{column}"
        double = self._dialect.double
        return self._let(f"nullif(x{column}, CAST('NaN' AS {double}))")

    def _clamped(self, x: str, step: words.Clamped) -> str:
        low, high = self._dialect.number(step.low), self._dialect.number(step.high)
        return f"CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END"

    def _filled(self, x: str, step: words.Filled) -> str:
        return f"coalesce({x}, {self._dialect.number(step.value)})"

    def _together(self, x: str, step: words.Together) -> str:
        return f"CASE WHEN {self._reading(step.other)} IS NOT NULL THEN {x} END"

    def _rounded(self, x: str, step: words.Rounded) -> str:
        return _nearest(x, self._dialect.number)

    def _counted(self, x: str, step: words.Counted) -> str:
        number = self._dialect.number
        return f"floor(({_minus(x, step.low, number)}) / {number(step.step)}) + {number(step.offset)}"

    def _turned(self, x: str, step: words.Turned) -> str:
        number = self._dialect.number
        low, high, period = map(number, (step.low, step.high, step.period))
        finite = self._let(f"CASE WHEN {x} <= {number(LARGEST)} AND {x} >= {number(-LARGEST)} THEN {x} END")
        rest = self._remainder(self._let(_minus(finite, step.low, number)), step.period)
        turned = self._let(f"CASE WHEN {rest} < 0 THEN {rest} + {period} ELSE {rest} END + {low}")
        stays = f"({finite} >= {low} AND {finite} <= {high})"
        if step.top < math.inf:
            stays += f" OR {turned} > {number(step.top)}"
        return f"CASE WHEN {stays} THEN {finite} ELSE {turned} END"

    def _remainder(self, x: str, period: float) -> str:
        """Return C's fmod. Without one: subtract the period times powers of two, each of which is exact."""
        number = self._dialect.number
        if self._dialect.remainder is not None:
            return self._let(self._dialect.remainder.format(x, number(period)))
        largest = number(math.ldexp(math.frexp(period)[0], 1024))  # the period times a power of two
        size, once = self._let(f"abs({x})"), number(period)
        far = (
            f"(WITH RECURSIVE f(d, r) AS (SELECT {largest}, {size} UNION ALL SELECT d / 2, CASE WHEN r >= d THEN r - d "
            f"ELSE r END FROM f WHERE d >= {once}) SELECT r FROM f WHERE d < {once})"
        )
        near = f"WHEN {size} < {once} THEN {size} WHEN {size} - {once} < {once} THEN {size} - {once}"
        rest = self._let(f"CASE {near} WHEN {size} IS NOT NULL THEN {far} END")
        return self._let(f"CASE WHEN {x} < 0 THEN -{rest} ELSE {rest} END")

    def _stretched(self, x: str, step: words.Stretched) -> str:
        knots, number = step.knots.knots, self._dialect.number
        i = self._let(self._pieces(x, knots[1:-1], np.arange(len(knots) - 1), 0))
        below, above = self._table(i, knots[:-1].tolist()), self._table(i, knots[1:].tolist())
        place, near = self._let(f"CAST({i} AS {self._dialect.double})"), number(NEAR_ONE)
        # what is next to nothing beside a gap is not divided: its quotient might vanish, which PostgreSQL refuses
        over = self._let(f"CASE WHEN {x} > {below} THEN {x} - {below} END")
        small = number(math.ldexp(float(np.diff(knots).max()), -1070))
        q = self._let(f"CASE WHEN {over} >= {small} THEN {over} / ({above} - {below}) END")
        return (
            f"CASE WHEN {x} >= {number(knots[-1])} THEN {number(len(knots) - 1)} "
            f"WHEN {q} > {near} THEN {place} + {near} WHEN {q} > 0 THEN {place} + {q} "
            f"WHEN {x} IS NOT NULL THEN {place} END"
        )


# -------------------------------------------------------------------------------------------------------------- answers


@dataclass(frozen=True, eq=False)
class _Deal:
    """How the numbers of parts become a code."""

    parts: "tuple[_Parts, ...]"
    places: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class _Parts:
    """The columns of the answer that a scale's number follows from: one that is it, or several whose bits are dealt.

    Or none, where all rows have one number.
    """

    names: tuple[str, ...]
    deal: _Deal | int | None

    def code(self, columns: dict[str, Words], rows: int) -> Words:
        """Return the number of every row of the answer."""
        if self.deal is None:
            return columns[self.names[0]]
        if isinstance(self.deal, int):
            return np.full(rows, self.deal)
        total = np.zeros(rows, np.int64)
        for part, places in zip(self.deal.parts, self.deal.places, strict=True):
            total |= deal_bits(part.code(columns, rows), places)
        return total


class _Asked:
    """A partition, the columns of the answer that its cells follow from, and the answer. PRIVATE once it is there."""

    def __init__(self, partition: Partition, axes: list[_Parts]) -> None:
        self._partition, self._axes = partition, axes
        self.names = tuple(name for axis in axes for name in axis.names)
        self._codes, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)

    def take(self, columns: dict[str, Words], counts: Counts) -> None:
        """Take the occupied cells, as columns, and their counts."""
        codes = np.zeros(len(counts), np.int64)
        for axis, parts in zip(self._partition.axes, self._axes, strict=True):
            codes = codes * axis.size + parts.code(columns, len(counts))
        self._codes, self._counts = codes, counts

    def counts(self) -> CellCounts:
        """Return the counts, which are not kept."""
        codes, counts, size = self._codes, self._counts, self._partition.size
        self._codes = self._counts = np.empty(0, np.int64)
        if size <= DENSE_CELLS:
            total = np.zeros(size, np.int64)
            np.add.at(total, codes, counts)
            return CellCounts(size, total)
        cells, place = np.unique(codes, return_inverse=True)
        total = np.zeros(len(cells), np.int64)
        np.add.at(total, place, counts)
        return CellCounts(size, total, cells.view(np.uint64))


class _Taker:
    """Gives each partition its rows of an answer: those that are NULL in all columns but its own."""

    def __init__(self, names: list[str], sets: list[tuple[str, ...]], asked: list[_Asked]) -> None:
        self._names, self._sets, self._asked = names, sets, asked

    def __call__(self, answers: Sequence[Any]) -> None:
        *columns, counts = answers
        known = [np.asarray(~np.ma.getmaskarray(column)) for column in columns]
        words_of = {n: np.ma.getdata(column).astype(np.int64) for n, column in zip(self._names, columns, strict=True)}
        counts = np.ma.getdata(counts).astype(np.int64)
        for group in self._sets:
            here = np.ones(len(counts), bool)
            for name, there in zip(self._names, known, strict=True):
                here &= there if name in group else ~there
            own = {name: words_of[name][here] for name in group}
            for asked in self._asked:
                if set(asked.names) == set(group):
                    asked.take(own, counts[here])


# --------------------------------------------------------------------------------------------------------- small pieces

_Core = words.Even | words.Edges | words.Codes


def _scale_of(axis: Axis, readings: Sequence[Reading]) -> Scale:
    """Return the scale of an axis in terms of stored values."""
    scale = describe(axis.domain, axis.level, readings[axis.columns or slice(None)])
    if scale is None:
        raise DataError(
            f"The cells of {type(axis.domain).__name__} cannot be asked for in SQL at this depth. Give a smaller "
            "depth, or fit a file."
        )
    return scale if axis.groups is None else words.Grouped(scale, axis.groups)


def _cores(scale: Scale) -> Iterator[_Core]:
    """Return the places in a scale where values become numbers."""
    match scale:
        case words.Even() | words.Edges() | words.Codes():
            yield scale
        case words.Dealt():
            for part in scale.parts:
                yield from _cores(part)
        case words.Missing():
            yield from _cores(scale.present)
        case words.Grouped():
            yield from _cores(scale.of)
        case words.Rings():
            for ring in (scale.ring, scale.outer, scale.turn):
                yield from _cores(ring)


def _core_size(core: _Core) -> int:
    match core:
        case words.Even():
            return 1 << core.bits
        case words.Edges():
            return len(core.edges) + 1
        case words.Codes():
            return len(core.codes)


def has_table(scale: Scale) -> bool:
    """Say whether numbers are looked up in a table on the way."""
    if isinstance(scale, words.Missing):
        return has_table(scale.present)
    if isinstance(scale, words.Dealt):
        return any(has_table(part) for part in scale.parts)
    return isinstance(scale, words.Grouped | words.Codes)


def _is_rising(reading: Reading) -> bool:
    """Say whether a reading never falls where the stored number rises, but for what is missing."""
    kept = words.Clamped | words.Filled | words.Rounded | words.Counted
    return reading.stored != "text" and all(isinstance(step, kept) for step in reading.steps)


def _place_in(core: _Core) -> Callable[[Floats], Words]:
    """Return the number of the core as a function of the stored value; of a table of codes the position in it."""
    whole = words.Codes(core.of, np.arange(len(core.codes))) if isinstance(core, words.Codes) else core

    def place(x: Floats) -> Words:
        return answer(whole, lambda reading: follow(reading.steps, x, lambda _: x))

    return place


def _first_double(rises: Callable[[Floats], Words], wanted: int) -> float:
    """Return the least double at which a rising number reaches the wanted one."""
    first, last = (int(word) for word in ordered_bits(np.array([-LARGEST, LARGEST])))
    while first < last:
        middle = (first + last) // 2
        reached = int(rises(from_ordered_bits([middle]))[0]) >= wanted
        first, last = (first, middle) if reached else (middle + 1, last)
    return float(from_ordered_bits([last])[0] + 0.0)


def _nearest(x: str, number: Callable[[float], str]) -> str:
    """Return the nearest integer, half to even: below 2^52 a sum with 2^52 has no room for a fraction."""
    big = number(WHOLE)
    return (
        f"CASE WHEN {x} >= {big} OR {x} <= -{big} THEN {x} WHEN {x} >= 0 THEN ({x} + {big}) - {big} "
        f"ELSE ({x} - {big}) + {big} END"
    )


def _minus(x: str, low: float, number: Callable[[float], str]) -> str:
    return x if low == 0 else f"{x} - {number(low)}"


def _values(dialect: Dialect, given: str, stored: Sequence[StoredColumn]) -> str:
    """Return the statement that hands stored values over, as x0, x1, ..."""
    values = [f"{c.value.format(f'given.{dialect.name(c.name)}')} AS x{i}" for i, c in enumerate(stored)]
    return f"SELECT {', '.join(values) or '1 AS one'} FROM {given} AS given"


def trial(dialect: Dialect, given: str, stored: Sequence[StoredColumn]) -> str:
    """Return a statement that looks at every stored value: a query that fails does so before noise is drawn."""
    looked = ", ".join(f"count(x{i})" for i in range(len(stored))) or "count(*)"
    return f"SELECT {looked} FROM ({_values(dialect, given, stored)}) AS looked"


def subquery(dialect: Dialect, query: str | None, table: str | None) -> str:
    """Return a table or a query as it stands after FROM. Names are quoted; dots part them.

    Examples:
        >>> from privmeasure.sources.dialects import SQLITE_DIALECT
        >>> subquery(POSTGRES, None, "public.visits"), subquery(SQLITE_DIALECT, "SELECT 1 -- one;", None)
        ('"public"."visits"', '(SELECT 1 -- one\\n)')
    """
    if table is not None:
        return ".".join(map(dialect.name, table.split(".")))
    text = (query or "").strip().removesuffix(";")
    return f"({text}\n)"  # on a line of its own: the query may end in a comment


def masked_columns(rows: Sequence[Sequence[Any]], width: int) -> list[Any]:
    """Return the columns of an answer of integers, masked where they are NULL."""
    columns: list[Any] = []
    for i in range(width):
        cells = [row[i] for row in rows]
        missing = np.array([cell is None for cell in cells], bool)
        whole = np.array([0 if cell is None else cell for cell in cells], np.int64)
        columns.append(np.ma.masked_array(whole, missing))
    return columns
