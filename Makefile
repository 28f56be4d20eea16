# For users: `make demo` (a fit and a simulation, in demo/), `make test` (all quick tests) and `make docs` (the site,
# in build/docs). Every target sets up .venv from nothing first. CONTRIBUTING.md lists the others.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
READY_DEV := .venv/.ready-dev
READY_DOCS := .venv/.ready-docs
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
CORE := tests/gp tests/variational tests/data tests/simulation
# Compiling takes longer than running what the quick tests compile: XLA optimises little (half of the time).
XLA_QUICK := --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false
# A file's tests share a process: what one of them compiles is not compiled again for the next.
QUICK := XLA_FLAGS="$(XLA_QUICK)" $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"
CHECKED := --jaxtyping-packages=revarb,support.checked
COVERAGE := --cov=revarb
# Studies of `make results`, each with its number of seeds.
STUDIES := table1:5 table2:3 benchmarks:3 official:3 outliers:5 export:1 mpc:3 state_space:5 recognition:5 calibration:5 beyond:10 avatar:1

.PHONY: demo test test-core test-slow lint docs dist-check bench results clean

# The library alone, as a user installs it; tests and docs add what they need.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -e .
	touch $@

$(READY_DEV): $(READY)
	$(INSTALL) -e ".[dev]"
	touch $@

$(READY_DOCS): $(READY)
	$(INSTALL) -e ".[docs]"
	touch $@

demo: $(READY)
	$(BIN)/revarb demo --out demo

# Everything quick, with the line coverage of the library. The numerics first, with every annotation checked as they run.
test: test-core
	$(QUICK) $(CORE:%=--ignore=%) $(COVERAGE) --cov-append --cov-report=term:skip-covered

# For the edit loop: the numerics, in 80 s.
test-core: $(READY_DEV)
	$(QUICK) $(CHECKED) $(CORE) $(COVERAGE) --cov-report=

test-slow: $(READY_DEV)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow $(CHECKED) $(CORE)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow $(CORE:%=--ignore=%)

lint: $(READY_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

docs: $(READY_DOCS)
	$(BIN)/python docs/results_tables.py
	$(BIN)/python -m sphinx -W --keep-going -b html docs build/docs
	@echo "the site: build/docs/index.html"

# Wheel and source distribution, each installed into an empty environment, where it runs the demo.
dist-check: $(READY_DEV)
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	set -e; for file in dist/*.whl dist/*.tar.gz; do \
	  rm -rf build/dist-check; $(PYTHON) -m venv build/dist-check; \
	  build/dist-check/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $$file; \
	  (cd build/dist-check && bin/revarb demo --out demo); echo "$$file: installed, and its demo has run"; \
	done

bench: $(READY_DEV)
	$(BIN)/python -m bench --json results/bench.json

results: $(READY_DEV)
	set -e; for study in $(STUDIES); do \
	  $(BIN)/python -m studies $${study%:*} --seeds $${study#*:} --json results/$${study%:*}.json \
	    --page build/results/$${study%:*}.html --pictures build/results; \
	done
	$(BIN)/python -m bench --only observer refits --json results/bench_loop.json
	$(BIN)/revarb demo --out build/results/demo
	cp build/results/demo/scores.json results/demo.json
	$(BIN)/python docs/results_tables.py

# Everything that a target writes, but for results/*.json.
clean:
	rm -rf .venv demo build docs/auto_gallery docs/api/generated docs/sg_execution_times.rst
