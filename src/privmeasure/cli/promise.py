"""From what was typed to a synthesizer: the same for every command that plans or spends."""

from pathlib import Path
from typing import TYPE_CHECKING

from privmeasure.cli import options
from privmeasure.cli.preparing import read_schema

if TYPE_CHECKING:
    from privmeasure.synthesizer import Synthesizer
    from privmeasure.tables import Schema


def promised(
    schema: Path,
    *,
    columns: str | None,
    epsilon: str,
    neighbours: str,
    rows_per_person: int,
    mechanism: str,
    depth: int | None,
    rows: int | None = None,
    threads: int | None = None,
) -> "tuple[Schema, Synthesizer]":
    """Return a schema file's schema and the synthesizer of a promise, or say what is wrong. No data are opened."""
    from privmeasure.synthesizer import Synthesizer

    declared = read_schema(schema, columns)
    synthesizer = Synthesizer(
        declared,
        epsilon=options.read_epsilon(epsilon),
        neighbours=options.read_neighbours(neighbours),
        rows=rows,
        rows_per_person=rows_per_person,
        mechanism=options.read_mechanism(mechanism),
        depth=depth,
        threads=threads,
    )
    return declared, synthesizer
