"""The ledger cannot be fooled: what counts is decided by whether noise was drawn, not by what was raised."""

import copy
import hashlib
import multiprocessing
import os
import pickle
import re
import signal
import threading

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.errors import ArgumentError, BudgetError, DataError, LedgerFileError, ReleaseFileError, SpentError
from privmeasure.ledger import Ledger, records, schema_digest
from privmeasure.noise.entropy import Key
from privmeasure.report.public import release_page

NAME = "survey 2024"
DATA = np.linspace(0, 1, 100)


def synthesizer(epsilon=1, neighbours="add-remove", **options):
    return pm.Synthesizer(pm.Box([(0, 1)]), epsilon=epsilon, neighbours=neighbours, **options)


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "book.sqlite")
    ledger.open_account(NAME, cap=1, neighbours="add-remove")
    return ledger


def states(ledger):
    return [entry.state for entry in ledger.history(NAME)]


# ---------------------------------------------------------------------------------------------------------- the attack


@pytest.mark.parametrize("error", [ArgumentError("x"), DataError("x"), KeyboardInterrupt(), ValueError()], ids=repr)
@pytest.mark.parametrize("bare", [False, True])
def test_five_releases_under_a_cap_of_one(ledger, error, bare):
    """A user's own error after the fit frees nothing: one release, and four refusals."""
    releases, refusals = [], 0
    for _ in range(5):
        synth = synthesizer()
        try:
            with ledger.reserve(NAME, synth.privacy if bare else synth):
                releases.append(synth.fit(DATA).release_)
                raise error
        except BudgetError:
            refusals += 1
        except type(error):
            pass
    assert (len(releases), refusals) == (1, 4)
    assert ledger.spent(NAME) == 1
    assert states(ledger) == ["spent"]


@pytest.mark.parametrize("error", [None, ArgumentError("x"), OSError(), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("fitted", [False, True])
def test_an_error_frees_only_what_drew_no_noise(ledger, error, fitted):
    """Without an error it counts, even if nothing was fitted: another object may have been."""
    synth = synthesizer()
    try:
        with ledger.reserve(NAME, synth):
            if fitted:
                synth.fit(DATA)
            if error is not None:
                raise error
    except BaseException as raised:
        assert raised is error  # noqa: PT017
    freed = error is not None and not fitted
    assert states(ledger) == ["freed" if freed else "spent"]
    if freed:
        with pytest.raises(SpentError, match="given back"):
            synth.fit(DATA)  # nothing would count it
        with ledger.reserve(NAME, synth):
            synth.fit(DATA)
        assert states(ledger) == ["freed", "spent"]
        first, second = ledger.history(NAME)
        assert first.release != second.release == synth.release_id


def test_a_fit_that_fails_before_noise_frees_and_after_noise_counts(ledger):
    class Faulty(pm.Box):
        def locate(self, points, level):
            raise ValueError

    for rows, state in ((10, "freed"), (None, "spent")):  # without rows, their number is bought first
        synth = pm.Synthesizer(Faulty([(0, 1)]), epsilon=1, neighbours="add-remove", rows=rows)
        with pytest.raises(pm.PrivmeasureError), ledger.reserve(NAME, synth):
            synth.fit(DATA)
        assert states(ledger)[-1] == state


def test_an_interruption_before_noise_frees(ledger):
    def progress(stage, fraction):
        raise KeyboardInterrupt

    synth = synthesizer(rows=100)
    with pytest.raises(KeyboardInterrupt), ledger.reserve(NAME, synth):
        synth.fit(DATA, progress=progress)
    assert states(ledger) == ["freed"]


# ----------------------------------------------------------------------------------- what is booked is what is spent


def test_what_is_booked_cannot_change(ledger):
    synth = synthesizer("1/2")
    with ledger.reserve(NAME, synth):
        for ask, words in (
            (lambda: synth.set_params(epsilon=50), "booked must be what is spent"),
            (lambda: ledger.reserve(NAME, synth), "reserved already"),
        ):
            with pytest.raises(SpentError, match=words):
                ask()
        with pytest.raises(ArgumentError, match="insecure_seed"):
            synth.fit(DATA, insecure_seed=1)
        synth.fit(DATA)
    assert ledger.spent(NAME) == synth.plan_.privacy.epsilon
    for ask in (lambda: ledger.reserve(NAME, synth), lambda: synth.set_params(epsilon=2)):
        with pytest.raises(SpentError):
            ask()
    assert len(states(ledger)) == 1


def test_a_mechanism_that_is_exchanged_is_refused(ledger):
    """The promise of the mechanism is what is spent, whatever else the object says."""
    synth = synthesizer("1/10")
    reservation = ledger.reserve(NAME, synth)
    synth.mechanism = synthesizer(50).mechanism
    with pytest.raises(SpentError, match="another promise"), reservation:
        synth.fit(DATA)
    assert states(ledger) == ["freed"]
    other = synthesizer(50)
    other.privacy = pm.Privacy("1/10", "add-remove")
    with pytest.raises(BudgetError):
        ledger.reserve(NAME, other)


def test_a_synthesizer_that_spent_is_refused(ledger):
    synth = synthesizer().fit(DATA)
    with pytest.raises(SpentError, match="before the data are opened"):
        ledger.reserve(NAME, synth)
    assert states(ledger) == []


def test_what_a_ledger_refused_is_not_fitted_by_accident(ledger):
    synth = synthesizer(2)
    with pytest.raises(BudgetError):
        ledger.reserve(NAME, synth)
    for _ in range(2):
        with pytest.raises(SpentError, match="Reserve it again"):
            synth.fit(DATA)
        synth.set_params(epsilon=1)
    ledger.reserve(NAME, synth)
    synth.fit(DATA)


def test_a_reservation_is_entered_once(ledger):
    for what in (synthesizer("1/10"), pm.Privacy("1/10", "add-remove")):
        reservation = ledger.reserve(NAME, what)
        with reservation, pytest.raises(SpentError, match="already"), reservation:
            pass
        with pytest.raises(SpentError, match="already"), reservation:
            pass


def test_cancel_refuses_after_noise(ledger):
    synth = synthesizer()
    reservation = ledger.reserve(NAME, synth)
    synth.fit(DATA)
    with pytest.raises(SpentError, match="counts as spent"):
        reservation.cancel()
    assert states(ledger) == ["pending"]
    reservation.confirm()
    assert states(ledger) == ["spent"]


def test_what_is_spent_is_never_freed(ledger):
    """Nor settled a second time, by whichever reservation; what was freed by mistake may still become spent."""
    reservation = ledger.reserve(NAME, synthesizer("1/10"))
    reservation.confirm()
    for state in ("freed", "spent"):
        with pytest.raises(ArgumentError, match="settled already"):
            ledger._settle(reservation.entry, state)
    other = ledger.reserve(NAME, synthesizer("1/10"))
    ledger._settle(other.entry, "freed")
    with pytest.raises(ArgumentError, match="settled already"):
        ledger._settle(other.entry, "freed")
    ledger._settle(other.entry, "spent")
    assert states(ledger) == ["spent", "spent"]


def test_only_synthesizers_and_promises_are_booked(ledger):
    for what in (1, "1", None, object()):
        with pytest.raises(ArgumentError, match="books a Synthesizer"):
            ledger.reserve(NAME, what)
    with pytest.raises(ArgumentError, match="schema"):
        ledger.reserve(NAME, synthesizer(), schema="abc")
    assert not hasattr(ledger, "settle")


def fit_in_child(synth, results):
    try:
        synth.fit(DATA)
    except SpentError as error:
        results.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_another_process_cannot_spend_what_this_one_booked(ledger):
    """A child that was forked has a copy of the object: the parent would see no noise, and free the entry."""
    context, synth = multiprocessing.get_context("fork"), synthesizer()
    with ledger.reserve(NAME, synth):
        results = context.Queue()
        run = context.Process(target=fit_in_child, args=(synth, results))
        run.start()
        assert "another process" in results.get(timeout=30)
        run.join()


def test_two_threads_cannot_book_one_synthesizer(ledger):
    synth, found = synthesizer("1/10"), []

    def book():
        try:
            found.append(ledger.reserve(NAME, synth))
        except SpentError:
            found.append(None)

    threads = [threading.Thread(target=book) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([reservation for reservation in found if reservation]) == 1
    assert len(states(ledger)) == 1


# ------------------------------------------------------------------------------------------------------------ copies

COPIES = [copy.copy, copy.deepcopy, lambda synth: pickle.loads(pickle.dumps(synth))]


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "pickle"])
def test_a_copy_of_what_is_booked_has_booked_nothing(ledger, copied):
    synth = synthesizer("1/2")
    with ledger.reserve(NAME, synth):
        other = copied(synth)
        assert (str(other), str(synth)) == (
            str(synthesizer("1/2")),
            str(other).replace("not", "reserved in a ledger, not"),
        )
        assert other.set_params(epsilon="1/4").release_id != synth.release_id
        assert other.fit(DATA).recorded is False
        synth.fit(DATA)
    assert synth.recorded is True
    assert [(entry.state, entry.release) for entry in ledger.history(NAME)] == [("spent", synth.release_id)]


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("booked", [False, True])
def test_a_copy_of_a_release_keeps_whether_it_was_recorded(ledger, copied, booked):
    synth = synthesizer()
    synth.fit(DATA, **({"ledger": ledger, "account": NAME} if booked else {}))
    other = copied(synth)
    assert other.spent
    assert other.recorded is synth.recorded is booked
    assert other.release_id == synth.release_id
    with pytest.raises(SpentError):
        other.fit(DATA)


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "pickle"])
def test_a_synthesizer_in_a_fit_is_not_copied(copied):
    """The copy could not know whether noise is drawn meanwhile."""
    synth, stages = synthesizer(), []

    def progress(stage, fraction):
        stages.append(stage)
        with pytest.raises(SpentError, match="in a fit cannot be copied"):
            copied(synth)

    synth.fit(DATA, progress=progress)
    assert stages


# ------------------------------------------------------------------------------------------------------ one argument


def fit(**options):
    synth = synthesizer()
    return synth.fit(DATA, **options)


def fit_sample(**options):
    synth = synthesizer()
    synth.fit_sample(DATA, 5, **options)
    return synth


def synthesize(**options):
    pm.synthesize(DATA, epsilon=1, neighbours="add-remove", bounds=[(0, 1)], **options)


@pytest.mark.parametrize("call", [fit, fit_sample, synthesize])
def test_one_argument_books_fits_and_records(ledger, call):
    synth = call(ledger=ledger, account="Survey 2024 ")
    (entry,) = ledger.history(NAME)
    assert (entry.state, entry.epsilon) == ("spent", 1)
    if synth is not None:
        assert entry.release == synth.release_id == synth.release_.origin.id
        assert synth.recorded is True
        for text in (repr(synth), synth._repr_html_(), str(synth.plan_)):
            assert "recorded in a ledger" in text
            assert "not recorded" not in text
    with pytest.raises(BudgetError, match="would pass the cap"):
        call(ledger=ledger, account=NAME)
    assert len(states(ledger)) == 1


@pytest.mark.parametrize("call", [fit, fit_sample])
def test_what_no_ledger_recorded_says_so_and_nothing_warns(call, recwarn):
    assert "ledger" not in repr(synthesizer())
    synth = call()
    assert synth.recorded is False
    for text in (repr(synth), synth._repr_html_(), str(synth.plan_), release_page(synth.release_)):
        assert "not recorded in a ledger" in text
    assert not recwarn.list


@pytest.mark.parametrize("call", [fit, fit_sample, synthesize])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ledger": "book.sqlite"}, "ledger was given without account"),
        ({"account": NAME}, "account was given without ledger"),
        ({"ledger": "book.sqlite", "account": NAME}, r"got str\. Open the ledger of a file with Ledger"),
    ],
)
def test_one_argument_without_the_other_is_refused_before_the_data_are_opened(call, options, words, monkeypatch):
    monkeypatch.setattr(Key, "fresh", lambda *_: pytest.fail("a fit was begun"))
    with pytest.raises(ArgumentError, match=words):
        call(**options)


def test_the_entry_is_made_before_the_data_are_opened(ledger):
    """Data that cannot be opened free it, and the error says both."""
    synth = synthesizer()
    with pytest.raises(DataError) as caught:
        synth.fit(Unopened(lambda: states(ledger)), ledger=ledger, account=NAME)
    assert caught.value.__notes__ == ["Entry 1 was freed.", "Nothing was spent."]
    assert Unopened.seen == ["pending"]
    assert states(ledger) == ["freed"]
    with pytest.raises(SpentError, match="given back"):
        synth.fit(DATA)
    assert synth.fit(DATA, ledger=ledger, account=NAME).recorded


class Unopened:
    """Data that look at the ledger when they are opened, and cannot be."""

    seen = None

    def __init__(self, look):
        self.look = look

    def __array__(self, *arguments, **options):
        Unopened.seen = self.look()
        raise ValueError


def test_a_ledger_that_fails_at_the_end_does_not_lose_the_release(ledger, monkeypatch):
    def fail(self, entry, state):
        raise LedgerFileError("book.sqlite could not be written.")

    monkeypatch.setattr(Ledger, "_settle", fail)
    synth = synthesizer()
    with pytest.raises(LedgerFileError) as caught:
        synth.fit(DATA, ledger=ledger, account=NAME)
    assert caught.value.__notes__ == ["Epsilon 1 is spent; the release is kept, as `release_`."]
    assert len(synth.sample(3)) == 3
    assert states(ledger) == ["pending"]


def test_an_entry_that_cannot_be_freed_is_said_to_stay(ledger, monkeypatch):
    def fail(self, entry, state):
        raise LedgerFileError("book.sqlite could not be written.")

    monkeypatch.setattr(Ledger, "_settle", fail)
    with pytest.raises(DataError) as caught:
        synthesizer().fit(np.zeros((2, 2)), ledger=ledger, account=NAME)
    assert caught.value.__notes__ == ["Entry 1 could not be freed: it stays pending, and counts.", "Nothing was spent."]


# --------------------------------------------------------------------------------------------------- what is kept


def test_an_entry_says_who_when_and_what(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(records.getpass, "getuser", lambda: "ada")
    schema = pm.Schema({"a": pm.Integer(0, 9)})
    synth = pm.Synthesizer(schema, epsilon="1/2", neighbours="add-remove")
    with ledger.reserve(NAME, synth, note="report") as reservation:
        (pending,) = ledger.history(NAME)
        assert (pending.state, pending.release, pending.user) == ("pending", synth.release_id, "ada")
        synth.fit(pa.table({"a": [1, 2, 3]}))
    synth.save(tmp_path / "a.release")
    entry = reservation.record(tmp_path / "a.release")
    assert entry == reservation.entry == ledger.history(NAME)[0]
    assert entry.files == (hashlib.sha256((tmp_path / "a.release").read_bytes()).hexdigest(),)
    assert entry.schema == schema_digest(schema.to_json())
    assert entry.release == pm.load(tmp_path / "a.release").origin.id
    assert re.fullmatch(r"[0-9a-f]{32}", entry.id)
    assert entry.state == "spent"
    reservation.record(tmp_path / "a.release")
    assert len(ledger.history(NAME)[0].files) == 1
    synthesizer().fit(DATA).save(tmp_path / "other.release")
    with pytest.raises(ArgumentError, match="another release"):
        reservation.record(tmp_path / "other.release")


def test_a_user_is_a_courtesy(ledger, monkeypatch):
    def fail():
        raise OSError

    monkeypatch.setattr(records.getpass, "getuser", fail)
    ledger.reserve(NAME, synthesizer("1/10"))
    ledger.reserve(NAME, synthesizer("1/10"), user="grace")
    monkeypatch.setattr(records.getpass, "getuser", lambda: "two\nlines")
    ledger.reserve(NAME, synthesizer("1/10"))
    assert [entry.user for entry in ledger.history(NAME)] == ["", "grace", ""]
    with pytest.raises(ArgumentError, match="user"):
        ledger.reserve(NAME, synthesizer("1/10"), user="two\nlines")


def test_a_file_must_promise_what_was_booked(ledger, tmp_path):
    """A bare promise takes the release that it stands for, not a larger one."""
    reservation = ledger.reserve(NAME, pm.Privacy("1/10", "add-remove"))
    synthesizer(5).fit(DATA).save(tmp_path / "large")
    with pytest.raises(ArgumentError, match=r"booked with epsilon 0\.1"):
        reservation.record(tmp_path / "large")
    synthesizer("1/10", neighbours="replace").fit(DATA).save(tmp_path / "other")
    with pytest.raises(ArgumentError, match="replace"):
        reservation.record(tmp_path / "other")
    synthesizer("1/10").fit(DATA, insecure_seed=1).save(tmp_path / "seed")
    with pytest.raises(ArgumentError, match="NOT PRIVATE"):
        reservation.record(tmp_path / "seed")
    synthesizer("1/10").fit(DATA).save(tmp_path / "fine")
    assert reservation.record(tmp_path / "fine").release == pm.load(tmp_path / "fine").origin.id
    for missing in ("nowhere", "."):
        with pytest.raises(OSError):  # noqa: PT011
            reservation.record(tmp_path / missing)


def killed(path, release, number):
    ledger, synth = Ledger(path), synthesizer()
    with ledger.reserve(NAME, synth):
        synth.fit(DATA)
        synth.save(release)
        os.kill(os.getpid(), number)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_is_closed_by_its_release(ledger, tmp_path):
    release = tmp_path / "a.release"
    run = multiprocessing.get_context("spawn").Process(target=killed, args=(ledger.path, release, signal.SIGKILL))
    run.start()
    run.join()
    assert states(ledger) == ["pending"]
    synthesizer().fit(DATA).save(tmp_path / "other.release")
    with pytest.raises(ArgumentError, match="no entry"):
        ledger.close(tmp_path / "other.release")
    closed = ledger.close(release)
    assert closed.state == "spent"
    assert closed.files == (hashlib.sha256(release.read_bytes()).hexdigest(),)
    assert ledger.close(release) == closed == ledger.history(NAME)[0]
    for wrong in (ledger.path, "tests/golden/format-1-box.parquet"):
        with pytest.raises(ReleaseFileError):
            ledger.close(wrong)


# ------------------------------------------------------------------------------------------------------------ caps


def test_a_cap_is_only_raised_and_with_a_reason(ledger):
    for cap, reason, words in (
        (1, "why", "only raised"),
        ("1/2", "why", "only raised"),
        (2, " ", "why"),
        (2, None, "line"),
    ):
        with pytest.raises(ArgumentError, match=words):
            ledger.raise_cap(NAME, cap=cap, reason=reason)
    raised = ledger.raise_cap("SURVEY 2024", cap="3/2", reason="board of 3 May", user="ada")
    assert (raised.before, raised.cap, raised.reason, raised.user) == (
        1,
        pm.Privacy(1.5, "replace").epsilon,
        "board of 3 May",
        "ada",
    )
    assert ledger.raises(NAME) == [raised]
    assert ledger.account(NAME).cap == raised.cap
    ledger.reserve(NAME, synthesizer("3/2"))
    with pytest.raises(BudgetError):
        ledger.reserve(NAME, synthesizer("1/100"))


# ------------------------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize(
    "name", ["Survey 2024 ", "SURVEY 2024", "survey  2024", "\uff33urvey 2024", "survey\u00a02024"]
)
def test_names_that_mean_the_same_are_the_same(ledger, name):
    assert ledger.account(name).dataset == NAME
    ledger.reserve(name, synthesizer())
    assert ledger.spent(NAME) == 1
    if name.isprintable():
        with pytest.raises(ArgumentError, match="has an account already"):
            ledger.open_account(name, cap=1, neighbours="add-remove")


@pytest.mark.parametrize(
    "unseen", ["\u200b", "\u200d", "\ufeff", "\u00ad", "\u3164", "\u115f", "\ufe0f", "\u034f", "\u2800"]
)
def test_characters_that_cannot_be_seen_make_no_new_name(ledger, unseen):
    name = f"survey{unseen} 2024"
    with pytest.raises(ArgumentError, match="dataset"):
        ledger.open_account(name, cap=1, neighbours="add-remove")
    assert ledger.account(name).dataset == NAME


def test_a_name_is_kept_without_the_spaces_around_it(tmp_path):
    ledger = Ledger(tmp_path / "l")
    assert ledger.open_account(" Census ", cap=1, neighbours="replace").dataset == "Census"
    for path in ("a\uff0fb", "a\uff3cb"):
        with pytest.raises(ArgumentError, match="path"):
            ledger.open_account(path, cap=1, neighbours="replace")


# ----------------------------------------------------------------------------------------------------------- places


def test_a_clock_that_goes_back_changes_no_sum(ledger, monkeypatch):
    for year in (2030, 1999, 2024):
        monkeypatch.setattr("privmeasure.ledger.book.now", lambda year=year: f"{year}-01-01T00:00:00Z")
        ledger.reserve(NAME, synthesizer("1/4")).confirm()
    assert [entry.time[:4] for entry in ledger.history(NAME)] == ["2030", "1999", "2024"]
    assert ledger.remaining(NAME) == pm.Privacy("1/4", "replace").epsilon


def test_a_link_is_the_same_book(ledger, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.sqlite"
    link.symlink_to(ledger.path)
    Ledger(link).reserve(NAME, synthesizer())
    with pytest.raises(BudgetError):
        ledger.reserve(NAME, synthesizer("1/10"))
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["link.sqlite"]


def test_a_book_that_is_exchanged_meanwhile_is_noticed(ledger, tmp_path):
    """Another file in its place does not know the entry."""
    reservation = ledger.reserve(NAME, synthesizer())
    ledger.path.unlink()
    Ledger(ledger.path).open_account(NAME, cap=1, neighbours="add-remove")
    with pytest.raises(ArgumentError, match="not in"), reservation:
        pass
    with pytest.raises(LedgerFileError), ledger.reserve(NAME, synthesizer("1/2")):
        ledger.path.unlink()


def test_the_key_of_a_reserved_release_has_its_id(ledger, monkeypatch):
    made = []
    fresh = Key.fresh.__func__
    monkeypatch.setattr(
        Key, "fresh", classmethod(lambda cls, release_id=None: made.append(release_id) or fresh(cls, release_id))
    )
    synth = synthesizer()
    with ledger.reserve(NAME, synth) as reservation:
        synth.fit(DATA)
    assert made == [reservation.entry.release] == [synth.release_.origin.id]
