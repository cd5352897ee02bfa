"""The public declaration of a table: its columns, and how their cells become points."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from privmeasure.domains import Points, Product
from privmeasure.errors import ArgumentError, DataError, ReleaseFileError, SchemaError
from privmeasure.notebook import html_table
from privmeasure.tables.arrow import cast, is_text, plain_type
from privmeasure.tables.columns.base import DataColumn, Types
from privmeasure.tables.columns.derived import Derived
from privmeasure.tables.columns.fields import ColumnError, did_you_mean
from privmeasure.tables.columns.fixed import Constant, Drop
from privmeasure.tables.columns.kinds import (
    Column,
    as_target,
    disagreements,
    format_problem,
    from_fields,
    schema_format,
    to_fields,
)
from privmeasure.tables.derived_values import derive
from privmeasure.tables.deriving import Derivation, derivations, needed_names
from privmeasure.tables.expressions import names_in
from privmeasure.tables.layout import Layout
from privmeasure.tables.limits import size_problem
from privmeasure.tables.orders import rule_names
from privmeasure.tables.persons import refuses_ids
from privmeasure.tables.suffixes import ask_for_delimiter

if TYPE_CHECKING:
    import pyarrow as pa

    from privmeasure.tables.template import Draft

LONGEST_SHOWN = 60
"""Letters of a declared value that a notebook shows."""
MOST_PROBLEMS = 20
"""That one error lists."""


class Schema:
    """The columns of a table: declared by a person who knows the subject, never detected.

    Examples:
        >>> import pyarrow as pa
        >>> from privmeasure.tables import Category, Drop, Integer
        >>> schema = Schema({"name": Drop(), "age": Integer(17, 90), "sex": Category(["F", "M"])})
        >>> table = pa.table({"name": ["Ann", "Bob"], "age": [37, 99], "sex": ["F", "X"]})
        >>> schema.check(table.column_names, table.schema.types)
        >>> schema.encode(table)
        array([[37.,  0.],
               [90.,  0.]])
        >>> schema.decode(schema.encode(table), Layout.of(schema, table.column_names, table.schema.types)).to_pydict()
        {'age': [37, 90], 'sex': ['F', 'F']}
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        *,
        groups: Iterable[Iterable[str]] = (),
        never: Iterable[str] = (),
        person: str | None = None,
        target: str | Iterable[str] | None = None,
    ) -> None:
        """Take the columns by name; `groups` are to be released jointly, `never` are combinations that cannot occur.

        `person` names a dropped column that says whose row it is: of each person at most `rows_per_person` rows are
        kept, and what is promised is promised to persons, however many rows they have. `target` names the columns that
        people will predict from others: of a wide table, pairs with one of them are chosen first.
        """
        if not isinstance(columns, Mapping) or not columns:
            raise SchemaError('A schema needs at least one column, like Schema({"age": Integer(17, 90)}).')
        self.columns: Mapping[str, Column] = MappingProxyType(dict(columns))
        self.groups = tuple(tuple(group) for group in groups)
        self.never = (never,) if isinstance(never, str) else tuple(never)
        self.person = person
        self.target: tuple[str, ...] = as_target(target)
        problems = disagreements(self.columns, self.groups, self.never, self.person, self.target)
        if problems:
            raise SchemaError(*(problem for _, problem in problems))

    @classmethod
    def from_toml(cls, path: str | Path) -> "Schema":
        """Read a schema file; a SchemaError says what is wrong, by line."""
        from privmeasure.tables.toml import read_schema

        return cls(**read_schema(path)._asdict())

    @classmethod
    def from_text(cls, text: str, name: str = "schema") -> "Schema":
        """Read the text of a schema file; `name` is what errors call it."""
        from privmeasure.tables.toml import parse_schema

        return cls(**parse_schema(text, name)._asdict())

    @staticmethod
    def template(frame: Any, *, guess: bool = False, declared_categories: bool = False) -> "Draft":
        """Return a draft from the names and types of a dataframe, never from its values; `complete` fills its gaps.

        With `guess`, names propose kinds and round bounds. `declared_categories` says that the categories of pandas
        columns were declared, not made of the values that occur, and so are public.

        Examples:
            >>> import pyarrow as pa
            >>> draft = Schema.template(pa.table({"age": [37], "smoker": [True]}), guess=True)
            >>> draft.columns["age"]
            {'type': 'integer', 'low': 0, 'high': 120, 'unit': 'year'}
            >>> Schema(draft.complete({"age": {"high": 110}}))
            Schema({'age': Integer, 'smoker': Boolean})
        """
        from privmeasure.tables.template import frame_draft

        return frame_draft(frame, guess=guess, declared_categories=declared_categories)

    def to_toml(self) -> str:
        """Return the text of a schema file that `from_text` reads back as this schema."""
        from privmeasure.tables.toml import write_schema

        return write_schema(self.columns, self.groups, self.never, self.person, self.target)

    @classmethod
    def from_json(cls, value: Any) -> "Schema":
        """Read what `to_json` wrote; a SchemaError says what does not fit."""
        if not isinstance(value, Mapping) or not isinstance(value.get("columns"), list):
            raise SchemaError("A schema in JSON must be an object with a list of columns.")
        if problem := format_problem(value.get("format"), value.get("person"), value.get("target")):
            raise SchemaError(f"The schema {problem}")
        if problem := size_problem(len(value["columns"]), 0):
            raise SchemaError(problem)
        columns: dict[str, Column] = {}
        for fields in value["columns"]:
            if not isinstance(fields, Mapping) or not isinstance(fields.get("name"), str) or fields["name"] in columns:
                raise SchemaError("Every column of a schema in JSON must be an object with a name of its own.")
            name = fields["name"]
            try:
                columns[name] = from_fields({field: v for field, v in fields.items() if field != "name"})
            except ColumnError as fault:
                raise SchemaError(f"column {name!r} {fault.predicate}") from None
        groups, never = value.get("groups", []), value.get("never", [])
        if not (
            isinstance(groups, list)
            and all(isinstance(group, list) and all(isinstance(name, str) for name in group) for group in groups)
            and isinstance(never, list)
        ):
            raise SchemaError("The groups of a schema in JSON must be lists of names, and never a list of texts.")
        return cls(columns, groups=groups, never=never, person=value.get("person"), target=value.get("target"))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value that `from_json` reads back; columns are a list, so that their order survives."""
        person = {} if self.person is None else {"person": self.person}
        target = {"target": list(self.target)} if self.target else {}
        return (
            person
            | target
            | {
                "format": schema_format(self.columns, self.person, self.target, self.never),
                "columns": [{"name": name, **to_fields(column)} for name, column in self.columns.items()],
                "groups": [list(group) for group in self.groups],
                "never": list(self.never),
            }
        )

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of the TOML format, for editors."""
        from privmeasure.tables.editors import json_schema

        return json_schema()

    @cached_property
    def domain(self) -> Product:
        """The product of the data columns' domains, in order, with their weights."""
        columns = list(self.data.values())
        try:
            return Product([column.domain for column in columns], weights=[column.weight for column in columns])
        except ArgumentError as error:
            raise SchemaError(f"The columns cannot be put together: {error}") from None

    @cached_property
    def nodes(self) -> tuple[tuple[str, ...], ...]:
        """The columns that have a domain, in order, those of a group side by side where its first one is."""
        group = {name: members for members in self.groups for name in members}
        nodes = [group.get(name, (name,)) for name, column in self.columns.items() if isinstance(column, DataColumn)]
        return tuple(dict.fromkeys(nodes))

    @property
    def target_nodes(self) -> tuple[int, ...]:
        """The nodes that hold a column that people will predict."""
        return tuple(j for j, node in enumerate(self.nodes) if set(node) & set(self.target))

    @cached_property
    def data(self) -> Mapping[str, DataColumn]:
        """The columns that have a domain, in the order of the nodes."""
        found = {name: self.columns[name] for node in self.nodes for name in node}
        return MappingProxyType({name: column for name, column in found.items() if isinstance(column, DataColumn)})

    @cached_property
    def places(self) -> Mapping[str, tuple[int, int]]:
        """The node that holds each column of data, and the first coordinate of the column there."""
        found: dict[str, tuple[int, int]] = {}
        for j, node in enumerate(self.nodes):
            start = 0
            for name in node:
                found[name] = j, start
                start += self.data[name].domain.width
        return MappingProxyType(found)

    @cached_property
    def node_domain(self) -> Product:
        """The product of the nodes: a column, or a group as a product of its own. For the wide-table mechanism."""
        data, factors = self.data, []
        for node in self.nodes:
            columns = [data[name] for name in node]
            weights = [column.weight for column in columns]
            factors.append(
                columns[0].domain if len(node) == 1 else Product([c.domain for c in columns], weights=weights)
            )
        return Product(factors)

    @property
    def sources(self) -> tuple[str, ...]:
        """All file columns that the schema names, those that are dropped too."""
        return tuple(source for name, column in self.columns.items() for source in column.sources(name))

    @cached_property
    def derived(self) -> dict[str, Derivation]:
        """The derived columns, each after those that it needs, and how they are computed."""
        return derivations(self.columns)[0]

    @property
    def natural_types(self) -> "dict[str, pa.DataType]":
        """All file columns that are written, with the types that `decode` gives where no storage type came in."""
        return {
            output: type
            for name, column in self.columns.items()
            for output, type in zip(column.outputs(name), self._natural(name, column), strict=True)
        }

    def has_room(self, name: str, type: "pa.DataType") -> bool:
        """Say whether a storage type holds whatever a file column may get; other columns refuse one that does not."""
        return name not in self.derived or self.derived[name].has_room(type)

    def _natural(self, name: str, column: Column) -> "Sequence[pa.DataType]":
        return (self.derived[name].type,) if isinstance(column, Derived) else column.natural

    def check(self, names: Sequence[str], types: Types | None, *, by_folders: Iterable[str] = ()) -> None:
        """Compare with the header and the storage types of a table (None for CSV); no value is looked at.

        Columns that the names of folders add (`by_folders`) do not show that a file has a header.
        """
        present, declared = set(names), set(self.sources)
        has_header = not declared.isdisjoint(present.difference(by_folders))
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice and has_header:
            raise DataError(
                f"The table has more than one column named {', '.join(map(repr, twice[:MOST_PROBLEMS]))}. Rename them: "
                "every column needs a name of its own."
            )
        free = {s for name, column in self.columns.items() if column.optional for s in column.sources(name)}
        free -= {self.person}  # nobody would know whose rows they are
        missing = [source for source in self.sources if source not in present | free]
        extra = [name for name in names if name not in declared]
        listed = slice(MOST_PROBLEMS)  # a wrong file has thousands of them
        problems = [
            f"The table has no column {source!r}, which the schema declares.{did_you_mean(source, extra[:1000])} "
            "Correct the name, or take the column out of the schema."
            for source in missing[listed]
        ]
        problems += [
            f"The table has a column {name!r}, which the schema does not declare.{did_you_mean(name, missing[:1000])} "
            'Declare it, with type = "drop" if it must not be used.'
            for name in extra[listed]
        ]
        if problems and not has_header:
            problems, missing, extra = [self._ask_for_header()], [], []
        elif types is not None:
            problems += self._contradictions(dict(zip(names, types, strict=True)))
        more = len(problems) - MOST_PROBLEMS + len(missing[MOST_PROBLEMS:]) + len(extra[MOST_PROBLEMS:])
        if more > 0:
            problems[MOST_PROBLEMS:] = [f"And {more} more of the kind."]
        if problems and (question := ask_for_delimiter(names)):
            problems.insert(0, question)
        if problems:
            raise SchemaError(*problems)

    def _ask_for_header(self) -> str:
        """Return what to say of a table that has none of the columns: what stands in the first line may be a row."""
        more = f" and {len(self.sources) - 5} more" if len(self.sources) > 5 else ""
        return (
            "The table has none of the columns that the schema declares. Does the file have a header? Its first line "
            f"must name the columns: {', '.join(map(repr, self.sources[:5]))}{more}. The line is not shown, because it "
            "may hold data."
        )

    def _contradictions(self, types: "Mapping[str, pa.DataType | None]") -> list[str]:
        layout = Layout.of(self, list(types), list(types.values()))
        written = dict(zip(layout.names, layout.types, strict=True))
        storage = None if self.person is None else types.get(self.person)
        refusal = None if storage is None else refuses_ids(storage)
        problems = [] if refusal is None else [f"column {self.person!r} {refusal}"]
        for name, column in self.columns.items():
            given = {source: type for source in column.sources(name) if (type := types.get(source)) is not None}
            refuses = self.derived[name].refuses if isinstance(column, Derived) else column.refuses
            refused = [(source, reason) for source, type in given.items() if (reason := refuses(type)) is not None]
            problems += [f"column {source!r} {reason}" for source, reason in refused]
            sources = [types.get(source) for source in column.sources(name)]
            outputs = [written.get(output) for output in column.outputs(name)]
            if not refused and given and not isinstance(column, Derived) and not _is_usable(column, sources, outputs):
                told = ", ".join(str(type) for type in given.values())
                problems.append(
                    f"column {name!r} is stored as {told}, which cannot be read and written. Cast it to a plain type."
                )
        return problems

    def encode(self, batch: "pa.RecordBatch | pa.Table") -> Points:
        """Return the points of the rows. Never raises because of a value; nothing is kept."""
        points, end = np.empty((batch.num_rows, self.domain.width)), 0
        for name, column in self.data.items():
            # private cells: row by row, so neighbouring tables stay neighbouring
            part = column.encode([batch.column(source) for source in column.sources(name)])
            end += part.shape[1]
            points[:, end - part.shape[1] : end] = part
        return points

    def decode(self, points: Points, layout: Layout) -> "pa.Table":
        """Return the table of some points, with the names, order and types of a layout."""
        import pyarrow as pa

        types = dict(zip(layout.names, layout.types, strict=True))
        cells: dict[str, Any] = {}
        widths = {name: column.domain.width for name, column in self.data.items()}
        ends = dict(zip(widths, accumulate(widths.values()), strict=True))  # groups stand side by side in the points
        derived = self.derive(points)
        for name, column in self.columns.items():
            end, width = ends.get(name, 0), widths.get(name, 0)
            outputs = column.outputs(name)
            if not set(outputs) <= set(types):
                raise SchemaError(f"column {name!r} is not in the layout. Make the layout from the same schema.")
            try:
                if isinstance(column, Derived):
                    made = self.derived[name].cells(derived[name])
                    parts = [made if types[name] is None else cast(made, types[name])]
                else:
                    parts = column.decode(points[:, end - width : end], [types[output] for output in outputs])
            except pa.ArrowException:
                raise SchemaError(f"column {name!r} does not fit the storage type of the layout.") from None
            cells |= zip(outputs, parts, strict=True)
        if set(types) != set(cells):
            raise SchemaError("The layout has columns that the schema does not write. Make it from the same schema.")
        return pa.table({name: cells[name] for name in layout.names})

    def layout_for(self, library: str, layout: Layout) -> Layout:
        """Return the layout of rows in a kind of frame: in pandas, dates are instants even if they came as text."""
        if library != "pandas":
            return layout
        instants = {name: column.instants for name, column in self.data.items() if column.instants is not None}

        def shown(name: str, type: "pa.DataType | None") -> "pa.DataType | None":
            return instants[name] if name in instants and (type is None or is_text(plain_type(type))) else type

        return Layout(layout.names, tuple(map(shown, layout.names, layout.types)))

    def derive(self, points: Points) -> dict[str, Any]:
        """Return the values of the derived columns for some points, as `deriving` has them. No row raises."""
        if not self.derived:
            return {}
        needed, end = needed_names(self.derived), 0
        fixed = {name: column for name, column in self.columns.items() if isinstance(column, Constant)}
        cells = {name: column.decode(points, [None])[0] for name, column in fixed.items() if name in needed}
        for name, column in self.data.items():
            start, end = end, end + column.domain.width
            if needed & set(outputs := column.outputs(name)):
                cells |= zip(outputs, column.decode(points[:, start:end], column.value_types), strict=True)
        return derive(self.derived, cells, len(points))

    def only(self, names: Iterable[str]) -> "Schema":
        """Return the schema with all other columns dropped. A place goes by its own name.

        Examples:
            >>> from privmeasure.tables import Boolean, Integer
            >>> Schema({"age": Integer(17, 90), "smoker": Boolean()}).only(["age"]).columns["smoker"]
            Drop()
        """
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in self.columns:
                raise ArgumentError(
                    f"{name!r} is no column of the schema.{did_you_mean(str(name), list(self.columns))}"
                )
        columns: dict[str, Column] = {}
        for name, column in self.columns.items():
            if name in wanted:
                columns[name] = column
            else:
                columns |= {source: Drop(optional=column.optional) for source in column.sources(name)}
        outputs = {output for name in wanted for output in self.columns[name].outputs(name)}
        for name in wanted:
            needed = names_in(column.tree) if isinstance(column := self.columns[name], Derived) else ()
            if left := [source for source in needed if source not in outputs]:
                raise ArgumentError(f"{name!r} is derived from {left[0]!r}, which is left out. Keep both, or neither.")
        groups = [group for group in self.groups if set(group) <= set(wanted)]
        never = [rule for rule in self.never if rule_names(rule, self.columns) <= set(wanted)]
        target = [name for name in self.target if name in wanted]
        return Schema(columns, groups=groups, never=never, person=self.person, target=target)

    def aiming_at(self, target: str | Iterable[str]) -> "Schema":
        """Return the schema with other columns that people will predict, in the place of its own.

        Examples:
            >>> from privmeasure.tables import Boolean, Integer
            >>> Schema({"age": Integer(17, 90), "smoker": Boolean()}, target="age").aiming_at("smoker").target
            ('smoker',)
        """
        return Schema(self.columns, groups=self.groups, never=self.never, person=self.person, target=target)

    def among(self, names: Iterable[str]) -> "Schema":
        """Return the schema for a comparison of data: columns without them need not be in the table, nor be like ours.

        Derived columns are left out too, since nothing of them is measured.
        """
        present = set(names)
        columns: dict[str, Column] = {}
        for name, column in self.columns.items():
            if name in self.data or (present.issuperset(column.sources(name)) and not isinstance(column, Derived)):
                columns[name] = column
            elif present.issuperset(column.sources(name)):
                columns[name] = Drop()
        return Schema(columns)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by what was declared."""
        return _declared, (dict(self.columns), self.groups, self.never, self.person, self.target)

    def __eq__(self, other: object) -> bool:
        """Compare columns (in order), groups, rules, whose rows they are, and what people will predict."""
        if not isinstance(other, Schema):
            return NotImplemented
        mine, its = (
            (list(schema.columns.items()), schema.groups, schema.never, schema.person, schema.target)
            for schema in (self, other)
        )
        return mine == its

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the columns and their kinds."""
        kinds = ", ".join(f"{name!r}: {type(column).__name__}" for name, column in self.columns.items())
        person = "" if self.person is None else f", person={self.person!r}"
        target = f", target={list(self.target)!r}" if self.target else ""
        return f"Schema({{{kinds}}}{person}{target})"

    def _repr_html_(self) -> str:
        """Show the columns and what is declared of them, in a notebook."""
        rows = []
        for name, column in self.columns.items():
            fields = {field: value for field, value in to_fields(column).items() if field != "type"}
            told = ", ".join(f"{field} = {_shortened(value)}" for field, value in fields.items())
            rows.append([name, column.tag(), told])
        rest = [["groups", "", ", ".join(group)] for group in self.groups] + [
            ["never", "assumed, not checked against the data", rule] for rule in self.never
        ]
        rest += [["target", "", ", ".join(self.target)]] if self.target else []
        return html_table(rows + rest, heads=["column", "type", "declared"], title=f"Schema: {len(rows)} columns")


def _shortened(value: Any) -> str:
    """Return a declared value, of a long list or table only how long it is."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= LONGEST_SHOWN else f"{len(value)} in all" if hasattr(value, "__len__") else text[:60]


def _is_usable(column: Column, sources: Types, outputs: Types) -> bool:
    """Say whether types can be read and written, by a public row without values: a private one must not be the first.

    What could be read and not written, or not found again in the file of a release, would only show once epsilon is
    spent.
    """
    import pyarrow as pa

    try:
        points = column.encode([pa.nulls(1, pa.null() if type is None else type) for type in sources])
        column.decode(points, outputs)
        Layout.from_json(Layout(("",) * len(outputs), tuple(outputs)).to_json())
    except (pa.ArrowException, ReleaseFileError, TypeError, ValueError):
        return False  # a zone that is not known, or runs that Arrow cannot unroll
    return True


def _declared(
    columns: Mapping[str, Column],
    groups: Iterable[Iterable[str]],
    never: Iterable[str],
    person: str | None,
    target: Iterable[str] = (),
) -> Schema:
    return Schema(columns, groups=groups, never=never, person=person, target=target)
