# Everything runs in .venv, which `make venv` creates from pyproject.toml with python3 and the package registry alone.
PYTHON ?= python3
BIN := .venv/bin
export PYTHONDONTWRITEBYTECODE =# compiled files are kept, whatever the environment says: without them, collecting the tests takes twice as long
.PHONY: venv demo quick times test test-databases test-app pictures-app test-deep test-faults mutants measure-tests fuzz-files test-oldest golden coverage build lint format bench bench-against bench-no-worse bench-flat bench-rates bench-large bench-tables bench-visits bench-wide bench-wide-rivals bench-open bench-held-out bench-held-out-rivals bench-constants bench-peers bench-first-hour bench-typical bench-target bench-simulated bench-stays bench-scale pages pictures docs bench-cores test-spark clean help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 16

venv: .venv/ready ## create .venv and install the project and what its tests need

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group test
	@touch .venv/ready

.venv/ready-bench: .venv/ready
	$(BIN)/python -m pip install --quiet --group bench
	@touch .venv/ready-bench

demo: venv ## release a city of points and a table of flights; writes out/demo
	$(BIN)/python examples/demo.py

lint: venv ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typing

quick: venv ## within a minute: static checks, and the tests that import what changed since BASE (main)
	@$(BIN)/python tools/quick.py

times: venv ## write tests/times.json again, by which make quick chooses
	$(BIN)/python tools/times.py

test: lint ## everything that must pass on every commit
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not deep" --durations=10

test-databases: export TEST_ENGINE = postgres
test-databases: venv ## DuckDB, PostgreSQL and SQLite; installs PostgreSQL if it can, and says NOT RUN if it cannot
	$(BIN)/python tools/engines.py postgres
	$(BIN)/python -m pytest -q -rs tests/laws/test_databases.py tests/laws/test_same_answer.py tests/unit/sources/test_databases.py

test-app: export TEST_ENGINE = browser
test-app: venv ## the local page, over HTTP and in Chromium; installs Chromium if it can, and says NOT RUN if it cannot
	$(BIN)/python tools/engines.py browser
	$(BIN)/python -m pytest -q -rs tests/unit/app

pictures-app: export TEST_ENGINE = browser
pictures-app: venv ## what the local page looks like; writes docs/images
	PICTURES=docs/images $(BIN)/python -m pytest -q -rs tests/unit/app/test_browser.py -k mouse

test-spark: export TEST_ENGINE = spark
test-spark: venv ## a real Spark with several partitions and killed tasks; installs PySpark and Java if it can
	$(BIN)/python tools/engines.py spark
	$(BIN)/python -m pytest -q -rs tests/laws/test_spark.py tests/unit/sources/test_spark.py tests/unit/releases/test_spark.py tests/unit/sources/test_cluster.py

test-deep: venv ## the long versions: many cases of every law, statistical sets, recorded noise, races and kills
	TEST_DEPTH=deep $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "deep or deeper" tests

measure-tests: venv ## what the tests cost and cover; writes benchmarks/results/test-costs.json: half an hour on a quiet machine
	$(BIN)/python tools/measure_tests.py

test-faults: venv ## plant the faults of tests/faults one at a time: which test catches each, and in how many seconds
	$(BIN)/python tools/faults.py

mutants: venv ## change the numeric kernels at random, and see which changes their unit tests notice: about an hour; installs mutmut
	$(BIN)/python -m pip install --quiet --group mutants
	$(BIN)/python tools/mutants.py

fuzz-files: venv ## 10^5 damaged Feather, Parquet and xlsx files: each is read or refused, and none ends a process
	$(BIN)/python tools/fuzz_files.py

test-oldest: .venv-oldest/ready ## the quick tests on the oldest versions that pyproject.toml declares, in .venv-oldest
	.venv-oldest/bin/python -m pytest -q -n 2 -m "not deep"

.venv-oldest/ready: pyproject.toml tools/oldest.py
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-oldest/bin/python tools/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --editable . --group test --constraint .venv-oldest/constraints.txt
	@touch .venv-oldest/ready

golden: venv ## write tests/golden/net.json again, for a change of releases that is meant: in a commit of its own
	PYTHONPATH=tests $(BIN)/python tests/golden/net.py

coverage: venv ## which lines and branches of src the unit, api and golden tests run; the laws are slow to trace
	$(BIN)/python -m pytest -q -n 2 -m "not deep" --cov --cov-report=term-missing:skip-covered \
		--cov-report=xml:out/coverage.xml tests/unit tests/api tests/golden src

build: ## the sdist and the wheel; writes dist
	$(PYTHON) -m venv .venv-build
	.venv-build/bin/python -m pip install --quiet build
	.venv-build/bin/python -m build

format: venv ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/ready-bench ## speed and accuracy; writes benchmarks/results
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/accuracy.py

bench-rates: .venv/ready-bench ## the rates of the theorems: table and picture
	$(BIN)/python benchmarks/rates.py

bench-against: .venv/ready-bench ## the time of every line beside another commit: make bench-against BASE=5e11b4b
	$(BIN)/python benchmarks/against.py $(BASE)

bench-no-worse: .venv/ready-bench ## the W1 of every case beside another commit, 20 seeds: make bench-no-worse BASE=5e11b4b
	$(BIN)/python benchmarks/no_worse.py $(BASE)

bench-flat: .venv/ready-bench ## the flat mechanism and exact distances; which mechanism to choose
	$(BIN)/python benchmarks/flat.py

bench-large: .venv/ready-bench ## 10^8 points: time and peak memory
	$(BIN)/python benchmarks/large.py

bench-tables: .venv/ready-bench ## files in, files out: CPU seconds beside duckdb and polars
	$(BIN)/python benchmarks/tables.py

bench-visits: .venv/ready-bench ## k rows of each person: total variation on a real table of visits, and seconds
	$(BIN)/python benchmarks/visits.py

bench-wide: .venv/ready-bench ## wide tables: ours beside the kept results of rivals, and where one tree ends
	$(BIN)/python benchmarks/wide.py
	$(BIN)/python benchmarks/wide.py --delta
	$(BIN)/python benchmarks/many_columns.py
	$(BIN)/python benchmarks/crossover.py

bench-wide-rivals: .venv/ready-bench ## make the rivals' results again: hours, each rival in an environment of its own
	$(BIN)/python benchmarks/wide_rivals.py

bench-open: .venv/ready-bench ## the wide tables that constants may be chosen on: minutes
	$(BIN)/python benchmarks/held_out.py --open
	$(BIN)/python benchmarks/held_out.py --curve

bench-held-out: .venv/ready-bench ## the wide tables that nothing is chosen on: ours beside the kept results of rivals
	$(BIN)/python benchmarks/held_out.py --held-out
	$(BIN)/python benchmarks/held_out.py --held-out --delta
	$(BIN)/python benchmarks/held_out.py --aimed

bench-held-out-rivals: .venv/ready-bench ## the rivals on both halves: a day, kept runs are not repeated
	$(BIN)/python benchmarks/held_out_rivals.py

bench-constants: .venv/ready-bench ## other values of the column tree's constants on ten tables: an hour, kept runs are not repeated
	$(BIN)/python benchmarks/constants.py

bench-peers: .venv/ready-bench ## the default beside six peers on shapes and narrow tables: kept runs are not repeated
	$(BIN)/python benchmarks/peers.py

bench-first-hour: .venv/ready-bench ## from a CSV to a synthetic one, as a stranger goes: steps, lines by hand, seconds
	$(BIN)/python benchmarks/first_hour.py

bench-typical: .venv/ready-bench ## how often the bands of the typical error hold: shapes and real tables
	$(BIN)/python benchmarks/typical.py

bench-target: .venv/ready-bench ## what a declared target brings: Cox's coefficient on a survival table
	$(BIN)/python benchmarks/target.py

bench-simulated: .venv/ready-bench ## columns made of others: places in states, loans, long lists; simulated
	$(BIN)/python benchmarks/simulated.py

bench-stays: .venv/ready-bench ## an order between columns: rows that break it, the bias of other columns, and how much slower sampling is
	$(BIN)/python benchmarks/stays.py

bench-scale: .venv/ready-bench ## databases, files and writing beside what an engine needs by hand
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python -m pip install --quiet --group spark && $(BIN)/python benchmarks/scale_spark.py

bench-cores: .venv/ready-bench ## the same work on 1 to 16 threads; peak memory: python benchmarks/cores.py --memory
	$(BIN)/python benchmarks/cores.py

pages: venv ## write the numbers of benchmarks/results into the README and the pages of docs
	$(BIN)/python benchmarks/pages.py

pictures: venv ## draw the pictures of docs/pictures from the code itself, on simulated points and the examples
	$(BIN)/python tools/pictures.py

docs: .venv-docs/ready ## the pages as HTML, in docs/_build/html: no warning, every local link checked
	.venv-docs/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	.venv-docs/bin/python tools/check_pages.py docs/_build/html

.venv-docs/ready: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-docs/bin/python -m pip install --quiet --editable . --group docs
	@touch .venv-docs/ready

clean: ## remove what the targets made
	rm -rf .venv .venv-* dist out docs/_build .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
