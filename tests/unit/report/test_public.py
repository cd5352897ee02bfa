"""The page of a release: for every kind, offline, for screen readers, whatever names and values hold."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import privmeasure as pm
from depth import some
from privmeasure.privacy import Privacy
from privmeasure.releases.bands import Band
from privmeasure.report import canvas, pages, promises, sections, words
from privmeasure.report.public import release_page
from privmeasure.report.words import compared_beliefs, promise_words
from privmeasure.tables.variables import variables

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


@some("kind", 4, KINDS)
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


@some("path", 2, sorted((Path(__file__).parents[2] / "golden").glob("*.parquet")), ids=lambda path: path.stem)
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


@pytest.mark.deep
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


# -------------------------------------------------------------------------------------- read by who did not build it


def read(kind):
    page = release_page(release(kind), typical=typical(kind))
    return page, " ".join("".join(check(page).text).split())


@some("kind", 1, ["tree of a table", "wide table", "line"])
def test_numbers_are_written_as_people_write_them(kind):
    page, text = read(kind)
    labels = " ".join(Page(page).labels)
    for said in (text, labels):
        assert not re.search(r"\de\+\d", said)
        assert not re.search(r"\d{5,}\.0\b", said)
    assert ("10,000" in text) == (kind == "wide table")


def test_every_column_has_a_sentence_with_what_to_expect_and_what_is_proved():
    _, text = read("tree of a table")
    for name in ("age", "sex"):
        told = re.search(
            rf"{name}: expect about [^;]*; proved for this release \(95 % sure\): [^;]*; known before", text
        )
        assert told, name
    assert "hold for whatever data" in text
    assert "a little" not in text


def test_of_many_columns_the_nearest_and_the_farthest_have_a_sentence():
    _, text = read("wide table")
    assert "of 11 columns the nearest and the farthest" in text
    assert text.count(": expect about") == 2


def test_a_bound_that_another_one_beats_is_not_in_the_sentence():
    worse = promises.ColumnPromise("age", "", 0.1, 0.2, None, None)
    better = promises.ColumnPromise("age", "", 0.2, 0.1, None, None)
    assert "proved" not in worse.sentence(0.95)
    assert "proved for this release (95 % sure): 10 % of its range" in better.sentence(0.95)


def test_a_stretched_scale_is_said_to_have_no_one_amount():
    column = pm.Number(0, 1_000_000, breaks=[1, 10_000, 50_000])
    told = promises.ColumnPromise("income", "", 0.25, None, None, column, middle=2.0)
    assert told.words(0.25) == "25 % of its stretched scale (at the median: from 10,000 to 1 or 50,000)"
    assert told.words(0.75) == "75 % of its stretched scale (at the median: from 10,000 to 0 or 1,000,000)"
    whole = pm.Integer(0, 1000, breaks=[1, 10])
    assert promises.ColumnPromise("n", "", 0.25, None, None, whole, 0.5).words(1e-6).endswith("0, too little to see)")
    _, text = read("wide table")
    assert "No one amount can be given for gain" in text
    assert "The axis changes its scale at 1, 1,000 and 10,000" in text
    assert "in the column's own units" not in text


def test_bars_of_a_distance_begin_where_the_range_does():
    shown = promises.ColumnPromise("age", "", 0.34, 0.18, 0.006, pm.Integer(17, 90, unit="year"))
    ax = promises.distance_in_units(shown, "17", "90")
    assert [bar.get_x() for bar in ax.patches] == [0, 0, 0, 0]
    assert [bar.get_width() for bar in ax.patches] == [0.34, 0.18, 0.006, 1]
    said = [text.get_text() for text in ax.texts]
    assert said[:3] == ["guaranteed: 25 years", "certified: 13 years", "typical: 0.44 years"]
    canvas.forget(ax)


def test_a_picture_says_what_lies_beyond_its_ends():
    _, text = read("wide table")
    assert "Values above 120 are counted at 120, and values below 0 at 0." in text
    assert "Values after 2024-06-30 are counted at 2024-06-30" in text


def test_a_mean_that_few_values_decide_gives_way_to_the_median():
    v = next(v for v in variables(release("wide table").schema) if v.name == "income")
    known = typical("wide table")

    def said(mean, median):
        bands = replace(known, means={"income": mean}, quantiles={"income": {0.5: median}})
        return sections.column_section(pages.Album(), v, np.full((9, 12), 2.0), bands)["facts"]

    assert "use the median" in said(Band(18_300, 13_600, 23_000), Band(12_150, 11_720, 12_580))
    assert "use the median" not in said(Band(18_300, 17_830, 18_770), Band(12_150, 11_720, 12_580))
    assert "nine times in ten" in said(Band(18_300, 17_830, 18_770), Band(12_150, 11_720, 12_580))


def test_a_page_says_the_mean_and_the_quantiles_that_the_release_states():
    made = release("tree of a table")
    text = read("tree of a table")[1]
    mean, median = typical("tree of a table").means["age"], typical("tree of a table").quantiles["age"][0.5]
    assert mean.value == made.mean()["age"]
    assert f"Mean {words.with_band(mean)} years; median {words.with_band(median)} years" in text
    low, middle, high = (made.quantile(q, column="age") for q in (0.05, 0.5, 0.95))
    page = release_page(made)
    assert f"Distribution of age; the median is {middle}, nine in ten lie from {low} to {high}" in page


def test_a_value_that_noise_moved_out_of_its_band_is_not_to_be_used():
    v = next(v for v in variables(release("wide table").schema) if v.name == "income")
    inside, outside = Band(12_150, 11_720, 12_580), Band(18_300, 13_600, 17_000)
    for mean, expected in ((inside, False), (outside, True)):
        bands = replace(typical("wide table"), means={"income": mean}, quantiles={"income": {0.5: inside}})
        facts = sections.column_section(pages.Album(), v, np.full((9, 12), 2.0), bands)["facts"]
        assert ("moved the released mean out of the brackets" in facts) == expected


@pytest.mark.parametrize("kind", ["tree of a table", "line"])
def test_words_are_those_that_the_page_has(kind):
    page, _ = read(kind)
    cut = page.index('id="words"')
    listed = re.findall(r"<dt>([^<]*)</dt>", page[cut:])
    before = re.sub(r"<[^>]*>", " ", page[page.index("<main") : cut])
    assert {"epsilon", "noise", "typical", "told apart"} <= set(listed)
    assert all(word in before for word in listed)
    assert ("add-remove" in listed) == (kind == "tree of a table")
    assert ("schema" in listed) == (kind == "tree of a table")


def test_epsilon_is_judged_and_compared():
    _, text = read("tree of a table")
    assert "How strong the promise is: a usual choice for sensitive data" in text
    assert "2 (this one and a second like it)" in text
    assert "from 50 % sure to 88 %, not to 73 % only" in text
    assert "twice as much" not in text
    rows = compared_beliefs(Privacy(4, "replace"))
    assert [row[0] for row in rows] == ["0.1", "1", "4 (this release)", "8 (this one and a second like it)", "10"]
    assert rows[2][1].startswith("weak")


def test_cells_below_the_noise_are_named():
    v, w = variables(release("tree of a table").schema)
    points = np.array([[30.0, 0.0]] * 99 + [[50.0, 1.0]])

    def caption(noise):
        return sections.pair_section(pages.Album(), v, w, points, noise)["picture"].caption

    assert "less than 2 % of the rows may be noise alone: 1 of 2 here" in caption(0.02)
    assert "noise" not in caption(0.005)


def test_a_phone_shows_whole_pictures_and_every_cell_with_its_head():
    page, _ = read("line")
    assert "min-width: 30rem" not in page
    assert page.count("<td data-head=") == len(re.findall(r"<td\b", page))
