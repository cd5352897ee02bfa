"""How finely a plan tells the values of each column apart, and what to do where that is too coarse. Public values only.

In a tree of columns every column has a tree of its own. One tree over all columns has as many cuts as its depth, and
each goes to the column whose cells are widest, by weighted distance. The cells of a number halve with each cut of it;
two values of a category are at distance 1 until every one stands alone. So categories with many values come first, and
a table with many columns has few cuts for each.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from privmeasure.domains import Domain, Nullable, Product
from privmeasure.plans.promise import Promise
from privmeasure.tables.columns.base import MISSING, DataColumn
from privmeasure.tables.orders import is_order
from privmeasure.tables.schema import Schema

USUAL_DELTA = "1e-6"
"""The delta that advice mentions."""
ASSUMED = "Constraints are assumed: they were not checked against the data."
"""What every page says that shows a constraint."""


@dataclass(frozen=True, slots=True)
class LostCells:
    """What becomes of the cells of a column that have no value of its own: by its declaration alone, so it is public.

    `missing` are cells that hold nothing, `unread` those that cannot be read or hold what is not declared.
    """

    name: str
    missing: str
    unread: str

    @property
    def stay(self) -> bool:
        """Whether all of them stay missing."""
        return self.missing == self.unread == MISSING

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {"name": self.name, "missing": self.missing, "unread": self.unread}


def lost_cells(schema: Schema) -> list[LostCells]:
    """Return where missing and unread cells of each column would go: what is no fact must not become one unseen.

    Examples:
        >>> from privmeasure.tables import Category, Number
        >>> schema = Schema({"creatinine": Number(0, 20), "cause": Category(["heart", "other"], nullable=True)})
        >>> [(cells.missing, cells.unread) for cells in lost_cells(schema)]
        [('0', '0'), ('missing', 'missing')]
    """
    return [LostCells(name, c.becomes(), c.becomes(c.stray)) for name, c in schema.data.items()]


def undecided_advice(schema: Schema, undecided: Sequence[str]) -> list[str]:
    """Return a warning of the columns whose file does not say whether cells may be missing."""
    names = [name for name in schema.data if name in undecided]
    if not names:
        return []
    return [
        f"{listed(names)} {'does' if len(names) == 1 else 'do'} not say whether cells may be missing. nullable = false "
        "is taken: a missing cell becomes a value, as if it had been measured. Write nullable = true, or false, in the "
        "schema."
    ]


@dataclass(frozen=True, slots=True)
class ColumnResolution:
    """How many cuts a column gets, how finely they tell its values apart, and what is guaranteed, in its own units.

    `node` is the column's tree among those of the plan, `range` how far apart its values are at most, as that tree
    measures distance, and `guarantee` the bound for its tree, which holds for each of its columns.
    """

    name: str
    node: int
    cuts: int
    text: str
    range: float
    guarantee: float
    column: DataColumn

    @property
    def vacuous(self) -> bool:
        """Whether nothing is guaranteed of the column: the cells are there, but noise may be all that is in them."""
        return self.range > 0 and self.guarantee >= self.range

    @property
    def resolved(self) -> str:
        """How finely values are told apart, and whether the guarantee supports it."""
        return f"{self.text} (the guarantee says nothing)" if self.vacuous else self.text

    def in_units(self, distance: float) -> str:
        """Say a distance of the column's tree in the units of the column."""
        if self.range <= 0:
            return "exact"
        return "says nothing" if distance >= self.range else self.column.in_units(distance / self.range)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        found = {"name": self.name, "cuts": self.cuts, "resolution": self.text, "vacuous": self.vacuous}
        return found | {"guarantee": self.guarantee / self.range if self.range > 0 else 0.0}


def resolutions(schema: Schema, plan: Promise) -> list[ColumnResolution]:
    """Return what the cells of a plan know of each column.

    Examples:
        >>> from privmeasure import Synthesizer
        >>> from privmeasure.tables import Category, Integer
        >>> schema = Schema({"age": Integer(17, 90, unit="year"), "sex": Category(["F", "M"])})
        >>> plan = Synthesizer(schema.domain, epsilon=1, neighbours="add-remove", depth=4).plan(5000)
        >>> [(column.name, column.cuts, column.text) for column in resolutions(schema, plan)]
        [('age', 3, 'about 16 years'), ('sex', 1, 'single values')]
    """
    nodes: Sequence[Domain] = [schema.domain] if plan.joint else schema.node_domain.factors
    columns, found = iter(schema.data.items()), []
    for i, (node, tree) in enumerate(zip(nodes, plan.trees, strict=True)):
        parts = [(1.0, node, tree.depth)]
        if isinstance(node, Product):  # its columns share the cuts of one tree
            parts = list(zip(node.weights, node.factors, node.cuts(tree.depth), strict=True))
        for weight, factor, cuts in parts:
            name, column = next(columns)
            wide = weight * factor.diameter(0)
            found.append(ColumnResolution(name, i, cuts, column.fineness(cuts), wide, tree.guarantee, column))
    return found


def advice(schema: Schema, plan: Promise) -> list[str]:
    """Return warnings in plain words: columns that come out blind, and categories that leave no cuts for the rest."""
    facts = _facts(schema) + _large_delta(plan)
    if not plan.joint:
        return _blind_columns(schema, plan) + facts
    found, depth = resolutions(schema, plan), plan.trees[0].depth
    domains = dict(zip(schema.data, schema.domain.factors, strict=True))
    warnings = []
    blind = [column.name for column in found if column.cuts == 0 and domains[column.name].deepest > 0]
    if blind:
        paid = float(plan.privacy.signal(plan.privacy.budget, plan.rows))
        warnings.append(
            f"{listed(blind)} {'gets' if len(blind) == 1 else 'get'} no cut: {plan.rows:,} rows at epsilon "
            f"{float(plan.privacy.epsilon):g} (about {paid:,.3g} units of signal) pay for {depth} cuts, and there "
            f"are {len(found)} columns. Such a column comes out spread over its declared range. Choose fewer columns "
            "with --columns, give those that matter a larger weight in the schema, or use --mechanism columns."
        )
    many = [column for column in found if schema.data[column.name].unordered]
    open_ones = [c.name for c in many if domains[c.name].diameter(c.cuts) > 0]
    others = [column for column in found if not schema.data[column.name].unordered]
    if open_ones and others and all(_told(column, domains[column.name]) <= 1 for column in others):
        taken = sum(column.cuts for column in many)
        warnings.append(
            f"Categories take {taken} of {depth} cuts, and the values of {listed(open_ones)} are still not told "
            f"apart: they stay at distance 1 until each stands alone. {listed([c.name for c in others])} "
            f"{'stays' if len(others) == 1 else 'stay'} coarse for it. Give categories a weight below 1 in the schema "
            "(weight = 0.1), an order or a taxonomy, leave some out with --columns, or use --mechanism columns."
        )
    return warnings + facts


def standing_alone_advice(schema: Schema, plan: Promise, names: Sequence[str]) -> list[str]:
    """Say which columns of a release depend on no other one, and what would join them.

    Examples:
        >>> from privmeasure import Synthesizer
        >>> from privmeasure.tables import Boolean
        >>> schema = Schema({"died": Boolean()})
        >>> plan = Synthesizer(schema, epsilon=1, neighbours="add-remove").plan(500)
        >>> standing_alone_advice(schema, plan, ["died"])[0][:67]
        "These columns stand alone: 'died'. In this release they depend on n"
    """
    if not names:
        return []
    ways = [] if set(names) <= set(schema.target) else ["a target in the schema, for a column that people will predict"]
    ways += ["fewer columns", "more epsilon"] + ([] if plan.privacy.delta else [f"a delta of {USUAL_DELTA}"])
    return [
        f"These columns stand alone: {', '.join(map(repr, names))}. In this release they depend on no other column by "
        "more than noise explains, so a model that is trained on the rows cannot predict them. What would join them in "
        f"another release: {'; '.join(ways)}."
    ]


def independent_groups_advice(groups: int, with_delta: int | None) -> list[str]:
    """Say into how many groups without links the columns of a plan fall, and into how many with a delta.

    Examples:
        >>> independent_groups_advice(12, 4)[0][:84]
        '12 groups of columns will be independent: too few rows to link all columns. With a d'
        >>> independent_groups_advice(1, 1)
        []
    """
    if groups < 2:
        return []
    other = "" if with_delta is None else f" With a delta of {USUAL_DELTA} there are {with_delta}."
    return [
        f"{groups} groups of columns will be independent: too few rows to link all columns.{other} A target in the "
        "schema, fewer columns or more epsilon link more of them."
    ]


def _large_delta(plan: Promise) -> list[str]:
    """Warn of a delta that would allow to give away one row of the table, whole."""
    delta = plan.privacy.delta
    if not delta or delta * plan.rows <= 1:
        return []
    return [
        f"delta = {float(delta):g} is above 1 / rows ({plan.rows:,}): a mechanism that publishes one row at random "
        "would keep such a promise. Ours does not, but nobody who reads the promise can know: choose a delta far "
        f"below, such as {1 / (100 * plan.rows):.0e}."
    ]


def _facts(schema: Schema) -> list[str]:
    """Warn that constraints are assumed, and that guarantees are those of the released columns."""
    count = len(schema.never)
    if not count:
        return []
    they, them, s = ("it is", "it", "") if count == 1 else ("they are", "them", "s")
    said = (
        f"The schema has {count} constraint{s} (never): {they} assumed, and not checked against the data. Every row "
        f"satisfies {them}, whatever the data say. If the two contradict each other, the guarantee is about the "
        "released columns, not about the rows."
    )
    if any(is_order(rule, schema.columns) for rule in schema.never):
        said += (
            " Guarantees are those of the released columns. How far a comparison of two columns moves the rows from "
            "these is not known before the release, which then states it (row_distances)."
        )
    return [said]


def _blind_columns(schema: Schema, plan: Promise) -> list[str]:
    blind = [
        " and ".join(node) for node, own in zip(schema.nodes, plan.trees, strict=True) if own.levels and own.vacuous
    ]
    if not blind:
        return []
    return [
        f"For {listed(blind)} the guarantee says nothing: {plan.rows:,} rows at epsilon "
        f"{float(plan.privacy.epsilon):g} are shared by {sum(1 for own in plan.trees if own.levels)} columns"
        f"{' (a group counts as one)' if schema.groups else ''}. Choose fewer columns with --columns, or spend more "
        "epsilon."
    ]


def _told(column: ColumnResolution, domain: Domain) -> int:
    """Return the cuts that tell values apart; the first of a nullable column only finds what is missing."""
    return column.cuts - isinstance(domain, Nullable)


def listed(names: Sequence[str], *, quoted: bool = True) -> str:
    """Return names in a row, at most five of them."""
    shown = [repr(name) if quoted else name for name in names[:5]]
    if len(names) > 5:
        return f"{', '.join(shown)} and {len(names) - 5} more columns"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def schema_advice(schema: Schema, *, decided: Collection[str] = ()) -> list[str]:
    """Return what in a valid schema may not be what was meant. It looks at the schema alone.

    `decided` are the columns for which the schema file has `nullable`, true or false.

    Examples:
        >>> from privmeasure.tables import Category, Schema
        >>> schema_advice(Schema({"sex": Category(["F", "M"])}))
        ["column 'sex' has no unknown: any other value, and a missing one, becomes 'F'. Add unknown, or nullable."]
    """
    return [
        f"column {name!r} {remark}"
        for name, column in schema.data.items()
        for remark in column.remarks(decided=name in decided)
    ]
