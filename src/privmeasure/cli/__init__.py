"""The command line: `privmeasure`. One small file per command; what they do is done elsewhere.

Nothing heavy is imported before a command runs, so that help comes at once.
"""

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from privmeasure.cli import app as local_page
from privmeasure.cli import evaluate, failures, fit, inspect, ledger, options, plan, report, sample, schema, synthesize

app = typer.Typer(
    name="privmeasure",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)
commands = (
    plan.plan,
    fit.fit,
    sample.sample,
    synthesize.synthesize,
    inspect.inspect,
    evaluate.evaluate,
)
options.add_commands(
    app,
    {command.__name__: command for command in commands} | {"report": report.write_report, "app": local_page.run_app},
)
app.add_typer(schema.schema_commands, name="schema")
app.add_typer(ledger.ledger_commands, name="ledger")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"privmeasure {version('privmeasure')}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Turn a sensitive table into one that anyone may see: differentially private, guaranteed before you spend.

    A first release, in five steps:

      privmeasure schema init people.csv -o people.toml      # then fill in the bounds, from knowledge of the subject
      privmeasure schema check people.toml --data people.csv # for you alone: what is missing, unread, clamped
      privmeasure plan --schema people.toml --epsilon 1 --neighbours add-remove --rows 5000
      privmeasure fit people.csv --schema people.toml --epsilon 1 --neighbours add-remove -o people.release
      privmeasure sample people.release -o synthetic.csv

    Exit codes: 0 done, 2 usage or schema, 3 file, 4 budget, 130 interrupted, 143 ended by SIGTERM.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; errors become one paragraph on stderr (JSON on stdout with --json)."""
    command = typer.main.get_command(app)
    as_json, name = "--json" in arguments, next(iter(arguments), "")
    failures.known_cost.clear()
    del failures.stopped_by[1:]
    try:
        code = command.main(list(arguments), prog_name="privmeasure", standalone_mode=False)
        if sys.stdout is not None:  # closed by whoever began us
            sys.stdout.flush()  # an output that takes nothing is told here, not by the interpreter as it ends
    except BaseException as error:
        return failures.report(error, as_json=as_json, command=name)
    if code == failures.INTERRUPTED + signal.SIGINT:  # typer swallows the interruption itself
        return failures.report(KeyboardInterrupt(), as_json=as_json, command=name)
    return code if isinstance(code, int) else 0


WITHOUT_PANDAS = {"plan", "fit", "sample", "synthesize", "report", "app"}
"""Commands that never need it. pyarrow would load it where it is installed, for a quarter of a second."""


class NoPandas:
    """An import hook that makes pandas look absent."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuse one name, leave all others to the usual ways."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _stop(number: int, frame: object) -> NoReturn:
    failures.stopped_by.append(number)
    raise KeyboardInterrupt  # as Ctrl-C: files that are half written go, and the ledger is settled


def main() -> NoReturn:
    """Run the command of the command line, in a process of its own."""
    for name in ("SIGTERM", "SIGHUP"):  # one who asks to end, and a terminal that closes; not if they are ignored
        if signal.getsignal(number := getattr(signal, name, signal.SIGTERM)) == signal.SIG_DFL:
            signal.signal(number, _stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that a terminal cannot show is no reason to fail
            stream.reconfigure(errors="replace")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small here: more threads only wait for each other
    if WITHOUT_PANDAS.intersection(sys.argv[1:2]) and not any(a.startswith("--engine") for a in sys.argv):  # of Spark
        sys.meta_path.insert(0, NoPandas)
    sys.exit(run(sys.argv[1:]))
