# SPDX-License-Identifier: Apache-2.0
"""Draw a topology of one's own, or boot a lab with it and run flows.

    .venv/bin/python examples/topology/run.py --show examples/topology/mixed_racks.py
    .venv/bin/python examples/topology/run.py examples/topology/mixed_racks.py \
        --out runs/mixed-racks --workload websearch --load 0.3 --flows 50 --scheduler weft

The file defines `SPEC`, a dataclass that derives from `FabricSpec` and has a default for every
field, and `TOPO`, the `Fabric` that is built from it. All other flags are those of the traffic
generator: `target/release/weft-load run --help`.

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

from weft_topology import document, drawing, fabrics, topos, up

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "target" / "release"
NETWORK = Path("/run/weft/network")
"""The folder of the network, inside the lab; /run/weft is the folder of the run."""
PATTERN_TTL_NS = 200_000_000
CONTROL_DELAY_NS = 20_000
"""Both as `weft run` has them by default."""


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
    options, traffic = parser.parse_known_args()
    own = load(options.file)
    traffic += ["--seed", str(options.seed)]
    if options.show:
        print(drawing.text(document.of_topo(own.TOPO(own.SPEC()))), end="")
        return 0
    if options.inside:
        return inside(own, options.seed, traffic)
    if options.out is None:
        parser.error("give --out DIR, or --show")
    return run(options.file.resolve(), options.out, options.seed, traffic)


def load(file: Path) -> ModuleType:
    """Import the file, whatever folder it is in."""
    found = importlib.util.spec_from_file_location(file.stem, file)
    if found is None or found.loader is None:
        sys.exit(f"{file}: no Python file")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def run(file: Path, out: Path, seed: int, traffic: list[str]) -> int:
    """Boot a lab that runs `inside`, and put its results into `out`."""
    if out.exists():
        sys.exit(f"{out} exists; choose another --out")
    built = [sys.executable, str(ROOT / "topology" / "lab" / "kernel" / "build.py"), "--json"]
    kernel = json.loads(subprocess.run(built, check=True, capture_output=True).stdout)
    environment = ["/usr/bin/env", f"PYTHONPATH={ROOT / 'topology'}"]
    command = [sys.executable, __file__, str(file), "--inside", "--seed", str(seed), *traffic]
    lab = {
        "topology": None,
        "seed": seed,
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


def paths() -> dict[str, str]:
    """Give where things are, which is the same inside the lab."""
    return {
        "repo": str(ROOT),
        "bin": str(PROGRAMS),
        "python": sys.executable,
        "pipelines": str(ROOT / "p4" / "compiled"),
    }


def inside(own: ModuleType, seed: int, traffic: list[str]) -> int:
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
        "seed": seed,
        "paths": paths(),
    }
    lab.write_text(json.dumps(description))
    network = multiprocessing.Process(target=up.run, args=[lab])
    network.start()
    while not (NETWORK / "ready").exists():
        if not network.is_alive():
            return 1
        time.sleep(0.001)
    fabric = ["--topology", str(NETWORK / "topology.json"), "--stats-dir", str(NETWORK)]
    load = [str(PROGRAMS / "weft-load"), "run", *fabric, "--out", "/run/weft/results"]
    status = subprocess.run([*load, *traffic]).returncode
    network.terminate()
    network.join()
    return status


if __name__ == "__main__":
    sys.exit(main())
