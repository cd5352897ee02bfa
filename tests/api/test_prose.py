"""Paths and names in prose exist: of files, folders, targets of make, modules, classes and functions.

Prose is the pages, and in the files of code whatever is written: docstrings, comments and messages. A name of a file
counts if it ends as one of this repository does and has a folder, or ends in .py or .md. A name of code counts if it
stands between backticks and cannot be a word of English or the name of a column: it has a dot, an underscore, capitals
inside, or brackets behind it.
"""

import importlib
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "privmeasure"
CODE = ("src", "benchmarks", "tools")

ELSEWHERE = {
    "assert_same",  # in tests/differences.py
    "clone",  # scikit-learn
    "orderBy",  # Spark, as the names below
    "inferSchema",
    "spark.driver.maxResultSize",
    "spark.speculation",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.sources.partitionColumnTypeInference.enabled",
    "pl.LazyFrame.sink_parquet",  # polars
    "pathlib.Path",
    "DeprecationWarning",
    "write.csv2",  # R
}
"""Names of other libraries, and of tests."""
EXAMPLES = {
    "notes.md",  # a file that is no table
    "tests/a.py",  # in the output of pytest
    "../house/security.md",  # in a built page, as the next one
    "../persons.md",
    "benchmarks/results/faults.json",  # written by `tools/faults.py --write`
    "benchmarks/results/test-costs.json",  # written by `make measure-tests`
}
"""Names of files that stand for others, or that a command writes."""
OLDER_TARGETS = {"test-slow"}
"""Targets of older commits, which `tools/measure_tests.py` measures as well."""

FILE = re.compile(r"(?<![\w./*<>{}$\\-])((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml|json|yml|ipynb|png|svg))\b(?![\w(]|\.\w|/)")
FOLDER = re.compile(r"`((?:[\w.-]+/)+[\w-]*)`")
TARGETS = re.compile(r"`make ([^`]*)`|\bmake ([a-z]+(?:-[a-z]+)+)\b")
NAME = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(\([^`\n]*\))?(?:=[^`\n]*)?`(?!`)")
LIKE_CODE = re.compile(r"\.|_|[a-z][A-Z]|^[A-Z][A-Z]+[a-z]")
EXPLAINED = re.compile(r'"""(?:[^"]|"(?!""))*"""|#.*')
CLASS = re.compile(r"^class (\w+)(.*\n(?:(?:[ \t].*)?\n)*)", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@cache
def prose():
    """Return the pages and the files of code, by their paths."""
    pages = [*ROOT.glob("docs/**/*.md"), *(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md")]
    code = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    read = {path: path.read_text(encoding="utf-8") for path in [*pages, *code] if "_build" not in path.parts}
    return {path: FENCED.sub("", text) if path.suffix == ".md" else text for path, text in read.items()}


@cache
def known():
    """Return the words that stand in the code outside docstrings and comments, and those of every class."""
    names, members = {"privmeasure", "pm"}, {}
    for path in (path for path in prose() if path.suffix == ".py"):
        code = EXPLAINED.sub("", prose()[path])
        names |= {path.stem, path.parent.name, *re.findall(r"\w+", code)}
        for name, body in CLASS.findall(code):
            members.setdefault(name, set()).update(re.findall(r"\w+", body))
    return names, members


@cache
def targets():
    return OLDER_TARGETS | set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@cache
def by_name():
    """Return the names of the files that scripts may name without their folders: those of pages, scripts and tests."""
    return {path.name for folder in ("benchmarks", "docs", "tests") for path in (ROOT / folder).rglob("*.*")}


def missing_files(text, here):
    """Return the files and folders that a text names and that are neither in the root nor in the package nor here."""
    for name in FILE.findall(text):
        if ("/" in name or name.endswith((".py", ".md"))) and name not in EXAMPLES:
            seen = any((base / name).exists() for base in (ROOT, PACKAGE, here.parent))
            if not seen and not (PACKAGE not in here.parents and here.suffix == ".py" and name in by_name()):
                yield f"no file {name}"
    for name in FOLDER.findall(text):
        for base in (ROOT, PACKAGE):
            if (base / name.split("/")[0]).is_dir() and not any((base / (name + end)).exists() for end in ("", ".py")):
                yield f"no folder or module {name}"


def missing_targets(text):
    """Return the targets of make that a text names and that do not exist."""
    for quoted, plain in TARGETS.findall(text):
        words = [word.rstrip(".") for word in (quoted or plain).split() if not set("={") & set(word)]
        yield from (f"no target {word}" for word in words if word not in targets() and word != "bench...")


def missing_names(text):
    """Return the names of code that a text has between backticks and that the code does not have."""
    names, members = known()
    for name, called in NAME.findall(text):
        parts = name.split(".")
        if name in ELSEWHERE or not (called or LIKE_CODE.search(name)) or FILE.fullmatch(name):
            continue
        if parts[0] in ("pm", "privmeasure"):
            if not resolves("privmeasure", parts[1:]):
                yield f"no public name {name}"
        elif not set(parts) <= names | {""}:
            yield f"no name {name}"
        elif any(one in members and two not in members[one] for one, two in pairwise(parts)):
            yield f"no member {name}"


def resolves(module, parts):
    """Say whether a module has a name of several parts: modules, classes and members."""
    found = importlib.import_module(module)
    for part in parts:
        if not hasattr(found, part):
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
        else:
            found = getattr(found, part)
    return True


def missing(text, here):
    return [*missing_files(text, here), *missing_targets(text), *missing_names(text)]


def test_paths_and_names_in_prose_exist():
    assert len(prose()) > 250
    found = {str(path.relative_to(ROOT)): missing(text, path) for path, text in prose().items()}
    assert {path: problems for path, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("The fifth step is in release.py.", "no file release.py"),
        ("`mechanisms/inference.py` has it", "no file mechanisms/inference.py"),
        ("docs/proofs/nothing.md has the proof", "no file docs/proofs/nothing.md"),
        ("see `benchmarks/results/none.json`", "no file benchmarks/results/none.json"),
        ("tests are in `tests/secrecy`", "no folder or module tests/secrecy"),
        ("`make bench-tea` prints it", "no target bench-tea"),
        ("as make test-tea does", "no target test-tea"),
        ("`synthesize_all` makes rows", "no name synthesize_all"),
        ("`brew()` makes tea", "no name brew"),
        ("`PMM.reconcile` makes tea", "no member PMM.reconcile"),
        ("`pm.Teapot` is a schema", "no public name pm.Teapot"),
        ("`privmeasure.teapots.pour` pours", "no public name privmeasure.teapots.pour"),
    ],
)
def test_a_path_or_a_name_can_be_wrong(text, problem):
    assert missing(text, PACKAGE / "mechanisms" / "pmm.py") == [problem]


def test_what_exists_is_not_refused():
    text = """docs/mathematics.md, `noise/laplace.py`, pmm.py, `tests/privacy`, `make test`, `make bench BASE=x`,
    `pm.PMM.paper`, `PMM.paper(box)`, `Privacy.sensitivity`, `rows_per_person=2`, `income`, people.toml, `N = 3`."""
    assert missing(text, PACKAGE / "mechanisms" / "pmm.py") == []
