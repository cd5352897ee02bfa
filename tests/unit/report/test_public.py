"""The page of a release: for every kind, offline, for screen readers, whatever names and values hold."""

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from privmeasure.privacy import Privacy
from privmeasure.report import promises
from privmeasure.report.public import release_page
from privmeasure.report.words import promise_words

from .releases import HOSTILE, KINDS, VALUES, release, typical

VOID = {"meta", "br", "hr", "img", "link", "input"}
DRAWN = {"svg", "g", "defs", "style", "clippath", "rect", "path", "use", "text", "tspan", "image", "figure"}
KNOWN = DRAWN | {
    "html",
    "head",
    "body",
    "title",
    "meta",
    "style",
    "a",
    "header",
    "h1",
    "h2",
    "h3",
    "p",
    "nav",
    "ul",
    "li",
}
KNOWN |= {
    "main",
    "section",
    "div",
    "figure",
    "figcaption",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "dl",
}
KNOWN |= {"dt", "dd", "pre", "code", "footer"}


class Page(HTMLParser):
    """Reads a page, and says what is wrong with it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.stack, self.tags, self.ids, self.links, self.problems = [], [], [], [], []
        self.headings, self.text, self.labels = [], [], []
        self.feed(text)
        self.close()
        self.problems += [f"never closed: {tag}" for tag in self.stack]
        self.problems += [f"a link leads nowhere: {link}" for link in self.links if link[1:] not in self.ids]
        self.problems += [f"twice: {one}" for one in set(self.ids) if self.ids.count(one) > 1]
        if self.headings[:1] != [1] or self.headings.count(1) != 1 or (np.diff(self.headings) > 1).any():
            self.problems.append(f"headings: {self.headings}")

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append(tag)
        if tag not in KNOWN:
            self.problems.append(f"unknown element: {tag}")
        for name, value in attributes:
            if name.startswith("on") or "javascript:" in (value or ""):
                self.problems.append(f"a script: {name}={value}")
            if name in ("src", "href", "xlink:href", "action", "data") and not value.startswith(
                ("#", "data:image/png")
            ):
                self.problems.append(f"an address: {name}={value}")
            if name == "style" and "url(" in value and "url(#" not in value:
                self.problems.append(f"an address in a style: {value}")
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag == "th" and given.get("scope") not in ("row", "col"):
            self.problems.append("a head without scope")
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))
        if given.get("role") == "img":
            self.labels.append(given.get("aria-label", ""))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.problems.append(f"closed out of turn: {tag}")

    def handle_data(self, data):
        self.text.append(data)


def check(page):
    """Return a page that was read, if there is nothing wrong with it."""
    assert len(page.encode()) < 1_000_000
    read = Page(page)
    assert read.problems == []
    assert read.tags.count("figure") == read.tags.count("figcaption") == len(read.labels) > 0
    assert all(len(label) > 15 for label in read.labels)
    assert "default-src 'none'" in page
    assert not re.search(r"@import|https?://(?!www\.w3\.org)", page)
    return read


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_has_a_page(kind):
    read = check(release_page(release(kind), typical=typical(kind)))
    text = " ".join(read.text)
    assert "NOT PRIVATE" in text  # the noise came from a seed
    assert "What is safe" in text
    assert "What is lost" in text
    assert "What epsilon meant" in text
    assert release(kind).origin.id in text
    assert f"{release(kind).total:,} row" in text
    assert "9 times in 10" in text


@pytest.mark.parametrize("kind", ["line", "tree of a table"])
def test_a_page_without_bands(kind):
    text = " ".join(check(release_page(release(kind))).text)
    assert "9 times in 10" not in text
    assert "certified" in text


def test_a_private_release_does_not_say_that_it_is_not():
    made = pm.Synthesizer(pm.Box([(0, 1)]), epsilon=1, neighbours="replace").fit(np.random.default_rng(0).random(500))
    text = " ".join(check(release_page(made.release_)).text)
    assert "NOT PRIVATE" not in text
    assert "Safe to publish" in text


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "golden").glob("*.parquet")), ids=lambda path: path.stem
)
def test_releases_of_older_versions_have_a_page(path):
    made = pm.load(path)
    check(release_page(made, typical=pm.typical_error(made, runs=2, seed=1)))


def test_a_group_is_drawn_and_listed():
    rng = np.random.default_rng(0)
    schema = pm.Schema({name: pm.Number(0, 1) for name in "abcde"}, groups=[["a", "b"]])
    table = pa.table({name: rng.random(1000) for name in "abcde"})
    made = (
        pm.Synthesizer(schema, epsilon=1, neighbours="replace", mechanism="columns")
        .fit(table, insecure_seed=1)
        .release_
    )
    text = " ".join(check(release_page(made)).text)
    assert "a and b" in text
    for one, two, bits in made.pair_information():
        assert f"{one} and {two}" in text
        assert f"{bits:.3f}" in text


def test_names_and_values_are_texts_and_nothing_else():
    page = release_page(release("wide table"), typical=typical("wide table"))
    read = check(page)
    text = "".join(read.text)
    assert HOSTILE in text
    assert HOSTILE not in page
    assert "<script" not in page
    assert "img" not in read.tags
    for value in VALUES[:3]:
        assert value in text


def test_the_check_would_see_a_page_that_is_broken():
    page = release_page(release("line"))
    for wrong in (
        page.replace("<h3>", "<h3><script>", 1),
        page.replace('<p class="lead">', '<p class="lead" onclick="x">', 1),
        page.replace('href="#short"', 'href="https://example.org"', 1),
        page.replace(' scope="col"', "", 1),
        page.replace('id="distance"', 'id="short"', 1),
        page.replace("</section>", "", 1),
        page.replace("<h2", "<h4", 1).replace("</h2", "</h4", 1),
    ):
        assert wrong != page
        assert Page(wrong).problems


def test_the_page_shows_what_a_steward_asks_for():
    page = release_page(release("wide table"), typical=typical("wide table"), name="people.release")
    text = " ".join("".join(check(page).text).split())
    for word in (
        "age < 10 and smoker = true",  # facts
        "privmeasure sample people.release",
        "Epsilon = 2: somebody who was 50 % sure of something about one person can be, afterwards and at the most, "
        "88 % sure whether they are in the table and 98 % sure what their rows say",
        "told apart to",
        "guaranteed",
        "certified",
        "typical",
        "blind",
        "The same as a calendar",
        "There are no outlines",
        "pairs of columns were chosen",
        "noise of scale",
        "years",
    ):
        assert word in text, word


def test_the_same_release_has_the_same_page():
    pages = [release_page(release("tree of a table"), typical=typical("tree of a table")) for _ in range(2)]
    assert pages[0] == pages[1]


def test_many_columns_still_make_a_small_page():
    names = [f"a rather long name of column {i}" for i in range(80)]
    schema = pm.Schema(
        {
            name: pm.Number(0, 1, nullable=True) if i % 2 else pm.Category([f"value {j}" for j in range(60)])
            for i, name in enumerate(names)
        }
    )
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            name: rng.random(2000) if i % 2 else [f"value {j}" for j in rng.integers(0, 60, 2000)]
            for i, name in enumerate(names)
        }
    )
    made = pm.Synthesizer(schema, epsilon=20, neighbours="replace").fit(table, insecure_seed=1).release_
    text = "".join(check(release_page(made)).text)
    assert "50 more columns" in text


@pytest.mark.parametrize(
    ("privacy", "words"),
    [
        (Privacy(1, "add-remove"), ["one row", "not been in the table", "2.72 times", "noise on it"]),
        (Privacy(1, "replace"), ["said anything else", "public, and exact"]),
        (Privacy(8, "replace"), ["weak promise", "all but certain"]),
        (Privacy("1/2", "add-remove", 3), ["up to 3", "1.65 times"]),
        (Privacy(1, "add-remove", 4, "patient"), ["all rows of one 'patient', of which at most 4 were kept"]),
    ],
)
def test_the_promise_in_plain_words(privacy, words):
    said = " ".join(promise_words(privacy))
    for word in words:
        assert word in said
    assert ("weak" in said) == (privacy.epsilon > 4)


@pytest.mark.parametrize("before", [0.01, 0.5, 0.9])
def test_beliefs_are_those_of_bayes(before):
    """By hand: the chances of a release under two neighbours differ by e^epsilon, of two steps by its square."""
    for step, privacy in ((1, Privacy("1/2", "replace")), (2, Privacy("1/2", "add-remove"))):
        likely, unlikely = math.exp(step / 2), 1.0
        low, high = promises.beliefs(privacy, before)["what their rows say"]
        assert high == pytest.approx(before * likely / (before * likely + (1 - before) * unlikely))
        assert low == pytest.approx(before * unlikely / (before * unlikely + (1 - before) * likely))


def test_pictures_have_the_colours_of_the_page():
    page = release_page(release("line"))
    assert "var(--blue, #2f6fb5)" in page
    assert page.count("prefers-color-scheme: dark") == 1
    for name in set(re.findall(r"var\((--\w+)", page)):
        assert page.count(f"{name}:") == 2, name  # in the light and in the dark
