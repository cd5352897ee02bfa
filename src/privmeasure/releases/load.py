"""Reading a release file back: of points, or of a table. Public: it cannot reach counts, sources or the data."""

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from privmeasure.domains import Domain, check_own, own_kinds, write_domain
from privmeasure.errors import ArgumentError, PrivmeasureError, ReleaseFileError
from privmeasure.noise.law import LAPLACE
from privmeasure.plans.plan import check_law
from privmeasure.releases import files
from privmeasure.releases.base import Measure, Release, with_record
from privmeasure.releases.cells import CellMeasure
from privmeasure.releases.columns import ColumnsMeasure
from privmeasure.releases.table import TableRelease
from privmeasure.rounding import LAST_DIGITS
from privmeasure.tables import Schema
from privmeasure.tables.columns.base import DataColumn
from privmeasure.tables.columns.kinds import SCHEMA_FORMATS, format_problem

READERS: dict[str, Callable[[dict[str, Any], files.FileTable, Domain | None], Measure]] = {
    "cells": CellMeasure.from_file,
    "columns": ColumnsMeasure.from_file,
}
"""How each kind of measure is read."""


def load(path: str | Path, *, domain: Domain | None = None) -> Release:
    """Read a release file; everything in it is checked before it is used.

    A domain of your own cannot be made from a file: give it as `domain`, equal to the one that was released. The two
    are equal if they say the same of themselves, by `to_json`.
    """
    header, table = files.read_release(path)
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in READERS:
        raise ReleaseFileError(
            f"{path} holds a release of kind {kind!r}, which this version cannot read. It is damaged, or was written "
            "by a newer version: update privmeasure, or get it again."
        )
    plan = header.get("plan")
    try:
        check_law(plan.get("law", LAPLACE) if isinstance(plan, dict) else LAPLACE)
    except ReleaseFileError as error:
        raise ReleaseFileError(f"{path} was written by a newer version: {error}.") from None
    stated = header["schema"].get("format") if isinstance(header.get("schema"), dict) else None
    if isinstance(stated, int) and stated > max(SCHEMA_FORMATS):
        raise ReleaseFileError(f"{path} was written by a newer version: its schema {format_problem(stated)}")
    header = _with_present_scales(header) if "schema" in header else header
    if other := _other_domain(header.get("domain"), domain):
        raise ReleaseFileError(f"{path} {other}")
    try:
        measure = READERS[kind](header, table, domain)
        measure = with_record(measure, None if measure.origin is None else measure.origin.recorded)
        return TableRelease.from_file(header, measure) if "schema" in header else measure
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        detail = f" ({error})" if isinstance(error, PrivmeasureError) else ""
        raise ReleaseFileError(
            f"{path} is damaged or was edited: its header and its cells do not fit together{detail}. Get it again."
        ) from None


def _other_domain(in_file: Any, domain: Domain | None) -> str:
    """Return what is wrong where a file needs a domain beside it, or another one than was given; else nothing."""
    if domain is None:
        kinds = ", ".join(map(repr, own_kinds(in_file)))
        return kinds and (
            f"was released on a space ({kinds}) that is not one of privmeasure's: give domain=..., equal to the one "
            "that was released. If a newer version has such a space, update privmeasure instead."
        )
    if isinstance(domain, type) or not isinstance(domain, Domain):
        raise ArgumentError(f"domain must be a Domain, the one that was released, got {type(domain).__name__}.")
    check_own(domain)
    if write_domain(domain) == in_file:
        return ""
    return (
        "was released on another space than the domain that was given: what they say of themselves (to_json) differs. "
        "Give domain=..., equal to the one that was released."
    )


def _with_present_scales(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a table's release with the scales of its log columns as they are today.

    The axis of such a column once ran from log(low) to log(high); now it runs from 0 to the number of its knots. The
    cells are the same but for the last bit of an edge. Facts were stored with places on that axis: they are left out,
    since they follow from the schema. Whatever else does not fit the schema stays as it is, and is refused later.
    """
    try:
        schema, domain = Schema.from_json(header["schema"]), copy.deepcopy(header["domain"])
        factors = domain["factors"]
        if header["kind"] == "columns":  # a group of columns is one factor
            nodes = zip(schema.nodes, factors, strict=True)
            factors = [value for node, factor in nodes for value in (factor["factors"] if len(node) > 1 else [factor])]
        older = [_is_older(*pair) for pair in zip(schema.data.values(), factors, strict=True)]
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        return header
    if not any(older):
        return header
    for column, factor, old in zip(schema.data.values(), factors, older, strict=True):
        if old:
            factor.update(column.domain.to_json())
    return {name: value for name, value in header.items() if name != "facts"} | {"domain": domain}


def _is_older(column: DataColumn, stated: dict[str, Any]) -> bool:
    """Say whether the domain that a file states is the one that a log column once had."""
    if column.older_bounds is None:
        return False
    present = column.domain.to_json()
    box, today = (value["domain"] if column.nullable else value for value in (stated, present))
    ((low, high),) = box["bounds"]
    today["bounds"] = box["bounds"]  # nothing else may differ
    close = all(
        math.isclose(a, b, rel_tol=LAST_DIGITS, abs_tol=LAST_DIGITS)
        for a, b in zip((low, high), column.older_bounds, strict=True)
    )
    return close and stated == present


def is_release(path: str | Path) -> bool:
    """Say whether a file calls itself a release: by its header, which `load` then checks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            return files.HEADER_KEY in (file.schema_arrow.metadata or {})
    except (OSError, ValueError, pa.ArrowException):
        return False
