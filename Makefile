# The project's tasks. Each sets up what it needs, says what it does and for how long, and can be run again.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help up down setup tools tools-all check capacity policies infra other lint types test test-all test-torch bench sbom docs clean

UV_VERSION := 0.13.9
UV := $(or $(shell command -v uv 2>/dev/null),.tools/uv/bin/uv)
RUN := .venv/bin
# A folder of Spot availability records for `make bench`; without it they are made up.
TRACES ?=
# Containers often say that Python shall not keep what it compiles; each run would then compile all tests anew.
export PYTHONDONTWRITEBYTECODE :=
# Tests that start neither a control plane nor an engine, and kill nothing over and over; they run side by side.
FAST := not lab and not engine and not kills
# The pure parts' own tests hold them, so only these are traced: tracing doubles the time of what else there is.
PURE := tests/capacity tests/policies

# tests(marks): the files of tests with one of these marks (A|B). To read all other files too takes each worker half a minute.
tests = $(shell grep -rlE 'mark\.($(1))\b' tests --include='test_*.py')

# step(what, command): says what is done, does it, says for how long.
define step
@printf '==> %s\n' '$(1)'; begun=$$SECONDS; $(2) && printf '==> %s: done in %s s\n' '$(1)' "$$((SECONDS - begun))"
endef

help: ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s $$'\t'

up: setup ## the local control plane with the local stack on it, through the policies
	$(call step,local control plane,$(RUN)/flexspot lab start)
	$(call step,local stack,$(RUN)/flexspot up -s local --yes)

down: setup ## stop it; nothing is left running
	$(call step,stopping the local control plane,$(RUN)/flexspot lab stop)

setup: .venv/.synced ## the Python environment in .venv

tools: setup ## the lab's programs, built from source unless the cache has them
	$(call step,tools,$(RUN)/flexspot lab tools)

tools-all: setup # those that some nightly tests need, too: Prometheus, JobSet, language hosts
	$(call step,all tools,$(RUN)/flexspot lab tools --all)

check: setup lint ## lint, types and the quick tests
	@$(SIDE_BY_SIDE) MARKED='$(MARKED) and not slow' other infra policies capacity types

# Four processes of tests and the type checker, two at a time. Sharing ten thousand tests of milliseconds among workers of xdist takes three times as long.
SIDE_BY_SIDE = $(MAKE) --no-print-directory -j 2
MARKED := $(FAST) and not nightly
PART = $(RUN)/pytest -q -n 0 --durations=5 -m '$(MARKED)' --hypothesis-profile quick

capacity policies: setup
	$(call step,tests of $@,$(PART) tests/$@)

infra: setup
	$(call step,tests of infra,$(PART) tests/infra)

other: setup
	$(call step,other tests,$(PART) $(addprefix --ignore=,$(PURE) tests/infra))

lint: setup
	$(call step,lint,$(RUN)/ruff check . && $(RUN)/ruff format --check .)

types: setup
	$(call step,types,$(RUN)/pyrefly check)

# started(tier): the tests that start processes, all or with ` and not nightly` those of every change. Each lab has a worker of its own.
define started
$(call step,tests that kill what they start,$(RUN)/pytest -q -n 2 -m 'kills$(1)' $(call tests,kills))
$(call step,tests on real engines,$(RUN)/pytest -q -n 2 --dist loadgroup --durations=15 -m 'engine and not lab$(1)' $(call tests,engine))
$(call step,tests on real control planes,$(RUN)/pytest -v -n $(2) --dist loadgroup --no-loadscope-reorder --durations=15 -m 'lab$(1)' $(call tests,lab))
endef

test: setup lint tools ## every behaviour, as contributors and CI run it on every change
	@$(SIDE_BY_SIDE) infra other policies capacity types
	$(call started, and not nightly,2)

test-all: setup lint types tools-all .iam/.synced ## all tests, and the runtime with the real PyTorch: nightly and before a release
	$(call step,fast tests of the pure parts,$(RUN)/pytest -q -n 2 --dist worksteal -m '$(FAST)' --cov --cov-report= $(PURE))
	$(call step,coverage of the pure parts,$(RUN)/coverage report --fail-under=95)
	$(call step,other fast tests,$(RUN)/pytest -q -n 2 --dist worksteal -m '$(FAST)' $(addprefix --ignore=,$(PURE)))
	$(call started,,4)
	$(MAKE) --no-print-directory test-torch KILLS=5

test-torch: .torch/.synced ## what PyTorch, Transformers and Lightning themselves do with the runtime (5 GB, an hour; KILLS=5 for less)
	$(call step,types of what needs torch,.torch/bin/pyrefly check --config tests/pytorch/pyrefly.toml)
	$(call step,real frameworks under kills,OMP_NUM_THREADS=1 .torch/bin/pytest -q -s -c tests/pytorch/pytest.ini tests/pytorch)

bench: setup tools-all ## how long things take, as ratios within one run
	$(call step,settings to plan,$(RUN)/python -m flexspot.capacity.bench)
	$(call step,lint,$(RUN)/python tests/bench_lint.py)
	$(call step,policy rules over a state,$(RUN)/python tests/bench_policies.py)
	$(call step,strategies over records of Spot,$(RUN)/python tests/bench_traces.py $(TRACES))
	$(call step,overhead of checkpoints,$(RUN)/python tests/bench_runtime.py)
	$(call step,a month of chargeback at three sizes,$(RUN)/python tests/bench_chargeback.py)
	$(call step,labs,$(RUN)/python tests/bench_lab.py)
	$(call step,CPU of the tests,$(RUN)/python tests/bench_tiers.py)

sbom: | $(UV) ## the bill of materials of the Python packages, in CycloneDX: dist/flexspot.cdx.json
	$(call step,bill of materials,$(UV) export --quiet --locked --no-dev --all-extras --format cyclonedx1.5 --output-file dist/flexspot.cdx.json)

docs: .docs/.synced ## the documentation as a site, in site/; open site/index.html
	$(call step,site,NO_MKDOCS_2_WARNING=1 .docs/bin/mkdocs build --strict)

clean: ## remove .venv, .torch, .docs, .iam, .tools and site (labs and the user's tool cache stay)
	rm -rf .venv .torch .docs .iam .tools site

.tools/uv/bin/uv:
	$(call step,uv $(UV_VERSION) from PyPI,python3 -c 'import sys; sys.exit("flexspot needs Python 3.11 or later; python3 is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)' && python3 -m venv .tools/uv && .tools/uv/bin/pip install --quiet uv==$(UV_VERSION))

.torch/.synced: tests/pytorch/requirements.txt | $(UV)
	$(call step,PyTorch environment,$(UV) venv --quiet --clear .torch && $(UV) pip sync --quiet --python .torch/bin/python tests/pytorch/requirements.txt && touch $@)

.iam/.synced: tests/iam/requirements.txt | $(UV)
	$(call step,environment of the judge of IAM,$(UV) venv --quiet --clear .iam && $(UV) pip sync --quiet --python .iam/bin/python tests/iam/requirements.txt && touch $@)

.docs/.synced: docs/site/requirements.txt | $(UV)
	$(call step,environment of the site,$(UV) venv --quiet --clear .docs && $(UV) pip sync --quiet --python .docs/bin/python docs/site/requirements.txt && touch $@)

# Python keeps what it compiles of a library at the first import; where an environment forbids that, each command would compile the SDKs anew.
COMPILE = $(RUN)/python -W ignore -c 'from flexspot.components.hosting.host import hosted; hosted()' && $(RUN)/python -m compileall -q $(ROOTS)
ROOTS := capacity components policies infra lab

.venv/.synced: pyproject.toml uv.lock runtime/pyproject.toml | $(UV)
	$(call step,Python environment,$(UV) sync --quiet --locked --all-packages && $(COMPILE) && touch $@)
	@command -v uv >/dev/null || printf '    plain `pulumi` runs uv, which is not on PATH: export PATH="%s:$$PATH"\n' "$(CURDIR)/.tools/uv/bin"
