# make demo    trains a network on scanned digits          make check     linters, types, formatting
# make test    runs the tests                              make bench     measures small operations
# make docs    builds the documentation                    make sanitize  runs the tests under sanitizers
# make build   builds for development: edits of Python files need no rebuild, edits of C++ only an incremental one
#
# Every target makes .venv where needed. PYTHON chooses the interpreter: make test PYTHON=python3.12 VENV=.venv312 BUILD=build312
PYTHON ?= python3
VENV ?= .venv
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL = $(PIP) install $$($(BIN)/python tests/tools/requirements.py $(1))
CPP_FILES = $(shell find native tests -name '*.cpp' -o -name '*.h' -o -name '*.inc' -o -name '*.c' | sort)

.PHONY: all build demo test check format bench docs sanitize wheel clean
.DELETE_ON_ERROR:
all: build

$(VENV)/stamp-build: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call INSTALL,--build)
	echo "$(CURDIR)" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/rushlight-develop.pth"
	touch $@

$(VENV)/stamp-demo $(VENV)/stamp-dev: $(VENV)/stamp-%: $(VENV)/stamp-build
	$(call INSTALL,$*)
	touch $@

# The tests compare with PyTorch where it is installed. It is large, so it is taken only from a folder of wheels that pip
# is configured with (PIP_FIND_LINKS); without it the tests concerned skip and say so.
$(VENV)/stamp-test: $(VENV)/stamp-build
	$(call INSTALL,test demo)
	if $(PIP) install --no-index --no-deps torch==2.13.0 2>/dev/null; then $(PIP) install torch==2.13.0; \
	else echo "torch 2.13.0 is not at hand: the tests that compare with it will skip"; fi
	touch $@

$(BUILD)/build.ninja: $(VENV)/stamp-build
	$(BIN)/cmake -S . -B $(BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(BIN)/ninja" \
	  -DRUSHLIGHT_DEVELOP=ON -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python"

# Two builds in one folder would spoil each other, so the second waits.
LOCK = $(shell command -v flock >/dev/null 2>&1 && echo flock $(BUILD)/lock)
build: $(BUILD)/build.ninja
	$(LOCK) $(BIN)/cmake --build $(BUILD) --parallel $(JOBS)

demo: build $(VENV)/stamp-demo
	$(BIN)/python examples/digits.py $(ARGS)

test: build $(VENV)/stamp-test
	$(BIN)/python -m pytest $(ARGS)

check: build $(VENV)/stamp-dev $(VENV)/stamp-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)

format: $(VENV)/stamp-dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP_FILES)

bench: build $(VENV)/stamp-test
	$(BIN)/python benchmarks/overhead.py $(ARGS)

docs: build $(VENV)/stamp-dev
	$(BIN)/python docs/build.py --out $(BUILD)/docs

# The package is mirrored by links into the build folder, so that the sanitized libraries do not replace the usual ones.
SANITIZED = $(BUILD)/sanitize
sanitize: $(VENV)/stamp-test
	mkdir -p $(SANITIZED)/package/rushlight
	$(BIN)/cmake -S . -B $(SANITIZED) -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(BIN)/ninja" \
	  -DRUSHLIGHT_DEVELOP=ON -DRUSHLIGHT_DEVELOP_DIR="$(CURDIR)/$(SANITIZED)/package/rushlight" \
	  -DRUSHLIGHT_SANITIZE=address,undefined -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python"
	$(BIN)/cmake --build $(SANITIZED) --parallel $(JOBS)
	$(BIN)/python tests/tools/run_sanitized.py $(SANITIZED) -- $(ARGS)

wheel: $(VENV)/stamp-build
	$(PIP) wheel --no-deps --wheel-dir dist .

clean:
	rm -rf $(BUILD) dist .pytest_cache .mypy_cache .ruff_cache rushlight/lib rushlight/include rushlight/_C*.so rushlight/*.pyi
