"""Sources of one's own, and counts that are taken."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privmeasure import Box, Category, Integer, Schema, Synthesizer
from privmeasure.counts import CellCounts, is_source
from privmeasure.errors import SpentError
from privmeasure.sources.arrays import ArraySource


class Elsewhere:
    """Counts that somebody else makes: rows that arrive from several places, added up."""

    def __init__(self, *parts, width):
        self.parts = [ArraySource(part, width=width, threads=1) for part in parts]
        self.asked = 0

    def count(self, partitions, progress=None):
        self.asked += 1
        first, *others = [part.count(partitions) for part in self.parts]
        for other in others:
            first = [a + b for a, b in zip(first, other, strict=True)]
        return first


def test_fit_takes_any_source_and_gives_what_the_rows_themselves_give():
    points = np.random.default_rng(0).random((500, 2))
    box = Box([(0, 1), (0, 1)])
    for mechanism in ("pmm", "psmm"):
        options = {"epsilon": 1, "neighbours": "add-remove", "mechanism": mechanism}
        own = Elsewhere(points[:100], points[100:], width=2)
        one = Synthesizer(box, **options).fit(own, insecure_seed=1)
        other = Synthesizer(box, **options).fit(points, insecure_seed=1)
        assert own.asked > 0
        assert np.array_equal(one.release_.mass, other.release_.mass)
        assert np.array_equal(one.sample(seed=0), other.sample(seed=0))


@pytest.mark.parametrize("columns", [2, 5])
def test_a_source_for_a_schema_counts_encoded_rows(columns):
    schema = Schema({f"k{i}": Integer(0, 9) if i % 2 else Category(["a", "b"]) for i in range(columns)})
    rng = np.random.default_rng(0)
    rows = pa.table(
        {f"k{i}": rng.integers(0, 10, 300) if i % 2 else rng.choice(["a", "b"], 300) for i in range(columns)}
    )
    options = {"epsilon": 1, "neighbours": "replace"}
    own = Elsewhere(schema.encode(rows), width=columns)
    one = Synthesizer(schema, **options).fit(own, insecure_seed=1).sample(seed=0)
    other = Synthesizer(schema, **options).fit(rows, insecure_seed=1).sample(seed=0)
    assert one.to_pydict() == other.to_pydict()


@pytest.mark.parametrize(
    "data", [[1], (1,), "x", b"x", np.zeros(1), pa.table({"a": [1]}), pd.DataFrame(), pl.LazyFrame(), 1, None]
)
def test_what_is_no_source(data):
    assert not is_source(data)


def test_counts_are_taken_once():
    counts = CellCounts(2, np.array([3, 4]))
    assert counts.take().tolist() == [3, 4]
    assert counts.take().tolist() == []
    assert counts.total == 0
    with pytest.raises(SpentError):
        counts.__reduce__()
