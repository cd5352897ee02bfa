"""What a notebook shows of a value, and of long work. Every text is escaped; no value of the data comes here."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from typing import Any

BAR = 30
"""Letters of a bar in a terminal."""
LABEL = 10
"""Letters of the first word of a line of a plan, as `str` writes it."""


def html_table(rows: Iterable[Sequence[object]], *, heads: Sequence[str] = (), title: str = "") -> str:
    """Return a table.

    Examples:
        >>> html_table([["a<b", 1]], heads=["what", "n"], title="Counts")
        '<p><b>Counts</b></p><table><tr><th>what</th><th>n</th></tr><tr><td>a&lt;b</td><td>1</td></tr></table>'
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    name = f"<p><b>{escape(title)}</b></p>" if title else ""
    return f"{name}<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def html_words(text: str, *, title: str = "") -> str:
    """Return lines that begin with a word each, as plans say them, as a table.

    Examples:
        >>> html_words("rows       5 (public)")
        '<table><tr><td>rows</td><td>5 (public)</td></tr></table>'
    """
    lines = [(line[:LABEL].strip(), line[LABEL:].strip()) for line in text.splitlines()]
    return html_table(lines, title=title)


class ProgressBar:
    """Show how far long work is: a bar in a notebook, a line in a terminal, nothing elsewhere.

    It is told of stages and of fixed fractions of them, never of rows: it looks the same whatever their number is.

    Examples:
        >>> import numpy as np, privmeasure as pm
        >>> synth = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace")
        >>> synth.fit(np.linspace(0, 1, 1000), progress=pm.ProgressBar()).sample(3).shape
        (3, 1)
    """

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self._shown: Any = None

    def __call__(self, stage: str, fraction: float) -> None:
        """Show a stage, and how much of it is done."""
        with suppress(Exception):  # a bar that cannot be drawn is no reason to lose what epsilon bought
            shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
            if hasattr(shell, "kernel"):
                self._in_notebook(stage, fraction)
            elif sys.stderr.isatty():
                bar = "#" * round(BAR * fraction)
                end = "\n" if fraction >= 1 else ""
                print(f"\r{stage:<16} [{bar:<{BAR}}]", end=end, file=sys.stderr, flush=True)

    def _in_notebook(self, stage: str, fraction: float) -> None:
        from IPython.display import HTML, display

        bar = HTML(f'<progress max="1" value="{fraction:.3f}"></progress> {escape(stage)}')
        if self._shown is None:
            self._shown = display(bar, display_id=True)
        else:
            self._shown.update(bar)
