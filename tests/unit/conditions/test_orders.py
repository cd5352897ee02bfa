"""Orders between columns (`never = ["discharged < admitted"]`): what people write, and that no written row has them."""

import io
import operator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import privmeasure as pm
from depth import examples
from privmeasure.conditions.language import ConditionError, Shifted, parse_condition
from privmeasure.errors import ArgumentError, NoRowsError, SchemaError
from privmeasure.model.graph import Model
from privmeasure.releases.table import TableRelease
from privmeasure.sources.changes import count_changes
from privmeasure.tables import Boolean, Category, Date, Datetime, Derived, Drop, Integer, Number, Place, Schema, Time
from privmeasure.tables.columns.base import DataColumn
from privmeasure.tables.facts import forbidden_pairs
from privmeasure.tables.writing import write_table

DECADE = ("2015-01-01", "2024-12-31")
STAY: dict[str, Any] = {
    "admitted": Date(*DECADE),
    "discharged": Date(*DECADE, nullable=True),
    "age": Integer(0, 120),
    "ward": Category(["surgery", "medicine", "other"]),
    "cost": Number(1, 100_000, transform="log", decimals=2),
    "sex": Category(["F", "M"]),
}
RULE = "discharged < admitted"


def stays(n: int = 4000) -> pa.Table:
    """Return stays in a hospital: nobody leaves before they come, and longer stays cost more."""
    rng = np.random.default_rng(0)
    came, length = rng.integers(0, 3500, n), np.minimum(rng.geometric(1 / 60, n) - 1, 150)
    first = np.datetime64("2015-01-01")
    return pa.table(
        {
            "admitted": pa.array(first + came),
            "discharged": pa.array(first + came + length, mask=rng.random(n) < 0.05),
            "age": rng.integers(0, 100, n),
            "ward": np.array(["surgery", "medicine", "other"])[np.digitize(length, [20, 60])],
            "cost": np.round(200 + length * rng.lognormal(5, 0.3, n), 2),
            "sex": rng.choice(["F", "M"], n),
        }
    )


def released(never: Any = RULE, table: pa.Table | None = None, mechanism: Any = "auto", **more: Any) -> TableRelease:
    columns = more.pop("columns", STAY)
    table = stays() if table is None else table
    table = table.select([name for name in table.column_names if name in columns])
    schema = Schema(columns, never=never, **more)
    synth = pm.Synthesizer(schema, epsilon=4, neighbours="replace", mechanism=mechanism)
    release = synth.fit(table, insecure_seed=1).release_
    assert isinstance(release, TableRelease)
    return release


@pytest.fixture(scope="module")
def free() -> TableRelease:
    """The release without the rule: noise and all are the same."""
    return released(())


@pytest.fixture(scope="module")
def release() -> TableRelease:
    return released()


def broken(rows: pa.Table, days: int = 0) -> float:
    """Return the share of rows in which people leave before they come, or so many days after."""
    both = rows.select(["admitted", "discharged"]).drop_null()
    gap = both["discharged"].cast(pa.int32()).to_numpy() - both["admitted"].cast(pa.int32()).to_numpy()
    return float(np.mean(gap < days))


# -------------------------------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("b < a", "a"),
        ('b < "odd name"', "odd name"),
        ("b < a + 30", Shifted("a", 30)),
        ("b < a - 2.5", Shifted("a", -2.5)),
        ("b < a +30", Shifted("a", 30)),
        ("b < a + 30 min", Shifted("a", 30, "min")),
        ("b < a + 30min", Shifted("a", 30, "min")),
        ('b >= "odd name" + 1 day', Shifted("odd name", 1, "day")),
    ],
)
def test_language(text: str, value: Any) -> None:
    (clause,) = parse_condition(text)
    assert clause.values == (value,)


@pytest.mark.parametrize(
    "text", ["b < a + ", "b < a + c", "b < a + 30 min 5", "b < a + 1e5", "b < 'a' + 30", "b < 3 + 4"]
)
def test_broken_language(text: str) -> None:
    with pytest.raises(ConditionError):
        parse_condition(text)


@pytest.mark.parametrize(
    "text", ["high < low+2", "high < low + 2", "low > high-2", "high - 2 < low", "low >= high - 1"]
)
def test_the_same_order_in_other_words(text: str) -> None:
    schema = Schema({"low": Integer(0, 9), "high": Integer(0, 9)}, never=text)
    if text.startswith("high -"):
        with pytest.raises(SchemaError):
            forbidden_pairs(schema)
        return
    grid = pa.table({"low": np.repeat(np.arange(10), 10), "high": np.tile(np.arange(10), 10)})
    wrong = (grid["high"].to_numpy() < grid["low"].to_numpy() + 2).sum()
    assert count_changes(schema, [grid]).never == {text: wrong}


def test_schemas_with_an_order_are_of_format_2() -> None:
    schema = Schema(STAY, never=[RULE])
    assert schema.to_json()["format"] == 2
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_text(schema.to_toml()) == schema
    assert Schema(STAY, never=["sex = 'M' and age > 100"]).to_json()["format"] == 1
    with pytest.raises(SchemaError, match="line 2: the schema compares two columns, which is of format 2"):
        Schema.from_text(schema.to_toml().replace("format = 2", "format = 1"))
    assert schema.only(["admitted", "age"]).never == ()
    assert schema.only(["admitted", "discharged", "age"]).never == (RULE,)


ODD = STAY | {
    "when": Datetime("2015-01-01", "2024-12-31", resolution="1s"),
    "there": Datetime("2015-01-01", "2024-12-31", resolution="1s", timezone="Europe/Berlin"),
    "fine": Datetime("2015-01-01", "2015-01-02", resolution="1ns"),
    "clock": Time(),
    "note": Drop(),
    "home": Place("lat", "lon"),
    "decade": Derived("age // 10 * 10"),
    "height": Number(0, 250, unit="cm"),
}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("discharged < age", "compares 'discharged' (date) with 'age' (integer)"),
        ("discharged < when", "(date) with 'when' (datetime)"),
        ("discharged < sex", "with 'sex' (category)"),
        ("age < home", "with 'home' (place)"),
        ("age < note", "names the column 'note', which is constant or dropped"),
        ("age < decade", "names the derived column 'decade'"),
        ("decade < age", "names the derived column 'decade'"),
        ("age < agee + 3", "names the column 'agee', which the schema does not have. Did you mean 'age'"),
        ("age < age", "with itself"),
        ("age != height", "Declare one of them with derive"),
        ("age < height and sex = 'F'", "stands alone"),
        ("when < there", "in another time zone"),
        ("when < fine", "nanoseconds"),
        ("discharged < admitted + 30 min", "say a unit, one of day, days, week"),
        ("discharged < admitted + .5 days", "no whole number"),
        ("height < age + 3 kg", "leave the unit out"),
        ("sex = ward + 3", "only numbers, dates and times are added to"),
        ("discharged < 'admitted'", "no value of that column"),
    ],
)
def test_what_is_wrong_is_told(text: str, told: str) -> None:
    with pytest.raises(SchemaError) as caught:
        forbidden_pairs(Schema(ODD, never=text))
    assert told in str(caught.value)


def test_datetimes_need_a_unit() -> None:
    columns = {"a": Datetime(*DECADE, resolution="1s"), "b": Datetime(*DECADE, resolution="1s")}
    with pytest.raises(SchemaError, match="say a unit"):
        forbidden_pairs(Schema(columns, never="b < a + 30"))
    forbidden_pairs(Schema(columns, never="b < a + 0.5 h"))


def test_an_order_that_every_row_has_is_refused() -> None:
    with pytest.raises(SchemaError, match="forbids every row"):
        forbidden_pairs(Schema({"a": Integer(0, 4), "b": Integer(5, 9)}, never="a < b"))
    forbidden_pairs(Schema({"a": Integer(0, 5), "b": Integer(5, 9)}, never="a < b"))
    forbidden_pairs(Schema({"a": Integer(0, 4, nullable=True), "b": Integer(5, 9)}, never="a < b"))


def test_where_does_not_compare_columns(release: TableRelease) -> None:
    with pytest.raises(ArgumentError, match="which only never can"):
        release.sample(10, where="discharged = admitted")


def test_a_category_keeps_its_values() -> None:
    schema = Schema({"ward": Category(["age", "sex"]), "age": Integer(0, 9)}, never="ward = age and age > 5")
    assert len(forbidden_pairs(schema)) == 1
    assert schema.to_json()["format"] == 1


# -------------------------------------------------------------------------------------------------------- what is kept


def test_without_the_rule_many_rows_break_it(free: TableRelease) -> None:
    assert broken(free.sample(20_000, seed=0)) > 0.2


@pytest.mark.parametrize(
    ("never", "days"), [(RULE, 0), ("discharged < admitted + 30", 30), ("admitted > discharged", 0)]
)
def test_no_row_breaks_it(never: str, days: int) -> None:
    rows = released(never).sample(20_000, seed=0)
    assert rows.num_rows == 20_000
    assert broken(rows, days) == 0
    assert rows["discharged"].null_count > 100


def test_in_one_tree() -> None:
    three = {name: STAY[name] for name in ("admitted", "discharged", "ward")}
    assert broken(released((), columns=three).sample(5000, seed=0)) > 0.05
    one = released(columns=three)
    assert one.plan.joint
    rows = one.sample(5000, seed=0)
    assert (broken(rows), rows.num_rows) == (0, 5000)
    assert broken(one.sample(seed=0, where="ward = 'surgery'")) == 0


def test_in_a_group() -> None:
    group = [["admitted", "discharged"]]
    assert broken(released((), groups=group).sample(5000, seed=0)) > 0.05
    rows = released(groups=group).sample(5000, seed=0)
    assert (broken(rows), rows.num_rows) == (0, 5000)


def test_with_conditions_other_facts_and_derived_columns() -> None:
    columns = STAY | {"days": Derived("days_between(admitted, discharged)")}
    rules = [RULE, "ward = 'surgery' and age < 18"]
    rows = released(rules, columns=columns).sample(3000, seed=0, where="ward = 'surgery' and admitted > '2020-01-01'")
    assert (broken(rows), rows.num_rows) == (0, 3000)
    assert min(rows["age"].to_pylist()) >= 18
    assert min(value for value in rows["days"].to_pylist() if value is not None) >= 0
    assert set(rows["ward"].to_pylist()) == {"surgery"}


def test_it_survives_the_file(release: TableRelease, tmp_path: Path) -> None:
    release.save(tmp_path / "stays.release")
    again = pm.load(tmp_path / "stays.release")
    rows = again.sample(5000, seed=3)
    assert rows.equals(release.sample(5000, seed=3))
    assert broken(rows) == 0


def test_threads_change_nothing(release: TableRelease) -> None:
    assert release.sample(5000, seed=3, threads=1).equals(release.sample(5000, seed=3, threads=3))


def test_columns_that_are_not_compared_are_as_without_the_rule(free: TableRelease, release: TableRelease) -> None:
    made, all_rows = release.sample(60_000, seed=1).to_pandas(), free.sample(60_000, seed=2).to_pandas()
    for name in ("ward", "sex"):
        assert (
            np.abs(made[name].value_counts(normalize=True) - all_rows[name].value_counts(normalize=True)).max() < 1e-3
        )
    kept = all_rows[all_rows.discharged.isna() | (all_rows.discharged >= all_rows.admitted)]
    wards = [frame["ward"].value_counts(normalize=True) for frame in (kept, all_rows)]
    assert np.abs(wards[0] - wards[1]).max() > 0.003  # leaving out what breaks the rule would move them


def tried(release: TableRelease, n: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many rows the model draws for n rows."""
    drawn: list[int] = []
    sample = Model.sample
    release.measure.model  # type: ignore[attr-defined]  # noqa: B018 - made once

    def counted(self: Model, count: int, rng: np.random.Generator, **options: int) -> list[Any]:
        drawn.append(count)
        return sample(self, count, rng, **options)

    monkeypatch.setattr(Model, "sample", counted)
    release.sample(n, seed=0)
    monkeypatch.undo()
    return sum(drawn)


def test_hardly_more_rows_are_tried(free: TableRelease, release: TableRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(free, 50_000, monkeypatch) == 50_000
    assert tried(release, 50_000, monkeypatch) < 1.05 * 50_000


def test_orders_that_most_rows_break_are_kept_at_no_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, names = np.random.default_rng(0), list("abcd")
    steps = np.cumsum(rng.integers(0, 30, (1000, 4)), axis=1) + rng.integers(0, 870, (1000, 1))
    # of rows that know nothing of it, about 1 in 24 has its steps in order
    table = pa.table({name: steps[:, i] for i, name in enumerate(names)} | {"e": rng.integers(0, 2, 1000)})
    columns = {name: Integer(0, 999) for name in names} | {"e": Boolean()}
    rules = ["b < a", "c < b", "d < c"]

    synth = pm.Synthesizer(Schema(columns, never=rules), epsilon=0.2, neighbours="replace")
    release = synth.fit(table, insecure_seed=0).release_
    rows = release.sample(2000, seed=0).to_pandas()
    assert (rows.a <= rows.b).all()
    assert (rows.b <= rows.c).all()
    assert (rows.c <= rows.d).all()
    assert tried(release, 20_000, monkeypatch) < 1.15 * 20_000


def test_data_that_contradict_it_are_told_in_the_end() -> None:
    table = pa.table({"a": np.full(3000, 9), "b": np.zeros(3000, int)})
    release = released("b < a", table, columns={"a": Integer(0, 9), "b": Integer(0, 9)})
    with pytest.raises(NoRowsError):
        release.sample(5000, seed=0)


def test_rows_of_the_data_that_break_it_are_counted() -> None:
    table = pa.table({"a": [1, 5, None, 3], "b": [2, 4, 4, None]})
    columns = {"a": Integer(0, 9, nullable=True), "b": Integer(0, 9, nullable=True)}
    found = count_changes(Schema(columns, never=["b < a", "a = 1 and b = 2", "b <= a - 1"]), [table])
    assert found.to_json()["never"] == {
        "b < a": {"broken": 1},
        "a = 1 and b = 2": {"broken": 1},
        "b <= a - 1": {"broken": 1},
    }


# ------------------------------------------------------------------------------------------------- whatever is written

SIGNS: dict[str, Any] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
NUMBERS = [
    Integer(0, 40),
    Integer(1, 40, transform="log"),
    Number(0, 40),
    Number(0, 40, decimals=0),
    Number(0, 40, decimals=1),
    Number(0.5, 40, transform="log", decimals=1),
    Number(0, 40, breaks=[1, 10], decimals=2),
]
STORED = [None, pa.float64(), pa.float32(), pa.decimal128(9, 1), pa.int16(), pa.string()]


def either(column: Any, *, nullable: bool) -> Any:
    fields = {name: getattr(column, name) for name in column.__struct_fields__}
    return type(column)(**(fields | {"nullable": nullable}))


def made(columns: dict[str, DataColumn], rule: str, stored: dict[str, Any], seed: int) -> TableRelease | None:
    """Return a release of a few rows, spread over the columns, in some storage types."""
    rng, schema = np.random.default_rng(seed), Schema(columns, never=rule)  # type: ignore[arg-type]
    try:
        forbidden_pairs(schema)
    except SchemaError as error:
        if "forbids every row" not in str(error):
            raise
        return None
    domain = schema.domain
    points = domain.draw(np.zeros(300, np.uint64), 0, rng)
    cells = {}
    for i, column in enumerate(columns.values()):
        points[30 * i : 30 * i + 30, i] = np.nan if column.nullable else points[:30, i]
    for i, (name, column) in enumerate(columns.items()):
        values = column.decode(points[:, i : i + 1], [stored.get(name)])[0]
        cells[name] = values
    synth = pm.Synthesizer(schema, epsilon=4, neighbours="replace")
    found = synth.fit(pa.table(cells), insecure_seed=seed).release_
    assert isinstance(found, TableRelease)
    return found


def number(cells: Any) -> Any:
    return np.array([np.nan if pd.isna(cell) else float(str(cell)) for cell in cells])


@examples(15, 60, suppress_health_check=list(HealthCheck))
@given(
    one=st.sampled_from(NUMBERS),
    two=st.sampled_from(NUMBERS),
    sign=st.sampled_from(list(SIGNS)),
    shift=st.sampled_from([0, 0, 1, -3, 0.1, 0.2, -0.3]),
    nullable=st.booleans(),
    wide=st.booleans(),
    stored=st.tuples(st.sampled_from(STORED), st.sampled_from(STORED)),
    seed=st.integers(0, 9),
)
def test_numbers_as_they_are_written(
    one: Any, two: Any, sign: str, shift: float, nullable: bool, wide: bool, stored: Any, seed: int
) -> None:
    columns: Any = {"a": either(one, nullable=nullable), "b": either(two, nullable=False)}
    if wide:
        columns |= {"c": Boolean(), "d": Boolean(), "e": Boolean()}
    types = {name: kind for name, kind in zip("ab", stored, strict=True) if kind is not None}
    try:
        Schema(columns).check(list("ab") + list("cde") * wide, None)
        refused = [columns[name].refuses(kind) for name, kind in types.items()]
    except SchemaError:
        return
    if any(refused):
        types = {}
    rule = f"a {sign} b" + (f" {'-' if shift < 0 else '+'} {abs(shift)}" if shift else "")
    found = made(columns, rule, types, seed)
    if found is None:
        return
    try:
        rows = found.sample(1500, seed=seed)
    except NoRowsError:
        return
    compare, text = SIGNS[sign], io.BytesIO()
    pa.csv.write_csv(rows, text)
    frames = [
        rows.to_pandas(),
        pd.read_csv(io.BytesIO(text.getvalue())),
        pl.from_arrow(rows).to_pandas(),
    ]
    for frame in frames:
        if frame["a"].dtype.kind in "iuf" and frame["b"].dtype.kind in "iuf":
            assert not compare(frame["a"], frame["b"] + shift).any(), (rule, types)
        a, b = number(frame["a"]), number(frame["b"])
        assert not compare(a, b + shift).any()
        assert not compare(a - b, shift).any() or not shift


DAY, HOUR = np.timedelta64(1, "D"), np.timedelta64(1, "h")
CALENDAR: list[tuple[Any, Any, str, Any]] = [
    (Date("2024-01-01", "2024-03-01"), Date("2024-01-15", "2024-03-01"), "", 0 * DAY),
    (Date("2024-01-01", "2024-03-01"), Date("2024-01-15", "2024-03-01"), "- 10", -10 * DAY),
    (Date("2024-01-01", "2024-03-01"), Date("2024-01-15", "2024-03-01", format="%d.%m.%Y"), "+ 1 week", 7 * DAY),
    (
        Datetime("2024-01-01", "2024-01-09", resolution="1min"),
        Datetime("2024-01-01", "2024-01-09", resolution="1h"),
        "+ 2 h",
        2 * HOUR,
    ),
    (
        Datetime("2024-10-27T00:00:00", "2024-10-27T06:00:00", resolution="10min", timezone="Europe/Berlin"),
        Datetime("2024-10-27T00:00:00", "2024-10-27T06:00:00", resolution="1min", timezone="Europe/Berlin"),
        "",
        0 * HOUR,
    ),
    (
        Datetime("2024-01-01", "2024-01-09", resolution="1s", format="%d.%m.%Y %H:%M"),
        Datetime("2024-01-01", "2024-01-09", resolution="1s"),
        "+ 1 day",
        DAY,
    ),
]


@pytest.mark.parametrize("sign", ["<", ">="])
@pytest.mark.parametrize("which", range(len(CALENDAR)))
def test_dates_and_times_as_they_are_written(which: int, sign: str, tmp_path: Path) -> None:
    one, two, told, shift = CALENDAR[which]
    columns = {"a": either(one, nullable=True), "b": two}
    found = made(columns, f"a {sign} b {told}", {}, which)
    assert found is not None
    rows = found.sample(3000, seed=0)
    write_table(tmp_path / "rows.csv", iter([rows]))
    pq.write_table(rows, tmp_path / "rows.parquet")
    forms = {name: column.format for name, column in columns.items()}
    for frame in (rows.to_pandas(), pd.read_csv(tmp_path / "rows.csv"), pd.read_parquet(tmp_path / "rows.parquet")):
        a, b = (
            pd.to_datetime(frame[name], format=forms[name] or "ISO8601", utc=True).dt.tz_localize(None) for name in "ab"
        )
        assert len(frame) == 3000
        assert a.isna().any()
        assert not SIGNS[sign](a, b + shift).any()


def test_local_times_without_a_zone_are_compared_as_clocks_show_them() -> None:
    zone = {"resolution": "1min", "timezone": "Europe/Berlin"}
    columns = {name: Datetime("2024-10-27T00:00:00", "2024-10-27T06:00:00", **zone) for name in "ab"}
    types = dict.fromkeys("ab", pa.timestamp("s"))
    found = made(columns, "a < b", types, 0)
    assert found is not None
    frame = found.sample(5000, seed=0).to_pandas()
    assert not (frame["a"] < frame["b"]).any()


@pytest.mark.parametrize("stored", [None, pa.time32("s"), pa.string()])
def test_times_of_day(stored: Any) -> None:
    columns = {"open": Time(resolution="15min"), "close": Time(resolution="1min", nullable=True)}
    found = made(columns, "close < open + 30 min", {} if stored is None else dict.fromkeys(columns, stored), 1)
    assert found is not None
    frame = found.sample(3000, seed=0).to_pandas().dropna()
    gap = [pd.Timedelta(str(b)) - pd.Timedelta(str(a)) for a, b in zip(frame["open"], frame["close"], strict=True)]
    assert min(gap) >= pd.Timedelta("30min")
