# SPDX-License-Identifier: Apache-2.0
"""Reference of the scenarios: the figure of each file."""

import tomllib
from pathlib import Path

from weft_docs import markdown

_WHEN = {True: "only by its name", "figures": "by `make figures`", False: "by `make scenarios`"}
"""What runs a scenario besides `make scenario`, by its key `apart`."""


def page(folder: Path, results: Path) -> str:
    """Write the page of all scenarios."""
    rows = []
    for file in sorted(folder.glob("*.toml")):
        scenario = tomllib.loads(file.read_text(encoding="utf-8"))
        name = f"`{file.stem}`"
        if (results / f"{file.stem}.md").exists():
            name = f"[{name}](../../../workloads/{results.name}/{file.stem}.md)"
        when = _WHEN[scenario.get("apart", False)]
        rows.append([name, scenario["title"], scenario["source"], when])
    parts = [
        "# All scenarios",
        "`make scenario SCENARIO=NAME` runs one. Its name links to its results.",
        markdown.table(["scenario", "what", "source", "is run"], rows),
    ]
    return "\n\n".join(parts) + "\n"
