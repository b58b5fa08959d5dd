# Everything there is to do here. Each target sets itself up; what is already set up costs nothing.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test proof slow-test test-compute check docs parity bench chaos mutate release lock clean
BIN := .venv/bin
# Whatever the machine says: tests start hundreds of processes, and each would compile every module anew.
export PYTHONDONTWRITEBYTECODE :=
# More arguments for pytest or the benchmark: make test ARGS="tests/servers -x"
ARGS ?=
# Processes that share the tests; each starts a PostgreSQL of its own, and they share a RabbitMQ.
JOBS ?= $(shell expr $$(nproc) + 3)
PART ?= test
# A part of make proof: 3/8 is the third of eight.
SHARE ?=
EXTRAS = $(wildcard extras/*/pyproject.toml extras/*/setup.py)
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.dev ## Make .venv with all that work on Penstock needs

demo: .venv/.runtime ## See events become results: no server, no Docker, one minute
	@$(BIN)/penstock demo $(ARGS)

test: .venv/.dev ## Run the tests that a change needs, against a real PostgreSQL and a real RabbitMQ
	@PENSTOCK_TEST_PART=test TMPDIR=$$(.ci/scratch) $(PYTEST) --junitxml=.test-results/test.xml $(ARGS)

proof: .venv/.dev ## Run the tests that make test leaves out: crash points, races, browsers, whole installations; SHARE=3/8 for a share
	@PENSTOCK_TEST_PART=proof PENSTOCK_TEST_SHARE=$(SHARE) TMPDIR=$$(.ci/scratch) $(PYTEST) --junitxml=.test-results/proof.xml $(ARGS)

slow-test: .venv/.dev ## Run make test with a third of each core, as a slow machine would; PART=proof for make proof
	@PENSTOCK_TEST_PART=$(PART) TMPDIR=$$(.ci/scratch) .ci/slowly $$(($$(nproc) * 33)) $(PYTEST) $(ARGS)

test-compute: .venv-compute/.compute ## Run the tests of the task executors for Dask and Ray, on real clusters of this machine
	@TMPDIR=$$(.ci/scratch) .venv-compute/bin/python -m pytest $(or $(ARGS),tests/compute)

check: .venv/.dev ## Lint, check formats, types and the rules of the house
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m tests.house_rules

docs: .venv/.dev ## Write the reference from the code and build the site of the documentation, in site/
	@$(BIN)/python -m docs.written
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # not --quiet: it would count no warning

parity: .venv/.dev ## Try every part of Penstock from outside, a line each; ARGS="A1 C3" for some
	@TMPDIR=$$(.ci/scratch) $(BIN)/python -m tests.parity $(ARGS)

bench: .venv/.dev ## Measure Penstock and its peers in one run
	@$(BIN)/python -m bench $(ARGS)

chaos: .venv/.dev ## Kill processes under load and check that every promise was kept
	@$(BIN)/python -m pytest tests/chaos $(ARGS)

mutate: .venv/.dev ## Plant a fault at a time and see whether a test finds it; ARGS="sql admission" for a part
	@TMPDIR=$$(.ci/scratch) $(BIN)/python -u -m tests.mutation $(ARGS)

release: .venv/.dev ## Make the archive, the wheels and the list of their contents of this commit, in dist/
	@.ci/release

lock: .venv/.dev ## Write requirements*.txt anew from pyproject.toml
	@.ci/lock

clean: ## Remove .venv and everything else that was made here
	@rm -rf .venv .venv-bench .venv-compute .test-results build dist site *.egg-info extras/*/*.egg-info extras/*/build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find common services extras tests bench migrations -name __pycache__ -prune -exec rm -rf {} +

.venv/.runtime: requirements.txt pyproject.toml setup.py $(EXTRAS) .ci/setup
	@.ci/setup runtime

.venv-compute/.compute: requirements-dev.txt requirements-compute.txt pyproject.toml setup.py $(EXTRAS) .ci/setup
	@.ci/setup compute

.venv/.dev: requirements-dev.txt pyproject.toml setup.py $(EXTRAS) .ci/setup
	@.ci/setup dev
