# `make run` shows Semel at work, `make test` proves it. Both need only Python 3.11+, make and PyPI.

PYTHON ?= python3
# Another PYTHON has an environment of its own: make test PYTHON=python3.13
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(shell $(PYTHON) -c 'import sys; print(*sys.version_info[:2], sep=".")'))
BIN := $(VENV)/bin
# What is installed: SHOW is enough for `make run`, QUICK for all tests but Spark's, READY for all.
SHOW := $(VENV)/show
QUICK := $(VENV)/quick
READY := $(VENV)/ready
DOCS := .venv-docs
DOCS_READY := $(DOCS)/ready
PYTEST := $(BIN)/pytest
N ?= 2000
INTEROP ?= interop

.PHONY: run test quick check format generated interop bench soak sim mutants fuzz docs clean

run: $(SHOW)  ## an exactly-once pipeline on Spark, surviving crashes
	$(BIN)/semel demo

test: $(READY)  ## everything that needs no Maven and no Go
	$(PYTEST) -n 2 --dist loadgroup -m "not interop and not soak"

quick: $(QUICK)  ## what needs neither Spark nor much time: make quick PYTHON=python3.13
	$(PYTEST) -n 2 --dist loadgroup -m "not interop and not soak and not spark and not slow" \
	    --ignore tests/spark

check: $(READY)  ## format, lint, types, tidiness and the fast tests, in under a minute
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST) -n 2 -m "not interop and not soak and not slow and not spark" \
	    tests/tidy tests/wire tests/columnar tests/core tests/net tests/client/machines

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generated: $(READY)  ## write what is made from other files anew: blocking clients, keywords, settings
	$(BIN)/python -m tools.generate

interop: $(READY)  ## Apache Kafka, its tools, Java and Go clients (Maven and Go fetch them)
	$(PYTEST) -m "$(INTEROP)" --timeout 300

bench: $(READY)  ## side by side with Apache Kafka; takes a quiet machine
	$(BIN)/python -m benchmarks

soak: $(READY)  ## long runs: kill -9 in a loop, the whole crash matrix
	$(PYTEST) -m "(soak or spark) and not interop" --timeout 3600

sim: $(READY)  ## N worlds of transactions, and in proportion of those that take longer: make sim N=20000
	SEMEL_SEEDS=$(N) $(PYTEST) -n 2 tests/simulation/test_transaction_worlds.py
	SEMEL_SEEDS=$$(($(N) / 10)) $(PYTEST) -n 2 tests/simulation/test_client_worlds.py tests/simulation/test_group_crowds.py
	SEMEL_SEEDS=$$(($(N) / 100)) $(PYTEST) -n 2 tests/simulation/test_consumer_members.py tests/simulation/test_broker_worlds.py

mutants: $(READY)  ## break the code on purpose and see what notices
	$(BIN)/python tests/mutants/run.py
	$(BIN)/python tests/mutants/groups.py
	$(BIN)/python tests/mutants/runtime.py
	$(BIN)/python tests/mutants/client.py
	$(BIN)/python tests/mutants/producer.py
	$(BIN)/python tests/mutants/access.py
	$(BIN)/python tests/spark/mutants.py

fuzz: $(READY)  ## a million malformed messages
	$(BIN)/python tests/wire/fuzz.py --cases 1000000

docs: $(DOCS_READY)  ## the documentation as a site, in build/docs; needs no network once installed
	$(DOCS)/bin/python -m sphinx -q -W --keep-going -E -b html docs build/docs
	@echo "Open build/docs/index.html"

# An environment of its own: the site needs neither Spark nor the tests' tools.
$(DOCS_READY): pyproject.toml requirements-docs.lock
	@echo "Installing into $(DOCS) (about 130 MB; once)"
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.lock
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(SHOW): $(VENV)/base requirements-spark.lock
	@echo "Installing Spark into $(VENV) (0.7 GB; once)"
	@$(PIP) -r requirements-spark.lock
	@touch $@

$(QUICK): $(VENV)/base requirements-dev.lock requirements-docs.lock
	@$(PIP) -r requirements-dev.lock -r requirements-docs.lock
	@touch $@

$(READY): $(SHOW) $(QUICK)
	@touch $@

$(VENV)/base: pyproject.toml requirements.lock
	@echo "Installing into $(VENV) (0.5 GB; once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Semel needs Python 3.11 or newer; set PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -r requirements.lock
	@$(PIP) --no-deps -e .
	@touch $@

clean:
	rm -rf .venv .venv-* build/docs .mypy_cache .ruff_cache .hypothesis
