"""The id of a release and the version that made it: in every file, kept by load and save."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure.errors import ReleaseFileError
from privmeasure.origin import Origin, new_id
from privmeasure.releases.base import with_record

SCHEMA = pm.Schema({name: pm.Integer(0, 9) for name in "abcd"})
TABLE = pa.table({name: np.arange(100) % 10 for name in "abcd"})


def fitted(kind, **options):
    if kind == "points":
        space, data = pm.Box([(0, 1)]), np.linspace(0, 1, 100)
    elif kind == "columns of points":
        space, data = pm.Product([pm.Box([(0, 1)])] * 4), np.random.default_rng(0).random((100, 4))
        return pm.Synthesizer(space, epsilon=1, neighbours="replace", mechanism="columns").fit(data, **options)
    else:
        space, data = SCHEMA, TABLE
    mechanism = {"points": "auto", "flat": "psmm", "table": "pmm"}.get(kind, "columns")
    return pm.Synthesizer(space, epsilon=1, neighbours="replace", mechanism=mechanism).fit(data, **options)


@pytest.mark.parametrize("kind", ["points", "columns of points", "table", "columns"])
def test_every_release_has_an_id_and_a_version(kind, tmp_path):
    synth = fitted(kind)
    origin = synth.release_.origin
    assert origin == Origin(synth.release_id, pm.__version__)
    assert re.fullmatch("[0-9a-f]{32}", origin.id)
    synth.save(tmp_path / "a")
    again = pm.load(tmp_path / "a")
    assert again.origin == origin
    assert again.origin.recorded is origin.recorded is False
    again.save(tmp_path / "b")
    assert pm.load(tmp_path / "b").origin == origin
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert fitted(kind).release_id != origin.id


@pytest.mark.parametrize("kind", ["points", "columns"])
def test_with_a_seed_the_id_is_reproducible(kind):
    one, two, three = (fitted(kind, insecure_seed=seed) for seed in (1, 1, 2))
    assert one.release_id == two.release_id != three.release_id
    assert one.release_.header() == two.release_.header()


@pytest.mark.parametrize("kind", ["points", "columns of points", "table", "columns"])
@pytest.mark.parametrize(
    ("recorded", "words"),
    [(True, "recorded in a ledger"), (False, "not recorded in a ledger"), (None, "not known whether")],
)
def test_whether_a_ledger_recorded_it_is_in_the_header_and_in_the_words_of_the_plan(kind, recorded, words, tmp_path):
    """The plan in the file does not say it: an older version would refuse a field of a plan that it does not know."""
    synth = fitted(kind)
    measure = getattr(synth.release_, "measure", synth.release_)
    with_record(measure, recorded).save(tmp_path / "a")
    again = pm.load(tmp_path / "a")
    assert again.header().get("recorded") is again.origin.recorded is recorded
    assert "ledger" not in json.dumps(again.header())
    assert f"ledger     {words}" in str(again.plan)
    assert ("not recorded" in str(again.plan)) == (recorded is False)
    with pytest.raises(ReleaseFileError, match="unknown field 'ledger'"):
        type(again.plan).from_json(again.plan.to_json() | {"ledger": "words of a stranger"})


def test_before_a_release_a_plan_says_nothing_of_a_ledger():
    assert "ledger" not in str(pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace").plan(100))


def test_an_older_version_stays_in_the_file(tmp_path):
    synth = fitted("points")
    object.__setattr__(synth.release_, "origin", Origin(new_id(), "0.0.9"))
    synth.save(tmp_path / "a")
    assert pm.load(tmp_path / "a").origin.version == "0.0.9"


@pytest.mark.parametrize(
    "change",
    [
        *({"id": text} for text in ("x", None, "A" * 32)),
        *({"version": text} for text in ("", 3, "a\nb")),
        *({"recorded": value} for value in ("yes", 1, None, "the name of an account")),
    ],
)
def test_an_edited_origin_is_refused(tmp_path, change):
    synth = fitted("points")
    header = synth.release_.header() | change
    with pytest.raises(ReleaseFileError):
        Origin.from_header(header)
    table = pa.table(dict(zip(("part", "cell", "mass"), synth.release_.columns_of_file(), strict=True)))
    pq.write_table(table.replace_schema_metadata({b"privmeasure": json.dumps(header).encode()}), tmp_path / "x")
    with pytest.raises(ReleaseFileError, match="edited"):
        pm.load(tmp_path / "x")
