# The door. The house itself is built by Meson (meson.build); this file only knows the way to it.
#
#   make            build build/pyrometer              make lint      format, clang-tidy, scripts
#   make demo       record an example, show its report make fuzz      long fuzzing runs (SECONDS=600)
#   make test       the quick tier                     make pythons   CPython 3.14 and 3.15, for tests
#   make test-long  everything                         make install   PREFIX=/usr/local, DESTDIR=
#   make bench      speed, against other profilers     make format    clang-format, in place
#   make wheel      dist/pyrometer-….whl, for pip      make clean     all but downloads
#
# `make demo` and `make test` install what is missing first (tools/setup.sh says what).

BUILD   := build
PREFIX  ?= /usr/local
SECONDS ?= 600
# The tests and benches run in a virtual environment of the system's Python.
PYTHON  ?= $(firstword $(wildcard /usr/bin/python3) python3)
VENV    := $(BUILD)/venv

.PHONY: all build demo test test-long bench lint format fuzz install wheel pythons clean setup-build setup-test setup-lint

all: build

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	@tools/setup.sh --check build
	@meson setup $(BUILD) --prefix=$(PREFIX) >/dev/null || { meson setup $(BUILD) --prefix=$(PREFIX); exit 1; }

setup-build setup-test setup-lint: setup-%:
	@tools/setup.sh $*

# Before the configuration, so that a fresh machine has Meson by then.
demo: setup-build
	@$(MAKE) --no-print-directory build
	$(BUILD)/pyrometer run -o $(BUILD)/demo.pyro --force -- $(PYTHON) examples/demo.py
	$(BUILD)/pyrometer report $(BUILD)/demo.pyro --limit 12

test: setup-test $(VENV)/ready
	@$(VENV)/bin/python tests/run_all.py

test-long: setup-test $(VENV)/ready
	@$(VENV)/bin/python tests/run_all.py --long

bench: setup-test $(VENV)/ready
	@$(MAKE) --no-print-directory build
	@$(VENV)/bin/python bench/run.py

lint: setup-lint $(VENV)/ready
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@tools/lint.sh $(if $(DEEP),--deep) $(BUILD)

format: setup-lint
	@clang-format -i $$(find src tests tools bench examples -name '*.[ch]')

fuzz: setup-test $(VENV)/ready
	@$(VENV)/bin/python tests/run_all.py --only fuzz --fuzz-seconds $(SECONDS)

install: build
	@meson configure $(BUILD) --prefix=$(PREFIX)
	meson install -C $(BUILD)

# From the tree as it is, committed or not; `python -m build` makes it from what is committed.
wheel: setup-build $(VENV)/ready
	@rm -f dist/pyrometer-*.whl
	$(VENV)/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/pyrometer-*.whl

pythons:
	@tools/pythons.sh $(BUILD)/pythons

$(VENV)/ready: tests/e2e/requirements.txt | setup-test
	@echo "setup: a virtual environment in $(VENV) with $$(paste -s -d ' ' $<)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(VENV)/bin/python -m pip install --quiet -r $<
	@touch $@

clean:
	@rm -rf build-*
	@if [ -d $(BUILD) ]; then find $(BUILD) -mindepth 1 -maxdepth 1 ! -name pythons ! -name '*venv*' -exec rm -rf {} +; fi
