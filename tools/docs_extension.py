"""What Sphinx needs beside its settings: links that leave docs/, our docstrings, pictures that follow light and dark.

Pages in docs/ are Markdown that also reads well where it lies, so their links lead to files of the repository. In
built pages a link to one of `HOUSE` leads to the page that shows it, to any other file outside docs/ to the repository.
"""

import html
import os
import re
from pathlib import Path
from typing import Any

from formulae import typeset

REPOSITORY = "https://github.com/privmeasure/privmeasure"
HOUSE = {
    "ARCHITECTURE.md": "house/architecture",
    "CONTRIBUTING.md": "house/contributing",
    "SECURITY.md": "house/security",
    "CHANGELOG.md": "house/changelog",
    "README.md": "index",
}
"""Pages of the repository's root, and where the built pages show them."""

CHECKED = re.compile(r"""Annotated\[((?:(?!Annotated\[).)*?), msgspec\.Meta\((?:'[^']*'|"[^"]*"|[^'")])*\)\]""")
"""A type with what is checked or said of it."""
GIVEN = ("Plan", "TableRelease", "CellMeasure", "Reservation", "Account", "Entry", "Raise", "Contents", "Merged")
"""Classes whose objects are given, and that nobody makes: their arguments are of no use to a reader."""
FORMULAE = re.compile(r"mathematics|paper|errata|researchers|proofs/.*")
"""Pages whose formulae are set."""
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]*)(#[^)\s]*)?\)")
FACTS = ("Notation:", "Guarantee:", "References:", "Laws")
"""Parts of a docstring that are set out in columns."""


def connect(app: Any, docs: Path) -> None:
    """Connect the hooks below to Sphinx."""
    app.connect("source-read", lambda _, name, source: read_source(docs, name, source))
    app.connect("autodoc-process-docstring", lambda *arguments: set_docstring(arguments[-1]))
    app.connect("autodoc-process-signature", lambda _, __, name, ___, ____, *said: set_signature(name, *said))
    app.connect("doctree-resolved", lambda _, tree, name: set_formulae(tree, name))
    app.connect("html-page-context", lambda _, name, template, context, tree: inline_pictures(docs, context))


def read_source(docs: Path, name: str, source: list[str]) -> None:
    """Take the text of a page of the root where `name` shows one, and let links lead to built pages."""
    shown = {page: file for file, page in HOUSE.items() if page != "index"}.get(name)
    page = docs / f"{name}.md"
    base = docs.parent if shown else page.parent
    text = (docs.parent / shown).read_text(encoding="utf-8") if shown else source[0]
    source[0] = LINK.sub(lambda link: f"]({target(link[1], base, page.parent, docs)}{link[2] or ''})", text)


def target(link: str, base: Path, here: Path, docs: Path) -> str:
    """Return where a link of a file in `base` leads from a built page in `here`.

    Examples:
        >>> docs = Path("/r/docs")
        >>> target("../../SECURITY.md", docs / "proofs", docs / "proofs", docs)
        '../house/security.md'
        >>> target("docs/persons.md", docs.parent, docs / "house", docs)
        '../persons.md'
        >>> target("../examples", docs, docs, docs)
        'https://github.com/privmeasure/privmeasure/tree/main/examples'
    """
    path = Path(os.path.normpath(base / link))
    if not path.is_relative_to(docs):
        inside = path.relative_to(docs.parent).as_posix()
        if inside not in HOUSE:
            if path.suffix in {".png", ".svg"}:  # a picture is copied
                return os.path.relpath(path, here)
            return f"{REPOSITORY}/{'blob' if path.suffix else 'tree'}/main/{inside}"
        path = docs / f"{HOUSE[inside]}.md"
    return Path(os.path.relpath(path, here)).as_posix()


def set_signature(name: str, arguments: str | None, returned: str | None) -> tuple[str | None, str | None]:
    """Return the arguments and the result of a function as a reader needs them.

    Examples:
        >>> set_signature("privmeasure.f", "(rows: Annotated[int, msgspec.Meta(ge=0, le=9)])", "float")
        ('(rows: int)', 'float')
        >>> set_signature("privmeasure.g", "(x: Annotated[tuple[int, ...] | None, msgspec.Meta(title='(a)')])", None)
        ('(x: tuple[int, ...] | None)', None)
        >>> set_signature("privmeasure.Plan", "(rows: int)", None)
        ('', None)
    """
    if name.rpartition(".")[2] in GIVEN:
        return "", None
    return arguments and CHECKED.sub(r"\1", arguments), returned


def set_docstring(lines: list[str]) -> None:
    """Turn a docstring of the house into reStructuredText, in place.

    Examples:
        >>> lines = ["Return |x| of `x`.", "", "Notation:   x a number", "", "Examples:", "    >>> 1 * 1", "    1"]
        >>> set_docstring(lines)
        >>> print(*lines, sep="|")
        Return \\|x\\| of ``x``.||.. code-block:: text||   Notation:   x a number|||.. rubric:: Examples|||>>> 1 * 1|1
    """
    made: list[str] = []
    part = ""
    for line in lines:
        start = next((word for word in (*FACTS, "Examples:") if line.startswith(word)), "")
        if start:
            if start == "Examples:":
                made += ["", ".. rubric:: Examples", "", ""]
            elif part not in FACTS:
                made += [".. code-block:: text", "", f"   {line}"]
            else:
                made.append(f"   {line}")
            part = start
        elif line and not line.startswith(" "):
            part = ""
            made.append(escaped(line))
        elif part == "Examples:":
            made.append(line[4:])
        elif part in FACTS:
            made.append(f"   {line}" if line else "")
        else:
            made.append(escaped(line))
    lines[:] = made


def escaped(line: str) -> str:
    """Return a line of English as reStructuredText: what it would take for marks is text, `code` is code."""
    pieces = re.split(r"(``[^`]+``|`[^`]+`)", line)
    return "".join(
        f"``{piece.strip('`')}``" if piece.startswith("`") else re.sub(r"([*|\\]|_(?=\W|$))", r"\\\1", piece)
        for piece in pieces
    )


def set_formulae(tree: Any, name: str) -> None:
    """Set the formulae of a page: its indented blocks, and what is in its sentences."""
    from docutils import nodes

    if not FORMULAE.fullmatch(name):
        return
    for block in list(tree.findall(nodes.literal_block)):
        if block.get("language", "none") in {"none", "default"}:
            made = typeset(block.astext(), block=True)
            block.replace_self(nodes.raw("", f'<div class="formula">{made}</div>', format="html"))
    for text in list(tree.findall(nodes.Text)):
        if not isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.raw | nodes.title | nodes.reference):
            made = typeset(text.astext())
            if made != html.escape(text.astext(), quote=False):
                text.parent.replace(text, nodes.raw("", made, format="html"))


def inline_pictures(docs: Path, context: dict[str, Any]) -> None:
    """Put our own pictures into the page: inside it, their colours are those of its light or dark mode."""

    def inline(image: re.Match[str]) -> str:
        words = dict(re.findall(r'(\w+)="([^"]*)"', image[0]))
        path = docs / "pictures" / Path(words["src"]).name
        if path.suffix != ".svg" or not path.exists():
            return image[0]
        text = re.sub(r"<title>.*?</title>|<style>.*?</style>", "", path.read_text(encoding="utf-8"), flags=re.S)
        label = html.escape(html.unescape(words.get("alt", "")))
        return text.replace("<svg ", f'<svg class="picture" role="img" aria-label="{label}" ', 1)

    if "body" in context:
        context["body"] = re.sub(r"<img [^>]*>", inline, context["body"])
