# Every target works from a clean checkout: it needs make and Python 3.11 or later, no more.

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
LOWEST := build/lowest
LOWEST_TESTS := tests/core tests/losses tests/metrics tests/models/test_linear.py \
	tests/models/test_trees.py tests/models/test_kernel.py tests/solvers/test_lbfgs.py \
	tests/solvers/test_tron.py tests/persist/test_model_file.py tests/cli/test_train.py \
	tests/contract/test_models.py tests/contract/test_losses.py
FAST_TESTS := tests/core tests/data tests/losses tests/metrics tests/models tests/solvers \
	tests/rankers tests/clicks tests/persist tests/explanation tests/export tests/ranklib \
	tests/engines tests/testing tests/contract/test_losses.py tests/contract/test_loss_parameters.py
EXTRAS := neural,dask,tune,plot,serve,onnx,xgboost,docs,dev,lint

.PHONY: demo test test-fast test-slow test-lowest lint format docs bench reproduce soak wheel setup clean chromium

demo: $(VENV)/.core  ## a panel of rankers on embedded data, a table and report.html
	$(BIN)/rankwright demo

test: $(VENV)/.all chromium  ## the whole test suite
	$(BIN)/python -m pytest -n auto

test-fast: $(VENV)/.all  ## the tests of single packages, for the work on one of them: three minutes
	$(BIN)/python -m pytest -n auto $(FAST_TESTS) --ignore tests/rankers/test_structured.py

test-slow: $(VENV)/.all  ## the tests marked slow: simulations of minutes
	$(BIN)/python -m pytest -n auto -m slow

test-lowest: $(LOWEST)/.core  ## the core's tests with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/python -m pytest -n auto -W ignore::DeprecationWarning $(LOWEST_TESTS)

lint: $(VENV)/.lint  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.lint  ## mend what can be mended automatically
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.all  ## the documentation site, in build/site; fails at a warning
	$(BIN)/python tools/build_site.py

bench: $(VENV)/.bench  ## ratios against peers; AREA="load trees" for some, BENCH_FLAGS=--record or --list
	$(BIN)/python -m benchmarks $(AREA) $(BENCH_FLAGS)

reproduce: $(VENV)/.all  ## tables and figures of the papers, in build/reproduction; TABLE=name for one, TABLE=list for all names
	$(BIN)/python -m reproducibility $(if $(TABLE),$(TABLE),all)

soak: $(VENV)/.soak  ## damaged input, kills, a server under load: RANKWRIGHT_SOAK_SECONDS (45) each; then property tests anew
	$(BIN)/python -m pytest -n auto -m soak
	$(BIN)/python -m pytest -n auto -m "hypothesis and not soak and not slow" --hypothesis-profile=soak

wheel: $(VENV)/.release  ## build and check the sdist and the wheel, and use the wheel in an empty environment
	rm -rf dist build/wheel
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m check_wheel_contents dist/*.whl
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip --disable-pip-version-check install --quiet dist/*.whl
	PATH="$(CURDIR)/build/wheel/bin:$$PATH" tools/try_wheel.sh

setup: $(VENV)/.all  ## .venv with every extra

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	rm -rf .hypothesis report.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; none was found."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

$(LOWEST)/.core: pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install --quiet uv
	$(LOWEST)/bin/uv pip compile --quiet --resolution lowest-direct --python $(LOWEST)/bin/python \
		--output-file $(LOWEST)/lowest.txt pyproject.toml
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint $(LOWEST)/lowest.txt --editable . \
		cvxpy hatchling hypothesis pandas polars "pytest>=8.4" pytest-xdist
	@touch $@

$(VENV)/.all: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable ".[$(EXTRAS)]"
	@touch $@ $(VENV)/.core $(VENV)/.lint

$(VENV)/.lint: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable ".[lint]"
	@touch $@ $(VENV)/.core

chromium:
	@command -v chromium >/dev/null || apt-get install -y -qq chromium >/dev/null 2>&1 \
		|| echo "no chromium, and apt-get cannot install it: tests in a browser are skipped"

$(VENV)/.bench: $(VENV)/.all
	$(PIP) --editable ".[bench]"
	@touch $@

$(VENV)/.soak: $(VENV)/.all
	$(PIP) --editable ".[soak]"
	@touch $@

$(VENV)/.release: $(VENV)/.all
	$(PIP) --editable ".[release]"
	@touch $@
