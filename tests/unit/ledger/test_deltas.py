"""Accounts with a delta: who may spend one, what releases cost together, and that the least bound is taken."""

from fractions import Fraction

import pytest

import privmeasure as pm
from privmeasure.accounting import largest_rho, smallest_epsilon
from privmeasure.errors import ArgumentError, BudgetError
from privmeasure.ledger import Ledger
from privmeasure.ledger.records import total
from privmeasure.privacy import Privacy

MILLION = Fraction(1, 10**6)


def promise(epsilon, delta=0, relation="add-remove"):
    return Privacy(epsilon, relation, delta=delta)


def ours(epsilon, delta):
    """Return a synthesizer that spends the delta: of a wide table."""
    schema = pm.Schema({f"c{i}": pm.Integer(0, 3) for i in range(30)})
    synth = pm.Synthesizer(schema, epsilon=epsilon, neighbours="replace", delta=delta)
    assert synth.privacy.delta > 0
    return synth


@pytest.fixture
def book(tmp_path):
    ledger = Ledger(tmp_path / "book.sqlite")
    ledger.open_account("pure", cap=2, neighbours="add-remove")
    ledger.open_account("both", cap=2, neighbours="add-remove", delta=MILLION)
    return ledger


def test_an_account_forbids_deltas_unless_it_was_opened_with_one(book):
    with pytest.raises(BudgetError, match=r"opened without a delta.*--delta.*not opened"):
        book.reserve("pure", promise(1, 1e-9))
    assert book.spent("pure") == 0
    book.reserve("both", promise(1, 1e-6)).confirm()
    entry = book.history("both")[0]
    assert (entry.epsilon, entry.delta, entry.to_json()["delta"]) == (1, MILLION, "1/1000000")
    assert (book.spent("both"), book.spent_delta("both")) == (1, MILLION)


def test_a_delta_that_is_spent_is_spent(book):
    book.reserve("both", promise("1/10", "6e-7"))
    with pytest.raises(BudgetError, match=r"would pass what 'both' may spend.*6e-07 of 1e-06"):
        book.reserve("both", promise("1/10", "5e-7"))
    book.reserve("both", promise("1/10", "4e-7"))
    book.reserve("both", promise("1/10"))
    assert book.spent_delta("both") == MILLION


def test_pure_releases_add_up_as_ever(book):
    for _ in range(3):
        book.reserve("both", promise("1/2")).confirm()
    assert (book.spent("both"), book.remaining("both")) == (Fraction(3, 2), Fraction(1, 2))
    with pytest.raises(BudgetError, match="cap"):
        book.reserve("both", promise("3/5"))


def test_rho_adds_up_to_less_than_epsilons(tmp_path):
    """Four releases at (1, 1e-7): 4 by sums, and about half of it by rho, which the account of cap 3 allows."""
    book = Ledger(tmp_path / "book.sqlite")
    book.open_account("d", cap=3, neighbours="replace", delta="1e-6")
    for _ in range(4):
        book.reserve("d", ours(1, "1e-7")).confirm()
    rho = 4 * largest_rho(Fraction(1), MILLION / 10)
    assert book.spent("d") == smallest_epsilon(rho, MILLION) < 2
    assert book.spent_delta("d") == 4 * MILLION / 10
    with pytest.raises(BudgetError, match="cap"):
        book.reserve("d", promise(3, "1e-7", "replace"))


def test_of_a_release_that_was_made_elsewhere_no_rho_is_known(tmp_path):
    """What others promise with an epsilon and a delta may be randomised response: it adds up by epsilon alone."""
    book = Ledger(tmp_path / "book.sqlite")
    book.open_account("d", cap=1, neighbours="replace", delta="1e-4")
    for _ in range(10):
        book.reserve("d", promise("1/10", "1e-7", "replace"))
    assert book.spent("d") == 1
    with pytest.raises(BudgetError, match="cap"):
        book.reserve("d", promise("1/10", "1e-7", "replace"))


def test_releases_of_both_kinds_add_up(tmp_path):
    """Those that were made elsewhere add their epsilons, and take their deltas off what the rest has."""
    book = Ledger(tmp_path / "book.sqlite")
    book.open_account("d", cap=5, neighbours="replace", delta="1e-6")
    for _ in range(4):
        book.reserve("d", ours(1, "1e-7")).confirm()
    book.reserve("d", promise("1/2", "4e-7", "replace"))
    rho = 4 * largest_rho(Fraction(1), MILLION / 10)
    assert book.spent("d") == Fraction(1, 2) + smallest_epsilon(rho, 6 * MILLION / 10)
    book.reserve("d", promise("1/2", "2e-7", "replace"))
    assert book.spent_delta("d") == MILLION
    assert book.spent("d") == 1 + smallest_epsilon(rho, 4 * MILLION / 10)


def test_a_large_pure_release_beside_others_is_added_by_epsilon(tmp_path):
    """epsilon^2 / 2 of 3 is far more rho than 3 is epsilon: the sum of epsilons is the least bound."""
    book = Ledger(tmp_path / "book.sqlite")
    book.open_account("d", cap=5, neighbours="replace", delta="1e-6")
    book.reserve("d", promise(3, 0, "replace")).confirm()
    book.reserve("d", promise("1/10", "1e-6", "replace")).confirm()
    assert book.spent("d") == Fraction(31, 10)


def test_many_small_pure_releases_beside_a_delta_cost_less_than_their_sum(tmp_path):
    book = Ledger(tmp_path / "book.sqlite")
    book.open_account("d", cap=5, neighbours="replace", delta="1e-6")
    book.reserve("d", ours("1/10", "1e-6")).confirm()
    for _ in range(60):
        book.reserve("d", promise("1/20", 0, "replace")).confirm()
    entries = book.history("d")
    assert book.spent("d") < sum(entry.epsilon for entry in entries)
    assert book.spent("d") == total(entries, MILLION)


def test_merging_takes_the_smaller_delta_and_says_what_is_over(tmp_path):
    one, two = (Ledger(tmp_path / name) for name in ("a.sqlite", "b.sqlite"))
    one.open_account("d", cap=5, neighbours="replace", delta="1e-6")
    one.reserve("d", promise(1, "1e-6", "replace")).confirm()
    two.open_account("D", cap=4, neighbours="replace", delta="1e-7")
    merged = one.merge(two)
    assert (one.account("d").cap, one.account("d").delta) == (4, MILLION / 10)
    assert merged.over == ("d",)
    with pytest.raises(BudgetError):
        one.reserve("d", promise("1/10", "1e-9", "replace"))


@pytest.mark.parametrize("delta", [0.01, -1, "x", "1e-400"])
def test_an_account_takes_no_other_delta(tmp_path, delta):
    with pytest.raises(ArgumentError, match="delta"):
        Ledger(tmp_path / "book.sqlite").open_account("d", cap=5, neighbours="replace", delta=delta)


def test_the_delta_of_a_release_file_must_be_the_booked_one(tmp_path):
    import numpy as np

    import privmeasure as pm

    book = Ledger(tmp_path / "book.sqlite")
    book.open_account("d", cap=5, neighbours="replace", delta="1e-6")
    schema = pm.Schema({f"c{i}": pm.Integer(0, 3) for i in range(30)})
    synth = pm.Synthesizer(schema, epsilon=1, neighbours="replace", delta="1e-6")
    assert synth.privacy.delta == MILLION
    table = {name: np.arange(200) % 4 for name in schema.columns}
    import pandas as pd

    with book.reserve("d", synth) as reservation:
        synth.fit(pd.DataFrame(table))
    synth.save(tmp_path / "r.release")
    assert reservation.record(tmp_path / "r.release").delta == MILLION
    assert pm.load(tmp_path / "r.release").plan.privacy == synth.privacy
    other = book.reserve("d", promise(1, 0, "replace"))
    with pytest.raises(ArgumentError, match=r"promises 1 and delta 1e-06"):
        other.record(tmp_path / "r.release")


def test_what_does_not_pay_is_not_booked(tmp_path):
    """One tree over two columns is better off with Laplace noise: what is spent, and booked, has no delta."""
    import privmeasure as pm

    book = Ledger(tmp_path / "book.sqlite")
    book.open_account("d", cap=5, neighbours="add-remove")
    synth = pm.Synthesizer(pm.Box([(0, 1)] * 2), epsilon=1, neighbours="add-remove", delta="1e-6")
    assert book.reserve("d", synth).entry.delta == 0
    assert "not used" in synth.plan(1000).why
