# Everything runs in .venv of this clone; `make setup` makes it from the pinned versions of requirements.lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEMO := .venv-demo

.PHONY: help setup demo test check format docs lock clean

help:
	@echo "make demo    optimise a pressure vessel, with live progress, and make its report"
	@echo "make test    every check: lint, format, types, imports, tests"
	@echo "make docs    build the documentation in site/"
	@echo "make setup   only make the environment in .venv"
	@echo "make lock    renew requirements.lock from pyproject.toml"

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# What a user would install, and no more: a run of the pressure vessel and its report, opened where there is a screen.
demo: $(DEMO)/ready
	rm -f $(DEMO)/pressure_vessel.db
	$(DEMO)/bin/mixcma run examples/designs/pressure_vessel.toml --run-file $(DEMO)/pressure_vessel.db
	$(DEMO)/bin/mixcma report $(DEMO)/pressure_vessel.db -o pressure_vessel.html $(if $(DISPLAY)$(WAYLAND_DISPLAY),--open)

$(DEMO)/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e ".[report]"
	touch $@

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

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock:
	rm -rf $(VENV)/lock
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check hatchling editables ".[test,bench]"
	$(VENV)/lock/bin/python -m pip freeze --disable-pip-version-check --exclude mixcma > requirements.lock
	rm -rf $(VENV)/lock

clean:
	rm -rf $(VENV) $(DEMO) site pressure_vessel.html .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
