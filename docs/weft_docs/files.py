# SPDX-License-Identifier: Apache-2.0
"""Reference of the files of runs and experiments, from the code that writes them."""

import ast
import re
import runpy
from collections.abc import Iterable
from pathlib import Path

from weft_docs import markdown
from weft_docs.errors import DocsError

_STRUCT = r"^((?:///[^\n]*\n)*)(?:#\[[^\n]*\]\n)*pub struct {name} \{{\n(.*?)^\}}"
_FIELD = re.compile(r"((?:    ///.*\n)+)((?:    #\[.*\]\n)*)    pub (?:r#)?(\w+): (.+?),\n")

RUN = [
    ("flows.csv", "FlowRow"),
    ("subflows.csv", "SubflowRow"),
    ("samples.csv", "SampleRow"),
    ("background.csv", "BackgroundRow"),
]
"""Tables of a run, each with the struct of its rows."""

RUN_JSON = [
    ("run.json", "RunInfo"),
    ("workload", "Workload"),
    ("topology", "TopologySummary"),
    ("links", "LinkSummary"),
    ("outcome", "RunOutcome"),
]

QUEUES = {
    "time_ns": "end of the millisecond; rows are left out while nothing changes",
    "switch": "name of the switch",
    "port": "number of its port",
    "peer": "what is at the other end of the link",
    "queue_packets": "packets in the queue at that time",
    "queue_max_packets": "maximum in that millisecond",
    "tx_packets": "packets sent so far",
    "tx_bytes": "bytes sent so far",
    "dropped_packets": "packets that the full queue has dropped so far",
    "lost_packets": "packets lost on the link so far",
    "oversize_packets": "packets dropped so far because they exceed the link's MTU",
}
PATTERNS = {
    "time_ns": "when the pattern was decided; 0 for those in force at the start",
    "source_leaf": "number of the leaf where the data comes from",
    "destination_leaf": "number of the leaf where it goes to",
    "version": "of the pattern; rises with every new one",
    "path": "number of the path, from 0",
    "via": "switches between the leaves on that path",
    "rtt_ns": "RTT of the path",
    "queue_packets": "longest recent queue on the way there",
    "gap": "packets on that path in each round of the pattern",
    "sequence": "the pattern: A is path 0, B is path 1, ...",
}
LOOP = {
    "source_leaf": "number of the leaf where the data comes from",
    "destination_leaf": "number of the leaf where it goes to",
    "version": "of the pattern",
    "host": "host whose kernel took it",
    "sampled_ns": "when the sample was taken; empty if time or probes led to the pattern",
    "decided_ns": "when the controller decided",
    "applied_ns": "when the kernel had the pattern",
    "rested": "whether it had to wait because the pattern before it was too recent",
    "rule": "rule that decided it",
}
WRITTEN = [
    ("queues.csv", r'const HEADER: &str = "(time_ns,switch,port,peer,queue_packets.*?)";', QUEUES),
    ("patterns.csv", r"const PATTERN_COLUMNS: [^=]*= \[(.*?)\];", PATTERNS),
    ("loop.csv", r"const LOOP_COLUMNS: [^=]*= \[(.*?)\];", LOOP),
]
"""Tables whose columns are a constant: file, pattern of the constant, descriptions."""


def page(root: Path) -> str:
    """Write the page of files and columns."""
    rust = {path: path.read_text(encoding="utf-8") for path in _sources(root)}
    parts = [
        "# Files and columns",
        "Names of columns and keys end in their unit: `_ns`, `_bps`, `_bytes`, `_packets`.\n"
        "Times count from the start of the run, in virtual time.",
        "## A run",
        "`weft run`, `weft workload` and `weft compare` write a folder for each run.\n"
        "[Evidence per packet](../../../workloads/evidence/README.md) explains `capture/` and\n"
        "`evidence/`.",
    ]
    for file, struct in RUN:
        about, rows = fields(rust.values(), struct)
        parts += [f"### {file}", markdown.text(about), markdown.table(["column", "what"], rows)]
    for file, constant, known in WRITTEN:
        rows = [[f"`{name}`", said] for name, said in columns(rust.values(), constant, known)]
        parts += [f"### {file}", markdown.table(["column", "what"], rows)]
    for key, struct in RUN_JSON:
        about, rows = fields(rust.values(), struct)
        title = key if key.endswith(".json") else f"{key} in run.json"
        parts += [f"### {title}", markdown.text(about), markdown.table(["key", "what"], rows)]
    parts += ["## An experiment", "`weft experiment` writes these beside the plots."]
    parts += ["### flows.parquet", _docstring(root / "workloads/weft_scenarios/results/flows.py")]
    parts += [
        "### percentiles.csv",
        _docstring(root / "workloads/weft_scenarios/results/pooled.py"),
    ]
    parts += ["### results.csv", "A column for each axis, `seed`, and these numbers of every run:"]
    parts += [_quantities(root / "workloads/weft_scenarios/definition/quantities.py")]
    parts += ["## topology.json", "The network, as all programs read it."]
    for struct in ("Topology", "Host", "Switch", "Port", "Link"):
        about, rows = fields(rust.values(), struct)
        parts += [f"### {struct}", markdown.text(about), markdown.table(["key", "what"], rows)]
    return "\n\n".join(parts) + "\n"


def _sources(root: Path) -> list[Path]:
    tops = ("controller", "p4/switch", "topology/model", "workloads/load")
    return [path for top in tops for path in sorted((root / top).rglob("src/**/*.rs"))]


def fields(sources: Iterable[str], struct: str) -> tuple[str, list[list[str]]]:
    """Give the documentation of a public struct and of its fields."""
    pattern = re.compile(_STRUCT.format(name=struct), re.M | re.S)
    found = [match for source in sources for match in pattern.finditer(source)]
    found = [match for match in found if "Serialize" in match[0] or "Deserialize" in match[0]]
    if len(found) != 1:
        raise DocsError(f"{len(found)} structs {struct} are serialised; one was expected")
    rows = []
    for comment, attributes, name, kind in _FIELD.findall(found[0][2]):
        said = markdown.text(_doc(comment))
        if "flatten" in attributes:
            rows += fields(sources, kind)[1]
            continue
        if "skip_serializing_if" in attributes:
            said += " Left out where there is none."
        rows.append([f"`{name}`", said])
    return _doc(found[0][1]), rows


def columns(sources: Iterable[str], constant: str, known: dict[str, str]) -> list[tuple[str, str]]:
    """Give the columns that the program writes, each with its description."""
    found = [match[1] for s in sources for match in re.finditer(constant, s, re.S)]
    if len(found) != 1:
        raise DocsError(f"{len(found)} constants are like {constant}; one was expected")
    names = re.findall(r"\w+", found[0].replace("\\n", " ").replace("\\\n", " "))
    if names != list(known):
        raise DocsError(f"columns are {names}, docs/weft_docs/files.py explains {list(known)}")
    return [(name, known[name]) for name in names]


def _doc(comment: str) -> str:
    joined = " ".join(line.strip().removeprefix("///").strip() for line in comment.splitlines())
    return re.sub(r"\[`?([\w:]+)`?\]", r"`\1`", joined)


def _docstring(source: Path) -> str:
    doc = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8")))
    if not doc:
        raise DocsError(f"{source} has no docstring with its columns")
    return doc


def _quantities(source: Path) -> str:
    metrics = runpy.run_path(str(source))["METRICS"]
    rows = [[f"`{name}`", markdown.text(q.label), q.unit] for name, q in metrics.items()]
    return markdown.table(["column", "what", "unit"], rows)
