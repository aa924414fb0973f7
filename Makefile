# Everything a newcomer needs: `make demo`, `make test`.
# PYTHON chooses the interpreter (3.11 or newer); VENV the place of the environment.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
# What is installed beside the package; Spark's tests need EXTRAS=dev,spark (half a gigabyte) and Java 17.
EXTRAS ?= dev
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready-$(EXTRAS)
# The demo needs a part of that, and waits for the rest only where it is there already.
DEMO := $(or $(if $(findstring dev,$(EXTRAS)),$(wildcard $(STAMP))),$(VENV)/.ready-demo)
# What is never imported need not be compiled: that is a third of the time that installing takes.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal -q
# More for pytest, such as TESTS="-k ledger".
TESTS ?=

# Tests start many processes, each of which would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-all processors lint types imports docs site dist check bench clean

help: ## show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# An environment that was begun and not finished has no pip that works; it is made afresh.
$(VENV)/.ready-%: pyproject.toml
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "dither needs Python 3.11 or newer. Name yours: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; \
	  exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	  echo "Making the environment $(VENV) (the first time takes a minute or two) ..."; \
	  rm -rf $(VENV); \
	  $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 \
	    || { rm -rf $(VENV); $(PYTHON) -m virtualenv --quiet $(VENV) 2>/dev/null; } \
	    || { rm -rf $(VENV); \
	         echo "No environment could be made: $(PYTHON) lacks venv." >&2; \
	         echo "On Debian or Ubuntu: apt-get install python3-venv" >&2; \
	         exit 1; }; }
	$(PIP) --editable '.[$*]'
	@touch $@

setup: $(STAMP) ## make the environment

demo: $(DEMO) ## run the main job on real data, end to end
	$(BIN)/dither demo

test: $(STAMP) ## run every test but the slow ones
	$(PYTEST) $(TESTS)

test-all: $(STAMP) ## run every test
	$(PYTEST) --slow $(TESTS)

processors: $(STAMP) ## run the numeric tests as other processors would
	$(BIN)/python tests/processors.py

lint: $(STAMP) ## style of the code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## strict types
	$(BIN)/mypy

imports: $(STAMP) ## the directions of the house
	$(BIN)/lint-imports

docs: $(STAMP) ## run every code block of README and docs
	$(PYTEST) tests/docs

site: $(STAMP) ## the pages and the reference as a site, in out/site/html
	$(BIN)/python docs/site/build.py

dist: $(STAMP) ## the archives for an index and a bill of materials, in out/dist
	rm -rf out/dist
	$(BIN)/python -m build --no-isolation --outdir out/dist
	$(BIN)/python release/sbom.py out/dist/dither.cdx.json

check: lint types imports site test ## all of the above

bench: $(STAMP) ## the headline figures, each beside its peer
	$(PIP) --editable '.[bench]'
	$(PIP) --no-deps opacus # its accountants alone are run, and they need no torch
	@# These two pin old versions of numpy and pandas, and run with new ones: hence no dependencies.
	$(PIP) --no-deps anjana==1.2.3 pycanon==1.3.6 beartype
	$(BIN)/python -m benchmarks

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis out
