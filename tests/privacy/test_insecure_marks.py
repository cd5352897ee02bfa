"""A release that was made with a seed says that it is not private: in every part, after every step, in every file."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privmeasure as pm
from privmeasure.cli import run
from privmeasure.domains import Box, Categories, Integers, Product
from privmeasure.mechanisms import PMM, PSMM, ColumnTree
from privmeasure.noise.entropy import Key
from privmeasure.plans.recipe import Recipe
from privmeasure.privacy import Privacy
from privmeasure.releases.files import HEADER_KEY
from privmeasure.report.public import release_page
from privmeasure.sources.arrays import ArraySource
from reference.reachable import reachable

LINE, SQUARE = Box([(0, 1)]), Box([(0, 1), (0, 1)])
WIDE = Product([Box([(0, 1)]), Integers(0, 60), Categories(5), Categories(3)])
MECHANISMS = {
    "tree": lambda p: PMM(SQUARE, p),
    "tree of a given depth": lambda p: PMM(LINE, p, depth=5),
    "paper": lambda p: PMM.paper(LINE, p),
    "lazy": lambda p: PMM(LINE, p, Recipe("sparse", "none"), depth=14, max_cells=64),
    "flat": lambda p: PSMM(LINE, p),
    "flat of a given depth": lambda p: PSMM(SQUARE, p, depth=6),
    "flat of one cell": lambda p: PSMM(SQUARE, p, depth=0),
    "columns": lambda p: ColumnTree(WIDE, p),
    "columns of a given number of rows": lambda p: ColumnTree(WIDE, p, rows=500),
}
PROMISES = [Privacy(2, "add-remove"), Privacy(2, "replace"), Privacy(2, "add-remove", delta=1e-6)]
KEYS = {False: lambda: Key.insecure(3), True: Key.fresh}


def marks(value) -> list[bool]:
    """Return whether each part of a release says that it is private; there is one mark at least."""
    found = [part.private for part in reachable(value) if hasattr(part, "private")]
    assert found, "nothing says whether it is private"
    return found


def later(release, path):
    """Yield what people make of a release: what is saved and loaded, and what is taken from it."""
    release.save(path)
    loaded = pm.load(path)
    for made in (release, loaded):
        yield made
        yield made.lean(())
        yield made.keeping((), Product([made.domain]))
        yield made.part(0)[0]


@pytest.mark.parametrize("private", [False, True], ids=["a seed", "a fresh key"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_part_says_whether_it_is_private(name, private, tmp_path):
    for privacy in PROMISES:
        mechanism = MECHANISMS[name](privacy)
        points = np.tile(np.linspace(0, 1, 400)[:, np.newaxis], mechanism.domain.width)
        release = mechanism.release(ArraySource(points, width=mechanism.domain.width), KEYS[private]())
        path = tmp_path / "release.parquet"
        for step, made in enumerate(later(release, path)):
            assert set(marks(made)) == {private}, (privacy, step)
            assert ("NOT PRIVATE" in repr(made)) == (not private), (privacy, step)
        assert json.loads(pq.read_schema(path).metadata[HEADER_KEY])["private"] is private


@pytest.mark.parametrize("names", ["a", "abcdef"], ids=["one tree", "columns"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_tables_reports_and_inspect_say_it(names, neighbours, tmp_path, capsys):
    for seed in (None, 3):
        schema = pm.Schema({name: pm.Number(0, 1) for name in names})
        synthesizer = pm.Synthesizer(schema, epsilon=2, neighbours=neighbours)
        synthesizer.fit(pa.table({name: np.linspace(0, 1, 300) for name in names}), insecure_seed=seed)
        path = tmp_path / f"{seed}.parquet"
        synthesizer.save(path)
        release = pm.load(path)
        assert set(marks(synthesizer.release_)) == set(marks(release)) == {seed is None}
        assert run(["inspect", str(path)]) == 0
        shown = ["".join(capsys.readouterr()), repr(release), release._repr_html_(), release_page(release)]
        for place, text in zip(("inspect", "repr", "notebook", "report"), shown, strict=True):
            assert ("not private" in text.lower()) == (seed is not None), (place, seed)
