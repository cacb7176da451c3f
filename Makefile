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

# The folders in tests/ of a PART; tests/project has the rest.
PART_core := backend display planning primitives profiling runtime storage timing tuning types
PART_bench := bench cli
PART_dask := clusters
FOLDERS = $(if $(PART),$(addprefix tests/,$(or $(PART_$(PART)),$(PART))))

# Another Vulkan driver, which every Chromium brings: subgroups of 4, and no progress between workgroups.
SWIFTSHADER := $(firstword $(wildcard $(addsuffix /vk_swiftshader_icd.json,/usr/lib/chromium /opt/google/chrome)))
ON_SWIFTSHADER := VK_DRIVER_FILES=$(SWIFTSHADER) $(PYTEST)
# What proves most there in half a minute: all primitives by their signatures, look-back, subgroups. Then the engine Dawn,
# where wgpudawn is installed: it takes SwiftShader, and refuses Mesa 22.3.
SECOND := $(addprefix tests/primitives/test_,every_primitive.py scan.py reduce.py) tests/backend/test_dawn.py
# All primitives on that engine, and what engines differ in.
WITH_DAWN = $(and $(SWIFTSHADER),$(wildcard .venv/lib/python*/site-packages/wgpudawn))
ON_DAWN := GRIDWISE_ENGINE=dawn $(ON_SWIFTSHADER) $(SUITE) tests/backend $(addprefix tests/runtime/test_,batch.py sequence.py event.py) \
	tests/primitives/test_every_primitive.py
NO_DAWN := "No wgpudawn or no Chromium here (pip install -e '.[dawn]'): NO PRIMITIVE RAN ON DAWN."
NO_SWIFTSHADER := "No Chromium here (Debian: apt-get install chromium), so no SwiftShader: NOTHING RAN ON A SECOND DRIVER."

# Where figures go; see docs/contribute/how-reliability-is-tested.md.
FIGURES := .make
IN_TESTS := PYTHONPATH=tests $(BIN)/python -m
define SOAK_plans
	$(IN_TESTS) helpers.random_plans --json $(FIGURES)/random_plans.json $(ARGS)
	SOAK_MACHINES=300 $(BIN)/python -m pytest -q -m slow tests/runtime/test_any_order.py
endef
define SOAK_gpu
	$(BIN)/python benchmarks/soak.py scan $(ARGS)
	$(BIN)/python benchmarks/soak.py sort --seconds 300 $(ARGS)
	$(BIN)/python benchmarks/soak.py select --seconds 300 $(ARGS)
endef
SOAK_dask = $(BIN)/python benchmarks/soak_dask.py --adapters 0,0 --json $(FIGURES)/soak_dask.json $(ARGS)
SOAK_leaks = $(BIN)/python benchmarks/leaks.py $(ARGS)
CHECK_validation = GRIDWISE_REQUIRE_GPU=1 $(BIN)/python scripts/validate.py -n auto $(SUITE) -q $(ARGS)
CHECK_swiftshader = $(if $(SWIFTSHADER),$(ON_SWIFTSHADER) $(SUITE) $(or $(ARGS),$(SECOND)),@echo $(NO_SWIFTSHADER))
CHECK_array-api = sh scripts/run_array_api_tests.sh $(ARGS)
CHECK_fuzz = cd $(FIGURES) && PYTHONPATH=../tests ../$(BIN)/python -m helpers.fuzz_results -max_total_time=300 $(ARGS)
CHECK_audit = scripts/audit.sh $(BIN)/pip-audit

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
.PHONY: help bench docs test test-full test-all soak peers mutate lock lint format dist release-check \
	check-validation check-swiftshader check-array-api check-fuzz check-audit

help:  ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1@/p; s/^\(check-\).*## /  make \1NAME@/p' Makefile | tr @ '\t' | expand -t 25
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
test-full:  ## with part of each costly grid; AFTER_TEST=1: not what `make test` runs; PART=core, bench, browser, fleet or dask
	@$(SETUP) dev adapter
	$(PYTEST) $(MARKS) $(FOLDERS) $(ARGS)
	$(if $(PART)$(ARGS),,$(if $(SWIFTSHADER),$(ON_SWIFTSHADER) $(MARKS) $(SECOND),@echo $(NO_SWIFTSHADER)))

test-all:  ## all tests, whole grids, too; then the suite with checked shader modules, then with no optional feature
	@$(SETUP) dev adapter
	@$(if $(ALL),echo "No chromium here (Debian: apt-get install chromium): NOTHING IS COMPILED UNDER TINT, NO REPORT IS OPENED.")
	$(PYTEST) $(ALL) $(ARGS)
	GRIDWISE_SHADER_CHECKS=all $(PYTEST) $(SUITE) $(ARGS)
	GRIDWISE_TEST_REFUSE_FEATURES=1 $(PYTEST) $(SUITE) $(ARGS)
	$(if $(SWIFTSHADER),$(ON_SWIFTSHADER) $(SUITE) $(SECOND),@echo $(NO_SWIFTSHADER))
	$(if $(WITH_DAWN),$(ON_DAWN),@echo $(NO_DAWN))

soak:  ## 10,000 random plans, then calls in any order, in 30 minutes; WHAT=gpu, dask or leaks: other long runs
	@$(SETUP) dev adapter
	@mkdir -p $(FIGURES)
	$(or $(SOAK_$(or $(WHAT),plans)),$(error WHAT is plans, gpu, dask or leaks))

peers:  ## random calls of every public function against numpy, for 5 minutes; ARGS="--seed 3 --only sort,histogram"
	@$(SETUP) dev adapter
	@mkdir -p $(FIGURES)
	$(IN_TESTS) helpers.peers --json $(FIGURES)/peers.json $(ARGS)

check-validation check-swiftshader check-array-api check-fuzz check-audit: check-%:  ## validation (by Khronos' layer), swiftshader, array-api, fuzz, audit
	@$(SETUP) $(if $(filter fuzz audit,$*),tools,dev) adapter
	@mkdir -p $(FIGURES)
	$(CHECK_$*)

mutate:  ## stored mutants: those that these tests no longer notice are printed; goes on where it was
	@$(SETUP) tools adapter
	$(BIN)/python scripts/mutate.py full --killers 3 $(ARGS)

lock:  ## make requirements-ci.lock from constraints.txt
	@$(SETUP) tools
	$(BIN)/uv pip compile pyproject.toml --group lock --extra bench --extra nvidia -c constraints.txt --universal \
		--python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url --custom-compile-command "make lock" \
		-q -o requirements-ci.lock

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
