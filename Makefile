# Everything below sets itself up: a virtual environment in .venv, with uv and the pinned packages in it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
PIP := $(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --constraints constraints.txt
COMPILE := $(BIN)/python -m compileall -q packetgate
EXTRAS := full,dev,docs,studio,postgres,notebooks
TESTS ?= tests
WORKERS ?= auto
PYTEST = $(BIN)/python -m pytest $(TESTS) -n $(WORKERS) --dist loadgroup
export UV_NO_PROGRESS := 1

# llama.cpp's package has only sources on the index. The compiled wheel is kept for all clones: uv's own cache forgets it
# as soon as an index that states no freshness is asked again. Of llama.cpp nobody here uses the multimodal part, nor the
# library that its own programs share: half of the work. Its CMakeLists.txt forces the latter on; a variable set before
# that stands above what is forced.
LLAMA_KEY := $(shell { uname -sm; grep ^llama-cpp-python== constraints.txt; echo "$$CMAKE_ARGS"; } | cksum | cut -d ' ' -f 1)
LLAMA := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/packetgate/llama-cpp-python-$(LLAMA_KEY)
COMPILE_LLAMA = CMAKE_ARGS="-DLLAVA_BUILD=OFF -DCMAKE_PROJECT_llama_cpp_INCLUDE=$(LLAMA)/llama.cmake $$CMAKE_ARGS" \
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --constraint constraints.txt \
	--wheel-dir $(LLAMA) llama-cpp-python

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all check lint types docs notebooks llama-server bench nightly studio diagram constraints clean

help: ## List what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.run ## Set up, and run the main job on files of this folder
	@echo '$$ packetgate ask "What does README.md say about the gate?"'
	@PACKETGATE_HOME=.packetgate $(BIN)/packetgate ask "What does README.md say about the gate?"
	@echo
	@echo "$$ packetgate ask 'Write \"hello\" to notes.txt'"
	@PACKETGATE_HOME=.packetgate $(BIN)/packetgate ask 'Write "hello" to notes.txt'

test: $(VENV)/.dev ## Set up, and run the tests, without the slow ones
	@$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.dev ## Run the slow tests: kills, races, other servers, browsers, real weights
	@$(PYTEST) -m slow $(PYTEST_ARGS)

test-all: test test-slow ## Run all tests

check: lint types docs notebooks ## Lint, types, imports between rooms, docs, notebooks
	@$(BIN)/lint-imports

notebooks: $(VENV)/.dev ## Execute the notebooks; NOTEBOOK_ARGS=--keep keeps their outputs
	@$(BIN)/python notebooks/run.py $(NOTEBOOK_ARGS)

docs: $(VENV)/.dev ## Build the documentation as a site in .site; dead links and anchors fail
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: $(VENV)/.dev ## Lint and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev ## Check types, strictly
	@$(BIN)/mypy

llama-server: $(BIN)/llama-server ## Compile llama.cpp's own server, for its tests: 4 minutes on two idle cores

bench: $(VENV)/.dev ## Measure start-up, turns, calls and catalogues; with PACKETGATE_DATA, on data sets too
	@$(BIN)/python -m benchmarks

nightly: $(VENV)/.dev ## Play AgentDojo's prompt injections against the gate; a missed goal fails
	@$(BIN)/python -m benchmarks.safety --check --resume .packetgate/benchmarks/safety/$$(git describe --always --dirty)-$$(git diff HEAD | sha256sum | cut -c1-12)

studio: $(VENV)/.studio ## Start the LangGraph server on this graph, and say where Studio is
	@$(BIN)/packetgate studio $(STUDIO_ARGS)

diagram: $(VENV)/.run ## Print the graph as Mermaid text
	@$(BIN)/python -m packetgate.graph.diagram

constraints: $(UV) ## Resolve the pinned versions anew
	@$(UV) pip compile --quiet --universal --no-header --python-version 3.11 --all-extras --upgrade pyproject.toml --output-file constraints.txt

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .langgraph_api

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Packetgate needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "no venv module: install it (Debian: apt install python3-venv), then try again"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/.run: pyproject.toml constraints.txt | $(UV)
	@echo "setting up $(VENV) ..."
	@$(PIP) --editable '.[full]' && $(COMPILE)
	@touch $@

$(VENV)/.studio: pyproject.toml constraints.txt | $(UV)
	@echo "setting up $(VENV) for Studio ..."
	@$(PIP) --editable '.[full,studio]' && $(COMPILE)
	@touch $@ $(VENV)/.run

$(VENV)/.dev: pyproject.toml constraints.txt | $(UV)
	@echo "setting up $(VENV) for development ..."
	@$(PIP) --editable '.[$(EXTRAS)]' && $(COMPILE)
	@if ! ls $(LLAMA)/*.whl > /dev/null 2>&1 && command -v c++ > /dev/null; then \
		echo "compiling llama.cpp: this takes 3 minutes on two idle cores, once for all clones ..."; \
		mkdir -p $(LLAMA) && echo 'set(LLAMA_BUILD_COMMON OFF)' > $(LLAMA)/llama.cmake; \
		(for s in $$(seq 30 30 3600); do sleep 30 > /dev/null; echo "... $$s s"; done) & clock=$$!; \
		$(COMPILE_LLAMA); status=$$?; kill $$clock; exit $$status; \
	fi
	@if ls $(LLAMA)/*.whl > /dev/null 2>&1; then \
		$(PIP) --find-links $(LLAMA) --editable '.[local]'; \
	else \
		echo "!! no C++ compiler: llama.cpp is left out and its tests are skipped (Debian: apt install g++ cmake)."; \
		echo "!! Models of Ollama (ollama:NAME) and of llama-server (llama-server:NAME) need nothing of it."; \
	fi
	@command -v npx > /dev/null || echo "!! no Node.js: the tests with npm servers are skipped (Debian: apt install nodejs npm)"
	@touch $@ $(VENV)/.run $(VENV)/.studio

# of the version that is installed, whose libraries it is linked with
$(BIN)/llama-server: tests/support/llama.cpp/CMakeLists.txt | $(VENV)/.dev
	@echo "compiling llama-server ..."
	@rm -rf $(VENV)/llama.cpp && mkdir -p $(VENV)/llama.cpp
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-python \
		--constraint constraints.txt --dest $(VENV)/llama.cpp llama-cpp-python
	@tar -xzf $(VENV)/llama.cpp/*.tar.gz -C $(VENV)/llama.cpp --strip-components 1 --wildcards '*/vendor/llama.cpp'
	@cmake -S $(dir $<) -B $(VENV)/llama.cpp/build -DCMAKE_CXX_FLAGS=-O1 \
		-DSOURCES=$(CURDIR)/$(VENV)/llama.cpp/vendor/llama.cpp \
		-DLIBRARIES=$$($(BIN)/python -c 'from importlib.util import find_spec as f; print(f("llama_cpp").submodule_search_locations[0])')/lib > /dev/null
	@cmake --build $(VENV)/llama.cpp/build --target llama-server --parallel > /dev/null
	@mv $(VENV)/llama.cpp/build/llama-server $@ && rm -rf $(VENV)/llama.cpp
