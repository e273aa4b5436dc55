# Everything runs in .venv of this clone; `make setup` makes it from the pinned versions of requirements.lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: help setup demo test check format lock clean

help:
	@echo "make demo    optimise a pressure vessel, with live progress"
	@echo "make test    every check: lint, format, types, imports, tests"
	@echo "make setup   only make the environment in .venv"
	@echo "make lock    renew requirements.lock from pyproject.toml"

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: setup
	$(BIN)/python examples/pressure_vessel.py

test: setup check
	$(BIN)/python -m pytest

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:
	rm -rf $(VENV)/lock
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check hatchling editables ".[test,bench]"
	$(VENV)/lock/bin/python -m pip freeze --disable-pip-version-check --exclude mixcma > requirements.lock
	rm -rf $(VENV)/lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
