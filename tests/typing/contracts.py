"""Every implementation satisfies its contract, and a wrong one does not: checked by the type checker, not run.

`make lint` runs mypy over this file; an ignore that is not needed is an error, so each one shows that mypy refuses.
"""

from fractions import Fraction

from privmeasure.app.commands import Commands
from privmeasure.cli.serving import LocalCommands
from privmeasure.counts import CellCounts, Source
from privmeasure.domains import Box, Categories, Circle, Domain, Finite, Integers, Nullable, Product, Sphere, Steps
from privmeasure.ledger import Ledger
from privmeasure.ledger.reservation import Spender
from privmeasure.mechanisms import PMM, PSMM, ColumnTree
from privmeasure.mechanisms.base import Mechanism
from privmeasure.noise.laplace import DiscreteLaplace
from privmeasure.noise.law import Facts, LaplaceFacts, Law
from privmeasure.plans.columns import ColumnPlan
from privmeasure.plans.plan import Plan
from privmeasure.plans.promise import Promise
from privmeasure.releases.base import Measure, Release
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.releases.table import TableRelease
from privmeasure.sources.arrays import ArraySource
from privmeasure.sources.databases import DatabaseSource, Driver
from privmeasure.sources.duckdb import DuckDBDriver
from privmeasure.sources.feather import FeatherTable
from privmeasure.sources.files import ParquetTable, TableFile, TextTable
from privmeasure.sources.postgres import PostgresDriver
from privmeasure.sources.sheets import SheetTable
from privmeasure.sources.spark import SparkSource
from privmeasure.sources.sqlite import SQLiteDriver
from privmeasure.sources.tables import TableSource
from privmeasure.sources.union import UnionSource
from privmeasure.spending import ReleaseLedger
from privmeasure.synthesizer import Synthesizer


def domains(
    a: Box, b: Categories, c: Circle, d: Finite, e: Integers, f: Nullable, g: Product, h: Sphere, i: Steps
) -> list[Domain]:
    return [a, b, c, d, e, f, g, h, i]


def commands(a: LocalCommands) -> list[Commands]:
    return [a]


def promises(a: Plan, b: ColumnPlan) -> list[Promise]:
    return [a, b]


def mechanisms(a: PMM, b: PSMM, c: ColumnTree) -> list[Mechanism]:
    return [a, b, c]


def measures(a: CellMeasure, b: ColumnsMeasure) -> list[Measure]:
    return [a, b]


def releases(a: CellMeasure, b: ColumnsMeasure, c: TableRelease) -> list[Release]:
    return [a, b, c]


def sources(a: ArraySource, b: TableSource, c: DatabaseSource, d: UnionSource, e: SparkSource) -> list[Source]:
    return [a, b, c, d, e]


def drivers(a: DuckDBDriver, b: PostgresDriver, c: SQLiteDriver) -> list[Driver]:
    return [a, b, c]


def files(a: TextTable, b: ParquetTable, c: FeatherTable, d: SheetTable) -> list[TableFile]:
    return [a, b, c, d]


def facts(a: LaplaceFacts, b: DiscreteLaplace) -> list[Facts]:
    return [a, b]


def laws(a: DiscreteLaplace) -> list[Law]:
    return [a]


def ledgers(a: Ledger) -> list[ReleaseLedger]:
    return [a]


def spenders(a: Synthesizer) -> list[Spender]:
    return [a]


class Wrong:
    """Has the names, and other types."""

    scale = 1.5
    variance = 2.0

    def count(self, partitions: str) -> list[CellCounts]:
        return []

    def tail(self, size: int) -> Fraction:
        return Fraction(size)


def refused(wrong: Wrong) -> None:
    source: Source = wrong  # type: ignore[assignment]
    law: Law = wrong  # type: ignore[assignment]
    release: Release = wrong  # type: ignore[assignment]
    ledger: ReleaseLedger = wrong  # type: ignore[assignment]
    print(source, law, release, ledger)
