"""One person, with however many rows, changes every answer of a source by at most `rows_per_person`, in sum.

That is the sensitivity that the noise is made for. It is looked for on the answers themselves, with the partitions that
the mechanisms ask for, and is missed as soon as rows are counted without asking whose they are.
"""

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.counts import Axis, Partition
from privmeasure.mechanisms.base import presentable
from privmeasure.noise.entropy import Key
from privmeasure.sources import people
from privmeasure.sources.people import People
from privmeasure.sources.tables import TableSource

COLUMNS = {"who": pm.Drop(), "x": pm.Number(0, 1), "y": pm.Number(0, 1, nullable=True), "c": pm.Category(list("abc"))}
SCHEMA = pm.Schema(COLUMNS, person="who")


def tables(rng):
    """Return visits of 60 persons and of a 61st with 80, and the same without the last, both in a random order."""
    who = np.append(rng.integers(0, 60, 300), np.full(80, 60))
    n = len(who)
    columns = {
        "who": pa.array([f"p{i}" for i in who]),
        "x": rng.random(n),
        "y": pa.array(rng.random(n), mask=who % 7 == 0),
    }
    whole = pa.table(columns | {"c": pa.array(list("abc")).take(rng.integers(0, 3, n))})
    shuffled = whole.take(rng.permutation(n))
    return shuffled, whole.filter(pa.array(who != 60)).take(rng.permutation(int((who != 60).sum())))


def partitions():
    domain = SCHEMA.domain
    axes = [Axis(factor, 3, columns=slice(i, i + 1)) for i, factor in enumerate(domain.factors[:2])]
    return [Partition(()), Partition.of(domain, 8), Partition.of(domain, 40), *(Partition((axis,)) for axis in axes),
            Partition(tuple(axes))]  # fmt: skip


def changes(schema, rng, k, salt):
    """Return by how much the answers change, in sum, for each partition; in two passes."""
    answers = []
    for table in tables(rng):
        chooser = None if schema.person is None else People(k, salt)
        source = TableSource(table, schema, threads=2, people=chooser)
        answers.append([*source.count(partitions()), *source.count(partitions())])
        source.close()
    found = []
    for pair in zip(*answers, strict=True):
        one, two = (dict(zip(cells(c), c.counts.tolist(), strict=True)) for c in pair)
        found.append(sum(abs(one.get(cell, 0) - two.get(cell, 0)) for cell in {*one, *two}))
    return found


def cells(counts):
    return range(len(counts.counts)) if counts.cells is None else counts.cells.tolist()


@pytest.mark.parametrize("k", [1, 3, 16])
@pytest.mark.parametrize("held", [1 << 28, 3_000])
def test_one_person_changes_every_answer_by_at_most_k(k, held, monkeypatch):
    monkeypatch.setattr(people, "HELD_BYTES", held)
    rng = np.random.default_rng(k)
    for salt in (b"a", b"b", b"c"):
        assert set(changes(SCHEMA, rng, k, salt)) == {k}  # the person has more than k rows, and nobody else moves


def test_without_a_person_the_change_is_all_of_their_rows():
    assert min(changes(pm.Schema(COLUMNS), np.random.default_rng(0), 1, b"")) == 80


def test_a_choice_that_looks_at_the_order_is_caught(monkeypatch):
    """With the first rows of each person in the order of the table, others' rows change when the order does."""
    monkeypatch.setattr(people, "_digests", lambda heads, points, numbers: np.zeros((len(heads), 4), np.uint64))
    assert max(changes(SCHEMA, np.random.default_rng(1), 1, b"a")) > 1


def test_a_hash_in_the_place_of_ids_is_caught(monkeypatch):
    """Persons whose ids share a hash would be one: who leaves lets the other's rows in."""
    codes = people._codes

    def by_hash(cells):
        if pa.types.is_fixed_size_binary(cells.type):
            return codes(cells)
        found, distinct = codes(cells)
        return np.array([name[-1] % 2 for name in distinct.to_pylist()])[found], distinct[:2]

    monkeypatch.setattr(people, "_codes", by_hash)
    assert max(max(changes(SCHEMA, np.random.default_rng(seed), 1, b"a")) for seed in range(8)) != 1


def test_errors_while_persons_are_told_apart_show_nothing(monkeypatch):
    def fail(*args):
        raise ValueError("p60 has 80 rows")

    monkeypatch.setattr(people, "_digests", fail)
    synthesizer = pm.Synthesizer(SCHEMA, epsilon=1, neighbours="add-remove")
    with pytest.raises(pm.errors.DataError) as error:
        synthesizer.fit(tables(np.random.default_rng(0))[0])
    assert "80" not in str(error.value)
    assert not synthesizer.spent
    assert presentable(ValueError("p60"), Key.fresh()).args != ("p60",)
    for shown in (People(1, b"salt"), TableSource(tables(np.random.default_rng(0))[0], SCHEMA, people=People(1, b"s"))):
        assert repr(shown).endswith("(private)")
