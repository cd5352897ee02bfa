"""A release of columns in a file: what its header says, and its parts. Everything that is read is checked."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from privmeasure.domains import Domain
from privmeasure.errors import ReleaseFileError
from privmeasure.model.agreements import Agreements
from privmeasure.model.pairs import Pair
from privmeasure.model.ranks import Groups
from privmeasure.noise.law import LawName, check_scale
from privmeasure.plans.columns import ColumnPlan
from privmeasure.privacy import read_fraction
from privmeasure.releases import files
from privmeasure.releases.cells import CellMeasure

Described = tuple[dict[str, Any], files.Part]
"""A part, and what it is."""


def column_parts(columns: Sequence[CellMeasure]) -> list[Described]:
    """Return the parts of all columns, each with the number of its column."""
    return [(about | {"column": j}, part) for j, column in enumerate(columns) for about, part in column.parts()]


def pair_parts(pairs: Sequence[Pair]) -> list[Described]:
    """Return the parts of all pairs: the noisy counts, cell = row * (number of columns) + column."""
    return [
        (
            {
                "kind": "pair",
                "first": pair.first,
                "second": pair.second,
                "first_groups": pair.first_groups.tolist(),
                "second_groups": pair.second_groups.tolist(),
                "scale": str(pair.scale),
                "shape": list(pair.noisy.shape),
            },
            (np.arange(pair.noisy.size, dtype=np.uint64), pair.noisy.ravel().astype(np.int64)),
        )
        for pair in pairs
    ]


def agreement_parts(agreements: Agreements | None) -> list[Described]:
    """Return the part of the agreements: the noisy number of every pair of columns."""
    if agreements is None:
        return []
    about: dict[str, Any] = {"kind": "agreements", "halves": [to_runs(half) for half in agreements.halves]}
    return [(about, (np.arange(len(agreements.noisy), dtype=np.uint64), agreements.noisy))]


def read_agreements(
    plan: ColumnPlan, ranks: Sequence[Groups], parts: Sequence[Described]
) -> tuple[Agreements | None, list[Described]]:
    """Return the agreements, if the plan has them, and the parts that are left over."""
    rest = list(parts)
    if not plan.agreement_pairs:
        return None, rest
    check_scale(plan.agreement_scale)
    active = [j for j, column in enumerate(plan.columns) if column.depth > 0]
    match rest.pop(0) if rest else None:
        case ({"kind": "agreements", "halves": list(runs)} as about, part) if len(about) == 2:
            cells, noisy = part
        case _:
            raise ReleaseFileError("after the columns must come the agreements that the plan has")
    names = tuple(combinations(active, 2))
    if len(runs) != len(ranks) or not np.array_equal(cells, np.arange(len(names))):
        raise ReleaseFileError("every column must have its halves, and every agreement its place")
    if float(np.abs(noisy.astype(np.float64)).max()) >= 2**62:
        raise ReleaseFileError("a noisy agreement is out of reach")
    halves = tuple(from_runs(value, int(groups.max()) + 1) for value, groups in zip(runs, ranks, strict=True))
    if any(int(half.max()) > 1 for half in halves):
        raise ReleaseFileError("a column must be cut into two halves")
    return Agreements(names, halves, noisy.astype(np.int64), plan.agreement_scale, plan.law), rest


def read_columns(
    spaces: Sequence[Domain], plan: ColumnPlan, recipe: Any, private: bool, parts: Sequence[Described]
) -> tuple[tuple[CellMeasure, ...], list[Described]]:
    """Return the columns, and the parts that are left over."""
    if len(plan.columns) != len(spaces):
        raise ReleaseFileError("the plan must have as many columns as the table")
    own: list[list[Described]] = [[] for _ in spaces]
    rest = list(parts)
    for j in range(len(spaces)):
        while rest and rest[0][0].get("column") == j and type(rest[0][0]["column"]) is int:
            about, part = rest.pop(0)
            own[j].append(({name: value for name, value in about.items() if name != "column"}, part))
        if not own[j]:
            raise ReleaseFileError("every column must have its cells")
    columns = [
        CellMeasure.from_parts(space, own_plan, recipe, private, described)
        for space, own_plan, described in zip(spaces, plan.columns, own, strict=True)
    ]
    return tuple(columns), rest


def to_runs(groups: Groups) -> dict[str, list[int]]:
    """Return groups as runs of equal ones: a line of them for ordered cells.

    Examples:
        >>> to_runs(np.array([0, 0, 1, 1, 1]))
        {'groups': [0, 1], 'lengths': [2, 3]}
    """
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return {"groups": groups[starts].tolist(), "lengths": np.diff(starts, append=len(groups)).tolist()}


def from_runs(value: Any, cells: int) -> Groups:
    """Read what `to_runs` wrote: a group for every cell, none without a cell."""
    groups, lengths = value["groups"], value["lengths"]
    if not (
        len(groups) == len(lengths)
        and all(type(x) is int and 0 <= x < files.MOST_RANKS for x in groups)
        and all(type(x) is int and 0 < x <= cells for x in lengths)
        and sum(lengths) == cells
    ):
        raise ReleaseFileError("the ranks must give every cell of a column a group")
    return _checked_groups(np.repeat(np.array(groups, np.int64), lengths))


def _checked_groups(groups: Groups) -> Groups:
    if not len(groups) or (np.bincount(groups) == 0).any():
        raise ReleaseFileError("groups must be numbered from 0 without a gap")
    return groups


def read_pairs(plan: ColumnPlan, ranks: Sequence[Groups], parts: Sequence[Described]) -> tuple[Pair, ...]:
    """Return the measured pairs, if they are as many and as noisy as the plan says, and fit the ranks."""
    pairs = tuple(_read_pair(about, part, ranks, plan.law) for about, part in parts)
    sizes = [int(groups.max()) + 1 for groups in ranks]
    for pair in pairs:
        if (len(pair.first_groups), len(pair.second_groups)) != (sizes[pair.first], sizes[pair.second]):
            raise ReleaseFileError("a pair must give every rank cell of its columns a group")
    names = {frozenset((pair.first, pair.second)) for pair in pairs}
    cells = [pair.noisy.size for pair in pairs]
    kinds = (plan.tree_budget, cells[: plan.tree_pairs]), (plan.extra_budget, cells[plan.tree_pairs :])
    if (
        len(names) < len(pairs)
        or len(pairs) != plan.tree_pairs + plan.extra_pairs
        or [pair.scale for pair in pairs] != [scale for kind in kinds for scale in plan.pair_scales(*kind)]
    ):
        raise ReleaseFileError("the pairs must be different, and those of the plan")
    return pairs


def _read_pair(about: dict[str, Any], part: files.Part, ranks: Sequence[Groups], law: LawName) -> Pair:
    cells, counts = part
    match about:
        case {
            "kind": "pair",
            "first": first,
            "second": second,
            "first_groups": list(rows),
            "second_groups": list(columns),
            "scale": str(scale),
            "shape": [height, width],
        } if len(about) == 7 and all(type(number) is int for number in (first, second, height, width)):
            pass
        case _:
            raise ReleaseFileError("a part after the columns must be a pair of them")
    if not (0 <= first < len(ranks) and 0 <= second < len(ranks) and first != second):
        raise ReleaseFileError("a pair must be two different columns")
    groups = [_checked_groups(_whole(side)) for side in (rows, columns)]
    shape = int(groups[0].max()) + 1, int(groups[1].max()) + 1
    if shape != (height, width) or not np.array_equal(cells, np.arange(height * width)):
        raise ReleaseFileError("the counts of a pair must be those of all cells of its table")
    if float(np.abs(counts.astype(np.float64)).max()) >= 2**62:
        raise ReleaseFileError("a noisy count is out of reach")
    return Pair(first, second, groups[0], groups[1], counts.reshape(shape), read_fraction(scale), law)


def _whole(values: list[Any]) -> Groups:
    if not all(type(value) is int and 0 <= value < files.MOST_RANKS for value in values):
        raise ReleaseFileError("groups must be small whole numbers")
    return np.array(values, np.int64)
