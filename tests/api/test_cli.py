"""The command line: what works, what its help says, what its pages say."""

import io
import json
import os
import re
import shlex
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import typer
from cli_shelf import FIT, PROMISE, SCHEMA, SECRET, table

import privmeasure as pm
from privmeasure import cli
from privmeasure.cli import inspect, opening, terminal
from privmeasure.ledger import Ledger
from privmeasure.tables import Schema
from privmeasure.tables.columns.kinds import COLUMN_KINDS
from privmeasure.tables.deriving import FUNCTIONS
from privmeasure.tables.facts import forbidden_pairs
from privmeasure.tables.template import guide_lines

ROOT = Path(__file__).parents[2]

# ---------------------------------------------------------------------------------------------------------- what works


def test_fit_sample_inspect(call, folder):
    fitted = json.loads(call(*FIT, "--mechanism", "columns", "--json"))
    assert fitted["plan"]["privacy"] == {
        "epsilon": "1",
        "delta": 0,
        "neighbours": "add-remove",
        "rows_per_person": 1,
    }
    assert fitted["guarantee"] > 0
    sampled = json.loads(call("sample", "new.release", "-o", "out.csv", "-n", "123", "--seed", "1", "--json"))
    assert sampled == {"out": "out.csv", "rows": 123, "private": True, "warnings": []}
    text = (folder / "out.csv").read_text()
    assert text.splitlines()[0] == "age,sex,income"
    assert len(text.splitlines()) == 124
    call("sample", "new.release", "-o", "again.csv", "-n", "123", "--seed", "1")
    assert (folder / "again.csv").read_text() == text
    call("sample", "new.release", "-o", "out.parquet")
    assert pq.read_metadata(folder / "out.parquet").num_rows == fitted["plan"]["rows"]
    inspected = json.loads(call("inspect", "new.release", "--json"))
    assert inspected["private"] is True
    assert inspected["plan"] == fitted["plan"]
    assert all(certificate["value"] > 0 for certificate in inspected["certificate"]["columns"].values())
    assert [column["name"] for column in inspected["columns"]] == ["age", "sex", "income"]
    release = pm.load("new.release")
    assert {name: said["mean"] for name, said in inspected["values"].items() if "mean" in said} == release.mean()
    assert inspected["values"]["age"]["0.95"] == release.quantile(0.95, column="age")
    words = call("inspect", "new.release")
    assert re.search(rf"age +\S+ .* {release.quantile(0.5, column='age')} ", words)
    assert "guarantee" in words
    assert "certificate" in words
    assert "single values" in words
    assert "certificate" not in call("inspect", "new.release", "--no-certificate")


@pytest.mark.parametrize("mechanism", ["pmm", "columns"])
def test_inspect_tells_what_is_inside(call, folder, mechanism):
    """Resolution, guarantee and certificate of each column in its units; the better of the two; pairs; facts."""
    text = (folder / "people.toml").read_text()
    (folder / "people.toml").write_text(text.replace("format = 1", "format = 1\nnever = [\"sex = 'F' and age < 18\"]"))
    call(*FIT, "--mechanism", mechanism)
    found = json.loads(call("inspect", "new.release", "--json"))
    full = json.loads(call("inspect", "new.release", "--json", "--certificate"))
    for column, other in zip(found["columns"], full["columns"], strict=True):
        assert column["use"] == ("guarantee" if column["guarantee"] <= column["certificate"] else "certificate")
        assert other["guarantee"] == column["guarantee"]
    bits = [pair["bits"] for pair in found["pairs"]]
    assert sorted(bits, reverse=True) == bits
    words = call("inspect", "new.release")
    assert re.search(r"age +\d+ +about .* year.*(years|says nothing) +(guarantee|certificate|neither)", words)
    assert "never      sex = 'F' and age < 18" in words
    assert found["id"] in words
    assert found["schema_digest"] in words
    if mechanism == "columns":
        assert {name for pair in found["pairs"] for name in pair["columns"]} == {"age", "sex", "income"}
        for pair in found["pairs"]:
            one, two = pair["columns"]
            assert re.search(rf"{one} +{two} +{pair['bits']:.3f}", words)
    else:
        assert found["pairs"] == []


@pytest.mark.parametrize(("bits", "explained"), [(0.0, True), (0.0004, True), (0.0006, False), (0.3, False)])
def test_inspect_explains_a_pair_of_0_bits(bits, explained, capsys):
    inspect._show_pairs([("age", "sex", 0.5), ("age", "income", bits)])
    assert ("0.000: noise hides whether" in capsys.readouterr().out) == explained


def test_inspect_takes_a_second_or_two(folder):
    """14 columns that may be missing: their certificates were what took half a minute."""
    names = [f"c{i}" for i in range(14)]
    schema = pm.Schema({name: pm.Number(0, 1000 + i, nullable=True) for i, name in enumerate(names)})
    rng = np.random.default_rng(0)
    rows = pa.table({name: pa.array(rng.lognormal(3, 1, 30_000), mask=rng.random(30_000) < 0.1) for name in names})
    pm.Synthesizer(schema, epsilon=1, neighbours="add-remove").fit(rows).save(folder / "wide.release")
    before = time.process_time()
    assert cli.run(["inspect", "wide.release"]) == 0
    assert time.process_time() - before < 5  # seconds of a slow machine


@pytest.mark.parametrize("mechanism", ["pmm", "columns"])
def test_rows_under_a_condition_are_counted_as_they_are_written(call, folder, mechanism):
    call(*FIT, "--mechanism", mechanism)
    women = ["sample", "new.release", "--where", "sex = 'F'", "--seed", "1"]
    made = json.loads(call(*women, "-o", "women.csv", "--json"))["rows"]
    assert made == len((folder / "women.csv").read_text().splitlines()) - 1
    assert 300 < made < 600
    assert f"{made:,} synthetic rows written" in call(*women, "-o", "again.csv")
    assert json.loads(call(*women, "-o", "ten.csv", "-n", "10", "--json"))["rows"] == 10


def test_many_columns_are_certified_too(call, folder):
    """A certificate is shared by all columns: beyond 49 of them its chance grows, and is said."""
    names = [f"c{i}" for i in range(60)]
    lines = [f"[columns.{name}]\ntype = 'boolean'" for name in names]
    (folder / "many.toml").write_text("\n".join(["format = 1", *lines]))
    (folder / "many.csv").write_text("\n".join([",".join(names)] + [",".join(["true"] * 60)] * 50))
    call("fit", "many.csv", "--schema", "many.toml", "--epsilon", "5", "--neighbours", "replace", "-o", "many.release")
    assert "with probability 0.93" in call("inspect", "many.release")


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.csv.gz", "out.parquet"])
def test_synthesize_to_every_kind_of_file(call, folder, name):
    made = json.loads(
        call("synthesize", "people.parquet", "--schema", "people.toml", *PROMISE, "-o", name, "-n", 50, "--json")
    )
    assert made["rows"] == 50
    assert made["release"] == f"{name}.release"
    assert json.loads(call("inspect", made["release"], "--json", "--no-certificate"))["id"] == made["id"]
    if name == "out.parquet":
        written = pq.read_table(folder / name)
        assert written.schema == table().drop(["name"]).schema
    else:
        written = pyarrow.csv.read_csv(
            folder / name, parse_options=pyarrow.csv.ParseOptions(delimiter="\t" if "tsv" in name else ",")
        )
    assert written.num_rows == 50
    assert written.column_names == ["age", "sex", "income"]
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize("command", ["fit", "synthesize"])
def test_what_plan_warns_of_is_said_after_a_fit_too(call, folder, capsys, command):
    """At the released number of rows, from public values alone."""
    names = [f"c{i}" for i in range(12)]
    (folder / "wide.toml").write_text(
        "format = 1\n"
        + "".join(f'[columns.{name}]\ntype = "number"\nlow = 0\nhigh = 1\nnullable = false\n' for name in names)
    )
    (folder / "wide.csv").write_text(",".join(names) + "\n" + (",".join(["0.5"] * 12) + "\n") * 3)
    promise = ["--epsilon", "1", "--neighbours", "replace"]
    arguments = [command, "wide.csv", "-s", "wide.toml", *promise, "--overwrite", "-o", "wide.tsv"]
    found = json.loads(call(*arguments, "--json"))
    assert found["choice"].startswith("12 columns")
    assert found["warnings"]
    assert "3 rows" in found["warnings"][0]
    assert cli.run(arguments) == 0
    out, err = capsys.readouterr()
    assert f"\nchosen     'columns': {found['choice']}\nwritten    wide.tsv" in out
    assert "warning" not in out
    assert err.startswith("warning: For 'c0'")
    assert "--columns" in err
    assert cli.run([*arguments, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert json.loads(call(*FIT, "--columns", "sex", "--json"))["warnings"] == []


def test_synthesize_keeps_the_release_if_told(call, folder):
    made = json.loads(
        call(
            "synthesize", "people.csv", "-s", "people.toml", *PROMISE, "-o", "s.csv", "--release", "s.release", "--json"
        )
    )
    assert json.loads(call("inspect", "s.release", "--json", "--no-certificate"))["plan"] == made["plan"]
    assert len((folder / "s.csv").read_text().splitlines()) == made["rows"] + 1


def test_quiet_says_nothing(call, folder):
    assert call(*FIT, "--quiet") == ""
    assert call("sample", "new.release", "-o", "out.csv", "--quiet") == ""
    assert call("schema", "check", "people.toml", "--data", "people.csv", "--quiet") == ""


def test_only_some_columns(call, folder):
    call("synthesize", "people.csv", "-s", "people.toml", *PROMISE, "-o", "two.csv", "--columns", "age,sex", "-n", 5)
    assert (folder / "two.csv").read_text().splitlines()[0] == "age,sex"


def test_plan_opens_no_data(call, folder):
    (folder / "people.csv").unlink()
    (folder / "people.parquet").unlink()
    asked = ["plan", "--schema", "people.toml", "--epsilon", "1", "--neighbours", "replace", "--rows", 5000]
    planned = json.loads(call(*asked, "--json"))
    assert [row["epsilon"] for row in planned["epsilons"]] == ["1/10", "1/5", "1/2", "1", "2", "5", "10"]
    assert f"chosen     'pmm': {planned['choice']}" in call(*asked)
    assert "chosen     'columns': as asked" in call(*asked, "--mechanism", "columns")
    arguments = [*asked, "--mechanism", "pmm"]
    planned = json.loads(call(*arguments, "--json"))
    assert planned["plan"]["rows"] == 5000
    assert [row["epsilon"] for row in planned["epsilons"]] == ["1/10", "1/5", "1/2", "1", "2", "5", "10"]
    same = next(row for row in planned["epsilons"] if row["epsilon"] == "1")
    assert same["guarantee"] == planned["guarantee"]
    assert sum(column["cuts"] for column in planned["columns"]) == planned["plan"]["depth"]
    words = call(*arguments)
    assert f"{planned['guarantee']:.4g}" in words
    for column in planned["columns"]:
        assert column["resolution"] in words
    assert "about" in words
    assert "years" in words


def test_a_dry_run_spends_nothing(call, folder):
    assert "has the columns" in call("fit", "people.csv", "--schema", "people.toml", *PROMISE, "--dry-run")
    booked = ["--ledger", "book.sqlite", "--dataset", "people"]
    assert json.loads(call(*FIT, "--dry-run", *booked, "--json"))["fits"] is True
    assert not (folder / "new.release").exists()
    assert Ledger("book.sqlite").history("people") == []


def test_evaluate_is_stamped_everywhere(call, folder):
    call("sample", "people.release", "-o", "synthetic.csv")
    for synthetic, extra in (("synthetic.csv", ["--schema", "people.toml"]), ("people.release", [])):
        words = call("evaluate", "people.csv", synthetic, *extra)
        assert words.startswith("CONFIDENTIAL")
        assert words.rstrip().endswith("Do not publish.")
        found = json.loads(call("evaluate", "people.csv", synthetic, *extra, "--json"))
        assert found["confidential"].startswith("CONFIDENTIAL")
        assert [column["name"] for column in found["columns"]] == ["age", "sex", "income"]
        assert 0 < found["w1"]["value"] < 0.5
    same = json.loads(call("evaluate", "people.csv", "people.parquet", "--schema", "people.toml", "--json"))
    assert same["two_way"]["value"] == 0


def test_evaluate_lists_what_differs_most_in_a_bounded_number_of_lines(call, folder):
    names = [f"c{i:02}" for i in range(20)]
    (folder / "zeros.toml").write_text(
        "format = 1\n" + "".join(f'[columns.{n}]\ntype = "integer"\nlow = 0\nhigh = 9\n' for n in names)
    )
    for name, row in (("zeros.csv", ["0", "0", "5"]), ("ones.csv", ["1", "1", "5"])):
        lines = [",".join([value] * 20) for value in row * 50]
        (folder / name).write_text("\n".join([",".join(names), *lines]))
    words = call("evaluate", "zeros.csv", "ones.csv", "--schema", "zeros.toml")
    assert "c00: 0 in 66.7 % of the real rows, in 0.0 % of the synthetic ones" in words
    assert words.index("What differs most") < words.index("The whole table")
    assert words.count("of the real rows, in 0.0 %") == 10
    found = json.loads(call("evaluate", "zeros.csv", "ones.csv", "--schema", "zeros.toml", "--json"))
    above = sum(one["above_baseline"] for one in found["differences"])
    assert f"{above - 10} more differences are above the baseline" in words
    assert {one["column"] for one in found["differences"]} == {*names}
    assert found["common_values"]["value"] == pytest.approx(1 / 3)
    same = call("evaluate", "zeros.csv", "zeros.csv", "--schema", "zeros.toml")
    assert "What differs most" not in same
    assert "No value, mean or quantile differs" in same


def test_evaluate_says_which_of_two_tables_is_wrong(refused, folder):
    (folder / "other.csv").write_text("age,sex,name\n")
    refused(["evaluate", "people.csv", "other.csv", "--schema", "people.toml"], 2, "other.csv", "income")
    (folder / "other.csv").write_text("age,sex,income,name\n")
    refused(["evaluate", "people.csv", "other.csv", "--schema", "people.toml"], 3, "other.csv", "no rows")


SPEND = {
    "plan": ["plan", "--schema", "people.toml", *PROMISE, "--rows", "900"],
    "dry-run": [*FIT[:-2], "--dry-run"],
    "fit": FIT,
    "synthesize": ["synthesize", *FIT[1:-1], "new.csv"],
}


@pytest.mark.parametrize("command", SPEND)
def test_where_missing_cells_go_is_said_by_all_who_plan_or_spend(call, folder, capsys, command):
    """From the schema alone, in one short table, and with a warning where the schema does not say it."""
    found = json.loads(call(*SPEND[command], "--json"))
    assert found["missing_cells"] == [
        {"name": "age", "missing": "missing", "unread": "missing"},
        {"name": "sex", "missing": "'F'", "unread": "'F'"},
        {"name": "income", "missing": "0", "unread": "0"},
    ]
    assert found["warnings"] == []
    (folder / "people.toml").write_text(SCHEMA.replace("nullable = false\n", ""))
    again = [*SPEND[command], *(["--overwrite"] if command in ("fit", "synthesize") else [])]
    (warning,) = json.loads(call(*again, "--json"))["warnings"]
    assert "'sex' and 'income' do not say whether cells may be missing" in warning
    capsys.readouterr()
    assert cli.run(again) == 0
    out, err = capsys.readouterr()
    assert re.search(r"age +stays missing", out)
    assert re.search(r"sex +'F' +'F'", out)
    assert "nullable = false is taken" in err


def test_the_words_of_a_synthesis_to_stdout_are_not_among_its_rows(folder, capfd):
    arguments = ["synthesize", *FIT[1:-1], "-", "--no-release"]
    assert cli.run(arguments) == 0
    out, err = capfd.readouterr()
    assert "a missing cell becomes" in err
    assert "becomes" not in out


def test_a_table_as_others_write_it_comes_out_alike(call, folder):
    """A semicolon, a decimal comma, latin-1: the same options read it and write it."""
    schema = 'format = 1\n[columns."größe"]\ntype = "number"\nlow = 0\nhigh = 3\ndecimals = 2\nnullable = false\n'
    schema += '[columns.art]\ntype = "category"\nvalues = ["groß", "klein; sehr"]\nnullable = false\n'
    (folder / "s.toml").write_text(schema, encoding="utf-8")
    rows = ["größe;art", *["1,25;groß", '2,50;"klein; sehr"'] * 3000]
    (folder / "s.csv").write_text("\n".join(rows), encoding="latin-1")
    form = ["--delimiter", ";", "--decimal", ",", "--encoding", "latin-1"]
    checked = json.loads(call("schema", "check", "s.toml", "--data", "s.csv", *form, "--json"))
    assert set(checked["shares"]["größe"].values()) | set(checked["shares"]["art"].values()) == {0.0}
    promise = ["--epsilon", "9", "--neighbours", "replace"]
    call("synthesize", "s.csv", "-s", "s.toml", *promise, *form, "-o", "out.csv")
    lines = (folder / "out.csv").read_text(encoding="latin-1").splitlines()
    assert lines[0] == "größe;art"
    assert len(lines) == 6001
    assert all(re.fullmatch(r'"?[0-3](,[0-9]{1,2})?"?;("groß"|"klein; sehr")', line) for line in lines[1:])
    call("sample", "out.csv.release", "-o", "plain.csv", "-n", "50")
    assert re.search(r'[0-3]\.[0-9]{1,2},"?groß', (folder / "plain.csv").read_text(encoding="utf-8"))
    assert "größe" in call("schema", "init", "s.csv", *form)


def test_a_table_may_come_on_stdin(call, folder, monkeypatch, tmp_path):
    """Spooled to a place of its own, which is gone afterwards; text and Parquet are told apart by their bytes."""
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    for name in ("people.csv", "people.parquet"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / name).read_bytes())))
        made = json.loads(call("fit", "-", *FIT[2:], "--overwrite", "--json"))
        assert made["release"] == "new.release"
        assert not list(spool.iterdir())


def test_what_is_spooled_is_for_its_owner_alone(folder, monkeypatch):
    modes = []

    def look(path, *more):
        modes.append((path.parent.stat().st_mode & 0o777, path.name))
        return real(path, *more)

    real = opening.check_header
    monkeypatch.setattr(opening, "check_header", look)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "people.csv").read_bytes())))
    assert cli.run(["fit", "-", *FIT[2:-2], "--dry-run", "--quiet"]) == 0
    assert modes == [(0o700, "stdin.csv")]


def test_rows_go_through_links_and_pipes(call, folder):
    (folder / "real").mkdir()
    (folder / "link.csv").symlink_to(folder / "real" / "rows.csv")
    call("sample", "people.release", "-o", "link.csv", "-n", "5")
    assert (folder / "link.csv").is_symlink()
    assert len((folder / "real" / "rows.csv").read_text().splitlines()) == 6
    for name in ("pipe.csv", "pipe.parquet"):
        os.mkfifo(folder / name)
        got = []
        reader = threading.Thread(target=lambda name=name, got=got: got.append((folder / name).read_bytes()))
        reader.start()
        call("sample", "people.release", "-o", name, "-n", "5", "--seed", "1")
        reader.join(10)
        call("sample", "people.release", "-o", f"plain.{name}", "-n", "5", "--seed", "1")
        assert got == [(folder / f"plain.{name}").read_bytes()]


def test_schema_commands(call, folder):
    template = call("schema", "init", "people.csv")
    assert "age" in template
    assert SECRET not in template
    call("schema", "init", "people.parquet", "-o", "template.toml")
    assert "fine" in call("schema", "check", "people.toml")
    assert json.loads(call("schema", "check", "people.toml", "--json"))["valid"] is True
    counted = call("schema", "check", "people.toml", "--data", "people.csv")
    assert counted.startswith("CONFIDENTIAL")
    counts = json.loads(call("schema", "check", "people.toml", "--data", "people.csv", "--json"))
    assert counts["confidential"]
    assert SECRET not in counted
    call("schema", "import", "frictionless.json", "-o", "imported.toml")
    assert "fine" in call("schema", "check", "imported.toml")
    assert "$schema" in json.loads(call("schema", "export-json-schema"))


def test_version(call):
    assert re.fullmatch(r"privmeasure \d+\.\d+\.\d+\n", call("--version"))


def test_warnings_and_words_go_to_their_streams(folder, capsys):
    (folder / "wide.toml").write_text(
        "format = 1\n" + "".join(f'[columns.c{i}]\ntype = "number"\nlow = 0\nhigh = 1\n' for i in range(40))
    )
    for extra in ([], ["--mechanism", "pmm"]):
        assert cli.run(["plan", "--schema", "wide.toml", *PROMISE, "--rows", "20", *extra]) == 0
        out, err = capsys.readouterr()
        assert "warning" not in out
        assert "--columns" in err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_shows_on_a_terminal_only(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "BAR_DELAY", 0.01)
    for stream, shown, seen in ((Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with terminal.progress("reading", shown=shown) as advance:
            assert (advance is not None) == seen
            if advance is not None:
                advance("reading", 0.5)
                time.sleep(0.3)
                advance("counting", 1.0)
        assert ("reading" in stream.getvalue()) == seen
    assert capsys.readouterr().out == ""


def test_nothing_shows_before_a_second(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with terminal.progress("reading", shown=True) as advance:
        advance("reading", 0.5)
    assert stream.getvalue() == ""


# ----------------------------------------------------------------------------------------------------- the help texts


def commands(command=None, path=()):
    command = command or typer.main.get_command(cli.app)
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


def examples(text):
    joined = re.sub(r"\\\n\s*", " ", text)
    return [line.strip() for line in joined.splitlines() if line.startswith("  privmeasure ")]


LEAVES = {path: command for path, command in commands() if path and not hasattr(command, "commands")}
ORDER = ["ledger", "schema", "plan", "fit", "sample", "synthesize", "inspect", "report", "evaluate", "app"]


@pytest.fixture
def served(monkeypatch):
    """The local pages that were asked for: none is served, for it would not end."""
    found = []
    monkeypatch.setattr("privmeasure.app.visit.serve", lambda commands, **options: found.append(options))
    return found


def test_every_example_runs(call, folder, served):
    """In an order in which a later one may use what an earlier one made."""
    for name in ("people.release", "book.sqlite"):
        (folder / name).unlink()
    assert {path[0] for path in LEAVES} == set(ORDER)
    late = {("ledger", "close"): "fit"}  # it settles what a fit has booked

    def turn(item):
        return ORDER.index(late.get(item[0], item[0][0])), item[0] in late

    for path, command in sorted(LEAVES.items(), key=turn):
        lines = examples(command.help)
        assert lines, path
        for line in lines:
            words = shlex.split(line, comments=True)
            assert words[1 : 1 + len(path)] == list(path)
            call(*words[1:])
    assert [(page["port"], page["upload_limit"]) for page in served] == [(0, 512 << 20), (8123, 2000 << 20)]


def test_the_five_steps_of_the_first_page(call, folder):
    (root,) = [command for path, command in commands() if not path]
    lines = examples(root.help)
    assert len(lines) == 5
    for name in ("people.release", "people.toml"):
        (folder / name).unlink()
    for line in lines:
        call(*shlex.split(line, comments=True)[1:])
        if "init" in line:
            (folder / "people.toml").write_text(SCHEMA)  # what the person fills in
    assert (folder / "synthetic.csv").exists()


def test_the_page_of_the_command_line_has_every_command():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert {path[0] for path in LEAVES} <= set(re.findall(r"^(?:.* \| )?privmeasure ([a-z]+)", text, re.MULTILINE))


def test_the_page_of_schemas(folder):
    """Its schemas are read, its code runs, the two forms of the example are the same, and no field is left out."""
    text = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    texts = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    pieces = [piece if "format = " in piece.split("[")[0] else f"format = 1\n{piece}" for piece in texts]
    schemas = [Schema.from_text(piece) for piece in pieces]
    for schema in schemas:
        forbidden_pairs(schema)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "schema.md", "exec"), names)
    assert names["schema"] == schemas[0]
    used = {type(column) for column in schemas[0].columns.values()}
    assert used == set(COLUMN_KINDS.values())
    assert f"```text\n{chr(10).join(guide_lines())}\n```" in text
    assert f"```text\n{chr(10).join(FUNCTIONS)}\n```" in text
    for tag, kind in COLUMN_KINDS.items():
        assert re.search(rf"^## .*\b{tag}\b", text, re.MULTILINE), tag
        for field in kind.__struct_fields__:
            assert f"`{field}`" in text, (tag, field)


@pytest.mark.parametrize("name", ["flights", "cities", "adult", "people"])
def test_the_command_of_an_example_runs(call, tmp_path, monkeypatch, name):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^privmeasure .*$", (ROOT / "examples" / name / "README.md").read_text(), re.MULTILINE)
    made = json.loads(call(*shlex.split(line)[1:], "--json"))
    assert made["warnings"] == []
    assert (tmp_path / made["out"]).stat().st_size > 7 * made["rows"]


def test_options_mean_the_same_everywhere():
    """One name, one help text or one of two: shared options are declared once."""
    seen = {}
    for path, command in LEAVES.items():
        for option in command.params:
            if option.param_type_name == "option":
                seen.setdefault(option.name, {}).setdefault(option.help, []).append(path)
    for name in ("epsilon", "neighbours", "overwrite", "json", "quiet", "columns", "threads", "rows_per_person"):
        assert len(seen[name]) == 1, seen[name]
    for path, command in LEAVES.items():
        by_name = {option.name: option for option in command.params}
        if "neighbours" in by_name:
            assert by_name["neighbours"].required, path


def test_a_table_in_a_database_is_fitted_and_booked(call, folder):
    out = call("fit", "sqlite:people.db?table=people", *FIT[2:-1], "one.release", "--json")
    assert json.loads(out)["release"] == "one.release"
    query = "sqlite:people.db?query=SELECT%20age,%20sex,%20income,%20name%20FROM%20people"
    call("synthesize", query, *FIT[2:-1], "rows.parquet", "--rows-per-file", "200", "--release", "two.release")
    assert len(list((folder / "rows.parquet").iterdir())) >= 2
    call("sample", "one.release", "-o", "rows.csv", "-n", "10", "--rows-per-file", "4")
    assert sorted(path.name for path in (folder / "rows.csv").iterdir()) == [f"part-{i:05}.csv" for i in range(3)]
    again = ["synthesize", "rows.parquet", *FIT[2:-1], "rows.parquet", "--rows-per-file", "9", "--overwrite"]
    assert cli.run([*again, "--no-release", "--quiet"]) == 2  # what is read is not written over
    assert "people.db" not in call("fit", "sqlite:people.db?table=people", *FIT[2:-2], "--dry-run")
