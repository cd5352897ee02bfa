"""Conditions (`where`) and facts (`never`): what people write, and that rows honour it."""

import contextlib
from dataclasses import replace
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import privmeasure as pm
from depth import examples
from privmeasure.conditions.language import ConditionError, parse_condition
from privmeasure.conditions.sets import Condition
from privmeasure.domains import Box, Categories, Domain, Nullable, Product, Steps
from privmeasure.errors import ArgumentError, ReleaseFileError, SchemaError
from privmeasure.mechanisms import PMM, ColumnTree
from privmeasure.noise.entropy import Key
from privmeasure.privacy import Privacy
from privmeasure.releases.table import TableRelease
from privmeasure.sources.tables import TableSource
from privmeasure.tables import (
    Boolean,
    Category,
    Date,
    Datetime,
    Drop,
    Integer,
    Layout,
    Number,
    Place,
    Schema,
    Time,
    facts,
)
from privmeasure.tables.facts import conditions, forbidden_pairs

COLUMNS: dict[str, Any] = {
    "sex": Category(["F", "M"]),
    "age": Integer(0, 110),
    "pregnant": Boolean(),
    "income": Number(1, 1e6, transform="log", decimals=0, nullable=True),
    "smoker": Boolean(nullable=True),
}
NEVER = ["sex = 'M' and pregnant = true", "age < 12 and pregnant = true", "income > 1000 and age <= 10"]


def people(n: int = 6000) -> pa.Table:
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], n)
    age = np.clip(rng.gamma(3, 10, n), 0, 110).astype(int)
    pregnant = (sex == "F") & (rng.random(n) < 0.3) & (age > 15)
    income = np.where(age > 10, rng.lognormal(9, 1, n), 10.0)
    missing = rng.random(n) < 0.2
    return pa.table(
        {
            "sex": sex,
            "age": age,
            "pregnant": pregnant,
            "income": pa.array(income, mask=missing),
            "smoker": pa.array(rng.random(n) < 0.3, mask=missing),
        }
    )


def released(schema: Schema, *, joint: bool = False, told: bool = True) -> TableRelease:
    table = people()
    privacy, source = Privacy(2, "add-remove"), TableSource(table, schema)
    layout = Layout.of(schema, tuple(table.column_names), tuple(table.schema.types))
    if joint:
        return TableRelease(schema, layout, PMM(schema.domain, privacy).release(source, Key.insecure(1)))
    domain = schema.node_domain
    mechanism = ColumnTree(domain, privacy, facts=forbidden_pairs(schema) if told else ())
    return TableRelease(schema, layout, mechanism.release(source, Key.insecure(1), None))


@pytest.fixture(scope="module")
def release() -> TableRelease:
    return released(Schema(COLUMNS, never=NEVER))


# --------------------------------------------------------------------------------------------------------- language


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("a = 1", [("a", "=", (1,))]),
        ("a==1.5 AND b<>'it''s'", [("a", "=", (1.5,)), ("b", "!=", ("it's",))]),
        ('"a b" >= -2e3 and `c` is not null', [("a b", ">=", (-2000.0,)), ("c", "is not", ())]),
        ("x in (1, 'two', true) and y not in (3)", [("x", "=", (1, "two", True)), ("y", "!=", (3,))]),
        ("d < '2020-01-31' and e is missing", [("d", "<", ("2020-01-31",)), ("e", "is", ())]),
        ("and-ed = or", [("and-ed", "=", ("or",))]),
    ],
)
def test_language(text: str, clauses: list[Any]) -> None:
    assert [(c.name, c.sign, c.values) for c in parse_condition(text)] == clauses


BROKEN = [
    "", "  ", "a", "a =", "= 3", "a = 3 or b = 2", "a = 3 b = 2", "a = 'x", "a in 3", "a in ()", "a in (1",
    "a in (1 2)", "a is 3", "a is not", "a not 3", "a = (", "a = 3 and", "a < < 3", "x" * 20_000,
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
def test_broken_language(text: str) -> None:
    with pytest.raises(ConditionError):
        parse_condition(text)


@examples(60, 300)
@given(st.text(alphabet="ab =<>!'\"(),1.3andisn", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConditionError):
        assert parse_condition(text)


# ------------------------------------------------------------------------------------------------------ translation


def holds(schema: Schema, text: str, points: list[float]) -> list[bool]:
    (condition,) = conditions(schema, text)
    return condition.holds(np.array(points)[:, None]).tolist()


def test_signs_on_integers() -> None:
    schema = Schema({"age": Integer(0, 99, nullable=True)})
    for sign, expected in {
        "=": [0, 1, 0], "!=": [1, 0, 1], "<": [1, 0, 0], "<=": [1, 1, 0], ">": [0, 0, 1], ">=": [0, 1, 1]
    }.items():  # fmt: skip
        assert holds(schema, f"age {sign} 30", [29, 30, 31, np.nan]) == [bool(e) for e in [*expected, 0]]
    assert holds(schema, "age > 29.5", [29, 30]) == [False, True]
    assert holds(schema, "age is null", [3, np.nan]) == [False, True]
    assert holds(schema, "age is not null", [3, np.nan]) == [True, False]
    assert holds(schema, "age in (3, 5)", [3, 4, 5]) == [True, False, True]
    assert holds(schema, "age not in (3, 5)", [0, 3, 4, 5, 99]) == [True, False, True, False, True]
    assert holds(schema, "age > 3 and age <= 5", [3, 4, 5, 6]) == [False, True, True, False]
    assert holds(schema, "age > 200", [0, 99]) == [False, False]


@examples(20, 60)
@given(st.floats(1, 1000), st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), st.booleans())
def test_conditions_on_numbers_are_true_of_what_is_written(value: float, sign: str, rounded: bool) -> None:
    """Points are rounded on their way out: the condition is about what comes out."""
    column = Number(1, 1000, transform="log", decimals=1 if rounded else None)
    schema = Schema({"x": column})
    value = round(value, 1) if rounded else value
    (condition,) = conditions(schema, f"x {sign} {value!r}")
    rng = np.random.default_rng(0)
    low, high = column.domain.extent(np.zeros(1, np.uint64), 0)
    exact = column.encode([pa.array([value])])
    points = np.concatenate([rng.uniform(low, high, (500, 1)), exact, exact + rng.normal(0, 1e-4, (200, 1))])
    points = np.clip(points, low, high)
    written = column.decode(points, [None])[0].to_numpy()
    import operator as o

    signs = {"<": o.lt, "<=": o.le, ">": o.gt, ">=": o.ge, "=": o.eq, "!=": o.ne}
    assert np.array_equal(condition.holds(points), signs[sign](written, value))


def test_dates_and_times() -> None:
    schema = Schema({"d": Date(date(2020, 1, 1), date(2020, 12, 31))})
    (condition,) = conditions(schema, "d >= '2020-03-01'")
    points = schema.encode(pa.table({"d": [date(2020, 2, 29), date(2020, 3, 1)]}))
    assert condition.holds(points).tolist() == [False, True]
    schema = Schema({"t": Time()})
    (condition,) = conditions(schema, "t < '06:30:00'")
    points = schema.encode(pa.table({"t": [time(6, 29, 59), time(6, 30), time(23, 59, 59)]}))
    assert condition.holds(points).tolist() == [True, False, False]
    schema = Schema({"w": Datetime(datetime(2020, 1, 1), datetime(2020, 12, 31))})
    (condition,) = conditions(schema, "w > '2020-06-01T12:00:00'")
    points = schema.encode(pa.table({"w": [datetime(2020, 6, 1, 12), datetime(2020, 6, 1, 13)]}))
    assert condition.holds(points).tolist() == [False, True]


def test_ordered_categories_have_an_order() -> None:
    schema = Schema({"size": Category(["S", "M", "L"], ordered=True), "n": Category([10, 20, 5])})
    assert holds(schema, "size >= 'M'", [0, 1, 2]) == [False, True, True]
    assert holds(schema, "n = 20", [0, 1, 2]) == [False, True, False]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sx = 'F'", "Did you mean 'sex'"),
        ("sex = 'Female'", "not one of its values"),
        ("smoker = maybe", "true or false"),
        ("smoker < true", "no order"),
        ("sex > 'F'", "no order"),
        ("age > 'old'", "no value of that column"),
        ("name = 'x'", "no data"),
        ("home = 3", "is a place"),
        ("age =", "ends where"),
    ],
)
def test_what_is_wrong_is_told(text: str, told: str) -> None:
    schema = Schema({**COLUMNS, "name": Drop(), "home": Place("lat", "lon")})
    with pytest.raises(ArgumentError, match=told):
        conditions(schema, text)
    with pytest.raises(SchemaError, match=told):
        forbidden_pairs(Schema({**COLUMNS, "name": Drop(), "home": Place("lat", "lon")}, never=f"{text} and age = 3"
                               if "age" not in text else text))  # fmt: skip


def test_cells_that_are_meant() -> None:
    condition = Condition(0, 0, ((3.0, 5.5),))
    spaces: list[Domain] = [Steps(0, 9), Box([(0, 10)]), Categories(9), Nullable(Steps(0, 9)), Nullable(Categories(6))]
    rng = np.random.default_rng(0)
    for space in spaces:
        for missing in (False, True):
            asked = replace(condition, missing=missing)
            for level in range(6):
                possible, certain = asked.cells(space, level)
                codes = np.arange(1 << level, dtype=np.uint64)
                codes = np.repeat(codes[space.exists(codes, level)], 50)
                held = asked.holds(space.draw(codes, level, rng))
                assert possible[codes[held].view(np.int64)].all()
                assert not certain[codes[~held].view(np.int64)].any()
                assert (possible | ~certain).all()


# ------------------------------------------------------------------------------------------------------------ facts


def broken(rows: pa.Table) -> int:
    frame = rows.to_pandas()
    pregnant = frame.pregnant.astype(bool)
    wrong = ((frame.sex == "M") & pregnant) | ((frame.age < 12) & pregnant)
    return int((wrong | ((frame.income > 1000) & (frame.age <= 10))).sum())


def test_facts_hold_in_every_row(release: TableRelease) -> None:
    for seed in range(3):
        assert broken(release.sample(20_000, seed=seed)) == 0
    assert broken(released(Schema(COLUMNS)).sample(20_000, seed=0)) > 0  # noise breaks them otherwise


def test_facts_hold_whatever_the_ranks(release: TableRelease) -> None:
    assert broken(released(Schema(COLUMNS, never=NEVER), told=False).sample(20_000, seed=0)) == 0


def test_facts_hold_in_one_tree_over_all_columns() -> None:
    joint = released(Schema(COLUMNS, never=NEVER), joint=True)
    rows = joint.sample(seed=0)
    assert broken(rows) == 0
    assert rows.num_rows == joint.total
    assert set(joint.sample(500, seed=0, where="age >= 30 and sex = 'F'")["sex"].to_pylist()) == {"F"}


def test_cell_order_does_not_choose_the_first_cells() -> None:
    joint = released(Schema(COLUMNS), joint=True)
    shares = [
        np.mean([sex == "F" for sex in joint.sample(200, seed=0, order=order, where="age >= 0")["sex"].to_pylist()])
        for order in ("random", "cell")
    ]
    assert abs(shares[0] - shares[1]) < 0.2


def test_facts_leave_margins_alone_where_they_can(release: TableRelease) -> None:
    share = np.mean(release.sample(seed=1)["pregnant"].to_pylist())
    assert share == pytest.approx(release.mean()["pregnant"], abs=0.01)


def test_facts_survive_the_file(release: TableRelease, tmp_path: Path) -> None:
    release.save(tmp_path / "x")
    again = pm.load(tmp_path / "x")
    assert isinstance(again, TableRelease)
    assert again.sample(seed=4).equals(release.sample(seed=4))
    assert broken(again.sample(10_000, seed=4)) == 0


@pytest.mark.parametrize(
    "edit",
    [
        {"column": True},
        {"column": False},
        {"coordinate": False},
        {"column": 1.0},
        {"column": -1},
        {"missing": 1},
        {"intervals": [["0", 1]]},
        {"intervals": [[False, True]]},
        {"intervals": [[0]]},
        {"intervals": [None]},
        {"intervals": [[0, 10**400]]},
    ],
    ids=str,
)
def test_a_constraint_of_a_file_has_numbers_and_no_true_or_false(edit: dict[str, Any]) -> None:
    space = Product([Categories(2), Categories(2)])
    fine = {"column": 1, "coordinate": 0, "intervals": [[0, 1.0]], "missing": False}
    assert Condition.from_json(fine, space) == Condition(1, 0, ((0.0, 1.0),))
    with pytest.raises(ReleaseFileError, match="two conditions"):
        Condition.from_json(fine | edit, space)


@pytest.mark.parametrize(
    ("never", "told"),
    [
        (["sex = 'M'"], "is about 1 column"),
        (["sex = 'M' and age = 3 and pregnant = true"], "is about 3 columns"),
        (["age >= 0 and sex in ('F', 'M')"], "forbid every row"),
        (["sex = 'F' and age >= 0", "sex = 'M' and pregnant = true", "sex = 'M' and pregnant = false"], "forbid every"),
        (["sex = 'F' and age < 50", "sex = 'F' and age >= 50", "sex = 'M' and age <= 200"], "forbid every row"),
    ],
)
def test_facts_that_cannot_be(never: list[str], told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        forbidden_pairs(Schema(COLUMNS, never=never))


def test_facts_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(facts, "parse_condition", lambda text: read.append(text) or parse_condition(text))
    never = ["sex = 'M' and age < 3", "age > 100 and sex = 'F'"]
    schema = Schema({"sex": Category(["F", "M"]), "age": Integer(0, 120)}, never=never)
    table = pa.table({"sex": ["F", "M"] * 50, "age": list(range(100))})
    for mechanism in ("pmm", "columns"):
        synthesizer = pm.Synthesizer(schema, epsilon=1, neighbours="replace", mechanism=mechanism)  # type: ignore[arg-type]
        synthesizer.plan(100)
        synthesizer.fit(table, insecure_seed=0).sample(10)
    assert read == never


def test_facts_that_leave_something() -> None:
    fine = [
        ["sex = 'F' and age >= 0", "sex = 'M' and pregnant = true"],
        ["income is null and smoker is null", "income is not null and smoker is not null"],
        ["age < 50 and sex = 'F'", "age > 50 and sex = 'F'", "sex = 'M' and age != 7"],
    ]
    for never in fine:
        assert len(forbidden_pairs(Schema(COLUMNS, never=never))) == len(never)


# ------------------------------------------------------------------------------------------------------------ where


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("sex = 'F'", lambda f: f.sex == "F"),
        ("age >= 30 and sex = 'F'", lambda f: (f.age >= 30) & (f.sex == "F")),
        ("age > 13 and age <= 17", lambda f: (f.age > 13) & (f.age <= 17)),
        ("income >= 20000 and age < 40", lambda f: (f.income >= 20000) & (f.age < 40)),
        ("income is null", lambda f: f.income.isna()),
        ("smoker = true and pregnant = false", lambda f: (f.smoker == True) & ~f.pregnant),  # noqa: E712
    ],
)
def test_every_row_satisfies_the_condition(release: TableRelease, text: str, test: Any) -> None:
    rows = release.sample(3000, seed=2, where=text)
    assert rows.num_rows == 3000
    assert test(rows.to_pandas()).all()
    assert broken(rows) == 0
    assert rows.equals(release.sample(3000, seed=2, where=text, threads=1))
    whole = release.sample(seed=2).to_pandas()
    assert release.sample(seed=2, where=text).num_rows == int(test(whole).sum())


def test_a_condition_on_one_column_is_exact_in_law() -> None:
    """The column itself: its released law given the condition. Another: that of all rows that satisfy it."""
    release = released(Schema(COLUMNS))
    rows = release.sample(40_000, seed=3, where="age >= 23 and age <= 61").to_pandas()
    column = release.measure.columns[1]  # type: ignore[union-attr]
    values = np.arange(111)
    law = np.zeros(111)
    cells = column.domain.locate(values[:, None].astype(float), column.level).view(np.int64)
    mass = np.zeros(1 << column.level)
    mass[column.cells.view(np.int64)] = column.mass
    law = mass[cells] / np.bincount(cells, minlength=len(mass))[cells]
    inside = (values >= 23) & (values <= 61) & (law > 0)
    counts = np.bincount(rows.age, minlength=111)
    assert counts[~inside].sum() == 0
    assert stats.chisquare(counts[inside], law[inside] / law[inside].sum() * len(rows)).pvalue > 1e-6
    assert stats.chisquare(counts[inside], np.full(inside.sum(), len(rows) / inside.sum())).pvalue < 1e-6
    many = release.sample(200_000, seed=4).to_pandas()
    many = many[(many.age >= 23) & (many.age <= 61)]
    for name in ("sex", "pregnant"):
        table = np.array([f[name].value_counts().sort_index().to_numpy() for f in (rows, many)])
        assert stats.chi2_contingency(table).pvalue > 1e-6


def test_what_cannot_be_asked(release: TableRelease) -> None:
    with pytest.raises(ArgumentError, match="no mass there"):
        release.sample(10, where="age > 200")
    with pytest.raises(ArgumentError, match=r"Too few rows|Fewer than one"):
        release.sample(2000, seed=1, where="age < 12 and pregnant = true")
    with pytest.raises(ArgumentError, match="Did you mean 'sex'"):
        release.sample(10, where="sxe = 'F'")
    assert release.sample(seed=1, where="age > 200").num_rows == 0
    assert release.sample(0, where="sex = 'F'").num_rows == 0
