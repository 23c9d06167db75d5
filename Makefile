# Each target sets itself up in .venv and needs nothing but make and Python 3.11 or newer.

.DELETE_ON_ERROR:
.PHONY: help demo test lint bench fuzz docs clean

BIN = .venv/bin
# The environment is made anew or brought up to date when what the project depends on has changed.
SETUP = pyproject.toml scripts/setup.sh
BENCHES = $(filter-out bench/measure.py bench/recordings.py, $(wildcard bench/*.py))

help:
	@echo 'make demo    fold the recordings in examples/recordings, a few bytes at a time'
	@echo 'make test    run all tests'
	@echo 'make lint    ruff, mypy and pyright, all strict'
	@echo 'make bench   measure speed and memory'
	@echo 'make fuzz    change recordings at random and look for broken promises: FUZZ_SECONDS (10) for each target'
	@echo 'make docs    the pages of docs/ and the reference, into build/docs'
	@echo 'make clean   remove what the others made'

demo: .venv/ready-cli
	@$(BIN)/python examples/demo.py

test: .venv/ready-dev
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: .venv/ready-dev
	@status=0; \
	for check in 'ruff check .' 'ruff format --check .' mypy 'mypy examples' pyright; do \
		echo "$(BIN)/$$check"; \
		PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/$$check || status=1; \
	done; \
	exit $$status

bench: .venv/ready-bench
	@status=0; \
	for script in $(BENCHES); do \
		echo "== $$script"; \
		$(BIN)/python $$script || status=1; \
	done; \
	exit $$status

docs: .venv/ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

fuzz: .venv/ready-dev
	$(BIN)/python -m fuzz.run --seconds $${FUZZ_SECONDS:-10}

.venv/ready-%: $(SETUP)
	@sh scripts/setup.sh $*
	@touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
