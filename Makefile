# Everything a person or CI does with this project. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
AREA ?=
NAME ?=
export OMP_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test check story bench docs

help: ## this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "benchbot needs Python 3.11 or newer; say which: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,test,gcp]'
	@touch $@

$(VENV)/.benched: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,test,gcp,bench]'
	@touch $@

setup: $(VENV)/.installed ## make .venv with .venv/bin/benchbot

demo: setup ## the whole story on this machine: three pull requests, real training, one verdict each
	$(BIN)/benchbot demo $(if $(JSON),--json $(JSON))

serve: setup ## the same, and stays up: open the page it prints, type /benchmark commands
	$(BIN)/benchbot demo --serve

test: $(VENV)/.tested ## all tests
	$(BIN)/python -m tests.harness.fetch_contracts
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/.tested ## formatting, lint, types, and the rules of the house: what CI runs before the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/rules

story: $(VENV)/.tested ## print one story as a conversation: make story NAME=regression_caught
	$(BIN)/python -m pytest -q -s --story tests/stories -k "$(if $(NAME),$(NAME) and )not killed"

bench: $(VENV)/.benched ## measure the figures: make bench [AREA=main]; writes build/bench.json
	$(BIN)/python -m benchmarks $(AREA)

docs: $(VENV)/.tested ## draw the generated pages of docs/ anew
	$(BIN)/python -m tests.rules.docs
