# Everything runs in .venv, which `make install` (or any other target) creates.
VENV ?= .venv
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3,$(shell command -v $(p))))
BIN := $(VENV)/bin
RUN := $(BIN)/python
ARGS ?=
PROFILE ?= ci

.PHONY: help install demo serve tritonserver test check format conformance perf study clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

install: $(VENV)/.complete  ## create .venv with everything in it

$(VENV)/.complete: pyproject.toml constraints.txt nodeps.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' || { echo "Python 3.11 or 3.12 is needed; set PYTHON=" >&2; exit 1; }
	@echo "creating $(VENV) with $(PYTHON) (about 3 GB; a few minutes the first time)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install torch==2.13.0 'numpy<2'
	$(BIN)/pip install -c constraints.txt -e '.[engine,frontend,dev]'
	$(BIN)/pip install --no-deps -r nodeps.txt
	@touch $@

demo: install  ## one constrained answer through the whole stack, validated
	$(RUN) docker/local/demo.py

serve: install  ## the whole stack until Ctrl-C; flags in ARGS="--port 9000 --model DIR"
	@exec $(RUN) docker/local/serve.py $(ARGS)

tritonserver: install  ## the bare server on the model repository, nothing of ours beside it
	@exec $(RUN) docker/local/tritonserver.py --model-repository=model_repository $(ARGS)

test: install  ## every test, the end-to-end ones included
	$(BIN)/pytest $(ARGS)

check: install  ## ruff and strict mypy
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	MYPYPATH=docker/local:perf $(BIN)/mypy docker/local perf

conformance: install  ## accept/reject corpora, whole, beside other engines: scoreboard by keyword
	$(RUN) perf/conformance.py $(ARGS)

perf: install  ## perf_analyzer against the model over gRPC streaming
	$(RUN) perf/analyzer.py $(ARGS)

study: install  ## the reliability study on a stack of our own; PROFILE=ci|laptop|gpu; writes perf/report
	PYTHONPATH=perf $(RUN) -m study --profile $(PROFILE) $(ARGS)

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
