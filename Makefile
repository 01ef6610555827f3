PORT ?= 8000
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_READY := $(VENV)/.ready-to-run
DEV_READY := $(VENV)/.ready-to-develop
WORKERS ?= auto
NEWEST ?= python3

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run dev check test restarts soak cluster bench newest lock screenshots clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(RUN_READY) ## Start agentchat at PORT (8000), with SQLite and nothing else
	@exec $(BIN)/python manage.py serve --port $(PORT)

dev: $(RUN_READY) ## The same with demonstration data, and a restart after each change
	@exec $(BIN)/python manage.py serve --dev --port $(PORT)

check: $(DEV_READY) ## Style, types, imports, migrations and the fast tests (under a minute)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	AGENTCHAT_VAR=$(VENV)/check $(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m "not (services or browser or slow or soak)"

test: $(DEV_READY) ## All tests, and those of the database once more on PostgreSQL
	tests/services/prepare
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not soak"
	$(BIN)/python -m tests.services.with_postgres -- \
		$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "databases and not soak"

restarts: $(DEV_READY) ## Kill, stop and restart every process at every point of a run (ONLY=waiting: some; five minutes)
	@tests/services/prepare
	@$(BIN)/python -m tests.restarts $(ONLY)

soak: $(DEV_READY) ## 50 chats while a process dies every few seconds, for MINUTES (10)
	@tests/services/prepare
	@$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),10)

cluster: $(DEV_READY) ## Try two servers and two workers with PostgreSQL and Redis, at PORT; the data are temporary
	@tests/services/prepare
	@$(BIN)/python -m tests.services.cluster --port $(PORT)

newest: $(DEV_READY) ## The fast tests on the newest Django, by NEWEST (python3) as its Python
	$(BIN)/uv venv --quiet --clear --python $(NEWEST) $(VENV)/newest
	sed 's/^django>=5.2,<5.3/django/' requirements.in > $(VENV)/newest.in
	grep -v '^-' requirements-dev.in >> $(VENV)/newest.in
	$(BIN)/uv pip install --quiet --python $(VENV)/newest/bin/python -r $(VENV)/newest.in
	$(VENV)/newest/bin/python -m django --version
	$(VENV)/newest/bin/python -m pytest -q -n $(WORKERS) --dist loadfile -m "not (services or browser or slow or soak)"

bench: $(DEV_READY) ## Measure what streaming and waiting cost, beside their bars (ONLY=streams: a part)
	tests/services/prepare
	$(BIN)/python -m bench $(ONLY)

lock: $(DEV_READY) ## Write the exact versions into requirements*.txt (UPGRADE=1: the newest ones)
	for name in requirements requirements-dev; do \
		$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-header $(if $(UPGRADE),--upgrade) \
			$$name.in --output-file $$name.txt > /dev/null || exit 1; \
	done

screenshots: $(DEV_READY) ## Take the pictures of the documentation
	tests/services/prepare
	$(BIN)/python -m tests.screenshots

clean: ## Remove the virtual environment, caches and test results; var/ (your chats) stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache test-results
	find agentchat project tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || { \
		echo "agentchat needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2> /dev/null || echo not here)."; \
		echo "Install it, or name another: make run PYTHON=python3.12"; \
		exit 1; } >&2
	@$(PYTHON) -m venv $(VENV) || { \
		rm -rf $(VENV); \
		echo "Python could not make the virtual environment. On Debian: apt-get install python3-venv"; \
		exit 1; } >&2

$(RUN_READY): requirements.txt | $(BIN)/python
	@echo "Installing what requirements.txt names ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(DEV_READY): requirements-dev.txt $(RUN_READY)
	@echo "Installing what requirements-dev.txt names ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@
