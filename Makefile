# One command for each thing that one does with a checkout.
#
# They all work in .venv, which the first of them makes. Stamp files in it record what is installed:
# a second call starts at once, and a changed source is built and installed again before it is used.

PYTHON ?= python3
WORKERS ?= 2
SCALE ?= 1
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
SANITIZED := build/sanitize
TORTURED := build/torture.jsonl

# Folders are listed too: their time changes when a file in them goes away.
SOURCES := pyproject.toml CMakeLists.txt LICENSE \
    $(shell find engine src -name __pycache__ -prune -o -print)
CXX_SOURCES := $(shell find engine benchmarks tests/faults -name '*.cpp' -o -name '*.hpp')

PIP_INSTALL := $(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet

# The caller's Python settings must not affect .venv. The compiler that is checked is also used.
unexport PYTHONPATH PYTHONHOME
export CXX

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-engine torture lint format bench update-cost experiments sanitize sanitize-threads \
    install clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "PYTHON=python3.12 picks the Python that .venv is made with, ARGS=... is passed on to"
	@echo "demo, test, torture, bench, experiments and sanitize: make test ARGS='-k binning'"

demo: $(STAMPS)/package $(STAMPS)/extra-demo  ## Have a model forget customers: a minute's tour
	$(BIN)/python -m graftboost demo $(ARGS)

test: test-engine $(STAMPS)/extra-test  ## Run all tests and the examples in the docstrings
	$(BIN)/python -m pytest -n $(WORKERS) tests/ --pyargs graftboost $(ARGS)

# $(call run_engine_tests,folder): builds the C++ tests where the package was built, and runs them.
run_engine_tests = $(BIN)/cmake --build $(1) --target engine_tests -j $(WORKERS) > build/tests.log \
	    || { cat build/tests.log; exit 1; }; $(1)/engine_tests
# The newest of the folders that packages were built in.
built_in = $$(ls -td build/cp*/ | head -n 1)

test-engine: $(STAMPS)/package  ## Run the C++ tests of the engine
	@$(call run_engine_tests,$(built_in))

# Half an hour on two cores; SCALE=10 takes ten times as long. What was counted is printed even if a
# test fails.
torture: $(STAMPS)/package $(STAMPS)/extra-test  ## Test every promise of reliability at length
	@mkdir -p build && rm -f $(TORTURED)
	GRAFTBOOST_TORTURE=$(SCALE) GRAFTBOOST_TORTURE_REPORT="$(CURDIR)/$(TORTURED)" \
	    $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/faults tests/distributed $(ARGS); ran=$$?; \
	    $(BIN)/python -m tests.faults.figures $(TORTURED) && exit $$ran

lint: $(STAMPS)/package $(STAMPS)/extra-lint  ## Check style, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CXX_SOURCES)
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports

format: $(STAMPS)/extra-lint  ## Bring the sources into the form that lint asks for
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_SOURCES)

bench: $(STAMPS)/package $(STAMPS)/extra-bench  ## Compare speed, memory and error with others
	$(BIN)/python -m benchmarks $(ARGS)

update-cost: $(STAMPS)/package  ## Measure the cost constants of updates
	@$(BIN)/cmake --build $(built_in) --target update_cost > build/update_cost.log \
	    || { cat build/update_cost.log; exit 1; }; $(built_in)/update_cost

# One process, so that what one experiment measures is not slowed down by another.
experiments: $(STAMPS)/package $(STAMPS)/extra-experiments  ## Run the paper's experiments, small
	$(BIN)/python -m experiments run --scale quick $(ARGS); ran=$$?; \
	    $(BIN)/python -m experiments report --scale quick && exit $$ran

# $(call sanitized,sanitizer): pytest with the engine that was built with it. Python itself does not
# know the sanitizers' runtime, so it is preloaded, with the C++ library whose `throw` it intercepts.
# Reports go past pytest to the terminal.
sanitized = LD_PRELOAD="$$(ldd $(SANITIZED)/$(1)/package/graftboost/_engine*.so \
	        | awk '/lib(asan|ubsan|tsan|stdc\+\+)\.so/ { print $$3 }' | paste -sd : -)" \
	    PYTHONPATH="$(CURDIR)/$(SANITIZED)/$(1)/package" PYTHONMALLOC=malloc \
	    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1 \
	    $(BIN)/python -m pytest -p no:faulthandler --capture=sys

# Ray itself is not built with sanitizers.
SHARDS_IN_PROCESS := tests/distributed --ignore=tests/distributed/test_ray.py

sanitize: $(SANITIZED)/address/stamp $(STAMPS)/extra-test  ## Test engine, stores and invalid files under sanitizers
	@$(call run_engine_tests,$(SANITIZED)/address/cmake)
	$(call sanitized,address) tests/engine tests/store tests/faults/test_model_mutations.py \
	    tests/faults/test_store_mutations.py $(SHARDS_IN_PROCESS) $(ARGS)

# ThreadSanitizer cannot follow a child that was forked from several threads.
sanitize-threads: $(SANITIZED)/thread/stamp $(STAMPS)/extra-test  ## Test concurrent use under ThreadSanitizer
	$(call sanitized,thread) tests/engine/test_parallel.py tests/engine/test_races.py \
	    tests/estimators/test_updating_together.py $(SHARDS_IN_PROCESS) -k "not fork" $(ARGS)

install: $(STAMPS)/package  ## Build the package and install it into .venv

clean:  ## Remove .venv and all that was built
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# $(call or_stop,message): ends a check that failed.
or_stop = || { echo "graftboost: $(1)" >&2; exit 1; }

$(BIN)/python:
	@$(PYTHON) -c '' $(call or_stop,'$(PYTHON)' does not run. Name a Python with PYTHON=...)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    $(call or_stop,'$(PYTHON)' is older than Python 3.11. Name a newer one with PYTHON=...)
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	    $(call or_stop,'$(PYTHON)' has no venv module. On Debian and Ubuntu: apt install python3-venv)
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)

# $(call requirements,keys): a list of requirements in pyproject.toml, one a line.
requirements = $(BIN)/python -c 'import tomllib; \
    settings = tomllib.load(open("pyproject.toml", "rb")); print(*settings$(1), sep="\n")'

$(STAMPS)/build-tools: pyproject.toml | $(BIN)/python
	@echo "Installing the build tools"
	@mkdir -p $(STAMPS)
	@$(call requirements,["build-system"]["requires"]) > $@.txt
	@$(PIP_INSTALL) -r $@.txt cmake ninja
	@touch $@

$(STAMPS)/extra-%: pyproject.toml | $(BIN)/python
	@echo "Installing what $* needs"
	@mkdir -p $(STAMPS)
	@$(call requirements,["project"]["optional-dependencies"]["$*"]) > $@.txt
	@$(PIP_INSTALL) -r $@.txt
	@touch $@

# Without build isolation the build tools stay where they are from one build to the next, which is
# what lets a build compile only what changed. The stamp bears the time at which the build began: a
# source that is edited while it runs is newer.
$(STAMPS)/package: $(SOURCES) $(STAMPS)/build-tools
	@echo 'int main() {}' | $(CXX) -std=c++20 -x c++ -fsyntax-only - 2>/dev/null \
	    $(call or_stop,'$(CXX)' does not compile C++20. Install g++ 11 or newer or set CXX=...)
	@$(BIN)/python -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' \
	    2>/dev/null $(call or_stop,Python.h is missing. On Debian and Ubuntu: apt install python3-dev)
	@echo "Building and installing graftboost"
	@touch $@.begun
	@$(PIP_INSTALL) --no-build-isolation .
	@mv $@.begun $@

SANITIZERS_address := address,undefined
SANITIZERS_thread := thread
$(SANITIZED)/%/stamp: $(SOURCES) $(STAMPS)/package
	@echo "Building graftboost with -fsanitize=$(SANITIZERS_$*)"
	@rm -rf $(@D)/package
	@mkdir -p $(@D)
	@touch $@.begun
	@$(PIP_INSTALL) --no-build-isolation --no-deps --target $(@D)/package . \
	    --config-settings=build-dir=$(@D)/cmake \
	    --config-settings=cmake.build-type=Debug \
	    --config-settings=cmake.define.GRAFTBOOST_SANITIZE=$(SANITIZERS_$*)
	@mv $@.begun $@
