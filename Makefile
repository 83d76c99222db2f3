# `make demo` and `make test` set up all they need in .venv; PYTHON picks the interpreter,
# an optimised one by default if there is any.
PYTHON ?= $(shell .ci/choose-python $(VENV))
VENV := .venv
# tests at the same time: whole runs wait for processes and servers; units only compute, and each
# process collects all of them
JOBS ?= $(shell echo $$((2 * $$(nproc))))
UNIT_JOBS ?= $(shell nproc)
BIN := $(VENV)/bin
# where to append what each test takes, such as build/costs.csv
COSTS ?=
PYTEST = $(BIN)/pytest $(if $(COSTS),--costs=$(COSTS))
SIDE_BY_SIDE = --numprocesses $(JOBS) --no-loadscope-reorder
# what does not differ from Python to Python, or is slow where lines are counted
COMMON = not timing and not lab and not browser and not faults
# tests that start no whole run
UNITS = tests/unit tests/edges tests/property tests/contract
# what `make test`, `make test-all` and CI run, and a second try for what failed by chance
SUITE = PYTHONPATH=tests $(BIN)/python -m suites $(if $(COSTS),--costs=$(COSTS))
# the peers of `make bench` live apart: what they need must not decide what osbench gets
PEERS := .venv-bench
# so do the tests of other projects
CONFORMANCE := .venv-conformance
# what a user's machine has and nothing else, and the tools that look at it
RUNTIME := .venv-runtime
LOWEST := .venv-lowest
AUDIT := .venv-audit
ROWS ?= all
ROUNDS ?= 3
BLOCK ?= 5
OUTPUT ?= build/bench.json
# of `make bench ROWS=scale`, such as POINTS="300x10000 500x10000"
POINTS ?=
# of `make soak`: its length, iterations a second of each of its two workloads, and how many times as
# often as usual the clocks of the protocol tick
HOURS ?= 2
RATE ?= 50
SPEED ?= 1
# of the first round of `make chaos`; a new one without it
SEED ?=
# plays all rounds of `make chaos`, whatever fails
GO_ON ?=
# --no-tag to try `make release` out
RELEASE ?=
# cases of `make truth`, such as CASES="overload stopped"; all by default
CASES ?=
# variables of the demo, such as OS_BENCHMARK__MAX_LAG_S=60 on a machine that is busy otherwise
DEMO_ENVIRONMENT ?=
# services and options of `make lab`, such as LAB="keystone zaqar --profiler off"
LAB ?=
# What runs here starts hundreds of short Python processes: each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

LAB_COMMAND = PYTHONPATH=tests:tests/lab $(BIN)/python -m services

# the charts of the HTML report, built from npm's packages
ASSETS = coordinator/report/html/assets
ASSET_SOURCES = package.json package-lock.json build.mjs entry.js
BUILT_ASSETS = echarts.js LICENSE NOTICE
ASSET_SUMS = built.sha256

# schedules of `make world`, the seed of the first one, a rule to leave out, or `each`, whether to print
# all that happens in the first, and a page to write
SEEDS ?= 1000
FIRST ?= 1
WITHOUT ?=
TRACE ?=
TABLE ?=
# the product under virtual time: ports are filled before anything else imports osbench
WORLD = PYTHONPATH=$(CURDIR)/src:$(CURDIR)/tests
WORLD_TESTS = $(WORLD) $(PYTEST) -p world.ports tests/world

.PHONY: help setup demo test test-all test-rest units timing costs coverage coverage-units lint types check clean bench docs
.PHONY: test-python repeats release lab lab-stop conformance chaos world world-tests assets assets-build assets-check
.PHONY: otlp-sdks zuul-trial upgrade-trial archive-s3 archive-swift statistics pictures containers hosts soak truth growth-truth what-if audit
.PHONY: stream-truth overload-truth user-search-truth group-truth
.PHONY: sbom lowest words mutants house elastic far crowd world-day

help:
	@echo "make setup   installs all that the other targets need into .venv"
	@echo "make demo    a short profiled run against a small web service, in local mode"
	@echo "make test    units, a simulated world, and a whole run of each kind: under eight minutes"
	@echo "make test-all  all tests that this machine can run: half an hour"
	@echo "make units   tests that start no whole run; make coverage-units says which lines they do not run"
	@echo "make timing  the tests that compare real time: for an idle machine"
	@echo "make costs   what each file of tests took: make test-all costs COSTS=build/costs.csv"
	@echo "make check   lint, types, import rules and words"
	@echo "make docs    builds the pages of docs/ into site/"
	@echo "make assets  builds the charts of the HTML report again (needs Node.js and npm)"
	@echo "make pictures makes docs/sample-report.html and docs/pictures again, from a real run"
	@echo "make bench   osbench beside its peers, for some minutes (docs/bench.md)"
	@echo "make soak    a run of HOURS (2) after which no process or key has grown (docs/scaling.md)"
	@echo "make elastic a staircase of load on workers that start and end by its metrics (docs/scaling.md)"
	@echo "make chaos   runs under random faults, judged by the server under load (docs/chaos.md)"
	@echo "make growth-truth  plants laws of growth in a service, and counts how often each is named"
	@echo "make stream-truth  times of streamed events beside a client that only logs them"
	@echo "make group-truth  plants slow steps in groups of steps at once, and counts how they are named"
	@echo "make overload-truth  overloads planted services in virtual time, and counts the right verdicts"
	@echo "make user-search-truth  searches the users of drawn services in virtual time, and counts the right intervals"
	@echo "make truth   plants known causes and values, and compares them with what is printed (docs/truth.md)"
	@echo "make what-if predictions of trace explain --what-if beside runs with faster calls"
	@echo "make containers  deploy/compose.yaml in a container engine (BUILD=options of the build)"
	@echo "make hosts   runs over network namespaces with delay, loss, cuts and wrong clocks (root; docs/operations.md)"
	@echo "make far     workers and coordinator at up to 100 ms from Redis (root; docs/scaling.md)"
	@echo "make crowd   64 worker processes on eight hosts (root; docs/scaling.md)"
	@echo "make statistics  how often intervals and verdicts are right (docs/comparing.md)"
	@echo "make house   counts the lines of the core, of each edge, and of all that follows one run"
	@echo "make mutants COUNT random changes of the product for each SEED, and which tests find them"
	@echo "make world   plays SEEDS random schedules of the product in a simulated world (docs/world.md)"
	@echo "make world-day  a run of HOURS (24) of virtual time, with its memory (docs/scaling.md)"
	@echo "make repeats kills workers 20 times and whole runs 5 times"
	@echo "make conformance  the tests of keystoneauth1 and requests over our session (docs/adr/0021)"
	@echo "make otlp-sdks  services with OpenTelemetry's SDKs send their spans to runs (needs npm)"
	@echo "make zuul-trial  the job of deploy/zuul for TRIALS changes with and without a regression"
	@echo "make upgrade-trial  TRIALS upgrades of the lab's Keystone and Glance, judged by a gate"
	@echo "make archive-s3  archives of runs, and scenarios of S3, in a server with its protocol (moto)"
	@echo "make archive-swift  archives of runs in a Swift, with a Keystone (docs/lab.md)"
	@echo "make lab     starts real OpenStack services here (docs/lab.md); make lab-stop stops them"
	@echo "make lowest  the demo with the lowest versions that setup.cfg allows"
	@echo "make audit   looks for known vulnerabilities in what osbench depends on (asks pypi.org)"
	@echo "make sbom    writes what osbench depends on, with licenses, to build/sbom.cdx.json (CycloneDX)"
	@echo "make release checks, builds, tries and tags what is committed (docs/maintaining.md)"
	@echo "make clean   removes what the other targets made"

$(VENV)/.ready: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("osbench needs Python 3.11 or newer; try make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@$(PYTHON) .ci/environment.py $(VENV) -e '.[dev,rally]'
	@touch $@

setup: $(VENV)/.ready
	@echo "next: make demo shows a run, make test runs tests for 8 minutes;"
	@echo "      . $(BIN)/activate puts osbench-coord and osbench-worker on your PATH"

demo: $(VENV)/.ready
	$(DEMO_ENVIRONMENT) $(BIN)/python samples/demo.py

test test-all: $(VENV)/.ready
	@mkdir -p build && rm -f build/flaky.txt
	$(SUITE) $(if $(filter test-all,$@),all --jobs $(JOBS),test --jobs $(UNIT_JOBS))

# what `make test` leaves out of `make test-all`
test-rest: $(VENV)/.ready
	@mkdir -p build
	$(SUITE) rest --jobs $(JOBS)

# what may differ from Python to Python
test-python: $(VENV)/.ready
	@mkdir -p build
	$(SUITE) python --jobs $(JOBS)

units: $(VENV)/.ready
	$(PYTEST) $(UNITS) $(SIDE_BY_SIDE) -m "$(COMMON) and not dear"

timing: $(VENV)/.ready
	$(PYTEST) -m timing

# a row a file, dearest first: CPU of its tests and of what they started, and time, in seconds
costs:
	@awk -F, '{ split($$4, name, "::"); file = name[1]; tests[file]++; time[file] += $$1; \
		cpu[file] += $$2 + $$3; all_time += $$1; all_cpu += $$2 + $$3 } \
		END { printf "%8s %8s %6s\n", "CPU s", "time s", "tests"; \
		for (file in tests) printf "%8.1f %8.1f %6d %s\n", \
			cpu[file], time[file], tests[file], file | "sort -rn"; \
		close("sort -rn"); printf "%8.1f %8.1f %6d all\n", all_cpu, all_time, NR }' $(COSTS)

# in all processes; the way in which older Pythons measure triples the time
coverage-units: TESTED = $(UNITS)
coverage-units: FLOOR = --fail-under=88
coverage coverage-units: $(VENV)/.ready
	@$(BIN)/python -c 'import sys; sys.exit("coverage needs Python 3.12 or newer; try make coverage PYTHON=python3.14 VENV=.venv-3.14") if sys.version_info < (3, 12) else None'
	rm -rf build/coverage
	COVERAGE_CORE=sysmon $(BIN)/coverage run -m pytest $(TESTED) $(SIDE_BY_SIDE) -m "$(COMMON)"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report $(FLOOR)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy
	$(BIN)/lint-imports

# wordings that readers did not understand, in docstrings, comments, messages and documents
words: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m words

house:
	@$(PYTHON) docs/house.py

check: lint types words

docs: $(VENV)/.ready
	@mkdir -p build
	$(BIN)/python -m osbench.common.config.config > build/osbench.conf
	$(BIN)/python -m osbench.coordinator.front.cli.reference > build/task-reference.md
	mv build/osbench.conf etc/osbench.conf
	mv build/task-reference.md docs/task-reference.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# in a folder of its own: node_modules is no part of the package
assets-build:
	rm -rf build/assets
	mkdir -p build/assets
	cp $(addprefix $(ASSETS)/,$(ASSET_SOURCES)) build/assets/
	cd build/assets && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

assets: assets-build
	cp $(addprefix build/assets/,$(BUILT_ASSETS)) $(ASSETS)/
	cd $(ASSETS) && sha256sum $(ASSET_SOURCES) $(BUILT_ASSETS) > $(ASSET_SUMS)

# the sums say what was built from what: where they hold there is nothing to build again
assets-check:
	@cd $(ASSETS) && sha256sum --check --quiet $(ASSET_SUMS) || \
		{ echo "charts are not what their sources build: run make assets, and commit $(ASSETS)"; exit 1; }

pictures: $(VENV)/.ready
	$(BIN)/python samples/screenshots.py
	$(BIN)/python samples/live_picture.py
	$(BIN)/python samples/terminal_picture.py
	$(BIN)/python docs/code_map.py > docs/pictures/code-map.svg

$(RUNTIME)/.ready: setup.cfg
	@$(PYTHON) .ci/environment.py $(RUNTIME) .
	@touch $@

$(AUDIT)/.ready: Makefile
	@$(PYTHON) .ci/environment.py $(AUDIT) 'cyclonedx-bom >= 7' 'pip-audit >= 2.7'
	@touch $@

# pip and uv are in the environment and not of osbench
# pip, where it installs in place of uv, does not know the setting
lowest:
	UV_RESOLUTION=lowest-direct $(PYTHON) .ci/environment.py $(LOWEST) .
	$(LOWEST)/bin/python samples/demo.py

audit: $(RUNTIME)/.ready $(AUDIT)/.ready
	@mkdir -p build
	$(RUNTIME)/bin/python -m pip freeze --exclude osbench > build/dependencies.txt
	$(AUDIT)/bin/pip-audit --disable-pip --no-deps --strict --progress-spinner off \
		-r build/dependencies.txt

sbom: $(RUNTIME)/.ready $(AUDIT)/.ready
	@mkdir -p build
	$(AUDIT)/bin/cyclonedx-py environment --output-reproducible \
		--output-file build/sbom.cdx.json $(RUNTIME)/bin/python

$(CONFORMANCE)/.ready: tests/conformance/requirements.txt setup.cfg
	@$(PYTHON) .ci/environment.py $(CONFORMANCE) -r tests/conformance/requirements.txt
	@touch $@

conformance: $(CONFORMANCE)/.ready
	PYTHONPATH=tests $(CONFORMANCE)/bin/python -m conformance build/conformance

$(PEERS)/.ready: tests/bench/requirements.txt
	@$(PYTHON) .ci/environment.py $(PEERS) -r tests/bench/requirements.txt
	@touch $@

bench: timing $(PEERS)/.ready
	@mkdir -p $(dir $(OUTPUT))
	OSBENCH_SCALE_POINTS="$(POINTS)" PYTHONPATH=tests:tests/lab $(BIN)/python -m bench --peers $(PEERS)/bin/python --rows $(ROWS) \
		--rounds $(ROUNDS) --block $(BLOCK) --output $(OUTPUT)

# with SPEED=4 half an hour has as many heartbeats, polls and shipments as two hours have otherwise
soak: $(VENV)/.ready
	PYTHONPATH=tests:tests/lab nice $(BIN)/python -m soak --hours $(HOURS) --rate $(RATE) \
		--speed $(SPEED) --output build/soak

elastic: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m elastic

# a round takes about half a minute and, mostly, waits
chaos: ROUNDS = 20
chaos: JOBS = 1
chaos: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m chaos --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED)) \
		--jobs $(JOBS) $(if $(GO_ON),--go-on)

# on an idle machine, about fifteen minutes
truth: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m truth $(CASES)

# about ten minutes; laws are named from spans, so that the machine may be busy
growth-truth: ROUNDS = 20
growth-truth: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m truth.growth --rounds $(ROUNDS)

# on an idle machine, a minute
stream-truth: EVENTS = 2000
stream-truth: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m truth.streams --events $(EVENTS)

# a minute of one core; the machine may be busy
group-truth: ROUNDS = 100
group-truth: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m truth.groups --rounds $(ROUNDS)

# a few minutes of one core, in virtual time, so that the machine may be busy
overload-truth: ROUNDS = 20
overload-truth: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m truth.overloads --rounds $(ROUNDS)

# a few minutes of one core, in virtual time, so that the machine may be busy
user-search-truth: ROUNDS = 400
user-search-truth: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m truth.user_searches --rounds $(ROUNDS)

# on an idle machine, about ten minutes
what-if: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m what_if $(SHAPES)

# deploy/compose.yaml in docker, or podman with podman-compose; BUILD: options of the build
containers: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m helpers.container_walk $(if $(BUILD),--build="$(BUILD)")

hosts: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m helpers.net_hosts --repeat $(or $(REPEAT),1)

far: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m helpers.net_hosts.far

crowd: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m helpers.net_hosts.crowd

# killed workers and runs, at many more moments than in `make test-all`
repeats: $(VENV)/.ready
	OSBENCH_LAB=small OSBENCH_LOSS_REPETITIONS=20 OSBENCH_KILL_REPETITIONS=5 $(BIN)/pytest \
		tests/functional/test_worker_loss.py tests/lab/test_killed_run.py

statistics: $(VENV)/.ready
	PYTHONPATH=tests:tests/lab $(BIN)/python -m bench.evidence

# mutants of HEAD, COUNT of each seed, such as SEED="101 202"; ALL=1 goes on to `make test-all`, and
# FROM=build/mutants.json with mutants of an earlier call
mutants: COUNT ?= 20
mutants: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m mutants $(SEED) --count $(COUNT) \
		$(if $(ALL),--until test-all) $(if $(FROM),--from $(FROM))

world: JOBS = $(shell nproc)
world: $(VENV)/.ready
	$(WORLD) $(BIN)/python -m world --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS) \
		$(if $(WITHOUT),--without $(WITHOUT)) $(if $(TRACE),--trace) $(if $(TABLE),--table $(TABLE))

# a run of HOURS virtual hours
world-day: HOURS = 24
world-day: $(VENV)/.ready
	$(WORLD) $(BIN)/python -m world.day --hours $(HOURS)

world-tests: $(VENV)/.ready
	$(WORLD_TESTS) $(SIDE_BY_SIDE)

release: $(VENV)/.ready
	@$(PYTHON) .ci/environment.py $(VENV) -e '.[release]'
	$(BIN)/python .ci/release.py $(RELEASE)

# services with OpenTelemetry's own SDKs, which send their spans to runs
otlp-sdks: $(VENV)/.ready
	$(BIN)/python -m venv build/otlp-sdks/venv
	build/otlp-sdks/venv/bin/pip install -q -r tests/otlp_sdks/requirements.txt
	cp tests/otlp_sdks/package.json build/otlp-sdks/
	npm install --prefix build/otlp-sdks --no-audit --no-fund
	$(BIN)/python -m pytest -rP tests/functional/test_otlp_sdks.py

# the job of deploy/zuul for changes with and without a regression, about half an hour; and its lint
zuul-trial: $(VENV)/.ready
	$(PYTHON) -m venv build/zuul/venv
	build/zuul/venv/bin/pip install -q -r tests/zuul_trial/requirements.txt
	PATH="$(CURDIR)/build/zuul/venv/bin:$$PATH" ansible-lint --offline --profile production -c deploy/zuul/ansible-lint.yaml deploy/zuul/*.yaml deploy/zuul/tasks/*.yaml
	PYTHONPATH=tests $(BIN)/python -m zuul_trial --tools build/zuul/venv --trials $(or $(TRIALS),20)

# upgrades of the lab's Keystone and Glance, equal and slower; two to four minutes each on a free machine
upgrade-trial: $(VENV)/.ready
	PYTHONPATH=tests:tests/lab $(BIN)/python -m upgrade_trial play --trials $(or $(TRIALS),20) --upgrades $(or $(UPGRADES),2)

# what only archives in S3 need, apart from $(VENV)
archive-s3:
	@mkdir -p build
	@$(PYTHON) .ci/environment.py build/archive-s3 -e '.[dev,archive]' 'moto[server] >= 5'
	build/archive-s3/bin/python -m pytest -rP tests/functional/test_archive_s3.py tests/functional/test_s3_moto.py

archive-swift: $(VENV)/.ready
	OSBENCH_LAB=all $(PYTEST) tests/lab/test_swift_archive.py

lab: $(VENV)/.ready
	$(LAB_COMMAND) start $(LAB)

lab-stop:
	@[ ! -d build/lab ] || $(LAB_COMMAND) stop

clean: lab-stop
	rm -rf $(VENV) .venv-3.* $(PEERS) $(RUNTIME) $(LOWEST) $(AUDIT) build dist site *.egg-info src/*.egg-info .mypy_cache .pytest_cache .ruff_cache
