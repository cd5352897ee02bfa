"""How wrong is it here? The mechanism, run again on rows of its own release: a parametric bootstrap.

    data -> release -> sample          the truth of the first arrow is private,
    sample -> release* -> sample*      that of the second is known, and it is drawn from nearly the same law.

**Why it is free.** It reads the release, whose plan, masses and number of rows are public, and fresh randomness. No
counts of the data are asked for, and the rows that go through the mechanism again are synthetic. So whatever comes out
is post-processing, and costs no epsilon. The number of rows is that of the release: the true one under "replace", where
it is public, else the released one.

It stands beside the synthesizer and not among the releases, because it runs a mechanism.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, cast

import numpy as np

from privmeasure.conditions.orders import ColumnOrder
from privmeasure.domains import Floats, Points
from privmeasure.errors import ArgumentError, is_whole
from privmeasure.hints import hinted
from privmeasure.mechanisms import PMM, PSMM, ColumnTree, Mechanism, Recipe
from privmeasure.metrics.answers import correlations
from privmeasure.metrics.nearness import joined, rows_apart, share_of_range
from privmeasure.noise.entropy import Key
from privmeasure.plans.recipe import DEFAULT
from privmeasure.releases.bands import Band, BinBands, Spread, TypicalError, covering_error
from privmeasure.releases.base import Measure, Release
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.releases.intervals import Intervals, measured, value_codes
from privmeasure.releases.table import TableRelease
from privmeasure.releases.witnesses import (
    CorrelationNoise,
    ShareNoise,
    Witness,
    counted_groups,
    mean_band,
    narrowed,
    part_inside,
    quantile_bands,
)
from privmeasure.sources.arrays import ArraySource
from privmeasure.tables.frames import from_arrow
from privmeasure.tables.variables import QUANTILES, Variable, variables
from privmeasure.threads import Progress

Statistic = Callable[[Any], float]
"""A function of the sampled rows: a frame, or an array of points."""

MOST_LISTED_SHARES = 200
"""Values of a category whose shares get bands."""
MOST_CORRELATED = 40
"""Columns of numbers up to which all correlations are looked at."""
MOST_SPREAD_PAIRS = 60
"""Pairs of columns whose distances are looked at, those that tell most of each other."""
JOINT_ROWS = 400
"""Rows of a sample whose distance is computed exactly where there are many columns."""
JOINT_WIDTH = 3
"""Coordinates up to which whole rows are compared on cells."""
NOISE_DRAWS, FEW_NOISE_DRAWS = 60, 20
"""Simulations of the noise of a column's counts; of a tree of more than `MOST_LEVELS` levels."""
MOST_LEVELS = 16


@hinted
def typical_error(
    release: Release,
    runs: int = 20,
    *,
    functions: Mapping[str, Statistic] | None = None,
    frame: str = "pyarrow",
    level: float = 0.9,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TypicalError:
    """Estimate how far a release is from its data: W1 by column, by pair, of whole rows; bands around its answers.

    `functions` are statistics of your own: each takes the rows of a sample (a table as `frame` says, or an array of
    points) and returns a number. A band holds the number that the real column gives about `level` of the time: its
    plain quantile in its type, mean, share or correlation, after values beyond the bounds are clamped. The value is
    that of the release, as `release.mean` and `release.quantile` give it; the band may lie on one side of it. A seed
    makes the result reproducible; it weakens nothing, as the rows that are released again are synthetic.

    An estimate, not a bound: `make bench-typical` says how often bands hold. Those of quantiles and means follow from
    the noisy counts, if the release has them, and from the runs; the others from the runs alone, which do not see what
    the release smoothed away.

    Guarantee:  privacy  post-processing of the release
                cost     `runs` fits and samples of as many rows as were released

    Examples:
        >>> import numpy as np, privmeasure as pm
        >>> ages = np.random.default_rng(0).gamma(9, 5, 5000)
        >>> synth = pm.Synthesizer(pm.Box([(0, 120)]), epsilon=1, neighbours="replace").fit(ages)
        >>> found = pm.typical_error(synth.release_, runs=10, functions={"old": lambda rows: (rows > 65).mean()})
        >>> bool(abs(found.functions["old"].value - (ages > 65).mean()) < 0.05), 0 < found.columns["x0"].typical < 0.05
        (True, True)
    """
    if not is_whole(runs) or runs < 2:
        raise ArgumentError(f"runs must be a whole number of at least 2, got {runs!r}. 20 take seconds.")
    if not isinstance(level, float) or not 0 < level < 1:
        raise ArgumentError(f"level must be a number between 0 and 1, the share of bands that hold, got {level!r}.")
    if not isinstance(release, TableRelease) and not hasattr(release, "columns_of_file"):
        raise ArgumentError(f"release must be a release, as load returns it, got {type(release).__name__}.")
    # one seed for every draw: a synthetic world needs no secret
    seeds = np.random.SeedSequence(seed).generate_state(2 * runs + 1, np.uint32).tolist()
    made = _Bootstrap(release, functions or {}, frame, threads, seed=seeds[0])
    sample = made.rows(release, seeds[0])
    released = made.look(sample)
    errors: list[_Look] = []
    distances: list[_Distances] = []
    for run in range(runs):
        rows = made.drawn(release, seeds[1 + 2 * run])
        key = Key.fresh() if seed is None else Key.insecure(seeds[1 + 2 * run])
        again = made.rows(made.run(made.points(rows), key), seeds[2 + 2 * run])
        truth, answer = made.look(rows), made.look(again)
        errors.append({name: answer[name] - truth[name] for name in truth})
        made.witness(made.points(rows), made.points(again))
        distances.append(made.compare(made.points(rows), made.points(again), seed=seeds[0]))
        if progress is not None:
            progress("typical error", (run + 1) / runs)
    return made.gathered(released, made.points(sample), errors, distances, level)


_Look = dict[tuple[str, str], Floats]
"""Numbers by kind and name."""
_Distances = dict[tuple[str, ...], tuple[float, ...]]


class _Bootstrap:
    """One release, the mechanism that made it, and what is looked at in its rows."""

    def __init__(
        self, release: Release, functions: Mapping[str, Statistic], frame: str, threads: int | None, *, seed: int
    ) -> None:
        self.table = release if isinstance(release, TableRelease) else None
        self.measure = cast(Measure, release if self.table is None else self.table.measure)
        targets = () if self.table is None else self.table.schema.target_nodes
        self.mechanism = replace(cast(Any, same_mechanism(self.measure, targets)), threads=threads)
        self.found = variables(self.measure.domain if self.table is None else self.table.schema)
        self.functions, self.frame, self.threads = functions, frame, threads
        self.total = release.total
        numeric = [v for v in self.found if v.numbers(np.empty((0, v.present.width))) is not None]
        self.numeric = numeric if len(numeric) <= MOST_CORRELATED else []
        self.means = numeric
        self.pairs = self._pairs(release)
        self.witnesses: dict[str, list[Witness]] = {}
        self.share_noise: dict[str, ShareNoise] = {}
        self.pair_noise: dict[tuple[str, str], CorrelationNoise] = {}
        self._hear_noise(seed)

    def _hear_noise(self, seed: int) -> None:
        """Let the noisy counts of each tree, and simulations of their noise, speak of its columns and their pairs."""
        trees: dict[int, list[Variable]] = {}
        for v in self.found:
            if v.present.width == 1:
                number = 0
                if isinstance(self.measure, ColumnsMeasure):
                    number, _ = self.measure.factor(v.places.start)
                trees.setdefault(number, []).append(v)
        for number, members in trees.items():
            known, _ = measured(self.measure, members[0].places.start)
            for v in members:
                if v.has_quantiles or v in self.means:
                    _, place = self.measure.part(v.places.start)
                    curved = getattr(v.column, "curved", False)
                    axis = Intervals.of(known.measure, place, v.amounts, step=v.step, curved=curved)
                    self.witnesses[v.name] = [Witness(axis, axis.masses, QUANTILES, biased=True)]
            draws = NOISE_DRAWS if known.measure.level <= MOST_LEVELS else FEW_NOISE_DRAWS
            counts = known.counts(draws, np.random.default_rng([seed, number]))
            leaves = next(counts, None)
            if leaves is not None:
                listeners = list(self._listeners(known.measure, members, leaves))
                for errors in counts:
                    for listener in listeners:
                        listener(errors)

    def _listeners(
        self, measure: CellMeasure, members: Sequence[Variable], leaves: Floats
    ) -> Iterator[Callable[[Floats], None]]:
        """Make what speaks of the variables of one tree, from the estimate of its counts; yield what hears errors."""
        values: dict[str, Floats] = {}
        for v in members:
            if v.name in self.witnesses:
                axis = self.witnesses[v.name][0].axis
                noise = Witness(axis, axis.sums(leaves), QUANTILES, biased=False)
                self.witnesses[v.name].insert(0, noise)
                values[v.name] = axis.values
                yield noise.add_noise
            if 0 < len(v.labels) <= MOST_LISTED_SHARES:
                _, place = self.measure.part(v.places.start)
                self.share_noise[v.name] = ShareNoise(value_codes(measure, place, len(v.labels)), v.count, leaves)
                yield self.share_noise[v.name].add
        for a, b in combinations([v.name for v in members if v in self.numeric], 2):
            self.pair_noise[a, b] = CorrelationNoise(values[a], values[b], leaves)
            yield self.pair_noise[a, b].add

    def witness(self, truth: Points, answer: Points) -> None:
        """Show a run to the witnesses."""
        for v in self.found:
            if v.name in self.witnesses:
                *_, runs = self.witnesses[v.name]
                place = v.places.start
                runs.add_run(runs.axis.counts(truth[:, place]), runs.axis.counts(answer[:, place]))

    def _pairs(self, release: Release) -> list[tuple[Variable, Variable]]:
        """Return the pairs that were measured together, or all of them in one tree."""
        if self.table is not None and isinstance(self.measure, ColumnsMeasure):
            by_name = {v.name: v for v in self.found}
            told = self.table.pair_information()[:MOST_SPREAD_PAIRS]
            return [(by_name[a], by_name[b]) for a, b, _ in told if a in by_name and b in by_name]
        return list(combinations(self.found, 2))[:MOST_SPREAD_PAIRS]

    def rows(self, release: Release, seed: int) -> Any:
        return release.sample(seed=seed, threads=self.threads)

    def drawn(self, release: Release, seed: int) -> Any:
        """Return independent rows of the release: as uneven as data are, while a sample is as even as its masses."""
        rows = self.rows(release, seed)
        chosen = np.random.default_rng(seed).integers(0, max(1, len(rows)), len(rows))
        return rows[chosen] if self.table is None else rows.take(chosen)

    def points(self, rows: Any) -> Points:
        return cast(Points, rows) if self.table is None else self.table.schema.encode(rows.combine_chunks())

    def run(self, points: Points, key: Key) -> Release:
        """Return the release of rows of the release."""
        measure = self.mechanism.release(ArraySource(points, width=points.shape[1], threads=self.threads), key)
        return measure if self.table is None else TableRelease(self.table.schema, self.table.layout, measure)

    def look(self, rows: Any) -> _Look:
        """Return every number that gets a band."""
        points, found = self.points(rows), cast(_Look, {})
        for v in self.found:
            own = points[:, v.places]
            found["bins", v.name] = v.shares(own)
        if len(self.numeric) > 1:
            matrix = np.column_stack([cast(Floats, v.numbers(points[:, v.places])) for v in self.numeric])
            found["correlations", ""] = correlations(matrix)
        if self.functions:
            given = rows if self.table is None else self._framed(rows, points)
            for name, function in self.functions.items():
                found["functions", name] = np.array([float(function(given))])
        return found

    def _framed(self, rows: Any, points: Points) -> Any:
        """Return rows in the kind of frame that functions take, with the types that `sample` gives there."""
        table = cast(TableRelease, self.table)
        layout = table.schema.layout_for(self.frame, table.layout)
        return from_arrow(rows if layout == table.layout else table.schema.decode(points, layout), self.frame)

    def compare(self, x: Points, y: Points, *, seed: int) -> _Distances:
        found: _Distances = {}
        for v in self.found:
            found[v.name,] = (share_of_range(x[:, v.places], y[:, v.places], v.space),)
        for a, b in self.pairs:
            at = np.r_[a.places, b.places]
            found[a.name, b.name] = (share_of_range(x[:, at], y[:, at], joined([a.space, b.space])),)
        domain = self.measure.domain
        found[()] = (
            (share_of_range(x, y, domain),)
            if domain.width <= JOINT_WIDTH
            else rows_apart(x, y, domain, rows=JOINT_ROWS, seed=seed)
        )
        return found

    def gathered(
        self, released: _Look, points: Points, errors: list[_Look], distances: list[_Distances], level: float
    ) -> TypicalError:
        """Return bands and spreads of all runs; `points` are the rows of the release that `released` is about."""

        def bands(kind: str, name: str, within: tuple[float, float]) -> list[Band]:
            wrong = np.stack([e[kind, name] for e in errors])
            return [Band.of(float(v), e, level, within) for v, e in zip(released[kind, name], wrong.T, strict=True)]

        correlated: dict[tuple[str, str], Band | None] = {}
        if len(self.numeric) > 1:
            wrong = [e["correlations", ""] for e in errors]
            correlated = self._correlations(released["correlations", ""], wrong, points, level)
        spreads = {
            names: Spread.of([d[names][0] for d in distances], level, [d[names][1] for d in distances if d[names][1:]])
            for names in distances[0]
        }
        half = {v.name: covering_error(np.abs([e["bins", v.name] for e in errors]), level) for v in self.found}
        return TypicalError(
            runs=len(errors),
            level=level,
            rows=self.total,
            columns={names[0]: s for names, s in spreads.items() if len(names) == 1},
            pairs={(n[0], n[1]): s for n, s in spreads.items() if len(n) == 2},
            joint=spreads[()],
            means={v.name: Band(self._mean(v), *mean_band(self.witnesses[v.name], level)) for v in self.means},
            quantiles={v.name: self._quantiles(v, level) for v in self.found if v.has_quantiles},
            shares={
                v.name: self._shares(v, bands("bins", v.name, (0.0, 1.0)), level)
                for v in self.found
                if 0 < len(v.labels) <= MOST_LISTED_SHARES
            },
            correlations=correlated,
            functions={name: bands("functions", name, (-np.inf, np.inf))[0] for name in self.functions},
            bins={v.name: BinBands(released["bins", v.name], half[v.name]) for v in self.found},
        )

    def _mean(self, v: Variable) -> float:
        """Return the mean of a column that the release states."""
        if self.table is not None:
            return self.table.mean()[v.name]
        return float(cast(Any, self.measure).mean()[v.places.start])

    def _quantiles(self, v: Variable, level: float) -> dict[float, Band]:
        """Return the quantiles of a column that the release states, with their bands."""
        places = [cast(Any, self.measure).quantile(q, column=v.places.start) for q in QUANTILES]
        values, found = v.read(np.array(places)).tolist(), quantile_bands(self.witnesses[v.name], level)
        return {q: Band(value, *ends) for q, value, ends in zip(QUANTILES, values, found, strict=True)}

    def _shares(self, v: Variable, runs: list[Band], level: float) -> dict[str, Band]:
        """Return the bands of the shares of listed values: from the noisy counts, for values that had their cell."""
        if v.name in self.share_noise:
            noise = self.share_noise[v.name]
            for code, (low, high) in enumerate(zip(*noise.limits(level), strict=True)):
                if (noise.codes == code).any():
                    runs[code] = Band(runs[code].value, max(float(low), 0.0), min(float(high), 1.0))
        return dict(zip((*v.labels, "missing"), runs, strict=False))

    def _correlations(
        self, values: Floats, errors: list[Floats], points: Points, level: float
    ) -> dict[tuple[str, str], Band | None]:
        """Return the bands of the correlations of columns that were measured together, and None for other pairs.

        A pair was counted in groups of values. What the columns share inside of a group is lost before any run: at most
        the geometric mean of the parts of their variances that lie inside.
        """
        found: dict[tuple[str, str], Band | None] = {}
        for at, (a, b) in enumerate(combinations(self.numeric, 2)):
            groups = counted_groups(self.measure, a.places.start, b.places.start, points)
            found[a.name, b.name] = None
            if groups is not None:
                parts = [
                    part_inside(cast(Floats, v.numbers(points[:, v.places])), codes)
                    for v, codes in zip((a, b), groups, strict=True)
                ]
                unseen = float(np.sqrt(np.prod(parts)))
                band = Band.of(float(values[at]), [e[at] for e in errors], level, (-1.0, 1.0))
                ends = band.low, band.high
                if (a.name, b.name) in self.pair_noise:
                    ends = narrowed(self.pair_noise[a.name, b.name].limits(level), ends)
                found[a.name, b.name] = Band(band.value, max(ends[0] - unseen, -1.0), min(ends[1] + unseen, 1.0))
        return found


def same_mechanism(measure: Measure, targets: tuple[int, ...] = ()) -> Mechanism:
    """Return the mechanism that made a measure, by its plan: the first whose plan at the released rows is the same.

    Of a wide table the schema knows the `targets`. A plan does not say which number of rows, or depth, was given: each
    possibility is tried. Where none fits, as with plans of older versions, a tree of the same depth is taken.
    """
    plan = cast(Any, measure.plan)
    made: list[Any]
    if isinstance(measure, ColumnsMeasure):
        public = not plan.size_budget and not plan.privacy.rows_are_public
        facts = tuple(fact for fact in measure.facts if not isinstance(fact, ColumnOrder))  # orders concern rows alone
        made = [
            ColumnTree(measure.domain, plan.privacy, rows=rows, facts=facts, targets=targets)
            for rows in ([] if public else [None]) + [plan.rows]
        ]
        return cast(Mechanism, next((one for one in made if one.law == plan.law), made[0]))
    tree = cast(Any, measure)
    given = [(None, None), (None, plan.rows), (plan.depth, None), (plan.depth, plan.rows)]
    if plan.mechanism == "psmm":
        made = [PSMM(tree.domain, plan.privacy, depth=d, rows=n, placement=tree.placement) for d, n in given]
    else:
        recipe = _recipe(tree.recipe)
        made = [PMM(tree.domain, plan.privacy, recipe, depth=d, rows=n) for d, n in given]
    plans = [one.plan(plan.rows) for one in made]
    for wanted in ("budgets", "levels"):
        for one, other in zip(made, plans, strict=True):
            if (other.levels, getattr(other, wanted)) == (plan.levels, getattr(plan, wanted)):
                return cast(Mechanism, one)
    return cast(Mechanism, made[2])


def _recipe(names: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a release; one of a lazy tree, which cannot combine its levels, as it was asked for."""
    try:
        return Recipe(**({"shrinkage": "none"} | dict(names)))
    except (ArgumentError, TypeError):
        return replace(DEFAULT, placement=names["placement"])
