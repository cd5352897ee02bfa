"""The facade: plan, fit, sample, save."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from privmeasure.counts import Source, is_source
from privmeasure.domains import Box, Domain, Points
from privmeasure.errors import ArgumentError, DataError, ReleaseError, SpentError
from privmeasure.hints import hinted
from privmeasure.mechanisms import PMM, PSMM, ColumnTree, Recipe
from privmeasure.mechanisms.base import Mechanism, presentable
from privmeasure.mechanisms.pmm import MAX_CELLS
from privmeasure.noise.entropy import Key
from privmeasure.notebook import html_table
from privmeasure.origin import ledger_words
from privmeasure.plans.columns import ColumnPlan
from privmeasure.plans.inverse import EPSILONS, ROWS, smallest
from privmeasure.plans.promise import Promise
from privmeasure.plans.recipe import DEFAULT
from privmeasure.privacy import COMPARED_ROWS_PER_PERSON, Neighbours, Privacy
from privmeasure.releases.base import Order, Release, with_record
from privmeasure.releases.sampling import check_draw
from privmeasure.releases.spark import SPARK, sample_on_spark
from privmeasure.releases.table import TableRelease
from privmeasure.sources.arrays import ArraySource
from privmeasure.sources.databases import DatabaseSource, Query, is_database, lazy_source, open_database
from privmeasure.sources.files import USUAL_TEXT, open_table
from privmeasure.sources.folders import check_table
from privmeasure.sources.people import People, fresh_salt, insecure_salt
from privmeasure.sources.spark import SparkSource, seen_by_executors, spark_files, spark_source
from privmeasure.sources.tables import TableSource
from privmeasure.sources.union import Union, UnionSource
from privmeasure.spending import ReleaseLedger, Spending
from privmeasure.tables import Layout, Schema
from privmeasure.tables.facts import asked, forbidden_pairs
from privmeasure.tables.frames import FrameKind, to_arrow
from privmeasure.tables.orders import is_order
from privmeasure.tables.texts import UTF8, TextForm, with_decimals
from privmeasure.threads import Progress

CENTRED = Recipe(placement="centre")
MOST_JOINT_COLUMNS = 3
"""Up to this number of columns (a place counts as two) `mechanism="auto"` takes one tree over all of them. The script
`benchmarks/crossover.py` finds the number again, from simulated shapes."""

LONGEST_PATH = 4096
"""Letters of the longest text that is taken for a path."""


class Places(NamedTuple):
    """Where files lie, and who reads them: a file system of pyarrow, a session of Spark; None for this machine."""

    filesystem: Any = None
    spark: Any = None


NOWHERE = Places()

MechanismName = Literal["auto", "pmm", "psmm", "columns"]


class Synthesizer:
    """Turns private points or tables into a public release. One object, one release: each fit spends epsilon.

    The space is a `Domain`, for arrays, or a `Schema`, for tables: dataframes of pandas, polars or pyarrow, and paths
    of CSV and Parquet files. What comes out has the form of what went in.

    Examples:
        >>> import numpy as np, privmeasure as pm
        >>> X = np.random.default_rng(0).normal(0.5, 0.1, (5000, 2))
        >>> synth = pm.Synthesizer(pm.Box([(0, 1), (0, 1)]), epsilon=1.0, neighbours="replace")
        >>> bound = synth.plan(rows=5000).guarantee       # before a single record is read
        >>> Y = synth.fit(X).sample()
        >>> Y.shape
        (5000, 2)

        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [31, 52, 47] * 500, "sex": ["F", "M", None] * 500})
        >>> schema = pm.Schema({"age": pm.Integer(0, 120), "sex": pm.Category(["F", "M"], nullable=True)})
        >>> synthetic = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove").fit(people).sample(1000)
        >>> type(synthetic).__name__, list(synthetic.columns), len(synthetic)
        ('DataFrame', ['age', 'sex'], 1000)
    """

    @hinted
    def __init__(
        self,
        space: Domain | Schema,
        *,
        epsilon: Any,
        neighbours: Neighbours,
        rows: int | None = None,
        rows_per_person: int = 1,
        delta: Any = 0,
        mechanism: MechanismName = "auto",
        recipe: Recipe = DEFAULT,
        depth: int | None = None,
        max_cells: int | None = None,
        threads: int | None = None,
    ) -> None:
        """Declare what is public and what is promised; checks everything before data are touched.

        `max_cells` is the largest tree that mechanism='pmm' holds in memory; deeper ones are evaluated lazily.
        """
        self._params = {
            "space": space,
            "epsilon": epsilon,
            "neighbours": neighbours,
            "rows": rows,
            "rows_per_person": rows_per_person,
            "delta": delta,
            "mechanism": mechanism,
            "recipe": recipe,
            "depth": depth,
            "max_cells": max_cells,
            "threads": threads,
        }
        if not isinstance(space, Domain | Schema):
            raise ArgumentError(
                "space must be a Schema, or a Domain such as Box([(0, 1), (0, 1)]), got "
                f"{type(space).__name__}. It says where rows may lie, and is public."
            )
        if mechanism not in ("auto", "pmm", "psmm", "columns"):
            raise ArgumentError(
                "mechanism must be 'pmm' (a tree over all columns), 'psmm' (a flat histogram), 'columns' (a tree of "
                f"columns, for wide tables) or 'auto', got {mechanism!r}."
            )
        self.schema = space if isinstance(space, Schema) else None
        person = None if self.schema is None else self.schema.person
        self._asked = Privacy(epsilon, neighbours, rows_per_person, person, delta)
        self._facts = () if self.schema is None else forbidden_pairs(self.schema)
        one_tree = recipe != DEFAULT or depth is not None or max_cells is not None
        chosen, self.choice = self._choose(mechanism, one_tree=one_tree)
        if self.schema is not None and self.schema.target:
            self.choice += f"; {_aimed(self.schema.target, chosen)}"
        self.domain: Domain = space if not isinstance(space, Schema) else space.domain
        if chosen == "psmm" and recipe not in (DEFAULT, CENTRED):
            raise ArgumentError("recipe is for mechanism='pmm'; with 'psmm' only its placement can be chosen.")
        if chosen != "pmm" and max_cells is not None:
            raise ArgumentError(f"max_cells is for mechanism='pmm', which holds a tree in memory, got {chosen!r}.")
        self.mechanism: Mechanism
        asked = self._asked
        if chosen == "columns":
            self.mechanism = self._column_tree(recipe, depth, rows, threads)
            self.domain = self.mechanism.domain
        elif chosen == "psmm":
            self.mechanism = PSMM(
                self.domain, asked, depth=depth, rows=rows, placement=recipe.placement, threads=threads
            )
        else:
            largest = MAX_CELLS if max_cells is None else max_cells
            self.mechanism = PMM(self.domain, asked, recipe, depth=depth, rows=rows, max_cells=largest, threads=threads)
        self.privacy = self.mechanism.privacy  # what is spent: without the delta where that would not pay
        self._threads = threads
        self._frame: FrameKind | str = "pyarrow"
        self._release: Release | None = None
        self._spending = Spending()

    @classmethod
    def of(cls, mechanism: PMM | PSMM) -> "Synthesizer":
        """Return a synthesizer of points that runs a mechanism, such as `PMM.paper`, with the arguments it was given.

        Examples:
            >>> import numpy as np, privmeasure as pm
            >>> synth = pm.Synthesizer.of(pm.PMM.paper(pm.Box([(0, 1)]), pm.Privacy(1, "replace")))
            >>> synth.fit_sample(np.random.default_rng(0).random((1000, 1))).shape
            (1000, 1)
        """
        if type(mechanism) not in (PMM, PSMM):
            raise ArgumentError(f"of takes a PMM or a PSMM, got {type(mechanism).__name__}.")
        given = dict(mechanism.given)
        privacy: Privacy = given.pop("privacy")
        if privacy.person is not None:
            raise ArgumentError(
                f"person = {privacy.person!r} names a column, and points have no column that names a person. Use "
                "Synthesizer(schema, ...) with a schema that has a person, or a Privacy without one."
            )
        if isinstance(mechanism, PSMM):
            given["recipe"] = Recipe(placement=given.pop("placement"))
        return cls(
            given.pop("domain"),
            epsilon=privacy.epsilon,
            neighbours=privacy.neighbours,
            rows_per_person=privacy.rows_per_person,
            delta=privacy.delta,
            mechanism="psmm" if isinstance(mechanism, PSMM) else "pmm",
            **given,
        )

    def _choose(self, mechanism: MechanismName, *, one_tree: bool) -> tuple[MechanismName, str]:
        """Return a mechanism and why: from public values, the number of columns above all.

        `one_tree` says whether an argument was given that only a tree over all columns has.
        """
        if mechanism != "auto":
            return mechanism, "as asked"
        if self.schema is None:
            return "pmm", "the space is a domain of points"
        if one_tree:
            return "pmm", "a recipe, depth or max_cells was given, which are those of one tree"
        width, columns = self.schema.domain.width, len(self.schema.data)
        counted = f"{columns} columns" + (f", {width} coordinates (a place has two)" if width > columns else "")
        if width <= MOST_JOINT_COLUMNS:
            return "pmm", f"{counted}: one tree over all of them, up to {MOST_JOINT_COLUMNS}"
        return "columns", f"{counted}: one tree over more than {MOST_JOINT_COLUMNS} would cut each too seldom"

    def _column_tree(self, recipe: Recipe, depth: int | None, rows: int | None, threads: int | None) -> ColumnTree:
        if recipe != DEFAULT or depth is not None:
            raise ArgumentError("recipe and depth are for mechanism='pmm'; with 'columns' each column has its own.")
        domain = self._params["space"] if self.schema is None else self.schema.node_domain
        targets = () if self.schema is None else self.schema.target_nodes
        return ColumnTree(domain, self._asked, rows=rows, threads=threads, facts=self._facts, targets=targets)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that the synthesizer was made with, as scikit-learn does."""
        return dict(self._params)

    def set_params(self, **params: Any) -> "Synthesizer":
        """Change arguments, as scikit-learn does; refused once a fit has begun or a ledger has booked it."""
        if self.spent or self._spending.under_way:
            raise SpentError("This synthesizer was fitted already: make a new one with other parameters.")
        if self._spending.held:
            raise SpentError(
                "This synthesizer is reserved in a ledger, and what is booked must be what is spent: make a new one "
                "with other parameters."
            )
        unknown = sorted(set(params) - set(self._params))
        if unknown:
            raise ArgumentError(f"Unknown parameter {unknown[0]!r}. There are: {', '.join(self._params)}.")
        made = Synthesizer(**(self._params | params))  # first: after an error nothing is changed
        vars(self).update(vars(made) | {"_spending": self._spending})  # what was given back to a ledger stays so
        return self

    @hinted
    def plan(self, rows: int | None = None, *, simulate: int = 0) -> Promise:
        """Say what would be measured and guaranteed for a number of rows, from public values; changes nothing.

        With mechanism='psmm', `simulate` draws of noise (20, say) give a sharper bound beside the closed form.
        """
        if not simulate:
            return self._in_words(self.mechanism.plan(rows))
        if not isinstance(self.mechanism, PSMM):
            raise ArgumentError(
                "simulate is for mechanism='psmm', whose bound can be simulated. The bounds of 'pmm' are closed forms."
            )
        return self._in_words(self.mechanism.plan(rows, simulate=simulate))

    def _in_words(self, plan: Promise) -> Promise:
        """Return the plan; if a constraint compares two columns, its words say what the guarantees are about."""
        if self.schema is None or not any(is_order(rule, self.schema.columns) for rule in self.schema.never):
            return plan
        return cast(Promise, replace(cast(Any, plan), compared=True))

    def guarantees(self, rows: int, epsilons: Iterable[Any] = (0.1, 0.2, 0.5, 1, 2, 5, 10)) -> list[Any]:
        """Return the plans for several epsilons: a table of guarantee against epsilon, from public values.

        A guarantee may rise a little with epsilon where the default depth jumps: the deeper tree serves data in few
        places far better. A `depth` that is given does away with the jumps.
        """
        return [self._at(epsilon).plan(rows) for epsilon in epsilons]

    def guarantees_per_person(self, rows: int, most: Iterable[int] = COMPARED_ROWS_PER_PERSON) -> list[Any]:
        """Return the plans for several `rows_per_person`, from public values: what keeping more of each person costs.

        All are for the same number of kept rows. How many are kept grows with `rows_per_person`, and is private.
        """
        asked = self._asked
        promises = [Privacy(asked.epsilon, asked.neighbours, k, asked.person, asked.delta) for k in most]
        return [self._changed(privacy=promise).plan(rows) for promise in promises]

    def independent_groups(self, rows: int, *, delta: Any = None) -> int:
        """Return into how many groups without links the columns of a plan fall: 1 if all are linked.

        `delta` asks for the plan with another delta. Public values alone.

        Examples:
            >>> import privmeasure as pm
            >>> schema = pm.Schema({f"x{i}": pm.Boolean() for i in range(20)})
            >>> synth = pm.Synthesizer(schema, epsilon=1, neighbours="add-remove")
            >>> synth.independent_groups(3000), synth.independent_groups(3000, delta="1e-6")
            (12, 9)
        """
        asked = self._asked
        wanted = asked.delta if delta is None else delta
        promise = Privacy(asked.epsilon, asked.neighbours, asked.rows_per_person, asked.person, wanted)
        plan = self._changed(privacy=promise).plan(rows)
        return plan.parts if isinstance(plan, ColumnPlan) else 1

    def epsilon_for(self, *, w1: float, rows: int) -> float:
        """Return the smallest epsilon, to two digits, that guarantees an expected W1 distance for a number of rows.

        Examples:
            >>> import privmeasure as pm
            >>> synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace")
            >>> synth.epsilon_for(w1=0.01, rows=50_000)
            0.09
        """
        self._check_joint("epsilon_for")
        return float(smallest(EPSILONS, lambda epsilon: self._at(epsilon).plan(rows).guarantee, w1, "epsilon"))

    def rows_for(self, *, w1: float, epsilon: Any = None) -> int:
        """Return the fewest rows, to two digits, for which an expected W1 distance is guaranteed at an epsilon."""
        self._check_joint("rows_for")
        privacy = self._asked if epsilon is None else self._asked.at(epsilon)
        mechanism = self._changed(privacy=privacy, rows=None)
        found: int = smallest(ROWS, lambda rows: mechanism.plan(rows).guarantee, w1, "rows")
        return found

    def _check_joint(self, question: str) -> None:
        if not self.mechanism.plan(1).joint:
            raise ArgumentError(
                f"{question} asks about the joint distribution, for which mechanism='columns' promises nothing. Look "
                "at plan(rows).columns, each with a guarantee of its own, or use mechanism='pmm'."
            )

    def _at(self, epsilon: Any) -> Mechanism:
        return self._changed(privacy=self._asked.at(epsilon))

    def _changed(self, **changes: Any) -> Mechanism:
        """Return the mechanism, a frozen value, with other choices."""
        return cast(Mechanism, replace(cast(Any, self.mechanism), **changes))

    def fit(
        self,
        data: Any,
        *,
        ledger: ReleaseLedger | None = None,
        account: str | None = None,
        progress: Progress | None = None,
        newlines_in_cells: bool = False,
        delimiter: str | None = None,
        decimal: str = ".",
        encoding: str = UTF8,
        filesystem: Any = None,
        spark: Any = None,
        insecure_seed: int | None = None,
    ) -> "Synthesizer":
        """Spend epsilon on the data, once. `insecure_seed` is for tests: the release is then marked not private.

        With `ledger` and `account` the release is recorded in a ledger before the data are opened, and marked as spent
        afterwards: `fit(data, ledger=Ledger("book.sqlite"), account="patients")`. An error before any noise was drawn
        frees the entry. Any object with `reserve(account, synthesizer)` can be the ledger; see `ReleaseLedger`.

        With a domain the data are an array; with a schema a dataframe, a pyarrow table, or the path of a file. With
        either they may lie in a database: a DuckDB relation, a `Query`, or a text such as "duckdb:file.db?table=visits"
        are counted by the engine. A path may be that of a folder, a pattern such as "visits/*.parquet", or an address
        such as "s3://bucket/visits"; `filesystem` is one of pyarrow in which it lies. A `Union` is several of these. A
        Spark frame is counted on its cluster, and so are files if `spark` is a session whose executors see them.

        Every line of a text file is a row, unless `newlines_in_cells` declares that quoted cells hold line ends;
        `delimiter` (without it by the end of the name), `decimal` and `encoding` say how it is written. A `Source` of
        one's own, which counts points of the domain wherever they lie, serves in the place of both.

        Guarantee:  privacy  what is raised holds no value of the data: not in its text, nor in the errors, notes and
                             frames that usually come with one. With `insecure_seed` all of them stay, for debugging
        """
        try:
            _check_ledger(ledger, account)
            if insecure_seed is not None and (ledger is not None or self._spending.held):
                raise ArgumentError(
                    "insecure_seed is for tests, and a ledger books releases that are private: leave it out."
                )
            if spark is not None and not isinstance(data, str | Path | Union):
                raise ArgumentError("spark= is for paths of files. A Spark frame knows its session: leave it out.")
            form, places = TextForm(delimiter, decimal, encoding, newlines_in_cells), Places(filesystem, spark)
            with self._booked(ledger, account):
                key = Key.fresh(self.release_id) if insecure_seed is None else Key.insecure(insecure_seed)
                salt = fresh_salt() if insecure_seed is None else insecure_salt(insecure_seed)
                self._spending.begin(key, self.mechanism.privacy)
                failure = self._attempt(data, key, salt, progress, form, places)
                data = progress = None  # a ledger that looks at the frame of an error finds no data there
                if failure is not None:
                    try:
                        raise failure
                    finally:
                        failure.__context__ = None  # what the caller was handling: it came with the raise
                        del failure
            if isinstance(self._release, TableRelease):  # public work, for which nothing private is read
                self._release = self._release.with_row_distances()
        except BaseException as error:
            error.add_note(self._cost)
            raise
        finally:
            del data, progress  # the frame of this call stays with an error
        return self

    @contextmanager
    def _booked(self, ledger: ReleaseLedger | None, account: str | None) -> Iterator[None]:
        """Record the release in a ledger around its fit; without a ledger do nothing."""
        if ledger is None or account is None:
            yield
            return
        self._spending.check_free()
        with ledger.reserve(account, self), self._spending.holding(self.mechanism.privacy):
            yield

    def _attempt(
        self, data: Any, key: Key, salt: bytes, progress: Progress | None, form: TextForm, places: Places
    ) -> BaseException | None:
        """Make the release, once the fit has begun; return the error that may be shown if that failed."""
        failure: BaseException | None = None
        try:
            self._make(data, key, salt, progress, form, places)
        except BaseException as error:
            if not key.private:
                raise
            failure = _bare(presentable(error, key))
            if self._release is not None and isinstance(failure, Exception):
                failure = ReleaseError(
                    f"What came after the release failed ({type(error).__name__}). Its cause is not shown, because it "
                    "may depend on the data. The release itself is finished, and nothing of it is lost."
                )
        finally:
            key.destroy()
            self._spending.end(finished=self._release is not None)
        return failure

    def _make(
        self, data: Any, key: Key, salt: bytes, progress: Progress | None, form: TextForm, places: Places
    ) -> None:
        """Make the release of the data and keep it at once. PRIVATE until the mechanism is done."""
        source, layout = self._open(data, progress, form, salt=salt, places=places)
        try:
            measure = with_record(self.mechanism.release(source, key, progress), self._spending.held)
            named = None if self.schema is None or layout is None else TableRelease(self.schema, layout, measure)
            self._release = measure if named is None else named
        finally:
            if isinstance(source, TableSource | DatabaseSource | SparkSource | UnionSource):
                source.close()

    def _open(
        self,
        data: Any,
        progress: Progress | None,
        form: TextForm = USUAL_TEXT,
        *,
        salt: bytes = b"",
        places: Places = NOWHERE,
    ) -> tuple[Source, Layout | None]:
        """Return the data behind the counting interface; checks names and types, which are public, and no value."""
        if isinstance(data, Union):
            return self._open_union(data, progress, form, places)
        if is_source(data):
            if self.privacy.person is not None:
                raise ArgumentError(
                    "The schema has a person, and a Source of one's own counts rows: nobody would keep to "
                    "rows_per_person. Give a table, or a schema without person and a Source that keeps to it."
                )
            return data, None if self.schema is None else Layout.natural(self.schema)
        if (base := self._database(data)) is not None:
            return base, None if self.schema is None else Layout.of(self.schema, base.names, base.types)
        if (cluster := spark_source(data, self.domain if self.schema is None else self.schema)) is not None:
            return self._on_spark(cluster)
        if self.schema is None:
            return ArraySource(data, width=self.domain.width, threads=self._threads), None
        if isinstance(data, str) and (len(data) > LONGEST_PATH or not data.isprintable()):
            raise DataError(
                "The data are a text that cannot be the path of a file, and it is not shown: it may be the table "
                "itself. Save the table to a file and give its path, or give a dataframe."
            )
        if isinstance(data, str | Path):
            place = data if places.spark is None else seen_by_executors(data, places.filesystem)
            try:
                table = open_table(place, form, numbers=with_decimals(self.schema), filesystem=places.filesystem)
            except DataError as error:  # in the words of `TableSource`: where damage is found depends on the size
                raise DataError(f"{error} Nothing was spent.") from None
            check_table(self.schema, table)
            if places.spark is not None:
                return self._on_spark(spark_files(places.spark, table, self.schema))
            names, types = table.names, table.types
        else:
            table, self._frame = to_arrow(data)
            names, types = tuple(table.schema.names), self._frame.types
            self.schema.check(names, types)
        people = None if self.schema.person is None else People(self.privacy.rows_per_person, salt)
        source = TableSource(table, self.schema, threads=self._threads, progress=progress, people=people)
        return source, Layout.of(self.schema, names, types)

    def _on_spark(self, source: SparkSource) -> tuple[Source, Layout | None]:
        """Return rows on a cluster, and remember that rows are to be drawn there."""
        self._frame = FrameKind(SPARK, names=source.names)
        return source, None if self.schema is None else Layout.of(self.schema, source.names, source.types)

    def _open_union(
        self, data: Union, progress: Progress | None, form: TextForm, places: Places
    ) -> tuple[Source, Layout | None]:
        """Return several tables behind one counting interface."""
        if self.privacy.person is not None:
            raise ArgumentError(
                "The schema has a person, and which rows of each are kept is decided over one table. Put the files "
                "into one folder and give that, or join the frames."
            )
        sources: list[Source] = []
        layouts: list[Layout] = []
        try:
            for table in data.tables:
                source, layout = self._open(table, progress, form, places=places)
                sources.append(source)
                layouts += [layout] if layout is not None else []
        except BaseException:
            UnionSource(sources).close()
            raise
        return UnionSource(sources), Layout.shared(layouts) if layouts else None

    def _database(self, data: Any) -> DatabaseSource | None:
        """Return rows that lie in a database behind the counting interface; None if they lie elsewhere."""
        space = self.domain if self.schema is None else self.schema
        if isinstance(data, Query):
            return data.source(space)
        return open_database(data, space) if is_database(data) else lazy_source(data, space)

    @property
    def spent(self) -> bool:
        """Whether epsilon counts as spent: a fit drew noise, whether it finished or not."""
        return self._spending.drawn

    @property
    def finished(self) -> bool:
        """Whether there is a release: it stays, whatever fails after it."""
        return self._release is not None

    @property
    def recorded(self) -> bool | None:
        """Whether a ledger has recorded what was spent; None before a fit has drawn noise."""
        if self._release is None:
            return self._spending.held if self.spent else None
        return None if self._release.origin is None else self._release.origin.recorded

    @property
    def _cost(self) -> str:
        """What a fit has cost, as far as it is known, as one sentence."""
        if not self.spent:
            return "Nothing was spent."
        kept = "there is no release" if self._release is None else "the release is kept, as `release_`"
        return f"{self.privacy.short} is spent; {kept}.".capitalize()

    @property
    def release_id(self) -> str:
        """The random id that the release will have, or has: a ledger books it before the data are opened."""
        origin = None if self._release is None else self._release.origin
        return self._spending.release_id if origin is None else origin.id

    def hold(self) -> Privacy:
        """Fix what will be spent, for a ledger that books it, and return it; `Ledger.reserve` calls this.

        From then on parameters cannot change, and no other entry can be made for this release.
        """
        promise = self.mechanism.privacy
        self._spending.hold(promise)
        return promise

    def give_back(self) -> bool:
        """End what `hold` began, if no noise was drawn, and say whether that is so; a fit then needs a new entry."""
        return self._spending.give_back()

    @property
    def release_(self) -> Any:
        """The release, after `fit`: a `CellMeasure` of points, or a `TableRelease`."""
        if self._release is None and self.spent:
            raise SpentError("The fit did not finish: there is no release, but epsilon counts as spent. Start anew.")
        if self._release is None:
            raise SpentError("There is no release yet: call fit(data) first.")
        return self._release

    @property
    def plan_(self) -> Promise:
        """The plan as it was carried out, restated at the released number of rows."""
        plan: Promise = self.release_.plan
        return plan

    @hinted
    def sample(
        self, n: int | None = None, *, seed: int | None = None, order: Order = "random", where: str | None = None
    ) -> Any:
        """Return synthetic rows in the form of the data: an array, or the same kind of frame (pyarrow for files).

        After a fit on a cluster a Spark frame, whose rows are drawn there; they have no order. `where` is a condition
        on the columns of a table; see `TableRelease.sample`.
        """
        release = self.release_
        if isinstance(self._frame, FrameKind) and self._frame.library == SPARK:
            return sample_on_spark(release, n, seed=seed, where=where, names=self._frame.names)
        if isinstance(release, TableRelease):
            return release.sample(n, seed=seed, order=order, frame=self._frame, threads=self._threads, where=where)
        if where is not None:
            raise ArgumentError("where needs a table with named columns: give the synthesizer a Schema.")
        return release.sample(n, seed=seed, order=order, threads=self._threads)

    def fit_sample(
        self,
        data: Any,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: str | None = None,
        ledger: ReleaseLedger | None = None,
        account: str | None = None,
        progress: Progress | None = None,
        newlines_in_cells: bool = False,
        delimiter: str | None = None,
        decimal: str = ".",
        encoding: str = UTF8,
    ) -> Any:
        """Fit the data, once, and return synthetic rows in their form: `fit(data).sample(n)`.

        The release stays, as `release_`: more rows from it cost nothing. How a text file is written, and the ledger
        that records the release, are said as `fit` takes them.

        Examples:
            >>> import numpy as np, privmeasure as pm
            >>> synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace")
            >>> synth.fit_sample(np.full(900, 0.5), 5).shape
            (5, 1)
        """
        check_draw(n, seed, "random", "rows")  # before anything is spent
        if where is not None and self.schema is None:
            raise ArgumentError("where needs a table with named columns: give the synthesizer a Schema.")
        if self.schema is not None:
            asked(self.schema, where)
        try:
            self.fit(
                data,
                ledger=ledger,
                account=account,
                progress=progress,
                newlines_in_cells=newlines_in_cells,
                delimiter=delimiter,
                decimal=decimal,
                encoding=encoding,
            )
        finally:
            del data, progress  # the frame of this call stays with an error
        try:
            return self.sample(n, seed=seed, where=where)
        except BaseException as error:
            error.add_note(self._cost)
            raise

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make a copy, which has booked nothing; one of a release that was made has the same release."""
        vars(self).update(state | {"_spending": copy(state["_spending"])})

    def save(self, path: str | Path) -> None:
        """Write the release to one file, which `privmeasure.load` reads."""
        self.release_.save(path)

    def __repr__(self) -> str:
        """Show the outline: what is public, and whether something was spent."""
        space = f"{len(self.schema.data)} columns" if self.schema is not None else type(self.domain).__name__
        delta = f"delta={float(self.privacy.delta):g}, " if self.privacy.delta else ""
        promise = f"epsilon={float(self.privacy.epsilon):g}, {delta}neighbours={self.privacy.neighbours!r}"
        return f"Synthesizer({space}, {promise}, {self._state})"

    @property
    def _state(self) -> str:
        if not self.spent:
            return "reserved in a ledger, not fitted" if self._spending.held else "not fitted"
        return "spent without a release" if self._release is None else f"released, {ledger_words(self.recorded)}"

    def _repr_html_(self) -> str:
        """Show what is public, and the release if there is one, in a notebook."""
        kept = [(name, value) for name, value in self._params.items() if name != "space" and value is not None]
        parts = [html_table(kept, title=repr(self))]
        if self._release is not None:
            parts.append(cast(Any, self._release)._repr_html_())
        elif self.schema is not None:
            parts.append(self.schema._repr_html_())
        else:
            parts.append(html_table([["space", self.domain]]))
        return "".join(parts)


def _aimed(target: Sequence[str], mechanism: MechanismName) -> str:
    """Say what a target changes."""
    names = " and ".join(map(repr, target))
    if mechanism == "columns":
        return f"pairs with {names} are chosen first, and fewer in all where rows are few"
    return f"the target {names} changes nothing, as all columns are measured together"


def _check_ledger(ledger: object, account: object) -> None:
    """Refuse a ledger without the name of an account, an account without a ledger, and what is no ledger."""
    if (ledger is None) != (account is None):
        missing, given = ("account", "ledger") if account is None else ("ledger", "account")
        raise ArgumentError(
            f"{given} was given without {missing}. The two go together: ledger=Ledger('book.sqlite'), "
            "account='patients' records the release, and leaving out both records nothing. The data were not opened."
        )
    if ledger is not None and not callable(getattr(ledger, "reserve", None)):
        raise ArgumentError(
            f"ledger must be a Ledger, or an object with reserve(account, synthesizer), got {type(ledger).__name__}. "
            "Open the ledger of a file with Ledger('book.sqlite')."
        )


def _bare(error: BaseException) -> BaseException:
    """Return an error without what it came from: other errors, notes, and frames with private rows in them."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    vars(error).pop("__notes__", None)
    return error


@hinted
def synthesize(
    X: Any,  # noqa: N803 - the name that everyone gives to a data matrix
    *,
    epsilon: Any,
    neighbours: Neighbours,
    bounds: Iterable[tuple[float, float]],
    rows: int | None = None,
    rows_per_person: int = 1,
    threads: int | None = None,
    ledger: ReleaseLedger | None = None,
    account: str | None = None,
    insecure_seed: int | None = None,
) -> Points:
    """Return synthetic points in the place of private ones: arrays in, arrays out.

    `bounds` are public, one (low, high) a column; values beyond them are clamped. `rows` is a public number of rows to
    plan for, if there is one. A one-dimensional X gives a one-dimensional result, and so do lists of one column; in
    lists, what is not a number counts as missing. `ledger` and `account` record the release, as in `Synthesizer.fit`.
    If sampling fails after the fit, the error has the `synthesizer`, and with it the release.

    Examples:
        >>> import numpy as np, privmeasure as pm
        >>> ages = np.random.default_rng(0).gamma(9, 5, 10_000)
        >>> synthetic = pm.synthesize(ages, epsilon=1, neighbours="replace", bounds=[(0, 120)])
        >>> synthetic.shape, bool(abs(np.median(synthetic) - np.median(ages)) < 2)
        ((10000,), True)
    """
    synthesizer = Synthesizer(
        Box(bounds),
        epsilon=epsilon,
        neighbours=neighbours,
        rows=rows,
        rows_per_person=rows_per_person,
        threads=threads,
    )
    try:
        synthesizer.fit(X, ledger=ledger, account=account, insecure_seed=insecure_seed)
        points: Points = synthesizer.sample(seed=insecure_seed)
    except BaseException as error:
        vars(error)["synthesizer"] = synthesizer  # it has the release, if that was finished
        raise
    flat = points.shape[1] == 1 and getattr(X, "ndim", 1) == 1  # lists of one column too: [] and [[x]] look the same
    return points[:, 0] if flat else points
