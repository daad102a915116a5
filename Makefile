# Weft. Thin: every target calls one program, and every variable is its flag of that
# name: `make run LEAVES=4 WORKLOAD=websearch` is `weft run --leaves 4 --workload
# websearch`. What is not given is left to the program's own default (`make help`).

WEFT := target/release/weft

# Of the fabric: weft topo up, run, compare.
FABRIC := TOPOLOGY K LINKS PROFILE LEAVES SPINES HOSTS OVERSUBSCRIPTION RATE HOST_RATE \
    SENDER_RATE DELAY QUEUE ECN SPINE_DELAY SPINE_RATE SPINE_QUEUE SPINE_LOSS CHANGE NIC INT \
    HOST_JITTER SUBFLOWS INITIAL_WINDOW ROUTING IP PATTERN_TTL PATTERN_INPUT GRAY_LOSS \
    CONTROLLERS CONTROL_DELAY PATH_MANAGER MEMORY
# Of the traffic: weft workload, run, compare.
TRAFFIC := WORKLOAD LOAD FLOWS PRECISION SCALE CONNECTIONS PATTERN SENDERS INTERARRIVAL JITTER \
    BYTES SHORT_BYTES LONG_SHARE DURATION OBJECTS PARALLEL FAN_OUT DEADLINE FLOW_LIST \
    SEND_BUFFER RECEIVE_BUFFER PROTOCOL CONGESTION SCHEDULER_OPTIONS STALL_TIMEOUT SEED OUT \
    BACKGROUND_TCP BACKGROUND_UDP UDP_RATE UDP_ON UDP_OFF SAMPLE

# What to capture, for evidence: weft run, compare.
CAPTURES := CAPTURE ARRIVALS

# $(call flags,LEAVES HOST_RATE) is `--leaves 4 --host-rate 10gbit` for those that are set.
flag = --$(subst _,-,$(shell echo $(1) | tr A-Z a-z)) '$($(1))'
flags = $(foreach name,$(1),$(if $($(name)),$(call flag,$(name))))

# The experiments of the papers.
SCENARIOS := .venv/bin/python -m weft_scenarios

.DEFAULT_GOAL := help
.PHONY: help machine deps build kernel p4 topo down status shell workload run compare patterns explain \
    paths telemetry flows evidence experiment report scenario scenarios figures speed results selftests fuzz test test-fresh lint fmt clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "Variables are flags of target/release/weft, whose --help explains them:"
	@echo "  fabric (topo, run, compare): $(FABRIC)" | fold -s -w 96
	@echo "  traffic (workload, run, compare): $(TRAFFIC)" | fold -s -w 96
	@echo "  capture (run, compare): $(CAPTURES)    evidence: RUN PACKETS=1"
	@echo "  workload, run: SCHEDULER    compare: SCHEDULERS JOBS    run, topo: CPU"
	@echo "  selftests: SCHEDULERS TESTS (quick, all or names) REPEATS SEED JOBS OUT"
	@echo "  fuzz: SEED REPEATS ROUNDS JOBS"
	@echo "  topo: SWITCH CLOCK SEED    a lab that stays up: NAME    queries: JSON=1"

topo: machine build kernel ## boot a fabric and leave it running
	@$(WEFT) topo up $(call flags,NAME CLOCK SEED CPU SWITCH $(FABRIC))

workload: $(WEFT) ## run flows in the running lab
	@$(WEFT) workload $(call flags,NAME $(TRAFFIC) SCHEDULER)

patterns paths telemetry flows: %: $(WEFT)
	@$(WEFT) $@ $(call flags,NAME) $(if $(JSON),--json) $(if $(HISTORY),--history)
patterns: ## what the controller has measured and pushed [HISTORY=1: and before]
paths: ## RTT and queue of every path
telemetry: ## the samples of the switches, live
flows: ## the connections in the hosts' kernels and the patterns they use

explain: $(WEFT) ## why the pattern between two hosts is what it is: SRC=h1_1 DST=h2_1
	@$(WEFT) explain $(call flags,NAME) $(if $(JSON),--json) '$(SRC)' '$(DST)'

shell: $(WEFT) ## a Mininet prompt in the running lab
	@$(WEFT) shell $(call flags,NAME)

status: $(WEFT) ## what the running lab is doing
	@$(WEFT) topo status $(call flags,NAME)

down: $(WEFT) ## stop the running lab
	@$(WEFT) topo down $(call flags,NAME)

run: machine build kernel ## boot a lab of its own, run flows, stop: deterministic
	@$(WEFT) run $(call flags,CPU $(FABRIC) $(TRAFFIC) $(CAPTURES) SCHEDULER)

compare: machine build kernel ## the same flows under several schedulers
	@$(WEFT) compare $(call flags,SCHEDULERS JOBS $(FABRIC) $(TRAFFIC) $(CAPTURES))

evidence: $(WEFT) ## what happened to every packet of a captured run: RUN=runs/x
	@$(WEFT) evidence $(if $(PACKETS),--packets) '$(RUN)'

experiment: $(if $(PLAN)$(CLUSTER),,machine) build kernel ## runs that a file describes, planned and resumed: FILE=... [PLAN=1]
	@$(if $(FILE),,echo 'give FILE=workloads/scenarios/x.toml, or one of your own' >&2; exit 2)
	@$(WEFT) experiment $(call flags,JOBS STORE CLUSTER SEEDS) $(if $(OUT),--out '$(OUT)') \
	    $(if $(PLAN),--plan) $(if $(QUICK),--quick) $(if $(FULL),--full) '$(FILE)'

report: deps $(WEFT) ## one page of an experiment's results: DIR=runs/scenarios/rb-fig13
	@$(if $(DIR),,echo 'give DIR=runs/scenarios/x' >&2; exit 2)
	@$(WEFT) report '$(DIR)'

scenario: deps $(if $(SCENARIO),machine build kernel) ## an experiment of a paper: SCENARIO=rb-fig13 [QUICK=1]
	@$(if $(SCENARIO),,$(SCENARIOS) list; echo 'give SCENARIO=NAME' >&2; exit 2)
	@$(SCENARIOS) run $(SCENARIO) $(if $(QUICK),--quick) $(call flags,SEEDS)

scenarios: machine build kernel ## all of them, at most 30 minutes; QUICK=1: at most 5
	@$(SCENARIOS) run $(if $(QUICK),--quick) $(call flags,SEEDS)

figures: machine build kernel ## every figure with a report, in 30 minutes; FULL=1: at the papers' scale
	@$(SCENARIOS) figures $(if $(FULL),--full) $(if $(PLAN),--plan) $(call flags,SEEDS)

speed: machine build kernel ## what runs take, against what they may: WHAT="websearch packet" REPEATS
	@.venv/bin/python tests/speed $(call flags,REPEATS CPU) $(WHAT)

results: deps ## write workloads/RESULTS.md from the last `make scenarios`
	@$(SCENARIOS) results

machine: # before anything takes minutes: can a lab run here?
	@ci/check-machine lab

deps: ## install what is missing (Debian and Python packages)
	@ci/install

build: deps ## build the programs
	@cargo build --release --locked --workspace
	@.venv/bin/python -m compileall -q topology/weft_topology # the lab reads, it does not write

kernel: deps ## build the lab kernel and its module, once (KERNEL_SRC=dir for another tree)
	@python3 topology/lab/kernel/build.py

p4: ## compile the P4 programs (needs p4c)
	@p4/compile

selftests: machine build kernel ## the kernel's own MPTCP tests under each scheduler, against default's
	@tests/selftests/run $(call flags,SCHEDULERS TESTS REPEATS SEED JOBS OUT)

fuzz: machine build kernel ## broken netlink messages against the kernel module in use
	@tests/fuzz $(call flags,SEED REPEATS ROUNDS JOBS)

test: ## everything: install, build, lint, unit tests, the whole circle in the lab
	@ci/test

test-fresh: ## what README says, on bare Debian 13 and 12 systems: [DEBIAN=13] [UNTIL="make down"]
	@tests/fresh $(call flags,DEBIAN UNTIL CACHE FOLDER)

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
