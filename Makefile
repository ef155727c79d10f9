# Two commands matter to a new user: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# uv links what it has installed before instead of unpacking it again: one second, not fifty.
# It does not read pip's settings, so pip has a go where it fails.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Where the environment forbids bytecode files, every process would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup browser demo test tests test-fast test-full coverage bench api lint types lock clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(STAMP) ## Make .venv and install everything, pinned and hashed

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "distributary needs Python 3.11 or newer; found `$(PYTHON) -V`. Try: make PYTHON=python3.12 setup" >&2; exit 2; }
	@echo "Installing into $(VENV)."
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/installer.lock
	@$(PIP) --require-hashes -r $(VENV)/installer.lock
	@$(UV) --require-hashes --no-deps -r requirements.lock || $(PIP) --require-hashes --no-deps -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@echo "Compiling the hot loops, once (a minute or two)."
	@$(BIN)/distributary warm-up
	@touch $@

# Only root can install it, and only where Debian's packages are; tests of the console are left out elsewhere.
browser: ## Install Debian's Chromium, for the tests of the console
	@command -v chromium > /dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } > /dev/null 2>&1 || \
		echo "make browser: Chromium cannot be installed here; tests of the console in a browser are left out." >&2

demo: $(STAMP) ## Tell the whole story: history on Spark, plans, deliveries, a report to look at
	@$(BIN)/python -m examples.whole_story

test: $(STAMP) lint ## Lint, type-check and run the tests
	@$(MAKE) --no-print-directory -j2 types tests
	@echo "make test: lint, types and all tests passed."

# Types are checked meanwhile: most of a minute on one processor from an empty cache.
tests: $(STAMP)
	@$(BIN)/python -m pytest -q -n auto -m "not full"

test-fast: $(STAMP) ## Unit and property tests without Spark, media and scenarios, for everyday work
	@$(BIN)/python -m pytest -q -n auto -m "not full and not slow" tests/unit tests/property
	@echo "make test-fast: passed; make test runs the rest."

test-full: $(STAMP) lint types ## Everything in `test`, other examples, and the long sweeps
	@EXPLORE=1 $(BIN)/python -m pytest -q -n auto
	@echo "make test-full: lint, types and all tests passed, long sweeps included."

coverage: $(STAMP) ## The tests of `test` with coverage, which makes them twice as slow
	@$(BIN)/python -m pytest -q -n auto -m "not full" --cov --cov-report=term

bench: $(STAMP) ## Measure speed and quality, and rewrite docs/benchmarks.md
	@$(BIN)/python -m benchmarks

api: $(STAMP) ## Write docs/api from the docstrings
	@$(BIN)/python -m tests.docs.api_reference

lint: $(STAMP) ## ruff, both as linter and as formatter
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .

types: $(STAMP) ## Strict mypy over src, tests, benchmarks and examples
	@$(BIN)/mypy

lock: ## Rewrite requirements.lock from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --generate-hashes \
		--python-version 3.11 --no-header --no-annotate --quiet -o requirements.lock

clean: ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
