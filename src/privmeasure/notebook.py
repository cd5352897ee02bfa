"""What a notebook shows of a value: small tables in HTML. Every text is escaped; no value of the data comes here."""

from collections.abc import Iterable, Sequence
from html import escape

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
