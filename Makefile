# make demo   train, evaluate, package and install on the shipped sample (about 4 minutes)
# make test   lint, check types and run all tests
# make reliability   every counted case, see docs/reliability.md
# make slow   the tests that take longer: one epoch on STSb, a package in a fresh environment

PYTHON ?= python3
# Test processes, each on one thread: two that use all cores wait for one another.
JOBS ?= 2
# A test that hangs fails after ten minutes, with a traceback.
STUCK := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true
VENV := .venv
RUN := $(VENV)/bin/python -m

.PHONY: install demo test reliability slow clean

install: $(VENV)/.installed

$(VENV)/.installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: install
	$(RUN) spacy project run demo

test: install
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	OMP_NUM_THREADS=1 $(RUN) pytest -n $(JOBS) --dist worksteal -m "not slow and not gpu" $(STUCK)

reliability: install
	mkdir -p metrics
	OMP_NUM_THREADS=1 $(RUN) pytest -n $(JOBS) --dist worksteal --counts metrics/reliability.json tests/reliability

slow: install
	$(RUN) pytest -m slow

clean:
	rm -rf $(VENV) build corpus metrics packages training *.egg-info
