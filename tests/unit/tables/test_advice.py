"""What a plan resolves: every cut is dealt to a column, and the warnings come when they should, and only then."""

from datetime import date, datetime

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privmeasure import Synthesizer
from privmeasure.domains import Box, Categories, Nullable, Product
from privmeasure.mechanisms import PMM
from privmeasure.privacy import Privacy
from privmeasure.tables import Boolean, Category, Date, Datetime, Drop, Integer, Number, Place, Schema, Time
from privmeasure.tables.advice import advice, lost_cells, resolutions, undecided_advice
from privmeasure.tables.columns.fields import show_value
from privmeasure.tables.toml import undecided_columns


def plan(schema, rows=5000, depth=None, epsilon=1):
    return PMM(schema.domain, Privacy(epsilon, "add-remove"), depth=depth).plan(rows)


MIXED = Schema({"name": Drop(), "age": Integer(17, 90, unit="year"), "sex": Category(["F", "M"]), "at": Time()})


def test_cuts_in_the_units_of_the_columns():
    found = resolutions(MIXED, plan(MIXED, depth=9))
    assert [column.name for column in found] == ["age", "sex", "at"]
    assert sum(column.cuts for column in found) == 9
    by_name = {column.name: column for column in found}
    assert "year" in by_name["age"].text
    assert by_name["sex"].text == "single values"
    told = found[0].to_json()
    assert (told["name"], told["cuts"], told["resolution"]) == ("age", found[0].cuts, found[0].text)
    assert told["guarantee"] == pytest.approx(plan(MIXED, depth=9).guarantee)  # a weight of 1, a diameter of 1


def test_a_resolution_that_the_guarantee_does_not_support_says_so():
    few = resolutions(MIXED, plan(MIXED, rows=3, depth=9, epsilon=0.1))
    assert all(column.vacuous and "says nothing" in column.resolved for column in few)
    many = resolutions(MIXED, plan(MIXED, rows=10**7, depth=9))
    assert not any(column.vacuous or "says nothing" in column.resolved for column in many)


UNITS = {
    "number": (Number(0, 200, unit="year"), "20 years"),
    "log": (Number(1, 1024, transform="log"), "a factor of 2"),
    "breaks": (Number(0, 1000, breaks=[10, 100]), "0.1 of its range"),
    "category": (Category(["F", "M"]), "10 % of rows"),
    "ordered": (Category(["a", "b", "c"], ordered=True), "0.2 ranks"),
    "boolean": (Boolean(), "10 % of rows"),
    "date": (Date(date(2000, 1, 1), date(2000, 1, 31)), "3 days"),
    "datetime": (Datetime(datetime(2000, 1, 1), datetime(2000, 1, 2), resolution="1min"), "2.4 hours"),
    "time": (Time(), "1.2 hours"),
    "place": (Place("a", "b"), "2,000 km"),
}


@pytest.mark.parametrize("kind", UNITS)
def test_a_tenth_of_the_range_in_the_units_of_the_column(kind):
    column, said = UNITS[kind]
    assert column.in_units(0.1) == said


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["number", "few", "many", "maybe"]), min_size=1, max_size=8), st.integers(0, 20))
def test_every_cut_goes_to_one_column(kinds, depth):
    made = {
        "number": Number(0, 1),
        "few": Boolean(),
        "many": Category([str(i) for i in range(100)]),
        "maybe": Number(0, 1, nullable=True),
    }
    schema = Schema({f"c{i}": made[kind] for i, kind in enumerate(kinds)})
    planned = plan(schema, depth=min(depth, schema.domain.deepest))
    found = resolutions(schema, planned)
    assert sum(column.cuts for column in found) == planned.depth
    for column, factor in zip(found, schema.domain.factors, strict=True):
        assert 0 <= column.cuts <= factor.deepest
    wide = max(
        w * f.diameter(c.cuts) for w, f, c in zip(schema.domain.weights, schema.domain.factors, found, strict=True)
    )
    assert wide == planned.leaf_diameter
    for warning in advice(schema, planned):
        assert "--columns" in warning


def test_a_few_columns_and_many_rows_need_no_advice():
    assert advice(MIXED, plan(MIXED, rows=100_000)) == []


def test_more_columns_than_the_rows_can_resolve():
    wide = Schema({f"c{i}": Number(0, 1) for i in range(30)})
    (warning,) = advice(wide, plan(wide, rows=1000))
    assert "no cut" in warning
    assert "more columns" in warning
    assert "--columns" in warning
    assert "weight" in warning
    assert advice(wide.only(["c0", "c1"]), plan(wide.only(["c0", "c1"]), rows=1000)) == []


def test_categories_that_take_all_the_cuts():
    schema = Schema({"job": Category([f"job {i}" for i in range(500)]), "age": Integer(17, 90)})
    planned = plan(schema, depth=6)
    assert any("stand" in warning and "'job'" in warning and "'age'" in warning for warning in advice(schema, planned))
    lighter = Schema({"job": Category([f"job {i}" for i in range(500)], weight=0.1), "age": Integer(17, 90)})
    assert not any("stand" in warning for warning in advice(lighter, plan(lighter, depth=6)))
    nullable = Schema({"job": Category([f"job {i}" for i in range(500)]), "age": Integer(17, 90, nullable=True)})
    assert any("'age'" in warning for warning in advice(nullable, plan(nullable, depth=6)))
    alone = Schema({"job": Category([f"job {i}" for i in range(500)])})
    assert advice(alone, plan(alone, depth=6)) == []  # there is nothing that it could take cuts from


@pytest.mark.parametrize("level", [0, 1, 5, 9])
def test_the_product_says_how_it_deals_cuts(level):
    product = Product([Box([(0, 1)]), Nullable(Categories(5)), Box([(0, 1)])], weights=[1, 0.5, 0.25])
    cuts = product.cuts(level)
    assert sum(cuts) == level
    assert product.diameter(level) == max(
        w * f.diameter(c) for w, f, c in zip(product.weights, product.factors, cuts, strict=True)
    )


# -------------------------------------------------------------------------------------------------------- missing cells

KINDS = {
    "number": (Number(-3, 5), "-3", "x"),
    "log": (Number(0.5, 90, transform="log"), "0.5", "x"),
    "integer": (Integer(17, 90), "17", "x"),
    "category": (Category(["F", "M"]), "'F'", "X"),
    "other": (Category(["F", "M", "?"], unknown="?"), "'?'", "X"),
    "boolean": (Boolean(), "false", "perhaps"),
    "date": (Date(date(2000, 1, 1), date(2020, 1, 1)), "2000-01-01", "x"),
    "datetime": (Datetime(datetime(2000, 1, 1), datetime(2020, 1, 1)), "2000-01-01T00:00:00", "x"),
    "time": (Time(), "00:00:00", "x"),
    "place": (Place("a", "b", low=(40, 5), high=(50, 15)), "40, 5", "x"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nullable", [False, True])
def test_where_a_missing_or_unread_cell_goes_is_said_as_it_is(kind, nullable):
    """What is said of the declaration is what encoding and decoding such a cell gives."""
    column, said, odd = KINDS[kind]
    column = msgspec.structs.replace(column, nullable=nullable)
    (told,) = lost_cells(Schema({"x": column}))
    cells = [pa.array([None, odd], pa.string()) for _ in column.sources("x")]
    missing, unread = zip(
        *(c.to_pylist() for c in column.decode(column.encode(cells), [None] * len(cells))), strict=True
    )
    for found, word in ((missing, told.missing), (unread, told.unread)):
        if nullable and (kind, word) != ("other", told.unread):  # there the unread are declared to be something
            assert word == "missing"
            assert set(found) == {None}
        else:
            assert word == said == ", ".join(str(v).lower() if isinstance(v, bool) else show_value(v) for v in found)


def test_only_columns_that_do_not_say_it_are_warned_of(tmp_path):
    path = tmp_path / "s.toml"
    text = 'format = 1\n[columns.{}]\ntype = "boolean"\n{}\n[columns.c]\ntype = "drop"\n'
    for line, said in (("", 1), ("nullable = false", 0), ("nullable = true", 0)):
        path.write_text(text.format("a", line))
        warned = undecided_advice(Schema.from_toml(path), undecided_columns(path))
        assert len(warned) == said
        assert all("'a' does not say" in warning for warning in warned)


def test_columns_are_counted_in_one_way():
    """Those that are measured: a group is one, a column with a single value none, a place one of two coordinates."""
    columns = {"a": Integer(0, 9), "b": Integer(0, 9), "one": Category(["x"]), "d": Number(0, 1), "e": Place("u", "v")}
    schema = Schema(columns, groups=[("a", "b")])
    synthesizer = Synthesizer(schema, epsilon=1, neighbours="add-remove")
    planned = synthesizer.plan(100)
    words = str(planned)
    assert "a private tree of columns: 3 in all" in words
    assert "and 1 with a single value, which costs nothing" in words
    assert "columns: 3 " in words
    assert "of 3 columns the bound says nothing" in words
    (warning,) = advice(schema, planned)
    assert "shared by 3 columns (a group counts as one)" in warning
    assert synthesizer.choice.startswith("5 columns, 6 coordinates (a place has two): ")
