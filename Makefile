# SPDX-License-Identifier: Apache-2.0
# Weft. Thin: every target calls one program, and every variable on make's command line is
# a flag of that program: `make run LEAVES=4 WORKLOAD=websearch` is `weft run --leaves 4
# --workload websearch`. The program itself refuses a flag that it does not have. Variables
# of the environment are no flags.

WEFT := target/release/weft

# What was given on make's command line.
GIVEN := $(strip $(foreach name,$(sort $(.VARIABLES)),$(if $(filter command,$(origin $(name))),$(name))))
# $(call given,RUN) is the value of a variable, if it was given.
given = $(if $(filter $(1),$(GIVEN)),$(value $(1)))

# Flags without a value: JSON=1 is --json.
BOOLEAN := CHECK FULL HISTORY JSON NOTE OTHERS_MAY_DIFFER PACKETS PLAN QUICK
# Variables that are no flag of any target: for the tools beneath. A target adds to
# ARGUMENTS those that it uses otherwise.
ARGUMENTS := ARGS WEFT% SCENARIOS KERNEL_% CARGO% RUST% PYTHON% PATH HOME SHELL TMPDIR

# $(call quote,it's) is the same as one word of the shell.
quote = '$(subst ','\'',$(1))'
flag = --$(subst _,-,$(shell echo $(call quote,$(1)) | tr A-Z a-z)) $(if $(filter $(1),$(BOOLEAN)),,$(call quote,$(value $(1))))
# The flags that were given, for the recipe of a target, and all of ARGS as it is.
FLAGS = $(foreach name,$(filter-out $(ARGUMENTS),$(GIVEN)),$(if $(value $(name)),$(call flag,$(name)))) $(call given,ARGS)

# The experiments of the papers.
SCENARIOS := .venv/bin/python -m weft_scenarios

.DEFAULT_GOAL := help
.PHONY: help machine deps ready build kernel p4 topo down status shell workload run compare patterns explain \
    paths classes telemetry flows evidence experiment report scenario scenarios figures speed results reproduce selftests fuzz test test-fresh lint fmt clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "Variables are flags: \`make run HOST_RATE=10gbit QUICK=1\` gives --host-rate 10gbit --quick."
	@echo "The program that a target calls explains them: $(WEFT) run --help"

topo: machine ready ## boot a fabric and leave it running
	@$(WEFT) topo up $(FLAGS)

workload: $(WEFT) ## run flows in the running lab
	@$(WEFT) workload $(FLAGS)

patterns paths classes telemetry flows: %: $(WEFT)
	@$(WEFT) $@ $(FLAGS)
flows: BOOLEAN += SUBFLOWS
patterns: ## what the controller has measured and pushed [HISTORY=1: and before]
paths: ## RTT and queue of every path
classes: ## thresholds between classes of what is left to send, and why (PRIORITIES)
telemetry: ## the samples of the switches, live
flows: ## the connections in the hosts' kernels and the patterns they use

explain: ARGUMENTS += SRC DST
explain: $(WEFT) ## why the pattern between two hosts is what it is: SRC=h1_1 DST=h2_1
	@$(WEFT) explain $(FLAGS) $(foreach name,SRC DST,$(if $(call given,$(name)),$(call quote,$(call given,$(name)))))

shell: $(WEFT) ## a Mininet prompt in the running lab
	@$(WEFT) shell $(FLAGS)

status: $(WEFT) ## what the running lab is doing
	@$(WEFT) topo status $(FLAGS)

down: $(WEFT) ## stop the running lab
	@$(WEFT) topo down $(FLAGS)

run: machine ready ## boot a lab of its own, run flows, stop: deterministic
	@$(WEFT) run $(FLAGS)

compare: machine ready ## the same flows under several schedulers
	@$(WEFT) compare $(FLAGS)

evidence: ARGUMENTS += RUN
evidence: $(WEFT) ## what happened to every packet of a captured run: RUN=runs/x
	@$(if $(call given,RUN),,echo 'give RUN=runs/x' >&2; exit 2)
	@$(WEFT) evidence $(FLAGS) $(call quote,$(call given,RUN))

experiment: ARGUMENTS += FILE
experiment: $(if $(call given,PLAN)$(call given,CLUSTER),,machine) ready ## runs that a file describes, planned and resumed: FILE=... [PLAN=1]
	@$(if $(call given,FILE),,echo 'give FILE=workloads/scenarios/x.toml, or one of your own' >&2; exit 2)
	@$(WEFT) experiment $(FLAGS) $(call quote,$(call given,FILE))

report: ARGUMENTS += DIR
report: deps $(WEFT) ## one page of an experiment's results: DIR=runs/scenarios/rb-fig13
	@$(if $(call given,DIR),,echo 'give DIR=runs/scenarios/x' >&2; exit 2)
	@$(WEFT) report $(FLAGS) $(call quote,$(call given,DIR))

scenario: ARGUMENTS += SCENARIO
scenario: deps $(if $(call given,SCENARIO),machine ready) ## an experiment of a paper: SCENARIO=rb-fig13 [QUICK=1]
	@$(if $(call given,SCENARIO),,$(SCENARIOS) list; echo 'give SCENARIO=NAME' >&2; exit 2)
	@$(SCENARIOS) run $(FLAGS) $(call given,SCENARIO)

scenarios: machine ready ## all of them, 30 to 45 minutes; QUICK=1: at most 5
	@$(SCENARIOS) run $(FLAGS)

figures: machine ready ## every figure with a report, in 2.5 hours; FULL=1: at the papers' scale
	@$(SCENARIOS) figures $(FLAGS)

speed: ARGUMENTS += WHAT
speed: BOOLEAN := $(filter-out JSON,$(BOOLEAN))
speed: machine ready ## what runs take, against what they may: WHAT="websearch packet" REPEATS
	@.venv/bin/python tests/speed $(FLAGS) $(call given,WHAT)

results: deps ## write workloads/RESULTS.md and its pages from the last `make scenarios`
	@$(SCENARIOS) results $(FLAGS)

reproduce: ARGUMENTS += SCENARIO
reproduce: deps $(if $(call given,SCENARIO),machine ready) ## repeat runs of a page of results, compare all bytes: SCENARIO=rb-fig13 [RUNS=10]
	@$(if $(call given,SCENARIO),,echo 'give SCENARIO=NAME, one of workloads/results' >&2; exit 2)
	@$(SCENARIOS) reproduce $(FLAGS) $(call given,SCENARIO)

machine: # before anything takes minutes: can a lab run here?
	@ci/check-machine lab

deps: ## install what is missing (Debian and Python packages)
	@ci/install

# The first time both take minutes, and parts of each keep only one core busy.
ready: deps # programs and kernel, side by side
	@$(MAKE) --no-print-directory -j2 build kernel

build: deps ## build the programs
	@MAKEFLAGS= cargo build --release --locked --workspace # else it would share make's two jobs
	@.venv/bin/python -m compileall -q topology/weft_topology # the lab reads, it does not write

kernel: deps ## build the lab kernel and its module, once (KERNEL_SRC=dir for another tree)
	@python3 topology/lab/kernel/build.py

p4: ## compile the P4 programs (needs p4c)
	@p4/compile p4 examples/p4-stage

selftests: machine ready ## the kernel's own MPTCP tests under each scheduler, against default's
	@tests/selftests/run $(FLAGS)

fuzz: machine ready ## broken netlink messages against the kernel module in use
	@tests/fuzz $(FLAGS)

test: ## everything: install, build, lint, unit tests, the closed loop in the lab
	@ci/test

test-fresh: ## what README says, on bare Debian 13 and 12 systems: [DEBIAN=13] [UNTIL="make down"]
	@tests/fresh $(FLAGS)

lint: deps ## formatters and linters of each language
	@ci/test lint

fmt: deps ## format everything
	@cargo fmt --all
	@.venv/bin/ruff format -q .
	@.venv/bin/ruff check -q --fix-only .

clean: ## remove what was built here (the cached lab kernel stays)
	@cargo clean -q
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache

$(WEFT):
	@echo "no $@ yet: run \`make topo\` or \`make build\` first" >&2; exit 2
