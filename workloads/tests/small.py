"""A scenario that is small."""

from pathlib import Path

from weft_scenarios import scenario

SMALL = """
title = "Small"
source = "nowhere"
setting = "one"

[[experiment]]
name = "one"
seeds = 3
seconds = 1.0
scheduler = ["rb", "minrtt"]
flags = { pattern = "incast" }
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


def read(folder: Path, text: str) -> scenario.Scenario:
    """Read a scenario with this text."""
    (folder / "x.toml").write_text(text)
    return scenario.read("x", folder)
