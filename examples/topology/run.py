# SPDX-License-Identifier: Apache-2.0
"""Draw a topology of one's own, or boot a lab with it and run flows.

    .venv/bin/python examples/topology/run.py --show examples/topology/mixed_racks.py
    .venv/bin/python examples/topology/run.py examples/topology/mixed_racks.py \
        --out runs/mixed-racks --workload websearch --load 0.3 --flows 50 --scheduler weft

The file defines `SPEC`, a dataclass that derives from `FabricSpec` and has a default for every
field, and `TOPO`, the `Fabric` that is built from it. The flags of the traffic are a few of those
of `target/release/weft run --help`.

`weft run --topology KIND` knows the kinds that are compiled into it, and no others. So this script
boots a lab without a network, starts once more inside it (`--inside`), adds the file's kind to the
known ones, and brings the network up like any other.
"""

import argparse
import importlib.util
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

from weft_topology import document as documents
from weft_topology import drawing, fabrics, topos, up

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "target" / "release"
NETWORK = Path("/run/weft/network")
"""The folder of the network, inside the lab; /run/weft is the folder of the run."""
PATTERN_TTL_NS = 200_000_000
CONTROL_DELAY_NS = 20_000
"""Both as `weft run` has them by default."""

WORKLOAD = ("workload", "load", "flows", "scale")
"""Flags that are parts of the workload."""


def main() -> int:
    """Do what the command line says; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("file", type=Path, metavar="FILE.py")
    parser.add_argument("--show", action="store_true", help="draw it, boot nothing")
    parser.add_argument("--out", type=Path, metavar="DIR", help="new folder for the results")
    parser.add_argument("--seed", type=int, default=1, help="of everything random")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    traffic = parser.add_argument_group("traffic")
    traffic.add_argument("--workload", default="websearch", help="distribution of flow sizes")
    traffic.add_argument("--load", type=float, default=0.3, help="share of the hosts' links")
    traffic.add_argument("--flows", type=int, default=200, help="number of flows")
    traffic.add_argument("--scale", type=float, default=1, help="factor of all flow sizes")
    traffic.add_argument("--scheduler", default="weft", help="MPTCP scheduler of all hosts")
    options = parser.parse_args()
    own = load(options.file)
    if options.show:
        print(drawing.text(documents.of_topo(own.TOPO(own.SPEC()))), end="")
        return 0
    if options.inside:
        return inside(own, options)
    if options.out is None:
        parser.error("give --out DIR, or --show")
    return run(options.file.resolve(), options.out, options)


def load(file: Path) -> ModuleType:
    """Import the file, whatever folder it is in."""
    found = importlib.util.spec_from_file_location(file.stem, file)
    if found is None or found.loader is None:
        sys.exit(f"{file}: no Python file")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def run(file: Path, out: Path, options: argparse.Namespace) -> int:
    """Boot a lab that runs `inside`, and put its results into `out`."""
    if out.exists():
        sys.exit(f"{out} exists; choose another --out")
    built = [sys.executable, str(ROOT / "topology" / "lab" / "kernel" / "build.py"), "--json"]
    kernel = json.loads(subprocess.run(built, check=True, capture_output=True).stdout)
    environment = ["/usr/bin/env", f"PYTHONPATH={ROOT / 'topology'}"]
    command = [sys.executable, __file__, str(file), "--inside", f"--seed={options.seed}"]
    command += [f"--{name}={getattr(options, name)}" for name in (*WORKLOAD, "scheduler")]
    lab = {
        "topology": None,
        "seed": options.seed,
        "clock": "free",
        "paths": paths() | {"kernel": kernel["kernel"], "modules": kernel["modules"]},
        "batch": {"argv": environment + command, "needs": [], "reads": [str(file)]},
    }
    with tempfile.TemporaryDirectory(prefix="weft-") as name:
        work = Path(name) / "out"
        spec = Path(name) / "lab.json"
        spec.write_text(json.dumps(lab))
        batch = [str(PROGRAMS / "weft-lab"), "batch", str(spec), "--out", str(work)]
        done = subprocess.run(batch, stderr=subprocess.PIPE, text=True)
        if not (work / "results").exists():
            logs = [*work.glob("log/batch.log"), *work.glob("network/failed")]
            said = [log.read_text(errors="replace") for log in logs]
            sys.exit("".join([*said, done.stderr]))
        shutil.move(work / "results", out)
    return subprocess.run([PROGRAMS / "weft", "report", out]).returncode


def paths() -> dict[str, str | list[str]]:
    """Give where things are, which is the same inside the lab."""
    return {
        "repo": str(ROOT),
        "bin": str(PROGRAMS),
        "python": sys.executable,
        "programs": [str(ROOT / "p4" / "compiled")],
    }


def inside(own: ModuleType, options: argparse.Namespace) -> int:
    """Bring the network up and run flows in it: the lab ends when this does."""
    # As in `weft run`: processes run in the order in which they wake up, so that the same seed
    # gives the same results.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    kind = own.SPEC.kind
    fabrics.KINDS[kind] = own.SPEC
    topos.topos[kind] = own.TOPO
    NETWORK.mkdir()
    lab = NETWORK / "lab.json"
    description = {
        "topology": {"kind": kind},
        "pattern_ttl_ns": PATTERN_TTL_NS,
        "control_delay_ns": CONTROL_DELAY_NS,
        "seed": options.seed,
        "paths": paths(),
    }
    lab.write_text(json.dumps(description))
    network = multiprocessing.Process(target=up.run, args=[lab])
    network.start()
    while not (NETWORK / "ready").exists():
        if not network.is_alive():
            return 1
        time.sleep(0.001)
    # What it leaves out has the default of the flag.
    document = {
        "workload": {name: getattr(options, name) for name in (*WORKLOAD, "seed")},
        "scheduler": options.scheduler,
        "topology": str(NETWORK / "topology.json"),
        "stats_dir": str(NETWORK),
        "out": "/run/weft/results",
    }
    load = [str(PROGRAMS / "weft-load"), "run", json.dumps(document)]
    status = subprocess.run(load).returncode
    network.terminate()
    network.join()
    return status


if __name__ == "__main__":
    sys.exit(main())
