# Two commands do all: `make demo` and `make test`. Each sets up .venv on first use.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup demo test unit engine lint types contracts static generated engine-matrix clean

help:
	@echo "make demo       a real vLLM gets faster, with the proof in an HTML file (10 minutes, then 6)"
	@echo "make test       all tests, on a real engine too (20 minutes)"
	@echo "make static     format, lint, types, import contracts"
	@echo "make generated  write the trace schema and docs/cli.md anew"

setup:
	@$(PYTHON) tools/setup.py

demo: setup
	@$(BIN)/python examples/demo.py

test: unit engine

unit: setup
	$(BIN)/python -m pytest tests -m "not engine"

engine: setup
	$(BIN)/python -m pytest tests/engine -m engine

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

static: lint types contracts

generated: setup
	$(BIN)/python -m rtopt.storage.schema
	$(BIN)/python -m tools.cli_docs

# By hand: five engines, one after the other; the result is committed.
engine-matrix: setup
	$(BIN)/python benchmarks/engine_matrix.py --out benchmarks/results/engine-matrix.json

clean:
	rm -rf .venv
