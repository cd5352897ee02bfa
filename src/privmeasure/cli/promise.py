"""From what was typed to a synthesizer: the same for every command that plans or spends."""

from typing import TYPE_CHECKING, NamedTuple

from privmeasure.cli import options
from privmeasure.cli.preparing import open_schema

if TYPE_CHECKING:
    from privmeasure.synthesizer import Synthesizer
    from privmeasure.tables import Schema


class Asked(NamedTuple):
    """What must be said: of which table, and what is promised."""

    schema: options.SchemaFile
    epsilon: options.Epsilon
    neighbours: options.NeighboursOption


class Chosen(NamedTuple):
    """What may be said beside it."""

    rows_per_person: options.RowsPerPerson = 1
    delta: options.Delta = "0"
    columns: options.Columns = None
    target: options.Targets = None
    mechanism: options.MechanismOption = "auto"
    depth: options.Depth = None


def promise(
    asked: Asked, chosen: Chosen, *, rows: int | None = None, threads: int | None = None
) -> "tuple[Schema, Synthesizer]":
    """Return a schema file's schema and the synthesizer of a promise, or say what is wrong. No data are opened."""
    from privmeasure.synthesizer import Synthesizer

    declared = open_schema(asked.schema, chosen.columns)
    if chosen.target:
        declared = declared.aiming_at(chosen.target)
    synthesizer = Synthesizer(
        declared,
        epsilon=options.read_epsilon(asked.epsilon),
        neighbours=options.read_neighbours(asked.neighbours),
        rows=rows,
        rows_per_person=chosen.rows_per_person,
        delta=options.read_delta(chosen.delta),
        mechanism=options.read_mechanism(chosen.mechanism),
        depth=chosen.depth,
        threads=threads,
    )
    return declared, synthesizer
