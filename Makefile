# Everything runs in .venv of this clone; `make setup` makes it from the pinned versions of requirements.lock.
PYTHON ?= python3
LOCK := requirements.lock
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEMO := .venv-demo

# Quick tests of every part, for other versions of Python and of the packages. For the whole suite, set QUICK to nothing.
QUICK := tests/space tests/latent tests/core/test_margin.py tests/core/test_catmargin.py \
    tests/run/test_optimizer.py tests/run/test_warm_start.py tests/search/test_driver.py tests/search/test_bad_input.py \
    tests/store/test_run_file.py tests/report/test_page.py tests/report/test_plot.py tests/test_programs.py \
    tests/integrations/test_optuna_sampler.py tests/integrations/test_optuna_conformance.py \
    tests/batch/test_batch.py::test_the_budget_holds \
    tests/evaluation/test_executors.py::test_every_candidate_is_evaluated_once \
    tests/report/test_browser.py::test_every_section_draws_its_figures_when_it_is_opened

.PHONY: help setup demo test quick test-lowest test-python test-versions check format docs lock clean

help:
	@echo "make demo    optimise a pressure vessel, with live progress, and make its report"
	@echo "make test    every check: lint, format, types, imports, tests; installs what they need"
	@echo "make docs    build the documentation in site/"
	@echo "make setup   only make the environment in .venv"
	@echo "make lock    renew the two lock files from pyproject.toml"
	@echo
	@echo "Beside make test:"
	@echo "make check                           lint, format, types, imports"
	@echo "make test-lowest                     quick tests with the lowest versions that pyproject.toml allows"
	@echo "make test-versions                   quick tests with each Python from 3.11 to 3.14 that is here"
	@echo "make test-python PYTHON=python3.13   quick tests with one Python"

setup: $(READY)

$(READY): $(LOCK) pyproject.toml
	$(PYTHON) -m venv $(VENV)
	PATH="$(CURDIR)/$(BIN):$$PATH" pip install --quiet --disable-pip-version-check -r $(LOCK) # some builds call python
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

# The whole suite comes last, so that the tests it had to leave out stand at the end of the output.
test:
	PYTHON=$(PYTHON) tools/system_packages.sh
	$(MAKE) --no-print-directory check test-lowest
	$(BIN)/python -m pytest

quick: setup
	$(BIN)/python -m pytest $(OPTIONS) $(QUICK)

# Python 3.11, because some of the lowest versions have no wheels for a later one. Old packages among new ones may warn.
test-lowest:
	@python=$$(tools/find_python.sh 3.11) || { echo "No Python 3.11 here: the lowest versions are not tested."; exit 0; }; \
	$(MAKE) --no-print-directory quick PYTHON=$$python VENV=.venv-lowest LOCK=requirements-lowest.lock \
	    OPTIONS="-W ignore::DeprecationWarning"

test-python:
	@version=$$($(PYTHON) -c "import sys; print('%d.%d' % sys.version_info[:2])" 2> /dev/null) \
	    || { echo "$(PYTHON) cannot be run here: install it, or set PYTHON to the path of another."; exit 1; }; \
	$(MAKE) --no-print-directory quick VENV=.venv-$$version

test-versions: setup
	@for version in 3.11 3.12 3.13 3.14; do \
	    if [ -e $(BIN)/python$$version ]; then continue; fi; \
	    python=$$(tools/find_python.sh $$version) || { echo "No Python $$version here: it is not tested."; continue; }; \
	    $(MAKE) --no-print-directory test-python PYTHON=$$python || exit 1; \
	done

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

# What tests and installation need besides is not lowered: with requirements-lowest.lock, the packages are tested.
TOOLS := editables|hatchling|hypothesis|loky|playwright|psutil|pytest|pytest-xdist

lock:
	rm -rf $(VENV)/lock
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check hatchling editables ".[test,bench]"
	$(VENV)/lock/bin/python -m pip freeze --disable-pip-version-check --exclude mixcma > requirements.lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	grep -E "^($(TOOLS))==" requirements.lock | $(VENV)/lock/bin/uv pip compile --quiet --no-header --no-annotate \
	    --python-version 3.11 --resolution lowest-direct --extra dask --extra jax --extra optuna \
	    --extra report pyproject.toml - --output-file requirements-lowest.lock
	rm -rf $(VENV)/lock

clean:
	rm -rf $(VENV) .venv-* site pressure_vessel.html .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
