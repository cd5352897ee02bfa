"""A sample of all released rows is refused if it cannot fit in memory, and says what to do instead."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.errors import ArgumentError
from privmeasure.releases.capacity import Memory, row_bytes

MANY = 2**44
"""Rows that no memory holds."""
SCHEMA = pm.Schema.from_text(
    'format = 1\n[columns.age]\ntype = "integer"\nlow = 0\nhigh = 9\n[columns.dead]\ntype = "boolean"'
)
TABLE = pa.table({"age": [3, 4, 5] * 100, "dead": [True, False, True] * 100})


def release(space: Any, data: Any, mechanism: Any) -> Any:
    return (
        pm.Synthesizer(space, epsilon=1, neighbours="replace", mechanism=mechanism).fit(data, insecure_seed=0).release_
    )


def enlarged(measure: Any) -> Any:
    """Return the measure with far more rows than any memory holds."""
    plan = replace(measure.plan, rows=MANY)
    if hasattr(measure, "mass"):
        return replace(measure, plan=plan, mass=measure.mass * (MANY // measure.total))
    return replace(measure, plan=plan)


@pytest.fixture(params=["points", "tree", "columns"])
def large(request: pytest.FixtureRequest) -> Any:
    if request.param == "points":
        return enlarged(release(pm.Box([(0, 1)]), np.linspace(0, 1, 300), "pmm"))
    found = release(SCHEMA, TABLE, "pmm" if request.param == "tree" else "columns")
    return replace(found, measure=enlarged(found.measure))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_more_rows_than_fit_are_refused_and_fewer_are_drawn(large: Any) -> None:
    with pytest.raises(ArgumentError, match=r"n=.*blocks\(\)"):
        large.sample()
    with pytest.raises(ArgumentError, match=f"{large.total:,} rows"):
        large.sample(seed=1)
    assert len(large.sample(5, seed=1)) == 5
    if "Columns" in type(getattr(large, "measure", large)).__name__:
        assert len(next(large.blocks(seed=1))) > 0


def test_the_memory_of_this_machine_is_known_and_what_is_not_known_refuses_nothing() -> None:
    size = Memory.of_machine().size
    assert size is None or 2**26 < size < 2**50
    Memory(None).check_rows(MANY, 8)
    Memory(80).check_rows(10, 8)
    with pytest.raises(ArgumentError, match="11 rows"):
        Memory(80).check_rows(11, 8)


@pytest.mark.parametrize(
    ("types", "size"),
    [([pa.int8()] * 3, 3), ([pa.bool_()], 1), ([pa.dictionary(pa.int8(), pa.string())], 1), ([pa.large_string()], 4)],
)
def test_a_row_is_as_small_as_its_types_allow(types: list[Any], size: int) -> None:
    assert row_bytes(types) == size
