# `make bench` and `make test` work on a machine with no more than Python 3.11 and make: scripts/setup.sh does the rest,
# and takes milliseconds when nothing is to do. PYTHON= names an interpreter, ARGS= is passed on to the command:
#   make bench ARGS="scan --n 2^20"
#   make test ARGS="-k scan" PYTHON=python3.12

BIN := .venv/bin
SETUP := PYTHON="$(PYTHON)" sh scripts/setup.sh
# Tests that find no adapter fail. Half as many workers as cores (tests/conftest.py): lavapipe itself has a thread per core.
# A file runs in one worker: all would compile the same kernels otherwise.
PYTEST := GRIDWISE_REQUIRE_GPU=1 $(BIN)/python -m pytest -n auto --dist loadfile
MARKS_OF_SUITE := not slow and not tint and not browser
SUITE := -m "$(MARKS_OF_SUITE)"
# What a commit needs (tests/left_out.json names the others), and what `make test-full` has beyond it.
QUICK := -m "not full and $(MARKS_OF_SUITE)"
REST := -m "full and $(MARKS_OF_SUITE)"
# These tests need Chromium, which set-up does not install.
ALL = $(if $(shell command -v chromium 2>/dev/null),,-m "not tint and not browser")

# Another Vulkan driver, which every Chromium brings: subgroups of 4, and no progress between workgroups.
SWIFTSHADER := $(firstword $(wildcard $(addsuffix /vk_swiftshader_icd.json,/usr/lib/chromium /opt/google/chrome)))
ON_SWIFTSHADER := VK_DRIVER_FILES=$(SWIFTSHADER) $(PYTEST)
# What proves most there in half a minute: all primitives by their signatures, look-back, subgroups. Then the engine Dawn,
# where wgpudawn is installed: it takes SwiftShader, and refuses Mesa 22.3. Not the whole suite:
# SwiftShader compiles a reduction by key in a second with `vecs=2`, and not within a minute with 4.
SECOND := $(addprefix tests/primitives/test_,every_primitive.py scan.py reduce.py) tests/backend/test_dawn.py
# All primitives on that engine, and what engines differ in.
WITH_DAWN = $(and $(SWIFTSHADER),$(wildcard .venv/lib/python*/site-packages/wgpudawn))
ON_DAWN := GRIDWISE_ENGINE=dawn $(ON_SWIFTSHADER) $(SUITE) tests/backend $(addprefix tests/runtime/test_,batch.py sequence.py event.py) \
	tests/primitives/test_every_primitive.py
NO_DAWN := "No wgpudawn or no Chromium here (pip install -e '.[dawn]'): NO PRIMITIVE RAN ON DAWN."
NO_SWIFTSHADER := "No Chromium here (Debian: apt-get install chromium), so no SwiftShader: NOTHING RAN ON A SECOND DRIVER."

# Python keeps what it compiles even where the environment forbids that, as containers do: set-up leaves it to the first
# import, and dozens of tests start programs that import the package.
export PYTHONDONTWRITEBYTECODE :=
# Unset, Mesa prints harmless lines that begin with "error:".
export XDG_RUNTIME_DIR ?= /tmp
# Mesa keeps what lavapipe compiles in the user's cache, for all checkouts; without a home it would keep nothing.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
ifeq ($(shell mkdir -p $(CACHE) 2>/dev/null && test -w $(CACHE) && echo kept),)
export MESA_SHADER_CACHE_DIR ?= $(CURDIR)/.make/mesa
endif

.DEFAULT_GOAL := help
.PHONY: help bench docs test test-full test-core test-bench test-browser test-fleet test-dask test-all test-swiftshader validate soak peers soak-gpu soak-dask leaks fuzz array-api mutate audit lock lint format dist release-check compare-release clean

help:  ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1@/p' Makefile | tr @ '\t' | expand -t 25
	@echo 'ARGS="…" is passed on to gridwise bench or pytest; PYTHON=… makes .venv from that interpreter.'

bench:  ## how long each kernel of vector add, reduce, scan and sort takes here, in a table
	@$(SETUP) bench adapter
	@$(BIN)/gridwise bench $(or $(ARGS),--budget 25s)

docs:  ## the site, in build/site: notebooks are run, links, code and search are checked; warnings are errors
	@$(SETUP) docs adapter
	@rm -rf build/site
	$(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees -b html docs build/site $(ARGS)
	$(BIN)/python scripts/check_site.py build/site
	@echo "open build/site/index.html"

test:  ## the tests that a commit needs; without ARGS, some of them again on SwiftShader's Vulkan
	@$(SETUP) dev adapter
	$(PYTEST) $(QUICK) $(ARGS)
	$(if $(ARGS),,$(if $(SWIFTSHADER),$(ON_SWIFTSHADER) $(QUICK) $(SECOND),@echo $(NO_SWIFTSHADER)))

test-full: MARKS = $(if $(AFTER_TEST),$(REST),$(SUITE))
test-full:  ## the tests, with part of each costly grid; AFTER_TEST=1 leaves out what `make test` runs
	@$(SETUP) dev adapter
	$(PYTEST) $(MARKS) $(ARGS)
	$(if $(ARGS),,$(if $(SWIFTSHADER),$(ON_SWIFTSHADER) $(MARKS) $(SECOND),@echo $(NO_SWIFTSHADER)))

# Parts of it; tests/project has the rest.
test-core: PART := backend display planning primitives profiling runtime storage timing tuning types
test-core:  ## the tests of the library without its applications
test-bench: PART := bench cli
test-bench:  ## those of measurements, results and reports, and of the command
test-browser: PART := browser
test-browser:  ## those of the page for browsers
test-fleet: PART := fleet
test-fleet:  ## those of fleets
test-dask: PART := clusters
test-dask:  ## those of clusters and dask arrays
test-core test-bench test-browser test-fleet test-dask:
	@$(SETUP) dev adapter
	$(PYTEST) $(SUITE) $(addprefix tests/,$(PART)) $(ARGS)

test-swiftshader:  ## the tests on SwiftShader's Vulkan, which Chromium brings; ARGS="tests/primitives/test_scan.py"
	@$(SETUP) dev adapter
	$(if $(SWIFTSHADER),$(ON_SWIFTSHADER) $(SUITE) $(or $(ARGS),$(SECOND)),@echo $(NO_SWIFTSHADER))

test-all:  ## all tests, whole grids, too; then the suite with checked shader modules, then with no optional feature
	@$(SETUP) dev adapter
	@$(if $(ALL),echo "No chromium here (Debian: apt-get install chromium): NOTHING IS COMPILED UNDER TINT, NO REPORT IS OPENED.")
	$(PYTEST) $(ALL) $(ARGS)
	GRIDWISE_SHADER_CHECKS=all $(PYTEST) $(SUITE) $(ARGS)
	GRIDWISE_TEST_REFUSE_FEATURES=1 $(PYTEST) $(SUITE) $(ARGS)
	$(if $(SWIFTSHADER),$(ON_SWIFTSHADER) $(SUITE) $(SECOND),@echo $(NO_SWIFTSHADER))
	$(if $(WITH_DAWN),$(ON_DAWN),@echo $(NO_DAWN))

# Where figures go; see docs/contribute/how-reliability-is-tested.md.
FIGURES := .make
validate:  ## the suite under Khronos' Vulkan validation layer (Debian: vulkan-validationlayers)
	@$(SETUP) dev adapter
	GRIDWISE_REQUIRE_GPU=1 $(BIN)/python scripts/validate.py -n auto $(SUITE) -q $(ARGS)

soak:  ## 10,000 random plans against numpy, in at most 30 minutes, then the API in any order; goes on where it was
	@$(SETUP) dev adapter
	@mkdir -p $(FIGURES)
	PYTHONPATH=tests $(BIN)/python -m helpers.random_plans --json $(FIGURES)/random_plans.json $(ARGS)
	SOAK_MACHINES=300 $(BIN)/python -m pytest -q -m slow tests/runtime/test_any_order.py

peers:  ## random calls of every public function against numpy, for 5 minutes; ARGS="--seed 3 --only sort,histogram"
	@$(SETUP) dev adapter
	@mkdir -p $(FIGURES)
	PYTHONPATH=tests $(BIN)/python -m helpers.peers --json $(FIGURES)/peers.json $(ARGS)

soak-gpu:  ## many scans, sorts and selections in a row, each compared item by item on the GPU, in at most 15 minutes
	@$(SETUP) run adapter
	$(BIN)/python benchmarks/soak.py scan $(ARGS)
	$(BIN)/python benchmarks/soak.py sort --seconds 300 $(ARGS)
	$(BIN)/python benchmarks/soak.py select --seconds 300 $(ARGS)

soak-dask:  ## 200 random kills of workers of a Dask cluster on this machine, results against numpy, in at most 20 minutes
	@$(SETUP) dev adapter
	@mkdir -p $(FIGURES)
	$(BIN)/python benchmarks/soak_dask.py --adapters 0,0 --json $(FIGURES)/soak_dask.json $(ARGS)

leaks:  ## whether memory and live objects level off, in at most 20 minutes
	@$(SETUP) dev adapter
	$(BIN)/python benchmarks/leaks.py $(ARGS)

fuzz:  ## atheris on the readers of results files, for 5 minutes
	@$(SETUP) tools adapter
	@mkdir -p $(FIGURES)
	cd $(FIGURES) && PYTHONPATH=../tests ../$(BIN)/python -m helpers.fuzz_results -max_total_time=300 $(ARGS)

array-api:  ## the array API standard's own tests on the functions that exist here, in a few minutes; clones them
	@$(SETUP) dev adapter
	sh scripts/run_array_api_tests.sh $(ARGS)

mutate:  ## stored mutants: those that these tests no longer notice are printed; goes on where it was
	@$(SETUP) tools adapter
	$(BIN)/python scripts/mutate.py full --killers 3 $(ARGS)

audit:  ## whether a vulnerability is known of a package that CI installs; says so where nobody can be asked
	@$(SETUP) tools
	$(BIN)/python scripts/audit.py $(BIN)/pip-audit

lock:  ## make requirements-ci.lock from constraints.txt
	@$(SETUP) tools
	$(BIN)/python scripts/make_lock.py $(BIN)/uv

lint:  ## size against budget.toml; ruff: faults and layout; import-linter: which way imports run; basedpyright: types (a minute)
	@$(SETUP) dev
	@$(BIN)/python scripts/size.py
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

format:  ## ruff: mend what it can
	@$(SETUP) dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dist:  ## wheel and source archive, in dist/
	@$(SETUP) dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation

release-check:  ## what must hold before a version is published: builds, archives, empty environments; fills dist/
	@$(SETUP) release adapter
	$(BIN)/python scripts/release_check.py $(ARGS)

compare-release:  ## whether this checkout is slower than the last release: both in turns, by gridwise ab
	@$(SETUP) run adapter
	$(BIN)/python scripts/compare_release.py $(ARGS)

clean:  ## remove what was built, and caches; .venv stays (rm -rf .venv for a fresh set-up)
	rm -rf dist build .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
