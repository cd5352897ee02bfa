"""The code on the pages runs, its output is as printed, numbers are those of the results files, every page is found.

A page is run from its first block to its last, in a folder that has nothing but the examples. A block of `python` is
executed; of `sh` every line is a command of ours, or `cp`, or a target of `make` and an extra of `pip install .` that
exist; `output` is what the block before it prints, lines left out where it says `...`; `toml` whose first line is a
comment with the name of a file is that file. Only a block below a line *Not run by the tests: why* is left alone.
"""

import doctest
import importlib
import io
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import check_pages
import docs_extension
import formulae
import pytest

import privmeasure as pm
from privmeasure import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILT = sorted(page for page in (path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md")) if "/_b" not in page)
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", *BUILT]
FENCE = re.compile(r"^(\*Not run by the tests: [^*]+\*\n+)?```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = {"text", "{toctree}", "{eval-rst}"}
"""Kinds of blocks that nothing is done with: tables of words, and what Sphinx reads."""


def blocks(text):
    """Return the kind and the body of every block that is not marked."""
    return [(kind.strip(), body) for mark, kind, body in FENCE.findall(text) if not mark]


class Runner:
    """Runs the blocks of a page, in order."""

    def __init__(self, page, capsys, monkeypatch):
        self.page, self.capsys, self.monkeypatch = page, capsys, monkeypatch
        self.names, self.printed, self.ran = {}, "", 0

    def run(self, kind, body):
        if kind == "python":
            self.capsys.readouterr()
            exec(compile(body, self.page, "exec"), self.names)
            self.printed = self.capsys.readouterr().out
        elif kind == "sh":
            self.printed = "".join(self.command(line) for line in body.splitlines() if line.strip())
        elif kind == "output":
            self.compare(body)
        elif kind == "toml":
            tomllib.loads(body)
            if name := re.match(r"# (\w[\w.-]*\.toml)\n", body):
                Path(name[1]).write_text(body, encoding="utf-8")
        else:
            assert kind in SHOWN, f"{self.page}: a block of kind {kind!r} is neither run nor marked"

    def command(self, line):
        before, _, command = line.rpartition(" | ")
        words = shlex.split(command, comments=True)
        if words[:1] == ["privmeasure"]:
            if before:
                cat, name = shlex.split(before)
                assert cat == "cat"
                self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(name).read_bytes())))
            self.capsys.readouterr()
            code = cli.run(words[1:])
            out, err = self.capsys.readouterr()
            assert code == 0, (line, err or out)
            self.ran += 1
            return out
        if words[:1] == ["cp"]:
            subprocess.run(words, check=True)
        elif words[:1] == ["make"]:
            targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert set(words[1:]) <= set(targets), line
        elif words[:2] == ["pip", "install"]:
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            here = re.fullmatch(r"\.(?:\[([\w,]+)\])?", " ".join(words[2:]))
            assert here, f"{self.page}: {line!r} does not install this folder"
            assert set((here[1] or "").split(",")) - {""} <= set(extras), line
        else:
            assert not words, f"{self.page}: who runs {line!r}?"
        return ""

    def compare(self, body):
        """Every printed line is in the output, in this order."""
        rest = [line.rstrip() for line in self.printed.splitlines()]
        for line in body.splitlines():
            if line.strip() not in {"", "..."}:
                assert line.rstrip() in rest, f"{self.page} prints {line!r}; the output is:\n{self.printed}"
                rest = rest[rest.index(line.rstrip()) + 1 :]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs_as_it_is_printed(page, tmp_path, monkeypatch, capsys):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    runner = Runner(page, capsys, monkeypatch)
    for kind, body in blocks((ROOT / page).read_text(encoding="utf-8")):
        runner.run(kind, body)
    if page == "docs/cli.md":
        assert runner.ran > 20


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("python", "1 / 0"),
        ("sh", "rm -rf x"),
        ("sh", "make tea"),
        ("sh", "pip install '.[tea]'"),
        ("sh", "pip install 'privmeasure[report]'"),
        ("sh", "privmeasure plan"),
        ("output", "something else"),
        ("toml", "= 1"),
        ("", "privmeasure plan"),
        ("r", "1 + 1"),
    ],
)
def test_a_page_can_be_wrong(kind, body, capsys, monkeypatch):
    with pytest.raises((AssertionError, ZeroDivisionError, tomllib.TOMLDecodeError)):
        Runner("page.md", capsys, monkeypatch).run(kind, body)


def test_only_a_mark_leaves_a_block_alone():
    text = "```python\n1 / 0\n```\n\n*Not run by the tests: it needs Spark.*\n```python\n2 / 0\n```\n"
    assert blocks(text) == [("python", "1 / 0\n")]
    assert len(blocks(text.replace("*Not run", "*Not tried"))) == 2


def test_the_page_about_installing_has_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"^\| `(\w+)` \|", (DOCS / "install.md").read_text(), re.MULTILINE)) == set(extras)


def test_the_readme_is_one_screen_of_code():
    """Two sentences, one picture, two commands, ten lines of Python, one table."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = text.split("\n\n")[1].replace("\n", " ")
    assert len(re.findall(r"\.(?= |$)", first)) == 2
    assert text.count("![") == 1
    code = dict(blocks(text))
    assert [line.split()[:2] for line in code["sh"].splitlines()] == [["make", "demo"], ["make", "test"]]
    assert sum(bool(line.strip()) for line in code["python"].splitlines()) == 10
    assert text.count("| --- |") > 0
    assert len(re.findall(r"^\| --- ", text, re.MULTILINE)) == 1


def test_the_numbers_of_the_pages_are_those_of_the_results():
    check = [sys.executable, str(ROOT / "benchmarks" / "pages.py"), "--check"]
    run = subprocess.run(check, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / name for name in BUILT)]:
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8")):
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(path), f"{page.name} links to {target}#{anchor}"


def anchors(page):
    """Return the names of the headings of a page, as links write them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_page_is_in_one_table_of_contents():
    listed = []
    for name in BUILT:
        page = ROOT / name
        for kind, body in blocks(page.read_text(encoding="utf-8")):
            if kind == "{toctree}":
                entries = re.findall(r"^(?!:)(?:.* <)?([\w/-]+)>?$", body, re.MULTILINE)
                listed += [(page.parent / f"{entry}.md").relative_to(ROOT).as_posix() for entry in entries]
    assert sorted([*listed, "docs/index.md"]) == BUILT


def test_the_reference_has_every_public_name():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    modules = ("", ".testing", ".report.plots", ".theory", ".metrics", ".ledger")
    names = {f"privmeasure{name}.{public}" for name in modules for public in named(f"privmeasure{name}")}
    told = set(re.findall(r"^\.\. auto\w+:: (\S+)", text, re.MULTILINE))
    assert names <= told, names - told


def named(module):
    return pm.__all__ if module == "privmeasure" else importlib.import_module(module).__all__


def test_pictures_have_words_and_follow_light_and_dark():
    shown = {}
    for name in PAGES:
        shown |= {
            picture: words
            for words, picture in re.findall(
                r"!\[([^\]]*)\]\((?:docs/)?pictures/([\w-]+\.svg)\)", (ROOT / name).read_text()
            )
        }
    assert set(shown) == {path.name for path in (DOCS / "pictures").iterdir()}
    for picture, words in shown.items():
        text = (DOCS / "pictures" / picture).read_text(encoding="utf-8")
        assert len(words) > 20
        assert f"<title>{words}</title>" in text.replace("&#x27;", "'").replace("&amp;", "&"), picture
        assert "prefers-color-scheme: dark" in text
        assert len(text) < 200_000, "a page should load at once"


def test_links_of_built_pages_are_checked(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="top"></h1><a href="b.html#x"></a><a href="https://x.org/none"></a>')
    (tmp_path / "b.html").write_text('<p id="x"></p><a href="a.html#top"></a><img src="a.html">')
    assert check_pages.broken(tmp_path) == []
    (tmp_path / "b.html").write_text('<p id="y"></p><a href="a.html#topp"></a><img src="c.png">')
    assert check_pages.broken(tmp_path) == ["a.html: b.html#x", "b.html: a.html#topp", "b.html: c.png"]
    assert check_pages.broken(tmp_path / "none") != []


def test_what_the_pages_are_made_by():
    for module in (docs_extension, formulae):
        tried = doctest.testmod(module)
        assert tried.attempted > 2
        assert tried.failed == 0
    for root, page in docs_extension.HOUSE.items():
        assert (ROOT / root).exists()
        assert (DOCS / f"{page}.md").exists()
