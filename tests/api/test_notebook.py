"""Notebooks: the one in the docs runs, values show themselves, arguments by other names get a hint."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privmeasure as pm
from privmeasure.errors import ArgumentError, DataError, ReleaseError, SchemaError, SpentError
from privmeasure.metrics.fidelity import REAL_TABLE_STAMP
from privmeasure.sources.arrays import ArraySource

PAGE = Path(__file__).parents[2] / "docs" / "first-hour.ipynb"
SCHEMA = pm.Schema(
    {"age": pm.Integer(0, 120), "<b>": pm.Category(["F", "M"]), "id": pm.Drop(), "half": pm.Derived("age / 2")},
)
PEOPLE = pd.DataFrame({"age": [31, 52, 47] * 200, "<b>": ["F", "M", "M"] * 200, "id": range(600)})


def synthesizer(space=SCHEMA, **options):
    return pm.Synthesizer(space, **({"epsilon": 1, "neighbours": "replace"} | options))


# --------------------------------------------------------------------------------------------------------- the notebook


def run_cells(cells, names):
    """Run cells as a notebook does, and return what it would show of their last lines."""
    shown = []
    for cell in cells:
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), PAGE.name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    return shown


def test_the_notebook_runs(tmp_path, monkeypatch, capsys):
    page = json.loads(PAGE.read_text(encoding="utf-8"))
    assert page["nbformat"] == 4
    assert len({cell["id"] for cell in page["cells"]}) == len(page["cells"])
    code = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    monkeypatch.chdir(tmp_path)
    names = {}
    shown = run_cells(code, names)
    assert any("<table>" in text and "guarantee" in text for text in shown)
    assert any(REAL_TABLE_STAMP in text for text in shown)
    assert 'low = "?"' in capsys.readouterr().out
    assert (names["synthetic"]["year"] == pd.to_datetime(names["synthetic"]["seen"]).dt.year).all()
    assert names["found"].one_way.value < 0.2


# ------------------------------------------------------------------------------------------------------- what is shown


def check_html(text):
    """Tags are balanced, and those of a name are none."""
    tags = re.findall(r"<(/?)(\w+)>", text)
    assert sum(not closed for closed, _ in tags) == sum(bool(closed) for closed, _ in tags) > 2
    assert "<b></td>" not in text


def test_values_show_themselves():
    synth = synthesizer()
    assert repr(synth) == "Synthesizer(2 columns, epsilon=1, neighbours='replace', not fitted)"
    plan = synth.plan(600)
    assert repr(plan).startswith("Plan(pmm, epsilon 1, replace, 600 rows, depth ")
    wide = synthesizer(mechanism="columns").plan(600)
    assert repr(wide) == "ColumnPlan(epsilon 1, replace, 600 rows, 2 columns, 1 pairs)"
    for value in (SCHEMA, synth, plan, wide, synthesizer(pm.Box([(0, 1)]))):
        check_html(value._repr_html_())
    assert "&lt;b&gt;" in SCHEMA._repr_html_()
    synth.fit(PEOPLE)
    assert "released" in repr(synth)
    points = synthesizer(pm.Box([(0, 1)])).fit(np.linspace(0, 1, 100))
    columns = synthesizer(mechanism="columns").fit(PEOPLE, insecure_seed=1)
    for value in (synth, synth.release_, points.release_, columns.release_, columns.release_.measure):
        check_html(value._repr_html_())
    assert "NOT PRIVATE" in columns._repr_html_()
    assert "guarantee" in synth.release_._repr_html_()
    long = pm.Schema({"x": pm.Category([f"value {i}" for i in range(500)])})
    assert "values = 500 in all" in long._repr_html_()


def test_a_failed_fit_is_shown_as_spent():
    class Fails(ArraySource):
        asked = 0

        def count(self, partitions, progress=None):
            self.asked += 1
            if self.asked > 1:
                raise MemoryError
            return super().count(partitions, progress)

    synth = synthesizer(mechanism="columns", neighbours="add-remove")
    with pytest.raises(ReleaseError):
        synth.fit(Fails(np.zeros((500, 2)), width=2))
    assert repr(synth).endswith("spent without a release)")
    check_html(synth._repr_html_())


# ---------------------------------------------------------------------------------------------------------------- hints


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: synthesizer(neighbors="replace"), "Synthesizer() has no argument 'neighbors'. It is called"),
        (lambda: pm.synthesize([1.0], epsilon=1, neighbors="replace", bounds=[(0, 1)]), "It is called neighbours here"),
        (lambda: synthesizer(num_rows=5), "It is called rows here"),
        (lambda: synthesizer().plan(num_rows=5), "Synthesizer.plan() has no argument 'num_rows'. It is called rows"),
        (lambda: synthesizer().sample(num_rows=5), "It is called n here"),
        (lambda: synthesizer().sample(random_state=5), "It is called seed here"),
        (lambda: synthesizer().fit(PEOPLE).release_.sample(num_rows=5), "TableRelease.sample() has no argument"),
        (lambda: synthesizer(eps=5), "It is called epsilon here"),
        (lambda: synthesizer(thread=5), "Did you mean threads?"),
        (lambda: synthesizer(quantum=5), "There are: space, epsilon"),
    ],
)  # fmt: skip
def test_arguments_by_other_names_get_a_hint(call, told):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert told in str(caught.value)


def test_what_is_missing_is_still_a_type_error():
    with pytest.raises(TypeError, match="neighbours"):
        pm.Synthesizer(SCHEMA, epsilon=1)


# ------------------------------------------------------------------------------------------------- fit_sample, evaluate


def test_fit_sample():
    synth = synthesizer()
    rows = synth.fit_sample(PEOPLE, 50, seed=1, where="half > 20")
    assert isinstance(rows, pd.DataFrame)
    assert len(rows) == 50
    assert (rows["half"] > 20).all()
    assert len(synth.sample()) == 600
    with pytest.raises(SpentError):
        synth.fit_sample(PEOPLE)


def test_text_files_are_read_as_they_are_written(tmp_path):
    path, other = tmp_path / "people.csv", {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}
    PEOPLE.assign(id="é").to_csv(path, sep=";", decimal=",", encoding="latin-1", index=False)
    told = []
    rows = synthesizer().fit_sample(path, 50, progress=lambda *stage: told.append(stage), **other)
    assert (len(rows), bool(told)) == (50, True)
    with pytest.raises(SchemaError):
        synthesizer().fit_sample(path)
    assert pm.evaluate(path, path, SCHEMA, **other).columns == pm.evaluate(PEOPLE, PEOPLE, SCHEMA).columns


def test_evaluate_says_which_rows_it_compares_with():
    columns = {**SCHEMA.columns}
    found = pm.evaluate(PEOPLE, PEOPLE, pm.Schema(columns, person="id"))
    for told in (str(found), found._repr_html_(), found.to_json()["compared_with"]):
        assert "all rows of the real table. Guarantees are about the kept ones" in told
    assert pm.evaluate(PEOPLE, PEOPLE, SCHEMA).to_json()["compared_with"] == "all rows of the real table"


def test_an_error_of_fit_sample_does_not_hold_the_data():
    secret = pd.DataFrame({"agee": [7381.25], "id": [1]})
    with pytest.raises(SchemaError) as caught:
        synthesizer().fit_sample(secret)
    trace = caught.value.__traceback__.tb_next  # the first frame is this test
    while trace is not None:
        assert not any(value is secret for value in trace.tb_frame.f_locals.values())
        trace = trace.tb_next


def test_evaluate(tmp_path):
    real = PEOPLE
    for form in (real, pl.from_pandas(real), real.drop(columns="id")):
        found = pm.evaluate(real, form, SCHEMA)
        assert found.w1.value == found.two_way.value == 0
        assert [column.name for column in found.columns] == ["age", "<b>"]
    real.to_csv(tmp_path / "real.csv", index=False)
    half = real.assign(age=real["age"] // 2, half=1.0)
    assert pm.evaluate(tmp_path / "real.csv", half, SCHEMA) == pm.evaluate(real, half, SCHEMA)
    assert pm.evaluate(real, half, SCHEMA).w1.value > 0.05
    check_html(found._repr_html_())
    assert str(found).startswith(REAL_TABLE_STAMP)
    release = synthesizer().fit(real).release_
    assert pm.evaluate(real, release).w1.value < 0.2


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda: pm.evaluate(PEOPLE, PEOPLE), ArgumentError, "evaluate needs schema="),
        (lambda: pm.evaluate(PEOPLE[:0], PEOPLE, SCHEMA), DataError, "The real table has no rows"),
        (lambda: pm.evaluate(PEOPLE, PEOPLE[["age"]], SCHEMA), SchemaError, "no column '<b>'"),
    ],
)
def test_tables_that_cannot_be_compared(call, kind, told):
    with pytest.raises(kind, match=told):
        call()


# --------------------------------------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("space", [SCHEMA, pm.Box([(0, 1)]), pm.Product([pm.Integers(0, 9), pm.Sphere()])])
def test_scikit_learn_clones_it_unfitted(space):
    base = pytest.importorskip("sklearn.base")
    synth = synthesizer(space, rows_per_person=2, threads=1)
    if space is SCHEMA:
        synth.fit(PEOPLE)
    copy = base.clone(synth)
    assert type(copy) is pm.Synthesizer
    assert not copy.spent
    assert copy.release_id != synth.release_id
    assert copy.privacy == synth.privacy
    assert {**copy.get_params(), "space": 0} == {**synth.get_params(), "space": 0}
    assert copy.plan(500) == synth.plan(500)
    assert base.clone(copy.set_params(epsilon=2)).privacy.epsilon == 2
    if space is SCHEMA:
        assert copy.get_params()["space"] == SCHEMA
        assert len(copy.fit_sample(PEOPLE, 5)) == 5
