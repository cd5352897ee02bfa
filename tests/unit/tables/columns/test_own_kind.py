"""A kind of one's own: one class and one registration take it through the whole house."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec import Meta
from typer.testing import CliRunner

import privmeasure as pm
from privmeasure.cli import app
from privmeasure.domains import Domain, Floats, Integers, Nullable, Points
from privmeasure.tables.arrow import is_text, numbers
from privmeasure.tables.columns import kinds
from privmeasure.tables.columns.base import DataColumn, Foreign, Sketch, Types
from privmeasure.tables.foreign import from_foreign
from privmeasure.tables.template import guide_lines, template
from privmeasure.testing import check_column


class Grade(DataColumn, frozen=True, tag="grade"):
    """A school grade from A, the best, to the last letter; texts like "B", or its number."""

    guide = ("last", "school grades; A is the best")
    needs = (("last", "the letter of the worst grade"),)

    last: Annotated[str, Meta(description="The worst grade.")] = "F"

    @property
    def letters(self) -> list[str]:
        return [chr(code) for code in range(ord("A"), ord(self.last) + 1)]

    @property
    def domain(self) -> Domain:
        inner = Integers(0, len(self.letters) - 1)
        return Nullable(inner) if self.nullable else inner

    @property
    def natural(self) -> tuple[pa.DataType, ...]:
        return (pa.string(),)

    def refuses(self, type: pa.DataType) -> str | None:
        return None if is_text(type) or pa.types.is_null(type) else "must be letters. Cast it."

    def read(self, array: pa.Array, source: int) -> Floats:
        if not is_text(array.type):
            return numbers(array)
        found = {letter: float(i) for i, letter in enumerate(self.letters)}
        return np.array([np.nan if cell is None else found.get(cell, np.nan) for cell in array.to_pylist()])

    def settle(self, readings: Sequence[Floats]) -> Points:
        last = len(self.letters) - 1
        clamped = np.clip(readings[0], 0, last)
        return (clamped if self.nullable else np.where(np.isnan(clamped), 0.0, clamped))[:, None]

    def restore(self, points: Points, types: Types) -> list[pa.Array]:
        missing = np.isnan(points[:, 0])
        places = np.where(missing, 0, np.rint(points[:, 0])).astype(np.int32)
        return [pa.array(self.letters).take(pa.array(places, mask=missing))]

    def changed(self, reading: Floats, source: int) -> tuple[int, int]:
        return int(np.count_nonzero((reading < 0) | (reading >= len(self.letters)))), 0

    def cell_size(self, cuts: int) -> str:
        return "grades"

    @property
    def listed(self) -> tuple[str, ...]:
        return tuple(self.letters)

    def position(self, name: str, value: Any) -> int:
        return self.letters.index(str(value))

    def averages(self, points: Points) -> Floats:
        return points[:, 0]

    @classmethod
    def guess(cls, name: str, type: pa.DataType) -> Sketch | None:
        return (cls.sketch("last"), "Is F the worst?") if name.endswith("grade") and is_text(type) else None

    @classmethod
    def imported(cls, field: Foreign) -> Sketch | None:
        return (cls.sketch(last=max(field.values)), "") if set(field.values or "?") <= set("ABCDEF") else None


@pytest.fixture
def _grades():
    kinds.register(Grade)
    yield
    kinds.COLUMN_KINDS.pop("grade", None)


TOML = """format = 1
never = ["mark = 'F' and passed = true"]
[columns.mark]
type = "grade"
nullable = true
[columns.passed]
type = "boolean"
[columns.year]
type = "integer"
low = 1
high = 4
[columns.room]
type = "category"
values = ["x", "y"]
"""


def test_its_laws():
    check_column(Grade(nullable=True))
    check_column(Grade(last="C"))


@pytest.mark.usefixtures("_grades")
@pytest.mark.parametrize("columns", [["mark", "passed"], ["mark", "passed", "year", "room"]])
def test_from_a_schema_file_to_rows_conditions_and_inspection(tmp_path, columns):
    (tmp_path / "s.toml").write_text(TOML)
    schema = pm.Schema.from_toml(tmp_path / "s.toml")
    assert pm.Schema.from_text(schema.to_toml()) == schema
    assert "grade" in str(pm.Schema.json_schema())
    rng = np.random.default_rng(0)
    mark = rng.choice(list("AABBBCDF"), 4000)
    rows = pa.table(
        {"mark": mark, "passed": mark != "F", "year": rng.integers(1, 5, 4000), "room": rng.choice(["x", "y"], 4000)}
    )
    if len(columns) == 2:
        schema = schema.only(columns)
    synth = pm.Synthesizer(schema, epsilon=2, neighbours="replace").fit(rows)
    sample = synth.sample(2000, seed=0)
    assert set(sample["mark"].to_pylist()) <= {*"ABCDEF", None}
    assert not any(
        m == "F" and p for m, p in zip(sample["mark"].to_pylist(), sample["passed"].to_pylist(), strict=True)
    )
    good = synth.sample(300, seed=0, where="mark <= 'B'")
    assert set(good["mark"].to_pylist()) <= {"A", "B"}
    assert 0.5 < synth.release_.mean()["mark"] < 3
    assert synth.release_.quantile(0.0, column="mark") == "A"
    synth.save(tmp_path / "r.release")
    assert pm.load(tmp_path / "r.release").sample(10, seed=1).num_rows == 10
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "r.release"), "--no-certificate"])
    assert shown.exit_code == 0
    assert "grades" in shown.output


@pytest.mark.usefixtures("_grades")
def test_templates_guides_and_importers_know_it_before_ours():
    text = template(["final_grade", "name"], [pa.string(), pa.string()])
    assert '# Is F the worst?\n[columns.final_grade]\ntype = "grade"\nlast = "?"\n' in text
    assert '[columns.name]\ntype = "category"' in text
    assert any(
        line.split() == ["grade", "last", "school", "grades;", "A", "is", "the", "best"] for line in guide_lines()
    )
    assert all(f"#   {line}\n" in text for line in guide_lines())
    with pytest.raises(pm.PrivmeasureError, match="last: the letter of the worst grade"):
        pm.Schema.from_text(text.replace('type = "category"\nvalues = "?"', 'type = "drop"'))
    fields = [{"name": name, "constraints": {"enum": list(name)}} for name in ("ABC", "XYZ")]
    columns = from_foreign({"fields": fields}).complete()
    assert columns["ABC"] == Grade(last="C")
    assert isinstance(columns["XYZ"], pm.Category)


@pytest.mark.usefixtures("_grades")
def test_a_release_of_a_kind_that_is_not_registered_says_so(tmp_path):
    schema = pm.Schema({"mark": Grade()})
    rows = pa.table({"mark": ["A", "B"] * 50})
    pm.Synthesizer(schema, epsilon=1, neighbours="replace").fit(rows).save(tmp_path / "r.release")
    kinds.COLUMN_KINDS.pop("grade")
    with pytest.raises(pm.PrivmeasureError, match="grade"):
        pm.load(tmp_path / "r.release")
