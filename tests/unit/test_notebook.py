"""How far long work is, in a notebook and in a terminal: the same whatever the number of rows."""

import io
import sys
import types

import numpy as np
import pytest

import privmeasure as pm


class Notebook:
    """IPython as far as a bar asks for it: what is shown, and what it is changed to."""

    def __init__(self, monkeypatch, *, broken=False):
        self.shown, self.broken = [], broken
        package, room = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        package.get_ipython = lambda: types.SimpleNamespace(kernel=1)
        room.HTML, room.display = str, self.display
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", room)

    def display(self, text, *, display_id):
        assert display_id
        if self.broken:
            raise OSError
        self.shown.append([text])
        return types.SimpleNamespace(update=self.shown[-1].append)


def fit(rows, tmp_path, bar):
    path = tmp_path / "ages.csv"
    path.write_text("age\n" + "40\n" * rows)
    schema = pm.Schema({"age": pm.Integer(0, 120)})
    return pm.Synthesizer(schema, epsilon=1, neighbours="add-remove").fit(path, progress=bar)


def test_a_notebook_has_one_bar_that_moves_and_tells_nothing_of_rows(monkeypatch, tmp_path):
    seen = []
    for rows in (10, 300_000):
        notebook = Notebook(monkeypatch)
        fit(rows, tmp_path, pm.ProgressBar())
        (bar,) = notebook.shown  # changed in its place
        assert len(bar) > 4
        seen.append(bar)
    assert seen[0] == seen[1]
    assert seen[0][0].startswith('<progress max="1" value="0.250"></progress> ')


def test_a_terminal_has_a_line_for_each_stage(monkeypatch, tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    pm.ProgressBar()("read", 0.5)
    assert sys.stderr.getvalue() == f"\rread             [{'#' * 15}{' ' * 15}]"


def test_elsewhere_there_is_nothing(capfd, tmp_path):
    fit(10, tmp_path, pm.ProgressBar())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("stderr", [None, "closed"])
def test_a_bar_that_cannot_be_drawn_costs_no_release(monkeypatch, tmp_path, stderr):
    notebook = Notebook(monkeypatch, broken=True)
    assert fit(10, tmp_path, pm.ProgressBar()).release_ is not None
    assert notebook.shown == []
    monkeypatch.delitem(sys.modules, "IPython")
    monkeypatch.setattr(sys, "stderr", stderr)
    synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace")
    assert synth.fit(np.zeros(9), progress=pm.ProgressBar()).release_ is not None
