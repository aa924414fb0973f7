# Everything a newcomer needs: `make demo`, `make test`.
# PYTHON chooses the interpreter (3.11 or newer); VENV the place of the environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: help setup demo test lint types imports docs check bench clean

help: ## show what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dither needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); $(PYTHON) -m virtualenv $(VENV); } || \
	  { echo "No virtual environment could be made; on Debian: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

setup: $(STAMP) ## make the environment

demo: $(STAMP) ## run the main job on real data, end to end
	$(BIN)/dither demo

test: $(STAMP) ## run every test
	$(BIN)/python -m pytest -n auto -q

lint: $(STAMP) ## style of the code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## strict types
	$(BIN)/mypy

imports: $(STAMP) ## the directions of the house
	$(BIN)/lint-imports

docs: $(STAMP) ## run every code block of README and docs
	$(BIN)/python -m pytest -q tests/docs

check: lint types imports docs test ## all of the above

bench: $(STAMP) ## the headline figures, each beside its peer
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m benchmarks

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis out
