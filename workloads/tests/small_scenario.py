# SPDX-License-Identifier: Apache-2.0
"""A small scenario, and a fake `weft` that runs it without a lab."""

from pathlib import Path

from weft_scenarios.definition import scenario_file
from weft_scenarios.definition.scenario import Scenario

SMALL = """
title = "Small"
source = "nowhere"
setting = "one"

[[experiment]]
name = "one"
seeds = 3
seconds = 1.0
scheduler = ["rb", "minrtt"]
flags = { traffic = "incast" }
[[experiment.axis]]
name = "flows"
label = "Flows"
flag = "senders"
values = [1, 16]
[experiment.quick]
seeds = 1
flows = [16]

[[plot]]
name = "fct"
title = "FCT"
quantity = "fct_mean_ms"
x = "flows"

[[claim]]
text = "It is faster."
source = "Fig. 1"
metric = "fct_mean_ms"
which = { scheduler = "rb" }
versus = { scheduler = "minrtt" }
relation = "<="
"""

WRITES_A_RUN = """\
#!/usr/bin/env python3
import pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
with open(pathlib.Path(__file__).with_name("log"), "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
if "16" in sys.argv and "minrtt" in sys.argv:
    sys.exit("weft: the kernel has no scheduler minrtt")
out.mkdir()
usage = pathlib.Path(sys.argv[sys.argv.index("--usage") + 1])
usage.write_text('{"cpu_s": 1.5, "memory_bytes": 3000000}')
(out / "run.json").write_text('{"kernel": "Linux 7", "revision": "1"}')
(out / "flows.csv").write_text(
    "flow,src,dst,bytes,start_ns,fct_ns,subflows,timeouts,retransmissions,reinjected_bytes,error\\n"
    "0,h1_1,h2_1,1000,0,2000000,2,0,0,0,\\n"
    "1,h1_2,h2_1,1000,1000000,4000000,2,1,3,0,\\n")
(out / "queues.csv").write_text(
    "time_ns,switch,port,peer,queue_packets,queue_max_packets,tx_packets,tx_bytes,dropped_packets\\n"
    "1000000,leaf2,1,h2_1,5,9,90,90000,10\\n"
    "2000000,leaf2,1,h2_1,0,7,190,190000,10\\n")
"""
"""The fake; it fails with minrtt and 16 flows."""


def read(folder: Path, text: str, name: str = "x") -> Scenario:
    """Read a scenario with this text."""
    (folder / f"{name}.toml").write_text(text)
    return scenario_file.read(name, folder)
