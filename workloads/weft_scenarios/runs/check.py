# SPDX-License-Identifier: Apache-2.0
"""Checks the flags of a scenario before anything runs.

The syntax of the file is checked when it is read. Here `weft run --check` validates the flags of
each run, and the names of schedulers and congestion controls are compared with those that the
lab's kernel has.
"""

import difflib
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from weft_scenarios.definition import scenario_file
from weft_scenarios.errors import ScenarioError
from weft_scenarios.runs.installation import ROOT, Installation
from weft_scenarios.runs.run import Run
from weft_scenarios.definition.scenario import Scenario
from weft_scenarios.definition.toml_positions import Path

_KERNEL = ROOT / "host" / "kernel"
_CONFIG = ROOT / "topology" / "lab" / "kernel" / "um.config"
_USAGE = 2
_RENAMED = {"pattern": "traffic"}
"""Flags of `weft run` that have another name now."""


def check(scenarios: Sequence[Scenario], runs: Iterable[Run], installed: Installation) -> None:
    """Raise ScenarioError, with file and line, for the first run whose flags are invalid."""
    files = {one.name: one for one in scenarios}
    known = _known()
    distinct: dict[tuple[tuple[str, str], ...], Run] = {}
    for run in runs:
        distinct.setdefault(tuple(sorted(run.flags.items())), run)
    for run in distinct.values():
        for flag, names in known.items():
            if run.flags.get(flag, "default") not in names:
                allowed = f"there are {', '.join(sorted(names))}"
                wrong = f"{flag} = {run.flags[flag]!r}: {allowed}"
                raise _wrong(files[run.scenario], run, flag, wrong)
    _check_flag_names(files, distinct.values(), installed)
    with ThreadPoolExecutor() as pool:
        said_of_all = pool.map(lambda run: _refusal(run, installed), distinct.values())
        for run, said in zip(distinct.values(), said_of_all, strict=True):
            if said:
                named = re.search(r"--([a-z][a-z-]*)", said)
                raise _wrong(files[run.scenario], run, named[1] if named else "", said)


def _known() -> Mapping[str, set[str]]:
    """Give the names that the lab's kernel knows, from its sources and configuration."""
    name = re.compile(r"^\t\.name\t+= \"(\w+)\"", re.M)
    own = [set(name.findall("".join(path.read_text() for path in _KERNEL.glob(pattern))))
           for pattern in ("*.c", "congestion/*.c")]  # fmt: skip
    built_in = re.findall(r"^CONFIG_TCP_CONG_(\w+)=y", _CONFIG.read_text(), re.M)
    of_linux = {text.lower() for text in built_in} - {"advanced"} | {"reno", "default"}
    return {"scheduler": own[0] | {"default"}, "congestion": own[1] | of_linux}


def _check_flag_names(
    files: Mapping[str, Scenario], runs: Iterable[Run], installed: Installation
) -> None:
    known = installed.flags()
    for run in runs:
        for flag in run.flags:
            if flag not in known:
                raise _wrong(files[run.scenario], run, flag, _unknown(flag, known))


def _unknown(flag: str, known: set[str]) -> str:
    if flag in _RENAMED:
        return f"{flag} is now called {_RENAMED[flag]}: {_RENAMED[flag]} = ..."
    near = difflib.get_close_matches(flag, known, 1)
    hint = f"; did you mean --{near[0]}?" if near else "; see weft run --help"
    return f"`weft run` has no flag --{flag}{hint}"


def _refusal(run: Run, installed: Installation) -> str:
    """Give the error of `weft run` about the flags; nothing if they are valid."""
    done = subprocess.run(
        [installed.weft, *run.arguments(), "--check"], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode == _USAGE:
        return done.stderr.strip().removeprefix("weft: ")
    return ""  # Other errors are not the fault of the file. They show when it runs.


def _wrong(one: Scenario, run: Run, flag: str, said: str) -> ScenarioError:
    place = one.source_file.at(_place(one, run, flag))
    return ScenarioError(f"{place}: experiment {run.experiment}: {said}")


def _place(one: Scenario, run: Run, flag: str) -> Path:
    """Find the place in the file that sets a flag of the run."""
    number = next(i for i, e in enumerate(one.experiments) if e.name == run.experiment)
    own: Path = ("experiment", number)
    written = one.content["experiment"][number]
    for place, axis in _axes(one, number):
        if axis.get("flag") == flag:
            return (*place, "values")
        for point_index, point in enumerate(axis.get("points", [])):
            is_here = point["at"] == run.at[axis["name"]]
            if is_here and flag in point.get("flags", {}):
                return (*place, "points", point_index)
    if flag in written.get("flags", {}):
        return (*own, "flags", flag)
    if flag in written:
        return (*own, flag)
    if flag in one.content.get("flags", {}):
        return ("flags", flag)
    return own


def _axes(one: Scenario, number: int) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Give an experiment's axes as the file has them, each with its place there."""
    shared = {axis["name"]: (index, axis) for index, axis in enumerate(one.content.get("axis", []))}
    for index, axis in enumerate(one.content["experiment"][number].get("axis", [])):
        if scenario_file.is_shared(axis):
            at, found = shared[axis["name"]]
            yield ("axis", at), found
        else:
            yield ("experiment", number, "axis", index), axis
