# Two commands matter on a fresh machine with Python 3.11: `make demo` and `make test`. Each sets up .venv by itself.

PYTHON ?= $(or $(shell command -v python3.11),$(shell command -v python3))
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo scaled test test-slow check format openapi fuzz chaos exhaustive bench clean

$(READY): pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with PYTHON=/path" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[server,postgres]" --group dev
	@touch $(READY)

demo: $(READY)
	$(BIN)/python examples/demo.py

# The scaled form on this machine: PostgreSQL, two API processes, two search runners, a worker. Ctrl-C ends it.
scaled: $(READY)
	$(BIN)/python deploy/scaled.py $(if $(DATA),--data $(DATA))

test: $(READY)
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-slow: $(READY)
	$(BIN)/python -m pytest -q -m slow

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What docs/openapi.json is: the tests compare it with what the server would answer.
openapi: $(READY)
	$(BIN)/python -m tilewright.service.openapi docs/openapi.json

# 20 000 random schedules between pages without access; SEED=N repeats one run.
fuzz: $(READY)
	$(BIN)/python tests/fuzz/run.py $(if $(SEED),--seed $(SEED))

# Minutes of kills and other faults, and that nothing was lost; SEED=N repeats the faults of a run, MINUTES=N.
chaos: $(READY)
	$(BIN)/python tests/chaos/run.py $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES))

# Elementary functions of all 2^32 floats; FUNCTIONS="exp gelu" takes some only.
exhaustive: $(READY)
	$(BIN)/python tests/exhaustive/run.py $(FUNCTIONS)

bench: $(READY)
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/compile.py

clean:
	rm -rf $(VENV) .demo build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
