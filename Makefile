# `make demo` and `make test` set up all they need in .venv; PYTHON picks the interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup demo test lint types check clean

help:
	@echo "make demo    a short profiled run against a small web service, in local mode"
	@echo "make test    all tests that this machine can run"
	@echo "make check   lint, types and import rules"
	@echo "make clean   removes what the other targets made"

$(VENV)/.ready: setup.cfg pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("osbench needs Python 3.11 or newer; try make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

setup: $(VENV)/.ready

demo: setup
	$(BIN)/python samples/demo.py

test: setup
	$(BIN)/pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint types

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info .mypy_cache .pytest_cache .ruff_cache
