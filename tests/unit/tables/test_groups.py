"""What a schema says of several columns: groups, rules, and a header that is not one of columns at all."""

import pyarrow as pa
import pytest

from privmeasure.errors import SchemaError
from privmeasure.tables import Integer, Layout, Place, Schema


def test_columns_of_a_group_stand_side_by_side_and_come_back_in_their_places():
    columns = {"a": Integer(0, 9), "b": Integer(10, 19), "home": Place("lat", "lon"), "c": Integer(20, 29)}
    schema = Schema(columns, groups=[("a", "c")])
    table = pa.table({"lon": [7.5], "c": [25], "lat": [46.5], "b": [12], "a": [1]})
    assert schema.encode(table).tolist() == [[1, 25, 12, 7.5, 46.5]]
    layout = Layout.of(schema, table.column_names, table.schema.types)
    assert schema.decode(schema.encode(table), layout).equals(table)


def test_groups_that_overlap_or_are_too_large_are_refused():
    columns = {name: Integer(0, 9) for name in "abcd"}
    with pytest.raises(SchemaError, match="'b' is in two groups"):
        Schema(columns, groups=[("a", "b"), ("b", "c")])
    with pytest.raises(SchemaError, match="has at most 3"):
        Schema(columns, groups=[tuple("abcd")])


def test_rules_about_columns_that_are_left_out_go_too():
    columns = {name: Integer(0, 9) for name in "abc"}
    schema = Schema(columns, never=["a > 1 and b > 2", "a > 1 and c > 2", "what is this"])
    assert schema.only(["a", "b"]).never == ("a > 1 and b > 2", "what is this")


@pytest.mark.parametrize("mark", [";", "\t", "|", ","])
def test_a_wrong_delimiter_is_named(mark):
    schema = Schema({"a": Integer(0, 9), "b": Integer(0, 9)})
    with pytest.raises(SchemaError) as caught:
        schema.check([f"a{mark}b"], None)
    assert str(caught.value).startswith(f"Is the delimiter {mark!r}? Say so, with --delimiter or delimiter=.")
    Schema({f"a{mark}b": Integer(0, 9)}).check([f"a{mark}b"], None)  # a name like any other, where it is declared
    with pytest.raises(SchemaError) as caught:
        schema.check(["a", f"b{mark}"], None)
    assert "delimiter" not in str(caught.value)
