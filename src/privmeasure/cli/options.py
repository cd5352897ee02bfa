"""The options that commands share: the same name, the same meaning, everywhere."""

import inspect
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from privmeasure.errors import ArgumentError
from privmeasure.privacy import LARGEST_EPSILON, Neighbours, Privacy, exact_delta

if TYPE_CHECKING:
    from privmeasure.tables.texts import TextForm

MOST_ROWS = 2**53 - 1
"""Beyond it, doubles no longer count rows."""

Data = Annotated[
    Path,
    typer.Argument(
        help="The sensitive table: CSV, TSV (also .gz), Parquet, Feather or xlsx; - for stdin.", show_default=False
    ),
]
DataPlace = Annotated[
    str,
    typer.Argument(
        help="The sensitive table: a file (CSV, TSV, also .gz, Parquet, Feather, xlsx; - for stdin), or a table or "
        "query in a database: duckdb:FILE?table=NAME, sqlite:FILE?query=SELECT..., postgresql://HOST/BASE?table=NAME.",
        show_default=False,
        metavar="DATA",
    ),
]
ReleaseFile = Annotated[Path, typer.Argument(help="A release, as `privmeasure fit` writes it.", show_default=False)]
SchemaFile = Annotated[
    Path,
    typer.Option(
        "--schema", "-s", help="The public declaration of the columns, a TOML file. See `privmeasure schema`."
    ),
]
Epsilon = Annotated[
    str,
    typer.Option(
        "--epsilon",
        "-e",
        metavar="NUMBER",
        help="How much one person may change what anyone sees: 0.1 is strong, 1 usual, 4 weak. Read exactly: 0.1, 1/3.",
    ),
]
Delta = Annotated[
    str,
    typer.Option(
        "--delta",
        metavar="NUMBER",
        help="How far chances may pass the bound of epsilon, such as 1e-6: less noise for wide tables, used only where "
        "it pays. 0 is the pure promise. See docs/choosing-epsilon.md.",
    ),
]
NeighboursOption = Annotated[
    str,
    typer.Option(
        "--neighbours",
        metavar="add-remove|replace",
        help="What one person can change. add-remove: they are in the table or not; the number of rows is private. "
        "replace: their row becomes another; the number of rows is public. There is no default: it is your promise.",
    ),
]
RowsPerPerson = Annotated[
    int,
    typer.Option(
        "--rows-per-person",
        min=1,
        help="The most rows of one person: no more are kept if the schema names the person, else it is trusted.",
    ),
]
PublicRows = Annotated[
    int | None,
    typer.Option(
        "--rows", min=1, help="A public number of rows to plan for. Without it, the number is bought with noise."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="a,b,c", help="Only these columns of the schema: fewer columns, finer cells."),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="A column that people will predict, in the place of the schema's target: pairs with it are chosen first. "
        "Give it again for another.",
        show_default=False,
    ),
]
MechanismOption = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="auto|pmm|columns|psmm",
        help="pmm: one tree over all columns. columns: a tree of columns, for wide tables. psmm: a flat histogram. "
        "auto chooses by the number of columns, and says why.",
    ),
]
Depth = Annotated[
    int | None, typer.Option("--depth", min=0, help="The number of cuts; without it, chosen from public values.")
]
NewlinesInCells = Annotated[
    bool,
    typer.Option(
        "--newlines-in-cells",
        help="Quoted cells of a text file may hold line ends; else every line is a row. Quoting must then be sound.",
    ),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="Of text files, like ';', '|' or tab; without it by the end of the name.",
        show_default=False,
    ),
]
DecimalOption = Annotated[
    str, typer.Option("--decimal", metavar=".|,", help="The decimal mark of numbers in text files.")
]
EncodingOption = Annotated[
    str, typer.Option("--encoding", help="Of text files: utf-8, latin-1, cp1252 or another of one byte per letter.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write; - for CSV on stdout.")]
RowsPerFile = Annotated[
    int | None,
    typer.Option(
        "--rows-per-file",
        min=1,
        help="Write a folder of files with at most so many rows each; -o rows.parquet is then its name.",
        show_default=False,
    ),
]
OutPlace = Annotated[
    str, typer.Option("--out", "-o", help="Where to write; - for CSV on stdout. With --engine spark also an address.")
]
Engine = Annotated[
    str | None,
    typer.Option("--engine", metavar="spark", help="Count and draw on a cluster; without it here.", show_default=False),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="local[2]",
        help="Of Spark: local[2], spark://host:7077, yarn; without it all cores of this machine.",
        show_default=False,
    ),
]
TextOut = Annotated[
    Path | None, typer.Option("--out", "-o", help="Where to write; without it to stdout.", show_default=False)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout; errors too. No progress.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, help="Make the sampling reproducible. Harmless: a release is public. Noise has none."
    ),
]
RowsOption = Annotated[
    int | None,
    typer.Option("--number", "-n", min=0, max=MOST_ROWS, help="How many rows; without it as many as were released."),
]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="Book the release in this ledger, before the data are opened.")
]
Dataset = Annotated[
    str | None, typer.Option("--dataset", help="The name of the data set in the ledger: yours, not a path.")
]
Note = Annotated[
    str, typer.Option("--note", help="A line for the ledger: what the release is for.", show_default=False)
]
User = Annotated[
    str | None,
    typer.Option("--user", help="Who books it in the ledger; without it the login name.", show_default=False),
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="How many threads; without it all cores.")]


class Written(NamedTuple):
    """How text files are written, those that are read and those that come out."""

    delimiter: DelimiterOption = None
    decimal: DecimalOption = "."
    encoding: EncodingOption = "utf-8"

    def form(self, *, newlines_in_cells: bool = False) -> "TextForm":
        """Return it as a value, or say what is wrong."""
        from privmeasure.tables.texts import TextForm

        return TextForm(self.delimiter, self.decimal, self.encoding, newlines_in_cells)


def read_delta(text: str) -> Fraction:
    """Return the exact number that a text like 1e-6 or 1/1000000 stands for, 0 for a pure promise.

    Examples:
        >>> read_delta("1e-6"), read_delta("0")
        (Fraction(1, 1000000), Fraction(0, 1))
        >>> read_delta("little")
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: --delta must be a number like 1e-6 or 1/1000000, got 'little'. ...
    """
    short = text.strip()
    if not re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,60}([eE]-[0-9]{1,2})?|[0-9]{1,9}/[0-9]{1,60}", short):
        raise ArgumentError(
            f"--delta must be a number like 1e-6 or 1/1000000, got {text[:40]!r}. It is the chance that the promise "
            "may fail with; leave it out for a promise that never does."
        )
    try:
        return exact_delta(Fraction(short))
    except ZeroDivisionError:
        raise ArgumentError(f"--delta must be a number like 1e-6, got {text[:40]!r}, which divides by 0.") from None


def read_epsilon(text: str, name: str = "epsilon") -> Fraction:
    """Return the exact number that a text like 0.1 or 1/3 stands for.

    Exponents are refused: they could ask for any amount of memory. The error writes out a number that is in range.

    Examples:
        >>> read_epsilon("0.1"), read_epsilon("1/3")
        (Fraction(1, 10), Fraction(1, 3))
        >>> read_epsilon("one")
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: --epsilon must be a number above 0 and at most 50, like 0.5 or 1/3, got ...
        >>> read_epsilon("1e-3")
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: --epsilon is read without exponents, got '1e-3'. Write it as 0.001.
    """
    short = text.strip()
    exponent = re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,9}[eE][+-]?[0-9]", short)
    if exponent and 0 < Decimal(short) <= LARGEST_EPSILON:
        raise ArgumentError(f"--{name} is read without exponents, got {short!r}. Write it as {Decimal(short):f}.")
    if not re.fullmatch(r"[0-9]{1,30}(/[0-9]{1,30}|\.[0-9]{1,30})?|\.[0-9]{1,30}", short) or short.endswith("/0"):
        raise ArgumentError(
            f"--{name} must be a number above 0 and at most {LARGEST_EPSILON}, like 0.5 or 1/3, got {text[:40]!r}. "
            "Common choices: 0.1 (strong) to 4 (weak)."
        )
    try:
        return Fraction(short)
    except ZeroDivisionError:
        raise ArgumentError(f"--{name} must not be divided by zero, got {text[:40]!r}.") from None


def read_neighbours(text: str) -> Neighbours:
    """Return the neighbouring relation that a text names, or say what the choice is."""
    return Privacy(1, cast(Neighbours, text)).neighbours


def read_mechanism(text: str) -> Any:
    """Return the name of a mechanism, or say what the choice is.

    Examples:
        >>> read_mechanism("tree")
        Traceback (most recent call last):
        ...
        privmeasure.errors.ArgumentError: --mechanism must be auto, pmm, columns or psmm, got 'tree'.
    """
    if text not in ("auto", "pmm", "columns", "psmm"):
        raise ArgumentError(f"--mechanism must be auto, pmm, columns or psmm, got {text[:40]!r}.")
    return text


def split_names(text: str | None) -> list[str] | None:
    """Return the names of a list like "age,sex".

    Examples:
        >>> split_names("age, sex")
        ['age', 'sex']
    """
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def help_of(command: Callable[..., None]) -> str:
    """Return the docstring of a command with its paragraphs on one line each, for the terminal to wrap.

    Examples:
        >>> def greet() -> None:
        ...     '''Say
        ...     hello.
        ...
        ...       greet world
        ...     '''
        >>> help_of(greet)
        'Say hello.\\n\\n  greet world'
    """
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else " ".join(text.split()) for text in paragraphs)


def unfold(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the options of its groups one by one: a parameter that is a NamedTuple is a group.

    Examples:
        >>> from typing import NamedTuple
        >>> class Colours(NamedTuple):
        ...     red: int = 0
        ...     blue: int = 0
        >>> def paint(wall: str, colours: Colours) -> None:
        ...     print(wall, colours)
        >>> inspect.signature(unfold(paint))
        <Signature (*, wall: str, red: int = 0, blue: int = 0)>
        >>> unfold(paint)(wall="north", red=3, blue=0)
        north Colours(red=3, blue=0)
    """
    own = inspect.signature(command).parameters
    groups: dict[str, Any] = {name: one.annotation for name, one in own.items() if hasattr(one.annotation, "_fields")}
    single = [inspect.signature(groups[n]).parameters.values() if n in groups else [one] for n, one in own.items()]

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(*map(given.pop, group._fields))
        command(**given)

    cast(Any, run).__signature__ = inspect.Signature(
        [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameters in single for parameter in parameters]
    )
    return run


def add_commands(app: typer.Typer, commands: Mapping[str, Callable[..., None]]) -> None:
    """Give an application its commands, by name."""
    for name, command in commands.items():
        text = help_of(command).replace("[", "\\[")  # no markup: what is in brackets is meant as it is written
        app.command(name, help=text)(unfold(command))
