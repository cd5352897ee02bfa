"""Every citation of the paper, in the code and on the pages, stands in the table of docs/paper.md, with its file."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "privmeasure"
TABLE = ROOT / "docs" / "paper.md"

COUNTED = r"(?:[1-9]|[A-Z])\.\d+"
"""The number of a statement: its section, and its place inside the section."""
NUMBERS = {
    "theorem": COUNTED,
    "lemma": COUNTED,
    "corollary": COUNTED,
    "proposition": COUNTED,
    "definition": COUNTED,
    "remark": COUNTED,
    "algorithm": r"\d+",
    "section": r"\d(?:\.\d+)*",
    "appendix": r"[A-Z](?:\.\d+)?\b",
    "equation": rf"\({COUNTED}\)",
}
"""What the paper numbers, and how. Lemmas of this project have whole numbers."""
STEMS = {kind.rstrip("yx"): kind for kind in NUMBERS}
LISTS = {kind: re.compile(rf"{number}(?:(?:, | and ){number})*") for kind, number in NUMBERS.items()}
WORD = re.compile(rf"(\[CKS20\] )?\b({'|'.join(STEMS)})[a-z]* (?=[\dA-Z(])", re.IGNORECASE)
VAGUE = re.compile(
    rf"(?:paper's|\[HVZ23\],?) (?:\w+ ){{0,2}}(?:{'|'.join(STEMS)})[a-z]*\b(?! [\dA-Z(])"
    rf"|References: \[HVZ23\](?! (?:{'|'.join(STEMS)}))",
    re.IGNORECASE,
)
"""A citation without a number."""


def cited(text):
    """Return the citations of a text: 'Theorems 4.2 and 4.3' are two."""
    found, text = set(), " ".join(text.split())
    for match in WORD.finditer(text):
        kind = STEMS[match[2].lower()]
        numbers = None if match[1] else LISTS[kind].match(text, match.end())
        found |= {f"{kind} {number}" for number in re.findall(NUMBERS[kind], numbers[0] if numbers else "")}
    return found


def table(text):
    """Return the files of every row of the table."""
    rows = {}
    for line in text.splitlines():
        name, *rest = (part.strip() for part in line.strip("|").split("|"))
        if line.startswith("| ") and cited(name) and len(rest) == 2:
            (citation,) = cited(name)
            assert citation not in rows, f"{citation} has two rows"
            rows[citation] = set(re.findall(r"`([\w/]+\.py)`", rest[1]))
    return rows


def texts():
    """Return the texts of the code and of the pages, by their paths; the table itself is not among them."""
    pages = [*ROOT.glob("docs/**/*.md"), *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING"))]
    pages = [page for page in pages if page != TABLE and "_build" not in page.parts]
    code = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    return code, {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in pages}


def differences(rows, code, pages):
    """Return how the citations differ from the table: sentences, none if they agree."""
    found, citing = [], {name: cited(text) for name, text in {**code, **pages}.items()}
    for name, text in {**code, **pages}.items():
        found += [f"{name} cites {citation}, which has no row" for citation in sorted(citing[name] - set(rows))]
        found += [f"{name} cites without a number: {vague[0]!r}" for vague in VAGUE.finditer(" ".join(text.split()))]
    for citation, files in rows.items():
        here = {name for name in code if citation in citing[name]}
        found += [f"{citation} is cited by {name}, which is not in its row" for name in sorted(here - files)]
        found += [f"{citation} is not cited by {name}, which is in its row" for name in sorted(files - here)]
        if not any(citation in citations for citations in citing.values()):
            found.append(f"{citation} has a row and is cited nowhere")
    return found


def test_every_citation_of_the_paper_stands_in_the_table_with_its_file():
    rows = table(TABLE.read_text(encoding="utf-8"))
    code, pages = texts()
    assert len(rows) > 20
    assert len(code) > 200
    assert differences(rows, code, pages) == []


ROWS = {"algorithm 3": {"a.py"}, "theorem 4.2": set()}
CODE, PAGES = {"a.py": "[HVZ23] Algorithm 3"}, {"b.md": "Theorem 4.2, and\nAlgorithm 3. Lemma 1 is of this page."}


def test_what_agrees_has_no_differences():
    assert differences(ROWS, CODE, PAGES) == []


@pytest.mark.parametrize(
    ("code", "pages", "what"),
    [
        ({"a.py": "Algorithm 3 and Definition 1.1"}, PAGES, "definition 1.1, which has no row"),
        ({"a.py": "Algorithms 3 and 5"}, PAGES, "algorithm 5, which has no row"),
        (CODE, {"b.md": "Theorem 4.2; section 1.4"}, "section 1.4, which has no row"),
        (CODE, {"b.md": "Theorem 4.2; Section\n3.1"}, "section 3.1, which has no row"),
        (CODE, {"b.md": "Theorem 4.2; appendix C"}, "appendix C, which has no row"),
        (CODE, {"b.md": "Theorems 4.2 and 4.9"}, "theorem 4.9, which has no row"),
        (CODE, {"b.md": "Theorem 4.2 and equation (A.5)"}, r"equation \(A.5\), which has no row"),
        (CODE, {}, "theorem 4.2 has a row and is cited nowhere"),
        ({**CODE, "c.py": "Algorithm 3"}, PAGES, "cited by c.py, which is not in its row"),
        ({"a.py": ""}, PAGES, "not cited by a.py, which is in its row"),
        ({"a.py": "[HVZ23] Algorithm 3; the paper's corollary"}, PAGES, "without a number"),
        ({"a.py": "[HVZ23] Algorithm 3. [HVZ23] accuracy theorem"}, PAGES, "without a number"),
        ({"a.py": "Algorithm 3\n\n    References: [HVZ23]; docs/b.md"}, PAGES, "without a number"),
    ],
)
def test_a_citation_can_be_wrong(code, pages, what):
    (found,) = differences(ROWS, code, pages)
    assert re.search(what, found)


def test_lemmas_of_this_project_and_of_other_papers_are_left_alone():
    assert cited("Lemma 5, Lemma 2b, [CKS20] Theorem 4, [CKS20, Proposition 12], Theorem (T7), T1, Section A") == set()
