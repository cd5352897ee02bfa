"""The pages of a plan and of a comparison, and pictures as functions."""

import re
from pathlib import Path

import matplotlib.axes
import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.errors import ArgumentError
from privmeasure.metrics.fidelity import NO_DIFFERENCE, REAL_TABLE_STAMP, fidelity
from privmeasure.report import canvas, plots
from privmeasure.report.confidential import comparison_page, confidential_name
from privmeasure.report.planning import plan_page
from privmeasure.report.public import release_page
from privmeasure.tables.variables import variables

from .releases import HOSTILE, release, typical, wide_schema, wide_table
from .test_public import check

TWO = pm.Schema({"age": pm.Integer(0, 120, unit="year"), "sex": pm.Category(["F", "M"], nullable=True)})


def planned(schema, **options):
    synth = pm.Synthesizer(schema, **({"epsilon": 1, "neighbours": "add-remove"} | options))
    return plan_page(
        schema,
        synth.plan(5000),
        epsilons=synth.guarantees(5000),
        rows=[synth.plan(rows) for rows in (500, 5000, 50_000)],
        per_person=synth.guarantees_per_person(5000),
        choice=synth.choice,
        warnings=["<b>look</b>"],
    )


@pytest.mark.parametrize("schema", [TWO, wide_schema()], ids=["tree", "wide"])
def test_a_plan_has_a_page(schema):
    page = planned(schema)
    text = " ".join(" ".join(check(page).text).split())
    assert "<b>look</b>" in text
    assert "years" in text
    assert "No data were opened" in text
    assert "What another epsilon would protect and guarantee" in text
    assert "50 % sure of what their rows say: afterwards" in text
    assert text.rindex("For experts") < text.rindex("noise scale")
    assert "noise scale" not in text[: text.rindex("For experts")]
    assert "Rows per person" in text
    assert ("pairs of columns would be measured together" in text) == (schema is not TWO)
    assert planned(schema) == page


def test_a_larger_epsilon_guarantees_more_on_the_page():
    page = planned(TWO)
    part = page[page.index('id="epsilon"') : page.index('id="rows"')]
    told = {
        re.search(r">([^<]*)</th>", line)[1]: re.search(r'data-head="age: guaranteed">([^<]*)<', line)[1]
        for line in part.split("<tr>")
        if 'scope="row"' in line and "year" in line
    }
    assert float(told["10"].split()[0]) < float(told["2"].split()[0]) < float(told["1"].split()[0])


def compared(schema, table, made):
    real, other = (schema.encode(t.combine_chunks()) for t in (table, made.sample(seed=0)))
    return real, other, fidelity(real, other, schema)


def test_a_comparison_has_a_page_that_says_what_it_is():
    schema, made = wide_schema(), release("wide table")
    real, other, found = compared(schema, wide_table(), made)
    page = comparison_page(real, other, schema, found, release=made, typical=typical("wide table"))
    read = check(page)
    text = " ".join(" ".join(read.text).split())
    assert text.count(REAL_TABLE_STAMP) >= 3
    assert '<meta name="classification" content="CONFIDENTIAL">' in page
    assert "<title>CONFIDENTIAL" in page
    head = page[page.index("<thead>") : page.index("</thead>")]
    assert REAL_TABLE_STAMP in head  # what a browser repeats on every sheet
    assert "table-header-group" in page
    assert HOSTILE in text
    for word in ("two halves", "guaranteed", "certified", "typical", "Correlations", "from synthetic", "real rows"):
        assert word in text, word


def test_a_comparison_without_a_release_promises_nothing():
    table = pa.table({"age": np.random.default_rng(0).integers(0, 90, 400), "sex": ["F", "M"] * 200})
    points = TWO.encode(table)
    page = comparison_page(points, points, TWO, fidelity(points, points, TWO))
    text = " ".join(check(page).text)
    assert "W1 of whole rows" in text
    assert "certified for this release" not in text


def test_a_comparison_lists_the_values_that_are_lost_and_all_figures():
    rng = np.random.default_rng(0)
    age = np.where(np.arange(500) < 200, 0, rng.integers(1, 90, 500))
    tables = [pa.table({"age": ages, "sex": ["F", "M", "F", None, "M"] * 100}) for ages in (age, np.maximum(age, 1))]
    real, other = (TWO.encode(table) for table in tables)
    found = fidelity(real, other, TWO)
    page = comparison_page(real, other, TWO, found)
    text = " ".join(" ".join(check(page).text).split())
    assert "age: 0 in 40.0 % of the real rows, in 0.0 % of the synthetic ones -40.0 points" in text
    assert text.index("age: 0 in 40.0 %") < text.index("mean W1 of the columns")
    part = page[page.index('id="figures"') :]
    assert part.count("<tr>") == 1 + len(found.differences)
    for name in ("share of 0", "95 % quantile", "share of missing values", "share of 0 where sex is F"):
        assert f">{name}<" in part, name
    assert NO_DIFFERENCE not in text
    same = comparison_page(real, real, TWO, fidelity(real, real, TWO))
    assert NO_DIFFERENCE in " ".join(check(same).text)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("out.html", "out.CONFIDENTIAL.html"),
        ("out", "out.CONFIDENTIAL.html"),
        ("my-confidential.html", "my-confidential.html"),
    ],
)
def test_the_name_of_a_comparison_says_it(given, name):
    assert confidential_name(Path("folder") / given) == Path("folder") / name


# ------------------------------------------------------------------------------------------------------------ pictures


def drawings(made):
    schema = made.schema
    rows = schema.encode(made.sample(seed=0).combine_chunks())
    known = {v.name: v for v in variables(schema)}
    synth = pm.Synthesizer(TWO, epsilon=1, neighbours="replace")
    home = known["home"]
    yield from ((plots.column, (made, name)) for name in known)
    yield plots.pair, (made, "age", "food")
    yield plots.calendar, (known["born"], rows[:, known["born"].places])
    yield plots.place_map, (home, home.shares(rows[:, home.places]))
    yield plots.odds, (made.plan.privacy,)
    yield plots.budget, (made.plan,)
    yield plots.guarantees, (synth.guarantees(1000),)
    yield plots.agreement, (np.array([0.5, -0.2]), np.array([0.4, 0.0]))


def test_every_picture_returns_axes_and_draws_on_those_that_are_given():
    for draw, arguments in drawings(release("wide table")):
        ax = draw(*arguments)
        assert isinstance(ax, matplotlib.axes.Axes)
        assert ax.figure.axes[0] is ax
        ours = canvas.new_axes()
        assert draw(*arguments, ax=ours) is ours
        canvas.forget(ax), canvas.forget(ours)


def test_a_notebook_shows_pictures_and_a_page_leaves_none_behind(monkeypatch):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    ax = plots.odds(release("line").plan.privacy)
    assert ax.figure.number in pyplot.get_fignums()
    canvas.forget(ax)
    release_page(release("line"))
    assert pyplot.get_fignums() == before


def test_bars_are_the_shares_of_the_released_rows():
    made = release("tree of a table")
    ax = plots.column(made, "sex", typical=typical("tree of a table"))
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    shares = {str(v) if v else "(missing)": n / made.total for v, n in _counts(made.sample(seed=1)["sex"])}
    for label, bar in zip(labels, ax.patches, strict=False):
        assert bar.get_width() / 100 == pytest.approx(shares[label], abs=0.01)
    canvas.forget(ax)


def _counts(column):
    return [(entry["values"].as_py(), entry["counts"].as_py()) for entry in column.value_counts()]


def test_a_column_that_is_not_there():
    with pytest.raises(ArgumentError, match="column must be one of 'x0', got 'x1'"):
        plots.column(release("line"), "x1")


def test_without_the_extra_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(ArgumentError, match="pip install jinja2 matplotlib"):
        canvas.check_pictures()


def test_texts_in_a_picture_stay_texts():
    ax = canvas.new_axes()
    ax.set_title('</svg><script id="a_1">#2f6fb5 $a_b$')
    drawn = canvas.svg(ax, name="f1")
    assert "<script" not in drawn
    assert '&lt;script id="a_1"&gt;#2f6fb5 $a_b$' in drawn.replace("&quot;", '"')
    assert drawn.startswith("<svg")
    assert "metadata" not in drawn
    canvas.forget(ax)
