# make demo          installs into .venv and runs the main study: a learning curve of real digits with its theories
# make test          installs and runs the everyday tests
# make test-all      runs all tests, including the long ones, and records the long ones in tests/passed.txt
# make test-changed  runs all tests except long tests of physics that has not changed since they passed
# make smoke         runs a few seconds of every topic
# make check         lint, types and layers of imports
# make attack        random interrupts, damage, malformed calls and parameters: takes hours, resumes (tests/drawn.txt)
# make bench         runs the benchmarks
# make bench-peers   installs public packages that compute the same, each into a temporary environment, and compares
# make figures       runs every study at the size of the gallery and writes docs/agreement.md: takes a day, resumes
# make docs          builds the site into site/, without a network
# make clean         removes .venv, site and caches; results stay
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# a file of pip constraints, used only for the tests
CONSTRAINTS ?=
# Each of two processes runs one test file after another, so that all tests of a file share its compiled programs.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile

.PHONY: demo test test-all test-changed attack smoke check bench bench-peers figures docs clean

demo: $(VENV)/.installed
	$(BIN)/orderparam run digits-learning-curve

test: $(VENV)/.installed-dev
	$(PYTEST)

test-all: $(VENV)/.installed-dev
	$(PYTEST) -m "not attack" --remember

test-changed: $(VENV)/.installed-dev
	$(PYTEST) -m "not attack" --changed

attack: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -m attack --changed --remember

smoke: $(VENV)/.installed-test
	$(PYTEST) --dist load -m smoke

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

bench: $(VENV)/.installed-dev
	@set -e; for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script; done

bench-peers: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/public

figures: $(VENV)/.installed
	$(BIN)/python docs/agreement.py

docs: $(VENV)/.installed-dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir site
	@echo "site/index.html"

$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { echo "orderparam needs Python 3.11 or newer, and '$(PYTHON)' was not found: install it, or use make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "orderparam needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1): use make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian, Ubuntu: apt install python3-venv)"; exit 1; }
	@echo "making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.made
	@echo "installing orderparam and its dependencies (about 1 GB on disk, a third of it JAX; a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e . || { echo "the installation failed: is there a network connection?"; exit 1; }
	@touch $@

$(VENV)/.installed-test: pyproject.toml $(VENV)/.made
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS)) -e '.[test]' || { echo "the installation failed: is there a network connection?"; exit 1; }
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.made
	@echo "installing orderparam with its test tools (about 1.1 GB on disk, a third of it JAX; a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' || { echo "the installation failed: is there a network connection?"; exit 1; }
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .venv-* site .pytest_cache .mypy_cache .ruff_cache .hypothesis
