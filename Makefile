# Two commands are enough on a fresh machine with Python 3.11: `make demo` and `make test`. Both set up .venv first.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := .venv/bin
MARKERS := not slow

.PHONY: help setup demo picture test test-full lint types format bench figures docs clean

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/.ready ## .venv with pinned packages; nothing is done twice

.venv/.ready: pyproject.toml constraints.txt tools/setup
	@tools/setup

demo: setup ## train a small GPT well and badly for real, then diagnose both logs
	@$(BIN)/python examples/demo_training.py --out demo
	@tools/demo_report demo

test: setup lint types ## everything CI runs, in under 15 minutes on two cores
	@$(BIN)/python -m pytest -q -n 2 -m "$(MARKERS)"

test-full: setup lint types ## the slow tests and a quick benchmark as well
	@$(BIN)/python benchmarks/offline.py --quick
	@$(BIN)/python -m pytest -q -n 2 -m ""

lint: setup
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "run 'make format'" >&2; exit 1; }

types: setup
	@$(BIN)/mypy --no-error-summary

format: setup ## sort imports, fix what can be fixed, format
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format

bench: setup ## what Poise costs, as ratios to merely parsing
	@$(BIN)/python benchmarks/offline.py --json

figures: setup ## fill README's generated tables from the figures in docs/figures/
	@$(BIN)/python tools/fill_readme.py

picture: setup ## docs/images/report.png from the demo's report
	@tools/take_picture demo/report.html docs/images/report.png

docs: setup ## the pages of docs/ as a site in site/
	@$(BIN)/mkdocs build --strict --quiet

clean: ## remove what was made, but for .venv
	@rm -rf demo site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
