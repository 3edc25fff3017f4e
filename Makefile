# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEV_INSTALLED := $(VENV)/.dev-installed
DOCS_INSTALLED := $(VENV)/.docs-installed

.PHONY: demo test lint types unit docs dist install clean

demo: $(INSTALLED)  ## The main job on embedded data, with three privacy levels.
	$(BIN)/collegium demo

test: $(DEV_INSTALLED) lint types unit  ## Lint, types and the whole suite.

lint: $(DEV_INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV_INSTALLED)
	$(BIN)/mypy

unit: $(DEV_INSTALLED)
	$(BIN)/pytest -n auto --max-worker-restart 0 --durations 10

docs: $(DOCS_INSTALLED)  ## The site, in build/site: notebooks are run, and a link that leads nowhere fails.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build  # with --quiet it would not tell of warnings
	@echo "open build/site/index.html"

dist: $(DEV_INSTALLED)  ## Wheel and sdist of the last commit, in dist/: nothing that is not committed gets in.
	rm -rf build/source dist
	mkdir -p build/source
	git archive HEAD | tar -x -C build/source
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --no-isolation --outdir dist build/source

install: $(INSTALLED)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ": set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(DEV_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(DOCS_INSTALLED): $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis
