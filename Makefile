# Every target sets up .venv by itself when requirements.lock has changed; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Its warnings are shown only if it fails; nothing is installed after what failed.
pip = $(PIP) --no-compile $(1) 2>$(VENV)/.pip.log || { cat $(VENV)/.pip.log; exit 1; }
EXTENSIONS := $(sort $(wildcard extensions/*/))
CODE := fairbench algorithms datasets papers benchmarks extensions
ARGS ?=
# One thread a process: parallelism is over processes, and results must not depend on it.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# Compiled modules are kept: without them every process compiles the project anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup licences system-packages run data test test-one test-all test-slow golden lint format bench faults coverage statements docs release report ui sync clean paper-fairlyuncertain \
	paper-uncertainty-matters paper-uncertainty-counts paper-few-labels paper-active-assessment paper-uncertainty-fairness papers-all

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 28

setup: $(STAMP) ## create or update the environment

$(STAMP): requirements-audit.lock requirements.lock requirements-torch.lock pyproject.toml $(EXTENSIONS:%=%pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: fairbench needs Python 3.11 or newer; set PYTHON=python3.11"; exit 1; }
	@echo "Setting up $(VENV): one minute or two, once ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# What builds comes first, so that the one package that has no wheel is built with it, and not with
	@# a version of setuptools that pip would fetch without a hash.
	@$(call pip,--no-deps --require-hashes --only-binary=:all: -r requirements-audit.lock)
	@$(call pip,--no-deps --require-hashes --no-build-isolation -r requirements.lock)
	@$(call pip,--only-binary=:all: -r requirements-torch.lock)
	@# Compiled on every core, as pip does not; packages' own tests are never imported. So is the
	@# project, which the workers of `make test` would compile each for itself.
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib $(CODE) || true
	@$(BIN)/python -m pip check >/dev/null && $(BIN)/python -c 'import hydra, mlflow, torch, xgboost' \
		|| { echo "error: the packages did not install; see the lines above"; exit 1; }
	@# Without the warning that an editable install is one.
	@PYTHONWARNINGS=ignore $(PIP) --no-deps --no-build-isolation --editable . $(addprefix --editable ,$(EXTENSIONS))
	@$(BIN)/python -m fairbench.tracking.database
	@touch $@
	@echo "Set up."

licences: $(STAMP) ## the licence of every package of the environment
	@$(BIN)/pip-licenses --order=license

system-packages: ## Slurm and Chromium, for the tests that drive them (apt-get, as root)
	@.ci/system_packages

run: $(STAMP) ## the main job on embedded data; any other with ARGS="dataset=adult"
	@$(BIN)/python -m fairbench run $(ARGS)

data: $(STAMP) ## find, download and verify the raw files of every data set
	@$(BIN)/python -m fairbench data check $(ARGS)

test: $(STAMP) ## what a person runs: every component and command once
	@$(BIN)/python -m pytest -m "not slow and not thorough" -n 2 --dist worksteal $(ARGS)

test-one: $(STAMP) ## what checks one component or metric: make test-one NAME=my_learner
	@test -n "$(NAME)" || { echo "error: name a component or metric: make test-one NAME=my_learner"; exit 2; }
	@$(BIN)/python -m pytest tests/conformance/test_combinations.py tests/conformance/test_configs.py \
		tests/datasets tests/metrics tests/evaluation -m "not slow" \
		-k "$(NAME) or test_configs or test_registry" $(ARGS)

test-all: lint ## what CI runs: lint, types and every test but the reproductions of papers
	@$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal $(ARGS)

test-slow: $(STAMP) ## long simulations, reproductions of published numbers, every printed command (two hours)
	@$(BIN)/python -m pytest -m slow -n 2 --dist worksteal --timeout 3600 $(ARGS)

golden: $(STAMP) ## this tree's answers beside the frozen commit's, to twelve digits (five minutes)
	@$(BIN)/python -m benchmarks.golden $(ARGS)

lint: $(STAMP) ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --num-workers 2

format: $(STAMP) ## rewrite the code in the house style
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .

bench: $(STAMP) ## speed, beside the reference implementation and the bare fits (ten minutes)
	@$(BIN)/python -m benchmarks $(ARGS)

# A paper: run what is missing, print the verdicts. quick=true for a small look; table=1 for one table.
paper = @$(BIN)/python -m fairbench paper $(1) run=true $(if $(quick),quick=true) $(addprefix table=,$(table)) $(ARGS)

paper-fairlyuncertain: $(STAMP) ## FairlyUncertain's tables (an hour; quick=true: a minute or two)
	$(call paper,fairlyuncertain)

paper-uncertainty-matters: $(STAMP) ## Uncertainty Matters' tables on German (an hour)
	$(call paper,uncertainty_matters)

paper-uncertainty-counts: $(STAMP) ## Uncertainty Matters: 10,000 cross-validations and all of its numbers anew (three hours)
	@$(BIN)/python -m papers.uncertainty_matters.readings packed cvs=10000 $(ARGS)
	@$(BIN)/python -m papers.uncertainty_matters.grid $(ARGS)
	@$(BIN)/python -m papers.uncertainty_matters.tables areas
	@$(BIN)/python -m papers.uncertainty_matters.tables one_partition
	@$(BIN)/python -m papers.uncertainty_matters.adult

paper-few-labels: $(STAMP) ## Can I Trust My Fairness Metric? (half an hour; quick=true: three minutes)
	$(call paper,few_labels)

paper-active-assessment: $(STAMP) ## Ji's thesis on choosing which rows to label (four minutes)
	$(call paper,active_assessment)

paper-uncertainty-fairness: $(STAMP) ## Uncertainty as a Fairness Measure (ten minutes)
	$(call paper,uncertainty_fairness)

papers-all: $(STAMP) ## every table, figure and study of all papers, recorded in docs/papers.md (a night; quick=true: 20 minutes)
	@$(BIN)/python -m fairbench paper all run=true $(if $(quick),quick=true,record=true) $(ARGS)

release: $(STAMP) ## what a release checks, the wheel: dist/, and its speed (five minutes)
	@.ci/release

faults: $(STAMP) ## a stranger's folder: kinds of names, files that unfold, odd records, texts (an hour)
	@for kind in names bombs records texts; do $(BIN)/python -m benchmarks.faults $$kind || exit 1; done

coverage: $(STAMP) ## how often every interval holds the truth: writes docs/coverage.md (half an hour)
	@$(BIN)/python -m benchmarks.coverage workers=2 write=docs/coverage.md $(ARGS)

statements: $(STAMP) ## how often a page says anything that is wrong: writes docs/statements.md (half an hour)
	@$(BIN)/python -m benchmarks.statements workers=2 write=docs/statements.md $(ARGS)

docs: $(STAMP) ## the documentation as a site: build/docs/index.html (a minute; no network)
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs $(ARGS)
	@echo "Built: build/docs/index.html"

report: $(STAMP) ## one page of what was run so far
	@$(BIN)/python -m fairbench report $(ARGS)

ui: $(STAMP) ## the MLflow UI on 127.0.0.1:5000, with links to the runs; another port: ARGS=port=5001
	@$(BIN)/python -m fairbench ui $(ARGS)

sync: $(STAMP) ## log runs that MLflow does not have yet
	@$(BIN)/python -m fairbench sync $(ARGS)

clean: ## remove the environment; results and data stay
	rm -rf $(VENV)
